from __future__ import annotations

import base64
import hashlib
import hmac
import json
import random
import uuid

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from castle.text.scan import Scanner
from castle.text.secrets import find_secrets
from castle.text.served import mask_secrets

SALT = b"salt"
# Tokens are put together here so that no scanner takes this file for a leak.
MIXED = "aB3dE5fG7hJ9kL2mN4pQ6rS8tU1vW3xY5zA7bC9dE2fG4hJ6kL8mN1pQ3rS5tU7vW9xY2zA4"
HEX = "4f9a8b7c6d5e4f3a2b1c0d9e8f7a6b5c4d3e2f1a0b9c8d7e6f5a4b3c2d1e0f9a"


def jwt() -> str:
    parts = ({"alg": "HS256", "typ": "JWT"}, {"sub": "1234567890", "name": "Ada"})
    head, body = (base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts)
    return f"{head}.{body}.{MIXED[:43]}"


TOKENS = {
    "aws_key": ["AK" + "IAIOSFODNN7EXAMPLE", "AS" + "IAQ3EXAMPLE12345AB"],
    "github_token": [f"gh{kind}_" + MIXED[:36] for kind in "pousr"]
    + ["github" + "_pat_" + MIXED[:22] + "_" + MIXED[:59]],
    "gitlab_token": ["gl" + "pat-" + MIXED[:20]],
    "slack_token": [
        "xo" + "xb-123456789012-1234567890123-" + MIXED[:24],
        "xo" + "xp-123456789012-" + MIXED[:24],
    ],
    "webhook_url": ["https://hooks." + "slack.com/services/T0001AB2C/B0001AB2C/" + MIXED[:24]],
    "stripe_key": [f"{a}k_{b}_" + MIXED[:24] for a in "sr" for b in ("live", "test")],
    "openai_key": ["sk" + "-" + MIXED[:48], "sk" + "-proj-" + MIXED[:40] + "_" + MIXED[:30]],
    "anthropic_key": ["sk" + "-ant-api03-" + MIXED[:70] + "-" + MIXED[:20] + "AA"],
    "google_key": ["AI" + "za" + MIXED[:35]],
    "npm_token": ["np" + "m_" + MIXED[:36]],
    "pypi_token": ["py" + "pi-AgE" + "IcHlwaS5vcmc" + MIXED[:60]],
    "huggingface_token": ["h" + "f_" + MIXED[:34]],
    "sendgrid_key": ["S" + "G." + MIXED[:22] + "." + MIXED[:43]],
    "twilio_key": ["S" + "K" + HEX[:32]],
    "telegram_token": ["1234567890" + ":AA" + MIXED[:33], "12345678" + ":AA" + MIXED[:33]],
    "jwt": [jwt()],
    "digitalocean_token": ["do" + "p_v1_" + HEX[:64]],
    "vault_token": ["hv" + "s." + MIXED[:24]],
}
CASES = [(kind, token) for kind, tokens in TOKENS.items() for token in tokens]


def found(text: str) -> list[tuple[str, str]]:
    return [(span.kind, text[span.start : span.end]) for span in find_secrets(text, SALT)]


@pytest.mark.parametrize(("kind", "token"), CASES)
@pytest.mark.parametrize(
    "frame",
    [
        "{}",
        "use {} now",
        'key = "{}"',
        "export KEY={}\n",
        '{{"text":"a\\n{}\\n"}}',
        "?key={}&b",
        "%3D{}",
        "({})",
        "`{}`.",
    ],
)
def test_named_formats(kind: str, token: str, frame: str) -> None:
    text = frame.format(token)
    assert [(got, value.rstrip(".")) for got, value in found(text)] == [(kind, token)]


def test_tags_are_keyed_hashes() -> None:
    token = TOKENS["github_token"][0]
    (span,) = find_secrets(f"use {token}", SALT)
    assert span.tag == hmac.new(SALT, token.encode(), hashlib.sha256).hexdigest()[:2]
    assert span.mask == f"«secret:github_token#{span.tag}»"
    assert mask_secrets(f"use {token}", SALT) == f"use {span.mask}"


PASS = "pass" + "word"


@pytest.mark.parametrize(
    ("text", "secret", "kind"),
    [
        ("aws_" + "secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "wJalr", "aws_secret"),
        ('"Secret' + 'AccessKey": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"', "wJalr", "aws_secret"),
        ("postgres://app:" + "hunter2@db.local:5432/x", "hunter2", "url_password"),
        ("https://bot:" + "s3cr%40t@example.com/x.git", "s3cr%40t", "url_password"),
        ("redis://:" + "Tr0ub4dor@cache:6379", "Tr0ub4dor", "url_password"),
        (f"Authorization: Bearer {MIXED[:32]}", MIXED[:32], "authorization"),
        (f'-H "authorization: bearer {MIXED[:32]}"', MIXED[:32], "authorization"),
        ("Authorization: Basic " + base64.b64encode(b"ada:Hunter2!").decode(), "YWRh", "authorization"),
        (f'{PASS} = "hunter2"', "hunter2", "password"),
        (f"{PASS}: 'Tr0ub4dor&3'", "Tr0ub4dor&3", "password"),
        (f'self.{PASS}: str = "c0rrect-horse"', "c0rrect-horse", "password"),
        (f'{PASS} = "hunter2secret9x1"', "hunter2secret9x1", "password"),
        (f"{PASS} = s3cr3tToken9\n", "s3cr3tToken9", "password"),
        (f'"{PASS}": "k3y8ladder2token",', "k3y8ladder2token", "password"),
        ('api_key = "hunter2secret9x1"', "hunter2secret9x1", "secret"),
        (f'"db_{PASS}": "hunter2",', "hunter2", "password"),
        (f'{{\\"{PASS}\\": \\"hunter2x9\\"}}', "hunter2x9", "password"),
        (f"DB_{PASS.upper()}=hunter2\n", "hunter2", "password"),
        ("DB_PASS" + "='Hunter2!'\n", "Hunter2!", "password"),
        (f"  {PASS}: h4rdt0gu3ss\n", "h4rdt0gu3ss", "password"),
        (f"tool --db-{PASS} h4rdt0gu3ss --verbose", "h4rdt0gu3ss", "password"),
        (f"<{PASS}>Hunter2!x</{PASS}>", "Hunter2!x", "password"),
        (f'api_key = "{HEX[:32]}"', HEX[:32], "secret"),
        (f"client_secret: {MIXED[:30]}\n", MIXED[:30], "secret"),
        (f"const accessToken = '{MIXED[:30]}';", MIXED[:30], "secret"),
        (f"AUTH_TOKEN={HEX[:32]}", HEX[:32], "secret"),
    ],
)
def test_values_in_context(text: str, secret: str, kind: str) -> None:
    ((got, value),) = found(text)
    assert got == kind
    assert value.startswith(secret)
    assert value.strip("\"'") == value


@pytest.mark.parametrize(
    "text",
    [
        *(
            f'{PASS} = "{value}"'
            for value in ("changeme", "<your password>", "${DB_PASS}", "xxxxxxxx", PASS, "********")
        ),
        *(
            f"{PASS} = {value}"
            for value in ("os.environ['X1']", "get_pass1()", "config.db_pass2", "None", "input()")
        ),
        *(
            f'{PASS} = "{value}"'
            for value in ("client_secret2", "sha256Key", "oauth2Token1", "x509_v3_key1", "secret123")
        ),
        *(
            f'api_key = "{value}"'
            for value in ("YOUR_API_KEY_1234567", "{{ api_key_1234567890 }}", "sk-...", "test")
        ),
        f"{PASS}: string;",
        f'"{PASS}": "Forgot it?"',
        f'{PASS}_field = "user_{PASS}_2"',
        f'type="{PASS}" name="login1"',
        f"The {PASS} is asked for at login, and the token: see chapter 12.",
        f"if {PASS} == 'Hunter2!x':",
        "token = tokens[index1]",
        "token = next(self.tokens2)",
        "token_type: bearer",
        "max_tokens = 4096",
        "secret_name: my-service-credentials-v2",
        "postgres://user:" + f"{PASS}@localhost/db",
        "postgres://user:" + "${DB_PASS}@localhost/db",
        "see https://example.com:8080/a@b and http://[::1]:80/",
        "Bearer of bad news, Bearer authentication-with-tokens",
        "Authorization: Bearer <token>",
        "Authorization: Bearer $TOKEN",
        "commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
        "sha256:" + HEX,
        '"integrity": "sha512-' + base64.b64encode(hashlib.sha512(b"x").digest()).decode() + '"',
        'checksum = "' + HEX + '"',
        "id: 123e4567-e89b-12d3-a456-426614174000",
        "the-task-" + HEX[:32],
        "disk-" + HEX[:32] + " risk-" + MIXED[:40],
        "gh" + "p_" + "x" * 36,
        "-----BEGIN " + "PRIVATE KEY-----",
        'start = "-----BEGIN ' + 'PRIVATE KEY-----"; end = "-----END ' + 'PRIVATE KEY-----"',
        "-----BEGIN " + "CERTIFICATE-----\n" + (MIXED[:64] + "\n") * 3 + "-----END " + "CERTIFICATE-----",
        "def f(token: str, secret: bytes) -> None: ...",
        "«secret:aws_key#3f»",
    ],
)
def test_what_is_no_secret(text: str) -> None:
    assert found(text) == []


@pytest.mark.parametrize("seed", range(5))
def test_random_data_is_no_secret(seed: int) -> None:
    draw = random.Random(seed)
    image = base64.b64encode(draw.randbytes(60_000)).decode()
    url = base64.urlsafe_b64encode(draw.randbytes(60_000)).decode()
    lines = [f"{draw.getrandbits(160):040x}  {uuid.UUID(int=draw.getrandbits(128))}" for _ in range(500)]
    assert found(f"![x](data:image/png;base64,{image})\n{url}\n" + "\n".join(lines)) == []


HEAD, FOOT = ("-----" + f"{word} RSA PRIVATE KEY-----" for word in ("BEGIN", "END"))
BODY = "\n".join(MIXED[:64] for _ in range(8))


@pytest.mark.parametrize(
    "block",
    [
        f"{HEAD}\n{BODY}\n{FOOT}",
        f"{HEAD}\r\n" + BODY.replace("\n", "\r\n") + f"\r\n{FOOT}",
        f"{HEAD}\\n" + BODY.replace("\n", "\\n") + f"\\n{FOOT}",
        f"{HEAD}\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,00\n\n{BODY}\n{FOOT}",
        f"{HEAD}\nc2hvcnQga2V5\n{FOOT}",
    ],
)
def test_private_keys_are_sealed_whole(block: str) -> None:
    assert found(f'{{"private_key": "{block}\\n"}}') == [("private_key", block)]


def test_a_key_without_its_end_is_sealed_as_far_as_its_lines_go() -> None:
    ((kind, value),) = found(f"{HEAD}\n{BODY}\n\nAnd so the story goes on.\n")
    assert kind == "private_key"
    assert value == f"{HEAD}\n{BODY}"


def test_overlapping_finds_are_one_span_of_the_specific_kind() -> None:
    token = TOKENS["github_token"][0]
    text = f'token = "{token}+more1"'
    assert found(text) == [("github_token", f"{token}+more1")]
    assert found(f"Authorization: Bearer {jwt()}") == [("jwt", jwt())]


ADVERSARIAL = [
    "-----BEGIN " + "PRIVATE KEY-----",
    "-----BEGIN " + "PRIVATE KEY-----\nAAAAAAAAAAAAAAAAAAAA\n",
    "-----END " + "PRIVATE KEY-----",
    "eyJ",
    "eyJ" + "a" * 20 + ".",
    "eyJaaaaaaaaaaaa.eyJ",
    "://a:",
    "://" + "a" * 100 + ":",
    "password=",
    'password="',
    "password: a",
    "token token ",
    "--token ",
    "secret" + " " * 50,
    "authorization: bearer ",
    "Bearer aaaaaaaaaa",
    "xoxb-",
    "sk-proj-",
    "github" + "_pat_",
    ":AA",
    "12345678:AA",
    "AKIA",
    "SG.",
    "SG.aaaaaaaaaaaaaaaa.",
    "pypi-AgE",
    "hvs.",
    '"',
    "\\",
    "\\\\\"'",
    "a.a1::",
    "İpassword=ß",
]


@pytest.mark.parametrize("unit", ADVERSARIAL)
def test_half_a_megabyte_of_anything_ends(unit: str) -> None:
    spans = find_secrets((unit * (500_000 // len(unit) + 1))[:500_000], SALT)
    assert all(left.end <= right.start for left, right in zip(spans, spans[1:], strict=False))


pieces = st.lists(
    st.one_of(
        st.sampled_from([token for _, token in CASES]),
        st.sampled_from(
            [f'{PASS}="hunter2"', f"{HEAD}\n{BODY}\n{FOOT}", HEAD, FOOT, "://a:", "@b", "\n", " ", '"', "="]
        ),
        st.text(max_size=30),
    ),
    max_size=12,
).map("".join)


@settings(max_examples=200, deadline=None)
@given(pieces)
def test_spans_are_sorted_and_apart(text: str) -> None:
    spans = find_secrets(text, SALT)
    assert all(0 <= span.start < span.end <= len(text) for span in spans)
    assert all(left.end <= right.start for left, right in zip(spans, spans[1:], strict=False))


@settings(max_examples=100, deadline=None)
@given(pieces, st.lists(st.integers(0, 2_000)), st.integers(50, 3_000))
def test_a_scanner_finds_the_same_in_blocks(text: str, cuts: list[int], window: int) -> None:
    text = f"words {text} words " * 3
    places = sorted({0, len(text), *(at % len(text) for at in cuts)})
    scanner = Scanner(SALT, window)
    spans = [
        span
        for start, end in zip(places, places[1:], strict=False)
        for span in scanner.feed(text[start:end], final=end == len(text))
    ]
    assert scanner.settled == len(text)
    assert spans == Scanner(SALT, window).feed(text, final=True)


@pytest.mark.parametrize(
    "secret",
    [
        "AKIAIOSFODNN7EXAMPLE",
        "sk_live_4eC39HqLyjWDarjtT1zdp7dc",
        "sk-ant-api03-Ab3dEf6hIj9kLm2nOp5qRs8tUv1wXy4z",
    ],
)
def test_a_token_behind_a_word_and_a_hyphen_is_found(secret: str) -> None:
    text = f"deployment uses prod-{secret} for backups"
    assert [text[span.start : span.end] for span in find_secrets(text, SALT)] == [secret]

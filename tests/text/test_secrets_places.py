"""Secrets that the place gives away, and what stands in such places without being one."""

from __future__ import annotations

import base64
import re
import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from castle.text import secret_rules
from castle.text.scan import Scanner
from castle.text.secrets import find_secrets
from castle.text.served import mask_secrets, served_text

SALT = b"salt"
MIXED = "aB3dE5fG7hJ9kL2mN4pQ6rS8tU1vW3xY5zA7bC9dE2fG4hJ6kL8mN1pQ3rS5tU7vW9xY2zA4"
HEX = "4f9a8b7c6d5e4f3a2b1c0d9e8f7a6b5c4d3e2f1a0b9c8d7e6f5a4b3c2d1e0f9a"
PASS = "pass" + "word"
AWS_ID = "AK" + "IAIOSFODNN7EXAMPLE"
AWS_SECRET = "wJalrXUtnFEMI/K7MDENG/" + "bPxRfiCYEXAMPLEKEY"
SESSION = "IQoJb3JpZ2lu" + "X2VjEJr//////////wEa" + MIXED * 12
OTHER_SESSION = "Zm9v" + MIXED * 12
BASE64 = base64.b64encode(bytes(range(64))).decode()


def shown(text: str) -> str:
    return re.sub("«secret:[^»]*»", "▇", mask_secrets(text, SALT))


SHELL = [
    (f"PG{PASS.upper()}=hunter psql -h db", "PG" + f"{PASS.upper()}=▇ psql -h db"),
    (f"PG{PASS.upper()}=x psql", "PG" + f"{PASS.upper()}=▇ psql"),
    ("MYSQL" + "_PWD=abc mysql -u root", "MYSQL_PWD=▇ mysql -u root"),
    (f"export DB_{PASS.upper()}=postgres\n", f"export DB_{PASS.upper()}=▇\n"),
    (f"docker run -e POSTGRES_{PASS.upper()}=pg1 x", f"docker run -e POSTGRES_{PASS.upper()}=▇ x"),
    (f"- MYSQL_ROOT_{PASS.upper()}=root", f"- MYSQL_ROOT_{PASS.upper()}=▇"),
    (f"PG{PASS.upper()}='secret' psql", f"PG{PASS.upper()}='▇' psql"),
    (f'$env:PG{PASS.upper()} = "winter"', f'$env:PG{PASS.upper()} = "▇"'),
    ("SSH" + "PASS=letmein sshpass -e ssh h", "SSHPASS=▇ sshpass -e ssh h"),
    ("sshpass" + " -p letmein ssh h", "sshpass -p ▇ ssh h"),
    ("REDISCLI" + "_AUTH=foobared redis-cli", "REDISCLI_AUTH=▇ redis-cli"),
]
LOGINS = [
    ("curl -u user:" + "pass https://h", "curl -u user:▇ https://h"),
    ("curl -s -u admin:" + "admin https://h", "curl -s -u admin:▇ https://h"),
    ("curl -uadmin:" + "hunter2 h", "curl -uadmin:▇ h"),
    ("curl --user 'bob:" + "s3 cret' https://h", "curl --user 'bob:▇' https://h"),
    ("curl -X POST \\\n  -u bob:" + "swordfish \\\n h", "curl -X POST \\\n  -u bob:▇ \\\n h"),
    ("tool --user bob:" + "hunter2x", "tool --user bob:▇"),
    ("https://user:" + "pass@host/x", "https://user:▇@host/x"),
    ("postgres://postgres:" + "postgres@db/x", "postgres://postgres:▇@db/x"),
    (f"git clone https://{MIXED[:40]}@github.com/x.git", "git clone https://▇@github.com/x.git"),
    ("https:\\/\\/bob:" + "hunter2@h\\/x", "https:\\/\\/bob:▇@h\\/x"),
    ("machine h login u " + f"{PASS} p", f"machine h login u {PASS} ▇"),
    (f"machine h\n  login u\n  {PASS} swordfish\n", f"machine h\n  login u\n  {PASS} ▇\n"),
    (f"machine h {PASS} swordfish login u", f"machine h {PASS} ▇ login u"),
    (f"default login anonymous {PASS} bob@x.org", f"default login anonymous {PASS} ▇"),
    (f"CREATE USER bob WITH {PASS.upper()} 'hunter2';", f"CREATE USER bob WITH {PASS.upper()} '▇';"),
]
AWS = [
    (f"AWS_SESSION_TOKEN={SESSION}\n", "AWS_SESSION_TOKEN=▇\n"),
    (f"AWS_SESSION_TOKEN={OTHER_SESSION}\n", "AWS_SESSION_TOKEN=▇\n"),
    (f'"SessionToken": "{OTHER_SESSION}",', '"SessionToken": "▇",'),
    (f"see {SESSION}.", "see ▇."),
    *(
        (
            f"AWS_SESSION_TOKEN={long[:300]}\\\n{long[300:600]}\\\n    {long[600:]}\nX=1",
            "AWS_SESSION_TOKEN=▇\nX=1",
        )
        for long in (SESSION, OTHER_SESSION)
    ),
    (f'AWS_SESSION_TOKEN="{SESSION[:300]}\\\n{SESSION[300:]}"', 'AWS_SESSION_TOKEN="▇"'),
    (f"AWS_SESSION_TOKEN={SESSION[:76]}\n{SESSION[76:152]}\n{SESSION[152:200]}\n", "AWS_SESSION_TOKEN=▇\n"),
    (f"{AWS_ID} {AWS_SECRET}", "▇ ▇"),
    (f"{AWS_ID},{AWS_SECRET}\n", "▇,▇\n"),
    (f"it is {AWS_SECRET}\nfor {AWS_ID}", "it is ▇\nfor ▇"),
]
QUOTED = [
    (f"{PASS} = '''hunter2'''", f"{PASS} = '''▇'''"),
    (f'{PASS} = """hunter2"""', f'{PASS} = """▇"""'),
    (f'token = """\n{MIXED[:40]}\n"""', 'token = """\n▇\n"""'),
    (f'{PASS} = "correct horse battery"', f'{PASS} = "▇"'),
    (f'"{PASS}": "correct horse battery staple"', f'"{PASS}": "▇"'),
    (f"{PASS} = 'my hunter2 horse'", f"{PASS} = 'my hunter2 horse'"),
    (f"{PASS} = 'red hunter2 horse'", f"{PASS} = '▇'"),
    (f'{{\\"{PASS}\\": \\"swordfish\\"}}', f'{{\\"{PASS}\\": \\"▇\\"}}'),
    (f'{{\\\\\\"{PASS}\\\\\\": \\\\\\"hunter2\\\\\\"}}', f'{{\\\\\\"{PASS}\\\\\\": \\\\\\"▇\\\\\\"}}'),
    (f'{PASS} = "pa\\"ss1word"', f'{PASS} = "▇"'),
]
HEADERS = [
    ("Cookie: session=" + "abc123def", "Cookie: ▇"),
    ("Cookie: a=b; sessionid=" + "38afes7a8; c=d\r\nHost: h", "Cookie: ▇\r\nHost: h"),
    ("Set-Cookie: sid=" + "38afes7a8; Path=/; HttpOnly", "Set-Cookie: sid=▇; Path=/; HttpOnly"),
    ("curl -H 'Cookie: JSESSIONID=" + "0123456789ABCDEF' h", "curl -H 'Cookie: ▇' h"),
    ("curl --cookie 'session=" + "abc123def' h", "curl --cookie '▇' h"),
    ('"cookie": "session=' + 'abc123def; x=y"', '"cookie": "▇"'),
    ("Authorization: Basic " + "dXNlcjpwYXNz", "Authorization: Basic ▇"),
    ("Proxy-Authorization: Basic " + "dXNlcjpwYXNz", "Proxy-Authorization: Basic ▇"),
    ("Authorization: Bearer " + "abc123def456", "Authorization: Bearer ▇"),
    ("Authorization: Token " + HEX[:40], "Authorization: Token ▇"),
    ("Authorization: " + MIXED[:40], "Authorization: ▇"),
    (f'Authorization: Token token="{MIXED[:30]}"', 'Authorization: Token token="▇"'),
    ('{\\"Authorization\\": \\"Bearer ' + 'abc123def456\\"}', '{\\"Authorization\\": \\"Bearer ▇\\"}'),
]
SETTINGS = [
    (f"db:\n  user: app\n  {PASS}: swordfish\n  port: 1", f"db:\n  user: app\n  {PASS}: ▇\n  port: 1"),
    (f"{PASS}: hunter2\n", f"{PASS}: ▇\n"),
    (f"{PASS}: 12345678 # weak\n", f"{PASS}: ▇ # weak\n"),
    (f"{PASS}: 's3cr!'\n", f"{PASS}: '▇'\n"),
    (f"[client]\n{PASS}=swordfish\n", f"[client]\n{PASS}=▇\n"),
    (f"<{PASS}>hunter2</{PASS}>", f"<{PASS}>▇</{PASS}>"),
    (f"AccountKey={BASE64};EndpointSuffix=x", "AccountKey=▇;EndpointSuffix=x"),
    (f'"AccountKey": "{BASE64}"', '"AccountKey": "▇"'),
    (f"?sv=2020-08-04&sig={MIXED[:43]}%3D&se=1", "?sv=2020-08-04&sig=▇&se=1"),
]
PROSE = [
    (f"The {PASS} is hunter2.", f"The {PASS} is ▇."),
    (f"the wifi {PASS} is 'swordfish'", f"the wifi {PASS} is '▇'"),
    (f"The {PASS} for the wiki is Tr0ub4dor&3, I think", f"The {PASS} for the wiki is ▇, I think"),
    (f"my {PASS}: hunter2 please", f"my {PASS}: ▇ please"),
    (f"**{PASS.title()}:** hunter22", f"**{PASS.title()}:** ▇"),
    (f"{PASS.title()}: `hunter2`", f"{PASS.title()}: `▇`"),
]
FORMATS = [
    "gl" + f"sa_{MIXED[:32]}_4f9a8b7c",
    "dckr" + f"_pat_{MIXED[:27]}",
    "ATATT" + f"3xFfGF0{MIXED}=1A2B3C4D",
    "tskey" + f"-auth-kabc123CNTRL-{MIXED[:30]}",
    "xa" + f"pp-1-A123-123-{MIXED[:40]}",
    "sq0" + f"atp-{MIXED[:22]}",
    "rk_" + f"live_{MIXED[:24]}",
    "shp" + f"at_{HEX[:32]}",
    "AGE-SECRET" + "-KEY-1" + "Q3JXNSPRYW6ZL0VC4K8MT7D5FAGE2UHQPZYRW98Q3JXNSPRYW6ZL0VC4K8M"[:58],
]


@pytest.mark.parametrize(("text", "expected"), [*SHELL, *LOGINS, *AWS, *QUOTED, *HEADERS, *SETTINGS, *PROSE])
def test_places_that_give_a_secret_away(text: str, expected: str) -> None:
    assert shown(text) == expected


@pytest.mark.parametrize("token", FORMATS)
def test_more_named_formats(token: str) -> None:
    assert shown(f"use {token} now") == "use ▇ now"


BODY = "\n".join(MIXED[:64] for _ in range(6))


@pytest.mark.parametrize(
    ("head", "foot"),
    [
        ("-----BEGIN PGP " + "PRIVATE KEY BLOCK-----\nVersion: x\n", "-----END PGP PRIVATE KEY BLOCK-----"),
        ("-----BEGIN OPENSSH " + "PRIVATE KEY-----", "-----END OPENSSH PRIVATE KEY-----"),
        ("---- BEGIN SSH2 ENCRYPTED " + "PRIVATE KEY ----", "---- END SSH2 ENCRYPTED PRIVATE KEY ----"),
    ],
)
def test_private_keys_of_all_makers(head: str, foot: str) -> None:
    assert shown(f"a\n{head}\n{BODY}\n{foot}\nb") == "a\n▇\nb"


def test_keys_of_putty_and_keys_with_numbered_lines() -> None:
    assert MIXED[:20] not in shown(f"Public-Lines: 1\nAAAA\nPrivate-Lines: 6\n{BODY}\nPrivate-MAC: {HEX}\n")
    lines = "".join(f"  {number}→{MIXED[:64]}\n" for number in range(2, 8))
    head, foot = ("-----" + f"{word} RSA PRIVATE KEY-----" for word in ("BEGIN", "END"))
    assert MIXED[:20] not in shown(f"  1→{head}\n{lines}  8→{foot}\n")


@pytest.mark.parametrize(
    "text",
    [
        *(
            f"{name}={value}"
            for name in (f"PG{PASS.upper()}", f"DB_{PASS.upper()}", PASS.upper())
            for value in (
                "$PW psql",
                "${DB_X}",
                "<your-one>",
                "$(cat /run/pw)",
                "xxxxxxx",
                "********",
                "none",
                "",
            )
        ),
        f"DB_{PASS.upper()}=\nOTHER=swordfish",
        f"MYSQL_ALLOW_EMPTY_{PASS.upper()}=yes",
        f"MIN_{PASS.upper()}=12345",
        f"ERR_BAD_{PASS.upper()}=1326",
        f"POSTGRES_{PASS.upper()}_FILE=/run/secrets/pg",
        f"const {PASS.upper()}=process.env.X",
        "PWD=/home/bob",
        "OLDPWD=tmp",
        *(
            f"curl -u {login} https://h"
            for login in ("$USER:$PASS", f"user:{PASS}", "<user>:<pass>", "${U}:${P}")
        ),
        "docker run -u 1000:1000 x",
        "docker run --user $(id -u):$(id -g) --user node:node x",
        "curl https://h:8080/x and then: see the manual",
        *(
            f"https://{user}@host/x"
            for user in (
                "git",
                "john.doe",
                "TOKEN",
                "<token>",
                "${TOKEN}",
                "$TOKEN",
                "user:<pass>",
                "{user}:{pw}",
            )
        ),
        "http://%s:%s@%s/ https://github.com/a/b@v1.2.3 https://cdn.net/npm/pkg@1.2.3/x",
        "git+ssh://git@github.com/a/b.git#9fceb02d0ae598e95dc970b74767f19372d61af8",
        f"{AWS_ID[:12]} 9fceb02d0ae598e95dc970b74767f19372d61af8",
        f'{PASS} = """Reads it from stdin."""',
        f"{PASS} = ''",
        f'{PASS} = """"""',
        *(
            f'"{PASS}": "{label}"'
            for label in (
                "Enter your one",
                "Mot de passe oublié",
                "is required",
                "Passwort",
                "contraseña",
                "string",
                "required",
                "must be at least 8 characters",
            )
        ),
        *(
            f"Cookie: {value}"
            for value in ("<cookie>", "theme=dark; lang=en", "session=$SESSION", "sid=xxxxxxxx")
        ),
        "Set-Cookie: theme=dark; Path=/",
        "Set-Cookie: session=<id>; Max-Age=3600",
        "cookie: 0.5.0 and cookie = session.get('x'), cookie policy: none",
        *(
            f"Authorization: {value}"
            for value in (
                "Bearer $TOKEN",
                "Bearer ${TOKEN}",
                "Bearer YOUR_API_TOKEN",
                "Bearer process.env.X",
                "Bearer token123",
                "Token your-token-here",
                "Basic <base64>",
                "required for everyone",
                "see chapter 12 of handbook2",
            )
        ),
        "hf_" + "x" * 34 + " npm_config_registry_of_the_company_for_all the hf_hub_download function",
        "sk-learn-and-other-words-that-go-on-and-on ATATTACK xapp-version sq0 tskey-",
        "design=" + "a" * 50 + " ?sig=<signature> AccountKey=<key>",
        f"{PASS}:\n  min: 8\n  max: 12",
        *(
            f"{PASS}: {value}\n"
            for value in (
                *(
                    "string",
                    "str",
                    "Optional[str] = None",
                    "SecretStr",
                    "required",
                    "!secret wifi",
                    "&anchor",
                ),
                *("*ref", "''", "null", "~", "${PASS}", "{{ vault_pw }}", "process.env.DB_PASS", "newValue"),
            )
        ),
        f"user: {{\n  {PASS}: hashed_value\n}}",
        f"login(\n    {PASS}=value\n)",
        f"f({PASS}={PASS})",
        f"{PASS}=pw1, x",
        f"the machine user {PASS} expired, machine learning {PASS} strength",
        f"the default {PASS} is empty, default login page {PASS}",
        *(
            f"The {PASS} {rest}"
            for rest in (
                "is required.",
                "is wrong, try again",
                "is base64 encoded",
                "is hashed with sha256",
                "for the site is stored in a vault",
                "was changed 2024-01-01",
                "is 8 characters",
                "is at least 12 characters long",
                "is UTF-8",
                "is $PASS",
                "is <secret>",
            )
        ),
        f"{PASS.upper()} '%s' and {PASS} 'old'",
        f'"csrf-token": "sha512-{HEX[:60]}=="',
        'js-tokens@^4.0.0:\n  resolved "https://registry/x.tgz#19203fb59991df98e3a287050d4647cdeaf32499"',
        "/js-tokens/4.0.0:\n    resolution: {integrity: sha512-" + BASE64 + "}",
        f'name = "secret-service"\nsource = "registry+https://x"\nchecksum = "{HEX}"',
        "token id 123e4567-e89b-12d3-a456-426614174000",
        "token: ${{ secrets.GITHUB_TOKEN }} tokenizer: cl100k_base",
        "api_key: ${TOKEN}",
        'api_key="<your-key>"',
        "token = process.env.X",
        "primary_key=user_id_123456789012 keyboard=abc1234567890abcdefg",
        f"-----BEGIN PUBLIC KEY-----\n{BODY}\n-----END PUBLIC KEY-----",
        f"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5{MIXED[:40]} bob@h",
    ],
)
def test_what_stands_in_such_places_without_being_a_secret(text: str) -> None:
    assert shown(text) == text


@pytest.mark.parametrize("before", ["", "é ", "half a \ud83c pair "])
def test_every_literal_is_met_in_any_text(before: str) -> None:
    assert not secret_rules.may_hold_token(before)
    for literal in LITERALS:
        assert secret_rules.may_hold_token(before + literal)
        assert not secret_rules.may_hold_token(before + literal[:1])


LITERALS = [literal for token in secret_rules.TOKENS for literal in token.literals]
UNITS = [
    "_" + "eyJ",
    "eyJaaaaaaaaaaaa.eyJ_",
    '"PG' + f"{PASS.upper()}=",
    f'_{PASS}="a b',
    f"{PASS}='''",
    f'\\\\\\"{PASS}\\\\\\": \\\\\\"',
    "=api-key",
    "-session_token=",
    "AWS_SESSION_TOKEN=\\\n",
    "pwd",
    "curl ",
    "curl -u a:",
    "curl \\\n",
    "cookie: a=",
    "cookie=session=",
    "authorization=",
    "authorization: bearer ",
    f"{AWS_ID} ",
    f"machine h login u {PASS} ",
    f"the {PASS} for a is ",
    "-----BEGIN " + "PRIVATE KEY-----",
    "Private-Lines: 1\n",
    "sig=",
    ":\\/\\/a:",
]


@pytest.mark.parametrize("unit", [*LITERALS, *UNITS])
def test_a_long_line_of_anything_ends(unit: str) -> None:
    """A detector whose time grows with the square of the text would need minutes here."""
    text = (unit * (300_000 // len(unit) + 1))[:300_000]
    spans = find_secrets(text, SALT)
    assert all(left.end <= right.start for left, right in zip(spans, spans[1:], strict=False))


SAMPLES = [text for text, _ in (*SHELL, *LOGINS, *AWS, *QUOTED, *HEADERS, *SETTINGS, *PROSE)] + FORMATS
texts = st.lists(
    st.one_of(
        st.sampled_from(SAMPLES),
        st.sampled_from([*LITERALS, *UNITS, "\n", " ", '"', "'", "=", ": ", "\\", "«", "»", "@", "machine "]),
        st.text(max_size=12),
        st.text(string.ascii_letters + string.digits + "/+=_-", max_size=50),
    ),
    max_size=10,
).map("".join)


@settings(max_examples=300, deadline=None)
@given(texts)
def test_masking_leaves_nothing_to_find_in_the_masks(text: str) -> None:
    spans = find_secrets(text, SALT)
    assert all(0 <= span.start < span.end <= len(text) for span in spans)
    assert all(left.end <= right.start for left, right in zip(spans, spans[1:], strict=False))
    masked = served_text(text, spans)
    ends, begin, shift = [], 0, 0
    for span in spans:
        begin = span.start + shift
        ends.append((begin, begin + len(span.mask)))
        shift += len(span.mask) - (span.end - span.start)
    again = find_secrets(masked, SALT)
    assert not [
        (masked, masked[span.start : span.end])
        for span in again
        for begin, end in ends
        if span.start < end and span.end > begin
    ]


@settings(max_examples=150, deadline=None)
@given(texts, st.lists(st.integers(0, 3_000)), st.integers(50, 3_000))
def test_blocks_do_not_change_what_is_found(text: str, cuts: list[int], window: int) -> None:
    text = f"words {text}\nwords {text}"
    at = sorted({0, len(text), *(cut % len(text) for cut in cuts)})
    scanner = Scanner(SALT, window)
    spans = [
        span
        for start, end in zip(at, at[1:], strict=False)
        for span in scanner.feed(text[start:end], final=end == len(text))
    ]
    assert spans == Scanner(SALT, window).feed(text, final=True)


@pytest.mark.parametrize("text", SAMPLES)
def test_a_window_that_ends_near_a_secret_hides_it_all_the_same(text: str) -> None:
    """Wherever the window is cut, what gives the secret away is still in sight."""
    for lead in range(0, 420, 23):
        whole = "x" * lead + f"\n{text}\n" + "and so on\n" * 80
        assert Scanner(SALT, 400).feed(whole, final=True) == find_secrets(whole, SALT), lead

"""What secrets look like: named token formats, and the judgement of values that stand in an assignment.

Quantifiers are bounded and neighbouring classes disjoint, so that no expression here backtracks far.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Token:
    """A named format. ``pattern`` is matched ``before`` characters ahead of the literal.

    ``strict`` asks that no letter or digit stands in front, ``mixed`` that the value holds a digit as well as
    a letter.
    """

    kind: str
    literals: tuple[str, ...]
    pattern: re.Pattern[str]
    strict: bool = True
    mixed: bool = False
    before: int = 0
    group: int = 0


def _token(kind: str, literals: str, pattern: str, *, strict: bool = True, mixed: bool = False) -> Token:
    return Token(kind, tuple(literals.split()), re.compile(pattern), strict, mixed)


_W = r"[A-Za-z0-9_-]"
_A = r"[A-Za-z0-9]"
_END = rf"(?!{_A})"

TOKENS: tuple[Token, ...] = (
    _token("aws_key", "AKIA ASIA ABIA ACCA", rf"A(?:KI|SI|BI|CC)A[A-Z0-9]{{16}}{_END}"),
    _token(
        "github_token",
        "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_",
        rf"gh[pousr]_{_A}{{36,255}}|github_pat_[A-Za-z0-9_]{{22,255}}",
        strict=False,
    ),
    _token(
        "gitlab_token",
        "glpat- gldt- glrt- glptt- glcbt- glsoat-",
        r"gl(?:pat|dt|rt|ptt|cbt|soat)-[A-Za-z0-9_.-]{20,300}",
        strict=False,
        mixed=True,
    ),
    _token(
        "slack_token",
        "xoxb- xoxa- xoxp- xoxr- xoxs- xoxo- xoxe- xoxe. xapp-",
        r"xox[abeoprs][-.][A-Za-z0-9.-]{10,300}|xapp-[0-9]-[A-Za-z0-9-]{20,300}",
        mixed=True,
    ),
    _token(
        "webhook_url",
        "https://hooks.slack.com/ https://discord.com/api/web https://discordapp.com/api/web",
        r"https://hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9/_+-]{20,200}"
        r"|https://discord(?:app)?\.com/api/webhooks/[0-9]{15,25}/[\w-]{40,100}",
        strict=False,
        mixed=True,
    ),
    _token(
        "stripe_key",
        "sk_live_ sk_test_ rk_live_ rk_test_ whsec_",
        rf"(?:[sr]k_(?:live|test)_|whsec_){_A}{{16,250}}",
        mixed=True,
    ),
    _token("anthropic_key", "sk-ant-", rf"sk-ant-{_W}{{20,300}}", mixed=True),
    _token(
        "openai_key",
        "sk-",
        rf"sk-(?:(?:proj|svcacct|admin|None|or-v1)-{_W}{{20,300}}|{_A}{{32,200}}{_END})",
        mixed=True,
    ),
    _token("google_key", "AIza", rf"AIza{_W}{{35}}(?!{_W})", mixed=True),
    _token("google_secret", "GOCSPX- ya29.", rf"GOCSPX-{_W}{{20,60}}|ya29\.{_W}{{20,500}}", mixed=True),
    _token("npm_token", "npm_", rf"npm_{_A}{{36}}{_END}", mixed=True),
    _token("pypi_token", "pypi-AgE", rf"pypi-AgE{_W}{{50,1000}}", strict=False),
    _token("huggingface_token", "hf_ api_org_", rf"(?:hf_|api_org_){_A}{{30,60}}{_END}"),
    _token("sendgrid_key", "SG.", rf"SG\.{_W}{{16,40}}\.{_W}{{30,80}}", mixed=True),
    _token("twilio_key", "SK", rf"SK[0-9a-f]{{32}}{_END}", mixed=True),
    _token("digitalocean_token", "dop_v1_ doo_v1_ dor_v1_", rf"do[por]_v1_[0-9a-f]{{64}}{_END}", mixed=True),
    _token("shopify_token", "shpat_ shpca_ shppa_ shpss_", rf"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{{32}}{_END}"),
    _token("databricks_token", "dapi", rf"dapi[0-9a-f]{{32}}(?:-[0-9])?{_END}", mixed=True),
    _token("groq_key", "gsk_", rf"gsk_{_A}{{40,60}}{_END}", mixed=True),
    _token("xai_key", "xai-", rf"xai-{_A}{{60,100}}{_END}", mixed=True),
    _token("replicate_token", "r8_", rf"r8_{_A}{{37,40}}{_END}", mixed=True),
    _token("linear_key", "lin_api_", rf"lin_api_{_A}{{32,48}}{_END}"),
    _token("notion_token", "ntn_", rf"ntn_{_A}{{40,60}}{_END}", mixed=True),
    _token("vault_token", "hvs. hvb.", rf"hv[sb]\.{_W}{{24,300}}", mixed=True),
    _token("age_key", "AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1[0-9A-Z]{58}", strict=False),
    _token("jwt", "eyJ", rf"eyJ{_W}{{10,16000}}\.eyJ{_W}{{10,16000}}(?:\.{_W}{{0,2000}})?"),
    Token(
        "azure_key",
        ("AccountKey=", "SharedAccessKey="),
        re.compile(r"(?:Account|SharedAccess)Key=([A-Za-z0-9+/]{40,100}={0,2})"),
        group=1,
    ),
)

_TELEGRAM = re.compile(r"[0-9]{8,10}:AA[A-Za-z0-9_-]{33}(?![A-Za-z0-9_-])")
TOKENS += tuple(
    Token("telegram_token", (":AA",), _TELEGRAM, before=digits) for digits in (10, 9, 8)
)  # the literal stands after a bot id of eight to ten digits

KEY_HEAD = re.compile(r"-----BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----")
KEY_FOOT = re.compile(r"-----END (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----")
KEY_LINES = re.compile(
    r"(?:(?:[\s\"',+>]|\\[nr])*+(?:(?:Proc-Type|DEK-Info|Version|Comment):[^\n\\]{0,120}|[A-Za-z0-9+/=]{16,}+))++"
    r"(?:(?:\s|\\[nr])[A-Za-z0-9+/=]{1,16}(?=\s|\\[nr]|$))?"
)
_KEY_ONLY = re.compile(r"(?:[A-Za-z0-9+/=\s]|\\[nr])*+")
_KEY_RUN = re.compile(r"[A-Za-z0-9+/=]{40}")

URL_PASSWORD = re.compile(r"://[^\s/:@\"'<>`]{0,128}:([^\s/\"'<>`]{1,256})@[\w\[.{$-]")
AUTHORIZATION = re.compile(
    r"authorization[\"']?\s{0,4}(?:[:=,]|=>)?\s{0,4}\\?[\"'`]?(bearer|basic|token)\s{1,4}"
    r"([A-Za-z0-9._~+/=-]{8,4000})",
    re.IGNORECASE,
)
BEARER = re.compile(r"(bearer)\s{1,4}([A-Za-z0-9._~+/=-]{20,4000})", re.IGNORECASE)

PASSWORD_WORDS = frozenset({"password", "passwd", "passphrase", "passwort", "pwd", "_pass"})
KEY_WORDS = (
    *sorted(PASSWORD_WORDS),
    *("secret", "token", "api_key", "apikey", "api-key", "access_key", "accesskey", "access-key", "auth_key"),
    *("private_key", "encryption_key", "signing_key", "credential"),
)
_QUOTE = r"\\{0,3}[\"'`]"
ASSIGNMENT = re.compile(
    rf"(?P<suffix>[\w-]{{0,24}})(?:{_QUOTE})?\]?[ \t]{{0,8}}"
    r"(?:(?::[ \t]{0,2}[A-Za-z][\w.\[\]|]{0,30}[ \t]{0,2})?=(?![=>~])|:=|=>|:(?![:=])|(?<=\w)>)"
    r"\s{0,4}"
)
OPTION = re.compile(r"--[\w-]{0,32}[ \t]{1,4}")
BARE_OPTION = re.compile(r"(?P<value>[^\s\"'`<>(){}|\\]{6,256})(?=\s|$)")
QUOTED = re.compile(
    r"[rbuf]?\\{0,3}(?P<quote>[\"'`])(?P<value>(?:(?!(?P=quote))[^\s\\<>]){6,256})\\{0,3}(?P=quote)"
)
BARE = re.compile(
    r"(?P<value>[^\s\"'`,;<>(){}\[\]|\\&]{6,256})(?=[,;.]?(?:[ \t]|$|[\r\n#&\"'`]|\\n|</|//|--?[a-z]))"
)
AWS_SECRET = re.compile(r"\\{0,3}[\"'`]?([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])")

_OTHER_THING = re.compile(
    r"name|field|type|ur[li]|path|file|dir|(?:^|_)id(?:$|_)|id$|hash|reset|polic|length|size|min|max|label|hint"
    r"|placeholder|regex|pattern|format|count|limit|expir|ttl|timeout|class|algorithm|error|message|prompt"
    r"|title|help|header|prefix|provider|manager|version|scope|usage|index|ize",
    re.IGNORECASE,
)
_PLACEHOLDER = re.compile(
    r"^(?:\$[a-z_{(]|[<{\[(]|%[({a-z]|[./~]|\W+$|process\.env|os\.environ|env[.(\[]|getenv|https?:|file:)"
    r"|x{4,}|\*{3,}|\.{3}|…|_{4,}|-{4,}|\$\{|\}\}|«secret:"
    r"|change[-_ ]?(?:me|it|this)|placeholder|example|redacted|replace[-_ ]?(?:me|this|with)|dummy|sample"
    r"|\byour|your[-_]|[-_]here$|insert[-_ ]|\btodo\b|^tbd$|not[-_]?a[-_]?real|^n/?a$"
)
_PLAIN_WORDS = frozenset(
    "password passwd pass pwd passphrase passwort secret token key apikey user username admin root test "
    "testing string none null true false undefined foo bar baz foobar mypassword mysecret mytoken my the "
    "supersecret verysecret topsecret default empty required optional hidden private public guest".split()
)
_SEPARATORS = re.compile(r"[\W_]+")
_DOTTED = re.compile(r"[$@&*!]?[A-Za-z_]\w*(?:(?:\.|::|->|\?\.)[A-Za-z_]\w*)+$")
_EXPRESSION = re.compile(
    rf"{_DOTTED.pattern}"
    r"|[A-Za-z]+(?:[_-][A-Za-z]+)*[_-]?[0-9]{0,2}$"  # words with a small number
    r"|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+$"  # a constant
    r"|[\d.:+-]+$"
)
_NAMES_ITSELF = re.compile(r"passw|passphrase|secret|token|key|credential", re.IGNORECASE)


def lowered(text: str) -> str:
    """Lower-case a text without moving a character."""
    lower = text.lower()
    if len(lower) == len(text):
        return lower
    return "".join(low if len(low := char.lower()) == 1 else char for char in text)


def starts_token(text: str, at: int, strict: bool) -> bool:
    r"""Tell whether a token can begin here: not inside a word, an escape such as ``\n`` or ``%3D`` aside."""
    if at < 0:
        return False
    if not strict or at == 0:
        return True
    before = text[at - 1]
    if before in "-+":
        return at == 1 or not text[at - 2].isalnum()
    if not (before.isascii() and before.isalnum()):
        return True
    return text[at - 2 : at] in ("\\n", "\\r", "\\t") or (at > 2 and text[at - 3] == "%")


def classes(value: str) -> int:
    """How many of lower case, upper case (beyond a capital), digits, other signs a value holds."""
    return (
        any(char.islower() for char in value)
        + any(char.isupper() for char in value[1:])
        + any(char.isdigit() for char in value)
        + any(not char.isalnum() and char not in "_-./:" for char in value)
    )


def entropy(value: str) -> float:
    """Shannon entropy of the characters, in bits per character."""
    size = len(value)
    return -sum(n / size * math.log2(n / size) for n in Counter(value).values())


def is_dull(value: str, mixed: bool) -> bool:
    """Tell a format's placeholder (``ghp_xxxxxxxx``) from a token."""
    if len(set(value[-16:])) < 2:
        return True
    return mixed and not (any(map(str.isdigit, value)) and any(map(str.isalpha, value)))


def names_other_thing(suffix: str) -> bool:
    """Tell whether the rest of a key's name makes it something else, as in ``password_length``."""
    return _OTHER_THING.search(suffix) is not None


def is_placeholder(value: str) -> bool:
    """Tell whether a value stands for a secret that is not there."""
    lower = value.lower()
    if len(set(lower)) < 3 or _PLACEHOLDER.search(lower):
        return True
    if lower[-1].isdigit() and not lower[-2].isdigit():
        lower = lower[:-1]
    return all(word in _PLAIN_WORDS for word in _SEPARATORS.split(lower) if word)


def is_password(value: str) -> bool:
    """Tell whether a quoted value can be a password rather than a label or a name."""
    if _DOTTED.match(value) or (value.isidentifier() and _NAMES_ITSELF.search(value)):
        return False
    return classes(value) > 1 or (len(value) >= 16 and value.isalnum() and entropy(value) >= 3.0)


def is_random(value: str, least: int) -> bool:
    """Tell whether a value of at least ``least`` characters looks drawn at random."""
    if len(value) < least or not (any(map(str.isdigit, value)) and any(map(str.isalpha, value))):
        return False
    if "://" in value or is_expression(value):
        return False
    return entropy(value) >= (2.5 if least < 16 else 3.0)


def is_expression(value: str) -> bool:
    """Tell whether an unquoted value is code: a name, a look-up, a number."""
    if _EXPRESSION.match(value):
        return True
    return value.isidentifier() and _NAMES_ITSELF.search(value) is not None


def is_key_body(body: str) -> bool:
    """Tell whether what follows the first line of a key block is key material."""
    if _KEY_RUN.search(body):
        return True
    only = _KEY_ONLY.fullmatch(body)
    return only is not None and sum(map(str.isalnum, body)) >= 12

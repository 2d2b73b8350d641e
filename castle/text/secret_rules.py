"""What secrets and the places where they stand look like: named token formats, key blocks, headers, names.

Quantifiers are bounded and neighbouring classes disjoint, so that no expression here backtracks far.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import re2


@dataclass(frozen=True, slots=True)
class Token:
    """A named format. ``pattern`` is matched ``before`` characters ahead of the literal.

    ``strict`` asks that no letter or digit stands in front, ``mixed`` that the value is not of one class of
    characters. A place inside the ``run`` of a place that failed is not tried again.
    """

    kind: str
    literals: tuple[str, ...]
    pattern: re.Pattern[str]
    strict: bool = True
    mixed: bool = False
    before: int = 0
    group: int = 0
    run: re.Pattern[str] | None = None


def _token(kind: str, literals: str, pattern: str, *, strict: bool = True, mixed: bool = False) -> Token:
    return Token(kind, tuple(literals.split()), re.compile(pattern), strict, mixed)


_QUOTE = r"\\{0,15}[\"'`]"
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
        "xox xapp-",
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
    _token("shopify_token", "shp", rf"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{{32}}{_END}"),
    _token("databricks_token", "dapi", rf"dapi[0-9a-f]{{32}}(?:-[0-9])?{_END}", mixed=True),
    _token("groq_key", "gsk_", rf"gsk_{_A}{{40,60}}{_END}", mixed=True),
    _token("xai_key", "xai-", rf"xai-{_A}{{60,100}}{_END}", mixed=True),
    _token("replicate_token", "r8_", rf"r8_{_A}{{37,40}}{_END}", mixed=True),
    _token("linear_key", "lin_api_", rf"lin_api_{_A}{{32,48}}{_END}"),
    _token("notion_token", "ntn_", rf"ntn_{_A}{{40,60}}{_END}", mixed=True),
    _token("vault_token", "hvs. hvb.", rf"hv[sb]\.{_W}{{24,300}}", mixed=True),
    _token("age_key", "AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1[0-9A-Z]{58}", strict=False),
    _token(
        "grafana_token", "glsa_ glc_eyJ", rf"glsa_{_A}{{32}}_[0-9a-fA-F]{{8}}|glc_eyJ[A-Za-z0-9+/=]{{40,400}}"
    ),
    _token("docker_token", "dckr_", rf"dckr_(?:pat|oat)_{_W}{{20,60}}"),
    _token(
        "atlassian_token",
        "ATATT ATCTT ATBB",
        rf"AT(?:ATT|CTT)[A-Za-z0-9_=-]{{20,400}}|ATBB{_A}{{28,40}}",
        mixed=True,
    ),
    _token(
        "tailscale_key", "tskey-", rf"tskey-(?:[a-z]{{2,12}}-)?{_A}{{6,40}}(?:-{_A}{{6,80}})?", mixed=True
    ),
    _token("square_token", "sq0", rf"sq0[a-z]{{3}}-{_W}{{22,60}}", mixed=True),
    _token(
        "aws_session_token",
        "IQoJb3JpZ2lu FwoGZXIvYXdz FQoGZXIvYXdz",
        r"(?:IQoJ|F[wQ]oG)[A-Za-z0-9+/=]{96,4000}",
    ),
    Token(
        "jwt",
        ("eyJ",),
        re.compile(rf"eyJ{_W}{{10,16000}}+\.eyJ{_W}{{10,16000}}+(?:\.{_W}{{0,2000}})?"),
        run=re.compile(rf"{_W}*+"),
    ),
    Token("azure_sas", ("sig=",), re.compile(r"sig=([A-Za-z0-9%+/_-]{40,120}+={0,2})"), mixed=True, group=1),
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


_LITERALS = sorted({literal for token in TOKENS for literal in token.literals})
_ANY_LITERAL = re2.compile("|".join(map(re2.escape, _LITERALS)).encode("ascii"))


def may_hold_token(text: str) -> bool:
    """Whether any literal of a named format stands in a text; RE2 looks for all of them at once."""
    return _ANY_LITERAL.search(text.encode("utf-8", "surrogatepass")) is not None


_KEY = r"(?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?"
KEY_HEAD = re.compile(
    rf"-----BEGIN {_KEY}-----|---- BEGIN {_KEY} ----|Private-Lines: [0-9]{{1,4}}(?=\r?\n|\\[rn])"
)
KEY_FOOT = re.compile(rf"-----END {_KEY}-----|---- END {_KEY} ----")
KEY_END = re.compile(r"-----END |---- END |Private-MAC: ")
KEY_LINES = re.compile(
    r"(?:(?:[\s\"',+>]|\\[nr])*+(?:(?:Proc-Type|DEK-Info|Version|Comment):[^\n\\]{0,120}|[A-Za-z0-9+/=]{16,}+))++"
    r"(?:(?:\s|\\[nr])[A-Za-z0-9+/=]{1,16}(?=\s|\\[nr]|$))?"
)
_KEY_ONLY = re.compile(r"(?:[A-Za-z0-9+/=\s]|\\[nr])*+")
_KEY_RUN = re.compile(r"[A-Za-z0-9+/=]{40}")

AWS_SECRET = re.compile(r"\\{0,3}[\"'`]?([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])")
AWS_ID = re.compile(r"A[KS]IA[A-Z0-9]{16}(?![A-Za-z0-9])")
AWS_NEIGHBOUR = re.compile(r"(?<![A-Za-z0-9/+=_.-])[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=_-])")

URL_USER = re.compile(
    r":\\?/\\?/(?P<user>[^\s/:@\"'<>`?#&=\\«»]{0,128})(?::(?P<password>[^\s/\"'<>`«»]{1,256}))?@[\w\[.{$-]"
)
AUTHORIZATION = re.compile(
    rf"authorization(?:{_QUOTE})?\s{{0,4}}(?P<sign>[:=,]|=>)?\s{{0,4}}(?:{_QUOTE})?"
    r"(?:(?P<scheme>bearer|basic|token|apikey|api-key|key|oauth|splunk|genie[-_]?key)\s{1,4}|(?<=[:=,>\s\"'`]))"
    rf"(?:token=)?(?:{_QUOTE})?(?P<value>[A-Za-z0-9._~+/=-]{{8,4000}}+)",
    re.IGNORECASE,
)
BEARER = re.compile(r"bearer\s{1,4}(?P<value>[A-Za-z0-9._~+/=-]{20,4000})", re.IGNORECASE)
_PAIR = r"[\w.-]{1,64}=[^\s\"'`;,\\<>«»]{0,4096}"
COOKIE = re.compile(
    rf"cookie2?(?:{_QUOTE})?(?:\s{{0,4}}[:=]\s{{0,4}}|(?<=-cookie)\s{{1,4}})(?:{_QUOTE})?"
    rf"(?P<value>{_PAIR}(?:;[ ]?{_PAIR}){{0,100}})",
    re.IGNORECASE,
)
COOKIE_NAME = re.compile(
    r"sess|sid|auth|token|jwt|c?srf|xsrf|login|remember|sso|secret|passw|key|cred|^cf_clearance$",
    re.IGNORECASE,
)
CURL_LOGIN = re.compile(
    r"\s(?:-[a-zA-Z]{0,6}[uU]|--(?:proxy-)?user)(?:\s{1,4}|=)?"
    r"(?:\\{0,15}[\"'][^:\"'$<>{}\\\n]{0,128}:(?P<quoted>[^\"'\\\n]{1,256})"
    r"|[^\s:\"'$<>{}\\]{0,128}:(?P<bare>[^\s\"'\\|;&<>()]{1,256}))"
)
USER_OPTION = re.compile(r"--user(?:[ \t]{1,4}|=)[\"']?[\w.@-]{1,128}:(?P<password>[^\s\"'\\|;&<>()]{1,256})")

PASSWORD_WORDS = ("password", "passwd", "passphrase", "passwort", "pwd", "_pass", "sshpass", "rediscli_auth")
SECRET_WORDS = ("secret", "token", "credential")
KEYS = tuple(
    f"{word}{sign}"
    for word in ("api", "access", "account", "auth", "private", "encryption", "signing", "shared", "master")
    for sign in ("", "_", "-", " ")
)
"""What stands before ``key`` where that is a secret."""

# Clients read their passwords from these, so that a single letter is one.
CLIENT_VARIABLES = frozenset(
    "PGPASSWORD MYSQL_PWD SSHPASS REDISCLI_AUTH RSYNC_PASSWORD RESTIC_PASSWORD BORG_PASSPHRASE".split()
)
SWITCH = re.compile(  # names of a number or a choice
    r"(?:^|[\W_])(?:min|max|has|no|uses?|requires?|allows?|ask|err|error|invalid|wrong|empty|random|enable|needs?|is)_",
    re.IGNORECASE,
)
ASSIGNMENT = re.compile(
    rf"(?P<suffix>[\w-]{{0,24}}+)(?:{_QUOTE})?\]?(?:\*\*)?[ \t]{{0,8}}"
    r"(?:(?::[ \t]{0,2}[A-Za-z][\w.\[\]|]{0,30}[ \t]{0,2})?=(?![=>~])|:=|=>|:(?![:=])|(?<=\w)>)"
    r"\s{0,4}(?:\*\*[ \t]{1,2})?"
)
OPTION = re.compile(r"--[\w-]{0,32}[ \t]{1,4}")
SAID = re.compile(
    r"(?:[ \t]{1,3}(?:for|to|of|on|in|at)(?:[ \t]{1,3}[\w'’.@-]{1,30}){1,5}?)?"
    r"(?:[ \t]{1,3}(?:is|was|ist|lautet)(?:[ \t]{1,3}(?:now|still))?:?|:)[ \t]{1,3}(?=\S)"
)
LOGIN_BEFORE = re.compile(
    r"(?:machine\s{1,8}\S{1,128}|default)\s{1,8}(?:account\s{1,8}\S{1,128}\s{1,8})?"
    r"login\s{1,8}\S{1,128}\s{1,8}(?:account\s{1,8}\S{1,128}\s{1,8})?$"
)
MACHINE_BEFORE = re.compile(r"machine\s{1,8}\S{1,128}\s{1,8}$")
LOGIN_AFTER = re.compile(r"\s{1,8}login\s{1,8}\S")
LINE_BEFORE = re.compile(r"(?:^|\n)[ \t]{0,40}(?:[-*>] )?(?:export |set |ENV )?[\"']?[A-Za-z]?[\w.-]{0,40}$")
LINE_AFTER = re.compile(r"[ \t]{0,8}(?:#[^\n]{0,200})?(?:$|\r?\n|\\n)")
OPENING = re.compile(r"[rbufRBUF]{0,2}(?P<escape>\\{0,15})(?P<quote>[\"'`])")
RUN = re.compile(r"[^\s\"'`,;<>(){}\[\]|\\&«»]*+")
PASSWORD_RUN = re.compile(  # an ampersand that begins no other parameter of a URL belongs to it
    r"(?:[^\s\"'`,;<>(){}\[\]|\\&«»]|&(?=[^\s&;\"'])(?![\w.%-]{1,40}=))*+"
)
RUN_END = re.compile(r"[.*]{0,3}[,;]?(?:[ \t]|$|[\r\n&\"'`]|\\{1,15}[\"'nrt]|\\\r?\n|</)")
LOOSE_END = re.compile(r"[.*]{0,3}[,;]?(?:[ \t]|$|[\r\n&\"'`)\]}|]|\\{1,15}[\"'nrt]|\\\r?\n|</)")
CONTINUED = re.compile(r"(?:\\\r?\n[ \t]{0,16}[A-Za-z0-9+/=_.~-]{1,4096})+")
WRAPPED = re.compile(r"(?:\r?\n[A-Za-z0-9+/]{16,4096}={0,2}(?=\s|$))+")
_OTHER_THING = re.compile(
    r"name|field|type|ur[li]|path|file|dir|(?:^|_)id(?:$|_)|id$|hash|reset|polic|length|size|min|max|label|hint"
    r"|placeholder|regex|pattern|format|count|limit|expir|ttl|timeout|class|algorithm|error|message|prompt"
    r"|title|help|header|prefix|provider|manager|version|scope|usage|index|ize",
    re.IGNORECASE,
)


def lowered(text: str) -> str:
    """Lower-case a text without moving a character."""
    return text.replace("\u0130", "i").lower()  # the only one whose small form is two characters


_SHORT_PREFIX = re.compile(r"sk-(?!ant-|proj-|svcacct-)")
"""Where a word may go on behind a hyphen, as in ``task-sk-…``."""


def starts_token(text: str, at: int, strict: bool) -> bool:
    r"""Tell whether a token can begin here: not inside a word, an escape such as ``\n`` or ``%3D`` aside."""
    if at < 0:
        return False
    if not strict or at == 0:
        return True
    before = text[at - 1]
    if before == "+" or (before == "-" and _SHORT_PREFIX.match(text, at)):
        return at == 1 or not text[at - 2].isalnum()
    if not (before.isascii() and before.isalnum()):
        return True
    return text[at - 2 : at] in ("\\n", "\\r", "\\t") or (at > 2 and text[at - 3] == "%")


def names_other_thing(suffix: str) -> bool:
    """Tell whether the rest of a key's name makes it something else, as in ``password_length``."""
    return _OTHER_THING.search(suffix) is not None


def is_key_body(body: str) -> bool:
    """Tell whether what follows the first line of a key block is key material."""
    if _KEY_RUN.search(body):
        return True
    only = _KEY_ONLY.fullmatch(body)
    return only is not None and sum(map(str.isalnum, body)) >= 12

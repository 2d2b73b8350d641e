"""What values look like: secrets, passwords, placeholders, and code that only names one.

All of this judges a value that stands where a secret may stand; where that is, ``secret_names`` says.
"""

from __future__ import annotations

import math
import re

_JUDGED = 256
"""Characters of a long value that its entropy is taken from."""

_NO_SECRET = re.compile(
    r"\$[a-z_{(]|[<{\[(]|%[({a-z]|[./~]|\W+$|process\.env|os\.environ|env[.(\[]|getenv|https?:|file:"
    r"|git\+|git(?:hub|lab):|npm:|workspace:|sha(?:1|256|384|512)-|tbd$|n/?a$|todo\b"
)
_PLACEHOLDER = re.compile(  # every alternative begins with a letter or a sign, which makes the search fast
    r"xxxx|\*\*\*|\.\.\.|…|____|----|\$\{|\}\}|«secret:|change[-_ ]?(?:me|it|this)|placeholder|example"
    r"|redacted|replace[-_ ]?(?:me|this|with)|dummy|sample|your|[-_]here$"
    r"|insert[-_ ]|not[-_]?a[-_]?real|_todo\b"
)
_PLAIN_WORDS = frozenset(
    "password passwd pass pwd passphrase passwort secret token key apikey user username admin root test "
    "testing string none null true false undefined foo bar baz foobar mypassword mysecret mytoken my the "
    "supersecret verysecret topsecret default empty required optional hidden private public guest".split()
)
_NO_PASSWORDS = frozenset(
    # what a password is said to be, and what a field for one is declared as
    "password passwd passphrase passwort pwd pass none null nil true false undefined string str text "
    "bytes bool boolean int integer number any unknown object varchar char void never secretstr optional "
    "required empty yes no on off ok set unset missing invalid valid incorrect correct wrong right bad "
    "good weak strong short long hidden masked redacted encrypted hashed hash plain plaintext sensitive "
    "expired changed unchanged updated reset disabled enabled provided given stored saved needed random "
    "generated auto automatic prompt ask input stdin file env vault keyring default same here above below "
    "there this that what which field value data form login logout forgot forgotten again later first "
    "second user username email interactive mandatory ignored removed accepted rejected denied failed "
    "failure success error warning info debug protected verified confirmed lost stolen leaked safe secure "
    "insecure public private only also just always the and for not but with from like used using when "
    "then than that's it's visible shown printed logged sent base64 sha1 sha256 sha512 md5 utf8 utf-8 "
    "utf16 bcrypt argon2 argon2id pbkdf2 scrypt aes256 oauth2 x509 ed25519 rfc2617 mp3 mp4 http2 http/2 "
    "python3 version1 version2".split()
)
_SENTENCE_WORDS = frozenset(
    "a an the is are was be been to of for in on at by with from and or not no if it its this that your "
    "you my we our their please enter must should can cannot may will has have had do does did least most "
    "minimum maximum characters character letters digits new old current confirm repeat again forgot "
    "reset change show hide create update invalid incorrect wrong required optional empty missing same "
    "match matches user login sign field value mot passe de la le les du des das der die ein eine ist "
    "nicht und oder el los las con para non il per não sua".split()
)
_OTHER_LANGUAGES = re.compile(r"passw|parol|kennw|wachtw|senha|contras|heslo|losen|salasan|clave")
_SIGN = re.compile(r"[^\w./:-]")
_SEPARATORS = re.compile(r"[\W_]+")
_DOTTED = re.compile(r"[$@&*!]?[A-Za-z_]\w*(?:(?:\.|::|->|\?\.)[A-Za-z_]\w*)+$")
_CONSTANT = r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+$"
_EXPRESSION = re.compile(
    rf"{_DOTTED.pattern}"
    r"|[A-Za-z]+(?:[_-][A-Za-z]+)*[_-]?[0-9]{0,2}$"  # words with a small number
    rf"|{_CONSTANT}"
    r"|[\d.:+-]+$"
)
_NAME_OR_NUMBER = re.compile(rf"{_DOTTED.pattern}|{_CONSTANT}|v?\d[\d.:,+%x/-]*$")
_NAMES_ITSELF = re.compile(r"passw|passphrase|secret|token|key|credential", re.IGNORECASE)
_DIGITS = re.compile(r"[0-9]+")
_WORD = re.compile(r"[a-z][a-z0-9!@#$%^&*+?_-]*$")


def classes(value: str) -> int:
    """How many of lower case, upper case (beyond a capital), digits, other signs a value holds."""
    return (
        any(map(str.islower, value))
        + any(map(str.isupper, value[1:]))
        + any(map(str.isdigit, value))
        + (_SIGN.search(value) is not None)
    )


def entropy(value: str) -> float:
    """Shannon entropy of the characters, in bits per character."""
    size = len(value)
    return -sum(n / size * math.log2(n / size) for n in map(value.count, dict.fromkeys(value)))


def is_dull(value: str, mixed: bool) -> bool:
    """Tell a format's placeholder (``ghp_xxxxxxxx``) from a token.

    ``mixed`` asks for two of small letters, capitals and digits, of which one is a letter.
    """
    if len(set(value[-16:])) < 2:
        return True
    lower, upper = any(map(str.islower, value)), any(map(str.isupper, value))
    return mixed and lower + upper + any(map(str.isdigit, value)) < 2


def is_mixed(value: str) -> bool:
    """Tell whether a value has small letters, capitals and digits, as hexadecimal sums do not."""
    return any(map(str.islower, value)) and any(map(str.isupper, value)) and any(map(str.isdigit, value))


def is_blank(value: str) -> bool:
    """Tell whether a value has the shape of a placeholder: ``<…>``, ``${…}``, ``xxxx``, ``changeme``."""
    lower = value.lower()
    if len(lower) > 2 and len(set(lower)) == 1:
        return True
    return _NO_SECRET.match(lower) is not None or _PLACEHOLDER.search(lower) is not None


def is_placeholder(value: str) -> bool:
    """Tell whether a value stands for a secret that is not there."""
    lower = value.lower()
    if len(set(lower)) < 3 or _NO_SECRET.match(lower) or _PLACEHOLDER.search(lower):
        return True
    if lower[-1].isdigit() and not lower[-2].isdigit():
        lower = lower[:-1]
    return all(word in _PLAIN_WORDS for word in _SEPARATORS.split(lower) if word)


def is_generic(value: str) -> bool:
    """Tell whether a value next to a user's name, as in ``user:password``, is only an example's."""
    return is_blank(value) or value.lower() in {"password", "passwd", "passwort", "pwd", "pw"}


def is_password(value: str) -> bool:
    """Tell whether a quoted value can be a password rather than a label or a name."""
    if _DOTTED.match(value) or is_own_name(value):
        return False
    if len(value) < 5:
        return False
    return classes(value) > 1 or (len(value) >= 16 and value.isalnum() and entropy(value[:_JUDGED]) >= 3.0)


def is_word(value: str, least: int = 5) -> bool:
    """Tell whether a value that stands as a password can be a weak one: a word in small letters, a number."""
    if len(value) < least or value.lower() in _NO_PASSWORDS:
        return False
    if value.isdigit():
        return not is_blank(value)
    if _WORD.match(value) is None or _NAMES_ITSELF.search(value) or _OTHER_LANGUAGES.search(value):
        return False
    return not is_blank(value)


def is_config_password(value: str) -> bool:
    """Tell whether the value of a line of settings is a password, however weak, and no name or type."""
    if len(value) < 4 or is_blank(value) or value.lower() in _NO_PASSWORDS or value[0] in "*&!|@%-=":
        return False
    if is_word(value, 4) or is_spoken(value):
        return True
    return classes(value) > 1 and not (value.isidentifier() or _NAME_OR_NUMBER.match(value) or "://" in value)


def is_shell_password(value: str, name: str, least: int) -> bool:
    """Tell whether what a shell variable of this name is set to is a password, however weak."""
    lower = value.lower()
    if len(value) < least or lower in _NO_PASSWORDS or lower == name.lower() or is_blank(value):
        return False
    if value.isdigit():
        return len(value) >= 4
    if _NAME_OR_NUMBER.match(value):
        return False
    return "_" not in value or _NAMES_ITSELF.search(value) is None or any(map(str.isdigit, value))


def is_spoken(value: str) -> bool:
    """Tell whether a bare value said to be a password looks like one: letters and digits, no name or term."""
    lower = value.lower()
    if len(value) < 6 or lower in _NO_PASSWORDS or _NAME_OR_NUMBER.match(value) or "://" in value:
        return False
    if not (any(map(str.isdigit, value)) and any(map(str.isalpha, value))):
        return False
    return not is_own_name(value) and entropy(value[:_JUDGED]) >= 2.0


def is_phrase(value: str) -> bool:
    """Tell whether a quoted value with spaces is a passphrase and no label, message or sentence."""
    words = value.split()
    if len(value) < 8 or value[-1] in "?.:…" or not set("<>{}%").isdisjoint(value):
        return False
    lower = [word.strip(".,;:!?").lower() for word in words]
    if any(word in _SENTENCE_WORDS for word in lower) or _NAMES_ITSELF.search(value) or is_blank(value):
        return False
    if any(classes(word) > 1 and any(map(str.isdigit, word)) for word in words):
        return True
    return len(words) > 2 and all(word.isascii() and word.isalpha() and word.islower() for word in words)


def is_random(value: str, least: int) -> bool:
    """Tell whether a value of at least ``least`` characters looks drawn at random."""
    if len(value) < least or not (any(map(str.isdigit, value)) and any(map(str.isalpha, value))):
        return False
    if "://" in value or is_expression(value):
        return False
    return entropy(value[:_JUDGED]) >= (2.5 if least < 16 else 3.0)


def is_expression(value: str) -> bool:
    """Tell whether an unquoted value is code: a name, a look-up, a number."""
    return _EXPRESSION.match(value) is not None or is_own_name(value)


def is_own_name(value: str) -> bool:
    """Tell whether a value is the name of a secret, as ``client_secret`` and ``sha256Key`` are.

    Digits in three places, as in ``hunter2secret9x1``, are in no name without underscores.
    """
    if not value.isidentifier() or _NAMES_ITSELF.search(value) is None:
        return False
    return "_" in value or len(_DIGITS.findall(value)) < 3


def is_credential(value: str) -> bool:
    """Tell whether what follows the scheme in an Authorization header is a credential rather than a word."""
    if len(value) < 8 or is_placeholder(value):
        return False
    return is_random(value, 16) or (any(map(str.isdigit, value)) and not is_expression(value))

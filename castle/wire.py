"""What a command asks a running server of the same palace over its local socket, and in which form.

A command may take the answer of a server only if it is what its own process would have answered: see
``fingerprint``. What it takes then is built again from the types of the dataclasses, value for value.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import sha256
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Literal, Union, get_args, get_origin, get_type_hints

if TYPE_CHECKING:
    from castle.config import Settings

TAKE_SECONDS = 0.5
"""How long a command waits for a server to take its question up; afterwards it finds the answer itself."""

BUSY_SECONDS = 0.3
"""How long a server lets such a question wait for a call of a tool to end."""

ANSWER_SECONDS = 60.0
"""How long a command waits for the answer to a question that was taken up."""

_SURROUNDINGS = (
    "ANTHROPIC_API_KEY",
    "CASTLE_CACHE_DIR",
    "CASTLE_PROJECT",
    "CASTLE_SML_DISABLED",
    "HF_HOME",
    "HF_HUB_CACHE",
    "HOME",
    "OPENAI_API_KEY",
    "SENTENCE_TRANSFORMERS_HOME",
    "XDG_CACHE_HOME",
)
"""Variables beside the settings that can make an answer another one."""


def reads() -> Mapping[str, Any]:
    """Return what may be asked, methods of ``Castle``, each with the type of its answer."""
    from castle.answers import Found
    from castle.records import SearchResult

    return {"search": SearchResult, "get": list[Found], "get_message": list[Found]}


def fingerprint(settings: Settings) -> str:
    """Return what is equal only where the same version of Castle answers by the same settings.

    The directory of the palace has no part in it, because whoever asks has found the socket in it. Whether a
    setting was given or is the default has: an embedder or a language model that is named is a wish.
    """
    from castle import __version__

    given = {name for name, origin in settings.origins.items() if origin != "default"}
    values = [
        (field.name, field.name in given, repr(getattr(settings, field.name)))
        for field in dataclasses.fields(settings)
        if field.name not in ("palace_path", "origins")
    ]
    around = [(name, os.environ.get(name)) for name in _SURROUNDINGS]
    return sha256(repr((__version__, values, around)).encode("utf-8", "surrogatepass")).hexdigest()


def request(verb: str, given: Sequence[Any], arguments: Mapping[str, Any], settings: Settings) -> Any:
    """Return what is sent to ask for a method of ``Castle`` with its arguments."""
    return {
        "v": 1,
        "read": verb,
        "given": given,
        "arguments": arguments,
        "fingerprint": fingerprint(settings),
    }


def asked(request: Mapping[str, object]) -> tuple[str, list[Any], dict[str, Any]]:
    """Return the method that a request asks for, and its arguments; ValueError for one that is not here."""
    verb, given, arguments = request.get("read"), request.get("given"), request.get("arguments")
    if not isinstance(verb, str) or verb not in reads():
        raise ValueError("read names what this server does not answer")
    if not isinstance(given, list) or not isinstance(arguments, dict):
        raise ValueError("given is a list, arguments are an object")
    return verb, given, arguments


def packed(value: Any) -> Any:
    """Turn a value into what JSON knows; times stay numbers."""
    if dataclasses.is_dataclass(value):
        return {field.name: packed(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {key: packed(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [packed(item) for item in value]
    return value


def unpacked(kind: Any, value: Any) -> Any:
    """Build a value of a type from what ``packed`` made of it; ValueError where it does not fit."""
    origin, inner = get_origin(kind) or kind, get_args(kind)
    if origin in (UnionType, Union):
        if value is None and NoneType in inner:
            return None
        return unpacked(next(one for one in inner if one is not NoneType), value)
    if origin is Literal:
        return _checked(value in inner, value)
    if isinstance(origin, type) and dataclasses.is_dataclass(origin):
        hints = _hints(origin)
        _checked(isinstance(value, dict) and value.keys() == hints.keys(), value)
        return origin(**{name: unpacked(hint, value[name]) for name, hint in hints.items()})
    if origin in (tuple, list):
        _checked(isinstance(value, list), value)
        return origin(unpacked(inner[0], item) for item in value)
    if origin is Mapping:
        _checked(isinstance(value, dict), value)
        return {key: unpacked(inner[1], item) for key, item in value.items()}
    return _checked(type(value) is origin or (origin is float and type(value) is int), value)


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _checked(fits: bool, value: Any) -> Any:
    if not fits:
        raise ValueError(f"not an answer: {str(value)[:40]}")
    return value

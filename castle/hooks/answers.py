"""What a hook says to its host: context that was prepared beforehand, and the warning that a save failed.

Both hosts take one JSON object on stdout. ``hookSpecificOutput.additionalContext`` goes to the model,
``systemMessage`` to the person. Everything for the model stands between the marks of recalled text, so that
it is not filed when it comes back in a transcript.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from castle.hooks.payload import MAX_PATH, text
from castle.hooks.settings import contents
from castle.hooks.spool import failed

if TYPE_CHECKING:
    from castle.hooks.settings import Settings

RECALL_OPEN = '<castle-recall v="1">'
RECALL_CLOSE = "</castle-recall>"
WAKE_UP = "wakeup.json"
SOURCES = ("startup", "resume", "clear", "compact", "fork")
"""How a session may begin for the wake-up to be told."""

RECALL_SECONDS = 0.08
RECALL_TOKENS = 300
LATE = 86_400_000_000
"""How long, in microseconds, events may wait until it is worth a warning."""

MISSING = "missing"
"""What the drainer says of a transcript that is not there; nobody but the user can settle that."""

_EVENTS = {"session-start": "SessionStart", "user-prompt-submit": "UserPromptSubmit"}
_MAX_CONTEXT = 9_000
_MAX_WARNING = 300
_MAX_WAKE_UP = 4 << 20


def answer(
    hook: str,
    given: Mapping[str, object],
    settings: Settings,
    rendered: Mapping[str, object],
    trouble: str,
    waited: int | None,
) -> str:
    """Return the JSON for the host, "" when there is nothing to say.

    ``rendered`` is what was prepared for sessions that begin, ``trouble`` why the event could not be noted,
    ``waited`` since when the first one waits.
    """
    warning = ""
    if hook == "session-start":
        warning = _warning(settings.palace, trouble, waited)
        known = _wake_up(given, settings, rendered)
    else:
        known = _recalled(given, settings)
    context = "\n".join(part for part in (known, _wrapped(warning)) if part)
    said: dict[str, object] = {}
    if context:
        said["hookSpecificOutput"] = {"hookEventName": _EVENTS[hook], "additionalContext": context}
    if warning:
        said["systemMessage"] = warning
    return json.dumps(said) if said else ""


def _warning(root: str, trouble: str, waited: int | None) -> str:
    """Return one line about saves that fail, "" when all is well."""
    last = failed(root)
    if trouble:
        what = f"this session cannot be noted: {trouble}"
    elif last:
        what = f"the last save failed ({_day(last.get('at'))}): {last.get('detail') or 'no reason is known'}"
        if last.get("detail") == MISSING:
            command = f"`castle receipts --dismiss {_named(last.get('session'))}`"
            what += f"; {command} if the transcript is gone for good ({last.get('transcript')})"
    elif waited is not None and time.time_ns() // 1000 - waited > LATE:
        what = f"nothing has been filed since {_day(waited)}: `castle sweep` does it"
    else:
        return ""
    line = " ".join(f"Cognitive Castle: {what}".split())
    return line if len(line) <= _MAX_WARNING else f"{line[:_MAX_WARNING]}…"


def _named(session: object) -> str:
    """Return a session's id for a command line, or the word for one where it is no plain id."""
    plain = isinstance(session, str) and session.isascii() and session.replace("-", "").isalnum()
    return str(session) if plain and str(session)[0] != "-" else "ID"


def _day(at: object) -> str:
    if not isinstance(at, int):
        return "unknown when"
    try:
        return time.strftime("%Y-%m-%d %H:%M %z", time.localtime(at / 1e6))
    except (OverflowError, ValueError, OSError):
        return "unknown when"


def _wrapped(warning: str) -> str:
    if not warning:
        return ""
    harmless = warning.replace("</", "<\\/")
    hint = "Tell the user; `castle receipts --failed` says more."
    return f"{RECALL_OPEN}\n{harmless} {hint}\n{RECALL_CLOSE}"


def _wake_up(given: Mapping[str, object], settings: Settings, rendered: Mapping[str, object]) -> str:
    """Return what was rendered for the directory in which the session begins."""
    if not settings.wake_up or given.get("source") not in SOURCES:
        return ""
    places = rendered.get("places")
    found = _nearest(places, text(given.get("cwd"), MAX_PATH)) if isinstance(places, dict) else None
    return _trusted(found if found is not None else rendered.get("general"))


def checked(rendered: Mapping[str, object], given: Mapping[str, object]) -> bool:
    """Whether something is believed under a condition of the directory in which a session begins."""
    places = rendered.get("checked")
    cwd = text(given.get("cwd"), MAX_PATH)
    return isinstance(places, list) and _nearest({str(place): True for place in places}, cwd) is True


def prepared(root: str) -> Mapping[str, object]:
    """Return what was rendered for sessions that begin; nothing where that cannot be read."""
    path = os.path.join(root, WAKE_UP)  # noqa: PTH118  (pathlib costs several milliseconds)
    try:
        rendered = json.loads(contents(path, _MAX_WAKE_UP))
    except (OSError, ValueError, RecursionError):
        return {}
    return rendered if isinstance(rendered, dict) else {}


def _nearest(places: Mapping[str, object], cwd: str) -> object:
    """Return what was rendered for the longest directory that contains ``cwd``."""
    inside = [
        place for place in places if place and (cwd == place or cwd.startswith(place.rstrip(os.sep) + os.sep))
    ]
    return places[max(inside, key=len)] if inside else None


def _recalled(given: Mapping[str, object], settings: Settings) -> str:
    """Ask a running server what the palace knows of the prompt; without an answer in time there is none."""
    prompt = given.get("prompt")
    if not settings.recall or not isinstance(prompt, str) or not prompt.strip():
        return ""
    from castle.local import ask

    cwd = text(given.get("cwd"), MAX_PATH)
    request = {"v": 1, "prompt": prompt, "cwd": cwd, "max_tokens": RECALL_TOKENS}
    return _trusted((ask(settings.palace, request, RECALL_SECONDS) or {}).get("text"))


def _trusted(found: object) -> str:
    """Let through only what is marked as recalled and short enough to be passed on whole."""
    if not isinstance(found, str) or len(found) > _MAX_CONTEXT:
        return ""
    return found if found.startswith(RECALL_OPEN) and found.rstrip().endswith(RECALL_CLOSE) else ""

"""``castle-hook``: what an agent's hooks call to note that a conversation has grown.

It appends one line to ``<palace>/spool/events.jsonl`` and starts the drainer, which files the transcript
named there. A hook stands in the way of a person who waits, so what it runs imports only the standard
library, reads compiled settings instead of YAML, waits at most 200 ms for its input and always exits with 0:
whatever goes wrong is one line on stderr. On stdout stands what the host's schema has for that event, or
nothing.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from castle.hooks.settings import Settings

HOOKS = (
    "session-start",
    "user-prompt-submit",
    "stop",
    "precompact",
    "session-end",
    "post-tool-use",
    "subagent-stop",
)
HARNESSES = ("claude-code", "codex")
SIGNALS = ("post-tool-use", "subagent-stop")
"""Hooks that tell what an agent did; they name no transcript to be filed."""

SAVES = ("stop", "precompact", "session-end")
"""Hooks after which the transcript is filed at once."""

_VALUES = ("--hook", "--harness", "--palace")
_USAGE = (
    f"usage: castle-hook --hook {'|'.join(HOOKS)} --harness {'|'.join(HARNESSES)} [--palace PATH]\n"
    "Reads the host's JSON on stdin and notes the transcript it names in the palace's spool.\n"
)


def main(argv: Sequence[str] | None = None) -> None:
    """Note one event and leave the process with 0, whatever happens."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        if {"--help", "-h"} & set(arguments):
            _print(_USAGE)
        else:
            given = _parsed(arguments)
            run(given["--hook"], given["--harness"], given["--palace"] or None)
    except Exception as error:  # the edge of the process: a host takes any other exit code for a verdict
        complain(f"{type(error).__name__}: {error}")
    # Without the interpreter's own shutdown there is nothing left that could fail or take time.
    os._exit(0)


def _print(text: str) -> None:
    data = text.encode("utf-8", "backslashreplace")
    while data:
        data = data[os.write(1, data) :]


def run(
    hook: str,
    harness: str,
    palace: str | None = None,
    *,
    descriptor: int = 0,
    env: Mapping[str, str] = os.environ,
    write: Callable[[str], object] = _print,
) -> bool:
    """Read a host's payload from a file descriptor, spool the event, and answer; tell whether it was spooled.

    The answer, if there is one, is given to ``write``. Never raises for anything that a host, a payload or a
    file system can bring about; the reason goes to stderr.
    """
    if hook not in HOOKS:
        return complain(f"hook {hook!r} is none of {', '.join(HOOKS)}")
    if harness not in HARNESSES:
        return complain(f"harness {harness!r} is none of {', '.join(HARNESSES)}")
    from castle.hooks.payload import Unusable, fields, read
    from castle.hooks.settings import load

    try:
        settings = load(palace, env)
        if settings.trouble:
            complain(settings.trouble)
        if not os.path.isdir(settings.palace):  # noqa: PTH112  (pathlib costs a hook several milliseconds)
            return _between(hook, harness, descriptor, settings)
        return _noted(hook, harness, fields(*read(descriptor)), settings, write)
    except Unusable as error:
        return complain(str(error))
    except (OSError, ValueError) as error:
        return complain(f"the event could not be noted: {error}")


def _between(hook: str, harness: str, descriptor: int, settings: Settings) -> bool:
    """Note an event while there is no palace at its place because a restore is at work, or was killed.

    It goes to the palace that was moved aside, whose events are taken over, and where the other one has come
    meanwhile, there, too.
    """
    from castle.hooks import payload, spool
    from castle.hooks.start import finish_restore

    root = settings.palace
    aside = spool.moved_aside(root)
    if not aside or hook in SIGNALS:
        return _homeless(root, settings.current)
    event = payload.event(hook, harness, payload.fields(*payload.read(descriptor)))
    trouble = _append(aside, event)
    if os.path.isdir(root):  # noqa: PTH112
        trouble = _append(root, event)
    if trouble:
        return complain(f"the event could not be noted: {trouble}")
    finish_restore(root)
    return bool(event["transcript"])


def _homeless(root: str, current: bool) -> bool:
    """Complain that there is no palace; let the settings be compiled when they may name another."""
    if not current:
        from castle.hooks.start import compile_settings

        compile_settings()
    return complain(f"no palace at {root}: make one with `castle init DIR` or `castle mine DIR`")


def _noted(
    hook: str,
    harness: str,
    given: Mapping[str, object],
    settings: Settings,
    write: Callable[[str], object],
) -> bool:
    from castle.hooks import payload, spool

    if hook in SIGNALS:
        spool.signal(settings.palace, payload.signal(hook, harness, given))
        return True
    root = settings.palace
    event = payload.event(hook, harness, given)
    waited = spool.oldest(root) if hook == "session-start" else None
    trouble = _append(root, event)
    check = False
    if hook == "session-start" or (hook == "user-prompt-submit" and settings.recall):
        from castle.hooks import answers

        rendered = answers.prepared(root) if hook == "session-start" else {}
        write(answers.answer(hook, given, settings, rendered, trouble, waited))
        check = answers.checked(rendered, given)
    if trouble:
        return complain(f"the event could not be noted: {trouble}")
    if hook in SAVES:
        due = spool.due(root, hook, str(event["session"]), settings.save_interval)
    else:
        due = waited is not None or not settings.current or check
    if due:
        _drain(root)
    return bool(event["transcript"])


def _drain(root: str) -> None:
    """Start the drainer; where that cannot be done, what is in the spool waits for the next one."""
    from castle.hooks.start import start

    try:
        start(root)
    except OSError as error:
        complain(f"the event is noted, but the drainer cannot be started: {error}")


def _append(root: str, event: Mapping[str, object]) -> str:
    """Spool an event that names a transcript; return why that was not possible, "" when it was."""
    from castle.hooks import spool

    if not event["transcript"]:
        return ""
    try:
        spool.append(root, event)
    except OSError as error:
        spool.note_unnoted(root, event, f"the event could not be noted: {error}")
        return str(error)
    return ""


def _parsed(arguments: Sequence[str]) -> dict[str, str]:
    """Read the options by hand: argparse would cost as much as everything else, and exit with 2."""
    given = dict.fromkeys(_VALUES, "")
    rest = iter(arguments)
    for argument in rest:
        name, equals, value = argument.partition("=")
        if name in given:
            given[name] = value if equals else next(rest, "")
        else:
            complain(f"{argument!r} is not an option and was passed over")
    return given


def complain(message: str) -> bool:
    """Write one line to stderr, wherever that leads; return False."""
    line = " ".join(message.split())
    try:
        os.write(2, f"castle-hook: {line}\n".encode("utf-8", "backslashreplace"))
    except OSError:
        pass
    return False

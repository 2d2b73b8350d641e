"""``castle-hook``: what an agent's hooks call to note that a conversation has grown.

It appends one line to ``<palace>/spool/events.jsonl``; ``castle sweep`` files the transcripts named there.
A hook stands in the way of a person who waits, so this package imports only the standard library, reads no
settings file, prints nothing on stdout, waits at most 200 ms for its input and always exits with 0: whatever
goes wrong is one line on stderr.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence

HOOKS = ("session-start", "user-prompt-submit", "stop", "precompact", "session-end")
HARNESSES = ("claude-code", "codex")

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
            sys.stdout.write(_USAGE)
            sys.stdout.flush()
        else:
            given = _parsed(arguments)
            run(given["--hook"], given["--harness"], given["--palace"] or None)
    except Exception as error:  # the edge of the process: a host takes any other exit code for a verdict
        _complain(f"{type(error).__name__}: {error}")
    # Without the interpreter's own shutdown there is nothing left that could fail or take time.
    os._exit(0)


def run(
    hook: str,
    harness: str,
    palace: str | None = None,
    *,
    descriptor: int = 0,
    env: Mapping[str, str] = os.environ,
) -> bool:
    """Read a host's payload from a file descriptor and spool the event; return whether it was spooled.

    Never raises for anything that a host, a payload or a file system can bring about; the reason goes to
    stderr.
    """
    if hook not in HOOKS:
        return _complain(f"hook {hook!r} is none of {', '.join(HOOKS)}")
    if harness not in HARNESSES:
        return _complain(f"harness {harness!r} is none of {', '.join(HARNESSES)}")
    from castle.hooks.payload import Unusable, event, read
    from castle.hooks.spool import append, palace_path

    try:
        root = palace_path(palace, env)
        if not os.path.isdir(root):  # noqa: PTH112  (pathlib costs a hook several milliseconds)
            return _complain(f"no palace at {root}: make one with `castle init DIR` or `castle mine DIR`")
        data, whole = read(descriptor)
        append(root, event(hook, harness, data, whole))
    except Unusable as error:
        return _complain(str(error))
    except (OSError, ValueError) as error:
        return _complain(f"the event could not be noted: {error}")
    return True


def _parsed(arguments: Sequence[str]) -> dict[str, str]:
    """Read the options by hand: argparse would cost as much as everything else, and exit with 2."""
    given = dict.fromkeys(_VALUES, "")
    rest = iter(arguments)
    for argument in rest:
        name, equals, value = argument.partition("=")
        if name in given:
            given[name] = value if equals else next(rest, "")
        else:
            _complain(f"{argument!r} is not an option and was passed over")
    return given


def _complain(message: str) -> bool:
    """Write one line to stderr, wherever that leads; return False."""
    line = " ".join(message.split())
    try:
        os.write(2, f"castle-hook: {line}\n".encode("utf-8", "backslashreplace"))
    except OSError:
        pass
    return False

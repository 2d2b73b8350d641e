"""The table of checks, and running them: one that breaks or takes too long is a line like any other."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from castle.doctor import agents, palace, parts
from castle.doctor.context import Context, Unopened
from castle.doctor.line import Line, Result, bad, unknown
from castle.errors import CastleError

SECONDS = 10.0
SLOW_SECONDS = 60.0
"""For a model that is built first."""


@dataclass(frozen=True, slots=True)
class Check:
    """One check: its name, what runs it, and for how long it may."""

    name: str
    run: Callable[[Context], Result]
    seconds: float = SECONDS


CHECKS: tuple[Check, ...] = (
    Check("settings", parts.settings),
    Check("palace", palace.palace),
    Check("writes", palace.writes),
    Check("permissions", palace.permissions),
    Check("words", palace.words),
    Check("vectors", palace.vectors),
    Check("secrets", palace.secrets),
    Check("disk", palace.disk),
    Check("embedder", parts.embedder, SLOW_SECONDS),
    Check("cross-encoder", parts.cross_encoder),
    Check("language model", parts.language_model),
    Check("Soar", parts.soar),
    Check("agents", agents.clients),
    Check("hook", agents.hook, 3 * SECONDS),
    Check("saves", palace.receipts),
    Check("spool", palace.spool),
    Check("recall", agents.recall),
    Check("MCP server", agents.server),
    Check("versions", parts.versions),
)


@dataclass(frozen=True, slots=True)
class Examination:
    """Every line, and whether all guarantees are in force: no line has failed."""

    in_force: bool
    lines: tuple[Line, ...]


def examine(context: Context, checks: Sequence[Check] = CHECKS) -> Examination:
    """Run the checks one after the other."""
    lines = []
    for check in checks:
        result = _within(check, context)
        lines.append(Line(check.name, result.status, result.detail, result.help))
    return Examination(all(line.status != "failed" for line in lines), tuple(lines))


def _within(check: Check, context: Context) -> Result:
    """Run a check in a thread that is left alone when its time is over."""
    results: list[Result] = []
    thread = threading.Thread(target=lambda: results.append(_run(check, context)), daemon=True)
    started = time.monotonic()
    thread.start()
    thread.join(check.seconds)
    if not results:
        return unknown(f"no result after {time.monotonic() - started:.0f} s")
    return results[0]


def _run(check: Check, context: Context) -> Result:
    try:
        return check.run(context)
    except Unopened as error:
        return unknown(str(error))
    except CastleError as error:
        return bad(str(error), "castle verify")
    except Exception as error:  # the edge of a check: one that breaks is a finding, not the end of the others
        return bad(f"the check broke: {type(error).__name__}: {error}", "castle doctor --debug")

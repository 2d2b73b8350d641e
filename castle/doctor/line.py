"""What one check found: one line of ``castle doctor``."""

from __future__ import annotations

from dataclasses import dataclass

from castle.records import Severity


@dataclass(frozen=True, slots=True)
class Line:
    """One line: what was looked at, whether it is in force, how it stands, and the command that helps.

    ``not checked`` comes with the reason in ``detail``, also for parts that nobody has put to use; ``help``
    is empty where nothing has to be done.
    """

    check: str
    status: Severity
    detail: str
    help: str = ""


@dataclass(frozen=True, slots=True)
class Result:
    """What a check returns; its name is added by who runs it."""

    status: Severity
    detail: str
    help: str = ""


def good(detail: str) -> Result:
    """Return that all is well."""
    return Result("ok", detail)


def bad(detail: str, help: str) -> Result:
    """Return that a guarantee is not in force, and the command that helps."""
    return Result("failed", detail, help)


def unknown(reason: str, help: str = "") -> Result:
    """Return that nothing can be said, and why."""
    return Result("not checked", reason, help)


def unused(detail: str, help: str = "") -> Result:
    """Return that a part which is not needed is not in use."""
    return Result("not checked", f"not in use: {detail}", help)

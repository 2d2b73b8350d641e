"""Falsifiable conditions: what would make a fact, a procedure or a preference out of date.

A condition is one check, ``{"field": …, "operator": …, "value": …}``, or a group of conditions,
``{"all": […]}``, ``{"any": […]}`` or ``{"not": …}``. It is checked when it is saved, and evaluated as a
function of an environment and of what its fields were like then (the baseline). **Met means stale.** The
result has three values: where the environment does not say enough, it is unknown, and nothing follows.
"""

from __future__ import annotations

import difflib
import fnmatch
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, Literal

from castle.errors import UsageError
from castle.mind.conditions.values import (
    LEVELS,
    Level,
    Seen,
    as_text,
    compare,
    look_up,
    pinned_version,
    release,
    remembered,
    same,
    shown,
    unchanged,
)

Result = Literal["met", "not_met", "unknown"]
Kind = Literal["all", "any", "not"]

COMPARISONS = ("<", "<=", ">", ">=", "==", "!=", "contains", "not_contains", "matches")
CHANGES = ("value_changed", "version_changed", "file_modified")
"""Operators that compare with the baseline."""
OPERATORS = (*COMPARISONS, *CHANGES, "not_found")
GROUPS: tuple[Kind, ...] = ("all", "any", "not")

MAX_GROUPS_DEEP = 5
MAX_CHECKS = 50
MAX_FIELD_CHARS = 200
MAX_TEXT_CHARS = 1000
"""Characters of a value in a condition."""

_KEYS = ("field", "operator", "value", "level")
_ORDERS = {"<": (-1,), "<=": (-1, 0), ">": (1,), ">=": (0, 1)}


@dataclass(frozen=True, slots=True)
class Check:
    """One comparison; ``level`` says how much of a version counts in ``version_changed``."""

    field: str
    operator: str
    value: str | int | float | bool | None = None
    level: Level | None = None

    @property
    def key(self) -> str:
        """The name of what it remembers in a baseline."""
        named = self.value if self.operator in CHANGES else None
        return f"{self.operator}:{self.field}" + (f":{named}" if named is not None else "")


@dataclass(frozen=True, slots=True)
class Group:
    """Several conditions: all of them, any of them, or not the one."""

    kind: Kind
    parts: tuple[Condition, ...]


Condition = Check | Group


@dataclass(frozen=True, slots=True)
class FileState:
    """A file as it was found; ``problem`` says why it could not be looked at, else it is "".

    ``sha256`` is hexadecimal, "" for a file that is not there; ``mtime`` in nanoseconds since the epoch.
    """

    sha256: str = ""
    mtime: int = 0
    size: int = 0
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Environment:
    """What a project runs on: values by field, and the files that conditions ask about, by relative path.

    ``notes`` are what could not be read, in words.
    """

    values: Mapping[str, Any]
    files: Mapping[str, FileState] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of a condition, and why, in one line."""

    result: Result
    reason: str

    @property
    def met(self) -> bool:
        """Whether what the condition is about is out of date."""
        return self.result == "met"


def read_condition(given: object) -> Condition:
    """Return the condition that a JSON value describes; raises UsageError, one line that says where and what.

    A group holds at least one condition, groups are nested ``MAX_GROUPS_DEEP`` deep and there are
    ``MAX_CHECKS`` checks at most.
    """
    counted = [0]
    return _read(given, "condition", 0, counted)


def _read(given: object, where: str, depth: int, counted: list[int]) -> Condition:
    if not isinstance(given, Mapping):
        raise UsageError(f"{where} is not an object such as {_EXAMPLE}")
    kinds = [kind for kind in GROUPS if kind in given]
    if not kinds:
        counted[0] += 1
        if counted[0] > MAX_CHECKS:
            raise UsageError(f"{where}: a condition has {MAX_CHECKS} checks at most")
        return _check(given, where)
    kind = kinds[0]
    if len(given) != 1:
        raise UsageError(
            f"{where} has {kind} and more beside it: put {', '.join(map(repr, given))} into a group"
        )
    if depth >= MAX_GROUPS_DEEP:
        raise UsageError(f"{where}: groups are nested {MAX_GROUPS_DEEP} deep at most")
    inner = given[kind]
    if kind == "not":
        return Group("not", (_read(inner, f"{where}.not", depth + 1, counted),))
    if not isinstance(inner, list) or not inner:
        raise UsageError(f"{where}.{kind} is not a list of conditions")
    parts = [_read(part, f"{where}.{kind}[{i}]", depth + 1, counted) for i, part in enumerate(inner)]
    return Group(kind, tuple(parts))


_EXAMPLE = '{"field": "python_version", "operator": ">=", "value": "3.13"}'


def _check(given: Mapping[Any, Any], where: str) -> Check:
    for key in given:
        if key not in _KEYS:
            raise UsageError(f"{where} has the key {key!r}: known are {', '.join((*_KEYS, *GROUPS))}")
    name = given.get("field")
    if not isinstance(name, str) or not name.strip() or len(name) > MAX_FIELD_CHARS or not name.isprintable():
        raise UsageError(f"{where} has no field: name one, such as {_EXAMPLE}")
    operator = given.get("operator", "==")
    if not isinstance(operator, str):
        raise UsageError(f"{where} has an operator that is no text: {', '.join(OPERATORS)}")
    if operator not in OPERATORS:
        raise UsageError(f"{where} has the operator {operator!r}{_meant(operator)}: {', '.join(OPERATORS)}")
    value, level = given.get("value"), given.get("level")
    _check_value(operator, value, where)
    if level is not None and (operator != "version_changed" or level not in LEVELS):
        raise UsageError(f"{where}: level is for version_changed, and one of {', '.join(LEVELS)}")
    if operator == "file_modified":
        name = project_path(name, where)
    return Check(name, operator, value, level)


def _check_value(operator: str, value: object, where: str) -> None:
    if operator == "file_modified":
        if value is not None:
            raise UsageError(f"{where}: file_modified takes no value, its field is the path of the file")
    elif operator in ("value_changed", "version_changed"):
        if value is not None and not (isinstance(value, str) and value.strip()):
            raise UsageError(
                f"{where}: the value of {operator} is the name of a part of the field, or left out"
            )
    elif operator in ("contains", "not_contains", "matches", "not_found"):
        if not isinstance(value, str) or not value:
            raise UsageError(f"{where}: {operator} needs a text as its value")
    elif operator in _ORDERS:
        if isinstance(value, bool) or not isinstance(value, str | int | float) or value == "":
            raise UsageError(f"{where}: {operator} needs a number or a version as its value")
    elif not isinstance(value, str | int | float | bool):
        raise UsageError(f"{where}: {operator} needs a value that is a text, a number, true or false")
    if isinstance(value, str) and len(value) > MAX_TEXT_CHARS:
        raise UsageError(f"{where}: a value has {MAX_TEXT_CHARS} characters at most")
    if isinstance(value, float) and not abs(value) < float("inf"):
        raise UsageError(f"{where}: {value} is no number to compare with")


def _meant(operator: object) -> str:
    near = difflib.get_close_matches(str(operator), OPERATORS, 1)
    return f", which is not known (did you mean {near[0]}?)" if near else ", which is none of these"


def project_path(name: str, where: str = "condition") -> str:
    """Return the one form of a path inside a project; raises UsageError for one that leads out."""
    path = PurePosixPath(name.strip())
    if path.is_absolute() or ".." in path.parts or not path.parts or "\\" in name or ":" in path.parts[0]:
        raise UsageError(
            f"{where}: {name!r} is not the path of a file inside the project, such as src/app.py"
        )
    return str(path)


def to_json_value(condition: Condition) -> dict[str, Any]:
    """Return a condition as JSON holds it, without what is left at its default."""
    if isinstance(condition, Group):
        parts = [to_json_value(part) for part in condition.parts]
        return {condition.kind: parts[0] if condition.kind == "not" else parts}
    written: dict[str, Any] = {"field": condition.field, "operator": condition.operator}
    if condition.value is not None:
        written["value"] = condition.value
    if condition.level is not None:
        written["level"] = condition.level
    return written


def checks_of(condition: Condition) -> Iterator[Check]:
    """Yield every check of a condition."""
    if isinstance(condition, Check):
        yield condition
        return
    for part in condition.parts:
        yield from checks_of(part)


def files_of(condition: Condition) -> set[str]:
    """Return the paths of the files that a condition is about."""
    return {check.field for check in checks_of(condition) if check.operator == "file_modified"}


# Baselines


def baseline_of(
    condition: Condition, environment: Environment, before: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return what the fields of a condition are like, for comparison later.

    What ``before`` remembers already stays; a field that the environment says nothing about is left out.
    """
    kept = dict(before or {})
    for check in checks_of(condition):
        if check.operator not in CHANGES or check.key in kept:
            continue
        found = _observed(check, environment)
        if found is not None:
            kept[check.key] = found
    return kept


def _observed(check: Check, environment: Environment) -> dict[str, Any] | None:
    if check.operator != "file_modified":
        return remembered(_seen(check, environment))
    state = environment.files.get(check.field)
    if state is None or state.problem:
        return None
    return {"sha256": state.sha256, "mtime": state.mtime} if state.sha256 else {"gone": True}


def _seen(check: Check, environment: Environment) -> Seen:
    name = check.value if check.operator in (*CHANGES, "not_found") else None
    return look_up(environment.values, check.field, None if name is None else str(name))


# Evaluation


def evaluate(
    condition: Condition, environment: Environment, baseline: Mapping[str, Any] | None = None
) -> Verdict:
    """Return whether a condition is met; a function of its arguments that raises nothing."""
    if isinstance(condition, Group):
        return _group(condition, [evaluate(part, environment, baseline) for part in condition.parts])
    if condition.operator in CHANGES:
        return _changed(condition, environment, baseline or {})
    seen = _seen(condition, environment)
    if not seen.known:
        return Verdict("unknown", f"the environment says nothing about {condition.field}")
    if condition.operator == "not_found":
        return _verdict(seen.gone, f"{condition.value} is {'not ' if seen.gone else ''}in {condition.field}")
    if seen.gone:
        return Verdict("unknown", f"the environment has no {condition.field}")
    return _compared(condition, seen.value)


def _group(group: Group, verdicts: list[Verdict]) -> Verdict:
    if group.kind == "not":
        turned: dict[Result, Result] = {"met": "not_met", "not_met": "met", "unknown": "unknown"}
        return Verdict(turned[verdicts[0].result], verdicts[0].reason)
    decisive: Result = "not_met" if group.kind == "all" else "met"
    order: tuple[Result, ...] = (decisive, "unknown", "met" if decisive == "not_met" else "not_met")
    result = next(result for result in order if any(v.result == result for v in verdicts))
    reasons = [verdict.reason for verdict in verdicts if verdict.result == result]
    joined = "; ".join(dict.fromkeys(reasons))
    return Verdict(result, joined if len(joined) <= 500 else f"{joined[:499]}…")


def _verdict(met: bool, reason: str) -> Verdict:
    return Verdict("met" if met else "not_met", reason)


def _compared(check: Check, actual: Any) -> Verdict:
    said = f"{check.field} is {shown(remembered(Seen(True, value=actual)) or {})}"
    what = f"{said}, compared by {check.operator} with {as_text(check.value)}"
    if check.operator in _ORDERS:
        order = compare(actual, check.value)
        if isinstance(order, str):
            return Verdict("unknown", f"{check.field}: {order}")
        return _verdict(order in _ORDERS[check.operator], what)
    test: Callable[[Any, Any], bool] = _TESTS[check.operator]
    return _verdict(test(actual, check.value), what)


def _holds(actual: Any, wanted: Any) -> bool:
    """Whether a list has an item, an object a key, or anything else a text as a part of its own."""
    if isinstance(actual, Mapping):
        return wanted in actual
    if isinstance(actual, list | tuple):
        return any(as_text(item) == wanted for item in actual)
    return wanted in as_text(actual)


_TESTS: dict[str, Callable[[Any, Any], bool]] = {
    "==": same,
    "!=": lambda actual, wanted: not same(actual, wanted),
    "contains": _holds,
    "not_contains": lambda actual, wanted: not _holds(actual, wanted),
    # Case counts on every system, so that one palace says the same everywhere.
    "matches": lambda actual, wanted: fnmatch.fnmatchcase(as_text(actual), wanted),
}


def _changed(check: Check, environment: Environment, baseline: Mapping[str, Any]) -> Verdict:
    what = check.field if check.value is None else f"{check.value} in {check.field}"
    if check.operator == "file_modified":
        state = environment.files.get(check.field)
        if state is None or state.problem:
            why = state.problem if state is not None else "it was not looked at"
            return Verdict("unknown", f"the file {check.field}: {why}")
    now = _observed(check, environment)
    if now is None:
        return Verdict("unknown", f"the environment says nothing about {what}")
    before = baseline.get(check.key)
    if not isinstance(before, Mapping):
        return Verdict("unknown", f"nothing is remembered of {what} to compare with: it is from now on")
    if check.operator == "file_modified":
        return _file(check, before, now)
    if check.operator == "version_changed" and not (before.get("gone") or now.get("gone")):
        return _version(check, what, before, now)
    if unchanged(before, now):
        return Verdict("not_met", f"{what} is {shown(now)}, as before")
    return Verdict("met", f"{what} was {shown(before)}, is {shown(now)}")


def _file(check: Check, before: Mapping[str, Any], now: Mapping[str, Any]) -> Verdict:
    if before.get("sha256") == now.get("sha256"):
        return Verdict("not_met", f"the file {check.field} is as it was")
    if now.get("gone"):
        return Verdict("met", f"the file {check.field} is gone")
    return Verdict("met", f"the file {check.field} has {'appeared' if before.get('gone') else 'changed'}")


def _version(check: Check, what: str, before: Mapping[str, Any], now: Mapping[str, Any]) -> Verdict:
    if unchanged(before, now):
        return Verdict("not_met", f"{what} is {shown(now)}, as before")
    old, new = pinned_version(before.get("value")), pinned_version(now.get("value"))
    if old is None or new is None:
        return Verdict("unknown", f"{what} was {shown(before)}, is {shown(now)}: not both are versions")
    told = f"{what} was {shown(before)}, is {shown(now)}"
    if check.level is not None:
        return _verdict(release(old, check.level) != release(new, check.level), f"{told} ({check.level})")
    return _verdict(_differs(before.get("value"), now.get("value"), old, new), told)


def _differs(before: Any, now: Any, old: Any, new: Any) -> bool:
    """Whether two versions differ; of those that only one of two schemes knows, the texts decide."""
    return bool(old != new) if type(old) is type(new) else not same(before, now)

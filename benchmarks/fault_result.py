"""What comes of a fault, and what it is compared with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.fault_palace import Inputs, Run, castle, content, tops

PROBE = "harbour berth crane"


@dataclass
class Outcome:
    """What came of a fault that happened ``times`` times.

    ``silent`` searches gave other drawers than the untouched palace and did not say that anything was amiss.
    ``found``, ``mended`` and ``same`` count the times that verify found it, that repair made everything ok,
    and that content and searches were those of the untouched palace afterwards. ``said`` are the lines that
    people are told, ``wrong`` is whatever should not have happened.
    """

    fault: str
    times: int = 0
    acknowledged: int = 0
    lost: int = 0
    searches: int = 0
    answered: int = 0
    degraded: int = 0
    silent: int = 0
    found: int = 0
    mended: int = 0
    same: int = 0
    said: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def survived(self) -> bool:
        """Whether nothing was lost, hidden or left broken."""
        good = self.lost == self.silent == 0 and self.mended == self.same == self.times
        return good and self.answered == self.searches and not self.wrong

    def say(self, line: str) -> None:
        """Note what people are told, each line once and without what differs from run to run."""
        if line and line not in self.said and len(self.said) < 12:
            self.said.append(line)

    def fail(self, what: str) -> None:
        """Note what should not have happened."""
        if len(self.wrong) < 20:
            self.wrong.append(what[:400])

    def details(self) -> Iterator[str]:
        """Yield the lines about it that do not fit into a table."""
        for name, value in self.facts.items():
            yield f"- {self.fault}: {name}: {value}"
        for line in self.wrong:
            yield f"- {self.fault}: WRONG: {line}"


@dataclass(frozen=True)
class Bench:
    """What faults are tried on, and the untouched palace with what it holds."""

    folder: Path
    inputs: Inputs
    untouched: Path
    content: dict[str, set[tuple[Any, ...]]]
    tops: dict[str, list[str]]
    quick: bool
    seed: int

    def expect(self, outcome: Outcome, palace: Path, what: str = "") -> None:
        """Count a palace as mended, and as equal to the untouched one, or say what is wrong with it."""
        judge(outcome, palace, self.content, self.tops, what)


def judge(
    outcome: Outcome,
    palace: Path,
    wanted: dict[str, set[tuple[Any, ...]]],
    best: dict[str, list[str]],
    what: str = "",
) -> None:
    """Repair a palace; count it as mended, and as equal to another one, or say what is wrong with it."""
    repaired = castle(palace, "repair", "--json")
    checked(outcome, repaired, f"{what} repair")
    findings = {line["check"]: line for line in repaired.json or ()}
    bad = [f"{name}: {line['detail']}" for name, line in findings.items() if line["status"] != "ok"]
    if bad or not findings:
        outcome.fail(f"{what} after repair: {'; '.join(bad) or repaired.line}")
        return
    outcome.mended += 1
    held = content(palace)
    apart = [name for name in wanted if held[name] != wanted[name]]
    for name in apart:
        gone, more = len(wanted[name] - held[name]), len(held[name] - wanted[name])
        outcome.fail(f"{what} {name}: {gone} missing, {more} that should not be there")
        if name in ("drawers", "messages", "facts"):
            outcome.lost += gone
    now = tops(palace, tuple(best))
    others = [query for query in best if now[query] != best[query]]
    if others:
        outcome.fail(f"{what} other best drawers for {others}")
    outcome.same += not apart and not others


def searched(outcome: Outcome, palace: Path, wanted: list[str] | None, what: str) -> Run:
    """Search as a person does; count whether it answered, and whether it said what it could not do."""
    done = castle(
        palace, "search", PROBE, "--json", "--limit", "10", "--mode", "fast", "--now", "2027-01-01T00:00:00Z"
    )
    outcome.searches += 1
    checked(outcome, done, f"{what} search")
    if done.code not in (0, 3) or not done.json or not done.json["hits"]:
        outcome.fail(f"{what}: no answer ({done.code}): {done.line}")
        return done
    outcome.answered += 1
    told = [*done.json["degraded"], *([f"behind: {done.json['behind']}"] if done.json["behind"] else [])]
    outcome.degraded += bool(told)
    for line in told:
        outcome.say(plain(line, palace))
    if not told and wanted is not None and [hit["id"] for hit in done.json["hits"]] != wanted:
        outcome.silent += 1
        outcome.fail(f"{what}: other drawers than the untouched palace, and nothing said")
    return done


def checked(outcome: Outcome, done: Run, what: str) -> None:
    """Note a command that ended otherwise than with a line and an exit code."""
    if done.crashed:
        outcome.fail(f"{what}: ended with {done.code}: {done.err.strip()[-300:]}")


def plain(line: str, palace: Path) -> str:
    """Return a line without the directory that it was tried in."""
    return line.replace(str(palace), "PALACE")

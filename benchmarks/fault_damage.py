"""Indexes that are deleted, cut off, changed at random, or replaced by an older copy."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

from benchmarks.fault_palace import castle, content, tops
from benchmarks.fault_result import PROBE, Bench, Outcome, checked, judge, plain, searched

EXTRA = "one more note, which was written while the index was damaged\n"
RUNS, RUNS_QUICK = 6, 1

Damage = Callable[[Path, Path, random.Random], str]


def words(bench: Bench) -> Outcome:
    """Damage the index of words."""
    return _damage(bench, "index of words", "lexicon")


def vectors(bench: Bench) -> Outcome:
    """Damage the table of vectors."""
    return _damage(bench, "table of vectors", "drawers.lance")


def _damage(bench: Bench, name: str, place: str) -> Outcome:
    outcome = Outcome(f"{name} damaged")
    before = bench.folder / f"before-{place}"
    base = _based_on(bench, before, place)
    wanted, best = content(base), tops(base)
    first = best.setdefault(PROBE, tops(base, (PROBE,))[PROBE])
    kinds: dict[str, Damage] = {
        "deleted": _deleted,
        "cut off": _cut_off,
        "bytes changed": _changed,
        "older copy": _older,
    }
    for kind, damage in kinds.items():
        for number in range(RUNS_QUICK if bench.quick else RUNS):
            chance = random.Random(f"{bench.seed} {place} {kind} {number}")
            palace = bench.folder / "damaged"
            shutil.rmtree(palace, ignore_errors=True)
            shutil.copytree(base, palace)
            hurt = damage(palace / place, before / place, chance)
            _try(outcome, palace, f"{name} {kind} ({hurt})", wanted, best, first)
    for folder in (before, base, bench.folder / "damaged"):
        shutil.rmtree(folder, ignore_errors=True)
    return outcome


def _based_on(bench: Bench, before: Path, place: str) -> Path:
    """Return a copy of the untouched palace with one note more; ``before`` is an older state of it."""
    shutil.copytree(bench.untouched, before)
    base = bench.folder / f"base-{place}"
    shutil.copytree(bench.untouched, base)
    for text, wing in ((EXTRA, "extra"), ("a note that the older copy does not hold\n", "extra")):
        done = castle(base, "add", text, "--wing", wing, "--room", "general")
        assert done.code == 0, done.err
    assert castle(base, "repair").code == 0
    return base


def _try(
    outcome: Outcome,
    palace: Path,
    what: str,
    wanted: dict[str, set[tuple[object, ...]]],
    best: dict[str, list[str]],
    first: list[str],
) -> None:
    """See what verify, a search, a writer and a repair make of a damaged palace."""
    outcome.times += 1
    verified = castle(palace, "verify", "--json")
    checked(outcome, verified, f"{what} verify")
    if verified.code in (1, 3):
        outcome.found += 1
        for line in verified.json or ():
            if line["status"] != "ok":
                outcome.say(plain(f"verify: {line['check']} {line['status']}: {line['detail']}", palace))
    else:
        outcome.facts.setdefault("not found, and of no consequence", []).append(what)
    searched(outcome, palace, first, what)
    added = castle(palace, "add", EXTRA, "--wing", "extra", "--room", "general")
    checked(outcome, added, f"{what} add")
    outcome.acknowledged += added.code == 0
    if added.code != 0:
        outcome.fail(f"{what}: nothing could be written: {added.line}")
    judge(outcome, palace, wanted, best, what)


def _files(place: Path) -> list[Path]:
    return sorted(path for path in place.rglob("*") if path.is_file() and path.stat().st_size)


def _deleted(place: Path, before: Path, chance: random.Random) -> str:
    if chance.random() < 0.4:
        shutil.rmtree(place)
        return "all of it"
    path = chance.choice(_files(place))
    path.unlink()
    return path.relative_to(place).as_posix()


def _cut_off(place: Path, before: Path, chance: random.Random) -> str:
    path = chance.choice(_files(place))
    size = chance.randrange(path.stat().st_size)
    with path.open("r+b") as file:
        file.truncate(size)
    return f"{path.relative_to(place).as_posix()} after {size}"


def _changed(place: Path, before: Path, chance: random.Random) -> str:
    path = chance.choice(_files(place))
    data = bytearray(path.read_bytes())
    for _ in range(16):
        data[chance.randrange(len(data))] = chance.randrange(256)
    path.write_bytes(bytes(data))
    return path.relative_to(place).as_posix()


def _older(place: Path, before: Path, chance: random.Random) -> str:
    shutil.rmtree(place)
    shutil.copytree(before, place)
    return "all of it"

"""Surroundings that turn against a palace: an older ledger, a clock that goes back, no writing, no room."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.fault_palace import NoteClock, castle, content, fact, note, tops, work
from benchmarks.fault_result import PROBE, Bench, Outcome, checked, judge, plain, searched
from castle import Castle

FULL_MEGABYTES = 24


def older_ledger(bench: Bench) -> Outcome:
    """Put a copy of the ledger from before back, as it is and after it was written on."""
    outcome = Outcome("older ledger put back")
    for number in range(1 if bench.quick else 4):
        palace = bench.folder / "restored"
        shutil.copytree(bench.untouched, palace)
        before = bench.folder / "castle.db.before"
        shutil.copyfile(palace / "castle.db", before)
        with Castle(palace) as service:
            for more in range(900, 912):
                service.add(note(more), wing="later", room="general")
            service.repair()
        for left in palace.glob("castle.db*"):
            left.unlink()
        shutil.copyfile(before, palace / "castle.db")
        outcome.times += 1
        wanted, best = bench.content, dict(bench.tops)
        if number % 2:
            # Written on from there: as many changes as were lost, and others.
            other = bench.folder / "written-on"
            shutil.copytree(bench.untouched, other)
            for place in (other, palace):
                clock = NoteClock()
                with Castle(place, clock=clock) as service:
                    for more in range(950, 962):
                        clock.number = more
                        service.add(note(more), wing="other", room="general")
                        outcome.acknowledged += place == palace
            assert castle(other, "repair").code == 0
            wanted, best = content(other), tops(other, tuple(bench.tops))
            first = tops(other, (PROBE,))[PROBE]
            shutil.rmtree(other)
        else:
            first = tops(bench.untouched, (PROBE,))[PROBE]
        verified = castle(palace, "verify", "--json")
        checked(outcome, verified, "verify")
        outcome.found += verified.code != 0 or bool(number % 2)
        for line in verified.json or ():
            if line["status"] != "ok":
                outcome.say(plain(f"verify: {line['check']} {line['status']}: {line['detail']}", palace))
        searched(outcome, palace, first, "older ledger")
        judge(outcome, palace, wanted, best, "older ledger")
        shutil.rmtree(palace)
        before.unlink()
    return outcome


class _Clock:
    """A clock that goes forward by a second at each look, and back by a year at every seventh."""

    def __init__(self) -> None:
        self._now = 1_780_000_000_000_000
        self._looks = 0

    def __call__(self) -> int:
        self._looks += 1
        self._now += 1_000_000 if self._looks % 7 else -365 * 86_400_000_000
        return self._now


def clock(bench: Bench) -> Outcome:
    """File everything while the clock goes back again and again."""
    outcome = Outcome("clock going back", times=1, found=1)
    palace, inputs = bench.folder / "clock", bench.inputs
    with Castle(palace, embedder="fake", clock=_Clock()) as service:
        service.mine_project(inputs.project)
        service.mine_conversations(inputs.transcript)
        for number in range(inputs.notes):
            added = service.add(note(number), wing="notes", room=f"room{number % 3}")
            outcome.acknowledged += 1
            outcome.searches += 1
            hits = service.search(f'"note{number}x"', limit=1, mode="fast").hits
            outcome.answered += bool(hits) and hits[0].id == added.id
        for number in range(inputs.facts):
            service.kg.add(*fact(number))
            outcome.acknowledged += 1
        service.mine_project(inputs.project)
    # When they were written has a part in the order of notes, and is another in an untouched palace.
    judge(outcome, palace, bench.content, {}, "clock")
    shutil.rmtree(palace)
    return outcome


def read_only(bench: Bench) -> Outcome:
    """Use a palace on a file system that cannot be written."""
    outcome = Outcome("read-only palace")
    for settled in (True,) if bench.quick else (True, False):
        palace = bench.folder / "read-only"
        with _small_disk(palace, 64) as mounted:
            shutil.copytree(bench.untouched, palace, dirs_exist_ok=True)
            if not mounted and hasattr(os, "geteuid") and os.geteuid() == 0:
                outcome.facts["not tried"] = "nothing keeps the administrator from writing here"
                break
            first = tops(bench.untouched, (PROBE,))[PROBE]
            late = castle(palace, "kg", "add", "Ada", "reads", "only") if not settled else None
            assert late is None or late.code == 0
            with _without_writing(palace, mounted):
                outcome.times += 1
                searched(outcome, palace, first, "read-only")
                verified = castle(palace, "verify", "--json")
                checked(outcome, verified, "verify")
                outcome.found += 1
                for arguments in (
                    ("add", "a note", "--wing", "w", "--room", "r"),
                    ("mine", str(bench.inputs.project)),
                    ("repair",),
                    ("kg", "add", "a", "b", "c"),
                ):
                    refused = castle(palace, *arguments)
                    checked(outcome, refused, " ".join(arguments))
                    outcome.say(plain(f"{arguments[0]}: {refused.line}", palace))
                    if refused.code == 0 and arguments[0] != "repair":
                        outcome.fail(f"{arguments[0]} says that it wrote to what cannot be written")
            wanted = bench.content
            if not settled:
                wanted = {**wanted, "facts": wanted["facts"] | {("Ada", "reads", "only")}}
            judge(outcome, palace, wanted, bench.tops, "read-only")
        shutil.rmtree(palace, ignore_errors=True)
    return outcome


def full_disk(bench: Bench) -> Outcome:
    """Write until there is no room, search then, and go on once there is."""
    outcome = Outcome("full disk", times=1, found=1)
    palace = bench.folder / "full"
    most = 60 if bench.quick else 2_000
    with _small_disk(palace, FULL_MEGABYTES) as mounted:
        shutil.copytree(bench.untouched, palace, dirs_exist_ok=True)
        taken, first = [], 1_000
        ballast = palace.parent / "ballast"
        if mounted:
            ballast = palace / "ballast"
            free = shutil.disk_usage(palace).free
            with ballast.open("wb") as file:
                file.write(bytes(max(0, free - (1_500_000 if bench.quick else 6_000_000))))
            command = work("fill-up", palace, first + most, first)
        else:
            largest = max(path.stat().st_size for path in palace.rglob("*") if path.is_file())
            command = work("limited", palace, largest + 200_000, first + most, first)
        done = subprocess.run(command, capture_output=True, text=True, timeout=1200)
        told = [json.loads(line) for line in done.stdout.splitlines()]
        taken = [line for line in told if line["kind"] == "note"]
        refused = [line for line in told if line["kind"] == "refused"]
        outcome.acknowledged = len(taken)
        if done.returncode or "Traceback" in done.stderr:
            outcome.fail(f"the writer ended with {done.returncode}: {done.stderr.strip()[-300:]}")
        for line in refused:
            outcome.say(plain(f"add: {line['what']}", palace))
        if not refused:
            outcome.fail("the disk never became full")
        if mounted:
            with ballast.open("ab") as file:
                _use_up(file.fileno())
            outcome.facts["free bytes while searched"] = shutil.disk_usage(palace).free
            searched(outcome, palace, None, "full disk")
            verified = castle(palace, "verify", "--json")
            checked(outcome, verified, "verify on a full disk")
            outcome.say(plain(f"verify: {verified.line}", palace))
            ballast.unlink()
        with Castle(palace, embedder="fake") as service:
            held = {row[0] for row in content(palace)["drawers"]}
            outcome.lost = sum(line["what"] not in held for line in taken)
            service.repair()
        fresh = bench.folder / "roomy"
        shutil.copytree(bench.untouched, fresh)
        # What was refused may have been filed all the same, if only its answer was lost.
        last = first + len(taken) + (1 if _was_filed(palace, first + len(taken)) else 0)
        again = subprocess.run(work("fill-up", fresh, last, first), capture_output=True, text=True)
        assert again.returncode == 0, again.stderr
        assert castle(fresh, "repair").code == 0
        judge(outcome, palace, content(fresh), tops(fresh), "full disk")
        shutil.rmtree(fresh)
    shutil.rmtree(palace, ignore_errors=True)
    return outcome


def _was_filed(palace: Path, number: int) -> bool:
    with Castle(palace) as service:
        hits = service.search(f'"note{number}x"', limit=1, mode="fast").hits
        return bool(hits) and f"note{number}x" in hits[0].text


def _use_up(descriptor: int) -> None:
    """Write to a file until nothing more goes onto the disk."""
    for size in (65_536, 4_096):
        try:
            while True:
                os.write(descriptor, bytes(size))
        except OSError:
            continue


@contextmanager
def _small_disk(place: Path, megabytes: int) -> Iterator[bool]:
    """Make a directory, on a disk of its own where that is allowed; say whether it was."""
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=0700", "tmpfs", str(place)]
    mounted = sys.platform == "linux" and shutil.which("mount") is not None
    mounted = mounted and subprocess.run(command, capture_output=True).returncode == 0
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", "--lazy", str(place)], capture_output=True, check=True)


@contextmanager
def _without_writing(palace: Path, mounted: bool) -> Iterator[None]:
    """Let nothing be written to a palace."""
    if mounted:
        subprocess.run(["mount", "-o", "remount,ro", str(palace)], check=True)
        try:
            yield
        finally:
            subprocess.run(["mount", "-o", "remount,rw", str(palace)], check=True)
        return
    paths = [palace, *palace.rglob("*")]
    modes = {path: path.stat().st_mode for path in paths}
    for path in reversed(paths):
        path.chmod(modes[path] & 0o555)
    try:
        yield
    finally:
        for path in paths:
            path.chmod(modes[path])

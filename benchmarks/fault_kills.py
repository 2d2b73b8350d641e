"""Processes that are killed, and many that write at once while one of them is stopped."""

from __future__ import annotations

import json
import random
import shutil
import signal
import subprocess
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.agents_bench import Server
from benchmarks.fault_palace import (
    LATER,
    QUERIES,
    SCRIPTS,
    Inputs,
    NoteClock,
    castle,
    content,
    fact,
    fill,
    note,
    start,
    tops,
    work,
    write_project,
    write_transcript,
)
from benchmarks.fault_result import Bench, Outcome, judge
from castle import Castle

KILLS, KILLS_QUICK = 100, 6
KINDS = ("mine", "convos", "notes", "facts", "drain", "catch-up")
ENDLESS = ("notes", "facts")
"""Work that acknowledges every write, and is killed at any moment after the first."""
WRITERS, WRITES, STOPPED_SECONDS = 8, 100, 20.0
NOTE_QUERIES = (*QUERIES[:-4], "note11x lantern")
"""Questions that notes answer: what answers none is ranked by times, which differ from palace to palace."""
LEDGER_CHECKS = ("database", "drawers", "sources", "messages")


def kills(bench: Bench) -> Outcome:
    """Kill a process in the middle of its work, a hundred times, at random moments."""
    outcome = Outcome("kill -9")
    run = _Kills(bench, outcome)
    for number in range(KILLS_QUICK if bench.quick else KILLS):
        run.once(number)
    run.finish()
    return outcome


class _Kills:
    """One palace to which it happens again and again; what it is given grows by and by."""

    def __init__(self, bench: Bench, outcome: Outcome) -> None:
        self._bench = bench
        self._outcome = outcome
        self._chance = random.Random(bench.seed)
        self._palace = bench.folder / "killed"
        self._inputs = Inputs(bench.folder / "killed-inputs", 0, 0, 0, 0)
        self._files = self._turns = self._notes = self._facts = 0
        self._acknowledged: dict[tuple[str, int], str] = {}
        self._filed_files = self._filed_turns = 0
        self._kinds: Counter[str] = Counter()
        self._usual: dict[str, float] = {}
        with Castle(self._palace, embedder="fake") as service:
            service._palace(create=True)

    def once(self, number: int) -> None:
        """Start one kind of work until one of them could be killed before its end."""
        kind = KINDS[number % len(KINDS)]
        for _ in range(5):
            if self._killed(kind):
                self._kinds[kind] += 1
                self._outcome.times += 1
                break
        if number % 10 == 9:
            self._look()

    def _killed(self, kind: str) -> bool:
        command = self._command(kind)
        process = start(command)
        begun = time.monotonic()
        lines: list[str] = []
        working = threading.Event()
        reader = threading.Thread(target=_read, args=(process, lines, working))
        reader.start()
        if kind in ENDLESS:
            working.wait()
            after = self._chance.uniform(0.0, 2.0)
        else:
            # The first of a kind tells how long it takes, starting included.
            after = self._chance.uniform(0.3, 1.0) * self._usual.get(kind, 600.0)
        try:
            process.wait(timeout=after)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
        process.wait()
        reader.join()
        for line in lines:
            told = _told(line)
            if told is not None:
                self._acknowledged[told["kind"], told["number"]] = told["what"]
        killed = process.returncode == -signal.SIGKILL
        if not killed:
            self._ended(kind, process, time.monotonic() - begun)
        self._notes = max([self._notes, *(n + 1 for k, n in self._acknowledged if k == "note")])
        self._facts = max([self._facts, *(n + 1 for k, n in self._acknowledged if k == "fact")])
        return killed

    def _ended(self, kind: str, process: subprocess.Popen[str], seconds: float) -> None:
        """Count the work of a command that came to its end as acknowledged."""
        self._usual[kind] = seconds
        if process.returncode not in (0, 3):
            error = process.stderr.read() if process.stderr else ""
            self._outcome.fail(f"{kind} ended with {process.returncode}: {error.strip()[-300:]}")
        elif kind == "mine":
            self._filed_files = self._files
        elif kind in ("convos", "drain"):
            self._filed_turns = self._turns

    def _command(self, kind: str) -> list[str]:
        castle_command = [str(SCRIPTS / "castle"), "--palace", str(self._palace)]
        if kind == "mine":
            write_project(self._inputs.project, self._files, self._files + 10)
            self._files += 10
            return [*castle_command, "mine", str(self._inputs.project)]
        if kind in ("convos", "drain"):
            self._inputs.folder.mkdir(exist_ok=True)
            write_transcript(self._inputs.transcript, self._turns, self._turns + 30)
            self._turns += 30
        if kind == "convos":
            return [*castle_command, "mine", str(self._inputs.transcript), "--mode", "convos"]
        if kind == "drain":
            self._note_event()
            return [*castle_command, "sweep"]
        if kind == "notes":
            return work("notes", self._palace, self._notes, self._notes + 2000, "notes")
        if kind == "facts":
            return work("facts", self._palace, self._facts, self._facts + 4000)
        return [*castle_command, "repair"]

    def _note_event(self) -> None:
        """Note the transcript as the hook of an agent does."""
        from castle.hooks.spool import append

        self._palace.mkdir(mode=0o700, exist_ok=True)
        event = {"v": 1, "at": time.time_ns() // 1000, "hook": "stop", "session": "s1"}
        append(str(self._palace), {**event, "transcript": str(self._inputs.transcript)})

    def _look(self) -> None:
        """See that what was acknowledged is there, and that the ledger is whole."""
        if not (self._palace / "castle.db").exists():
            return
        self._outcome.searches += 1
        found = castle(self._palace, "search", "harbour", "--json")
        if found.code in (0, 3):
            self._outcome.answered += 1
            self._outcome.degraded += found.code == 3
        else:
            self._outcome.fail(f"no answer after a kill: {found.err.strip()[-300:]}")
        verified = castle(self._palace, "verify", "--json")
        bad = [
            f"{line['check']}: {line['detail']}"
            for line in verified.json or ()
            if line["check"] in LEDGER_CHECKS and line["status"] == "failed"
        ]
        if bad or verified.crashed:
            self._outcome.fail(f"after a kill: {'; '.join(bad) or verified.err[-300:]}")
        self._outcome.found += verified.code != 0

    def finish(self) -> None:
        """Do all the work to its end and compare with a palace that was never killed."""
        held = content(self._palace)
        ids = {row[0] for row in held["drawers"]}
        facts = {" ".join(row) for row in held["facts"]}
        for (kind, _), what in self._acknowledged.items():
            self._outcome.lost += what not in (ids if kind == "note" else facts)
        turns = {row[0] for row in held["messages"]}
        self._outcome.lost += sum(f"u{n}" not in turns for n in range(self._filed_turns))
        paths = {key.rpartition(":")[2] for key, _ in held["sources"]}
        named = (f"part{n % 7}/file{n}.md" for n in range(self._filed_files))
        self._outcome.lost += sum(name not in paths for name in named)
        self._outcome.acknowledged = len(self._acknowledged) + self._filed_turns + self._filed_files
        clock = NoteClock()
        with Castle(self._palace, embedder="fake", clock=clock) as service:
            service.mine_project(self._inputs.project)
            service.mine_conversations(self._inputs.transcript)
            service.drain_spool()
            for number in range(self._notes):
                clock.number = number
                service.add(note(number), wing="notes", room=f"room{number % 3}")
            for number in range(self._facts):
                service.kg.add(*fact(number))
        # What a killed writer had filed without saying so is in the palace, too.
        more_notes = sum(row[3] == "notes" for row in content(self._palace)["drawers"])
        more_facts = len(content(self._palace)["facts"])
        fresh = self._bench.folder / "never-killed"
        inputs = Inputs(self._inputs.folder, self._files, self._turns, more_notes, more_facts)
        fill(fresh, inputs)
        times = self._outcome.times
        judge(self._outcome, self._palace, content(fresh), tops(fresh), "after all kills")
        if self._outcome.mended == self._outcome.same == 1:
            self._outcome.mended = self._outcome.same = times
        self._outcome.facts["killed while"] = dict(self._kinds)
        shutil.rmtree(fresh)
        shutil.rmtree(self._palace)


def _read(process: subprocess.Popen[str], lines: list[str], working: threading.Event) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        lines.append(line)
        working.set()
    working.set()


def _told(line: str) -> dict[str, Any] | None:
    """Read an acknowledgement; a line that the kill has cut off is none."""
    try:
        told: dict[str, Any] = json.loads(line)
    except ValueError:
        return None
    return told if isinstance(told, dict) and "kind" in told else None


def writers(bench: Bench) -> Outcome:
    """Let many processes write at once while others search, and stop one of them for a while."""
    outcome = Outcome("writers at once, one of them stopped", times=1)
    count, writes = (4, 12) if bench.quick else (WRITERS, WRITES)
    palace = bench.folder / "shared"
    with Castle(palace, embedder="fake") as service:
        service._palace(create=True)
    crowd = _Crowd(palace, outcome, count, writes)
    crowd.run(2.0 if bench.quick else STOPPED_SECONDS)
    alone = bench.folder / "alone"
    with Castle(alone, embedder="fake") as service:
        for number in range(count * writes):
            writer = number // writes
            service.add(note(number), wing=f"writer{writer}", room=f"room{number % 3}")
            if writer >= 2 and number % 3 == 0:
                service.kg.add(*fact(number))
        service.repair()
    held = content(palace)
    ids, facts = {row[0] for row in held["drawers"]}, {" ".join(row) for row in held["facts"]}
    outcome.acknowledged = len(crowd.acknowledged)
    outcome.lost = sum(what not in (ids if kind == "note" else facts) for kind, what in crowd.acknowledged)
    outcome.found = 1
    judge(outcome, palace, content(alone), tops(alone, NOTE_QUERIES), "writers")
    outcome.facts |= crowd.facts
    for folder in (palace, alone):
        shutil.rmtree(folder)
    return outcome


class _Crowd:
    """Writers and searchers of one palace; the first two writers and a searcher are MCP servers."""

    def __init__(self, palace: Path, outcome: Outcome, count: int, writes: int) -> None:
        self._palace = palace
        self._outcome = outcome
        self._count = count
        self._writes = writes
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._waits: list[float] = []
        self._written: Counter[int] = Counter()
        self.acknowledged: list[tuple[str, str]] = []
        self.facts: dict[str, Any] = {}

    def run(self, stopped: float) -> None:
        """Let everybody work, and stop the last writer for some seconds."""
        processes = [
            start(work("write", self._palace, n * self._writes, (n + 1) * self._writes, f"writer{n}"))
            for n in range(2, self._count)
        ]
        searcher = start(work("search", self._palace, *QUERIES))
        threads = [threading.Thread(target=self._read, args=(process,)) for process in processes]
        threads += [threading.Thread(target=self._mcp_writer, args=(n,)) for n in range(2)]
        threads += [threading.Thread(target=self._mcp_searcher)]
        watching = threading.Thread(target=self._read_searches, args=(searcher,))
        for thread in (*threads, watching):
            thread.start()
        last = processes[-1]
        while last.poll() is None and self._written[last.pid] < 3:
            time.sleep(0.05)
        if last.poll() is None:
            last.send_signal(signal.SIGSTOP)
            before = len(self.acknowledged)
            time.sleep(stopped)
            self.facts["written by the others while one was stopped"] = len(self.acknowledged) - before
            last.send_signal(signal.SIGCONT)
        for thread in threads[:-1]:
            thread.join()
        self._over.set()
        threads[-1].join()
        searcher.kill()
        watching.join()
        searcher.wait()
        self.facts["longest wait of a search through castle-mcp, seconds"] = round(max(self._waits), 2)

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        assert process.stderr is not None
        for line in process.stdout:
            told = _told(line)
            if told is not None:
                with self._lock:
                    self.acknowledged.append((told["kind"], told["what"]))
                    self._written[process.pid] += 1
        error = process.stderr.read()
        if process.wait() != 0:
            self._outcome.fail(f"a writer ended with {process.returncode}: {error.strip()[-300:]}")

    def _read_searches(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            told = json.loads(line) if line.endswith("\n") else {}
            with self._lock:
                self._outcome.searches += 1
                self._outcome.answered += 1
                self._outcome.degraded += bool(told.get("degraded"))
        error = process.stderr.read() if process.stderr else ""
        if process.wait() != -signal.SIGKILL:
            self._outcome.fail(f"a searcher ended with {process.returncode}: {error.strip()[-300:]}")

    def _mcp_writer(self, writer: int) -> None:
        server = Server([str(SCRIPTS / "castle-mcp"), "--palace", str(self._palace)])
        server.initialize()
        for number in range(writer * self._writes, (writer + 1) * self._writes):
            arguments = {"content": note(number), "wing": f"writer{writer}", "room": f"room{number % 3}"}
            answer = server.request("tools/call", name="castle_add_drawer", arguments=arguments)
            found = answer.get("result", {}).get("structuredContent") or {}
            with self._lock:
                if "drawer_id" in found:
                    self.acknowledged.append(("note", found["drawer_id"]))
                else:
                    self._outcome.fail(f"castle-mcp did not write: {json.dumps(answer)[:300]}")
        server.close()

    def _mcp_searcher(self) -> None:
        server = Server([str(SCRIPTS / "castle-mcp"), "--palace", str(self._palace)])
        server.initialize()
        while not self._over.is_set():
            begun = time.monotonic()
            arguments = {"query": QUERIES[len(self._waits) % len(QUERIES)], "now": LATER}
            answer = server.request("tools/call", name="castle_search", arguments=arguments)
            self._waits.append(time.monotonic() - begun)
            found = answer.get("result", {}).get("structuredContent")
            with self._lock:
                self._outcome.searches += 1
                if found is None:
                    self._outcome.fail(f"castle-mcp did not answer: {json.dumps(answer)[:300]}")
                else:
                    self._outcome.answered += 1
                    self._outcome.degraded += bool(found.get("degraded"))
        server.close()

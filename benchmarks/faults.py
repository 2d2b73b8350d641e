"""What a palace survives: kills, writers at once, damaged indexes, a full disk, an older ledger, and more.

    python -m benchmarks.faults [--quick] [--only NAME ...] [--seed N] [--out FILE]

Each fault happens to a palace made of the same inputs as another one that is left alone. Counted is what was
acknowledged (a line that named the id, or the end of a command) and what of it is lost; whether searches
still answered, and said so where they could not search everything; whether ``castle verify`` found the fault
and ``castle repair`` mended it; and whether the content and the ten best drawers for every query are those of
the untouched palace afterwards. The full run takes about half an hour on two cores; ``--quick`` tries a few
of each. The results are written after each fault; with ``--only`` those of the other faults in FILE stay, so
that a run which was stopped can be gone on with.
"""

from __future__ import annotations

import argparse
import json
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import fault_damage, fault_kills, fault_places
from benchmarks.fault_palace import Inputs, content, fill, settle_environment, tops
from benchmarks.fault_result import Bench, Outcome
from castle import __version__

FAULTS: Mapping[str, Callable[[Bench], Outcome]] = {
    "kills": fault_kills.kills,
    "writers": fault_kills.writers,
    "words": fault_damage.words,
    "vectors": fault_damage.vectors,
    "older ledger": fault_places.older_ledger,
    "clock": fault_places.clock,
    "read-only": fault_places.read_only,
    "full disk": fault_places.full_disk,
}


@dataclass
class Options:
    """What the command line asks for."""

    quick: bool = False
    only: list[str] = field(default_factory=list)
    seed: int = 1


def run(options: Options, folder: Path, done: Callable[[Outcome], None] = lambda _: None) -> list[Outcome]:
    """Let every fault happen, each in a directory of its own below ``folder``; tell each outcome at once."""
    settle_environment(folder / "home")
    scale = 1 if options.quick else 4
    inputs = Inputs(folder / "inputs", files=12 * scale, turns=24 * scale, notes=12 * scale, facts=8 * scale)
    inputs.write()
    untouched = folder / "untouched"
    fill(untouched, inputs)
    bench = Bench(
        folder=folder,
        inputs=inputs,
        untouched=untouched,
        content=content(untouched),
        tops=tops(untouched),
        quick=options.quick,
        seed=options.seed,
    )
    found = []
    for name, fault in FAULTS.items():
        if options.only and name not in options.only:
            continue
        begun = time.perf_counter()
        outcome = fault(bench)
        outcome.seconds = round(time.perf_counter() - begun, 1)
        found.append(outcome)
        done(outcome)
        print(json.dumps(asdict(outcome), ensure_ascii=False), file=sys.stderr, flush=True)
    return found


def table(outcomes: list[Outcome]) -> str:
    """Return the outcomes as a Markdown table."""
    rows = [
        "| fault | times | acknowledged | lost | searches | answered | said degraded | silently wrong "
        "| found | mended | as untouched |",
        "|---|" + "---:|" * 10,
    ]
    for one in outcomes:
        rows.append(
            f"| {one.fault} | {one.times} | {one.acknowledged:,} | {one.lost} | {one.searches:,} "
            f"| {one.answered:,} | {one.degraded} | {one.silent} | {one.found} | {one.mended} | {one.same} |"
        )
    lines = [line for one in outcomes for line in one.details()]
    return "\n".join(rows) + "\n" + ("\n" + "\n".join(lines) + "\n" if lines else "")


class Results:
    """The outcomes so far, and the files that they are written to, if any."""

    def __init__(self, out: Path | None, options: Options, command: str) -> None:
        self._out = out
        self._about = {
            "command": command,
            "quick": options.quick,
            "seed": options.seed,
            "castle": __version__,
            "python": platform.python_version(),
        }
        self.outcomes: list[Outcome] = []
        if out is not None and options.only and out.with_suffix(".json").exists():
            self._go_on(json.loads(out.with_suffix(".json").read_text(encoding="utf-8")))

    def _go_on(self, before: Mapping[str, Any]) -> None:
        """Take over what was found before; raises ValueError when it was found in another way."""
        for name in ("quick", "seed", "castle"):
            if before["about"][name] != self._about[name]:
                raise ValueError(f"the results there are of another run: {name} {before['about'][name]}")
        self._about["command"] = before["about"]["command"]
        self.outcomes = [Outcome(**one) for one in before["results"]]

    def add(self, outcome: Outcome) -> None:
        """Put an outcome in the place of the one before of the same fault, and write everything down."""
        faults = [one.fault for one in self.outcomes]
        if outcome.fault in faults:
            self.outcomes[faults.index(outcome.fault)] = outcome
        else:
            self.outcomes.append(outcome)
        if self._out is None:
            return
        self._out.parent.mkdir(parents=True, exist_ok=True)
        seconds = round(sum(one.seconds for one in self.outcomes), 1)
        results = {
            "about": {**self._about, "seconds": seconds},
            "results": [asdict(one) for one in self.outcomes],
        }
        text = json.dumps(results, indent=1, ensure_ascii=False) + "\n"
        self._out.with_suffix(".json").write_text(text, encoding="utf-8")
        head = f"# What a palace survives\n\n`{self._about['command']}`, {seconds:,.0f} s\n\n"
        self._out.with_suffix(".md").write_text(head + table(self.outcomes), encoding="utf-8")


def main(argv: list[str] | None = None) -> int:
    """Run from the command line; exit code 1 when anything was lost or wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a few of each")
    parser.add_argument(
        "--only", nargs="+", choices=list(FAULTS), default=[], help="only these; others in FILE stay"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, help="write FILE.json and FILE.md")
    given = parser.parse_args(argv)
    options = Options(given.quick, given.only, given.seed)
    command = "python -m benchmarks.faults" + (" --quick" if given.quick else "")
    try:
        results = Results(given.out, options, command)
    except ValueError as error:
        parser.error(str(error))
    folder = Path(tempfile.mkdtemp(prefix="castle-faults-"))
    try:
        run(options, folder, results.add)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(table(results.outcomes))
    return 0 if all(one.survived for one in results.outcomes) else 1


if __name__ == "__main__":
    raise SystemExit(main())

"""What a palace survives: kills, writers at once, damaged indexes, a full disk, an older ledger, and more.

    python -m benchmarks.faults [--quick] [--only NAME ...] [--seed N] [--out FILE]

Each fault happens to a palace made of the same inputs as another one that is left alone. Counted is what was
acknowledged (a line that named the id, or the end of a command) and what of it is lost; whether searches
still answered, and said so where they could not search everything; whether ``castle verify`` found the fault
and ``castle repair`` mended it; and whether the content and the ten best drawers for every query are those of
the untouched palace afterwards. The full run takes about half an hour on two cores; ``--quick`` tries a few
of each.
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


def run(options: Options, folder: Path) -> list[Outcome]:
    """Let every fault happen; each in a directory of its own below ``folder``."""
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


def main(argv: list[str] | None = None) -> int:
    """Run from the command line; exit code 1 when anything was lost or wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a few of each")
    parser.add_argument("--only", nargs="+", choices=list(FAULTS), default=[], help="only these faults")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, help="write FILE.json and FILE.md")
    given = parser.parse_args(argv)
    folder = Path(tempfile.mkdtemp(prefix="castle-faults-"))
    begun = time.perf_counter()
    try:
        outcomes = run(Options(given.quick, given.only, given.seed), folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    command = " ".join(["python -m benchmarks.faults", *(sys.argv[1:] if argv is None else argv)])
    about = {
        "command": command,
        "seconds": round(time.perf_counter() - begun, 1),
        "castle": __version__,
        "python": platform.python_version(),
    }
    written = table(outcomes)
    print(written)
    if given.out is not None:
        given.out.parent.mkdir(parents=True, exist_ok=True)
        results = {"about": about, "results": [asdict(one) for one in outcomes]}
        given.out.with_suffix(".json").write_text(
            json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
        )
        head = f"# What a palace survives\n\n`{command}`, {about['seconds']:,.0f} s\n\n"
        given.out.with_suffix(".md").write_text(head + written, encoding="utf-8")
    return 0 if all(one.survived for one in outcomes) else 1


if __name__ == "__main__":
    raise SystemExit(main())

"""Runs question sets: ``run`` measures one, ``ablate`` measures what each stage and signal is worth.

python -m benchmarks.retrieval run longmemeval DIR --work DIR [--peer bm25] [--out FILE]
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from benchmarks.retrieval import ablation, peers, quick, results
from benchmarks.retrieval.asking import Granularity, settings_of
from benchmarks.retrieval.cases import SPLITS
from benchmarks.retrieval.running import READERS, Run, execute
from castle.errors import CastleError

_STARTED = time.monotonic()


def say(text: str) -> None:
    """Tell progress on standard error, with the seconds since the start."""
    print(f"[{time.monotonic() - _STARTED:6.0f} s] {text}", file=sys.stderr, flush=True)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    found = argparse.ArgumentParser(prog="python -m benchmarks.retrieval", description=__doc__)
    commands = found.add_subparsers(dest="command", required=True)
    for name, help_ in (("run", "measure one question set"), ("ablate", "every stage on and off")):
        one = commands.add_parser(name, help=help_)
        one.add_argument("collection", choices=READERS)
        one.add_argument("path", type=Path, metavar="PATH", help="the file or directory of the data")
        one.add_argument("--work", type=Path, default=Path(".bench"), help="where palaces are kept (.bench)")
        one.add_argument("--granularity", choices=get_args(Granularity), default="session")
        one.add_argument("--split", choices=SPLITS, default="all", help="one half, by a hash of the case")
        one.add_argument("--limit", type=int, help="this many questions, evenly chosen")
        one.add_argument("--depth", type=int, default=10, help="results for each question (10)")
        one.add_argument("--settings", action="append", default=[], metavar="NAME=VALUE")
        one.add_argument("--refile", action="store_true", help="make the palaces anew")
        one.add_argument("--afresh", action="store_true", help="ask again what was asked before")
        one.add_argument("--out", type=Path, help="write the run there as JSON")
    commands.choices["run"].add_argument("--peer", action="append", default=[], choices=peers.PEERS)
    small = commands.add_parser("quick", help="a small run of everything whose data is there")
    small.add_argument("data", type=Path, metavar="DATA", help="a directory with one for each question set")
    small.add_argument("--work", type=Path, default=Path(".bench"))
    small.add_argument("--out", type=Path, default=Path("benchmarks/results/quick"))
    return found


def run_of(options: argparse.Namespace) -> Run:
    """Return what the command line asks for."""
    pairs = dict(pair.partition("=")[::2] for pair in options.settings)
    return Run(
        options.collection,
        options.path,
        options.work,
        options.granularity,
        options.split,
        options.limit,
        options.depth,
        settings_of(pairs),
        tuple(getattr(options, "peer", ())),
        options.refile,
        options.afresh,
    )


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, show the numbers, and write the file that was asked for."""
    options = parser().parse_args(argv)
    if options.command == "quick":
        quick.run_all(options.data, options.work, options.out, say)
        return
    try:
        run = run_of(options)
        measured, answers = (execute if options.command == "run" else ablation.execute)(run, say)
    except CastleError as error:
        raise SystemExit(str(error)) from error
    for system in measured["systems"]:
        show(system)
    if options.out is not None:
        results.write(options.out, measured, answers)
        say(f"written to {options.out}")


def show(system: results.Measured) -> None:
    """Print what one system did."""
    names = list(system.groups["all"])
    print(f"\n{system.system}: " + ", ".join(names))
    for group, found in system.groups.items():
        cells = " ".join(f"{100 * found[name].mean:6.1f}" for name in names)
        print(f"  {group:28} {found[names[0]].n:5} {cells}")
    latency = system.latency
    print(
        f"  ms of a search: wall {latency.wall_p50:.1f} (95 %: {latency.wall_p95:.1f}), "
        f"model {latency.model_p50:.1f}, rest {latency.rest_p50:.1f} (95 %: {latency.rest_p95:.1f})"
    )
    if system.abstention is not None:
        told = system.abstention
        print(
            f"  no answer: AUROC {told.auroc:.3f}, said so for {100 * told.unanswered_refused:.1f} % of "
            f"{told.unanswered}, wrongly for {100 * told.answered_refused:.1f} % of {told.answered}"
        )
    for note in (*system.notes, *system.degraded):
        print(f"  note: {note}")


if __name__ == "__main__":
    main()

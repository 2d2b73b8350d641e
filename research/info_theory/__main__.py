"""The study of information in a palace: how estimators of it fall, agree and differ, what may be left out.

python -m research.info_theory run --locomo FILE --longmemeval DIR --work DIR
python -m research.info_theory run --palace DIR --out DIR
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from castle import config
from castle.errors import CastleError
from castle.llm.base import Provider
from castle.llm.registry import provider_of
from research.info_theory import corpus, figures, judging, paper, results, tables
from research.info_theory.cache import Cache
from research.info_theory.corpus import Dataset
from research.info_theory.study import STAGES, Plan, Study

PILOT_SHARE = 0.05
PILOT_RESAMPLES = 100
OWN = results.RESULTS

_STARTED = time.monotonic()


def say(text: str) -> None:
    """Tell progress on standard error, with the seconds since the start."""
    print(f"[{time.monotonic() - _STARTED:6.0f} s] {text}", file=sys.stderr, flush=True)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    found = argparse.ArgumentParser(prog="python -m research.info_theory", description=__doc__)
    found.formatter_class = argparse.RawDescriptionHelpFormatter
    commands = found.add_subparsers(dest="command", required=True)
    helps = {
        "run": "compute what is missing, then write results, tables, texts and figures",
        "pilot": "the same on a twentieth of the data",
        "status": "what the cache holds",
        "cost-estimate": "what judging by a model would cost",
    }
    for name, help_ in helps.items():
        one = commands.add_parser(name, help=help_)
        one.add_argument("--palace", type=Path, action="append", default=[], metavar="DIR", help="one's own")
        one.add_argument("--locomo", type=Path, metavar="FILE")
        one.add_argument("--longmemeval", type=Path, metavar="PATH")
        one.add_argument(
            "--work", type=Path, default=Path(".bench"), help="palaces of question sets (.bench)"
        )
        one.add_argument("--cache", type=Path, help="where stages are kept (~/.castle/research)")
        one.add_argument("--calls", type=int, default=0, help="drawers of each data set for a model to judge")
        one.add_argument("--provider", help="llm_provider for that; without one nothing is asked")
        one.add_argument("--model")
        one.add_argument("--endpoint")
    for name in ("run", "pilot"):
        one = commands.choices[name]
        one.add_argument("--out", type=Path, help="results, tables and figures (the study's own place)")
        one.add_argument("--stage", choices=STAGES, default=STAGES[-1], help="the last stage to run")
        one.add_argument("--all", action="store_true", help="all stages, which is the default")
        one.add_argument("--force", action="store_true", help="compute --stage again, with --all every one")
        one.add_argument("--no-figures", action="store_true", help="without matplotlib")
        one.add_argument("--check", action="store_true", help="compare with the results that are there")
    commands.choices["cost-estimate"].add_argument("--usd-per-million", type=float, default=1.0)
    drawing = commands.add_parser("figures", help="draw the figures from the results")
    drawing.add_argument("--out", type=Path)
    drawing.add_argument("--tables", action="store_true", help="write tables and texts, too")
    return found


def datasets(options: argparse.Namespace) -> list[Dataset]:
    """Return the data sets that are named; raises SystemExit where there is none."""
    found = [corpus.own(path) for path in options.palace]
    for name in corpus.READERS:
        path = getattr(options, name)
        if path is not None:
            found.append(corpus.question_set(name, path, options.work, say))
    if not found:
        raise SystemExit("nothing to study: name --palace DIR, --locomo FILE or --longmemeval PATH")
    if options.command == "pilot":
        found = [corpus.pilot(one, PILOT_SHARE, Plan().seeds.pilot) for one in found]
    return found


def model_of(options: argparse.Namespace) -> Provider | None:
    """Return the model that was named, None where none was; raises SystemExit when it cannot be asked."""
    if not options.provider:
        return None
    named = {"llm_provider": options.provider, "llm_model": options.model, "llm_endpoint": options.endpoint}
    provider = provider_of(config.load({key: value for key, value in named.items() if value}))
    reason = provider.available()
    if reason:
        raise SystemExit(reason)
    return provider


def plan_of(options: argparse.Namespace) -> Plan:
    """Return the plan that the command line asks for."""
    plan = Plan(calls=options.calls)
    return replace(plan, resamples=PILOT_RESAMPLES) if options.command == "pilot" else plan


def cache_of(options: argparse.Namespace) -> Cache:
    """Return the cache, which computes again what is to be forced."""
    root = options.cache or Path.home() / ".castle" / "research"
    if not getattr(options, "force", False):
        return Cache(root)
    return Cache(root, STAGES if options.all else (options.stage,))


def run(options: argparse.Namespace) -> None:
    """Run the stages and write what came of them."""
    plan, cache, provider = plan_of(options), cache_of(options), model_of(options)
    found, plots, files = {}, {}, {}
    for dataset in datasets(options):
        study = Study(dataset, plan, cache, say, provider)
        found[dataset.name] = study.run(options.stage)
        if options.stage == STAGES[-1]:
            plots[dataset.name] = study.plots()
        if dataset.collection is not None:
            files[dataset.name] = dataset.collection.data_sha256
    if options.stage != STAGES[-1]:
        return
    record = results.rounded(results.assemble(found, plan, files))
    out = options.out or (
        OWN if options.command == "run" and not options.palace else Path("research-results")
    )
    if options.check:
        compare(out, record)
        return
    results.write(record, plots, out)
    report(results.read(out), out)
    if not options.no_figures:
        draw(out)


def compare(out: Path, record: dict[str, object]) -> None:
    """Say where the results differ from those written before, the versions apart; SystemExit when they do."""
    old = {key: value for key, value in results.read(out).items() if key != "manifest"}
    new = {key: value for key, value in record.items() if key != "manifest"}
    tolerance = results.TOLERANCE["same"]
    apart = results.differences(old, new, tolerance)
    for line in apart:
        print(line)
    if apart:
        raise SystemExit(f"{len(apart)} numbers differ by more than {tolerance}")
    say(f"the same as in {out}, to {tolerance}")


def report(record: dict[str, object], out: Path) -> None:
    """Write the tables, and the texts where they are the study's own."""
    tables.write(record, out / "tables")
    if out == OWN:
        paper.write(record)
    say(f"written to {out}")


def draw(out: Path) -> None:
    """Draw the figures."""
    directory = paper.ROOT / "docs" / "figures" if out == OWN else out / "figures"
    drawn = figures.draw(results.read(out), results.read(out, "plots.json"), directory)
    say(f"{len(drawn)} figures in {directory}")


def status(options: argparse.Namespace) -> None:
    """Print what the cache holds."""
    for dataset in datasets(options):
        for stage, told in Study(dataset, plan_of(options), cache_of(options), say).status().items():
            print(f"{dataset.name:14} {stage:16} {told}")


def cost(options: argparse.Namespace) -> None:
    """Print what judging would cost."""
    for dataset in datasets(options):
        study = Study(dataset, plan_of(options), cache_of(options), say)
        chosen = judging.sample(study.table, options.calls, study.plan.seeds.subsample)
        found = judging.cost(study.table, chosen, options.usd_per_million)
        print(f"{dataset.name:14} {found['calls']} calls, {found['tokens']} tokens, {found['usd']:.2f} USD")


def main(argv: Sequence[str] | None = None) -> None:
    """Do what the command line asks."""
    options = parser().parse_args(argv)
    try:
        if options.command == "figures":
            out = options.out or OWN
            draw(out)
            if options.tables:
                report(results.read(out), out)
        else:
            {"run": run, "pilot": run, "status": status, "cost-estimate": cost}[options.command](options)
    except CastleError as error:
        raise SystemExit(str(error)) from error


if __name__ == "__main__":
    main()

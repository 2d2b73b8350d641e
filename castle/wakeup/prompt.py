"""What the palace knows of a prompt, unasked: a few lines, or nothing where nothing is likely to help.

A search that nobody asked for has to be quick and sure. It runs in mode fast, brings indexes hardly up to
date, and shows only what scores well above the point from which the cross-encoder takes a text for an answer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from castle.config import Settings
from castle.mine.formats import recall_block
from castle.records import HIDDEN_KINDS, Drawer, Scope
from castle.search.cursor import Cursor
from castle.search.options import options_of
from castle.search.pipeline import rank
from castle.search.refine import Engines
from castle.search.rerank import STAGE
from castle.store.palace import Palace
from castle.store.projection import legal_text
from castle.store.reading import addresses, served
from castle.text.sanitize import sanitize
from castle.text.served import mask_secrets
from castle.text.words import words
from castle.wakeup.page import longest
from castle.wakeup.places import wing_of_directory
from castle.wakeup.snippets import LONGER, MOST_NAME, around, day, name_of, snippet

CATCH_UP_MS = 10
JUST_SAID = 120_000_000
"""Microseconds: what was written since then is in front of the agent already."""
DEPTH = 30
"""Drawers that each list of recall brings."""
SURE = 2.0
"""How far above the encoder's own threshold a score has to be, as a factor."""
SHARED = 0.6
"""The share of a prompt's words that a text must have where no model reads it."""
BESIDE_BEST = 0.4
"""The share of the best score from which others are shown beside it."""
AT_HOME = 2.0
"""The factor for what stands in the wing of the directory: others go first only when clearly better."""
LEAST_WORDS, LEAST_BYTES = 3, 12
ID = 12
"""Characters of an id, enough of it to be one drawer's."""

_COMMAND = re.compile(r"\s*/[\w:.-]+(\s|$)")
OPENING = "Recorded before, perhaps of use (castle_get_drawer ID shows all of one):"


@dataclass(frozen=True, slots=True)
class _Hit:
    drawer: Drawer
    score: float
    matched: tuple[str, ...]


def recalled(
    palace: Palace,
    settings: Settings,
    engines: Engines,
    prompt: str,
    *,
    cwd: str | None = None,
    max_tokens: int = 300,
) -> str:
    """Return what is known of a prompt, wrapped as recalled, in ``max_tokens`` tokens; "" for nothing sure.

    What stands in the wing of ``cwd`` goes before the rest. While models are not loaded there is nothing.
    """
    asked = sanitize(legal_text(prompt)).clean_query
    if palace.unready or not _asks(prompt, asked):
        return ""
    now = palace.ledger.clock()
    with palace.ledger.read() as cx:
        home = wing_of_directory(cx, legal_text(cwd)) if cwd else None
    hits = _best(_sure(palace, settings, engines, asked, now), home)
    with palace.ledger.read() as cx:
        paths = addresses(cx, [hit.drawer.id for hit in hits])
    lines = [_line(hit, paths[hit.drawer.id].path, palace.salt) for hit in hits]
    text, shown = longest(lambda count: "\n".join([OPENING, *lines[:count]]), len(lines), max_tokens)
    return recall_block(text) if shown else ""


def _sure(palace: Palace, settings: Settings, engines: Engines, asked: str, now: int) -> list[_Hit]:
    """Return what a quick search surely takes for an answer, best first.

    That is what the cross-encoder scores well; of what it cannot read, what shares many of the words.
    """
    options = replace(
        options_of(settings, mode="fast", now=now),
        rerank_k=settings.reranker_k_hook,
        catch_up_ms=min(settings.search_catch_up_ms, CATCH_UP_MS),
    )
    page = Cursor("", 0, options.rerank_k, DEPTH, now, 0)
    ranking = rank(palace, asked, Scope(until=now - JUST_SAID), options, engines, page, 1)
    if not ranking.confident:
        return []
    hits = [_Hit(ranking.drawers[c.id], c.score, c.matched) for c in ranking.candidates[: options.rerank_k]]
    ordinary = [hit for hit in hits if hit.drawer.kind not in HIDDEN_KINDS]
    reread = any(report.name == STAGE and report.status == "ran" for report in ranking.run.reports)
    if reread and engines.encoder is not None:
        least = SURE * engines.encoder().confident
        return [hit for hit in ordinary if hit.score >= least]
    wanted = set(words(asked))
    return [hit for hit in ordinary if len(wanted.intersection(hit.matched)) >= SHARED * len(wanted)]


def _best(hits: Sequence[_Hit], home: str | None) -> list[_Hit]:
    """Return the hits to show, best first, those at home before others that are not clearly better."""

    def worth(hit: _Hit) -> float:
        return hit.score * (AT_HOME if hit.drawer.wing == home else 1.0)

    floor = BESIDE_BEST * max(map(worth, hits), default=0.0)
    return sorted((hit for hit in hits if worth(hit) >= floor), key=worth, reverse=True)


def _asks(prompt: str, asked: str) -> bool:
    """Whether a prompt says enough to look for; a host's command and a mere "go on" do not."""
    return (
        _COMMAND.match(prompt) is None
        and len(set(words(asked))) >= LEAST_WORDS
        and len(asked.encode("utf-8")) >= LEAST_BYTES
    )


def _line(hit: _Hit, path: str, salt: bytes) -> str:
    drawer = hit.drawer
    names = (drawer.speaker or drawer.role, f"{drawer.wing} / {drawer.room}", name_of(path))
    about = [day(drawer.authored_at), *(mask_secrets(snippet(name, MOST_NAME), salt) for name in names)]
    said = around(served(drawer), hit.matched, LONGER)
    return f"- {drawer.id[:ID]} ({', '.join(part for part in about if part)}): {said}"

"""Novelty: how much each drawer adds to what was filed before it."""

from castle.novelty.asking import InfoScore, Neighbour, Pruning, Suggestion, info_score, prune_suggest
from castle.novelty.scoring import NoveltyReport, backfill, refresh, update
from castle.store.novelty import scores

__all__ = [
    "InfoScore",
    "Neighbour",
    "NoveltyReport",
    "Pruning",
    "Suggestion",
    "backfill",
    "info_score",
    "prune_suggest",
    "refresh",
    "scores",
    "update",
]

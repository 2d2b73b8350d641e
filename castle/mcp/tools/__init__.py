"""The tools. Each asks ``Castle`` with the same parameters; "" and [] mean that one is not given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from castle.mcp.tools.base import SETS, Offer, Tier
from castle.mcp.tools.capture import Capture
from castle.mcp.tools.diary import Diary
from castle.mcp.tools.drawers import Drawers
from castle.mcp.tools.finding import Finding
from castle.mcp.tools.graph import Graph
from castle.mcp.tools.mind import Mind
from castle.mcp.tools.novelty import Novelty
from castle.mcp.tools.places import Places
from castle.mcp.tools.sue import Reviews
from castle.mcp.tools.tunnels import Ways
from castle.mcp.tools.wakeup import Waking

GROUPS = (Finding, Drawers, Waking, Places, Capture, Graph, Diary, Ways, Novelty, Mind, Reviews)
"""The groups of tools in the order in which they are listed."""


class Tools(Finding, Drawers, Waking, Places, Capture, Graph, Diary, Ways, Novelty, Mind, Reviews):
    """Every tool of one palace."""

    def all(self, tier: Tier = "all") -> Sequence[tuple[Callable[..., Any], Offer]]:
        """Return the tools of a set in the order in which they are listed, each with its offer."""
        sets = SETS[tier]
        found = (
            (getattr(self, name), method.offer)
            for group in GROUPS
            for name, method in vars(group).items()
            if hasattr(method, "offer")
        )
        return [(method, offer) for method, offer in found if offer.tier in sets]

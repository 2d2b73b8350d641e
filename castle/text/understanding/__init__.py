"""Understanding: 34 heuristic measures of how a text is written and of what it pins down."""

from castle.text.understanding.metric import CategoryScore, Metric
from castle.text.understanding.profile import Profile, understand

__all__ = ["CategoryScore", "Metric", "Profile", "understand"]

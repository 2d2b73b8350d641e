"""The vocabulary of AAAK: codes of emotions, and the words that give emotions, flags and weight away."""

from __future__ import annotations

from collections.abc import Mapping

EMOTIONS: Mapping[str, str] = {
    "vulnerability": "vul",
    "joy": "joy",
    "fear": "fear",
    "trust": "trust",
    "grief": "grief",
    "wonder": "wonder",
    "rage": "rage",
    "love": "love",
    "hope": "hope",
    "despair": "despair",
    "peace": "peace",
    "relief": "relief",
    "humor": "humor",
    "tenderness": "tender",
    "rawness": "raw",
    "doubt": "doubt",
    "anxiety": "anx",
    "exhaustion": "exhaust",
    "conviction": "convict",
    "passion": "passion",
    "warmth": "warmth",
    "curiosity": "curious",
    "gratitude": "grat",
    "frustration": "frust",
    "confusion": "confuse",
    "satisfaction": "satis",
    "excitement": "excite",
    "determination": "determ",
    "surprise": "surprise",
}

EMOTION_SIGNS: Mapping[str, str] = {
    "decided": "determ",
    "prefer": "convict",
    "worried": "anx",
    "anxious": "anx",
    "concern": "anx",
    "excited": "excite",
    "frustrated": "frust",
    "confused": "confuse",
    "love": "love",
    "hate": "rage",
    "hope": "hope",
    "fear": "fear",
    "trust": "trust",
    "happy": "joy",
    "sad": "grief",
    "disappoint": "grief",
    "surprised": "surprise",
    "grateful": "grat",
    "curious": "curious",
    "wonder": "wonder",
    "relieved": "relief",
    "satisf": "satis",
}
"""Beginnings of words; ``sad`` only stands for the whole word."""

FLAG_SIGNS: Mapping[str, tuple[str, ...]] = {
    "ORIGIN": ("founded", "created", "started", "born", "launched", "first time"),
    "CORE": ("core", "fundamental", "essential", "principle", "belief", "always", "never forget"),
    "PIVOT": ("turning point", "changed everything", "realized", "breakthrough", "epiphany"),
    "DECISION": ("decided", "chose", "switched", "migrated", "replaced", "instead of", "because"),
    "TECHNICAL": (
        "api",
        "database",
        "architecture",
        "deploy",
        "infrastructure",
        "algorithm",
        "framework",
        "server",
        "config",
    ),
}

DECISION_WORDS = (
    "decided",
    "because",
    "instead",
    "prefer",
    "switched",
    "chose",
    "realized",
    "important",
    "key",
    "critical",
    "discovered",
    "learned",
    "conclusion",
    "solution",
    "reason",
    "why",
    "breakthrough",
    "insight",
)

STOPWORDS = frozenset(
    """
    a about above after again all also am an and any are as at be because been before being below
    between both but by can could did do does doing done down during each else even ever every few
    for from further get gets getting go goes going got had has have having he her here hers him his
    how however i if in instead into is it its itself just let like made make many may me might more
    most much must my never no nor not now of off on once one only or other our ours out over own
    per put same see set she should since so some still such take than that the their them then
    there these they thing things this those through to too two under until up upon us use used uses
    using very want was way we well were what when where which while who whom why will with would
    yes yet you your yours
    """.split()
)

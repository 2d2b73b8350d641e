"""Whose words a question asks for, and whether it asks for advice.

"What did you recommend?" is answered by what an assistant said, "where did I park?" by what the person said:
an assistant's answers are long, repeat the question's words and state few of its facts. Who asks for advice
shares hardly a word with what they once said of their tastes, so there the subject counts for more.

Read are English, German, Spanish and French; a question of another language has no voice.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from castle.records import Drawer

Voice = Literal["assistant", "own"]

ASSISTANT = "assistant"
OVERHEARD = 0.4
"""What an assistant's answer counts where a person asks for what they said themselves; .25 did the same."""


def voice_of(query: str) -> Voice | None:
    """Say whose words a question asks for: the assistant's, one's own (advice too), or anybody's."""
    if _ANSWERED.search(query):
        return "assistant"
    if _ADVICE.search(query):
        return "own"
    return "own" if _OWN.search(query) and not _EXPLAINED.search(query) else None


def asks_advice(query: str) -> bool:
    """Whether a question asks what to do, and not what was said or done."""
    return bool(_ADVICE.search(query)) and not _ANSWERED.search(query)


def voiced(voice: Voice | None, drawers: Mapping[str, Drawer]) -> dict[str, float]:
    """Score drawers by who said them, in [0, 1] by id; none where it tells nothing."""
    spoken = {id_: drawer.role == ASSISTANT for id_, drawer in drawers.items()}
    if voice is None or len(set(spoken.values())) < 2:
        return {}
    if voice == ASSISTANT:
        return {id_: 1.0 for id_, answer in spoken.items() if answer}
    return {id_: OVERHEARD if answer else 1.0 for id_, answer in spoken.items()}


def _any_of(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE)


# Gaps are bounded, so that a long text takes linear time.
_ANSWERED = _any_of(
    r"\byou(?:['’](?:d|ve))?(?: (?:had|have|also|once|just|already|all|two|first)){0,3} (?:told|gave|given"
    r"|suggested|recommended|listed|mentioned|said|described|explained|showed|shown|wrote|written|rewrote"
    r"|drafted|proposed|provided|named|advised|found|looked up|worked out|came up|put together|pointed"
    r"|called|compared|quoted|helped|thought|meant|made|built|added|drew|designed|created|invented|picked"
    r"|chose|calculated|estimated|translated|summari[sz]ed)\b",
    r"\bdid you (?:\w+ )?(?:tell|give|suggest|recommend|list|mention|say|describe|explain|show|write|draft"
    r"|propose|provide|name|advise|find|work out|come up|put|point|call|compare|quote|help|think|mean|make"
    r"|build|add|draw|design|create|invent|pick|choose|calculate|estimate|translate|summari[sz]e)\b",
    r"\byour (?:previous |last |first |earlier )?(?:lists?|answers?|suggestions?|recommendations?|advice"
    r"|explanations?|proposals?|examples?)\b",
    r"\bwere you (?:\w+ )?(?:recommending|suggesting|saying|proposing|describing|explaining)\b",
    r"\b(?:recommended|suggested) to me\b",
    r"\b(?:assistant|claude|chatgpt|copilot|codex|gemini)\b.{0,30}\b(?:suggest|recommend|say|said|tell|told"
    r"|propose|mention|explain|advi[cs]e|write|wrote|list)",
    r"\baccording to you\b|\bour (?:previous|last|earlier) (?:conversation|chat|discussion)",
    r"\b(?:hast|hattest) du\b.{0,80}\b(?:gesagt|empfohlen|vorgeschlagen|genannt|erklärt|geschrieben|gegeben"
    r"|aufgelistet|erwähnt)\b",
    r"\bdu\b.{0,60}\b(?:gesagt|empfohlen|vorgeschlagen|genannt|erklärt) (?:hast|hattest)\b",
    r"\b(?:sagtest|empfahlst|nanntest|erklärtest|schriebst) du\b"
    r"|\b(?:Vorschl[aä]ge?|Empfehlung(?:en)?) hast du\b",
    r"\bdein(?:e|en|er)? (?:Liste|Antwort|Vorschl[aä]g|Empfehlung|Erklärung)",
    r"\b(?:dijiste|recomendaste|sugeriste|diste|explicaste|mencionaste|propusiste|escribiste)\b",
    r"\btus? (?:lista|respuesta|recomendaci|sugerencia|explicaci|propuesta)",
    r"\b(?:tu|vous) (?:m['’])?(?:as|avais|avez|aviez) .{0,20}?(?:dit|recommandé|suggéré|donné|expliqué"
    r"|proposé|mentionné|conseillé|écrit)\b",
    r"\b(?:as|avais|avez|aviez)[- ](?:tu|vous)\b.{0,40}?\b(?:dit|recommandé|suggéré|donné|expliqué|proposé"
    r"|mentionné|conseillé|écrit)\b",
    r"\b(?:ta|tes|votre|vos) (?:listes?|réponses?|recommandations?|suggestions?|explications?|conseils?)\b",
)
_ADVICE = _any_of(
    r"^(?:please )?(?:recommend|suggest)\b|^(?:advice|tips|ideas|suggestions) (?:for|on|about)\b",
    r"\bany (?:\w+ ){0,2}?(?:recommendations?|suggestions?|advice|tips?|ideas?|thoughts|pointers)\b",
    r"\b(?:give|need|want|some|no) (?:me )?(?:some |an? |any |no )?(?:\w+ )?(?:recommendations?"
    r"|suggestions?|advice|tips|ideas?)\b",
    r"\b(?:can|could|would|will|do) you (?:\w+ )?(?:recommend|suggest|advise|talk me)\b",
    r"\bhelp me (?:\w+ )?(?:pick|choose|plan|decide|find|prepare)\b",
    r"\b(?:what|which|where|how|who|whom|when|anything|something)\b[^.?!]{0,60}?"
    r"\b(?:should|could|can|might|shall) (?:i|we)\b",
    r"\bshould (?:i|we)\b|\banything (?:i|we) should\b|\bdo you think (?:i|it|my|that|there|this)\b",
    r"\bwhat would (?:you|be|go|look|make|give|suit|work|fit)\b",
    r"\bwhat(?:['’]s| is| are) (?:an? |the |some )?(?:good|best|better|nice|great|clever|smart|sensible)\b",
    r"\b(?:irgendwelche|ein paar|hast du|gibt es|brauche|gib mir) (?:\w+ )?(?:Tipps?|Vorschläge|Empfehlungen"
    r"|Ideen?|Rat)\b",
    r"\b(?:kannst|könntest|würdest) du\b.{0,80}\b(?:empfehlen|vorschlagen|raten)\b|\bempfiehl\b",
    r"\b(?:was|welche\w*|wie|wo|wohin) (?:soll|sollte|könnte|kann) (?:ich|man|wir)\b",
    r"\b(?:puedes|podrías|puede|podría) (?:\w+ )?(?:recomendar|sugerir|aconsejar)",
    r"\bme (?:recomiendas|sugieres|aconsejas)\b|\balg(?:ún|una) (?:consejo|idea|sugerencia|recomendación)",
    r"\b(?:qué|cómo|dónde|cuál) (?:debería|podría|puedo|debo)\b",
    r"\b(?:peux|pourrais|pouvez|pourriez)[- ](?:tu|vous) (?:me )?(?:recommander|suggérer|conseiller)",
    r"\b(?:des|une|quelques) (?:idées?|conseils?|suggestions?|recommandations?)\b",
    r"\btienes (?:alg[uú]n[ao]?s? |unos )?(?:consejos?|ideas?|sugerencias?|recomendaci)",
    r"\b(?:devrais|pourrais|dois|puis)[- ]je\b",
)
_EXPLAINED = _any_of(
    r"\b(?:how|why) (?:did|do|does|is|are|was|were|have|had) (?:i|my)\b",
    r"\b(?:wie|warum|wieso|weshalb) (?:habe|hab|hatte|mache|bin|war) ich\b",
    r"\b(?:por qué|pourquoi|comment)\b",
)
"""How and why something was done is in the answers rather than in what was asked of them."""
_OWN = _any_of(
    r"\b(?:i|my|me|mine|myself)\b",
    r"\b(?:ich|mich|mir|mein(?:e|en|em|er|es)?)\b",
    r"\b(?:yo|mis?|conmigo|hice|dije|fui|tuve|puse)\b",
    r"\b(?:qué|dónde|cuándo|cuánt[oa]s?|cuál)\b.{0,20}?\b\w{3,}[éí]\b",
    r"\b(?:je|moi|(?-i:mon))\b|\bj['’]",
)

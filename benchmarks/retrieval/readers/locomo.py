"""LoCoMo (Maharana et al., 2024; CC BY-NC 4.0, for evaluation only) in its original format.

Every conversation is a palace, and the evidence of a question its gold turns. Of turns that share a picture
only what was said is filed, not the caption that a model wrote. Questions of category 5 have no answer in the
conversation; their evidence is what they were bent from.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from benchmarks.retrieval.cases import Case, Collection, Message, Question, files_sha256, micros, text_of

KINDS = {
    1: "1 multi-hop", 2: "2 temporal", 3: "3 open-domain", 4: "4 single-hop", 5: "5 adversarial",
}  # fmt: skip
_TURN = re.compile(r"D(\d+):(\d+)")


def read(path: Path) -> Collection:
    """Read every conversation; a question without any usable evidence is left out and counted."""
    cases, lost = [], 0
    for conversation in json.loads(text_of(path)):
        case, without = _case(conversation)
        cases.append(case)
        lost += without
    notes = (f"{lost} questions name no turn as evidence and are left out",) if lost else ()
    return Collection("locomo", tuple(cases), files_sha256([path]), notes=notes)


def _case(conversation: dict[str, Any]) -> tuple[Case, int]:
    talk = conversation["conversation"]
    messages: list[Message] = []
    for session, turns in talk.items():
        if isinstance(turns, list):
            time = micros(talk[f"{session}_date_time"], "%I:%M %p on %d %B, %Y")
            messages += [
                Message(session, turn["dia_id"], "user", turn["text"], time, turn["speaker"])
                for turn in turns
                if turn["text"]
            ]
    by_id = {message.id: message for message in messages}
    last = max((message.time or 0 for message in messages), default=0) or None
    questions, lost = [], 0
    for number, asked in enumerate(conversation["qa"]):
        evidence = _TURN.findall(" ".join(map(str, asked.get("evidence") or ())))
        gold = [by_id[id_] for session, turn in evidence if (id_ := f"D{int(session)}:{int(turn)}") in by_id]
        if not gold:
            lost += 1
            continue
        questions.append(
            Question(
                str(number),
                asked["question"],
                KINDS[int(asked["category"])],
                frozenset(message.session for message in gold),
                frozenset(message.turn for message in gold),
                last,
                answered=int(asked["category"]) != 5,
            )
        )
    return Case(conversation["sample_id"], messages=tuple(messages), questions=tuple(questions)), lost

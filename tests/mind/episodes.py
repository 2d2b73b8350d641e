"""Episodes by the hundred for tests, filed in one transaction each session, and a model that is scripted."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence

from sqlalchemy import select

from castle.records import Chunk
from castle.store.filing import Filing, NewDrawer, Place, Version
from castle.store.palace import Palace
from castle.store.schema import drawers


def file_all(palace: Palace, texts: Sequence[str], session: str, *, wing: str = "w") -> list[str]:
    """File texts as messages of one session and return their drawers."""
    now = palace.ledger.clock()
    place = Place(f"test:{session}", "conversation", f"/{session}", session, wing, "talk")
    items = [
        NewDrawer(Chunk(text, i, i + 1, i + 1, i + 1), None, "", "message", "", now, role="user")
        for i, text in enumerate(texts)
    ]
    filing = Filing(palace.ledger, place, 0)
    with palace.ledger.write() as cx:
        filing.stage(cx, items, "test")
        filing.complete(cx, Version(bytes(32), len(texts), "", "test/1", "utf-8", now, "test"))
        query = select(drawers.c.id).order_by(drawers.c.rid.desc()).limit(len(texts))
        return list(cx.execute(query).scalars())[::-1]


def chatter(count: int, seed: int = 1) -> list[str]:
    """Return texts that have little in common."""
    drawn = random.Random(seed)
    return [" ".join(f"word{drawn.randrange(400)}" for _ in range(6 + i % 11)) for i in range(count)]


class Scripted:
    """A model that gives one answer after the other, and notes what it was shown."""

    name, model = "scripted", "m"

    def __init__(self, *answers: object) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    def available(self) -> str | None:
        return None

    def generate(self, system: str, prompt: str, *, json: bool = False) -> str:
        self.asked.append(f"{system}\n{prompt}")
        return _written(self.answers.pop(0))


def _written(answer: object) -> str:
    return answer if isinstance(answer, str) else json.dumps(answer)

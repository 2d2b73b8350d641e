"""The end of a session: its items of working memory go their four ways."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from castle.mind.working import let_go, route
from castle.store.mind_working import end_session, items

if TYPE_CHECKING:
    from castle.mind.saving import Saver
    from castle.store.palace import Palace


@dataclass(frozen=True, slots=True)
class Ended:
    """What became of the working items of a session: how many were kept, filed, and let go of."""

    session_id: str
    kept: int
    completed: int
    referenced: int
    discarded: int
    episodes: tuple[str, ...]


def end(palace: Palace, saver: Saver, session_id: str, *, actor: str) -> Ended:
    """End a session: what is attended and open stays, what was done or used is filed, the rest let go of."""
    now = palace.ledger.clock()
    with palace.ledger.read() as cx:
        routing = route(items(cx, session_id), now)
    filed = [*routing.completed, *routing.referenced]
    episodes = saver.put_away(filed, "the session ended")
    with palace.ledger.write() as cx:
        reason = "the session ended: neither attended nor used"
        let_go(cx, routing.discard, reason=reason, actor=actor, now=now)
        end_session(cx, session_id, now)
    return Ended(
        session_id,
        len(routing.keep),
        len(routing.completed),
        len(routing.referenced),
        len(routing.discard),
        tuple(episodes),
    )

"""Working memory: attention that decays, room for fifty, and the four ways at the end of a session."""

from __future__ import annotations

import math

import pytest

from castle.errors import NotFoundError
from castle.mind.mind import Mind
from castle.mind.working import CAPACITY, attention, preactivate, route, zone
from castle.store.mind_working import change_item, get_item, items
from castle.store.palace import Palace
from tests.conftest import TurnedClock
from tests.mind.conftest import Save

SECOND = 1_000_000


@pytest.mark.parametrize(
    ("priority", "seconds", "value", "place"),
    [
        (1.0, 0, 1.0, "active"),
        (1.0, 208, 0.5, "active"),
        (1.0, 570, 0.1496, "preheated"),
        (0.3, 207, 0.1505, "active"),
        (1.0, 900, 0.0498, "faint"),
    ],
)
def test_attention_decays_to_half_in_208_seconds(
    palace: Palace, save: Save, priority: float, seconds: int, value: float, place: str
) -> None:
    id_ = save("the rudder", "working", base_priority=priority).id
    with palace.ledger.read() as cx:
        item = get_item(cx, id_)
    now = item.last_accessed_at + seconds * SECOND
    assert attention(item, now) == pytest.approx(value, abs=0.002)
    assert attention(item, now) == pytest.approx(priority * math.exp(-seconds / 300))
    assert zone(item, now) == place


def test_the_least_attended_makes_room_and_what_was_used_is_filed(
    mind: Mind, palace: Palace, save: Save, clock: TurnedClock
) -> None:
    first = save("the oldest thought", "working")
    used = save("the second thought", "working")
    with palace.ledger.write() as cx:
        change_item(cx, used.id, was_referenced=True)
    for number in range(CAPACITY - 2):
        save(f"thought {number}", "working")
    saved = mind.save("one more", "working")
    assert mind.working_count() == CAPACITY
    assert "1 items of the least attention" in saved.notes[0]
    with pytest.raises(NotFoundError):
        mind.get(first.id)
    saved = mind.save("and another", "working")
    assert "what was used is filed" in saved.notes[0]
    assert [m.content for m in mind.recall("second", {"memory_type": "episodic"}).memories] == [
        "the second thought"
    ]
    assert clock.now


def test_a_session_that_ends_has_four_ways(
    mind: Mind, palace: Palace, save: Save, clock: TurnedClock
) -> None:
    faint = save("neither seen nor used", "working", session_id="s")
    used = save("used long ago", "working", session_id="s")
    with palace.ledger.write() as cx:
        change_item(cx, used.id, was_referenced=True)
    clock.now += 400 * SECOND
    done = save("done just now", "working", session_id="s", tags=["sail"])
    open_ = save("still open", "working", session_id="s")
    other = save("of another session", "working", session_id="t")
    ended = mind.session_end("s", completed=[done.id])
    assert (ended.kept, ended.completed, ended.referenced, ended.discarded) == (1, 1, 1, 1)
    with palace.ledger.read() as cx:
        assert {item.id for item in items(cx)} == {open_.id, other.id}
    filed = [mind.get(id_)[0] for id_ in ended.episodes]
    assert [(one.content, one.was_in_wm, one.session_id, one.tags) for one in filed] == [
        ("done just now", True, "s", ("sail",)),
        ("used long ago", True, "s", ()),
    ]
    again = mind.session_end("s")
    assert (again.kept, again.episodes) == (1, ())
    with pytest.raises(NotFoundError):
        mind.get(faint.id)


def test_to_route_changes_nothing_and_completed_and_faint_is_used(
    palace: Palace, save: Save, clock: TurnedClock
) -> None:
    save("a", "working")
    with palace.ledger.read() as cx:
        (item,) = items(cx)
    assert route([item], item.last_accessed_at).keep == (item,)
    assert route([item], item.last_accessed_at + 362 * SECOND).discard == (item,)
    assert route([item], item.last_accessed_at + 360 * SECOND).keep == (item,)


def test_to_preactivate_halves_the_time(palace: Palace, save: Save) -> None:
    id_ = save("a", "working").id
    with palace.ledger.write() as cx:
        before = get_item(cx, id_)
        assert preactivate(cx, id_, before.last_accessed_at + 100 * SECOND)
        after = get_item(cx, id_)
    assert after.last_accessed_at - before.last_accessed_at == 50 * SECOND
    assert not after.was_referenced


def test_what_is_asked_calls_endangered_items_back(mind: Mind, save: Save, clock: TurnedClock) -> None:
    near = save("rudder blade repair", "working")
    far = save("lunch", "working")
    mind.recall("warm the vectors up")
    clock.now += 700 * SECOND
    mind.recall("rudder blade repair", {"memory_type": "semantic"})
    assert mind.get(near.id)[0].attention_score > 0.9
    assert mind.get(far.id)[0].attention_score < 0.2

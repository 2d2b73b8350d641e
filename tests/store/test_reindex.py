"""Another embedder for a palace in use: built beside, gone on with, put in force, and the old one let go."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import select

from castle import novelty
from castle.errors import (
    EmbedderIdentityMismatchError,
    ModelError,
    PalaceBusyError,
    PalaceError,
    PalaceNotFoundError,
)
from castle.models.base import EmbedderIdentity
from castle.models.registry import load_embedder
from castle.records import Scope
from castle.search.pipeline import search
from castle.store import catchup, reading, reindex, spaces
from castle.store.catchup import behind, catch_up_lexicon, catch_up_vectors, refresh
from castle.store.novelty import scores
from castle.store.palace import Palace
from castle.store.places import forget
from castle.store.reading import changed_rows
from castle.store.repair import repair
from castle.store.schema import vectors as cache
from castle.store.status import status
from castle.store.verify import every_row, verify
from tests.conftest import TurnedClock
from tests.store import second
from tests.store.filer import file
from tests.store.second import SECOND, SecondEmbedder
from tests.store.test_redetect import TOKEN, older

WORDS = "harbour cellar key rose lantern sail bread winter letter bridge clock river stone garden".split()
QUERIES = ("harbour key", "winter bread letter", "the river at the bridge", "stone garden clock", "sail")
MINUTE = 60_000_000


@pytest.fixture(autouse=True)
def known() -> Iterator[None]:
    second.install()
    yield
    second.remove()


@pytest.fixture(autouse=True)
def wanting_none(palace: Palace) -> None:
    """Nobody asks for an embedder by name, in this process as in others."""
    palace.want(None)


def texts(first: int, count: int) -> list[str]:
    """Return sentences, the same for the same numbers."""
    made = []
    for number in range(first, first + count):
        chance = random.Random(number)
        made.append(f"{number}: {' '.join(chance.choices(WORDS, k=8))}.\n")
    return made


def fill(palace: Palace, count: int = 300) -> None:
    file(palace.ledger, texts(0, count), path="notes.md")
    refresh(palace, 60)


def vectors(palace: Palace) -> dict[str, list[float]]:
    ids = [row.id for rows in every_row(palace) for row in rows]
    return {id_: vector.tolist() for id_, vector in palace.vectors.vectors_of(ids).items()}


def top(palace: Palace) -> list[list[str]]:
    return [[hit.id for hit in search(palace, query, Scope(), 10).hits] for query in QUERIES]


def tables(palace: Palace) -> set[str]:
    return {place.name for place in (palace.root / "drawers.lance").glob("*.lance")}


def kept_embedders(palace: Palace) -> list[str]:
    with palace.ledger.read() as cx:
        assert spaces.embedders(cx) == sorted(set(cx.execute(select(cache.c.embedder)).scalars()))
        return spaces.embedders(cx)


def assert_like_one_made_with(palace: Palace, embedder: str, root: Path) -> None:
    """The palace holds and finds what one holds and finds that had the embedder from the start."""
    made = Palace(root, create=True, embedder=embedder, clock=palace.ledger.clock)
    with palace.ledger.read() as cx:
        rows = changed_rows(cx, 0, 100_000)
    by_source: dict[str, list[str]] = {}
    for row in rows:
        by_source.setdefault(row.source, []).append(row.text)
    for source, filed in by_source.items():
        file(made.ledger, filed, path=source.removeprefix("file:"))
    catch_up_lexicon(made)
    catch_up_vectors(made)
    assert vectors(palace) == vectors(made)
    assert top(palace) == top(made)
    assert palace.vectors.count() == made.vectors.count() == len(rows)
    made.close()


def other_embedder() -> SecondEmbedder:
    return SecondEmbedder()


def test_another_embedder_takes_the_place_of_the_first(palace: Palace, tmp_path: Path) -> None:
    fill(palace)
    told: list[tuple[str, int, int]] = []
    done = reindex.reindex(palace, other_embedder(), lambda *args: told.append(args))
    assert (done.before.name, done.after, done.drawers, done.behind) == ("fake", SECOND, 300, 0)
    assert told[-1] == ("embedding", 300, 300)
    assert [now for _, now, _ in told] == sorted(now for _, now, _ in told)
    assert palace.identity == SECOND
    assert palace.embedder.identity == SECOND
    assert behind(palace, palace.vectors) == 0
    assert {finding.status for finding in verify(palace)} == {"ok"}
    assert_like_one_made_with(palace, "second", tmp_path / "fresh")


def test_a_plan_changes_nothing_and_counts(palace: Palace) -> None:
    fill(palace)
    before = tables(palace)
    planned = reindex.plan(palace, other_embedder())
    assert (planned.before.name, planned.after.name) == ("fake", "second")
    assert (planned.drawers, planned.done) == (300, 0)
    assert planned.seconds > 0
    assert (tables(palace), palace.identity.name) == (before, "fake")


def test_without_another_embedder_every_vector_is_made_anew(palace: Palace) -> None:
    fill(palace, 20)
    right = vectors(palace)
    junk = np.ones(64, np.float16).tobytes()
    with palace.ledger.write() as cx:
        cx.exec_driver_sql("UPDATE vectors SET vector = ?", (junk,))
    palace.vectors.reset()
    catch_up_vectors(palace)
    assert vectors(palace) != right
    before = tables(palace)
    reindex.reindex(palace, load_embedder("fake"))
    assert palace.identity.name == "fake"
    assert vectors(palace) == right
    assert len(tables(palace) - before) == 1
    assert {finding.status for finding in verify(palace)} == {"ok"}
    assert kept_embedders(palace) == [palace.identity.identity]


def test_an_open_palace_follows_and_one_at_work_goes_on(palace: Palace) -> None:
    fill(palace, 50)
    other = Palace(palace.root)
    space = other.space
    assert space.embedder.identity.name == "fake"
    asked = top(other)
    reindex.reindex(palace, other_embedder())
    # What it began with the space before, it ends with it.
    found = space.vectors.search(space.embedder.embed_query("harbour key"), Scope(), 5)
    assert len(found) == 5
    file(other.ledger, texts(900, 3), path="late.md")
    with other.ledger.read() as cx:
        rows = changed_rows(cx, space.vectors.watermark().seq, 10)  # type: ignore[union-attr]
    matrix = catchup.vectors_for(other, space, rows, lambda _: None)
    assert matrix.shape == (3, 64)
    # Its next search is with the new one.
    assert other.space is not space
    assert other.space is other.space
    assert (other.identity, other.embedder.identity, other.vectors.dim) == (SECOND, SECOND, 48)
    assert not other.opened or other.space.opened
    assert len(top(other)) == len(asked)
    assert other.vectors.count() == 53
    other.close()


def test_a_vector_of_another_length_is_refused(palace: Palace) -> None:
    fill(palace, 5)
    with pytest.raises(ModelError, match="a vector of 48 was compared with vectors of 64"):
        palace.vectors.search(other_embedder().embed_query("key"), Scope(), 5)


def test_the_old_vectors_stay_for_readers_and_go_with_a_later_filing(
    palace: Palace, clock: TurnedClock
) -> None:
    fill(palace, 30)
    (old,) = tables(palace)
    reindex.reindex(palace, other_embedder())
    (new,) = tables(palace) - {old}
    clock.now += 8 * MINUTE
    file(palace.ledger, texts(500, 1), path="a.md")
    catch_up_vectors(palace)
    assert tables(palace) == {old, new}
    assert len(kept_embedders(palace)) == 2
    clock.now += 2 * MINUTE
    file(palace.ledger, texts(501, 1), path="b.md")
    catch_up_vectors(palace)
    assert tables(palace) == {new}
    assert kept_embedders(palace) == [SECOND.identity]
    assert palace.ledger.value(spaces.RETIRED) is None
    assert not list((palace.root / "drawers.lance").glob("*discarded*"))
    catch_up_lexicon(palace)
    assert {finding.status for finding in verify(palace)} == {"ok"}


def test_old_vectors_go_in_bounded_steps(
    palace: Palace, clock: TurnedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spaces, "FORGET_AT_ONCE", 7)
    fill(palace, 30)
    reindex.reindex(palace, other_embedder())
    clock.now += 11 * MINUTE
    left: list[int] = []
    while palace.ledger.value(spaces.RETIRED) is not None:
        file(palace.ledger, texts(500 + len(left), 1), path=f"{len(left)}.md")
        catch_up_vectors(palace, deadline=time.monotonic() + 0.001)
        with palace.ledger.read() as cx:
            left.append(
                len(cx.execute(select(cache.c.input).where(cache.c.embedder != SECOND.identity)).all())
            )
        assert len(left) < 20
    assert left[-1] == 0
    assert left == sorted(left, reverse=True)


def test_there_and_back_needs_no_embedding_while_the_cache_is_there(palace: Palace) -> None:
    fill(palace, 30)
    before, found = vectors(palace), top(palace)
    reindex.reindex(palace, other_embedder())

    class Idle(type(load_embedder("fake"))):  # type: ignore[misc]
        def embed_documents(self, texts: Sequence[str]) -> object:
            raise AssertionError("nothing was to be embedded")

    reindex.reindex(palace, Idle())
    assert palace.identity.name == "fake"
    assert (vectors(palace), top(palace)) == (before, found)


# Odd palaces


def test_an_empty_palace(palace: Palace) -> None:
    done = reindex.reindex(palace, other_embedder())
    assert (done.drawers, palace.identity) == (0, SECOND)
    assert reindex.plan(palace, other_embedder()).seconds == 0
    fill(palace, 3)
    assert palace.vectors.count() == 3
    assert {finding.status for finding in verify(palace)} == {"ok"}


def test_forgotten_drawers_have_no_vectors(palace: Palace) -> None:
    fill(palace, 10)
    with palace.ledger.read() as cx:
        gone = changed_rows(cx, 0, 1)[0].id
    forget(palace.ledger, id_=gone, source=None, wing=None, actor="test")
    reindex.reindex(palace, other_embedder())
    assert palace.vectors.count() == 9
    assert gone not in vectors(palace)


def test_a_palace_that_cannot_be_written(palace: Palace) -> None:
    fill(palace, 3)
    palace.close()
    if os.geteuid() == 0:
        palace.ledger.read_only = True
        closed = palace
    else:
        palace.root.chmod(0o500)
        closed = Palace(palace.root)
    try:
        for call in (reindex.plan, reindex.reindex):
            with pytest.raises(PalaceError, match="is read-only: its vectors cannot be made anew"):
                call(closed, other_embedder())
    finally:
        palace.root.chmod(0o700)


def test_the_second_says_who_is_at_work(palace: Palace) -> None:
    fill(palace, 10)
    held = palace.lock(reindex.LOCK)
    assert held.try_acquire()
    with pytest.raises(PalaceBusyError, match="another process has just begun"):
        reindex.reindex(palace, other_embedder())
    at_work = spaces.Building(spaces.Named(SECOND, "drawers_x"), False, 4711, "attic", palace.ledger.clock())
    with palace.ledger.write() as cx:
        spaces.set_building(cx, at_work)
    for call in (reindex.plan, reindex.reindex):
        with pytest.raises(
            PalaceBusyError, match="process 4711 on attic makes the vectors of second since 20"
        ):
            call(palace, other_embedder())
    held.release()
    reindex.reindex(palace, other_embedder())
    assert palace.identity == SECOND


# Interruptions


class Stop(Exception):
    pass


def stopping_after(batches: int) -> SecondEmbedder:
    count = 0

    def before(_: Sequence[str]) -> None:
        nonlocal count
        count += 1
        if count > batches:
            raise Stop

    return SecondEmbedder(before)


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reindex, "VECTOR_BATCH", 20)
    monkeypatch.setattr(catchup, "EMBED_BATCH", 5)


@pytest.mark.usefixtures("small_batches")
def test_a_run_goes_on_where_the_one_before_ended(palace: Palace) -> None:
    fill(palace, 100)
    with pytest.raises(Stop):
        reindex.reindex(palace, stopping_after(11))
    assert palace.identity.name == "fake"
    assert len(top(palace)[0]) == 10
    assert reindex.plan(palace, other_embedder()).done == 40
    told = (
        "new vectors of second (48): 40 of 100 made, then it was stopped; `castle reindex --embedder second`"
    )
    assert status(palace).reindex == f"{told} goes on"
    with palace.lock(reindex.LOCK):
        found = reindex.unfinished(palace)
        assert found is not None
        assert found.at_work
        assert f"40 of 100 made, process {os.getpid()} on " in found.told()
    embedded: list[str] = []
    reindex.reindex(palace, SecondEmbedder(embedded.extend))
    assert len(embedded) == 100 - 11 * 5
    assert palace.vectors.count() == 100
    assert status(palace).reindex == ""


@pytest.mark.usefixtures("small_batches")
def test_what_was_begun_for_another_embedder_is_waste(palace: Palace) -> None:
    fill(palace, 100)
    with pytest.raises(Stop):
        reindex.reindex(palace, stopping_after(11))
    assert len(tables(palace)) == 2

    class Third(SecondEmbedder):
        identity = EmbedderIdentity("third", 48, "third-hashing-48/1")

    reindex.reindex(palace, Third())
    assert len(tables(palace)) == 2
    assert kept_embedders(palace) == ["fake-hashing-64/1", "third-hashing-48/1"]


@pytest.mark.usefixtures("small_batches")
def test_a_damaged_table_is_begun_again(palace: Palace) -> None:
    fill(palace, 100)
    with pytest.raises(Stop):
        reindex.reindex(palace, stopping_after(11))
    with palace.ledger.read() as cx:
        built = spaces.building(cx)
    assert built is not None
    for part in (palace.root / "drawers.lance" / f"{built.space.table}.lance").rglob("*.lance"):
        part.write_bytes(b"damaged")
    reindex.reindex(palace, other_embedder())
    assert {finding.status for finding in verify(palace)} == {"ok"}


@pytest.mark.usefixtures("small_batches")
def test_a_table_that_somebody_throws_away_is_begun_again(palace: Palace) -> None:
    fill(palace, 100)
    other = Palace(palace.root)
    thrown: list[int] = []

    def before(_: Sequence[str]) -> None:
        if len(thrown) < 2:
            thrown.append(len(tables(palace)))
            with other.exclusively("vectors"):
                spaces.discard_others(other)

    reindex.reindex(palace, SecondEmbedder(before))
    assert len(thrown) == 2
    assert palace.vectors.count() == 100
    assert {finding.status for finding in verify(palace)} == {"ok"}
    other.close()


@pytest.mark.usefixtures("small_batches")
def test_an_older_ledger_that_was_put_back_makes_it_begin_again(palace: Palace, tmp_path: Path) -> None:
    fill(palace, 40)
    with pytest.raises(Stop):
        reindex.reindex(palace, stopping_after(6))
    with palace.ledger.write() as cx:
        cx.exec_driver_sql("UPDATE meta SET value = 'another' WHERE key = 'epoch'")
    assert reindex.plan(palace, other_embedder()).done == 0
    reindex.reindex(palace, other_embedder())
    refresh(palace, 60)
    assert {finding.status for finding in verify(palace)} == {"ok"}


def test_an_embedder_that_fails_leaves_the_palace_as_it_is(palace: Palace) -> None:
    fill(palace, 10)

    def fail(_: Sequence[str]) -> None:
        raise ModelError("the server is gone")

    found = top(palace)
    with pytest.raises(ModelError, match="the server is gone"):
        reindex.reindex(palace, SecondEmbedder(fail))
    assert (palace.identity.name, top(palace)) == ("fake", found)


def test_a_table_that_lacks_a_drawer_is_not_put_in_force(
    palace: Palace, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(palace, 10)
    monkeypatch.setattr("castle.store.vectors.Vectors.count", lambda self: 9)
    with pytest.raises(PalaceError, match="does not hold every drawer; nothing was changed"):
        reindex.reindex(palace, other_embedder())
    assert palace.identity.name == "fake"


def test_a_table_with_wrong_vectors_is_not_put_in_force(
    palace: Palace, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(palace, 10)
    right = catchup.vectors_for
    monkeypatch.setattr(reindex, "vectors_for", lambda *a, **k: np.roll(right(*a, **k), 1, axis=0))
    with pytest.raises(PalaceError, match="is not found in the new table; nothing was changed"):
        reindex.reindex(palace, other_embedder())
    assert palace.identity.name == "fake"


def test_writers_that_never_rest_do_not_keep_it_from_ending(palace: Palace) -> None:
    fill(palace, 10)
    count = 0

    def before(_: Sequence[str]) -> None:
        nonlocal count
        count += 1
        file(palace.ledger, texts(1000 + count, 1), path=f"{count}.md")

    done = reindex.reindex(palace, SecondEmbedder(before))
    assert done.behind == 1
    assert palace.identity == SECOND
    assert behind(palace, palace.vectors) == 1
    catch_up_vectors(palace)
    assert palace.vectors.count() == 10 + count


def test_what_was_found_to_be_secret_is_in_no_table_and_no_cache(tmp_path: Path) -> None:
    """A table that is built, and one that was in force before, hold what is filed, too."""
    root = tmp_path / "secretive"
    with older():
        made = Palace(root, create=True, embedder="fake")
        file(made.ledger, [f"the token is {TOKEN} for now", *texts(0, 5)])
        refresh(made, 60)
        reindex.reindex(made, other_embedder())
        reindex.reindex(made, load_embedder("fake"))
        with made.ledger.read() as cx:
            key = catchup.input_hash(changed_rows(cx, 0, 1)[0])
            kept = select(cache.c.embedder).where(cache.c.input == key)
            assert len(cx.execute(kept).all()) == 2
        assert len(tables(made)) == 3
        made.close()
    reading._masked.cache_clear()
    again = Palace(root)
    repair(again)
    with again.ledger.read() as cx:
        assert cx.execute(kept).all() == []
    assert len(tables(again)) == 1
    for part in (root / "drawers.lance").rglob("*"):
        assert part.is_dir() or TOKEN.encode() not in part.read_bytes()
    again.close()


def test_novelty_is_that_of_the_embedder_in_force(palace: Palace) -> None:
    fill(palace, 20)
    with palace.ledger.read() as cx:
        first = changed_rows(cx, 0, 20)
    novelty.backfill(palace)
    reindex.reindex(palace, other_embedder())
    with palace.ledger.read() as cx:
        assert scores(cx, [row.id for row in first]) == {}
    novelty.backfill(palace)
    with palace.ledger.read() as cx:
        assert len(scores(cx, [row.id for row in first])) == 20


# The mismatch


def test_the_mismatch_names_both_ways_out(tmp_path: Path) -> None:
    root = tmp_path / "a palace"
    made = Palace(root, create=True, embedder="fake")
    fill(made, 5)
    made.close()
    opened = Palace(root, embedder="second")
    with pytest.raises(EmbedderIdentityMismatchError) as caught:
        _ = opened.embedder
    message = str(caught.value)
    assert f"`castle reindex --palace '{root}' --embedder second --embedder-dim 48 --yes`" in message
    assert "`castle config set embedder_model fake`" in message
    assert "\n" not in message
    result = search(opened, "harbour", Scope(), 5)
    assert result.hits
    assert any(message in reason for reason in result.degraded)
    with pytest.raises(EmbedderIdentityMismatchError):
        catch_up_vectors(opened)
    file(opened.ledger, ["the harbour again\n"], path="other.md")
    opened.lexicon.reset()
    found = {finding.check: finding for finding in repair(opened)}
    assert found["words"].status == "ok"
    assert found["repair"].status == "failed"
    assert message in found["repair"].detail
    reindex.reindex(opened, other_embedder())
    assert not search(opened, "harbour", Scope(), 5).degraded
    opened.close()


@pytest.mark.parametrize(("dim", "identity"), [(1024, None), (None, "another/1")])
def test_vectors_that_are_not_what_the_settings_say(
    tmp_path: Path, dim: int | None, identity: str | None
) -> None:
    root = tmp_path / "another"
    key = "embedder_dim" if dim else "embedder_identity"
    with pytest.raises(EmbedderIdentityMismatchError, match=f"{key} asks for .*castle config unset {key}"):
        Palace(root, create=True, embedder="fake", dim=dim, identity=identity)
    with pytest.raises(PalaceNotFoundError):
        Palace(root)
    made = Palace(root, create=True, embedder="fake")
    fill(made, 5)
    made.close()
    # It is written to and searched by its words all the same.
    opened = Palace(root, create=True, dim=dim, identity=identity)
    file(opened.ledger, ["the harbour again\n"], path="other.md")
    result = search(opened, "harbour", Scope(), 5)
    assert result.hits
    assert any(key in reason for reason in result.degraded)
    opened.close()
    right = Palace(root, dim=made_by_fake().dim, identity=made_by_fake().identity)
    assert not search(right, "harbour", Scope(), 5).degraded
    right.close()


def made_by_fake() -> EmbedderIdentity:
    return load_embedder("fake").identity


def test_weights_that_have_changed_are_a_mismatch(palace: Palace, monkeypatch: pytest.MonkeyPatch) -> None:
    reindex.reindex(palace, other_embedder())
    fill(palace, 5)
    changed = EmbedderIdentity("second", 48, "second-hashing-48/2")
    monkeypatch.setattr(SecondEmbedder, "identity", changed)
    monkeypatch.setattr(second, "SECOND", changed)
    second.install()
    again = Palace(palace.root)
    result = search(again, "harbour", Scope(), 5)
    assert result.hits
    degraded = " ".join(result.degraded)
    assert f"castle reindex --palace {palace.root} --embedder second --embedder-dim 48 --yes" in degraded
    assert "second makes those of second-hashing-48/2 (dim 48) now" in degraded
    reindex.reindex(again, load_embedder("second"))
    assert again.identity == changed
    assert not search(again, "harbour", Scope(), 5).degraded
    again.close()


def test_a_ledger_that_names_no_embedder_costs_only_the_vectors(palace: Palace) -> None:
    fill(palace, 5)
    assert top(palace)
    with palace.ledger.write() as cx:
        cx.exec_driver_sql("UPDATE meta SET value = '{' WHERE key = 'embedder'")
    again = Palace(palace.root)
    for opened in (palace, again):
        for _ in range(2):
            result = search(opened, "harbour", Scope(), 5)
            assert result.hits
            assert "does not say which embedder it is for" in " ".join(result.degraded)
    again.close()


# Several processes

SCRIPT = """
import sys
from pathlib import Path
from castle.store.palace import Palace
from castle.store import reindex, catchup
from castle.store.catchup import refresh
from tests.store import second
from tests.store.filer import file
from tests.store.test_reindex import *
root = Path(sys.argv[1])
"""

REINDEX = (
    SCRIPT
    + """
reindex.VECTOR_BATCH, catchup.EMBED_BATCH = 40, 10
embedder = second.SecondEmbedder(second.slowly(root.parent / "log", float(sys.argv[2])))
palace = Palace(root)
print("ready", flush=True)
reindex.reindex(palace, embedder)
"""
)

WRITER = (
    SCRIPT
    + """
second.install()
number = int(sys.argv[2])
palace = Palace(root)
print("ready", flush=True)
for at in range(20):
    file(palace.ledger, texts(10_000 * number + 10 * at, 3), path=f"{number}-{at}.md")
    refresh(palace, 0.1)
    time.sleep(0.05)
"""
)

SEARCHER = (
    SCRIPT
    + """
second.install()
palace = Palace(root)
print("ready", flush=True)
for line in sys.stdin:
    result = search(palace, line.strip(), Scope(), 5)
    answer = [palace.space.embedder.identity.name, len(result.hits), list(result.degraded)]
    print(json.dumps(answer), flush=True)
"""
)


def start(script: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", script, *map(str, arguments)]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    first = process.stdout.readline()
    assert first == "ready\n", process.communicate()[1]
    return process


def ended(process: subprocess.Popen[str]) -> None:
    out, err = process.communicate(timeout=240)
    assert (process.returncode, err) == (0, ""), out


def test_a_running_process_notices_the_switch_at_its_next_search(palace: Palace) -> None:
    fill(palace, 100)
    running = start(SEARCHER, palace.root)

    def ask() -> list[object]:
        assert running.stdin is not None
        assert running.stdout is not None
        running.stdin.write("harbour key\n")
        running.stdin.flush()
        answer: list[object] = json.loads(running.stdout.readline())
        return answer

    assert ask() == ["fake", 5, []]
    ended(start(REINDEX, palace.root, 0.0))
    assert ask() == ["second", 5, []]
    ended(running)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.slow
def test_killed_at_any_point_it_goes_on(palace: Palace, tmp_path: Path, seed: int) -> None:
    fill(palace, 300)
    chance = random.Random(seed)
    kills = 0
    while kills < 4:
        worker = start(REINDEX, palace.root, 0.03)
        time.sleep(chance.random() * 0.5)
        worker.send_signal(signal.SIGKILL)
        worker.communicate()
        kills += 1
        assert len(top(palace)[0]) == 10
    ended(start(REINDEX, palace.root, 0.0))
    embedded = sum(map(int, (tmp_path / "log").read_text(encoding="ascii").split()))
    # Whatever a killed run had not written yet is at most a batch.
    assert 300 <= embedded <= 300 + kills * 10
    assert palace.identity == SECOND
    assert_like_one_made_with(palace, "second", tmp_path / "fresh")
    assert {finding.status for finding in verify(palace)} == {"ok"}


@pytest.mark.slow
def test_while_four_others_write(palace: Palace, tmp_path: Path) -> None:
    fill(palace, 200)
    writers = [start(WRITER, palace.root, number) for number in range(1, 5)]
    worker = start(REINDEX, palace.root, 0.2)
    searched = 0
    while worker.poll() is None:
        assert len(top(palace)[0]) == 10
        searched += 1
    ended(worker)
    for writer in writers:
        ended(writer)
    assert searched
    assert palace.identity == SECOND
    catch_up_lexicon(palace)
    catch_up_vectors(palace)
    with palace.ledger.read() as cx:
        assert len(changed_rows(cx, 0, 10_000)) == 200 + 4 * 20 * 3
    assert {finding.status for finding in verify(palace)} == {"ok"}
    assert_like_one_made_with(palace, "second", tmp_path / "fresh")


FULL = (
    SCRIPT
    + """
import resource
from castle.errors import CastleError
palace = Palace(root)
print("ready", flush=True)
sys.dont_write_bytecode = True  # that of a module would be cut off, and stay
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))
try:
    reindex.reindex(palace, second.SecondEmbedder())
except CastleError as error:
    print(type(error).__name__, error)
"""
)


@pytest.mark.parametrize("most", [8_000, pytest.param(150_000, marks=pytest.mark.slow)])
def test_a_disk_that_takes_no_more_is_one_line_and_costs_nothing(
    palace: Palace, tmp_path: Path, most: int
) -> None:
    fill(palace, 2000)
    found = top(palace)
    palace.close()
    process = start(FULL, palace.root, most)
    assert process.stdout is not None
    out = process.stdout.read()
    ended(process)
    assert out.count("\n") == 1, out
    assert out.startswith(("Palace", "Projection")), out
    assert (palace.identity.name, top(palace)) == ("fake", found)
    reindex.reindex(palace, other_embedder())
    assert_like_one_made_with(palace, "second", tmp_path / "fresh")

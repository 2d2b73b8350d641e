from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from castle import Castle
from castle.errors import CastleError, ConfigError, ModelError, NotFoundError, RefusedError, UsageError
from castle.mine import duplicates
from castle.mine.notes import MOST_CHARACTERS, Added
from castle.store.projection import ProjectionUnavailable
from castle.store.vectors import Vectors
from tests.mine.conftest import FILES, write
from tests.mine.test_convos import talk

LONG = "\n\n".join(f"## Part {n}\n\nThe lantern {n} hangs. " + f"rose{n} harbour " * 60 for n in range(6))
TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


def digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def add(castle: Castle, text: str, wing: str = "shop", room: str = "decisions") -> Added:
    return castle.add(text, wing=wing, room=room, added_by="me")


def exact(castle: Castle, id_: str) -> bytes:
    """Return the bytes of the note that a drawer is of, as the ledger holds them."""
    from castle.store.palace import Palace
    from castle.store.reading import members, named_source

    palace = Palace(castle.root)
    try:
        with palace.ledger.read() as cx:
            held = [drawer for drawer, _ in members(cx, named_source(cx, id_).key)]
    finally:
        palace.close()
    return b"".join(drawer.text.encode() if drawer.raw is None else drawer.raw for drawer in held)


def intact(castle: Castle) -> None:
    castle.repair()
    assert {finding.status for finding in castle.verify()} == {"ok"}


# Adding


def test_a_note_is_filed_word_for_word_and_found(castle: Castle) -> None:
    text = "  We chose GraphQL\r\nin May.\t\n"
    added = castle.add(text, wing="shop", room="decisions", source_file="docs/api.md", added_by="coder")
    assert (added.wing, added.room, added.sha256, added.reason) == ("shop", "decisions", digest(text), "")
    assert added.ids == (added.id,)
    (found,) = castle.get(added.id)
    assert (found.text, found.kind, found.added_by, found.state) == (text, "note", "coder", "current")
    assert found.address.path.startswith("docs/api.md (note:")
    assert castle.search("GraphQL", mode="fast").hits[0].id == added.id
    intact(castle)


def test_the_same_words_in_the_same_place_are_filed_once(castle: Castle) -> None:
    first = add(castle, "the same")
    again = castle.add("the same", wing="shop", room="decisions", source_file="elsewhere", added_by="other")
    assert again == Added(first.id, first.ids, "shop", "decisions", first.sha256, "already_exists")
    assert castle.list_drawers().total == 1
    others = [add(castle, "the same\n"), add(castle, "the same", "other"), add(castle, "the same", room="x")]
    assert len({first.id, *(other.id for other in others)}) == 4


def test_ids_follow_from_place_and_words(tmp_path: Path) -> None:
    ids = set()
    for name in ("one", "two"):
        with Castle(tmp_path / name, embedder="fake") as castle:
            ids.add(add(castle, LONG).ids)
    assert len(ids) == 1


def test_places_with_the_same_letters_are_told_apart(castle: Castle) -> None:
    ids = {castle.add("x", wing=wing, room=room).id for wing, room in (("ab", "c"), ("a", "bc"))}
    assert len(ids) == 2


def test_a_long_note_is_of_several_drawers_and_comes_back_exactly(castle: Castle) -> None:
    added = add(castle, LONG)
    assert len(added.ids) > 5
    assert added.sha256 == digest(LONG)
    assert "".join(found.text for found in castle.get_source(added.id)) == LONG
    assert add(castle, LONG).ids == added.ids


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(st.characters(), min_size=1, max_size=2500).filter(lambda text: bool(text.strip())))
def test_any_text_is_kept_byte_for_byte(castle: Castle, text: str) -> None:
    added = castle.add(text, wing="w", room="r")
    assert added.sha256 == digest(text)
    assert exact(castle, added.id) == text.encode("utf-8", "surrogatepass")


@pytest.mark.parametrize(
    "text", ["a\x00b", "a\ud800b", "\udfff\ud83d", "e\u0301\u202e\ufeff\U0010ffff", "\x00" * 900]
)
def test_extremes_of_unicode_are_kept_and_can_be_shown(castle: Castle, text: str) -> None:
    added = add(castle, text)
    assert exact(castle, added.id) == text.encode("utf-8", "surrogatepass")
    shown = "".join(found.text for found in castle.get_source(added.id))
    assert len(shown) == len(text)
    assert not re.search("[\x00\ud800-\udfff]", shown)
    assert add(castle, text).reason == "already_exists"
    assert castle.check_duplicate(text).is_duplicate
    intact(castle)


def test_a_megabyte_is_a_note(castle: Castle) -> None:
    text = "".join(f"Line {n}: the harbour at dawn, berth {n * 7}.\n" for n in range(25_000))
    assert len(text) > 1_000_000
    added = add(castle, text)
    assert added.sha256 == digest(text)
    assert len(added.ids) > 1000
    assert exact(castle, added.id) == text.encode()
    changed = castle.update(
        added.ids[700], "A new line.\n", expected_sha256=castle.get(added.ids[700])[0].sha256
    )
    assert changed.revision == 2
    assert len(exact(castle, changed.id)) < len(text)


@pytest.mark.parametrize("text", ["", " \n\t", "x" * (MOST_CHARACTERS + 1)])
def test_what_is_no_note_is_refused(castle: Castle, text: str) -> None:
    with pytest.raises(UsageError):
        add(castle, text)
    note = add(castle, "a note")
    with pytest.raises(UsageError):
        castle.update(note.id, text)


@pytest.mark.parametrize(
    ("wing", "room"), [("", "r"), ("../x", "r"), ("w", "a/b"), ("w", "x" * 200), ("w\n", "r")]
)
def test_what_is_no_place_is_refused(castle: Castle, wing: str, room: str) -> None:
    with pytest.raises(ConfigError):
        castle.add("text", wing=wing, room=room)
    with pytest.raises(ConfigError):
        castle.update(add(castle, "text").id, wing=wing, room=room)


def test_names_that_are_too_long_are_refused(castle: Castle) -> None:
    for more in ({"source_file": "x" * 301}, {"added_by": "x" * 301}):
        with pytest.raises(UsageError, match="301 characters"):
            castle.add("text", wing="w", room="r", **more)


def test_the_present_name_of_a_wing_is_used(castle: Castle) -> None:
    first = add(castle, "before")
    castle.rename_wing("shop", "store")
    assert add(castle, "before").ids == first.ids
    assert add(castle, "after").wing == "store"
    other = castle.add("other", wing="x", room="y")
    assert castle.update(other.id, wing="shop").wing == "store"


def test_secrets_are_sealed_everywhere(castle: Castle) -> None:
    added = castle.add(f"the token is {TOKEN}\n", wing="w", room="r", source_file=f"{TOKEN}.txt")
    (found,) = castle.get(added.id)
    assert TOKEN not in repr(found) and "«secret:" in found.text
    assert TOKEN not in repr(castle.search("token", mode="fast"))
    changed = castle.update(added.id, f"{found.text}It was changed.\n")
    assert TOKEN.encode() not in exact(castle, changed.id)
    (told,) = changed.notes
    assert "«secret:" in told and "revision 1" in told
    assert TOKEN not in repr(castle.check_duplicate(f"the token is {TOKEN}\n"))


def test_adding_loads_no_model(castle: Castle, monkeypatch: pytest.MonkeyPatch) -> None:
    def load(*_: object) -> None:
        raise AssertionError("a model was loaded")

    monkeypatch.setattr("castle.store.palace.load_embedder", load)
    added = add(castle, "The lantern hangs by the door.")
    castle.update(added.id, "The lantern hangs by the gate.")
    monkeypatch.undo()
    hit = castle.search("lantern gate").hits[0]
    assert "gate" in hit.text
    assert not castle.search("lantern gate").degraded


# Changing


def test_another_text_is_the_next_revision_and_the_old_one_is_kept(castle: Castle) -> None:
    added = castle.add("We chose GraphQL.", wing="shop", room="decisions", source_file="api.md")
    changed = castle.update(added.id, "We chose REST.", added_by="coder")
    assert (changed.previous, changed.revision, changed.noop) == (added.id, 2, False)
    assert (changed.wing, changed.room, changed.sha256) == ("shop", "decisions", digest("We chose REST."))
    assert changed.id != added.id
    now, before = castle.get(changed.id)[0], castle.get(added.id)[0]
    assert (now.state, now.text, now.added_by) == ("current", "We chose REST.", "coder")
    assert (before.state, before.text) == ("superseded", "We chose GraphQL.")
    assert now.address.path == before.address.path
    assert [hit.id for hit in castle.search("We chose", mode="fast").hits] == [changed.id]
    assert {hit.id for hit in castle.search("We chose", mode="fast", history=True).hits} == {
        added.id,
        changed.id,
    }
    intact(castle)


def test_a_text_may_come_back(castle: Castle) -> None:
    first = add(castle, "one")
    second = castle.update(first.id, "two")
    third = castle.update(second.id, "one")
    assert (third.id, third.revision) == (first.id, 3)
    intact(castle)


def test_what_was_said_before_may_be_filed_anew(castle: Castle) -> None:
    first = add(castle, "one")
    changed = castle.update(first.id, "two")
    anew = add(castle, "one")
    assert anew.reason == "" and anew.id not in (first.id, changed.id)
    castle.forget(anew.id)
    assert add(castle, "one").reason == ""
    assert add(castle, "two").ids == (changed.id,)
    intact(castle)


def test_a_note_moves_with_all_its_drawers(castle: Castle) -> None:
    added = add(castle, LONG)
    moved = castle.update(added.ids[2], wing="archive")
    assert (moved.id, moved.previous, moved.revision) == (added.ids[2], added.ids[2], 1)
    assert (moved.wing, moved.room) == ("archive", "decisions")
    both = castle.update(added.ids[0], room="old")
    assert (both.wing, both.room) == ("archive", "old")
    assert {(place.wing, place.room, place.current) for place in castle.places() if place.current} == {
        ("archive", "old", len(added.ids))
    }
    assert add(castle, LONG, "archive", "old").reason == "already_exists"
    assert castle.search("lantern", wing="archive", room="old", mode="fast").hits
    intact(castle)


def test_text_and_place_change_at_once(castle: Castle) -> None:
    changed = castle.update(add(castle, "one").id, "two", wing="other", room="place")
    assert (changed.wing, changed.room, changed.revision) == ("other", "place", 2)
    assert castle.get(changed.id)[0].wing == "other"


@pytest.mark.parametrize(
    "change", [{}, {"text": "one"}, {"wing": "shop"}, {"room": "decisions", "text": "one"}]
)
def test_nothing_new_changes_nothing(castle: Castle, change: dict[str, str]) -> None:
    added = add(castle, "one")
    changed = castle.update(added.id, **change)
    assert (changed.noop, changed.id, changed.revision, changed.sha256) == (True, added.id, 1, added.sha256)


def test_the_hash_says_what_of_a_long_note_is_replaced(castle: Castle) -> None:
    added = add(castle, LONG)
    part = castle.get(added.ids[2])[0]
    with pytest.raises(UsageError) as asked:
        castle.update(part.id, "short")
    assert part.sha256 in str(asked.value) and added.sha256 in str(asked.value)
    one = castle.update(part.id, "Only this. ", expected_sha256=part.sha256.upper())
    now = "".join(found.text for found in castle.get_source(one.id))
    assert now == LONG.replace(part.text, "Only this. ")
    assert one.sha256 == digest(now)
    assert "Only this." in castle.get(one.id)[0].text
    whole = castle.update(one.id, "All of it.", expected_sha256=one.sha256)
    assert (whole.sha256, whole.revision) == (digest("All of it."), 3)
    assert [found.text for found in castle.get_source(whole.id)] == ["All of it."]
    intact(castle)


def test_what_was_changed_since_is_not_overwritten(castle: Castle) -> None:
    added = add(castle, "one")
    changed = castle.update(added.id, "two", expected_sha256=added.sha256)
    with pytest.raises(RefusedError, match=f"superseded.*{changed.id}"):
        castle.update(added.id, "three")
    with pytest.raises(RefusedError, match="changed since"):
        castle.update(changed.id, "three", expected_sha256=added.sha256)
    with pytest.raises(RefusedError, match="changed since"):
        castle.update(changed.id, wing="x", expected_sha256="0" * 64)
    with pytest.raises(UsageError, match="SHA-256"):
        castle.update(changed.id, "three", expected_sha256="abc")
    assert castle.get(changed.id)[0].text == "two"


def test_what_comes_from_elsewhere_is_changed_there(castle: Castle, project: Path, tmp_path: Path) -> None:
    castle.mine_project(project)
    transcript = tmp_path / "s1.jsonl"
    transcript.write_text("".join(talk(2)), encoding="utf-8")
    castle.mine_conversations(transcript)
    entry = castle.diary_write("coder", "an entry")
    file, said = (
        castle.list_drawers(source=str(path)).drawers[0].id for path in (project / "notes.txt", transcript)
    )
    for id_, why in ((file, "notes.txt"), (said, "session"), (entry.drawers[0], "diary")):
        for change in ({"text": "other"}, {"wing": "other"}, {}):
            with pytest.raises(RefusedError, match=why) as refused:
                castle.update(id_, **change)
            assert "\n" not in str(refused.value)
    with pytest.raises(NotFoundError):
        castle.update("abcdef012345", "x")
    assert castle.list_drawers(wing="other").total == 0


def test_forgotten_drawers_are_left_alone(castle: Castle) -> None:
    added = add(castle, LONG)
    castle.forget(added.ids[1])
    with pytest.raises(RefusedError, match="castle restore"):
        castle.update(added.ids[1], "x", expected_sha256=added.sha256)
    part = castle.get(added.ids[2])[0]
    with pytest.raises(RefusedError, match="forgotten"):
        castle.update(part.id, "x", expected_sha256=part.sha256)
    changed = castle.update(part.id, "all new", expected_sha256=added.sha256)
    assert castle.get(added.ids[1])[0].state == "forgotten"
    assert [found.text for found in castle.get_source(changed.id)] == ["all new"]
    castle.restore(added.ids[1])
    assert castle.get(added.ids[1])[0].state == "superseded"
    intact(castle)


def test_what_cannot_be_read_back_is_not_filed(castle: Castle, monkeypatch: pytest.MonkeyPatch) -> None:
    add(castle, "one")
    monkeypatch.setattr("castle.mine.notes.members", lambda *_: iter(()))
    with pytest.raises(CastleError, match="nothing was changed"):
        add(castle, "two")
    monkeypatch.undo()
    assert castle.list_drawers().total == 1


# Two processes

ADDER = """
import sys
from castle import Castle
with Castle(sys.argv[1]) as castle:
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(20):
        added = castle.add(f"note {number} " * 200, wing="w", room="r")
        print(added.reason or "new", *added.ids, flush=True)
"""

CHANGER = """
import sys
from castle import Castle
from castle.errors import RefusedError
with Castle(sys.argv[1]) as castle:
    id, mine = sys.argv[2], 0
    print("ready", flush=True)
    sys.stdin.readline()
    while mine < 10:
        text = castle.get(id)[0].text
        try:
            id = castle.update(id, f"{text}{sys.argv[3]}{mine} ").id
            mine += 1
        except RefusedError as error:
            id = str(error).split("begins with drawer ")[1].split(":")[0]
    print(id, flush=True)
"""


def together(code: str, *calls: tuple[str, ...]) -> list[list[str]]:
    """Run processes that begin at the same time; return the lines that each wrote."""
    running = [
        subprocess.Popen(
            [sys.executable, "-c", code, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for arguments in calls
    ]
    for process in running:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in running:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    ended = [process.communicate(timeout=120) for process in running]
    assert [process.returncode for process in running] == [0] * len(running), ended
    return [out.splitlines() for out, _ in ended]


def test_processes_that_add_the_same_at_once_file_it_once(tmp_path: Path) -> None:
    with Castle(tmp_path / "palace", embedder="fake") as castle:
        add(castle, "before")
    root = str(tmp_path / "palace")
    found = together(ADDER, (root,), (root,), (root,))
    ids = [[line.split()[1:] for line in lines] for lines in found]
    assert ids[0] == ids[1] == ids[2]
    for lines in zip(*found, strict=True):
        assert sorted(line.split()[0] for line in lines) == ["already_exists", "already_exists", "new"]
    with Castle(root) as castle:
        assert castle.list_drawers(room="r").total == sum(len(note) for note in ids[0])
        intact(castle)


def test_no_change_of_another_process_is_lost(tmp_path: Path) -> None:
    with Castle(tmp_path / "palace", embedder="fake") as castle:
        added = add(castle, "start ")
    root = str(tmp_path / "palace")
    together(CHANGER, (root, added.id, "a"), (root, added.id, "b"))
    with Castle(root) as castle:
        (last,) = castle.list_drawers().drawers
        assert sorted(last.text.split()) == sorted(
            ["start", *(f"{who}{number}" for who in "ab" for number in range(10))]
        )
        assert castle.list_drawers(history=True).total == 21
        intact(castle)


MOVER = """
import sys
from castle import Castle
from castle.errors import RefusedError
with Castle(sys.argv[1]) as castle:
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(15):
        added = castle.add("the same text", wing="w", room="r")
        try:
            changed = castle.update(added.id, f"{sys.argv[2]} {number}", expected_sha256=added.sha256)
            print("changed", added.id, changed.id, flush=True)
        except RefusedError:
            print("refused", added.id, flush=True)
"""


def test_adding_while_another_changes_the_same_loses_nothing(tmp_path: Path) -> None:
    with Castle(tmp_path / "palace", embedder="fake") as castle:
        add(castle, "before")
    root = str(tmp_path / "palace")
    lines = [line.split() for lines in together(MOVER, (root, "a"), (root, "b")) for line in lines]
    changed = [line for line in lines if line[0] == "changed"]
    assert len({line[1] for line in changed}) == len({line[2] for line in changed}) == len(changed)
    with Castle(root) as castle:
        held = castle.list_drawers(wing="w", limit=100).drawers
        assert {drawer.id for drawer in held if drawer.text != "the same text"} == {
            line[2] for line in changed
        }
        assert castle.list_drawers(wing="w", history=True).total == len(held) + len(changed)
        intact(castle)


# Duplicates


def test_equal_texts_are_found_without_a_model(castle: Castle, monkeypatch: pytest.MonkeyPatch) -> None:
    added = [add(castle, "The lantern hangs by the door."), add(castle, LONG)]

    def load(*_: object) -> None:
        raise ModelError("no model")

    monkeypatch.setattr("castle.store.palace.load_embedder", load)
    for note, text in zip(added, ("The lantern hangs by the door.\n", LONG), strict=True):
        found = castle.check_duplicate(text)
        assert found.is_duplicate and not found.degraded
        assert {match.id for match in found.matches} <= set(note.ids)
        assert {match.similarity for match in found.matches} == {1.0}
    other = castle.check_duplicate("Nothing like it was said.")
    assert (other.is_duplicate, other.matches) == (False, ())
    assert other.degraded == ("only equal texts were found: no model",)


def test_nearly_equal_texts_are_found_by_their_meaning(castle: Castle, project: Path) -> None:
    castle.mine_project(project)
    added = add(castle, "The brass lantern hangs by the garden door since May")
    near = castle.check_duplicate("The brass lantern hangs by the garden door since June", threshold=0.8)
    assert near.is_duplicate
    assert near.matches[0].id == added.id
    assert 0.8 <= near.matches[0].similarity < 1
    assert (near.matches[0].wing, near.matches[0].room) == ("shop", "decisions")
    assert not castle.check_duplicate(
        "The brass lantern hangs by the garden door", threshold=0.999
    ).is_duplicate
    assert castle.check_duplicate(FILES["notes.txt"]).is_duplicate
    assert castle.check_duplicate("unheard of", threshold=0).matches


def test_a_long_text_is_a_duplicate_when_all_of_it_is_filed(castle: Castle) -> None:
    add(castle, LONG)
    half = castle.check_duplicate(f"{LONG}\n\n## Part 7\n\n" + "Unheard zebra violin cascade. " * 20)
    assert not half.is_duplicate
    assert {match.similarity for match in half.matches} == {1.0}
    assert len(half.matches[0].text) <= 200
    endless = castle.check_duplicate("".join(f"Zebra {n} plays violin {n * 3}.\n" for n in range(2000)))
    assert not endless.is_duplicate
    assert any("by hash only" in reason for reason in endless.degraded)


def test_what_is_forgotten_or_superseded_is_no_duplicate(castle: Castle) -> None:
    added = add(castle, "one lantern")
    changed = castle.update(added.id, "two harbours")
    assert not castle.check_duplicate("one lantern").is_duplicate
    castle.forget(changed.id)
    assert castle.check_duplicate("two harbours", threshold=0.9).matches == ()


def test_missing_vectors_are_told(castle: Castle, monkeypatch: pytest.MonkeyPatch) -> None:
    add(castle, "one lantern")

    def broken(*_: object) -> None:
        raise ProjectionUnavailable("the table is damaged")

    monkeypatch.setattr(Vectors, "search", broken)
    assert "the table is damaged" in castle.check_duplicate("one harbour").degraded[0]
    monkeypatch.undo()
    for place in ("castle.mine.duplicates", "castle.store.catchup"):
        monkeypatch.setattr(f"{place}.catch_up_vectors", lambda *_, **__: None)
    add(castle, "two lanterns")
    (told,) = castle.check_duplicate("two harbours").degraded
    assert told.endswith("no vector yet: 1")


@pytest.mark.parametrize(
    ("text", "threshold"), [("", 0.9), (" ", 0.9), ("x", -0.1), ("x", 1.1), ("x" * 1_000_001, 0.9)]
)
def test_what_cannot_be_compared_is_refused(castle: Castle, text: str, threshold: float) -> None:
    add(castle, "a note")
    with pytest.raises(UsageError):
        castle.check_duplicate(text, threshold=threshold)


def test_files_beside_notes_keep_their_names(castle: Castle, project: Path) -> None:
    write(project, {"docs/api.md": "# API\n"})
    castle.mine_project(project)
    castle.add("about the API", wing="w", room="r", source_file=str(project / "docs/api.md"))
    assert castle.list_drawers(source="docs/api.md").total == 1
    assert castle.list_drawers(source=str(project / "docs/api.md")).total == 1


def test_a_note_that_has_no_vector_yet_gets_it_before_it_is_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(duplicates, "HASTY_SECONDS", 0.0)
    with Castle(tmp_path / "palace", embedder="fake") as castle:
        castle.add("The harbour lamp is red and tall.", wing="shop", room="lamps")
        castle.add("The gate is painted green.", wing="shop", room="gates")
        with monkeypatch.context() as patch:
            patch.setattr(duplicates, "FEW", 1)
            late = castle.check_duplicate("The harbour lamp is red and tall!", threshold=0.9)
        assert late.degraded
        found = castle.check_duplicate("The harbour lamp is red and tall!", threshold=0.9)
    assert (found.is_duplicate, found.degraded) == (True, ())

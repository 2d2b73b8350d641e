from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from castle.records import Scope
from castle.store.lexicon import MAX_WORDS, Lexicon
from castle.store.projection import ProjectionBusy, ProjectionUnavailable, Watermark
from tests.store.rows import make_row

CURRENT = Scope()


@pytest.fixture
def lexicon(tmp_path: Path) -> Lexicon:
    return Lexicon(tmp_path / "lexicon")


@pytest.fixture(scope="module")
def filled() -> Iterator[Lexicon]:
    with tempfile.TemporaryDirectory() as directory:
        lexicon = Lexicon(Path(directory) / "lexicon")
        lexicon.apply([make_row(number) for number in range(50)], Watermark("e", 50))
        yield lexicon


def found(lexicon: Lexicon, text: str, scope: Scope = CURRENT, limit: int = 10) -> list[str]:
    return [match.id for match in lexicon.search(text, scope, limit)]


def ids(*numbers: int) -> list[str]:
    return [make_row(number).id for number in numbers]


def test_words_of_text_context_and_path_are_found(lexicon: Lexicon) -> None:
    rows = [
        make_row(1, "The lighthouses were painted"),
        make_row(2, "nothing to see", context="Harbour › Lighthouse"),
        make_row(3, "nothing to see", title="docs/lighthouse.md"),
        make_row(4, "nothing at all", title="docs/pier.md"),
    ]
    lexicon.apply(rows, Watermark("e", 4))
    assert set(found(lexicon, "lighthouse")) == set(ids(1, 2, 3))
    assert found(lexicon, "lighthouse")[0] == ids(1)[0]
    match = lexicon.search("a painting of a lighthouse", CURRENT, 10)[0]
    assert match.matched == ("painting", "lighthouse")
    assert match.sha256 == rows[0].sha256
    assert match.score > 0


def test_a_phrase_in_quotation_marks_counts_again(lexicon: Lexicon) -> None:
    rows = [make_row(1, "red boat and the old house"), make_row(2, "the boat is old and red, red, red")]
    lexicon.apply(rows, Watermark("e", 2))
    assert found(lexicon, "old red")[0] == ids(2)[0]
    assert found(lexicon, 'red "old house"') == ids(1, 2)


def test_the_watermark_comes_with_the_batch(lexicon: Lexicon) -> None:
    assert lexicon.watermark() is None
    lexicon.apply([make_row(1)], Watermark("epoch", 7))
    assert lexicon.watermark() == Watermark("epoch", 7)
    lexicon.apply([], Watermark("epoch", 9))
    assert Lexicon(lexicon.path).watermark() == Watermark("epoch", 9)
    assert lexicon.count() == 1
    assert found(lexicon, "#watermark epoch") == []


def test_applying_twice_changes_nothing(lexicon: Lexicon) -> None:
    rows = [make_row(1), make_row(2), make_row(2, "a later text")]
    for _ in range(2):
        lexicon.apply(rows, Watermark("e", 2))
        assert lexicon.count() == 2
        assert found(lexicon, "later") == ids(2)


def test_forgotten_rows_go_and_come_back(lexicon: Lexicon) -> None:
    lexicon.apply([make_row(1), make_row(2)], Watermark("e", 2))
    lexicon.apply([make_row(1, state="forgotten", text="")], Watermark("e", 3))
    assert found(lexicon, "note", Scope(history=True)) == ids(2)
    assert lexicon.ids_present(ids(1, 2, 3)) == set(ids(2))
    lexicon.apply([make_row(1)], Watermark("e", 4))
    assert lexicon.ids_present(ids(1, 2, 3)) == set(ids(1, 2))


@pytest.mark.parametrize(
    ("scope", "numbers"),
    [
        (Scope(), {0, 1, 2, 3}),
        (Scope(wing='it\'s "w"'), {1}),
        (Scope(room="other"), {2}),
        (Scope(role="assistant"), {3}),
        (Scope(source="s2"), {2}),
        (Scope(kinds=("tool", "prose")), {0, 1, 2, 3, 4}),
        (Scope(kinds=("thinking",)), set()),
        (Scope(history=True), {0, 1, 2, 3, 5}),
        (Scope(since=2000, until=3000), {2}),
        (Scope(until=2000), {0, 1}),
        (Scope(as_of=2000), {0, 1, 2}),
        (Scope(as_of=5000), {0, 1, 2, 3, 5}),
        (Scope(as_of=5999), {0, 1, 2, 3, 5}),
        (Scope(as_of=6000), {0, 1, 2, 3}),
        (Scope(wing="\udcff"), set()),
    ],
)
def test_scope(lexicon: Lexicon, scope: Scope, numbers: set[int]) -> None:
    rows = [
        make_row(0),
        make_row(1, wing='it\'s "w"'),
        make_row(2, room="other", source="s2"),
        make_row(3, role="assistant"),
        make_row(4, kind="tool"),
        make_row(5, state="superseded", ended_at=6000),
    ]
    lexicon.apply(rows, Watermark("e", 6))
    assert set(found(lexicon, "note", scope)) == set(ids(*numbers))


def test_scope_comes_before_the_limit_and_ties_go_by_id(lexicon: Lexicon) -> None:
    rows = [make_row(number, "harbour " * 5) for number in range(300)]
    lexicon.apply([*rows, make_row(300, "one harbour among others", wing="small")], Watermark("e", 301))
    assert found(lexicon, "harbour", Scope(wing="small"), 1) == ids(300)
    assert found(lexicon, "harbour", limit=7) == sorted(ids(*range(300)))[:7]
    assert found(lexicon, "harbour", limit=0) == []


def test_a_query_of_too_many_words_is_cut_to_the_rarest(lexicon: Lexicon) -> None:
    common = " ".join(f"c{number}" for number in range(1200))
    lexicon.apply([make_row(1, common), make_row(2, common), make_row(3, "needle")], Watermark("e", 3))
    matches = lexicon.search(f"{common} needle", CURRENT, 10)
    assert matches.truncated
    assert {match.id for match in matches} == set(ids(1, 2, 3))
    by_id = {match.id: match.matched for match in matches}
    assert by_id[ids(3)[0]] == ("needle",)
    assert len(by_id[ids(1)[0]]) == MAX_WORDS - 1
    assert not lexicon.search("needle", CURRENT, 10).truncated


@given(st.text(st.characters(), max_size=60))
def test_any_text_is_a_legal_query(filled: Lexicon, text: str) -> None:
    for match in filled.search(text, CURRENT, 5):
        assert match.matched


@pytest.mark.parametrize(
    "text", ["", " \n", "+-!(){}", 'AND OR "', '""""', "\x00", "\ud800", "a:b AND (", "x" * 10_000]
)
def test_hostile_queries_match_nothing(filled: Lexicon, text: str) -> None:
    assert filled.search(text, CURRENT, 5) == []


@given(st.text(st.characters(), min_size=1, max_size=40))
def test_any_text_can_be_filed(text: str) -> None:
    lexicon = Lexicon(None)
    lexicon.apply([make_row(1, text, wing=text, context=text, title=text)], Watermark("e", 1))
    assert found(lexicon, "", Scope(wing=text)) == []
    assert lexicon.count() == 1


def test_in_memory() -> None:
    lexicon = Lexicon(None)
    assert lexicon.watermark() is None
    lexicon.apply([make_row(1)], Watermark("", 1))
    lexicon.apply([make_row(2)], Watermark("", 2))
    assert set(found(lexicon, "harbour")) == set(ids(1, 2))
    assert lexicon.disk_bytes() == 0
    lexicon.reset()
    with pytest.raises(ProjectionUnavailable):
        lexicon.count()


def test_another_process_is_seen(lexicon: Lexicon) -> None:
    lexicon.apply([make_row(1)], Watermark("e", 1))
    reader = Lexicon(lexicon.path)
    assert found(reader, "harbour") == ids(1)
    lexicon.apply([make_row(2)], Watermark("e", 2))
    assert reader.watermark() == Watermark("e", 2)
    assert set(found(reader, "harbour")) == set(ids(1, 2))
    lexicon.reset()
    assert reader.watermark() is None
    lexicon.apply([make_row(3)], Watermark("f", 1))
    assert found(reader, "harbour") == ids(3)


def test_a_second_writer_is_told(lexicon: Lexicon) -> None:
    import tantivy

    lexicon.apply([make_row(1)], Watermark("e", 1))
    writer = tantivy.Index.open(str(lexicon.path)).writer(15_000_000, 1)
    with pytest.raises(ProjectionBusy):
        Lexicon(lexicon.path).apply([make_row(2)], Watermark("e", 2))
    del writer
    Lexicon(lexicon.path).apply([make_row(2)], Watermark("e", 2))


def test_missing(lexicon: Lexicon) -> None:
    assert lexicon.watermark() is None
    assert lexicon.disk_bytes() == 0
    with pytest.raises(ProjectionUnavailable, match="castle repair"):
        lexicon.search("harbour", CURRENT, 5)
    lexicon.reset()


def test_damage_is_found_before_it_is_written_to(lexicon: Lexicon) -> None:
    assert lexicon.path is not None
    lexicon.apply([make_row(number) for number in range(100)], Watermark("e", 100))
    assert Lexicon(lexicon.path).damaged_files() == []
    for suffix in (".term", ".pos", ".idx", ".store", ".fast", ".fieldnorm"):
        file = next(lexicon.path.glob(f"*{suffix}"))
        whole = file.read_bytes()
        file.write_bytes(whole[:5] + bytes([whole[5] ^ 255]) + whole[6:])
        reader = Lexicon(lexicon.path)
        assert reader.damaged_files() == [file.name]
        with pytest.raises(ProjectionUnavailable, match="repair"):
            reader.apply([make_row(1)], Watermark("e", 101))
        file.write_bytes(whole[:-3])
        assert Lexicon(lexicon.path).damaged_files() == [file.name]
        file.write_bytes(whole)
    (lexicon.path / "meta.json").write_bytes(b"{")
    broken = Lexicon(lexicon.path)
    assert broken.watermark() is None
    assert broken.damaged_files() == ["meta.json"]
    with pytest.raises(ProjectionUnavailable):
        broken.apply([make_row(1)], Watermark("e", 101))
    broken.reset()
    broken.apply([make_row(1)], Watermark("f", 1))
    assert broken.watermark() == Watermark("f", 1)


@pytest.mark.slow
def test_many_small_commits_stay_few_files(lexicon: Lexicon) -> None:
    assert lexicon.path is not None
    (lexicon.path).mkdir()
    (lexicon.path / ".tmpKilled").write_bytes(b"x")
    for number in range(150):
        lexicon.apply([make_row(number)], Watermark("e", number))
    assert lexicon.count() == 150
    assert len(list(lexicon.path.iterdir())) < 150
    assert not (lexicon.path / ".tmpKilled").exists()


def test_what_a_killed_writer_left_is_in_nobodys_way(lexicon: Lexicon) -> None:
    assert lexicon.path is not None
    lexicon.apply([make_row(number) for number in range(5)], Watermark("e", 5))
    lexicon.apply([make_row(1, "another")], Watermark("e", 6))
    meta = json.loads((lexicon.path / "meta.json").read_bytes())
    live = {segment["segment_id"].replace("-", ""): segment["deletes"] for segment in meta["segments"]}
    for segment in live:
        for opstamp in range(meta["opstamp"] + 1, meta["opstamp"] + 30):
            (lexicon.path / f"{segment}.{opstamp}.del").write_bytes(b"half")
    assert lexicon.damaged_files() == []
    lexicon.apply([make_row(1, "a third"), make_row(2, "a fourth")], Watermark("e", 8))
    assert lexicon.watermark() == Watermark("e", 8)
    assert lexicon.count() == 5
    assert lexicon.damaged_files() == []


READ_ONLY = """
import os, sys
from pathlib import Path
import tantivy
from castle.records import Scope
from castle.store.lexicon import Lexicon
from castle.store.projection import ProjectionBlocked, Watermark
if os.geteuid() == 0:
    os.setresuid(65534, 65534, 65534)
lexicon = Lexicon(Path(sys.argv[1]))
assert lexicon.watermark() == Watermark("e", 3), lexicon.watermark()
assert len(lexicon.search("harbour", Scope(), 5)) == 3
try:
    lexicon.apply([], Watermark("e", 4))
except ProjectionBlocked:
    print("blocked")
lexicon.close()
"""


def test_a_read_only_directory_is_searched() -> None:
    # The directories of pytest are closed to other users, and root may write everywhere.
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)
        place = Path(directory) / "lexicon"
        Lexicon(place).apply([make_row(number) for number in range(3)], Watermark("e", 3))
        for file in place.iterdir():
            file.chmod(0o444)
        place.chmod(0o555)
        command = [sys.executable, "-c", READ_ONLY, str(place)]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        place.chmod(0o755)
        assert (result.stdout, result.returncode) == ("blocked\n", 0), result.stderr


def test_silence(lexicon: Lexicon, capfd: pytest.CaptureFixture[str]) -> None:
    lexicon.apply([make_row(1)], Watermark("e", 1))
    lexicon.search("harbour", CURRENT, 5)
    lexicon.reset()
    assert capfd.readouterr() == ("", "")


def test_each_commit_of_another_process_is_read_once(tmp_path: Path) -> None:
    writer, reader = Lexicon(tmp_path / "lexicon"), Lexicon(tmp_path / "lexicon")
    for number in range(1, 6):
        writer.apply([make_row(number)], Watermark("e", number))
        assert reader.watermark() == Watermark("e", number)
        index = reader._index
        assert len(reader.search("harbour", Scope(), 10)) == number
        assert len(reader.search("harbour", Scope(), 10)) == number
        assert reader._index is index
    writer.reset()
    writer.apply([make_row(9)], Watermark("f", 9))
    assert [match.id for match in reader.search("harbour", Scope(), 10)] == [make_row(9).id]

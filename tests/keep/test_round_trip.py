"""An exact export is the palace itself; a masked one says where it is not."""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import stat
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from castle import Castle
from castle.errors import NotFoundError, PalaceError, PalaceVersionError, UsageError
from castle.keep import importing, merging
from castle.keep.layout import FIRST, LAST, LEFT_OUT, OF_SOURCE
from castle.store.schema import tables
from castle.text.secrets import secret_tag
from tests.keep.conftest import SPOKEN, TOKEN, content, states, top, transcript
from tests.mine.conftest import write
from tests.mine.test_convos import line

QUESTIONS = ("crane", "harbour on Sundays", "turn 3", "lighthouse", "token", "GraphQL")


@pytest.fixture
def other(tmp_path: Path) -> Path:
    return tmp_path / "other"


def test_an_exact_export_brings_everything_into_a_new_palace(
    rich: Castle, tmp_path: Path, other: Path
) -> None:
    made = rich.export(tmp_path / "out", format="jsonl", include_secrets=True)
    assert made.exact
    assert made.masked == 0
    file = tmp_path / "out" / "palace.jsonl"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert TOKEN in file.read_text(encoding="utf-8")
    with Castle(other) as copy:
        found = copy.import_from(tmp_path / "out")
        assert found.conflicts == ()
        assert (found.sources, found.drawers) == (made.sources, made.drawers)
        assert copy.catch_up() == []
        assert states(copy) == {}
        assert content(copy._palace().ledger) == content(rich._palace().ledger)
        for question in QUESTIONS:
            assert top(copy, question) == top(rich, question) != []
        again = copy.import_from(file)
        assert (again.sources, again.drawers, again.conflicts, dict(again.rows)) == (0, 0, (), {})
        assert again.known == made.sources


def test_a_masked_export_holds_no_secret_and_is_filed_as_what_it_is(
    rich: Castle, tmp_path: Path, other: Path
) -> None:
    made = rich.export(tmp_path / "out", format="jsonl")
    assert not made.exact
    assert made.masked == 3
    text = (tmp_path / "out" / "palace.jsonl").read_text(encoding="utf-8")
    for secret in (TOKEN, SPOKEN):
        assert secret not in text
    assert "«secret:github_token#" in text
    assert rich._palace().salt.hex() not in text
    with rich._palace().ledger.read() as cx:
        sealed = (
            cx.exec_driver_sql("SELECT hex(sha256) FROM drawers WHERE sealed IS NOT NULL").scalars().all()
        )
    assert len(sealed) == 3
    assert all(base64.b64encode(bytes.fromhex(sha)).decode() not in text for sha in sealed)
    with Castle(other) as copy:
        found = copy.import_from(tmp_path / "out")
        assert found.masked == 3
        assert len(found.masked_ids) == 3
        assert copy.catch_up() == []
        assert states(copy) == {}
        hit = copy.search("lighthouse token", mode="fast").hits[0]
        assert "«secret:github_token#" in hit.text
        (drawer,) = copy.get(found.masked_ids[0])
        assert drawer.id == found.masked_ids[0]
        with copy._palace().ledger.read() as cx:
            flags = cx.exec_driver_sql("SELECT metadata FROM drawers WHERE metadata LIKE '%masked_copy_of%'")
            assert len(flags.all()) == 3
        again = copy.import_from(tmp_path / "out")
        assert (again.sources, again.drawers, again.masked, again.conflicts) == (0, 0, 0, ())
        # The exact text is another history: it is not put in the place of the copy by itself.
        rich.export(tmp_path / "exact", format="jsonl", include_secrets=True)
        late = copy.import_from(tmp_path / "exact")
        assert late.conflict_count == 2
        assert states(copy) == {}


def test_a_masked_export_is_known_where_it_came_from(rich: Castle, tmp_path: Path) -> None:
    before = content(rich._palace().ledger)
    rich.export(tmp_path / "out", format="jsonl")
    found = rich.import_from(tmp_path / "out")
    assert (found.sources, found.drawers, found.masked, found.conflicts) == (0, 0, 0, ())
    assert content(rich._palace().ledger) == before


def test_what_went_on_elsewhere_goes_on_here(rich: Castle, tmp_path: Path, other: Path) -> None:
    rich.export(tmp_path / "first", format="jsonl", include_secrets=True)
    with Castle(other) as copy:
        copy.import_from(tmp_path / "first")
        copy.forget(copy.search("GraphQL", mode="fast").hits[0].id)
        with copy._palace().ledger.read() as cx:
            forgotten = cx.exec_driver_sql("SELECT count(*) FROM tombstones").scalar()
        chat = Path.home() / "chats" / "s1.jsonl"
        chat.write_text(transcript(9) + line(20, "and the last ferry left"), encoding="utf-8")
        rich.mine(chat, mode="convos")
        write(Path.home() / "garden-shop", {"README.md": "# Shop\n\nNothing is as it was.\n"}, age=50)
        rich.mine(Path.home() / "garden-shop")
        rich.kg.invalidate("Mara Quill", "painted", "the crane", ended="2026-06-01")
        rich.kg.add("Mara Quill", "painted", "the bridge")
        rich.export(tmp_path / "second", format="jsonl", include_secrets=True)
        found = copy.import_from(tmp_path / "second")
        assert found.conflicts == ()
        assert (found.sources, found.grown) == (0, 2)
        assert copy.catch_up() == []
        assert states(copy) == {}
        assert copy.search("last ferry left", mode="fast").hits[0].text == "and the last ferry left"
        assert content(copy._palace().ledger)["triples"] == content(rich._palace().ledger)["triples"]
        assert content(copy._palace().ledger)["membership"] == content(rich._palace().ledger)["membership"]
        with copy._palace().ledger.read() as cx:
            assert cx.exec_driver_sql("SELECT count(*) FROM tombstones").scalar() == forgotten
        old = copy.import_from(tmp_path / "first")
        assert (old.grown, old.drawers, old.conflicts) == (0, 0, ())


def test_another_history_is_told_and_nothing_is_replaced(rich: Castle, tmp_path: Path, other: Path) -> None:
    rich.export(tmp_path / "first", format="jsonl", include_secrets=True)
    write(Path.home() / "garden-shop", {"README.md": "# Shop\n\nOurs.\n"}, age=60)
    rich.mine(Path.home() / "garden-shop")
    with Castle(other) as copy:
        copy.import_from(tmp_path / "first")
        write(Path.home() / "garden-shop", {"README.md": "# Shop\n\nTheirs.\n"}, age=50)
        copy.mine(Path.home() / "garden-shop")
        copy.export(tmp_path / "second", format="jsonl", include_secrets=True)
    before = content(rich._palace().ledger)["drawers"]
    found = rich.import_from(tmp_path / "second")
    assert found.conflict_count == 1
    assert "README.md: the palace holds another history of it" in found.conflicts[0]
    assert content(rich._palace().ledger)["drawers"] == before
    assert rich.catch_up() == []
    assert states(rich) == {}


def test_a_palace_with_a_key_of_its_own_gives_tags_of_its_own(
    rich: Castle, tmp_path: Path, other: Path
) -> None:
    rich.export(tmp_path / "out", format="jsonl", include_secrets=True)
    with Castle(other, embedder="fake") as copy:
        copy.add("The windmill turns, says Mara Quill.", wing="mills", room="general")
        salt = copy._palace().salt
        copy.import_from(tmp_path / "out")
        assert copy._palace().salt == salt != rich._palace().salt
        assert copy.catch_up() == []
        assert states(copy) == {}
        with copy._palace().ledger.read() as cx:
            query = "SELECT text, sealed FROM drawers WHERE sealed IS NOT NULL"
            for text, sealed in cx.exec_driver_sql(query):
                for start, end, _, tag in json.loads(sealed):
                    assert tag == secret_tag(text[start:end], salt)
        # A name that came with the import is looked for in what was here before.
        copy.entities.relink()
        assert copy.entities.get("Mara Quill").mentions == rich.entities.get("Mara Quill").mentions + 1


def test_one_wing_brings_its_sources_and_the_facts_that_rest_on_them(
    rich: Castle, tmp_path: Path, other: Path
) -> None:
    rich.export(tmp_path / "out", format="jsonl", wing="port", include_secrets=True)
    with Castle(other) as copy:
        found = copy.import_from(tmp_path / "out")
        assert found.conflicts == ()
        copy.catch_up()
        assert {place.wing for place in copy.places()} == {"port"}
        assert [fact.object for fact in copy.kg.query("Mara Quill").facts] == ["the crane"]
        assert states(copy) == {}
    with pytest.raises(NotFoundError, match="no wing nowhere"):
        rich.export(tmp_path / "none", wing="nowhere")
    assert not (tmp_path / "none").exists()


def test_what_was_purged_is_in_no_export_and_comes_back_by_none(
    rich: Castle, tmp_path: Path, other: Path
) -> None:
    rich.export(tmp_path / "before", format="jsonl", include_secrets=True)
    gone = rich.search("GraphQL", mode="fast").hits[0]
    rich.purge(gone.id, reason="a test")
    made = rich.export(tmp_path / "after", format="jsonl", include_secrets=True)
    assert made.purged == 1
    assert "GraphQL" not in (tmp_path / "after" / "palace.jsonl").read_text(encoding="utf-8")
    found = rich.import_from(tmp_path / "before")
    assert found.drawers == 0
    assert found.conflict_count >= 1
    assert rich.catch_up() == []
    assert "GraphQL" not in " ".join(text for _, text in top(rich, "GraphQL"))
    with Castle(other) as copy:
        copy.import_from(tmp_path / "after")
        assert copy.catch_up() == []
        assert states(copy) == {}


def test_an_export_that_is_damaged_or_cut_short_changes_nothing(
    rich: Castle, tmp_path: Path, other: Path
) -> None:
    rich.export(tmp_path / "out", format="jsonl")
    whole = (tmp_path / "out" / "palace.jsonl").read_bytes()
    lines = whole.splitlines(keepends=True)
    bad = tmp_path / "bad.jsonl"
    damages = {
        "cut short": whole[: len(whole) // 2],
        "without its end": b"".join(lines[:-1]),
        "a line left out": b"".join([*lines[:5], *lines[6:]]),
        "a word changed": whole.replace(b"Sundays", b"Mondays"),
        "garbage": b"\xff\x00" * 500,
        "empty": b"",
        "of something else": b'{"t": "note"}\n',
        "an unknown table": lines[0] + b'{"t":"sqlite_master"}\n' + lines[-1],
        "a table that is none": lines[0] + b'{"t":{}}\n' + lines[-1],
        "no object": b"[1]\n",
    }
    for what, data in damages.items():
        bad.write_bytes(data)
        with Castle(other) as copy, pytest.raises(PalaceError, match=r"no export of Castle.*nothing was"):
            copy.import_from(bad)
        assert not other.exists(), what
    with Castle(other) as copy, pytest.raises(UsageError, match="no file"):
        copy.import_from(tmp_path / "missing.jsonl")
    values: tuple[object, ...] = ({}, "\ud800", 10**30)
    for value in values:
        row = {"t": "projects", "id": value, "name": "harbour", "created_at": 1}
        bad.write_bytes(signed([lines[0], json.dumps(row).encode() + b"\n"]))
        with Castle(other) as copy, pytest.raises(PalaceError, match="holds what cannot be filed"):
            copy.import_from(bad)
        shutil.rmtree(other)
    newer = {**json.loads(lines[0]), "schema": 999}
    bad.write_bytes(signed([json.dumps(newer).encode() + b"\n"]))
    with Castle(other) as copy, pytest.raises(PalaceVersionError, match="pip install"):
        copy.import_from(bad)
    assert not other.exists()


def test_an_import_that_was_stopped_goes_on(
    rich: Castle, tmp_path: Path, other: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = rich.export(tmp_path / "out", format="jsonl", include_secrets=True)
    monkeypatch.setattr(importing, "ROWS_AT_ONCE", 20)
    original, calls = merging.merge, 0

    def stopped(*arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 5:
            raise KeyboardInterrupt
        return original(*arguments)

    monkeypatch.setattr(importing, "merge", stopped)
    with Castle(other) as copy:
        with pytest.raises(KeyboardInterrupt):
            copy.import_from(tmp_path / "out")
        monkeypatch.setattr(importing, "merge", original)
        assert 0 < copy.status().sources < made.sources
        found = copy.import_from(tmp_path / "out")
        assert found.known > 0
        assert found.sources + found.known == made.sources
        assert copy.catch_up() == []
        assert states(copy) == {}
        assert content(copy._palace().ledger) == content(rich._palace().ledger)


def test_every_table_is_exported_or_left_out_for_a_reason() -> None:
    named = [*FIRST, *OF_SOURCE, *LAST, *LEFT_OUT]
    assert sorted(named) == sorted(tables.tables)


def signed(lines: list[bytes]) -> bytes:
    digest = hashlib.sha256(b"".join(lines)).hexdigest()
    counts = Counter(json.loads(line)["t"] for line in lines[1:])
    return b"".join([*lines, json.dumps({"t": "end", "counts": counts, "sha256": digest}).encode() + b"\n"])

"""Drawers that were filed by an older detector, which knew fewer secrets."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
from sqlalchemy import func, select, update

from castle import Castle
from castle.store import filing, redetect, sealing
from castle.store.catchup import input_hash
from castle.store.closet_tables import aaak, closet_lines
from castle.store.ledger import get_value
from castle.store.palace import Palace
from castle.store.reading import changed_rows
from castle.store.schema import drawers, vectors
from castle.text import chunk, scan, secrets, served
from tests.mine.conftest import write
from tests.mine.test_convos import talk

TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
KEY = "\n".join(
    ["-----BEGIN OPENSSH PRIVATE KEY-----"]
    + [f"b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAB{n:04}lwAAAAdz" for n in range(60)]
    + ["-----END OPENSSH PRIVATE KEY-----"]
)
FILES = {
    "notes.md": f"# Deploy\n\nThe token is {TOKEN} for now.\n\n## Why\n\nIt rotates in May.\n",
    "key.md": f"# Key of the harbour\n\n{KEY}\n\nThe end of the harbour's notes.\n",
    "plain.md": "# Harbour\n\nNothing to hide about the lighthouse.\n",
}


@contextmanager
def older() -> Iterator[None]:
    """Let everything be filed as an older Castle did that knew no secret at all."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (secrets, chunk, scan, served):
            if hasattr(module, "find_secrets"):
                patch.setattr(module, "find_secrets", lambda text, salt: [])
        patch.setattr(sealing, "find_secrets", lambda text, salt: [])
        patch.setattr(filing, "DETECTOR_VERSION", 1)
        patch.setattr(secrets, "DETECTOR_VERSION", 1)
        yield


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A palace filed by an older detector, with all indexes and closets made then."""
    tmp_path = tmp_path_factory.mktemp("made")
    project = tmp_path / "harbour"
    write(project, FILES)
    transcript = tmp_path / "s1.jsonl"
    transcript.write_text("".join(talk(4)).replace("turn 2", f"{TOKEN} is the token, turn 2"), "utf-8")
    with older(), Castle(tmp_path / "palace", embedder="fake") as castle:
        castle.mine_project(project)
        castle.mine_conversations(transcript)
        castle.compress()
        assert TOKEN in castle.search(f'"{TOKEN}"').hits[0].text
    return tmp_path / "palace"


@pytest.fixture
def root(made: Path, tmp_path: Path) -> Path:
    """A copy of that palace."""
    from castle.store import reading

    reading._masked.cache_clear()
    return Path(shutil.copytree(made, tmp_path / "palace"))


def on_disk(root: Path, secret: str) -> list[str]:
    """The files other than the ledger's that hold a secret."""
    found = []
    for file in root.rglob("*"):
        if file.is_file() and not file.name.startswith("castle.db") and secret.encode() in file.read_bytes():
            found.append(str(file.relative_to(root)))
    return found


def everything(castle: Castle) -> str:
    told = [
        part.text
        for drawer in castle.list_drawers(limit=1000, kinds=()).drawers
        for part in castle.get(drawer.id)
    ]
    told += [hit.text for query in (TOKEN, "harbour", "token") for hit in castle.search(query, limit=50).hits]
    told += [closet.text for closet in castle.closets()]
    return "\n".join(told)


def test_the_fixture_holds_what_it_says(root: Path) -> None:
    assert on_disk(root, TOKEN)
    with Palace(root).ledger.read() as cx:
        assert cx.execute(select(func.count()).where(drawers.c.detector_version == 1)).scalar_one() > 8


def test_answers_are_masked_before_anything_was_read_again(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("castle.store.catchup._look_again", lambda *_: None)
    with Castle(root) as castle:
        assert castle.status().old_detector > 8
        told = everything(castle)
    assert TOKEN not in told
    assert "«secret:github_token#" in told
    for line in KEY.splitlines()[1:-1]:
        assert line not in told


def test_a_secret_across_drawers_is_found_whole_though_each_is_shown_alone(root: Path) -> None:
    sealing._known.clear()
    with Castle(root) as castle:
        palace = castle._palace()
        with palace.ledger.read() as cx:
            rows = cx.execute(
                select(*sealing.COLUMNS).where(drawers.c.text.contains("b3BlbnNzaC1rZXk"))
            ).all()
            assert len(rows) > 3
            for row in rows:
                sealing._known.clear()
                assert "b3BlbnNzaC1rZXk" not in sealing.shown(cx, row)


def test_all_is_read_again_and_nothing_but_the_ledger_holds_it(root: Path) -> None:
    with Castle(root) as castle:
        castle.compress()
        findings = {finding.check: finding for finding in castle.repair()}
        assert {finding.status for finding in findings.values()} == {"ok"}
        assert castle.status().old_detector == 0
        assert TOKEN not in everything(castle)
        palace = castle._palace()
        with palace.ledger.read() as cx:
            assert get_value(cx, redetect.FOUND_KEY) is None
            kept = "\n".join(cx.execute(select(drawers.c.context)).scalars())
            assert TOKEN not in kept
            assert TOKEN[:12] not in kept
            for table in (aaak, closet_lines):
                assert TOKEN not in "\n".join(cx.execute(select(table.c.line)).scalars())
            sealed = cx.execute(
                select(drawers.c.text, drawers.c.sealed).where(drawers.c.sealed.is_not(None))
            ).all()
            hidden = ["".join(text[s:e] for s, e, *_ in json.loads(spans)) for text, spans in sealed]
            assert hidden.count(TOKEN) == 2
            used = {input_hash(row) for row in changed_rows(cx, 0, 1000)}
            assert used == set(cx.execute(select(vectors.c.input)).scalars())
    assert on_disk(root, TOKEN) == []
    assert on_disk(root, KEY.splitlines()[20]) == []


def test_what_is_read_again_goes_on_where_it_was(root: Path) -> None:
    palace = Palace(root)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(redetect, "HASTY_BATCH", 2)
        clock = iter((0.0, 0.0, 9.0))
        patch.setattr("castle.store.redetect.time", SimpleNamespace(monotonic=lambda: next(clock)))
        first = redetect.redetect(palace, deadline=5.0)
    assert first.read == 4
    assert first.left > 0
    second = redetect.redetect(palace)
    assert second.read == first.left
    assert second.left == 0
    assert redetect.redetect(palace) == redetect.Redetected(0, 0, 0)
    palace.close()


def test_only_what_has_changed_is_replayed(root: Path) -> None:
    palace = Palace(root)
    head = palace.ledger.head()
    done = redetect.redetect(palace)
    with palace.ledger.read() as cx:
        rows = changed_rows(cx, head, 1000)
    assert len(rows) == done.changed
    assert 0 < done.changed < done.read
    assert any("«secret:" in row.text for row in rows)
    assert not any("lighthouse" in row.text for row in rows)
    palace.close()


def test_a_search_and_a_mine_read_again(root: Path, made: Path) -> None:
    with Castle(root) as castle:
        castle.search("harbour")
        assert castle.status().old_detector == 0
        assert on_disk(root, TOKEN)
        castle.mine_project(made.parent / "harbour")
        assert castle.verify() == [f for f in castle.verify() if f.status == "ok"]
    assert on_disk(root, TOKEN) == []


def test_what_was_sealed_stays_sealed(root: Path) -> None:
    palace = Palace(root)
    with palace.ledger.write() as cx:
        row = cx.execute(select(drawers).where(drawers.c.text.contains("lighthouse"))).one()
        start = row.text.index("lighthouse")
        span = [[start, start + 10, "password", "00"]]
        cx.execute(update(drawers).where(drawers.c.rid == row.rid).values(sealed=json.dumps(span)))
    redetect.redetect(palace)
    with palace.ledger.read() as cx:
        now = cx.execute(select(drawers).where(drawers.c.rid == row.rid)).one()
        assert json.loads(now.sealed) == span
        assert now.detector_version == secrets.DETECTOR_VERSION
        assert now.seq == row.seq
    palace.close()


def test_a_rendered_wake_up_of_older_rules_is_let_go(root: Path) -> None:
    (root / "wakeup.json").write_text(TOKEN, encoding="utf-8")
    palace = Palace(root)
    redetect.redetect(palace)
    assert not (root / "wakeup.json").exists()
    palace.close()


def test_a_damaged_row_stays_and_stops_nothing(root: Path) -> None:
    palace = Palace(root)
    with palace.ledger.write() as cx:
        first = cx.execute(select(func.min(drawers.c.rid))).scalar_one()
        cx.execute(update(drawers).where(drawers.c.rid == first).values(sealed="[broken"))
    done = redetect.redetect(palace)
    assert done.left == 1
    assert done.read > 8
    palace.close()


def test_one_process_at_a_time(root: Path) -> None:
    palace, other = Palace(root), Palace(root)
    with palace.lock(redetect.LOCK) as held:
        assert held
        assert redetect.redetect(other).read == 0
    palace.close()
    other.close()


def test_what_is_left_is_counted_without_reading_drawers(root: Path) -> None:
    palace = Palace(root)
    for analyzed in (False, True):
        if analyzed:
            palace.ledger.analyze()
        with palace.ledger.read() as cx:
            counted = str(
                select(func.count()).where(redetect._old()).compile(compile_kwargs={"literal_binds": True})
            )
            plan = str(cx.exec_driver_sql(f"EXPLAIN QUERY PLAN {counted}").all())
        assert "COVERING INDEX ix_drawers_detector" in plan
    palace.close()


def test_the_union_of_spans() -> None:
    text = "0123456789" * 3
    from castle.records import SealedSpan

    def span(start: int, end: int, kind: str) -> SealedSpan:
        return SealedSpan(start, end, kind, secrets.secret_tag(text[start:end], b"x"))

    filed, found = [span(2, 6, "old"), span(10, 14, "old")], [span(4, 9, "new"), span(9, 15, "new")]
    joined = sealing.united(text, filed, found, b"x")
    assert [(s.start, s.end, s.kind) for s in joined] == [(2, 9, "old"), (9, 15, "new")]
    assert joined[0].tag == secrets.secret_tag(text[2:9], b"x")
    assert sealing.united(text, filed, [], b"x") == tuple(filed)


def test_a_text_that_quotes_a_part_is_dropped_and_a_whole_one_masked() -> None:
    assert (
        redetect._without(f"user › the token {TOKEN} is old", [TOKEN])
        == f"user › the token {redetect.MASK} is old"
    )
    assert redetect._without(f"user › the token {TOKEN[:20]}", [TOKEN]) == ""
    assert redetect._without("user › the lighthouse", [TOKEN]) == "user › the lighthouse"

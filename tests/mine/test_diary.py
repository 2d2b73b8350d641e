from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from castle.errors import NotFoundError, UsageError
from castle.mine.diary import MOST_CHARACTERS, day_of, ingest, read, write
from castle.records import Scope
from castle.store.palace import Palace
from castle.store.places import forget, rename_wing
from castle.store.reading import listed, one_source
from castle.store.verify import verify
from tests.conftest import TurnedClock
from tests.mine.conftest import write as write_files

LONG = "\n\n".join(f"Paragraph {n}: " + "we fixed the stop hook and the lock. " * 6 for n in range(30))


def contents(palace: Palace, agent: str = "coder", **how: object) -> list[str]:
    return [entry.content for entry in read(palace, agent, **how).entries]  # type: ignore[arg-type]


def test_entries_come_back_newest_first_with_time_and_topic(palace: Palace, clock: TurnedClock) -> None:
    write(palace, "Coder", "first entry", topic="hooks")
    clock.now += 86_400_000_000
    write(palace, "coder", "second entry")
    found = read(palace, "CODER")
    assert (found.agent, found.total) == ("coder", 2)
    second, first = found.entries
    assert (second.content, second.topic, first.content, first.topic) == (
        "second entry",
        "general",
        "first entry",
        "hooks",
    )
    assert first.date == "2023-11-14"
    assert second.date == "2023-11-15"
    assert first.timestamp.startswith("2023-11-14T") and first.timestamp.endswith("+00:00")
    assert first.wing == "wing_coder"


def test_an_entry_is_a_drawer_in_the_room_and_hall_of_diaries(palace: Palace) -> None:
    entry = write(palace, "My Agent", "text")
    with palace.ledger.read() as cx:
        ((drawer,)) = listed(cx, Scope(), 10, 0)[1]
    assert (drawer.id,) == entry.drawers
    assert (drawer.kind, drawer.room, drawer.hall, drawer.wing, drawer.speaker) == (
        "diary",
        "diary",
        "hall_diary",
        "wing_my_agent",
        "my agent",
    )


def test_entries_of_the_same_second_and_text_are_two(palace: Palace, clock: TurnedClock) -> None:
    first = write(palace, "coder", "the same")
    clock.now -= 10_000_000
    second = write(palace, "coder", "the same")
    assert first.id != second.id
    assert contents(palace) == ["the same", "the same"]


def test_a_long_entry_is_one_entry_of_several_drawers_and_comes_back_exactly(palace: Palace) -> None:
    entry = write(palace, "coder", LONG)
    assert len(entry.drawers) > 3
    assert entry.content == LONG
    assert contents(palace) == [LONG]
    assert read(palace, "coder").total == 1


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.text(
            st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=2000
        ).filter(lambda text: text.strip()),
        min_size=1,
        max_size=3,
    )
)
def test_any_entries_come_back_exactly(palace: Palace, texts: list[str]) -> None:
    before = read(palace, "x").total
    for text in texts:
        write(palace, "x", text)
    assert contents(palace, "x", last=len(texts)) == texts[::-1]
    assert read(palace, "x").total == before + len(texts)


def test_last_limits_and_the_total_is_exact(palace: Palace) -> None:
    for number in range(15):
        write(palace, "coder", f"entry {number}")
    found = read(palace, "coder", last=3)
    assert ([e.content for e in found.entries], found.total) == (["entry 14", "entry 13", "entry 12"], 15)


def test_agents_and_wings_are_kept_apart(palace: Palace) -> None:
    write(palace, "coder", "in my own")
    write(palace, "coder", "in the project", wing="app")
    write(palace, "coder2", "somebody else")
    assert contents(palace) == ["in the project", "in my own"]
    assert contents(palace, wing="app") == ["in the project"]
    assert contents(palace, "nobody") == []


def test_a_diary_goes_on_when_its_wing_is_renamed(palace: Palace) -> None:
    write(palace, "coder", "before")
    rename_wing(palace.ledger, "wing_coder", "team")
    assert write(palace, "coder", "after").wing == "team"
    assert contents(palace) == ["after", "before"]
    assert contents(palace, wing="team") == ["after", "before"]
    assert contents(palace, wing="wing_coder") == ["after", "before"]


def test_a_forgotten_entry_is_not_read(palace: Palace) -> None:
    entry = write(palace, "coder", "private matter")
    write(palace, "coder", "other")
    forget(palace.ledger, id_=entry.drawers[0], actor="test")
    assert contents(palace) == ["other"]
    assert read(palace, "coder").total == 1


def test_secrets_are_masked_when_read(palace: Palace) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    assert secret not in write(palace, "coder", f"the token is {secret} for now").content


@pytest.mark.parametrize("text", ["", "  \n", "a\x00b", "a\ud800b", "x" * (MOST_CHARACTERS + 1)])
def test_what_is_no_entry_is_refused(palace: Palace, text: str) -> None:
    with pytest.raises(UsageError):
        write(palace, "coder", text)


@pytest.mark.parametrize("agent", ["", "../x", "a/b", "x" * 200])
def test_what_is_no_agent_is_refused(palace: Palace, agent: str) -> None:
    with pytest.raises(UsageError):
        write(palace, agent, "text")


def test_a_palace_with_diaries_verifies(palace: Palace) -> None:
    write(palace, "coder", "one")
    write(palace, "coder", LONG)
    findings = {finding.check: finding.status for finding in verify(palace)}
    assert (findings["drawers"], findings["sources"]) == ("ok", "ok")


DAYS = {
    "2026-05-01.md": "# Friday\n\nShort.\n",
    "2026-05-02 notes.md": "x",
    "sub/2026-05-03.md": "# Sunday\n\nWe rested.\n",
    "readme.md": "not a day\n",
    "2026-13-01.md": "no such month\n",
    "2026-05-04.txt": "no Markdown\n",
}


@pytest.fixture
def days(tmp_path: Path) -> Path:
    root = tmp_path / "days"
    root.mkdir()
    write_files(root, DAYS)
    return root


def day_texts(palace: Palace, *, history: bool = False) -> list[str]:
    with palace.ledger.read() as cx:
        return sorted(d.text for d in listed(cx, Scope(room="daily", history=history), 100, 0)[1])


def test_day_files_are_filed_whole_and_everything_else_is_reported(palace: Palace, days: Path) -> None:
    report = ingest(palace, days)
    assert (report.files, report.new, report.wing) == (3, 3, "diary")
    assert {left.path for left in report.ignored} == {"readme.md", "2026-13-01.md", "2026-05-04.txt"}
    assert day_texts(palace) == sorted(["# Friday\n\nShort.\n", "x", "# Sunday\n\nWe rested.\n"])
    with palace.ledger.read() as cx:
        drawer = next(d for d in listed(cx, Scope(), 10, 0)[1] if d.text == "x")
    assert drawer.authored_at == 1_777_723_200_000_000  # 2026-05-02T12:00Z
    assert (drawer.kind, drawer.hall, drawer.wing) == ("diary", "hall_diary", "diary")


def test_a_second_run_changes_nothing(palace: Palace, days: Path) -> None:
    ingest(palace, days)
    head = palace.ledger.head()
    report = ingest(palace, days)
    assert (report.new, report.changed, report.unchanged) == (0, 0, 3)
    assert palace.ledger.head() == head


def test_a_changed_day_is_a_new_revision_and_the_old_words_stay(palace: Palace, days: Path) -> None:
    ingest(palace, days)
    write_files(days, {"2026-05-02 notes.md": "y"})
    report = ingest(palace, days)
    assert (report.changed, report.drawers_superseded) == (1, 1)
    assert "x" not in day_texts(palace)
    assert "x" in day_texts(palace, history=True)
    assert {f.status for f in verify(palace) if f.check == "sources"} == {"ok"}


def test_a_day_file_that_is_gone_stays_in_the_palace(palace: Palace, days: Path) -> None:
    ingest(palace, days)
    (days / "2026-05-01.md").unlink()
    ingest(palace, days)
    assert "# Friday\n\nShort.\n" in day_texts(palace)


def test_two_folders_with_the_same_day_are_two_sources(palace: Palace, days: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    write_files(other, {"2026-05-01.md": "another Friday\n"})
    ingest(palace, days)
    ingest(palace, other)
    assert {"another Friday\n", "# Friday\n\nShort.\n"} <= set(day_texts(palace))


def test_a_forgotten_day_is_not_filed_again(palace: Palace, days: Path) -> None:
    ingest(palace, days)
    with palace.ledger.read() as cx:
        key = one_source(cx, "2026-05-01.md").key
    forget(palace.ledger, source=key, actor="test")
    write_files(days, {"2026-05-01.md": "again\n"})
    report = ingest(palace, days)
    assert any("forgotten" in left.reason for left in report.ignored)
    assert "again\n" not in day_texts(palace)


def test_bytes_that_are_not_utf8_come_back(palace: Palace, days: Path) -> None:
    (days / "2026-06-01.md").write_bytes("café au lait, déjà vu\n".encode("latin-1"))
    report = ingest(palace, days)
    assert report.new == 4
    assert {f.status for f in verify(palace) if f.check == "sources"} == {"ok"}


def test_no_directory_to_ingest(palace: Palace, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no directory"):
        ingest(palace, tmp_path / "no")


@pytest.mark.parametrize(
    ("name", "day"),
    [
        ("2026-05-01.md", "2026-05-01"),
        ("a/2026-05-01-evening.MD", "2026-05-01"),
        ("2026-05-012.md", None),
        ("x2026-05-01.md", None),
        ("2026-02-30.md", None),
    ],
)
def test_days_by_name(name: str, day: str | None) -> None:
    found = day_of(name)
    assert (found.isoformat() if found else None) == day


def test_a_name_that_nobody_has_is_no_source(palace: Palace) -> None:
    with palace.ledger.read() as cx, pytest.raises(NotFoundError):
        one_source(cx, "diary:x:y")

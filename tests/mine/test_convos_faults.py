"""Filing transcripts while processes are killed and while several file the same thing at once."""

from __future__ import annotations

import json
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from castle import Castle
from tests.test_processes import finish, start

FILES = 6
MESSAGES = 120


def record(session: int, number: int) -> str:
    role = "user" if number % 2 == 0 else "assistant"
    text = f"turn {number} of talk {session}. " + f"berth{session}x{number} harbour\n" * 60
    return (
        json.dumps(
            {
                "type": role,
                "uuid": f"s{session}-u{number}",
                "parentUuid": f"s{session}-u{number - 1}" if number else None,
                "sessionId": f"s{session}",
                "timestamp": f"2026-05-01T{10 + number // 60}:{number % 60:02}:00.000Z",
                "message": {"role": role, "content": text},
            }
        )
        + "\n"
    )


def lines(session: int, count: int = MESSAGES) -> list[str]:
    return [record(session, number) for number in range(count)]


@pytest.fixture
def talks(tmp_path: Path) -> Path:
    folder = tmp_path / "talks"
    folder.mkdir()
    for session in range(FILES):
        (folder / f"s{session}.jsonl").write_text("".join(lines(session)), encoding="utf-8")
    return folder


def contents(palace: Path) -> Iterator[tuple[str, str]]:
    """Yield id and text of every drawer."""
    with Castle(palace) as castle:
        offset = 0
        while page := castle.list_drawers(limit=1000, offset=offset, history=True).drawers:
            yield from ((drawer.id, drawer.text) for drawer in page)
            offset += len(page)


@pytest.fixture
def undisturbed(tmp_path: Path, talks: Path) -> dict[str, str]:
    """The drawers that one run of one process makes."""
    palace = tmp_path / "undisturbed"
    with Castle(palace, embedder="fake") as castle:
        castle.mine(talks, mode="convos")
    return dict(contents(palace))


def assert_whole(palace: Path, talks: Path, undisturbed: dict[str, str]) -> None:
    """Every message is there once, word for word, in order, and every index agrees."""
    with Castle(palace) as castle:
        report = castle.mine(talks, mode="convos")
        assert (report.drawers_new, report.drawers_superseded) == (0, 0)
        assert [(f.check, f.status, f.detail) for f in castle.verify() if f.status != "ok"] == []
        for session in range(FILES):
            said = castle.get_session(f"s{session}")
            assert [message.id for message in said] == [f"s{session}-u{n}" for n in range(len(said))]
            wanted = [json.loads(line)["message"]["content"] for line in lines(session, len(said))]
            assert [message.text for message in said] == wanted
            assert len(said) >= MESSAGES
    found = list(contents(palace))
    assert Counter(id_ for id_, _ in found).most_common(1)[0][1] == 1
    assert dict(found) == undisturbed


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="Windows has no SIGKILL")
def test_kills_in_the_middle_lose_and_double_nothing(
    tmp_path: Path, talks: Path, undisturbed: dict[str, str]
) -> None:
    palace = tmp_path / "palace"
    killed = 0
    for attempt in range(9):
        process = start(palace, "mine", str(talks), "--mode", "convos")
        time.sleep(0.5 + 0.3 * attempt)
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            killed += 1
        process.communicate()
    assert killed >= 3
    code, _, err = finish(start(palace, "mine", str(talks), "--mode", "convos"))
    assert code == 0, err
    assert_whole(palace, talks, undisturbed)


@pytest.mark.slow
def test_two_processes_file_one_grown_transcript_once(
    tmp_path: Path, talks: Path, undisturbed: dict[str, str]
) -> None:
    palace = tmp_path / "palace"
    for session in range(FILES):
        path = talks / f"s{session}.jsonl"
        path.write_text("".join(lines(session, MESSAGES // 4)), encoding="utf-8")
    code, _, err = finish(start(palace, "mine", str(talks), "--mode", "convos"))
    assert code == 0, err
    for share in (2, 4):
        for session in range(FILES):
            path = talks / f"s{session}.jsonl"
            path.write_text("".join(lines(session, MESSAGES * share // 4)), encoding="utf-8")
        both = [start(palace, "mine", str(talks), "--mode", "convos", "--json") for _ in range(2)]
        new = 0
        for process in both:
            code, out, err = finish(process)
            assert code == 0, err
            new += json.loads(out)["messages_new"]
        assert new == FILES * MESSAGES * (share - share // 2) // 4
    assert_whole(palace, talks, undisturbed)


@pytest.mark.slow
def test_a_transcript_that_is_written_while_it_is_filed(
    tmp_path: Path, talks: Path, undisturbed: dict[str, str]
) -> None:
    palace = tmp_path / "palace"
    path = talks / "s0.jsonl"
    whole = "".join(lines(0))
    path.write_text("", encoding="utf-8")
    miner = start(palace, "mine", str(talks), "--mode", "convos")
    step = len(whole) // 40
    with path.open("a", encoding="utf-8") as file:
        for offset in range(0, len(whole), step):
            file.write(whole[offset : offset + step])
            file.flush()
            time.sleep(0.05)
            if miner.poll() is not None:
                miner = start(palace, "mine", str(talks), "--mode", "convos")
    assert finish(miner)[0] == 0
    code, _, err = finish(start(palace, "mine", str(talks), "--mode", "convos"))
    assert code == 0, err
    assert_whole(palace, talks, undisturbed)

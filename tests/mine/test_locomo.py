"""Long conversations of two people, filed through the command line: every turn is found by its id."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from castle import Castle
from castle.cli import main
from castle.clock import to_micros

LOCOMO = Path(__file__).parents[3] / "shared" / "data" / "locomo" / "locomo5.json"


@dataclass(frozen=True)
class Turn:
    session: str
    id: str
    speaker: str
    role: str
    text: str
    time: datetime


def turns() -> Iterator[Turn]:
    for sample in json.loads(LOCOMO.read_text(encoding="utf-8")):
        talk = sample["conversation"]
        for name in talk:
            number = re.fullmatch(r"session_(\d+)", name)
            if number is None:
                continue
            time = datetime.strptime(talk[f"{name}_date_time"], "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
            for turn in talk[name]:
                role = "user" if turn["speaker"] == talk["speaker_a"] else "assistant"
                session = f"{sample['sample_id']}-{number[1]}"
                yield Turn(session, turn["dia_id"], turn["speaker"], role, turn["text"], time)


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    capsys.readouterr()
    with pytest.raises(SystemExit) as leaving:
        main(arguments)
    printed = capsys.readouterr()
    return int(leaving.value.code or 0), printed.out, printed.err


@pytest.mark.slow
def test_every_turn_is_found_by_its_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CASTLE_EMBEDDER_MODEL", "fake")
    monkeypatch.setenv("CASTLE_PALACE_PATH", str(tmp_path / "palace"))
    # Counted without looking at the structure: only turns have an id, and nothing else is called so.
    count = LOCOMO.read_text(encoding="utf-8").count('"dia_id":')
    folder = tmp_path / "talks"
    folder.mkdir()
    wanted = list(turns())
    for turn in wanted:
        record = {
            "session": turn.session,
            "id": turn.id,
            "role": turn.role,
            "speaker": turn.speaker,
            "time": turn.time.isoformat(),
            "text": turn.text,
        }
        with (folder / f"{turn.session.rsplit('-', 1)[0]}.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")

    code, out, err = call(capsys, "mine", str(folder), "--json")
    assert code == 0, err
    report = json.loads(out)
    assert report["formats"] == {"messages": 5}
    assert report["messages_new"] == len(wanted) == count == 2897
    assert report["sessions"] == len({turn.session for turn in wanted})

    with Castle() as castle:
        for turn in wanted:
            found = castle.get_message(turn.id, session=turn.session)
            assert "".join(part.text for part in found) == turn.text
            assert {(part.speaker, part.role) for part in found} == {(turn.speaker, turn.role)}
            assert {part.authored_at for part in found} == {to_micros(turn.time)}
        page = castle.sessions(limit=1000)
        assert sum(row.messages for row in page.sessions) == count

    for turn in wanted[::97]:
        code, out, err = call(capsys, "get", turn.id, "--message", "--in", turn.session)
        assert (code, out, err) == (0, f"{turn.text}\n", "")

    code, out, _ = call(capsys, "mine", str(folder), "--json")
    again = json.loads(out)
    assert (code, again["messages_new"], again["drawers_new"]) == (0, 0, 0)
    assert call(capsys, "verify")[0] == 0


def test_an_id_that_several_sessions_have_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CASTLE_EMBEDDER_MODEL", "fake")
    monkeypatch.setenv("CASTLE_PALACE_PATH", str(tmp_path / "palace"))
    path = tmp_path / "talk.jsonl"
    lines = [
        {"session": "one", "id": "m1", "role": "user", "text": "harbour"},
        {"session": "two", "id": "m1", "role": "user", "text": "lighthouse"},
        {"session": "two", "id": "m2", "role": "user", "text": "a <private>b</private> c"},
        {"session": "two", "id": "m3", "role": "user", "text": "d", "kind": "private"},
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    assert call(capsys, "mine", str(path))[0] == 0
    code, out, err = call(capsys, "get", "m1", "--message")
    assert (code, out) == (2, "")
    assert "2 sessions have a message m1 (one, two): name one with --in" in err
    assert call(capsys, "get", "m1", "--message", "--in", "two")[1] == "lighthouse\n"
    assert call(capsys, "get", "m2", "--message")[1] == "a  c\n"
    assert call(capsys, "get", "m2@22", "--message")[1] == " c\n"
    code, _, err = call(capsys, "get", "m3", "--message")
    assert code == 1 and "only counted" in err
    code, _, err = call(capsys, "get", "m9", "--message")
    assert code == 1 and "no message m9" in err
    with Castle() as castle:
        (drawer,) = castle.get_message("m1", session="two")
        castle.forget(drawer.id)
    code, _, err = call(capsys, "get", "m1", "--message", "--in", "two")
    assert code == 1 and "forgotten" in err

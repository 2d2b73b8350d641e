from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from castle import Castle
from castle.errors import ConfigError, PalaceBusyError
from castle.mine import learning
from castle.store.entities import drawers_mentioning
from tests.mine.conftest import write
from tests.mine.test_discovery import commit, git

PROSE = {
    "pyproject.toml": '[project]\nname = "lighthouse-keeper"\n',
    "docs/log.md": (
        "# Log\n\nOlga said she would look at the lamp. Hi Olga, how are you?\n\n"
        "Marta Ruiz fixed the lens of the lighthouse-keeper. Then Olga told us about her boat.\n"
    ),
    "notes.txt": "Nothing of note.\n",
}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "lamp"
    root.mkdir()
    git(root, "init", "-q")
    commit(root, "Marta Ruiz <marta@acme.dev>", 3)
    commit(root, "mruiz <marta@acme.dev>", 1)
    write(root, PROSE)
    return root


@pytest.fixture
def german(tmp_path: Path) -> Iterator[Castle]:
    from castle import config

    settings = config.load({"palace_path": str(tmp_path / "palace"), "embedder_model": "fake"})
    people = {"olga": "Olga Brandt"}
    with Castle(settings=replace(settings, entity_languages=("en", "de"), people_map=people)) as opened:
        yield opened


def named(castle: Castle) -> dict[str, tuple[str, str, int]]:
    return {e.name: (e.kind, e.source, e.mentions) for e in castle.entities.list().entities}


def test_a_mine_learns_names_and_links_what_mentions_them(castle: Castle, repository: Path) -> None:
    report = castle.mine(repository)
    assert named(castle) == {
        "Marta Ruiz": ("person", "git", 1),
        "Olga": ("person", "learned", 1),
        "lighthouse-keeper": ("project", "manifest", 2),
    }
    assert castle.entities.get("mruiz").name == "Marta Ruiz"
    assert any(note.startswith("new names: Marta Ruiz, lighthouse-keeper, Olga;") for note in report.notes)
    found = castle.entities.in_text("what did marta ruiz fix?")
    with castle._palace().ledger.read() as cx:
        (id_,) = drawers_mentioning(cx, [entity for entity, _ in found], 10)
    assert "Marta Ruiz fixed the lens" in castle.get(id_)[0].text


def test_a_second_run_learns_nothing_and_writes_nothing(castle: Castle, repository: Path) -> None:
    castle.mine(repository)
    ledger = castle._palace().ledger
    queries = [
        f"SELECT * FROM {table}" for table in ("meta", "entities", "registry", "mentions", "name_backlog")
    ]
    with ledger.read() as cx:
        before = [cx.exec_driver_sql(query).all() for query in queries]
    report = castle.mine(repository)
    with ledger.read() as cx:
        assert [cx.exec_driver_sql(query).all() for query in queries] == before
    assert not any("names" in note for note in report.notes)


def test_new_files_are_linked_as_they_are_filed(castle: Castle, repository: Path) -> None:
    castle.mine(repository)
    write(repository, {"later.md": "Olga and Marta Ruiz went sailing.\n"})
    castle.mine(repository)
    assert named(castle)["Olga"] == ("person", "learned", 2)
    assert named(castle)["Marta Ruiz"] == ("person", "git", 2)


def test_names_add_up_over_several_runs(castle: Castle, tmp_path: Path) -> None:
    root = tmp_path / "diary"
    root.mkdir()
    for day, text in enumerate(
        ("Olga said she was tired.", "Hi Olga!", "Olga told me of her boat."), start=1
    ):
        assert "Olga" not in named(castle) if day > 1 else True
        write(root, {f"{day}.md": f"{text}\n"})
        castle.mine(root)
    assert named(castle) == {"Olga": ("person", "learned", 3)}


def test_a_first_name_joins_the_one_person_who_bears_it(castle: Castle, tmp_path: Path) -> None:
    root = tmp_path / "diary"
    root.mkdir()
    castle.init(root)
    castle.mine(root)
    castle.entities.add("Olga Brandt", "person")
    write(root, {"a.md": "Olga said she was tired. Hi Olga! Olga told me of her boat.\n"})
    castle.mine(root)
    entity = castle.entities.get("Olga")
    assert (entity.name, entity.aliases, entity.mentions) == ("Olga Brandt", ("Olga",), 1)
    castle.entities.add("Ida Holm", "person")
    castle.entities.add("Ida Moe", "person")
    write(root, {"b.md": "Ida said she was tired. Hi Ida! Ida told me of her boat.\n"})
    castle.mine(root)
    assert "Ida" not in named(castle)


def test_a_forgotten_name_is_not_learned_again(castle: Castle, repository: Path) -> None:
    castle.mine(repository)
    castle.entities.forget("Olga")
    castle.entities.forget("Marta Ruiz")
    write(repository, {"later.md": "Olga said she is back. Hi Olga! Olga told her story.\n"})
    castle.mine(repository)
    assert set(named(castle)) == {"lighthouse-keeper"}


def test_settings_are_heeded(german: Castle, repository: Path) -> None:
    write(repository, {"tag.md": "Jürgen sagte, er kommt. Hallo Jürgen! Jürgen fragte sie.\n"})
    german.mine(repository)
    assert german.entities.get("Olga").name == "Olga Brandt"
    assert german.entities.get("Jürgen").kind == "person"
    german.settings = replace(german.settings, entity_promote_threshold=1.0)
    write(repository, {"b.md": "Sven sagte, er kommt. Hallo Sven! Sven fragte sie.\n"})
    german.mine(repository)
    assert "Sven" not in named(german)


def test_trouble_in_learning_is_a_note_and_no_failure(
    castle: Castle, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(*_: object, **__: object) -> None:
        raise PalaceBusyError("another process is writing")

    monkeypatch.setattr(learning, "relink", busy)
    report = castle.mine(repository)
    assert report.drawers_new > 0
    assert "names were not learned: another process is writing" in report.notes
    assert castle.search("lighthouse").hits


def test_a_language_without_data_is_refused_before_anything_is_filed(
    castle: Castle, repository: Path
) -> None:
    castle.settings = replace(castle.settings, entity_languages=("xx",))
    for call in (castle.mine_project, castle.mine_conversations):
        with pytest.raises(ConfigError, match="there is no data for 'xx', only for de, en"):
            call(repository)
    assert castle.status().sources == 0


def test_a_dry_run_learns_nothing(castle: Castle, repository: Path) -> None:
    castle.mine(repository, dry_run=True)
    assert not (castle.root / "castle.db").exists()


def test_transcripts_name_their_speakers_and_projects(castle: Castle, tmp_path: Path) -> None:
    work = tmp_path / "crane-works"
    work.mkdir()
    subprocess.run(["git", "init", "-q", str(work)], check=True)
    folder = tmp_path / "transcripts"
    folder.mkdir()
    lines = [
        {
            "type": role,
            "uuid": f"u{number}",
            "sessionId": "s1",
            "timestamp": f"2026-05-01T10:00:0{number}Z",
            "cwd": str(work),
            "message": {"role": role, "content": text},
        }
        for number, (role, text) in enumerate(
            [
                ("user", "Olga said she would call. Hi Olga, I wrote. Olga told her boss."),
                ("assistant", "I will remind Olga of it."),
            ]
        )
    ]
    (folder / "s1.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    castle.mine(folder, mode="convos")
    assert named(castle) == {
        "Olga": ("person", "learned", 2),
        "crane-works": ("project", "transcript", 0),
    }


def test_people_who_speak_in_a_chat_are_known(castle: Castle, tmp_path: Path) -> None:
    channel = tmp_path / "slack" / "general"
    channel.mkdir(parents=True)
    users = [
        {"id": "U1", "name": "gina", "real_name": "Gina Moreno"},
        {"id": "U2", "name": "jon", "real_name": "Jon"},
    ]
    talk = [
        {"type": "message", "user": "U1", "text": "I lost my job", "ts": "1714557600.000100"},
        {"type": "message", "user": "U2", "text": "Me too, Gina Moreno", "ts": "1714557660.000200"},
    ]
    (tmp_path / "slack" / "users.json").write_text(json.dumps(users), encoding="utf-8")
    (tmp_path / "slack" / "channels.json").write_text(
        json.dumps([{"id": "C1", "name": "general", "members": ["U1", "U2"]}]), encoding="utf-8"
    )
    (channel / "2026-05-01.json").write_text(json.dumps(talk), encoding="utf-8")
    castle.mine(tmp_path / "slack", mode="convos")
    assert named(castle)["Gina Moreno"] == ("person", "transcript", 2)
    assert named(castle)["Jon"] == ("person", "transcript", 1)

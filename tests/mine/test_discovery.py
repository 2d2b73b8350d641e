from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from castle.mine.discovery import (
    Author,
    History,
    git_history,
    manifest_names,
    people_of,
    projects_of,
    session_projects,
    speakers_of,
)
from castle.store.entities import Registration


def git(root: Path, *arguments: str) -> None:
    own = ("-c", "user.name=Nobody", "-c", "user.email=nobody@nowhere.net", "-C", str(root))
    subprocess.run(["git", *own, *arguments], check=True, capture_output=True)


def commit(root: Path, author: str, times: int = 1) -> None:
    for _ in range(times):
        git(root, "commit", "-q", "--allow-empty", "-m", "work", f"--author={author}")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "lighthouse"
    root.mkdir()
    git(root, "init", "-q")
    return root


def files(root: Path, texts: dict[str, str]) -> list[str]:
    for name, text in texts.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return list(texts)


def test_manifests_name_projects_the_shallowest_first(tmp_path: Path) -> None:
    names = files(
        tmp_path,
        {
            "deep/in/package.json": '{"name": "@acme/basket"}',
            "go.mod": "// comment\nmodule example.com/tools/crane/v2\n",
            "Cargo.toml": '[package]\nname = "ferry"\n',
            "package.json": '\ufeff{"name": "garden-shop"}',
            "pyproject.toml": '[project]\nname = "harbour"\n',
            "old/pyproject.toml": '[tool.poetry]\nname = "dock"\n',
            "one/two/three/four/five/six/package.json": '{"name": "six-deep"}',
            "one/two/three/four/five/six/seven/package.json": '{"name": "too-deep"}',
            "web/package.json": '{"name": "frontend"}',
            "same/package.json": '{"name": "Harbour"}',
            "readme.md": "[project]",
        },
    )
    assert manifest_names(tmp_path, names) == [
        "harbour", "garden-shop", "ferry", "crane", "dock", "basket", "six-deep",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("package.json", '{"name": 5}'),
        ("package.json", "[]"),
        ("package.json", "[" * 100_000),
        ("package.json", '{"name": "x'),
        ("pyproject.toml", "[project"),
        ("pyproject.toml", 'project = "x"'),
        ("pyproject.toml", "[build-system]"),
        ("Cargo.toml", '[workspace]\nmembers = ["a"]'),
        ("go.mod", "go 1.22"),
        ("package.json", '{"name": "my-app"}'),
        ("package.json", '{"name": "../../etc; rm"}'),
    ],
)
def test_broken_and_empty_manifests_are_passed_over(tmp_path: Path, name: str, text: str) -> None:
    assert manifest_names(tmp_path, files(tmp_path, {name: text})) == []


def test_manifests_that_are_missing_links_or_no_text(tmp_path: Path) -> None:
    (tmp_path / "go.mod").write_bytes(b"module \xff\xfe")
    (tmp_path / "real").write_text('{"name": "real"}', encoding="utf-8")
    (tmp_path / "package.json").symlink_to("real")
    assert manifest_names(tmp_path, ["go.mod", "package.json", "Cargo.toml"]) == []


def test_one_person_under_several_names_and_addresses_is_one_author(repository: Path) -> None:
    commit(repository, "Marta Ruiz <marta@acme.dev>", 3)
    commit(repository, "mruiz <marta@acme.dev>", 5)
    commit(repository, "mruiz <m@home.net>", 2)
    commit(repository, "Marta Ruiz-Diaz <M@home.net>")
    commit(repository, "Tom Weber <tom@acme.dev>", 2)
    commit(repository, "dependabot[bot] <49699333+dependabot[bot]@users.noreply.github.com>", 4)
    commit(repository, "GitHub <noreply@github.com>", 2)
    history = git_history(repository)
    assert history.authors == (
        Author("Marta Ruiz", ("Marta Ruiz-Diaz", "mruiz"), 11),
        Author("Tom Weber", (), 2),
    )
    assert (history.commits, history.note, history.mine) == (13, "", False)


def test_roles_do_not_join_people(repository: Path) -> None:
    commit(repository, "root <root@localhost>")
    commit(repository, "root <anna@acme.dev>")
    commit(repository, "Anna Berg <anna@acme.dev>")
    assert [(a.name, a.commits) for a in git_history(repository).authors] == [("Anna Berg", 2), ("root", 1)]


def test_who_git_is_set_up_for_is_me(repository: Path) -> None:
    commit(repository, "Marta Ruiz <marta@acme.dev>", 4)
    git(repository, "config", "user.email", "Marta@acme.dev")
    history = git_history(repository)
    assert (history.authors[0].me, history.mine) == (True, True)
    assert people_of(history) == [Registration("Marta Ruiz", "person", "git", 0.99)]
    assert projects_of(repository, [], history) == [Registration("lighthouse", "project", "git", 0.99)]


def test_confidence_in_people_grows_with_their_commits() -> None:
    authors = (
        Author("Marta Ruiz", ("mruiz", "x", "admin"), 100),
        Author("Tom Weber", (), 20),
        Author("Ida Holm", (), 19),
        Author("xx123", (), 90),
        Author("linus", (), 90),
        Author("Иван Петров", (), 21),
        Author("山田太郎", (), 21),
    )
    assert [(p.name, p.confidence, p.aliases) for p in people_of(History(authors, 1000))] == [
        ("Marta Ruiz", 0.99, ("mruiz",)),
        ("Tom Weber", 0.85, ()),
        ("Ida Holm", 0.65, ()),
        ("Иван Петров", 0.85, ()),
        ("山田太郎", 0.85, ()),
    ]
    assert people_of(History((Author("Ida Holm", (), 3),), 30))[0].confidence == 0.85
    assert people_of(History((Author("Ida Holm", (), 2),), 2))[0].confidence == 0.65


@pytest.mark.parametrize(
    ("history", "confidence"),
    [
        (History(), 0.85),
        (History((Author("Tom Weber", (), 9),), 9), 0.7),
        (History((Author("Tom Weber", (), 9, me=True),), 9), 0.99),
    ],
)
def test_confidence_in_projects(tmp_path: Path, history: History, confidence: float) -> None:
    names = files(tmp_path, {"go.mod": "module crane"})
    assert projects_of(tmp_path, names, history) == [Registration("crane", "project", "manifest", confidence)]


def test_mine_is_what_i_took_part_in() -> None:
    others = tuple(Author(f"Other {n}", (), 50) for n in range(6))
    assert not History((*others, Author("Me", (), 19, me=True)), 500).mine
    assert History((*others, Author("Me", (), 20, me=True)), 500).mine
    assert History((*others, Author("Me", (), 10, me=True)), 100).mine
    assert History((Author("Me", (), 1, me=True), *others), 500).mine


def test_outside_git_there_is_no_history(tmp_path: Path) -> None:
    assert git_history(tmp_path) == History()
    assert projects_of(tmp_path, [], History()) == []


def test_a_slow_git_is_given_up(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    slow = tmp_path / "bin" / "git"
    slow.write_text("#!/bin/sh\nexec sleep 30\n", encoding="utf-8")
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    history = git_history(repository, timeout=0.2)
    assert (history.authors, history.note) == ((), "git log took longer than 0.2 s")


def test_sessions_name_their_repository(repository: Path, tmp_path: Path, own_home: Path) -> None:
    (repository / "src").mkdir()
    found = session_projects(
        {
            str(repository / "src"): 1,
            str(repository): 2,
            "/gone/away/cart-service": 3,
            "C:\\work\\crane": 1,
            str(own_home): 9,
            "/gone/app": 5,
            "/": 2,
        }
    )
    assert sorted((p.name, p.kind, p.source, p.confidence) for p in found) == [
        ("cart-service", "project", "transcript", 0.85),
        ("crane", "project", "transcript", 0.65),
        ("lighthouse", "project", "transcript", 0.85),
    ]


def test_speakers_are_people_and_roles_are_not() -> None:
    found = speakers_of(
        [
            ("Marta Ruiz", 1, 1),
            ("Gina", 20, 3),
            ("gina", 1, 1),
            ("user", 9, 9),
            ("Assistant", 9, 9),
            ("U01ABC234", 9, 9),
            ("deploy-bot", 9, 9),
            ("山田", 100, 1),
            ("", 1, 1),
        ]
    )
    assert [(p.name, p.confidence) for p in found] == [("Marta Ruiz", 0.85), ("Gina", 0.99), ("山田", 0.99)]

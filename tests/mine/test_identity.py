import os
import subprocess
from pathlib import Path

import pytest

from castle.mine.identity import identify

ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")} | {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
}


def git(root: Path, *arguments: str) -> str:
    options = ["-c", "user.name=x", "-c", "user.email=x@y", "-c", "protocol.file.allow=always"]
    done = subprocess.run(
        ["git", "-C", str(root), *options, *arguments], capture_output=True, env=ENVIRONMENT, check=True
    )
    return done.stdout.decode().strip()


def repository(place: Path) -> Path:
    place.mkdir(parents=True)
    git(place, "init", "-q")
    git(place, "commit", "-q", "--allow-empty", "-m", "first")
    git(place, "commit", "-q", "--allow-empty", "-m", "second")
    return place


def test_a_plain_directory(tmp_path: Path) -> None:
    place = tmp_path / "my-cool-notes"
    place.mkdir()
    found = identify(place)
    assert (found.root, found.git_common_dir, found.git_root_commit, found.subdir) == (place, None, None, "")
    assert (found.name, found.wing, found.note) == ("my-cool-notes", "my_cool_notes", "")


def test_a_repository_and_a_directory_in_it(tmp_path: Path) -> None:
    place = repository(tmp_path / "my-app")
    (place / "docs" / "deep").mkdir(parents=True)
    found = identify(place / "docs" / "deep")
    assert found.git_common_dir == place / ".git"
    assert found.git_root_commit == git(place, "rev-list", "--max-parents=0", "HEAD")
    assert (found.name, found.subdir, found.note) == ("my-app", "docs/deep", "")
    assert identify(place).subdir == ""


def test_a_linked_worktree_is_the_same_project(tmp_path: Path) -> None:
    place = repository(tmp_path / "my-app")
    git(place, "worktree", "add", "-q", str(tmp_path / "elsewhere"))
    main, linked = identify(place), identify(tmp_path / "elsewhere")
    assert linked.root != main.root
    assert (linked.git_common_dir, linked.name, linked.wing) == (main.git_common_dir, "my-app", "my_app")
    assert linked.git_root_commit == main.git_root_commit


@pytest.mark.parametrize(("bare", "name"), [("my-app.git", "my-app"), ("my-app/.bare", "my-app")])
def test_worktrees_of_a_bare_repository(tmp_path: Path, bare: str, name: str) -> None:
    source = repository(tmp_path / "source")
    git(tmp_path, "clone", "-q", "--bare", str(source), str(tmp_path / bare))
    git(tmp_path / bare, "worktree", "add", "-q", str(tmp_path / "tree"), "HEAD")
    assert identify(tmp_path / "tree").name == name
    assert identify(tmp_path / bare).name == name


def test_a_clone_has_the_same_first_commit(tmp_path: Path) -> None:
    place = repository(tmp_path / "one")
    git(tmp_path, "clone", "-q", str(place), str(tmp_path / "two"))
    assert identify(tmp_path / "two").git_root_commit == identify(place).git_root_commit
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{place}", str(tmp_path / "three"))
    shallow = identify(tmp_path / "three")
    assert shallow.git_root_commit is None and "shallow" in shallow.note


def test_a_submodule_is_a_project_of_its_own(tmp_path: Path) -> None:
    inner, outer = repository(tmp_path / "inner"), repository(tmp_path / "outer")
    git(outer, "submodule", "add", "-q", str(inner), "libs/part")
    assert identify(outer / "libs" / "part").name == "part"
    assert identify(outer / "libs").name == "outer"


def test_a_repository_without_commits(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "empty")
    found = identify(tmp_path / "empty")
    assert found.git_common_dir == tmp_path / "empty" / ".git" and found.git_root_commit is None


def test_names_with_newlines_and_bytes(tmp_path: Path) -> None:
    place = repository(tmp_path / os.fsdecode(b"a\nb-\xe9"))
    (place / os.fsdecode(b"d\xe9")).mkdir()
    found = identify(place / os.fsdecode(b"d\xe9"))
    assert found.git_common_dir == place / ".git"
    assert found.subdir == "d\\xe9" and found.wing == "a_b"


def test_the_environment_does_not_redirect_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = repository(tmp_path / "one"), repository(tmp_path / "two")
    monkeypatch.setenv("GIT_DIR", str(two / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(two))
    assert identify(one).git_common_dir == one / ".git"


def test_nothing_of_the_repository_is_executed(tmp_path: Path) -> None:
    place = repository(tmp_path / "hostile")
    script = tmp_path / "script"
    script.write_text(f"#!/bin/sh\ntouch {tmp_path}/executed\n", encoding="utf-8")
    script.chmod(0o755)
    for key in ("core.fsmonitor", "core.pager", "core.sshCommand", "core.editor", "diff.external"):
        git(place, "config", key, str(script))
    git(place, "config", "alias.rev-parse", f"!{script}")
    identify(place)
    assert not (tmp_path / "executed").exists()


def test_git_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = repository(tmp_path / "one")
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    found = identify(place)
    assert (found.git_common_dir, found.name, found.note) == (None, "one", "git is not installed")


def fake_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "git").write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    (tmp_path / "bin" / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")


def test_git_refuses_the_owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_git(tmp_path, monkeypatch, "echo 'fatal: detected dubious ownership in repository' >&2; exit 128")
    found = identify(tmp_path)
    assert found.git_common_dir is None and "safe.directory" in found.note


def test_git_takes_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_git(tmp_path, monkeypatch, "exec sleep 60")
    found = identify(tmp_path, timeout=0.2)
    assert found.git_common_dir is None and "longer than 0.2 s" in found.note

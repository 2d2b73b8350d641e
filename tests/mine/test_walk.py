import os
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from castle.errors import UsageError
from castle.mine import walk as walk_module
from castle.mine.walk import Found, walk
from castle.records import Skipped

LIST = "ignored: built-in list"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    place = tmp_path / "project"
    place.mkdir()
    return place


def plant(root: Path, *paths: str, **contents: str) -> None:
    for path in (*paths, *contents):
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(contents.get(path, path), encoding="utf-8")


def rules(root: Path, path: str, *lines: str) -> None:
    place = root / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("\n".join(lines) + "\n", encoding="utf-8")


def found(root: Path, **options: object) -> list[str]:
    return [entry.relative for entry in walk(root, **options) if isinstance(entry, Found)]  # type: ignore[arg-type]


def skipped(root: Path, **options: object) -> dict[str, str]:
    entries = walk(root, **options)  # type: ignore[arg-type]
    return {entry.path: entry.reason for entry in entries if isinstance(entry, Skipped)}


def test_files_come_in_the_order_of_their_names(root: Path) -> None:
    plant(root, "b/2.md", "b/1.md", "a.md", "c.md", "b/a/x.md", "Z.md")
    assert found(root) == ["Z.md", "a.md", "b/1.md", "b/2.md", "b/a/x.md", "c.md"]


def test_what_is_known_of_a_file(root: Path) -> None:
    plant(root, **{"a/b.md": "hello"})
    (entry,) = [entry for entry in walk(root) if isinstance(entry, Found)]
    status = (root / "a/b.md").stat()
    assert entry.path == root / "a/b.md"
    assert (entry.raw, entry.size, entry.mtime_ns) == (b"a/b.md", 5, status.st_mtime_ns)
    assert (entry.ctime_ns, entry.inode, entry.device) == (status.st_ctime_ns, status.st_ino, status.st_dev)
    before = entry.signature
    (root / "a/b.md").write_text("changed", encoding="utf-8")
    assert next(entry.signature for entry in walk(root) if isinstance(entry, Found)) != before


def test_the_built_in_list(root: Path) -> None:
    plant(root, "node_modules/x/y.js", "src/__pycache__/a.pyc", "x.egg-info/PKG", "a.md", "package-lock.json")
    plant(root, "castle.yaml", "entities.json", "data/entities.json", "sub/castle.yaml", "sub/entities.json")
    assert found(root) == ["a.md", "data/entities.json"]
    assert skipped(root) == dict.fromkeys(
        ["castle.yaml", "entities.json", "node_modules/", "package-lock.json", "src/__pycache__/"]
        + ["sub/castle.yaml", "sub/entities.json", "x.egg-info/"],
        LIST,
    )


def test_a_file_named_like_a_skipped_directory_is_read(root: Path) -> None:
    plant(root, "build", "x/env")
    assert found(root) == ["build", "x/env"]


def test_ignore_files_of_every_directory(root: Path) -> None:
    rules(root, ".gitignore", "*.log", "/out/")
    rules(root, "sub/.gitignore", "!keep.log", "deep/")
    plant(root, "a.log", "out/x", "sub/keep.log", "sub/other.log", "sub/deep/x", "sub/out/y")
    assert found(root) == ["sub/keep.log", "sub/out/y"]
    assert skipped(root) == {
        ".gitignore": LIST,
        "a.log": "ignored: .gitignore:1",
        "out/": "ignored: .gitignore:2",
        "sub/.gitignore": LIST,
        "sub/other.log": "ignored: .gitignore:1",
        "sub/deep/": "ignored: sub/.gitignore:2",
    }


def test_gitignore_can_be_turned_off_but_castleignore_cannot(root: Path) -> None:
    rules(root, ".gitignore", "a.md", "b.md")
    rules(root, ".castleignore", "c.md", "!b.md")
    plant(root, "a.md", "b.md", "c.md")
    assert found(root) == ["b.md"]
    assert found(root, ignore=False) == ["a.md", "b.md"]
    assert skipped(root, ignore=False)["c.md"] == "ignored: .castleignore:1"


def test_castleignore_overrules_the_built_in_list(root: Path) -> None:
    rules(root, ".castleignore", "!build/")
    plant(root, "build/notes.md", "dist/x.md")
    assert found(root) == ["build/notes.md"]


def test_patterns_of_the_project(root: Path) -> None:
    plant(root, "a.md", "drafts/b.md", "env/c.md")
    assert found(root, patterns=("drafts/", "!env/")) == ["a.md", "env/c.md"]
    assert skipped(root, patterns=("drafts/",))["drafts/"] == "ignored: castle.yaml:1"


def test_rules_of_the_repository_above(tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    rules(repository, ".gitignore", "*.log", "/docs/private/")
    plant(repository, "docs/a.log", "docs/private/x.md", "docs/b.md")
    subprocess.run(["git", "init", "-q", str(repository)], check=True)
    rules(repository, ".git/info/exclude", "b.md")
    assert skipped(repository / "docs") == {
        "a.log": "ignored: ../.gitignore:1",
        "b.md": "ignored: ../.git/info/exclude:1",
        "private/": "ignored: ../.gitignore:2",
    }
    assert found(repository / "docs", ignore=False) == ["a.log", "b.md", "private/x.md"]


def test_exclude_of_a_repository_inside(root: Path) -> None:
    plant(root, "inner/a.md", "inner/b.md")
    rules(root, "inner/.git/info/exclude", "a.md")
    assert found(root) == ["inner/b.md"]
    assert skipped(root)["inner/a.md"] == "ignored: inner/.git/info/exclude:1"


def test_include_ignored(root: Path) -> None:
    rules(root, ".gitignore", "*.log", "secret/")
    plant(root, "node_modules/a/x.js", "node_modules/b/y.js", "x.log", "y.log", "secret/deep/z.log")
    assert found(root, include_ignored=["node_modules/a", "x.log", "secret/"]) == [
        "node_modules/a/x.js",
        "secret/deep/z.log",
        "x.log",
    ]
    assert skipped(root, include_ignored=["./node_modules/a", "x.log"]) == {
        ".gitignore": LIST,
        "node_modules/b/": LIST,
        "secret/": "ignored: .gitignore:2",
        "y.log": "ignored: .gitignore:1",
    }


def test_include_ignored_bends_castleignore_only_for_what_it_names(root: Path) -> None:
    rules(root, "vendor/.castleignore", "key.pem")
    plant(root, "vendor/key.pem", "vendor/a.md")
    assert found(root, include_ignored=["vendor"]) == ["vendor/.castleignore", "vendor/a.md"]
    assert "vendor/key.pem" in found(root, include_ignored=["vendor/key.pem"])


@pytest.mark.parametrize("path", ["../outside", "/etc/passwd", "a/../../b"])
def test_paths_outside_the_root_are_refused(root: Path, path: str) -> None:
    with pytest.raises(UsageError, match="not below"):
        walk(root, include_ignored=[path])
    with pytest.raises(UsageError, match="not below"):
        walk(root, only=Path(path))


def test_only_one_file_or_directory(root: Path) -> None:
    rules(root, "a/.gitignore", "x.log")
    plant(root, "a/b/1.md", "a/b/2.md", "a/x.log", "c.md")
    assert found(root, only=root / "a/b/1.md") == ["a/b/1.md"]
    assert found(root, only=Path("a/b")) == ["a/b/1.md", "a/b/2.md"]
    assert found(root, only=root) == found(root)
    assert skipped(root, only=root / "a/x.log") == {"a/x.log": "ignored: a/.gitignore:1"}
    assert skipped(root, only=root / "a/none") == {"a/none": "unreadable"}


def test_links_are_reported_and_never_followed(root: Path, tmp_path: Path) -> None:
    plant(tmp_path, "outside/secret.md")
    plant(root, "a.md")
    (root / "dir").symlink_to(tmp_path / "outside")
    (root / "file").symlink_to(tmp_path / "outside/secret.md")
    (root / "loop").symlink_to(root)
    (root / "null").symlink_to("/dev/null")
    (root / "broken").symlink_to("nowhere")
    assert found(root) == ["a.md"]
    assert skipped(root) == dict.fromkeys(["broken", "dir", "file", "loop", "null"], "symlink")


def test_the_root_itself_may_be_a_link(root: Path, tmp_path: Path) -> None:
    plant(root, "a/b.md")
    (tmp_path / "link").symlink_to(root)
    entries = [entry for entry in walk(tmp_path / "link") if isinstance(entry, Found)]
    assert [entry.path for entry in entries] == [root / "a/b.md"]
    assert found(tmp_path / "link", only=tmp_path / "link" / "a") == ["a/b.md"]


def test_a_directory_that_becomes_a_link_is_not_followed(root: Path, tmp_path: Path) -> None:
    plant(tmp_path, "outside/x.md")
    plant(root, "a/x.md", "b/x.md")
    entries = walk(root)
    first = next(entries)
    assert isinstance(first, Found) and first.relative == "a/x.md"
    for name in ("a", "b"):
        (root / name).rename(root / f"{name}-old")
        (root / name).symlink_to(tmp_path / "outside")
    assert isinstance(first.open(), Skipped)
    rest = list(entries)
    assert [(entry.path, entry.reason) for entry in rest if isinstance(entry, Skipped)] == [
        ("b/", "unreadable")
    ]


def test_special_files(root: Path) -> None:
    os.mkfifo(root / "fifo")
    os.mkfifo(root / ".gitignore")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(root / "socket"))
        assert skipped(root) == {"fifo": "not a regular file", "socket": "not a regular file"} | {
            ".gitignore": "not a regular file"
        }
    reasons = [entry.reason for entry in walk(root) if isinstance(entry, Skipped)]
    assert "rules not read: not a regular file" in reasons


def test_odd_names(root: Path) -> None:
    names = [b"-rf", b"a\nb", b"caf\xe9", "ünï".encode(), b"x" * 255, b"\xf0\x9f\x98\x80", b"back\\slash"]
    for name in names:
        (root / os.fsdecode(name)).write_bytes(b"x")
    entries = [entry for entry in walk(root) if isinstance(entry, Found)]
    assert [entry.raw for entry in entries] == sorted(names)
    for entry in entries:
        entry.relative.encode("utf-8")
        opened = entry.open()
        assert not isinstance(opened, Skipped)
        with opened as file:
            assert file.read() == b"x"
    assert "caf\\xe9" in [entry.relative for entry in entries]


def test_a_tree_deeper_than_a_path_may_be_long(root: Path) -> None:
    depth, name = 60, "d" * 100
    descriptor = os.open(root, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir(name, dir_fd=descriptor)
        inner = os.open(name, os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = inner
    for leaf in ("leaf.md", "x.log"):
        os.close(os.open(leaf, os.O_WRONLY | os.O_CREAT, dir_fd=descriptor))
    file = os.open(".gitignore", os.O_WRONLY | os.O_CREAT, dir_fd=descriptor)
    os.write(file, b"*.log\n")
    os.close(file)
    os.close(descriptor)
    (entry,) = [entry for entry in walk(root) if isinstance(entry, Found)]
    assert entry.relative == f"{name}/" * depth + "leaf.md"
    opened = entry.open()
    assert not isinstance(opened, Skipped)
    opened.close()


def test_an_unreadable_directory_and_file(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(root, "a/x.md", "b.md", "c.md")
    scan, access = os.scandir, os.access

    def deny(where: int) -> object:
        if os.path.sameopenfile(where, closed):
            raise PermissionError(13, "Permission denied")
        return scan(where)

    def deny_file(name: str, mode: int, **options: object) -> bool:
        return name != "b.md" and access(name, mode, **options)  # type: ignore[arg-type]

    closed = os.open(root / "a", os.O_RDONLY)
    monkeypatch.setattr(os, "scandir", deny)
    monkeypatch.setattr(os, "access", deny_file)
    entries = list(walk(root))
    os.close(closed)
    assert Skipped("a/", "unreadable", "Permission denied") in entries
    assert Skipped("b.md", "unreadable", "Permission denied") in entries
    assert [entry.relative for entry in entries if isinstance(entry, Found)] == ["c.md"]


def test_a_file_that_vanishes_while_it_is_looked_at(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(root, "a.md", "b.md")
    scan = walk_module._scan

    class Vanished:
        name = "b.md"
        path = "b.md"

        def stat(self, *, follow_symlinks: bool) -> os.stat_result:
            raise FileNotFoundError(2, "No such file or directory")

    class Listing:
        def __enter__(self) -> list[Vanished]:
            return [Vanished()]

        def __exit__(self, *_: object) -> None:
            pass

    monkeypatch.setattr(os, "scandir", lambda _: Listing())
    (entry,) = scan(root, None)
    assert isinstance(entry.status, FileNotFoundError)
    assert list(walk(root)) == [Skipped("b.md", "unreadable", "No such file or directory")]


def test_a_palace_inside_the_project_is_passed_over(root: Path) -> None:
    plant(root, "memory/castle.db", "memory/spool/x.jsonl", "a.md")
    assert found(root) == ["a.md"]
    assert skipped(root) == {"memory/": "a palace"}
    assert skipped(root / "memory") == {"./": "a palace"}


def test_a_directory_that_contains_itself(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(root, "a/b/x.md")
    real = walk_module._list
    status = (root / "a").stat()

    def mounted(place: Path, directory: bytes) -> object:
        if directory == b"a/b":
            return [walk_module._Entry(b"again", status, True)]
        return real(place, directory)

    monkeypatch.setattr(walk_module, "_list", mounted)
    assert list(walk(root)) == [Skipped("a/b/again/", "a directory that contains itself")]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: None, "No such file"),
        (lambda path: path.write_text("x", encoding="utf-8"), "not a directory"),
        (lambda path: path.symlink_to(path), "loop of links"),
    ],
)
def test_a_root_that_is_no_directory(tmp_path: Path, make: Callable[[Path], object], message: str) -> None:
    make(tmp_path / "x")
    with pytest.raises(UsageError, match=message):
        walk(tmp_path / "x")


def test_without_descriptors_of_directories(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walk_module, "_HAS_DIR_FD", False)
    rules(root, "a/.gitignore", "x.log")
    plant(root, "a/b.md", "a/x.log")
    (root / "link").symlink_to(root / "a")
    entries = [entry for entry in walk(root) if isinstance(entry, Found)]
    assert [entry.relative for entry in entries] == ["a/b.md"]
    opened = entries[0].open()
    assert not isinstance(opened, Skipped)
    opened.close()
    assert skipped(root)["link"] == "symlink"

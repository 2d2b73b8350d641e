"""The rules are those of Git: every case is put to ``git check-ignore`` as well."""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from castle.mine.ignore import RuleFile, Rules, load_rules, rules_above
from castle.mine.patterns import parse_rules
from castle.mine.read import open_regular
from castle.records import Skipped

ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")} | {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
}


def git(root: Path, *arguments: str, data: bytes = b"") -> bytes:
    done = subprocess.run(
        ["git", "-C", str(root), *arguments], input=data, capture_output=True, env=ENVIRONMENT, check=False
    )
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


def ignored_by_git(root: Path, paths: list[bytes]) -> set[bytes]:
    """Return which of the paths Git ignores; directories end in a slash."""
    answer = git(root, "check-ignore", "--no-index", "-v", "-n", "-z", "--stdin", data=b"\0".join(paths))
    fields = answer.split(b"\0")
    found = set()
    for at in range(0, len(fields) - 3, 4):
        _, line, pattern, path = fields[at : at + 4]
        if line and not pattern.startswith(b"!"):
            found.add(path)
    return found


def ignored_by_castle(rule_files: dict[bytes, bytes], paths: list[bytes]) -> set[bytes]:
    """Return which of the paths are ignored, an ignored directory deciding for what is in it."""
    found = set()
    for path in paths:
        parts = path.rstrip(b"/").split(b"/")
        rules = Rules()
        for depth in range(1, len(parts) + 1):
            base = b"".join(part + b"/" for part in parts[: depth - 1])
            if base in rule_files:
                rules = rules.with_git(RuleFile(".gitignore", base, parse_rules(rule_files[base])))
            is_dir = depth < len(parts) or path.endswith(b"/")
            verdict = rules.verdict(b"/".join(parts[:depth]), is_dir)
            if verdict is not None and verdict.ignored:
                found.add(path)
                break
    return found


def plant(root: Path, paths: list[bytes]) -> list[bytes]:
    """Make files and, for paths ending in a slash, directories; return those made, without the slash."""
    made = []
    for path in paths:
        place = root / os.fsdecode(path.rstrip(b"/"))
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.mkdir() if path.endswith(b"/") else place.touch(exist_ok=False)
        except (FileExistsError, NotADirectoryError):
            continue
        made.append(path)
    return made


def compare(rule_files: dict[bytes, bytes], paths: list[bytes]) -> None:
    """Plant a tree with rule files and put it to Git and to Castle."""
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        git(root, "init", "-q")
        paths = [path for path in plant(root, paths) if path.rstrip(b"/") not in (b".git", b".gitignore")]
        bases = {base for base in rule_files if (root / os.fsdecode(base)).is_dir()}
        for base in bases:
            (root / os.fsdecode(base) / ".gitignore").write_bytes(rule_files[base])
        ours = ignored_by_castle({base: rule_files[base] for base in bases}, paths)
        theirs = ignored_by_git(root, [path.rstrip(b"/") for path in paths])
        assert {path.rstrip(b"/") for path in ours} == theirs


NAMES = [
    b"a",
    b"b",
    b"ab",
    b"foo",
    b"foo.log",
    b"Makefile",
    b"x y",
    b"a-b",
    b"#x",
    b"!x",
    b"\xe9",
    "voilà".encode(),
    b"]",
    b"a\nb",
]
SHAPES = st.lists(st.sampled_from(NAMES), min_size=1, max_size=4).map(b"/".join)
PIECES = st.sampled_from(
    b"a b foo Makefile .log . * ? [ab] [!a] [^b-z] [!-a] []] [!]] [a-] [a-z]* \\* \\! \\# \\? - ] # !".split()
    + [b" ", b"\\ ", b"x y", b"\t", b"\xe9", "voilà".encode(), b"voil\xc3?"]
)
SEGMENTS = st.just(b"**") | st.lists(PIECES, min_size=1, max_size=3).map(b"".join).filter(
    lambda segment: b"**" not in segment
)
GLOBS = st.tuples(
    st.sampled_from([b"", b"", b"!"]),
    st.sampled_from([b"", b"", b"/", b"**/"]),
    st.lists(SEGMENTS, min_size=1, max_size=3).map(b"/".join),
    st.sampled_from([b"", b"", b"/", b"/**", b"/**/", b"  ", b"\r"]),
).map(b"".join)
ODD = st.sampled_from([b"", b"# foo", b"/", b"//", b"!", b"!/", b" ", b"[", b"foo[", b"a\\", b"a//b", b"\t"])
LINES = GLOBS | ODD


@pytest.mark.parametrize(
    "lines",
    [
        [b"*.log", b"!keep.log"],
        [b"/foo", b"a/b", b"b/"],
        [b"**/foo", b"a/**/b", b"ab/**"],
        [b"ab/**/", b"!ab/b"],
        [b"ab/**", b"!ab/foo/"],
        [b"fo*", b"**", b"!a"],
        [b"\\#x", b"\\!x", b"# comment", b"x\\ y", b"a   ", b"b\\ "],
        [b"*", b"!*/", b"!*.log"],
        [b"/*", b"!/a", b"/a/*", b"!/a/b"],
        [b"foo/", b"!foo"],
        [b"[Mm]akefile", b"*.[lo]og", b"[!a-c]", b"a[!x]b"],
        [b"[", b"[a", b"a\\", b"[z-a]", b"!", b"/", b"//", b"a//b", b""],
        [b"foo.log\r", b"b\r"],
        [b"a/\xe9", b"\xe9", "voilà".encode(), "/top/voilà/".encode()],
        [b"a?b", b"!a\nb"],
    ],
)
def test_tables_agree_with_git(lines: list[bytes]) -> None:
    tree = [b"/".join((x, y, z)) for x in NAMES[:6] for y in NAMES[:9] for z in (b"a", b"b", b"foo.log")]
    named = [b"top/" + name for name in NAMES] + [b"ab/" + name + b"/" for name in NAMES]
    compare({b"": b"\n".join(lines)}, tree + named + NAMES)


@pytest.mark.parametrize("lines", [[b"foo/"], [b"/a/foo"], [b"**/ab/"]])
def test_tables_do_ignore_something(lines: list[bytes]) -> None:
    assert ignored_by_castle({b"": b"\n".join(lines)}, [b"a/foo/", b"b", b"b/ab/a"])


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(
    st.lists(LINES, min_size=1, max_size=6),
    st.lists(LINES, max_size=3),
    st.lists(st.tuples(SHAPES, st.booleans()), min_size=5, max_size=40),
)
@example([b"/foo/"], [], [(b"foo", True), (b"foo.log", True), (b"foo", False)])
@example([b"*"], [b"!foo"], [(b"a/foo", False), (b"foo", False), (b"a", True)])
@example([b"*.log"], [b"!foo"], [(b"a/foo/foo.log", False)])
def test_made_trees_agree_with_git(
    lines: list[bytes], deeper: list[bytes], shapes: list[tuple[bytes, bool]]
) -> None:
    """Compare with Git over the patterns that people write.

    Left out is what pathspec reads differently from Git: named classes (``[[:alpha:]]``), a backslash or a
    slash inside brackets, ranges that include the slash (``[--9]``), three or more stars as directories
    (``***/a``), an escaped slash or tab, and two stars inside a name that also has a directory (``foo**/b``,
    where Git itself departs from its manual).
    """
    paths = sorted({shape + b"/" if is_dir else shape for shape, is_dir in shapes})
    compare({b"": b"\n".join(lines), b"a/": b"\n".join(deeper)}, paths)


def test_reason_names_file_and_line() -> None:
    rules = Rules().with_git(RuleFile("sub/.gitignore", b"sub/", parse_rules(b"# logs\n\n*.log\n")))
    found = rules.verdict(b"sub/x.log", False)
    assert found is not None and found.reason == "ignored: sub/.gitignore:3"


def test_castleignore_is_stronger() -> None:
    rules = Rules(
        git=(RuleFile(".gitignore", b"", parse_rules(b"a\n!b\n")),),
        castle=(RuleFile(".castleignore", b"", parse_rules(b"!a\nb\n")),),
    )
    a, b = rules.verdict(b"a", False), rules.verdict(b"b", False)
    assert a is not None and not a.ignored and a.by_castle
    assert b is not None and b.ignored and b.reason == "ignored: .castleignore:2"


def above(root: Path) -> Iterator[str]:
    for found in rules_above(root):
        if isinstance(found, bytes):
            yield os.fsdecode(found)
        else:
            yield found.shown if isinstance(found, RuleFile) else f"{found.path} {found.reason}"


def test_rules_above_the_root(tmp_path: Path) -> None:
    deep = tmp_path / "repo" / "one" / "two"
    deep.mkdir(parents=True)
    (tmp_path / ".gitignore").write_bytes(b"outside\n")
    (tmp_path / "repo" / ".gitignore").write_bytes(b"x\n")
    (tmp_path / "repo" / "one" / ".gitignore").write_bytes(b"y\n")
    (deep / ".gitignore").write_bytes(b"z\n")
    assert list(above(deep)) == [""]
    git(tmp_path / "repo", "init", "-q")
    (tmp_path / "repo" / ".git" / "info" / "exclude").write_bytes(b"w\n")
    assert list(above(deep)) == ["one/two/", "../../.git/info/exclude", "../../.gitignore", "../.gitignore"]


def test_exclude_of_a_linked_worktree(tmp_path: Path) -> None:
    main, linked = tmp_path / "main", tmp_path / "linked"
    main.mkdir()
    git(main, "init", "-q")
    git(main, "-c", "user.name=x", "-c", "user.email=x@y", "commit", "-q", "--allow-empty", "-m", "x")
    git(main, "worktree", "add", "-q", str(linked))
    (main / ".git" / "info" / "exclude").write_bytes(b"w\n")
    found = [entry for entry in rules_above(linked) if isinstance(entry, RuleFile)]
    assert [len(entry.rules) for entry in found] == [1]


def test_rule_file_that_is_no_regular_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to(tmp_path / "fifo")
    for name, reason in (
        ("fifo", "rules not read: not a regular file"),
        ("link", "rules not read: symlink"),
        ("none", "rules not read: unreadable"),
    ):
        found = load_rules(open_regular(tmp_path / name, shown=name), name, b"")
        assert isinstance(found, Skipped) and found.reason == reason

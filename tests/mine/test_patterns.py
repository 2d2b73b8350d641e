import pytest

from castle.mine.patterns import LONGEST_LINE, parse_rules


def decided(content: bytes, path: bytes) -> tuple[bool, int] | None:
    """Return what the last matching rule says; directories end in a slash."""
    for block in reversed(parse_rules(content)):
        found = block.last_match(path.decode("latin-1"))
        if found is not None:
            return found
    return None


def ignored(content: bytes, path: bytes) -> bool:
    found = decided(content, path)
    return found is not None and found[0]


def test_hostile_patterns_end() -> None:
    name = b"a" * 255
    assert not ignored(b"*a" * 60 + b"*b", name)
    assert not ignored(b"**/*a*a*a*a/" * 12 + b"b", b"/".join([name] * 14))
    assert not ignored(b"\n".join([b"*a" * 2000 + b"b"] * 100), name)
    assert ignored(b"*a" * 60 + b"*", name)
    assert ignored(b"*a" * 2000 + b"*", b"a" * 2000)


def test_a_line_that_cannot_be_compiled_spoils_no_other() -> None:
    bad = [b"[z-a]", b"[[:alpha:]]", b"[", b"a\\", b"!", b"!/", b"x" * (LONGEST_LINE + 1), b"\0", b"a\0b"]
    content = b"foo\n" + b"\n".join(bad) + b"\nbar\n"
    assert decided(content, b"foo") == (True, 1)
    assert decided(content, b"bar") == (True, len(bad) + 2)
    for name in (b"a", b"z", b"[", b"!", b"q/", b"x" * (LONGEST_LINE + 1)):
        assert decided(content, name) is None


def test_the_last_of_thousands_of_lines_decides() -> None:
    lines = [b"name%d*.log[0-9]?x" % number for number in range(3000)]
    content = b"\n".join([b"*5yx", *lines, b"!name7*", *lines])
    assert decided(content, b"dir/name2999abc.log5yx") == (True, 6002)
    assert decided(content, b"dir/name7abc.log5yz") == (False, 3002)
    assert decided(content, b"dir/none.log5yx") == (True, 1)
    assert decided(content, b"dir/none") is None


def test_lines_as_long_as_paths_are_matched_beside_others() -> None:
    lines = [b"%d*" % number + b"*a?[xyz]" * 500 for number in range(50)]
    assert decided(b"\n".join([b"foo", *lines]), b"foo") == (True, 1)
    assert decided(b"\n".join(lines), b"17" + b"-aax" * 500) == (True, 18)


@pytest.mark.parametrize(
    ("line", "matched", "passed"),
    [
        (b"dir/**", b"dir/x dir/x/", b"dir/ dir"),
        (b"dir/**/", b"dir/x/ dir/x/y/", b"dir/ dir/x"),
        (b"dir", b"dir dir/ x/dir", b"dir/x x/dir/y/"),
        (b"*/", b"a/ a/b/", b"a a/b"),
        (b"lib[!s]*", b"libx", b"lib/x libs"),
        (b"[!-a]x", b"bx", b"ax -x /x"),
        (b"a[^]]b", b"axb", b"a]b a/b"),
    ],
)
def test_a_rule_names_entries_and_not_what_is_in_them(line: bytes, matched: bytes, passed: bytes) -> None:
    assert all(ignored(line, path) for path in matched.split())
    assert not any(ignored(line, path) for path in passed.split())


def test_rule_files_in_other_encodings() -> None:
    assert ignored(b"\xef\xbb\xbffoo\n", b"foo")
    assert ignored("foo\r\nbär\r\n".encode("utf-16"), "bär".encode())
    assert ignored(b"caf\xe9\n", b"caf\xe9")
    assert not ignored(b"\xff\xfe\x00", b"foo")


@pytest.mark.parametrize("name", ["voilà", "à", "関連", "\x85", "a\x1f", "तपा"])
def test_a_last_byte_that_looks_like_a_space_stays(name: str) -> None:
    for raw in (name.encode(), name.encode() + b"  ", name.encode() + b"\r"):
        assert ignored(raw, name.encode())
        assert not ignored(raw, name.encode()[:-1])


def test_white_space_at_the_end_is_cut_as_git_does() -> None:
    assert ignored(b"a  ", b"a")
    assert ignored(b"a\\  ", b"a ")
    assert ignored(b"a\\\\ ", b"a\\")
    assert ignored(b"a\t", b"a\t") and not ignored(b"a\t", b"a")
    assert ignored(b"Icon\r\r", b"Icon\r")

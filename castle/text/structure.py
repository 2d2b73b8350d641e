"""What a line means for the structure of a text: heading, definition, comment, prose.

A ``Reader`` is fed the non-blank lines of a source in order, each with the two lines that follow it, and
tells the strength of the boundary before the line and the heading or definition that the line opens. It reads
no more than the beginning of a line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

HEADING = 90
"""Boundaries from here on begin a section of the text; a first-level heading is the strongest."""
DEFINITION = 95
NESTED = 70
PARAGRAPH = 60
LINE = 50
SENTENCE = 40
CLAUSE = 32
SPACE = 30
GLUED = 25
"""Between a heading or the comment of a definition and what belongs to it."""
SIGN = 20
CHARACTER = 10
INSIDE = 1
"""Inside what is one character to the reader."""

HEAD = 240
"""Characters of a line that are looked at."""


@dataclass(frozen=True, slots=True)
class Mark:
    """What a line means.

    ``level`` is the depth of the heading or definition that begins here (``title`` is where its name stands,
    counted from the beginning of the line, perhaps in the next one) or, without a title, the depth at which
    earlier ones end; -1 for neither. ``leads`` is true for a comment or decorator, which belongs to a
    definition that follows at once. ``glued`` is true when the next line belongs to this one.
    """

    strength: int = LINE
    level: int = -1
    title: tuple[int, int] | None = None
    leads: bool = False
    glued: bool = False


_LONGEST_MATTER = 100

PLAIN = Mark()
_LEAD = Mark(leads=True)
_GLUED = Mark(glued=True)
_PROSE_END = re.compile(r"[.!?:。！？…][\"'”’)\]*_]*\s*$")


class Reader:
    """Plain text: every line is a line."""

    def mark(self, line: str, following: tuple[str, str]) -> Mark:
        """Tell what a line means; ``following`` are the beginnings of the next two lines."""
        return PLAIN


class _Markdown(Reader):
    _ATX = re.compile(r" {0,3}(#{1,6})[ \t]+(?P<title>[^\n]*?)[ \t#]*$")
    _SETEXT = re.compile(r" {0,3}(=+|-{2,})[ \t\r]*$")
    _FENCE = re.compile(r" {0,3}(`{3,}|~{3,})([^\r\n]*)")
    _NO_TITLE = re.compile(r"[ \t]*(?:[-*+>|]|\d+[.)]|$)|---")

    def __init__(self) -> None:
        self._fence = ""
        self._underlined = False
        self._matter = 0

    def mark(self, line: str, following: tuple[str, str]) -> Mark:
        if self._underlined:
            self._underlined = False
            return Mark(GLUED, glued=True)
        if self._in_front_matter(line):
            return PLAIN
        first = line.lstrip(" ")[:1]
        if first in "`~" and (fence := self._FENCE.match(line)):
            return self._at_fence(fence)
        if self._fence:
            return PLAIN
        if first == "#" and (atx := self._ATX.match(line.rstrip())):
            return self._heading(len(atx[1]), atx.span("title"))
        if following[0][:1] in "=- " and not self._NO_TITLE.match(line):
            under = self._SETEXT.match(following[0])
            if under is not None:
                self._underlined = True
                return self._heading(1 if under[1][0] == "=" else 2, (0, len(line.rstrip())))
        return PLAIN

    def _in_front_matter(self, line: str) -> bool:
        """Count the lines of a YAML header; -1 when there is none or it has ended."""
        if self._matter < 0:
            return False
        rule = line.rstrip() == "---"
        if rule == (self._matter == 0) and self._matter < _LONGEST_MATTER:
            self._matter += 1
            return True
        self._matter = -1
        return rule

    def _at_fence(self, fence: re.Match[str]) -> Mark:
        if not self._fence:
            if fence[1][0] == "`" and "`" in fence[2]:
                return PLAIN
            self._fence = fence[1]
            return _GLUED
        if fence[1].startswith(self._fence) and not fence[2].strip():
            self._fence = ""
            return Mark(GLUED)
        return PLAIN

    @staticmethod
    def _heading(level: int, title: tuple[int, int]) -> Mark:
        return Mark(HEADING + 8 - level, level, title, glued=True)


class _Underlined(Reader):
    """Titles with a line of signs below, and perhaps one above (reStructuredText)."""

    _RULE = re.compile(r"([=\-~^\"'`#*+:.<>_])\1{2,}[ \t\r]*$")

    def __init__(self) -> None:
        self._levels: list[str] = []
        self._glue = 0

    def mark(self, line: str, following: tuple[str, str]) -> Mark:
        if self._glue:
            self._glue -= 1
            return Mark(GLUED, glued=True)
        above = self._RULE.match(line)
        if above is not None:
            below = self._RULE.match(following[1])
            if below is None or below[1] != above[1] or not following[0].strip():
                return PLAIN
            self._glue = 2
            start = len(line) + 1
            return self._title(above[1] * 2, (start, start + len(following[0].rstrip())))
        below = self._RULE.match(following[0])
        size = len(line.rstrip())
        if below is None or line[:1].isspace() or len(following[0].rstrip()) < min(size, HEAD - 2):
            return PLAIN
        self._glue = 1
        return self._title(below[1], (0, size))

    def _title(self, style: str, title: tuple[int, int]) -> Mark:
        if style not in self._levels:
            self._levels.append(style)
        level = self._levels.index(style) + 1
        return Mark(HEADING + max(1, 8 - level), level, title, glued=True)


class _Pattern(Reader):
    """Headings that one expression finds: its group 1 tells the level by its length."""

    def __init__(self, pattern: str) -> None:
        self._pattern = re.compile(pattern)

    def mark(self, line: str, following: tuple[str, str]) -> Mark:
        found = self._pattern.match(line)
        if found is None:
            return PLAIN
        level = min(len(found[1]), 7)
        return Mark(HEADING + 8 - level, level, found.span("title"), glued=True)


class _Indented(Reader):
    """Languages in which indentation tells what belongs together, and those that end with a word."""

    _NO_DEDENT = frozenset("#)]}\"'\\")

    def __init__(self, definition: str) -> None:
        self._definition = re.compile(definition)
        self._open: list[int] = []
        self._decorated = -1

    def mark(self, line: str, following: tuple[str, str]) -> Mark:
        first = line[:1]
        if first in " \t":
            body = line.lstrip(" \t")
            indent = len(line) - len(body)
            first = body[:1]
        else:
            indent = 0
        if 0 <= self._decorated < indent or (self._decorated == indent and first in ")]}"):
            return _LEAD
        self._decorated = indent if first == "@" else -1
        if first in "#@":
            return _LEAD
        found = self._definition.match(line, indent) if first.isalpha() else None
        if found is not None:
            self._close(indent)
            self._open.append(indent)
            return Mark(NESTED if indent else DEFINITION, indent + 1, found.span("name"))
        if self._open and indent <= self._open[-1] and first not in self._NO_DEDENT:
            self._close(indent)
            return Mark(LINE, indent + 1)
        return PLAIN

    def _close(self, indent: int) -> None:
        while self._open and self._open[-1] >= indent:
            self._open.pop()


class _Braces(Reader):
    """Languages whose blocks stand in braces."""

    _WORDS = re.compile(
        r"(?:(?:export|default|declare|abstract|async|public|private|protected|internal|static|final|sealed|open"
        r"|override|inline|const|unsafe|extern|pub|pub\([a-z]{1,9}\)|data|partial|suspend|virtual|readonly)"
        r"[ \t]+){0,6}"
        r"(?:function\*?|class|interface|enum|struct|trait|impl|union|module|namespace|record|object|protocol"
        r"|extension|func|fun|fn|type|mod|macro_rules!)(?=[ \t<])[ \t]*"
        r"(?:\([^()\n]{0,80}\)[ \t]*|<[^<>\n]{0,80}>[ \t]*)?"
        r"(?P<name>[A-Za-z_$][\w$.:]*(?: for [\w$.:]+)?)"
    )
    _BOUND = re.compile(
        r"(?:export[ \t]+)?(?:default[ \t]+)?(?:const|let|var)[ \t]+(?P<name>[\w$]+)[^=\n]{0,80}="
        r"[ \t]*(?:async[ \t]*)?"
        r"(?:function\b|\([^()\n]{0,120}\)[^=\n]{0,60}=>|[\w$]+[ \t]*=>)"
    )
    _CALL = re.compile(r"[^=(\n]*?(?P<name>[A-Za-z_$~][\w$:~]{0,80})[ \t]*\(")
    _CONTROL = frozenset(
        "if for while switch catch else return do try synchronized using with foreach new throw when match "
        "select case default loop guard unless until in of and or not elif except defer go lock fixed".split()
    )

    def __init__(self) -> None:
        self._open: list[int] = []
        self._closing = -1

    def mark(self, line: str, following: tuple[str, str]) -> Mark:
        body = line.lstrip(" \t")
        indent = len(line) - len(body)
        closed, self._closing = self._closing, -1
        first = body[:1]
        if first == "}" and self._open and indent <= self._open[-1]:
            self._close(indent)
            self._closing = indent
        if (
            first in "/*@"
            or body.startswith(("#[", "template"))
            or (first == "[" and body.rstrip().endswith("]"))
        ):
            return Mark(LINE, closed + 1 if closed >= 0 else -1, leads=True)
        name = self._name(body, following[0]) if first.isalpha() or first in "_$~" else None
        if name is not None:
            self._close(indent)
            self._open.append(indent)
            span = (indent + name[0], indent + name[1])
            return Mark(NESTED if indent else DEFINITION, indent + 1, span)
        return Mark(LINE, closed + 1) if closed >= 0 else PLAIN

    def _name(self, body: str, following: str) -> tuple[int, int] | None:
        found = self._WORDS.match(body) or self._BOUND.match(body)
        if found is not None:
            return (
                None
                if body.rstrip().endswith(";") and "{" not in body and "=" not in body
                else found.span("name")
            )
        end = body.rstrip()
        if "(" not in end or not (
            end.endswith("{") or (following[:1] == "{" and not end.endswith((";", ",")))
        ):
            return None
        found = self._CALL.match(body)
        if found is None or not self._CONTROL.isdisjoint(
            (found["name"], body.split(None, 1)[0].split("(")[0])
        ):
            return None
        return found.span("name")

    def _close(self, indent: int) -> None:
        while self._open and self._open[-1] >= indent:
            self._open.pop()


_PYTHON = r"(?:async[ \t]+)?(?:def|class)[ \t]+(?P<name>\w+)"
_RUBY = r"(?:def|class|module)[ \t]+(?P<name>[\w.:?!]+)"
_SHELL = r"(?:function[ \t]+)?(?P<name>[\w:-]+)[ \t]*\(\)"

_MARKDOWN_SUFFIXES = frozenset(".md .markdown .mdown .mdx .qmd .rmd .mkd".split())
_BRACES_SUFFIXES = frozenset(
    ".js .jsx .mjs .cjs .ts .tsx .mts .cts .java .go .rs .c .h .cc .cpp .cxx .hh .hpp .hxx .cs .kt .kts "
    ".swift .scala .php .dart .m .mm .groovy .vue .svelte .proto .zig".split()
)
_SECTIONS = {
    ".org": r"(\*{1,7})[ \t]+(?P<title>[^\n]*?)[ \t]*$",
    ".adoc": r"(={1,7})[ \t]+(?P<title>[^\n]*?)[ \t]*$",
    ".asciidoc": r"(={1,7})[ \t]+(?P<title>[^\n]*?)[ \t]*$",
    ".wiki": r"(={1,6})[ \t]*(?P<title>[^=\n]+?)[ \t]*={1,6}[ \t\r]*$",
    ".tex": r"\\((?:sub){0,2}(?=section|chapter|part))[a-z]+\*?\{(?P<title>[^{}\n]*)\}",
    ".toml": r"(\[{1,2})(?P<title>[^\[\]\n]+)\]",
    ".ini": r"(\[)(?P<title>[^\[\]\n]+)\]",
    ".cfg": r"(\[)(?P<title>[^\[\]\n]+)\]",
    ".conf": r"(\[)(?P<title>[^\[\]\n]+)\]",
}


def reader_for(name: str) -> Reader:
    """Choose how a source is read by the suffix of its name; what is not known is plain text."""
    last = name.replace("\\", "/").rpartition("/")[2]
    stem, _, ending = last.rpartition(".")
    suffix = f".{ending}".lower() if stem and ending else ""
    if suffix in _MARKDOWN_SUFFIXES:
        return _Markdown()
    if suffix in (".rst", ".rest"):
        return _Underlined()
    if suffix in (".py", ".pyi", ".pyx"):
        return _Indented(_PYTHON)
    if suffix in (".rb", ".rake", ".cr", ".ex", ".exs"):
        return _Indented(_RUBY)
    if suffix in (".sh", ".bash", ".zsh", ".fish"):
        return _Indented(_SHELL)
    if suffix in _BRACES_SUFFIXES:
        return _Braces()
    if suffix in _SECTIONS:
        return _Pattern(_SECTIONS[suffix])
    return Reader()


def ends_sentence(line: str) -> bool:
    """Tell whether a line ends where a sentence ends."""
    return _PROSE_END.search(line[-16:]) is not None

"""What commands print: data on stdout, progress and notes on stderr, JSON on request."""

from __future__ import annotations

import dataclasses
import io
import json
import re
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from castle.clock import to_iso

PARTIAL = 3
_SHOW_AFTER_SECONDS = 1.0
_TIMES = ("_at", "valid_from", "valid_to")
_PIPE_WIDTH = 2000
_NARROWEST = 8
_ACTS = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_LAYOUT = "\n\t"
_WHOLE = ("id", "session", "saved")
"""Columns that are never cut into lines: what stands in them is copied into the next command."""


def visible(text: str, keep: str = "") -> str:
    """Return the text with a visible escape for every character that a terminal would act on.

    Those are control characters but for the ones in ``keep``, the marks that turn the direction of writing,
    and the lone surrogates that stand for bytes of a name that is not UTF-8.
    """
    return _ACTS.sub(lambda found: _escape(found, keep), text)


def _escape(found: re.Match[str], keep: str) -> str:
    char = found.group()
    if char in keep or (char == "\r" and "\n" in keep and found.string[found.end() :][:1] == "\n"):
        return char
    if "\udc80" <= char <= "\udcff":
        return f"\\x{ord(char) - 0xDC00:02x}"
    return char.encode("unicode_escape", "surrogatepass").decode("ascii")


def counted(count: int, noun: str) -> str:
    """Write a number with the noun it counts: 1 drawer, 2,000 drawers."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def shortened(text: str, most: int) -> str:
    """Return the end of a text that is longer than ``most`` characters: of a path, it tells more."""
    return text if len(text) <= most else f"…{text[len(text) - most + 1 :]}"


def say(text: str = "") -> None:
    """Write a line of data, or several; what a terminal would act on is shown, see ``visible``."""
    sys.stdout.write(f"{visible(text, _LAYOUT)}\n")


def write(text: str) -> None:
    """Write text as it is, escape codes included, without adding a line end."""
    sys.stdout.write(text)


def note(text: str) -> None:
    """Write one line for the person at the terminal, not for the program behind the pipe."""
    sys.stderr.write(f"{visible(text)}\n")


def say_outline(told: Mapping[str, object], indent: str = "") -> None:
    """Write a report for a person: a line for each field, and what a field holds indented below it."""
    for key, value in told.items():
        parts = list(value) if isinstance(value, list | tuple) else []
        if isinstance(value, Mapping) and value:
            say(f"{indent}{key}:")
            say_outline(value, indent + "  ")
        elif any(isinstance(part, Mapping | list | tuple) for part in parts):
            say(f"{indent}{key}:")
            for number, part in enumerate(parts, start=1):
                say_outline({str(number): part}, indent + "  ")
        elif key == "notes":
            for part in parts:
                note(str(part))
        else:
            say(f"{indent}{key}: {inline(value)}")


def inline(value: object) -> str:
    """Write a value within a line: yes and no for truth, - for nothing, a list with commas."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {inline(held)}" for key, held in value.items()) or "-"
    if isinstance(value, list | tuple):
        return ", ".join(map(inline, value)) or "-"
    return "-" if value is None or value == "" else " ".join(str(value).split())


def say_json(value: object) -> None:
    """Write a value as JSON; dataclasses become objects, times ISO 8601 with offset."""
    unicode = (getattr(sys.stdout, "encoding", None) or "").lower().startswith("utf")
    text = json.dumps(plain(value), ensure_ascii=not unicode, indent=2)
    # A lone surrogate, which no encoding has, becomes the escape that JSON has for it.
    sys.stdout.write(text.encode("utf-8", "backslashreplace").decode("utf-8") + "\n")


def plain(value: object, key: str = "") -> object:
    """Turn a value into what JSON knows."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        shown = {f.name: getattr(value, f.name) for f in dataclasses.fields(value) if _shows(f, value)}
        return {name: plain(held, name) for name, held in shown.items()}
    if isinstance(value, Mapping):
        return {str(k): plain(v, str(k)) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, int) and not isinstance(value, bool) and (key == "at" or key.endswith(_TIMES)):
        return to_iso(value)
    return value


def _shows(field: dataclasses.Field[object], value: object) -> bool:
    return bool(getattr(value, field.name)) or "sparse" not in field.metadata


def say_table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table; numbers are set flush right. It is wider than the terminal where it has to be."""
    from rich.cells import cell_len
    from rich.console import Console, ConsoleDimensions
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    cells = [[visible(f"{c:,}" if isinstance(c, int) else str(c)) for c in row] for row in rows]
    least = 0
    for index, name in enumerate(columns):
        numeric = bool(rows) and all(isinstance(row[index], int | float) for row in rows)
        widest = max([cell_len(name), *(cell_len(row[index]) for row in cells)])
        whole = numeric or name in _WHOLE
        least += 2 + (widest if whole else min(widest, max(len(name), _NARROWEST)))
        table.add_column(name, justify="right" if numeric else "left", overflow="fold", no_wrap=whole)
    for row in cells:
        table.add_row(*map(Text, row))
    # Not printed by rich itself, which ends the process with 1 when the reader of its output has gone.
    printed, terminal = io.StringIO(), sys.stdout.isatty()
    console = Console(file=printed, force_terminal=terminal, width=None if terminal else _PIPE_WIDTH)
    console.size = ConsoleDimensions(max(console.width, least), console.height)
    console.print(table)
    write("".join(f"{line.rstrip()}\n" for line in printed.getvalue().splitlines()))


class Progress:
    """A progress line on stderr that appears when work takes more than a second."""

    def __init__(self, live: bool) -> None:
        self._live = live
        self._started = time.monotonic()
        self._bar: object | None = None
        self._tasks: dict[str, object] = {}

    def __call__(self, phase: str, done: int, total: int) -> None:
        """Report ``done`` of ``total`` in a phase; a total of 0 is not known."""
        if self._bar is None:
            if not self._live or time.monotonic() - self._started < _SHOW_AFTER_SECONDS:
                return
            self._bar = self._start()
        bar = self._bar
        if phase not in self._tasks:
            self._tasks[phase] = bar.add_task(phase, total=total or None)  # type: ignore[attr-defined]
        bar.update(self._tasks[phase], completed=done, total=total or None)  # type: ignore[attr-defined]

    def stop(self) -> None:
        """Leave the terminal as it was."""
        if self._bar is not None:
            self._bar.stop()  # type: ignore[attr-defined]

    @staticmethod
    def _start() -> object:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        bar = Bar(*columns, console=Console(stderr=True), transient=True)
        bar.start()
        return bar


@contextmanager
def progress(quiet: bool = False) -> Iterator[Progress]:
    """Show progress on stderr while the block runs."""
    line = Progress(live=not quiet)
    try:
        yield line
    finally:
        line.stop()

"""``castle.yaml.example`` and the table in ``docs/configuration.md``, written from the settings themselves.

``python -m castle.config.docs`` in the root of the repository brings both files up to date.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from castle.config.settings import Key, keys
from castle.config.values import to_yaml

EXAMPLE = Path("castle.yaml.example")
PAGE = Path("docs/configuration.md")

BEGIN = "<!-- settings: python -m castle.config.docs -->"
END = "<!-- end of settings -->"

_HEAD = """\
# Every setting of ~/.castle/castle.yaml with its default. Copy the file to that place and remove the # in
# front of what you change.
# Settings marked "not read yet" are accepted, but no part of this version reads them.
"""


def example() -> str:
    """Return the text of ``castle.yaml.example``: each key with one line of explanation, commented out."""
    lines = [_HEAD]
    group = ""
    for key in keys().values():
        head, _, name = key.name.rpartition(".")
        if head != group:
            lines.append(f"#{head}:")
            group = head
        indent = "  " if head else ""
        note = f" (not read yet: {key.pending})" if key.pending else ""
        lines.append(f"{'#' + indent if head else ''}# {key.doc}{note}")
        lines.extend(f"#{indent}{line}" for line in _block(name or key.name, key.default))
        if not head:
            lines.append("")
    return "\n".join(lines).rstrip("\n") + "\n"


def _block(name: str, value: object) -> list[str]:
    """Write one key, a mapping with one entry per line."""
    if isinstance(value, Mapping) and value:
        return [f"{name}:", *(f"  {entry}: {to_yaml(item)}" for entry, item in value.items())]
    return [f"{name}: {to_yaml(value)}"]


def table() -> str:
    """Return the table of all keys in Markdown."""
    lines = ["| key | environment | default | takes | meaning |", "|---|---|---|---|---|"]
    for key in keys().values():
        env = ", ".join(f"`{name}`" for name in key.env) or "–"
        note = f" *Not read yet: {key.pending}.*" if key.pending else ""
        cells = (f"`{key.name}`", env, _default(key), key.expected.replace("|", "\\|"), key.doc + note)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _default(key: Key) -> str:
    text = to_yaml(key.default)
    return f"`{text}`" if len(text) <= 60 else "see `castle.yaml.example`"


def page(text: str) -> str:
    """Return the page with its table replaced; raises ValueError when the page has no place for it."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page has no lines {BEGIN} and {END}")
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


def main() -> None:
    """Write both files below the current directory."""
    EXAMPLE.write_text(example(), encoding="utf-8")
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()

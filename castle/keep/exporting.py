"""Export: the content of the palace in a directory, written beside its place and moved there whole."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from sqlalchemy import select

from castle.errors import NotFoundError, RefusedError, UsageError
from castle.keep.jsonl import write_jsonl
from castle.keep.layout import FILE
from castle.keep.markdown import write_markdown
from castle.store.drafts import draft_beside, remove_left, see_on_disk, see_tree_on_disk, telling
from castle.store.palace import Palace
from castle.store.purged import note_copy
from castle.store.schema import sources

Format = Literal["markdown", "jsonl"]
FORMATS: tuple[Format, ...] = get_args(Format)

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Exported:
    """An export as it stands on disk.

    ``masked`` drawers have something sealed that is masked, ``purged`` ones are left out. ``exact`` is true
    for the lossless form with secrets and all. ``bytes`` counts all files.
    """

    path: str
    format: Format
    exact: bool
    sources: int
    drawers: int
    masked: int
    purged: int
    files: int
    bytes: int


def check_format(name: str, include_secrets: bool) -> Format:
    """Return the format that ``name`` means. Raises UsageError."""
    for known in FORMATS:
        if name == known:
            if include_secrets and known == "markdown":
                raise UsageError("Markdown is always masked: --include-secrets goes with --format jsonl")
            return known
    raise UsageError(f"no format {name!r}: there are {', '.join(FORMATS)}")


def export(
    palace: Palace,
    directory: Path,
    *,
    format: Format = "markdown",
    wing: str | None = None,
    history: bool = False,
    include_secrets: bool = False,
    progress: Progress | None = None,
) -> Exported:
    """Write the palace, or one wing, into a directory that is new or empty.

    ``history`` adds superseded drawers to the Markdown; the lossless form has them always. Raises
    NotFoundError for an unknown wing, RefusedError for a directory with something in it, PalaceError when it
    cannot be written; nothing is left behind then.
    """
    directory = directory.absolute()
    remove_left(directory)
    _check_target(palace, directory)
    if wing is not None:
        with palace.ledger.read() as cx:
            if cx.execute(select(sources.c.id).where(sources.c.wing == wing).limit(1)).first() is None:
                raise NotFoundError(f"no wing {wing}: `castle status` shows them")
    note_copy(palace.ledger, directory)  # before it is made: see backups
    with telling("nothing can be exported to", directory):
        directory.parent.mkdir(parents=True, exist_ok=True)
    with telling("nothing can be exported to", directory), draft_beside(directory) as draft:
        if format == "jsonl":
            (draft / FILE).touch(mode=0o600)
            counts = write_jsonl(palace, draft / FILE, wing=wing, secrets=include_secrets, progress=progress)
            held = (counts.get("sources", 0), counts.get("drawers", 0), counts["masked"], counts["purged"], 1)
        else:
            tree = write_markdown(palace, draft, wing=wing, history=history, progress=progress)
            held = (tree.sources, tree.drawers, tree.masked, 0, tree.files)
        see_tree_on_disk(draft)
        size = sum(file.stat().st_size for file in draft.rglob("*") if file.is_file())
        if directory.exists():
            directory.rmdir()
        draft.rename(directory)
        see_on_disk(directory.parent)
    return Exported(str(directory), format, include_secrets, *held, size)


def _check_target(palace: Palace, directory: Path) -> None:
    root = palace.root.resolve()
    if root in (directory.resolve(), *directory.resolve().parents):
        raise UsageError(f"{directory} is inside the palace: name another place")
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise RefusedError(f"{directory} has something in it: name a directory that is new or empty")

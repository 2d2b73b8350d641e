"""The watermark of an index of words, in a file beside it that is written after each commit.

It is no document of the index, where every commit would leave a deleted one: those count in the statistics
that words are weighed by, and two palaces with the same drawers would rank them differently. A writer that
is killed between the two leaves an older watermark, and what it brought in is brought in again. A commit that
is older than the watermark, as after some files were put back from a copy, makes it void.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from castle.store.projection import Watermark

NAME = "watermark.json"
_META = "meta.json"


def read_mark(directory: Path, format_: int) -> Watermark | None:
    """Return the watermark of an index of this format; None when there is none that holds."""
    try:
        held = json.loads((directory / NAME).read_bytes())
        epoch, seq, opstamp = held["epoch"], held["seq"], held["opstamp"]
        committed = json.loads((directory / _META).read_bytes())["opstamp"]
        if held["format"] == format_ and committed >= opstamp:
            return Watermark(str(epoch), int(seq))
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return None


def write_mark(directory: Path, format_: int, reached: Watermark) -> None:
    """Put the watermark of the last commit in its place. Raises OSError."""
    committed = json.loads((directory / _META).read_bytes())["opstamp"]
    held = {"format": format_, "epoch": reached.epoch, "seq": reached.seq, "opstamp": committed}
    draft = directory / f".{NAME}"
    with draft.open("w", encoding="utf-8") as file:
        file.write(json.dumps(held))
        file.flush()
        os.fsync(file.fileno())
    draft.replace(directory / NAME)

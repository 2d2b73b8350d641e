from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from castle.errors import UsageError
from castle.sue.specification import MOST_BYTES, Snapshot, compose, digest

TEXTS = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=40), min_size=1, max_size=4)


@given(TEXTS)
@settings(max_examples=60, deadline=None)
def test_every_snapshot_stands_whole_where_the_specification_says(texts: list[str]) -> None:
    snapshots = [Snapshot(f"{number:064x}", text, {"wing": "w"}) for number, text in enumerate(texts)]
    found = compose(snapshots, "0a1b2c3d")
    whole = found.text.encode("utf-8")
    lines = found.lines
    for number, (part, text) in enumerate(zip(found.parts, texts, strict=True), 1):
        assert whole[part.byte_start : part.byte_end] == text.encode("utf-8")
        assert part.sha256 == digest(text.encode("utf-8"))
        assert part.snapshot == f"source-{number:03d}.txt"
        assert "\n".join(lines[part.line_start - 1 : part.line_end]) == text.removesuffix("\n")
        head = lines[part.boundary - 1]
        assert head.startswith(f"----- source {number} of {len(texts)} [0a1b2c3d] ")
        assert json.loads(head.partition("] ")[2]) == {"drawer": part.drawer, "wing": "w"}
        assert (found.link(part.boundary).drawer, found.link(part.boundary).line) == (part.drawer, None)
        assert found.link(part.line_start).line == 1
        assert found.link(part.line_end).line == part.line_end - part.boundary
    assert found.parts[-1].line_end == len(lines)


def test_what_is_too_long_is_to_be_narrowed() -> None:
    with pytest.raises(UsageError, match="narrow the scope"):
        compose([Snapshot("a", "ü" * (MOST_BYTES // 2))], "0a1b2c3d")
    assert compose([Snapshot("a", "x" * (MOST_BYTES - 200))], "0a1b2c3d").text

"""What the index of words has of a drawer: its fields, and the terms of its text and titles."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from castle.store.projection import ProjectionRow, legal_text
from castle.text.stems import marked_stems
from castle.text.words import words

if TYPE_CHECKING:
    import tantivy

ANALYZER = "castle"
FORMAT = 3
"""Raise it whenever other terms are put in: the watermark of an index made otherwise does not hold."""
NEVER = 2**62
"""The end of what has not ended."""
_RAW_FIELDS = ("wing", "room", "kind", "role", "speaker", "source", "state")


def schema() -> tantivy.Schema:
    """Return the fields of the index."""
    import tantivy

    builder = tantivy.SchemaBuilder()
    builder.add_text_field("id", stored=True, tokenizer_name="raw", index_option="basic")
    builder.add_text_field("body", tokenizer_name=ANALYZER, index_option="position")
    builder.add_text_field("title", tokenizer_name=ANALYZER, index_option="freq")
    for field in _RAW_FIELDS:
        builder.add_text_field(field, tokenizer_name="raw", index_option="basic")
    builder.add_bytes_field("sha256", stored=True, indexed=False)
    for field in ("authored_at", "filed_at", "ended_at"):
        builder.add_integer_field(field, fast=True, indexed=False)
    builder.add_integer_field("seq", stored=True, fast=True, indexed=False)
    return builder.build()


def document_of(row: ProjectionRow) -> tantivy.Document:
    """Return a drawer as the index has it."""
    import tantivy

    document = tantivy.Document()
    document.add_text("id", row.id)
    tokens = words(legal_text(row.text))
    tokens += marked_stems(tokens)
    document.add_text("body", " ".join(tokens))
    document.add_text("title", " ".join(filter(None, map(words_of, (row.context, row.title)))))
    for field in _RAW_FIELDS:
        document.add_text(field, legal_text(getattr(row, field)))
    document.add_bytes("sha256", bytes.fromhex(row.sha256))
    document.add_integer("authored_at", row.authored_at)
    document.add_integer("filed_at", row.filed_at)
    document.add_integer("ended_at", NEVER if row.ended_at is None else row.ended_at)
    document.add_integer("seq", row.seq)
    return document


@lru_cache(maxsize=4096)
def words_of(text: str) -> str:
    """Return the words of a text with spaces between them; titles and headings come again and again."""
    return " ".join(words(legal_text(text)))

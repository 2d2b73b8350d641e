"""XQuAD (Artetxe et al., 2020; CC BY-SA 4.0): the same paragraphs and questions in several languages.

``read`` asks each language for its own paragraphs, ``read_across`` asks for those of every other language.
A directory holds files ``xquad.LANGUAGE.json``. A question of one language has the id it has in the others,
which is how parallel paragraphs are known.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.retrieval.cases import Case, Collection, Document, Question, files_sha256, text_of

EMBEDDER = "multilingual"


@dataclass(frozen=True, slots=True)
class _Language:
    name: str
    documents: tuple[Document, ...]
    questions: tuple[tuple[str, str, int], ...]


def read(path: Path) -> Collection:
    """Read one palace for each language."""
    cases = (
        Case(
            language.name,
            documents=language.documents,
            questions=tuple(
                Question(id_, text, language.name, frozenset({f"{language.name}-{number}"}))
                for id_, text, number in language.questions
            ),
        )
        for language in _languages(path)
    )
    return Collection("xquad", tuple(cases), files_sha256(_files(path)), EMBEDDER)


def read_across(path: Path) -> Collection:
    """Read one palace with a wing for each language; a question is asked of each wing but its own.

    The first question of each paragraph is asked, so that it is one for every paragraph and pair.
    """
    languages = list(_languages(path))
    questions = []
    for asking in languages:
        first = {number: (id_, text) for id_, text, number in reversed(asking.questions)}
        questions += [
            Question(
                f"{id_}-{asking.name}-{told.name}",
                text,
                f"{asking.name} to {told.name}",
                frozenset({f"{told.name}-{number}"}),
                wing=told.name,
            )
            for told in languages
            if told is not asking
            for number, (id_, text) in sorted(first.items())
        ]
    documents = tuple(document for language in languages for document in language.documents)
    case = Case("across", documents=documents, questions=tuple(questions))
    return Collection("xquad-across", (case,), files_sha256(_files(path)), EMBEDDER)


def _files(path: Path) -> list[Path]:
    return sorted(path.glob("xquad.*.json")) if path.is_dir() else [path]


def _languages(path: Path) -> Iterator[_Language]:
    for file in _files(path):
        name = file.name.split(".")[1]
        paragraphs = [
            paragraph for article in json.loads(text_of(file))["data"] for paragraph in article["paragraphs"]
        ]
        yield _Language(
            name,
            tuple(
                Document(f"{name}-{number}", paragraph["context"], wing=name)
                for number, paragraph in enumerate(paragraphs)
            ),
            tuple(
                (asked["id"], asked["question"], number)
                for number, paragraph in enumerate(paragraphs)
                for asked in paragraph["qas"]
            ),
        )

"""Any folder in the layout of BEIR (Thakur et al., 2021): ``corpus.jsonl``, ``queries.jsonl``, ``qrels/``.

Judgements above 0 count as gold, all alike. Of the files in ``qrels`` the one named ``test.tsv`` is taken,
else the first by name.
"""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from pathlib import Path

from benchmarks.retrieval.cases import (
    Case,
    Collection,
    Document,
    Question,
    files_sha256,
    records,
    text_of,
)


def read(path: Path) -> Collection:
    """Read the folder; queries without a relevant document in the corpus are left out and counted."""
    qrels = sorted((path / "qrels").glob("*.tsv"), key=lambda file: (file.name != "test.tsv", file.name))
    if not qrels:
        raise SystemExit(f"{path}: there is no qrels/*.tsv")
    documents = tuple(
        Document(str(row["_id"]), row.get("text") or "", row.get("title") or "")
        for row in records(path / "corpus.jsonl")
    )
    known = {document.id for document in documents}
    relevant = _relevant(qrels[0])
    questions, lost = [], 0
    for row in records(path / "queries.jsonl"):
        wanted = relevant.get(str(row["_id"]))
        if wanted is None:
            continue
        if gold := frozenset(wanted & known):
            questions.append(Question(str(row["_id"]), row["text"], qrels[0].stem, gold))
        else:
            lost += 1
    notes = (f"{lost} queries have no relevant document in the corpus and are left out",) if lost else ()
    files = [path / "corpus.jsonl", path / "queries.jsonl", qrels[0]]
    case = Case(path.name, documents=documents, questions=tuple(questions))
    return Collection(f"beir-{path.name}", (case,), files_sha256(files), notes=notes)


def _relevant(path: Path) -> dict[str, set[str]]:
    """Read the judgements: query, document and score in each line, with or without a head."""
    found: dict[str, set[str]] = defaultdict(set)
    for row in csv.reader(io.StringIO(text_of(path)), delimiter="\t"):
        if len(row) >= 3 and row[-1].lstrip("-").isdigit() and int(row[-1]) > 0:
            found[row[0]].add(row[-2])
    return found

"""Cases become palaces: filed through ``Castle`` as a user would, one palace for each, found again later."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import castle as package
from benchmarks.retrieval.cases import Case, Collection
from benchmarks.retrieval.memo import Memo
from castle import Castle, config

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Filed:
    """One palace: what it was filed from and by, how long that took, and how big it is.

    ``seconds`` are wall time without what the model took, ``model_seconds`` those of the model; vectors that
    were made for an earlier palace cost neither, ``embedded`` counts those that were made here.
    """

    name: str
    data: str
    embedder: str
    code: str
    drawers: int
    seconds: float
    model_seconds: float
    embedded: int
    bytes: int


@cache
def code_sha256() -> str:
    """Return a hash of Castle's own source, so that numbers are never taken for those of another state."""
    root = Path(package.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*")):
        if path.suffix in {".py", ".soar", ".json", ".txt"} and path.is_file():
            digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def home(work: Path, collection: Collection, case: Case) -> Path:
    """Return the directory of a case; its palace lies in ``palace`` there."""
    embedder = "" if collection.embedder == "builtin" else f"-{collection.embedder}"
    return work / f"{collection.name}{embedder}" / re.sub(r"[^\w.-]", "_", case.name)


def file_all(collection: Collection, work: Path, say: Say, *, again: bool = False) -> list[Filed]:
    """Make a palace for every case that has none yet; ``again`` makes all of them anew."""
    filed: list[Filed] = []
    memo: Memo | None = None
    try:
        for number, case in enumerate(collection.cases, start=1):
            known = None if again else _known(home(work, collection, case), collection, case)
            if known is None:
                memo = memo or Memo(work / "vectors.db", collection.embedder)
                known = _file(collection, case, work, memo)
                say(
                    f"filed {number}/{len(collection.cases)} {case.name}: {known.drawers} drawers, "
                    f"{known.seconds:.1f} s and {known.model_seconds:.1f} s of the model"
                )
            filed.append(known)
    finally:
        if memo is not None:
            memo.close()
    other = [entry.name for entry in filed if entry.code != code_sha256()]
    if other:
        say(f"{len(other)} palaces were filed by another state of the code: --refile makes them anew")
    return filed


def _known(place: Path, collection: Collection, case: Case) -> Filed | None:
    mark = place / "filed.json"
    if not mark.is_file():
        return None
    found = Filed(**json.loads(mark.read_text(encoding="utf-8")))
    return found if (found.data, found.embedder) == (case.hash, collection.embedder) else None


def _file(collection: Collection, case: Case, work: Path, memo: Memo) -> Filed:
    place = home(work, collection, case)
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    before, made = memo.seconds, memo.made
    settings = config.load(
        {"palace_path": str(place / "palace"), "embedder_model": collection.embedder}, home=place
    )
    started = time.perf_counter()
    drawers = 0
    with Castle(settings=settings) as castle:
        for wing, path in _written(case, place):
            if case.messages:
                report = castle.mine_conversations(path, wing=wing)
                incomplete = report.incomplete
                drawers += report.drawers_new
            else:
                mined = castle.mine_project(path, wing=wing)
                incomplete = bool(mined.skipped)
                drawers += mined.drawers_new
            if incomplete:
                raise SystemExit(f"{path}: not everything was filed")
    seconds = time.perf_counter() - started
    model = memo.seconds - before
    filed = Filed(
        name=case.name,
        data=case.hash,
        embedder=collection.embedder,
        code=code_sha256(),
        drawers=drawers,
        seconds=round(seconds - model, 3),
        model_seconds=round(model, 3),
        embedded=memo.made - made,
        bytes=size_of(place / "palace"),
    )
    (place / "filed.json").write_text(json.dumps(asdict(filed)) + "\n", encoding="utf-8")
    return filed


def _written(case: Case, place: Path) -> Sequence[tuple[str, Path]]:
    """Write what is to be mined: one transcript, or a directory of files for each wing."""
    if case.messages:
        path = place / "transcript.jsonl"
        lines = (json.dumps(message.record(), ensure_ascii=False) for message in case.messages)
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return [("talk", path)]
    for document, name in zip(case.documents, document_names(case), strict=True):
        path = place / "documents" / document.wing / name
        path.parent.mkdir(parents=True, exist_ok=True)
        head = f"# {' '.join(document.title.split())}\n\n" if document.title.strip() else ""
        path.write_text(f"{head}{document.text}\n", encoding="utf-8")
    wings = dict.fromkeys(document.wing for document in case.documents)
    return [(wing, place / "documents" / wing) for wing in wings]


def document_names(case: Case) -> list[str]:
    """Return the file name of each document: its place in the collection, for ids may be anything."""
    return [
        f"{number:07d}.{'md' if document.title.strip() else 'txt'}"
        for number, document in enumerate(case.documents)
    ]


def size_of(directory: Path) -> int:
    """Return the bytes of all files below a directory."""
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())

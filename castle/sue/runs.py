"""The runs of a palace on disk: made once, never changed by anybody but their worker, read by everybody.

A run is ``<palace>/sue/runs/<id>``. Every JSON file is written beside its place and renamed, so that nobody
reads half of one. A directory is made whole before it has its name.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from castle.clock import to_iso
from castle.errors import CastleError, NotFoundError, PalaceError, UsageError
from castle.store.reviews import MANIFEST, RUN_ID, run_folders, runs_folder
from castle.sue.method import LENSES, MOST_TURNS, POLICY
from castle.sue.review import ATTEMPTS
from castle.sue.specification import Part, Snapshot, Specification, compose, digest

STATE, STARTED, TRACE, REPORT = "state.json", "started", "trace.json", "report.md"
SPECIFICATION, CALLS, LOG = "specification.txt", "calls", "worker.log"
SCHEMA_VERSION = 1
KIND = "derived_requirement_review"
COLLECTION = "drawers"

MOST_DRAWERS, MOST_ID, MOST_DECISION = 20, 512, 4_000
MOST_TIMEOUT, DEFAULT_TIMEOUT = 300, 120
_SHORTEST = 6


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run is to do, as its manifest says. ``place`` is where its texts go."""

    decision: str
    lens: str
    max_turns: int
    timeout: float
    provider: str
    model: str
    place: str
    external: bool


class RunError(CastleError):
    """A run cannot be made or read, or is not what its manifest says."""


def check(drawers: Sequence[str], decision: str, lens: str, max_turns: int, timeout: float) -> None:
    """Raise UsageError unless these can be a run."""
    if not 1 <= len(drawers) <= MOST_DRAWERS or len(set(drawers)) < len(drawers):
        raise UsageError(f"name 1 to {MOST_DRAWERS} drawers, each once: --drawer ID")
    if any(len(id_) > MOST_ID for id_ in drawers):
        raise UsageError(f"the id of a drawer has at most {MOST_ID} characters")
    if not decision.strip() or len(decision) > MOST_DECISION:
        raise UsageError(f"the decision has to have 1 to {MOST_DECISION:,} characters: --decision TEXT")
    if lens not in LENSES:
        raise UsageError(f"lens {lens!r} is none of {', '.join(LENSES)}")
    if not 1 <= max_turns <= MOST_TURNS:
        raise UsageError(f"max-turns {max_turns} is not from 1 to {MOST_TURNS}")
    if not 1 <= timeout <= MOST_TIMEOUT:
        raise UsageError(f"timeout {timeout:g} is not from 1 to {MOST_TIMEOUT} seconds")


def create(
    root: Path, plan: Plan, snapshots: Sequence[Snapshot], now: int, *, run_id: str | None = None
) -> Path:
    """Make a run that waits for its worker; return its directory.

    ``run_id`` is drawn by lot, unless the run is to be an example that is the same each time. Raises
    UsageError when the drawers are too long, PalaceError when nothing can be written.
    """
    run_id = run_id or secrets.token_hex(16)
    specification = compose(snapshots, run_id[:8])
    folder = runs_folder(root)
    draft = folder / f".{run_id}.draft"
    try:
        for place in (folder.parent, folder):
            place.mkdir(mode=0o700, exist_ok=True)
        draft.mkdir(mode=0o700)
        (draft / CALLS).mkdir(mode=0o700)
        for part, one in zip(specification.parts, snapshots, strict=True):
            _write(draft / part.snapshot, one.content)
        _write(draft / SPECIFICATION, specification.text.encode("utf-8"))
        write_json(draft / MANIFEST, _manifest(run_id, plan, specification, now))
        write_json(draft / STATE, {"run_id": run_id, "status": "queued", "updated_at": to_iso(now)})
        return draft.rename(folder / run_id)
    except OSError as error:
        shutil.rmtree(draft, ignore_errors=True)
        raise PalaceError(f"no review can be written to {folder}: {error.strerror or error}") from error


def _manifest(run_id: str, plan: Plan, specification: Specification, now: int) -> dict[str, object]:
    return {
        "schema_version": SCHEMA_VERSION,
        "run_id": run_id,
        "created_at": to_iso(now),
        "kind": KIND,
        "decision": plan.decision,
        "collection_name": COLLECTION,
        "sources": [
            {"drawer_id": part.drawer, **{k: v for k, v in asdict(part).items() if k != "drawer"}}
            for part in specification.parts
        ],
        "spec_sha256": specification.sha256,
        "provider": plan.provider,
        "model": plan.model,
        "place": plan.place,
        "lens": plan.lens,
        "max_turns": plan.max_turns,
        "timeout": plan.timeout,
        "max_provider_attempts": ATTEMPTS * plan.max_turns,
        "external_processing": plan.external,
        "engine": {"name": "castle.sue", "castle": version("cognitive-castle"), "policy": POLICY},
    }


def fail(run: Path, error: str, now: int) -> None:
    """Say of a run whose worker did not begin that it failed. Raises OSError."""
    known = {"run_id": run.name, "status": "failed", "updated_at": to_iso(now), "error": error}
    write_json(run / STATE, known)


def write_json(place: Path, value: object) -> None:
    """Put a JSON file in its place whole. Raises OSError, also where its directory has gone."""
    _write(place, (json.dumps(value, ensure_ascii=False, indent=1) + "\n").encode("utf-8", "replace"))


def write_text(place: Path, text: str) -> None:
    """Put a text in its place whole. Raises OSError."""
    _write(place, text.encode("utf-8", "replace"))


def _write(place: Path, content: bytes) -> None:
    draft = place.with_name(f".{place.name}.{os.getpid()}.tmp")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(place)


def read_json(place: Path) -> dict[str, Any]:
    """Return the object in a file of a run; raises RunError."""
    try:
        found = json.loads(place.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise RunError(f"{place} cannot be read: {error}") from error
    if not isinstance(found, dict):
        raise RunError(f"{place} holds no object")
    return found


def find(root: Path, given: str) -> Path:
    """Return the directory of the run that an id or its beginning names; raises NotFoundError, UsageError."""
    text = given.strip().lower()
    if len(text) < _SHORTEST or any(char not in "0123456789abcdef" for char in text):
        raise UsageError(f"{given!r} is no id of a review (hex, at least {_SHORTEST} characters)")
    found = [run for run in run_folders(root) if run.name.startswith(text)]
    if not found:
        raise NotFoundError(f"no review {given}: `castle sue status` lists the last ones")
    if len(found) > 1:
        raise UsageError(f"several reviews begin with {given}: give more of the id")
    return found[0]


def load(run: Path) -> tuple[Plan, Specification, Mapping[str, Any]]:
    """Return what a run is to do and what it reads, proven against its hashes, and its manifest.

    Raises RunError when a byte of it is not what the manifest says.
    """
    manifest = read_json(run / MANIFEST)
    try:
        if manifest["schema_version"] != SCHEMA_VERSION or manifest["run_id"] != run.name:
            raise RunError(f"{run / MANIFEST} belongs to another run or another version")
        plan = Plan(
            decision=str(manifest["decision"]),
            lens=str(manifest["lens"]),
            max_turns=int(manifest["max_turns"]),
            timeout=float(manifest["timeout"]),
            provider=str(manifest["provider"]),
            model=str(manifest["model"]),
            place=str(manifest["place"]),
            external=bool(manifest["external_processing"]),
        )
        parts = tuple(
            Part(drawer=str(one["drawer_id"]), **{k: v for k, v in one.items() if k != "drawer_id"})
            for one in manifest["sources"]
        )
        whole = (run / SPECIFICATION).read_bytes()
        _prove(run, parts, whole, str(manifest["spec_sha256"]))
    except (KeyError, TypeError, ValueError, OSError) as error:
        raise RunError(f"{run} is damaged: {error}") from error
    return plan, Specification(whole.decode("utf-8"), parts), manifest


def _prove(run: Path, parts: Sequence[Part], whole: bytes, sha256: str) -> None:
    if digest(whole) != sha256:
        raise RunError(f"{run / SPECIFICATION} was changed after the review was made")
    for part in parts:
        content = (run / Path(part.snapshot).name).read_bytes()
        if digest(content) != part.sha256 or whole[part.byte_start : part.byte_end] != content:
            raise RunError(f"{run / part.snapshot} was changed after the review was made")


def claim(run: Path) -> bool:
    """Say for good that the worker of a run has begun; False when one has before. Raises OSError."""
    assert RUN_ID.fullmatch(run.name)
    with suppress(FileExistsError):
        descriptor = os.open(run / STARTED, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        os.write(descriptor, b"%d\n" % os.getpid())
        os.fsync(descriptor)
        os.close(descriptor)
        return True
    return False

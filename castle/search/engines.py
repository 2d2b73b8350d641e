"""What the later stages work with, as the settings say."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import TYPE_CHECKING

from castle.config.settings import Settings
from castle.errors import PalaceError
from castle.search.refine import Engines
from castle.store.palace import TOKEN_CACHE, Palace
from castle.store.spaces import Space

if TYPE_CHECKING:
    from castle.llm.base import Provider
    from castle.models.base import CrossEncoder
    from castle.search.soar import ReadyRules


def engines_of(settings: Settings, palace: Palace) -> Engines:
    """Return the engines that the settings name, each loaded once and only when a search needs it."""

    @lru_cache(maxsize=1)
    def encoder_beside(space: Space | None) -> CrossEncoder:
        from castle.models.rerankers import load_cross_encoder
        from castle.models.token_cache import TokenCache

        on_gpu = settings.reranker == "auto"
        found = load_cross_encoder(
            settings.reranker_model_gpu if on_gpu else settings.reranker,
            device=settings.embedding_device,
            cpu_name=settings.reranker_model_cpu if on_gpu else None,
            embedder=None if space is None else space.embedder,
            cache=TokenCache(palace.root / TOKEN_CACHE),
        )
        assert found is not None
        return found

    def encoder() -> CrossEncoder:
        # The built-in one reads with the palace's embedder, which a reindex may exchange.
        return encoder_beside(palace.space if settings.reranker == "builtin" else None)

    @cache
    def judge() -> Provider:
        from castle.llm.registry import provider_of

        return provider_of(settings)

    def soar() -> ReadyRules:
        from castle.search.soar import Mindful, shared_engine
        from castle.search.soar_engine import rules_of

        rules = rules_of(settings)
        return shared_engine(rules) if rules is None else Mindful(shared_engine(rules), palace)

    return Engines(
        encoder=None if settings.reranker == "off" else encoder,
        judge=judge,
        soar=soar,
        encoder_name=settings.reranker,
        judge_is_named=settings.origin("llm_provider") != "default",
    )


def absent(settings: Settings) -> list[str]:
    """Say which optional stages of the usual mode have nothing to work with here, and why."""
    from castle.llm.registry import provider_of
    from castle.search.options import MODES
    from castle.search.soar_engine import SoarMissing, bindings

    usual = MODES[settings.search_mode]
    found = []
    reason = provider_of(settings).available() if "judge" in usual else None
    if reason:
        found.append(f"judge: {reason}")
    if "soar" in usual:
        try:
            bindings()
        except SoarMissing as missing:
            found.append(f"soar: {missing}")
    return found


def clear_caches(palace: Palace) -> None:
    """Erase the vectors of tokens that a palace keeps for its cross-encoder; raises PalaceError.

    A cross-encoder that is loaded still holds what it has in memory.
    """
    from castle.models.token_cache import TokenCache

    try:
        TokenCache(palace.root / TOKEN_CACHE).clear()
    except OSError as error:
        raise PalaceError(f"{palace.root / TOKEN_CACHE} cannot be cleared: {error.strerror}") from error

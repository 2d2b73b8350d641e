"""Asking a running server of the palace, where there is one, in the place of opening it here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, cast

from castle import config, wire
from castle.local import ask, is_ours, socket_path

if TYPE_CHECKING:
    import typer

    from castle.config import Settings
    from castle.service import Castle


def reading(context: typer.Context) -> Castle:
    """Return the service for a command that only reads.

    Where a server of the same palace runs under the same settings, it answers what ``castle.wire`` lists:
    it has everything loaded. What it does not answer, and all the rest, is found in this process.
    """
    return cast("Castle", _Reader(context.find_root().obj))


class _Reader:
    def __init__(self, palace: Path | None) -> None:
        self._settings = config.load({"palace_path": None if palace is None else str(palace)})
        self._opened: Castle | None = None

    def __enter__(self) -> _Reader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._opened is not None:
            self._opened.close()

    def __getattr__(self, name: str) -> Any:
        """Return a method of the service, or what asks a server to run it."""
        if self._opened is None and name in wire.reads():
            return self._elsewhere(name)
        return getattr(self._castle(), name)

    def _castle(self) -> Castle:
        if self._opened is None:
            from castle.service import Castle

            self._opened = Castle(settings=self._settings)
        return self._opened

    def _elsewhere(self, name: str) -> Callable[..., Any]:
        def call(*given: Any, **arguments: Any) -> Any:
            found = found_elsewhere(self._settings, name, given, arguments)
            return getattr(self._castle(), name)(*given, **arguments) if found is None else found

        return call


def found_elsewhere(
    settings: Settings, name: str, given: Sequence[Any], arguments: Mapping[str, Any]
) -> Any | None:
    """Return what a method of ``Castle`` answers in a running server, None where no answer may be taken."""
    root = str(settings.palace_path)
    if arguments.get("source") or not is_ours(socket_path(root)):
        return None  # (a source may be a path, which counts from the directory that the command runs in)
    request = wire.request(name, given, arguments, settings)
    answer = ask(root, request, wire.TAKE_SECONDS, wire.ANSWER_SECONDS)
    if answer is None or "value" not in answer:
        return None
    try:
        return wire.unpacked(wire.reads()[name], answer["value"])
    except (ValueError, TypeError, RecursionError):
        return None

"""What is checked when a session begins: the conditions of the wing of its project, if there are any."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from castle.mind.environment.checking import check_project
from castle.mine.identity import identify
from castle.store.mind_conditions import conditions_in, directory_of_wing

if TYPE_CHECKING:
    from castle.store.palace import Palace


def check_at_start(palace: Palace, cwd: str, wing: str, *, actor: str) -> int | None:
    """Check what is believed of a project in which a session begins; return how much has expired.

    None where there is nothing to check: no condition in the wing, or no directory. The project is looked at
    from its top, wherever in it the session begins.
    """
    place = Path(cwd)
    if not wing or not place.is_absolute() or not place.is_dir():
        return None
    with palace.ledger.read() as cx:
        if not conditions_in(cx, wing):
            return None
        known = directory_of_wing(cx, wing)
    here = place.resolve()
    top = known if known is not None and here.is_relative_to(known.resolve()) else _top(here)
    _, answer = check_project(palace, top, wing=wing, actor=actor)
    return sum(bool(entry["expired"]) for entry in answer["triggered_entries"])


def _top(place: Path) -> Path:
    """Return the top of the repository that a directory is in, else itself."""
    inside = Path(identify(place).subdir).parts
    return place.parents[len(inside) - 1] if inside else place

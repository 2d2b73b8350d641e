"""Whether a written name is a known one with a slip of the pen in it."""

from __future__ import annotations

_SHORTEST = 6


def nearly(name: str, written: str) -> bool:
    """Whether one letter was left out, added, exchanged for another or swapped with its neighbour.

    The first letter must be right, and so must the last unless it was doubled or halved: Martin and Martina,
    Andrea and Andreas are different people. Both must have six letters.
    """
    if name == written or min(len(name), len(written)) < _SHORTEST or name[0] != written[0]:
        return False
    if len(name) == len(written):
        return _exchanged(name, written)
    longer, shorter = (name, written) if len(name) > len(written) else (written, name)
    if len(longer) != len(shorter) + 1:
        return False
    at = next((i for i, c in enumerate(shorter) if c != longer[i]), len(shorter))
    if longer[at + 1 :] != shorter[at:]:
        return False
    return at < len(shorter) or longer[-1] == longer[-2]


def _exchanged(name: str, written: str) -> bool:
    wrong = [i for i, (a, b) in enumerate(zip(name, written, strict=True)) if a != b]
    if len(wrong) == 1:
        return wrong[0] < len(name) - 1 and not (name + written).isdigit()
    if len(wrong) != 2 or wrong[1] != wrong[0] + 1:
        return False
    first, second = wrong
    return name[first] == written[second] and name[second] == written[first]

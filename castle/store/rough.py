"""Unit vectors as 8-bit numbers, with a bound on what that leaves out: they choose what is compared exactly.

A question is compared with a quarter of the bytes. A vector v is kept as the numbers c and a scale s; what is
left out, v - s·c, is a vector whose length is known. By the inequality of Cauchy and Schwarz the cosine with
a question q lies within that length of s·(q·c), so that a row whose bound is below the lower bounds of enough
others cannot be among the nearest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_LARGEST = 127
_AT_ONCE = 1 << 16
"""Numbers that are widened at once: they stay in the cache of a processor."""
_UNIT_ROUNDOFF = 2.0**-24


@dataclass(frozen=True, slots=True)
class Rough:
    """Rows of vectors: their numbers, the scale of each row, and the length of what these leave out."""

    numbers: NDArray[np.int8]
    scales: NDArray[np.float32]
    lengths: NDArray[np.float32]

    @classmethod
    def room(cls, rows: int, dim: int) -> Rough:
        """Return room for so many vectors."""
        import numpy as np

        return cls(np.empty((rows, dim), np.int8), np.empty(rows, np.float32), np.empty(rows, np.float32))

    def put(self, start: int, units: NDArray[np.float32]) -> None:
        """Keep unit vectors from row ``start`` on."""
        import numpy as np

        rows = slice(start, start + len(units))
        scales = np.abs(units).max(axis=1) / _LARGEST
        numbers = np.rint(units / scales[:, None])
        self.numbers[rows], self.scales[rows] = numbers, scales
        # Computed with some rounding of its own.
        self.lengths[rows] = np.linalg.norm(units - numbers * scales[:, None], axis=1) + self._rounding

    def first(self, rows: int) -> Rough:
        """Return the rows up to a number."""
        return Rough(self.numbers[:rows], self.scales[:rows], self.lengths[:rows])

    def among_nearest(
        self, unit: NDArray[np.float32], places: NDArray[np.intp], limit: int, margin: float
    ) -> NDArray[np.intp]:
        """Return those of the rows at ``places`` that may be among the ``limit`` nearest to a unit vector.

        Whatever is left out has a cosine that is lower than the least of theirs by more than ``margin``.
        """
        import numpy as np

        if len(places) <= limit:
            return places
        # Rows that lie apart are copied before they are compared.
        few = len(places) < len(self.numbers) // 4
        products = _products(self.numbers[places], unit) if few else _products(self.numbers, unit)[places]
        cosines = products * self.scales[places]
        lengths = self.lengths[places] + self._rounding
        least = np.partition(cosines - lengths, -limit)[-limit]
        found: NDArray[np.intp] = places[cosines + lengths >= least - margin]
        return found

    @property
    def _rounding(self) -> float:
        """How far a product of two unit vectors may be off when it is summed up in 32 bits, with room."""
        return 4 * float(self.numbers.shape[1]) * _UNIT_ROUNDOFF


def _products(numbers: NDArray[np.int8], unit: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the product of each row with a vector."""
    import numpy as np

    at_once = max(1, _AT_ONCE // max(1, numbers.shape[1]))
    wide = np.empty((at_once, numbers.shape[1]), np.float32)
    products = np.empty(len(numbers), np.float32)
    for start in range(0, len(numbers), at_once):
        part = numbers[start : start + at_once]
        np.copyto(wide[: len(part)], part)
        np.dot(wide[: len(part)], unit, out=products[start : start + at_once])
    return products

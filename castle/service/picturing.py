"""Pictures of what the mind holds."""

from __future__ import annotations

from pathlib import Path

from castle.service.base import Base


class Picturing(Base):
    """Draws."""

    def memory_plot(self, directory: Path) -> list[Path]:
        """Draw attention decay, retention scores and the graph of associations, each as PNG and SVG.

        Returns the files. Raises CastleError without matplotlib, or where nothing can be written.
        """
        from castle.mind.plots import plot

        return plot(self._palace(), Path(directory))

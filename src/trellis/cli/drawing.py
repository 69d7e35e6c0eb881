"""Figures of a study: panels in a row, written whole or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from trellis.errors import DataError
from trellis.files import atomic_write

__all__ = ["check_matplotlib", "has_matplotlib", "new_figure", "save_figure"]


def has_matplotlib() -> bool:
    """Whether figures can be drawn."""
    try:
        import matplotlib.figure  # noqa: F401 (only whether it is there)
    except ImportError:
        return False
    return True


def check_matplotlib() -> None:
    """Refuse to go on without matplotlib."""
    if not has_matplotlib():
        raise DataError(
            "figures need matplotlib: install it, or trellis-structured[plot], or go without "
            "figures (--no-figures)"
        )


def new_figure(n_panels: int, columns: int = 3) -> tuple[Any, list[Any]]:
    """A figure and its panels, in rows of ``columns``."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    columns = min(columns, n_panels)
    rows = -(-n_panels // columns)
    figure = Figure(figsize=(max(6.5, 4.6 * columns), 3.7 * rows + 0.4), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(rows, columns, squeeze=False).ravel().tolist()
    for unused in axes[n_panels:]:
        unused.set_axis_off()
    return figure, axes[:n_panels]


def save_figure(figure: Any, path: Path) -> None:
    """Write a figure as PNG."""
    with atomic_write(path) as file:
        figure.savefig(file, format="png", dpi=120)

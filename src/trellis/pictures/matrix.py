"""Tables of numbers as coloured cells: how large, which names at the sides, which numbers inside.

With few labels each cell shows its number. With many the cells shrink, the numbers go, and if even
the names would overlap, every second, third, … is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.pictures.names import shown

__all__ = ["draw_matrix", "matrix_size", "short_count"]

_NUMBERED = 20  # labels; with more, cells show no numbers
_WIDEST = 10.0  # inches
_LEAST_CELL = 0.27  # inches that a cell with a number needs
_LEAST_NAME = 0.085  # inches that a name needs
_ROOM = 0.65  # of the axes that names and the bar leave, about
_GOLDEN = 0.62  # how wide a letter is for its size, about


def _cell_size(n: int) -> float:
    """Inches of a cell in a picture of its own, of so many rows or columns."""
    return min(1.2, max(0.44, 3.0 / n)) if n <= _NUMBERED else min(0.22, _WIDEST / n)


def matrix_size(rows: int, names: Sequence[Any]) -> tuple[float, float]:
    """Width and height in inches of a picture of a matrix with these columns."""
    cell = _cell_size(max(rows, len(names)))
    margin = 0.9 + 0.07 * max((len(shown(name)) for name in names), default=0)
    return max(3.4, cell * len(names) + margin + 0.9), max(2.8, cell * rows + margin)


def draw_matrix(
    axes: Any,
    matrix: NDArray[np.float64],
    rows: Sequence[Any],
    columns: Sequence[Any],
    *,
    bar: str,
    number: Callable[[int, int], str],
    own: bool,
    **how: Any,
) -> Any:
    """Draw a matrix with names, numbers and a bar of colours; returns the image.

    Parameters
    ----------
    axes : matplotlib Axes
    matrix : (R, C) array
        NaN: left blank.
    rows, columns : sequences
        Their names.
    bar : str
        What the colours mean.
    number : function
        What a cell of this row and column shows.
    own : bool
        Whether the figure has the size of :func:`matrix_size`; else cells are as the axes allow.
    **how
        Further arguments of matplotlib's ``imshow``: ``vmin``, ``vmax``, ``cmap``, ``norm``.
    """
    image = axes.imshow(matrix, aspect="equal", **how)
    axes.set_facecolor("0.93")  # of cells that are blank
    cell = _cell_size(max(len(rows), len(columns)))
    if not own:
        box = axes.get_window_extent()
        cell = _ROOM * min(box.width / len(columns), box.height / len(rows)) / axes.figure.dpi
    _name_sides(axes, rows, columns, cell)
    if cell >= _LEAST_CELL and max(len(rows), len(columns)) <= _NUMBERED:
        _number_cells(axes, image, matrix, number, cell)
    if cell > 0.12:  # else lines would cover what they divide
        axes.set_xticks(np.arange(len(columns) + 1) - 0.5, minor=True)
        axes.set_yticks(np.arange(len(rows) + 1) - 0.5, minor=True)
        axes.grid(which="minor", color="white", linewidth=0.8)
    axes.tick_params(which="both", length=0)
    axes.spines[:].set_visible(False)
    colours = axes.figure.colorbar(image, ax=axes, label=bar, shrink=0.8, pad=0.02)
    colours.outline.set_visible(False)
    return image


def _name_sides(axes: Any, rows: Sequence[Any], columns: Sequence[Any], cell: float) -> None:
    step = max(1, int(np.ceil(_LEAST_NAME / cell)))
    size = float(np.clip(72 * cell * step * 0.8, 5, 8))
    names = [shown(name) for name in columns][::step]
    longest = max(map(len, names), default=0)
    upright = longest * _GOLDEN * size / 72 > cell * step * 0.95
    axes.set_xticks(
        np.arange(len(columns))[::step], names, fontsize=size, rotation=90 if upright else 0
    )
    axes.set_yticks(
        np.arange(len(rows))[::step], [shown(name) for name in rows][::step], fontsize=size
    )


def _number_cells(
    axes: Any,
    image: Any,
    matrix: NDArray[np.float64],
    number: Callable[[int, int], str],
    cell: float,
) -> None:
    texts = {(i, j): number(i, j) for i, j in np.ndindex(matrix.shape)}
    longest = max(map(len, texts.values()), default=1)
    size = float(np.clip(72 * 0.88 * cell / (_GOLDEN * max(longest, 2)), 4.5, 9))
    colours = image.cmap(image.norm(np.ma.masked_invalid(matrix)))[..., :3]
    grey = colours @ np.array([0.299, 0.587, 0.114])
    for (i, j), said in texts.items():
        ink = "white" if grey[i, j] < 0.5 and not np.isnan(matrix[i, j]) else "black"
        axes.text(j, i, said, ha="center", va="center", fontsize=size, color=ink)


def short_count(count: float) -> str:
    """A count in at most five signs.

    Examples
    --------
    >>> short_count(42), short_count(12345), short_count(3_400_000)
    ('42', '12.3k', '3.4M')
    """
    for least, sign in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if count >= least:
            scaled = count / (1e3 if sign == "k" else least)
            return f"{scaled:.1f}{sign}" if scaled < 100 else f"{scaled:.0f}{sign}"
    return f"{count:.0f}"

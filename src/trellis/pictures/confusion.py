"""Which label is taken for which.

Rows are gold labels, columns predicted ones. The colour of a cell is its share of the row, so that
rare labels are seen as well as frequent ones: a dark diagonal is good. The numbers are counts.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from trellis.errors import DataError
from trellis.evaluation import Confusion, confusion
from trellis.pictures.matrix import draw_matrix, matrix_size, short_count
from trellis.pictures.names import arranged
from trellis.pictures.sheet import Sheet
from trellis.pictures.style import SEQUENTIAL

__all__ = ["draw_confusion"]

_FEW = 8  # labels; of more, only counts above 0 are written


def draw_confusion(
    gold: Any,
    predicted: Any = None,
    *,
    classes: Sequence[Any] | None = None,
    path: str | os.PathLike[Any] | None = None,
    ax: Any = None,
    title: str | None = None,
) -> Any:
    """Draw how often each gold label is predicted as each label.

    Parameters
    ----------
    gold : list of lists of labels, or Confusion
        As :func:`trellis.evaluation.confusion` takes them, or what it gave.
    predicted : list of lists of labels, optional
        Not with a Confusion.
    classes : sequence, optional
        Order of the labels; those that are not listed follow. By default sorted, labels of one type
        of spans beside each other. Not with a Confusion, which has an order.
    path : path, optional
        File to write: .png, .svg or .pdf.
    ax : matplotlib Axes, optional
        Where to draw instead of on a new figure.
    title : str, optional
        By default the share of positions that are right.

    Returns
    -------
    matplotlib Figure, or what was given as `ax`

    Raises
    ------
    DataError
        If lengths differ, or no position is annotated.

    Examples
    --------
    >>> from trellis.pictures import draw_confusion
    >>> figure = draw_confusion([["A", "A", "B", "B"]], [["A", "B", "B", "B"]])
    >>> figure.axes[0].get_title()
    '75.0 % of 4 positions are right'
    """
    sheet = Sheet(path, ax, title)
    if isinstance(gold, Confusion):
        if predicted is not None or classes is not None:
            raise DataError("a Confusion says it all: leave out predicted and classes")
        table, order = gold, list(range(len(gold.classes)))
    elif predicted is None:
        raise DataError("predicted is missing: give gold and predicted labels, or a Confusion")
    else:
        table = confusion(gold, predicted, classes)
        order = list(range(len(table.classes))) if classes is not None else arranged(table.classes)
    counts = table.matrix[np.ix_(order, order)].astype(np.float64)
    names = [table.classes[i] for i in order]
    of_row = counts.sum(axis=1, keepdims=True)
    # A label that is predicted, but never right, has an empty row.
    shares = np.divide(100 * counts, of_row, where=of_row > 0, out=np.full_like(counts, np.nan))
    total = counts.sum()
    # Of many cells most are 0, and hide the others.
    shown = (counts > 0) if len(names) > _FEW else np.broadcast_to(of_row > 0, counts.shape)
    with sheet:
        (axes,) = sheet.panels(1, matrix_size(len(names), names))
        draw_matrix(
            axes, shares, names, names, bar="share of the gold label [%]",
            number=lambda i, j: short_count(counts[i, j]) if shown[i, j] else "",
            own=sheet.is_new, cmap=SEQUENTIAL, vmin=0.0, vmax=100.0,
        )  # fmt: skip
        right = f"{100 * np.trace(counts) / max(total, 1):.1f} % of {total:.0f} positions are right"
        axes.set(
            xlabel="predicted label", ylabel="gold label", title=right if title is None else title
        )
    return sheet.result

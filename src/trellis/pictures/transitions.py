r"""Which label follows which, as a model has learned it.

Row a, column b is the weight of label b after label a (on edges: of label b at the second node when
the first has label a). Colours go from light to dark with the weight and change from yellow to
blue at 0, so that a sign is seen in colour, and what is more than what else without. What the model
rules out (labels of a tag scheme that cannot follow one another) is hatched.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import as_list
from trellis.errors import DataError
from trellis.pictures.matrix import draw_matrix, matrix_size
from trellis.pictures.names import arranged, shown
from trellis.pictures.sheet import Sheet

__all__ = ["draw_transitions"]

# From light to dark throughout; 0 is between the two in the middle.
_BELOW = ("#FFF7A8", "#F7E9AE", "#E6DCC0")
_ABOVE = ("#C3D2E6", "#5B8BC0", "#0B2C5A")
_SIDES = {
    "chain": ("label", "next label"),
    "tree": ("label of the first node", "label of the second node"),
    "graph": ("label of a node", "label of its neighbour"),
}


def draw_transitions(
    model: Any,
    *,
    labels: Sequence[Any] | None = None,
    edge_type: str | None = None,
    path: str | os.PathLike[Any] | None = None,
    ax: Any = None,
    title: str | None = None,
) -> Any:
    """Draw the weights of transitions between labels as a heat map.

    Parameters
    ----------
    model : ChainCRF, ChainPerceptron, MaxMargin or another fitted model of labels
        A model of typed edges has one panel for each type.
    labels : list, optional
        Only these labels (states, where the model has some), in this order. By default all, those
        of one type of spans beside each other.
    edge_type : str, optional
        Only the edges of this type.
    path : path, optional
        File to write: .png, .svg or .pdf.
    ax : matplotlib Axes, or a list of them, optional
        Where to draw instead of on a new figure.
    title : str, optional

    Returns
    -------
    matplotlib Figure, or what was given as `ax`

    Raises
    ------
    DataError
        If the model has no transitions or is not fitted, or there are no such labels or types.

    Examples
    --------
    >>> from trellis import ChainCRF
    >>> from trellis.pictures import draw_transitions
    >>> crf = ChainCRF("word", random_state=0).fit([["a", "b"]] * 3, [["X", "Y"]] * 3)
    >>> figure = draw_transitions(crf)
    >>> figure.axes[0].get_ylabel(), figure.axes[0].get_xlabel()
    ('label', 'next label')
    """
    sheet = Sheet(path, ax, title)
    states, tables, allowed = _learned(model)
    types = list(tables)
    if edge_type is not None:
        if edge_type not in tables:
            known = ", ".join(map(repr, types)) if types != [""] else "none"
            raise DataError(f"no type of edges is {edge_type!r}; the model has {known}")
        types = [edge_type]
    places = _chosen(states, labels)
    names = [states[i] for i in places]
    square = np.ix_(places, places)
    blank = None if allowed is None else ~allowed[square]
    width, height = matrix_size(len(names), names)
    across = min(3, len(types))
    size = (width * across, height * -(-len(types) // across))
    sides = _SIDES.get(getattr(model, "structure", "chain"), _SIDES["graph"])
    with sheet:
        panels = sheet.panels(len(types), size, across, alike="choose one by edge_type")
        for panel, kind in zip(panels, types, strict=True):
            _draw(panel, tables[kind][square], blank, names, own=sheet.is_new)
            panel.set(ylabel=sides[0], xlabel=sides[1])
            panel.set_title(shown(kind) if kind else "")
        if title is not None and len(types) == 1:
            panels[0].set_title(title)
        elif title is not None:
            panels[0].figure.suptitle(title)
    return sheet.result


def _learned(
    model: Any,
) -> tuple[tuple[Any, ...], dict[str, NDArray[np.float64]], NDArray[np.bool_] | None]:
    """States, table of each type of edges, and which pairs of states there can be."""
    if not hasattr(model, "states_") and not hasattr(type(model), "states_"):
        raise DataError(
            f"{type(model).__name__} has no transitions to draw; expected a model of labels, such "
            "as ChainCRF"
        )
    weights = getattr(model, "weights_", None)
    if weights is None:
        raise DataError(f"this {type(model).__name__} is not fitted; call fit first")
    states, n = tuple(model.states_), len(model.states_)
    tables = np.asarray(weights.transitions, dtype=np.float64).reshape(-1, n, n)
    types = getattr(model, "edge_types_", ()) or ("",)
    allowed = None if model.refinement_ is None else model.refinement_.rules[1]
    return states, dict(zip(types, tables, strict=True)), allowed


def _chosen(states: tuple[Any, ...], labels: Sequence[Any] | None) -> list[int]:
    if labels is None:
        return arranged(states)
    place = {state: i for i, state in enumerate(states)}
    listed = as_list(labels, "labels")
    for label in listed:
        if label not in place:
            known = ", ".join(map(str, states[:20])) + ", …" * (len(states) > 20)
            raise DataError(
                f"labels names {label!r}, which the model does not have: it has {known}"
            )
    if not listed:
        raise DataError("labels is empty: name one label at least")
    return [place[label] for label in listed]


def _draw(
    axes: Any,
    table: NDArray[np.float64],
    blank: NDArray[np.bool_] | None,
    names: list[Any],
    own: bool,
) -> None:
    from matplotlib.colors import LinearSegmentedColormap

    shown_table = table if blank is None else np.where(blank, np.nan, table)
    largest = float(np.nanmax(np.abs(shown_table), initial=0.0)) or 1.0
    stops = [
        *zip((0.0, 0.25, 0.5), _BELOW, strict=True),
        *zip((0.5, 0.75, 1.0), _ABOVE, strict=True),
    ]
    draw_matrix(
        axes, shown_table, names, names, bar="weight",
        number=lambda i, j: "" if np.isnan(shown_table[i, j]) else _signed(shown_table[i, j]),
        own=own,
        cmap=LinearSegmentedColormap.from_list("signed", stops), vmin=-largest, vmax=largest,
    )  # fmt: skip
    if blank is not None and blank.any():
        rows, columns = np.nonzero(blank)
        _hatch(axes, rows, columns)


def _hatch(axes: Any, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> None:
    from matplotlib.collections import PolyCollection

    corners = np.array([[-0.5, -0.5], [-0.5, 0.5], [0.5, 0.5], [0.5, -0.5]])
    places = np.column_stack([columns, rows])[:, None] + corners
    axes.add_collection(
        PolyCollection(places, facecolors="none", edgecolors="0.7", linewidths=0, hatch="//////"),
        autolim=False,
    )


def _signed(value: float) -> str:
    """A weight with its sign in few characters."""
    said = f"{value:+.1f}" if abs(value) < 99.5 else f"{value:+.0f}"
    return "0" if float(said) == 0 else said.replace("-", "−")

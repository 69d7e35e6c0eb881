"""Numbers on a map: what was observed, what is predicted, and how sure of it the model is.

Points are coloured by their number; dark is much. The few lowest and highest numbers (one in fifty
at each end) share the colours of the ends, lest one far-off point make all others look alike.
Points that were observed have a black ring, edges of a graph are thin lines. The second panel has
the widths of intervals.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import Float64s, as_array
from trellis.domains import flag, text
from trellis.errors import DataError
from trellis.pictures.names import shown
from trellis.pictures.points import (
    aspect_of,
    check_degrees,
    colour_limits,
    draw_points,
    finish_map,
    panel_size,
    side_names,
)
from trellis.pictures.sheet import Sheet

__all__ = ["draw_map"]


def draw_map(
    coordinates: Any,
    values: Any,
    *,
    std: Any = None,
    lower: Any = None,
    upper: Any = None,
    observed: Any = None,
    edges: Any = None,
    geographic: bool = False,
    label: str = "value",
    names: tuple[str, str] | None = None,
    path: str | os.PathLike[Any] | None = None,
    ax: Any = None,
    title: str | None = None,
) -> Any:
    """Draw numbers at places, and how wide their intervals are.

    Parameters
    ----------
    coordinates : (n, 2) array
        Where the points are: to the right and upwards or, if `geographic`, latitude and longitude.
    values : (n,) array
        The numbers; NaN: nothing is known there.
    std : (n,) array, optional
        Standard deviations, for a panel of their own.
    lower, upper : (n,) arrays, optional
        Ends of intervals instead, for a panel of their widths.
    observed : (n,) array of bool or of numbers, optional
        Which points were observed: they get a ring. Numbers (NaN: not observed) get a panel.
    edges : (m, 2) array of pairs of points, or sparse (n, n) matrix, optional
        Which points are joined.
    geographic : bool, default=False
        Whether coordinates are latitudes and longitudes in degrees.
    label : str
        What the numbers are, with their unit: ``"price [$]"``.
    names : (str, str), optional
        Of the coordinates, in their order.
    path : path, optional
        File to write: .png, .svg or .pdf.
    ax : matplotlib Axes, or a list of one for each panel, optional
        Where to draw instead of on a new figure; in a single one the values alone.
    title : str, optional

    Returns
    -------
    matplotlib Figure, or what was given as `ax`

    Raises
    ------
    DataError
        If shapes do not fit, coordinates are not finite, or there is no value at all.

    Examples
    --------
    >>> from trellis.pictures import draw_map
    >>> figure = draw_map([[0, 0], [1, 2]], [3.5, 4.0], std=[0.1, 0.3], label="height [m]")
    >>> [axes.get_title() for axes in figure.axes[:2]]
    ['height [m]', 'standard deviation']
    """
    sheet = Sheet(path, ax, title)
    flag.check("geographic", geographic)
    text.check("label", label)
    places = as_array(coordinates, np.float64, "coordinates", (None, 2), finite=True)
    n = len(places)
    numbers = as_array(values, np.float64, "values", (n,))
    if not n or not np.isfinite(numbers).any():
        raise DataError("there is nothing to draw: no point has a finite value")
    sides = side_names(names, geographic)
    seen, measured = _observed(observed, n)
    spread = _spread(std, lower, upper, n)
    links = _links(edges, n)
    if geographic:
        check_degrees(places)
        places, sides = places[:, ::-1], sides[::-1]
    panels = [(label, numbers, seen)]
    if measured is not None:
        panels = [(f"{label}, predicted", numbers, None), (f"{label}, observed", measured, None)]
    if spread is not None:
        panels.append((spread[0], spread[1], seen))
    # One scale for what is predicted and what is observed.
    pooled = numbers if measured is None else np.concatenate([numbers, measured])
    width, height = panel_size(places, geographic)
    k = len(panels)
    with sheet:
        all_axes = sheet.panels(k, ((width + 1.1) * k, height + 0.8), k, sharex=True, sharey=True)
        for i, (axes, (heading, what, ring)) in enumerate(zip(all_axes, panels, strict=True)):
            if axes is None:
                continue
            own = spread is not None and i == k - 1
            limits = colour_limits(what if own else pooled)
            # Beside another panel the name of a bar would be read as that of its axis.
            bar, above = (shown(heading, 60), "")[:: 1 if k == 1 or not sheet.is_new else -1]
            draw_points(axes, places, what, ring, links, limits, bar)
            axes.set_title(above)
            finish_map(axes, aspect_of(places, geographic))
            axes.set_xlabel(sides[0])
            if i == 0 or not sheet.is_new:
                axes.set_ylabel(sides[1])
            axes.spines[["top", "right"]].set_visible(False)
        if title is not None and k == 1:
            all_axes[0].set_title(title)
        elif title is not None:
            (all_axes[0].figure.suptitle if sheet.is_new else all_axes[0].set_title)(title)
    return sheet.result


# ------------------------------------------------------------------------------- at the door


def _observed(observed: Any, n: int) -> tuple[NDArray[np.bool_] | None, NDArray[np.float64] | None]:
    """Which points get a ring, and what was observed; at most one of them."""
    if observed is None:
        return None, None
    array = np.asarray(observed)
    if array.dtype.kind == "b":
        return as_array(array, np.bool_, "observed", (n,)), None
    return None, as_array(observed, np.float64, "observed", (n,))


def _spread(std: Any, lower: Any, upper: Any, n: int) -> tuple[str, Float64s] | None:
    if std is not None and (lower is not None or upper is not None):
        raise DataError("give std, or lower and upper, not both")
    if (lower is None) != (upper is None):
        raise DataError("intervals have two ends: give lower and upper")
    if std is not None:
        spread = as_array(std, np.float64, "std", (n,))
        said = "standard deviation"
    elif lower is not None:
        ends = [as_array(end, np.float64, what, (n,)) for end, what in
                ((lower, "lower"), (upper, "upper"))]  # fmt: skip
        spread, said = ends[1] - ends[0], "width of the interval"
    else:
        return None
    if (spread < 0).any():
        i = int(np.flatnonzero(spread < 0)[0])
        raise DataError(f"the {said} of point {i} is negative: {spread[i]:g}")
    if not np.isfinite(spread).any():
        raise DataError(f"no point has a finite {said}; leave it out")
    return said, spread


def _links(edges: Any, n: int) -> NDArray[np.int64] | None:
    if edges is None:
        return None
    if hasattr(edges, "tocoo"):
        if edges.shape != (n, n):
            raise DataError(
                f"edges have shape {edges.shape}; expected {(n, n)}, or pairs of points"
            )
        coo = edges.tocoo()
        row, column = (np.asarray(c, dtype=np.int64) for c in coo.coords)
        pairs = np.column_stack([row, column])[coo.data != 0]
    else:
        pairs = as_array(edges, np.int64, "edges", (None, 2), low=0, high=n)
    pairs = np.unique(np.sort(pairs, axis=1), axis=0)
    apart: NDArray[np.int64] = pairs[pairs[:, 0] != pairs[:, 1]]
    return apart

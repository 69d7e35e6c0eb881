"""A regression on a map: targets, what a base model says, what the model says, and what is left.

The first panels share one scale of colours (:mod:`trellis.pictures.map`). In the last one a mark
that points upwards is a target above its prediction, one that points downwards a target below; the
darker and larger, the farther off. Where like marks lie together the model has missed something.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from trellis.arrays import Float64s, as_array
from trellis.domains import flag, text
from trellis.errors import DataError
from trellis.pictures.names import shown
from trellis.pictures.points import (
    aspect_of,
    check_degrees,
    colour_limits,
    draw_points,
    finish_bar,
    finish_map,
    panel_size,
    side_names,
)
from trellis.pictures.sheet import Sheet

__all__ = ["draw_residuals"]

_FAR = 0.98  # of residuals are within the scale


def draw_residuals(
    coordinates: Any,
    target: Any,
    predicted: Any,
    *,
    base: Any = None,
    geographic: bool = False,
    label: str = "value",
    names: tuple[str, str] | None = None,
    path: str | os.PathLike[Any] | None = None,
    ax: Any = None,
    title: str | None = None,
) -> Any:
    """Draw what was observed, what is predicted, and the difference, at their places.

    Parameters
    ----------
    coordinates : (n, 2) array
        Where the points are: to the right and upwards or, if `geographic`, latitude and longitude.
    target, predicted : (n,) arrays
        NaN where nothing is known; predictions of rows that were not trained on are the honest
        ones.
    base : (n,) array, optional
        Predictions of a base model, for a panel of their own.
    geographic : bool, default=False
        Whether coordinates are latitudes and longitudes in degrees.
    label : str
        What the numbers are, with their unit: ``"price [$]"``.
    names : (str, str), optional
        Of the coordinates, in their order.
    path : path, optional
        File to write: .png, .svg or .pdf.
    ax : matplotlib Axes, or a list of one for each panel, optional
        Where to draw instead of on a new figure; in a single one the residuals alone.
    title : str, optional

    Returns
    -------
    matplotlib Figure, or what was given as `ax`

    Raises
    ------
    DataError
        If shapes do not fit, coordinates are not finite, or no target has a prediction.

    Examples
    --------
    >>> from trellis.pictures import draw_residuals
    >>> figure = draw_residuals([[0, 0], [1, 2], [2, 1]], [3, 4, 5], [3.5, 4, 4], label="height")
    >>> [axes.get_title() for axes in figure.axes[:3]]
    ['height', 'predicted', 'residual']
    """
    sheet = Sheet(path, ax, title)
    flag.check("geographic", geographic)
    text.check("label", label)
    places = as_array(coordinates, np.float64, "coordinates", (None, 2), finite=True)
    n = len(places)
    numbers = {shown(label, 60): as_array(target, np.float64, "target", (n,))}
    if base is not None:
        numbers["base"] = as_array(base, np.float64, "base", (n,))
    numbers["predicted"] = as_array(predicted, np.float64, "predicted", (n,))
    left = numbers[shown(label, 60)] - numbers["predicted"]
    if not np.isfinite(left).any():
        raise DataError("there is nothing to draw: no target has a prediction")
    sides = side_names(names, geographic)
    if geographic:
        check_degrees(places)
        places, sides = places[:, ::-1], sides[::-1]
    limits = colour_limits(np.concatenate(list(numbers.values())))
    width, height = panel_size(places, geographic)
    k = len(numbers) + 1
    columns = 2 if k == 4 else k
    rows = -(-k // columns)
    with sheet:
        size = ((width + 1.2) * columns, (height + 0.5) * rows + 0.3)
        panels = list(sheet.panels(k, size, columns, sharex=True, sharey=True))
        if None in panels:  # one panel, for what matters most
            panels = [None] * (k - 1) + panels[:1]
        for axes, (name, values) in zip(panels, numbers.items(), strict=False):
            if axes is not None:
                draw_points(axes, places, values, None, None, limits, "")
                _finish(axes, places, geographic, sides, name)
        _draw_signs(panels[-1], places, left)
        _finish(panels[-1], places, geographic, sides, "residual")
        if title is not None:
            (panels[-1].figure.suptitle if sheet.is_new else panels[-1].set_title)(title)
    return sheet.result


def _draw_signs(axes: Any, places: Float64s, left: Float64s) -> None:
    known = np.flatnonzero(np.isfinite(left))
    farthest = float(np.quantile(np.abs(left[known]), _FAR)) or 1.0
    known = known[np.argsort(np.abs(left[known]), kind="stable")]
    largest = float(np.clip(40 * (300 / len(known)) ** 0.5, 5, 50))
    values = left[known]
    sizes = largest * (0.1 + 0.9 * np.minimum(np.abs(values) / farthest, 1.0))
    points = axes.scatter(
        *places[known].T, c=values, s=sizes, vmin=-farthest, vmax=farthest, cmap=_signed(),
        linewidths=0.2 if largest > 10 else 0, edgecolors="0.35",
    )  # fmt: skip
    # One collection of two shapes: of two collections the later would hide the earlier.
    shapes = [mark.get_path().transformed(mark.get_transform()) for mark in _marks()]
    points.set_paths([shapes[int(value < 0)] for value in values])
    bar = axes.figure.colorbar(points, ax=axes, extend="both", pad=0.02, shrink=0.9)
    finish_bar(bar)


def _marks() -> Any:
    from matplotlib.markers import MarkerStyle

    return MarkerStyle("^"), MarkerStyle("v")


def _signed() -> Any:
    from matplotlib.colors import LinearSegmentedColormap

    stops = ["#663300", "#DDAA33", "#FFFFFF", "#6699CC", "#004488"]
    return LinearSegmentedColormap.from_list("residuals", stops)


def _finish(axes: Any, places: Float64s, geographic: bool, sides: Any, name: str) -> None:
    axes.set_title(name)
    finish_map(axes, aspect_of(places, geographic))
    spec = axes.get_subplotspec()
    if spec is None or spec.is_last_row():
        axes.set_xlabel(sides[0])
    if spec is None or spec.is_first_col():
        axes.set_ylabel(sides[1])
    axes.spines[["top", "right"]].set_visible(False)

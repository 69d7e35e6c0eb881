"""Points of a map, coloured by a number: what pictures of maps have in common."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import Float64s
from trellis.domains import strings
from trellis.errors import DataError
from trellis.pictures.names import shown
from trellis.pictures.style import POINTS

__all__ = [
    "aspect_of",
    "check_degrees",
    "colour_limits",
    "draw_points",
    "finish_bar",
    "finish_map",
    "panel_size",
    "side_names",
]

_ENDS = (0.02, 0.98)
_FEW = 300  # points that are drawn large
_LONG, _TOO_LONG = 1e4, 1e10  # numbers that are written in full, with marks of thousands
_MANY_EDGES = 20_000


def side_names(names: tuple[str, str] | None, geographic: bool) -> tuple[str, ...]:
    """What the two axes are called, latitude first."""
    if names is None:
        return ("latitude [°]", "longitude [°]") if geographic else ("x", "y")
    strings.check("names", names)
    if len(names) != 2:
        raise DataError(f"names must be those of the two coordinates, got {len(names)}")
    return tuple(shown(name, 40) for name in names)


def check_degrees(places: Float64s) -> None:
    """Refuse latitudes beyond the poles."""
    if np.abs(places[:, 0]).max() > 90:
        raise DataError(
            "geographic coordinates are latitude and longitude in degrees, in this order; some "
            "latitudes are beyond 90"
        )


def colour_limits(values: Float64s) -> tuple[float, float]:
    """Numbers of the lightest and the darkest colour: all but a few at each end lie between."""
    low, high = np.quantile(values[np.isfinite(values)], _ENDS)
    return float(low), float(high)


def aspect_of(places: Float64s, geographic: bool) -> Any:
    """How high a unit is for its width; "auto" where the two are not of a kind."""
    wide, high = np.ptp(places, axis=0)
    if geographic:  # degrees of longitude shrink towards the poles
        aspect = 1.0 / max(np.cos(np.radians(places[:, 1].mean())), 0.05)
        strip = wide and high and not 1 / 10 <= wide / (aspect * high) <= 10
        return "auto" if strip else aspect
    return "equal" if wide and high and 1 / 4 <= wide / high <= 4 else "auto"


def panel_size(places: Float64s, geographic: bool) -> tuple[float, float]:
    """Width and height of a panel in inches."""
    aspect = aspect_of(places, geographic)
    wide, high = np.ptp(places, axis=0)
    if aspect == "auto" or not (wide and high):
        return 3.6, 3.4
    ratio = float(np.clip((1.0 if aspect == "equal" else aspect) * high / wide, 0.4, 2.0))
    width = min(4.0, 4.0 / ratio)
    return max(width, 2.2), max(width * ratio, 2.2)


def finish_bar(bar: Any) -> None:
    """Give a bar of colours a thin line, and its numbers in full: 1,200,000 and not 1.2 of 1e6."""
    bar.outline.set_linewidth(0.4)
    limit = max(map(abs, bar.mappable.get_clim()))
    if _LONG <= limit < _TOO_LONG:
        bar.ax.yaxis.set_major_formatter("{x:,.0f}")


def finish_map(axes: Any, aspect: Any) -> None:
    """Set the aspect, and no more numbers along the axis than there is room for."""
    from matplotlib.ticker import ScalarFormatter

    axes.set_aspect(aspect)
    for axis in (axes.xaxis, axes.yaxis):
        form = axis.get_major_formatter()
        if isinstance(form, ScalarFormatter):
            form.set_useOffset(False)
            form.set_scientific(False)
    axes.xaxis.set_major_locator(_few_numbers(axes))


def _few_numbers(axes: Any) -> Any:
    from matplotlib.ticker import MaxNLocator

    low, high = sorted(axes.get_xlim())
    wide = axes.get_window_extent().width / axes.figure.dpi
    digits = max(len(f"{abs(end):.0f}") for end in (low, high))
    # Beside the digits there are a sign, or a point and what follows it.
    digits += 1 if high - low > 10 else 3
    return MaxNLocator(nbins=max(1, min(6, int(wide / (0.11 * digits)))))


def draw_points(
    axes: Any,
    places: Float64s,
    values: Float64s,
    ring: NDArray[np.bool_] | None,
    links: NDArray[np.int64] | None,
    limits: tuple[float, float],
    name: str,
    colours: str = POINTS,
) -> None:
    """Draw points coloured by their number, with a bar that says which colour is which."""
    from matplotlib.collections import LineCollection

    if links is not None:
        lines = LineCollection(list(places[links]), colors="0.75", linewidths=0.5, zorder=1)
        lines.set_rasterized(len(links) > _MANY_EDGES)  # files of pictures of lines would be large
        axes.add_collection(lines, autolim=False)
    known = np.isfinite(values)
    size = float(np.clip(24 * (_FEW / max(len(values), 1)) ** 0.5, 5, 34))
    order = np.argsort(values[known], kind="stable")  # what is much lies on top
    x, y = places[known][order].T
    below, above = (values[known] < limits[0]).any(), (values[known] > limits[1]).any()
    extend = {(True, True): "both", (True, False): "min", (False, True): "max"}.get(
        (bool(below), bool(above)), "neither"
    )
    edge: Any = "0.35"
    width: Any = 0.25
    thick = 1.1 if len(values) <= _FEW else 0.7
    if ring is not None:
        edge = np.where(ring[known][order], "black", "0.6")
        width = np.where(ring[known][order], thick, 0.25)
    points = axes.scatter(
        x, y, c=values[known][order], s=size, cmap=colours, vmin=limits[0], vmax=limits[1],
        edgecolors=edge, linewidths=width, zorder=2,
    )  # fmt: skip
    if not known.all():  # places where there is no number
        axes.scatter(*places[~known].T, s=size / 3, c="0.8", marker="x", linewidths=0.5, zorder=1)
    bar = axes.figure.colorbar(points, ax=axes, extend=extend, pad=0.02, shrink=0.9, label=name)
    finish_bar(bar)
    if ring is not None and ring.any() and not ring.all():
        axes.scatter(
            [], [], s=size, c="white", edgecolors="black", linewidths=thick, label="observed"
        )
        axes.legend(loc="best", handletextpad=0.2)

"""What neighbours still have in common: variograms, before and after.

To the right is how far apart two places are, upwards half the mean squared difference of their
values. A curve that rises from the left says that near places are alike; a flat one at the variance
(the thin line of its kind) says that they are not.
"""

from __future__ import annotations

import os
from typing import Any, Literal

from trellis.domains import text
from trellis.pictures.names import as_systems
from trellis.pictures.sheet import Sheet
from trellis.pictures.style import line_style

__all__ = ["draw_variogram"]


def draw_variogram(
    coordinates: Any,
    values: Any = None,
    *,
    metric: Literal["euclidean", "manhattan", "haversine"] = "euclidean",
    label: str = "semivariance",
    path: str | os.PathLike[Any] | None = None,
    ax: Any = None,
    title: str | None = None,
) -> Any:
    """Draw how unlike values are by how far apart they were measured.

    Parameters
    ----------
    coordinates : (n, d) array
        Latitude and longitude in degrees for haversine, which is in kilometres.
    values : (n,) array or Variogram, or a mapping from names to these
        Residuals of several models, say; NaN where there is none.
    metric : "euclidean", "manhattan" or "haversine"
    label : str
        Of the vertical axis.
    path : path, optional
        File to write: .png, .svg or .pdf.
    ax : matplotlib Axes, optional
        Where to draw instead of on a new figure.
    title : str, optional

    Returns
    -------
    matplotlib Figure, or what was given as `ax`

    Raises
    ------
    DataError
        If shapes do not fit, or fewer than three places have a value.

    Examples
    --------
    >>> import numpy as np
    >>> from trellis.pictures import draw_variogram
    >>> rng = np.random.default_rng(0)
    >>> places = rng.uniform(size=(200, 2))
    >>> both = {"smooth": np.sin(5 * places[:, 0]), "noise": rng.normal(size=200)}
    >>> figure = draw_variogram(places, both)
    >>> figure.axes[0].get_legend_handles_labels()[1]
    ['smooth', 'noise']
    """
    from trellis.regression.variogram import Variogram, variogram  # Numba comes with it

    sheet = Sheet(path, ax, title)
    text.check("label", label)
    curves = {
        name: system if isinstance(system, Variogram) else variogram(
            coordinates, system, metric=metric
        )
        for name, system in as_systems(values).items()
    }  # fmt: skip
    with sheet:
        (main,) = sheet.panels(1, (5.0, 3.6), 1)
        for number, (name, found) in enumerate(curves.items()):
            style = line_style(number)
            main.plot(found.distance, found.gamma, label=name or None, clip_on=False, **style)
            main.axhline(
                found.variance, color=style["color"], linestyle=style["linestyle"], linewidth=0.6
            )
        main.set(xlim=(0, None), ylim=(0, None), ylabel=label)
        main.set_xlabel("distance [km]" if metric == "haversine" else "distance")
        if any(curves):
            main.legend(loc="lower right")
        main.grid(visible=True)
        main.spines[["top", "right"]].set_visible(False)
        if title is not None:
            main.set_title(title)
    return sheet.result

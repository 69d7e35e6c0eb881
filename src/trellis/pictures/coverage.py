"""Whether intervals that say 90 % hold 90 % of the numbers: coverage at all levels.

To the right is what is promised, upwards what is kept: the share of targets within mean +- z std,
where a normal distribution has the level within z standard deviations. On the diagonal both are the
same; below it intervals are too narrow. The grey band has 95 % of what comes out for a model that
keeps its word, by the binomial distribution of so many targets, which it takes as independent;
those of neighbours are not, so that it is too thin. The lower panel says how wide intervals are.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from trellis.arrays import Float64s, as_array
from trellis.errors import DataError
from trellis.pictures.names import as_systems
from trellis.pictures.sheet import Sheet
from trellis.pictures.style import line_style

__all__ = ["draw_coverage"]

_LEVELS = np.append(np.arange(0.05, 0.96, 0.05), 0.99)
_BAND = (0.025, 0.975)


def draw_coverage(
    target: Any,
    mean: Any = None,
    std: Any = None,
    *,
    path: str | os.PathLike[Any] | None = None,
    ax: Any = None,
    title: str | None = None,
) -> Any:
    """Draw how often numbers lie within intervals of all levels.

    Parameters
    ----------
    target : (n,) array, or a mapping from names to triples (target, mean, std)
        The numbers; NaN: unknown, left out.
    mean, std : (n,) arrays
        Predictions of a normal distribution; not with a mapping.
    path : path, optional
        File to write: .png, .svg or .pdf.
    ax : matplotlib Axes, or a list of two, optional
        Where to draw instead of on a new figure; in a single one there is no panel of widths.
    title : str, optional

    Returns
    -------
    matplotlib Figure, or what was given as `ax`

    Raises
    ------
    DataError
        If shapes do not fit, a standard deviation is not positive, or no target is known.

    Examples
    --------
    >>> import numpy as np
    >>> from trellis.pictures import draw_coverage
    >>> y = np.random.default_rng(0).normal(size=500)
    >>> figure = draw_coverage(y, np.zeros(500), np.ones(500))
    >>> figure.axes[0].get_legend_handles_labels()[1]
    ['91.8 % of 90 %']
    """
    from scipy.stats import binom, norm

    sheet = Sheet(path, ax, title)
    given = target if isinstance(target, Mapping) else (target, mean, std)
    systems = {name: _checked(name, system) for name, system in as_systems(given).items()}
    z = norm.ppf((1 + _LEVELS) / 2)
    with sheet:
        main, widths = sheet.panels(
            2, (4.0, 5.1), 1, sharex=True, gridspec_kw={"height_ratios": [3.4, 1]}
        )
        main.plot([0, 100], [0, 100], color="0.6", linewidth=0.8, zorder=0)
        fewest = min(len(y) for y, _, _ in systems.values())
        low, high = (100 * binom.ppf(end, fewest, _LEVELS) / fewest for end in _BAND)
        main.fill_between(100 * _LEVELS, low, high, color="0.88", linewidth=0, zorder=0)
        for number, (name, (y, middle, spread)) in enumerate(systems.items()):
            error = np.abs(y - middle) / spread
            kept = 100 * (error[:, None] <= z).mean(axis=0)
            at_90 = 100 * float((error <= norm.ppf(0.95)).mean())
            said = f"{at_90:.1f} % of 90 %"
            style = line_style(number)
            main.plot(
                100 * _LEVELS, kept, label=f"{name} ({said})" if name else said, zorder=3,
                clip_on=False, **style,
            )  # fmt: skip
            if widths is not None:
                widths.plot(100 * _LEVELS, 2 * z * float(spread.mean()), **style)
        main.set(xlim=(0, 100), ylim=(0, 100), ylabel="of the targets within [%]")
        for x, up_to, said, side in ((97, 3, "too narrow", "right"), (3, 97, "too wide", "left")):
            up = "bottom" if up_to < 50 else "top"
            main.text(x, up_to, said, ha=side, va=up, color="0.45", fontsize=7, style="italic")
        main.legend(loc="upper left", bbox_to_anchor=(0, 0.93))
        lowest = main if widths is None else widths
        lowest.set_xlabel("level of the intervals [%]")
        for panel in (main, widths):
            if panel is not None:
                panel.grid(visible=True)
                panel.spines[["top", "right"]].set_visible(False)
        if widths is not None:
            widths.set(ylabel="mean width", ylim=(0, None))
        if title is not None:
            main.set_title(title)
    return sheet.result


def _checked(name: str, system: Any) -> tuple[Float64s, Float64s, Float64s]:
    who = f"{name.strip()}: " if name else ""
    if not isinstance(system, tuple | list) or len(system) != 3 or any(p is None for p in system):
        raise DataError(f"{who}give targets, means and standard deviations")
    y = as_array(system[0], np.float64, f"{who}target", (None,))
    mean = as_array(system[1], np.float64, f"{who}mean", (len(y),))
    std = as_array(system[2], np.float64, f"{who}std", (len(y),))
    known = np.isfinite(y) & np.isfinite(mean)
    if not known.any():
        raise DataError(f"{who}there is nothing to draw: no target is known")
    if not (std[known] > 0).all():
        i = int(np.flatnonzero(known & ~(std > 0))[0])
        raise DataError(f"{who}the standard deviation of row {i} is {std[i]:g}, not above 0")
    return y[known], mean[known], std[known]

"""Whether a model that says 90 % is right 90 % of the time: the reliability diagram.

Positions are sorted into bins by the probability of the predicted label. A point is a bin: to the
right the mean probability, upwards the share of right labels, with a 95 % interval for it (Wilson
1927, which takes positions as independent; those of a sentence are not, so it is too short). On the
diagonal both are the same; below it the model is too sure of itself. The lower panel says how many
positions each bin has.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.errors import DataError
from trellis.evaluation import Calibration, calibration
from trellis.pictures.names import as_systems
from trellis.pictures.sheet import Sheet
from trellis.pictures.style import line_style

__all__ = ["draw_calibration"]

_Z = 1.959963984540054  # of a normal distribution, 95 % lie within so many standard deviations


def draw_calibration(
    marginals: Any,
    gold: Any = None,
    classes: Sequence[Any] | None = None,
    *,
    n_bins: int = 10,
    path: str | os.PathLike[Any] | None = None,
    ax: Any = None,
    title: str | None = None,
) -> Any:
    """Draw the reliability diagram: how often labels are right, by how sure the model is of them.

    Parameters
    ----------
    marginals : list of (n, L) arrays, Calibration, or a mapping from names to these
        As :func:`trellis.evaluation.calibration` takes them, or what it gave.
    gold : list of lists of labels, optional
        Not with a Calibration.
    classes : sequence, optional
        Labels of the L columns: ``model.classes_``.
    n_bins : int, default=10
        Number of bins of equal width.
    path : path, optional
        File to write: .png, .svg or .pdf.
    ax : matplotlib Axes, or a list of two, optional
        Where to draw instead of on a new figure; in a single one there is no panel of counts.
    title : str, optional

    Returns
    -------
    matplotlib Figure, or what was given as `ax`

    Raises
    ------
    DataError
        If shapes do not fit, rows are not probabilities, or no position is annotated.

    Examples
    --------
    >>> import numpy as np
    >>> from trellis.pictures import draw_calibration
    >>> figure = draw_calibration([np.array([[0.75, 0.25]])], [["A"]], ["A", "B"])
    >>> figure.axes[0].get_legend_handles_labels()[1]
    ['ECE 0.250']
    """
    sheet = Sheet(path, ax, title)
    systems = {
        name: _calibrated(system, gold, classes, n_bins, name)
        for name, system in as_systems(marginals).items()
    }
    with sheet:
        main, counts = sheet.panels(
            2, (4.0, 5.1), 1, sharex=True, gridspec_kw={"height_ratios": [3.4, 1]}
        )
        main.plot([0, 1], [0, 1], color="0.6", linewidth=0.8, zorder=0)
        for number, (name, found) in enumerate(systems.items()):
            _draw(main, found, number, f"{name} (ECE {found.ece:.3f})" if name else
                  f"ECE {found.ece:.3f}")  # fmt: skip
            if counts is not None:
                _draw_counts(counts, found, number)
        main.set(xlim=(0, 1), ylim=(0, 1), ylabel="share of right labels")
        for x, y, said, side in (
            (0.97, 0.03, "too sure", "right"),
            (0.03, 0.97, "not sure enough", "left"),
        ):
            up = "bottom" if y < 0.5 else "top"
            main.text(x, y, said, ha=side, va=up, color="0.45", fontsize=7, style="italic")
        main.legend(loc="upper left", bbox_to_anchor=(0, 0.93))
        lowest = main if counts is None else counts
        lowest.set_xlabel("probability of the predicted label")
        for panel in (main, counts):
            if panel is not None:
                panel.grid(visible=True)
                panel.spines[["top", "right"]].set_visible(False)
        if counts is not None:
            counts.set(ylabel="positions [%]", ylim=(0, None))
        if title is not None:
            main.set_title(title)
    return sheet.result


def _calibrated(
    system: Any, gold: Any, classes: Sequence[Any] | None, n_bins: int, name: str
) -> Calibration:
    if isinstance(system, Calibration):
        return system
    if gold is None or classes is None:
        who = f"{name.strip()}: " if name else ""
        raise DataError(
            f"{who}gold and classes are missing: give marginals, gold labels and the labels of "
            "the columns, or a Calibration"
        )
    return calibration(system, gold, classes, n_bins)


def _draw(panel: Any, found: Calibration, number: int, name: str) -> None:
    full = found.count > 0
    x, y = found.confidence[full], found.accuracy[full]
    low, high = _wilson(y, found.count[full])
    style = line_style(number)
    panel.vlines(x, low, high, color=style["color"], linewidth=0.8, alpha=0.8)
    panel.plot(x, y, label=name, clip_on=False, zorder=3, **style)


def _draw_counts(panel: Any, found: Calibration, number: int) -> None:
    """Bins as steps, which lie over one another without hiding any."""
    style = line_style(number)
    share = 100 * found.count / found.count.sum()
    panel.stairs(
        share, found.edges, color=style["color"], linestyle=style["linestyle"], linewidth=1.2,
        fill=False, baseline=0,
    )  # fmt: skip


def _wilson(
    share: NDArray[np.float64], n: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    middle = (share + _Z**2 / (2 * n)) / (1 + _Z**2 / n)
    half = _Z * np.sqrt(share * (1 - share) / n + _Z**2 / (4 * n**2)) / (1 + _Z**2 / n)
    return middle - half, middle + half

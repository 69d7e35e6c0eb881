"""What a system finds, and how much of it is right, the surest answers first.

To the right the share that was found (recall), upwards the share of right ones among what is said
(precision); each point is a threshold of the confidence. The mark is where all answers count. Thin
lines join points of one F1. The area below a curve, which ends where there are no more answers, is
the average precision (AP).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from trellis.errors import DataError
from trellis.evaluation import PrecisionRecallCurve, precision_recall_curve
from trellis.pictures.names import as_systems
from trellis.pictures.sheet import Sheet
from trellis.pictures.style import line_style

__all__ = ["draw_precision_recall"]


def draw_precision_recall(
    gold: Any,
    found: Any = None,
    *,
    classes: Sequence[Any] | None = None,
    label: Any = None,
    scheme: str | None = None,
    path: str | os.PathLike[Any] | None = None,
    ax: Any = None,
    title: str | None = None,
) -> Any:
    """Draw precision over recall, the surest answers first.

    Parameters
    ----------
    gold : list of lists of labels or of spans; PrecisionRecallCurve, or a mapping from names to it
        As :func:`trellis.evaluation.precision_recall_curve` takes them, or what it gave.
    found : list, or a mapping from names to lists
        Answers with confidences: marginals (with `classes`), lists of (label, confidence) or, as
        ``predict_spans`` gives them, of (type, start, end, confidence). Not with curves.
    classes : sequence, optional
        Labels of the columns of marginals.
    label : optional
        Only this label, or spans of this type.
    scheme : str, optional
        Tag scheme of gold labels, where spans are found.
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
        If lengths differ, confidences are no numbers, or there is nothing to be found.

    Examples
    --------
    >>> from trellis.pictures import draw_precision_recall
    >>> gold = [["B-PER", "I-PER", "O", "B-LOC"]]
    >>> spans = [[("PER", 0, 2, 0.9), ("PER", 2, 3, 0.4), ("LOC", 3, 4, 0.3)]]
    >>> figure = draw_precision_recall(gold, {"crf": spans})
    >>> figure.axes[0].get_legend_handles_labels()[1]
    ['crf (AP 0.833)']
    """
    sheet = Sheet(path, ax, title)
    curves = _curves(gold, found, classes=classes, label=label, scheme=scheme)
    with sheet:
        (axes,) = sheet.panels(1, (4.6, 4.3))
        _draw_f1(axes)
        for number, (name, curve) in enumerate(curves.items()):
            said = f"AP {curve.average_precision:.3f}"
            _draw(axes, curve, number, f"{name} ({said})" if name else said)
        axes.set(xlim=(0, 1.01), ylim=(0, 1.01), xlabel="recall", ylabel="precision")
        axes.set_aspect("equal" if sheet.is_new else "auto")
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(loc="lower left")
        if title is not None:
            axes.set_title(title)
    return sheet.result


def _curves(gold: Any, found: Any, **how: Any) -> dict[str, PrecisionRecallCurve]:
    if found is not None:
        return {
            name: precision_recall_curve(gold, system, **how)
            for name, system in as_systems(found).items()
        }
    systems = as_systems(gold)
    if not all(isinstance(curve, PrecisionRecallCurve) for curve in systems.values()):
        raise DataError(
            "found is missing: give gold and answers with confidences, or what "
            "precision_recall_curve gave"
        )
    if any(value is not None for value in how.values()):
        raise DataError("curves say it all: leave out classes, label and scheme")
    return systems


def _draw(axes: Any, curve: PrecisionRecallCurve, number: int, name: str) -> None:
    style = line_style(number)
    mark = style.pop("marker")
    # Between two thresholds nothing is found: recall grows in steps, at the precision after them.
    recall = np.concatenate([[0.0], curve.recall])
    precision = np.concatenate([curve.precision[:1], curve.precision])
    last = max(len(recall) - 1, 0)
    shown = [last] if len(curve.recall) else []
    axes.plot(
        recall[: len(precision)], precision, drawstyle="steps-pre", label=name, marker=mark,
        markevery=shown, markersize=6, **style,
    )  # fmt: skip


def _draw_f1(axes: Any) -> None:
    for f1 in (0.2, 0.4, 0.6, 0.8):
        x = np.linspace(f1 / 2 + 1e-3, 1, 200)
        axes.plot(x, f1 * x / (2 * x - f1), color="0.85", linewidth=0.7, zorder=0)
        axes.annotate(
            f"F1 {f1:g}", (1.0, f1 / (2 - f1)), (2, 0), textcoords="offset points", fontsize=6.5,
            color="0.5", va="center", annotation_clip=False,
        )  # fmt: skip

"""How training went: the objective, and the score on held-out data, pass by pass.

The ring marks the pass with the best score, whose weights a model keeps. Where a solver knows a
lower bound of the objective it is the thin line below the curve: the optimum lies between the two.
GLACER, which goes by exchanges of examples between its components, has the three quantities of its
objective R_obj = R_emp + … instead.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from trellis.domains import one_of
from trellis.errors import DataError
from trellis.pictures.names import as_systems
from trellis.pictures.sheet import Sheet
from trellis.pictures.style import line_style

__all__ = ["draw_learning"]

_MARKED = 25  # points of a curve that have marks
_BESIDE = 6  # systems whose names fit into a panel
_PASSES = ("", "sgd", "adf", "frank-wolfe")  # solvers that go in passes
_SWAPS = {"r_obj": "R_obj", "r_emp": "R_emp", "dcorr": "dCorr"}


class _Course(NamedTuple):
    """The course of one training."""

    records: list[Any]
    step: str

    def places(self, over: str) -> list[float]:
        if over == "seconds":
            return list(accumulate(float(record.seconds) for record in self.records))
        start = 0 if self.step == "swap" else 1
        return [float(getattr(r, "number", i)) for i, r in enumerate(self.records, start)]

    def values(self, name: str) -> list[float | None]:
        return [getattr(record, name, None) for record in self.records]


def draw_learning(
    training: Any,
    *,
    over: str = "passes",
    path: str | os.PathLike[Any] | None = None,
    ax: Any = None,
    title: str | None = None,
) -> Any:
    """Draw learning curves: objective and, where there were held-out data, score.

    Parameters
    ----------
    training : fitted model, its ``history_``, or a mapping from names to these
        Of linear models, trackers and GLACER. A model that was read from a file has no history.
    over : "passes" or "seconds"
        What runs to the right: passes (iterations, rounds, swaps), or the time that they took.
    path : path, optional
        File to write: .png, .svg or .pdf.
    ax : matplotlib Axes, or a list of them, optional
        Where to draw instead of on a new figure; in a single one the score, if there is any, else
        the objective.
    title : str, optional

    Returns
    -------
    matplotlib Figure, or what was given as `ax`

    Raises
    ------
    DataError
        If there is no history.

    Examples
    --------
    >>> from trellis import ChainCRF
    >>> from trellis.pictures import draw_learning
    >>> X, y = [["a", "b"]] * 3, [["X", "Y"]] * 3
    >>> crf = ChainCRF("word", max_passes=4, random_state=0).fit(X, y, dev=(X, y))
    >>> score, objective = draw_learning(crf).axes
    >>> score.lines[0].get_xdata().tolist(), objective.get_ylabel()
    ([1.0, 2.0, 3.0, 4.0], 'objective')
    """
    sheet = Sheet(path, ax, title)
    one_of("passes", "seconds").check("over", over)
    courses = {name: _course(system, name) for name, system in as_systems(training).items()}
    scored = [c for c in courses.values() if any(s is not None for s in c.values("dev_score"))]
    steps = list(dict.fromkeys(course.step for course in courses.values()))
    along = "training time [s]" if over == "seconds" else " or ".join(steps)
    beside = 1.6 * (len(courses) > _BESIDE)
    n_panels = 2 if scored else 1
    with sheet:
        first, *others = sheet.panels(n_panels, (4.3 * n_panels + 0.4 + beside, 3.5), 2)
        objective = others[0] if scored else first
        if scored:
            _draw_scores(first, courses, over)
        if objective is not None:
            _draw_objectives(objective, courses, over)
        panels = [panel for panel in (first, *others) if panel is not None]
        for panel in panels:
            panel.set_xlabel(along)
            panel.grid(axis="y")
            panel.spines[["top", "right"]].set_visible(False)
            if over == "passes":
                panel.xaxis.get_major_locator().set_params(integer=True)
        _name_curves(sheet, first, len(courses))
        if title is not None:
            (first.figure.suptitle if len(panels) > 1 and sheet.is_new else first.set_title)(title)
    return sheet.result


def _course(system: Any, name: str) -> _Course:
    who = f"{name.strip()}: " if name else ""
    records = getattr(system, "history_", system)
    if isinstance(records, str) or not isinstance(records, Iterable):
        raise DataError(
            f"{who}a {type(system).__name__} has no history of training; expected a fitted model, "
            "its history_, or a mapping from names to these"
        )
    records = list(records)
    if not records:
        raise DataError(
            f"{who}the history of training is empty: nothing was learned in passes, or the model "
            "was read from a file, which does not keep it"
        )
    if all(hasattr(record, "r_obj") for record in records):
        return _Course(records, "swap")
    if not all(hasattr(record, "objective") for record in records):
        raise DataError(f"{who}{records[0]!r:.60} is no record of training")
    if hasattr(records[0], "n_planes"):
        return _Course(records, "round")
    solver = getattr(system, "solver_", None) if hasattr(system, "history_") else ""
    return _Course(records, "pass" if solver in _PASSES else "iteration")


def _curve(panel: Any, x: Sequence[float], y: Sequence[float], number: int, name: str) -> None:
    every = max(1, -(-len(x) // _MARKED))
    panel.plot(x, y, label=name, markevery=every, **line_style(number))


def _draw_scores(panel: Any, courses: dict[str, _Course], over: str) -> None:
    for number, (name, course) in enumerate(courses.items()):
        pairs = zip(course.places(over), course.values("dev_score"), strict=True)
        known = [(place, 100 * float(score)) for place, score in pairs if score is not None]
        if not known:
            continue
        x, y = zip(*known, strict=True)
        _curve(panel, x, y, number, name)
        best = max(range(len(y)), key=y.__getitem__)
        panel.plot(
            x[best], y[best], "o", markersize=11, fillstyle="none",
            color=line_style(number)["color"], markeredgewidth=1.2,
        )  # fmt: skip
    panel.set_ylabel("score on held-out data [%]")


def _draw_objectives(panel: Any, courses: dict[str, _Course], over: str) -> None:
    alone = len(courses) == 1
    for number, (name, course) in enumerate(courses.items()):
        x = course.places(over)
        if course.step == "swap":
            # Those of several models would be too many.
            for i, (what, said) in enumerate(_SWAPS.items()):
                if alone or what == "r_obj":
                    y = [float(value or 0.0) for value in course.values(what)]
                    _curve(panel, x, y, i if alone else number, said if alone else name)
            continue
        objective = [float(value or 0.0) for value in course.values("objective")]
        _curve(panel, x, objective, number, name or "objective")
        bounds = course.values("lower_bound")
        known = [i for i, bound in enumerate(bounds) if bound is not None]
        if known:
            panel.plot(
                [x[i] for i in known], [float(bounds[i] or 0.0) for i in known], linewidth=0.8,
                color=line_style(number)["color"], label="lower bound" if alone else None,
            )  # fmt: skip
    panel.set_ylabel("R_obj, R_emp, dCorr" if _is_swaps(courses) else "objective")
    if alone and len(panel.lines) > 1:
        panel.legend()


def _is_swaps(courses: dict[str, _Course]) -> bool:
    return all(course.step == "swap" for course in courses.values())


def _name_curves(sheet: Sheet, panel: Any, n: int) -> None:
    if n == 1:
        return
    handles, names = panel.get_legend_handles_labels()
    if sheet.is_new and n > _BESIDE:
        panel.figure.legend(handles, names, loc="outside right upper")
    else:
        panel.legend(handles, names)

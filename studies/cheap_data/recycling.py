"""Figures 1.6 and 1.7: what bounds recycling and adaptive precision save.

A quarter of the events is annotated. All variants of the concave-convex procedure start at the same
weights (an averaged perceptron), end at the same precision, and have the tangent of the reward as a
plane for free. They are run with the shortened steps of our bundle method and with full steps; full
steps without recycling and at full precision throughout are the procedure of Yu & Joachims (2009)
with the bundle method of Teo et al. (2010), as in the paper.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from studies.cheap_data.data import (
    SETTINGS,
    TITLES,
    annotated_in_part,
    cells,
    events_of,
)
from studies.cheap_data.tables import ratio_text
from studies.experiments import Computation, Experiment, Records
from studies.folder import Call
from studies.markdown import markdown
from trellis.pictures.style import new_figure, save_figure
from trellis.problems import PartialObjective
from trellis.solvers import minimise_cccp, partial_perceptron
from trellis.tracking import TrackingModel

__all__ = ["RECYCLING"]

# Data sets; "-published": with one weight a feature.
_SOURCES = {
    "quick": ("a",),
    "default": ("cellmigration", "cellmigration-published", "a", "b"),
    "full": ("cellmigration", "cellmigration-published"),
}
_RUNS = {"quick": 2, "default": 2, "full": 10}
_SHARE, _L2, _PASSES = 0.25, 1.0, 10
_TOL, _FIRST_TOL = 1e-3, 0.1
_SHORT_STEP = 0.2

# Names, recycling, adaptive precision, step.
_VARIANTS: Mapping[str, tuple[str, bool, bool, float]] = {
    "plain": ("plain CCCP (Yu & Joachims)", False, False, 1.0),
    "adaptive": ("adaptive precision", False, True, 1.0),
    "recycling": ("recycling", True, False, 1.0),
    "both": ("recycling and adaptive precision", True, True, 1.0),
    "plain-short": ("neither, short steps", False, False, _SHORT_STEP),
    "adaptive-short": ("adaptive precision, short steps", False, True, _SHORT_STEP),
    "recycling-short": ("recycling, short steps", True, False, _SHORT_STEP),
    "both-short": ("both, short steps (Trellis)", True, True, _SHORT_STEP),
}
_PAIRS = (("both", "plain"), ("both-short", "plain-short"), ("both-short", "plain"))


def _run(name: str, run: int, protocol: str) -> dict[str, Any]:
    """All variants one after the other, beginning with another one in each run."""
    from trellis.solvers import PlaneSurrogate

    name, _, published = name.partition("-")
    more: dict[str, Any] = {"knots": 0} if published else {}
    train, _ = cells(name, protocol)
    train = annotated_in_part(train, _SHARE, np.random.default_rng(run))
    model = TrackingModel(events_of(name), **{**SETTINGS, **more})
    problem = model.learning_problems({"": train})[""]
    objective = PartialObjective(problem)
    start = partial_perceptron(problem, passes=_PASSES, seed=run)
    order = list(_VARIANTS)
    order = order[run % len(order) :] + order[: run % len(order)]
    record: dict[str, Any] = {}
    for key in order:
        _, recycle, adaptive, step = _VARIANTS[key]
        path: list[tuple[float, int, float]] = []
        clock = time.process_time()

        def note(r: Any, path: list[Any] = path, clock: float = clock) -> None:
            bounds = (path[-1][1] if path else 0) + r.n_planes
            path.append((time.process_time() - clock, bounds, r.objective))

        surrogate = PlaneSurrogate(
            objective.penalty, objective.reward, l2=_L2, recycle=recycle, step=step,
            reward_below=True,
        )  # fmt: skip
        found = minimise_cccp(
            surrogate, start, first_tol=_FIRST_TOL if adaptive else _TOL, tol=_TOL, eta=_TOL,
            report=note,
        )  # fmt: skip
        record[key] = {
            "path": path, "objective": found.objective, "bounds": found.n_planes,
            "seconds": path[-1][0], "reason": found.stop_reason, "exact": found.exact,
        }  # fmt: skip
    first = _L2 * float(start @ start) + objective.value(start)
    return {
        "variants": record, "start": first, "n_pairs": len(train),
        "n_weights": problem.n_weights,
    }  # fmt: skip


def _title(name: str) -> str:
    name, _, published = name.partition("-")
    return TITLES[name] + (", one weight a feature" if published else "")


_ALL = Computation("recycling", _run)


def _calls(protocol: str) -> list[Call]:
    return [
        _ALL.call(f"{_title(name)}: run {run}", protocol, name, run)
        for name in _SOURCES[protocol]
        for run in range(_RUNS[protocol])
    ]


def _runs(records: Records, protocol: str, name: str) -> list[Mapping[str, Any]]:
    runs = range(_RUNS[protocol])
    return [_ALL.of(records, protocol, name, run)["variants"] for run in runs]


def _reached(variants: Mapping[str, Any], key: str, goal: float) -> tuple[float, int]:
    """Seconds and bounds until the objective is at most so high."""
    return next(
        (seconds, bounds) for seconds, bounds, value in variants[key]["path"] if value <= goal
    )


def _goal(variants: Mapping[str, Any]) -> float:
    """An objective that all variants reach."""
    return max(float(v["objective"]) for v in variants.values()) + 1e-9


def _ratios(
    runs: Sequence[Mapping[str, Any]], ours: str, theirs: str
) -> dict[str, tuple[list[float], list[float]]]:
    """Times and bounds of theirs over ours: to the end, and to the same objective."""
    end: tuple[list[float], list[float]] = ([], [])
    same: tuple[list[float], list[float]] = ([], [])
    for variants in runs:
        goal = _goal(variants)
        a, b = (_reached(variants, key, goal) for key in (ours, theirs))
        for kind, name in enumerate(("seconds", "bounds")):
            end[kind].append(variants[theirs][name] / variants[ours][name])
            same[kind].append(b[kind] / a[kind])
    return {"end": end, "same": same}


def _report(protocol: str, records: Records) -> str:
    parts = [
        f"{100 * _SHARE:.0f} % of the events of whole frame pairs are annotated; "
        f"{_RUNS[protocol]} runs with other draws, in each of which all variants start at the "
        f"same weights and end at a precision of {_TOL:g}. Mean over the runs; CPU seconds, the "
        "perceptron that finds the start not counted. Ratios: mean ± half its 95 % interval. "
        "«To the same objective»: until the objective is at most the highest of the final ones "
        "of all variants, by whole rounds. The tangent of the reward, a bound for free, is given "
        "to all."
    ]
    for name in _SOURCES[protocol]:
        runs = _runs(records, protocol, name)
        rows = []
        for key, (title, *_) in _VARIANTS.items():
            found = [v[key] for v in runs]
            times = [f["seconds"] for f in found]
            rows.append(
                [
                    title, f"{np.mean([len(f['path']) for f in found]):.1f}",
                    f"{np.mean([f['bounds'] for f in found]):.0f}",
                    f"{np.mean(times):.1f} ({min(times):.1f} to {max(times):.1f})",
                    f"{np.mean([f['objective'] for f in found]):.2f}",
                ]
            )  # fmt: skip
        first = _ALL.of(records, protocol, name, 0)
        parts += [
            f"### {_title(name)}: {first['n_pairs']} frame pairs, {first['n_weights']} weights",
            markdown(["variant", "rounds", "bounds", "seconds", "objective"], rows),
            _ratio_table(runs),
            _sentence(runs),
        ]
    return "\n\n".join(parts)


def _ratio_table(runs: Sequence[Mapping[str, Any]]) -> str:
    rows = []
    for ours, theirs in _PAIRS:
        found = _ratios(runs, ours, theirs)
        cells_ = [ratio_text(v) for kind in ("end", "same") for v in found[kind]]
        rows.append([f"{_VARIANTS[theirs][0]} / {_VARIANTS[ours][0]}", *cells_])
    head = ["ratio", "seconds", "bounds", "seconds to the same objective"]
    return markdown([*head, "bounds to the same objective"], rows)


def _sentence(runs: Sequence[Mapping[str, Any]]) -> str:
    """Whether five times less time and a third of the bounds hold."""
    said = []
    for (ours, theirs), what in zip(
        _PAIRS,
        ("Like for like, full steps", "Like for like, short steps", "Trellis against plain CCCP"),
        strict=True,
    ):
        seconds, bounds = (float(np.mean(v)) for v in _ratios(runs, ours, theirs)["end"])
        time_holds = "holds" if seconds >= 5 else "does not hold"
        bounds_hold = "holds" if bounds >= 3 else "does not hold"
        said.append(
            f"- {what}: five times less time {time_holds} ({seconds:.1f}); a third of the bounds "
            f"{bounds_hold} (1/{bounds:.1f})."
        )
    return "\n".join(said)


def _draw(protocol: str, records: Records, path: Path) -> None:
    names = _SOURCES[protocol]
    figure, axes = new_figure(2 * len(names), columns=len(names))
    figure.set_size_inches(4.2 * len(names) + 1, 7)
    shown = {"plain": "0.3", "adaptive": "C2", "recycling": "C1", "both": "C3", "both-short": "C0"}
    for column, name in enumerate(names):
        above, below = axes[column], axes[len(names) + column]
        variants = _runs(records, protocol, name)[0]
        start = _ALL.of(records, protocol, name, 0)["start"]
        best = min(v["objective"] for v in variants.values())
        for key, colour in shown.items():
            seconds, bounds, values = zip(*variants[key]["path"], strict=True)
            # The last value may be the least of all, and has no logarithm.
            over = [max(v / best - 1, 1e-5) for v in (start, *values)]
            above.plot([0, *seconds], over, color=colour, marker="o", ms=3,
                       label=_VARIANTS[key][0])  # fmt: skip
            below.plot(range(1, len(bounds) + 1), bounds, color=colour, marker="o", ms=3)
        above.set_yscale("log")
        above.set_title(_title(name), fontsize=10)
        above.set_xlabel("CPU seconds")
        below.set_xlabel("round of CCCP")
    axes[0].set_ylabel("objective above the least found, relative")
    axes[len(names)].set_ylabel("bounds computed so far")
    axes[0].legend(fontsize=8)
    save_figure(figure, path)


RECYCLING = Experiment(
    "recycling", "Bounds recycling and adaptive precision (Figures 1.6 and 1.7)", _calls, _report,
    (), _draw,
)  # fmt: skip

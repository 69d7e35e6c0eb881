"""Figures 1.4 and 1.5: test loss and training time against the share of events annotated.

Of each training pair a random share of the events is annotated, the same for all methods. The
concave-convex procedure (bridge loss) starts at the weights of the averaged perceptron of partial
annotations, whose time is part of its own.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from studies.cheap_data.data import (
    SETTINGS,
    TITLES,
    annotated_in_part,
    cells,
    events_of,
    measured,
    sources,
)
from studies.cheap_data.tables import difference, interval, percent_interval, within_noise
from studies.experiments import Computation, Experiment, Records
from studies.folder import Call
from studies.markdown import markdown
from trellis.pictures.style import new_figure, save_figure
from trellis.problems import PartialObjective
from trellis.solvers import minimise_partial, partial_perceptron
from trellis.tracking import TrackingModel

__all__ = ["PARTIAL"]

_SHARES: Mapping[str, tuple[int, ...]] = {
    "quick": (10, 25, 50),
    "default": (5, 10, 25, 60),
    "full": (5, 10, 15, 20, 25, 40, 60, 80),
}
_SEEDS = {"quick": 2, "default": 2, "full": 10}
_PASSES = {"quick": 3, "default": 10, "full": 50}
_L2, _TOL = 1.0, 1e-2
_METHODS = {"bridge": "bridge loss, CCCP", "perceptron": "perceptron"}


def _run(name: str, share: int, seed: int, protocol: str) -> dict[str, Any]:
    """Perceptron, then max-margin, on the same annotations; all of them if the share is 100."""
    train, test = cells(name, protocol)
    if share < 100:
        train = annotated_in_part(train, share / 100, np.random.default_rng([seed, share]))
    model = TrackingModel(events_of(name), **SETTINGS, l2=_L2)
    problem = model.learning_problems({"": train})[""]
    clock = time.process_time()
    start = partial_perceptron(problem, passes=_PASSES[protocol], seed=seed)
    first = time.process_time() - clock
    clock = time.process_time()
    found = minimise_partial(PartialObjective(problem), l2=_L2, tol=_TOL, start=start)
    second = time.process_time() - clock
    record: dict[str, Any] = {}
    for method, w, seconds in (
        ("perceptron", start, first),
        ("bridge", found.weights, second + (first if share < 100 else 0.0)),
    ):
        result = model.with_weights(problem, w).predict(test)
        record[method] = measured(result, test) | {"seconds": seconds}
    return record | {"bounds": found.n_planes}


_RUNS = Computation("partial", _run)


def _seeds(protocol: str, share: int) -> range:
    return range(1 if share == 100 else _SEEDS[protocol])


def _calls(protocol: str) -> list[Call]:
    return [
        _RUNS.call(f"{TITLES[name]}: {share} %, draw {seed}", protocol, name, share, seed)
        for name in sources(protocol)
        for share in (*_SHARES[protocol], 100)
        for seed in _seeds(protocol, share)
    ]


def _of(records: Records, protocol: str, name: str, share: int, method: str) -> list[Any]:
    seeds = _seeds(protocol, share)
    return [_RUNS.of(records, protocol, name, share, seed)[method] for seed in seeds]


def _matches(records: Records, protocol: str, name: str) -> dict[int, tuple[float, float]]:
    """By share: how far the bridge loss is from the full annotation, and the standard error."""
    full = _of(records, protocol, name, 100, "bridge")[0]["losses"]
    return {
        share: difference(
            [r["losses"] for r in _of(records, protocol, name, share, "bridge")], full
        )
        for share in _SHARES[protocol]
    }


def _report(protocol: str, records: Records) -> str:
    parts = [
        f"Of each training pair a random share of the events is annotated ({_SEEDS[protocol]} "
        "draws; mean loss on the test pairs in per cent, ± half its 95 % interval over the draws). "
        "At 100 % the max-margin problem is convex and solved by the bundle method. "
        f"Factor of ‖w‖² beside the sum of the losses: {_L2:g} throughout; precision {_TOL:g}; "
        f"averaged perceptron of at most {_PASSES[protocol]} passes. CPU seconds of training; "
        "those of the bridge loss contain the perceptron it starts from. «More than full»: "
        "paired difference in points, ± its standard error over test pairs and draws.",
    ]
    for name in sources(protocol):
        rows = []
        away = _matches(records, protocol, name)
        for share in (*_SHARES[protocol], 100):
            row = [f"{share} %"]
            for method in _METHODS:
                runs = _of(records, protocol, name, share, method)
                row.append(percent_interval([np.mean(r["losses"]) for r in runs]))
            row += [
                f"{np.mean([r['seconds'] for r in _of(records, protocol, name, share, m)]):.1f}"
                for m in _METHODS
            ]
            mean, error = away.get(share, (0.0, 0.0))
            row.append(f"{100 * mean:+.2f} ± {100 * error:.2f}" if share in away else "")
            rows.append(row)
        head = ["annotated", *_METHODS.values(), *(f"{m}, s" for m in _METHODS.values())]
        parts += [
            f"### {TITLES[name]}", markdown([*head, "more than full"], rows),
            _sentence(records, protocol, name),
        ]  # fmt: skip
    return "\n\n".join(parts)


def _sentence(records: Records, protocol: str, name: str) -> str:
    """From which share on partial annotation is as good as full, and who is better."""
    away = _matches(records, protocol, name)
    first, steady = within_noise(away)
    if steady is not None:
        text = f"From {steady} % on partial annotation is within noise of full"
        text += f" (the first such share is {first} %)." if first != steady else "."
    else:
        text = "No share is within noise of full from there on."
    losses = {
        method: [
            float(np.mean([r["losses"] for r in _of(records, protocol, name, share, method)]))
            for share in _SHARES[protocol]
        ]
        for method in _METHODS
    }
    better = sum(a < b for a, b in zip(losses["bridge"], losses["perceptron"], strict=True))
    full = _of(records, protocol, name, 100, "bridge")[0]["seconds"]
    share = min(_SHARES[protocol], key=lambda s: abs(s - 25))
    seconds = np.mean([r["seconds"] for r in _of(records, protocol, name, share, "bridge")])
    return (
        f"{text} The bridge loss is below the perceptron at {better} of {len(away)} shares. At "
        f"{share} % its training takes {seconds / full:.1f} times as long as that of the bundle "
        "method on full annotations."
    )


def _draw(protocol: str, records: Records, path: Path) -> None:
    names = sources(protocol)
    figure, axes = new_figure(2 * len(names), columns=len(names))
    figure.set_size_inches(3.6 * len(names) + 1, 7)
    shares = (*_SHARES[protocol], 100)
    for column, name in enumerate(names):
        above, below = axes[column], axes[len(names) + column]
        for method, colour in (("bridge", "C0"), ("perceptron", "C1")):
            found = {s: _of(records, protocol, name, s, method) for s in shares}
            losses = [[100 * np.mean(r["losses"]) for r in found[s]] for s in shares]
            means, spread = zip(*map(interval, losses), strict=True)
            above.errorbar(shares, means, spread, color=colour, marker="o", ms=3, capsize=2,
                           label=_METHODS[method])  # fmt: skip
            seconds = [np.mean([r["seconds"] for r in found[s]]) for s in shares]
            below.plot(shares, seconds, color=colour, marker="o", ms=3, label=_METHODS[method])
        full = _of(records, protocol, name, 100, "bridge")[0]
        above.axhline(100 * np.mean(full["losses"]), color="0.4", ls="--", label="full, bundle")
        below.axhline(full["seconds"], color="0.4", ls="--", label="full, bundle")
        above.set_title(TITLES[name])
        below.set_xlabel("events annotated, %")
        below.set_ylim(bottom=0)
    axes[0].set_ylabel("test loss, %")
    axes[len(names)].set_ylabel("training, CPU s")
    axes[0].legend(fontsize=8)
    save_figure(figure, path)


PARTIAL = Experiment(
    "partial", "Partial annotation (Figures 1.4 and 1.5)", _calls, _report, (), _draw
)

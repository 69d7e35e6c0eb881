"""Table 1.1: what learning the weights of a tracking model brings, over not learning them.

The factors of the regularisers are chosen on the last third of the training pairs, with models of
the first two thirds; then all training pairs are learned from. Gates and scales of features are set
from the training pairs for every method.
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
    cells,
    measured,
    size_text,
    sources,
)
from studies.cheap_data.tables import compared, percent_se
from studies.experiments import Computation, Experiment, Records
from studies.folder import Call
from studies.markdown import markdown
from trellis import tracking
from trellis.pictures.style import new_figure, save_figure
from trellis.tracking import FramePair, TrackingModel

__all__ = ["METHODS"]

_NAMES = {
    "nearest": "nearest neighbour, no divisions",
    "graph": "graph matching, no learning",
    "flow": "minimum-cost flow, no learning",
    "hand": "weights set by hand",
    "forest": "random forests, local",
    "l1": "structured learning, L1",
    "l2": "structured learning, L2",
    "l2-published": "structured learning, L2, one weight a feature",
}
_SHORT = ["nearest", "graph", "flow", "by hand", "forests", "L1", "L2", "L2, one weight"]
_PUBLISHED = {"graph": 6.18, "flow": 1.64, "hand": 1.12, "forest": 0.55, "l1": 0.45, "l2": 0.30}
_PUBLISHED["l2-published"] = _PUBLISHED["l2"]
_FACTORS: Mapping[str, Mapping[str, tuple[float, ...]]] = {
    "quick": {"l1": (1.0,), "l2": (1.0,)},
    "default": {"l1": (1.0, 10.0, 100.0), "l2": (0.1, 1.0, 10.0)},
    "full": {"l1": (0.1, 1.0, 10.0, 100.0), "l2": (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)},
}
_TREES = {"quick": 10, "default": 100, "full": 200}
_UNLEARNED = ("nearest", "graph", "flow")


def _structured(kind: str, factor: float) -> TrackingModel:
    l1, l2 = (factor, 0.0) if kind == "l1" else (0.0, factor)
    more: dict[str, Any] = {"knots": 0} if kind == "l2-published" else {}
    return TrackingModel(**{**SETTINGS, **more}, l1=l1, l2=l2)


def _tracker(method: str, protocol: str) -> Any:
    if method == "forest":
        return tracking.LocalClassifiers(n_trees=_TREES[protocol], random_state=0)
    names = {"nearest": "NearestNeighbour", "graph": "GraphMatching", "flow": "FlowTracker"}
    return getattr(tracking, names.get(method, "HandSet"))()


def _factor(kind: str, protocol: str, train: Sequence[FramePair]) -> float:
    """The factor with the least loss on the last third of the training pairs."""
    factors = _FACTORS[protocol][kind[:2]]
    if len(factors) == 1:
        return factors[0]
    cut = max(1, len(train) * 2 // 3)
    losses = [_structured(kind, f).fit(train[:cut]).task_loss(train[cut:]) for f in factors]
    return factors[int(np.argmin(losses))]


def _run(name: str, method: str, protocol: str) -> dict[str, Any]:
    train, test = cells(name, protocol)
    factor = None
    if method.startswith(("l1", "l2")):
        factor = _factor(method, protocol, train)
        tracker: Any = _structured(method, factor)
    else:
        tracker = _tracker(method, protocol)
    started = time.process_time()
    tracker.fit(train)
    seconds = time.process_time() - started
    return measured(tracker.predict(test), test) | {"seconds": seconds, "factor": factor}


_RUNS = Computation("methods", _run)


def _calls(protocol: str) -> list[Call]:
    return [
        _RUNS.call(f"{TITLES[name]}: {_NAMES[method]}", protocol, name, method)
        for name in sources(protocol)
        for method in reversed(_NAMES)
    ]


def _report(protocol: str, records: Records) -> str:
    parts = [
        "Loss: events that are missed or wrong over the number of true events, in per cent, mean "
        "over the test pairs ± its standard error; a wrong link counts twice. F1 of links and of "
        "divisions in per cent; CPU seconds of the last fit. Trellis has several weights for the "
        "ranges of a feature; «one weight a feature» is the model as published. The published "
        "losses are those of another data set. Factors of the regularisers were chosen on the last "
        "third of the training pairs. Differences are paired over the test pairs, ± their standard "
        "error (as if consecutive pairs were independent); «within noise» is less than two of "
        "those."
    ]
    for name in sources(protocol):
        found = {method: _RUNS.of(records, protocol, name, method) for method in _NAMES}
        rows = [
            [
                _NAMES[m] + ("" if r["factor"] is None else f", factor {r['factor']:g}"),
                percent_se(r["losses"]), f"{100 * r['links']:.2f}", f"{100 * r['divisions']:.1f}",
                f"{r['seconds']:.1f}", f"{_PUBLISHED[m]:.2f}" if m in _PUBLISHED else "",
            ]
            for m, r in found.items()
        ]  # fmt: skip
        head = ["method", "loss", "links F1", "divisions F1", "seconds", "published loss"]
        text = [f"### {TITLES[name]}", size_text(name, protocol), markdown(head, rows)]
        parts += [*filter(None, text), _order(found)]
    return "\n\n".join(parts)


def _order(found: Mapping[str, Mapping[str, Any]]) -> str:
    """Whether learned > local > set by hand > not learned, step by step."""
    losses = {method: record["losses"] for method, record in found.items()}
    best = min(_UNLEARNED, key=lambda m: float(np.mean(losses[m])))
    steps = [("l2", "forest"), ("l2-published", "forest"), ("forest", "hand"), ("hand", best)]
    steps += [("l2", "l1"), ("l2", "l2-published")]
    return "\n".join(f"- {compared(_NAMES[a], losses[a], _NAMES[b], losses[b])}" for a, b in steps)


def _draw(protocol: str, records: Records, path: Path) -> None:
    names = sources(protocol)
    figure, axes = new_figure(len(names), columns=2)
    for name, axis in zip(names, axes, strict=True):
        places = np.arange(len(_NAMES))
        losses = [_RUNS.of(records, protocol, name, m)["losses"] for m in _NAMES]
        means = [100 * np.mean(one) for one in losses]
        errors = [100 * np.std(one, ddof=1) / np.sqrt(len(one)) for one in losses]
        colours = ["0.6"] * 3 + ["C4", "C2", "C1", "C0", "C9"]
        axis.barh(places, means, xerr=errors, color=colours)
        axis.set_yticks(places, _SHORT)
        axis.invert_yaxis()
        axis.set_title(TITLES[name])
        axis.set_xlabel("task loss, %")
    save_figure(figure, path)


METHODS = Experiment("methods", "Learned or not (Table 1.1)", _calls, _report, (), _draw)

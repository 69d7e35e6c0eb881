"""Figure 1.10 and Table 1.4: annotations of one laboratory for the cells of another.

The source is annotated in full, of the target a random share of its patches; the other patches of
the target are there without annotation and help to scale the features. All strategies see the
columns that both have, the same patches, the same gate and the same scale. The factor l2 is chosen
by cross-validation on one further draw of the target, the validation draw, once for all shares; how
strongly to transfer, by ``TransferLearner`` itself in what a draw annotates.

Patches become a learning problem once; a draw tells it what is annotated. To make it anew for each
fit takes as long as the fits.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from studies.cheap_data.data import (
    MOVIES,
    SETTINGS,
    TITLES,
    cells,
    events_of,
    is_annotated,
    measured,
)
from studies.cheap_data.tables import difference, interval, percent_interval, within_noise
from studies.experiments import Computation, Experiment, Records
from studies.folder import Call
from studies.markdown import markdown
from trellis.cheap import TransferLearner, cross_validate_transfer
from trellis.pictures.style import new_figure, save_figure
from trellis.tracking import FramePair, TrackingModel, patchify
from trellis.tracking.problem import TrackingProblem

__all__ = ["TRANSFER", "Domains"]

_NAMES = {
    "all-source": "all source",
    "all-target": "all target",
    "partial-target": "partial target",
    "union": "union",
    "transfer": "transfer",
}
_VALIDATION = 10_000  # number of the validation draw
_WITH_SHARE = ("partial-target", "union", "transfer")


@dataclass(frozen=True)
class Domains:
    """How much transfer a protocol has."""

    tasks: tuple[tuple[str, str], ...]  # names of sources and targets
    n_patches: int  # most patches of a domain
    shares: tuple[int, ...]  # annotated patches of the target, in per cent
    n_draws: int  # draws of them
    validation: int  # share of the validation draw, in per cent
    l2s: tuple[float, ...]  # factors to choose from
    rhos: tuple[float, ...]
    folds: int  # folds of the cross-validation
    objects: float = 20.0  # objects of a patch, about


_SHARES = (1, 5, 10, 20, 30, 50)
_TASKS = (("cellmigration", "epidermis"), ("a", "b"))
DOMAINS = {
    "quick": Domains((("a", "b"),), 12, (10, 20, 50), 2, 50, (1.0,), (1.0,), 2, 8.0),
    "default": Domains(_TASKS, 80, _SHARES, 2, 20, (0.3, 3.0), (1.0, 10.0), 3),
    "full": Domains(
        _TASKS[:1], 1188, _SHARES, 10, 10, (0.1, 0.5, 2.5, 12.5), (0.5, 2.5, 12.5, 62.5), 5
    ),
}  # fmt: skip
"""The data of each protocol."""


@lru_cache(maxsize=4)
def _patches(name: str, protocol: str) -> list[FramePair]:
    """Patches of the training pairs, in random order."""
    train, _ = cells(name, protocol, MOVIES[protocol])
    size = DOMAINS[protocol]
    every = [p for p in patchify(train, objects=size.objects) if is_annotated(p)]
    chosen = np.random.default_rng(0).permutation(len(every))[: size.n_patches]
    return [every[i] for i in chosen.tolist()]


@lru_cache(maxsize=4)
def _reach(source: str, target: str, protocol: str) -> float:
    """One gate for both: the larger one."""
    data = {name: cells(name, protocol)[0] for name in (source, target)}
    problems = TrackingModel(**SETTINGS).learning_problems(data)
    return max(problem.hypothesis_space.max_distance for problem in problems.values())


def _known(n_patches: int, share: int, draw: int) -> list[int]:
    """Patches of the target that a draw annotates: a random share of them, at least one."""
    n_known = max(1, round(share * n_patches / 100))
    chosen: list[int] = (
        np.random.default_rng([draw, share]).permutation(n_patches)[:n_known].tolist()
    )
    return chosen


class _Encoded(TrackingModel):
    """A model whose learning problems are there already."""

    problems: Mapping[str, TrackingProblem]

    def learning_problems(
        self, data: Mapping[str, Any], *, labels: Sequence[str] | None = None
    ) -> dict[str, TrackingProblem]:
        return {name: self.problems[name] for name in data}


@lru_cache(maxsize=2)
def _problems(source: str, target: str, protocol: str) -> dict[str, TrackingProblem]:
    """The source as it is, and the target without annotations."""
    bare = [replace(patch, annotation=None) for patch in _patches(target, protocol)]
    data = {"source": _patches(source, protocol), "target": bare}
    found: dict[str, TrackingProblem] = _model(
        TrackingModel, source, target, protocol
    ).learning_problems(data)
    return found


def _model(kind: type[TrackingModel], source: str, target: str, protocol: str) -> Any:
    return kind(
        events_of(source, target), **SETTINGS,
        max_distance=_reach(source, target, protocol),
    )  # fmt: skip


def _encoded(source: str, target: str, known: Sequence[int], protocol: str) -> Any:
    """The model with its problems, in which these patches of the target are annotated."""
    problems = dict(_problems(source, target, protocol))
    problems["target"] = copy.deepcopy(problems["target"])
    patches = _patches(target, protocol)
    for i in known:
        problems["target"].annotate(i, patches[i].annotation)
    model = _model(_Encoded, source, target, protocol)
    model.problems = problems
    return model


def _data(source: str, target: str, protocol: str) -> dict[str, list[FramePair]]:
    return {"source": _patches(source, protocol), "target": _patches(target, protocol)}


def _tried(source: str, target: str, l2: float, protocol: str) -> dict[str, Any]:
    """Losses of one factor l2 in the cross-validation: of each strategy, by rho."""
    size = DOMAINS[protocol]
    n = len(_patches(target, protocol))
    table = cross_validate_transfer(
        _encoded(source, target, _known(n, size.validation, _VALIDATION), protocol),
        _data(source, target, protocol), target="target", l2s=[l2], rhos=(0.0, *size.rhos, np.inf),
        folds=size.folds,
    ).table  # fmt: skip
    alone, *related, union = (trial.mean for trial in table)
    return {"partial-target": [alone], "union": [union], "transfer": related}


def _factors(trials: Sequence[Mapping[str, Any]], protocol: str) -> dict[str, tuple[float, float]]:
    """For each strategy the factors l2 and rho of least loss in the cross-validation."""
    size = DOMAINS[protocol]
    found = {}
    for strategy, rhos in (
        ("partial-target", [0.0]), ("union", [np.inf]), ("transfer", size.rhos),
    ):  # fmt: skip
        losses = np.array([trial[strategy] for trial in trials])
        i, j = np.unravel_index(int(losses.argmin()), losses.shape)
        found[strategy] = (size.l2s[i], rhos[j])
    return found


def _fit(
    model: Any, source: str, target: str, strategy: str, factors: Any, protocol: str
) -> dict[str, Any]:
    l2, _ = factors.get(strategy, factors["partial-target"])
    learner = TransferLearner(model, strategy=strategy, l2=l2, target="target").fit(
        _data(source, target, protocol)
    )
    _, test = cells(target, protocol)
    chosen = {"l2": l2, "rho": str(learner.rho_), "from": learner.strategy_}
    return measured(learner.predict(test), test) | chosen


def _once(source: str, target: str, protocol: str, trials: Any) -> dict[str, Any]:
    """The strategies that do not depend on a share."""
    factors = _factors(trials, protocol)
    every = range(len(_patches(target, protocol)))
    model = _encoded(source, target, every, protocol)
    record = {
        strategy: _fit(model, source, target, strategy, factors, protocol)
        for strategy in ("all-source", "all-target")
    }
    return record | {name: len(_patches(name, protocol)) for name in (source, target)}


def _run(
    source: str, target: str, share: int, draw: int, protocol: str, trials: Any
) -> dict[str, Any]:
    factors = _factors(trials, protocol)
    known = _known(len(_patches(target, protocol)), share, draw)
    model = _encoded(source, target, known, protocol)
    return {s: _fit(model, source, target, s, factors, protocol) for s in _WITH_SHARE}


_RUNS, _WHOLE = Computation("transfer", _run), Computation("transfer-all", _once)
_TRIALS = Computation("transfer-factors", _tried)


def _calls(protocol: str) -> list[Call]:
    size = DOMAINS[protocol]
    calls = []
    for source, target in size.tasks:
        title = f"{TITLES[source]} to {TITLES[target].lower()}"
        trials = [
            _TRIALS.call(f"{title}: cross-validation, l2 {l2:g}", protocol, source, target, l2)
            for l2 in size.l2s
        ]
        calls += trials
        calls.append(_WHOLE.call(f"{title}: all", protocol, source, target, needs=trials))
        calls += [
            _RUNS.call(f"{title}: {s} %, draw {d}", protocol, source, target, s, d, needs=trials)
            for s in size.shares
            for d in range(size.n_draws)
        ]
    return calls


def _losses(
    records: Records, protocol: str, task: tuple[str, str], strategy: str, share: int
) -> list[list[float]]:
    """Losses of the test pairs (draws, n)."""
    if strategy not in _WITH_SHARE:
        return [_WHOLE.of(records, protocol, *task)[strategy]["losses"]]
    return [
        _RUNS.of(records, protocol, *task, share, draw)[strategy]["losses"]
        for draw in range(DOMAINS[protocol].n_draws)
    ]


def _report(protocol: str, records: Records) -> str:
    size = DOMAINS[protocol]
    parts = [
        "Task loss on test pairs of the target in per cent, mean ± half its 95 % interval over "
        f"{size.n_draws} draws of the annotated patches of the target. The factor l2 was "
        f"chosen by {size.folds}-fold cross-validation on one further draw of "
        f"{size.validation} % of the target's patches, once for all shares: at smaller shares "
        "that is more than the strategies learn from. Transfer chose ρ by itself, in what is "
        "annotated, with the source model (source) and the union (∞) among its choices. "
        "«Transfer over all target»: paired "
        "difference in points ± its standard error over test pairs and draws."
    ]
    for task in size.tasks:
        source, target = task
        once = _WHOLE.of(records, protocol, *task)
        head = ["annotated", *_NAMES.values(), "transfer over all target", "ρ of the draws"]
        rows = []
        for share in size.shares:
            mean, error = _away(records, protocol, task, "transfer", share)
            losses = [_losses(records, protocol, task, s, share) for s in _NAMES]
            means = [percent_interval(np.mean(runs, axis=1)) for runs in losses]
            away = f"{100 * mean:+.2f} ± {100 * error:.2f}"
            rows.append([f"{share} %", *means, away, _chosen(records, protocol, task, share)])
        first = _RUNS.of(records, protocol, *task, size.shares[0], 0)
        factors = "; ".join(f"{_NAMES[s]} l2 {first[s]['l2']:g}" for s in _WITH_SHARE)
        parts += [
            f"### {TITLES[source]} to {TITLES[target].lower()}",
            f"{once[source]} source patches, {once[target]} target patches. {factors}; all source "
            "and all target as partial target.",
            markdown(head, rows), _sentence(records, protocol, task),
        ]  # fmt: skip
    return "\n\n".join(parts)


def _chosen(records: Records, protocol: str, task: tuple[str, str], share: int) -> str:
    """What transfer chose, draw by draw."""
    runs = [
        _RUNS.of(records, protocol, *task, share, draw)["transfer"]
        for draw in range(DOMAINS[protocol].n_draws)
    ]
    return ", ".join(
        "source" if run["from"] == "all-source" else run["rho"].replace("inf", "∞") for run in runs
    )


def _away(
    records: Records, protocol: str, task: tuple[str, str], strategy: str, share: int
) -> tuple[float, float]:
    """How far a strategy is from training on all of the target."""
    (full,) = _losses(records, protocol, task, "all-target", 100)
    return difference(_losses(records, protocol, task, strategy, share), full)


def _sentence(records: Records, protocol: str, task: tuple[str, str]) -> str:
    """At which share each strategy reaches all of the target, and stays there."""
    said = []
    shares = DOMAINS[protocol].shares
    for strategy in _WITH_SHARE:
        away = {share: _away(records, protocol, task, strategy, share) for share in shares}
        _, steady = within_noise(away)
        where = f"from {steady} % on" if steady is not None else "at no share"
        said.append(f"{_NAMES[strategy]} {where}")
    return f"Within noise of all target: {'; '.join(said)}."


def _draw(protocol: str, records: Records, path: Path) -> None:
    size = DOMAINS[protocol]
    figure, axes = new_figure(len(size.tasks), columns=2)
    styles: Mapping[str, dict[str, Any]] = {
        "all-source": {"color": "0.6", "ls": ":"}, "all-target": {"color": "0.2", "ls": "--"},
        "partial-target": {"color": "C1"}, "union": {"color": "C2"}, "transfer": {"color": "C0"},
    }  # fmt: skip
    for task, axis in zip(size.tasks, axes, strict=True):
        for strategy, label in _NAMES.items():
            found = [_losses(records, protocol, task, strategy, share) for share in size.shares]
            means = [100 * np.mean(runs) for runs in found]
            if strategy in _WITH_SHARE:
                spread = [100 * interval(np.mean(runs, axis=1))[1] for runs in found]
                axis.errorbar(size.shares, means, spread, marker="o", ms=3, capsize=2,
                              label=label, **styles[strategy])  # fmt: skip
            else:
                axis.axhline(means[0], label=label, **styles[strategy])
        axis.set_title(f"{TITLES[task[0]]} to {TITLES[task[1]].lower()}")
        axis.set_xlabel("patches of the target annotated, %")
    axes[0].set_ylabel("test loss, %")
    axes[0].legend(fontsize=8)
    save_figure(figure, path)


TRANSFER = Experiment("transfer", "Transfer (Figure 1.10, Table 1.4)", _calls, _report, (), _draw)

"""Figure 1.10 and Table 1.4: annotations of one laboratory for the cells of another.

The source is annotated in full, of the target a random share of its patches; the other patches of
the target are there without annotation and help to scale the features. All strategies see the
columns that both have, the same patches and the same gate. Factors are chosen by cross-validation
on one further draw of the target, the validation draw, once for all shares.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from studies.cheap_data.data import (
    MOVIES,
    NEIGHBOURS,
    TITLES,
    cells,
    events_of,
    is_annotated,
    measured,
)
from studies.cheap_data.tables import difference, within_noise
from studies.experiments import Computation, Experiment, Records
from studies.folder import Call
from studies.markdown import markdown
from studies.texts import percent_sd
from trellis.cheap import TransferLearner, cross_validate_transfer
from trellis.pictures.style import new_figure, save_figure
from trellis.tracking import FramePair, TrackingModel, patchify

__all__ = ["TRANSFER", "Domains"]

_NAMES = {
    "all-source": "all source",
    "all-target": "all target",
    "partial-target": "partial target",
    "union": "union",
    "transfer": "transfer",
}
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


_SHARES = (1, 5, 10, 15, 20, 25, 30, 40, 50)
_TASKS = (("cellmigration", "epidermis"), ("a", "b"))
DOMAINS = {
    "quick": Domains((("a", "b"),), 12, (10, 20, 50), 2, 50, (1.0,), (1.0,), 2, 8.0),
    "default": Domains(_TASKS, 80, (1, 5, 10, 20, 30, 50), 2, 20, (0.3, 3.0), (1.0, 10.0), 3),
    "full": Domains(
        (*_TASKS, ("epidermis", "cellmigration"), ("b", "a")), 1188, _SHARES, 10, 10,
        (0.1, 0.5, 2.5, 12.5), (0.5, 2.5, 12.5, 62.5), 5,
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
    problems = TrackingModel(n_neighbors=NEIGHBOURS).learning_problems(data)
    return max(problem.hypothesis_space.max_distance for problem in problems.values())


def _drawn(patches: Sequence[FramePair], share: int, draw: int) -> list[FramePair]:
    """Patches of which a random share is annotated, at least one."""
    n = len(patches)
    known = np.random.default_rng([draw, share]).permutation(n)[: max(1, round(share * n / 100))]
    bare = [replace(patch, annotation=None) for patch in patches]
    for i in known.tolist():
        bare[i] = patches[i]
    return bare


def _model(source: str, target: str, protocol: str) -> Any:
    return TrackingModel(
        events_of(source, target), n_neighbors=NEIGHBOURS,
        max_distance=_reach(source, target, protocol),
    )  # fmt: skip


@lru_cache(maxsize=4)
def _factors(source: str, target: str, protocol: str) -> dict[str, tuple[float, float]]:
    """For each strategy the factors l2 and rho of least loss in the cross-validation."""
    size = DOMAINS[protocol]
    data = {
        "source": _patches(source, protocol),
        "target": _drawn(_patches(target, protocol), size.validation, 10_000),
    }
    table = cross_validate_transfer(
        _model(source, target, protocol), data, target="target", l2s=size.l2s,
        rhos=(0.0, *size.rhos, np.inf), folds=size.folds,
    ).table  # fmt: skip
    found = {}
    for strategy, fits in (
        ("partial-target", [t for t in table if t.rho == 0]),
        ("union", [t for t in table if t.rho == np.inf]),
        ("transfer", [t for t in table if 0 < t.rho < np.inf]),
    ):
        best = min(fits, key=lambda trial: trial.mean)
        found[strategy] = (best.l2, best.rho)
    return found


def _fit(source: str, target: str, strategy: str, share: int, draw: int, protocol: str) -> Any:
    factors = _factors(source, target, protocol)
    l2, rho = factors.get(strategy, factors["partial-target"])
    patches = _patches(target, protocol)
    data = {
        "source": _patches(source, protocol),
        "target": patches if strategy == "all-target" else _drawn(patches, share, draw),
    }
    learner = TransferLearner(
        _model(source, target, protocol), rho if 0 < rho < np.inf else 1.0, strategy=strategy,
        l2=l2, target="target",
    ).fit(data)  # fmt: skip
    _, test = cells(target, protocol)
    return measured(learner.predict(test), test) | {"l2": l2, "rho": rho if rho < np.inf else None}


def _once(source: str, target: str, protocol: str) -> dict[str, Any]:
    """The strategies that do not depend on a share."""
    size = DOMAINS[protocol]
    record = {
        strategy: _fit(source, target, strategy, size.validation, 10_000, protocol)
        for strategy in ("all-source", "all-target")
    }
    return record | {name: len(_patches(name, protocol)) for name in (source, target)}


def _run(source: str, target: str, share: int, draw: int, protocol: str) -> dict[str, Any]:
    return {s: _fit(source, target, s, share, draw, protocol) for s in _WITH_SHARE}


_RUNS, _WHOLE = Computation("transfer", _run), Computation("transfer-all", _once)


def _calls(protocol: str) -> list[Call]:
    size = DOMAINS[protocol]
    calls = []
    for source, target in size.tasks:
        title = f"{TITLES[source]} to {TITLES[target].lower()}"
        calls.append(_WHOLE.call(f"{title}: all", protocol, source, target))
        calls += [
            _RUNS.call(f"{title}: {share} %, draw {draw}", protocol, source, target, share, draw)
            for share in size.shares
            for draw in range(size.n_draws)
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
        "Task loss on test pairs of the target in per cent, mean ± standard deviation over "
        f"{size.n_draws} draws of the annotated patches of the target. Factors of the "
        f"regularisers were chosen by {size.folds}-fold cross-validation on one further draw of "
        f"{size.validation} % of the target's patches, once for all shares: at smaller shares "
        "that is more than the strategies learn from. «Transfer over all target»: paired "
        "difference in points ± its standard error over test pairs and draws."
    ]
    for task in size.tasks:
        source, target = task
        once = _WHOLE.of(records, protocol, *task)
        head = ["annotated", *_NAMES.values(), "transfer over all target"]
        rows = []
        for share in size.shares:
            mean, error = _away(records, protocol, task, "transfer", share)
            losses = [_losses(records, protocol, task, s, share) for s in _NAMES]
            means = [percent_sd(np.mean(runs, axis=1)) for runs in losses]
            rows.append([f"{share} %", *means, f"{100 * mean:+.2f} ± {100 * error:.2f}"])
        first = _RUNS.of(records, protocol, *task, size.shares[0], 0)
        factors = "; ".join(
            f"{_NAMES[s]} l2 {first[s]['l2']:g}" + (f", ρ {first[s]['rho']:g}" if first[s]["rho"]
            else "") for s in _WITH_SHARE
        )  # fmt: skip
        parts += [
            f"### {TITLES[source]} to {TITLES[target].lower()}",
            f"{once[source]} source patches, {once[target]} target patches. {factors}; all source "
            "and all target as partial target.",
            markdown(head, rows), _sentence(records, protocol, task),
        ]  # fmt: skip
    return "\n\n".join(parts)


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
                spread = [100 * np.std(np.mean(runs, axis=1)) for runs in found]
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

r"""How strongly domains are drawn together, chosen by cross-validation in what is annotated.

Models for a target domain are tried on annotated samples of the target that were held out:

.. math::

    \rho = \infty \text{ without the target}, \quad \rho = \infty, \quad
    \rho_1 > \rho_2 > \dots, \quad \rho = 0,

that is the source model as it is, the union, transfer, and the target alone. With few annotations
the least loss of these is as good as drawn by lot. So it is transfer with :math:`\rho = 2.5`, which
was never far from the best where rules were compared, unless others are surely better, by a t-test
of the paired losses: one-sided at 25 % or, for the target alone, which has nothing to fall back on,
at 10 %; of these it is the one of least loss. Without an annotation of the target, or with one that
cannot be held out, it is the source model as it is.

Each model begins where the one before ended, which leaves little to do. Where few samples are
annotated, and the problem can divide them (pairs of frames into patches), parts are held out.

Where a model guesses at what is not annotated (:mod:`trellis.cheap.related_models`) there is no
choice but :math:`\rho = 2.5`: the guesses are what a target falls back on. Where the other domains
know better than the guesses, the target alone is no choice.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from trellis.arrays import Float64s, Int64s, as_list
from trellis.cheap.related_models import ROUGH_TOL, RelatedModels
from trellis.cheap.training import l2_of
from trellis.domains import nothing, number, text, whole
from trellis.errors import DataError
from trellis.problems.partial import PartialLoss
from trellis.problems.problem import Learnable, Problem
from trellis.progress import Reporter

__all__ = [
    "AUTO_RHOS",
    "RHO",
    "USUAL_RHO",
    "TransferChoice",
    "TransferTrial",
    "check_domains",
    "choose_related",
    "cross_validate_transfer",
]

Score = Callable[[Problem, Float64s, Int64s], float]

RHO = number(at_least=0, infinite=True)

AUTO_RHOS = (np.inf, 25.0, 2.5, 0.0)
"""Factors that are tried if nobody says which."""

USUAL_RHO = 2.5
"""The factor, unless another is surely better."""

_FOLDS = 3
_FEW = 20  # annotated samples below which they are divided, if they can be
_LEVEL, _LEVEL_ALONE = 0.25, 0.1  # of the tests to pass to take the place of the usual factor


@dataclass(frozen=True)
class TransferTrial:
    """One pair of parameters and the loss of each fold.

    Parameters
    ----------
    l2, rho : float
        The parameters.
    losses : tuple of float
        Loss on the samples held out, fold by fold.
    """

    l2: float
    rho: float
    losses: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Mean loss of the folds."""
        return float(np.mean(self.losses))


@dataclass(frozen=True)
class TransferChoice:
    """Result of :func:`cross_validate_transfer`.

    Parameters
    ----------
    best : TransferTrial
        The trial of least mean loss; of equal ones the first.
    table : list of TransferTrial
        All of them, in order.
    """

    best: TransferTrial
    table: list[TransferTrial]


def choose_related(models: RelatedModels, target: str | None, tol: float) -> tuple[bool, float]:
    """Choose what to learn a target from; without one, what to learn all data sets from.

    Parameters
    ----------
    models : RelatedModels
        The data sets.
    target : str, optional
        The one that counts. Without, all count, and there is no source model.
    tol : float
        Precision of the training.

    Returns
    -------
    learns_target : bool
        Whether the losses of the target count at all.
    rho : float
        How strongly the models are drawn together.
    """
    known = [name for name, p in models.problems.items() if p.annotated.any()]
    counted = known if target is None else [target] if target in known else []
    sources = [name for name in known if name != target]
    if target is not None and not (counted and sources):
        return (False, np.inf) if sources else (True, 0.0)
    divided = {name: _divided(models.problems[name]) for name in counted}
    held = replace(models, problems={**models.problems, **divided})
    n_folds = min(_FOLDS, max((int(p.annotated.sum()) for p in divided.values()), default=0))
    if n_folds < 2:  # nothing can be held out
        return target is None, np.inf
    alone = set(known) == set(models.problems) and not models.outdone
    rhos = [rho for rho in AUTO_RHOS if rho or alone]
    losses = _held_out(held, counted, sources, rhos, n_folds, max(tol, ROUGH_TOL))
    if target is None:
        return True, rhos[_chosen(losses[1:], rhos)]
    best = _chosen(losses, [np.inf, *rhos])
    return best > 0, rhos[best - 1] if best else np.inf


def _held_out(
    models: RelatedModels,
    counted: Sequence[str],
    sources: Sequence[str],
    rhos: Sequence[float],
    n_folds: int,
    tol: float,
) -> Float64s:
    """Losses of samples that were held out: (1 + len(rhos), n), those of the source model first."""
    parts = {
        name: _folds(np.flatnonzero(p.annotated), min(n_folds, int(p.annotated.sum())), 0)
        for name, p in models.problems.items()
        if name in counted and p.annotated.sum() > 1
    }
    whole = {name: models.objective(name) for name in {*counted, *sources}}
    names = [name for name in models.problems if name in whole]
    _, first = models.learn({name: whole[name] for name in names if name in sources}, np.inf, tol)
    begin = dict.fromkeys(names, first[sources[0]])
    columns = []
    for k in range(n_folds):
        out = {name: folds[k] for name, folds in parts.items() if k < len(folds)}
        inside = {
            name: np.setdiff1d(np.flatnonzero(models.problems[name].annotated), samples)
            for name, samples in out.items()
        }
        objectives = {
            name: models.objective(name, inside[name]) if name in inside else whole[name]
            for name in names
        }
        weights, rows = begin, [_losses_at(models, begin, out)]
        for rho in rhos:
            alone = {name: objectives[name] for name in out} if rho == 0 else objectives
            _, weights = models.learn(alone, rho, tol, weights)
            rows.append(_losses_at(models, weights, out))
        columns.append(np.stack(rows))
    return np.concatenate(columns, axis=1)


def _losses_at(
    models: RelatedModels, weights: Mapping[str, Float64s], samples: Mapping[str, Int64s]
) -> Float64s:
    """Task losses of the best outputs of samples, by data set."""
    found = [
        models.problems[name].maxima(weights[name], "all", samples=some).losses
        for name, some in samples.items()
    ]
    return np.concatenate(found)


def _chosen(losses: Float64s, rhos: Sequence[float]) -> int:
    """The row of the usual factor, or the best of those that are surely better.

    Examples
    --------
    >>> losses = np.array([[1.0, 3.0, 2.0, 2.0], [0.0, 2.0, 1.0, 0.0], [0.0, 2.0, 1.0, 1.0]])
    >>> _chosen(losses, (np.inf, 25.0, 2.5)), _chosen(losses, (np.inf, 0.0, 2.5))
    (1, 2)
    """
    from scipy.stats import t

    n, usual = losses.shape[1], list(rhos).index(USUAL_RHO)
    better = [usual]
    for row in range(len(losses)):
        gain = losses[usual] - losses[row]
        error = float(gain.std(ddof=1)) / np.sqrt(n)
        level = _LEVEL if rhos[row] else _LEVEL_ALONE
        if gain.mean() > t.ppf(1 - level, n - 1) * error:
            better.append(row)
    return min(better, key=lambda row: float(losses[row].mean()))


def _divided(problem: Any) -> Any:
    """The problem, with smaller samples if few are annotated and it can divide them."""
    few = 0 < int(problem.annotated.sum()) < _FEW
    return problem.divided() if few and hasattr(problem, "divided") else problem


def cross_validate_transfer(
    model: Learnable,
    data: Mapping[str, Any],
    *,
    target: str,
    l2s: Iterable[float],
    rhos: Iterable[float],
    folds: int = 5,
    seed: int = 0,
    score: Score | None = None,
    loss: str | PartialLoss | None = None,
    bias_rho: float = 0.1,
    tol: float = 1e-2,
    labels: Sequence[str] | None = None,
    verbose: bool = False,
) -> TransferChoice:
    """Choose ``l2`` and ``rho`` by cross-validation on the annotated samples of the target.

    The other domains are learned from in all folds. ``rho=0`` stands for the target alone and
    ``rho=inf`` for the union, so that these strategies can be compared as well. What nobody
    annotated is not guessed here.

    Parameters
    ----------
    model : Learnable
        As for :class:`TransferLearner`.
    data : dict of str to data
        Name and data set of each domain.
    target : str
        The domain that counts.
    l2s, rhos : iterables of float
        Values to try, in all combinations.
    folds : int
        Number of folds.
    seed : int
        Seed of the folds.
    score : function of (problem, weights, samples), optional
        Loss, the less the better, on some samples of the target, given as a
        :class:`~trellis.problems.problem.Problem` and their numbers. By default
        the mean task loss of the best outputs.
    loss, bias_rho, tol, labels
        As for :class:`TransferLearner`.
    verbose : bool
        One line for each pair of parameters, if standard error is a terminal.

    Returns
    -------
    TransferChoice

    Examples
    --------
    >>> from trellis import Corpus, MaxMargin
    >>> words = [["we", "fish"], ["a", "can"], ["we", "can"]] * 2
    >>> tags = [["N", "V"], ["D", "N"], ["N", "V"]] * 2
    >>> a = Corpus.from_columns({"word": words}, tags)
    >>> chosen = cross_validate_transfer(
    ...     MaxMargin("word"), {"a": a, "b": a[:4]}, target="b", l2s=[0.01, 100.0], rhos=[1.0],
    ...     folds=2,
    ... )
    >>> chosen.best.l2, len(chosen.table)
    (0.01, 2)
    """
    if not hasattr(model, "learning_problems"):
        raise DataError(f"a {type(model).__name__} has no problems to learn from; give a model")
    check_domains(data, target, needed=True)
    pairs = list(itertools.product(as_list(l2s, "l2s"), as_list(rhos, "rhos")))
    for _, rho in pairs:
        RHO.check("rho", rho)
    if not pairs:
        raise DataError("l2s and rhos must each hold at least one value")
    problems = model.learning_problems(data, labels=labels)
    problem = problems[target]
    grid = [(l2_of(model, l2, problem), rho) for l2, rho in pairs]
    loss = model.training_loss if loss is None else loss
    models = RelatedModels(problems, loss, 1.0, bias_rho)
    others = {name: models.objective(name) for name in problems if name != target}
    annotated = np.flatnonzero(problem.annotated)
    parts = _folds(annotated, folds, seed)
    reporter = Reporter(verbose)
    table: list[TransferTrial] = []
    with reporter.steps("fit", len(grid) * len(parts)) as fits:
        for l2, rho in grid:
            losses: list[float] = []
            for part in parts:
                fits.at(len(table) * len(parts) + len(losses), f"l2 {l2:g}, rho {rho:g}")
                inside = models.objective(target, np.setdiff1d(annotated, part))
                learned = (others if rho else {}) | {target: inside}
                w = replace(models, l2=l2).learn(learned, rho, tol)[1][target]
                losses.append(float((score or _mean_task_loss)(problem, w, part)))
            trial = TransferTrial(l2, rho, tuple(losses))
            table.append(trial)
            reporter.line(f"l2 {l2:g}, rho {rho:g}: loss {trial.mean:.4g}")
    return TransferChoice(min(table, key=lambda trial: trial.mean), table)


def _mean_task_loss(problem: Problem, w: Float64s, samples: Int64s) -> float:
    return float(problem.maxima(w, "all", samples=samples).losses.mean())


def _folds(annotated: Int64s, folds: int, seed: int) -> list[Int64s]:
    whole(2).check("folds", folds)
    whole(0).check("seed", seed)
    if folds > len(annotated):
        raise DataError(
            f"{folds} folds of {len(annotated)} annotated sample(s) of the target: use fewer folds"
        )
    order = np.random.default_rng(seed).permutation(annotated)
    return [np.sort(part) for part in np.array_split(order, folds)]


def check_domains(data: Mapping[str, Any], target: str | None, *, needed: bool) -> None:
    """Refuse what does not name its domains, or not the target where it is needed."""
    if not isinstance(data, Mapping) or not data:
        raise DataError(
            "data must be a dict with the name and the data set of each domain, such as "
            '{"lab_a": data_a, "lab_b": data_b}'
        )
    (nothing | text).check("target", target)
    if needed and target is None:
        raise DataError(f"name the target: target= one of {', '.join(map(str, data))}")
    if target is not None and target not in data:
        raise DataError(f"the target {target!r} is not among {', '.join(map(str, data))}")

r"""Transfer learning: annotations of related data sets in place of new ones (Lou et al., 1.5).

Domains d = 1 … D (laboratories, kinds of text) have data sets with losses :math:`L_d` and weights
:math:`w_d`, which are drawn towards shared ones,

.. math::

    \min_{w, w_1, \dots, w_D} \; \lambda \lVert w\rVert^2
    + \rho \sum_d \lVert w_d - w\rVert^2 + \sum_d L_d(w_d) \tag{1.9}

(the paper's :math:`\lambda/2` and :math:`\rho/2` are :math:`\lambda` and :math:`\rho` here, as
everywhere in Trellis). The five strategies of its Table 1.4 for a target domain:

================  ==========================================================
"all-source"      one model of all domains but the target
"all-target"      a model of the target alone
"partial-target"  the same; of what is annotated, if that is not all
"union"           one model of all domains: :math:`\rho = \infty`
"transfer"        (1.9)
================  ==========================================================

With :math:`\rho = 0` each domain is learned alone, under the regulariser :math:`\lambda` that it
would have by itself (see :mod:`trellis.solvers.planes` for why this is not the limit of small
:math:`\rho`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from trellis.arrays import Float64s, Int64s, as_list
from trellis.cheap.training import LEARNABLE, Trained, l2_of, objective_of, train
from trellis.domains import instance, nothing, number, one_of, sequence_of, text, whole
from trellis.errors import CorruptModelError, DataError
from trellis.estimator import Estimator, fitted, parameter
from trellis.files.storable import Storable, is_fitted
from trellis.files.stored import header_value, take
from trellis.problems.log_objective import LogObjective
from trellis.problems.partial import PARTIAL_LOSSES, PartialLoss, PartialObjective
from trellis.problems.problem import Learnable, Problem
from trellis.progress import Reporter

__all__ = [
    "TRANSFER_STRATEGIES",
    "TransferChoice",
    "TransferLearner",
    "TransferTrial",
    "cross_validate_transfer",
]

Score = Callable[[Problem, Float64s, Int64s], float]

TRANSFER_STRATEGIES = ("all-source", "all-target", "partial-target", "union", "transfer")
"""What to learn from, for a target domain."""

RHO = number(at_least=0, infinite=True)
_TARGET_ONLY = ("all-target", "partial-target")


class TransferLearner(Estimator, Storable):
    """Learns models of several related data sets at once.

    Attributes
    ----------
    models_ : dict of str to fitted models
        A model of each domain ("all-target", "partial-target": of the target only).
    shared_ : float64, shape (n,)
        Shared weights.
    weights_ : dict of str to float64, shape (n,)
        Weights of each domain.
    objective_ : float
        The objective that was reached.

    Examples
    --------
    In domain b, of which there is one sentence, "can" is a noun, too:

    >>> from trellis import Corpus, MaxMargin
    >>> from trellis.cheap import TransferLearner
    >>> a = Corpus.from_columns(
    ...     {"word": [["we", "can", "fish"], ["we", "fish"]]}, [["N", "V", "V"], ["N", "V"]]
    ... )
    >>> b = Corpus.from_columns({"word": [["a", "can", "rusts"]]}, [["D", "N", "V"]])
    >>> learner = TransferLearner(MaxMargin("word", l2=0.1), rho=0.5).fit({"a": a, "b": b})
    >>> learner.predict([["a", "can"], ["we", "fish"]], domain="b")
    [['D', 'N'], ['N', 'V']]
    """

    model: Learnable = parameter(
        LEARNABLE,
        """An estimator that can learn from cheap data: a CRF, a max-margin model or a
        :class:`~trellis.tracking.TrackingModel`; it is not changed.""",
        kw_only=False,
    )
    rho: float = parameter(
        RHO,
        "How strongly the domains are drawn together: 0 (not at all) to ``inf`` (one model).",
        default=2.5,
        kw_only=False,
    )
    strategy: str = parameter(
        one_of(*TRANSFER_STRATEGIES),
        "What to learn from, see :mod:`trellis.cheap.transfer`.",
        default="transfer",
    )
    loss: str | PartialLoss | None = parameter(
        nothing | one_of("log", *PARTIAL_LOSSES) | instance(PartialLoss),
        """Training loss: "log" of label sequences, trees and graphs, or one of
        :mod:`trellis.problems.partial`; None: that of the model.""",
        default=None,
    )
    l2: float | None = parameter(
        nothing | number(above=0),
        "Factor of the squared norm of the shared weights; None: that of the model.",
        default=None,
    )
    tol: float = parameter(
        number(at_least=0),
        "Stop when the objective is known to be within this part of itself of the optimum.",
        default=1e-2,
    )
    target: str | None = parameter(
        nothing | text,
        "The domain that counts; needed by the strategies that name a source or a target.",
        default=None,
    )
    labels: Sequence[str] | None = parameter(
        nothing | sequence_of(text, "a list of labels"),
        "Labels there may be beyond those that the data shows.",
        default=None,
    )

    models_: dict[str, Any] = fitted()
    shared_: Float64s = fitted()
    weights_: dict[str, Float64s] = fitted()
    objective_: float = fitted()

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "models_")

    def fit(self, data: Mapping[str, Any]) -> Self:
        """Learn from data sets of several domains.

        Parameters
        ----------
        data : dict of str to data
            Name and data set of each domain, annotated in full, in part or not at all.

        Returns
        -------
        self
        """
        self._check_parameters()
        _check_domains(data, self.target, needed=self.strategy in ("all-source", *_TARGET_ONLY))
        problems = self.model.learning_problems(data, labels=self.labels)
        loss = self.model.training_loss if self.loss is None else self.loss
        objectives = {name: objective_of(p, loss) for name, p in problems.items()}
        l2 = l2_of(self.model, self.l2, next(iter(problems.values())))
        names = [str(self.target)] if self.strategy in _TARGET_ONLY else list(data)
        if self.strategy == "all-source":
            objectives.pop(str(self.target))
        elif self.strategy in _TARGET_ONLY:
            objectives = {name: objectives[name] for name in names}
        related = self.strategy == "transfer"
        if not related and not any(objective.samples.size for objective in objectives.values()):
            raise DataError(f"{self.strategy}: no sample to learn from is annotated")
        rho = float(self.rho) if related else np.inf
        result, weights = _learn(objectives, l2, rho, float(self.tol))
        self.shared_, self.objective_ = result.shared, result.objective
        self.weights_ = {name: weights.get(name, result.shared) for name in names}
        self.models_ = {
            name: self.model.with_weights(problems[name], w) for name, w in self.weights_.items()
        }
        return self

    def predict(self, data: Any, domain: str | None = None) -> Any:
        """Predict with the model of a domain.

        Parameters
        ----------
        data
            What the model predicts from.
        domain : str, optional
            By default the target.
        """
        self._check_fitted()
        (nothing | text).check("domain", domain)
        name = self.target if domain is None else domain
        if name is None:
            raise DataError(f"name the domain: domain= one of {', '.join(self.models_)}")
        if name not in self.models_:
            raise DataError(f"there is no model of {name!r}, only of {', '.join(self.models_)}")
        return self.models_[name].predict(data)

    def _state(self) -> dict[str, Any]:
        return {
            "domains": list(self.models_),
            "shared": self.shared_,
            "objective": float(self.objective_),
            "weights": np.stack(list(self.weights_.values())),
            "models": list(self.models_.values()),
        }

    def _restore(self, state: dict[str, Any]) -> None:
        self.shared_ = take(state, "shared", np.float64, (None,))
        self.objective_ = header_value(state, "objective", float)
        names = header_value(state, "domains", list, items=str)
        weights = take(state, "weights", np.float64, (len(names), len(self.shared_)))
        models = header_value(state, "models", list)
        if not names or len(models) != len(names) or len(set(names)) < len(names):
            raise CorruptModelError("there is not one model for each domain")
        if not all(map(is_fitted, models)):
            raise CorruptModelError("what stands for the model of a domain is none")
        self.weights_ = dict(zip(names, weights, strict=True))
        self.models_ = dict(zip(names, models, strict=True))


def _learn(
    objectives: Mapping[str, PartialObjective | LogObjective], l2: float, rho: float, tol: float
) -> tuple[Trained, dict[str, Float64s]]:
    """Solve (1.9): the result, and the weights of each domain."""
    known = [name for name, objective in objectives.items() if objective.samples.size]
    unknown = [name for name in objectives if name not in known]
    if not known:
        raise DataError("no domain has an annotated sample; there is nothing to learn from")
    if unknown and rho == 0:
        raise DataError(
            f"{unknown[0]!r} has no annotated sample, and with rho=0 it learns nothing from the "
            "others; give a positive rho"
        )
    result = train([objectives[name] for name in known], l2=l2, rho=rho, tol=tol)
    weights = dict(zip(known, result.weights, strict=True))
    # Without a loss, the best weights of a domain are the shared ones.
    return result, weights | dict.fromkeys(unknown, result.shared)


# ---------------------------------------------------------------------- cross-validation


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
    tol: float = 1e-2,
    labels: Sequence[str] | None = None,
    verbose: bool = False,
) -> TransferChoice:
    """Choose ``l2`` and ``rho`` by cross-validation on the annotated samples of the target.

    The other domains are learned from in all folds. ``rho=0`` stands for the target alone and
    ``rho=inf`` for the union, so that these strategies can be compared as well.

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
    loss, tol, labels
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
    _check_domains(data, target, needed=True)
    pairs = list(itertools.product(as_list(l2s, "l2s"), as_list(rhos, "rhos")))
    for _, rho in pairs:
        RHO.check("rho", rho)
    if not pairs:
        raise DataError("l2s and rhos must each hold at least one value")
    problems = model.learning_problems(data, labels=labels)
    problem = problems[target]
    grid = [(l2_of(model, l2, problem), rho) for l2, rho in pairs]
    loss = model.training_loss if loss is None else loss
    others = {name: objective_of(other, loss) for name, other in problems.items() if name != target}
    annotated = np.flatnonzero(problem.annotated)
    parts = _folds(annotated, folds, seed)
    reporter = Reporter(verbose)
    table: list[TransferTrial] = []
    with reporter.steps("fit", len(grid) * len(parts)) as fits:
        for l2, rho in grid:
            losses: list[float] = []
            for part in parts:
                fits.at(len(table) * len(parts) + len(losses), f"l2 {l2:g}, rho {rho:g}")
                target_objective = objective_of(problem, loss, np.setdiff1d(annotated, part))
                if rho == 0:
                    w = train([target_objective], l2=l2, tol=tol).shared
                else:
                    w = _learn(others | {target: target_objective}, l2, rho, tol)[1][target]
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


def _check_domains(data: Mapping[str, Any], target: str | None, *, needed: bool) -> None:
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

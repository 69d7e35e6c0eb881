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

Biases, the weights that say how often something happens whatever it looks like, differ most between
laboratories: cells divide more in one than in another. They are drawn together by a part of
:math:`\rho` only (``bias_rho``; of trackings, which say which weights are biases). How large
:math:`\rho` is, or whether to transfer at all, is chosen by default
(:mod:`trellis.cheap.transfer_choice`).

A ``TrackingModel`` with a prior guesses at what nobody annotated, here as by itself: guesses are a
part of :math:`L_d`.

With :math:`\rho = 0` each domain is learned alone, under the regulariser :math:`\lambda` that it
would have by itself (see :mod:`trellis.solvers.planes` for why this is not the limit of small
:math:`\rho`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from trellis.arrays import Float64s
from trellis.cheap.related_models import RelatedModels
from trellis.cheap.training import LEARNABLE, l2_of, objective_of
from trellis.cheap.transfer_choice import (
    RHO,
    USUAL_RHO,
    check_domains,
    choose_related,
)
from trellis.domains import instance, nothing, number, one_of, sequence_of, text
from trellis.errors import CorruptModelError, DataError
from trellis.estimator import Estimator, fitted, parameter
from trellis.files.storable import Storable, is_fitted
from trellis.files.stored import header_value, take
from trellis.problems.partial import PARTIAL_LOSSES, PartialLoss
from trellis.problems.problem import Learnable

__all__ = ["TRANSFER_STRATEGIES", "TransferLearner"]

TRANSFER_STRATEGIES = ("all-source", "all-target", "partial-target", "union", "transfer")
"""What to learn from, for a target domain."""

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
    rho_ : float
        How strongly the domains were drawn together: ``inf`` for one model, 0 for separate ones.
    strategy_ : str
        What was learned from: ``strategy``, or with ``rho="auto"`` what it came to.

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
    rho: float | str = parameter(
        one_of("auto") | RHO,
        """How strongly the domains are drawn together: 0 (not at all) to ``inf`` (one model).
        "auto": by cross-validation in what is annotated of the target, or of all domains
        without a target: 2.5, unless another or the model of the other domains is surely better
        (:mod:`trellis.cheap.transfer_choice`). 2.5 where a ``TrackingModel`` guesses at what
        nobody annotated.""",
        default="auto",
        kw_only=False,
    )
    bias_rho: float = parameter(
        number(above=0, at_most=1),
        """Part of ``rho`` by which biases are drawn together, of models that know theirs
        (``TrackingModel``); 1: as all weights.""",
        default=0.1,
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
    rho_: float = fitted()
    strategy_: str = fitted()

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
        check_domains(data, self.target, needed=self.strategy in ("all-source", *_TARGET_ONLY))
        problems = self.model.learning_problems(data, labels=self.labels)
        loss = self.model.training_loss if self.loss is None else self.loss
        first = next(iter(problems.values()))
        objective_of(first, loss)  # raises if there is none
        l2 = l2_of(self.model, self.l2, first)
        models = RelatedModels(problems, loss, l2, float(self.bias_rho))
        from_ = self._learned_from(self.strategy, list(data))
        if hasattr(self.model, "guesses"):
            models = models.guessing(self.model, from_, self.target, float(self.tol))
        strategy, rho = self.strategy, np.inf
        if strategy == "transfer":
            strategy, rho = self._related(models)
            from_ = self._learned_from(strategy, list(data))
        if self.strategy != "transfer" and not any(map(models.is_known, from_)):
            raise DataError(f"{strategy}: no sample to learn from is annotated")
        result, weights = models.learn_all(from_, rho, float(self.tol))
        names = from_ if strategy in _TARGET_ONLY else list(data)
        self.strategy_, self.rho_ = strategy, rho
        self.shared_, self.objective_ = result.shared, result.objective
        self.weights_ = {name: weights.get(name, result.shared) for name in names}
        self.models_ = {
            name: self.model.with_weights(problems[name], w) for name, w in self.weights_.items()
        }
        return self

    def _learned_from(self, strategy: str, names: list[str]) -> list[str]:
        """The domains that a strategy learns from."""
        if strategy in _TARGET_ONLY:
            return [str(self.target)]
        return [name for name in names if strategy != "all-source" or name != self.target]

    def _related(self, models: RelatedModels) -> tuple[str, float]:
        """What to learn from, and the factor rho."""
        if not isinstance(self.rho, str):
            return "transfer", float(self.rho)
        if self.target in models.guesses or (self.target is None and models.guesses):
            return "transfer", USUAL_RHO
        learns_target, rho = choose_related(models, self.target, float(self.tol))
        return "transfer" if learns_target else "all-source", rho

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
            "rho": str(self.rho_),  # a word, since infinity is no number of a file
            "strategy": self.strategy_,
            "weights": np.stack(list(self.weights_.values())),
            "models": list(self.models_.values()),
        }

    def _restore(self, state: dict[str, Any]) -> None:
        self.shared_ = take(state, "shared", np.float64, (None,))
        self.objective_ = header_value(state, "objective", float)
        self.rho_, self.strategy_ = _restored_choice(state)
        names = header_value(state, "domains", list, items=str)
        weights = take(state, "weights", np.float64, (len(names), len(self.shared_)))
        models = header_value(state, "models", list)
        if not names or len(models) != len(names) or len(set(names)) < len(names):
            raise CorruptModelError("there is not one model for each domain")
        if not all(map(is_fitted, models)):
            raise CorruptModelError("what stands for the model of a domain is none")
        self.weights_ = dict(zip(names, weights, strict=True))
        self.models_ = dict(zip(names, models, strict=True))


def _restored_choice(state: dict[str, Any]) -> tuple[float, str]:
    """The factor rho and the strategy of a file; older files have none."""
    if "rho" not in state:
        return np.nan, ""
    try:
        rho = float(header_value(state, "rho", str))
    except ValueError as error:
        raise CorruptModelError("rho is not a number") from error
    return rho, header_value(state, "strategy", str, choices=TRANSFER_STRATEGIES)

r"""Chains of which mentions are marked, maybe not all: how a CRF learns from them.

What is presumed of the words that nobody marked, and by which first models, says
:mod:`trellis.models.mentions`. The labels that follow are learned from as partial annotation always
is or, with ``partial="entity-ratio"``, beside a penalty on the expected share of positions in
mentions (:mod:`trellis.problems.entity_ratio`).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.corpus import Corpus
from trellis.corpus.labels import check_label_count
from trellis.errors import DataError, ParametersError
from trellis.estimator import fixed
from trellis.features import Prepared
from trellis.models.crf import CRF
from trellis.models.mentions import (
    OUTSIDE,
    Mentions,
    judged_by_others,
    lacks_outside,
    sure,
    with_labels,
)
from trellis.problems import LabelProblem, Weights
from trellis.problems.entity_ratio import EntityRatio
from trellis.solvers import LimitedMemoryBFGS
from trellis.solvers.passes import Learner

__all__ = ["MarkedMentions"]


# The expected share of positions in mentions may differ by this share of it; iterations at most.
_MARGIN, _RATIO_ITERATIONS = 0.1, 100

# What tells the numbers that divide samples into folds from others of the same seed.
_FOLDING = 3


class MarkedMentions(CRF):
    """A CRF of sequences whose annotators marked mentions and left out the rest."""

    share_marked_: float | None = fixed(None)
    entity_ratio_: float | None = fixed(None)

    def _check_together(self) -> None:
        super()._check_together()
        if self.partial != "entity-ratio" and not isinstance(self.entity_ratio, str):
            raise ParametersError(
                "{entity_ratio} is for {partial}",
                entity_ratio=self.entity_ratio, partial="entity-ratio",
            )  # fmt: skip
        if self.partial == "entity-ratio":
            self._check_entity_ratio()

    def _check_entity_ratio(self) -> None:
        """The share of all positions at once is for L-BFGS on whole samples."""
        fit: dict[str, tuple[Any, ...]] = {
            "solver": ("auto", "lbfgs"), "piece_size": (None,), "transitions": ("auto", "all"),
            "averaged": (False, "auto"), "lock_free": (False,), "batch_size": (1,),
        }  # fmt: skip
        for name, values in fit.items():
            if getattr(self, name) not in values:
                raise ParametersError(
                    f"{{partial}} needs {{{name}}}", partial=self.partial, **{name: values[-1]}
                )

    def _with_presumed(
        self,
        corpus: Corpus,
        weight: NDArray[np.float64],
        seed: int,
        beside: Mapping[str, Any],
        prepared: Prepared | None,
        told: Callable[[str], None],
    ) -> Corpus:
        self.share_marked_ = self.entity_ratio_ = None
        assert corpus.labels is not None
        if self.partial == "unknown":
            if lacks_outside(corpus.labels):
                warnings.warn(
                    "no position is surely outside of all spans ('O'), and many are not annotated: "
                    "the model will see spans nearly everywhere. If spans are marked and the rest "
                    "was left out, say so with partial='mentions' (--partial mentions); else label "
                    "some positions 'O'",
                    RuntimeWarning, stacklevel=4,
                )  # fmt: skip
            return corpus
        if prepared is not None:
            raise DataError(
                f"partial={self.partial!r} trains models of parts of the samples, and cannot do so "
                "with a prepared corpus; pass the samples themselves"
            )
        check_label_count(len(corpus.labels.classes), self.max_labels)  # before L² of anything
        mentions = Mentions.of(corpus)
        outside = np.zeros(corpus.n_positions, bool)
        if self.partial == "mentions" or isinstance(self.entity_ratio, str):
            chances = self._judged(corpus, mentions, weight, seed, beside, told)
            missed = mentions.missed(chances)
            self.share_marked_ = mentions.share_marked(chances)
            self.entity_ratio_ = float(np.where(mentions.marked, 1.0, missed).mean())
            outside = sure(missed)
        if self.partial == "entity-ratio":
            outside[:] = False
            if not isinstance(self.entity_ratio, str):
                self.entity_ratio_ = float(self.entity_ratio)
        return with_labels(corpus, mentions.presumed(outside))

    def _judged(
        self,
        corpus: Corpus,
        mentions: Mentions,
        weight: NDArray[np.float64],
        seed: int,
        beside: Mapping[str, Any],
        told: Callable[[str], None],
    ) -> NDArray[np.float64]:
        """Chances of the labels by first models, to which all that is not marked is outside."""
        first = with_labels(corpus, mentions.if_outside())
        how = self.get_params(deep=False) | {
            "partial": "unknown", "entity_ratio": "auto", "encoding": "given", "patience": None,
            "warm_start": False, "verbose": False, "random_state": seed,
        }  # fmt: skip

        def fitted(samples: NDArray[np.int64]) -> Any:
            model = type(self)(**how)
            return model.fit(first.take(samples), sample_weight=weight[samples], **beside)

        rng = np.random.default_rng([seed, _FOLDING])
        return judged_by_others(first, fitted, mentions.marked, rng, told)

    def _check_takes_labels(self, what: str) -> None:
        if self.partial != "unknown":
            raise DataError(
                f"{what} takes labels as they are; partial={self.partial!r} compares all samples "
                "with each other: call fit with all of them"
            )

    def _learner(self, problem: LabelProblem, start: Weights, rng: np.random.Generator) -> Learner:
        if self.partial != "entity-ratio":
            return super()._learner(problem, start, rng)
        assert self.entity_ratio_ is not None
        self.solver_, self.l2_ = "lbfgs", self.penalty_strength(problem)
        self._plan_passes(problem, _RATIO_ITERATIONS)
        entity = np.array([label != OUTSIDE for label in self.state_labels])
        loss = EntityRatio(
            problem, entity, ratio=self.entity_ratio_, margin=_MARGIN * self.entity_ratio_,
            n_jobs=self._threads,
        )  # fmt: skip
        visits = problem.visits(self._partitioner(problem).draw(problem.offsets, rng))
        how: dict[str, Any] = {"penalty": self._penalty(), "observed": self.states == "observed"}
        return LimitedMemoryBFGS(loss, start, visits, **how)

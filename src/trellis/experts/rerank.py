r"""Re-ranking: the best whole answer among those that the experts give.

Each distinct answer to a sample is a candidate, the plain vote's among them, and the one of highest
score wins, the first of equals. Answer a scores

.. math:: s(a) = r\,[a = \mathrm{vote}(x)] + \sum_j (u + u_j)\,[a = h_j(x)] +
                 \sum_j (v + v_j)\,\mathrm{sim}(a, h_j(x)),

with sim the share of positions where two answers agree. The weights are learned by conditional
logit (:mod:`trellis.experts.logit`), beginning with r = 2 and all others 0, which is the plain
vote, and drawn there. With u = 1 and all others 0 it is the plurality of whole answers.

The unit need not be the whole sample. With *runs*, the positions where all experts agree are
settled, and what is ranked are the different answers to each longest run of positions between
them. The answer is then patched together from several experts, but never inside a disputed phrase;
as the experts agree on both sides of a run, a span is cut or joined only if an expert does so.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import for_kernels
from trellis.domains import flag, one_of
from trellis.estimator import parameter
from trellis.experts.combiner import Combiner
from trellis.experts.logit import EQUAL, L2, fit_shrunk
from trellis.experts.outputs import ExpertOutputs
from trellis.experts.span_candidates import ranges
from trellis.experts.voting import vote
from trellis.files.stored import header_value, take
from trellis.kernels.whole_answers import (
    answer_features,
    best_answers,
    count_answers,
    disputed_runs,
)

__all__ = ["Rerank"]

_PAIRS = 1_000_000  # that are learned from at most


class Rerank(Combiner):
    """Choose one of the experts' whole answers.

    An expert that is silent at some position of a sample gives no whole answer to it, so is no
    candidate, but it is still compared where it speaks. If nobody gives a whole answer, the first
    expert that says something is followed where it does.

    If there are very many units, evenly spaced ones are learned from.

    Attributes
    ----------
    weights_ : float64 (2, p)
        Rows u + u_j and v + v_j.
    vote_weight_ : float
        The weight r of the plain vote's answer.
    l2_ : float or None
        Factor of the squared distance from the plain vote; None for uniform weights.

    Examples
    --------
    >>> from trellis.experts import Rerank
    >>> said = [[["a", "b"]], [["a", "a"]], [["a", "b"]]]
    >>> Rerank(weights="uniform", unit="sample").fit(said, [["a", "a"]]).predict(said)
    [['a', 'b']]
    >>> Rerank(l2=0.1).fit(said, [["a", "a"]]).predict(said)
    [['a', 'a']]
    """

    unit: str = parameter(
        one_of("run", "sample"),
        "Rank the answers to each run of disputed positions, or those to whole samples.",
        default="run",
    )
    weights: str = parameter(
        one_of("learned", "uniform"),
        '"uniform": the answer that most experts give.',
        default="learned",
    )
    similar: bool = parameter(
        flag,
        "Learn from partial agreement of answers, too, not only from equality.",
        default=True,
    )
    l2: float | str = L2

    @property
    def _ALONE(self) -> bool:  # type: ignore[override]  # noqa: N802  # a plurality learns nothing
        return self.weights == "uniform"

    def _learn(self, outputs: ExpertOutputs, gold: NDArray[np.int32], fresh: bool) -> None:
        p = outputs.n_experts
        self.weights_ = np.concatenate([np.ones((1, p)), np.zeros((1, p))])
        self.vote_weight_, self.l2_ = 0.0, None
        if self.weights == "uniform":
            return
        self.weights_[:], self.vote_weight_ = 0.0, 2.0
        starts, stops = self._units(outputs)
        if not len(starts):
            return
        step = 1 + len(starts) * p**2 // _PAIRS
        starts, stops = starts[::step], stops[::step]
        rows = ranges(starts, stops - starts)
        codes = with_vote(outputs.codes[rows], len(outputs.labels))
        offsets = np.concatenate([[0], np.cumsum(stops - starts)])
        ends, who, features = self._features(codes, offsets)
        same = codes == gold[rows, None]
        right = np.logical_and.reduceat(same, offsets[:-1], axis=0)
        unit = np.repeat(np.arange(len(starts)), np.diff(ends))
        sample = np.searchsorted(outputs.offsets, starts, side="right") - 1
        mean = np.zeros(features.shape[1])
        mean[0] = self.vote_weight_
        weights, self.l2_ = fit_shrunk(
            features, ends, right[unit, who], sample, mean, np.ones(len(mean)), self.l2
        )
        self.vote_weight_ = float(weights[0])
        shared, own = weights[1 : 2 + self.similar], weights[2 + self.similar :]
        self.weights_[: 1 + self.similar] = shared[:, None] / p + own.reshape(-1, p)

    def _features(
        self, codes: NDArray[np.int32], offsets: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        """Candidates, the last expert being the vote: ends, who gives each, features.

        Features are: the vote; the shares of experts that are equal and similar; each expert.
        """
        p = codes.shape[1] - 1
        ends, who, equal, agree = candidates(codes, offsets, self.similar)
        kinds = [equal[:, :p]] + ([agree[:, :p]] if self.similar else [])
        shared = [kind.mean(axis=1, keepdims=True) for kind in kinds]
        return ends, who, np.concatenate([equal[:, p : p + 1], *shared, *kinds], axis=1)

    def _label(self, outputs: ExpertOutputs) -> NDArray[np.int32]:
        answer: NDArray[np.int32] = outputs.codes.max(
            axis=1
        )  # what all say that say anything, outside of the units
        starts, stops = self._units(outputs)
        plain, none = np.zeros(0, np.int32), np.zeros(0)
        if self.vote_weight_ != 0:
            plain = vote(outputs.codes, np.ones(outputs.n_experts), len(outputs.labels))
        same, similar = for_kernels(self.weights_)
        best_answers(
            starts, stops, for_kernels(outputs.codes), plain, same,
            similar if self.similar and self.weights == "learned" else none,
            self.vote_weight_, EQUAL, answer,
        )  # fmt: skip
        return answer

    def _units(self, outputs: ExpertOutputs) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """What is to be ranked: first positions, and those after the last."""
        offsets = for_kernels(outputs.offsets)
        if self.unit == "sample":
            return offsets[:-1], offsets[1:]
        starts, stops = np.empty((2, outputs.n_positions), np.int64)
        n = disputed_runs(offsets, for_kernels(outputs.codes), starts, stops)
        return starts[:n], stops[:n]

    def _state(self) -> dict[str, Any]:
        return super()._state() | {
            "weights": self.weights_, "vote_weight": self.vote_weight_, "strength": self.l2_
        }  # fmt: skip

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        self.weights_ = take(state, "weights", np.float64, (2, len(self.expert_names_)))
        self.vote_weight_, self.l2_ = 0.0, None  # files of 0.1 do not have them
        if "vote_weight" in state:
            self.vote_weight_ = header_value(state, "vote_weight", float)
        if state.get("strength") is not None:
            self.l2_ = header_value(state, "strength", float, low=0)


def with_vote(codes: NDArray[np.int32], n_labels: int) -> NDArray[np.int32]:
    """What experts say, and as one more column what the plain vote says."""
    plain = vote(codes, np.ones(codes.shape[1]), n_labels)
    return np.concatenate([codes, plain[:, None]], axis=1)


def candidates(
    codes: NDArray[np.int32], offsets: NDArray[np.int64], similar: bool
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Distinct answers to units ``offsets`` (U + 1,) that experts give.

    Returns
    -------
    ends : int64 (U + 1,)
        Unit u has the candidates ``ends[u]:ends[u + 1]``.
    who : int64 (A,)
        The expert that gives each first.
    equal, agree : float64 (A, p)
        Who gives the same, and share of positions where an expert says the same (of no columns
        unless ``similar``).

    Examples
    --------
    >>> import numpy as np
    >>> ends, who, equal, agree = candidates(
    ...     np.array([[0, 0, 1], [0, 1, 1]], np.int32), np.array([0, 2]), True
    ... )
    >>> who.tolist(), agree.tolist()
    ([0, 1, 2], [[1.0, 0.5, 0.0], [0.5, 1.0, 0.5], [0.0, 0.5, 1.0]])
    """
    starts, stops = offsets[:-1], offsets[1:]
    ends = np.empty(len(offsets), np.int64)
    count_answers(starts, stops, codes, ends)
    n, p = int(ends[-1]), codes.shape[1]
    who, equal, agree = np.empty(n, np.int64), np.empty((n, p)), np.empty((n, p if similar else 0))
    answer_features(starts, stops, codes, ends, who, equal, agree)
    agree /= np.repeat(stops - starts, np.diff(ends))[:, None]
    return ends, who, equal, agree

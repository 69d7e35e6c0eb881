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

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.domains import flag, one_of
from trellis.estimator import parameter
from trellis.experts.combiner import Combiner
from trellis.experts.logit import L2, best_candidates, fit_shrunk
from trellis.experts.outputs import ExpertOutputs
from trellis.experts.voting import vote
from trellis.files.stored import header_value, take

__all__ = ["Rerank"]

_CELLS = 1 << 22  # pairs of experts compared at a time: bounds the memory
_PAIRS = 5_000_000  # that are learned from at most


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
        rows, units = self._units(with_vote(outputs))
        if not len(rows):
            return
        step = 1 + len(units) * p**2 // _PAIRS
        if step > 1:
            every = np.arange(0, len(units), step)
            rows = rows[np.repeat(np.isin(np.arange(len(units)), every), units.lengths)]
            units = units.take(every)
        ends, who, features = self._features(units)
        same = units.codes == gold[rows, None]
        right = np.logical_and.reduceat(same, units.offsets[:-1], axis=0)
        unit = np.repeat(np.arange(len(units)), np.diff(ends))
        sample = np.repeat(np.arange(len(outputs)), outputs.lengths)[rows[units.offsets[:-1]]]
        mean = np.zeros(features.shape[1])
        mean[0] = self.vote_weight_
        weights, self.l2_ = fit_shrunk(
            features, ends, right[unit, who], sample, mean, np.ones(len(mean)), self.l2
        )
        self.vote_weight_ = float(weights[0])
        shared, own = weights[1 : 2 + self.similar], weights[2 + self.similar :]
        self.weights_[: 1 + self.similar] = shared[:, None] / p + own.reshape(-1, p)

    def _features(
        self, units: ExpertOutputs
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        """Candidates, the last expert being the vote: ends, who gives each, features.

        Features are: the vote; the shares of experts that are equal and similar; each expert.
        """
        p = units.n_experts - 1
        ends, who, pairs = _candidates(units, self.similar)
        kinds = [pairs[:, :p]] + ([pairs[:, p + 1 : 2 * p + 1]] if self.similar else [])
        shared = [kind.mean(axis=1, keepdims=True) for kind in kinds]
        return ends, who, np.concatenate([pairs[:, p : p + 1], *shared, *kinds], axis=1)

    def _label(self, outputs: ExpertOutputs) -> NDArray[np.int32]:
        answer: NDArray[np.int32] = outputs.codes.max(
            axis=1
        )  # what all say that say anything, outside of the units
        p = outputs.n_experts
        ranked = outputs if self.vote_weight_ == 0 else with_vote(outputs)
        rows, units = self._units(ranked)
        if len(rows):
            similar = self.similar and self.weights == "learned"
            ends, who, pairs = _candidates(units, similar)
            scores = pairs[:, :p] @ self.weights_[0]
            if ranked is not outputs:
                scores += self.vote_weight_ * pairs[:, p]
            if similar:
                scores += pairs[:, units.n_experts :][:, :p] @ self.weights_[1]
            chosen = who[best_candidates(scores, ends)]
            answer[rows] = units.codes[np.arange(len(rows)), np.repeat(chosen, units.lengths)]
        return answer

    def _units(self, outputs: ExpertOutputs) -> tuple[NDArray[np.int64], ExpertOutputs]:
        """What is to be ranked, as samples of their own, and the positions they consist of."""
        if self.unit == "sample":
            return np.arange(outputs.n_positions), outputs
        codes = outputs.codes
        low = np.where(codes < 0, len(outputs.labels), codes).min(axis=1)
        disputed = codes.max(axis=1) > low
        begins = disputed.copy()
        begins[1:] &= ~disputed[:-1]
        begins[outputs.offsets[:-1]] = disputed[outputs.offsets[:-1]]
        rows = np.flatnonzero(disputed)
        offsets = np.append(np.flatnonzero(begins[rows]), len(rows))
        if not len(rows):
            offsets = np.zeros(1, np.int64)
        return rows, replace(outputs, offsets=offsets, codes=codes[rows], scores=None)

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


def with_vote(outputs: ExpertOutputs) -> ExpertOutputs:
    """The same with one more expert, whose answers are the plain vote."""
    plain = vote(outputs.codes, np.ones(outputs.n_experts), len(outputs.labels))
    codes = np.concatenate([outputs.codes, plain[:, None]], axis=1)
    names = (*outputs.names, "".join(["(vote of ", *outputs.names, ")"]))  # nobody has that name
    return replace(outputs, codes=codes, names=names, scores=None)


def _candidates(
    outputs: ExpertOutputs, similar: bool
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Distinct answers: ends (S + 1,), the expert that gives each first, features (A, p or 2p)."""
    step = max(1, _CELLS // outputs.n_experts**2)
    blocks = [
        _block(outputs.take(slice(a, a + step)), similar) for a in range(0, len(outputs), step)
    ]
    counts, who, features = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), who, features


def _block(
    outputs: ExpertOutputs, similar: bool
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """The same for few samples, with the number of answers to each instead of the ends."""
    n, p = len(outputs), outputs.n_experts
    starts, lengths = outputs.offsets[:-1], outputs.lengths
    agree = np.empty((n, p, p))  # share of positions where two experts say the same
    for j in range(p):
        same = outputs.codes == outputs.codes[:, [j]]
        same &= outputs.codes >= 0
        agree[:, j] = np.add.reduceat(same, starts, axis=0, dtype=np.int64) / lengths[:, None]
    spoken = np.diagonal(agree, axis1=1, axis2=2)
    equal = agree == 1
    # An answer is represented by the first expert that gives it.
    first = (spoken == 1) & (equal.argmax(axis=1) == np.arange(p))
    nobody = ~first.any(axis=1)
    first[nobody, (spoken[nobody] > 0).argmax(axis=1)] = True
    sample, who = np.nonzero(first)
    features = equal[sample, who].astype(np.float64)
    if similar:
        features = np.concatenate([features, agree[sample, who]], axis=1)
    return first.sum(axis=1), who, features

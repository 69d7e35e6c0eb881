r"""What every ensemble has to beat: the best expert, and the plain vote.

* **Best expert**: the one with the fewest mistakes in training.
* **Majority vote**: each position's most frequent label, nothing learned.
* **ROVER's vote** (Fiscus 1997): with :math:`n_t(c)` of p experts saying c at position t, c scores

  .. math:: \alpha\,n_t(c)/p + (1 - \alpha)\,\mathrm{conf}_t(c),

  where conf is the mean or the largest confidence of the experts that say c: their probability of
  it, or their precision. Expert j was right r of the n times that it said c in training, and
  in a share :math:`m_j` of all that it said; its precision is
  :math:`(r + \kappa m_j) / (n + \kappa)`, so that a label seen once does not matter.

  α is chosen from a grid by leaving out one sample at a time: its counts are subtracted, and its
  mistakes are counted with the precisions that are left. Of all α whose number of mistakes exceeds
  the smallest by no more than a standard error it is the largest, so that :math:`\alpha = 1`, the
  plain vote, stays unless it is clearly worse. With :math:`d_s` mistakes more in sample s of S the
  standard error of their sum is :math:`\sqrt{S \operatorname{var}(d)}`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.domains import number, one_of
from trellis.errors import DataError
from trellis.estimator import fixed, parameter
from trellis.experts.combiner import SCHEME, Combiner, distinct_names, restored_order
from trellis.experts.decoding import best_valid, vote_table
from trellis.experts.outputs import ExpertOutputs
from trellis.experts.voting import vote
from trellis.files.stored import check_range, header_value, take
from trellis.kernels.experts import left_out_precisions, rover_votes

__all__ = ["BestExpert", "MajorityVote", "Rover"]

_GRID = np.arange(10, -1, -1) / 10  # the plain vote first
_BLOCK = 4096  # samples at a time
_PRIOR = 20.0  # answers of an expert's mean precision that each of its labels begins with
_EQUAL = 1e-12  # scores closer than this are equal: sums in another order differ


class BestExpert(Combiner):
    """Answer with the expert that was best in training.

    Where it says nothing, the next best answers.

    Attributes
    ----------
    best_ : str
        Name of the expert.
    ranking_ : list of str
        All experts, the best first.

    Examples
    --------
    >>> from trellis.experts import BestExpert
    >>> said = [[["a", "b"]], [["a", "a"]]]
    >>> BestExpert().fit(said, [["a", "a"]]).best_
    'expert 2'
    """

    criterion: str = parameter(
        one_of("hamming", "exact"),
        """Fewest wrong positions (mean share a sample), or fewest samples that are not all right.
        A position where an expert says nothing counts as half an error.""",
        default="hamming",
    )
    short: int | None = fixed(None)

    def _learn(self, outputs: ExpertOutputs, gold: NDArray[np.int32], fresh: bool) -> None:
        loss = self.expert_losses_
        if self.criterion == "exact":
            wrong = outputs.codes != gold[:, None]
            loss = np.logical_or.reduceat(wrong, outputs.offsets[:-1], axis=0).mean(axis=0)
        self._order = np.argsort(loss, kind="stable")
        self.ranking_ = [outputs.names[j] for j in self._order]
        self.best_ = self.ranking_[0]

    def _label(self, outputs: ExpertOutputs) -> NDArray[np.int32]:
        ranked = outputs.codes[:, self._order]
        first = (ranked >= 0).argmax(axis=1)
        answer: NDArray[np.int32] = ranked[np.arange(len(ranked)), first]
        return answer

    def _state(self) -> dict[str, Any]:
        return super()._state() | {"order": self._order}

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        self._order = restored_order(state, "order", len(self.expert_names_))
        self.ranking_ = [self.expert_names_[j] for j in self._order]
        self.best_ = self.ranking_[0]


class MajorityVote(Combiner):
    """The most frequent label of each position, among equals that of the first expert.

    Examples
    --------
    >>> from trellis.experts import MajorityVote
    >>> said = [[["a", "b"]], [["a", "a"]], [["b", "a"]]]
    >>> MajorityVote().fit(said, [["a", "a"]]).predict(said)
    [['a', 'a']]
    """

    order: str = parameter(
        one_of("given", "accuracy"),
        "Which expert is the first: as they stand, or by mistakes in training.",
        default="given",
    )
    scheme: str | None = SCHEME

    _ALONE = True

    def _learn(self, outputs: ExpertOutputs, gold: NDArray[np.int32], fresh: bool) -> None:
        self._order = np.arange(outputs.n_experts)
        if self.order == "accuracy":
            self._order = np.argsort(self.expert_losses_, kind="stable")

    def _label(self, outputs: ExpertOutputs) -> NDArray[np.int32]:
        ones = np.ones(outputs.n_experts)
        if self.scheme is not None:
            votes = vote_table(outputs.codes, ones, len(outputs.labels))
            return best_valid(votes, outputs, self.scheme)
        return vote(outputs.codes, ones, len(outputs.labels), order=self._order)

    def _state(self) -> dict[str, Any]:
        return super()._state() | {"order": self._order}

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        self._order = restored_order(state, "order", len(self.expert_names_))


class Rover(Combiner):
    """ROVER's vote: frequency mixed with confidence.

    Among equals the label that the first expert says wins.

    Attributes
    ----------
    alpha_ : float
        Weight of the frequency. 1, the plain vote, unless the labelled samples say otherwise.
    precisions_ : float64 (p, L)
        Precision of each expert for each of ``classes_``, smoothed towards its mean.

    Examples
    --------
    >>> from trellis.experts import Rover
    >>> gold = [["a", "b"], ["b", "a"]] * 5
    >>> good, poor = gold, [["b", "b"], ["b", "b"]] * 5
    >>> rover = Rover().fit([poor, good, poor], gold)
    >>> rover.alpha_, rover.predict([poor, good, poor]) == gold
    (0.5, True)
    """

    confidence: str = parameter(
        one_of("auto", "scores", "precision"),
        """The experts' own probabilities (the outputs' ``scores``), or their precision in training
        for the label they say; "auto": the probabilities if there are any.""",
        default="auto",
    )
    pool: str = parameter(
        one_of("mean", "max"), "Over the experts that say a label.", default="mean"
    )
    alpha: float | str = parameter(
        one_of("auto") | number(at_least=0, at_most=1),
        """Weight of the frequency; "auto": the largest of 0, 0.1, ..., 1 (the plain vote) that is
        within a standard error of the best on samples left out one by one.""",
        default="auto",
    )

    def _learn(self, outputs: ExpertOutputs, gold: NDArray[np.int32], fresh: bool) -> None:
        by_scores = self.confidence == "scores" or (
            self.confidence == "auto" and outputs.scores is not None
        )
        self._by_scores = by_scores
        self._check_scores(outputs)
        n_labels = len(outputs.labels)
        n_right, n_said = (np.empty((outputs.n_experts, n_labels), np.int64) for _ in range(2))
        for j, code in enumerate(outputs.codes.T):
            n_right[j] = np.bincount(code[code == gold], minlength=n_labels)
            n_said[j] = np.bincount(code[code >= 0], minlength=n_labels)
        means = (n_right.sum(axis=1) + 1) / (n_said.sum(axis=1) + 2)
        self._means = means
        self.precisions_ = (n_right + _PRIOR * means[:, None]) / (n_said + _PRIOR)
        self._precision_of = dict(zip(outputs.labels, self.precisions_.T, strict=True))
        if self.alpha == "auto":
            self.alpha_ = _chosen(self._mistakes(outputs, gold, n_right, n_said))
        else:  # without labelled samples all precisions are alike, and say nothing
            self.alpha_ = float(self.alpha) if len(outputs) or by_scores else 1.0

    def _mistakes(
        self,
        outputs: ExpertOutputs,
        gold: NDArray[np.int32],
        n_right: NDArray[np.int64],
        n_said: NDArray[np.int64],
    ) -> NDArray[np.int64]:
        """Mistakes in each sample, (S, A), for each α, with what is learned from the others."""
        wrong = np.empty((len(outputs), len(_GRID)), np.int64)
        for first in range(0, len(outputs), _BLOCK):  # in parts, for the memory
            part = outputs.take(slice(first, first + _BLOCK))
            begin = outputs.offsets[first]
            right = gold[begin : begin + part.n_positions]
            if self._by_scores:
                trust = self._trust(part)
            else:
                trust = np.empty(part.codes.shape)
                left_out_precisions(part.offsets, part.codes, right, n_right, n_said, _PRIOR, trust)
            mistakes = self._votes(part, trust, _GRID) != right[:, None]
            wrong[first : first + _BLOCK] = np.add.reduceat(
                mistakes, part.offsets[:-1], axis=0, dtype=np.int64
            )
        return wrong

    def _label(self, outputs: ExpertOutputs) -> NDArray[np.int32]:
        self._check_scores(outputs)
        alpha = np.array([self.alpha_])
        answer = np.empty(outputs.n_positions, np.int32)
        for first in range(0, len(outputs), _BLOCK):
            part = outputs.take(slice(first, first + _BLOCK))
            begin = outputs.offsets[first]
            answer[begin : begin + part.n_positions] = self._votes(part, self._trust(part), alpha)[
                :, 0
            ]
        return answer

    def _check_scores(self, outputs: ExpertOutputs) -> None:
        if self._by_scores and outputs.scores is None:
            raise DataError(
                "confidence='scores' needs the experts' label probabilities (scores), and these "
                "outputs have none; use confidence='precision'"
            )

    def _trust(self, outputs: ExpertOutputs) -> NDArray[np.float64]:
        """How far each expert is to be believed in what it says, (N, p)."""
        code = np.maximum(outputs.codes, 0)
        if self._by_scores and outputs.scores is not None:
            probability = np.take_along_axis(outputs.scores, code[..., None], 2)[..., 0]
            return probability.astype(np.float64)
        # A label that training lacks has each expert's mean precision.
        known = [self._precision_of.get(y, self._means) for y in outputs.labels]
        precision = np.array(known).reshape(-1, outputs.n_experts)
        trust: NDArray[np.float64] = precision[code, np.arange(outputs.n_experts)]
        return trust

    def _votes(
        self, outputs: ExpertOutputs, trust: NDArray[np.float64], alphas: NDArray[np.float64]
    ) -> NDArray[np.int32]:
        """Winners (N, A) for some α."""
        answers = np.empty((outputs.n_positions, len(alphas)), np.int32)
        by_max, n_labels = self.pool == "max", len(outputs.labels)
        rover_votes(outputs.codes, trust, n_labels, alphas, by_max, _EQUAL, answers)
        return answers

    def _state(self) -> dict[str, Any]:
        return super()._state() | {
            "own": self._by_scores,
            "labels": list(self._precision_of),
            "precisions": self.precisions_,
            "means": self._means,
            "alpha": self.alpha_,
        }

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        self._by_scores = header_value(state, "own", bool)
        labels = distinct_names(state, "labels")
        n_experts = len(self.expert_names_)
        self.precisions_ = take(state, "precisions", np.float64, (n_experts, len(labels)))
        check_range(self.precisions_, 0, np.nextafter(1, 2), "precisions")
        self._means = self.precisions_.mean(axis=1)  # files of the first version have no others
        if "means" in state:
            self._means = take(state, "means", np.float64, (n_experts,))
            check_range(self._means, 0, np.nextafter(1, 2), "mean precisions")
        self._precision_of = dict(zip(labels, self.precisions_.T, strict=True))
        self.alpha_ = header_value(state, "alpha", float, low=0, high=np.nextafter(1, 2))


def _chosen(wrong: NDArray[np.int64]) -> float:
    """The largest α whose mistakes (S, A) exceed the fewest by no more than a standard error."""
    if len(wrong) < 2:
        return 1.0
    more = wrong - wrong[:, [int(wrong.sum(axis=0).argmin())]]
    # The sum of d is at most its standard error if and only if its square is at most that of d².
    near = more.sum(axis=0) ** 2 <= (more**2).sum(axis=0)
    return float(_GRID[int(near.argmax())])

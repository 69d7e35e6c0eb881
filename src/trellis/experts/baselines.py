r"""What every ensemble has to beat: the best expert, and the plain vote.

* **Best expert**: the one with the fewest mistakes in training.
* **Majority vote**: each position's most frequent label, nothing learned.
* **ROVER's vote** (Fiscus 1997): with :math:`n_t(c)` of p experts saying c at position t, c scores

  .. math:: \alpha\,n_t(c)/p + (1 - \alpha)\,\mathrm{conf}_t(c),

  where conf is the mean or the largest confidence of the experts that say c: their probability of
  it, or their precision, the share of the training positions where they said c and were right. α
  is the one of a grid with the fewest mistakes in training.
"""

from __future__ import annotations

from collections.abc import Iterator
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
from trellis.files.stored import header_value, take

__all__ = ["BestExpert", "MajorityVote", "Rover"]

_BLOCK = 1 << 16


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
        return vote(outputs.codes[:, self._order], ones, len(outputs.labels))

    def _state(self) -> dict[str, Any]:
        return super()._state() | {"order": self._order}

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        self._order = restored_order(state, "order", len(self.expert_names_))


class Rover(Combiner):
    """ROVER's vote: frequency mixed with confidence.

    Attributes
    ----------
    alpha_ : float
    precisions_ : float64 (p, L)
        Precision of each expert for each of ``classes_``, smoothed towards its mean.

    Examples
    --------
    >>> from trellis.experts import Rover
    >>> gold = [["a", "b"], ["b", "a"]]
    >>> good, poor = [["a", "b"], ["b", "a"]], [["b", "b"], ["b", "b"]]
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
        """Weight of the frequency; "auto": the best of 0, 0.1, ..., 1 in training, the largest of
        equals.""",
        default="auto",
    )

    def _learn(self, outputs: ExpertOutputs, gold: NDArray[np.int32], fresh: bool) -> None:
        by_scores = self.confidence == "scores" or (
            self.confidence == "auto" and outputs.scores is not None
        )
        self._by_scores = by_scores
        n_labels = len(outputs.labels)
        precisions = np.empty((outputs.n_experts, n_labels))
        for j, code in enumerate(outputs.codes.T):
            awake = code >= 0
            right = np.bincount(code[awake & (code == gold)], minlength=n_labels)
            n_said = np.bincount(code[awake], minlength=n_labels)
            mean = (right.sum() + 1) / (n_said.sum() + 2)
            precisions[j] = (right + mean) / (n_said + 1)
        self.precisions_ = precisions
        self._precision_of = dict(zip(outputs.labels, precisions.T, strict=True))
        grid = [float(self.alpha)] if self.alpha != "auto" else [k / 10 for k in range(10, -1, -1)]
        wrong = np.zeros(len(grid), np.int64)
        for part, frequency, conf in self._tables(outputs):
            for k, alpha in enumerate(grid):
                answer = (alpha * frequency + (1 - alpha) * conf).argmax(axis=1)
                wrong[k] += (answer != gold[part]).sum()
        self.alpha_ = grid[int(wrong.argmin())]

    def _label(self, outputs: ExpertOutputs) -> NDArray[np.int32]:
        answer = np.empty(outputs.n_positions, np.int32)
        for part, frequency, conf in self._tables(outputs):
            answer[part] = (self.alpha_ * frequency + (1 - self.alpha_) * conf).argmax(axis=1)
        return np.where((outputs.codes < 0).all(axis=1), -1, answer).astype(np.int32)

    def _tables(
        self, outputs: ExpertOutputs
    ) -> Iterator[tuple[slice, NDArray[np.float64], NDArray[np.float64]]]:
        """Frequencies and confidences (n, L) of blocks of positions."""
        if self._by_scores and outputs.scores is None:
            raise DataError(
                "confidence='scores' needs the experts' label probabilities (scores), and these "
                "outputs have none; use confidence='precision'"
            )
        n_labels, p = len(outputs.labels), outputs.n_experts
        # A label that training lacks has each expert's mean precision.
        mean = self.precisions_.mean(axis=1)
        precision = np.array([self._precision_of.get(y, mean) for y in outputs.labels])
        for a in range(0, outputs.n_positions, _BLOCK):
            part = slice(a, min(a + _BLOCK, outputs.n_positions))
            codes = outputs.codes[part]
            awake = codes >= 0
            code = np.maximum(codes, 0)
            if self._by_scores and outputs.scores is not None:
                probability = np.take_along_axis(outputs.scores[part], code[..., None], 2)[..., 0]
                trust = probability.astype(np.float64)
            else:
                trust = precision[code, np.arange(p)]
            trust = np.where(awake, trust, 0.0)
            count = vote_table(codes, np.ones(p), n_labels)
            if self.pool == "mean":
                conf = vote_table(codes, trust, n_labels) / np.maximum(count, 1)
            else:
                conf = np.zeros((len(codes), n_labels))
                for j in range(p):
                    at = np.arange(len(codes))
                    conf[at, code[:, j]] = np.maximum(conf[at, code[:, j]], trust[:, j])
            yield part, count / p, conf

    def _state(self) -> dict[str, Any]:
        return super()._state() | {
            "own": self._by_scores,
            "labels": list(self._precision_of),
            "precisions": self.precisions_,
            "alpha": self.alpha_,
        }

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        self._by_scores = header_value(state, "own", bool)
        labels = distinct_names(state, "labels")
        self.precisions_ = take(
            state, "precisions", np.float64, (len(self.expert_names_), len(labels))
        )
        self._precision_of = dict(zip(labels, self.precisions_.T, strict=True))
        self.alpha_ = header_value(state, "alpha", float, low=0, high=np.nextafter(1, 2))

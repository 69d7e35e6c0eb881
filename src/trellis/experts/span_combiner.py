r"""Which of the experts' spans are right: logistic regression that begins as the vote.

The candidates are all spans that any expert gives (:mod:`trellis.experts.span_candidates`).
Candidate c with the vote's probability :math:`v_c` (:mod:`trellis.experts.span_voting`) is right
with probability

.. math:: \mathrm{logit}\, p_c = b + s\,\mathrm{logit}\, v_c + w \cdot f(c), \qquad
          b \sim N(0, \tfrac14), \quad s \sim N(1, \tfrac14), \quad
          w_k \sim N(0, \tfrac1{2\lambda}),

so that what nothing is known about is answered by the vote. The features f(c) are

* for each expert: whether it gives c, less the share that does (0 if it sleeps); whether it gives a
  span with the same start, with the same end, of the same extent and another type, one that
  overlaps, one of another type that does;
* the shares of the experts that do each of these, and of those that give nothing there; the share
  behind the strongest rival, a candidate that overlaps c;
* logarithm of the length and type, each alone and times the share that gives c.

λ is the one of a grid with the highest likelihood in cross-validation over samples; with a large
one only b and s are learned. The threshold τ = F*/2 maximises the F1 that the probabilities of the
same cross-validation promise: it follows all of them, not only the few spans near it, and moves
little from one small sample to another. The answer is the set of candidates without overlaps that
maximises :math:`\sum_c (p_c - \tau)`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.domains import number, one_of
from trellis.errors import CorruptModelError
from trellis.estimator import fitted, parameter
from trellis.experts.span_candidates import (
    AWAKE,
    CLASH,
    END,
    EXACT,
    EXTENT,
    OVERLAP,
    START,
    SpanCandidates,
)
from trellis.experts.span_voting import (
    SpanEnsemble,
    Spans,
    f1_threshold,
    vote_probability,
    vote_threshold,
)
from trellis.files.stored import header_value, take
from trellis.kernels.intervals import best_rivals
from trellis.solvers.logistic import fit_logistic

__all__ = ["SpanCombiner"]

Floats = NDArray[np.float64]

_GRID = (500.0, 15.0, 5.0, 1.5, 0.5)  # of λ, from the vote's side
_FOLDS = 5
_SHARED = 4.0  # precision of b and s
_COMPARED = 5_000  # candidates that choose λ and τ: more would change neither
_LEARNED = 50_000  # candidates that the weights are learned from
_BLOCK = 1 << 15


class SpanCombiner(SpanEnsemble):
    """Choose among the experts' spans by how probable each is, for the best F1.

    Without right answers it is :class:`SpanVote`, with few it is near it.

    Attributes
    ----------
    weights_ : float64 (K,)
        b, s and the weights w of the features.
    l2_ : float
        The λ that was chosen; 0 without right answers.

    Examples
    --------
    >>> from trellis.experts import SpanCombiner
    >>> gold = [["B-PER", "I-PER", "O"], ["O", "B-LOC", "O"]] * 10
    >>> half = [["B-PER", "O", "O"], ["O", "B-LOC", "O"]] * 10
    >>> none = [["O", "O", "O"], ["O", "O", "O"]] * 10
    >>> said = [gold, half, half, none, none]
    >>> combiner = SpanCombiner().fit(said, gold)
    >>> combiner.predict([column[:1] for column in said])
    [['B-PER', 'I-PER', 'O']]
    >>> [[(*span, round(sure, 2)) for *span, sure in spans]
    ...  for spans in combiner.predict_spans([column[:2] for column in said])]
    [[(0, 2, 'PER', 0.92)], [(1, 2, 'LOC', 0.91)]]
    """

    l2: float | str = parameter(
        one_of("auto") | number(above=0),
        """Factor of the squared weights, all but the vote's; "auto": the best of 500, 15, 5, 1.5
        and 0.5 in cross-validation.""",
        default="auto",
    )
    weights_: Floats = fitted()
    l2_: float = fitted()

    def _learn_spans(
        self, candidates: SpanCandidates, known: NDArray[np.bool_], gold: Sequence[Spans]
    ) -> None:
        self.taught_ = bool(known.any())
        self._types = candidates.types
        n_weights = len(_names(candidates.names, self._types))
        self.weights_, self.l2_ = _prior_mean(n_weights), 0.0
        if not self.taught_:
            self.threshold_ = vote_threshold(candidates)
            return
        candidates = candidates.take(known)
        order = np.random.default_rng(0).permutation(len(gold))  # of samples
        sizes = np.cumsum(np.diff(candidates.offsets)[order])
        learned = order[: np.searchsorted(sizes, _LEARNED) + 1]
        candidates, gold = candidates.take(learned), [gold[i] for i in learned]
        right, features = candidates.right(gold), self._features(candidates)
        n_compared = int(np.searchsorted(sizes, _COMPARED)) + 1
        compared, fold = candidates.sample < n_compared, candidates.sample % _FOLDS
        wanted = sum(len(set(spans)) for spans in gold[:n_compared])
        missing = wanted - int(right[compared].sum())
        grid = _GRID if self.l2 == "auto" else (float(self.l2),)
        held = _held_out(features[compared], right[compared], fold[compared], grid)
        chance = np.where(right[compared], held, 1 - held)
        losses = -np.log(np.maximum(chance, 1e-300)).sum(axis=1)
        best = int(losses.argmin())  # the first of equals
        self.l2_ = grid[best]
        self.threshold_ = f1_threshold(held[best], missing)
        self.weights_ = _fitted(features, right, self.l2_)

    def _weigh(self, candidates: SpanCandidates) -> tuple[Floats, Floats]:
        parts = [self._features(part) @ self.weights_ for part in _blocks(candidates)]
        score = np.concatenate([np.zeros(0), *parts])
        probability = 1 / (1 + np.exp(-np.clip(score, -700, 700)))
        first = candidates.has(EXACT).argmax(axis=1) / len(candidates.names)
        weight = probability - self.threshold_
        # As in the vote, the first expert decides between equals.
        return probability, weight + np.where(weight > 0, 1e-9 * (1 - first), 0.0)

    def _features(self, candidates: SpanCandidates) -> Floats:
        """Ones, logits of the vote and f(c), (C, K)."""
        awake, exact = candidates.has(AWAKE), candidates.has(EXACT)
        n_awake = np.maximum(awake.sum(axis=1, keepdims=True), 1)
        vote = vote_probability(candidates)
        share = exact.sum(axis=1, keepdims=True) / n_awake
        start, end = candidates.has(START), candidates.has(END)
        extent = candidates.has(EXTENT)
        overlap, clash = candidates.has(OVERLAP), candidates.has(CLASH)
        silent = awake & ~exact & ~overlap & ~clash
        rival = np.zeros(len(candidates))
        best_rivals(candidates.offsets, candidates.start, candidates.end, share[:, 0].copy(), rival)
        length = np.log((candidates.end - candidates.start)[:, None].astype(np.float64))
        of_type = np.array(candidates.types, dtype=object)[candidates.type][:, None]
        is_type = of_type == np.array(self._types, dtype=object)[None, :]
        marks = (start, end, extent, overlap, clash, silent)
        columns: list[Any] = [
            np.ones((len(candidates), 1)), np.log(vote / (1 - vote))[:, None],
            np.where(awake, exact - share, 0.0),
            start, end, extent, overlap & ~start & ~end, clash & ~extent,
            *(mark.sum(axis=1, keepdims=True) / n_awake for mark in marks),
            rival[:, None], length, length * share, is_type, is_type * share,
        ]  # fmt: skip
        return np.concatenate(columns, axis=1, dtype=np.float64)

    def _state(self) -> dict[str, Any]:
        return super()._state() | {
            "weights": self.weights_, "l2": self.l2_, "feature_types": list(self._types),
        }  # fmt: skip

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        types = header_value(state, "feature_types", list, items=str)
        if len(set(types)) < len(types):
            raise CorruptModelError("types of features must be distinct")
        self._types = tuple(types)
        n_weights = len(_names(self.expert_names_, self._types))
        self.weights_ = take(state, "weights", np.float64, (n_weights,))
        self.l2_ = header_value(state, "l2", float, low=0)


def _names(experts: Sequence[str], types: Sequence[str]) -> list[str]:
    """What the weights are of."""
    marks = ("exact", "start", "end", "extent", "overlap", "clash")
    return [
        "bias", "vote",
        *(f"{mark}: {name}" for mark in marks for name in experts),
        *(f"share: {mark}" for mark in (*marks[1:], "silent")),
        "rival", "length", "length, share",
        *(f"type: {type_}" for type_ in types), *(f"type, share: {type_}" for type_ in types),
    ]  # fmt: skip


def _prior_mean(n_weights: int) -> Floats:
    """The vote: 1 for its logit, 0 for all else."""
    mean = np.zeros(n_weights)
    mean[1] = 1.0
    return mean


def _fitted(
    features: Floats, right: NDArray[np.bool_], l2: float, start: Floats | None = None
) -> Floats:
    n_weights = features.shape[1]
    precision = np.full(n_weights, 2 * l2)
    precision[:2] = _SHARED
    return fit_logistic(features, right, _prior_mean(n_weights), precision, start)


def _held_out(
    features: Floats, right: NDArray[np.bool_], fold: NDArray[np.int64], grid: Sequence[float]
) -> Floats:
    """Probability of each candidate by what the other folds teach, for each λ, (G, C)."""
    score = np.zeros((len(grid), len(right)))
    for k in range(_FOLDS):
        held = fold == k
        weights = None  # one λ begins where the last one ended
        for i, l2 in enumerate(grid if held.any() else ()):
            weights = _fitted(features[~held], right[~held], l2, weights)
            score[i, held] = features[held] @ weights
    probability: Floats = 1 / (1 + np.exp(-np.clip(score, -700, 700)))
    return probability


def _blocks(candidates: SpanCandidates) -> Iterator[SpanCandidates]:
    """The candidates of some samples after the other: tables of features need memory."""
    first, n_samples = 0, len(candidates.offsets) - 1
    while first < n_samples:
        bound = candidates.offsets[first] + _BLOCK
        last = max(first + 1, int(np.searchsorted(candidates.offsets, bound, side="right")) - 1)
        yield candidates.take(slice(first, last))
        first = last

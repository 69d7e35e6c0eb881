r"""Models of annotators, learned by EM with no right answers, or with few.

The truth :math:`y_t` of position t is hidden. Given it, the p experts answer independently, expert
j with label l with probability :math:`\pi_j(l \mid y)`:

* **one-coin**: right with probability a_j, else any other label with equal chances;
* **MACE** (Hovy, Berg-Kirkpatrick, Vaswani and Hovy 2013): it knows with probability θ_j, else it
  says what comes, drawn from a distribution ξ_j of its own:
  :math:`\pi_j(l \mid y) = \theta_j [l = y] + (1 - \theta_j)\,\xi_j(l)`. To agree on a rare label
  says more than to agree on a frequent one;
* **Dawid–Skene** (1979): any confusion matrix.

With ``chain=True`` the truth of a sample is a Markov chain (Nguyen, Wallace, Li, Nenkova and Lease
2017), :math:`p(y) = \rho(y_1) \prod_t A(y_{t-1}, y_t)`. Otherwise positions are independent with
label probabilities ρ, which are learned, too; with one coin they are equal. Unless there are
confusion matrices or chains, all this is a weighted vote: the weight of expert j that says l is
:math:`\log \pi_j(l \mid l) / \pi_j(l \mid \text{another})`, and what is said costs as much with
thousands of labels as with two.

What is maximised, and never decreases, is the log-likelihood of all that is said (and of the right
answers that are known, which are clamped) plus the log of the priors: one right and one wrong
answer of each expert; for ξ_j, ρ and the rows of A ten answers, spread as all experts spread
theirs; for a confusion matrix, thirty in each of its columns, spread as MACE would have them, so
that labels that are seldom met are confused as the others are.

EM begins with the vote: each label of a position has its share of the votes. It makes two steps and
stops, which is not what is published. Experts are not independent, as the model would have it; what
several of them get wrong together counts as evidence that they are right, the more of it the longer
EM goes on. Two steps stay near the vote, and are better than many on weak classifiers of digits and
of people's movements. They may be wrong, too, so there is a guard
(:mod:`trellis.experts.guarded`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.corpus.schemes import get_scheme
from trellis.experts.decoding import vote_table
from trellis.experts.outputs import ExpertOutputs
from trellis.experts.voting import own_votes
from trellis.kernels.annotators import add_confusions, agreements, likelihoods
from trellis.structures import ChainPotentials, Marginals, marginals

__all__ = [
    "Annotators", "ExpectationMaximisation", "ValidTags", "blocks", "drawn", "posteriors",
]  # fmt: skip

Floats = NDArray[np.float64]

_COIN = 1.0  # right and wrong answers of an expert that are counted beforehand, each
_SPREAD = 10.0  # answers beforehand, spread as all answers are
_MATRIX = 30.0  # answers beforehand in each column of a confusion matrix
_START = 0.7  # probability that an expert knows before anything is learned
_INNER = 5  # times that knowledge and guesses are told apart in a step
_BLOCK = 1 << 15


@dataclass(eq=False)
class Annotators:
    """What is known of the experts, and of the labels beforehand.

    Attributes
    ----------
    knows : float64 (p,)
        θ_j; of one coin (a_j L - 1) / (L - 1), which is the same model with a uniform ξ.
    guess : float64 (p, L)
        ξ_j.
    confusions : float64 (p, L, L) or None
        Entry [j, l, y] is the probability that j says l if y is right; None: as the two above say.
    first : float64 (L,) or None
        ρ; None: all labels alike.
    follow : float64 (L, L) or None
        A; None: positions are independent.
    """

    knows: Floats
    guess: Floats
    confusions: Floats | None = None
    first: Floats | None = None
    follow: Floats | None = None

    @property
    def hit(self) -> Floats:
        """Probability that an expert says a label where it is right, (p, L)."""
        return self.knows[:, None] + self.miss

    @property
    def miss(self) -> Floats:
        """Probability that an expert says a label where another one is right, (p, L)."""
        return (1 - self.knows)[:, None] * self.guess

    @property
    def matrices(self) -> Floats:
        """The confusion matrices, (p, L, L), whatever the model."""
        if self.confusions is not None:
            return self.confusions
        n_labels = self.guess.shape[1]
        return self.miss[:, :, None] + self.knows[:, None, None] * np.eye(n_labels)

    def gain(self) -> Floats:
        """Return log hit - log miss, (p, L)."""
        return np.log(self.hit) - np.log(self.miss)


@dataclass(frozen=True, eq=False)
class ValidTags:
    """Which labels may begin, follow each other and end."""

    start: NDArray[np.bool_]
    follow: NDArray[np.bool_]
    end: NDArray[np.bool_]

    @classmethod
    def of(cls, scheme: Any, outputs: ExpertOutputs, gold: NDArray[np.int32]) -> ValidTags:
        """What a scheme allows, and what the right answers do in spite of it."""
        tables = get_scheme(scheme).validity(outputs.labels)
        start, follow, end = (np.array(table, bool) for table in tables)
        first, last = outputs.offsets[:-1], outputs.offsets[1:] - 1
        start[gold[first][gold[first] >= 0]] = True
        end[gold[last][gold[last] >= 0]] = True
        inside = np.ones(len(gold), bool)
        inside[first] = False
        into = np.flatnonzero(inside & (gold >= 0))
        follow[gold[into - 1], gold[into]] = True
        return cls(start, follow, end)


def posteriors(
    annotators: Annotators,
    codes: NDArray[np.int32],
    offsets: NDArray[np.int64],
    gold: NDArray[np.int32] | None = None,
    end: NDArray[np.bool_] | None = None,
    pairs: bool = False,
) -> Marginals:
    """Log-likelihood of each sample and probabilities of its labels, given confusion matrices."""
    n_labels = annotators.guess.shape[1]
    with np.errstate(divide="ignore"):
        follow = None if annotators.follow is None else np.log(annotators.follow)
        first = np.full(n_labels, -np.log(n_labels))
        if annotators.first is not None:
            first = np.log(annotators.first)
    scores = np.zeros((len(codes), n_labels))
    likelihoods(codes, np.log(annotators.matrices), scores)
    if gold is not None:
        known = np.flatnonzero(gold >= 0)
        right = scores[known, gold[known]]
        scores[known] = -np.inf
        scores[known, gold[known]] = right
    if follow is None:
        scores += first
        top = scores.max(axis=1, keepdims=True)
        scores -= top
        np.exp(scores, out=scores)
        mass = scores.sum(axis=1, keepdims=True)
        scores /= mass
        return Marginals((top + np.log(mass))[:, 0], scores)
    scores[offsets[:-1]] += first
    if end is not None:
        last = offsets[1:] - 1
        scores[last] = np.where(end, scores[last], -np.inf)
    return marginals(ChainPotentials(scores, follow, offsets), pairs=pairs)


class ExpectationMaximisation:
    """Steps of EM; begins with equally good experts.

    Parameters
    ----------
    outputs : ExpertOutputs
    gold : int32 (N,)
        -1 where the right answer is not known.
    coin : bool
        One coin an expert, instead of MACE.
    """

    def __init__(self, outputs: ExpertOutputs, gold: NDArray[np.int32], coin: bool) -> None:
        p, n_labels = outputs.n_experts, len(outputs.labels)
        self._outputs, self._gold, self._coin = outputs, gold, coin
        self._said = np.zeros((p, n_labels))
        right, labels = np.zeros((p, n_labels)), np.zeros(n_labels)
        for samples, rows in blocks(outputs):
            shares = own_votes(samples.codes, np.ones(samples.codes.shape), n_labels)
            shares = np.where(gold[rows, None] < 0, shares, samples.codes == gold[rows, None])
            for j, said in enumerate(samples.codes.T):
                awake = said >= 0
                self._said[j] += np.bincount(said[awake], minlength=n_labels)
                right[j] += np.bincount(said[awake], shares[awake, j], n_labels)
            n_awake = np.maximum((samples.codes >= 0).sum(axis=1, keepdims=True), 1)
            one = np.broadcast_to(1 / n_awake, samples.codes.shape)
            labels += np.bincount(
                np.maximum(samples.codes, 0).ravel(), (one * (samples.codes >= 0)).ravel(), n_labels
            )
        pooled = self._said.sum(axis=0) + 1 / n_labels
        self._spread = _SPREAD * pooled / pooled.sum()
        guess = shares_of(self._said + self._spread, 1)
        if coin:
            guess = np.full((p, n_labels), 1 / max(2, n_labels))
        self.annotators = Annotators(np.full(p, _START), guess)
        self._learn_experts(right)
        if not coin:
            self.annotators.first = shares_of(labels + self._spread, 0)
        self._allowed = np.ones(n_labels, bool), np.ones((1, n_labels), bool)
        self._centre: Floats | None = None
        self._valid: ValidTags | None = None
        self._by_matrix = False

    def use_matrices(self, confusions: bool, chain: bool, valid: ValidTags | None) -> None:
        """Go on with confusion matrices, or with a chain of labels, or with both."""
        self._by_matrix = True
        found = self.annotators
        n_labels = found.guess.shape[1]
        first = np.full(n_labels, 1 / n_labels) if found.first is None else found.first
        follow = np.broadcast_to(first, (n_labels, n_labels))
        if chain and valid is not None:
            self._valid, self._allowed = valid, (valid.start, valid.follow)
        matrices = None
        if confusions:
            self._centre = found.matrices
            matrices = shares_of(self._voted_confusions() + _MATRIX * self._centre, 1)
        self.annotators = Annotators(
            found.knows, found.guess, matrices, shares_of(first * self._allowed[0], 0),
            shares_of(follow * self._allowed[1], 1) if chain else None,
        )  # fmt: skip

    def _voted_confusions(self) -> Floats:
        """How often each expert says a label for another, if votes are chances of being right."""
        outputs, n_labels = self._outputs, self._said.shape[1]
        counts = np.zeros((outputs.n_experts, n_labels, n_labels))
        for samples, rows in blocks(outputs):
            shares = vote_table(samples.codes, np.ones(outputs.n_experts), n_labels)
            shares /= np.maximum(shares.sum(axis=1, keepdims=True), 1)
            gold = self._gold[rows]
            known = np.flatnonzero(gold >= 0)
            shares[known] = 0
            shares[known, gold[known]] = 1
            add_confusions(samples.codes, shares, counts)
        return counts

    def step(self) -> float:
        """Return the objective, then make a step that increases it."""
        if self._by_matrix:
            return self._matrix_step()
        now, outputs = self.annotators, self._outputs
        n_labels = now.guess.shape[1]
        prior = np.full(n_labels, 1 / n_labels) if now.first is None else now.first
        right, labels = np.zeros_like(self._said), np.zeros(n_labels)
        total = agreements(
            outputs.codes, self._gold, prior, now.gain(), np.log(now.miss), right, labels
        )
        total += self._log_prior()
        self._learn_experts(right)
        if now.first is not None:
            self.annotators.first = shares_of(labels + self._spread, 0)
        return float(total)

    def _matrix_step(self) -> float:
        now, outputs = self.annotators, self._outputs
        n_labels = now.guess.shape[1]
        counts = np.zeros((outputs.n_experts, n_labels, n_labels))
        first, follow = (self._spread * allowed for allowed in self._allowed)
        total = self._log_prior()
        end = None if self._valid is None else self._valid.end
        chain = now.follow is not None
        for samples, rows in blocks(outputs):
            found = posteriors(
                now, samples.codes, samples.offsets, self._gold[rows], end, pairs=chain
            )
            total += float(found.log_z.sum())
            add_confusions(samples.codes, found.node, counts)
            begins = samples.offsets[:-1] if chain else slice(None)
            first = first + found.node[begins].sum(axis=0)
            if chain:
                follow = follow + found.pair.sum(axis=0)
        self._learn_experts(np.diagonal(counts, axis1=1, axis2=2).copy())
        if self._centre is not None:
            self.annotators.confusions = shares_of(counts + _MATRIX * self._centre, 1)
        self.annotators.first = shares_of(first, 0)
        self.annotators.follow = shares_of(follow, 1) if chain else None
        return total

    def _learn_experts(self, right: Floats) -> None:
        """Knowledge and guesses, from the expected number of right answers (p, L)."""
        now = self.annotators
        self._right = right
        n_said = self._said.sum(axis=1)
        if self._coin:
            n_labels = max(2, now.guess.shape[1])
            accuracy = (right.sum(axis=1) + _COIN) / (n_said + 2 * _COIN)
            now = replace(now, knows=(accuracy * n_labels - 1) / (n_labels - 1))
        for _ in range(0 if self._coin else _INNER):
            known = right * (now.knows[:, None] / now.hit)
            now = replace(
                now,
                knows=(known.sum(axis=1) + _COIN) / (n_said + 2 * _COIN),
                guess=shares_of(self._said - known + self._spread, 1),
            )
        self.annotators = now

    def _log_prior(self) -> float:
        """Log density of the parameters, without constants."""
        now = self.annotators
        total = 0.0
        if now.first is not None:
            total += float(_log_where(now.first, self._allowed[0]) @ self._spread)
        if now.follow is not None:
            total += float((_log_where(now.follow, self._allowed[1]) @ self._spread).sum())
        if now.confusions is not None and self._centre is not None:
            return total + _MATRIX * float((self._centre * np.log(now.confusions)).sum())
        if self._coin:
            n_labels = max(2, now.guess.shape[1])
            wrong = (1 - now.knows) * (n_labels - 1) / n_labels
            return total + _COIN * float((np.log(wrong) + np.log1p(-wrong)).sum())
        total += _COIN * float((np.log(now.knows) + np.log1p(-now.knows)).sum())
        return total + float((np.log(now.guess) @ self._spread).sum())

    def reliabilities(self) -> Floats:
        """Share of the answers of each expert that are right, as far as is known."""
        accuracy: Floats = (self._right.sum(axis=1) + _COIN) / (self._said.sum(axis=1) + 2 * _COIN)
        return accuracy


def shares_of(counts: Floats, axis: int) -> Floats:
    """Counts as shares of their sum along an axis."""
    shares: Floats = counts / np.maximum(counts.sum(axis=axis, keepdims=True), 1e-300)
    return shares


def _log_where(probabilities: Floats, allowed: NDArray[np.bool_]) -> Floats:
    """Logarithms of what is allowed, 0 elsewhere."""
    return np.log(np.where(allowed, probabilities, 1.0))


def blocks(outputs: ExpertOutputs) -> Iterator[tuple[ExpertOutputs, slice]]:
    """Whole samples of a few thousand positions at a time, and their rows."""
    offsets = outputs.offsets
    first = 0
    while first < len(outputs):
        last = int(np.searchsorted(offsets, offsets[first] + _BLOCK, "right")) - 1
        last = max(last, first + 1)
        rows = slice(int(offsets[first]), int(offsets[last]))
        part = replace(
            outputs, offsets=offsets[first : last + 1] - rows.start, codes=outputs.codes[rows],
            scores=None,
        )  # fmt: skip
        yield part, rows
        first = last


def drawn(
    outputs: ExpertOutputs, gold: NDArray[np.int32], most: int
) -> tuple[ExpertOutputs, NDArray[np.int32]]:
    """Samples of so many positions at most; those with right answers come first."""
    if outputs.n_positions <= most:
        return outputs, gold
    taught = gold[outputs.offsets[:-1]] >= 0
    lots = np.random.default_rng(0).random(len(outputs)) - taught
    order = np.argsort(lots)
    n_taken = max(1, int(np.searchsorted(np.cumsum(outputs.lengths[order]), most, "right")))
    taken = np.zeros(len(outputs), bool)
    taken[order[:n_taken]] = True
    return outputs.take(taken), gold[np.repeat(taken, outputs.lengths)]

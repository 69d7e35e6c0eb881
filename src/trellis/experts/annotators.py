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
EM goes on. Of seven weak classifiers of digits and of people's movements, Dawid–Skene was better
than the vote by two to four points after two steps, on average, and worse by up to 16 in the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import for_kernels
from trellis.corpus.schemes import get_scheme
from trellis.domains import flag, number, one_of, whole
from trellis.errors import CorruptModelError, DataError
from trellis.estimator import parameter
from trellis.experts.combiner import SCHEME, Combiner, distinct_names
from trellis.experts.decoding import best_valid, vote_table
from trellis.experts.outputs import ExpertOutputs
from trellis.experts.voting import own_votes, vote
from trellis.files.stored import check_range, take
from trellis.kernels.annotators import add_confusions, agreements, likelihoods, said_posteriors
from trellis.kernels.without import probable_without, probable_without_matrices
from trellis.structures import ChainPotentials, Marginals, marginals

__all__ = ["MANY_LABELS", "AnnotatorModel", "drawn"]

Floats = NDArray[np.float64]

_COIN = 1.0  # right and wrong answers of an expert that are counted beforehand, each
_SPREAD = 10.0  # answers beforehand, spread as all answers are
_MATRIX = 30.0  # answers beforehand in each column of a confusion matrix
_START = 0.7  # probability that an expert knows before anything is learned
_INNER = 5  # times that knowledge and guesses are told apart in a step
MANY_LABELS = 100  # labels: more have no confusion matrices
_BLOCK = 1 << 15
_EQUAL = 1e-12  # probabilities closer than this, relatively, are equal
_TO_ONE = float(np.nextafter(1, 2))


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
class _Valid:
    """Which labels may begin, follow each other and end."""

    start: NDArray[np.bool_]
    follow: NDArray[np.bool_]
    end: NDArray[np.bool_]

    @classmethod
    def of(cls, scheme: Any, outputs: ExpertOutputs, gold: NDArray[np.int32]) -> _Valid:
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


def _posteriors(
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


class _EM:
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
        for samples, rows in _blocks(outputs):
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
        guess = _shares_of(self._said + self._spread, 1)
        if coin:
            guess = np.full((p, n_labels), 1 / max(2, n_labels))
        self.annotators = Annotators(np.full(p, _START), guess)
        self._learn_experts(right)
        if not coin:
            self.annotators.first = _shares_of(labels + self._spread, 0)
        self._allowed = np.ones(n_labels, bool), np.ones((1, n_labels), bool)
        self._centre: Floats | None = None
        self._valid: _Valid | None = None
        self._by_matrix = False

    def use_matrices(self, confusions: bool, chain: bool, valid: _Valid | None) -> None:
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
            matrices = _shares_of(self._voted_confusions() + _MATRIX * self._centre, 1)
        self.annotators = Annotators(
            found.knows, found.guess, matrices, _shares_of(first * self._allowed[0], 0),
            _shares_of(follow * self._allowed[1], 1) if chain else None,
        )  # fmt: skip

    def _voted_confusions(self) -> Floats:
        """How often each expert says a label for another, if votes are chances of being right."""
        outputs, n_labels = self._outputs, self._said.shape[1]
        counts = np.zeros((outputs.n_experts, n_labels, n_labels))
        for samples, rows in _blocks(outputs):
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
            self.annotators.first = _shares_of(labels + self._spread, 0)
        return float(total)

    def _matrix_step(self) -> float:
        now, outputs = self.annotators, self._outputs
        n_labels = now.guess.shape[1]
        counts = np.zeros((outputs.n_experts, n_labels, n_labels))
        first, follow = (self._spread * allowed for allowed in self._allowed)
        total = self._log_prior()
        end = None if self._valid is None else self._valid.end
        chain = now.follow is not None
        for samples, rows in _blocks(outputs):
            found = _posteriors(
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
            self.annotators.confusions = _shares_of(counts + _MATRIX * self._centre, 1)
        self.annotators.first = _shares_of(first, 0)
        self.annotators.follow = _shares_of(follow, 1) if chain else None
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
                guess=_shares_of(self._said - known + self._spread, 1),
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


class AnnotatorModel(Combiner):
    """Answer with what is most probable under a model of the annotators.

    It needs no right answers, and uses those that there are. Labels that nobody said in training
    are taken for as rare as the rarest; confusion matrices and chains do not know them, and where
    nothing else is said the plain vote answers.

    Attributes
    ----------
    reliabilities_ : float64 (p,)
        Estimated share of an expert's answers that are right.
    confusions_ : float64 (p, L, L)
        Entry [j, l, y] is the probability that expert j says l if y is right; labels are in the
        order of ``labels_``.
    labels_ : tuple of str
        The labels of the model.
    objectives_ : float64 (n_iter_,)
        Log posterior of the parameters (up to a constant) before each step of EM; it never
        decreases.
    n_iter_ : int
    converged_ : bool

    Examples
    --------
    >>> from trellis.experts import AnnotatorModel
    >>> good, poor, worse = [["a", "b", "b", "a", "b"]], [["a", "a", "b", "a", "a"]], [["a"] * 5]
    >>> model = AnnotatorModel().fit([worse, good, poor, good, worse])
    >>> model.predict([worse, good, poor, good, worse])
    [['a', 'b', 'b', 'a', 'b']]
    """

    model: str = parameter(
        one_of("one-coin", "mace", "dawid-skene"),
        """What an expert is: one accuracy; knowledge or guesses from a distribution of its own; a
        confusion matrix (of at most 100 labels).""",
        default="mace",
        kw_only=False,
    )
    chain: bool = parameter(
        flag, "Learn also which label follows which (for at most 100 labels).", default=False
    )
    scheme: str | None = SCHEME
    max_positions: int = parameter(
        whole(1),
        """Learn from so many positions at most, of samples drawn at random (always the same ones)
        besides those with right answers. All are answered.""",
        default=50_000,
    )
    max_iter: int = parameter(
        whole(1),
        """Most steps of EM. With more of them it trusts itself more than the vote that it starts
        with; 200 go to the end, which suits experts whose mistakes are independent.""",
        default=2,
    )
    tol: float = parameter(
        number(above=0),
        "EM stops when a step adds less than this, relative to the objective.",
        default=1e-6,
    )

    _ALONE = True

    def _learn(self, outputs: ExpertOutputs, gold: NDArray[np.int32], fresh: bool) -> None:
        n_labels = len(outputs.labels)
        if self._by_matrix and n_labels > MANY_LABELS:
            raise DataError(
                f"{n_labels} labels are too many for confusion matrices and chains (at most "
                f"{MANY_LABELS}); use model='mace' or model='one-coin', without chain"
            )
        outputs, gold = drawn(outputs, gold, self.max_positions)
        self.labels_ = outputs.labels
        em = _EM(outputs, gold, coin=self.model == "one-coin")
        if self._by_matrix:
            valid = None if self.scheme is None else _Valid.of(self.scheme, outputs, gold)
            em.use_matrices(self.model == "dawid-skene", self.chain, valid)
        self._run(em)
        self._annotators = em.annotators
        self.reliabilities_ = em.reliabilities()

    def _run(self, em: _EM) -> None:
        objectives = [em.step()]
        while len(objectives) < self.max_iter:
            objectives.append(em.step())
            if objectives[-1] - objectives[-2] < self.tol * (1 + abs(objectives[-1])):
                break
        self.objectives_ = np.array(objectives)
        self.n_iter_ = len(objectives)
        self.converged_ = len(objectives) < self.max_iter

    @property
    def _by_matrix(self) -> bool:
        return self.chain or self.model == "dawid-skene"

    @property
    def confusions_(self) -> Floats:
        """Probability [j, l, y] that expert j says l if y is right."""
        self._check_fitted()
        return self._annotators.matrices

    # ------------------------------------------------------------------ for other combiners

    def codes_of(self, outputs: ExpertOutputs) -> NDArray[np.int32]:
        """One label code a position (N,), -1: nobody says anything; ``outputs`` know all labels."""
        return self._label(outputs)

    def shares_of(self, outputs: ExpertOutputs) -> Floats:
        """Probability of every label at every position, (N, L)."""
        return self._shares(outputs)

    def answers_without(self, outputs: ExpertOutputs) -> NDArray[np.int32]:
        """For each expert, the answers of the model to what all the others say, (p, N)."""
        codes = for_kernels(outputs.codes)
        answers = np.empty(codes.shape[::-1], np.int32)
        if self.model == "dawid-skene" and not self.chain and outputs.labels == self.labels_:
            found = self._annotators
            assert found.first is not None
            table = np.log(found.matrices)
            scores = np.tile(np.log(found.first), (outputs.n_positions, 1))
            likelihoods(outputs.codes, table, scores)
            probable_without_matrices(codes, table, scores, answers)
        elif self.scheme is None and not self._by_matrix:
            prior, _, gain = self._weights(outputs)
            probable_without(codes, np.log(prior), gain, _EQUAL, answers)
        else:
            for j in range(outputs.n_experts):
                said = outputs.codes.copy()
                said[:, j] = -1
                answers[j] = self._label(replace(outputs, codes=said))
        return answers

    # ------------------------------------------------------------------ answers

    def _recognised(self, outputs: Any) -> ExpertOutputs:
        answers = super()._recognised(outputs)
        return answers.recoded(sorted({*answers.labels, *self.classes_}))

    def _label(self, outputs: ExpertOutputs) -> NDArray[np.int32]:
        awake = (outputs.codes >= 0).any(axis=1)
        if self.scheme is not None:
            return best_valid(self._shares(outputs), outputs, self.scheme)
        answer = np.empty(outputs.n_positions, np.int32)
        if self._by_matrix:
            for samples, rows in _blocks(outputs):
                answer[rows] = self._posteriors(samples).argmax(axis=1)
            return answer if self.chain else np.where(awake, answer, -1).astype(np.int32)
        for samples, rows in _blocks(outputs):
            own, _ = self._said(samples)
            answer[rows] = _first_best(samples.codes, own)
        return answer

    def _shares(self, outputs: ExpertOutputs) -> Floats:
        table = np.empty((outputs.n_positions, len(outputs.labels)))
        for samples, rows in _blocks(outputs):
            if self._by_matrix:
                table[rows] = self._posteriors(samples)
                continue
            own, rest = self._said(samples)
            table[rows] = rest
            t, j = np.nonzero(samples.codes >= 0)
            table[rows.start + t, samples.codes[t, j]] = own[t, j]
        return table

    def _said(self, outputs: ExpertOutputs) -> tuple[Floats, Floats]:
        """Posterior of what each expert says (N, p), and of labels that nobody says (N, L)."""
        prior, share, gain = self._weights(outputs)
        posterior, rest = np.empty(outputs.codes.shape), np.empty(outputs.n_positions)
        said_posteriors(outputs.codes, prior, share, gain, posterior, rest)
        return posterior, rest[:, None] * share

    def _weights(self, outputs: ExpertOutputs) -> tuple[Floats, Floats, Floats]:
        """Of each label the prior, 0 in its place if it is not known, and gains of experts."""
        found = self._annotators
        code_of = {label: code for code, label in enumerate(self.labels_)}
        codes = np.array([code_of.get(label, -1) for label in outputs.labels])
        known = codes >= 0
        gain = np.repeat(found.gain().max(axis=1, keepdims=True), len(codes), axis=1)
        gain[:, known] = found.gain()[:, codes[known]]
        first = np.full(len(self.labels_), 1 / len(self.labels_))
        first = first if found.first is None else found.first
        share, prior = np.zeros(len(codes)), np.full(len(codes), first.min())
        share[known] = prior[known] = first[codes[known]]
        return prior, share, gain

    def _posteriors(self, outputs: ExpertOutputs) -> Floats:
        """Probability of every label at every position, by confusion matrices or a chain."""
        code_of = {label: code for code, label in enumerate(self.labels_)}
        codes = np.array([*(code_of.get(y, -1) for y in outputs.labels), -1], np.int32)
        said = codes[outputs.codes]
        inside = _posteriors(self._annotators, said, outputs.offsets).node
        table = np.zeros((len(said), len(outputs.labels)))
        columns = [outputs.labels.index(label) for label in self.labels_]
        table[:, columns] = inside
        strange = (outputs.codes >= 0).any(axis=1) & (said < 0).all(axis=1)
        if strange.any():  # all that is said there is unknown
            codes = outputs.codes[strange]
            table[strange] = 0
            plain = vote(codes, np.ones(codes.shape[1]), len(outputs.labels))
            table[np.flatnonzero(strange), plain] = 1
        return table

    # ------------------------------------------------------------------ model files

    def _state(self) -> dict[str, Any]:
        found = self._annotators
        arrays = {
            "knows": found.knows, "guess": found.guess, "confusions": found.confusions,
            "first": found.first, "follow": found.follow,
        }  # fmt: skip
        return (
            super()._state()
            | {"labels": list(self.labels_), "reliabilities": self.reliabilities_}
            | {"objectives": self.objectives_}
            | {name: array for name, array in arrays.items() if array is not None}
        )

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        self.labels_ = distinct_names(state, "labels")
        p, n_labels = len(self.expert_names_), len(self.labels_)
        if not set(self.labels_) <= set(self.classes_):
            raise CorruptModelError("the model has labels that were not counted")
        self.objectives_ = take(state, "objectives", np.float64, (None,))
        self.n_iter_ = len(self.objectives_)
        self.converged_ = self.n_iter_ < self.max_iter
        self.reliabilities_ = take(state, "reliabilities", np.float64, (p,))
        check_range(self.reliabilities_, 0, _TO_ONE, "reliabilities")
        knows = take(state, "knows", np.float64, (p,))
        check_range(knows, -1, 1, "knowledge of experts")
        guess = _restored(state, "guess", (p, n_labels), 1)
        found = Annotators(knows, guess)
        if not (found.hit > 0).all() or not (found.miss > 0).all():
            raise CorruptModelError("answers that experts give must have positive probabilities")
        if self.model == "dawid-skene":
            found.confusions = _restored(state, "confusions", (p, n_labels, n_labels), 1)
            if not (found.confusions > 0).all():
                raise CorruptModelError("confusion matrices must be positive")
        if self._by_matrix or self.model == "mace":
            found.first = _restored(state, "first", (n_labels,), 0)
        if self.chain:
            found.follow = _restored(state, "follow", (n_labels, n_labels), 1)
        self._annotators = found


# ---------------------------------------------------------------------------- inside


def _shares_of(counts: Floats, axis: int) -> Floats:
    """Counts as shares of their sum along an axis."""
    shares: Floats = counts / np.maximum(counts.sum(axis=axis, keepdims=True), 1e-300)
    return shares


def _log_where(probabilities: Floats, allowed: NDArray[np.bool_]) -> Floats:
    """Logarithms of what is allowed, 0 elsewhere."""
    return np.log(np.where(allowed, probabilities, 1.0))


def _restored(state: dict[str, Any], name: str, shape: tuple[int, ...], axis: int) -> Floats:
    """Probabilities of a model file."""
    table = take(state, name, np.float64, shape)
    check_range(table, 0, _TO_ONE, name)
    total = table.sum(axis=axis)
    # No label may follow one that no scheme has; of a single label a coin still has two sides.
    if not (np.isclose(total, 1) | (total == 0) | (table.size == total.size)).all():
        raise CorruptModelError(f"{name} must be probabilities, which sum to 1")
    return table


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


def _blocks(outputs: ExpertOutputs) -> Iterator[tuple[ExpertOutputs, slice]]:
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


def _first_best(codes: NDArray[np.int32], posterior: Floats) -> NDArray[np.int32]:
    """What the first of the experts says whose answer is the most probable; -1: all sleep."""
    best = posterior.max(axis=1, keepdims=True)
    pick = (posterior >= best * (1 - _EQUAL)).argmax(axis=1)
    answer = codes[np.arange(len(codes)), pick]
    return np.where(best[:, 0] < 0, -1, answer).astype(np.int32)

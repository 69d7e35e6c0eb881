"""The answer that is most probable under a model of annotators.

The models and how they are learned are in :mod:`trellis.experts.annotators`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import for_kernels
from trellis.domains import flag, number, one_of, whole
from trellis.errors import CorruptModelError, DataError
from trellis.estimator import parameter
from trellis.experts.annotators import (
    Annotators,
    ExpectationMaximisation,
    ValidTags,
    blocks,
    drawn,
    posteriors,
)
from trellis.experts.combiner import SCHEME, Combiner, distinct_names
from trellis.experts.decoding import best_valid
from trellis.experts.outputs import ExpertOutputs
from trellis.experts.voting import vote
from trellis.files.stored import check_range, take
from trellis.kernels.annotators import likelihoods, said_posteriors
from trellis.kernels.without import probable_without, probable_without_matrices

__all__ = ["MANY_LABELS", "AnnotatorModel"]

Floats = NDArray[np.float64]

MANY_LABELS = 100  # labels: more have no confusion matrices
_EQUAL = 1e-12  # probabilities closer than this, relatively, are equal
_TO_ONE = float(np.nextafter(1, 2))


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
        em = ExpectationMaximisation(outputs, gold, coin=self.model == "one-coin")
        if self._by_matrix:
            valid = None if self.scheme is None else ValidTags.of(self.scheme, outputs, gold)
            em.use_matrices(self.model == "dawid-skene", self.chain, valid)
        self._run(em)
        self._annotators = em.annotators
        self.reliabilities_ = em.reliabilities()

    def _run(self, em: ExpectationMaximisation) -> None:
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
            for samples, rows in blocks(outputs):
                answer[rows] = self._posteriors(samples).argmax(axis=1)
            return answer if self.chain else np.where(awake, answer, -1).astype(np.int32)
        for samples, rows in blocks(outputs):
            own, _ = self._said(samples)
            answer[rows] = _first_best(samples.codes, own)
        return answer

    def _shares(self, outputs: ExpertOutputs) -> Floats:
        table = np.empty((outputs.n_positions, len(outputs.labels)))
        for samples, rows in blocks(outputs):
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
        inside = posteriors(self._annotators, said, outputs.offsets).node
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


def _restored(state: dict[str, Any], name: str, shape: tuple[int, ...], axis: int) -> Floats:
    """Probabilities of a model file."""
    table = take(state, name, np.float64, shape)
    check_range(table, 0, _TO_ONE, name)
    total = table.sum(axis=axis)
    # No label may follow one that no scheme has; of a single label a coin still has two sides.
    if not (np.isclose(total, 1) | (total == 0) | (table.size == total.size)).all():
        raise CorruptModelError(f"{name} must be probabilities, which sum to 1")
    return table


def _first_best(codes: NDArray[np.int32], posterior: Floats) -> NDArray[np.int32]:
    """What the first of the experts says whose answer is the most probable; -1: all sleep."""
    best = posterior.max(axis=1, keepdims=True)
    pick = (posterior >= best * (1 - _EQUAL)).argmax(axis=1)
    answer = codes[np.arange(len(codes)), pick]
    return np.where(best[:, 0] < 0, -1, answer).astype(np.int32)

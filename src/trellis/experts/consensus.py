r"""The answer on which experts agree most, of any length: minimum Bayes risk.

Transcripts and translations of one input differ in length and wording; there may be no right
answers to learn from, and most workers of a crowd answer few samples. With the similarity s and the
reliabilities :math:`r_j` of :mod:`trellis.experts.agreement`, the answer to a sample is

.. math:: \hat y = \arg\max_{y \in \mathcal{Y}} \sum_j r_j\, s(y, h_j(x)) \Big/ \sum_j r_j,

the one with the greatest expected similarity to the right answer, if that were an expert's with
chances in proportion to the reliabilities [1]_. The candidates :math:`\mathcal{Y}` are

* the answers of the experts: the best of these is their weighted medoid;
* their aligned vote (:mod:`trellis.experts.alignment`), weighted by reliability: right where
  experts make mistakes in different places, as in transcripts, but no sentence where they choose
  other words, as in translations;
* what *local search* finds: from each of the best few of these, put in place of a run of labels
  what another expert says there, make the change that gains most, or all those apart that gain if
  that is better, and so on until none gains (a generalised median [2]_). Different starts end in
  different places, of which the best counts.

A candidate is compared with all answers, also with those that it was made from. So an expert's
answer counts as equal to itself; the vote and what search makes of it owe a little to every answer.
Leaving out its own answer for the former only would favour the latter.

Where only a whole answer that is all right counts, the similarity would be 1 for equal answers and
0 for others, and the best answer what most say by weight. It is taken (``prefer_whole``) if two
experts at least say it; long answers are rarely the same, and then similarity decides as before.

With right answers for some samples they enter the reliabilities, and choose which of the three
kinds of candidates are used: all, unless fewer are better there by more than a standard error.

References
----------
.. [1] S. Kumar and W. Byrne, *Minimum Bayes-risk decoding for statistical machine translation*,
   2004.
.. [2] T. Kohonen, *Median strings*, 1985.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from trellis.domains import flag, number, one_of, text, whole
from trellis.errors import CorruptModelError, DataError
from trellis.estimator import Estimator, fitted, parameter
from trellis.experts.agreement import Measure, Said, coded, reliabilities
from trellis.experts.alignment import Answers, align, checked_answers, strip
from trellis.experts.voting import vote
from trellis.files.storable import Storable
from trellis.files.stored import check_range, header_value, take

__all__ = ["Consensus"]

_KINDS = ("answers", "vote", "search")
_COMPARISONS = 2000  # in a step of search: changes that it tries, times the answers to the sample
_STEPS = 100
_CHOSEN_BY = 100  # right answers, at most, by which candidates are chosen: search takes its time
_GAIN = 1e-12  # sums of the same similarities in another order differ by less


Change = tuple[int, int, tuple[int, ...]]
"""Labels that come in place of those from the first number to before the second."""


class Consensus(Estimator, Storable):
    """Answer with what is most similar to all experts' answers; no gold is needed.

    Answers may have any lengths, and experts may leave samples out: they may be the many workers
    of a crowd.

    Attributes
    ----------
    reliabilities_ : float64 (p,)
        Mean similarity of an expert's answers to those of the others, or to gold where there is
        some; in [0, 1].
    candidates_ : str
        The candidates that are used, as in ``candidates``.

    Examples
    --------
    >>> from trellis.experts import Consensus
    >>> said = [
    ...     [["the", "cat", "sat", "down"], ["a", "dog", "barks"]],
    ...     [["the", "cat", "sat"], ["the", "dog", "barked"]],
    ...     [["a", "cat", "sat", "down"], None],
    ...     [["so", "what"], ["a", "dog", "barked"]],
    ... ]
    >>> combiner = Consensus().fit(said)
    >>> combiner.predict(said)
    [['the', 'cat', 'sat', 'down'], ['a', 'dog', 'barked']]
    >>> combiner.reliabilities_.round(2).tolist()
    [0.42, 0.41, 0.4, 0.39]
    """

    similarity: str = parameter(
        one_of("both", "overlap", "edit"),
        """Similarity of two answers: common n-grams (as in GLEU), 1 - normalised edit distance, or
        the mean of both.""",
        default="both",
    )
    longest: int = parameter(
        whole(1), "The n-grams have 1 to so many labels; GLEU has 4.", default=2
    )
    candidates: str = parameter(
        one_of("auto", *_KINDS),
        """The experts' answers; also their aligned vote; or also what local search finds. "auto":
        the last, unless fewer are better on the gold samples by more than a standard error.""",
        default="auto",
    )
    starts: int = parameter(
        whole(1),
        "Local search begins at so many of the answers and the vote, the best of them.",
        default=3,
    )
    prefer_whole: bool = parameter(
        flag,
        """Answer with what the experts of most weight say word for word, if two at least say the
        same: for answers that are right or wrong as a whole. The rest is left to similarity.""",
        default=False,
    )
    shrinkage: float = parameter(
        number(at_least=0),
        "Reliabilities are shrunk towards their mean as if by so many samples.",
        default=10.0,
    )
    epsilon: str = parameter(text, "The empty label of the alignment.", default="<eps>")
    reliabilities_: NDArray[np.float64] = fitted()
    candidates_: str = fitted()

    def fit(self, outputs: Any, gold: Any = None) -> Self:
        """Estimate how reliable the experts are.

        Parameters
        ----------
        outputs : nested sequences
            ``outputs[j][i]`` is the label sequence, of any length, of expert j for sample i, or
            None.
        gold : sequence of (label sequences or None), optional
            The right answers, as far as they are known.

        Returns
        -------
        self
        """
        self._check_parameters()
        answers, samples = self._samples(outputs)
        right = self._right(gold, len(samples))
        measure = self._measure()
        alike = [measure.among(said) for said in samples]
        known = [
            None if y is None else measure(*_packed([_encoded(y, said)]), said)[0]
            for y, said in zip(right, samples, strict=True)
        ]
        self.reliabilities_, _ = reliabilities(samples, alike, len(answers), self.shrinkage, known)
        self.candidates_ = _KINDS[-1] if self.candidates == "auto" else self.candidates
        if self.candidates == "auto":
            self._choose(answers, right)
        return self

    def predict(self, outputs: Any) -> list[list[str]]:
        """Return the answer to each sample, of whatever length."""
        return [answer for answer, _ in self._answers(*self._recognised(outputs))]

    def predict_confidence(self, outputs: Any) -> list[NDArray[np.float64]]:
        """Return how sure the answer is, from 0 to 1: the same number for each of its words.

        It is the weighted mean similarity of the answer to those of the experts: 1 where all say
        the same, or only one says anything.

        Examples
        --------
        >>> from trellis.experts import Consensus
        >>> said = [[["a", "b"], ["a"]], [["a", "b"], ["b"]], [["a", "b"], ["c"]]]
        >>> [levels.round(2).tolist() for levels in Consensus().fit(said).predict_confidence(said)]
        [[1.0, 1.0], [0.33]]
        """
        found = self._answers(*self._recognised(outputs))
        return [np.full(len(answer), np.clip(mean, 0.0, 1.0)) for answer, mean in found]

    # ------------------------------------------------------------------ inside

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "reliabilities_")

    def _measure(self) -> Measure:
        return Measure(self.similarity, self.longest)

    def _samples(self, outputs: Any) -> tuple[Answers, list[Said]]:
        answers, _ = checked_answers(outputs, self.epsilon)
        samples = [coded(answers, i) for i in range(len(answers[0]))]
        for i, said in enumerate(samples):
            if not len(said.experts):
                raise DataError(f"no expert says anything about sample {i} (counted from 0)")
        return answers, samples

    def _recognised(self, outputs: Any) -> tuple[Answers, list[Said]]:
        self._check_fitted()
        answers, samples = self._samples(outputs)
        if len(answers) != len(self.reliabilities_):
            raise DataError(
                f"the ensemble was trained on {len(self.reliabilities_)} experts, here are "
                f"{len(answers)}; give None for the samples an expert has not answered"
            )
        return answers, samples

    def _right(self, gold: Any, n_samples: int) -> list[list[str] | None]:
        if gold is None:
            return [None] * n_samples
        right = checked_answers([gold], self.epsilon, "gold")[0][0]
        if len(right) != n_samples:
            raise DataError(f"gold has {len(right)} samples, the experts answer {n_samples}")
        return right

    def _choose(self, answers: Answers, right: list[list[str] | None]) -> None:
        """Set ``candidates_`` by similarity to the right answers, where there are any."""
        at = [i for i, y in enumerate(right) if y is not None]
        if len(at) < 2:
            return
        at = at[:: -(-len(at) // _CHOSEN_BY)]
        some = [[column[i] for i in at] for column in answers]
        truth = [coded([[right[i]]], 0) for i in at]
        scores = {}
        for kind in reversed(_KINDS):
            self.candidates_ = kind
            found = self._answers(some, [coded(some, i) for i in range(len(at))])
            scores[kind] = np.array([
                self._measure()(*_packed([_encoded(answer, y)]), y)[0, 0]
                for (answer, _), y in zip(found, truth, strict=True)
            ])  # fmt: skip
        best = max(scores, key=lambda kind: scores[kind].mean())  # among equals the first: more
        gain = scores[best] - scores[_KINDS[-1]]
        error = gain.std(ddof=1) / np.sqrt(len(gain))
        self.candidates_ = best if gain.mean() > error else _KINDS[-1]

    def _answers(self, answers: Answers, samples: list[Said]) -> list[tuple[list[str], float]]:
        """The answer to each sample, and its weighted mean similarity to those of the experts."""
        votes = self._votes(answers) if self.candidates_ != "answers" else None
        return [
            self._answer(said, None if votes is None else _encoded(votes[i], said))
            for i, said in enumerate(samples)
        ]

    def _votes(self, answers: Answers) -> list[list[str]]:
        """Aligned votes; the most reliable experts first, who win where votes are equal."""
        order = np.argsort(-self.reliabilities_, kind="stable")
        ranked = [answers[j] for j in order]
        network, _ = align(ranked, epsilon=self.epsilon, order="sample")
        winner = vote(network.codes, self.reliabilities_[order], len(network.labels))
        return strip(network.lists(winner), self.epsilon)

    def _answer(self, said: Said, voted: list[int] | None) -> tuple[list[str], float]:
        measure = self._measure()
        weight = self.reliabilities_[said.experts]
        weight = weight / weight.sum() if weight.any() else np.full(len(weight), 1 / len(weight))
        candidates = [said.answer(q) for q in range(len(said.experts))]
        if voted is not None:
            candidates.append(voted)
        means = measure(*_packed(candidates), said) @ weight
        if self.prefer_whole and (whole := _whole_answer(candidates, means, weight)) is not None:
            return [said.labels[code] for code in candidates[whole]], float(means[whole])
        at = _first_best(means)
        found = [(candidates[at], float(means[at]))]
        if self.candidates_ == "search":
            # Rounded, since sums of the same similarities in another order differ.
            ranked = np.argsort(-means.round(9), kind="stable").tolist()
            distinct = {tuple(candidates[q]): float(means[q]) for q in ranked}
            starts = list(distinct.items())[: self.starts]
            found = [_climbed(list(start), mean, said, weight, measure) for start, mean in starts]
        best, mean = found[_first_best(np.array([mean for _, mean in found]))]
        return [said.labels[code] for code in best], mean

    def _state(self) -> dict[str, Any]:
        return {"reliabilities": self.reliabilities_, "candidates": self.candidates_}

    def _restore(self, state: dict[str, Any]) -> None:
        self.reliabilities_ = take(state, "reliabilities", np.float64, (None,))
        if not len(self.reliabilities_):
            raise CorruptModelError("there are no reliabilities of experts")
        check_range(self.reliabilities_, 0, np.nextafter(1, 2), "reliabilities")
        self.candidates_ = header_value(state, "candidates", str, choices=_KINDS)


def _whole_answer(
    candidates: list[list[int]], means: NDArray[np.float64], weight: NDArray[np.float64]
) -> int | None:
    """The answer that two experts at least give, and those of most weight; None if there is none.

    Among equals the one that is more similar to all. Experts' answers are the first candidates.
    """
    given: dict[tuple[int, ...], list[int]] = {}
    for q in range(len(weight)):
        given.setdefault(tuple(candidates[q]), []).append(q)
    shares = {by[0]: float(weight[by].sum()) for by in given.values() if len(by) > 1}
    ranked = {q: (round(share, 9), round(float(means[q]), 9)) for q, share in shares.items()}
    return max(ranked, key=ranked.__getitem__, default=None)


def _climbed(
    best: list[int], mean: float, said: Said, weight: NDArray[np.float64], measure: Measure
) -> tuple[list[int], float]:
    """Where local search ends that begins here, and its weighted mean similarity to the answers."""
    for _ in range(_STEPS):
        changes = _changes(best, said, weight)
        if not changes:
            break
        changed = [_applied(best, [change]) for change in changes]
        means = measure(*_packed(changed), said) @ weight
        gaining = [changes[c] for c in np.argsort(-means, kind="stable") if means[c] > mean + _GAIN]
        if not gaining:
            break
        # Changes in different places hardly touch each other: often all can be made at once.
        changed = [_applied(best, gaining[:1]), _applied(best, _apart(gaining))]
        means = measure(*_packed(changed), said) @ weight
        at = _first_best(means)
        best, mean = changed[at], float(means[at])
    return best, mean


def _changes(sequence: list[int], said: Said, weight: NDArray[np.float64]) -> list[Change]:
    """All runs of labels in which answers differ from the sequence, and what they have there.

    Those that experts of more weight propose come first.
    """
    from trellis.kernels.similarity import differences

    runs = differences(np.array(sequence, np.int32), said.codes, said.offsets)
    codes, first = said.codes.tolist(), said.offsets.tolist()
    support: dict[Change, float] = {}
    for q, i, k, j, m in runs.tolist():
        change = i, k, tuple(codes[first[q] + j : first[q] + m])
        support[change] = support.get(change, 0.0) + float(weight[q])
    ranked = sorted(support, key=lambda change: (-round(support[change], 9), change))
    return ranked[: max(20, _COMPARISONS // len(first))]


def _apart(changes: list[Change]) -> list[Change]:
    """Those that have a label between them and all that come before them in the list."""
    kept: list[Change] = []
    for change in changes:
        if all(change[1] < i or k < change[0] for i, k, _ in kept):
            kept.append(change)
    return kept


def _applied(sequence: list[int], changes: list[Change]) -> list[int]:
    """The sequence with other labels in these runs, which are apart."""
    changed = list(sequence)
    for i, k, labels in sorted(changes, reverse=True):
        changed[i:k] = labels
    return changed


def _first_best(means: NDArray[np.float64]) -> int:
    """The first of those with the greatest mean, up to rounding."""
    return int((means >= means.max() - _GAIN).argmax())


def _encoded(labels: list[str], said: Said) -> list[int]:
    """Codes of labels; those that no answer has are numbered after the others."""
    code_of = {label: code for code, label in enumerate(said.labels)}
    return [code_of.setdefault(label, len(code_of)) for label in labels]


def _packed(sequences: list[list[int]]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    flat = [code for sequence in sequences for code in sequence]
    offsets = np.cumsum([0, *map(len, sequences)], dtype=np.int64)
    return np.array(flat, np.int32), offsets

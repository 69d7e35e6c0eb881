r"""How far experts agree: similarity of answers of any length, and reliability without gold.

**Similarity** of two answers, in [0, 1]: the common n-grams by those of the answer that has more
(:mod:`trellis.evaluation.overlap`), or 1 - edit distance / the larger length, or the mean of both.

**Reliability** of an expert: how similar its answers are to those of the others. With
:math:`s_{jk}^i` the similarity of what j and k say about sample i, :math:`K_i` those who answer it,
:math:`n_j` the number of samples that j and somebody else answer, and :math:`\bar r` the mean,

.. math:: r_j = \frac{\sum_i m_j^i + \lambda \bar r}{n_j + \lambda}, \qquad
          m_j^i = \frac{\sum_{k \ne j} r_k s_{jk}^i}{\sum_{k \ne j} r_k} \quad (k \in K_i),

iterated from equal weights: agreement with reliable experts counts more, as in RASA [1]_, but
without embeddings. λ shrinks those who answered little towards the mean. Where right answers
:math:`y_i` are known, they replace the others: the sum is over
:math:`s(h_j(x_i), y_i)` and λ shrinks towards what the agreement says, on the scale of the right
answers.

References
----------
.. [1] J. Li and F. Fukumoto, *A dataset of crowdsourced word sequences: collections and answer
   aggregation for ground truth creation*, 2019.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Measure", "Said", "agreement_order", "closest_first", "coded", "reliabilities"]

Answers = Sequence[Sequence[Sequence[str] | None]]
_ROUNDS, _STILL = 50, 1e-9


@dataclass(frozen=True)
class Said:
    """All answers to one sample, as numbers.

    Attributes
    ----------
    experts : int64 (r,)
        Who answers.
    labels : list of str
        The labels of the answers; a label's code is its place.
    codes : int32 (n,)
        The answers one after the other.
    offsets : int64 (r + 1,)
        Answer q is ``codes[offsets[q]:offsets[q + 1]]``.
    """

    experts: NDArray[np.int64]
    labels: list[str]
    codes: NDArray[np.int32]
    offsets: NDArray[np.int64]

    def answer(self, q: int) -> list[int]:
        """Codes of answer q."""
        codes: list[int] = self.codes[self.offsets[q] : self.offsets[q + 1]].tolist()
        return codes


def coded(answers: Answers, sample: int) -> Said:
    """What the experts say about a sample; ``answers[j][i]`` as in :func:`trellis.experts.align`.

    Examples
    --------
    >>> from trellis.experts.agreement import coded
    >>> said = coded([[["a", "b"]], [None], [["b"]]], 0)
    >>> said.experts.tolist(), said.labels, said.codes.tolist(), said.offsets.tolist()
    ([0, 2], ['a', 'b'], [0, 1, 1], [0, 2, 3])
    """
    given = [(j, column[sample]) for j, column in enumerate(answers)]
    there = [(j, answer) for j, answer in given if answer is not None]
    code_of: dict[str, int] = {}
    flat = [code_of.setdefault(label, len(code_of)) for _, answer in there for label in answer]
    offsets = np.cumsum([0, *(len(answer) for _, answer in there)], dtype=np.int64)
    experts = np.array([j for j, _ in there], np.int64)
    return Said(experts, list(code_of), np.array(flat, np.int32), offsets)


@dataclass(frozen=True)
class Measure:
    """Similarity of label sequences; see the module.

    Attributes
    ----------
    kind : {"overlap", "edit", "both"}
    longest : int
        The n-grams have 1 to so many labels.

    Examples
    --------
    >>> from trellis.experts.agreement import Measure, coded
    >>> said = coded([[["a", "b"]], [["a", "b", "a"]]], 0)
    >>> Measure("overlap", 2).among(said).round(3).tolist()
    [[1.0, 0.6], [0.6, 1.0]]
    """

    kind: str = "both"
    longest: int = 2

    def __call__(
        self, codes: NDArray[np.int32], offsets: NDArray[np.int64], said: Said
    ) -> NDArray[np.float64]:
        """Similarity of each sequence to each of the answers, (A, r)."""
        from trellis.kernels.similarity import similarities

        longest = 0 if self.kind == "edit" else self.longest
        common, edits = similarities(
            codes,
            offsets,
            said.codes,
            said.offsets,
            longest,
            self.kind != "overlap",
            codes is said.codes and offsets is said.offsets,
        )
        n, m = np.diff(offsets)[:, None], np.diff(said.offsets)[None]
        parts = []
        if self.kind != "edit":
            parts.append(common / np.maximum(np.maximum(self._ngrams(n), self._ngrams(m)), 1))
            parts[0][(n == 0) & (m == 0)] = 1.0
        if self.kind != "overlap":
            parts.append(1 - edits / np.maximum(np.maximum(n, m), 1))
        mean: NDArray[np.float64] = np.mean(parts, axis=0)
        return mean

    def among(self, said: Said) -> NDArray[np.float64]:
        """Similarity of the answers to each other, (r, r)."""
        return self(said.codes, said.offsets, said)

    def _ngrams(self, lengths: NDArray[np.int64]) -> NDArray[np.int64]:
        """Number of n-grams of sequences of these lengths."""
        k = np.minimum(lengths, self.longest)
        number: NDArray[np.int64] = k * lengths - k * (k - 1) // 2
        return number


def reliabilities(
    samples: Sequence[Said],
    alike: Sequence[NDArray[np.float64]],
    n_experts: int,
    shrinkage: float,
    right: Sequence[NDArray[np.float64] | None] = (),
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Reliability of each expert, (p,), and of how many samples it is known.

    Parameters
    ----------
    samples : sequence of Said
    alike : sequence of float64 (r, r)
        Similarity of the answers to each sample.
    n_experts : int
    shrinkage : float
        λ: so many samples the mean counts for.
    right : sequence of (float64 (r,) or None)
        Similarity of the answers to the right one, where it is known.

    Examples
    --------
    >>> from trellis.experts.agreement import Measure, coded, reliabilities
    >>> said = coded([[["a", "b"]], [["a", "b"]], [["c"]]], 0)
    >>> values, _ = reliabilities([said], [Measure("edit").among(said)], 3, 1.0)
    >>> values.round(2).tolist()
    [0.6, 0.6, 0.24]
    """
    shared = [q for q, said in enumerate(samples) if len(said.experts) > 1]
    # One entry for each ordered pair of answers to the same sample: who, of whom, how similar.
    who, whom, similar, answer = _pairs([samples[q] for q in shared], [alike[q] for q in shared])
    experts = np.concatenate([np.zeros(0, np.int64), *(samples[q].experts for q in shared)])
    number = np.bincount(experts, minlength=n_experts)
    reliable = np.ones(n_experts)
    for _ in range(_ROUNDS if len(who) else 0):
        weight = np.maximum(reliable[whom], 1e-12)
        total = np.bincount(answer, weight, len(experts))
        means = np.bincount(answer, weight * similar, len(experts)) / total
        shrunk = _shrunk(means, experts, number, shrinkage, np.full(n_experts, means.mean()))
        moved = np.abs(shrunk - reliable).max()
        reliable = shrunk
        if moved < _STILL:
            break
    known = [(said, values) for said, values in zip(samples, right, strict=False)
             if values is not None]  # fmt: skip
    if not known:
        return reliable, number
    experts = np.concatenate([said.experts for said, _ in known])
    values = np.concatenate([values for _, values in known])
    with_gold = np.bincount(experts, minlength=n_experts)
    scale = values.mean() / max(float(reliable[experts].mean()), 1e-12)
    prior = np.clip(reliable * scale, 0, 1)
    return _shrunk(values, experts, with_gold, shrinkage, prior), np.maximum(number, with_gold)


def _pairs(
    samples: list[Said], alike: list[NDArray[np.float64]]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]:
    nobody = np.zeros(0, np.int64)
    who, whom, similar, answer, first = [nobody], [nobody], [np.zeros(0)], [nobody], 0
    for said, matrix in zip(samples, alike, strict=True):
        r = len(said.experts)
        a, b = np.nonzero(~np.eye(r, dtype=bool))
        who.append(said.experts[a])
        whom.append(said.experts[b])
        similar.append(matrix[a, b])
        answer.append(first + a)
        first += r
    return (
        np.concatenate(who), np.concatenate(whom), np.concatenate(similar), np.concatenate(answer)
    )  # fmt: skip


def _shrunk(
    values: NDArray[np.float64],
    experts: NDArray[np.int64],
    number: NDArray[np.int64],
    shrinkage: float,
    prior: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Mean of each expert's values, shrunk towards its prior, which is that of those without."""
    total = np.bincount(experts, values, len(prior)) + shrinkage * prior
    weight = number + shrinkage
    return np.where(weight > 0, total / np.maximum(weight, 1e-12), prior)


def agreement_order(answers: Answers, shrinkage: float = 10.0) -> list[int]:
    """The experts, the one that agrees most with the others first; those who are silent last.

    Examples
    --------
    >>> from trellis.experts.agreement import agreement_order
    >>> agreement_order([[["a"]], [["b", "b"]], [["b", "b"]], [None]])
    [1, 2, 0, 3]
    """
    measure = Measure("edit")
    samples = [coded(answers, i) for i in range(len(answers[0]))]
    alike = [measure.among(said) for said in samples]
    reliable, _ = reliabilities(samples, alike, len(answers), shrinkage)
    silent = [all(answer is None for answer in column) for column in answers]
    return sorted(range(len(answers)), key=lambda j: (silent[j], -reliable[j], j))


def closest_first(answers: Answers) -> NDArray[np.int64]:
    """For each sample, the experts by distance from its medoid, which comes first, (S, p).

    The medoid is the answer with the least mean normalised edit distance from all. Who is silent
    comes last.

    Examples
    --------
    >>> from trellis.experts.agreement import closest_first
    >>> closest_first([[["a"], ["a"]], [["b", "b"], None], [["b", "b"], ["a"]]]).tolist()
    [[1, 2, 0], [0, 2, 1]]
    """
    measure = Measure("edit")
    n_experts = len(answers)
    order = np.empty((len(answers[0]), n_experts), np.int64)
    for i in range(len(order)):
        said = coded(answers, i)
        alike = measure.among(said)
        r = len(said.experts)
        if r:
            # Rounded, since sums of the same similarities in another order differ.
            medoid = int(alike.sum(axis=1).round(9).argmax())
            near = -alike[medoid]
            near[medoid] = -2.0
            order[i, :r] = said.experts[np.argsort(near, kind="stable")]
        order[i, r:] = np.setdiff1d(np.arange(n_experts), said.experts)
    return order

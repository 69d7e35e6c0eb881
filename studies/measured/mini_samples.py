r"""Eq. (8) as an optimisation problem: one fixed decomposition of a corpus, solved exactly.

    F(w) = Σ_j ℒ(w, z'_j) + l2 ‖w‖²,     z'_j the mini-samples

F/(mn) is the paper's objective with λ = 2 l2/(mn). The labels must be complete: then F is convex,
and strongly so with modulus 2 l2. Hence ‖w − w*‖ ≤ ‖∇F(w)‖ / (2 l2) for any w, which says how good
a numerical solution is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # no annotations

from trellis.corpus import Corpus, Features
from trellis.decompose import Pieces, partitioner
from trellis.errors import DataError
from trellis.features import Encoded
from trellis.features.encoded import drop_unknown
from trellis.models import ChainCRF
from trellis.problems import LabelProblem, LogLikelihood, Weights
from trellis.theory.checks import positive
from trellis.theory.quantities import labelled

__all__ = ["MiniSamples", "Solution", "check_setting", "encode"]

# Largest entry of the gradient at a solution, for l2 = 1; the solution says what was reached.
_TOLERANCE = 1e-6


@dataclass(frozen=True)
class Solution:
    """A minimiser and how far it can be from the true one."""

    weights: Weights
    value: float
    error: float
    """Upper bound on the distance to the exact minimiser."""


@dataclass(frozen=True)
class MiniSamples:
    """Data and its decomposition."""

    data: LabelProblem
    pieces: Pieces
    l2: float
    n_features: int

    @classmethod
    def draw(
        cls, data: LabelProblem, n_features: int, piece_size: float | None, l2: float, seed: int
    ) -> MiniSamples:
        """Cut the data once, by the rule that training uses in each pass."""
        rng = np.random.default_rng(seed)
        pieces = partitioner(piece_size).draw(data.encoded.offsets, rng)
        return cls(data, pieces, float(l2), n_features)

    @property
    def alpha(self) -> float:
        """Mini-samples a sample, on average."""
        return len(self.pieces) / len(self.data.sample_weight)

    def value(self, weights: Weights) -> float:
        """F(w)."""
        visits = self.data.visits(self.pieces)
        loss, _ = LogLikelihood(self.data).value_and_gradient(weights, visits)
        return loss + self.l2 * weights.squared_norm()

    def minimise(
        self, *, start: Weights | None = None, without: NDArray[np.int64] | None = None
    ) -> Solution:
        """Minimise F, or F without some mini-samples, by L-BFGS in float64."""
        kept = np.arange(len(self.pieces))
        if without is not None:
            kept = np.delete(kept, without)
        visits = self.data.visits(self.pieces, kept)
        objective = LogLikelihood(self.data)
        n_labels = self.data.n_labels
        size = (self.n_features + n_labels) * n_labels

        def f(flat: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
            loss, g = objective.value_and_gradient(_unpacked(flat, n_labels), visits)
            return loss + self.l2 * float(flat @ flat), _packed(g) + 2 * self.l2 * flat

        first = np.zeros(size) if start is None else _packed(start)
        # One thread: the same bits on any number of cores, and many times faster on a busy machine,
        # where the threads of these short vector operations wait for each other.
        with threadpool_limits(1, user_api="blas"):
            found = minimize(
                f,
                first,
                jac=True,
                method="L-BFGS-B",
                options={
                    "maxiter": 2000,
                    "maxfun": 4000,
                    "ftol": 0.0,
                    "gtol": _TOLERANCE * min(1.0, self.l2),
                },
            )
        value, gradient = f(found.x)
        error = float(np.linalg.norm(gradient)) / (2 * self.l2)
        return Solution(_unpacked(found.x, n_labels), value, error)

    def as_corpus(self) -> Corpus:
        """The mini-samples as a corpus of ready-made features, a sample each."""
        e = self.data.encoded
        values = e.values if e.values.size else None
        names = [str(f) for f in range(self.n_features)]
        return Corpus(
            self.pieces.offsets,
            features=Features(e.indptr, e.indices, values, names),
            labels=self.data.labels,
        )


def encode(corpus: Any, features: Any, test: Any = None) -> tuple[LabelProblem, LabelProblem, int]:
    """Training data, test data (the same if none is given) and the number of features.

    Every feature occurs in the training data; ids are those of a CRF that learned from it.
    """
    train = _complete(labelled(corpus), "corpus")
    held_out = train if test is None else _complete(labelled(test), "test")
    # One pass is the public way to the vocabulary; the weights are not used.
    model = ChainCRF(features, max_passes=1, learning_rate=0.1, random_state=0).fit(train)
    encoded = model.encoder_.encode(train)
    used, indices = np.unique(encoded.indices, return_inverse=True)
    n = len(used)
    data = _data(train, replace(encoded, indices=indices.astype(np.int32)), n, model.classes_)
    if test is None:
        return data, data, n
    other = model.encoder_.encode(held_out)
    new_id = np.full(model.encoder_.n_features, -1, np.int32)
    new_id[used] = np.arange(n)
    other = drop_unknown(replace(other, indices=new_id[other.indices]))
    return data, _data(held_out, other, n, model.classes_), n


def check_setting(piece_sizes: Sequence[float | None], l2: float, random_state: int) -> None:
    """Check the arguments that both measurements share."""
    if not len(piece_sizes):
        raise DataError("piece_sizes is empty; give at least one size, or None for whole samples")
    for size in piece_sizes:
        partitioner(size)  # raises if it cannot be a size
    positive(l2=l2)
    if not (isinstance(random_state, int | np.integer) and random_state >= 0):
        raise DataError(f"random_state must be an integer of at least 0, got {random_state!r}")


def _complete(corpus: Corpus, what: str) -> Corpus:
    assert corpus.labels is not None
    partial = np.flatnonzero(corpus.labels.ids >= len(corpus.labels.classes))
    if partial.size:
        s = int(np.searchsorted(corpus.offsets, partial[0], side="right")) - 1
        raise DataError(
            f"{what}: sample {s}, position {partial[0] - corpus.offsets[s]} has no single label; "
            "the theory is for complete labels, whose loss is convex"
        )
    return corpus


def _data(corpus: Corpus, encoded: Encoded, n: int, classes: tuple[str, ...]) -> LabelProblem:
    assert corpus.labels is not None
    return LabelProblem(encoded, corpus.labels.recoded(classes), n)


def _packed(weights: Weights) -> NDArray[np.float64]:
    return np.concatenate([weights.node.ravel(), weights.transitions.ravel()]).astype(np.float64)


def _unpacked(flat: NDArray[np.float64], n_labels: int) -> Weights:
    matrix = flat.reshape(-1, n_labels)
    return Weights(matrix[:-n_labels], matrix[-n_labels:])

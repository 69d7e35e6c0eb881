"""Prediction with a fitted chain model: labels, k best, scores and explanations.

A chain model scores a labelling y of a sequence x by

    s(x, y) = Σ_t Σ_{f ∈ x_t} v_tf · node[f, y_t] + Σ_{t ≥ 1} S_t[y_{t-1}, y_t],

S_t being the transitions and what rich edge features add to them at t,

and predicts the best y, under whatever label sets and tag-scheme rules are asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.corpus import Corpus, Label, Labels, as_corpus
from trellis.corpus.corpus import check_lengths, lengths_of, split
from trellis.corpus.schemes import Scheme, detect_scheme, get_scheme
from trellis.errors import DataError, InfeasibleError
from trellis.features import Encoded, Encoder
from trellis.models.accuracy import accuracy
from trellis.models.explain import Explanation, explain_sample
from trellis.models.params import Estimator
from trellis.objectives import Weights
from trellis.structures import ChainPotentials, kbest

__all__ = ["ChainPredictor"]

# Positions scored at once, and edge scores at once: bounds the memory of dense scores.
_BLOCK = 1 << 16
_EDGES = 1 << 22


class ChainPredictor(Estimator):
    """What every fitted chain model can do; how it is fitted is up to the classes below it."""

    scheme: str | None

    classes_: tuple[str, ...]
    encoder_: Encoder
    weights_: Weights

    def predict(
        self, X: Any, *, constraints: Sequence[Sequence[Label]] | None = None
    ) -> list[list[str]]:
        """Best labels of each sequence.

        Parameters
        ----------
        X : Corpus or list of sequences
        constraints : list of lists, optional
            For each position the label it must have, a set of allowed labels, or None.

        Returns
        -------
        list of lists of str
        """
        self._check_fitted()
        corpus = as_corpus(X)
        return self._decode(corpus, self._encode(corpus), self.weights_, constraints)

    def _encode(self, corpus: Corpus) -> Encoded:
        if corpus.n_positions == 0:  # which kind of features it lacks cannot be told, nor matters
            none = np.zeros(0, np.int32)
            return Encoded(corpus.offsets, np.zeros(1, np.int64), none, np.zeros(0, np.float32))
        return self.encoder_.encode(corpus)

    def _decode(
        self,
        corpus: Corpus,
        encoded: Encoded,
        weights: Weights,
        constraints: Sequence[Sequence[Label]] | None,
    ) -> list[list[str]]:
        names = np.array(self.classes_, object)
        ids = np.empty(corpus.n_positions, np.int32)
        for first, last, node, trans, offsets in self._scores(
            corpus, encoded, weights, constraints
        ):
            ids[first:last] = _best_labels(node, trans, offsets, corpus, first)
        return split(names[ids].tolist(), corpus.offsets)

    def predict_kbest(
        self, X: Any, k: int, *, constraints: Sequence[Sequence[Label]] | None = None
    ) -> list[list[tuple[list[str], float]]]:
        """Return the k best labellings of each sequence, best first, each with its score.

        The score is s(x, y); differences of scores are log ratios of probabilities for a CRF.
        Sequences with fewer than k possible labellings get fewer.
        """
        self._check_fitted()
        corpus = as_corpus(X)
        if not isinstance(k, int | np.integer) or k < 1:
            raise DataError(f"k must be a positive integer, got {k!r}")
        names = np.array(self.classes_, object)
        result: list[list[tuple[list[str], float]]] = []
        for _, _, p in self._potentials(corpus, constraints):
            labels, scores = kbest(p, k)
            for s in range(len(p.offsets) - 1):
                a, b = p.offsets[s], p.offsets[s + 1]
                result.append(
                    [
                        (names[labels[i, a:b]].tolist(), float(scores[s, i]))
                        for i in range(k)
                        if np.isfinite(scores[s, i])
                    ]
                )
        return result

    def score(
        self,
        X: Any,
        y: Sequence[Sequence[Label]] | None = None,
        sample_weight: Sequence[float] | NDArray[Any] | None = None,
    ) -> float:
        """Token accuracy: the share of annotated positions labelled right.

        Labels never seen in training count as wrong; a set of labels is met by any of its members.
        ``sample_weight`` weighs sequences.
        """
        self._check_fitted()
        corpus = as_corpus(X, y)
        return accuracy(corpus, self.predict, sample_weight)

    def explain(self, X: Any, *, n_features: int = 5) -> Explanation:
        """Say why a sequence got its labels: the features that spoke for each label.

        Parameters
        ----------
        X : Sample, or a corpus or list of one sequence
        n_features : int
            How many features to list for each position.

        Returns
        -------
        Explanation
            Prints as a readable table; ``.positions`` holds the numbers.
        """
        self._check_fitted()
        corpus = as_corpus(X)
        if len(corpus) != 1:
            raise DataError(f"explain takes one sequence, got {len(corpus)}; pass corpus[i]")
        encoded = self._encode(corpus)
        labels = self._decode(corpus, encoded, self.weights_, None)[0]
        return explain_sample(
            corpus, encoded, self.encoder_, self.weights_, self.classes_, labels, n_features,
            self._marginals_or_none(corpus),
            None if self.scheme is None else get_scheme(self.scheme).validity(self.classes_),
        )  # fmt: skip

    def _marginals_or_none(self, corpus: Corpus) -> NDArray[np.float64] | None:
        return None

    def _scores(
        self,
        corpus: Corpus,
        encoded: Encoded,
        weights: Weights,
        constraints: Sequence[Sequence[Label]] | None,
        edges: bool = False,
    ) -> Iterator[tuple[int, int, NDArray[Any], NDArray[Any], NDArray[np.int64]]]:
        """Blocks of samples as (first, last position, node scores, transitions, offsets).

        Transitions are (L, L) or, for rich edges, (positions, L, L); with ``edges`` the blocks are
        those that rich edges would have.
        """
        from trellis.kernels.rich_edges import score_edges
        from trellis.kernels.scoring import Features, score_nodes

        allowed = None
        if constraints is not None:
            lengths = lengths_of(constraints, "constraints")
            check_lengths(corpus.lengths.tolist(), lengths, "X", "constraints")
            allowed = Labels.from_lists(constraints, self.classes_).allowed()
        transitions = weights.transitions
        n_labels = len(transitions)
        rules = None
        if self.scheme is not None:
            rules = get_scheme(self.scheme).validity(self.classes_)
        edge = weights.edge
        small = edge is not None or edges
        for a, b in _blocks(corpus.offsets, _EDGES // n_labels**2 if small else _BLOCK):
            first, last = int(corpus.offsets[a]), int(corpus.offsets[b])
            node = score_nodes(
                encoded.indptr, encoded.indices, encoded.values, weights.node, first, last
            )
            offsets = corpus.offsets[a : b + 1] - first
            trans = transitions
            if edge is not None:
                features = Features(encoded.indptr, encoded.indices, encoded.values)
                trans = score_edges(features, transitions, edge.arguments(), first, last)
            fine = np.isfinite(node).all(axis=1)
            if trans.ndim == 3:
                sound = np.isfinite(trans).all(axis=(1, 2))
                sound[offsets[:-1][np.diff(offsets) > 0]] = True  # no edge leads there
                fine &= sound
            if encoded.values.size and not fine.all():
                t = first + int(np.argmin(fine))
                s = int(np.searchsorted(corpus.offsets, t, side="right")) - 1
                raise DataError(
                    f"sample {s}, position {t - corpus.offsets[s]}: feature values are too large "
                    "to be scored; rescale them as for training"
                )
            if rules is not None:
                trans = np.where(rules[1], trans, trans.dtype.type(-np.inf))
            if allowed is not None:
                node[~allowed[first:last]] = -np.inf
            if rules is not None:
                filled = np.diff(offsets) > 0
                for positions, may in (
                    (offsets[:-1][filled], rules[0]),
                    (offsets[1:][filled] - 1, rules[2]),
                ):
                    node[np.ix_(positions, ~may)] = -np.inf
            yield first, last, node, trans, offsets

    def _potentials(
        self,
        corpus: Corpus,
        constraints: Sequence[Sequence[Label]] | None = None,
        edges: bool = False,
    ) -> Iterator[tuple[int, int, ChainPotentials]]:
        """Blocks of samples as checked potentials in float64; every sample can be labelled."""
        blocks = self._scores(corpus, self._encode(corpus), self.weights_, constraints, edges)
        for first, last, node, trans, offsets in blocks:
            if constraints is not None or self.scheme is not None:
                _best_labels(node, trans, offsets, corpus, first)
            yield first, last, ChainPotentials(node, trans, offsets)

    def _span_scheme(self, scheme: str | None) -> Scheme:
        name = scheme or self.scheme or detect_scheme(self.classes_)
        if name is None:
            raise DataError("the labels follow no known tag scheme; name one with scheme=")
        return get_scheme(name)


def _best_labels(
    node: NDArray[Any],
    trans: NDArray[Any],
    offsets: NDArray[np.int64],
    corpus: Corpus,
    first: int,
) -> NDArray[np.int32]:
    """Best labels of a block that starts at position ``first``; an error names the sample."""
    from trellis.kernels.chain import viterbi

    ids, scores = viterbi(node, trans, offsets)
    impossible = np.flatnonzero(np.isneginf(scores))
    if impossible.size:
        s = int(np.searchsorted(corpus.offsets, first + offsets[impossible[0]], side="right")) - 1
        raise InfeasibleError(
            f"sample {s} (of {corpus.lengths[s]} positions) has no allowed labelling under its "
            "constraints and the tag scheme; allow more labels"
        )
    return ids


def _blocks(offsets: NDArray[np.int64], size: int) -> list[tuple[int, int]]:
    """Runs of samples with about ``size`` positions each."""
    n = len(offsets) - 1
    blocks, a = [], 0
    while a < n:
        b = int(np.searchsorted(offsets, offsets[a] + size, side="right")) - 1
        b = min(n, max(b, a + 1))
        blocks.append((a, b))
        a = b
    return blocks

r"""Prediction with a fitted linear model: labels, k best, scores and explanations.

The labelling of a sample is the one with the highest score (:mod:`trellis.models.scored_model`)
under whatever label sets and tag-scheme rules are asked for.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.corpus import Corpus, Label
from trellis.corpus.form import Given
from trellis.corpus.label_values import as_objects
from trellis.corpus.sample_weights import sample_weights
from trellis.corpus.schemes import Scheme, detect_scheme, get_scheme
from trellis.domains import one_of, whole
from trellis.errors import DataError, InfeasibleError
from trellis.features import Encoded
from trellis.models.edge_features import shares_of_edges
from trellis.models.explain import Explanation, explain_sample
from trellis.models.scored_model import Block, ScoredModel
from trellis.problems import Weights
from trellis.structures import (
    Best,
    ChainPotentials,
    GraphPotentials,
    best,
    kbest,
)

__all__ = ["Decoded", "Predictor", "numbered"]


@dataclass(frozen=True)
class Decoded:
    """The labelling found for a sample, and how good it is known to be.

    Parameters
    ----------
    labels : list
    score : float
        Its score s(x, y).
    bound : float
        No labelling has a higher score.
    exact : bool
        Whether it is the best labelling.
    method : str
        How it was found: "chain", "tree", or one of :func:`trellis.structures.best`.
    """

    labels: list[Any]
    score: float
    bound: float
    exact: bool
    method: str

    @property
    def gap(self) -> float:
        """How much better than this labelling the best may be."""
        return self.bound - self.score


class Predictor(ScoredModel):
    """What every fitted linear model can do; how it is fitted is up to the classes below it."""

    # ---------------------------------------------------------------- predictions

    def predict(
        self,
        X: Any,
        *,
        edges: Sequence[Any] | None = None,
        edge_types: Sequence[Sequence[str]] | None = None,
        edge_features: Sequence[Any] | None = None,
        constraints: Any = None,
        prune: int | None = None,
    ) -> Any:
        """Best labels of each sample.

        Parameters
        ----------
        X : Corpus, list of samples, or (trees and graphs) list of pairs (sample, edges)
        edges : list of integer arrays (m, 2), optional
            Trees and graphs: edges of each sample, unless ``X`` has them.
        edge_types : list of lists of str, optional
            Trees and graphs: type of each edge.
        edge_features : list of arrays (m, d), or of lists of dicts or lists of str, optional
            Trees and graphs: features of each edge; those never seen in training are ignored.
        constraints : list of lists, optional
            For each position the label it must have, a set of allowed labels, or None.
        prune : int, optional
            Chains of many labels: look only at so many labels of each position, those of the
            highest score with the best transitions. 32 to 64 seldom change a labelling, and
            :meth:`decode` tells how much better the best one may be. Edges must be plain.

        Returns
        -------
        list of lists of labels
            Of tables and graphs of other libraries in their form: a series with the index of the
            table, a dict of nodes.
        """
        self._check_fitted()
        self._check_prune(prune)
        given = self._given(X, None, edges, edge_types, edge_features)
        corpus, limits = given.corpus, self._limits(given, constraints)
        found = self.labellings(corpus, self._encode(corpus), self.weights_, limits, prune)
        return given.form.labels(found)

    def _limits(self, given: Given, constraints: Any) -> Any:
        """Constraints that came in the form of the samples, as lists."""
        return None if constraints is None else given.form.label_lists(constraints, "constraints")

    def decode(
        self,
        X: Any,
        *,
        edges: Sequence[Any] | None = None,
        edge_types: Sequence[Sequence[str]] | None = None,
        edge_features: Sequence[Any] | None = None,
        constraints: Any = None,
        prune: int | None = None,
    ) -> list[Decoded]:
        """Labelling of each sample as :meth:`predict` finds it, with score, bound and exactness."""
        self._check_fitted()
        self._check_prune(prune)
        given = self._given(X, None, edges, edge_types, edge_features)
        corpus, limits = given.corpus, self._limits(given, constraints)
        names = as_objects(self.state_labels)
        result = []
        encoded = self._encode(corpus)
        for block in self._blocks(corpus, encoded, self.weights_, limits, compact=True):
            decoded = self._best(block, prune)
            for s in range(len(block.offsets) - 1):
                a, b = block.offsets[s], block.offsets[s + 1]
                result.append(
                    Decoded(
                        names[decoded.labels[a:b]].tolist(),
                        float(decoded.scores[s]),
                        float(decoded.bounds[s]),
                        bool(decoded.exact[s]),
                        decoded.method[s],
                    )
                )
        return result

    def predict_kbest(
        self,
        X: Any,
        k: int,
        *,
        edges: Sequence[Any] | None = None,
        edge_types: Sequence[Sequence[str]] | None = None,
        edge_features: Sequence[Any] | None = None,
        constraints: Any = None,
    ) -> list[list[tuple[list[Any], float]]]:
        """Return the k best labellings of each sample, best first, each with its score.

        The score is s(x, y); differences of scores are log ratios of probabilities for a CRF.
        Samples with fewer than k possible labellings get fewer. On graphs with loops it needs
        exact inference, and says so if the graph is too dense for it.
        """
        self._check_fitted()
        whole(1).check("k", k)
        given = self._given(X, None, edges, edge_types, edge_features)
        limits = self._limits(given, constraints)
        names = as_objects(self.state_labels)
        result: list[list[tuple[list[Any], float]]] = []
        for p, first in self.potentials(given.corpus, limits, compact=True):
            with numbered(first):
                labels, scores = kbest(p, int(k))
            for s in range(len(p.offsets) - 1):
                a, b = p.offsets[s], p.offsets[s + 1]
                result.append(
                    [
                        (names[labels[i, a:b]].tolist(), float(scores[s, i]))
                        for i in range(len(labels))
                        if np.isfinite(scores[s, i])
                    ]
                )
        return result

    def score(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Sequence[float] | NDArray[Any] | None = None,
        *,
        edges: Sequence[Any] | None = None,
        edge_types: Sequence[Sequence[str]] | None = None,
        edge_features: Sequence[Any] | None = None,
        metric: str = "auto",
    ) -> float:
        """How good predictions are, from 0 to 1.

        Parameters
        ----------
        X, y, edges, edge_types, edge_features
            Labelled samples, as for :meth:`fit`. Labels never seen in training count as wrong; a
            set of labels is met by any of its members; what is not annotated does not count.
        sample_weight : array (S,), optional
            Weights of samples.
        metric : str
            "f1": F1 of spans; "accuracy": share of the positions that are right; "auto": "f1" of
            chains whose labels follow a tag scheme, as ``dev=`` and :func:`trellis.tuning.tune`
            score, else "accuracy"; "sequences", "macro_f1", "weighted_f1": see
            :mod:`trellis.evaluation.held_out`.
        """
        from trellis.evaluation.held_out import METRICS, held_out_score

        self._check_fitted()
        one_of(*METRICS).check("metric", metric)
        corpus = self._corpus(X, y, edges, edge_types, edge_features)
        if corpus.labels is None:
            raise DataError("score needs labels: pass y or a corpus that carries them")
        weights = sample_weights(sample_weight, len(corpus))
        annotated = corpus.labels.ids != len(corpus.labels.classes)
        if not np.repeat(weights, corpus.lengths)[annotated].sum() > 0:
            raise DataError("score needs at least one annotated position")
        gold, scheme = corpus.label_lists(), self.scoring_scheme(corpus)
        predicted = self.labellings(corpus, self._encode(corpus), self.weights_)
        return held_out_score(gold, predicted, scheme, metric, weights)

    def scoring_scheme(self, corpus: Corpus) -> str | None:
        """Tag scheme whose spans are scored on labelled data; None: positions are."""
        from trellis.evaluation.held_out import scoring_scheme

        assert corpus.labels is not None
        if self.structure != "chain":
            return None
        used = [corpus.labels.classes[i] for i in corpus.labels.used()]
        return scoring_scheme(self.scheme, self.classes_, corpus.label_lists(), used)

    def explain(
        self,
        X: Any,
        *,
        edges: Sequence[Any] | None = None,
        edge_types: Sequence[Sequence[str]] | None = None,
        edge_features: Sequence[Any] | None = None,
        n_features: int = 5,
    ) -> Explanation:
        """Say why a sample got its labels: the features and edges that spoke for each.

        Parameters
        ----------
        X : Sample, or a corpus or list of one sample
        edges, edge_types, edge_features
            As for :meth:`predict`.
        n_features : int
            How many features to list for each position.

        Returns
        -------
        Explanation
            Prints as a readable table; ``.positions`` holds the numbers.
        """
        self._check_fitted()
        corpus = self._corpus(X, None, edges, edge_types, edge_features)
        if len(corpus) != 1:
            raise DataError(f"explain takes one sample, got {len(corpus)}; pass corpus[i]")
        encoded = self._encode(corpus)
        states = self._labels(next(self._blocks(corpus, encoded, self.weights_, None)), None)
        marginals = self._marginals_or_none(corpus)
        # A rival may be any label: neighbours that say how a span goes on would allow but a few.
        free = self.refinement_ is not None
        blocks = self._blocks(corpus, encoded, self.weights_, None, free=free, keep=False)
        p = next(blocks).potentials()
        return explain_sample(
            corpus, encoded, self.encoder_, self.weights_, self.state_labels, states, p, n_features,
            None if marginals is None else marginals[:, self._label_of_state],
            None if self.edge_encoder_ is None else shares_of_edges(
                self._problem(corpus, encoded), self.weights_, self.edge_encoder_, states,
                self._edge_share,
            ),
        )  # fmt: skip

    def _marginals_or_none(self, corpus: Corpus) -> NDArray[np.float64] | None:
        return None

    @property
    def n_features_(self) -> int:
        """Number of features the model knows."""
        return self.encoder_.n_features

    @property
    def n_features_in_(self) -> int:
        """Number of columns that the samples had: of tables, arrays, tuples."""
        return len(self.feature_names_in_)

    @property
    def feature_names_in_(self) -> NDArray[np.object_]:
        """Names of the columns that the samples had."""
        if not self.__sklearn_is_fitted__() or not self.columns_:
            raise AttributeError(
                f"this {type(self).__name__} has not learned from samples that have columns"
            )
        return as_objects(self.columns_)

    # ---------------------------------------------------------------- inference

    def labellings(
        self,
        corpus: Corpus,
        encoded: Encoded,
        weights: Weights,
        constraints: Sequence[Sequence[Label]] | None = None,
        prune: int | None = None,
    ) -> list[list[Any]]:
        """Best labels of each sample of an encoded corpus, with some weights."""
        names = as_objects(self.state_labels)
        ids = np.empty(corpus.n_positions, np.int32)
        at = 0
        for block in self._blocks(corpus, encoded, weights, constraints, compact=True):
            ids[at : at + len(block.node)] = self._labels(block, prune)
            at += len(block.node)
        named, offsets = names[ids].tolist(), corpus.offsets.tolist()
        return [named[a:b] for a, b in itertools.pairwise(offsets)]

    def _check_prune(self, prune: int | None) -> None:
        if prune is None:
            return
        whole(1).check("prune", prune)
        if self.structure != "chain" or self.weights_.edge is not None:
            kind = "rich edges" if self.structure == "chain" else f"a {self.structure}"
            raise DataError(f"prune= is for chains with plain edges; this model has {kind}")

    def _labels(self, block: Block, prune: int | None) -> NDArray[np.int32]:
        """What is predicted for a block: the best labelling of each sample."""
        return self._best(block, prune).labels

    def _best(self, block: Block, prune: int | None = None) -> Best:
        """Best labellings of a block; an error names the sample."""
        if block.edges is None:
            from trellis.kernels.chain import pruned_viterbi, viterbi  # in float32, without checks

            if prune is None:
                labels, scores = viterbi(block.node, block.pair, block.offsets, block.changes)
                limits = scores
            else:
                labels, scores, limits = pruned_viterbi(
                    block.node, block.pair, block.offsets, min(prune, len(block.pair))
                )
            impossible = np.flatnonzero(np.isneginf(scores))
            if impossible.size:
                s = int(impossible[0])
                raise InfeasibleError(
                    f"(of {block.offsets[s + 1] - block.offsets[s]} positions) has no allowed "
                    "labelling under its constraints and the tag scheme; allow more labels",
                    sample=block.first + s,
                )
            if prune is None:
                return Best.exactly(labels, scores, "chain")
            proven = scores == limits
            method = tuple("chain" if is_best else "pruned" for is_best in proven.tolist())
            return Best(labels, scores, limits, proven, method)
        exact, by = self.inference == "exact", self.inference
        if exact or by == "marginals" or self.structure == "tree":
            by = "auto"
        with numbered(block.first):
            return best(block.potentials(), method=by, exact=exact)

    def potentials(
        self,
        corpus: Corpus,
        constraints: Sequence[Sequence[Label]] | None = None,
        small: bool = False,
        compact: bool = False,
        keep: bool = True,
    ) -> Iterator[tuple[ChainPotentials | GraphPotentials, int]]:
        """Return blocks of samples as checked potentials, each with its first sample's number.

        Every sample of a chain model can be labelled. ``small``: as few samples at once as if every
        position had a table of transitions. ``compact``: where the rich edges of a chain have few
        pairs, they are ``changes`` of one table, in place of a table for each position. ``keep``:
        what training knew of some nodes of these samples holds.
        """
        encoded = self._encode(corpus)
        how = {"small": small, "compact": compact, "keep": keep}
        for block in self._blocks(corpus, encoded, self.weights_, constraints, **how):
            if block.edges is None and (constraints is not None or self.scheme is not None):
                self._best(block)
            yield block.potentials(), block.first

    def _span_scheme(self, scheme: str | None) -> Scheme:
        name = scheme or self.scheme or detect_scheme(self.classes_)
        if name is None:
            raise DataError("the labels follow no known tag scheme; name one with scheme=")
        return get_scheme(name)


class numbered:  # noqa: N801 (it reads as a statement)
    """Give an error the number that a sample has in the whole corpus."""

    def __init__(self, first: int) -> None:
        self.first = first

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if isinstance(error, InfeasibleError) and error.sample is not None:
            error.sample += self.first

r"""What a linear model makes of samples: features, and scores of labels and of label pairs.

A model scores a labelling y of a sample x by

.. math:: s(x, y) = \sum_v \sum_{f \in x_v} x_{vf} W_{f, y_v} + \sum_{e = (a, b)} S_e(y_a, y_b),

:math:`S_e` being the table of the edge's type and what rich edge features and features of the edge
itself add to it. The edges of a chain join neighbours. Edges without direction have
:math:`S_e + S_e^\top`; an edge of a type never seen in training couples nothing.

Inside, labels may be refined into states (:mod:`trellis.corpus.refinement`): the y of the formula
are then states, which say the same as labels, and what is asked and answered is in terms of labels.

A CRF that was trained on spanning trees of loopy graphs has learned tables for a share ρ of the
edges, each of which spoke for its neighbours, too. At prediction all edges speak, so that each
counts ρ times: ρ · S_e is the mean of what the trees had (the weights of tree-reweighted belief
propagation; Wainwright, Jaakkola & Willsky 2005). On forests ρ is 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import for_kernels
from trellis.corpus import Corpus, Label, Labels, Sample
from trellis.corpus.corpus import check_lengths
from trellis.corpus.door import take_in
from trellis.corpus.form import Given
from trellis.corpus.graphs import check_edges, take_in_any
from trellis.corpus.refinement import Refinement, Rules
from trellis.corpus.schemes import get_scheme
from trellis.errors import DataError
from trellis.estimator import fitted, fixed
from trellis.features import AttributeEncoder, Encoded, Encoder, Prepared, TemplateEncoder
from trellis.features.templates import is_default
from trellis.models.edge_features import encoded_edges
from trellis.models.known_labels import KnownLabels
from trellis.models.linear_parameters import LinearParameters
from trellis.problems import LabelProblem, Weights
from trellis.problems.samples import taken
from trellis.structures import (
    ChainPotentials,
    GraphPotentials,
    StepChanges,
)

__all__ = ["Block", "ScoredModel", "coded_edges", "unknown_labels"]

# Positions of chains scored at once; numbers in the scores of rich edges, and of graphs, at once.
_POSITIONS = 1 << 16
_EDGES = 1 << 22
_GRAPHS = 1 << 20


@dataclass(frozen=True, eq=False)
class Block:
    """Scores of consecutive samples.

    Parameters
    ----------
    first : int
        Number of the first sample.
    node : array (n, L)
        Scores of labels.
    pair : array
        Scores of label pairs: (L, L) or (n, L, L) of chains, (K, L, L) of graphs.
    offsets : int64 array
        Bounds of the samples, from 0.
    edges, types : int64 arrays (E, 2) and (E,), or None for chains
        Ends of the edges, and their tables.
    changes : trellis.kernels.step_changes.StepChanges, optional
        Chains: pairs that have other scores at some positions than in ``pair`` (L, L).
    """

    first: int
    node: NDArray[Any]
    pair: NDArray[Any]
    offsets: NDArray[np.int64]
    edges: NDArray[np.int64] | None = None
    types: NDArray[np.int64] | None = None
    changes: Any = None

    def potentials(self) -> ChainPotentials | GraphPotentials:
        """The same in float64, checked."""
        if self.edges is None:
            changes = None if self.changes is None else StepChanges.found(*self.changes)
            return ChainPotentials(self.node, self.pair, self.offsets, changes)
        assert self.types is not None
        return GraphPotentials(self.node, self.pair, self.edges, self.offsets, self.types)


class ScoredModel(LinearParameters):
    """Samples as a linear model sees them; not used by itself."""

    classes_: tuple[Any, ...] = fitted()
    columns_: tuple[str, ...] = fixed(())  # that the samples had, in order
    encoder_: Encoder = fitted()
    weights_: Weights = fitted()
    edge_types_: tuple[str, ...] = fitted()
    edge_encoder_: AttributeEncoder | None = fixed(None)
    known_: KnownLabels | None = fixed(None)
    refinement_: Refinement | None = fixed(None)

    @property
    def states_(self) -> tuple[Any, ...]:
        """What the columns of the weights are for: the labels, or the states they are refined to.

        Examples
        --------
        >>> from trellis import ChainCRF
        >>> X, y = [["in", "New", "York"]] * 5, [["O", "B", "I"]] * 5
        >>> crf = ChainCRF(encoding="iobes", random_state=0).fit(X, y)
        >>> crf.classes_, crf.states_
        (('B', 'I', 'O'), ('B', 'E', 'I', 'O', 'S'))
        >>> crf.predict([["near", "New", "York"]])
        [['O', 'B', 'I']]
        """
        return self.classes_ if self.refinement_ is None else self.refinement_.states

    @property
    def state_labels(self) -> tuple[Any, ...]:
        """The label of each state."""
        if self.refinement_ is None:
            return self.classes_
        return tuple(self.classes_[i] for i in self._label_of_state)

    @property
    def _label_of_state(self) -> NDArray[np.int64]:
        """The number of each state's label."""
        if self.refinement_ is None:
            return np.arange(len(self.classes_))
        return self.refinement_.label

    @property
    def _is_directed(self) -> bool:
        """Whether the ends of an edge play different parts; by default in trees."""
        return self.structure != "graph" if isinstance(self.directed, str) else bool(self.directed)

    @property
    def _transitions(self) -> str:
        """Pairs of labels that transitions are learned for; CRFs of chains may have fewer."""
        return "all"

    @property
    def _edge_share(self) -> float:
        """Share ρ of the edges that the tables were learned for; only CRFs of graphs have one."""
        return float(getattr(self, "edge_share_", 1.0))

    @property
    def _cost(self) -> Any:
        """The task loss; only max-margin models have a choice."""
        return "hamming"

    def _given(
        self,
        X: Any,
        y: Any = None,
        edges: Any = None,
        edge_types: Any = None,
        edge_features: Any = None,
        *,
        fresh: bool = False,
        columns: Sequence[str] = (),
    ) -> Given:
        """What a user passes, as a corpus, and the form that answers have.

        ``fresh``: it is to be learned from afresh, so what was learned does not say what is in it;
        ``columns`` are those of the training data if it comes beside them.
        """
        if isinstance(X, Prepared):
            raise DataError("a prepared corpus is for fit alone; pass the samples themselves")
        how: dict[str, Any] = {"columns": self.columns, "group": self.group}
        fresh = fresh or not self.__sklearn_is_fitted__()
        if fresh:
            how["columns"] = list(columns) or self.columns
            if not is_default(self.features):
                how["symbols"] = True
        else:
            how["columns"] = list(self.columns_) or None
            how["symbols"] = not isinstance(self.encoder_, AttributeEncoder)
        if self.structure == "chain":
            if any(part is not None for part in (edges, edge_types, edge_features)):
                raise DataError("edges are for trees and graphs; chains have none")
            given = take_in(X, y, **how)
        else:
            given = take_in_any(X, y, edges, edge_types, edge_features, **how)
            check_edges(given.corpus)
        if how.get("symbols") and not fresh and not isinstance(X, Corpus | Sample):
            self._check_columns(given.corpus)
        return given

    def _check_columns(self, corpus: Corpus) -> None:
        """Say how samples are given the columns that the templates need, if they lack some."""
        if not isinstance(self.encoder_, TemplateEncoder) or not corpus.n_positions:
            return
        needed = self.encoder_.templates.columns()
        missing = [name for name in needed if name not in corpus.columns]
        if missing:
            columns = ", ".join(self.columns_ or needed)
            has = ", ".join(corpus.columns) or "none"
            raise DataError(
                f"the templates need the column {missing[0]!r}; the samples have {has}. Give each "
                f"position a tuple ({columns}) or a dict with the names {', '.join(needed)}"
            )

    def _corpus(
        self,
        X: Any,
        y: Any = None,
        edges: Any = None,
        edge_types: Any = None,
        edge_features: Any = None,
    ) -> Corpus:
        """What a user passes, as a corpus."""
        return self._given(X, y, edges, edge_types, edge_features).corpus

    # ---------------------------------------------------------------- scores

    def _encode(self, corpus: Corpus) -> Encoded:
        if corpus.n_positions == 0:  # which kind of features it lacks cannot be told, nor matters
            none = np.zeros(0, np.int32)
            offsets = for_kernels(corpus.offsets)
            return Encoded(offsets, np.zeros(1, np.int64), none, np.zeros(0, np.float32))
        return self.encoder_.encode(corpus)

    def _problem(
        self,
        corpus: Corpus,
        encoded: Encoded,
        labels: Labels | None = None,
        weight: NDArray[np.float64] | None = None,
    ) -> LabelProblem:
        """Samples as a problem whose weights are those of the model; edges of known types."""
        if labels is None:
            labels = unknown_labels(corpus, self.states_)
        shape: dict[str, Any] = {
            "sample_weight": weight, "cost": self._cost, "transitions": self._transitions,
        }  # fmt: skip
        if labels.classes == self.states_:  # held-out samples may have others
            shape["rich"] = self.weights_.edge
        if self.structure != "chain":
            edges, types = coded_edges(corpus, self.edge_types_)
            own = encoded_edges(self.edge_encoder_, corpus)
            if types.min(initial=0) < 0:
                if own is not None:
                    own = taken(own, np.flatnonzero(types >= 0))
                edges, types = edges[types >= 0], types[types >= 0]
            shape |= {
                "edge_features": own,
                "structure": self.structure, "edges": edges, "types": types,
                "n_types": max(1, len(self.edge_types_)), "directed": self._is_directed,
                "inference": "auto" if self.inference == "marginals" else self.inference,
            }  # fmt: skip
        return LabelProblem(encoded, labels, len(self.weights_.node), **shape)

    def _blocks(
        self,
        corpus: Corpus,
        encoded: Encoded,
        weights: Weights,
        constraints: Sequence[Sequence[Label]] | None,
        small: bool = False,
        compact: bool = False,
        free: bool = False,
        keep: bool = True,
    ) -> Iterator[Block]:
        """Scores of all samples, some at a time; ``small`` and ``compact`` as for potentials.

        ``free``: as if every state could follow every other; ``keep``: what training knew of some
        nodes of these samples holds, too.
        """
        allowed = None
        if constraints is not None:
            check_lengths(corpus.lengths.tolist(), constraints, "X", "constraints")
            allowed = Labels.from_lists(constraints, self.classes_).allowed()
            if self.refinement_ is not None:
                allowed = allowed[:, self.refinement_.label]
        if keep and self.keep_known and self.known_ is not None:
            known = self.known_.allowed(self._problem(corpus, encoded))
            if allowed is None or known is None:
                allowed = known if allowed is None else allowed
            else:  # what is said now holds
                allowed = np.where(allowed.all(axis=1, keepdims=True), known, allowed)
        if self.structure == "chain":
            rules = None if free else self._rules()
            yield from self._chain_blocks(corpus, encoded, weights, small, compact, rules, allowed)
            return
        for block in self._graph_blocks(corpus, encoded, weights):
            first = int(corpus.offsets[block.first])
            if allowed is not None:
                block.node[~allowed[first : first + len(block.node)]] = -np.inf
            yield block

    def _chain_blocks(
        self,
        corpus: Corpus,
        encoded: Encoded,
        weights: Weights,
        small: bool,
        compact: bool,
        rules: Rules | None,
        allowed: NDArray[np.bool_] | None,
    ) -> Iterator[Block]:
        from trellis.kernels.rich_edges import score_edges
        from trellis.kernels.scoring import score_allowed, score_nodes
        from trellis.kernels.sparse_edges import changed_steps, count_entries

        n_labels, features = len(self.states_), encoded.arguments()
        rich: Any = None if weights.edge is None else weights.edge.arguments()
        cost, size = corpus.offsets, _POSITIONS
        entries = None
        if small or (rich is not None and not (compact and rich.ptr.size)):
            size = _EDGES // n_labels**2
        elif rich is not None:
            entries = count_entries(features, rich)[corpus.offsets]
            cost, size = corpus.offsets * n_labels + 3 * entries, _EDGES
        follow = np.ones((n_labels, n_labels), np.bool_) if rules is None else rules[1]
        for a, b in _runs(cost, size):
            first, last = int(corpus.offsets[a]), int(corpus.offsets[b])
            indptr, indices, values = features
            pair, changes = weights.transitions, None
            offsets = corpus.offsets[a : b + 1] - first
            # Scores of real values are looked at before some are forbidden.
            if allowed is None or encoded.values.size:
                node = score_nodes(indptr, indices, values, weights.node, first, last)
            else:
                node = score_allowed(features, weights.node, allowed[first:last], first)
            unsound = -1
            if entries is not None:
                changes, unsound = changed_steps(
                    features, pair, rich, follow, offsets, first, entries[b] - entries[a]
                )
            elif rich is not None:
                pair = score_edges(features, pair, rich, first, last)
            if encoded.values.size:
                fine = np.isfinite(node).all(axis=1)
                if pair.ndim == 3:
                    sound = np.isfinite(pair).all(axis=(1, 2))
                    sound[offsets[:-1][np.diff(offsets) > 0]] = True  # no edge leads there
                    fine &= sound
                fine &= np.arange(len(node)) != unsound
                _check_finite(corpus, first, fine)
                if allowed is not None:
                    node[~allowed[first:last]] = -np.inf
            if rules is not None:
                start, _, end = rules
                pair = np.where(follow, pair, pair.dtype.type(-np.inf))
                filled = np.diff(offsets) > 0
                for at, may in ((offsets[:-1], start), (offsets[1:] - 1, end)):
                    node[np.ix_(at[filled], ~may)] = -np.inf
            yield Block(a, node, pair, offsets, changes=changes)

    def _rules(self) -> Rules | None:
        """Which states may begin a sequence, follow one another and end it, if not all may."""
        rules = None if self.scheme is None else get_scheme(self.scheme).validity(self.classes_)
        if self.refinement_ is None:
            return rules
        return self.refinement_.rules if rules is None else self.refinement_.with_rules(rules)

    def _graph_blocks(self, corpus: Corpus, encoded: Encoded, weights: Weights) -> Iterator[Block]:
        from trellis.kernels.scoring import score_nodes

        problem, n_labels = self._problem(corpus, encoded), len(self.classes_)
        ends, share = problem.edge_offsets, self._edge_share
        cost = corpus.offsets * n_labels + ends * (n_labels**2 if problem.is_rich else 1)
        for a, b in _runs(cost, _GRAPHS):
            first, last = int(corpus.offsets[a]), int(corpus.offsets[b])
            indptr, indices, values = encoded.arguments()
            node = score_nodes(indptr, indices, values, weights.node, first, last)
            _check_finite(corpus, first, np.isfinite(node).all(axis=1))
            ids = np.arange(ends[a], ends[b])
            if problem.is_rich:
                pair, types = problem.edge_tables(weights, ids), np.arange(len(ids))
                _check_finite_edges(corpus, problem.edges[ids], pair)
            else:
                pair, types = problem.tables(weights).astype(np.float64), problem.types[ids]
            if share != 1.0:
                pair = pair * share
            offsets = corpus.offsets[a : b + 1] - first
            yield Block(a, node, pair, offsets, problem.edges[ids] - first, types)


def unknown_labels(corpus: Corpus, classes: tuple[Any, ...]) -> Labels:
    """Label sets of all classes at all positions of a corpus."""
    n = len(classes)
    return Labels(np.full(corpus.n_positions, n, np.int32), (), classes)


def _check_finite(corpus: Corpus, first: int, fine: Any) -> None:
    """Refuse feature values that make the scores of a position infinite."""
    if fine.all():
        return
    t = first + int(np.argmin(fine))
    s = int(np.searchsorted(corpus.offsets, t, side="right")) - 1
    raise DataError(
        f"sample {s}, position {t - corpus.offsets[s]}: feature values are too large to be scored; "
        "rescale them as for training"
    )


def _check_finite_edges(corpus: Corpus, edges: Any, pair: Any) -> None:
    """Refuse feature values that make the scores of an edge infinite."""
    fine = np.isfinite(pair).all(axis=(1, 2))
    if fine.all():
        return
    ends = edges[int(np.argmin(fine))]
    s = int(np.searchsorted(corpus.offsets, ends[0], side="right")) - 1
    a, b = ends - corpus.offsets[s]
    raise DataError(
        f"sample {s}, the edge between nodes {a} and {b}: feature values are too large to be "
        "scored; rescale them as for training"
    )


def coded_edges(
    corpus: Corpus, known: tuple[str, ...]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Edges and their types as numbers, −1 for types that are not known."""
    assert corpus.edges is not None
    edges = for_kernels(corpus.edges)
    if not known:
        return edges, np.zeros(len(edges), np.int64)
    if corpus.edge_types is None:
        raise DataError("the model has types of edges, but these edges have none")
    position = {name: i for i, name in enumerate(known)}
    table = np.array([position.get(v, -1) for v in corpus.edge_types.values], np.int64)
    return edges, table[corpus.edge_types.codes]


def _runs(cost: NDArray[np.int64], size: int) -> list[tuple[int, int]]:
    """Runs of samples whose cost, a running sum, is about ``size`` each."""
    n, runs, a = len(cost) - 1, [], 0
    while a < n:
        b = int(np.searchsorted(cost, cost[a] + size, side="right")) - 1
        b = min(n, max(b, a + 1))
        runs.append((a, b))
        a = b
    return runs

"""Why a position got its label: the features and transitions that made the difference.

For the predicted label ŷ_t and the strongest other label r_t at position t, each feature
contributes v_tf · (node[f, ŷ_t] − node[f, r_t]), and what its rich edge weights add to the edges
from and to the predicted neighbours; so do the features of edges, for their ends. The transitions,
with what the features of the positions after and before add to those edges, contribute likewise.
The strongest other label is the one with the next best score given those neighbours.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.corpus import Corpus
from trellis.features import Encoded, Encoder
from trellis.html_view import labelled_text
from trellis.models.edge_features import EdgeShare
from trellis.problems import EdgeWeights, Weights
from trellis.structures import ChainPotentials, GraphPotentials

__all__ = ["Explanation", "PositionExplanation", "explain_sample"]


@dataclass(frozen=True)
class PositionExplanation:
    """One position: label, rival, and what spoke for the label (positive) or the rival."""

    symbol: str
    label: Any
    probability: float | None
    rival: Any
    transitions: float
    features: list[tuple[str, float]]
    unknown: bool


@dataclass(frozen=True, repr=False)
class Explanation:
    """Explanation of one sequence; prints as a table, and is coloured text in a notebook."""

    positions: list[PositionExplanation]

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        """The labelled text; what spoke for a label shows while the pointer is on it."""
        return labelled_text(
            [p.symbol for p in self.positions],
            [p.label for p in self.positions],
            [p.probability for p in self.positions],
            [str(Explanation([p])) for p in self.positions],
        )

    def __str__(self) -> str:
        lines = []
        for p in self.positions:
            sure = "" if p.probability is None else f"  p={p.probability:.3f}"
            rival = "" if p.rival is None else f"  rather than {p.rival}"
            lines.append(f"{p.symbol}  {p.label}{sure}{rival}")
            if p.rival is not None:
                lines.append(f"    {p.transitions:+8.3f}  transitions")
            lines += [f"    {value:+8.3f}  {name}" for name, value in p.features]
            if p.unknown:
                lines.append("              (no known feature)")
        return "\n".join(lines)


def explain_sample(
    corpus: Corpus,
    encoded: Encoded,
    encoder: Encoder,
    weights: Weights,
    classes: Sequence[Any],
    y: NDArray[Any],
    p: ChainPotentials | GraphPotentials,
    n_features: int,
    marginals: NDArray[np.float64] | None,
    own: Sequence[Sequence[EdgeShare]] | None = None,
) -> Explanation:
    """Explain the labels ``y`` of the only sample of a corpus, whose scores are ``p``.

    ``classes`` are the labels of the states that ``y`` and the columns of scores are about; a rival
    has another label. What is forbidden is none. What rich edge features add in trees and graphs
    counts with the edges, under ``transitions``; ``own`` are the features of edges at each
    position.
    """
    first = {label: i for i, label in reversed(list(enumerate(classes)))}
    same = np.array([first[label] for label in classes])  # states of one label have one number
    edges = np.zeros(p.node.shape)
    for a, b, table in _edges(p):
        edges[a] += table[:, y[b]]
        edges[b] += table[y[a], :]
    chain = isinstance(p, ChainPotentials)
    symbols = next((c.strings() for c in corpus.columns.values()), None)
    # All names at once: an encoder goes through its whole vocabulary for each request.
    known = np.unique(encoded.indices)
    name_of = dict(zip(known.tolist(), encoder.names(known), strict=True))
    positions = []
    for t, label in enumerate(y.tolist()):
        part = slice(encoded.indptr[t], encoded.indptr[t + 1])
        ids = encoded.indices[part]
        values: NDArray[Any] = encoded.values[part] if encoded.values.size else np.ones(len(ids))
        rich = np.zeros((len(ids), len(classes)))
        if chain and t > 0:
            rich += _crossed(weights.edge, len(classes), ids)[:, y[t - 1], :]
        if chain and t + 1 < len(y):
            rich += _crossed(weights.edge, len(classes), ids, back=1)[:, :, y[t + 1]]
        node, around = weights.node[ids] + rich, edges[t] - values @ rich
        others = np.where(same == same[label], -np.inf, p.node[t] + edges[t])
        rival = int(np.argmax(others)) if np.isfinite(others).any() else None
        listed = [name_of[f] for f in ids.tolist()]
        if own is not None and own[t]:
            listed += [name for name, _ in own[t]]
            added = np.array([share for _, share in own[t]])
            around = around - added.sum(axis=0)
            node = np.concatenate([node, added])
            values = np.append(values, np.ones(len(added)))
        contribution = values * (node[:, label] - (0.0 if rival is None else node[:, rival]))
        order = np.argsort(-np.abs(contribution), kind="stable")[:n_features]
        positions.append(
            PositionExplanation(
                symbol=f"{t}" if symbols is None else symbols[t],
                label=classes[label],
                probability=None if marginals is None else float(marginals[t, label]),
                rival=None if rival is None else classes[rival],
                transitions=float(around[label] - (0.0 if rival is None else around[rival])),
                features=[(listed[i], float(contribution[i])) for i in order.tolist()],
                unknown=len(ids) == 0,
            )
        )
    return Explanation(positions)


def _edges(
    p: ChainPotentials | GraphPotentials,
) -> Iterator[tuple[int, int, NDArray[np.float64]]]:
    """Ends of the edges of a sample, and their tables."""
    if isinstance(p, ChainPotentials):
        for t in range(1, len(p.node)):
            yield t - 1, t, p.trans if p.trans.ndim == 2 else p.trans[t]
    else:
        for (a, b), k in zip(p.edges.tolist(), p.types, strict=True):
            yield a, b, p.pair[k]


def _crossed(
    edge: EdgeWeights | None, n: int, features: NDArray[np.int32], back: int = 0
) -> NDArray[np.float64]:
    """Rich edge weights (features, L, L) where an edge ends, or begins (back=1); zero without."""
    tables = np.zeros((len(features), n * n))
    if edge is None or (back and not edge.both):
        return tables.reshape(-1, n, n)
    bounds = edge.rows()
    for k, row in enumerate(edge.row[features]):
        if row < 0:
            continue
        i = row + back * edge.n_crossed
        part = slice(bounds[i], bounds[i + 1])
        where = edge.pair[part] if edge.ptr.size else slice(None)
        tables[k, where] = edge.values[part]
    return tables.reshape(-1, n, n)

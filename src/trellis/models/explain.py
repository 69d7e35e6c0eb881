"""Why a position got its label: the features and transitions that made the difference.

For the predicted label ŷ_t and the strongest other label r_t at position t, each feature
contributes v_tf · (node[f, ŷ_t] − node[f, r_t]), and what its rich edge weights add to the edges
from and to the predicted neighbours; the transitions, with what the features of the positions after
and before add to those edges, contribute likewise. The strongest other label is the one with the
next best score given those neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trellis.corpus import Corpus
from trellis.features import Encoded, Encoder
from trellis.problems import EdgeWeights, Weights
from trellis.structures import GraphPotentials

__all__ = ["Explanation", "PositionExplanation", "explain_graph_sample", "explain_sample"]


@dataclass(frozen=True)
class PositionExplanation:
    """One position: label, rival, and what spoke for the label (positive) or the rival."""

    symbol: str
    label: str
    probability: float | None
    rival: str | None
    transitions: float
    features: list[tuple[str, float]]
    unknown: bool


@dataclass(frozen=True)
class Explanation:
    """Explanation of one sequence; prints as a table."""

    positions: list[PositionExplanation]

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
    classes: Sequence[str],
    labels: Sequence[str],
    n_features: int,
    marginals: NDArray[np.float64] | None,
    rules: tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]] | None = None,
) -> Explanation:
    """Explain the labels of the only sample of a corpus.

    ``rules`` are the start, transition and end rules of a tag scheme that rivals must obey.
    """
    code = {name: i for i, name in enumerate(classes)}
    y = [code[label] for label in labels]
    trans = weights.transitions.astype(np.float64)
    crossed = _Crossed(weights.edge, len(classes))
    symbols = next((c.strings() for c in corpus.columns.values()), None)
    # All names at once: an encoder goes through its whole vocabulary for each request.
    known = np.unique(encoded.indices)
    name_of = dict(zip(known.tolist(), encoder.names(known), strict=True))
    found = []
    for t, label in enumerate(y):
        part = slice(encoded.indptr[t], encoded.indptr[t + 1])
        ids = encoded.indices[part]
        values = encoded.values[part] if encoded.values.size else np.ones(len(ids))
        around = np.zeros(len(classes))
        node = weights.node[ids].astype(np.float64)
        if t > 0:
            around = around + trans[y[t - 1]]
            node = node + crossed.rows(ids)[:, y[t - 1], :]
        if t + 1 < len(y):
            around = around + trans[:, y[t + 1]]
            node = node + crossed.rows(ids, back=1)[:, :, y[t + 1]]
            after = slice(encoded.indptr[t + 1], encoded.indptr[t + 2])
            theirs = encoded.indices[after]
            strength = encoded.values[after] if encoded.values.size else np.ones(len(theirs))
            around = around + strength @ crossed.rows(theirs)[:, :, y[t + 1]]
        if t > 0:
            before = slice(encoded.indptr[t - 1], encoded.indptr[t])
            theirs = encoded.indices[before]
            strength = encoded.values[before] if encoded.values.size else np.ones(len(theirs))
            around = around + strength @ crossed.rows(theirs, back=1)[:, y[t - 1], :]
        total = around + values @ node
        may = np.ones(len(classes), bool)
        if rules is not None:
            start, follow, end = rules
            may &= follow[y[t - 1]] if t > 0 else start
            may &= follow[:, y[t + 1]] if t + 1 < len(y) else end
        may[label] = False
        others = np.flatnonzero(may)
        rival = int(others[np.argmax(total[others])]) if len(others) else None
        against = node[:, rival] if rival is not None else 0.0
        contribution = values * (node[:, label] - against)
        order = np.argsort(-np.abs(contribution), kind="stable")[:n_features]
        found.append(
            PositionExplanation(
                symbol=f"{t}" if symbols is None else symbols[t],
                label=classes[label],
                probability=None if marginals is None else float(marginals[t, label]),
                rival=None if rival is None else classes[rival],
                transitions=float(around[label] - (around[rival] if rival is not None else 0.0)),
                features=[(name_of[int(ids[i])], float(contribution[i])) for i in order],
                unknown=len(ids) == 0,
            )
        )
    return Explanation(found)


def explain_graph_sample(
    corpus: Corpus,
    encoded: Encoded,
    encoder: Encoder,
    weights: Weights,
    classes: Sequence[str],
    labels: Sequence[str],
    p: GraphPotentials,
    n_features: int,
    marginals: NDArray[np.float64] | None,
) -> Explanation:
    """Explain the labels of the only sample of a corpus with edges, whose scores are ``p``.

    What rich edge features add counts with the edges, under ``transitions``.
    """
    code = {name: i for i, name in enumerate(classes)}
    y = np.array([code[label] for label in labels], np.int64)
    around = np.zeros((len(y), len(classes)))
    for (a, b), k in zip(p.edges, p.types, strict=True):
        around[a] += p.pair[k][:, y[b]]
        around[b] += p.pair[k][y[a], :]
    symbols = next((c.strings() for c in corpus.columns.values()), None)
    known = np.unique(encoded.indices)
    name_of = dict(zip(known.tolist(), encoder.names(known), strict=True))
    found = []
    for v, label in enumerate(y.tolist()):
        part = slice(encoded.indptr[v], encoded.indptr[v + 1])
        ids = encoded.indices[part]
        values = encoded.values[part] if encoded.values.size else np.ones(len(ids))
        node = weights.node[ids].astype(np.float64)
        total = around[v] + values @ node
        total[label] = -np.inf
        rival = int(np.argmax(total)) if len(classes) > 1 else None
        against = node[:, rival] if rival is not None else 0.0
        contribution = values * (node[:, label] - against)
        order = np.argsort(-np.abs(contribution), kind="stable")[:n_features]
        rest = around[v, rival] if rival is not None else 0.0
        found.append(
            PositionExplanation(
                symbol=f"{v}" if symbols is None else symbols[v],
                label=classes[label],
                probability=None if marginals is None else float(marginals[v, label]),
                rival=None if rival is None else classes[rival],
                transitions=float(around[v, label] - rest),
                features=[(name_of[int(ids[i])], float(contribution[i])) for i in order],
                unknown=len(ids) == 0,
            )
        )
    return Explanation(found)


class _Crossed:
    """Rich edge weights of some features as dense (features, L, L) arrays; zero without any."""

    def __init__(self, edge: EdgeWeights | None, n_labels: int) -> None:
        self.edge = edge
        self.n_labels = n_labels

    def rows(self, features: NDArray[np.int32], back: int = 0) -> NDArray[np.float64]:
        """Weights of features of the position where an edge ends, or where it begins (back=1)."""
        n = self.n_labels
        found = np.zeros((len(features), n * n))
        edge = self.edge
        if edge is None or (back and not edge.both):
            return found.reshape(-1, n, n)
        bounds = edge.rows()
        for k, row in enumerate(edge.row[features]):
            if row < 0:
                continue
            i = row + back * edge.n_crossed
            part = slice(bounds[i], bounds[i + 1])
            where = edge.pair[part] if edge.ptr.size else slice(None)
            found[k, where] = edge.values[part]
        return found.reshape(-1, n, n)

"""Graphs of other libraries as samples: those of NetworkX, and adjacency matrices of SciPy.

The nodes of a graph of NetworkX are its positions, in its order; what a node holds are attributes
(or symbols of columns), but for the one that ``y`` names, which is its label. Of what an edge
holds, a string under ``type`` is its type, all else are its features. What a model says goes back
as a dict with the names of the nodes.

An adjacency matrix (n, n) has an edge for each entry that is not zero; both entries of a pair are
one edge, and the diagonal is left out. Entries other than 1 are the feature ``weight`` of edges.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import as_list
from trellis.corpus.form import Form
from trellis.errors import DataError

__all__ = ["Networks", "is_network", "plain_edges"]

_TYPE = "type"


def is_network(value: Any) -> bool:
    """Whether a value is a graph of NetworkX; nothing is imported."""
    kinds = type(value).__mro__
    return any(k.__module__.startswith("networkx.classes") for k in kinds) and hasattr(value, "adj")


class Networks(Form):
    """Graphs with names of nodes."""

    def __init__(self, graphs: Sequence[Any]) -> None:
        self.graphs = graphs
        self.nodes = [list(graph.nodes) for graph in graphs]

    def positions(self, besides: Sequence[str]) -> list[list[dict[str, Any]]]:
        """What the nodes of each graph hold, without some of it."""
        return [
            [{k: v for k, v in graph.nodes[node].items() if k not in besides} for node in nodes]
            for graph, nodes in zip(self.graphs, self.nodes, strict=True)
        ]

    def label_lists(self, y: Any, what: str = "y") -> list[Any]:
        """Labels of each graph: from an attribute, from dicts by node, or from lists in order."""
        if isinstance(y, str):
            lists = [
                [graph.nodes[node].get(y) for node in nodes]
                for graph, nodes in zip(self.graphs, self.nodes, strict=True)
            ]
            if not any(label is not None for labels in lists for label in labels):
                raise DataError(f"no node has the attribute {y!r}, which is to be its label")
            return lists
        listed = as_list(y, f"samples of {what}")
        if len(listed) != len(self.nodes):
            raise DataError(f"{what} has labels of {len(listed)} graphs, not {len(self.nodes)}")
        return [
            self._by_node(labels, s, what) if isinstance(labels, Mapping) else labels
            for s, labels in enumerate(listed)
        ]

    def _by_node(self, labels: Mapping[Any, Any], s: int, what: str) -> list[Any]:
        unknown = set(labels).difference(self.nodes[s])
        if unknown:
            raise DataError(f"{what} of sample {s} names {unknown.pop()!r}, which is no node of it")
        return [labels.get(node) for node in self.nodes[s]]

    def labels(self, each: list[list[Any]]) -> Any:
        """A dict for each graph."""
        pairs = zip(self.nodes, each, strict=True)
        return [dict(zip(nodes, labels, strict=True)) for nodes, labels in pairs]

    def chances(self, each: list[Any], classes: Sequence[Any]) -> Any:
        """A dict of dicts for each graph: the probability of each label of each node."""
        pairs = zip(self.nodes, each, strict=True)
        return [
            {
                node: dict(zip(classes, row, strict=True))
                for node, row in zip(nodes, rows.tolist(), strict=True)
            }
            for nodes, rows in pairs
        ]


class Links(NamedTuple):
    """Edges (m, 2) of a sample, their types and their features; these may be None."""

    edges: Any
    types: Any = None
    features: Any = None


def plain_edges(edges: Sequence[Any], names: Sequence[Sequence[Any] | None]) -> list[Links]:
    """Edges of each sample that may be graphs of NetworkX, matrices, or pairs of nodes by name.

    Parameters
    ----------
    edges : list
        One entry for each sample.
    names : list of lists or None
        Names of the nodes of each sample in order; None if they have none but their numbers.
    """
    found = []
    for given, own in zip(edges, names, strict=True):
        if is_network(given):
            found.append(_network_links(given, own))
        elif hasattr(given, "tocoo"):
            found.append(_matrix_links(given))
        elif own is not None and not isinstance(given, np.ndarray):
            found.append(Links(_by_name(list(given), own)))
        else:
            found.append(Links(given))
    return found


def _by_name(edges: list[Any], names: Sequence[Any]) -> list[Any]:
    """Edges whose ends are names, with numbers in their place."""
    place = {name: i for i, name in enumerate(names)}
    numbered = []
    for edge in edges:
        try:
            a, b, *rest = edge
            numbered.append((place[a], place[b], *rest))
        except KeyError as error:
            raise DataError(f"an edge names {error}, which is no node; {_few(names)}") from None
        except (TypeError, ValueError):
            raise DataError(f"an edge is {edge!r:.60}; expected the names of two nodes") from None
    return numbered


def _few(names: Sequence[Any]) -> str:
    more = ", …" if len(names) > 5 else ""
    return f"nodes are {', '.join(map(repr, names[:5]))}{more}"


def _network_links(graph: Any, names: Sequence[Any] | None) -> Links:
    listed = list(graph.edges(data=True))
    pairs = _by_name([edge[:2] for edge in listed], list(graph.nodes) if names is None else names)
    typed = [isinstance(data.get(_TYPE), str) for _, _, data in listed]
    types = [data[_TYPE] for _, _, data in listed] if listed and all(typed) else None
    held = [{k: v for k, v in data.items() if types is None or k != _TYPE} for *_, data in listed]
    return Links(np.array(pairs, np.int64).reshape(-1, 2), types, held if any(held) else None)


def _matrix_links(matrix: Any) -> Links:
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise DataError(f"an adjacency matrix must be square, got the shape {matrix.shape}")
    coo = matrix.tocoo()
    rows, columns, data = coo.row.astype(np.int64), coo.col.astype(np.int64), coo.data
    keep = (rows != columns) & (data != 0)
    rows, columns, data = rows[keep], columns[keep], data[keep]
    # Of an edge that is there both ways the entry above the diagonal stays.
    order = np.lexsort((rows > columns, np.maximum(rows, columns), np.minimum(rows, columns)))
    pairs: NDArray[np.int64] = np.stack([rows, columns], axis=1)[order]
    new = np.ones(len(pairs), bool)
    new[1:] = (np.sort(pairs[1:], axis=1) != np.sort(pairs[:-1], axis=1)).any(axis=1)
    values = np.asarray(data[order][new], np.float64).tolist()
    held = None if all(value == 1 for value in values) else [{"weight": v} for v in values]
    return Links(pairs[new], None, held)

r"""Variable elimination: exact inference on graphs of small treewidth.

Nodes are eliminated one by one. Node v then has neighbours :math:`N(v)` left; the table

.. math::

    C_v(y_v, y_{N(v)}) = n_v(y_v) + \sum_{w \in N(v)} T_{vw}(y_v, y_w)
        + \text{messages whose first node is } v,
    \qquad m_v(y_{N(v)}) = \max_{y_v} C_v \;\text{ or }\; \log \sum_{y_v} e^{C_v},

and :math:`N(v)` becomes a clique. The messages that depend on no node add up to the best score or
log Z. Backwards through the order, :math:`\arg\max_{y_v} C_v` gives the best labelling and
:math:`p(y_v \mid y_{N(v)}) = e^{C_v - m_v}` samples and marginals: :math:`N(v)` lies in the clique
of its first node, whose joint distribution is known by then.

The cost is the number of entries of all tables, :math:`\sum_v \prod_{u \in \{v\} \cup N(v)} L_u`;
the width of the order, the largest :math:`|N(v)|`, bounds the treewidth from above. Three
orders are tried: by minimal fill, by minimal table size (Koller & Friedman, *Probabilistic
Graphical Models*, Section 9.4.3) and as the nodes are numbered, which suits grids; the cheapest is
taken. Samples that have the same graph are eliminated together. Where that costs too much, nodes
are cut down to the labels allowed at them: nodes of one label drop out of the graph.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import pairwise

import numpy as np

from trellis.arrays import Float64s, Int64s
from trellis.domains import instance, takes
from trellis.errors import DataError
from trellis.structures.graph_potentials import GraphPotentials

__all__ = ["Group", "Plan", "elimination_cost", "groups", "make_plan", "plans", "plans_within"]

Pairs = Sequence[tuple[int, int]] | Int64s

_FILL_LIMIT = 1000  # nodes with a choice; minimal fill takes too long to find beyond
_REMEMBERED = 1000  # nodes of graphs whose plans are kept for the next time


@dataclass(frozen=True)
class Plan:
    """An order of elimination, with the neighbours of each node at its turn and the cost.

    The neighbours of ``order[i]`` are ``neighbours[i]``, in the order of their own elimination.
    """

    order: tuple[int, ...]
    neighbours: tuple[tuple[int, ...], ...]
    entries: float

    @property
    def width(self) -> int:
        """Largest number of neighbours."""
        return max(map(len, self.neighbours), default=0)


def make_plan(sizes: Sequence[int], edges: Pairs, limit: float = math.inf) -> Plan | None:
    """Find an order for nodes of given numbers of labels; None if its cost is above the limit."""
    many = sum(size > 1 for size in sizes) > _FILL_LIMIT
    best = None
    for kind in ("size", "given") if many else ("size", "given", "fill"):
        # An order is given up as soon as it costs more than the best, which would take far longer.
        plan = _greedy(sizes, edges, limit, kind)
        if plan is not None and (best is None or plan.entries < best.entries):
            best, limit = plan, plan.entries
    return best


@lru_cache(64)
def _plan_of(n: int, edges: bytes, kind: str, n_labels: int, limit: float) -> Plan | None:
    """Plan for a graph as one is asked for again and again, by solvers that go by samples."""
    return make_plan([n_labels] * n, np.frombuffer(edges, kind).reshape(-1, 2), limit)


def _greedy(sizes: Sequence[int], edges: Pairs, limit: float, kind: str) -> Plan | None:
    """Eliminate next the node of smallest table, of lowest number, or that adds fewest edges."""
    from trellis.kernels import elimination_order as kernel

    kinds = {"given": kernel.GIVEN, "size": kernel.SIZE, "fill": kernel.FILL}
    pairs = np.array(edges, np.int64).reshape(-1, 2)
    total, order, start, around = kernel.greedy_order(
        np.array(sizes, np.float64), pairs, float(limit), kinds[kind]
    )
    if total < 0:
        return None
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    turn = np.repeat(np.arange(len(order)), np.diff(start))
    around = around[: start[-1]]
    sorted_around = around[np.lexsort((rank[around], turn))].tolist()
    neighbours = tuple(tuple(sorted_around[a:b]) for a, b in pairwise(start.tolist()))
    return Plan(tuple(order.tolist()), neighbours, total)


@dataclass(frozen=True, eq=False)
class Group:
    """Samples of one graph that are eliminated together, B of them.

    Parameters
    ----------
    samples : list of int
        Their numbers.
    plan : Plan
        The order.
    labels : list of int arrays, or None
        The labels that each node is cut down to; None where all are kept.
    node : list of float arrays, each of shape (B, labels of the node)
        Node scores.
    ends : list of (int, int)
        The edges that are left.
    tables : list of float arrays, each of shape (B, labels of one end, labels of the other)
        Their tables.
    unit : float
        What the scores are measured in, so that p(y) is proportional to exp(s(y) / unit); a small
        one keeps sums of the largest floats finite. Scores and log Z are in this unit, too.
    """

    samples: list[int]
    plan: Plan
    labels: list[Int64s] | None
    node: list[Float64s]
    ends: list[tuple[int, int]]
    tables: list[Float64s]
    unit: float = 1.0

    def best(self) -> tuple[Int64s, Float64s]:
        """Best labelling of each sample (B, n) and its score (B,); of no meaning if -inf."""
        kept, scores = self._forward(lambda table: table.max(axis=1))
        y = np.zeros((len(self.samples), len(self.node)), np.int64)
        for v, around in self._backwards():
            y[:, v] = _given(kept[v], y, around).argmax(axis=-1)
        return self._original(y), scores

    def sample(self, uniforms: Float64s) -> tuple[Int64s, Float64s]:
        """Labellings (B, draws, n) from uniform numbers of that shape, and log Z (B,)."""
        conditional, log_z = self._conditional()
        y = np.zeros(uniforms.shape, np.int64)
        for v, around in self._backwards():
            steps = np.cumsum(_given(conditional[v], y, around), axis=-1)
            # The last label that can be drawn takes what rounding leaves.
            reach = uniforms[..., v, None] * steps[..., -1:]
            y[..., v] = np.minimum((steps <= reach).sum(axis=-1), steps.argmax(axis=-1))
        return self._original(y), log_z

    def marginals(self) -> tuple[list[Float64s], list[Float64s], Float64s]:
        """Marginals of nodes (B, labels) and edges (B, labels, labels), and log Z (B,)."""
        conditional, log_z = self._conditional()
        joint, axes = self._joint(conditional), self._axes
        rank = {v: i for i, v in enumerate(self.plan.order)}
        nodes = [_onto(joint[v], axes[v], (v,)) for v in range(len(self.node))]
        pairs = []
        for a, b in self.ends:
            if rank[a] < rank[b]:
                pairs.append(_onto(joint[a], axes[a], (a, b)))
            else:
                pairs.append(_onto(joint[b], axes[b], (b, a)).transpose(0, 2, 1))
        return nodes, pairs, log_z

    def entropies(self) -> tuple[Float64s, Float64s]:
        """Entropy of each sample (B,), the sum of E[H(y_v | its neighbours)], and log Z (B,)."""
        conditional, log_z = self._conditional()
        logarithms = {
            v: np.log(table, where=table > 0, out=np.zeros_like(table))
            for v, table in conditional.items()
        }
        total = np.zeros(len(self.samples))
        for v, table in self._joint(conditional).items():
            total -= (table * logarithms[v]).reshape(len(total), -1).sum(axis=1)
        return np.maximum(total, 0.0), log_z

    def _joint(self, conditional: dict[int, Float64s]) -> dict[int, Float64s]:
        """P(y_v, its neighbours) of every node, in the place of the conditional probabilities."""
        joint: dict[int, Float64s] = {}
        for v, around in self._backwards():
            joint[v] = conditional.pop(v)
            if around:
                joint[v] *= _onto(joint[around[0]], self._axes[around[0]], around)[:, None]
        return joint

    @cached_property
    def _axes(self) -> dict[int, tuple[int, ...]]:
        """The nodes that the table of each node is over."""
        order, neighbours = self.plan.order, self.plan.neighbours
        return {v: (v, *around) for v, around in zip(order, neighbours, strict=True)}

    def _conditional(self) -> tuple[dict[int, Float64s], Float64s]:
        """P(y_v | its neighbours) of every node (0 where they cannot be), and log Z."""
        kept, log_z = self._forward(self._log_sum, relative=True)
        for table in kept.values():
            message = self._log_sum(table)[:, None]
            np.subtract(table, np.where(np.isfinite(message), message, 0.0), out=table)
            with np.errstate(over="ignore"):  # to -inf
                np.divide(table, self.unit, out=table)
            np.exp(table, out=table)
            # Where scores are large, the message could not hold the logarithm of a few terms.
            total = table.sum(axis=1, keepdims=True)
            np.divide(table, total, where=total > 0, out=table)
        return kept, log_z

    def _log_sum(self, table: Float64s) -> Float64s:
        """The logarithm, in units, of the sum of exponentials over the first node."""
        top = table.max(axis=1)
        safe = np.where(np.isfinite(top), top, 0.0)
        with np.errstate(divide="ignore", over="ignore"):  # log 0 and exp(-inf): all is forbidden
            total: Float64s = np.log(np.exp((table - safe[:, None]) / self.unit).sum(axis=1))
        return total * self.unit + safe

    def _forward(
        self, reduce: Callable[[Float64s], Float64s], relative: bool = False
    ) -> tuple[dict[int, Float64s], Float64s]:
        """All tables C_v, and the sum of the messages that depend on no node.

        Of a relative table only differences matter: what goes into it is taken less its maximum,
        and the maxima are added to the sum, since small scores would be lost beside a large one.
        """
        waiting: dict[int, list[tuple[tuple[int, ...], Float64s]]] = {
            v: [] for v in self.plan.order
        }
        rank = {v: i for i, v in enumerate(self.plan.order)}
        for (a, b), table in zip(self.ends, self.tables, strict=True):
            if rank[a] < rank[b]:
                waiting[a].append(((a, b), table))
            else:
                waiting[b].append(((b, a), table.transpose(0, 2, 1)))
        kept: dict[int, Float64s] = {}
        total = np.zeros(len(self.samples))
        for v, around in zip(self.plan.order, self.plan.neighbours, strict=True):
            axes = (v, *around)
            table = np.zeros((len(self.samples), *(self.node[u].shape[1] for u in axes)))
            for nodes, scores in [((v,), self.node[v]), *waiting.pop(v)]:
                if relative:
                    top = scores.reshape(len(scores), -1).max(axis=1)
                    total += top
                    top = np.where(np.isfinite(top), top, 0.0)
                    scores = scores - top.reshape(-1, *[1] * len(nodes))  # noqa: PLW2901
                table += _among(scores, nodes, axes)
            kept[v] = table
            if around:
                waiting[around[0]].append((around, reduce(table)))
            else:
                total += reduce(table)
        return kept, total

    def _backwards(self) -> Iterator[tuple[int, tuple[int, ...]]]:
        return zip(self.plan.order[::-1], self.plan.neighbours[::-1], strict=True)

    def _original(self, y: Int64s) -> Int64s:
        """Labels as they were before nodes were cut down."""
        if self.labels is None:
            return y
        original = np.zeros_like(y)
        for v, kept in enumerate(self.labels):
            original[..., v] = kept[y[..., v]]
        return original


def _among(scores: Float64s, nodes: tuple[int, ...], axes: tuple[int, ...]) -> Float64s:
    """Shape scores over some nodes so that they broadcast over more; both in the same order."""
    sizes = dict(zip(nodes, scores.shape[1:], strict=True))
    return scores.reshape(len(scores), *(sizes.get(u, 1) for u in axes))


def _onto(table: Float64s, axes: tuple[int, ...], nodes: tuple[int, ...]) -> Float64s:
    """Sum a table over all its nodes but some."""
    out: Float64s = table.sum(axis=tuple(i + 1 for i, u in enumerate(axes) if u not in nodes))
    return out


def _given(table: Float64s, y: Int64s, around: tuple[int, ...]) -> Float64s:
    """Rows of a table over (v, neighbours) at the neighbours' labels: (..., labels of v)."""
    batch = np.arange(len(y)).reshape(-1, *[1] * (y.ndim - 2))
    rows: Float64s = np.moveaxis(table, 1, -1)[(batch, *(y[..., u] for u in around))]
    return rows


def plans(
    p: GraphPotentials, samples: Sequence[int], limit: float = math.inf
) -> list[tuple[Plan | None, bool]]:
    """Plan the elimination of samples; None where it costs more than the limit.

    The second of each pair tells whether the plan is for nodes cut down to their allowed labels;
    that of an unlimited search is the cheaper of both.
    """
    order, edge_offsets = p.by_sample()
    n_labels = p.node.shape[1]
    known: dict[tuple[int, bytes], Plan | None] = {}
    chosen: list[tuple[Plan | None, bool]] = []
    for s in samples:
        first, stop = p.offsets[s], p.offsets[s + 1]
        edges = p.edges[order[edge_offsets[s] : edge_offsets[s + 1]]] - first
        whole = None
        if n_labels > 1:
            key = (int(stop - first), edges.tobytes())
            if key not in known:
                make = _plan_of if key[0] <= _REMEMBERED else _plan_of.__wrapped__
                known[key] = make(*key, edges.dtype.str, n_labels, limit)
            whole = known[key]
        allowed = np.isfinite(p.node[first:stop])
        if (whole is not None and limit < math.inf) or (allowed.all() and n_labels > 1):
            chosen.append((whole, False))
            continue
        sizes = allowed.sum(axis=1).clip(min=1)
        left = edges[(sizes[edges] > 1).all(axis=1)]
        cut = make_plan(sizes.tolist(), left, limit)
        if whole is None or (cut is not None and cut.entries < whole.entries):
            chosen.append((cut, True))
        else:
            chosen.append((whole, False))
    return chosen


def plans_within(
    p: GraphPotentials, samples: Sequence[int], budget: int
) -> list[tuple[Plan, bool]]:
    """Plans of all samples; raises and says the cost if one is beyond the budget."""
    affordable = []
    for s, (plan, cut) in zip(samples, plans(p, samples, budget), strict=True):
        if plan is None:
            whole = plans(p, [s])[0][0]
            assert whole is not None  # nothing limits it
            raise DataError(
                f"sample {s}: exact inference by elimination takes {whole.entries:.3g} table "
                f"entries of 8 bytes (width {whole.width}), and budget={budget}; raise the budget "
                'or use an approximate method ("dual" for the best labelling, "bp" for marginals)'
            )
        affordable.append((plan, cut))
    return affordable


@takes(p=instance(GraphPotentials))
def elimination_cost(p: GraphPotentials) -> tuple[Int64s, Float64s]:
    """Estimate what variable elimination would cost, without running it.

    Parameters
    ----------
    p : GraphPotentials
        The scores.

    Returns
    -------
    widths : int64, shape (S,)
        Width of the best order of elimination found: an upper bound on the treewidth of the graph.
    entries : float64, shape (S,)
        Number of entries of all tables, each of 8 bytes; time is proportional to it.

    Examples
    --------
    A cycle of four nodes with ten labels has treewidth 2:

    >>> p = GraphPotentials(
    ...     np.zeros((4, 10)), np.zeros((10, 10)), [[0, 1], [1, 2], [2, 3], [3, 0]], [0, 4])
    >>> widths, entries = elimination_cost(p)
    >>> widths.tolist(), entries.tolist()
    ([2], [2110.0])
    """
    best = [plan for plan, _ in plans(p, range(p.n_samples)) if plan]
    widths = np.array([plan.width for plan in best], np.int64)
    return widths, np.array([float(plan.entries) for plan in best])


def groups(
    p: GraphPotentials,
    samples: Sequence[int],
    chosen: Sequence[tuple[Plan, bool]],
    room: int,
    unit: float = 1.0,
) -> Iterator[Group]:
    """Gather samples of one plan, as many at a time as keep their tables below ``room`` entries."""
    order, edge_offsets = p.by_sample()
    together: dict[int, list[int]] = {}
    for at, (plan, cut) in enumerate(chosen):
        together.setdefault(-1 - at if cut else id(plan), []).append(at)
    for members in together.values():
        plan, cut = chosen[members[0]]
        step = max(1, int(room / max(1, plan.entries)))
        for i in range(0, len(members), step):
            batch = [samples[at] for at in members[i : i + step]]
            rows = np.stack([np.arange(p.offsets[s], p.offsets[s + 1]) for s in batch])
            edges = np.stack([order[edge_offsets[s] : edge_offsets[s + 1]] for s in batch])
            ends = [(int(a), int(b)) for a, b in p.edges[edges[0]] - p.offsets[batch[0]]]
            node = list(p.node[rows].transpose(1, 0, 2))
            tables = [p.pair[p.types[column]] for column in edges.T]
            group = Group(batch, plan, None, node, ends, tables, unit)
            yield _cut_down(group) if cut else group


def _cut_down(group: Group) -> Group:
    """Keep only the allowed labels of each node of one sample, and drop the nodes left with one."""
    labels = [np.flatnonzero(np.isfinite(scores[0])) for scores in group.node]
    labels = [kept if len(kept) > 0 else np.zeros(1, np.int64) for kept in labels]
    node = [scores[:, kept] for scores, kept in zip(group.node, labels, strict=True)]
    ends, tables = [], []
    for (a, b), whole in zip(group.ends, group.tables, strict=True):
        table = whole[:, labels[a][:, None], labels[b]]
        if len(labels[a]) > 1 and len(labels[b]) > 1:
            ends.append((a, b))
            tables.append(table)
        elif len(labels[b]) == 1:
            node[a] = node[a] + table[:, :, 0]
        else:
            node[b] = node[b] + table[:, 0, :]
    return replace(group, labels=labels, node=node, ends=ends, tables=tables)

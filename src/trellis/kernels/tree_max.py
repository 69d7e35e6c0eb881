r"""Best and k best labellings of stacked forests.

The score s(y) and the arguments are those of :mod:`trellis.kernels.tree`.

``best`` sends maxima from the leaves to the root and reads the labels off on the way back, taking
the sums along the winning path once more instead of keeping pointers. ``kbest`` keeps, for each
node and label, the k best labellings of the subtree below: the lists of a child's labels are merged
into one for each label of its parent, and added to the parent's list, of whose pairs the k best are
kept (Huang & Chiang, 2005, algorithm 1 on a tree).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from trellis.kernels._jit import kernel, subkernel
from trellis.kernels.forest import Forest
from trellis.kernels.rows import list_depth, longest_sample, max_step, merge, padded_width

__all__ = ["best", "kbest"]

Float64s = npt.NDArray[np.float64]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]


@kernel
def best(
    node: Float64s, pair: Float64s, offsets: Int64s, forest: Forest, tree: Int64s
) -> tuple[Int32s, Float64s]:
    """Find the best labelling of each sample: labels int32 (N,), scores float64 (S,).

    A sample without a feasible labelling has the score -inf. Ties: lowest label at the node that
    comes first in the order of the forest, then at the next.
    """
    order, parent, edge, down, types = forest
    n_labels = node.shape[1]
    largest = longest_sample(tree)
    width = padded_width(n_labels)
    # Tables padded, and both ways round; those of single edges are copied tree by tree.
    per_edge = pair.shape[0] >= types.shape[0]
    n_tables = largest if per_edge else pair.shape[0]
    tables = np.full((n_tables, 2, width, width), -np.inf)
    value = np.full((largest, width), -np.inf)
    message = np.empty(width)
    labels = np.full(node.shape[0], -1, dtype=np.int32)
    scores = np.zeros(offsets.shape[0] - 1)
    s = 0
    for t in range(tree.shape[0] - 1):
        first = tree[t]
        n = tree[t + 1] - first
        while offsets[s + 1] <= first:
            s += 1
        if per_edge or t == 0:
            for slot in range(n if per_edge else n_tables):
                k = slot
                if per_edge:
                    k = types[edge[first + slot]] if slot > 0 else -1
                for i in range(n_labels if k >= 0 else 0):
                    for j in range(n_labels):
                        tables[slot, 0, i, j] = pair[k, i, j]
                        tables[slot, 1, j, i] = pair[k, i, j]
        for i in range(n):
            for j in range(n_labels):
                value[i, j] = node[order[first + i], j]
        for i in range(n - 1, 0, -1):
            slot = i if per_edge else types[edge[first + i]]
            max_step(value, i, tables, slot, 1 if down[first + i] else 0, message)
            q = parent[first + i] - first
            for j in range(n_labels):
                value[q, j] += message[j]
        for i in range(n):
            slot = i if per_edge or i == 0 else types[edge[first + i]]
            way = 0 if down[first + i] else 1
            upper = labels[order[parent[first + i]]] if i > 0 else 0
            highest = -np.inf
            label = -1
            for j in range(n_labels):
                x = value[i, j] + (tables[slot, way, upper, j] if i > 0 else 0.0)
                if x > highest:
                    highest = x
                    label = j
            if i == 0:
                scores[s] += highest
            if label < 0:
                break
            labels[order[first + i]] = label
    return labels, scores


@kernel
def kbest(
    node: Float64s, pair: Float64s, offsets: Int64s, forest: Forest, k: int
) -> tuple[Int32s, Float64s]:
    """Find the k best labellings of each sample: labels int32 (k, N), scores float64 (S, k).

    Where a sample has fewer than k feasible labellings, the rest has score -inf and labels -1.
    """
    order, parent, edge, down, types = forest
    n_samples = offsets.shape[0] - 1
    n_labels = node.shape[1]
    longest = longest_sample(offsets)
    depth = list_depth(k, n_labels, longest)
    # Row 0 is a node of one label above the roots of the sample, the others are its nodes in order.
    # For each label of a node: scores of the best labellings below, descending, of the children
    # done so far. For each label of its parent: of the list that results from adding the node's
    # message to that of the parent, for each entry its place a in the parent's list before and its
    # place b in the message, kept as a * depth + b; and for each entry of the message the label y
    # of the node and its place r in the list of y, kept as y * depth + r.
    values = np.empty((longest + 1, n_labels, depth))
    counts = np.empty((longest + 1, n_labels), dtype=np.int64)
    sums = np.empty((longest + 1, n_labels, depth), dtype=np.int64)
    origins = np.empty((longest + 1, n_labels, depth), dtype=np.int64)
    message, added = np.empty(depth), np.empty(depth)
    bonus = np.zeros(n_labels)
    heads = np.empty(max(n_labels, depth), dtype=np.int64)
    place = np.empty(longest + 1, dtype=np.int64)  # what is left to unfold of a node's list

    labels = np.full((k, node.shape[0]), -1, dtype=np.int32)
    scores = np.full((n_samples, k), -np.inf)
    for s in range(n_samples):
        first = offsets[s]
        n = offsets[s + 1] - first
        values[0, 0, 0] = 0.0
        counts[0, 0] = 1
        for i in range(n):
            for j in range(n_labels):
                values[i + 1, j, 0] = node[order[first + i], j]
                counts[i + 1, j] = 1 if node[order[first + i], j] > -np.inf else 0
        for i in range(n - 1, -1, -1):
            q = parent[first + i] - first + 1 if parent[first + i] >= 0 else 0
            for a in range(n_labels if q > 0 else 1):
                for b in range(n_labels):
                    if q == 0:
                        bonus[b] = 0.0
                    elif down[first + i]:
                        bonus[b] = pair[types[edge[first + i]], a, b]
                    else:
                        bonus[b] = pair[types[edge[first + i]], b, a]
                length = 0
                if counts[q, a] > 0:
                    length = merge(
                        values[i + 1], counts[i + 1], bonus, heads, message, origins[i + 1, a]
                    )
                length = _add(
                    values[q, a], counts[q, a], message, length, heads, added, sums[i + 1, a]
                )
                counts[q, a] = length
                for r in range(length):
                    values[q, a, r] = added[r]
        for r in range(counts[0, 0]):
            scores[s, r] = values[0, 0, r]
            place[0] = r
            for i in range(n):
                q = parent[first + i] - first + 1 if parent[first + i] >= 0 else 0
                a = labels[r, order[first + q - 1]] if q > 0 else 0
                both = sums[i + 1, a, place[q]]
                place[q] = both // depth
                origin = origins[i + 1, a, both % depth]
                labels[r, order[first + i]] = origin // depth
                place[i + 1] = origin % depth
    return labels, scores


@subkernel
def _add(
    a: Float64s,
    n_a: int,
    b: Float64s,
    n_b: int,
    heads: Int64s,
    out: Float64s,
    origins: Int64s,
) -> int:
    """List the sums a[i] + b[j] of two descending lists, best first; return how many.

    Entry i of a is looked at only after the sum a[i - 1] + b[0] was taken, which is no worse.
    """
    depth: int = out.shape[0]
    n_open = min(n_a, 1)
    heads[0] = 0
    for r in range(depth):
        highest = -np.inf
        arg = -1
        for i in range(n_open):
            if heads[i] < n_b:
                x = a[i] + b[heads[i]]
                if x > highest:
                    highest = x
                    arg = i
        if arg < 0:
            return r
        out[r] = highest
        origins[r] = arg * depth + heads[arg]
        if heads[arg] == 0 and n_open < n_a:
            heads[n_open] = 0
            n_open += 1
        heads[arg] += 1
    return depth

"""Trees of scikit-learn, as arrays that are checked before they become a tree.

Node i of a tree is a leaf, or asks whether feature f_i is at most a threshold and goes on to one of
two children. Compiled code follows children and reads features without looking at bounds, so a tree
is made only if every node but the first is the child of exactly one node before it, features are
those of the input, and the depth is what the children say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from trellis.errors import CorruptModelError
from trellis.files.stored import check_range, header_value, take

if TYPE_CHECKING:
    from trellis.files.values import ValueReader, ValueWriter

__all__ = ["is_tree", "read_tree", "write_tree"]

_LEAF = -1


def is_tree(value: object) -> bool:
    """Whether this is a tree of scikit-learn."""
    kind = type(value)
    return kind.__module__ == "sklearn.tree._tree" and kind.__name__ == "Tree"


def write_tree(tree: Any, where: str, writer: ValueWriter) -> dict[str, Any]:
    """Node of the header for a tree; its arrays go to the writer."""
    state = tree.__getstate__()
    nodes = state["nodes"]
    for kind, names in _fields(nodes.dtype).items():
        writer.arrays[f"{where}.{kind}"] = np.stack([nodes[name] for name in names])
    writer.arrays[f"{where}.values"] = state["values"]
    return {
        "arrays": where,
        "fields": _fields(nodes.dtype),
        "n_features": int(tree.n_features),
        "n_classes": [int(n) for n in tree.n_classes],
        "max_depth": int(state["max_depth"]),
    }


def read_tree(node: dict[str, Any], reader: ValueReader) -> Any:
    """Undo :func:`write_tree`, checking everything."""
    from sklearn.tree._tree import Tree

    n_classes = header_value(node, "n_classes", list, items=int)
    n_features = header_value(node, "n_features", int, low=1, high=2**31)
    if not n_classes or min(n_classes) < 1 or max(n_classes) >= 2**31:
        raise CorruptModelError("a tree has a wrong number of classes")
    tree = Tree(n_features, np.array(n_classes, np.intp), len(n_classes))
    dtype = tree.__getstate__()["nodes"].dtype
    fields = _fields(dtype)
    if header_value(node, "fields", dict) != fields:
        raise CorruptModelError(
            "a tree was written with another version of scikit-learn, whose trees are different"
        )
    where = header_value(node, "arrays", str)
    shape: tuple[int | None, ...] = (None, len(n_classes), max(n_classes))
    values = take(reader.arrays, f"{where}.values", np.float64, shape)
    nodes = np.zeros(len(values), dtype)
    for kind, names in fields.items():
        shape = (len(names), len(values))
        rows = take(reader.arrays, f"{where}.{kind}", kind, shape, finite=False)
        for name, row in zip(names, rows, strict=True):
            nodes[name] = row
    depth = _checked_depth(nodes, n_features)
    if header_value(node, "max_depth", int) != depth:
        raise CorruptModelError(f"a tree has depth {depth}, but says otherwise")
    tree.__setstate__(
        {"max_depth": depth, "node_count": len(nodes), "nodes": nodes, "values": values}
    )
    return tree


def _fields(dtype: Any) -> dict[str, list[str]]:
    """Names of the fields of a node by their type."""
    names_of: dict[str, list[str]] = {}
    for name in dtype.names:
        names_of.setdefault(dtype[name].str.lstrip("<|"), []).append(name)
    return names_of


def _checked_depth(nodes: NDArray[Any], n_features: int) -> int:
    """Depth of a tree whose nodes are as they should be."""
    left, right = nodes["left_child"], nodes["right_child"]
    inner = left != _LEAF
    if not len(nodes) or ((right != _LEAF) != inner).any():
        raise CorruptModelError("a tree has a node with one child, or none at all")
    check_range(nodes["feature"][inner], 0, n_features, "features of a tree")
    parents = np.flatnonzero(inner)
    children = np.concatenate([left[inner], right[inner]])
    check_range(children, 1, len(nodes), "children in a tree")
    before = (children > np.concatenate([parents, parents])).all()
    if not before or len(children) != len(nodes) - 1 or len(np.unique(children)) < len(children):
        raise CorruptModelError("a tree has a node that is not the child of one node before it")
    depth, level = 0, np.flatnonzero(inner[:1])
    while len(level):
        depth += 1
        below = np.concatenate([left[level], right[level]])
        level = below[inner[below]]
    return depth

"""Speed of exact inference on trees: nodes a second on one core, beside chains of the same sizes.

    python -m benchmarks.tree_marginals        # about a minute

Shapes: the dependency trees of ud_ewt (if the data are there, see TRELLIS_DATA), random trees of
20 nodes, and one path, one star and one random tree of many nodes. All have 20 labels and one table
for all edges, unless said otherwise; on the trees of ud_ewt, «typed» has one for each dependency
relation, chains always one. Scores are random. Times are those of whole calls (rooting the trees,
checking for feasibility and making the result included), by turns, medians with their range.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from benchmarks.options import begin
from benchmarks.side_by_side import Seconds, Table, alternate, ratio
from studies.datasets import load_trees
from trellis.errors import DataError
from trellis.structures import (
    ChainPotentials,
    GraphPotentials,
    best,
    entropy,
    kbest,
    marginals,
    sample,
)

Int64s = npt.NDArray[np.int64]


def random_trees(n: int, size: int, rng: np.random.Generator) -> tuple[Int64s, Int64s]:
    """Recursive trees: every node but the first hangs on one of those before, in any direction."""
    v = np.arange(n)
    place = v % size
    edges = np.stack([v, v - place + rng.integers(np.maximum(place, 1))], axis=1)[place > 0]
    turned = rng.random(len(edges)) < 0.5
    edges[turned] = edges[turned, ::-1]
    return np.append(np.arange(0, n, size), n), edges


def main() -> None:
    args = begin(__doc__, labels=(20, 3), nodes=(200_000, 500), rounds=(7, 1))
    rng = np.random.default_rng(0)
    n_labels, n = args.labels, args.nodes
    shapes = {
        "random trees of 20 nodes": random_trees(n, 20, rng),
        "one random tree": random_trees(n, n, rng),
        "one path": (np.array([0, n]), np.stack([np.arange(n - 1), np.arange(1, n)], axis=1)),
        "one star": (np.array([0, n]), np.stack([np.zeros(n - 1, int), np.arange(1, n)], axis=1)),
    }
    pair = rng.normal(size=(n_labels, n_labels))
    potentials: dict[str, GraphPotentials] = {}
    try:
        trees = load_trees()
        offsets, edges, types = trees.offsets, trees.edges, trees.edge_types.codes
        node = rng.normal(size=(trees.n_positions, n_labels))
        potentials["ud_ewt"] = GraphPotentials(node, pair, edges, offsets)
        typed = rng.normal(size=(types.max() + 1, n_labels, n_labels))
        potentials["ud_ewt, typed"] = GraphPotentials(node, typed, edges, offsets, types)
    except DataError as error:
        print(f"without ud_ewt: {error}")
    for name, (offsets, edges) in shapes.items():
        node = rng.normal(size=(n, n_labels))
        potentials[name] = GraphPotentials(node, pair, edges, offsets)

    unit = "millions of nodes a second"
    table = Table(
        f"Marginals and log Z, {n_labels} labels, {unit}",
        *("shape", "nodes", "trees", "chains", "time of trees over chains"),
    )
    for name, p in potentials.items():
        chain = ChainPotentials(p.node, pair, p.offsets)
        runs = {"tree": lambda p=p: marginals(p), "chain": lambda c=chain: marginals(c)}
        table.add(name, len(p.node), *speeds(runs, len(p.node), args.rounds))
    table.show()

    p = potentials.get("ud_ewt", potentials["random trees of 20 nodes"])
    chain = ChainPotentials(p.node, pair, p.offsets)
    own = GraphPotentials(p.node, p.pair[p.types], p.edges, p.offsets)
    others: dict[str, tuple[Callable[[], object], Callable[[], object] | None]] = {
        "best": (lambda: best(p), lambda: best(chain)),
        "5 best": (lambda: kbest(p, 5), lambda: kbest(chain, 5)),
        "pairs": (lambda: marginals(p, pairs=True), lambda: marginals(chain, pairs=True)),
        "entropy": (lambda: entropy(p), None),
        "a draw": (lambda: sample(p, 1, np.random.default_rng(0)), None),
        "marginals, a table for each edge": (lambda: marginals(own), None),
    }
    title = f"The other questions, the first shape, {unit}"
    table = Table(title, "question", "trees", "chains", "time of trees over chains")
    for name, (tree, same) in others.items():
        runs = {"tree": tree, **({"chain": same} if same else {})}
        table.add(name, *speeds(runs, len(p.node), args.rounds))
    table.show()


def speeds(runs: dict[str, Callable[[], object]], n: int, rounds: int) -> list[str]:
    """Millions of nodes a second of trees and of chains (if any), and the ratio of the times."""
    alternate(runs, 1)  # loads the kernels
    times = [run.wall for run in alternate(runs, rounds)]
    told = [str(Seconds(n / t / 1e6 for t in wall)) for wall in times]
    return [*told, ratio(*times)] if len(times) == 2 else [*told, "", ""]


if __name__ == "__main__":
    main()

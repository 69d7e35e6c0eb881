"""Speed of exact inference on trees: nodes a second on one core, beside chains of the same sizes.

    python -m benchmarks.tree_marginals        # about a minute

Shapes: the dependency trees of ud_ewt (if the data are there, see TRELLIS_DATA), random trees of
20 nodes, and one path, one star and one random tree of many nodes. All have 20 labels and one table
for all edges, unless said otherwise; on the trees of ud_ewt, «typed» has one for each dependency
relation. Scores are random. Times are those of whole calls (rooting the trees, checking for
feasibility and making the result included), the contestants by turns, medians with their range.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from benchmarks.side_by_side import Times, alternate, one_core, ratio, table
from studies.datasets import load
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


def treebank() -> tuple[Int64s, Int64s, Int64s]:
    """Offsets, edges (dependent, head) and relations of the training sentences of ud_ewt."""
    corpus = load("ud_ewt").train
    head = np.array([int(number) for number in corpus.columns["head"].strings()])
    base = np.repeat(corpus.offsets[:-1], np.diff(corpus.offsets))
    hangs = np.flatnonzero(head > 0)
    edges = np.stack([hangs, (base + head - 1)[hangs]], axis=1)
    return corpus.offsets, edges, corpus.columns["deprel"].codes[hangs].astype(np.int64)


def random_trees(n: int, size: int, rng: np.random.Generator) -> tuple[Int64s, Int64s]:
    """Recursive trees: every node but the first hangs on one of those before, in any direction."""
    v = np.arange(n)
    place = v % size
    edges = np.stack([v, v - place + rng.integers(np.maximum(place, 1))], axis=1)[place > 0]
    turned = rng.random(len(edges)) < 0.5
    edges[turned] = edges[turned, ::-1]
    return np.append(np.arange(0, n, size), n), edges


def main() -> None:
    parser = argparse.ArgumentParser(description="Speed of exact inference on trees.")
    parser.add_argument("--labels", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()
    one_core()
    rng = np.random.default_rng(0)
    n_labels, n = args.labels, 200_000
    shapes = {
        "random trees of 20 nodes": random_trees(n, 20, rng),
        "one random tree": random_trees(n, n, rng),
        "one path": (np.array([0, n]), np.stack([np.arange(n - 1), np.arange(1, n)], axis=1)),
        "one star": (np.array([0, n]), np.stack([np.zeros(n - 1, int), np.arange(1, n)], axis=1)),
    }
    pair = rng.normal(size=(n_labels, n_labels))
    potentials: dict[str, GraphPotentials] = {}
    try:
        offsets, edges, relations = treebank()
        node = rng.normal(size=(offsets[-1], n_labels))
        potentials["ud_ewt"] = GraphPotentials(node, pair, edges, offsets)
        typed = rng.normal(size=(relations.max() + 1, n_labels, n_labels))
        potentials["ud_ewt, typed"] = GraphPotentials(node, typed, edges, offsets, relations)
    except DataError as error:
        print(f"without ud_ewt: {error}")
    for name, (offsets, edges) in shapes.items():
        node = rng.normal(size=(n, n_labels))
        potentials[name] = GraphPotentials(node, pair, edges, offsets)

    rows = []
    for name, p in potentials.items():
        chain = ChainPotentials(p.node, pair, p.offsets)
        runs = {"tree": lambda p=p: marginals(p), "chain": lambda c=chain: marginals(c)}
        found = timed(runs, args.rounds)
        rows.append([name, f"{len(p.node):,}", *speeds(found, len(p.node)), ratio(*found)])
    print(f"\nMarginals and log Z, {n_labels} labels, millions of nodes a second:\n")
    print(table(["shape", "nodes", "trees", "chains", "time of trees over chains"], rows))

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
    rows = []
    for name, (tree, same) in others.items():
        found = timed({"tree": tree, **({"chain": same} if same else {})}, args.rounds)
        told = speeds(found, len(p.node)) + ([] if same else [""])
        rows.append([name, *told, ratio(*found) if same else ""])
    print("\nThe other questions, the first shape:\n")
    print(table(["question", "trees", "chains", "time of trees over chains"], rows))


def timed(runs: dict[str, Callable[[], object]], rounds: int) -> list[Times]:
    """Run all by turns, once before to compile and warm up."""
    alternate(runs, 1)
    return alternate(runs, rounds)


def speeds(found: list[Times], n: int) -> list[str]:
    """Millions of nodes a second: median over the rounds, and the range."""
    return [
        f"{n / t.median / 1e6:.2f} ({n / max(t.seconds) / 1e6:.2f}–{n / min(t.seconds) / 1e6:.2f})"
        for t in found
    ]


if __name__ == "__main__":
    main()

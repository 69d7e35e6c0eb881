"""Best labellings of loopy graphs: score, bound and time of every method.

Grids and random graphs of 3 and 10 labels, with normal node scores. «Potts» tables give 1 to equal
labels at the ends of an edge (attractive); «mixed» ones are normal, one table for each edge. The
gap of a method is its own bound less its own score; «below best» is how far its score lies below
the best score known (that of an exact method, or the least bound if none finished in time). «BP» is
the most probable label of each node by loopy belief propagation, improved one label at a time, as
all labellings are; it has no bound.

    python -m benchmarks.graph_inference [--quick] [--time-limit 20]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

from benchmarks.side_by_side import one_core, table
from trellis.structures import GraphPotentials, best, elimination_cost, marginals
from trellis.structures.dual_decomposition import improved
from trellis.structures.message_graph import MessageGraph

BUDGET = 30_000_000


def grid(height: int, width: int) -> np.ndarray:
    at = np.arange(height * width).reshape(height, width)
    right = np.stack([at[:, :-1].ravel(), at[:, 1:].ravel()], axis=1)
    down = np.stack([at[:-1].ravel(), at[1:].ravel()], axis=1)
    return np.concatenate([right, down])


def random_graph(n: int, n_edges: int, rng: np.random.Generator) -> np.ndarray:
    pairs = np.stack(np.triu_indices(n, 1), axis=1)
    return pairs[np.sort(rng.choice(len(pairs), n_edges, replace=False))]


def problem(edges: np.ndarray, n: int, n_labels: int, kind: str, seed: int) -> GraphPotentials:
    rng = np.random.default_rng(seed)
    pair = np.eye(n_labels)
    if kind == "mixed":
        pair = rng.normal(size=(len(edges), n_labels, n_labels))
    return GraphPotentials(rng.normal(size=(n, n_labels)), pair, edges, [0, n])


def by_marginals(p: GraphPotentials) -> tuple[float, float, str]:
    found = marginals(p, method="bp")
    labels = found.node.argmax(axis=1).astype(np.int32)
    score = improved(p, MessageGraph.of(p), labels)[1][0]
    note = "" if found.converged[0] else "BP did not converge"
    return float(score), np.inf, note


def by(method: str, **options: object) -> Callable[[GraphPotentials], tuple[float, float, str]]:
    def run(p: GraphPotentials) -> tuple[float, float, str]:
        found = best(p, method=method, **options)  # type: ignore[arg-type]
        return float(found.scores[0]), float(found.bounds[0]), "exact" if found.exact[0] else ""

    return run


def compare(name: str, p: GraphPotentials, time_limit: float) -> list[list[str]]:
    runs = {
        "dual": by("dual"),
        "LP": by("lp"),
        "BP": by_marginals,
        "ILP": by("ilp", time_limit=time_limit),
    }
    if elimination_cost(p)[1][0] <= BUDGET:
        runs = {"elimination": by("elimination", budget=BUDGET), **runs}
    found = {}
    for method, run in runs.items():
        started = time.perf_counter()
        found[method] = (*run(p), time.perf_counter() - started)
    exact = [score for score, _, note, _ in found.values() if note == "exact"]
    known = max(exact) if exact else min(bound for _, bound, _, _ in found.values())
    return [
        [
            name,
            method,
            f"{score:.3f}",
            "–" if np.isinf(bound) else f"{bound - score:.3f}",
            f"{max(known - score, 0.0):.3f}" if exact else f"≤ {known - score:.3f}",
            f"{seconds:.3f}",
            note,
        ]
        for method, (score, bound, note, seconds) in found.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="only the small graphs")
    parser.add_argument("--time-limit", type=float, default=20.0, help="seconds for the ILP")
    options = parser.parse_args()
    one_core()
    small = problem(grid(2, 2), 4, 2, "mixed", 0)
    for run in (by("dual"), by("lp"), by_marginals, by("ilp")):
        run(small)  # compiles the kernels

    graphs = [("grid 8×8", grid(8, 8), 64)]
    rng = np.random.default_rng(7)
    graphs.append(("random, 60 nodes, 120 edges", random_graph(60, 120, rng), 60))
    if not options.quick:
        graphs.append(("grid 16×16", grid(16, 16), 256))
    rows = []
    for name, edges, n in graphs:
        for n_labels in (3, 10):
            for kind in ("Potts", "mixed"):
                p = problem(edges, n, n_labels, kind, seed=1)
                rows += compare(f"{name}, {n_labels} labels, {kind}", p, options.time_limit)
    header = ["graph", "method", "score", "gap", "below best", "seconds", ""]
    print(table(header, rows))

    if options.quick:
        return
    p = problem(grid(100, 100), 10_000, 10, "Potts", seed=2)
    rows = []
    for n in (1, 5, 20, 100):
        started = time.perf_counter()
        decoded = best(p, method="dual", max_iterations=n)
        seconds = time.perf_counter() - started
        gap = 100 * decoded.gap[0] / abs(decoded.bounds[0])
        rows.append([str(n), f"{decoded.scores[0]:.2f}", f"{gap:.3f} %", f"{seconds:.3f}"])
    print("\nDual decomposition on a grid of 100×100 with 10 labels, Potts:\n")
    print(table(["turns", "score", "gap", "seconds"], rows))


if __name__ == "__main__":
    main()

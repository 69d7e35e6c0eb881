"""Best labellings of loopy graphs: score, bound and time of every method.

Grids and random graphs of 3 and 10 labels, with normal node scores. «Potts» tables give 1 to equal
labels at the ends of an edge (attractive); «mixed» ones are normal, one table for each edge. The
gap of a method is its own bound less its own score; «below best» is how far its score lies below
the best score known (that of an exact method, or the least bound if none finished in time). «BP» is
the most probable label of each node by loopy belief propagation, improved by moves on trees, as all
labellings are; it has no bound.

    python -m benchmarks.graph_inference [--time-limit 20]
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from benchmarks.options import begin
from benchmarks.side_by_side import Table, once
from trellis.datasets import grid_edges
from trellis.structures import GraphPotentials, best, elimination_cost, marginals
from trellis.structures.dual_decomposition import moved
from trellis.structures.message_graph import MessageGraph

BUDGET = 30_000_000


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
    rounds, bounds, tolerance = np.array([100]), np.array([np.inf]), np.zeros(1)
    score = moved(p, MessageGraph.of(p), labels, rounds, bounds, tolerance)[1][0]
    note = "" if found.converged[0] else "BP did not converge"
    return float(score), np.inf, note


def by(method: str, **options: object) -> Callable[[GraphPotentials], tuple[float, float, str]]:
    def run(p: GraphPotentials) -> tuple[float, float, str]:
        found = best(p, method=method, **options)  # type: ignore[arg-type]
        return float(found.scores[0]), float(found.bounds[0]), "exact" if found.exact[0] else ""

    return run


def compare(name: str, p: GraphPotentials, time_limit: float, table: Table) -> None:
    """A row for each method that can be used."""
    methods = {
        "elimination": by("elimination", budget=BUDGET),
        "dual": by("dual"),
        "LP": by("lp"),
        "BP": by_marginals,
        "ILP": by("ilp", time_limit=time_limit),
    }
    if elimination_cost(p)[1][0] > BUDGET:
        del methods["elimination"]
    answers = {method: once(lambda run=run: run(p)) for method, run in methods.items()}
    exact = [score for (score, _, note), _ in answers.values() if note == "exact"]
    known = max(exact) if exact else min(bound for (_, bound, _), _ in answers.values())
    for method, ((score, bound, note), seconds) in answers.items():
        gap = "–" if np.isinf(bound) else f"{bound - score:.3f}"
        below = f"{max(known - score, 0.0):.3f}" if exact else f"≤ {known - score:.3f}"
        table.add(name, method, f"{score:.3f}", gap, below, seconds, note)


def main() -> None:
    args = begin(
        __doc__,
        sides=([8, 16], [3], "of the grids that all methods try"),
        nodes=(60, 8, "of the random graph"),
        large_side=(100, 10, "of the grid for dual decomposition alone"),
        labels=([3, 10], [3]),
        time_limit=(20.0, 20.0, "seconds for the ILP"),
    )
    header = ("graph", "method", "score", "gap", "below best", "seconds", "note")
    smallest = problem(grid_edges(2, 2), 4, 2, "mixed", 0)
    compare("loads the kernels", smallest, 1.0, Table("", *header))
    graphs = [(f"grid {side}×{side}", grid_edges(side, side), side**2) for side in args.sides]
    n = args.nodes
    edges = random_graph(n, 2 * n, np.random.default_rng(7))
    graphs.insert(1, (f"random, {n} nodes, {2 * n} edges", edges, n))
    table = Table("Best labellings", *header)
    for name, edges, n in graphs:
        for n_labels in args.labels:
            for kind in ("Potts", "mixed"):
                p = problem(edges, n, n_labels, kind, seed=1)
                compare(f"{name}, {n_labels} labels, {kind}", p, args.time_limit, table)
    table.show()

    side = args.large_side
    p = problem(grid_edges(side, side), side**2, 10, "Potts", seed=2)
    title = f"Dual decomposition on a grid of {side}×{side} with 10 labels, Potts"
    table = Table(title, "turns", "score", "gap", "seconds")
    for turns in (1, 5, 20, 100):
        decoded, seconds = once(partial(best, p, method="dual", max_iterations=turns))
        gap = 100 * decoded.gap[0] / abs(decoded.bounds[0])
        table.add(turns, f"{decoded.scores[0]:.2f}", f"{gap:.3f} %", seconds)
    table.show()


if __name__ == "__main__":
    main()

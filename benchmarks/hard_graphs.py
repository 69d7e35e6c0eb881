"""Best labellings of hard graphs: value, proven gap and time beside toulbar2 and HiGHS.

Eight kinds of scores, normal ones at the nodes. «Potts+» tables give equal labels at the ends of an
edge a positive number of its own, the size of a normal one; «Potts±» ones a normal number, so that
no labelling pleases all edges; «random» tables are normal in all entries; so are those of a sparse
graph, whose nodes have three neighbours on average. «Trellis» is ``best`` as it is, «more rounds»
with ``rounds`` that take up to a second more, «HiGHS» our integer program.

toulbar2 takes whole seconds as limits. It is asked four times: with its default options, with
stronger bounds (virtual arc consistency), with these and probing for labellings (RASPS), and for a
variable neighbourhood search. «Value» is the mean score, «below best» how far it lies below the
best of all methods, «gap» the mean of the method's own bound less its value, «proven» the share of
graphs without gap. Where a method found no labelling of a graph, there is no value.

    python -m benchmarks.hard_graphs [--seeds 3] [--limits 1 10]
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from importlib.util import find_spec
from multiprocessing import get_context
from typing import NamedTuple

import numpy as np

from benchmarks.options import begin
from benchmarks.side_by_side import Table
from trellis.datasets import grid_edges
from trellis.structures import GraphPotentials, best, labelling_score


class Answer(NamedTuple):
    """What a method found: NaN where it found nothing."""

    value: float
    bound: float
    seconds: float


def grid(side: int, n_labels: int, tables: str) -> Callable[[np.random.Generator], GraphPotentials]:
    def make(rng: np.random.Generator) -> GraphPotentials:
        edges = grid_edges(side, side)
        node = rng.normal(size=(side**2, n_labels))
        strength = rng.normal(size=(len(edges), 1, 1))
        if tables == "random":
            pair = rng.normal(size=(len(edges), n_labels, n_labels))
        else:
            pair = (np.abs(strength) if tables == "Potts+" else strength) * np.eye(n_labels)
        return GraphPotentials(node, pair, edges, [0, side**2])

    return make


def sparse(n: int, n_labels: int) -> Callable[[np.random.Generator], GraphPotentials]:
    def make(rng: np.random.Generator) -> GraphPotentials:
        pairs = np.stack(np.triu_indices(n, 1), axis=1)
        edges = pairs[np.sort(rng.choice(len(pairs), 3 * n // 2, replace=False))]
        pair = rng.normal(size=(len(edges), n_labels, n_labels))
        return GraphPotentials(rng.normal(size=(n, n_labels)), pair, edges, [0, n])

    return make


def kinds(shrink: int) -> dict[str, Callable[[np.random.Generator], GraphPotentials]]:
    sizes = [
        ("Potts+", 30, 5), ("Potts+", 50, 10), ("Potts±", 20, 3), ("Potts±", 30, 5),
        ("Potts±", 50, 2), ("random", 20, 3), ("random", 30, 5),
    ]  # fmt: skip
    made = {
        f"{tables} {side // shrink}×{side // shrink}, {n} labels": grid(side // shrink, n, tables)
        for tables, side, n in sizes
    }
    nodes = 900 // shrink**2
    return made | {f"sparse, {nodes} nodes, 4 labels": sparse(nodes, 4)}


def ours(**options: object) -> Callable[[GraphPotentials], Answer]:
    def run(p: GraphPotentials) -> Answer:
        started = time.process_time()
        found = best(p, **options)  # type: ignore[arg-type]
        seconds = time.process_time() - started
        return Answer(float(found.scores[0]), float(found.bounds[0]), seconds)

    return run


SEARCHES: dict[str, dict[str, int]] = {
    "": {}, ", bounds": {"vac": 1}, ", probing": {"vac": 1, "rasps": 1},
    ", neighbourhoods": {"vns": -4},
}  # fmt: skip


def toulbar2(limit: int, options: dict[str, int]) -> Callable[[GraphPotentials], Answer]:
    def run(p: GraphPotentials) -> Answer:
        # Its options are global and outlive a search, so each has a process of its own.
        with ProcessPoolExecutor(1, get_context("spawn")) as one:
            return one.submit(by_toulbar2, p, limit, options).result()

    return run


def by_toulbar2(p: GraphPotentials, limit: int, options: dict[str, int]) -> Answer:
    from pytoulbar2 import CFN

    # It minimises decimal costs of at least zero.
    top, tops = p.node.max(axis=1), p.pair.max(axis=(1, 2))[p.types]
    probing = options.pop("rasps", 0)
    network = CFN(resolution=6, **options)
    network.Option.useRASPS, network.Option.VACthreshold = probing, probing > 0
    for v, scores in enumerate(p.node):
        network.AddVariable(f"v{v}", range(len(scores)))
        network.AddFunction([v], (top[v] - scores).tolist())
    for (a, b), k, most in zip(p.edges.tolist(), p.types, tops, strict=True):
        network.AddFunction([a, b], (most - p.pair[k]).ravel().tolist())
    started = time.process_time()
    solved = network.Solve(timeLimit=limit)
    seconds = time.process_time() - started
    bound = float(top.sum() + tops.sum()) - network.GetDDualBound()
    if solved is None:
        return Answer(np.nan, bound, seconds)
    value = float(labelling_score(p, solved[0])[0])
    return Answer(value, max(bound, value), seconds)


def main() -> None:
    args = begin(
        __doc__,
        seeds=(3, 1, "graphs of each kind"),
        limits=([1, 10], [1], "seconds of toulbar2; the last of HiGHS, too"),
        shrink=(1, 5, "how many times smaller the sides are"),
    )
    there = find_spec("pytoulbar2") is not None
    table = Table(
        "Best labellings of hard graphs",
        "graph", "method", "value", "below best", "gap", "proven", "CPU s",
    )  # fmt: skip
    for name, make in kinds(args.shrink).items():
        graphs = [make(np.random.default_rng(seed)) for seed in range(args.seeds)]
        rounds = 2_500_000 // len(graphs[0].node) // args.shrink**4
        methods = {
            "Trellis": ours(),
            "Trellis, more rounds": ours(rounds=rounds),
            f"HiGHS, {args.limits[-1]} s": ours(method="ilp", time_limit=float(args.limits[-1])),
        }
        for limit in args.limits if there else []:
            for search, options in SEARCHES.items():
                methods[f"toulbar2{search}, {limit} s"] = toulbar2(limit, options)
        answers = {method: [run(p) for p in graphs] for method, run in methods.items()}
        known = np.nanmax([[one.value for one in found] for found in answers.values()], axis=0)
        for method, found in answers.items():
            value, bound, seconds = np.array(found).T
            gap = bound - value
            shown = [
                "–" if np.isnan(x).any() else f"{x.mean():.3f}" for x in (value, known - value, gap)
            ]
            table.add(name, method, *shown, f"{(gap <= 1e-4).mean():.0%}", float(seconds.mean()))
    table.show()
    if not there:
        print("\ntoulbar2 is left out: not installed (pip install pytoulbar2)")


if __name__ == "__main__":
    main()

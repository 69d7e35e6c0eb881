"""A Gaussian CRF as published on a graph of a million nodes: learning, mean, standard deviations.

    python -m benchmarks.gcrf_scale             # 10^6 nodes, 5 nearest neighbours
    python -m benchmarks.gcrf_scale --nodes 100000

The base predictions and the graph are given; what is timed is the GCRF alone. The targets are drawn
from a field with known smoothing, so that the learnt gamma = beta/alpha can be compared. Nothing is
observed (``observed=False``): ``benchmarks.map_scale`` is about the default.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from benchmarks.options import begin
from benchmarks.side_by_side import Table, once, peak
from trellis.regression import GCRF, knn_graph, laplacian, normalise
from trellis.regression.spectral import solve

ALPHA, GAMMA = 2.0, 3.0


def main() -> None:
    args = begin(__doc__, pin=False, nodes=(1_000_000, 2000), probes=(16, 4))
    rng = np.random.default_rng(0)
    places = rng.uniform(size=(args.nodes, 2)) * np.sqrt(args.nodes)
    S, graph = once(lambda: knn_graph(places, n_neighbors=5))
    r = rng.normal(size=args.nodes)
    y = draw(laplacian(normalise(S)), r, rng)
    model = GCRF("precomputed", observed=False, n_probes=args.probes, random_state=0)
    table = Table(
        f"{args.nodes:,} nodes, {S.nnz // 2:,} edges, {args.probes} probes",
        *("step", "seconds", "peak GB so far"),
    )
    table.add("graph", graph, peak())
    table.add("learning", once(lambda: model.fit(r, y, graph=S))[1], peak())
    table.add("mean", once(lambda: model.predict(r, graph=S))[1], peak())
    (mean, std), seconds = once(lambda: model.predict(r, graph=S, return_std=True))
    table.add("mean and standard deviations", seconds, peak())
    table.show()
    table = Table("what was learnt", "quantity", "value", "truth")
    table.add("alpha", f"{model.alpha_:.4f}", ALPHA)
    table.add("gamma", f"{model.beta_ / model.alpha_:.4f}", GAMMA)
    table.add("mean squared error", f"{np.mean((y - mean) ** 2):.4f}", "")
    covered = np.mean(np.abs(y - mean) < 1.6449 * std)
    table.add("% of nodes in 90 % intervals", f"{100 * covered:.2f}", 90)
    table.show()


def draw(L: sp.csr_array, r: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw y ~ N(K^-1 r, (2 alpha K)^-1), K = I + gamma L.

    With K = I + B'B, B an edge's weighted difference in each row, u = w + B'v for standard normal
    w, v has the covariance K, and K^-1 u the covariance K^-1.
    """
    upper = sp.triu(-GAMMA * L, k=1).tocoo()
    root = np.sqrt(upper.data) * rng.normal(size=upper.nnz)
    u = rng.normal(size=len(r))
    np.add.at(u, upper.row, root)
    np.add.at(u, upper.col, -root)
    return solve(L, GAMMA, r + u / np.sqrt(2 * ALPHA))


if __name__ == "__main__":
    main()

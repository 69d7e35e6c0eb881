"""A Gaussian CRF on a graph of a million nodes: learning, predicted mean, standard deviations.

    python -m benchmarks.gcrf_scale             # 10^6 nodes, 5 nearest neighbours
    python -m benchmarks.gcrf_scale --nodes 100000

The base predictions and the graph are given; what is timed is the GCRF alone. The targets are drawn
from a field with known smoothing, so that the learnt gamma = beta/alpha can be compared.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np

from trellis.regression import GCRF, knn_graph, laplacian, normalise
from trellis.regression.spectral import solve

ALPHA, GAMMA = 2.0, 3.0


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--nodes", type=int, default=1_000_000)
    arguments.add_argument("--probes", type=int, default=16)
    args = arguments.parse_args()
    rng = np.random.default_rng(0)

    start = time.perf_counter()
    S = knn_graph(rng.uniform(size=(args.nodes, 2)) * np.sqrt(args.nodes), n_neighbors=5)
    print(f"graph: {args.nodes} nodes, {S.nnz // 2} edges, {time.perf_counter() - start:.1f} s")
    r = rng.normal(size=args.nodes)
    y = _draw(laplacian(normalise(S)), r, rng)

    model = GCRF("precomputed", n_probes=args.probes, random_state=0)
    start = time.perf_counter()
    model.fit(r, y, graph=S)
    learnt = time.perf_counter()
    mean = model.predict(r, graph=S)
    predicted = time.perf_counter()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"alpha {model.alpha_:.4f} (true {ALPHA}), ", end="")
    print(f"gamma {model.beta_ / model.alpha_:.4f} (true {GAMMA})")
    print(f"learning {learnt - start:.1f} s, mean {predicted - learnt:.1f} s, {memory:.2f} GiB")
    print(f"mean squared error {np.mean((y - mean) ** 2):.4f}")

    start = time.perf_counter()
    mean, std = model.predict(r, graph=S, return_std=True)
    print(f"standard deviations ({args.probes} probes) {time.perf_counter() - start:.1f} s")
    covered = np.mean(np.abs(y - mean) < 1.6449 * std)
    print(f"90 % intervals cover {100 * covered:.2f} % of the nodes")


def _draw(L: object, r: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw y ~ N(K^-1 r, (2 alpha K)^-1), K = I + gamma L.

    With K = I + B'B, B an edge's weighted difference in each row, u = w + B'v for standard normal
    w, v has the covariance K, and K^-1 u the covariance K^-1.
    """
    import scipy.sparse as sp

    upper = sp.triu(-GAMMA * L, k=1).tocoo()
    root = np.sqrt(upper.data) * rng.normal(size=upper.nnz)
    u = rng.normal(size=len(r))
    np.add.at(u, upper.row, root)
    np.add.at(u, upper.col, -root)
    return solve(L, GAMMA, r + u / np.sqrt(2 * ALPHA))


if __name__ == "__main__":
    main()

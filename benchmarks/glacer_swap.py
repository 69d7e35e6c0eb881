"""GLACER: seconds a swap at N = 3000, M = 10, 900 examples a component.

    python -m benchmarks.glacer_swap                     # 10 swaps on two processes
    python -m benchmarks.glacer_swap --graph knn --jobs 1

The graph is an Erdős-Rényi graph of average degree 10 or a 5-nearest-neighbour graph; each swap is
at most 34 refits of boosting and Gaussian CRF, and 45 evaluations of R_obj on all examples.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import scipy.sparse as sp

from trellis.regression import GLACER, knn_graph, laplacian, normalise
from trellis.regression.spectral import solve


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--graph", choices=["random", "knn"], default="random")
    arguments.add_argument("--nodes", type=int, default=3000)
    arguments.add_argument("--components", type=int, default=10)
    arguments.add_argument("--swaps", type=int, default=10)
    arguments.add_argument("--jobs", type=int, default=2)
    args = arguments.parse_args()
    rng = np.random.default_rng(0)
    X = rng.normal(size=(args.nodes, 5))
    rough = X @ rng.uniform(size=5) + (X**2) @ rng.uniform(size=5) + rng.normal(size=args.nodes)
    if args.graph == "knn":
        S = knn_graph(X[:, :2], n_neighbors=5)
    else:
        upper = sp.triu(sp.random_array((args.nodes,) * 2, density=10 / args.nodes, rng=rng), k=1)
        i, j = upper.nonzero()
        S = sp.csr_array((np.exp(-np.abs(rough[i] - rough[j])), (i, j)), shape=upper.shape)
        S = S + S.T
    y = solve(laplacian(normalise(S)), 5.0, rough)
    model = GLACER(args.components, max_swaps=args.swaps, n_jobs=args.jobs, random_state=0)
    start = time.perf_counter()
    model.fit(X, y, graph=S)
    print(f"{time.perf_counter() - start:.1f} s in all, {args.jobs} process(es)")
    for number, record in enumerate(model.history_):
        print(
            f"{number:3d}  R_obj {record.r_obj:.6f}  R_emp {record.r_emp:.6f}  dCorr"
            f" {record.dcorr:.6f}  {record.n_pairs:3d} pairs  {record.n_refits:3d} refits"
            f"  {record.seconds:.2f} s"
        )


if __name__ == "__main__":
    main()

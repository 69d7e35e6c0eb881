"""GLACER: seconds a swap at N = 3000, M = 10, 900 examples a component.

    python -m benchmarks.glacer_swap                     # 10 swaps on two processes
    python -m benchmarks.glacer_swap --knn --jobs 1

The graph is an Erdős-Rényi graph of average degree 10 or a 5-nearest-neighbour graph; each swap is
at most 34 refits of boosting and Gaussian CRF, and 45 evaluations of R_obj on all examples.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from benchmarks.options import begin
from benchmarks.side_by_side import Table, once, short
from trellis.regression import GLACER, knn_graph, laplacian, normalise
from trellis.regression.spectral import solve


def main() -> None:
    args = begin(
        __doc__,
        pin=False,
        knn=(False, False, "the graph of nearest neighbours"),
        nodes=(3000, 300),
        components=(10, 3),
        swaps=(10, 2),
        jobs=(2, 1, "processes"),
    )
    rng = np.random.default_rng(0)
    X = rng.normal(size=(args.nodes, 5))
    rough = X @ rng.uniform(size=5) + (X**2) @ rng.uniform(size=5) + rng.normal(size=args.nodes)
    if args.knn:
        S = knn_graph(X[:, :2], n_neighbors=5)
    else:
        upper = sp.triu(sp.random_array((args.nodes,) * 2, density=10 / args.nodes, rng=rng), k=1)
        i, j = upper.nonzero()
        S = sp.csr_array((np.exp(-np.abs(rough[i] - rough[j])), (i, j)), shape=upper.shape)
        S = S + S.T
    y = solve(laplacian(normalise(S)), 5.0, rough)
    model = GLACER(args.components, max_swaps=args.swaps, n_jobs=args.jobs, random_state=0)
    _, seconds = once(lambda: model.fit(X, y, graph=S))
    table = Table(
        f"{short(seconds)} s in all, {args.jobs} process(es)",
        *("swap", "R_obj", "R_emp", "dCorr", "pairs", "refits", "seconds"),
    )
    for number, record in enumerate(model.history_):
        values = (f"{value:.6f}" for value in (record.r_obj, record.r_emp, record.dcorr))
        table.add(number, *values, record.n_pairs, record.n_refits, record.seconds)
    table.show()


if __name__ == "__main__":
    main()

"""Graphs with all defaults: GraphCRF beside what anybody would try first.

One graph, of which a share of the nodes is labelled, the rest to be found: papers that cite one
another (generated), the price class of houses beside their neighbours (King County), scanned digits
beside those most like them. And images: one labelled grid, or 25, to label others by. Beside
``GraphCRF()``:

- logistic regression on the features of single nodes;
- label propagation (Zhou et al. 2004): labels flow along edges, features are not looked at;
- both: the probabilities of logistic regression, smoothed along edges, known labels being kept.

How far labels flow (alpha) is chosen for each by cross-validation on the labels that are known.
Accuracy is that of the nodes not known, the mean over seeds; «more than the best other» is the
difference to the best of the three, with its 95 % interval by Student's t over seeds.

Snakes: cells of a snake are to be numbered (:mod:`trellis.datasets.snakes`), 200 images to learn
from and 100 to label; only features of both ends of an edge can count along it.

``--nodes`` makes a graph of so many papers, 5 % labelled: seconds to fit and to label, memory.

    python -m benchmarks.graphs [--seeds 5] [--only citations houses digits grids snakes nodes]
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, diags_array
from scipy.stats import t as student

from benchmarks.options import begin
from benchmarks.side_by_side import Table, once, peak
from trellis import GraphCRF, GraphPerceptron, MaxMargin
from trellis.datasets import citations, grid_edges, snakes

ALPHAS = (0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99)
SHARES = (0.01, 0.05, 0.2)


class Task(NamedTuple):
    """A graph, or several beside one another, of which some nodes are labelled."""

    X: Any
    y: NDArray[np.int64]
    edges: NDArray[np.int64]
    known: NDArray[np.bool_]


def interval(values: list[float]) -> str:
    """Mean and 95 % interval of differences in percent."""
    array = 100 * np.array(values)
    half = 0.0
    if len(array) > 1:
        half = student.ppf(0.975, len(array) - 1) * array.std(ddof=1) / np.sqrt(len(array))
    low, mean, high = (
        f"{v:+.1f}".replace("-", "−")
        for v in (array.mean() - half, array.mean(), array.mean() + half)
    )
    return f"{mean} ({low} to {high})"


# ------------------------------------------------------------------------- the others


def smoothing(task: Task) -> Any:
    """Edges as a matrix that spreads what nodes have, symmetrically normalised."""
    n = len(task.y)
    half = coo_array((np.ones(len(task.edges)), task.edges.T), shape=(n, n))
    both = (half + half.T).tocsr()
    degree = np.maximum(both.sum(axis=1), 1)
    scale = diags_array(degree**-0.5)
    return scale @ both @ scale


def spread(start: NDArray[np.float64], matrix: Any, alpha: float) -> NDArray[np.float64]:
    """Let what nodes have flow along edges, again and again."""
    now = start
    for _ in range(50):
        now = alpha * (matrix @ now) + (1 - alpha) * start
    return now


def logistic(task: Task, known: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Probabilities of logistic regression."""
    from sklearn.linear_model import LogisticRegression

    chances = np.zeros((len(task.y), task.y.max() + 1))
    if len(np.unique(task.y[known])) == 1:
        chances[:, task.y[known][0]] = 1
        return chances
    model = LogisticRegression(max_iter=1000).fit(task.X[known], task.y[known])
    chances[:, model.classes_] = model.predict_proba(task.X)
    return chances


def flowing(task: Task, features: bool) -> NDArray[np.int64]:
    """Labels that flow along edges, alone or with what features say; alpha by cross-validation."""
    matrix, one = smoothing(task), np.eye(task.y.max() + 1)[task.y]

    def labelled(known: NDArray[np.bool_]) -> Iterator[NDArray[np.int64]]:
        start = logistic(task, known) if features else np.zeros_like(one)
        start[known] = one[known]
        for alpha in ALPHAS:
            yield spread(start, matrix, alpha).argmax(axis=1)

    where = np.random.default_rng(0).permutation(np.flatnonzero(task.known))
    right = np.zeros(len(ALPHAS))
    for part in np.array_split(where, min(5, len(where))):
        fewer = task.known.copy()
        fewer[part] = False
        if fewer.any():
            right += [(found[part] == task.y[part]).sum() for found in labelled(fewer)]
    return list(labelled(task.known))[int(right.argmax())]


def by_crf(task: Task) -> NDArray[np.int64]:
    """What a GraphCRF with all defaults says."""
    partly = [int(k) if there else None for k, there in zip(task.y, task.known, strict=True)]
    crf = GraphCRF(random_state=0).fit(task.X, partly, edges=task.edges)
    return np.array(crf.predict(task.X, edges=task.edges))


METHODS: dict[str, Callable[[Task], NDArray[np.int64]]] = {
    "logistic": lambda task: logistic(task, task.known).argmax(axis=1),
    "propagation": lambda task: flowing(task, features=False),
    "both": lambda task: flowing(task, features=True),
    "GraphCRF": by_crf,
}


# ------------------------------------------------------------------------- one graph


def some_known(y: NDArray[np.int64], share: float, rng: np.random.Generator) -> NDArray[np.bool_]:
    """A share of the nodes, at least two."""
    known = np.zeros(len(y), bool)
    known[rng.permutation(len(y))[: max(2, round(share * len(y)))]] = True
    return known


def nearest(points: NDArray[np.float64], k: int) -> NDArray[np.int64]:
    """Edges to the k nearest points."""
    from scipy.spatial import cKDTree

    _, near = cKDTree(points).query(points, k + 1)
    pairs = np.stack([np.repeat(np.arange(len(points)), k), near[:, 1:].ravel()], axis=1)
    pairs = np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1)
    return np.unique(pairs, axis=0)


def houses(n: int, rng: np.random.Generator) -> tuple[Any, NDArray[np.int64], NDArray[np.int64]]:
    """Houses of King County: what they are like, their fifth of the prices, their neighbours."""
    import pandas as pd

    from studies.datasets.folder import data_folder

    table = pd.read_csv(data_folder("kingcounty") / "kc_house_data.csv.xz")
    table = table.iloc[rng.permutation(len(table))[:n]]
    numbers = table[["bedrooms", "bathrooms", "floors", "yr_built"]].to_numpy(float)
    sizes = np.log(table[["sqft_living", "sqft_lot", "sqft_living15"]].to_numpy(float))
    grade = table["grade"].str.split().str[0].to_numpy(float)[:, None]
    X = np.hstack([numbers, sizes, grade])
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    place = table[["lat", "long"]].to_numpy(float) * [1.0, np.cos(np.radians(47.5))]
    place += rng.normal(0, 1e-7, place.shape)  # houses at one address
    price = table["price"].to_numpy(float)
    y = np.searchsorted(np.quantile(price, [0.2, 0.4, 0.6, 0.8]), price)
    return X, y, nearest(place, 5)


def digits() -> tuple[Any, NDArray[np.int64], NDArray[np.int64]]:
    """Scanned digits, each joined to the five most like it."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    return X / 16, y.astype(np.int64), nearest(X, 5)


def compare(table: Table, name: str, tasks: list[Task]) -> None:
    """A row: all methods on the same tasks."""
    right: dict[str, list[float]] = {method: [] for method in METHODS}
    seconds = 0.0
    for task in tasks:
        for method, run in METHODS.items():
            found, took = once(lambda run=run, task=task: run(task))
            right[method].append(float((found == task.y)[~task.known].mean()))
            seconds += took / len(tasks) if method == "GraphCRF" else 0.0
    add_row(table, name, right, seconds)


def add_row(table: Table, name: str, right: dict[str, list[float]], seconds: float) -> None:
    """Accuracies of all methods, and the difference of the last to the best of the others."""
    means = {method: np.mean(values) if values else np.nan for method, values in right.items()}
    others = [method for method in right if method != "GraphCRF" and right[method]]
    best = max(others, key=lambda method: means[method])
    more = [a - b for a, b in zip(right["GraphCRF"], right[best], strict=True)]
    cells = ("–" if np.isnan(mean) else f"{100 * mean:.1f}" for mean in means.values())
    table.add(name, *cells, interval(more), seconds)


# ------------------------------------------------------------------------- images


def image(side: int, noise: float, rng: np.random.Generator) -> tuple[Any, NDArray[np.int64]]:
    """Plots around random points of three kinds, and three noisy numbers at each pixel."""
    at = np.stack(np.divmod(np.arange(side * side), side), axis=1)
    points = rng.uniform(0, side, (max(3, side * side // 60), 2))
    kinds = rng.integers(0, 3, len(points))
    y = kinds[((at[:, None] - points) ** 2).sum(axis=2).argmin(axis=1)]
    return np.eye(3)[y] + rng.normal(0, noise, (len(y), 3)), y


def smooth_grid(chances: NDArray[np.float64], side: int, alpha: float) -> NDArray[np.int64]:
    empty = np.zeros(len(chances), np.int64)
    task = Task(None, empty, grid_edges(side, side), empty > 0)
    return spread(chances, smoothing(task), alpha).argmax(axis=1)


def compare_grids(table: Table, n: int, side: int, seeds: int) -> None:
    """A row: train on n labelled grids, label others."""
    from sklearn.linear_model import LogisticRegression

    right: dict[str, list[float]] = {method: [] for method in METHODS}
    seconds, asked = 0.0, 20
    for seed in range(seeds):
        rng = np.random.default_rng(1000 + seed)
        train = [image(side, 1.2, rng) for _ in range(n)]
        test = [image(asked, 1.2, rng) for _ in range(10)]
        gold = np.concatenate([y for _, y in test])
        plain = LogisticRegression().fit(
            np.vstack([X for X, _ in train]), np.concatenate([y for _, y in train])
        )

        def smoothed(images: list[Any], size: int, alpha: float, plain: Any = plain) -> Any:
            return np.concatenate(
                [smooth_grid(plain.predict_proba(X), size, alpha) for X, _ in images]
            )

        known = np.concatenate([y for _, y in train])
        alpha = max(ALPHAS, key=lambda a: (smoothed(train, side, a) == known).mean())
        right["logistic"].append(float((smoothed(test, asked, 0.0) == gold).mean()))
        right["both"].append(float((smoothed(test, asked, alpha) == gold).mean()))
        began = time.perf_counter()
        crf = GraphCRF(random_state=0).fit(
            [X for X, _ in train], [y.tolist() for _, y in train],
            edges=[grid_edges(side, side)] * n,
        )  # fmt: skip
        found = crf.predict([X for X, _ in test], edges=[grid_edges(asked, asked)] * 10)
        seconds += (time.perf_counter() - began) / seeds
        right["GraphCRF"].append(float((np.concatenate(found) == gold).mean()))
    add_row(table, f"{n} × {side * side:,} pixels", right, seconds)


def compare_snakes(table: Table, seeds: int, n_train: int, n_test: int) -> None:
    """Rows: who can count along a snake."""
    rich = {"directed": True, "rich_edges": "typed", "random_state": 0}
    cells = "nw; n; ne; w; here; e; sw; s; se"
    models: dict[str, Callable[[], Any]] = {
        "single cells (GraphCRF, piece_size=1)": lambda: GraphCRF(
            cells, piece_size=1, random_state=0
        ),
        "GraphCRF": lambda: GraphCRF(cells, directed=True, random_state=0),
        "GraphPerceptron, rich edges": lambda: GraphPerceptron(cells, **rich),
        "MaxMargin, rich edges": lambda: MaxMargin(cells, structure="graph", **rich),
    }
    for name, model in models.items():
        right, seconds = [], 0.0
        for seed in range(seeds):
            train = snakes(n_train, random_state=2 * seed)
            test = snakes(n_test, random_state=2 * seed + 1)
            fitted, took = once(lambda model=model, train=train: model().fit(train))
            seconds += took / seeds
            right.append(float(fitted.score(test)))
        spread_of = f"{100 * min(right):.2f}–{100 * max(right):.2f}"
        table.add(name, f"{100 * np.mean(right):.2f}", spread_of, seconds)


def grow(table: Table, sizes: list[int]) -> None:
    """Rows: ever larger graphs."""
    for n in sizes:
        X, y, edges = citations(n, words=300, length=10, topical=0.3, random_state=0)
        known = some_known(y, 0.05, np.random.default_rng(0))
        partly = [int(k) if there else None for k, there in zip(y, known, strict=True)]
        crf = GraphCRF(random_state=0)
        _, fitting = once(partial(crf.fit, X, partly, edges=edges))
        found, labelling = once(partial(crf.predict, X, edges=edges))
        right = (np.array(found) == y)[~known].mean()
        table.add(f"{n:,}", fitting, labelling, f"{100 * right:.1f}", peak())


def main() -> None:
    args = begin(
        __doc__,
        seeds=(5, 2),
        only=(["citations", "houses", "digits", "grids", "snakes", "nodes"],
              ["citations", "digits", "grids", "snakes", "nodes"]),
        papers=(2700, 150, "nodes of a graph of papers"),
        nodes=([10_000, 100_000, 1_000_000], [300, 600], "nodes of growing graphs"),
        side=(100, 12, "of one grid; 25 are a fifth as wide"),
        images=(200, 10, "images of snakes to learn from"),
    )  # fmt: skip
    header = ("nodes labelled", *METHODS, "more than the best other", "seconds")
    table = Table("One graph with few labels: accuracy of the others, %", *header)
    for topical in (0.15, 0.3) if "citations" in args.only else ():
        for share in SHARES:
            tasks = []
            for seed in range(args.seeds):
                graph = citations(args.papers, topical=topical, random_state=seed)
                known = some_known(graph.y, share, np.random.default_rng(seed))
                tasks.append(Task(*graph, known))
            about = "few" if topical < 0.2 else "many"
            compare(table, f"papers, {about} words tell, {100 * share:.0f} %", tasks)
    real = {"houses": lambda rng: houses(3000, rng), "digits": lambda rng: digits()}
    for name, graph_of in real.items():
        for share in SHARES if name in args.only else ():
            tasks = []
            for seed in range(args.seeds):
                rng = np.random.default_rng(seed)
                X, y, edges = graph_of(rng)
                tasks.append(Task(X, y, edges, some_known(y, share, rng)))
            compare(table, f"{name}, {100 * share:.0f} %", tasks)
    tables = [table]
    if "grids" in args.only:
        tables.append(Table("Labelled images, to label others by: accuracy, %", *header))
        compare_grids(tables[-1], 1, args.side, args.seeds)
        compare_grids(tables[-1], 25, args.side // 5, args.seeds)
    if "snakes" in args.only:
        tables.append(Table("Snakes", "model", "cells right, %", "range over seeds", "seconds"))
        compare_snakes(tables[-1], args.seeds, args.images, args.images // 2)
    if "nodes" in args.only:
        tables.append(Table("Growing graphs, 5 % labelled", "nodes", "seconds to fit",
                            "to label", "accuracy, %", "peak GB"))  # fmt: skip
        grow(tables[-1], args.nodes)
    for each in tables:
        if each.rows:
            each.show()


if __name__ == "__main__":
    main()

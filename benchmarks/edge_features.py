"""Features of edges: how much better models label where the strength of ties is known.

Images of three labels: plots around random points, each pixel with three noisy numbers, one for
each label. An edge has a contrast, which is higher by 1 where two plots meet, with noise of its
own. Models know nothing of it, in which half or eighth of the training contrasts it is (a type of
edges), or the number itself (a feature of edges); or five numbers of each edge that say nothing.
All have their defaults.

The difference is to knowing nothing, over the same images: the mean over seeds, and its 95 %
interval by Student's t.

    python -m benchmarks.edge_features [--seeds 10]
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import t as student

from benchmarks.options import begin
from benchmarks.side_by_side import Table, once
from trellis import GraphCRF, GraphPerceptron, MaxMargin
from trellis.datasets import grid_edges

LABELS = np.array(["A", "B", "C"])
MODELS = {
    "GraphCRF": lambda seed: GraphCRF(random_state=seed),
    "GraphPerceptron": lambda seed: GraphPerceptron(random_state=seed),
    "MaxMargin, SGD": lambda seed: MaxMargin(structure="graph", solver="sgd", random_state=seed),
}


def images(n: int, side: int, noise: float, rng: np.random.Generator) -> dict[str, list[Any]]:
    """Pixels, labels, edges and contrasts of n images."""
    pairs = grid_edges(side, side)
    at = np.stack(np.divmod(np.arange(side * side), side), axis=1)
    found: dict[str, list[Any]] = {"X": [], "y": [], "edges": [pairs] * n, "contrast": []}
    for _ in range(n):
        points = rng.uniform(0, side, (5, 2))
        plot = ((at[:, None] - points) ** 2).sum(axis=2).argmin(axis=1)
        gold = rng.integers(0, 3, 5)[plot]
        found["X"].append(np.eye(3)[gold] + rng.normal(0, noise, (len(at), 3)))
        found["y"].append(LABELS[gold].tolist())
        border = gold[pairs[:, 0]] != gold[pairs[:, 1]]
        found["contrast"].append(border + rng.normal(0, 0.6, len(pairs)))
    return found


def ways(
    data: dict[str, list[Any]], known: np.ndarray, rng: np.random.Generator
) -> dict[str, dict[str, Any]]:
    """What models are told of edges; ``known`` are the contrasts of training."""
    contrast = data["contrast"]

    def binned(n: int) -> dict[str, Any]:
        cuts = np.quantile(known, np.arange(1, n) / n)
        return {"edge_types": [np.searchsorted(cuts, c).astype(str).tolist() for c in contrast]}

    useless = [rng.normal(size=(len(c), 5)) for c in contrast]
    numbers = [c[:, None] for c in contrast]
    return {
        "nothing": {},
        "contrast in two types": binned(2),
        "contrast in eight types": binned(8),
        "contrast": {"edge_features": numbers},
        "five useless numbers": {"edge_features": useless},
        "contrast and five useless": {
            "edge_features": [np.hstack(p) for p in zip(numbers, useless, strict=True)]
        },
    }


def interval(differences: list[float]) -> str:
    """Mean and 95 % interval; without a sign that figures have."""
    values = 100 * np.array(differences)
    half = student.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
    signed = (f"{v:+.2f}".replace("-", "−") for v in (values.mean() - half, values.mean() + half))
    return f"{values.mean():+.2f}".replace("-", "−") + f" ({' to '.join(signed)})"


def main() -> None:
    args = begin(
        __doc__,
        seeds=(10, 2),
        train=(30, 6, "images"),
        test=(30, 6, "images"),
        side=(12, 5, "of an image, in pixels"),
        noise=(0.9, 0.9, "standard deviation of the numbers of a pixel"),
    )
    header = ("model", "knows of edges", "accuracy, %", "more than nothing", "seconds")
    table = Table("Labels of pixels", *header)
    for name, model in MODELS.items():
        scores: dict[str, list[float]] = {}
        seconds: dict[str, float] = {}
        for seed in range(args.seeds):
            rng = np.random.default_rng(seed)
            train = images(args.train, args.side, args.noise, rng)
            test = images(args.test, args.side, args.noise, rng)
            known = np.concatenate(train["contrast"])
            told, asked = ways(train, known, rng), ways(test, known, rng)
            for way, more in told.items():
                fitted, took = once(
                    lambda model=model, more=more, seed=seed, train=train: model(seed).fit(
                        train["X"], train["y"], edges=train["edges"], **more
                    )
                )
                score = fitted.score(test["X"], test["y"], edges=test["edges"], **asked[way])
                scores.setdefault(way, []).append(score)
                seconds[way] = seconds.get(way, 0.0) + took / args.seeds
        for way, found in scores.items():
            gain = "–"
            if way != "nothing":
                gain = interval([a - b for a, b in zip(found, scores["nothing"], strict=True)])
            table.add(name, way, f"{100 * np.mean(found):.2f}", gain, seconds[way])
    table.show()


if __name__ == "__main__":
    main()

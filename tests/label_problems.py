"""Small problems with label sets on all structures, their labellings enumerated."""

from __future__ import annotations

import itertools

import numpy as np

from chain_problems import altered
from margin_problems import CLASSES, MarginProblem, make_problem
from trellis.corpus import Labels

COSTS = np.array([[0.0, 2.0, 0.5], [1.0, 0.0, 3.0], [0.25, 4.0, 0.0]])


class Enumerated:
    """A problem and all that can be said of it by listing labellings."""

    def __init__(self, seed, structure="chain", known=0.6, cost="hamming", **more):
        self.plain: MarginProblem = make_problem(seed, structure, **more)
        rng = np.random.default_rng(seed + 1000)
        n = int(self.plain.offsets[-1])
        self.sets = [self._draw(rng, known) for _ in range(n)]
        lists = [
            [None if len(s) == 3 else {CLASSES[j] for j in s} for s in self.sets[a:b]]
            for a, b in itertools.pairwise(self.plain.offsets)
        ]
        self.lists = lists
        self.costs = 1.0 - np.eye(3) if isinstance(cost, str) else np.asarray(cost)
        self.problem = altered(
            self.plain.problem, labels=Labels.from_lists(lists, CLASSES), cost=cost,
            sample_weight=None,
        )  # fmt: skip
        self.n_samples = self.problem.n_samples
        self.rng = rng

    @staticmethod
    def _draw(rng, known):
        if rng.random() > known:
            return frozenset(range(3))
        return frozenset(rng.choice(3, size=int(rng.integers(1, 3)), replace=False).tolist())

    def weights(self):
        return self.rng.normal(size=self.problem.n_weights)

    def own(self, s):
        return self.sets[self.plain.offsets[s] : self.plain.offsets[s + 1]]

    def labellings(self, s, space="all"):
        for y in itertools.product(range(3), repeat=len(self.own(s))):
            fits = all(label in known for label, known in zip(y, self.own(s), strict=True))
            if space == "all" or fits == (space in ("compatible", "mean")):
                yield y

    def score(self, w, s, y):
        return self.plain.score(w, s, y)

    def loss(self, s, y):
        return sum(
            min(self.costs[g, label] for g in known)
            for label, known in zip(y, self.own(s), strict=True)
            if label not in known
        )

    def value(self, w, s, space, loss=False):
        """Maximum or mean over a space."""
        found = [
            self.score(w, s, y) + (self.loss(s, y) if loss else 0.0)
            for y in self.labellings(s, space)
        ]
        if space == "mean":
            return float(np.mean(found))
        return max(found, default=-np.inf)

    def values(self, w, space, loss=False):
        return np.array([self.value(w, s, space, loss) for s in range(self.n_samples)])

    def phi(self, s, y):
        """Joint features of a labelling."""
        return self.plain.features(s, y)


STRUCTURES = [
    ("chain", {}),
    ("tree", {"n_types": 2}),
    ("tree", {"directed": False}),
    ("graph", {"n_types": 2}),
    ("graph", {"directed": False}),
    ("chain", {"rich": "dense", "both": True}),
    ("chain", {"rich": "sparse"}),
    ("tree", {"rich": "dense", "directed": False}),
    ("tree", {"rich": "sparse", "both": True, "n_types": 2}),
    ("graph", {"rich": "sparse", "directed": False, "n_types": 2}),
    ("graph", {"rich": "dense", "both": True}),
    ("tree", {"rich": "dense alone", "own": 2, "n_types": 2}),
    ("tree", {"rich": "sparse", "both": True, "own": 3}),
    ("graph", {"rich": "sparse alone", "own": 3, "directed": False}),
    ("graph", {"rich": "dense", "own": 1, "directed": False, "n_types": 2}),
]

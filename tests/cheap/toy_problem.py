"""A learning problem small enough to list all outputs: short chains with node and edge weights."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from trellis.cheap.training import l2_of, train
from trellis.domains import anything
from trellis.errors import DataError, InfeasibleError
from trellis.estimator import Estimator, parameter
from trellis.problems.partial import PartialObjective

LABELS = ("A", "B")


@dataclass(frozen=True, eq=False)
class ToyMaxima:
    values: np.ndarray
    losses: np.ndarray
    phi: np.ndarray

    @property
    def bounds(self) -> np.ndarray:
        return self.values

    def features(self, weight=None):
        return self.phi.sum(0) if weight is None else weight @ self.phi


class ToyProblem:
    """Chains of nodes with d numbers each; outputs are all labellings, listed."""

    def __init__(self, samples, labels=LABELS):
        self.labels = tuple(labels)
        K = len(self.labels)
        self.inputs, self.allowed, self.outputs, self.phi = [], [], [], []
        self.n_calls = 0
        self._lost = {}  # losses of all outputs of a sample, until it is annotated
        for sample in samples:
            x, y = sample if isinstance(sample, tuple) else (sample, None)
            x = np.asarray(x, float)
            outputs = np.array(list(itertools.product(range(K), repeat=len(x))))
            nodes = np.stack([np.eye(K)[o].T @ x for o in outputs]).reshape(len(outputs), -1)
            edges = np.zeros((len(outputs), K, K))
            for n, o in enumerate(outputs):
                np.add.at(edges[n], (o[:-1], o[1:]), 1.0)
            self.inputs.append(x)
            self.outputs.append(outputs)
            self.phi.append(np.hstack([nodes, edges.reshape(len(outputs), -1)]))
            self.allowed.append(np.ones((len(x), K), bool))
            if y is not None:
                self.annotate(len(self.inputs) - 1, y)

    @property
    def n_samples(self):
        return len(self.inputs)

    @property
    def n_weights(self):
        return self.phi[0].shape[1]

    @property
    def annotated(self):
        return np.array([not a.all() for a in self.allowed], bool)

    @property
    def complete(self):
        return np.array([(a.sum(1) == 1).all() for a in self.allowed], bool)

    @property
    def n_open(self):
        return np.array([len(self.open_nodes(i)) for i in range(self.n_samples)])

    def open_nodes(self, i):
        return np.flatnonzero(self.allowed[i].sum(1) > 1)

    def annotate(self, i, annotation):
        new = np.ones_like(self.allowed[i])
        if isinstance(annotation, Mapping):
            items = list(annotation.items())
        else:
            if len(annotation) != len(new):
                raise DataError(f"sample {i} has {len(new)} nodes, not {len(annotation)}")
            items = list(enumerate(annotation))
        for t, said in items:
            if said is not None:
                said = {said} if isinstance(said, str) else said
                if not set(said) <= set(self.labels):
                    raise DataError(f"sample {i}: unknown label in {said!r}")
                new[t] = [label in said for label in self.labels]
        both = new & self.allowed[i]
        if not both.any(1).all():
            raise InfeasibleError(f"sample {i}: contradicts what is known")
        self.allowed[i] = both
        self._lost.pop(i, None)

    def _losses(self, i):
        if i not in self._lost:
            outputs = self.outputs[i]
            wrong = ~self.allowed[i][np.arange(outputs.shape[1]), outputs]
            self._lost[i] = wrong.sum(1).astype(float)
        return self._lost[i]

    def maxima(self, w, space, *, loss=False, samples=None):
        values, losses, phi = [], [], []
        for i in range(self.n_samples) if samples is None else np.asarray(samples).tolist():
            self.n_calls += 1
            lost = self._losses(i)
            scores = self.phi[i] @ w + (lost if loss else 0.0)
            if space == "mean":
                which = lost == 0
                values.append(scores[which].mean())
                losses.append(0.0)
                phi.append(self.phi[i][which].mean(0))
                continue
            if space == "compatible":
                scores = np.where(lost == 0, scores, -np.inf)
            elif space == "incompatible":
                scores = np.where(lost > 0, scores, -np.inf)
            best = int(scores.argmax())
            values.append(scores[best])
            losses.append(lost[best] if np.isfinite(scores[best]) else 0.0)
            phi.append(self.phi[i][best])
        return ToyMaxima(np.array(values), np.array(losses), np.array(phi))

    def update(self, i, w):
        self.n_calls += 1
        best = int((self.phi[i] @ w).argmax())
        if self._losses(i)[best] == 0:
            return False
        right = self.maxima(w, "compatible", samples=[i]).phi[0]
        w += right - self.phi[i][best]
        return True

    def margins(self, w, measure, samples):
        found = []
        for i in samples:
            self.n_calls += 1
            scores = np.sort((self.phi[i] @ w)[self._losses(i) == 0])[::-1]
            worst = {"scoring": 0.0, "best-vs-worst": scores[-1]}
            second = scores[1] if len(scores) > 1 else -np.inf
            found.append(scores[0] - worst.get(measure, second))
        return np.array(found)

    def weakest_part(self, i, w, size):
        which = np.flatnonzero(self._losses(i) == 0)
        order = which[np.argsort(-(self.phi[i] @ w)[which], kind="stable")]
        if len(order) < 2:
            return np.zeros(0, np.int64)
        best, second = self.outputs[i][order[0]], self.outputs[i][order[1]]
        differ = np.flatnonzero(best != second)
        open_ = np.flatnonzero(self.allowed[i].sum(1) > 1)
        return np.sort(np.append(differ, np.setdiff1d(open_, differ))[:size])


class ToyModel(Estimator):
    """Learns the weights of a :class:`ToyProblem`."""

    l2: float = parameter(anything, "Factor of the squared norm.", default=1.0)
    loss: str = parameter(anything, "Loss of partial annotations.", default="bridge")
    tol: float = parameter(anything, "Relative gap.", default=1e-2)
    n_problems: list | None = parameter(anything, "Gets what is asked for.", default=None)

    @property
    def training_loss(self):
        return self.loss

    def improve(self, problem, w, samples):
        return any([problem.update(i, w) for i in samples])  # noqa: C419 (every one of them)

    def trained_on(self, problem):
        objective = PartialObjective(problem, self.loss)
        found = train([objective], l2=l2_of(self, None, problem), tol=self.tol)
        return self.with_weights(problem, found.shared)

    def flat_weights(self, problem):
        return self.weights_

    def learning_problems(self, data, *, labels=None):
        if self.n_problems is not None:
            self.n_problems.append(sorted(data))
        return {name: ToyProblem(part, labels or LABELS) for name, part in data.items()}

    def with_weights(self, problem, w):
        model = type(self)(**self.get_params(deep=False))
        model.classes_, model.weights_ = problem.labels, np.array(w)
        return model

    def predict(self, samples):
        problem = ToyProblem(samples, self.classes_)
        found = []
        for phi, outputs in zip(problem.phi, problem.outputs, strict=True):
            best = outputs[int((phi @ self.weights_).argmax())]
            found.append([self.classes_[k] for k in best])
        return found


def toy_data(n, *, seed=0, d=3, true=None, longest=4, noise=0.0):
    """Random chains, their labels under true weights, and these weights."""
    rng = np.random.default_rng(seed)
    inputs = [rng.normal(size=(int(rng.integers(2, longest + 1)), d)) for _ in range(n)]
    problem = ToyProblem(inputs)
    true = rng.normal(size=problem.n_weights) if true is None else true
    labels = []
    for phi, outputs in zip(problem.phi, problem.outputs, strict=True):
        scores = phi @ true + noise * rng.normal(size=len(phi))
        labels.append([LABELS[k] for k in outputs[int(scores.argmax())]])
    return inputs, labels, true

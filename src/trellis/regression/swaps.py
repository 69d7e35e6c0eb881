"""One component of GLACER: fitted from scratch, and refitted after one example was exchanged.

A component is a Gaussian CRF on a subset D^m of n nodes with the induced similarities S^m, scaled
to an average degree of 1. A candidate swap takes node a out and puts node b in. The base model is
trained anew, but for the Gaussian CRF the eigendecomposition of the old Laplacian is enough: think
of n + 1 nodes, with b isolated before and a isolated after (a node without edges adds a factor 1 to
|K|). The Laplacians then differ by the edges of a and b only,

    L' = L + E D E',    E the columns of the unit matrix for the u nodes touched, D (u, u)

so with G = (I + g L)^-1 = V diag(1 / (1 + g lambda)) V'

    log|I + g L'| = log|I + g L| + log|I + g D G_uu|
    r'(I + g L')^-1 r = r'G r - g (G r)_u' (I + g D G_uu)^-1 D (G r)_u

exactly (Woodbury), at n u^2 operations for a g. The scaling of S^m only multiplies g.

Every fit has its own seed, made from (component, outgoing, incoming), and runs on one thread, so
that neither the order of the fits nor the number of processes changes a bit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from trellis.arrays import Float64s
from trellis.errors import DataError
from trellis.regression.bases import one_thread
from trellis.regression.graph_matrix import laplacian, normalise
from trellis.regression.likelihood import maximise, search
from trellis.regression.spectral import eigen, solve

__all__ = ["Component", "Decomposition", "Problem", "SwapProfile", "Swapped", "fit_component"]

Nodes = npt.NDArray[np.int64]

Swapped = tuple[int, int]  # the node that went out and the one that came in; (-1, -1): none yet


@dataclass(frozen=True)
class Problem:
    """What all fits share.

    Attributes
    ----------
    X : (N, d)
    y : (N,)
    S : sparse (N, N) or None
        Similarities; None for components that know no graph.
    make : callable
        Gives a new, unfitted model from a seed: the base of a Gaussian CRF, or the component.
    classify : bool
        Whether the component is a classifier of 0 and 1 whose probability of 1 is used.
    seed : int
    L : sparse (N, N) or None
        The Laplacian of all nodes, `S` scaled to an average degree of 1.
    """

    X: Float64s
    y: Float64s
    S: Any
    make: Callable[[int], Any]
    classify: bool
    seed: int
    L: Any


@dataclass(frozen=True)
class Component:
    """A fitted component, as far as the swaps need it.

    Attributes
    ----------
    nodes : (n,)
        Its subset, ascending.
    swapped : (int, int)
        The exchange that made it, which is part of its seed.
    alpha, gamma : float
        Of its Gaussian CRF; 0 for other components.
    predictions : (N,)
        On all examples.
    worst : int
        The example of its subset that it fits worst.
    """

    nodes: Nodes
    swapped: Swapped
    alpha: float
    gamma: float
    predictions: Float64s
    worst: int


class Decomposition:
    """Eigenvalues and eigenvectors of the (unscaled) Laplacian of a subset."""

    def __init__(self, nodes: Nodes, S: Any) -> None:
        part = S[nodes][:, nodes].tocsr()
        self.nodes = nodes
        self.total = float(part.sum())
        self.values, self.vectors = eigen(laplacian(part))


class SwapProfile:
    """S and log|K| of a subset after one exchange, from the decomposition before it.

    Parameters
    ----------
    before : Decomposition
    S : sparse (N, N)
    swapped : (out, in)
    y, r : (n,)
        Targets and base predictions of the new subset, its nodes ascending.
    """

    def __init__(
        self, before: Decomposition, S: Any, swapped: Swapped, y: Float64s, r: Float64s
    ) -> None:
        self.n = len(y)
        self.variance = float(np.var(y))
        self._fit = float((y - r) @ (y - r))
        n, (out, new) = self.n, swapped
        a = int(np.searchsorted(before.nodes, out))
        place = np.full(S.shape[0], -1)
        place[before.nodes] = np.arange(n)
        # Values by place before the swap; the incoming node has place n, the outgoing a zero.
        after = np.searchsorted(before.nodes, exchanged(before.nodes, swapped))
        after[exchanged(before.nodes, swapped) == new] = n
        y_at, r_at = np.zeros(n + 1), np.zeros(n + 1)
        y_at[after], r_at[after] = y, r

        lost, lost_weight = _edges(S, out, place)
        got, got_weight = _edges(S, new, place)
        got_weight = got_weight[got != a]
        got = got[got != a]
        touched = np.unique(np.concatenate([lost, got, [a, n]]))
        D = np.zeros((len(touched), len(touched)))
        for end, others, weights in ((a, lost, -lost_weight), (n, got, got_weight)):
            i, j = np.searchsorted(touched, end), np.searchsorted(touched, others)
            D[i, i] += weights.sum()
            D[j, j] += weights
            D[i, j] -= weights
            D[j, i] -= weights
        total = before.total + 2 * (got_weight.sum() - lost_weight.sum())
        # Sums and differences of weights leave a rounding error where no edge is left.
        empty = total <= 1e-12 * (before.total + got_weight.sum())
        self._scale = 1.0 if empty else n / total
        V, lam = before.vectors, before.values
        y_V = V.T @ y_at[:n]
        # y'L'y; the outgoing node's y is 0 here, and D takes its edges away again.
        self._yLy = float(y_V**2 @ lam + y_at[touched] @ D @ y_at[touched])
        self._D, self._lam = D, lam
        self._r_V = V.T @ r_at[:n]
        inside = touched[:-1]  # all but the incoming node
        self._V_u = V[inside]
        self._r_new = r_at[n]

    def __call__(self, gammas: Float64s) -> tuple[Float64s, Float64s]:
        """Return S(gamma) and log|K(gamma)|."""
        g = gammas * self._scale
        k = 1.0 + g[:, None] * self._lam
        u = len(self._D)
        G = np.zeros((len(g), u, u))
        G[:, :-1, :-1] = (self._V_u / k[:, None, :]) @ self._V_u.T
        G[:, -1, -1] = 1.0
        Gr = np.empty((len(g), u, 1))
        Gr[:, :-1, 0] = (self._r_V / k) @ self._V_u.T
        Gr[:, -1, 0] = self._r_new
        inner = np.eye(u) + g[:, None, None] * (self._D @ G)
        correction = np.linalg.solve(inner, self._D @ Gr)
        # r'r - r'K^-1 r, so that nothing cancels when g is small.
        shrunk = ((k - 1.0) / k) @ self._r_V**2
        shrunk += g * np.einsum("gui,gui->g", Gr, correction)
        log_det = np.log(k).sum(axis=1) + np.linalg.slogdet(inner)[1]
        return self._fit + g * self._yLy - shrunk, log_det


def exchanged(nodes: Nodes, swapped: Swapped) -> Nodes:
    """Return the subset after an exchange, ascending."""
    out, new = swapped
    return np.sort(np.where(nodes == out, new, nodes))


def fit_component(
    problem: Problem,
    index: int,
    nodes: Nodes,
    swapped: Swapped = (-1, -1),
    *,
    before: Decomposition | None = None,
    optimum: tuple[float, float] | None = None,
) -> Component:
    """Fit component number `index` on a subset.

    Parameters
    ----------
    problem : Problem
    index : int
    nodes : (n,)
        The subset, after the exchange.
    swapped : (out, in)
        The exchange.
    before : Decomposition, optional
        Of the subset before the exchange; None learns from scratch.
    optimum : (alpha, gamma), optional
        Known parameters of the Gaussian CRF; nothing is learnt then.
    """
    with one_thread():
        X, y = problem.X, problem.y
        model = fit_model(problem, index, nodes, swapped)
        predictions = unstructured(model, X, problem.classify)
        alpha = gamma = 0.0
        fitted = predictions[nodes]
        if problem.S is not None:
            L = laplacian(normalise(problem.S[nodes][:, nodes].tocsr()))
            if optimum is None:
                optimum = _learn(problem, L, nodes, swapped, fitted, before)
            alpha, gamma = optimum
            fitted = solve(L, gamma, fitted)
            predictions = solve(problem.L, gamma, predictions)
        # The loss is increasing in the squared error, whatever its form.
        worst = int(nodes[np.argmax((y[nodes] - fitted) ** 2)])
        return Component(nodes, swapped, alpha, gamma, predictions, worst)


def _learn(
    problem: Problem,
    L: Any,
    nodes: Nodes,
    swapped: Swapped,
    r: Float64s,
    before: Decomposition | None,
) -> tuple[float, float]:
    y = problem.y[nodes]
    if before is not None and _touched(problem.S, swapped) <= len(nodes) // 4:
        optimum = search(SwapProfile(before, problem.S, swapped, y, r))
        return optimum.alpha, optimum.gamma
    alpha, beta, _ = maximise([L], y, r[:, None], "likelihood", random_state=problem.seed)
    return float(alpha[0]), float(beta[0] / alpha[0])


def _touched(S: Any, swapped: Swapped) -> int:
    """Bound the number of nodes whose edges an exchange changes."""
    return int(sum(S.indptr[node + 1] - S.indptr[node] for node in swapped)) + 2


def _edges(S: Any, node: int, place: Nodes) -> tuple[Nodes, Float64s]:
    """Return places and weights of a node's neighbours within the subset."""
    span = slice(S.indptr[node], S.indptr[node + 1])
    places = place[S.indices[span]]
    return places[places >= 0], S.data[span][places >= 0]


def fit_model(problem: Problem, index: int, nodes: Nodes, swapped: Swapped) -> Any:
    """Fit the scikit-learn model of a component (the base of its Gaussian CRF)."""
    key = [problem.seed, index, swapped[0] + 1, swapped[1] + 1]
    seed = int(np.random.SeedSequence(key).generate_state(1)[0] >> 1)  # what scikit-learn takes
    y = problem.y[nodes]
    if problem.classify and y.min() == y.max():
        raise DataError(
            f"the subset of component {index} holds one class only; raise subsample or balance"
            " the classes"
        )
    return problem.make(seed).fit(problem.X[nodes], y)


def unstructured(model: Any, X: Float64s, classify: bool) -> Float64s:
    """Return the predictions of the scikit-learn model of a component."""
    if classify:
        return np.asarray(model.predict_proba(X)[:, 1], dtype=np.float64)
    return np.asarray(model.predict(X), dtype=np.float64)

r"""Network lasso (Hallac, Leskovec and Boyd 2015): linear models at nodes, alike at edges.

Node i has features a_i ∈ ℝ^p (with a constant 1 as the last, if there is an intercept), a target
y_i and parameters x_i ∈ ℝ^p. With every undirected edge jk of weight w_jk counted once,

    minimise  Σ_i (a_iᵀx_i − y_i)² + μ ‖x_i without intercept‖² + λ Σ_jk w_jk g(‖x_j − x_k‖₂),

with g(d) = d (convex) or g(d) = log(1 + d/ε) (non-convex). ADMM with copies z_jk of x_j and scaled
duals u_jk, one for each end of an edge, alternates

    x_i ← argmin (a_iᵀx − y_i)² + μ‖·‖² + (ρ/2) Σ_j ‖x − z_ij + u_ij‖²      (rank one + diagonal)
    z_jk ← θa + (1 − θ)b, z_kj ← (1 − θ)a + θb,  a = x_j + u_jk, b = x_k + u_kj
    u_jk ← u_jk + x_j − z_jk

where θ = max(1 − λw/(ρ‖a − b‖), ½) in the convex case. In the other, the distance d of the two
minimises c log(1 + d/ε) + (ρ/4)(d₀ − d)², c = λw and d₀ = ‖a − b‖: it is 0 or the larger root of
(d₀ − d)(ε + d) = 2c/ρ. All nodes and all edges are updated at once, in O(nodes·p + edges·p).
In no iterate are neighbours equal to the last digit, which the logarithm rewards. So the best
iterate of the non-convex case, which is what it returns by default, is *no* local minimum: a local
polish that starts there ends a quarter to three quarters lower. With ``search`` it ends with a
search over clusters of equal nodes (:mod:`trellis.regression.lasso_finish`), from the convex
solution and from that iterate, which ends as low as polishes from many starts, or lower. But the
lower the objective, the worse new nodes were predicted at a given λ, after a polish as after the
search; with λ chosen on held-out nodes the search was better where nodes fall into regions of equal
parameters, and worse elsewhere. The study ``python -m studies glacer --tasks lassos`` measures it.

A new node takes the weighted geometric median of the parameters of its nearest training nodes,
argmin_x Σ_j w_j ‖x − x_j‖.
"""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trellis.arrays import Float64s
from trellis.domains import flag, function, nothing, number, one_of, sequence_of, whole
from trellis.errors import CorruptModelError, DataError
from trellis.estimator import Estimator, old_arguments, parameter, renamed
from trellis.files.storable import Storable
from trellis.files.stored import header_value, take
from trellis.regression.geometric_median import geometric_median
from trellis.regression.graph_matrix import resolve_graph
from trellis.regression.lasso_finish import LogLasso, finished
from trellis.regression.rows import check_targets, finite_rows
from trellis.regression.similarity import EARTH_KM, FARTHEST

__all__ = ["NetworkLasso"]

LARGEST = 1e70
"""What numbers are at most, so that products of four of them are still floats."""


class NetworkLasso(Estimator, Storable):
    """Linear regression at every node of a graph, with equal parameters at most neighbours.

    Attributes
    ----------
    coef_ : array of shape (n, p)
        Parameters of the training nodes, intercept last, in units of y.
    objective_ : float
        Objective at ``coef_`` (with y multiplied by ``y_scale``); in the non-convex case without
        `search` far above that of a local minimum.
    n_iter_ : int
    converged_ : bool
        Whether ADMM met ``tol`` (before the search); in the non-convex case no sign of a minimum.

    Examples
    --------
    >>> import numpy as np
    >>> from trellis.regression import NetworkLasso
    >>> S = np.diag([1.0, 1.0, 1.0], 1) + np.diag([1.0, 1.0, 1.0], -1)
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([1.0, 1.0, 5.0, 5.0])
    >>> model = NetworkLasso(lam=0.1, max_iter=500, n_neighbors=1).fit(X, y, graph=S)
    >>> model.predict([[0.1], [2.9]]).round(1)
    array([1., 5.])
    """

    lam: float = parameter(
        number(at_least=0), "λ, the pull of neighbours.", default=5.0, kw_only=False
    )
    l2: float = parameter(
        number(above=0), "μ, ridge on all parameters but the intercept.", default=0.5, kw_only=False
    )
    graph: Any = parameter(
        nothing | function,
        """Makes the graph when `fit` is given none, e.g. ``KNN(n_neighbors=5)``: from coordinates,
        from X where none are given.""",
        default=None,
    )
    convex: bool = parameter(flag, "The convex or the non-convex penalty of edges.", default=True)
    epsilon: float = parameter(number(above=0), "ε of the non-convex penalty.", default=0.01)
    search: bool = parameter(
        flag,
        """Whether the non-convex case ends with a search over clusters of equal nodes: a far lower
        objective, but mostly larger errors at new nodes. False keeps the best iterate of ADMM, as
        the authors' code does, which is no local minimum: to stop early is a regulariser of its
        own.""",
        default=False,
    )
    rho: float | str = parameter(
        one_of("auto") | number(above=0),
        'ρ of ADMM; "auto" is 0.001 + √λ, as in the authors\' code.',
        default="auto",
    )
    max_iter: int = parameter(
        whole(1),
        """Iterations of ADMM; the search begins after as many of the convex and as many of the
        non-convex case.""",
        default=50,
    )
    tol: float = parameter(
        number(at_least=0),
        """ADMM stops when both residuals are below this relative to what they are differences of,
        and ten times this a number, as in the authors' code (or, where parameters are below 1,
        ten times this relative to them).""",
        default=1e-3,
    )
    y_scale: float = parameter(
        number(above=0),
        """Targets are multiplied by this before learning and predictions divided by it. The authors
        fit ten times the z-score of prices, and their λ is meant for that.""",
        default=1.0,
    )
    fit_intercept: bool = parameter(flag, "Whether a constant is a feature.", default=True)
    features: tuple[int, ...] | None = parameter(
        nothing | sequence_of(whole(), "a list of columns"),
        "Columns of X that the linear models use; None: all.",
        default=None,
    )
    n_neighbors: int = parameter(
        whole(1), "Training nodes that a new node takes its parameters from.", default=5
    )
    metric: str = parameter(
        one_of("euclidean", "manhattan", "haversine"),
        """Distance of coordinates; haversine takes degrees of latitude and longitude and is in
        km.""",
        default="euclidean",
    )
    weight: str = parameter(
        one_of("exp", "inverse"),
        "Weight of a neighbour at distance d: e^(−d), or 1/(d + 0.1) as in the authors' code.",
        default="exp",
    )
    mu = renamed("l2")
    rel_tol = renamed("tol")
    abs_tol = renamed("tol", lambda value: value / 10)

    @old_arguments("graph", "coords")
    def fit(
        self, X: ArrayLike, y: ArrayLike, *, graph: Any = None, coords: ArrayLike | None = None
    ) -> Self:
        """Learn the parameters of all nodes.

        Parameters
        ----------
        X : array of shape (n, d)
        y : array of shape (n,)
        graph : matrix of shape (n, n), sparse or dense, or builder
            Symmetric weights of edges; the diagonal is not used. None uses the builder of the
            constructor.
        coords : array of shape (n, c), optional
            Where the nodes are, for builders and for new nodes to find the nearest; X by default.
        """
        self._check_parameters()
        A = self._design(X)
        with np.errstate(over="ignore"):
            target = check_targets(y, len(A), varied=False) * self.y_scale
        self._coords = self._places(X if coords is None else coords).copy()
        if len(self._coords) != len(A):
            raise DataError(f"coords has {len(self._coords)} rows, X has {len(A)}")
        tails, heads, weights = _edges(
            resolve_graph(
                self.graph if graph is None else graph, X if coords is None else coords, len(A)
            )
        )
        ridge = np.full(A.shape[1], float(self.l2))
        if self.fit_intercept:
            ridge[-1] = 0.0
        with np.errstate(over="ignore"):
            strength = float(self.lam) * weights
        given = {"X": A, "y times y_scale": target, "lam times graph": strength}
        for words, numbers in given.items():
            if np.abs(numbers).max(initial=0.0) > LARGEST:
                raise DataError(f"{words} has numbers beyond {LARGEST:.0e}: their squares overflow")
        problem = LogLasso(tails, heads, strength, self.epsilon, A, target, ridge)
        if self.convex or not self.search:
            x = self._admm(problem, convex=self.convex)
        else:
            x = finished(problem, [self._admm(problem, convex=c) for c in (True, False)])
        self.objective_ = problem.value(x, convex=self.convex)
        self.coef_ = x / self.y_scale
        return self

    @old_arguments("coords")
    def predict(self, X: ArrayLike, *, coords: ArrayLike | None = None) -> Float64s:
        """Targets of new nodes, each with the geometric median of its neighbours' parameters.

        Parameters
        ----------
        X : array of shape (m, d)
        coords : array of shape (m, c), optional
            X by default; needed if the model was fitted with coordinates of another kind.
        """
        self._check_fitted()
        A = self._design(X)
        where = self._places(X if coords is None else coords)
        if len(where) != len(A) or where.shape[1] != self._coords.shape[1]:
            raise DataError(
                f"coords has shape {where.shape}, expected {(len(A), self._coords.shape[1])}"
            )
        if A.shape[1] != self.coef_.shape[1]:
            raise DataError(
                f"X gives {A.shape[1]} parameters a node, the model has {self.coef_.shape[1]}"
            )
        distances, nodes = _nearest(self._coords, where, self.n_neighbors, self.metric)
        if self.weight == "exp":
            # Only ratios of weights matter; without the shift all could underflow.
            weights = np.exp(distances.min(1, keepdims=True) - distances)
        else:
            weights = 1 / (distances + 0.1)
        x = geometric_median(self.coef_[nodes], weights)
        return np.asarray(np.einsum("ij,ij->i", A, x))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "coef_")

    # ------------------------------------------------------------------ learning

    def _admm(self, problem: LogLasso, *, convex: bool) -> Float64s:
        """The last iterate with the convex penalty, the best one with the other."""
        A, y, ridge = problem.A, problem.y, problem.ridge
        n, p = A.shape
        m = len(problem.tails)
        rho = 0.001 + math.sqrt(self.lam) if self.rho == "auto" else float(self.rho)
        ends = np.concatenate([problem.tails, problem.heads])
        gather = _incidence(ends, n)  # (n, 2m): sums what stands at a node's edge ends
        degree = np.bincount(ends, minlength=n).astype(np.float64)
        solve = _RankOne(A, ridge[None, :] + 0.5 * rho * degree[:, None])
        z, u = np.zeros((2 * m, p)), np.zeros((2 * m, p))
        x, best, best_value = np.zeros((n, p)), np.zeros((n, p)), np.inf
        self.converged_ = False
        for iteration in range(1, self.max_iter + 1):
            x = solve(A * y[:, None] + 0.5 * rho * (gather @ (z - u)))
            at_ends = x[ends]
            old, v = z, at_ends + u
            z = self._pull(v[:m], v[m:], problem.strength / rho, convex=convex)
            u = v - z
            self.n_iter_ = iteration
            if not convex:
                value = problem.value(x)
                if value < best_value:
                    best, best_value = x, value
            primal, dual = np.linalg.norm(at_ends - z), rho * np.linalg.norm(z - old)
            # Where all numbers are small, an absolute bound alone would stop it at once.
            size = min(np.sqrt(z.size), np.linalg.norm(at_ends)) * 10 * self.tol
            small = max(np.linalg.norm(at_ends), np.linalg.norm(z))
            self.converged_ = bool(
                primal <= size + self.tol * small
                and dual <= size + self.tol * rho * np.linalg.norm(u)
            )
            if self.converged_:
                break
        return x if convex else best

    def _pull(self, a: Float64s, b: Float64s, c: Float64s, *, convex: bool) -> Float64s:
        """Both copies of every edge, drawn to each other; ``c`` is λw/ρ."""
        d0 = np.linalg.norm(a - b, axis=1)
        if convex:
            d = np.maximum(d0 - 2 * c, 0.0)
        else:
            eps = self.epsilon
            root = (d0 + eps) ** 2 - 8 * c
            d = np.maximum((d0 - eps + np.sqrt(np.maximum(root, 0.0))) / 2, 0.0)
            apart = c * np.log1p(d / eps) + 0.25 * (d0 - d) ** 2
            d = np.where((root < 0) | (apart > 0.25 * d0**2), 0.0, d)
        share = np.divide(d, d0, out=np.ones_like(d), where=d0 > 0)[:, None]
        middle, half = 0.5 * (a + b), 0.5 * share * (a - b)
        return np.concatenate([middle + half, middle - half])

    # ------------------------------------------------------------------ checks

    def _places(self, coords: Any) -> Float64s:
        places = finite_rows(coords, "coords")
        if np.abs(places).max() > FARTHEST:
            raise DataError(f"coords are beyond {FARTHEST:.0e}: their squares overflow")
        if self.metric == "haversine" and (places.shape[1] != 2 or np.abs(places[:, 0]).max() > 90):
            raise DataError(
                "haversine distances need coords of two columns, latitude (-90 to 90) and longitude"
                f" in degrees; these have {places.shape[1]}, the first up to"
                f" {np.abs(places[:, 0]).max():g}"
            )
        return places

    def _design(self, X: ArrayLike) -> Float64s:
        A = finite_rows(X, "X")
        if self.features is not None:
            if max(self.features, default=0) >= A.shape[1]:
                raise DataError(f"X has {A.shape[1]} columns, features names {self.features}")
            A = A[:, list(self.features)]
        return np.column_stack([A, np.ones(len(A))]) if self.fit_intercept else A

    # ------------------------------------------------------------------ files

    def _state(self) -> dict[str, Any]:
        return {
            "coef": self.coef_,
            "coords": self._coords,
            "objective": self.objective_,
            "n_iter": self.n_iter_,
            "converged": self.converged_,
        }

    def _restore(self, state: dict[str, Any]) -> None:
        self.coef_ = take(state, "coef", np.float64, (None, None))
        self._coords = take(state, "coords", np.float64, (len(self.coef_), None))
        n_parameters = self.coef_.shape[1]
        if self.features is not None:
            wanted = len(self.features) + bool(self.fit_intercept)
            if n_parameters != wanted or min(self.features, default=0) < 0:
                raise CorruptModelError("the parameters of nodes are not those of the features")
        if not len(self.coef_) or not n_parameters or not self._coords.shape[1]:
            raise CorruptModelError("the model has no nodes, parameters or coordinates")
        if self.metric == "haversine" and self._coords.shape[1] != 2:
            raise CorruptModelError("haversine distances need two coordinates")
        self.objective_ = header_value(state, "objective", float)
        self.n_iter_ = header_value(state, "n_iter", int, low=1)
        self.converged_ = header_value(state, "converged", bool)


class _RankOne:
    """Solves (a aᵀ + diag(D)) x = r for every node; a zero in D (an isolated node) is allowed.

    With D > 0 it is Sherman and Morrison's formula. An isolated node has D = 0 at the intercept
    alone (μ > 0), where the model fits its target: the limit of the formula for D → 0.
    """

    def __init__(self, A: Float64s, D: Float64s) -> None:
        self._A = A
        self._inverse = 1 / np.maximum(D, 1e-8)  # smaller ones would cancel digits
        self._scaled = A * self._inverse
        self._down = 1 + np.einsum("ij,ij->i", A, self._scaled)

    def __call__(self, r: Float64s) -> Float64s:
        scaled = r * self._inverse
        along = np.einsum("ij,ij->i", self._A, scaled) / self._down
        return np.asarray(scaled - self._scaled * along[:, None])


def _edges(S: Any) -> tuple[NDArray[np.int64], NDArray[np.int64], Float64s]:
    """Ends and weights of the undirected edges, each once."""
    from scipy.sparse import coo_array, triu

    upper = coo_array(triu(S, 1))
    rows, columns = upper.coords
    return rows.astype(np.int64), columns.astype(np.int64), upper.data


def _incidence(ends: Any, n: int) -> Any:
    from scipy.sparse import csr_array

    return csr_array((np.ones(len(ends)), (ends, np.arange(len(ends)))), shape=(n, len(ends)))


def _nearest(known: Float64s, new: Float64s, k: int, metric: str) -> tuple[Float64s, Any]:
    """Distances and numbers of the ``k`` nearest known points of each new one."""
    from sklearn.neighbors import NearestNeighbors

    earth = metric == "haversine"
    scale = EARTH_KM if earth else 1.0
    points, queries = (np.radians(known), np.radians(new)) if earth else (known, new)
    finder = NearestNeighbors(
        n_neighbors=min(k, len(known)),
        metric=metric,
        algorithm="ball_tree" if earth else "auto",
    )
    distances, nodes = finder.fit(points).kneighbors(queries)
    return np.asarray(scale * distances), nodes

r"""Numbers at the nodes of a graph: a generator of such data, and two real data sets.

**Synthetic** (Pavlovski et al. 2018, section 5.3). With x_i ∼ N(0, I_d), i = 1..N,

    ỹ_i = p(x_i) + ε_i,   p(x) = Σ_k c_k m_k(x),   c_k ∼ U(low, high),   ε_i ∼ N(0, σ²),
    S_ij = e^{−|ỹ_i − ỹ_j|} on the edges of an Erdős–Rényi graph, 0 elsewhere,
    y = α (αI + βL)⁻¹ ỹ,   L = diag(S1) − S,   α = 1, β = 5,

where m_k are the monomials of x. The paper states N = 3000, d = 5, α and β. It does not state the
degree and the monomials of p, the range of c, σ², the probability of an edge, and whether S is
rescaled to N·S/ΣS before y is made; all of these are parameters here. Without rescaling, the same β
smooths more the denser the graph is.

**Sacramento**: 985 houses sold in May 2008 (Hallac, Leskovec and Boyd 2015 prepared the columns).
**Medicare**: hospital readmissions of the CMS, 1000 records with the most readmissions.
"""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trellis.datasets.real import data_folder
from trellis.errors import DataError

__all__ = ["RegressionData", "load_medicare", "load_sacramento", "synthetic_graph_regression"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class RegressionData:
    """Nodes with features, a target and, where known, coordinates and a graph.

    Attributes
    ----------
    name : str
    X : array of shape (n, d)
    y : array of shape (n,)
    coords : array of shape (n, c) or None
        What distances between nodes are measured on.
    graph : sparse matrix of shape (n, n) or None
        Similarities.
    feature_names : tuple of str
    metric : "euclidean", "manhattan" or "haversine"
        Distance of coordinates.
    regressors : tuple of int or None
        Columns of X that say something besides where a node is; None: all.

    Examples
    --------
    >>> from trellis.datasets import synthetic_graph_regression
    >>> train, test = synthetic_graph_regression(60, 40, random_state=0)
    >>> train.X.shape, test.graph.shape, train.subset(range(6)).y.shape
    ((60, 5), (40, 40), (6,))
    """

    name: str
    X: Floats
    y: Floats
    coords: Floats | None
    graph: Any
    feature_names: tuple[str, ...]
    metric: str = "euclidean"
    regressors: tuple[int, ...] | None = None

    def subset(self, nodes: ArrayLike) -> RegressionData:
        """The data of some nodes, with the edges among them."""
        chosen = np.asarray(nodes)
        return replace(
            self,
            X=self.X[chosen],
            y=self.y[chosen],
            coords=None if self.coords is None else self.coords[chosen],
            graph=None if self.graph is None else self.graph[chosen][:, chosen],
        )

    def with_graph(self, build: Callable[[Floats], Any] | None = None) -> RegressionData:
        """The same data with the graph that a function of the coordinates makes.

        By default five nearest neighbours and weights e^(−distance).
        """
        from trellis.regression.similarity import KNN

        if self.coords is None:
            raise DataError(f"{self.name} has no coordinates to make a graph of")
        make: Any = KNN(metric=self.metric) if build is None else build  # type: ignore[arg-type]  # a str
        return replace(self, graph=make(self.coords))

    def split(
        self, n_train: int, random_state: int | np.random.Generator = 0
    ) -> tuple[RegressionData, RegressionData]:
        """Random training part of ``n_train`` nodes and the rest; edges between them are lost."""
        n = len(self.y)
        if not 0 < n_train < n:
            raise DataError(f"n_train must lie between 1 and {n - 1}, got {n_train}")
        order = np.random.default_rng(random_state).permutation(n)
        return self.subset(order[:n_train]), self.subset(order[n_train:])


# ------------------------------------------------------------------------------- synthetic


def synthetic_graph_regression(
    n: int = 3000,
    n_test: int = 3000,
    *,
    n_features: int = 5,
    degree: int = 3,
    interactions: bool = True,
    coefficients: tuple[float, float] = (0.0, 0.3),
    noise_variance: float = 1.0,
    edge_probability: float | None = None,
    mean_degree: float = 10.0,
    alpha: float = 1.0,
    beta: float = 5.0,
    normalise: bool = True,
    coefficient_state: int | None = None,
    random_state: int | np.random.Generator = 0,
) -> tuple[RegressionData, RegressionData]:
    """Training data and independent test data of one polynomial, each with a graph of its own.

    Fractions of the training data are had by :meth:`RegressionData.subset`.

    Parameters
    ----------
    n, n_test : int
        Nodes of the training and of the test graph.
    n_features : int
        d.
    degree : int
        Of the polynomial; not stated in the paper.
    interactions : bool
        All monomials up to the degree; else only powers of single variables. Not stated.
    coefficients : (float, float)
        Range of the uniform coefficients; not stated.
    noise_variance : float
        σ²; not stated.
    edge_probability : float, optional
        Of the Erdős–Rényi graphs; not stated. By default it makes the mean degree what
        ``mean_degree`` says in both graphs.
    mean_degree : float
        Mean number of neighbours, if no probability is given.
    alpha, beta : float
        Of the Gaussian CRF that makes y.
    normalise : bool
        Rescale S to N·S/ΣS before y is made; not stated.
    coefficient_state : int, optional
        Seed of the coefficients alone, for several data sets of one polynomial. The intervals in
        the paper are so tight that its ten data sets seem to share one. By default the coefficients
        are drawn with ``random_state``, too.
    random_state : int or Generator

    Returns
    -------
    train, test : RegressionData
        The graphs hold S as it is defined, not rescaled.

    Examples
    --------
    >>> from trellis.datasets import synthetic_graph_regression
    >>> train, test = synthetic_graph_regression(200, 100, mean_degree=6, random_state=1)
    >>> round(train.graph.nnz / 200)
    6
    """
    for name, value, low in (
        ("n", n, 2),
        ("n_test", n_test, 2),
        ("n_features", n_features, 1),
        ("degree", degree, 1),
    ):
        if value < low:
            raise DataError(f"{name} must be at least {low}, got {value}")
    if noise_variance < 0:
        raise DataError(f"noise_variance must not be negative, got {noise_variance}")
    if alpha <= 0 or beta < 0:
        raise DataError(f"alpha must be positive and beta not negative, got {alpha} and {beta}")
    if edge_probability is not None and not 0 <= edge_probability <= 1:
        raise DataError(f"edge_probability must lie in [0, 1], got {edge_probability}")
    if edge_probability is None and mean_degree < 0:
        raise DataError(f"mean_degree must not be negative, got {mean_degree}")
    rng = np.random.default_rng(random_state)
    monomials = _monomials(n_features, degree, interactions)
    of_c = rng if coefficient_state is None else np.random.default_rng(coefficient_state)
    c = of_c.uniform(*coefficients, size=len(monomials))

    def part(size: int, name: str) -> RegressionData:
        X = rng.standard_normal((size, n_features))
        raw = sum((ck * X[:, list(m)].prod(1) for ck, m in zip(c, monomials, strict=True)), 0.0)
        raw = raw + np.sqrt(noise_variance) * rng.standard_normal(size)
        p = min(1.0, mean_degree / (size - 1)) if edge_probability is None else edge_probability
        S = _random_similarities(raw, p, rng)
        y = _smoothed(raw, S, alpha, beta, normalise)
        names = tuple(f"x{i + 1}" for i in range(n_features))
        return RegressionData(name, X, y, None, S, names)

    return part(n, "synthetic, training"), part(n_test, "synthetic, test")


def _monomials(d: int, degree: int, interactions: bool) -> list[tuple[int, ...]]:
    """Variables of each monomial, with repetition: (0, 0, 2) is x₁²x₃; () is the constant."""
    if interactions:
        powers = range(degree + 1)
        return [m for k in powers for m in itertools.combinations_with_replacement(range(d), k)]
    return [()] + [(i,) * k for k in range(1, degree + 1) for i in range(d)]


def _random_similarities(raw: Floats, p: float, rng: np.random.Generator) -> Any:
    """S on an Erdős–Rényi graph: a binomial number of pairs i < j, drawn without replacement."""
    from scipy.sparse import csr_array

    n = len(raw)
    n_pairs = n * (n - 1) // 2
    pairs = rng.choice(n_pairs, rng.binomial(n_pairs, p), replace=False, shuffle=False)
    # Pair number k stands at row i of the strict lower triangle, where i(i − 1)/2 ≤ k.
    i = ((1 + np.sqrt(1 + 8 * pairs.astype(np.float64))) / 2).astype(np.int64)
    i -= i * (i - 1) // 2 > pairs  # rounding
    i += i * (i + 1) // 2 <= pairs
    j = pairs - i * (i - 1) // 2
    w = np.exp(-np.abs(raw[i] - raw[j]))
    rows, columns = np.concatenate([i, j]), np.concatenate([j, i])
    S = csr_array((np.concatenate([w, w]), (rows, columns)), shape=(n, n))
    S.sort_indices()
    return S


def _smoothed(raw: Floats, S: Any, alpha: float, beta: float, normalise: bool) -> Floats:
    """α (αI + βL)⁻¹ ỹ."""
    from scipy.sparse import diags_array, eye_array
    from scipy.sparse.linalg import cg

    n, total = len(raw), S.sum()
    scale = n / total if normalise and total > 0 else 1.0
    degrees = S.sum(axis=1)
    Q = alpha * eye_array(n) + beta * scale * (diags_array(degrees) - S)
    diagonal = alpha + beta * scale * degrees
    # Conjugate gradients with Jacobi's preconditioner: a random graph fills a factorisation.
    y, failed = cg(Q.tocsr(), alpha * raw, rtol=1e-12, maxiter=10 * n, M=diags_array(1 / diagonal))
    if failed:
        raise DataError("the system of the Gaussian CRF could not be solved; lower beta")
    return np.asarray(y, dtype=np.float64)


# ------------------------------------------------------------------------------- real data


def load_sacramento() -> RegressionData:
    """Prices of 985 houses in the Sacramento area, as prepared by Hallac et al. (2015).

    Features are the z-scores of bedrooms, bathrooms and area (missing values are 0, their mean) and
    latitude and longitude in degrees; the target is the z-score of the price. The coordinates are
    latitude and longitude, their distance is in kilometres. There is no graph: make one for each
    part, ``train.with_graph()``.

    Examples
    --------
    >>> load_sacramento().X.shape  # doctest: +SKIP
    (985, 5)
    """
    names = ("beds_norm", "baths_norm", "sqft_norm", "latitude", "longitude")
    columns = _columns(data_folder("sacramento") / "sacramento.csv.xz", (*names, "price_norm"))
    X = np.column_stack([_numbers(columns[name]) for name in names])
    y = _numbers(columns["price_norm"])
    short = ("beds", "baths", "sqft", "latitude", "longitude")
    return RegressionData("sacramento", X, y, X[:, 3:].copy(), None, short, "haversine", (0, 1, 2))


def load_medicare(period: str = "2014-2017", n: int | None = 1000) -> RegressionData:
    """Hospital readmissions: their number, from discharges, ratio and rates.

    Of the complete records of a period, the ``n`` with the most readmissions (ties in the order of
    the file). Features are the number of discharges, the excess readmission ratio, and the
    predicted and the expected rate, as they are; the target is the number of readmissions.

    Distances between raw features are hundreds, since discharges are, and e^(−distance) underflows
    for isolated records. The coordinates are therefore the features divided by their standard
    deviations over these records (no target is used), so that the Manhattan distance counts
    standard deviations.

    Parameters
    ----------
    period : "2014-2017" or "2015-2018"
    n : int or None
        Records; None for all.

    Examples
    --------
    >>> load_medicare().y.min()  # doctest: +SKIP
    np.float64(144.0)
    """
    names = ("n_discharges", "excess_ratio", "predicted_rate", "expected_rate")
    path = data_folder("medicare_readmissions") / "readmissions.csv.xz"
    columns = _columns(path, ("period", *names, "n_readmissions"))
    periods = sorted(set(columns["period"]))
    if period not in periods:
        raise DataError(f"unknown period {period!r}; known: {', '.join(periods)}")
    table = np.column_stack([_numbers(columns[name]) for name in (*names, "n_readmissions")])
    table = table[(np.array(columns["period"]) == period) & np.isfinite(table).all(1)]
    if n is not None:
        if not 2 <= n <= len(table):
            raise DataError(f"n must lie between 2 and {len(table)}, got {n}")
        table = table[np.argsort(-table[:, -1], kind="stable")[:n]]
    X, y = table[:, :-1].copy(), table[:, -1].copy()
    return RegressionData("medicare", X, y, X / X.std(0), None, names, "manhattan")


def _columns(path: Path, names: tuple[str, ...]) -> dict[str, list[str]]:
    from trellis.files import open_text_bytes

    rows = list(csv.DictReader(io.StringIO(open_text_bytes(path).decode("utf-8"))))
    missing = [name for name in names if not rows or rows[0].get(name) is None]
    if missing:
        raise DataError(f"{path} has no column {missing[0]!r}")
    return {name: [row[name] for row in rows] for name in names}


def _numbers(cells: list[str]) -> Floats:
    """Cells as numbers; an empty cell is NaN."""
    return np.array([float(cell) if cell else np.nan for cell in cells])

r"""Numbers at the nodes of a graph: a generator of such data.

After Pavlovski et al. (2018, section 5.3), with x_i ∼ N(0, I_d), i = 1..N,

    ỹ_i = p(x_i) + ε_i,   p(x) = Σ_k c_k m_k(x),   c_k ∼ U(low, high),   ε_i ∼ N(0, σ²),
    S_ij = e^{−|ỹ_i − ỹ_j|} on the edges of an Erdős–Rényi graph, 0 elsewhere,
    y = α (αI + βL)⁻¹ ỹ,   L = diag(S1) − S,   α = 1, β = 5,

where m_k are the monomials of x. The paper states N = 3000, d = 5, α and β. It does not state the
degree and the monomials of p, the range of c, σ², the probability of an edge, and whether S is
rescaled to N·S/ΣS before y is made; all of these are parameters here. Without rescaling, the same β
smooths more the denser the graph is.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from trellis.arrays import Float64s
from trellis.domains import nothing, number, whole
from trellis.errors import DataError

if TYPE_CHECKING:
    from trellis.regression import RegressionData

__all__ = ["synthetic_graph_regression"]


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

    Fractions of the training data are had by :meth:`trellis.regression.RegressionData.subset`.

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
    whole(2).check("n", n)
    whole(2).check("n_test", n_test)
    whole(1).check("n_features", n_features)
    whole(1).check("degree", degree)
    number(at_least=0).check("noise_variance", noise_variance)
    number(at_least=0).check("mean_degree", mean_degree)
    number(at_least=0).check("beta", beta)
    number(above=0).check("alpha", alpha)
    (nothing | number(at_least=0, at_most=1)).check("edge_probability", edge_probability)
    from trellis.regression.data import RegressionData

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


def _random_similarities(raw: Float64s, p: float, rng: np.random.Generator) -> Any:
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


def _smoothed(raw: Float64s, S: Any, alpha: float, beta: float, normalise: bool) -> Float64s:
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

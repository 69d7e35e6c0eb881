r"""The quantities of the bounds for a linear-chain CRF and a corpus.

What the paper's symbols are for a CRF. Let x_t be the features of position t and x̃_t = (x_t, 1),
where the 1 stands for the transition into t; d, v and the norms below are those of x̃_t.

- *Function value* f(x, k): the vector of log p(y_k = · | x), one entry for each label.
- *Point-wise loss* ℓ(f, z, k) = −log p(y_k | x) = −f(x, k)[y_k]. It is 1-Lipschitz in f: **τ = 1**.
- The gradient of f(x, k)[j] in w is a difference of two expectations of the features, and for each
  position the two distributions differ by at most √2 in norm. So it is at most √2 Σ_t ‖x̃_t‖, and
  so is the gradient of the loss that is trained, −log p(y | x): **ρ = √2**, if ‖x‖ in Eq. (2) is
  read as Σ_t ‖x̃_t‖. Like the paper's ‖x‖ it is at most n v √d, which is all the bounds use.
- *λ.* The library minimises Σ losses + l2 ‖w‖², Eq. (8) the same divided by mn: **λ = 2 l2/(mn)**.
  So for a fixed ``l2`` λ falls with m; a λ that stays needs an ``l2`` that grows with the data.
- *α* = n / ``piece_size``; 1 for whole samples.

For Proposition 5 take g to be the mean over the N = mα mini-samples of g_z(w) = loss of z + (l2/N)
‖w‖²: that is what one SGD step of the library goes down. Then **c = 2 l2/N = λn/α**; and since the
Hessian of the loss of z is a covariance of features of range at most √2 Σ_t ‖x̃_t‖,
**q ≤ c + (s max_t ‖x̃_t‖)²/2** with s the largest size of a mini-sample, and
**κ ≤ √2 max_t ‖x̃_t‖** without the penalty's share 2 (l2/N) ‖w‖.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from trellis.corpus import Corpus, as_corpus
from trellis.domains import has
from trellis.errors import DataError
from trellis.estimator import check_fitted
from trellis.features import Encoded
from trellis.theory.checks import choice
from trellis.theory.convergence import sgd_iterations
from trellis.theory.risk import overfit_bound
from trellis.theory.stability import (
    Stability,
    mini_sample_stability_bound,
    sample_stability_bound,
)

if TYPE_CHECKING:
    from trellis.models import ChainCRF

__all__ = ["RHO", "TAU", "FeatureSizes", "Quantities", "point_losses"]

RHO, TAU = math.sqrt(2), 1.0
"""Admissibility and Lipschitz constant of a CRF's log-probabilities (see the module)."""


@dataclass(frozen=True)
class FeatureSizes:
    """Sizes of the feature vectors x̃_t = (x_t, 1) of a corpus."""

    active: int
    """Most entries that are not zero at a position."""
    largest: float
    """Largest absolute value of an entry (v)."""
    norm: float
    """Largest norm ‖x̃_t‖."""

    @classmethod
    def of(cls, encoded: Encoded, n_features: int) -> FeatureSizes:
        """Measure encoded features; one that is named twice at a position counts with its sum."""
        from scipy.sparse import csr_array

        values = encoded.values if encoded.values.size else np.ones(len(encoded.indices))
        matrix = csr_array(
            (values.astype(np.float64), encoded.indices.copy(), encoded.indptr.copy()),
            shape=(len(encoded.indptr) - 1, n_features),
        )
        matrix.sum_duplicates()
        squares = np.concatenate([[0.0], np.cumsum(np.square(matrix.data))])
        norms = np.diff(squares[matrix.indptr])
        return cls(
            int(np.diff(matrix.indptr).max(initial=0)) + 1,
            float(np.abs(matrix.data).max(initial=1.0)),
            math.sqrt(float(norms.max(initial=0.0)) + 1),
        )


@dataclass(frozen=True)
class Quantities:
    """The symbols of the bounds, as numbers.

    Attributes
    ----------
    m : int
        Samples (exact).
    n : float
        Structure complexity: mean or largest number of positions of a sample (exact).
    d : int
        Dimension of x̃: all features plus one for the transition, or the most that are active at one
        position plus one (exact).
    alpha : float
        Strength of structure regularisation n / ``piece_size`` (exact).
    lam : float
        λ = 2 l2/(mn) (exact).
    v : float
        Largest feature value. Exact on the corpus; an *estimate* for samples to come, unless all
        features are indicators.
    rho, tau : float
        √2 and 1: *upper bounds* for any linear-chain CRF.
    gamma : float
        Largest point-wise loss on the corpus: an *estimate* from below. No finite bound holds for
        all samples.
    c : float
        Modulus of strong convexity of g, from the penalty alone: a *lower bound*, as it must be.
    q : float
        Lipschitz constant of the gradient of g: an *upper bound* on the corpus.
    kappa : float
        *Upper bound* on the norm of the gradient of a mini-sample's loss per position, on the
        corpus. The penalty's share, 2 (l2/N) ‖w‖, is left out.
    a0 : float
        ‖w‖² of the fitted weights: an *estimate* of ‖w_0 − w*‖² for a start at zero.
    empirical_risk : float
        R_e, the mean point-wise loss on the corpus (exact).
    """

    m: int
    n: float
    d: int
    alpha: float
    lam: float
    v: float
    rho: float
    tau: float
    gamma: float
    c: float
    q: float
    kappa: float
    a0: float
    empirical_risk: float

    @classmethod
    def from_model(
        cls,
        model: ChainCRF,
        corpus: Any,
        *,
        complexity: str = "mean",
        sparse: bool = False,
    ) -> Self:
        """Quantities of a fitted CRF and the labelled corpus it was fitted on.

        Parameters
        ----------
        model : ChainCRF
            Fitted, with ``l2`` > 0.
        corpus : Corpus or (X, y)
            The training data.
        complexity : "mean" or "max"
            What n is: the mean length, as in the paper's experiments, or the longest. The paper
            supposes that all samples have n positions; where they do not, the bounds on stability
            hold for certain only with the longest.
        sparse : bool
            Take d to be the number of features active at a position. The bounds need d only for
            ‖x̃_t‖ ≤ v √d, which the smaller number satisfies as well.

        Examples
        --------
        >>> from trellis import ChainCRF
        >>> from trellis.theory import Quantities
        >>> X = [["the", "cat", "sat", "down"], ["the", "dog", "ran", "off"]] * 5
        >>> y = [["D", "N", "V", "P"]] * 10
        >>> model = ChainCRF("word", l2=1.0, piece_size=2, random_state=0).fit(X, y)
        >>> found = Quantities.from_model(model, (X, y))
        >>> found.m, found.n, found.d, found.alpha, found.lam
        (10, 4.0, 8, 2.0, 0.05)
        """
        choice("complexity", complexity, ("mean", "max"))
        l2 = _checked_l2(model)
        data = labelled(corpus)
        lengths = data.lengths[data.lengths > 0]
        losses = point_losses(model, data)
        encoded = model.encoder_.encode(data)
        n_features = len(model.weights_.node)
        sizes = FeatureSizes.of(encoded, n_features)

        m = len(lengths)
        n = float(lengths.mean() if complexity == "mean" else lengths.max())
        size = n if model.piece_size is None else float(model.piece_size)
        alpha = max(1.0, n / size)
        lam = 2 * l2 / (m * n)
        c = lam * n / alpha
        longest = int(lengths.max())
        if model.piece_size is not None:
            longest = min(longest, math.ceil(model.piece_size))
        return cls(
            m=m,
            n=n,
            d=sizes.active if sparse else n_features + 1,
            alpha=alpha,
            lam=lam,
            v=sizes.largest,
            rho=RHO,
            tau=TAU,
            gamma=float(losses.max()),
            c=c,
            q=c + (longest * sizes.norm) ** 2 / 2,
            kappa=math.sqrt(2) * sizes.norm,
            a0=model.weights_.squared_norm(),
            empirical_risk=float(losses.mean()),
        )

    def overfit_bound(self, *, delta: float = 0.05, variant: str = "arxiv") -> float:
        """Overfit-bound of Theorem 4 (see :func:`trellis.theory.overfit_bound`)."""
        return overfit_bound(**self._of_stability(), gamma=self.gamma, delta=delta, variant=variant)

    def mini_sample_stability_bound(self) -> Stability:
        """Theorem 11 (see :func:`trellis.theory.mini_sample_stability_bound`)."""
        return mini_sample_stability_bound(**self._of_stability())

    def sample_stability_bound(self) -> Stability:
        """Corollary 12 (see :func:`trellis.theory.sample_stability_bound`)."""
        return sample_stability_bound(**self._of_stability())

    def sgd_iterations(self, epsilon: float, *, beta: float = 1.0) -> int:
        """Updates of Proposition 5 (see :func:`trellis.theory.sgd_iterations`)."""
        setting = self._only("n", "alpha", "c", "q", "kappa", "a0")
        return sgd_iterations(epsilon=epsilon, beta=beta, **setting)

    def _of_stability(self) -> dict[str, float]:
        return self._only("m", "n", "d", "alpha", "lam", "v", "rho", "tau")

    def _only(self, *names: str) -> dict[str, float]:
        return {name: getattr(self, name) for name in names}


def point_losses(model: ChainCRF, corpus: Any) -> NDArray[np.float64]:
    """Point-wise losses −log p(y_k | x) of a fitted CRF at all positions of labelled data.

    Their mean is the empirical risk R_e on the training data, and an estimate of the risk R on data
    not used in training. Where a set of labels is allowed, p is that of the set.

    Parameters
    ----------
    model : ChainCRF
        Fitted.
    corpus : Corpus or (X, y)

    Returns
    -------
    float64 array (N,)

    Examples
    --------
    >>> from trellis import ChainCRF
    >>> from trellis.theory import point_losses
    >>> X, y = [["a", "b"]] * 5, [["A", "B"]] * 5
    >>> losses = point_losses(ChainCRF("word", random_state=0).fit(X, y), (X, y))
    >>> losses.shape, bool(losses.max() < 0.7)
    ((10,), True)
    """
    has("predict_marginals").check("model", model)
    data = labelled(corpus)
    marginals = np.concatenate(model.predict_marginals(data))
    assert data.labels is not None
    allowed = data.labels.recoded(model.classes_).allowed()
    right = np.where(allowed, marginals, 0.0).sum(axis=1)
    zero = np.flatnonzero(right <= 0)
    if zero.size:
        s = int(np.searchsorted(data.offsets, zero[0], side="right")) - 1
        raise DataError(
            f"the label of sample {s}, position {zero[0] - data.offsets[s]} has probability 0, so "
            "its loss is infinite; use a model without a scheme, or labels that follow it"
        )
    losses: NDArray[np.float64] = np.maximum(0.0, -np.log(right))
    return losses


def labelled(corpus: Any) -> Corpus:
    """What was passed as a corpus with labels and at least one position."""
    pair = corpus if isinstance(corpus, tuple) and len(corpus) == 2 else (corpus, None)
    data = as_corpus(*pair)
    if data.labels is None:
        raise DataError("labels are needed: pass a corpus that carries them or a pair (X, y)")
    if data.n_positions == 0:
        raise DataError("the corpus has no positions; at least one sequence is needed")
    return data


def _checked_l2(model: ChainCRF) -> float:
    from trellis.models import ChainCRF

    if not isinstance(model, ChainCRF):
        raise DataError(
            f"the bounds are for a ChainCRF, which has a penalty; got {type(model).__name__}"
        )
    check_fitted(model)
    strength = getattr(model, "l2_", model.l2)  # files of before have no other than the parameter
    if isinstance(strength, str) or not strength > 0:
        raise DataError(
            f"the bounds divide by the strength of the penalty, but l2 is {strength!r}; "
            "fit with l2 > 0"
        )
    return float(strength)

r"""Places on a map with features and numbers that are smooth over the map: the truth is known.

    y_i = a f(x_i) + b g(s_i) + c ε_i,   a² + b² + c² = 1,   ε_i ∼ N(0, 1),

s_i in the unit square, x_i ∼ U(0, 1)^d. f is Friedman's (1991) function of five features, rescaled
to mean 0 and variance 1, and g a Gaussian field of mean 0 with Matérn's covariance of smoothness ν
and length ℓ, of which the two usual cases are

    ν = 1/2    k(h) = e^(−h/ℓ)
    ν = 3/2    k(h) = (1 + √3 h/ℓ) e^(−√3 h/ℓ).

The field is a sum of m waves, random Fourier features (Rahimi and Recht 2007): Matérn's spectral
density in the plane is that of Student's t, so that a wave number exceeds w with the probability
S(w) = (1 + w²ℓ²/2ν)^(−ν). The probabilities are cut at S_j = (1 − j/m)³, one wave number is drawn
from each part, and

    g(s) = Σ_j √p_j (A_j cos ω_j's + B_j sin ω_j's),   p_j = S_j − S_(j+1),   A_j, B_j ∼ N(0, 1).

Given its waves the field is Gaussian, and over draws of the waves its covariance is k exactly. The
parts become smaller towards short waves, so that the variogram 1 − k(h) of near places, which makes
a field rough or smooth, is as good as that of far ones; equal parts would have a handful of waves
there. With m = 1000 the covariance of one draw of waves is off by .007 (ν = 1/2; .001 for 3/2; root
mean square, lags of 0 to 10 ℓ), and the variogram at lags of ℓ/100 to ℓ by .5 % of itself.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trellis.arrays import Float64s
from trellis.domains import number, whole
from trellis.errors import DataError

__all__ = ["SpatialField", "spatial_field"]

_WAVES = 1000
_BLOCK = 1 << 22  # entries of a block of places × waves
_GOLDEN = (np.sqrt(5) - 1) / 2
_MEAN, _STD = 14.413297342419856, 4.881235885652444  # of Friedman's function on (0, 1)^5
_SPREAD = 0.03  # standard deviation of a cluster
_LEFT = 1e-12  # what rounding may leave of shares


class SpatialField(NamedTuple):
    """Numbers on a map.

    Parameters
    ----------
    places : float64 array (n, 2)
        Points of the unit square.
    X : float64 array (n, d)
        The features.
    y : float64 array (n,)
        What was measured.
    truth : float64 array (n,)
        The same without noise.
    """

    places: Float64s
    X: Float64s
    y: Float64s
    truth: Float64s


def spatial_field(
    n: int = 1000,
    *,
    n_features: int = 5,
    length_scale: float = 0.1,
    smoothness: float = 0.5,
    field_share: float = 0.4,
    noise_share: float = 0.1,
    clusters: int = 0,
    random_state: int | np.random.Generator = 0,
) -> SpatialField:
    """Generate numbers at places that follow from features, from where the places are, and noise.

    Time and memory grow with the number of places: 10^5 take a few seconds.

    Parameters
    ----------
    n : int
        Number of places.
    n_features : int
        At least 5; those beyond the fifth say nothing.
    length_scale : float
        ℓ: how far the field reaches; the side of the map is 1.
    smoothness : float
        ν of Matérn's covariance: 0.5 is rough, 1.5 smooth.
    field_share, noise_share : float
        Shares of the variance of y that the field and the noise have; the features have the rest.
    clusters : int
        0: places are uniform. Else they crowd around so many random points.
    random_state : int or Generator

    Returns
    -------
    SpatialField
        A tuple of places, features, targets and targets without noise.

    Examples
    --------
    >>> from trellis.datasets import spatial_field
    >>> places, X, y, truth = spatial_field(2000, noise_share=0.2)
    >>> places.shape, X.shape, round(float(np.var(y - truth)), 1)
    ((2000, 2), (2000, 5), 0.2)
    """
    whole(1).check("n", n)
    whole(5).check("n_features", n_features)
    number(above=0).check("length_scale", length_scale)
    number(above=0).check("smoothness", smoothness)
    whole(0).check("clusters", clusters)
    for name, share in (("field_share", field_share), ("noise_share", noise_share)):
        number(at_least=0, at_most=1).check(name, share)
    rest = 1 - field_share - noise_share
    if rest < -_LEFT:
        raise DataError(
            f"field_share and noise_share are {field_share:g} and {noise_share:g}: together they"
            " must be at most 1"
        )
    rng = np.random.default_rng(random_state)
    places = _places(n, clusters, rng)
    X = rng.random((n, n_features))
    field = _field(places, *waves(length_scale, smoothness, rng), rng)
    truth = np.sqrt(max(rest, 0)) * _friedman(X) + np.sqrt(field_share) * field
    y = truth + np.sqrt(noise_share) * rng.standard_normal(n)
    return SpatialField(places, X, y, truth)


def waves(
    length_scale: float, smoothness: float, rng: np.random.Generator
) -> tuple[Float64s, Float64s]:
    """Draw the waves of a field: ω, of shape (2, m), and their shares p of the variance.

    Examples
    --------
    >>> omega, share = waves(0.1, 0.5, np.random.default_rng(0))
    >>> omega.shape, round(float(share.sum()), 6)
    ((2, 1000), 1.0)
    """
    m = _WAVES
    above = (1 - np.arange(m + 1) / m) ** 3
    share = above[:-1] - above[1:]
    drawn = above[1:] + share * (1 - rng.random(m))  # of (0, 1], the share of longer ones
    length = np.sqrt(2 * smoothness * (drawn ** (-1 / smoothness) - 1)) / length_scale
    # Directions of successive lengths are spread evenly: cos and sin have the period π of signs.
    angle = np.pi * ((rng.random() + _GOLDEN * np.arange(m)) % 1)
    return length * np.array([np.cos(angle), np.sin(angle)]), share


def _field(
    places: Float64s, omega: Float64s, share: Float64s, rng: np.random.Generator
) -> Float64s:
    """The waves with random amplitudes, summed: A cos t + B sin t = R cos(t − φ)."""
    a, b = rng.standard_normal((2, len(share)))
    weight, phase = np.sqrt(share) * np.hypot(a, b), np.arctan2(b, a)
    step = max(1, _BLOCK // len(share))
    field = np.empty(len(places))
    for i in range(0, len(places), step):
        x, y = places[i : i + step, :, None].swapaxes(0, 1)
        angle = x * omega[0]
        angle += y * omega[1]
        angle -= phase
        field[i : i + step] = np.einsum("ij,j->i", np.cos(angle, out=angle), weight)
    return field


def _places(n: int, clusters: int, rng: np.random.Generator) -> Float64s:
    """Points of the unit square; those that would lie outside are mirrored at its sides."""
    if not clusters:
        return rng.random((n, 2))
    centres = rng.random((clusters, 2))
    points = centres[rng.integers(clusters, size=n)] + _SPREAD * rng.standard_normal((n, 2))
    folded: Float64s = np.abs(points) % 2
    inside: Float64s = np.minimum(folded, 2 - folded)
    return inside


def _friedman(X: Float64s) -> Float64s:
    """10 sin(π x₁x₂) + 20 (x₃ − ½)² + 10 x₄ + 5 x₅, at mean 0 and variance 1."""
    raw = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2
    raw += 10 * X[:, 3] + 5 * X[:, 4]
    scaled: Float64s = (raw - _MEAN) / _STD
    return scaled

r"""Guarantees of learning from partly annotated outputs (Lou et al., Theorem 1.1 and supplement).

N samples drawn independently, weights of norm at most μ, joint features of norm at most B, task
losses of at most Δmax, \|Y\| outputs and \|Yp\| annotations there can be. The bridge loss of a
sample is

    [max over incompatible y of (⟨w, Φ(x, y)⟩ + Δ(y*, y)) − max over compatible y of ⟨w, Φ(x, y)⟩]₊

and a bound says how far the expected loss of the weights that are best on the samples lies above
that of the best weights there are; it fails with probability δ at most.

**From λ to μ.** Training adds λ‖w‖² to the loss, the theorem bounds ‖w‖. If w minimises
λ‖w‖² + L(w), convex or not, then w minimises L among all weights of norm at most μ = ‖w‖: any with
less loss in there would have been better in the first problem, too. Since J(w) ≤ J(0), that μ is at
most √(L(0) / λ), for losses that are not negative. Here λ and L belong together: both for the mean
loss, as in the supplement, or both for the sum, as elsewhere in Trellis. The converse, a λ for
every μ, needs a convex loss.

**A slip in print.** The supplement bounds the loss by μB + Δmax. It is the difference of two
scores, each in [−μB, μB], and a task loss, so the bound is 2μB + Δmax, which two outputs with
opposite features attain. It enters beside √(2 log(2/δ)): ``variant="corrected"`` has it right. The
Rademacher terms, which make up nearly all of the bound, are not affected.

With outputs as many as structures have, the bound says nothing but that it vanishes as 1/√N; it is
worth a number where \|Y\| is small. ``log_partial_annotation_bound`` takes the logarithms.
"""

from __future__ import annotations

import math

from trellis.errors import DataError
from trellis.theory.checks import at_least, choice, fraction, positive, within_floats

__all__ = [
    "log_partial_annotation_bound",
    "partial_annotation_bound",
    "rademacher_bridge",
    "rademacher_kernel_class",
    "rademacher_structured",
    "radius_of",
    "samples_needed",
]

_VARIANTS = ("printed", "corrected")


@within_floats
def rademacher_kernel_class(n: int, mu: float, feature_bound: float) -> float:
    """Rademacher complexity of x -> ⟨w, Φ(x, y)⟩ with ‖w‖ <= μ: at most μB / √N.

    Examples
    --------
    >>> from trellis.theory.cheap_data import rademacher_kernel_class
    >>> rademacher_kernel_class(100, mu=2.0, feature_bound=3.0)
    0.6
    """
    positive(n=n)
    at_least(0, mu=mu, feature_bound=feature_bound)
    return mu * feature_bound / math.sqrt(n)


@within_floats
def rademacher_structured(
    n: int, mu: float, feature_bound: float, loss_max: float, n_outputs: float, n_partial: float
) -> float:
    r"""Steps 2 and 3: complexity of the differences of maxima, \|Yp\| \|Y\| (μB + Δmax) / √N.

    Examples
    --------
    >>> from trellis.theory.cheap_data import rademacher_structured
    >>> rademacher_structured(10_000, 1.0, 1.0, loss_max=1.0, n_outputs=2, n_partial=3)
    0.12
    """
    at_least(0, loss_max=loss_max)
    at_least(1, n_outputs=n_outputs, n_partial=n_partial)
    kernel = rademacher_kernel_class(n, mu, feature_bound)
    return n_partial * n_outputs * (kernel + loss_max / math.sqrt(n))


@within_floats
def rademacher_bridge(
    n: int, mu: float, feature_bound: float, loss_max: float, n_outputs: float, n_partial: float
) -> float:
    """Step 1 (Talagrand): complexity of the bridge losses, twice that of the differences.

    Examples
    --------
    >>> from trellis.theory.cheap_data import rademacher_bridge
    >>> rademacher_bridge(10_000, 1.0, 1.0, loss_max=1.0, n_outputs=2, n_partial=3)
    0.24
    """
    return 2 * rademacher_structured(n, mu, feature_bound, loss_max, n_outputs, n_partial)


@within_floats
def partial_annotation_bound(
    n: int,
    mu: float,
    feature_bound: float,
    loss_max: float,
    n_outputs: float,
    n_partial: float,
    delta: float = 0.05,
    variant: str = "printed",
) -> float:
    r"""Theorem 1.1: expected loss of the weights best on N samples, less that of the best.

    (μB + Δmax) (8 \|Yp\| \|Y\| + √(2 log(2/δ))) / √N. That is 4 R_N + b √(2 log(2/δ) / N), with R_N
    of :func:`rademacher_bridge` and b the largest loss.

    Parameters
    ----------
    n : int
        Number of samples N.
    mu, feature_bound, loss_max : float
        Bounds μ on ‖w‖, B on ‖Φ(x, y)‖ and Δmax on the task loss.
    n_outputs, n_partial : float
        Number of outputs \|Y\| and of annotations there can be, \|Yp\|.
    delta : float
        Probability with which the bound may fail.
    variant : {"printed", "corrected"}
        Whether b is μB + Δmax, as in print, or 2μB + Δmax.

    Examples
    --------
    >>> from trellis.theory.cheap_data import partial_annotation_bound
    >>> round(partial_annotation_bound(10**6, 1.0, 1.0, 1.0, n_outputs=2, n_partial=3), 4)
    0.1014
    """
    choice("variant", variant, _VARIANTS)
    fraction(one=False, delta=delta)
    complexity = rademacher_bridge(n, mu, feature_bound, loss_max, n_outputs, n_partial)
    return 4 * complexity + _range(mu, feature_bound, loss_max, variant) * math.sqrt(
        2 * math.log(2 / delta) / n
    )


@within_floats
def log_partial_annotation_bound(
    n: int,
    mu: float,
    feature_bound: float,
    loss_max: float,
    log_outputs: float,
    log_partial: float,
    delta: float = 0.05,
    variant: str = "printed",
) -> float:
    r"""Logarithm of :func:`partial_annotation_bound`, from those of \|Y\| and \|Yp\|.

    Examples
    --------
    Sentences of 20 words with 23 labels, any of the words annotated:

    >>> import math
    >>> from trellis.theory.cheap_data import log_partial_annotation_bound
    >>> words, labels = 20, 23
    >>> log_outputs, log_partial = words * math.log(labels), words * math.log(labels + 1)
    >>> round(log_partial_annotation_bound(10**4, 10.0, 5.0, 20.0, log_outputs, log_partial), 1)
    128.0
    """
    choice("variant", variant, _VARIANTS)
    fraction(one=False, delta=delta)
    positive(n=n)
    at_least(0, mu=mu, feature_bound=feature_bound, loss_max=loss_max)
    at_least(0, log_outputs=log_outputs, log_partial=log_partial)
    size = mu * feature_bound + loss_max
    if size == 0:
        return -math.inf
    first = math.log(8 * size) + log_outputs + log_partial
    largest = _range(mu, feature_bound, loss_max, variant)
    second = math.log(largest * math.sqrt(2 * math.log(2 / delta)))
    low, high = sorted((first, second))
    return high + math.log1p(math.exp(low - high)) - math.log(n) / 2


@within_floats
def samples_needed(
    excess: float,
    mu: float,
    feature_bound: float,
    loss_max: float,
    n_outputs: float,
    n_partial: float,
    delta: float = 0.05,
    variant: str = "printed",
) -> int:
    """Least number of samples for which :func:`partial_annotation_bound` is at most ``excess``.

    Examples
    --------
    >>> from trellis.theory.cheap_data import samples_needed
    >>> samples_needed(0.1, 1.0, 1.0, 1.0, n_outputs=2, n_partial=3)
    1028854
    """
    positive(excess=excess)
    one = partial_annotation_bound(
        1, mu, feature_bound, loss_max, n_outputs, n_partial, delta, variant
    )
    ratio = one / excess
    if not math.isfinite(ratio * ratio):
        raise DataError(
            "more samples than can be counted are needed: use log_partial_annotation_bound"
        )
    return max(1, math.ceil(ratio * ratio))


@within_floats
def radius_of(l2: float, loss_at_zero: float) -> float:
    """Bound on ‖w‖ for the minimiser w of l2 ‖w‖² + L(w), L >= 0: √(L(0) / l2).

    Both are to belong to the mean loss, or both to the sum. The loss of zero weights is at most
    Δmax for each sample.

    Examples
    --------
    >>> from trellis.theory.cheap_data import radius_of
    >>> radius_of(l2=0.25, loss_at_zero=1.0)
    2.0
    """
    positive(l2=l2)
    at_least(0, loss_at_zero=loss_at_zero)
    return math.sqrt(loss_at_zero / l2)


def _range(mu: float, feature_bound: float, loss_max: float, variant: str) -> float:
    """Return the largest loss, as the variant has it."""
    scores = 1 if variant == "printed" else 2
    return scores * mu * feature_bound + loss_max

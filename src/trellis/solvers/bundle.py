r"""Planes below convex risks, as cutting-plane solvers keep them.

.. math:: R_d(w_d) \ge \langle a_i, w_d\rangle + b_i, \qquad i = 1 \dots T, \; d = d(i),

with the inner products of the slopes, which the dual of the master problem
(:mod:`trellis.solvers.planes`) is made of. A plane costs one product with all the others when it
comes, and nothing when another goes: slopes are long, and copying them took longer than inference.
"""

from __future__ import annotations

import numpy as np

from trellis.arrays import Float64s, Int64s, as_array
from trellis.domains import number, whole

__all__ = ["Bundle"]


class Bundle:
    """Planes below the risks of one or several domains: R_d(w_d) >= slopes @ w_d + offsets.

    They stay valid as long as the risks are the same, whatever the regulariser; a bundle can be
    given to another run. Planes have no order: one that goes leaves its place to the last, so that
    the others stay where they are.

    Parameters
    ----------
    n_weights : int
        Number of weights n of each domain.
    n_domains : int
        Number of domains D.

    Examples
    --------
    >>> bundle = Bundle(1)
    >>> for w in (-1.0, 2.0):  # tangents of w ** 2
    ...     bundle.add(np.array([2 * w]), -(w**2))
    >>> bundle.slopes.ravel().tolist(), bundle.height(np.array([1.0]))
    ([-2.0, 4.0], 0.0)
    """

    def __init__(self, n_weights: int, n_domains: int = 1) -> None:
        whole(0).check("n_weights", n_weights)
        whole(1).check("n_domains", n_domains)
        self.n_domains = n_domains
        self._n = 0
        self._added = 0  # planes so far, those that are gone included
        self._origin: Float64s | None = None
        self._slopes = np.zeros((4, n_weights))
        self._heights = np.zeros((4, 2))  # at zero and at the origin
        self._domains = np.zeros(4, np.int64)
        self._ages = np.zeros(4, np.int64)  # less is older
        self._gram = np.zeros((4, 4))

    def __len__(self) -> int:
        return self._n

    @property
    def n_weights(self) -> int:
        """Number of weights n of each domain."""
        return self._slopes.shape[1]

    @property
    def slopes(self) -> Float64s:
        """Slopes of the planes (T, n)."""
        return self._slopes[: self._n]

    @property
    def offsets(self) -> Float64s:
        """Heights of the planes at w = 0 (T,)."""
        return self._heights[: self._n, 0]

    @property
    def origin_heights(self) -> Float64s:
        """Heights of the planes at the origin (T,)."""
        return self._heights[: self._n, 1]

    @property
    def domains(self) -> Int64s:
        """Whose risk each plane belongs to (T,)."""
        return self._domains[: self._n]

    @property
    def gram(self) -> Float64s:
        """Inner products of the slopes (T, T)."""
        return self._gram[: self._n, : self._n]

    def set_origin(self, origin: Float64s | None) -> None:
        """Set the origin: weights of each domain (D, n), or zero."""
        self._origin = origin
        self._heights[: self._n, 1] = self.offsets if origin is None else self.heights(origin)

    def add(self, slope: Float64s, offset: float, domain: int = 0) -> None:
        """Add a plane."""
        slope = as_array(slope, np.float64, "slope", (self.n_weights,), finite=True)
        number().check("offset", offset)
        whole(0, self.n_domains - 1).check("domain", domain)
        if self._n == len(self._gram):
            n = self._n
            for name in ("_slopes", "_heights", "_domains", "_ages"):
                array = getattr(self, name)
                setattr(self, name, np.concatenate([array, np.zeros_like(array)]))
            self._gram = np.pad(self._gram, ((0, n), (0, n)))
        self._added += 1
        self._n += 1
        self._put(self._n - 1, slope, offset, domain, self._added)

    def heights(self, weights: Float64s) -> Float64s:
        """Return the heights of the planes (T,) at the weights of the domains (D, n)."""
        if self.n_domains == 1:
            alone: Float64s = self.slopes @ weights[0] + self.offsets
            return alone
        heights = self.offsets.copy()
        for d, w in enumerate(weights):
            planes = np.flatnonzero(self.domains == d)
            heights[planes] += self._slopes[planes] @ w
        return heights

    def sums(self, alpha: Float64s) -> Float64s:
        """Return the sums of the slopes of each domain (D, n), weighted by ``alpha`` (T,)."""
        if self.n_domains == 1:
            return (alpha @ self.slopes)[None]
        members = [np.flatnonzero(self.domains == d) for d in range(self.n_domains)]
        return np.stack([alpha[planes] @ self._slopes[planes] for planes in members])

    def height(self, w: Float64s) -> float:
        """Return the maximum of the planes of one domain at w; -inf if there are none."""
        w = as_array(w, np.float64, "w", (self.n_weights,))
        return float(self.heights(w[None]).max(initial=-np.inf))

    def compress(self, alpha: Float64s, memory: int, floor: float | None = None) -> Float64s:
        """Reduce the planes to ``memory``: first to go are the oldest whose ``alpha`` is zero.

        If more are in use, the youngest of these stay, and the mean by ``alpha`` of the planes of
        each domain comes to them; what ``alpha`` lacks to 1 is the share of the plane of height
        ``floor``. Returns the new ``alpha``, at which the master problem has the value that it had
        before.
        """
        order = np.argsort(self._ages[: self._n])
        used, spare = order[alpha[order] > 0], order[alpha[order] <= 0]
        if len(used) <= memory:
            return self._drop(spare[: self._n - memory], alpha)
        share = alpha * (self.domains == np.arange(self.n_domains)[:, None])
        means, offsets = self.sums(alpha), share @ self.offsets
        if floor is not None:
            offsets += floor * (1 - share.sum(axis=1))
        n_gone = len(used) - memory + self.n_domains
        gone = np.append(used[:n_gone], spare)
        alpha = np.zeros(self._n)
        for d, place in enumerate(gone[: self.n_domains].tolist()):
            self._put(place, means[d], float(offsets[d]), d, int(self._ages[place]))
            alpha[place] = 1.0
        return self._drop(gone[self.n_domains :], alpha)

    def _put(self, place: int, slope: Float64s, offset: float, domain: int, age: int) -> None:
        self._slopes[place] = slope
        tilt = 0.0 if self._origin is None else float(slope @ self._origin[domain])
        self._heights[place] = offset, offset + tilt
        self._domains[place] = domain
        self._ages[place] = age
        row = self.slopes @ self._slopes[place]
        self._gram[place, : self._n] = self._gram[: self._n, place] = row

    def _drop(self, gone: Int64s, alpha: Float64s) -> Float64s:
        """Take planes out; the last ones move to their places, and ``alpha`` with them."""
        n = self._n - len(gone)
        stays = np.ones(self._n, bool)
        stays[gone] = False
        to, from_ = np.flatnonzero(~stays[:n]), n + np.flatnonzero(stays[n:])
        alpha = alpha.copy()
        arrays = (self._slopes, self._heights, self._domains, self._ages, alpha, self._gram)
        for array in arrays:
            array[to] = array[from_]
        self._gram[:, to] = self._gram[:, from_]
        self._n = n
        return alpha[:n]

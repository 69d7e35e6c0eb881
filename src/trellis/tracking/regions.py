r"""Regions of a label image, measured: where they are, how large, long and bright.

A label image is an array (Y, X) or (Z, Y, X) of whole numbers; the pixels of one number are one
region, 0 is the background. All sums over regions are counts of foreground pixels with weights, so
a frame of 300 cells takes milliseconds. With :math:`p` the places of the n pixels of a region, in
units of length, its columns are

- ``area``: n times the size of a pixel; the volume in three dimensions;
- ``major_axis``, ``minor_axis``: lengths of the axes of the ellipse (ellipsoid) with the same
  second moments, :math:`4\sqrt{\lambda}` (:math:`\sqrt{20 \lambda}`) for the greatest and the least
  eigenvalue :math:`\lambda` of the covariance of p;
- ``eccentricity`` :math:`\sqrt{1 - \lambda_2 / \lambda_1}` and ``orientation``, the angle from the
  y axis to the long one in (-π/2, π/2], in two dimensions only, both as scikit-image has them;
- ``perimeter``: length of the pixel edges between the region and others or the background or the
  outside, holes included; ``solidity``: area over that of the convex hull of the pixels' corners;
  both in two dimensions only;
- ``mean_intensity``, ``max_intensity``, with an image of intensities;
- on demand ``on_border``, the share of those edges (faces) that lie on the border of the image, and
  the quantiles of intensity ``intensity_quantile_1`` ... ``_8`` at 1/16, 3/16, ..., 15/16. The mean
  distance of two quantile functions is the earth mover's distance of the two distributions, so that
  a few columns stand for a histogram, whatever its range.

A region may be of one pixel, have holes, or be of several pieces. Its moments are those of points
at the centres of pixels; so a single pixel has axes of length 0, and no orientation: NaN.

References
----------
S. van der Walt et al., *scikit-image: image processing in Python*, 2014.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import Float64s, Int64s
from trellis.tracking.objects import Objects

__all__ = ["N_QUANTILES", "Regions", "overlap"]

N_QUANTILES = 8
"""Columns that an intensity distribution is told by."""

_NONE = 1 << 40  # farther right than any image goes
_MANY, _ALONE = 100, 0.2  # labels, and share of pixels followed by their like
_FEW = 4  # labels that a table of all up to the largest may be longer than the image


@dataclass(frozen=True, eq=False)
class Regions:
    """The regions of a label image, sorted by label.

    Parameters
    ----------
    labels : int64, shape (n,)
        The numbers of the regions.
    rank : int64, shape of the image
        The row of the region that a pixel belongs to, -1 for the background.
    spacing : tuple of float
        Size of a pixel along each axis of the image.
    image : float64, shape of the image, or None
        Intensities.

    Examples
    --------
    >>> regions = Regions.of(np.array([[0, 7, 7], [0, 7, 0], [4, 0, 0]]))
    >>> regions.labels, regions.objects()["area"]
    (array([4, 7]), array([1., 3.]))
    """

    labels: Int64s
    rank: Int64s
    spacing: tuple[float, ...]
    image: Float64s | None = None

    @classmethod
    def of(
        cls,
        mask: NDArray[Any],
        image: NDArray[Any] | None = None,
        spacing: Sequence[float] | None = None,
    ) -> Regions:
        """Find the regions of a label image of whole numbers that are not negative."""
        flat = mask.ravel()
        if flat.size and int(flat.max()) < _FEW * flat.size:
            labels = np.flatnonzero(np.bincount(flat))
            labels = labels[labels > 0]
            row = np.full(int(labels.max(initial=0)) + 1, -1, np.int64)
            row[labels] = np.arange(len(labels))
            rank = row[flat]
        else:
            labels, rank = np.unique(flat, return_inverse=True)
            if len(labels) and labels[0] == 0:
                labels, rank = labels[1:], rank - 1
        grey = None if image is None else np.ascontiguousarray(image, np.float64)
        pixel = (1.0,) * mask.ndim if spacing is None else tuple(map(float, spacing))
        return cls(labels.astype(np.int64), rank.reshape(mask.shape).astype(np.int64), pixel, grey)

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def extent(self) -> tuple[float, ...]:
        """Least x, y (and z), then greatest: the outer edges of the image, in units of length.

        A volume of one slice has no depth: objects of it do not lie near its top and bottom.
        """
        shape, pixel = self.rank.shape[::-1], self.spacing[::-1]
        half = [0.0 if axis == 2 and n == 1 else 0.5 for axis, n in enumerate(shape)]
        least = [-h * s for h, s in zip(half, pixel, strict=True)]
        return (*least, *((n - 1 + h) * s for n, h, s in zip(shape, half, pixel, strict=True)))

    @property
    def scattered(self) -> bool:
        """Whether most pixels have another label than the next, as in no image of objects."""
        inside = self.rank >= 0
        alike = inside[..., 1:] & (self.rank[..., 1:] == self.rank[..., :-1])
        return len(self) > _MANY and alike.sum() < _ALONE * inside.sum()

    def objects(self, published: bool = False) -> Objects:
        """Regions as objects, with an id one less than the label, and columns.

        ``published`` adds ``on_border`` and the quantiles.
        """
        pixels = np.flatnonzero(self.rank.ravel() >= 0)
        row = self.rank.ravel()[pixels]
        places = np.unravel_index(pixels, self.rank.shape)

        def total(weights: NDArray[Any]) -> Float64s:
            return np.bincount(row, weights, len(self)).astype(np.float64)

        count = np.bincount(row, minlength=len(self)).astype(np.float64)
        # Sums of whole numbers are exact, so that centres do not depend on the image around them.
        pixel = np.array(self.spacing)
        centre = np.stack([total(place) / count for place in places], axis=1)
        around = [(place - centre[row, d]) * pixel[d] for d, place in enumerate(places)]
        covariance = np.empty((len(self), len(pixel), len(pixel)))
        for d, a in enumerate(around):
            for e, b in enumerate(around[: d + 1]):
                covariance[:, d, e] = covariance[:, e, d] = total(a * b) / count
        columns = {"area": count * pixel.prod(), **self._shape(covariance, published)}
        if self.image is not None:
            columns |= self._brightness(self.image.ravel()[pixels], row, count)
            if published:
                columns |= self._quantiles(self.image.ravel()[pixels], row, count)
        return Objects(self.labels - 1, (centre * pixel)[:, ::-1], columns)

    def _shape(self, covariance: Float64s, published: bool) -> dict[str, Float64s]:
        spread = np.maximum(np.linalg.eigvalsh(covariance), 0.0)  # ascending
        flat = self.rank.ndim == 2
        factor = 16.0 if flat else 20.0
        columns = {
            "major_axis": np.sqrt(factor * spread[:, -1]),
            "minor_axis": np.sqrt(factor * spread[:, 0]),
        }
        edges, outer = self._edges() if flat or published else (np.zeros(0), np.zeros(0))
        if flat:
            yy, xx, xy = covariance[:, 0, 0], covariance[:, 1, 1], covariance[:, 0, 1]
            long = spread[:, 1] > 0
            ratio = np.divide(spread[:, 0], spread[:, 1], out=np.ones(len(self)), where=long)
            turn = np.arctan2(2 * xy, yy - xx) / 2
            round_ = np.isclose(spread[:, 0], spread[:, 1], rtol=1e-9, atol=0.0)
            columns["eccentricity"] = np.sqrt(np.maximum(1 - ratio, 0.0))
            columns["orientation"] = np.where(long & ~round_, turn, np.nan)
            columns["perimeter"] = edges
            same = np.repeat(np.arange(len(self))[:, None], 2, axis=1)
            area = np.bincount(self.rank.ravel() + 1, minlength=len(self) + 1)[1:]
            columns["solidity"] = area / self.hulls(same)[0]
        if published:
            columns["on_border"] = outer / edges
        return columns

    def _edges(self) -> tuple[Float64s, Float64s]:
        """Length (area) of the outline of each region, and of its part on the image's border."""
        all_of = np.zeros(len(self) + 1)  # the last row is the background
        outer = np.zeros(len(self) + 1)
        for axis in range(self.rank.ndim):
            size = np.prod(self.spacing) / self.spacing[axis]
            line = np.moveaxis(self.rank, axis, 0)
            differ = line[1:] != line[:-1]
            for side in (line[1:][differ], line[:-1][differ]):
                all_of += size * np.bincount(side + 1, minlength=len(self) + 1)
            for side in (line[0].ravel(), line[-1].ravel()):
                outer += size * np.bincount(side + 1, minlength=len(self) + 1)
        return (all_of + outer)[1:], outer[1:]

    def _brightness(self, values: Float64s, row: Int64s, count: Float64s) -> dict[str, Float64s]:
        brightest = np.full(len(self), -np.inf)
        np.maximum.at(brightest, row, values)
        mean = np.bincount(row, values, len(self)) / count
        return {"mean_intensity": mean, "max_intensity": brightest}

    def _quantiles(self, values: Float64s, row: Int64s, count: Float64s) -> dict[str, Float64s]:
        bright = values[np.lexsort((values, row))]
        first = np.cumsum(count).astype(np.int64) - count.astype(np.int64)
        at = [
            np.floor((k + 0.5) / N_QUANTILES * count).astype(np.int64) for k in range(N_QUANTILES)
        ]
        return {f"intensity_quantile_{k + 1}": bright[first + a] for k, a in enumerate(at)}

    # ---------------------------------------------------------------- two regions together

    def hulls(self, pairs: Int64s) -> tuple[Float64s, Float64s, Float64s]:
        """Convex hulls of regions two by two (rows of ``pairs``), in a plane.

        Returns
        -------
        area, count, mass : float64, shape (P,)
            Area of the hull in pixels; number of pixels in it that are not of the two; and the sum
            of their intensities (0 without an image).
        """
        from trellis.kernels.hulls import hulls_of_two

        top, start, left, right = self._lines
        area, count, mass = np.zeros((3, len(pairs)))
        pairs = np.ascontiguousarray(pairs, np.int64)
        hulls_of_two(pairs, top, start, left, right, self.rank, self.image, area, count, mass)
        return area, count, mass

    @property
    def _lines(self) -> tuple[Int64s, Int64s, Int64s, Int64s]:
        """Where grid lines touch each region; see :mod:`trellis.kernels.hulls`."""
        y, x = np.nonzero(self.rank >= 0)
        row = self.rank[y, x]
        top = np.full(len(self), _NONE)
        np.minimum.at(top, row, y)
        bottom = np.zeros(len(self), np.int64)
        np.maximum.at(bottom, row, y)
        start = np.concatenate([[0], np.cumsum(bottom - top + 2)]).astype(np.int64)
        left = np.full(start[-1], _NONE)
        right = np.full(start[-1], -_NONE)
        line = start[row] + y - top[row]
        for at in (line, line + 1):
            np.minimum.at(left, at, x)
            np.maximum.at(right, at, x + 1)
        return top, start, left, right


def overlap(one: Regions, other: Regions) -> tuple[Int64s, Int64s, Int64s]:
    """Rows of regions of two images of one shape that share pixels, and how many pixels.

    Examples
    --------
    >>> one = Regions.of(np.array([[1, 1, 2, 0]]))
    >>> overlap(one, Regions.of(np.array([[0, 3, 3, 3]])))
    (array([0, 1]), array([0, 0]), array([1, 1]))
    """
    a, b = one.rank.ravel(), other.rank.ravel()
    both = (a >= 0) & (b >= 0)
    keys = a[both] * max(len(other), 1) + b[both]
    if len(one) * len(other) <= _FEW * a.size:
        counts = np.bincount(keys)
        found = np.flatnonzero(counts)
        counts = counts[found]
    else:
        found, counts = np.unique(keys, return_counts=True)
    i, j = np.divmod(found, max(len(other), 1))
    return i, j, counts

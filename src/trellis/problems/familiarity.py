r"""How familiar positions are by their features, how new, and how alike.

With :math:`c_f` for the number of positions of all samples that have feature f, a position with the
features x has the *familiarity*

.. math:: \varphi = \tfrac1{|x|} \sum_{f \in x} \log c_f,

divided by its mean over all positions. What is learned of a familiar position holds for many
others; what is learned of a misspelt name or an address holds for none. A position is *new*, when
some features were seen, by :math:`\sum_{f \in x,\ f \text{ not seen},\ c_f > 1} \log(1 + c_f)`. Two
sets of positions are *alike* by the cosine of their summed features, each weighted by
:math:`\log(N / c_f)`, N being the number of positions.

Values of features are not looked at: a feature is there or not.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from trellis.arrays import Bools, Float64s, Int64s
from trellis.corpus.corpus import bounds, ranges
from trellis.features import Encoded

__all__ = ["FeatureCounts"]


class FeatureCounts:
    """How often the features of some samples occur in them.

    Parameters
    ----------
    encoded : Encoded
        Features of all positions.
    n_features : int
        Number of features F.

    Examples
    --------
    >>> counts = FeatureCounts(Encoded([0, 4], [0, 1, 2, 3, 4], [0, 0, 0, 1], []), 2)
    >>> counts.familiarity.round(2).tolist()
    [1.33, 1.33, 1.33, 0.0]
    >>> seen = counts.of_rows(np.array([3]))
    >>> counts.novelty(np.array([0, 3]), seen).round(2).tolist()
    [1.39, 0.0]
    """

    def __init__(self, encoded: Encoded, n_features: int) -> None:
        self._encoded = encoded
        self.counts: Int64s = np.bincount(encoded.indices, minlength=n_features)

    @cached_property
    def familiarity(self) -> Float64s:
        """How familiar each position is (N,), 1 on the average."""
        e = self._encoded
        logs = np.log(np.maximum(self.counts, 1))[e.indices]
        each = _sums(logs, e.indptr) / np.maximum(np.diff(e.indptr), 1)
        mean = float(each.mean()) if len(each) else 0.0
        return each / mean if mean > 0 else np.ones(len(each))

    def of_rows(self, rows: Int64s) -> Bools:
        """Which features some positions have (F,)."""
        seen = np.zeros(len(self.counts), np.bool_)
        seen[self._encoded.indices[self._entries(rows)[0]]] = True
        return seen

    def novelty(self, rows: Int64s, seen: Bools) -> Float64s:
        """How new each of some positions is (rows,), when some features were seen."""
        entries, counts = self._entries(rows)
        found = self._encoded.indices[entries]
        times = np.where(seen | (self.counts < 2), 0, self.counts)[found]
        return _sums(np.log1p(times), bounds(counts))

    def sample_novelty(self, rows: Int64s, offsets: Int64s, seen: Bools) -> Float64s:
        """How new samples are (n,), whose positions are ``rows``; a feature counts once in each."""
        entries, counts = self._entries(rows)
        found = self._encoded.indices[entries].astype(np.int64)
        owner = np.repeat(np.repeat(np.arange(len(offsets) - 1), np.diff(offsets)), counts)
        new = ~seen[found] & (self.counts[found] > 1)
        key = np.unique(owner[new] * len(self.counts) + found[new])
        times = np.log1p(self.counts[key % len(self.counts)])
        return np.bincount(key // len(self.counts), times, len(offsets) - 1).astype(np.float64)

    def alike(self, parts: Sequence[Int64s]) -> Float64s:
        """Cosines (m, m) of sets of positions."""
        from scipy.sparse import csr_array

        sizes = np.array([len(part) for part in parts])
        entries, counts = self._entries(np.concatenate([np.zeros(0, np.int64), *parts]))
        found = self._encoded.indices[entries]
        rare = np.log(max(1, len(self._encoded.indptr) - 1) / np.maximum(self.counts, 1))[found]
        starts = bounds(counts)[bounds(sizes)]
        matrix = csr_array((rare, found, starts), shape=(len(parts), len(self.counts)))
        matrix.sum_duplicates()
        products: Float64s = (matrix @ matrix.T).toarray()
        norms = np.sqrt(np.maximum(products.diagonal(), 1e-300))
        cosines: Float64s = products / np.outer(norms, norms)
        return cosines

    def _entries(self, rows: Int64s) -> tuple[Int64s, Int64s]:
        """Entries of some positions, and how many each has."""
        indptr = self._encoded.indptr
        counts = indptr[rows + 1] - indptr[rows]
        return ranges(indptr[rows], counts), counts


def _sums(values: Float64s, starts: Int64s) -> Float64s:
    """Sums of values between starts."""
    total = np.concatenate([[0.0], np.cumsum(values)])
    return np.diff(total[starts])

r"""Preconditioning: features of any scale become numbers in (-1, 0), of which weights make sense.

For each event and feature let lb, m and ub be the 10 % quantile, the median and the 90 % quantile
of the values it has in the training data, missing ones left out. A value F becomes

.. math:: X = \frac{2 F - lb - ub}{ub - lb + 10^{-8}}, \qquad F' = \frac{1}{1 + e^{-X}} - 1,

so that the middle is -1/2 and the quantiles are at :math:`X = \mp 1`; outliers saturate. A missing
value (NaN, or infinite) counts as the median m. A feature that is constant in the training data
becomes -1/2, and near -1 or 0 for any other value; one that has no value at all there, of an event
without hypotheses for instance, has lb = m = ub = 0.

**Knots.** A weight of :math:`F'` can only say «the more the better» or the worse. With J knots a
feature becomes J columns instead, soft steps at its quantiles between 5 and 95 %,

.. math:: F'_k = \frac{1}{1 + e^{-(F - q_k) / b}} - 1, \qquad b = \frac{7 (ub - lb)}{10 J},

whose weights can say of each range how likely it is; the model stays linear in its weights.

**Several data sets** have one scale, or else a weight would mean one thing here and another there.
It is that of their mixture in which each counts alike, however large: quantiles are those of the
pooled quantiles of each (a thousand of them).

With a bias each event has a last column of ones: how often it happens, whatever it looks like.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from trellis.arrays import Float64s, Int64s
from trellis.errors import DataError
from trellis.tracking.objects import EVENTS

__all__ = ["Preconditioner"]


_QUANTILES = (0.1, 0.5, 0.9)
_ENDS = (0.05, 0.95)  # first and last knot
_LEVELS = np.linspace(0.0, 1.0, 1001)  # of the quantiles that stand for a data set
_LARGEST_EXPONENT = 700.0  # beyond it exp() overflows


@dataclass(frozen=True, eq=False)
class Preconditioner:
    """The learned quantiles of every feature.

    Parameters
    ----------
    quantiles : tuple of float64, shape (3, K_e)
        For each event, the 10 % quantile, median and 90 % quantile of its features.
    bias : tuple of bool
        For each event, whether it has a column of ones.
    knots : tuple of float64, shape (J, K_e)
        For each event, where the steps are; none (J = 0) for a single column.
    names : tuple of str
        The events: EVENTS, then those of one's own.

    Examples
    --------
    Of moves alone, with a single feature:

    >>> table = np.array([[0.0], [1.0], [5.0], [9.0], [1e9], [np.nan]])
    >>> train = [np.arange(11.0)[:, None]] + [np.zeros((0, 0))] * 5
    >>> p = Preconditioner.learn([train], events=("move",))
    >>> moves, *rest = p.transform([table, *train[1:]])
    >>> moves[:, 0].round(2), moves[:, 1], p.sizes
    (array([-0.78, -0.73, -0.5 , -0.27, -0. , -0.5 ]), array([1., 1., 1., 1., 1., 1.]),
     (2, 0, 0, 0, 0, 0))
    """

    quantiles: tuple[Float64s, ...]
    bias: tuple[bool, ...]
    knots: tuple[Float64s, ...]
    names: tuple[str, ...] = EVENTS

    @classmethod
    def learn(
        cls,
        pairs: Sequence[Sequence[Float64s]],
        *,
        bias: bool = True,
        events: Sequence[str] = EVENTS,
        knots: int = 0,
    ) -> Preconditioner:
        """Find the quantiles of the features of training data.

        Parameters
        ----------
        pairs : sequence of lists of float64, shape (H_e, K_e)
            What :func:`~trellis.tracking.features.event_features` returns for each frame pair.
        bias : bool
            Whether events have a column of ones.
        events : sequence of str
            Those that have it; names other than EVENTS are events of one's own.
        knots : int
            Number of steps J; 0: a single column for each feature.

        Returns
        -------
        Preconditioner
            Quantiles over all pairs together.

        Raises
        ------
        DataError
            If there is no pair, or the pairs differ in their features.
        """
        if not len(pairs):
            raise DataError("there is no frame pair to learn the scale of features from")
        names = _with_own(events)
        sizes = _sizes(pairs[0], "pair 0", names)
        for i, blocks in enumerate(pairs):
            if (others := _sizes(blocks, f"pair {i}", names)) != sizes:
                raise DataError(
                    f"pair {i} has {others} features for each event, pair 0 has {sizes}"
                )
        levels = (*_QUANTILES, *np.linspace(*_ENDS, knots))
        learned, steps = [], []
        for e, size in enumerate(sizes):
            table = np.concatenate([blocks[e] for blocks in pairs])
            quantiles = np.zeros((len(levels), size))
            for k in range(size):
                present = table[np.isfinite(table[:, k]), k]
                if present.size:
                    quantiles[:, k] = np.quantile(present, levels)
            learned.append(quantiles[: len(_QUANTILES)])
            steps.append(quantiles[len(_QUANTILES) :])
        constant = tuple(bias and event in events for event in names)
        return cls(tuple(learned), constant, tuple(steps), names)

    @classmethod
    def common(
        cls,
        sets: Sequence[Sequence[Sequence[Float64s]]],
        *,
        bias: bool = True,
        events: Sequence[str] = EVENTS,
        knots: int = 0,
    ) -> Preconditioner:
        """Find one scale for several data sets, each of which counts alike.

        Parameters
        ----------
        sets : sequence of sequences of lists of float64, shape (H_e, K_e)
            The frame pairs of each, as for :meth:`learn`.
        bias, events, knots
            As for :meth:`learn`.

        Returns
        -------
        Preconditioner
            Of a single data set the same as :meth:`learn`.

        Examples
        --------
        A large data set with small values, and a small one with large values:

        >>> small, large = np.zeros((900, 1)), np.full((9, 1), 5.0)
        >>> sets = [[[table] + [np.zeros((0, 0))] * 5] for table in (small, large)]
        >>> scale = Preconditioner.common(sets, events=("move",))
        >>> scale.quantiles[0].ravel()
        array([0. , 2.5, 5. ])
        """
        if len(sets) == 1:
            return cls.learn(sets[0], bias=bias, events=events, knots=knots)
        alike = [_evened(pairs) for pairs in sets if len(pairs)]
        return cls.learn(alike, bias=bias, events=events, knots=knots)

    @property
    def bias_columns(self) -> Int64s:
        """Numbers of the columns of ones, among those of all events."""
        last: Int64s = np.cumsum(self.sizes)[list(self.bias)] - 1
        return last

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of columns of each event after :meth:`transform`, the bias included."""
        return tuple(
            q.shape[1] * max(1, len(k)) + constant
            for q, k, constant in zip(self.quantiles, self.knots, self.bias, strict=True)
        )

    def transform(self, blocks: Sequence[Float64s]) -> list[Float64s]:
        """Precondition the features of one frame pair.

        Parameters
        ----------
        blocks : list of float64, shape (H_e, K_e)
            What :func:`~trellis.tracking.features.event_features` returns.

        Returns
        -------
        list of float64, shape (H_e, sizes[e])
            Finite numbers, one array for each event: the columns of the first feature, those of
            the second, ..., the bias last.

        Raises
        ------
        DataError
            If the features are not as many as those learned from.
        """
        sizes = _sizes(blocks, "the pair", self.names)
        learned = tuple(q.shape[1] for q in self.quantiles)
        if sizes != learned:
            raise DataError(
                f"the pair has {sizes} features for each event, those learned from had {learned}"
            )
        done = []
        for values, (low, median, high), knots, constant in zip(
            blocks, self.quantiles, self.knots, self.bias, strict=True
        ):
            filled = np.where(np.isfinite(values), values, median)
            with np.errstate(over="ignore"):  # saturates
                if len(knots):
                    away = filled[:, :, None] - knots.T
                    exponent = away * (10 / 7 * len(knots)) / (high - low + 1e-8)[:, None]
                    exponent = exponent.reshape(len(filled), knots.size)
                else:
                    exponent = ((filled - low) + (filled - high)) / (high - low + 1e-8)
            exponent = np.clip(exponent, -_LARGEST_EXPONENT, _LARGEST_EXPONENT)
            # 1 / (1 + exp(-X)) - 1, without the difference of nearly equal numbers
            table = -1.0 / (1.0 + np.exp(exponent))
            done.append(np.hstack([table, np.ones((len(table), 1))]) if constant else table)
        return done

    def column_names(self, e: int, features: Sequence[str]) -> list[str]:
        """Name the columns of event number e after its features; a step also after its place."""
        names = list(features)
        if len(self.knots[e]):
            names = [
                f"{name} > {knot:.4g} ({k + 1})"
                for name, knots in zip(features, self.knots[e].T, strict=True)
                for k, knot in enumerate(knots)
            ]
        return names + ["bias"] * self.bias[e]

    def as_dict(self) -> dict[str, Any]:
        """Return what JSON can hold."""
        return {
            "quantiles": {e: q.tolist() for e, q in zip(self.names, self.quantiles, strict=True)},
            "knots": {e: k.tolist() for e, k in zip(self.names, self.knots, strict=True)},
            "bias": [event for event, b in zip(self.names, self.bias, strict=True) if b],
        }

    @classmethod
    def from_dict(cls, value: Mapping[str, Any], events: Sequence[str] = EVENTS) -> Preconditioner:
        """Undo :meth:`as_dict`, checking everything; ``events`` may have some of one's own."""
        names = _with_own(events)
        try:
            stored, bias = value["quantiles"], list(value["bias"])
            # An event without features is three empty lists.
            quantiles = [np.array(stored[event], dtype=np.float64) for event in names]
            steps = [np.array(value["knots"][event], dtype=np.float64) for event in names]
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(
                f"the scale of features cannot be read: {type(error).__name__}: {error}"
            ) from error
        for event, q in zip(names, quantiles, strict=True):
            fits = q.ndim == 2 and len(q) == len(_QUANTILES) and np.isfinite(q).all()
            if not fits or (np.diff(q, axis=0) < 0).any():
                raise DataError(
                    f"the scale of the features of {event} is not three rows of ascending numbers"
                )
        for i, (event, q) in enumerate(zip(names, quantiles, strict=True)):
            if len(steps[i]) != len(steps[0]):
                raise DataError("the events differ in their number of knots")
            shape = (len(steps[i]), q.shape[1])
            if steps[i].size != shape[0] * shape[1] or not np.isfinite(steps[i]).all():
                raise DataError(f"the knots of the features of {event} do not fit them")
            steps[i] = steps[i].reshape(shape)
        if not set(bias) <= set(names):
            raise DataError(f"the events with a bias are {bias}, not of {', '.join(names)}")
        return cls(tuple(quantiles), tuple(event in bias for event in names), tuple(steps), names)


def _evened(pairs: Sequence[Sequence[Float64s]]) -> list[Float64s]:
    """The quantiles of each feature of a data set, as if they were the features of one pair."""
    tables = [np.concatenate(blocks) for blocks in zip(*pairs, strict=True)]
    evened = []
    for table in tables:
        quantiles = np.full((len(_LEVELS), table.shape[1]), np.nan)
        for k, values in enumerate(table.T):
            present = values[np.isfinite(values)]
            if present.size:
                quantiles[:, k] = np.quantile(present, _LEVELS)
        evened.append(quantiles)
    return evened


def _with_own(events: Sequence[str]) -> tuple[str, ...]:
    """EVENTS, then those that are none of them."""
    return tuple(dict.fromkeys((*EVENTS, *events)))


def _sizes(blocks: Sequence[Float64s], what: str, names: Sequence[str]) -> tuple[int, ...]:
    """Number of features of each event."""
    if len(blocks) != len(names) or any(np.ndim(block) != 2 for block in blocks):
        raise DataError(
            f"{what} has {len(blocks)} tables of features; one for each of {', '.join(names)} is "
            "needed, with a row for each hypothesis"
        )
    return tuple(block.shape[1] for block in blocks)

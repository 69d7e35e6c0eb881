"""What an oracle knows of a risk R at a point w: its value and a plane below it.

An oracle of a convex risk answers with the value R(w) and a subgradient. One whose inference is not
exact knows the value only between two bounds: the plane that belongs to the output it found lies
below R everywhere, and an upper bound lies above R(w). Solvers take both
(:mod:`trellis.solvers.planes`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from trellis.arrays import Float64s, as_array
from trellis.domains import is_finite, number
from trellis.errors import DataError

__all__ = ["Cut", "Risk", "as_cut"]


@dataclass(frozen=True, eq=False)
class Cut:
    """What an oracle knows of a risk R at a point w.

    Parameters
    ----------
    upper : float
        R(w) is at most this.
    lower : float
        Height at w of a plane that lies below R everywhere; ``upper`` if the oracle is exact.
    slope : float64, shape (D,)
        Slope of that plane.

    Examples
    --------
    >>> Cut(2.0, 1.5, np.array([1.0])).exact
    False
    """

    upper: float
    lower: float
    slope: Float64s

    def __post_init__(self) -> None:
        number(infinite=True).check("upper", self.upper)
        number(infinite=True).check("lower", self.lower)
        as_array(self.slope, np.float64, "slope")
        vars(self).update(upper=float(self.upper), lower=float(self.lower))

    @property
    def exact(self) -> bool:
        """Whether the plane touches the risk at w."""
        return self.upper - self.lower <= 1e-9 * max(1.0, abs(self.upper))


Risk = Callable[[Float64s], "Cut | tuple[float, Float64s]"]
"""An oracle: returns the value and a subgradient of a convex risk at w, or a cut."""


def as_cut(answer: Any, w: Float64s) -> Cut:
    """Return the answer of an oracle at w as a cut, checked.

    Raises
    ------
    DataError
        If a number is not finite, the slope has another shape than w, or the plane lies above the
        bound.

    Examples
    --------
    >>> as_cut((4.0, np.array([4.0])), np.array([2.0])).lower
    4.0
    """
    cut = answer
    if not isinstance(cut, Cut):
        if not isinstance(answer, tuple | list) or len(answer) != 2:
            raise DataError("a risk returns its value and a slope, or a Cut")
        if not is_finite(answer[0]):
            raise DataError("the risk or its slope is not finite")
        cut = Cut(float(answer[0]), float(answer[0]), answer[1])
    slope = as_array(cut.slope, np.float64, "slope of the risk")
    if slope.shape != w.shape:
        raise DataError(f"the slope of the risk must have shape {w.shape}, got {slope.shape}")
    if not (np.isfinite(cut.upper) and np.isfinite(cut.lower) and np.isfinite(slope).all()):
        raise DataError("the risk or its slope is not finite")
    if cut.lower > cut.upper + 1e-9 * max(1.0, abs(cut.upper)):
        raise DataError(f"the plane ({cut.lower}) lies above the bound of the risk ({cut.upper})")
    return Cut(float(cut.upper), float(cut.lower), slope)

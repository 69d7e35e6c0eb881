"""scikit-learn manners without importing scikit-learn.

Estimators here keep scikit-learn's protocol (``get_params``, ``set_params``, ``clone``,
``GridSearchCV``, tags) but do not inherit from its ``BaseEstimator``: importing that takes a
second, which every call of the command line would pay. Tags are built when scikit-learn asks.
"""

from __future__ import annotations

import inspect
import math
import numbers
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from trellis.errors import DataError

__all__ = ["Estimator", "is_number", "sample_weights"]


def is_number(value: object) -> bool:
    """Whether a parameter is a real number (NumPy's included) and not NaN."""
    return isinstance(value, numbers.Real) and not math.isnan(value)


class Estimator:
    """Base of all estimators: parameters are the arguments of ``__init__``, stored unchanged."""

    @classmethod
    def _parameters(cls) -> list[str]:
        return [name for name in inspect.signature(cls.__init__).parameters if name != "self"]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters of this estimator (``deep`` is accepted for compatibility)."""
        return {name: getattr(self, name) for name in self._parameters()}

    def set_params(self, **params: Any) -> Self:
        """Set parameters and return the estimator."""
        known = self._parameters()
        for name, value in params.items():
            if name not in known:
                raise DataError(
                    f"{type(self).__name__} has no parameter {name!r}; it has {', '.join(known)}"
                )
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        defaults = inspect.signature(type(self).__init__).parameters
        changed = [
            f"{name}={value!r}"
            for name, value in self.get_params().items()
            if value is not defaults[name].default and repr(value) != repr(defaults[name].default)
        ]
        return f"{type(self).__name__}({', '.join(changed)})"

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=False),
            input_tags=InputTags(two_d_array=False),
        )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "classes_")

    def _check_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            from sklearn.exceptions import NotFittedError

            raise NotFittedError(
                f"this {type(self).__name__} is not fitted yet; call fit before using it"
            )


def sample_weights(weights: Sequence[float] | NDArray[Any] | None, n: int) -> NDArray[np.float64]:
    """Weights of the samples, checked; ones if none are given."""
    if weights is None:
        return np.ones(n)
    try:
        array = np.asarray(weights, np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"sample_weight must be numbers: {error}") from None
    if array.shape != (n,):
        raise DataError(f"sample_weight must have shape ({n},), got {array.shape}")
    if not np.isfinite(array).all() or (array < 0).any():
        raise DataError("sample_weight must be finite and not negative")
    return array

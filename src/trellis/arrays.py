"""Names of the array types that annotations use, in one place."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Array", "Bools", "Float64s", "Int8s", "Int32s", "Int64s"]

Array = np.ndarray[Any, Any]
"""An array as kernels see it: of any type and shape."""
Bools = NDArray[np.bool_]
Float64s = NDArray[np.float64]
Int8s = NDArray[np.int8]
Int32s = NDArray[np.int32]
Int64s = NDArray[np.int64]

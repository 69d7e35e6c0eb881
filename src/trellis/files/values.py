"""Python values as JSON and arrays, and back: what parameters and learned attributes may be.

JSON has no tuples, no NaN and no arrays, so what it lacks is an object of one marked entry:

    {"tuple": [...]}  {"dict": [[key, value], ...]}  {"float": "nan"}  {"number": [type, value]}
    {"array": name}   {"strings": name, ...}         {"objects": [...], "shape": [...]}
    {"path": text}    {"random_state": ...}          {"value": name, "fields": {...}}
    {"dtype": name, "class": whether it is NumPy's class or its dtype}
    {"model": header, ...}  an estimator of Trellis  {"sklearn": ...}  one of scikit-learn

and everything else is itself. Arrays stand beside the header, under the name of the place where
they belong. Nothing is executed: names are looked up in :mod:`trellis.files.registry` and
:mod:`trellis.files.sklearn_state`, and what is made of them is checked there.
"""

from __future__ import annotations

import dataclasses
import math
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.errors import CorruptModelError, DataError
from trellis.files.registry import ESTIMATORS, VALUES, class_named, estimator_name, name_of
from trellis.files.stored import check_text, header_value, pack_strings, take, unpack_strings

__all__ = ["ValueReader", "ValueWriter", "parts_of"]

_NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
_NUMBERS = {f"{kind}{8 * n}" for kind in ("int", "uint") for n in (1, 2, 4, 8)}
_NUMBERS |= {"bool", "float16", "float32", "float64"}
_DTYPES = _NUMBERS | {"object"}
_MARKS = (
    "tuple", "dict", "float", "number", "array", "strings", "objects", "path", "random_state",
    "value", "model", "sklearn", "tree", "dtype",
)  # fmt: skip
_MAX_TEXT = 1 << 20  # characters of one element of an array of text


class ValueWriter:
    """Writes values; calls add to ``arrays``.

    Examples
    --------
    >>> writer = ValueWriter()
    >>> writer((1, np.arange(2)), "w"), writer.arrays
    ({'tuple': [1, {'array': 'w[1]'}]}, {'w[1]': array([0, 1])})
    """

    def __init__(self) -> None:
        self.arrays: dict[str, NDArray[Any]] = {}

    def __call__(self, value: Any, where: str) -> Any:
        """The value in JSON's terms; ``where`` names it, for arrays and for messages."""
        if value is None or type(value) in (bool, int):
            return value
        if isinstance(value, np.generic) and value.dtype.name in _NUMBERS:
            return {"number": [value.dtype.name, self(value.item(), where)]}
        if type(value) is str:
            check_text(value, where)
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {"float": repr(value)}
        if type(value) in (list, tuple):
            items = [self(item, f"{where}[{i}]") for i, item in enumerate(value)]
            return items if isinstance(value, list) else {"tuple": items}
        if isinstance(value, Mapping):
            pairs = enumerate(value.items())
            return {
                "dict": [
                    [self(key, f"{where}.keys[{i}]"), self(item, f"{where}[{i}]")]
                    for i, (key, item) in pairs
                ]
            }
        if isinstance(value, np.ndarray):
            return self._array(value, where)
        if isinstance(value, os.PathLike):
            return {"path": os.fsdecode(value)}
        if isinstance(value, np.random.RandomState):
            return self._random_state(value, where)
        is_class = isinstance(value, type) and issubclass(value, np.generic)
        if is_class or isinstance(value, np.dtype):
            name = np.dtype(value).name
            if name not in _DTYPES:
                raise _unknown(where, f"the type {name}")
            return {"dtype": name, "class": is_class}
        return self._object(value, where)

    def _array(self, array: NDArray[Any], where: str) -> Any:
        shape = list(array.shape)
        if array.dtype.kind == "O":
            items = [self(item, f"{where}[{i}]") for i, item in enumerate(array.reshape(-1))]
            return {"objects": items, "shape": shape}
        if array.dtype.kind == "U":
            self.arrays |= pack_strings(array.reshape(-1).tolist(), f"{where}.")
            return {"strings": where, "shape": shape, "width": array.itemsize // 4}
        if array.dtype.name not in _NUMBERS:
            raise _unknown(where, f"an array of {array.dtype}")
        self.arrays[where] = array
        # Sums over rows and over columns differ in their last bits.
        by_columns = array.ndim > 1 and array.flags.f_contiguous and not array.flags.c_contiguous
        return {"array": where, "order": "F"} if by_columns else {"array": where}

    def _random_state(self, value: np.random.RandomState, where: str) -> Any:
        state = value.get_state(legacy=False)
        assert isinstance(state, dict)
        if state["bit_generator"] != "MT19937":
            raise _unknown(where, f"random numbers of {state['bit_generator']}")
        self.arrays[where] = state["state"]["key"]
        rest = [int(state["state"]["pos"]), int(state["has_gauss"]), float(state["gauss"])]
        return {"random_state": where, "rest": rest}

    def _object(self, value: Any, where: str) -> Any:
        from trellis.files.sklearn_state import is_sklearn, write_sklearn
        from trellis.files.sklearn_tree import is_tree, write_tree
        from trellis.files.storable import Storable

        if isinstance(value, Storable):
            if left_out := value._left_out():
                raise DataError(f"{where} has {left_out}; save it by itself")
            header, arrays = value._stored() if value._is_fitted() else value._stored_parameters()
            self.arrays |= {f"{where}/{name}": array for name, array in arrays.items()}
            header = {**header, "estimator": estimator_name(value)}
            return {"model": header, "fitted": value._is_fitted(), "arrays": f"{where}/"}
        if is_tree(value):
            return {"tree": write_tree(value, where, self)}
        if is_sklearn(value):
            return {"sklearn": write_sklearn(value, where, self)}
        name = name_of(type(value), VALUES)
        if name is None:
            raise _unknown(where, f"a {type(value).__name__}")
        parts = parts_of(value).items()
        return {"value": name, "fields": {n: self(item, f"{where}.{n}") for n, item in parts}}


def parts_of(value: Any) -> dict[str, Any]:
    """What a value is made of again: its parameters, or the fields of a dataclass."""
    if hasattr(value, "get_params"):
        return dict(value.get_params(deep=False))
    return {f.name: getattr(value, f.name) for f in dataclasses.fields(value) if f.init}


def _unknown(where: str, what: str) -> DataError:
    return DataError(
        f"{where} is {what}, which a model file cannot hold: it holds numbers, text, arrays, lists "
        "and estimators. Where a function was given, use a named option if there is one, or give "
        "the estimator that the function makes"
    )


class ValueReader:
    """Undoes :class:`ValueWriter`, checking everything.

    Parameters
    ----------
    arrays : mapping of str to ndarray
        Arrays by name.

    Examples
    --------
    >>> ValueReader({"w[1]": np.arange(2)})({"tuple": [1, {"array": "w[1]"}]})
    (1, array([0, 1]))
    """

    def __init__(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self.arrays = arrays

    def entries(self, header: Mapping[str, Any]) -> dict[str, Any]:
        """The values of a header by name."""
        return {name: self(node) for name, node in header.items()}

    def build(self, kind: Any, header: Mapping[str, Any], what: str) -> Any:
        """An object of this class with the values of a header, checked."""
        parts = self.entries(header)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # an older file has older names
            try:
                value = kind(**parts)
            except TypeError:
                raise CorruptModelError(f"{what} are not those of {kind.__name__}") from None
        if hasattr(value, "_check_parameters"):
            value._check_parameters()
        return value

    def __call__(self, node: Any) -> Any:
        """The value that a node of the header stands for."""
        if isinstance(node, list):
            return [self(item) for item in node]
        if not isinstance(node, dict):
            return node
        marks = [mark for mark in _MARKS if mark in node]
        if len(marks) != 1:
            raise CorruptModelError("a value of the header is of no known kind")
        return getattr(self, f"_{marks[0]}")(node)

    def _named(self, name: str) -> NDArray[Any]:
        if name not in self.arrays:
            raise CorruptModelError(f"array {name!r} is missing")
        return self.arrays[name]

    def _tuple(self, node: dict[str, Any]) -> Any:
        return tuple(self(item) for item in header_value(node, "tuple", list))

    def _dict(self, node: dict[str, Any]) -> Any:
        pairs = [self(pair) for pair in header_value(node, "dict", list, items=list)]
        if any(len(pair) != 2 for pair in pairs) or len({key for key, _ in pairs}) < len(pairs):
            raise CorruptModelError("the entries of a dict are not pairs with distinct keys")
        return dict(pairs)

    def _float(self, node: dict[str, Any]) -> Any:
        return _NOT_FINITE[header_value(node, "float", str, choices=tuple(_NOT_FINITE))]

    def _number(self, node: dict[str, Any]) -> Any:
        kind, value = header_value(node, "number", list)
        number = self(value)
        if kind not in _NUMBERS or type(number) not in (bool, int, float):
            raise CorruptModelError(f"a number is of the unknown type {kind!r}")
        return np.dtype(kind).type(number)

    def _array(self, node: dict[str, Any]) -> Any:
        array = self._named(header_value(node, "array", str))
        if "order" in node:
            header_value(node, "order", str, choices=("F",))
            return np.asfortranarray(array)
        return array

    def _strings(self, node: dict[str, Any]) -> Any:
        name = header_value(node, "strings", str)
        strings = unpack_strings(self.arrays, f"{name}.")
        width = header_value(node, "width", int, low=max(map(len, strings), default=0))
        if width * max(len(strings), 1) > _MAX_TEXT + 100 * sum(map(len, strings)):
            raise CorruptModelError("an array of text is wider than its text")
        return np.array(strings, f"<U{width}").reshape(_shape(node))

    def _objects(self, node: dict[str, Any]) -> Any:
        items = [self(item) for item in header_value(node, "objects", list)]
        array = np.empty(len(items), object)
        array[:] = items
        return array.reshape(_shape(node))

    def _path(self, node: dict[str, Any]) -> Any:
        return Path(header_value(node, "path", str))

    def _random_state(self, node: dict[str, Any]) -> Any:
        name = header_value(node, "random_state", str)
        key = take(self.arrays, name, np.uint32, (624,))
        position, has_gauss, gauss = header_value(node, "rest", list)
        rest = {"position": position, "has_gauss": has_gauss, "gauss": gauss}
        state = np.random.RandomState(0)
        state.set_state(
            {
                "bit_generator": "MT19937",
                "state": {"key": key, "pos": header_value(rest, "position", int, low=0, high=625)},
                "has_gauss": header_value(rest, "has_gauss", int, choices=(0, 1)),
                "gauss": header_value(rest, "gauss", float),
            }
        )
        return state

    def _dtype(self, node: dict[str, Any]) -> Any:
        dtype = np.dtype(header_value(node, "dtype", str, choices=_DTYPES))
        return dtype.type if header_value(node, "class", bool) else dtype

    def _value(self, node: dict[str, Any]) -> Any:
        kind = class_named(header_value(node, "value", str, choices=tuple(VALUES)), VALUES)
        return self.build(kind, header_value(node, "fields", dict), "the fields")

    def _model(self, node: dict[str, Any]) -> Any:
        header = header_value(node, "model", dict)
        name = header_value(header, "estimator", str, choices=tuple(ESTIMATORS))
        prefix = header_value(node, "arrays", str)
        arrays = {n[len(prefix) :]: a for n, a in self.arrays.items() if n.startswith(prefix)}
        kind = class_named(name, ESTIMATORS)
        if header_value(node, "fitted", bool):
            return kind._restored(header, arrays)
        return kind._unfitted(header, arrays)

    def _sklearn(self, node: dict[str, Any]) -> Any:
        from trellis.files.sklearn_state import read_sklearn

        return read_sklearn(header_value(node, "sklearn", dict), self)

    def _tree(self, node: dict[str, Any]) -> Any:
        from trellis.files.sklearn_tree import read_tree

        return read_tree(header_value(node, "tree", dict), self)


def _shape(node: Mapping[str, Any]) -> list[int]:
    shape = header_value(node, "shape", list, items=int)
    if any(n < 0 for n in shape):
        raise CorruptModelError("a shape has a negative length")
    return shape

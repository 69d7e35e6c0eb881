"""Fingerprints: SHA-256 of what things hold, independent of the process and the machine.

Things are written as JSON and hashed. Equal content has equal fingerprints however it came about
(tuple or list, order of keys); 1, 1.0, "1" and True are different content. What JSON cannot hold is
written as a marked object: an array by its type, shape and the hash of its bytes, an estimator by
its class and parameters, a function by its name. An object may say itself what tells it from
others, with a method ``identity()`` that gives a sequence of such things.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np

from trellis.errors import DataError

__all__ = ["fingerprint"]


def fingerprint(*things: Any) -> str:
    """Hash of everything given, as hexadecimal digits.

    Parameters
    ----------
    *things
        Text, numbers, arrays, lists, sets, mappings, dataclasses, estimators, functions, and
        objects with ``identity()``; nested as deep as need be.

    Raises
    ------
    DataError
        If something else is among them.

    Examples
    --------
    >>> fingerprint({"a": [1, 2], "b": None}) == fingerprint({"b": None, "a": (1, 2)})
    True
    >>> fingerprint(["a", "b"]) == fingerprint("a", "b") != fingerprint(["a"], ["b"])
    True
    """
    return _hash(things[0] if len(things) == 1 else things)


def _hash(value: Any) -> str:
    return hashlib.sha256(json.dumps(_written(value), sort_keys=True).encode()).hexdigest()


def _written(value: Any) -> Any:
    """Write a thing in JSON's terms; marks begin with NUL, which no name of a field does."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, enum.Enum):
        return {f"\0{_name(type(value))}": value.name}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, bytes):
        return {"\0bytes": value.hex()}
    if isinstance(value, np.ndarray):
        if value.dtype.kind in "OU":
            return _written(value.tolist())
        data = hashlib.sha256(np.ascontiguousarray(value).data).hexdigest()
        return {"\0array": [value.dtype.str, list(value.shape), data]}
    if isinstance(value, Mapping):
        if all(isinstance(key, str) for key in value):
            return {key: _written(item) for key, item in value.items()}
        return {"\0mapping": sorted(_hash(item) for item in value.items())}
    if isinstance(value, AbstractSet):
        return {"\0set": sorted(_hash(item) for item in value)}
    if isinstance(value, type) or (callable(value) and hasattr(value, "__qualname__")):
        return {"\0function": _name(value)}
    if isinstance(value, functools.partial):
        return {"\0partial": _written([value.func, value.args, value.keywords])}
    kind = _name(type(value))
    if hasattr(value, "identity"):
        return {f"\0{kind}": [_written(part) for part in value.identity()]}
    if dataclasses.is_dataclass(value):
        fields = [field.name for field in dataclasses.fields(value)]
        return {f"\0{kind}": {name: _written(getattr(value, name)) for name in fields}}
    if hasattr(value, "get_params"):
        return {f"\0{kind}": _written(value.get_params(deep=False))}
    if isinstance(value, os.PathLike):
        return os.fsdecode(value)
    if isinstance(value, Iterable):
        return [_written(item) for item in value]
    raise DataError(
        f"what holds {type(value).__name__} cannot be known again: use text, numbers, arrays, "
        "lists, mappings or dataclasses of these"
    )


def _name(thing: Any) -> str:
    return f"{thing.__module__}.{thing.__qualname__}"

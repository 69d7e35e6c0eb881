"""What a label is: any hashable value, which comes back as it went in.

Strings, integers, bools, members of an enumeration, tuples: values that are equal are one label, of
the kind that was seen first (so 1 and True are one). Scalars of NumPy become Python's. None, NaN
and the «not available» of pandas are no labels: the position is not annotated.

Labels are in ascending order where they can be compared, members of an enumeration as they are
defined, all others by type and text. In files a label is a JSON text; what JSON cannot hold is an
object of one entry, ``{"tuple": [...]}``. A member of an enumeration is kept by its name, because
reading a file runs no code: it is read as that string.
"""

from __future__ import annotations

import enum
import json
import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.errors import CorruptModelError, DataError
from trellis.files.stored import pack_strings, unpack_strings

__all__ = [
    "as_objects",
    "in_order",
    "is_missing",
    "label_in_json",
    "label_name",
    "packed_labels",
    "plain_label",
    "unpacked_labels",
]


def is_missing(value: Any) -> bool:
    """Whether a value says that nothing is known: None, NaN, pandas' NA and NaT.

    Examples
    --------
    >>> [is_missing(value) for value in (None, float("nan"), 0, "")]
    [True, True, False, False]
    """
    if value is None:
        return True
    if isinstance(value, float | np.floating):
        return math.isnan(value)
    return type(value).__name__ in ("NAType", "NaTType")


def plain_label(value: Any, where: str) -> Hashable:
    """A label as it is kept; refuses what cannot be one.

    Examples
    --------
    >>> plain_label(np.int64(3), "")
    3
    """
    if isinstance(value, np.generic):
        value = value.item()
    elif isinstance(value, str) and not isinstance(value, enum.Enum):
        value = str(value)
    try:
        hash(value)
    except TypeError:
        raise DataError(
            f"label at {where} is {value!r:.80} of type {type(value).__name__}; expected a label "
            "(a string, a number, any hashable value), None (not annotated) or a set of labels"
        ) from None
    return value  # type: ignore[no-any-return]  # it has a hash


def in_order(labels: Iterable[Any]) -> tuple[Any, ...]:
    """Distinct labels in the order of classes.

    Examples
    --------
    >>> in_order([10, 9]), in_order(["b", 2, "a"])
    ((9, 10), (2, 'a', 'b'))
    """
    listed = list(labels)
    kinds = set(map(type, listed))
    if len(kinds) == 1 and issubclass(kind := kinds.pop(), enum.Enum):
        return tuple(member for member in kind if member in listed)
    try:
        ordered = tuple(sorted(listed))
    except TypeError:
        ordered = tuple(sorted(listed, key=lambda label: (type(label).__name__, repr(label))))
    return ordered


def as_objects(values: Sequence[Any]) -> NDArray[np.object_]:
    """Values as an array of objects of one dimension, tuples too.

    Examples
    --------
    >>> as_objects([(1, 2), (3, 4)]).shape
    (2,)
    """
    array = np.empty(len(values), object)
    for i, value in enumerate(values):
        array[i] = value
    return array


def label_name(label: Any) -> str:
    """A label as a field of a text file, or as it is shown; members of enumerations by name.

    Examples
    --------
    >>> label_name("B-NP"), label_name(3)
    ('B-NP', '3')
    """
    return label.name if isinstance(label, enum.Enum) else str(label)


def packed_labels(classes: Sequence[Any]) -> tuple[dict[str, str], dict[str, NDArray[Any]]]:
    """Labels for a file: what its header says of them, and arrays.

    Examples
    --------
    >>> header, arrays = packed_labels((1, 2))
    >>> header, unpacked_labels(header, arrays)
    ({'labels': 'json'}, (1, 2))
    """
    if all(type(label) is str for label in classes) and list(classes) == sorted(classes):
        return {}, pack_strings(classes, "classes.")
    texts = [json.dumps(label_in_json(label), ensure_ascii=False) for label in classes]
    return {"labels": "json"}, pack_strings(texts, "classes.")


def unpacked_labels(header: Mapping[str, Any], arrays: Mapping[str, Any]) -> tuple[Any, ...]:
    """The labels of a file, checked."""
    texts = unpack_strings(arrays, "classes.")
    if "labels" not in header:
        if texts != sorted(set(texts)):
            raise CorruptModelError("classes must be distinct and sorted")
        classes = tuple(texts)
    else:
        classes = tuple(map(_from_text, texts))
        if len(set(classes)) != len(classes):
            raise CorruptModelError("classes must be distinct")
    if not classes:
        raise CorruptModelError("it has no classes")
    return classes


def label_in_json(label: Any) -> Any:
    """A label in JSON's terms; refuses what has none.

    Examples
    --------
    >>> label_in_json((1, True))
    {'tuple': [1, True]}
    """
    if isinstance(label, enum.Enum):
        return label.name
    if type(label) in (str, int, bool):
        return label
    if type(label) is float:
        return label if math.isfinite(label) else {"float": repr(label)}
    if type(label) is tuple:
        return {"tuple": [label_in_json(part) for part in label]}
    raise DataError(
        f"the label {label!r:.80} of type {type(label).__name__} cannot be written to a file; "
        "strings, numbers, bools, tuples of these and members of an enumeration can. The fitted "
        "model can still be pickled"
    )


def _from_text(text: str) -> Any:
    try:
        return _of_json(json.loads(text, parse_constant=_no_constant))
    except (ValueError, RecursionError):
        raise CorruptModelError(f"{text!r:.80} is no label") from None


def _of_json(value: Any) -> Any:
    if isinstance(value, dict):
        if set(value) == {"tuple"} and isinstance(value["tuple"], list):
            return tuple(_of_json(part) for part in value["tuple"])
        if set(value) == {"float"} and value["float"] in ("inf", "-inf"):
            return float(value["float"])
    elif isinstance(value, str | int | float):  # bools are ints
        return value
    raise ValueError(value)


def _no_constant(name: str) -> Any:
    raise ValueError(name)

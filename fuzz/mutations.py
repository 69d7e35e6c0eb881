"""Changes of arguments: of how they are written, which must not matter, and of what they say."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from numpy.random import Generator

__all__ = ["broken", "tamper", "written_otherwise"]


class _Kind:
    """A class, which can be called with anything; what the call of ``int`` raises is not ours."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass


# What stands where something else is expected. None of it is large: what can be asked for, in time
# and memory, is not an attack.
_THINGS: tuple[Callable[[], Any], ...] = (
    lambda: None, lambda: "x", lambda: "", lambda: b"x", lambda: 0, lambda: -1, lambda: 3,
    lambda: 2.5, lambda: np.nan, lambda: np.inf, lambda: -np.inf, lambda: -0.0, lambda: True,
    lambda: 1j, lambda: [], lambda: (), lambda: {}, set, lambda: [[]], lambda: [None],
    lambda: [[1, 2], [3]], lambda: ["a", ["b"]], lambda: [1.5], lambda: {"a": 1}, lambda: {1, 2},
    object, lambda: _Kind, lambda: iter([1, 2]), lambda: range(3), lambda: np.array(5),
    lambda: np.datetime64("2020-01-01"), lambda: np.float32(0.5), lambda: np.int8(-3),
    lambda: np.zeros(0), lambda: np.zeros((0, 2), np.int64), lambda: np.array(["a", "b"]),
    lambda: np.array([None, 1], object), lambda: np.ones((2, 2, 2)), lambda: np.array([1 + 2j]),
    lambda: memoryview(b"abcd"), lambda: (lambda *_: None), lambda: slice(2), lambda: ...,
)  # fmt: skip
_LARGE: tuple[Callable[[], Any], ...] = (
    lambda: 2**31, lambda: 2**62, lambda: 2**64, lambda: 10**9, lambda: 10**30, lambda: 1e300,
    lambda: -(2**31) - 1, lambda: -1e300, lambda: np.uint64(2**63), lambda: np.float64(1e18),
)  # fmt: skip
_DTYPES = (
    "i8", "i4", "i2", "u8", "u1", "f8", "f4", "f2", "?", "O", "U3", "S2", "c16", "M8[s]", "m8[s]",
    ">i4", "g", "V3",
)  # fmt: skip
_NUMBERS = (-1, 0, 1, 7, 127, 2**15, 2**31 - 1, 2**31, 2**62, -(2**31), -(2**62), 10**8, -(10**7))
_FLOATS = (np.nan, np.inf, -np.inf, 1e300, -1e300, 1e-300, -0.0, 1e19, 3e38)


def _choice(rng: Generator, of: Any) -> Any:
    return of[int(rng.integers(len(of)))]


# ------------------------------------------------------------------------- as it is


class _Subclass(np.ndarray[Any, Any]):
    """An array of a kind of its own."""


def _strided(a: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    every_other: np.ndarray[Any, Any] = np.repeat(a, 2, axis=-1)[..., ::2]
    return every_other


def _backwards(a: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return a[::-1].copy()[::-1]


def _misaligned(a: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    raw = np.empty(a.nbytes + 1, np.uint8)
    odd = raw[1:].view(a.dtype).reshape(a.shape)
    odd[...] = a
    return np.asarray(odd)


def _read_only(a: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    other = a.copy()
    other.setflags(write=False)
    return other


def _wider(a: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return a.astype({"i": np.int64, "f": np.float64}.get(a.dtype.kind, a.dtype))


def _smaller(a: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    for kind in (np.int8, np.int16, np.int32):
        if a.dtype.kind == "i" and a.size and abs(a).max() <= np.iinfo(kind).max:
            return a.astype(kind)
    return a.copy()


_WRITINGS: tuple[Callable[[np.ndarray[Any, Any]], Any], ...] = (
    _strided, _backwards, _misaligned, _read_only, _wider, _smaller, np.asfortranarray,
    lambda a: a.astype(a.dtype.newbyteorder(">")), lambda a: a.copy().view(_Subclass),
    lambda a: a.tolist(), np.ma.masked_array,
)  # fmt: skip


def written_otherwise(value: Any, rng: Generator) -> Any:
    """The same numbers in another array; None if the value is none that can be."""
    if not isinstance(value, np.ndarray) or value.ndim == 0 or value.size == 0:
        return None
    return _choice(rng, _WRITINGS)(value)


# ------------------------------------------------------------------------- other than it should be


def _thing(rng: Generator, work: bool) -> Any:
    kinds = _THINGS if work else _THINGS + _LARGE
    return _choice(rng, kinds)()


def _broken_array(a: np.ndarray[Any, Any], rng: Generator, work: bool) -> Any:
    kind = int(rng.integers(9))
    if kind == 0:
        return _thing(rng, work)
    if kind == 1:
        try:
            return a.astype(_choice(rng, _DTYPES))
        except (TypeError, ValueError):
            return a.astype(object)
    if kind == 2:  # another shape
        return _choice(rng, (
            a[:-1], a[1:], a[:0], a[None], a[..., None], a.T, a.ravel(), a[:1], a[..., :1],
            np.concatenate([a, a]), a[..., :0], a.reshape(-1)[:1].reshape(()) if a.size else a,
        ))  # fmt: skip
    if kind == 3:
        other = written_otherwise(a, rng)
        return a.copy() if other is None else other
    if kind == 4 and a.size:  # a hole
        mask = np.zeros(a.shape, bool)
        mask.ravel()[int(rng.integers(a.size))] = True
        return np.ma.masked_array(a, mask)
    if kind == 5 and a.dtype.kind in "iu" and a.ndim == 1:  # falling, repeated or shifted
        return _choice(rng, (a[::-1].copy(), np.sort(a)[::-1].copy(), a + 1, a - 1, a * 0, a * 2))
    other = a.astype(np.float64) if a.dtype.kind in "iu" and rng.random() < 0.2 else a.copy()
    poke(other, rng, work=work)
    return other


def poke(a: np.ndarray[Any, Any], rng: Generator, *, work: bool = False) -> None:
    """Write a number that is out of range into an array."""
    if not a.size:
        return
    numbers = _FLOATS if a.dtype.kind in "fc" else _NUMBERS[: 5 if work else None]
    place = tuple(int(rng.integers(n)) for n in a.shape)
    try:
        a[place] = _choice(rng, numbers)
    except (OverflowError, ValueError, TypeError):
        a[place] = a.ravel()[0]


def broken(value: Any, rng: Generator, *, work: bool = False) -> Any:
    """Something else in place of a value, or the value with something else inside.

    ``work``: it says how much is to be done, so that it must not be large.
    """
    if isinstance(value, np.ndarray):
        return _broken_array(value, rng, work)
    if isinstance(value, list | tuple | dict) and len(value) and rng.random() < 0.7:
        return _broken_inside(value, rng, work)
    return _thing(rng, work)


def _broken_inside(value: Any, rng: Generator, work: bool) -> Any:
    if isinstance(value, dict):
        key = _choice(rng, list(value))
        if rng.random() < 0.2:
            return {k: v for k, v in value.items() if k != key}
        return value | {key: broken(value[key], rng, work=work)}
    items = list(value)
    i = int(rng.integers(len(items)))
    kind = int(rng.integers(5))
    if kind == 0:
        del items[i]
    elif kind == 1:
        items.insert(i, copy.copy(items[i]))
    elif hasattr(items[i], "__next__"):
        items[i] = _thing(rng, work)
    else:
        items[i] = broken(items[i], rng, work=work)
    if isinstance(value, tuple) and type(value) is not tuple:  # a named one
        return items if len(items) != len(value) else type(value)(*items)
    return type(value)(items)


# ------------------------------------------------------------------------- after construction


def _arrays(thing: Any, depth: int) -> list[np.ndarray[Any, Any]]:
    if isinstance(thing, np.ndarray):
        return [thing]
    ours = type(thing).__module__.startswith("trellis") and not isinstance(thing, tuple)
    if depth == 0 or not ours:
        return []
    names = [f.name for f in fields(thing)] if is_dataclass(thing) else list(vars(thing))
    inside = (getattr(thing, name, None) for name in names if not name.startswith("_"))
    return [a for part in inside for a in _arrays(part, depth - 1)]


def tamper(thing: Any, rng: Generator) -> bool:
    """Write into one of the arrays that an object holds; False if it has none that can be."""
    arrays = [a for a in _arrays(thing, 3) if a.flags.writeable and a.size]
    if not arrays:
        return False
    poke(_choice(rng, arrays), rng)
    return True

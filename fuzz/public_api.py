"""An attack on every public call: what is not right is refused with a documented error.

A case takes one of :data:`fuzz.recipes.RECIPES`, calls with arguments that are right, and does one
of these:

- nothing else: the call must work;
- writes arrays in another way (non-contiguous, big-endian, a wider type, misaligned, read-only, a
  subclass, a list, …): the result must be the same;
- breaks one to three arguments, or what is inside them: either a documented error is raised
  (:class:`~trellis.errors.TrellisError`; a ``TypeError`` if arguments are missing or unexpected, an
  ``OSError`` if a path is wrong), or there is a result, which is then used;
- writes into arrays of an object, or of the arguments that it was made of, after its construction;
  nothing but a documented error or a result may come of that.

``array.setflags(write=True)`` on an array that an object holds is not among the attacks: who does
that says that they know what they do.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from numpy.random import Generator

from fuzz import BrokenPromiseError
from fuzz.mutations import broken, poke, tamper, written_otherwise
from fuzz.recipes import IN_PLACE, PATHS, RECIPES, WORK, Recipe
from trellis.errors import TrellisError

__all__ = ["cases", "same"]


_UP_TO = np.cumsum([recipe.often for recipe in RECIPES])


def cases() -> Callable[[Generator], str]:
    """Return what runs a case."""
    return run


def run(rng: Generator, recipe: Recipe | None = None) -> str:
    """Run one case, of one recipe or of any."""
    if recipe is None:
        recipe = RECIPES[int(np.searchsorted(_UP_TO, rng.random() * _UP_TO[-1], side="right"))]
    kind = rng.random()
    if kind < 0.08:
        return _valid(recipe)
    if kind < 0.25:
        return _rewritten(recipe, rng)
    if kind < 0.28:
        return _miscalled(recipe, rng)
    if kind < 0.45:
        return _tampered(recipe, rng)
    return _broken(recipe, rng)


def _nothing(_: Any) -> None:
    pass


def _valid(recipe: Recipe) -> str:
    try:
        recipe.run(_nothing, **recipe.arguments())
    except TrellisError as error:
        raise BrokenPromiseError(f"{recipe.name}: refused what is right: {error}") from error
    return "right"


def _rewritten(recipe: Recipe, rng: Generator) -> str:
    arguments = recipe.arguments()
    arrays = {k: v for k, v in arguments.items() if isinstance(v, np.ndarray) and v.size}
    candidates = sorted(arrays.keys() - IN_PLACE)
    if not candidates:
        return _valid(recipe)
    for name in rng.permutation(candidates)[: int(rng.integers(1, 4))]:
        arguments[str(name)] = written_otherwise(arguments[str(name)], rng)
    plain = recipe.run(_nothing, **recipe.arguments())
    try:
        other = recipe.run(_nothing, **arguments)
    except TrellisError as error:
        raise BrokenPromiseError(f"{recipe.name}: refused another writing: {error}") from error
    if not same(plain, other):
        raise BrokenPromiseError(f"{recipe.name}: the result depends on how arrays are written")
    return "same"


def _miscalled(recipe: Recipe, rng: Generator) -> str:
    if recipe.call is None:
        return _valid(recipe)
    arguments = recipe.arguments()
    if arguments and rng.random() < 0.5:
        del arguments[str(rng.choice(list(arguments)))]
    else:
        arguments["unexpected"] = 1
    try:
        recipe.call(**arguments)
    except TypeError as error:
        if "argument" not in str(error):
            raise
        return "refused"
    return "used"


def _tampered(recipe: Recipe, rng: Generator) -> str:
    arguments = recipe.arguments()
    written = False

    def touch(thing: Any) -> None:
        nonlocal written
        if rng.random() < 0.5:
            written = tamper(thing, rng) or written
        else:
            arrays = [k for k, a in arguments.items() if isinstance(a, np.ndarray) and a.size]
            if arrays:
                name = arrays[int(rng.integers(len(arrays)))]
                poke(arguments[name], rng, work=name in WORK)
                written = True

    try:
        recipe.run(touch, **arguments)
    except TrellisError:
        return "refused"
    return "used after a change" if written else "read-only"


def _broken(recipe: Recipe, rng: Generator) -> str:
    arguments = recipe.arguments()
    names = list(arguments)
    if not names:
        return _valid(recipe)
    chosen = [str(n) for n in rng.permutation(names)[: int(rng.choice([1, 1, 1, 2, 3]))]]
    for name in chosen:
        arguments[name] = broken(arguments[name], rng, work=name in WORK)
    try:
        recipe.run(_nothing, **arguments)
    except TrellisError:
        return "refused"
    except OSError:
        if not PATHS.intersection(chosen):
            raise
        return "refused"
    return "used"


# ------------------------------------------------------------------------- results


def same(a: Any, b: Any) -> bool:
    """Whether two results are equal; numbers may differ by rounding errors."""
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return _same_arrays(np.asarray(a), np.asarray(b))
    if hasattr(a, "toarray"):
        return same(a.toarray(), b.toarray())
    if isinstance(a, numbers.Number) and isinstance(b, numbers.Number):
        return _same_arrays(np.asarray(a), np.asarray(b))
    if type(a) is not type(b):
        return False
    if isinstance(a, Mapping):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if is_dataclass(a) and not isinstance(a, type):
        return all(same(getattr(a, f.name), getattr(b, f.name)) for f in fields(a) if f.compare)
    try:
        return bool(a == b) or getattr(type(a), "__eq__", None) is object.__eq__
    except ValueError:
        return False


def _same_arrays(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> bool:
    if a.shape != b.shape:
        return False
    if a.dtype.kind in "fc" and b.dtype.kind in "fc":
        size = float(np.abs(a[np.isfinite(a)]).max(initial=0.0)) if a.ndim else 0.0
        return np.allclose(a, b, rtol=1e-6, atol=1e-9 * (1 + min(size, math.inf)), equal_nan=True)
    return bool(np.array_equal(a, b))

"""Eight labels at a time: short vectors of numbers, as processors have them.

A row of scores has one number for each label. Loops over rows of 4 to 50 numbers are too short for
what LLVM makes of loops, and it cannot know that the rows do not overlap; so the vectors are
written out. ``Lanes`` are n numbers of one type that are loaded, added, multiplied and stored
together:

    y = load(A, place);   y[q] = A.ravel()[place + q],   q = 0 … n − 1.

A place is counted through all axes, so that one function serves rows of any array; it is not
checked. A row that is no multiple of eight long has one of two forms:

padded
    Workspaces have rows of ``padded(L)`` numbers, those beyond the labels neutral (0, or −inf).
overlapping
    Weights have rows of L. The last vector of a row begins at L − 8, where it overlaps the one
    before: what is computed twice is the same, as long as all is loaded before it is stored.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import (
    intrinsic,
    lower_builtin,
    models,
    register_jitable,
    register_model,
    type_callable,
)

__all__ = [
    "WIDTH",
    "Lanes",
    "at_least",
    "first_equal",
    "floor",
    "get",
    "highest",
    "load",
    "load_as",
    "load_half",
    "load_half_as",
    "load_one",
    "lower",
    "lowest",
    "padded",
    "power_of_two",
    "put",
    "spread",
    "spread_half",
    "store",
    "total",
    "upper",
]

WIDTH = 8


@register_jitable  # type: ignore[untyped-decorator]  # Numba is untyped
def padded(n: int) -> int:
    """Numbers in a padded row of n."""
    return (n + WIDTH - 1) // WIDTH * WIDTH


class Lanes(types.Type):  # type: ignore[misc]  # Numba is untyped
    """Numba's type of n numbers of one type."""

    def __init__(self, of: Any, n: int) -> None:
        self.of, self.n = of, n
        super().__init__(name=f"Lanes({of}, {n})")


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: Lanes) -> None:
        super().__init__(manager, kind, _vector(kind))


def _vector(kind: Lanes) -> Any:
    element = ir.FloatType() if kind.of == types.float32 else ir.DoubleType()
    return ir.VectorType(element, kind.n)


# --- memory ---------------------------------------------------------------------------------------


def _address(context: Any, builder: Any, signature: Any, args: Any, kind: Any) -> Any:
    """Pointer of a kind to number args[1] of the array args[0]."""
    array = context.make_array(signature.args[0])(context, builder, args[0])
    place = context.cast(builder, args[1], signature.args[1], types.intp)
    return builder.bitcast(builder.gep(array.data, [place]), kind.as_pointer())


_NUMBERS = (types.float32, types.float64)


def _fits(array: Any, place: Any, of: tuple[Any, ...] = _NUMBERS) -> bool:
    return (
        isinstance(array, types.Array)
        and array.layout == "C"
        and array.dtype in of
        and isinstance(place, types.Integer)
    )


def _load(array: Any, place: Any, n: int, like: Any = None) -> Any:
    if not _fits(array, place):
        return None
    stored = Lanes(array.dtype, n)
    kind = stored if like is None else Lanes(like.dtype, n)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        where = _address(context, builder, signature, args, _vector(stored))
        x = builder.load(where, align=stored.of.bitwidth // 8)
        if kind.of.bitwidth > stored.of.bitwidth:
            return builder.fpext(x, _vector(kind))
        return x if kind == stored else builder.fptrunc(x, _vector(kind))

    return kind(array, place, *([] if like is None else [like])), codegen


@intrinsic  # type: ignore[untyped-decorator]  # Numba is untyped
def load(typingctx: Any, array: Any, place: Any) -> Any:
    """The eight numbers from a place on."""
    return _load(array, place, WIDTH)


@intrinsic  # type: ignore[untyped-decorator]  # Numba is untyped
def load_half(typingctx: Any, array: Any, place: Any) -> Any:
    """The four numbers from a place on."""
    return _load(array, place, WIDTH // 2)


@intrinsic  # type: ignore[untyped-decorator]  # Numba is untyped
def load_as(typingctx: Any, array: Any, place: Any, like: Any) -> Any:
    """The eight numbers from a place on, in the type of another array."""
    return _load(array, place, WIDTH, like)


@intrinsic  # type: ignore[untyped-decorator]  # Numba is untyped
def load_half_as(typingctx: Any, array: Any, place: Any, like: Any) -> Any:
    """The four numbers from a place on, in the type of another array."""
    return _load(array, place, WIDTH // 2, like)


@intrinsic  # type: ignore[untyped-decorator]  # Numba is untyped
def load_one(typingctx: Any, array: Any, place: Any) -> Any:
    """The number at a place, eight times."""
    if not _fits(array, place):
        return None
    kind = Lanes(array.dtype, WIDTH)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        element = _vector(kind).element
        where = _address(context, builder, signature, args, element)
        return _splat(builder, builder.load(where), kind.n)

    return kind(array, place), codegen


@intrinsic  # type: ignore[untyped-decorator]  # Numba is untyped
def store(typingctx: Any, array: Any, place: Any, x: Any) -> Any:
    """Write numbers to an array, from a place on."""
    if not _fits(array, place) or not isinstance(x, Lanes) or x.of != array.dtype:
        return None

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        where = _address(context, builder, signature, args, _vector(x))
        builder.store(args[2], where, align=x.of.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(array, place, x), codegen


@intrinsic  # type: ignore[untyped-decorator]  # Numba is untyped
def get(typingctx: Any, array: Any, place: Any) -> Any:
    """The number at a place, which may be an int16 or int32."""
    if not _fits(array, place, (*_NUMBERS, types.int16, types.int32)):
        return None

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        element = context.get_value_type(array.dtype)
        return builder.load(_address(context, builder, signature, args, element))

    return array.dtype(array, place), codegen


@intrinsic  # type: ignore[untyped-decorator]  # Numba is untyped
def put(typingctx: Any, array: Any, place: Any, x: Any) -> Any:
    """Write a number to a place."""
    if not _fits(array, place) or not isinstance(x, types.Float):
        return None

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        element = context.get_value_type(array.dtype)
        value = context.cast(builder, args[2], signature.args[2], array.dtype)
        builder.store(value, _address(context, builder, signature, args, element))
        return context.get_dummy_value()

    return types.void(array, place, x), codegen


@intrinsic  # type: ignore[untyped-decorator]  # Numba is untyped
def spread(typingctx: Any, x: Any) -> Any:
    """The same number eight times."""
    return _spread(x, WIDTH)


@intrinsic  # type: ignore[untyped-decorator]  # Numba is untyped
def spread_half(typingctx: Any, x: Any) -> Any:
    """The same number four times."""
    return _spread(x, WIDTH // 2)


def _spread(x: Any, n: int) -> Any:
    if x not in (types.float32, types.float64):
        return None
    kind = Lanes(x, n)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _splat(builder, args[0], n)

    return kind(x), codegen


def _splat(builder: Any, x: Any, n: int) -> Any:
    vector = ir.VectorType(x.type, n)
    one = builder.insert_element(ir.Constant(vector, ir.Undefined), x, ir.IntType(32)(0))
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), n), [0] * n)
    return builder.shuffle_vector(one, ir.Constant(vector, ir.Undefined), zeros)


# --- arithmetic -----------------------------------------------------------------------------------
#
# What exponentials are made of (upper, at_least, floor, power_of_two) is for plain numbers, too.


def _operate(function: Any, build: Callable[[Any, Any, Any], Any]) -> None:
    """Make an operator of Python work on Lanes of one type, or Lanes and a number."""

    @type_callable(function)  # type: ignore[untyped-decorator]
    def _type(context: Any) -> Any:
        def typer(a: Any, b: Any) -> Any:
            lanes = a if isinstance(a, Lanes) else b
            fits = isinstance(lanes, Lanes) and all(x in (lanes, lanes.of) for x in (a, b))
            return lanes if fits else None

        return typer

    def _lower(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        n = signature.return_type.n
        spread_out = (
            x if isinstance(kind, Lanes) else _splat(builder, x, n)
            for x, kind in zip(args, signature.args, strict=True)
        )
        return build(builder, *spread_out)

    for kinds in ((Lanes, Lanes), (Lanes, types.Float), (types.Float, Lanes)):
        lower_builtin(function, *kinds)(_lower)


def _larger(builder: Any, a: Any, b: Any) -> Any:
    return builder.select(builder.fcmp_ordered(">", a, b), a, b)


for _function, _build in (
    (operator.add, lambda builder, a, b: builder.fadd(a, b)),
    (operator.iadd, lambda builder, a, b: builder.fadd(a, b)),
    (operator.sub, lambda builder, a, b: builder.fsub(a, b)),
    (operator.mul, lambda builder, a, b: builder.fmul(a, b)),
    (operator.truediv, lambda builder, a, b: builder.fdiv(a, b)),
):
    _operate(_function, _build)


@intrinsic  # type: ignore[untyped-decorator]  # Numba is untyped
def upper(typingctx: Any, a: Any, b: Any) -> Any:
    """The larger one of each two numbers, the second if either is NaN; b may be one for all."""
    if not isinstance(a, Lanes | types.Float) or b not in (a, _element(a)):
        return None

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        other = args[1] if a == b else _splat(builder, args[1], a.n)
        return _larger(builder, args[0], other)

    return a(a, b), codegen


@intrinsic  # type: ignore[untyped-decorator]  # Numba is untyped
def lower(typingctx: Any, a: Any, b: Any) -> Any:
    """The smaller one of each two numbers, the second if either is NaN."""
    if not isinstance(a, Lanes) or a != b:
        return None

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.select(builder.fcmp_ordered("<", *args), *args)

    return a(a, b), codegen


@intrinsic  # type: ignore[untyped-decorator]  # Numba is untyped
def at_least(typingctx: Any, x: Any, bound: Any, y: Any) -> Any:
    """Y where x is at least the bound, elsewhere 0."""
    if not isinstance(x, Lanes | types.Float) or x != y or bound != _element(x):
        return None

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = args[0].type
        least = _splat(builder, args[1], x.n) if isinstance(x, Lanes) else args[1]
        return builder.select(builder.fcmp_ordered(">=", args[0], least), args[2], _all(kind, 0.0))

    return x(x, bound, y), codegen


def _folded(builder: Any, x: Any, n: int, join: Callable[[Any, Any, Any], Any]) -> Any:
    """One number of n, joined by halves."""
    while n > 1:
        n //= 2
        halves = [
            builder.shuffle_vector(
                x, ir.Constant(x.type, ir.Undefined),
                ir.Constant(ir.VectorType(ir.IntType(32), n), [first + q for q in range(n)]),
            )
            for first in (0, n)
        ]  # fmt: skip
        x = join(builder, *halves)
    return builder.extract_element(x, ir.IntType(32)(0))


@intrinsic  # type: ignore[untyped-decorator]  # Numba is untyped
def total(typingctx: Any, x: Any) -> Any:
    """Sum of the numbers, by halves."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _folded(builder, args[0], x.n, lambda builder, a, b: builder.fadd(a, b))

    return (x.of(x), codegen) if isinstance(x, Lanes) else None


@intrinsic  # type: ignore[untyped-decorator]  # Numba is untyped
def highest(typingctx: Any, x: Any) -> Any:
    """Maximum of the numbers."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _folded(builder, args[0], x.n, _larger)

    return (x.of(x), codegen) if isinstance(x, Lanes) else None


@intrinsic  # type: ignore[untyped-decorator]  # Numba is untyped
def lowest(typingctx: Any, x: Any) -> Any:
    """Minimum of the numbers."""

    def smaller(builder: Any, a: Any, b: Any) -> Any:
        return builder.select(builder.fcmp_ordered("<", a, b), a, b)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _folded(builder, args[0], x.n, smaller)

    return (x.of(x), codegen) if isinstance(x, Lanes) else None


@intrinsic  # type: ignore[untyped-decorator]  # Numba is untyped
def first_equal(typingctx: Any, x: Any, y: Any) -> Any:
    """Which is the first of the numbers that are equal; their number if none is."""
    if not isinstance(x, Lanes) or x != y:
        return None

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        same = builder.fcmp_ordered("==", *args)
        bits = builder.zext(builder.bitcast(same, ir.IntType(x.n)), ir.IntType(64))
        bits = builder.or_(bits, ir.IntType(64)(1 << x.n))
        return builder.cttz(bits, ir.IntType(1)(1))

    return types.int64(x, y), codegen


@intrinsic  # type: ignore[untyped-decorator]  # Numba is untyped
def floor(typingctx: Any, x: Any) -> Any:
    """The next lower whole numbers."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = args[0].type
        many = f"v{x.n}" if isinstance(x, Lanes) else ""
        name = f"llvm.floor.{many}f{_element(x).bitwidth}"
        function_type = ir.FunctionType(kind, [kind])
        function = cgutils.get_or_insert_function(builder.module, function_type, name)
        return builder.call(function, args)

    return (x(x), codegen) if isinstance(x, Lanes | types.Float) else None


@intrinsic  # type: ignore[untyped-decorator]  # Numba is untyped
def power_of_two(typingctx: Any, k: Any) -> Any:
    """2^k of whole numbers k, by writing them into the exponent bits."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        def whole(bits: int) -> Any:
            number = ir.IntType(bits)
            return ir.VectorType(number, k.n) if isinstance(k, Lanes) else number

        bits = builder.fptosi(args[0], whole(32))  # float64 has a short way to int32 only
        bias, shift = 127, 23
        if _element(k) == types.float64:
            bits = builder.sext(bits, whole(64))
            bias, shift = 1023, 52
        bits = builder.add(bits, _all(bits.type, bias))
        return builder.bitcast(builder.shl(bits, _all(bits.type, shift)), args[0].type)

    return (k(k), codegen) if isinstance(k, Lanes | types.Float) else None


def _element(kind: Any) -> Any:
    """Type of the numbers of Lanes, or of a number."""
    return kind.of if isinstance(kind, Lanes) else kind


def _all(kind: Any, value: float) -> Any:
    """A constant: the same in all places of a vector, or a number."""
    is_vector = isinstance(kind, ir.VectorType)
    return ir.Constant(kind, [value] * kind.count if is_vector else value)

"""``prefetch``: ask the processor to fetch an element of a 1-D or 2-D array.

Mini-samples are visited in random order, so the features of the next piece are never in the cache;
fetching them while the current piece is computed hides most of the wait. It changes no result.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

__all__ = ["prefetch"]


@intrinsic  # type: ignore[untyped-decorator]  # Numba is untyped
def prefetch(typingctx: Any, array: Any, index: Any, offset: Any) -> Any:
    """Hint that ``array[index]`` (1-D, offset 0) or ``array[index, offset]`` is read soon."""
    if not isinstance(array, types.Array) or not isinstance(index, types.Integer):
        return None

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = signature.args[0]
        struct = context.make_array(kind)(context, builder, args[0])
        strides = cgutils.unpack_tuple(builder, struct.strides, kind.ndim)
        position = context.cast(builder, args[1], signature.args[1], types.intp)
        base = builder.ptrtoint(struct.data, strides[0].type)
        address = builder.add(base, builder.mul(position, strides[0]))
        within = context.cast(builder, args[2], signature.args[2], types.intp)
        address = builder.add(address, builder.mul(within, strides[-1]))
        byte_pointer = ir.IntType(8).as_pointer()
        pointer = builder.inttoptr(address, byte_pointer)
        flag = ir.IntType(32)
        function_type = ir.FunctionType(ir.VoidType(), [byte_pointer, flag, flag, flag])
        function = cgutils.get_or_insert_function(
            builder.module, function_type, "llvm.prefetch.p0i8"
        )
        builder.call(function, [pointer, flag(0), flag(3), flag(1)])  # read, keep, data
        return context.get_dummy_value()

    return types.void(array, index, offset), codegen

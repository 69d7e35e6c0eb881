"""``eight_bytes``: the bytes of a buffer from a place on, as one number.

Comparing and hashing short strings byte by byte costs a step for each; eight at a time most strings
are one number.
"""

from __future__ import annotations

import sys
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

__all__ = ["eight_bytes"]


@intrinsic  # type: ignore[untyped-decorator]  # Numba is untyped
def eight_bytes(typingctx: Any, buffer: Any, place: Any) -> Any:
    """buffer[place] + 256 · buffer[place + 1] + …; that there are eight is not checked."""
    if not (
        isinstance(buffer, types.Array)
        and buffer.layout == "C"
        and buffer.dtype == types.uint8
        and isinstance(place, types.Integer)
    ):
        return None

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, args[0])
        start = context.cast(builder, args[1], signature.args[1], types.intp)
        where = builder.gep(array.data, [start])
        number = builder.load(builder.bitcast(where, ir.IntType(64).as_pointer()), align=1)
        return number if sys.byteorder == "little" else builder.bswap(number)

    return types.uint64(buffer, place), codegen

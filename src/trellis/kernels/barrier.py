"""A barrier for threads inside kernels: nobody goes on before all have come.

Mini-batches take tens of microseconds, so the threads of a training run meet far too often for
Python's own barriers. ``sync`` (int64, 4) holds how many have come, how often all have met, how
much of the work between two meetings is taken, and whether a thread has failed and will not come;
whoever starts the threads sets that. A waiting thread spins for a moment, then offers its core to
others: with more threads than cores, the one that is waited for must be let in.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from trellis.kernels._jit import subkernel

__all__ = ["meet", "take"]

Array = np.ndarray[Any, Any]

_SPINS = 2000

# Cached machine code names the function; its address is of this process.
if sys.platform == "win32":  # pragma: no cover
    _yield: Any = ctypes.windll.kernel32.SwitchToThread
else:
    _yield = ctypes.CDLL(None).sched_yield
llvm.add_symbol("trellis_yield", ctypes.cast(_yield, ctypes.c_void_p).value)


def _element(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """Pointer to args[0][args[1]] of an int64 array."""
    kind = signature.args[0]
    struct = context.make_array(kind)(context, builder, args[0])
    index = context.cast(builder, args[1], signature.args[1], types.intp)
    return cgutils.get_item_pointer(context, builder, kind, struct, [index])


@intrinsic  # type: ignore[untyped-decorator]  # Numba is untyped
def _add(typingctx: Any, array: Any, index: Any, amount: Any) -> Any:
    """Atomic array[index] += amount; returns the value before."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = _element(context, builder, signature, args)
        amount = context.cast(builder, args[2], signature.args[2], types.int64)
        return builder.atomic_rmw("add", pointer, amount, "seq_cst")

    return types.int64(array, index, amount), codegen


@intrinsic  # type: ignore[untyped-decorator]  # Numba is untyped
def _load(typingctx: Any, array: Any, index: Any) -> Any:
    """Atomic read of array[index]; everything written before it was stored is seen after it."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = _element(context, builder, signature, args)
        return builder.load_atomic(pointer, "seq_cst", 8)

    return types.int64(array, index), codegen


@intrinsic  # type: ignore[untyped-decorator]  # Numba is untyped
def _let_others_run(typingctx: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        function_type = ir.FunctionType(ir.IntType(32), [])
        function = cgutils.get_or_insert_function(builder.module, function_type, "trellis_yield")
        return builder.call(function, [])

    return types.int32(), codegen


@subkernel
def meet(sync: Array, n_threads: int) -> bool:
    """Wait until all ``n_threads`` threads have called this; False: one will not come, give up."""
    if n_threads == 1:
        return True
    met = _load(sync, 1)
    if _add(sync, 0, 1) == n_threads - 1:
        _add(sync, 0, -n_threads)
        _add(sync, 1, 1)
        return True
    spins = 0
    while _load(sync, 1) == met:
        spins += 1
        if spins > _SPINS:
            if _load(sync, 3) != 0:
                return False
            _let_others_run()
    return True


@subkernel
def take(sync: Array) -> int:
    """Number of the next piece of work that no thread has taken; set sync[2] to 0 between."""
    number: int = _add(sync, 2, 1)
    return number

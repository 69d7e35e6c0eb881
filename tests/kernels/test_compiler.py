"""Kernels are compiled with less work than Numba does, and leave it as it was."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest
from numba import njit
from numba.core.errors import TypingError
from numba.core.registry import cpu_target

from trellis.kernels._compiler import economically
from trellis.kernels._jit import fragment, inner, kernel, subkernel


def swapped():
    typing, target = cpu_target.typing_context, cpu_target.target_context
    owners = (typing, target, target.codegen())
    names = ("resolve_function_type", "create_cfunc_wrapper", "_library_class", "_pass_builder")
    return {name for owner in owners for name in names if name in vars(owner)}


@pytest.mark.parametrize("collects", [True, False])
def test_numba_is_left_as_it_was(collects):
    was_on = gc.isenabled()
    (gc.enable if collects else gc.disable)()
    try:
        with economically():
            assert len(swapped()) >= 3 and not gc.isenabled()
            with economically():  # a kernel that another kernel calls
                pass
            assert len(swapped()) >= 3 and not gc.isenabled()
        assert not swapped() and gc.isenabled() == collects
        with pytest.raises(ZeroDivisionError), economically():
            raise ZeroDivisionError
        assert not swapped() and gc.isenabled() == collects
    finally:
        (gc.enable if was_on else gc.disable)()


def test_an_error_is_told_and_leaves_nothing():
    @kernel
    def wrong(x):
        return x + "a"

    with pytest.raises(TypingError, match="No implementation of function"):
        wrong(1)
    assert not swapped()


def test_other_functions_compile_as_ever():
    """After a kernel, in another thread, one that takes an entry for C and its own machine code."""

    @subkernel
    def larger(a, b):
        return max(a, b)

    @kernel
    def top(x):
        best = x[0]
        for i in range(x.size):
            best = larger(best, x[i])
        return best

    @njit
    def own(x):
        return max(x[0], x[1]) + np.zeros(2).sum()

    found = []
    threads = [
        threading.Thread(target=lambda: found.append(top(np.arange(3.0)))),
        threading.Thread(target=lambda: found.append(own(np.arange(3.0)))),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [1.0, 2.0]
    (compiled,) = own.overloads.values()
    assert compiled.library.get_pointer_to_function(compiled.fndesc.llvm_cfunc_wrapper_name)


@pytest.mark.parametrize("part", [subkernel, inner, fragment])
def test_only_kernels_have_machine_code(part):
    @part
    def double(x):
        return x + x

    @kernel
    def both(x, y):
        return double(x), double(y), x + 1, y + 1

    assert both(2, 1.5) == (4, 3.0, 3, 2.5)
    assert [cres.library._has_address for cres in double.overloads.values()] == [False, False]
    assert [cres.library._has_address for cres in both.overloads.values()] == [True]


def test_machine_code_is_made_when_it_is_asked_for():
    @subkernel
    def double(x):
        return x + x

    @kernel
    def twice(x):
        return double(double(x))

    assert twice(2) == 8
    (part,) = double.overloads.values()
    name = part.fndesc.llvm_func_name
    assert part.library.get_pointer_to_function("no such function") == 0
    assert part.library.get_pointer_to_function(name) != 0
    assert part.library._has_address

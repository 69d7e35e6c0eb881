"""The private names of Numba that ``trellis/kernels`` relies on, and that they are there.

Numba promises none of them. If a test here fails after an upgrade, look at what became of the name,
change ``_jit.py`` and ``_compiler.py`` or keep the older Numba, and only then raise the bound in
``pyproject.toml``.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import tomllib
from pathlib import Path

import numba
import numpy as np
import pytest
from numba import types
from numba.core import (
    caching,
    codegen,
    compiler,
    cpu,
    dispatcher,
    environment,
    serialize,
    targetconfig,
    typing,
)
from numba.core.errors import NumbaError
from numba.core.registry import cpu_target

import trellis.kernels
from trellis.kernels import _compiler, _jit

RELIED_UPON = [
    # where the cache is
    (caching, "_CacheLocator", "is the base of the locator that names the folder of kernels"),
    (caching, "CompileResultCacheImpl", "writes and reads compiled code"),
    (caching.CompileResultCacheImpl, "_locator_classes", "is where our locator is put"),
    (caching, "FunctionCache", "is the cache that a damaged file must not stop"),
    (caching.FunctionCache, "_impl_class", "is where our locator's writer is put"),
    (caching.FunctionCache, "load_overload", "is called for each signature, and guarded"),
    (caching.FunctionCache, "save_overload", "is called for each signature, and guarded"),
    (caching.FunctionCache, "_index_key", "tells signatures and processors apart"),
    (serialize, "dumps", "writes compiled code"),
    # fragments: not optimised on their own
    (codegen, "JITCodeLibrary", "holds the code of a function"),
    (codegen.JITCodeLibrary, "_optimize_final_module", "is what fragments leave out"),
    (codegen.JITCodeLibrary, "_finalize_final_module", "makes machine code; fragments have none"),
    (codegen.JITCodeLibrary, "_finalize_dynamic_globals", "is what fragments still need of it"),
    (codegen.JITCodeLibrary, "_ensure_finalized", "links what a fragment calls"),
    (codegen.JITCodeLibrary, "get_pointer_to_function", "has nothing to point to in a fragment"),
    (codegen.JITCodeLibrary, "codegen", "is asked to set Python globals of code with an address"),
    (codegen.JITCPUCodegen, "set_env", "is what a fragment has no place for"),
    (compiler, "Compiler", "is told to put fragments into a library of ours"),
    # no machine code but of kernels
    (codegen.JITCPUCodegen, "_library_class", "is what code is put into"),
    (codegen.JITCodeLibrary, "_verify_declare_only_symbols", "looks for what is not linked"),
    (codegen.JITCodeLibrary, "_set_compiled_object", "tells that code comes from the cache"),
    (environment, "lookup_environment", "knows the Python globals of code without an address"),
    (cpu.CPUContext, "create_cfunc_wrapper", "makes entries for C programs; kernels have none"),
    # operators are resolved once
    (typing.Context, "resolve_function_type", "finds the types of a call"),
    (typing.Context, "_lookup_global", "finds the type of a function"),
    (targetconfig.ConfigStack, "top_or_none", "has the flags of what is being compiled"),
    # no code for constants, no search for garbage
    (dispatcher.Dispatcher, "get_call_template", "is asked for the types of a call"),
    (dispatcher.Dispatcher, "compile", "makes code, with no more work than kernels need"),
    (types, "unliteral", "tells the type of a constant"),
    # no counting of references
    (cpu.CPUTargetOptions, "_nrt", "switches the counting of references off"),
]


@pytest.mark.parametrize(
    ("owner", "name", "why"), RELIED_UPON, ids=[f"{o.__name__}.{n}" for o, n, _ in RELIED_UPON]
)
def test_the_name_is_there(owner, name, why):
    assert hasattr(owner, name), (
        f"Numba {numba.__version__} has no {owner.__name__}.{name}, which {why}; "
        "see trellis/kernels/_jit.py and _compiler.py"
    )


def test_a_dispatcher_has_a_cache_to_be_replaced():
    dispatcher = numba.njit(lambda x: x)
    assert isinstance(dispatcher._cache, caching.NullCache), (
        f"Numba {numba.__version__} keeps the cache of a function elsewhere than in ._cache"
    )


def test_a_locator_has_no_other_questions_to_answer():
    questions = {"get_cache_path", "get_source_stamp", "get_disambiguator"}
    assert caching._CacheLocator.__abstractmethods__ == questions
    assert not _jit._Locator.__abstractmethods__


def test_a_library_notes_that_it_is_finished():
    """``_finalize_final_module`` of a fragment sets it, as the one of Numba does."""
    source = inspect.getsource(codegen.CPUCodeLibrary._finalize_final_module)
    assert "self._finalized = True" in source


def test_a_function_type_has_the_keys_of_what_was_found():
    cpu_target.target_context.refresh()
    kind = cpu_target.typing_context.resolve_value_type(abs)
    assert isinstance(kind, types.Function) and isinstance(kind._impl_keys, dict)


def test_passes_are_made_for_a_processor():
    generator = cpu_target.target_context.codegen()
    assert hasattr(generator, "_tm") or not hasattr(generator, "_pass_builder")


def test_the_compiler_takes_the_library_third():
    names = list(inspect.signature(compiler.Compiler.__init__).parameters)
    assert names[:4] == ["self", "typingctx", "targetctx", "library"]


def test_the_installed_numba_is_within_the_bounds():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))
    (wanted,) = (d for d in project["project"]["dependencies"] if d.startswith("numba"))
    low, high = re.fullmatch(r"numba>=([\d.]+),<([\d.]+)", wanted).groups()

    def number(version: str) -> tuple[int, ...]:
        return tuple(int(part) for part in version.split(".")[:2])

    assert number(low) <= number(numba.__version__) < number(high), (
        f"this is Numba {numba.__version__}; all names above must be looked at before {wanted} "
        "is changed"
    )


# ------------------------------------------------------------------------- what they are for


@_jit.inner
def _doubled(x: np.ndarray, i: int) -> float:
    return 2 * x[i]


@_jit.fragment
def _sum_of_doubled(x: np.ndarray) -> float:
    total = 0.0
    for i in range(x.size):
        total += _doubled(x, i)
    return total


@_jit.allocating
def _squares(n: int) -> np.ndarray:
    out = np.empty(n)
    for i in range(n):
        out[i] = i * i
    return out


def whole(n):
    return _sum_of_doubled(_squares(n))


@pytest.fixture
def kernel(monkeypatch, tmp_path):
    """The kernel as a new process would have it, with a cache of its own."""
    monkeypatch.setattr(_jit, "cache_dir", lambda: tmp_path)
    return lambda: _jit.kernel(whole)


def test_fragments_are_part_of_a_kernel_and_of_its_cache(kernel):
    assert kernel()(4) == 28.0
    again = kernel()
    assert again(4) == 28.0
    assert sum(again.stats.cache_hits.values()) == 1


def test_a_fragment_has_no_machine_code(kernel):
    kernel()(4)
    (compiled,) = _sum_of_doubled.overloads.values()
    assert isinstance(compiled.library, _compiler._Fragment)
    assert compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name) == 0


@pytest.mark.parametrize("decorator", [_jit.inner, _jit.fragment, _jit.subkernel, _jit.ordered])
def test_constants_have_no_code_of_their_own(decorator):
    @decorator
    def power(x: float, k: int) -> float:
        return x**k

    @numba.njit
    def powers(x, n):
        return power(x, 0) + power(x, 1) + power(x, n) + power(x, k=2)

    assert powers(3.0, 3) == 1 + 3 + 27 + 9
    assert len(power.signatures) == 1


@pytest.mark.parametrize("decorator", [_jit.inner, _jit.fragment])
def test_what_counts_no_references_cannot_make_arrays(decorator):
    @decorator
    def made(n: int) -> float:
        return np.zeros(n)[0]

    with pytest.raises(NumbaError, match=r"NRT|zeros"):
        numba.njit(lambda n: made(n))(3)


def test_what_counts_no_references_returns_no_array():
    """The caller would give back a reference that nobody took: memory in use would be freed."""
    plain = re.compile(
        r"None|int|float|bool|np\.u?int64|tuple\[(int|float|bool)(, (int|float|bool|\.\.\.))*\]"
    )
    looked_at = 0
    for info in pkgutil.iter_modules(trellis.kernels.__path__):
        for value in vars(importlib.import_module(f"trellis.kernels.{info.name}")).values():
            if getattr(value, "targetoptions", {}).get("_nrt", True):
                continue
            function = value.py_func
            returned = function.__annotations__["return"]
            assert plain.fullmatch(returned), f"{function.__qualname__} returns {returned}"
            looked_at += 1
    assert looked_at > 30

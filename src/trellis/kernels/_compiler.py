"""Numba's compiler, without the work that kernels have no use for.

Numba compiles every function for all that might be done with it. Kernels are called from Python,
and what they call becomes part of them; so, while a kernel is compiled (:func:`economically`),

- machine code is made of functions that are to be called by address, which is of kernels alone;
- no function gets an entry for C programs;
- what operators and builtin functions give for some types is worked out once.

The code of kernels is the same as without.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import llvmlite.binding as llvm
from numba import types
from numba.core import codegen, compiler, config, environment, targetconfig
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target

__all__ = ["FragmentCompiler", "economically"]


@contextmanager
def economically() -> Iterator[None]:
    """Compile with no more work than kernels need; nobody else compiles meanwhile."""
    typing, target = cpu_target.typing_context, cpu_target.target_context
    with global_compiler_lock:
        if "resolve_function_type" in vars(typing):  # a kernel that another kernel calls
            yield
            return
        target.refresh()  # Numba's runtime, which is called by address
        generator = target.codegen()
        # Attributes of Numba's own objects hide its methods until the kernel is compiled.
        swaps = [
            (typing, "resolve_function_type", _Resolved(typing)),
            (target, "create_cfunc_wrapper", _no_entry),
            (generator, "_library_class", _Part),
        ]
        if hasattr(generator, "_pass_builder"):  # from Numba 0.62 on
            swaps.append((generator, "_pass_builder", _Passes(generator._tm)))
        was_on = gc.isenabled()
        gc.disable()  # the compiler makes millions of objects that all live on: a tenth of the time
        for owner, name, value in swaps:
            setattr(owner, name, value)
        try:
            yield
        finally:
            for owner, name, _ in swaps:
                delattr(owner, name)
            if was_on:
                gc.enable()


def _no_entry(*_: Any) -> None:
    """Make no entry for C programs."""


class _Passes:
    """LLVM's passes, without those that unroll loops.

    Rows of labels are short, and what is long is unrolled by hand or by the vectoriser: to unroll
    more takes a quarter of the time and makes nothing faster. Nor does the highest level.
    """

    def __init__(self, machine: Any) -> None:
        self._machine = machine

    def __call__(
        self,
        opt: int = config.OPT,
        loop_vectorize: bool = config.LOOP_VECTORIZE,
        slp_vectorize: bool = config.SLP_VECTORIZE,
    ) -> Any:
        options = llvm.create_pipeline_tuning_options()
        options.speed_level = min(opt, 2)
        options.loop_vectorization = loop_vectorize
        options.slp_vectorization = slp_vectorize
        options.loop_unrolling = False
        return llvm.create_pass_builder(self._machine, options)


class _Resolved:
    """Signatures of operators and functions that Numba knows, each found once.

    Numba tries the templates of a function one by one, at every place where it is called. A
    template may compile an implementation, which depends on the flags of the caller; it leaves the
    key of that with the type of the function.
    """

    def __init__(self, typing: Any) -> None:
        self._typing = typing
        self._resolve = typing.resolve_function_type
        self._known: dict[Any, tuple[Any, Any, Any]] = {}
        self._flags: list[Any] = []
        self._numbers: dict[int, tuple[Any, int]] = {}

    def __call__(self, function: Any, args: Any, kws: Any) -> Any:
        try:
            key = function, tuple(args), self._flags_now()
            known = self._known.get(key) if not kws else None
        except TypeError:  # it cannot be looked up
            return self._resolve(function, args, kws)
        if known is not None:
            signature, kind, chosen = known
            kind._impl_keys[signature.args] = chosen
            return signature
        signature = self._resolve(function, args, kws)
        if signature is not None and not kws:
            kind = function if isinstance(function, types.Type) else None
            kind = kind or self._typing._lookup_global(function)
            if isinstance(kind, types.Function) and signature.args in kind._impl_keys:
                self._known[key] = signature, kind, kind._impl_keys[signature.args]
        return signature

    def _flags_now(self) -> int:
        """Number of the flags of the function that is being compiled: equal ones have the same."""
        flags = targetconfig.ConfigStack.top_or_none()
        if id(flags) not in self._numbers:
            if flags not in self._flags:
                self._flags.append(flags)
            self._numbers[id(flags)] = flags, self._flags.index(flags)  # they live on: ids are kept
        return self._numbers[id(flags)][1]


class _Part(codegen.JITCodeLibrary):  # type: ignore[misc]  # Numba is untyped
    """Code that gets an address when one is asked for: others link it, and mostly inline it."""

    _has_address = False

    def _finalize_final_module(self) -> None:
        if getattr(self, "_compiled_object", None) is not None:  # it is read from the cache
            self._has_address = True
            super()._finalize_final_module()
            return
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        self._ensure_finalized()
        if not self._has_address:
            functions = self._final_module.functions
            if not any(f.name == name and not f.is_declaration for f in functions):
                return 0
            self._has_address = True
            super()._finalize_final_module()
            for variable in self._final_module.global_variables:
                env = environment.lookup_environment(variable.name)
                if env is not None:
                    self._codegen.set_env(variable.name, env)
        return int(super().get_pointer_to_function(name))

    @property
    def codegen(self) -> Any:
        return self._codegen if self._has_address else _NoEnvironment(self._codegen)


class _NoEnvironment:
    """A code generator for code that has no address and so no place for its Python globals."""

    def __init__(self, generator: Any) -> None:
        self._generator = generator

    def __getattr__(self, name: str) -> Any:
        return getattr(self._generator, name)

    def set_env(self, name: str, env: Any) -> None:
        pass


class _Fragment(_Part):
    """Code that is kept as Numba wrote it: whoever inlines it optimises it.

    Numba optimises every function, and does so once more in each caller that it is inlined into.
    For a function in a function in a kernel that is three times the work, all but the last of it
    for nothing.
    """

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


class FragmentCompiler(compiler.Compiler):  # type: ignore[misc]  # Numba is untyped
    """The compiler of fragments."""

    def __init__(self, typing: Any, target: Any, library: Any, *rest: Any) -> None:
        super().__init__(typing, target, _Fragment(target.codegen(), "fragment"), *rest)

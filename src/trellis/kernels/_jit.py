"""The one decorator of all kernels, and where their machine code is kept.

Numba's own cache has two traps: it does not notice that a callee in *another* file changed, and
it writes beside the source, which fails on read-only installs. Kernels are therefore cached in a
per-user folder whose name holds a hash of every file of this package: a changed kernel is a new
folder. Several processes may compile at once: Numba writes each file under a temporary name and
renames it.

``fastmath`` is never ``True``: ``nnan`` and ``ninf`` would break the ``-inf`` of forbidden labels.
"""

from __future__ import annotations

import functools
import hashlib
import logging
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.core import caching, codegen, compiler

__all__ = ["allocating", "cache_dir", "fragment", "inner", "kernel", "subkernel"]

F = TypeVar("F", bound=Callable[..., Any])

_log = logging.getLogger("trellis")
_FASTMATH = {"contract", "reassoc", "arcp", "nsz", "afn"}


@functools.cache
def cache_dir() -> Path:
    """Folder of the compiled kernels: ``$TRELLIS_CACHE``, the user's cache, or a temporary one."""
    digest = hashlib.sha256(f"{numba.__version__} {sys.version_info[:2]}".encode())
    for file in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(file.name.encode())
        digest.update(file.read_bytes())
    name = f"kernels-{digest.hexdigest()[:16]}"
    candidates = []
    if override := os.environ.get("TRELLIS_CACHE"):
        candidates.append(Path(override))
    if xdg := os.environ.get("XDG_CACHE_HOME"):
        candidates.append(Path(xdg) / "trellis")
    elif "HOME" in os.environ or "USERPROFILE" in os.environ:
        candidates.append(Path.home() / ".cache" / "trellis")
    candidates.append(Path(tempfile.gettempdir()) / f"trellis-{_user()}")
    for parent in candidates:
        folder = parent / name
        try:
            parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            folder.mkdir(exist_ok=True, mode=0o700)
            # Cached code is executed: never take it from a folder that somebody else owns.
            # Nor from a parent of theirs, who could exchange it; one the user named is trusted.
            folders = [folder] if parent == Path(override or "") else [parent, folder]
            if hasattr(os, "getuid") and any(f.stat().st_uid != os.getuid() for f in folders):
                continue
            with tempfile.NamedTemporaryFile(dir=folder):
                return folder
        except OSError:
            continue
    return Path(tempfile.mkdtemp(prefix="trellis-"))


def _user() -> str:
    return str(os.getuid()) if hasattr(os, "getuid") else os.environ.get("USERNAME", "user")


@functools.cache
def _announce() -> None:
    _log.warning("compiling kernels for this machine (once; kept in %s)", cache_dir())


class _Locator(caching._CacheLocator):  # type: ignore[misc]  # Numba is untyped
    """Numba's answer to «where is the cache of this function»: always :func:`cache_dir`."""

    def __init__(self, py_func: Callable[..., Any]) -> None:
        self._stem = Path(py_func.__code__.co_filename).stem

    def get_cache_path(self) -> str:
        return str(cache_dir())

    def get_source_stamp(self) -> str:
        return cache_dir().name  # the hash of all kernel sources

    def get_disambiguator(self) -> str:
        return self._stem

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> _Locator:
        return cls(py_func)


class _Impl(caching.CompileResultCacheImpl):  # type: ignore[misc]  # Numba is untyped
    _locator_classes = (_Locator,)


class _KernelCache(caching.FunctionCache):  # type: ignore[misc]  # Numba is untyped
    _impl_class = _Impl

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            loaded = super().load_overload(sig, target_context)
        except Exception as error:  # a damaged cache file may raise anything; compile anew
            _log.debug("cached kernel could not be read: %s", error)
            loaded = None
        # Two processes that save at once may leave an index that names the other's file.
        if loaded is not None and tuple(loaded.signature.args) != tuple(sig):
            loaded = None
        if loaded is None:
            _announce()
        return loaded

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            try:
                super().save_overload(sig, data)
            except OSError:
                raise
            except Exception:  # a damaged index cannot be added to: begin a new one
                self.flush()
                super().save_overload(sig, data)
        except OSError as error:  # a full disk costs the cache, not the run
            _log.warning("compiled kernel not kept (%s); it will be compiled again", error)


def kernel(function: F) -> F:
    """Compile a function as a kernel: no GIL, safe fast math, cached on disk."""
    dispatcher = numba.njit(nogil=True, fastmath=_FASTMATH, error_model="numpy")(function)
    dispatcher._cache = _KernelCache(function)
    return cast(F, dispatcher)


class _Fragment(codegen.JITCodeLibrary):  # type: ignore[misc]  # Numba is untyped
    """Code that is kept as Numba wrote it: whoever inlines it optimises it.

    Numba optimises every function and makes machine code of it, and does so once more in each
    caller that it is inlined into. For a function in a function in a kernel that is three times
    the work, all but the last of it for nothing.
    """

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        self._ensure_finalized()
        return 0  # as for any function without a Python entry

    @property
    def codegen(self) -> Any:
        return _NoEnvironment(self._codegen)


class _NoEnvironment:
    """A code generator for code that has no address and so no place for its Python globals."""

    def __init__(self, generator: Any) -> None:
        self._generator = generator

    def __getattr__(self, name: str) -> Any:
        return getattr(self._generator, name)

    def set_env(self, name: str, environment: Any) -> None:
        pass


class _FragmentCompiler(compiler.Compiler):  # type: ignore[misc]  # Numba is untyped
    def __init__(self, typing: Any, target: Any, library: Any, *rest: Any) -> None:
        super().__init__(typing, target, _Fragment(target.codegen(), "fragment"), *rest)


_INLINED = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "forceinline": True}


def subkernel(function: F) -> F:
    """Compile a function that only kernels call: no Python entry and no cache of its own.

    Its code becomes part of its callers', which are cached. A call passes every array as a dozen
    numbers, which costs more than the arithmetic of a short piece; so it is always inlined.
    """
    return _inlined(function, _nrt=True)


def inner(function: F) -> F:
    """Compile an inner loop of training: a subkernel that counts no references.

    Counting those of the arrays that it is given, which live as long as the caller in any case,
    would cost a tenth of the time of a short piece. So it must neither make nor return arrays.
    """
    return _inlined(function, _nrt=False)


def fragment(function: F) -> F:
    """Compile a large part of a kernel: like ``inner``, but optimised with the kernel only.

    It compiles in a fraction of the time. Use it for what calls others; loops run faster if they
    are optimised by themselves first.
    """
    return _inlined(function, _nrt=False, pipeline_class=_FragmentCompiler)


def allocating(function: F) -> F:
    """Compile a fragment that makes arrays: it counts references."""
    return _inlined(function, _nrt=True, pipeline_class=_FragmentCompiler)


def _inlined(function: F, **options: Any) -> F:
    compiled = numba.njit(
        nogil=True, fastmath=_FASTMATH, error_model="numpy", **_INLINED, **options
    )
    return cast(F, compiled(function))

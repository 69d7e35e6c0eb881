"""The one decorator of all kernels, and where their machine code is kept.

Numba's own cache has three traps: it does not notice that a callee in *another* file changed, it
writes beside the source, which fails on read-only installs, and it runs whatever its files hold.
Kernels are therefore kept in a per-user folder whose name holds a hash of every file of this
package: a changed kernel is a new folder. Each signature of each kernel is one file,

    "TRELLISK" | SHA-256 of the rest (32 bytes) | pickle of (key, compiled code),

written under a temporary name and renamed, so several processes may compile at once. A file with
another checksum is compiled anew. The checksum finds damage, not malice: what is in the folder is
executed, so nobody else may be able to write there (:func:`_distrust`).

``fastmath`` is never ``True``: ``nnan`` and ``ninf`` would break the ``-inf`` of forbidden labels.
"""

from __future__ import annotations

import atexit
import functools
import hashlib
import logging
import os
import pickle
import secrets
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba import types
from numba.core import caching, serialize

from trellis.kernels._compiler import FragmentCompiler, economically

__all__ = ["allocating", "cache_dir", "fragment", "inner", "kernel", "ordered", "subkernel"]

F = TypeVar("F", bound=Callable[..., Any])

_log = logging.getLogger("trellis")
_FASTMATH = {"contract", "reassoc", "arcp", "nsz", "afn"}
_MAGIC = b"TRELLISK"
_DAY = 86_400  # seconds


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
        folder = Path(os.path.realpath(parent)) / name
        try:
            parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            folder.mkdir(exist_ok=True, mode=0o700)
            if reason := _distrust(folder, named=parent == Path(override or "")):
                _log.warning("compiled kernels are not kept in %s: %s", folder, reason)
                continue
            with tempfile.NamedTemporaryFile(dir=folder):
                return folder
        except OSError:
            continue
    folder = Path(tempfile.mkdtemp(prefix="trellis-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _distrust(folder: Path, *, named: bool) -> str:
    """Why code from a folder, with all links resolved, must not be run; nothing if it may be.

    Whoever can write to it, or exchange it or a folder that it is in, could have us run theirs. So
    it and the folder it is in must be the user's and writable by nobody else, those above the
    user's or the system's, and not open to everybody (a folder for temporary files is, but there
    nobody may move what belongs to others). That a folder is in somebody else's is the user's
    choice where they ``named`` it.
    """
    if not hasattr(os, "getuid"):
        return ""
    for depth, place in enumerate([folder, *folder.parents]):
        status = place.lstat()
        ours = depth == 0 or (depth == 1 and not named)
        if stat.S_ISLNK(status.st_mode):
            return f"{place} is a link"
        if status.st_uid != os.getuid() and (ours or not (named or status.st_uid == 0)):
            return f"{place} belongs to another user"
        if status.st_mode & (0o022 if ours else 0o002) and (
            ours or not status.st_mode & stat.S_ISVTX
        ):
            return f"others may write to {place} (chmod go-w would change that)"
    return ""


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


class _Files:
    """The files of one kernel, in place of Numba's; nothing in them is used before it is checked.

    Parameters
    ----------
    stem : str
        What their names begin with.
    """

    def __init__(self, stem: str) -> None:
        self._stem = stem

    def _path(self, key: Any) -> Path:
        # Types are told apart by their names; the key in the file has the last word.
        digest = hashlib.sha256(repr(key).encode()).hexdigest()[:20]
        return cache_dir() / f"{self._stem}.{digest}.nbc"

    def load(self, key: Any) -> Any:
        """Compiled code, as it was saved; None if there is none, or none that is whole."""
        try:
            content = self._path(key).read_bytes()
        except OSError:
            return None
        start = len(_MAGIC) + hashlib.sha256().digest_size
        payload = content[start:]
        if content[:start] != _MAGIC + hashlib.sha256(payload).digest():
            _log.debug("the cached kernel %s is damaged", self._path(key))
            return None
        stored, code = pickle.loads(payload)
        return code if stored == key else None

    def save(self, key: Any, code: Any) -> None:
        """Keep compiled code."""
        payload = serialize.dumps((key, code))
        path = self._path(key)
        temporary = path.with_name(f"{path.name}.{secrets.token_hex(8)}.tmp")
        try:
            temporary.write_bytes(_MAGIC + hashlib.sha256(payload).digest() + payload)
            temporary.replace(path)
        except BaseException:
            with suppress(OSError):
                temporary.unlink()
            raise

    def flush(self) -> None:
        """Numba asks for it before it compiles anew on purpose; nothing is lost by not doing it."""


@functools.cache
def _sweep() -> None:
    """Remove what killed processes left in the folder, long after they can still be at it."""
    for file in cache_dir().glob("*.tmp"):
        with suppress(OSError):
            if time.time() - file.stat().st_mtime > _DAY:
                file.unlink()


class _KernelCache(caching.FunctionCache):  # type: ignore[misc]  # Numba is untyped
    _impl_class = _Impl

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._cache_file = _Files(self._impl.filename_base)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            loaded = super().load_overload(sig, target_context)
        except Exception as error:  # whole, but of no use: say, for another processor
            _log.debug("cached kernel could not be read: %s", error)
            loaded = None
        if loaded is None:
            _announce()
        return loaded

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            _sweep()
            super().save_overload(sig, data)
        except OSError as error:  # a full disk costs the cache, not the run
            _log.warning("compiled kernel not kept (%s); it will be compiled again", error)


def kernel(function: F) -> F:
    """Compile a function as a kernel: no GIL, safe fast math, cached on disk."""
    dispatcher = numba.njit(nogil=True, fastmath=_FASTMATH, error_model="numpy")(function)
    dispatcher._cache = _KernelCache(function)
    dispatcher.compile = _economical(dispatcher.compile)
    return cast(F, dispatcher)


def _economical(compiled: F) -> F:
    @functools.wraps(compiled)
    def compile_economically(*args: Any) -> Any:
        with economically():
            return compiled(*args)

    return cast(F, compile_economically)


_INLINED = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "forceinline": True}


def subkernel(function: F) -> F:
    """Compile a function that only kernels call: no Python entry and no cache of its own.

    Its code becomes part of its callers', which are cached. A call passes every array as a dozen
    numbers, which costs more than the arithmetic of a short piece; so it is always inlined.
    """
    return _inlined(function, _nrt=True)


def ordered(function: F) -> F:
    """Compile a subkernel whose sums are taken in the order in which they are written.

    ``(a + b) - top`` is exactly 0 where ``a + b`` is the top, however large; in another order a
    rounding error is left over, which an exponential makes infinite from about 1e19 on.
    """
    return _inlined(function, fastmath=_FASTMATH - {"reassoc"}, _nrt=True)


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
    return _inlined(function, _nrt=False, pipeline_class=FragmentCompiler)


def allocating(function: F) -> F:
    """Compile a fragment that makes arrays: it counts references."""
    return _inlined(function, _nrt=True, pipeline_class=FragmentCompiler)


def _inlined(function: F, **options: Any) -> F:
    settings = {"nogil": True, "fastmath": _FASTMATH, "error_model": "numpy"} | _INLINED | options
    dispatcher = numba.njit(**settings)(function)
    template = dispatcher.get_call_template

    def without_literals(args: Any, kws: Any) -> Any:
        """Compile for numbers: Numba would for each constant that is passed, too."""
        return template(
            tuple(types.unliteral(kind) for kind in args),
            {name: types.unliteral(kind) for name, kind in kws.items()},
        )

    dispatcher.get_call_template = without_literals
    return cast(F, dispatcher)

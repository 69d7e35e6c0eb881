"""Python source that every machine has: which files, and parts that share no module.

Folders of tests and of data in the form of code are left out; folders and files whose names are no
identifiers (site-packages, config-3.11-…) cannot be imported and are left out as well.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import sysconfig
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

from trellis.domains import number
from trellis.errors import DataError

__all__ = ["UNPARSABLE", "Paths", "by_hash", "held_out_modules", "source_files"]

Paths: TypeAlias = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
"""A folder, or several."""

UNPARSABLE = (SyntaxError, ValueError, RecursionError, MemoryError)
"""What ast.parse raises: on wrong syntax, on wrong characters, and (two kinds) on deep nesting."""

_LEFT_OUT = frozenset({"test", "tests", "idle_test", "encodings", "pydoc_data", "turtledemo"})
_LEFT_OUT_FILES = ("test_", "conftest", "_sysconfigdata")


def source_files(root: Paths | None = None) -> tuple[list[tuple[str, Path]], str]:
    """Module name and path of the source files of the standard library, or of folders; and where.

    Examples
    --------
    >>> files, where = source_files()
    >>> "os" in dict(files)
    True
    """
    roots = _roots(root)
    files = sorted(itertools.chain.from_iterable(map(_files_in, roots)))
    return files, ", ".join(map(str, roots))


def _roots(root: Paths | None) -> list[Path]:
    if root is None:
        return [Path(sysconfig.get_path("stdlib"))]
    roots = [Path(root)] if isinstance(root, str | os.PathLike) else [Path(r) for r in root]
    if not roots:
        raise DataError("root is an empty list; pass a folder of Python source")
    for folder in roots:
        if not folder.is_dir():
            raise DataError(f"root {str(folder)!r} is not a folder; pass a folder of Python source")
    return roots


def _files_in(root: Path) -> Iterator[tuple[str, Path]]:
    for folder, subfolders, files in os.walk(root):
        subfolders[:] = [s for s in subfolders if s.isidentifier() and s not in _LEFT_OUT]
        package = Path(folder).relative_to(root).parts
        for file in files:
            stem = file.removesuffix(".py")
            if stem != file and stem.isidentifier() and not stem.startswith(_LEFT_OUT_FILES):
                parts = package if stem == "__init__" and package else (*package, stem)
                yield ".".join(parts), Path(folder, file)


def by_hash(name: str, purpose: bytes) -> bytes:
    """A key that puts names in an order of their own; Python's hash differs from run to run."""
    return hashlib.blake2b(name.encode(errors="replace"), person=purpose).digest()


def held_out_modules(
    modules: Sequence[str], sizes: Sequence[int], test_fraction: float
) -> frozenset[str]:
    """Modules whose sequences have about a share of all positions: always the same ones.

    Modules are put in the order of a hash of their names and cut in two where the share comes
    nearest; both parts get one module at least.
    """
    number(above=0, below=1).check("test_fraction", test_fraction)
    total: Counter[str] = Counter()
    for module, size in zip(modules, sizes, strict=True):
        total[module] += size
    if len(total) < 2:
        raise DataError(
            f"the data comes from {len(total)} module(s), but a split by module needs two; "
            "take more tokens or more source folders"
        )
    order = sorted(total, key=lambda module: by_hash(module, b"split"))
    reached = list(itertools.accumulate(total[module] for module in order))
    wanted = test_fraction * reached[-1]
    cut = min(range(len(order) - 1), key=lambda i: abs(reached[i] - wanted))
    return frozenset(order[: cut + 1])

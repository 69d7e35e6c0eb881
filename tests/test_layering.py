"""The house: imports point one way, and what is private stays where it is.

Read from the source by ``ast``; nothing is imported. An import counts wherever it stands: at the
top of a module, inside a function, or for type checking only. The one way upwards is the table of
names in :mod:`trellis.files.registry`, by which ``load_model`` finds the class that a file names.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parent.parent

LAYERS = (
    ("errors", "html_view", "interrupts", "predictor"),
    ("arrays", "metadata_routing", "progress", "kernels"),
    ("domains", "files"),
    ("estimator",),
    ("corpus",),
    ("features", "evaluation"),
    ("structures",),
    ("decompose",),
    ("problems",),
    ("solvers",),
    ("models",),
    ("trellis",),  # the names that users import: what all above are made of
    ("regression", "tracking"),
    ("theory",),  # estimates the quantities in its bounds from CRFs and regressions
    ("experts",),  # says what its bounds promise, from theory
    ("cheap", "datasets", "pictures"),
    ("tuning", "warmup", "compat"),
    ("demo",),
    ("cli",),
    ("__main__",),
    ("studies",),
    ("benchmarks",),
)
"""Packages, the lowest first; one imports those of lower lines only, none of its own line."""

PRIVATE_IMPORTS: dict[tuple[str, str], str] = {}
"""Private names that another module imports, and why; as few as can be."""

FOREIGN = {
    "_ActionsContainer": "argparse has no public name for its groups",
    "_CacheLocator": "Numba's cache; tests/kernels/test_jit_private_api.py watches it",
    "_get_loss": "scikit-learn's boosted trees need it when they are read from a file",
    "_get_param_names": "scikit-learn: parameters of a class, without an object of it",
    "_impl_keys": "Numba: what it chose for a call; the same test watches it",
    "_lookup_global": "Numba: the type of a function; the same test watches it",
    "_preprocess_X": "scikit-learn's histogram trees make their encoder of categories in it",
    "_replace": "a public method of named tuples",
    "_tm": "Numba: the processor that passes are made for; the same test watches it",
}
"""Private attributes of other people's libraries, and why they are used."""

RANK = {name: rank for rank, layer in enumerate(LAYERS) for name in layer}


class Module(NamedTuple):
    name: str
    tree: ast.Module
    is_package: bool


class Import(NamedTuple):
    importer: str
    imported: str
    """A module, or a name of one."""
    line: int

    def __str__(self) -> str:
        return f"{self.importer}, line {self.line}: {self.imported}"


@cache
def modules() -> dict[str, Module]:
    """All modules of the repository but the tests, by name."""
    found = {}
    for folder in (ROOT / "src" / "trellis", ROOT / "studies", ROOT / "benchmarks"):
        for path in sorted(folder.rglob("*.py")):
            parts = path.relative_to(folder.parent).with_suffix("").parts
            is_package = parts[-1] == "__init__"
            name = ".".join(parts[:-1] if is_package else parts)
            found[name] = Module(name, ast.parse(path.read_text(encoding="utf-8")), is_package)
    return found


def imports_of(module: Module) -> Iterator[Import]:
    """What a module imports of ours, wherever it does."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = module.name.split(".")[: None if module.is_package else -1]
                parents = parents[: len(parents) - node.level + 1]
                base = ".".join([*parents, *([base] if base else [])])
            names = [f"{base}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            if name.partition(".")[0] in ("trellis", "studies", "benchmarks"):
                yield Import(module.name, name, node.lineno)


@cache
def imports() -> list[Import]:
    return [found for module in modules().values() for found in imports_of(module)]


def package_of(name: str) -> str:
    """The package (or the module beside the packages) that a module or a name of it belongs to."""
    top, _, rest = name.partition(".")
    first = rest.partition(".")[0]
    return first if f"{top}.{first}" in modules() and top == "trellis" else top


def test_the_code_is_found():
    assert len(modules()) > 200
    assert len(imports()) > 1000


def test_every_package_has_its_place():
    assert {package_of(name) for name in modules()} == set(RANK)


def test_imports_point_downwards():
    wrong = [
        str(found)
        for found in imports()
        for here, there in [(package_of(found.importer), package_of(found.imported))]
        if here != there and RANK[there] >= RANK[here]
    ]
    assert not wrong


def test_kernels_know_nothing_but_kernels():
    wrong = [
        str(found)
        for found in imports()
        if package_of(found.importer) == "kernels" != package_of(found.imported)
    ]
    assert not wrong


def test_the_library_is_not_imported_from_its_own_root():
    """What users import from ``trellis`` the library imports from where it is.

    Panels of the demo show the code that they run, so they import as users do.
    """
    wrong = [
        str(found)
        for found in imports()
        if found.importer.startswith("trellis.") and package_of(found.imported) == "trellis"
        and found.imported != "trellis.__version__"
        and not found.importer.startswith("trellis.demo.panels.")
    ]  # fmt: skip
    assert not wrong


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def test_private_names_are_not_imported_elsewhere():
    """A private module may be imported by its own package, a private name by nobody."""
    wrong = set()
    for found in imports():
        module, _, name = found.imported.rpartition(".")
        whole = found.imported in modules()
        inside = found.imported.split(".") if whole else module.split(".")
        home = package_of(found.importer) == package_of(found.imported)
        if (is_private(name) and not whole) or (any(map(is_private, inside)) and not home):
            wrong.add((found.importer, found.imported))
    assert wrong == set(PRIVATE_IMPORTS)


@cache
def names_made_in(package: str) -> set[str]:
    """Functions, classes, attributes and variables that a package defines."""
    made: set[str] = set()
    for module in modules().values():
        if package_of(module.name) != package:
            continue
        for node in ast.walk(module.tree):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                made.add(node.name)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                made.add(node.id)
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                made.add(node.attr)
            elif isinstance(node, ast.arg):
                made.add(node.arg)
    return made


def is_own(value: ast.expr) -> bool:
    """Whether this is the object itself, whose class may inherit from another package."""
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
        return value.func.id == "super"
    return isinstance(value, ast.Name) and value.id in ("self", "cls")


def test_private_attributes_are_not_used_elsewhere():
    """``x._name`` is for the package that makes ``_name``, and for the classes below it."""
    used = set()
    for module in modules().values():
        for node in ast.walk(module.tree):
            if not isinstance(node, ast.Attribute) or not is_private(node.attr):
                continue
            if not is_own(node.value) and node.attr not in names_made_in(package_of(module.name)):
                used.add((node.attr, module.name))
    wrong = [f"{module}: {name}" for name, module in used if name not in FOREIGN]
    assert not wrong
    assert {name for name, _ in used} == set(FOREIGN)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import trellis.cli.main", ["trellis.cli.main"]),
        ("from ..corpus import Corpus", ["trellis.corpus.Corpus"]),
        ("from . import pairs", ["trellis.evaluation.pairs"]),
        ("def f():\n    from trellis.cli import main", ["trellis.cli.main"]),
        ("if TYPE_CHECKING:\n    from trellis import tuning", ["trellis.tuning"]),
        ("import numpy", []),
    ],
)
def test_all_forms_of_imports_are_seen(source, expected):
    module = Module("trellis.evaluation.spans", ast.parse(source), is_package=False)
    assert [found.imported for found in imports_of(module)] == expected

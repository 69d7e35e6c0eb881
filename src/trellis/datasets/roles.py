"""The embedded data set: the syntactic roles of the identifiers in Python source.

A sample is a sequence x = (x_1, …, x_n) of identifiers in order of appearance; its labelling
y = (y_1, …, y_n) gives each of them one of the roles in :data:`ROLES`.  Keywords, literals and
punctuation are withheld, since they give the role away: of ``def f(x): return g(x.y) + z`` the
model sees ``f x g x y z`` and is to answer ``function_name parameter call parameter_read
attribute_read global_read``.  The source is Python's own standard library, so that the data is
real, large, free and already on every machine.

The role is read off the syntax tree (:mod:`ast`).  The position in the syntax decides first; only
a plain read or store of a name is divided further, by the scope that binds the name under
Python's rules.  A store is any plain binding: assignment (also ``+=`` and ``:=``), ``del``,
``with … as``, ``except … as``, a capture in ``match``, ``type``.

Identifiers inside f-strings (and t-strings) are left out; soft keywords (``match``, ``case``,
``type``, the wildcard ``_``) are no identifiers.
"""

from __future__ import annotations

import ast
import builtins
import hashlib
import itertools
import keyword
import os
import re
import sys
import sysconfig
import tokenize
import warnings
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import BuiltinFunctionType, MappingProxyType
from typing import Any, TypeAlias

from trellis.errors import DataError

__all__ = ["ROLES", "Roles", "source_roles", "stdlib_roles"]

ROLES: Mapping[str, str] = MappingProxyType(
    {
        "class_name": "the name in `class name`",
        "function_name": "the name in `def name`, outside a class body",
        "method_name": "the name in `def name`, directly in a class body",
        "parameter": "a parameter of a function, lambda or list of type parameters",
        "import_module": "each part of a module's dotted name in an import",
        "import_name": "a name listed after `from … import`, or after `as` in an import",
        "decorator": "what decorates: `wraps` in `@functools.wraps(f)`",
        "base_class": "what is inherited from: `Generic` in `class A(typing.Generic[T])`",
        "keyword_argument": "the name before `=` in a call, class header or class pattern",
        "call": "a bare name that is called, or is the class of a class pattern",
        "method_call": "an attribute that is called: `join` in `os.path.join(a, b)`",
        "attribute_read": "any other attribute that is read",
        "attribute_store": "an attribute that is assigned to or deleted",
        "loop_target": "a name bound by `for`, in a statement or a comprehension",
        "class_store": "a name bound in a class body",
        "global_store": "a name bound in the module, or listed in a `global` statement",
        "local_store": "a name bound in a function, or listed in a `nonlocal` statement",
        "parameter_read": "a read of a parameter, of this or an enclosing function",
        "local_read": "a read of a name bound otherwise in this or an enclosing function, "
        "in a comprehension, or in the class body it stands in",
        "builtin_read": "a read of a built-in that the module does not bind itself",
        "global_read": "any other read of a name",
    }
)
"""The roles and what they mean, in a fixed order."""

_Paths: TypeAlias = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
_Labelled: TypeAlias = tuple[list[list[str]], list[list[str]]]

# Folders of tests and of data in the form of code; folders and files whose names are no
# identifiers (site-packages, config-3.11-…) cannot be imported and are left out as well.
_LEFT_OUT = frozenset({"test", "tests", "idle_test", "encodings", "pydoc_data", "turtledemo"})
_LEFT_OUT_FILES = ("test_", "conftest", "_sysconfigdata")

# Taken by kind, since `site`, `gettext` and interactive shells put further names into builtins.
_BUILTINS = frozenset(
    name
    for name, value in vars(builtins).items()
    if isinstance(value, type | BuiltinFunctionType) and not name.startswith("_")
) | {"Ellipsis", "NotImplemented", "__build_class__", "__debug__", "__import__"}

# What ast.parse raises: on wrong syntax, on wrong characters, and (two kinds) on deep nesting.
_UNPARSABLE = (SyntaxError, ValueError, RecursionError, MemoryError)

_KEYWORDS = frozenset(word.encode() for word in keyword.kwlist)
# Bytes above 127 occur in identifiers, strings and comments only.
_COMMENT_OR_WORD = re.compile(rb"#[^\n]*|[A-Za-z0-9_\x80-\xff]+")
_LINE_HEAD = re.compile(rb"\s*((else|finally)\s*:\s*)?")
_BLANK_OR_COMMENT = re.compile(rb"\s*(#.*)?")


@dataclass(frozen=True)
class Roles:
    """Sequences of identifiers with the role of each.

    Attributes
    ----------
    tokens : list of list of str
        The identifiers, a list per sequence; no sequence is empty.
    labels : list of list of str
        Their roles (see :data:`ROLES`), in the shape of `tokens`.
    modules : list of str
        The module each sequence comes from.

    Examples
    --------
    >>> data = Roles([["os"], ["f", "x"]], [["import_module"], ["call", "global_read"]], ["a", "b"])
    >>> data.n_tokens
    3
    >>> train, test = data.split(0.5)
    >>> sorted(train.modules + test.modules)
    ['a', 'b']
    """

    tokens: list[list[str]]
    labels: list[list[str]]
    modules: list[str]

    @property
    def n_tokens(self) -> int:
        """Number of identifiers in all sequences together."""
        return sum(map(len, self.tokens))

    def split(self, test_fraction: float = 0.2) -> tuple[Roles, Roles]:
        """Divide into a training and a test part that share no module.

        The modules are put in the order of a hash of their names and cut in two where the share
        of test tokens comes nearest to `test_fraction`.  The same data gives the same parts.

        Parameters
        ----------
        test_fraction : float, default=0.2
            Wanted share of tokens in the test part, between 0 and 1.  Both parts get one
            module at least.

        Returns
        -------
        train, test : Roles
            The two parts; sequences keep their order.
        """
        if not 0 < test_fraction < 1:
            raise DataError(f"test_fraction must lie between 0 and 1, not {test_fraction!r}")
        sizes: Counter[str] = Counter()
        for module, sequence in zip(self.modules, self.tokens, strict=True):
            sizes[module] += len(sequence)
        if len(sizes) < 2:
            raise DataError(
                f"the data comes from {len(sizes)} module(s), but a split by module needs two; "
                "take more tokens or more source folders"
            )
        order = sorted(sizes, key=lambda module: _hashed(module, b"split"))
        reached = list(itertools.accumulate(sizes[module] for module in order))
        wanted = test_fraction * reached[-1]
        cut = min(range(len(order) - 1), key=lambda i: abs(reached[i] - wanted))
        held_out = set(order[: cut + 1])
        return (
            self._where([module not in held_out for module in self.modules]),
            self._where([module in held_out for module in self.modules]),
        )

    def _where(self, keep: list[bool]) -> Roles:
        return Roles(
            list(itertools.compress(self.tokens, keep)),
            list(itertools.compress(self.labels, keep)),
            list(itertools.compress(self.modules, keep)),
        )


def stdlib_roles(
    *, unit: str = "function", max_tokens: int | None = None, root: _Paths | None = None
) -> Roles:
    """Label the identifiers of Python's standard library with their syntactic roles.

    Folders of tests, installed packages and modules that hold generated data are left out, and
    so is a file that cannot be read or parsed.  The content depends on the Python version.

    Parameters
    ----------
    unit : {"function", "statement"}, default="function"
        What a sequence is.  ``"function"``: an outermost function or method with its decorators,
        its header and all functions and classes nested in it; the code outside functions makes
        one sequence per paragraph (lines not separated by a blank or comment line).
        ``"statement"``: a logical line; decorators and the headers of compound statements are
        lines of their own.
    max_tokens : int, optional
        Stop after the sequence with which this number of tokens is reached.  Modules are then
        taken in the order of a hash of their names, so that a small sample is still diverse.
    root : path or sequence of paths, optional
        Folders to read instead of the standard library, e.g. a site-packages folder, for more
        data or other data.  Test folders inside them are left out too.

    Returns
    -------
    Roles
        Sequences sorted by module, in order of appearance within a module.

    Examples
    --------
    >>> data = stdlib_roles(max_tokens=20_000)
    >>> data.n_tokens >= 20_000
    True
    >>> train, test = data.split(test_fraction=0.3)
    >>> set(train.modules) & set(test.modules)
    set()
    """
    _check_unit(unit)
    if max_tokens is not None and max_tokens < 1:
        raise DataError(f"max_tokens must be at least 1 or None, not {max_tokens!r}")
    roots = _roots(root)
    files = sorted(itertools.chain.from_iterable(map(_source_files, roots)))
    if max_tokens is not None:
        files.sort(key=lambda file: _hashed(file[0], b"order"))

    found: list[tuple[str, list[str], list[str]]] = []
    count = 0
    for module, path in files:
        if max_tokens is not None and count >= max_tokens:
            break
        try:
            with tokenize.open(path) as stream:
                tokens, labels = _label(stream.read(), unit)
        except (OSError, *_UNPARSABLE):
            continue
        for sequence, roles in zip(tokens, labels, strict=True):
            found.append((module, sequence, roles))
            count += len(sequence)
            if max_tokens is not None and count >= max_tokens:
                break
    if not found:
        where = ", ".join(map(str, roots))
        raise DataError(
            f"no Python source with identifiers found under {where}; the standard library may be "
            "zipped or stripped of its .py files: pass root= a folder that holds Python source"
        )
    found.sort(key=lambda f: f[0])
    return Roles([f[1] for f in found], [f[2] for f in found], [f[0] for f in found])


def source_roles(source: str, *, unit: str = "function") -> _Labelled:
    """Label the identifiers of one piece of Python source with their syntactic roles.

    Parameters
    ----------
    source : str
        The text of a module.
    unit : {"function", "statement"}, default="function"
        What a sequence is, see :func:`stdlib_roles`.

    Returns
    -------
    tokens, labels : list of list of str
        The identifiers and their roles, a list per sequence.

    Examples
    --------
    >>> tokens, labels = source_roles("def area(r): return math.pi * pow(r, 2)")
    >>> list(zip(tokens[0], labels[0]))
    [('area', 'function_name'), ('r', 'parameter'), ('math', 'global_read'),
     ('pi', 'attribute_read'), ('pow', 'call'), ('r', 'parameter_read')]
    """
    _check_unit(unit)
    # ast counts lines the same way, whatever their ends; it skips a byte order mark.
    text = source.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    try:
        return _label(text, unit)
    except _UNPARSABLE as error:
        raise DataError(f"the source cannot be parsed as Python: {error}") from error


def _check_unit(unit: str) -> None:
    if unit not in ("function", "statement"):
        raise DataError(f"unit must be 'function' or 'statement', not {unit!r}")


def _hashed(module: str, purpose: bytes) -> bytes:
    # Python's own hash of a string differs from run to run.
    return hashlib.blake2b(module.encode(errors="replace"), person=purpose).digest()


def _roots(root: _Paths | None) -> list[Path]:
    if root is None:
        return [Path(sysconfig.get_path("stdlib"))]
    roots = [Path(root)] if isinstance(root, str | os.PathLike) else [Path(r) for r in root]
    if not roots:
        raise DataError("root is an empty list; pass a folder of Python source")
    for folder in roots:
        if not folder.is_dir():
            raise DataError(f"root {str(folder)!r} is not a folder; pass a folder of Python source")
    return roots


def _source_files(root: Path) -> Iterator[tuple[str, Path]]:
    """Yield (module name, path) of the source files under `root`."""
    for folder, subfolders, files in os.walk(root):
        subfolders[:] = [s for s in subfolders if s.isidentifier() and s not in _LEFT_OUT]
        package = Path(folder).relative_to(root).parts
        for file in files:
            stem = file.removesuffix(".py")
            if stem != file and stem.isidentifier() and not stem.startswith(_LEFT_OUT_FILES):
                parts = package if stem == "__init__" and package else (*package, stem)
                yield ".".join(parts), Path(folder, file)


def _label(source: str, unit: str) -> _Labelled:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # old escapes such as "\d" in other people's code
        tree = ast.parse(source)
    walk = _Walk(source)
    walk.run(tree)
    cuts = walk.statements if unit == "statement" else walk.functions_and_paragraphs()
    tokens: list[list[str]] = []
    labels: list[list[str]] = []
    last = -1
    for start, end, role in sorted(walk.found):
        sequence = bisect_right(cuts, start)
        if sequence != last:
            tokens.append([])
            labels.append([])
            last = sequence
        # Interned, because an identifier recurs a hundred times in a large corpus.
        tokens[-1].append(sys.intern(walk.text[start:end].decode()))
        labels[-1].append(role)
    return tokens, labels


class _Scope:
    """A scope: kind is "module", "class", "function", "comprehension" or "types"."""

    __slots__ = ("bound", "globals", "kind", "module", "nonlocals", "parameters", "parent")

    def __init__(self, kind: str, parent: _Scope | None) -> None:
        self.kind = kind
        self.parent = parent
        self.module: _Scope = self if parent is None else parent.module
        self.parameters: set[str] = set()
        self.bound: set[str] = set()
        self.globals: set[str] = set()
        self.nonlocals: set[str] = set()

    def holder(self) -> _Scope:
        """Return the scope a store made here binds in: ``:=`` reaches out of comprehensions."""
        scope = self
        while scope.kind == "comprehension" and scope.parent is not None:
            scope = scope.parent
        return scope

    def in_function(self) -> bool:
        scope: _Scope | None = self
        while scope is not None and scope.kind != "function":
            scope = scope.parent
        return scope is not None

    def store_role(self, name: str) -> str:
        if self.kind == "module" or name in self.globals:
            return "global_store"
        if self.kind == "class" and name not in self.nonlocals:
            return "class_store"
        return "local_store"

    def read_role(self, name: str) -> str:
        scope: _Scope | None = self
        while scope is not None and scope.kind != "module":
            # A class body is seen from directly inside only, not from its methods.
            if scope is self or scope.kind != "class":
                if name in scope.globals:
                    break
                if name in scope.parameters:
                    return "parameter_read"
                if name in scope.bound and name not in scope.nonlocals:
                    return "local_read"
            scope = scope.parent
        if name in _BUILTINS and name not in self.module.bound:
            return "builtin_read"
        return "global_read"


class _Walk:
    """One walk over the syntax tree of a module, with a stack of its own against deep nesting.

    Each stack item is a node, the scope it is evaluated in and a hint: the role its outermost
    identifier has because of where it stands, if any.  The tree places most identifiers; the few
    others (the name of a function, say) are the next identifier in the text after a known place.
    Roles that depend on scope wait until the walk has seen all bindings.

    Places are offsets into the UTF-8 text, since ``col_offset`` counts bytes.
    """

    def __init__(self, source: str) -> None:
        self.text = source.encode()
        lengths = [len(line) + 1 for line in self.text.split(b"\n")]
        self.line_starts = [0, 0, *itertools.accumulate(lengths)]  # rows count from 1
        self.stack: list[tuple[ast.AST, _Scope, str | None]] = []
        self.found: list[tuple[int, int, str]] = []
        self.stores: list[tuple[int, int, str, _Scope]] = []
        self.reads: list[tuple[int, int, str, _Scope]] = []
        self.statements: list[int] = []
        self.functions: list[tuple[int, int]] = []

    def run(self, tree: ast.Module) -> None:
        self.stack.append((tree, _Scope("module", None), None))
        while self.stack:
            node, scope, hint = self.stack.pop()
            if isinstance(node, ast.stmt):
                self.statement(node)
            _HANDLERS.get(type(node), _Walk.other)(self, node, scope, hint)
        self.found += [(a, b, scope.store_role(name)) for a, b, name, scope in self.stores]
        self.found += [(a, b, scope.read_role(name)) for a, b, name, scope in self.reads]
        self.statements.sort()

    def functions_and_paragraphs(self) -> list[int]:
        """Offsets at which a sequence of unit "function" starts."""
        functions = sorted(self.functions)
        starts = [start for start, _ in functions]
        cuts = list(itertools.chain.from_iterable(functions))
        for place in self.statements:
            i = bisect_right(starts, place) - 1
            if (i < 0 or place >= functions[i][1]) and self.opens_paragraph(place):
                cuts.append(place)
        return sorted(cuts)

    def opens_paragraph(self, place: int) -> bool:
        row = bisect_right(self.line_starts, place) - 1
        above, here = self.line_starts[row - 1 : row + 1]
        return _BLANK_OR_COMMENT.fullmatch(self.text, above, max(above, here - 1)) is not None

    # Places and identifiers

    def start(self, node: Any) -> int:
        place: int = self.line_starts[node.lineno] + node.col_offset
        return place

    def end(self, node: Any) -> int:
        place: int = self.line_starts[node.end_lineno] + node.end_col_offset
        return place

    def identifier(self, place: int) -> tuple[int, int]:
        """Start and end of the first identifier at or after `place`."""
        for match in _COMMENT_OR_WORD.finditer(self.text, place):
            word = match[0]
            if not word.startswith(b"#") and word not in _KEYWORDS:
                return match.span()
        raise ValueError(f"no identifier after byte {place}")

    def claim(self, place: int, role: str) -> int:
        """Give the next identifier its role; return the place after it."""
        start, end = self.identifier(place)
        self.found.append((start, end, role))
        return end

    def store(self, place: int, name: str, scope: _Scope) -> None:
        holder = scope.holder()
        holder.bound.add(name)
        self.stores.append((*self.identifier(place), name, holder))

    def statement(self, node: ast.stmt) -> None:
        """Note where a logical line starts; a statement may also follow ``:`` or ``;``."""
        place = self.start(node)
        if _LINE_HEAD.fullmatch(self.text, self.line_starts[node.lineno], place):
            self.statements.append(place)

    def push(self, nodes: Iterable[ast.AST | None], scope: _Scope, hint: str | None = None) -> None:
        self.stack += [(node, scope, hint) for node in nodes if node is not None]

    # Expressions

    def other(self, node: ast.AST, scope: _Scope, hint: str | None) -> None:
        self.push(ast.iter_child_nodes(node), scope)

    def leaf(self, node: ast.AST, scope: _Scope, hint: str | None) -> None:
        pass

    def elements(self, node: ast.AST, scope: _Scope, hint: str | None) -> None:
        """Tuples, lists and ``*x``: in a target or a list of bases each element is one."""
        self.push(ast.iter_child_nodes(node), scope, hint if hint != "call" else None)

    def name(self, node: ast.Name, scope: _Scope, hint: str | None) -> None:
        place = self.start(node)
        if hint is not None:
            if hint == "loop_target":
                scope.bound.add(node.id)
            self.claim(place, hint)
        elif isinstance(node.ctx, ast.Load):
            self.reads.append((place, self.end(node), node.id, scope))
        else:
            self.store(place, node.id, scope)

    def attribute(self, node: ast.Attribute, scope: _Scope, hint: str | None) -> None:
        if not isinstance(node.ctx, ast.Load):
            role = "attribute_store"
        else:
            role = "method_call" if hint == "call" else hint or "attribute_read"
        self.claim(self.end(node.value), role)
        self.push([node.value], scope)

    def subscript(self, node: ast.Subscript, scope: _Scope, hint: str | None) -> None:
        self.push([node.value], scope, hint if hint == "base_class" else None)
        self.push([node.slice], scope)

    def call(self, node: ast.Call, scope: _Scope, hint: str | None) -> None:
        self.push([node.func], scope, hint if hint == "decorator" else "call")
        self.push([*node.args, *node.keywords], scope)

    def keyword(self, node: ast.keyword, scope: _Scope, hint: str | None) -> None:
        if node.arg is not None:
            self.claim(self.start(node), "keyword_argument")
        self.push([node.value], scope)

    def string(self, node: ast.AST, scope: _Scope, hint: str | None) -> None:
        """F-strings: identifiers inside are left out, but ``:=`` inside binds."""
        for inner in ast.walk(node):
            if isinstance(inner, ast.NamedExpr):
                scope.holder().bound.add(inner.target.id)

    def comprehension(self, node: Any, scope: _Scope, hint: str | None) -> None:
        inside = _Scope("comprehension", scope)
        # Python evaluates the first iterable outside.
        self.push([node.generators[0].iter], scope)
        self.push([generator.iter for generator in node.generators[1:]], inside)
        for generator in node.generators:
            self.push([generator.target], inside, "loop_target")
            self.push(generator.ifs, inside)
        parts = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        self.push(parts, inside)

    def function_body(
        self, arguments: ast.arguments, body: Iterable[ast.AST], scope: _Scope, types: _Scope
    ) -> None:
        inside = _Scope("function", types)
        for parameter in (
            *arguments.posonlyargs,
            *arguments.args,
            arguments.vararg,
            *arguments.kwonlyargs,
            arguments.kwarg,
        ):
            if parameter is not None:
                inside.parameters.add(parameter.arg)
                self.claim(self.start(parameter), "parameter")
                self.push([parameter.annotation], types)
        self.push([*arguments.defaults, *arguments.kw_defaults], scope)
        self.push(body, inside)

    def lambda_(self, node: ast.Lambda, scope: _Scope, hint: str | None) -> None:
        self.function_body(node.args, [node.body], scope, scope)

    # Statements

    def function(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: _Scope, hint: str | None
    ) -> None:
        if not scope.in_function():
            first = node.decorator_list[0] if node.decorator_list else node
            self.functions.append((self.start(first), self.end(node)))
        role = "method_name" if scope.kind == "class" else "function_name"
        types = self.definition(node, role, scope)
        self.push([node.returns], types)
        self.function_body(node.args, node.body, scope, types)

    def class_(self, node: ast.ClassDef, scope: _Scope, hint: str | None) -> None:
        types = self.definition(node, "class_name", scope)
        self.push(node.bases, types, "base_class")
        self.push(node.keywords, types)
        self.push(node.body, _Scope("class", types))

    def definition(self, node: Any, role: str, scope: _Scope) -> _Scope:
        """Do what ``def`` and ``class`` share; return the scope of the type parameters."""
        scope.bound.add(node.name)
        self.claim(self.start(node), role)
        self.push(node.decorator_list, scope, "decorator")
        self.statements += map(self.start, node.decorator_list)
        return self.type_parameters(node, scope)

    def type_parameters(self, node: Any, scope: _Scope) -> _Scope:
        parameters = getattr(node, "type_params", [])  # since Python 3.12
        types = _Scope("types", scope) if parameters else scope
        for parameter in parameters:
            types.parameters.add(parameter.name)
            self.claim(self.start(parameter), "parameter")
            self.push(ast.iter_child_nodes(parameter), types)
        return types

    def type_alias(self, node: Any, scope: _Scope, hint: str | None) -> None:
        self.push([node.name], scope)
        self.push([node.value], self.type_parameters(node, scope))

    def import_(self, node: ast.Import, scope: _Scope, hint: str | None) -> None:
        for alias in node.names:
            after = self.dotted(self.start(alias), alias.name)
            scope.bound.add(alias.asname or alias.name.partition(".")[0])
            if alias.asname is not None:
                self.claim(after, "import_name")

    def import_from(self, node: ast.ImportFrom, scope: _Scope, hint: str | None) -> None:
        if node.module is not None:
            self.dotted(self.start(node), node.module)
        for alias in node.names:
            if alias.name != "*":
                after = self.claim(self.start(alias), "import_name")
                scope.bound.add(alias.asname or alias.name)
                if alias.asname is not None:
                    self.claim(after, "import_name")

    def dotted(self, place: int, module: str) -> int:
        for _ in module.split("."):
            place = self.claim(place, "import_module")
        return place

    def declaration(self, node: ast.Global | ast.Nonlocal, scope: _Scope, hint: str | None) -> None:
        place = self.start(node)
        if isinstance(node, ast.Global):
            scope.globals.update(node.names)
            scope.module.bound.update(node.names)
            role = "global_store"
        else:
            scope.nonlocals.update(node.names)
            role = "local_store"
        for _ in node.names:
            place = self.claim(place, role)

    def for_(self, node: ast.For | ast.AsyncFor, scope: _Scope, hint: str | None) -> None:
        self.push([node.target], scope, "loop_target")
        self.push([node.iter, *node.body, *node.orelse], scope)

    def handler(self, node: ast.ExceptHandler, scope: _Scope, hint: str | None) -> None:
        self.statements.append(self.start(node))
        if node.type is not None and node.name is not None:
            self.store(self.end(node.type), node.name, scope)
        self.push([node.type, *node.body], scope)

    # Patterns

    def case(self, node: ast.match_case, scope: _Scope, hint: str | None) -> None:
        self.statements.append(self.start(node.pattern))
        self.other(node, scope, None)

    def match_as(self, node: ast.MatchAs, scope: _Scope, hint: str | None) -> None:
        if node.name is not None:
            place = self.start(node) if node.pattern is None else self.end(node.pattern)
            self.store(place, node.name, scope)
        self.push([node.pattern], scope)

    def match_star(self, node: ast.MatchStar, scope: _Scope, hint: str | None) -> None:
        if node.name is not None:
            self.store(self.start(node), node.name, scope)

    def match_mapping(self, node: ast.MatchMapping, scope: _Scope, hint: str | None) -> None:
        if node.rest is not None:
            place = self.end(node.patterns[-1]) if node.patterns else self.start(node)
            self.store(place, node.rest, scope)
        self.push([*node.keys, *node.patterns], scope)

    def match_class(self, node: ast.MatchClass, scope: _Scope, hint: str | None) -> None:
        self.push([node.cls], scope, "call")
        before: ast.AST = node.patterns[-1] if node.patterns else node.cls
        for pattern in node.kwd_patterns:
            self.claim(self.end(before), "keyword_argument")
            before = pattern
        self.push([*node.patterns, *node.kwd_patterns], scope)


_HANDLERS: dict[type[ast.AST], Callable[[_Walk, Any, _Scope, str | None], None]] = {
    ast.AsyncFor: _Walk.for_,
    ast.AsyncFunctionDef: _Walk.function,
    ast.Attribute: _Walk.attribute,
    ast.Call: _Walk.call,
    ast.ClassDef: _Walk.class_,
    ast.Constant: _Walk.leaf,
    ast.DictComp: _Walk.comprehension,
    ast.ExceptHandler: _Walk.handler,
    ast.For: _Walk.for_,
    ast.FunctionDef: _Walk.function,
    ast.GeneratorExp: _Walk.comprehension,
    ast.Global: _Walk.declaration,
    ast.Import: _Walk.import_,
    ast.ImportFrom: _Walk.import_from,
    ast.JoinedStr: _Walk.string,
    ast.Lambda: _Walk.lambda_,
    ast.List: _Walk.elements,
    ast.ListComp: _Walk.comprehension,
    ast.MatchAs: _Walk.match_as,
    ast.MatchClass: _Walk.match_class,
    ast.MatchMapping: _Walk.match_mapping,
    ast.MatchStar: _Walk.match_star,
    ast.Name: _Walk.name,
    ast.Nonlocal: _Walk.declaration,
    ast.SetComp: _Walk.comprehension,
    ast.Starred: _Walk.elements,
    ast.Subscript: _Walk.subscript,
    ast.Tuple: _Walk.elements,
    ast.keyword: _Walk.keyword,
    ast.match_case: _Walk.case,
}
if sys.version_info >= (3, 12):
    _HANDLERS[ast.TypeAlias] = _Walk.type_alias
if sys.version_info >= (3, 14):
    _HANDLERS[ast.TemplateStr] = _Walk.string

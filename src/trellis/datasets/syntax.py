"""Roles of the identifiers of one Python source, read off its syntax tree.

:func:`label_source` walks the tree once. Every identifier is found by its place in the UTF-8 text
(the tree gives most places; the few it does not, such as the name after ``def``, are the next
identifier after a known place) and gets its role from its position in the syntax; plain reads and
stores are divided further by the scope that binds the name. See :mod:`trellis.datasets.roles` for
what the roles mean.
"""

from __future__ import annotations

import ast
import builtins
import itertools
import keyword
import re
import sys
import warnings
from bisect import bisect_right
from collections.abc import Callable, Iterable
from types import BuiltinFunctionType
from typing import Any

__all__ = ["label_source"]

# Taken by kind, since `site`, `gettext` and interactive shells put further names into builtins.
_BUILTINS = frozenset(
    name
    for name, value in vars(builtins).items()
    if isinstance(value, type | BuiltinFunctionType) and not name.startswith("_")
) | {"Ellipsis", "NotImplemented", "__build_class__", "__debug__", "__import__"}

_KEYWORDS = frozenset(word.encode() for word in keyword.kwlist)
# Bytes above 127 occur in identifiers, strings and comments only.
_COMMENT_OR_WORD = re.compile(rb"#[^\n]*|[A-Za-z0-9_\x80-\xff]+")
_LINE_HEAD = re.compile(rb"\s*((else|finally)\s*:\s*)?")
_BLANK_OR_COMMENT = re.compile(rb"\s*(#.*)?")


def label_source(source: str, unit: str) -> tuple[list[list[str]], list[list[str]]]:
    """Sequences of identifiers and of their roles; raises what ``ast.parse`` raises.

    Lines end as in Unix.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # old escapes such as "\d" in other people's code
        tree = ast.parse(source)
    walk = _Walk(source)
    walk.run(tree)
    cuts = walk.statements if unit == "statement" else walk.functions_and_paragraphs()
    tokens: list[list[str]] = []
    labels: list[list[str]] = []
    last = -1
    for start, end, role in sorted(walk.roles):
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
        self.roles: list[tuple[int, int, str]] = []
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
        self.roles += [(a, b, scope.store_role(name)) for a, b, name, scope in self.stores]
        self.roles += [(a, b, scope.read_role(name)) for a, b, name, scope in self.reads]
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
        self.roles.append((start, end, role))
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

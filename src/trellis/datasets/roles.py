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

import itertools
import tokenize
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

from trellis.datasets.source_files import (
    UNPARSABLE,
    Paths,
    by_hash,
    held_out_modules,
    source_files,
)
from trellis.datasets.syntax import label_source
from trellis.domains import nothing, one_of, whole
from trellis.errors import DataError

__all__ = ["ROLES", "Roles", "source_roles", "stdlib_roles"]

TEMPLATES = """
word[-2..2]
word[-1..0] & word[0..1]
prefix(word, 1..3)
suffix(word, 1..3)
short_shape(word)[-1..1]
has_digit(word)
bos
eos
"""
"""Features of identifiers that the demonstration and the reproduction use."""

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

_Labelled: TypeAlias = tuple[list[list[str]], list[list[str]]]

_UNIT = one_of("function", "statement")


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
        held_out = held_out_modules(self.modules, list(map(len, self.tokens)), test_fraction)
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
    *, unit: str = "function", max_tokens: int | None = None, root: Paths | None = None
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
    _UNIT.check("unit", unit)
    (nothing | whole(1)).check("max_tokens", max_tokens)
    files, where = source_files(root)
    if max_tokens is not None:
        files.sort(key=lambda file: by_hash(file[0], b"order"))

    sequences: list[tuple[str, list[str], list[str]]] = []
    count = 0
    for module, path in files:
        if max_tokens is not None and count >= max_tokens:
            break
        try:
            with tokenize.open(path) as stream:
                tokens, labels = label_source(stream.read(), unit)
        except (OSError, *UNPARSABLE):
            continue
        for sequence, roles in zip(tokens, labels, strict=True):
            sequences.append((module, sequence, roles))
            count += len(sequence)
            if max_tokens is not None and count >= max_tokens:
                break
    if not sequences:
        raise DataError(
            f"no Python source with identifiers found under {where}; the standard library may be "
            "zipped or stripped of its .py files: pass root= a folder that holds Python source"
        )
    sequences.sort(key=lambda f: f[0])
    return Roles([f[1] for f in sequences], [f[2] for f in sequences], [f[0] for f in sequences])


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
    _UNIT.check("unit", unit)
    # ast counts lines the same way, whatever their ends; it skips a byte order mark.
    text = source.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    try:
        return label_source(text, unit)
    except UNPARSABLE as error:
        raise DataError(f"the source cannot be parsed as Python: {error}") from error

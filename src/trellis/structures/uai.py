r"""Graphs in the format of the UAI competitions (``.uai``), their evidence and their solutions.

A file is words between white space; where lines end does not matter. It says how many variables
there are and how many labels each has, then which variables each factor is of, then for each factor
the number of its entries and the entries, the label of the last variable changing fastest:

    MARKOV
    3
    2 2 3
    2
    2 0 1
    3 0 1 2
    4  4.0 1.0 1.0 4.0
    12  ...

Entries are potentials :math:`\psi`, not scores: the probability of a labelling is in proportion to
their product, so that :math:`s(y) = \sum_f \log \psi_f`, and an entry 0 forbids. Variables are
nodes, factors of two are edges, larger ones become auxiliary nodes after those of the variables
(:mod:`trellis.structures.factors`). ``BAYES`` files have the same form, with conditional
probabilities as entries.

Evidence (``.uai.evid``) is a number of variables and, for each, its number and its label. A
solution (``.MPE``) is the word ``MPE``, and the number of variables with their labels.
"""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np

from trellis.arrays import Float64s, Int32s, Int64s, as_array
from trellis.domains import instance, nothing, takes, whole
from trellis.errors import DataError
from trellis.files.text import Source, read_text, write_text
from trellis.structures.factors import with_factors
from trellis.structures.graph_potentials import GraphPotentials

__all__ = ["read_uai", "write_mpe", "write_uai"]

_KINDS = ("MARKOV", "BAYES")
_LARGEST = 700.0  # scores of larger size have no exponential, or one of 0


class _Words:
    """Words of a file, read from the first on; errors say in which line they are."""

    def __init__(self, source: Source) -> None:
        self.name, self._text = read_text(source)
        self._words = self._text.split()
        self._next = 0

    @property
    def left(self) -> int:
        """How many words are left."""
        return len(self._words) - self._next

    def refuse(self, what: str, back: int = 1) -> DataError:
        """An error about the word that was read last, or one before it."""
        place, seen = self._next - back, 0
        for number, line in enumerate(self._text.splitlines(), 1):
            seen += len(line.split())
            if place < seen:
                return DataError(f"{self.name}, line {number}: {what}")
        return DataError(f"{self.name}: the file ends too early: {what}")

    def word(self, what: str) -> str:
        """The next word, which is this."""
        self._next += 1
        if self._next > len(self._words):
            raise self.refuse(f"{what} is missing")
        return self._words[self._next - 1]

    def count(self, what: str, low: int, high: float) -> int:
        """The next word, a whole number from low to below high."""
        word = self.word(what)
        if not (word.isascii() and word.isdigit() and len(word) < 19 and low <= int(word) < high):
            limits = f"from {low} to {high - 1:.0f}" if high < math.inf else f"of at least {low}"
            raise self.refuse(f"{what} must be a whole number {limits}, got {word[:40]!r}")
        return int(word)

    def entries(self, n: int, what: str) -> Float64s:
        """The next n words, potentials."""
        if n > self.left:
            self._next = len(self._words) + 1
            raise self.refuse(f"{what} has {n:,} entries")
        words = self._words[self._next : self._next + n]
        try:
            values = np.array(words, np.float64)
        except ValueError:
            values = np.array([_number(word) for word in words])
        bad = np.flatnonzero(~((values >= 0) & (values < np.inf)))
        if len(bad):
            self._next += int(bad[0]) + 1
            raise self.refuse(
                f"entries of {what} must be finite numbers of at least 0, got "
                f"{words[bad[0]][:40]!r}"
            )
        self._next += n
        return values


def _number(word: str) -> float:
    try:
        return float(word)
    except ValueError:
        return math.nan


@takes(budget=whole(1))
def read_uai(
    path: Source, *, evidence: Source | None = None, budget: int = 100_000_000
) -> GraphPotentials:
    """Read a graph of the UAI competitions.

    Parameters
    ----------
    path : str, path or open file
        The file, with «MARKOV» or «BAYES» as its first word.
    evidence : str, path or open file, optional
        A file of evidence: the labels of some variables, whose other labels are forbidden.
    budget : int
        Most entries of all tables, of 8 bytes each.

    Returns
    -------
    GraphPotentials
        One sample, whose first nodes are the variables; after them come the auxiliary nodes of
        factors of more than two. Labels that a variable does not have are forbidden.

    Raises
    ------
    DataError
        If the file is not of this form (the message names the line), or the tables are beyond the
        budget.

    Examples
    --------
    >>> import io
    >>> from trellis.structures import marginals
    >>> p = read_uai(io.StringIO("MARKOV 2 2 3 2 1 0 2 0 1 2 1 3 6 1 0 1 1 1 1"))
    >>> np.exp(p.node).round(6).tolist()
    [[1.0, 3.0, 0.0], [1.0, 1.0, 1.0]]
    >>> float(np.exp(marginals(p).log_z[0]).round(6))
    11.0
    >>> p = read_uai(io.StringIO("MARKOV 1 2 1 1 0 2 1 3"), evidence=io.StringIO("1 0 0"))
    >>> p.node.tolist()
    [[0.0, -inf]]
    """
    words = _Words(path)
    kind = words.word("the kind of graph")
    if kind not in _KINDS:
        raise words.refuse(f"the file must begin with MARKOV or BAYES, got {kind[:40]!r}")
    n = words.count("the number of variables", 0, words.left)
    sizes = np.array([words.count("a number of labels", 1, 2**31) for _ in range(n)], np.int64)
    n_labels = int(sizes.max(initial=1))
    if n * n_labels > budget:
        raise words.refuse(
            f"{n:,} variables of up to {n_labels:,} labels take more than the {budget:,} numbers "
            "of budget="
        )
    n_factors = words.count("the number of factors", 0, words.left)
    scopes = [_scope(words, f, n) for f in range(n_factors)]
    node = np.where(np.arange(n_labels) < sizes[:, None], 0.0, -np.inf)
    small: dict[tuple[int, int], Float64s] = {}
    large: list[tuple[Int64s, Float64s]] = []
    held, constant = 0, 0.0
    for f, scope in enumerate(scopes):
        shape = tuple(sizes[scope].tolist())
        entries = words.count(f"the number of entries of factor {f}", 0, math.inf)
        if entries != math.prod(shape):
            raise words.refuse(
                f"factor {f} has {entries:,} entries, but the labels of its variables have "
                f"{math.prod(shape):,} combinations"
            )
        held += n_labels ** len(scope)
        if held > budget:
            raise words.refuse(f"the tables take more than the {budget:,} numbers of budget=")
        values = words.entries(entries, f"factor {f}")
        with np.errstate(divide="ignore"):
            scores = np.log(values).reshape(shape)
        table = np.full((n_labels,) * len(scope), -np.inf)
        table[tuple(map(slice, shape))] = scores
        if len(scope) == 0:
            constant += float(table)
        elif len(scope) == 1:
            node[scope[0]] += table
        elif len(scope) == 2:
            a, b = (int(v) for v in scope)
            if (b, a) in small:
                a, b, table = b, a, table.T
            small[a, b] = small[a, b] + table if (a, b) in small else table
        else:
            large.append((scope, table))
    if words.left:
        words.word("nothing")
        raise words.refuse("there is more after the last factor")
    if n:  # any node will do, as each has one label
        node[0] += constant
    elif constant:
        raise words.refuse("a factor of no variable needs a variable beside it")
    if evidence is not None:
        _observe(node, sizes, _Words(evidence))
    p = _with_edges(node, small)
    return with_factors(p, large, budget=budget).potentials if large else p


def _scope(words: _Words, f: int, n: int) -> Int64s:
    """The variables of a factor."""
    size = words.count(f"the number of variables of factor {f}", 0, n + 1)
    scope = [words.count(f"a variable of factor {f}", 0, n) for _ in range(size)]
    if len(set(scope)) < size:
        raise words.refuse(f"factor {f} has a variable twice")
    return np.array(scope, np.int64)


def _with_edges(node: Float64s, tables: dict[tuple[int, int], Float64s]) -> GraphPotentials:
    """Potentials of one sample, with one table for all edges that have the same."""
    n_labels, number = node.shape[1], dict[bytes, int]()
    distinct, types = list[Float64s](), list[int]()
    for table in tables.values():
        key = np.ascontiguousarray(table).tobytes()
        if key not in number:
            number[key] = len(distinct)
            distinct.append(table)
        types.append(number[key])
    pair = np.array(distinct).reshape(-1, n_labels, n_labels)
    ends = np.array(list(tables), np.int64).reshape(-1, 2)
    offsets = np.array([0, len(node)])
    return GraphPotentials(node, pair, ends, offsets, np.array(types, np.int64))


def _observe(node: Float64s, sizes: Int64s, words: _Words) -> None:
    """Forbid all labels of observed variables but those that were seen."""
    n = words.count("the number of observed variables", 0, math.inf)
    if n == 1 and words.left != 2 and words.left > 0:  # older files say how many samples there are
        n = words.count("the number of observed variables", 0, math.inf)
    for _ in range(n):
        v = words.count("an observed variable", 0, len(sizes))
        label = words.count(f"the label of variable {v}", 0, int(sizes[v]))
        others = np.arange(node.shape[1]) != label
        node[v, others] = -np.inf
    if words.left:
        words.word("nothing")
        raise words.refuse("there is more after the last observed variable")


@takes(p=instance(GraphPotentials))
def write_uai(path: str | os.PathLike[Any], p: GraphPotentials) -> None:
    """Write a graph in the format of the UAI competitions, whole or not at all.

    Parameters
    ----------
    path : str or path
        Where the file shall be.
    p : GraphPotentials
        Scores of one sample. Labels that are forbidden at a node, with all after them, are left
        out.

    Raises
    ------
    DataError
        If there are several samples, or a score is beyond 700 in size: its exponential cannot be
        written.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "pair.uai"
    >>> p = GraphPotentials(np.zeros((2, 2)), np.log([[2.0, 1.0], [1.0, 2.0]]), [[0, 1]], [0, 2])
    >>> write_uai(path, p)
    >>> print(path.read_text())
    MARKOV
    2
    2 2
    3
    1 0
    1 1
    2 0 1
    <BLANKLINE>
    2 1.0 1.0
    2 1.0 1.0
    4 2.0 1.0 1.0 2.0
    <BLANKLINE>
    """
    if p.n_samples != 1:
        raise DataError(f"a file is for one sample, not {p.n_samples}; write p.alone(s) for each")
    for scores in (p.node, p.pair):
        finite = scores[np.isfinite(scores)]
        if (np.abs(finite) > _LARGEST).any():
            raise DataError(
                f"scores must be from {-_LARGEST:.0f} to {_LARGEST:.0f}, since their exponentials "
                "are written; subtract a constant from those of a node or table"
            )
    allowed = np.isfinite(p.node)
    sizes = np.where(allowed.any(axis=1), p.node.shape[1] - allowed[:, ::-1].argmax(axis=1), 1)
    lines = ["MARKOV", str(len(p.node)), " ".join(map(str, sizes.tolist()))]
    lines += [str(len(p.node) + len(p.edges))]
    lines += [f"1 {v}" for v in range(len(p.node))] + [f"2 {a} {b}" for a, b in p.edges.tolist()]
    lines += [""] + [_entries(p.node[v, :size]) for v, size in enumerate(sizes)]
    for (a, b), k in zip(p.edges.tolist(), p.types.tolist(), strict=True):
        lines.append(_entries(p.pair[k, : sizes[a], : sizes[b]]))
    write_text(path, "\n".join([*lines, ""]))


def _entries(scores: Float64s) -> str:
    values = np.exp(scores).ravel().tolist()
    return " ".join([str(len(values)), *map(repr, values)])


@takes(n_variables=nothing | whole(0))
def write_mpe(
    path: str | os.PathLike[Any], labels: Int32s, *, n_variables: int | None = None
) -> None:
    r"""Write a labelling as a solution of the UAI competitions, whole or not at all.

    Parameters
    ----------
    path : str or path
        Where the file shall be.
    labels : array of int, shape (n,)
        The label of each variable, as :func:`trellis.structures.best` gives them.
    n_variables : int, optional
        Write so many of them, leaving out auxiliary nodes; by default all.

    Raises
    ------
    DataError
        If there are fewer labels, or one is negative.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "graph.uai.MPE"
    >>> write_mpe(path, np.array([1, 0, 5]), n_variables=2)
    >>> path.read_text()
    'MPE\n2 1 0\n'
    """
    y = as_array(labels, np.int64, "labels", (None,), low=0)
    n = len(y) if n_variables is None else int(n_variables)
    if n > len(y):
        raise DataError(f"there are {len(y)} labels, fewer than n_variables={n}")
    write_text(path, "MPE\n" + " ".join(map(str, [n, *y[:n].tolist()])) + "\n")

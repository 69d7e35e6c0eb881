r"""Regular expressions whose cost is bounded, whatever the expression and the word are.

Templates come with model files, which are not trusted, and Python's ``re`` tries all ways in which
an expression can match: for ``^(a|a)*$`` those are :math:`2^n` in a word of n letters. Here the
number of ways is bounded first,

.. math::
   N(ab) = N(a) N(b), \quad N(a|b) = N(a) + N(b), \quad
   N(a\{l,h\}) = \sum_{i=l}^{\min(h, n)} N(a)^i.

Where there are few, ``re`` does the work. Where there are not, all ways are followed at once,
letter by letter and the preferred ones first (Thompson 1968, Pike 1987), which takes time
proportional to n and gives the same match. That cannot be done for what is not regular (looking
around, referring to a group): such an expression is taken only if the number of ways is the same
for all words.

References
----------
K. Thompson, *Regular expression search algorithm*, 1968; R. Cox, *Regular expression matching: the
virtual machine approach*, 2009.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import partial
from re import _constants as sre  # type: ignore[attr-defined]  # typeshed does not know it
from re import _parser  # type: ignore[attr-defined]  # typeshed does not know it
from typing import Any, NamedTuple

from trellis.errors import TemplateError

__all__ = ["LinearRegex"]

# Steps that ``re`` may take with one word (some milliseconds), parts of an expression, and letters
# of the longest word that is given to ``re`` at all.
_MOST_STEPS, _MOST_PARTS, _LONGEST = 10**6, 10_000, 1000

_ALPHABETS = re.ASCII | re.UNICODE  # one of them
_REPEATS = {sre.MAX_REPEAT, sre.MIN_REPEAT}
_NOT_REGULAR = {
    sre.ASSERT, sre.ASSERT_NOT, sre.GROUPREF, sre.GROUPREF_EXISTS, sre.ATOMIC_GROUP,
    sre.POSSESSIVE_REPEAT,
}  # fmt: skip
_PLACES = {
    sre.AT_BEGINNING: "^", sre.AT_BEGINNING_STRING: r"\A", sre.AT_BOUNDARY: r"\b",
    sre.AT_NON_BOUNDARY: r"\B", sre.AT_END: "$", sre.AT_END_STRING: r"\Z",
}  # fmt: skip
_CATEGORIES = {
    sre.CATEGORY_DIGIT: r"\d", sre.CATEGORY_NOT_DIGIT: r"\D", sre.CATEGORY_SPACE: r"\s",
    sre.CATEGORY_NOT_SPACE: r"\S", sre.CATEGORY_WORD: r"\w", sre.CATEGORY_NOT_WORD: r"\W",
}  # fmt: skip


class _Step(NamedTuple):
    """One part of a program: a letter or a place to match, a choice, or the end."""

    kind: str  # "letter", "place", "choice" or "end"
    pattern: re.Pattern[str] | None
    next: int
    second: int = -1  # of a choice: where to go if the first way leads nowhere


class LinearRegex:
    """A regular expression of Python's language, searched for in bounded time.

    Parameters
    ----------
    pattern : str
        What is not regular (looking around, referring to a group) is accepted only if it repeats
        nothing a variable number of times.

    Raises
    ------
    TemplateError
        If it is no regular expression, or none whose time can be bounded.

    Examples
    --------
    >>> LinearRegex("[0-9]+").search("a12b3")
    '12'
    >>> LinearRegex("^(a|a)*$").search("a" * 100 + "b") is None
    True
    >>> LinearRegex("(?=.*b)a")
    Traceback (most recent call last):
    trellis.errors.TemplateError: regular expression '(?=.*b)a': looking around and referring to...
    """

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        try:
            self._whole = re.compile(pattern)
            tree = _parser.parse(pattern)
        except (re.error, RecursionError, OverflowError, MemoryError) as error:
            raise self._failure(str(error)) from None
        self._program: list[_Step] = [_Step("end", None, -1)]
        self._entry = 0
        self._short: int | None = None  # no limit
        if _is_regular(tree):
            self._entry = self._sequence(tree, tree.state.flags, 0)
            # The longest word for which ``re`` takes few steps; -1 if there is none.
            lengths, steps = range(_LONGEST + 1), partial(self._steps, tree)
            self._short = bisect_right(lengths, _MOST_STEPS, key=steps) - 1
        elif not _ways(tree, 1) == _ways(tree, _LONGEST) <= _MOST_PARTS:
            raise self._failure(
                "looking around and referring to groups cannot be combined with repeating a "
                "variable number of times"
            )

    def is_quick(self, n: int) -> bool:
        """Whether ``re`` takes few steps in every word of n letters.

        Examples
        --------
        >>> LinearRegex("^[0-9]+$").is_quick(40), LinearRegex("^(a|a)*$").is_quick(40)
        (True, False)
        """
        return self._short is None or self._short >= n

    def search(self, word: str) -> str | None:
        """What matches first in a word, as ``re.search`` finds it; None if nothing does."""
        if self._short is None or len(word) <= self._short:
            hit = self._whole.search(word)
            return None if hit is None else hit.group()
        return self.search_linearly(word)

    def search_linearly(self, word: str) -> str | None:
        """The same, all ways at once."""
        match: tuple[int, int] | None = None
        ways: list[tuple[int, int]] = []  # where in the program, and where in the word it began
        for t in range(len(word) + 1):
            if match is None:
                ways.append((self._entry, t))
            if not ways:
                break
            further: list[tuple[int, int]] = []
            been: set[int] = set()
            stack = ways[::-1]
            while stack:
                place, start = stack.pop()
                if place in been:
                    continue
                been.add(place)
                kind, pattern, following, second = self._program[place]
                if kind == "choice":
                    stack += ((second, start), (following, start))
                elif pattern is None:
                    match = (start, t)
                    break  # the ways left are worse
                elif pattern.match(word, t):
                    (stack if kind == "place" else further).append((following, start))
            ways = further
        return None if match is None else word[slice(*match)]

    # ---------------------------------------------------------------- the program

    def _failure(self, reason: str) -> TemplateError:
        return TemplateError(f"regular expression {self.pattern!r}: {reason}")

    def _add(self, step: _Step) -> int:
        if len(self._program) >= _MOST_PARTS:
            raise self._failure(f"it has more than {_MOST_PARTS} parts")
        self._program.append(step)
        return len(self._program) - 1

    def _sequence(self, tree: Any, flags: int, after: int) -> int:
        """Add what matches a sequence and then goes on; returns where it begins."""
        for kind, content in reversed(tree):
            after = self._part(kind, content, flags, after)
        return after

    def _part(self, kind: Any, content: Any, flags: int, after: int) -> int:
        if kind in _REPEATS:
            least, most, inner = content
            return self._repeat(least, most, inner, kind is sre.MIN_REPEAT, flags, after)
        if kind is sre.SUBPATTERN:
            _, added, removed, inner = content
            kept = flags & ~_ALPHABETS if added & _ALPHABETS else flags
            return self._sequence(inner, (kept | added) & ~removed, after)
        if kind is sre.BRANCH:
            *others, last = [self._sequence(way, flags, after) for way in content[1]]
            for way in reversed(others):
                last = self._add(_Step("choice", None, way, last))
            return last
        if kind is sre.AT:
            kind, text = "place", _PLACES[content]
        else:
            kind, text = "letter", _letter(kind, content)
        return self._add(_Step(kind, re.compile(text, flags & ~re.VERBOSE), after))

    def _repeat(self, least: int, most: Any, inner: Any, lazy: bool, flags: int, after: int) -> int:
        def choice(way: int) -> _Step:
            return _Step("choice", None, *((after, way) if lazy else (way, after)))

        begin = after
        if most is sre.MAXREPEAT:
            if inner.getwidth()[0] == 0:
                raise self._failure("it repeats without limit what can match nothing")
            begin = self._add(choice(-1))
            self._program[begin] = choice(self._sequence(inner, flags, begin))
        else:
            for _ in range(most - least):
                begin = self._add(choice(self._sequence(inner, flags, begin)))
        for _ in range(least):
            begin = self._sequence(inner, flags, begin)
        return begin

    def _steps(self, tree: Any, n: int) -> int:
        """Bound of the steps that ``re`` takes in a word of n letters."""
        return (n + 1) * (n + len(self._program)) * _ways(tree, n)


def _ways(tree: Any, n: int) -> int:
    """Bound of the ways to match in a word of n letters, as far as it matters."""
    total = 1
    for kind, content in tree:
        total *= _ways_of(kind, content, n)
        if total > _MOST_STEPS:
            return _MOST_STEPS + 1
    return total


def _ways_of(kind: Any, content: Any, n: int) -> int:
    if kind is sre.BRANCH:
        return sum(_ways(way, n) for way in content[1])
    if kind is sre.SUBPATTERN:
        return _ways(content[3], n)
    if kind is sre.ATOMIC_GROUP:
        return _ways(content, n)
    if kind in (sre.ASSERT, sre.ASSERT_NOT):
        return _ways(content[1], n)
    if kind is sre.GROUPREF_EXISTS:
        return sum(_ways(way, n) for way in content[1:] if way is not None)
    if kind not in _REPEATS and kind is not sre.POSSESSIVE_REPEAT:
        return 1
    least, most, inner = content
    each, total = _ways(inner, n), 0
    for i in range(least, max(least, min(int(most), n)) + 1):
        total += each**i
        if total > _MOST_STEPS:
            break
    return total


def _is_regular(tree: Any) -> bool:
    """Whether an expression is one of letters, places, choices and repetitions."""
    for kind, content in tree:
        if kind in _NOT_REGULAR:
            return False
        inner = [content[-1]] if kind in _REPEATS or kind is sre.SUBPATTERN else []
        if kind is sre.BRANCH:
            inner = content[1]
        if not all(map(_is_regular, inner)):
            return False
    return True


def _letter(kind: Any, content: Any) -> str:
    """An expression for one letter, from its parse."""
    if kind is sre.ANY:
        return "."
    if kind is sre.LITERAL:
        return re.escape(chr(content))
    if kind is sre.NOT_LITERAL:
        return f"[^{re.escape(chr(content))}]"
    if kind is sre.RANGE:
        return "-".join(re.escape(chr(code)) for code in content)
    if kind is sre.CATEGORY:
        return _CATEGORIES[content]
    if kind is sre.NEGATE:
        return "^"
    return f"[{''.join(_letter(*member) for member in content)}]"

"""String functions of templates: what a symbol is turned into before it is coded.

They run once for each *distinct* symbol of a corpus, never per position, so plain Python is fast
enough. A function returns a string, or None for «this symbol has no such value».

Two functions are no function of the symbol alone: ``cluster`` is a table that is learned from text,
``dictionary`` finds entries of a list that the user gives. Encoders bring them
(:mod:`trellis.features.encoder`); here it is only known which arguments they take. Those without
arguments are in :mod:`trellis.predictor`, which has to do without the rest of Trellis.
"""

from __future__ import annotations

from collections.abc import Callable

from trellis.errors import TemplateError
from trellis.features.linear_regex import LinearRegex
from trellis.predictor import PLAIN, StringFunction

__all__ = ["FUNCTIONS", "check_call", "string_function"]

Argument = int | str


def _prefix(n: int) -> StringFunction:
    return lambda word: word[:n] if len(word) >= n else None


def _suffix(n: int) -> StringFunction:
    return lambda word: word[-n:] if len(word) >= n else None


def _test(pattern: str) -> StringFunction:
    search = LinearRegex(pattern).search
    return lambda word: None if search(word) is None else "yes"


def _match(pattern: str) -> StringFunction:
    return LinearRegex(pattern).search


WITH_NUMBER: dict[str, Callable[[int], StringFunction]] = {"prefix": _prefix, "suffix": _suffix}
WITH_PATTERN: dict[str, Callable[[str], StringFunction]] = {"test": _test, "match": _match}

FROM_TEXT = ("cluster", "dictionary", "lexicon")
FUNCTIONS = (*PLAIN, *WITH_NUMBER, *WITH_PATTERN, *FROM_TEXT)
"""Names usable in templates, beside ngrams, number, variety and wordlist."""

LEXICON_PARTS = ("start", "end", "inside")
"""What of a training word a position may be."""


def check_call(name: str, arguments: tuple[Argument, ...]) -> None:
    """Refuse a function that does not exist, or arguments that it does not take.

    Examples
    --------
    >>> check_call("cluster", (4,))
    """
    if name == "cluster":
        if arguments and (not isinstance(arguments[0], int) or arguments[0] < 1):
            raise TemplateError(
                "cluster takes a number of bits, or nothing, e.g. cluster(word, 4..8)"
            )
    elif name == "dictionary":
        if len(arguments) != 1 or not isinstance(arguments[0], str) or not arguments[0]:
            raise TemplateError(
                'dictionary takes a name in quotes, e.g. dictionary(word, "cities")'
            )
    elif name == "lexicon":
        if len(arguments) != 1 or arguments[0] not in LEXICON_PARTS:
            raise TemplateError(
                'lexicon takes "start", "end" or "inside", e.g. lexicon(char, "start")'
            )
    else:
        string_function(name, arguments)


def string_function(name: str, arguments: tuple[Argument, ...]) -> StringFunction:
    """Look a function up and check its arguments.

    Examples
    --------
    >>> string_function("suffix", (3,))("walking")
    'ing'
    >>> string_function("short_shape", ())("McDonald's-97")
    "XxXx'x-0"
    """
    if name in PLAIN:
        if arguments:
            raise TemplateError(f"{name} takes no argument but the column")
        return PLAIN[name]
    if name in WITH_NUMBER:
        if len(arguments) != 1 or not isinstance(arguments[0], int) or arguments[0] < 1:
            raise TemplateError(
                f"{name} takes a length, e.g. {name}(word, 3) or {name}(word, 1..4)"
            )
        return WITH_NUMBER[name](arguments[0])
    if name in WITH_PATTERN:
        if len(arguments) != 1 or not isinstance(arguments[0], str):
            raise TemplateError(f'{name} takes a pattern in quotes, e.g. {name}(word, "[0-9]")')
        return WITH_PATTERN[name](arguments[0])
    raise TemplateError(f"unknown function {name!r}; known: {', '.join(sorted(FUNCTIONS))}")

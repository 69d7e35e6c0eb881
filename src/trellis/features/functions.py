"""String functions of templates: what a symbol is turned into before it is coded.

They run once for each *distinct* symbol of a corpus, never per position, so plain Python is fast
enough. A function returns a string, or None for «this symbol has no such value».

Two functions are no function of the symbol alone: ``cluster`` is a table that is learned from text,
``dictionary`` finds entries of a list that the user gives. Encoders bring them
(:mod:`trellis.features.encoder`); here it is only known which arguments they take.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Callable

from trellis.errors import TemplateError
from trellis.features.linear_regex import LinearRegex

__all__ = ["FUNCTIONS", "check_call", "ngrams", "string_function"]

StringFunction = Callable[[str], str | None]
Argument = int | str


def _shape(word: str) -> str:
    return "".join(
        "X" if c.isupper() else "x" if c.isalpha() else "0" if c.isdigit() else c for c in word
    )


def _short_shape(word: str) -> str:
    return re.sub(r"(.)\1+", r"\1", _shape(word))


_NUMERALS = frozenset("〇零一二三四五六七八九十百千万亿兆两壹贰叁肆伍陆柒捌玖拾佰仟萬億兩")
_DATES = frozenset("年月日时分秒時")
_SCRIPTS = (  # first and last character of blocks of Unicode
    ("cjk", "\u3400", "\u4dbf"), ("cjk", "\u4e00", "\u9fff"), ("cjk", "\uf900", "\ufaff"),
    ("cjk", "\U00020000", "\U0003ffff"), ("kana", "\u3041", "\u30ff"), ("kana", "\uff66", "\uff9f"),
    ("hangul", "\u1100", "\u11ff"), ("hangul", "\uac00", "\ud7a3"),
)  # fmt: skip


def _character_type(c: str) -> str:
    if c in _NUMERALS:
        return "numeral"
    if c in _DATES:
        return "date"
    category = unicodedata.category(c)
    if category[0] == "N":
        return "digit"
    if category[0] in "LM":
        for script, first, last in _SCRIPTS:
            if first <= c <= last:
                return script
        return "latin" if "LATIN" in unicodedata.name(c, "") else "letter"
    return {"P": "punctuation", "S": "symbol", "Z": "space"}.get(category[0], "other")


def _char_type(word: str) -> str:
    return "-".join(kind for kind, _ in itertools.groupby(map(_character_type, word)))


def _flag(test: Callable[[str], bool]) -> StringFunction:
    return lambda word: "yes" if test(word) else None


def _prefix(n: int) -> StringFunction:
    return lambda word: word[:n] if len(word) >= n else None


def _suffix(n: int) -> StringFunction:
    return lambda word: word[-n:] if len(word) >= n else None


def _test(pattern: str) -> StringFunction:
    search = LinearRegex(pattern).search
    return lambda word: None if search(word) is None else "yes"


def _match(pattern: str) -> StringFunction:
    return LinearRegex(pattern).search


PLAIN: dict[str, StringFunction] = {
    "lower": str.lower,
    "shape": _shape,
    "short_shape": _short_shape,
    "char_type": _char_type,
    "digits": lambda word: re.sub(r"\d", "0", word),
    "has_digit": _flag(lambda word: any(c.isdigit() for c in word)),
    "has_hyphen": _flag(lambda word: "-" in word),
    "has_upper": _flag(lambda word: any(c.isupper() for c in word)),
    "initial_upper": _flag(lambda word: word[:1].isupper()),
    "all_upper": _flag(str.isupper),
}
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


def ngrams(word: str, low: int, high: int) -> list[str]:
    """Character n-grams of a word between ^ and $, each once, in order.

    Examples
    --------
    >>> ngrams("cat", 2, 3)
    ['^c', 'ca', 'at', 't$', '^ca', 'cat', 'at$']
    """
    marked = f"^{word}$"
    grams = [marked[i : i + n] for n in range(low, high + 1) for i in range(len(marked) - n + 1)]
    return list(dict.fromkeys(grams))

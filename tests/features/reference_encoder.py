"""The documented meaning of templates in plain Python: names of features, one string at a time.

A *line* is drawn as data, written in the template language for the encoder, and evaluated here on
lists of strings. Nothing of Trellis is used.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from hypothesis import strategies as st

SYMBOLS = ["a", "B", "ab", "Ab1", "x-y", "9", "", "é", "a=b & c", "aa"]


def shape(word):
    kinds = (("X", str.isupper), ("x", str.isalpha), ("0", str.isdigit))
    return "".join(next((s for s, test in kinds if test(c)), c) for c in word)


FUNCTIONS = {
    "{}": lambda w: w,
    "lower({})": str.lower,
    "shape({})": shape,
    "short_shape({})": lambda w: "".join(
        c for i, c in enumerate(shape(w)) if i == 0 or shape(w)[i - 1] != c
    ),
    "digits({})": lambda w: "".join("0" if c.isdigit() else c for c in w),
    "has_digit({})": lambda w: "yes" if any(c.isdigit() for c in w) else None,
    "has_hyphen({})": lambda w: "yes" if "-" in w else None,
    "initial_upper({})": lambda w: "yes" if w and w[0].isupper() else None,
    "prefix({}, 1)": lambda w: w[0] if w else None,
    "suffix({}, 2)": lambda w: w[len(w) - 2 :] if len(w) >= 2 else None,
    'test({}, "^a")': lambda w: "yes" if w.startswith("a") else None,
    'match({}, "[ab]*")': lambda w: re.match("[ab]*", w).group(),
}


@dataclass(frozen=True)
class Term:
    column: str
    function: str
    offset: int

    def __str__(self):
        shift = f"[{self.offset}]" if self.offset else ""
        return self.function.format(self.column) + shift

    def value(self, sample, t, mark):
        words = sample[self.column]
        u = t + self.offset
        if u < 0:
            return f"<before {-u}>" if mark else None
        if u >= len(words):
            return f"<after {u - len(words) + 1}>" if mark else None
        return FUNCTIONS[self.function](words[u])


@dataclass(frozen=True)
class Conjunction:
    terms: tuple[Term, ...]

    def __str__(self):
        return " & ".join(map(str, self.terms))

    def names(self, sample, t, mark):
        values = [term.value(sample, t, mark) for term in self.terms]
        if None in values:
            return []
        return [" & ".join(f"{a}={v}" for a, v in zip(self.terms, values, strict=True))]


@dataclass(frozen=True)
class Equal:
    left: Term
    right: Term

    def __str__(self):
        return f"{self.left} == {self.right}"

    def names(self, sample, t, mark):
        a, b = (term.value(sample, t, mark=False) for term in (self.left, self.right))
        return [str(self)] if a is not None and a == b else []


@dataclass(frozen=True)
class Flag:
    kind: str

    def __str__(self):
        return self.kind

    def names(self, sample, t, mark):
        last = len(sample["word"]) - 1
        true = {"bias": True, "bos": t == 0, "eos": t == last}[self.kind]
        return [self.kind] if true else []


@dataclass(frozen=True)
class Ngrams:
    column: str
    low: int
    high: int

    def __str__(self):
        return f"ngrams({self.column}, {self.low}..{self.high})"

    def names(self, sample, t, mark):
        word = "^" + sample[self.column][t] + "$"
        lengths = range(self.low, self.high + 1)
        grams = {word[i : i + n] for n in lengths for i in range(len(word) - n + 1)}
        return [f"{self}={gram}" for gram in grams]


def reference(templates, samples, *, mark=False):
    """For each position of all samples the sorted list of its features' names."""
    distinct = list(dict.fromkeys(templates))
    return [
        sorted(name for template in distinct for name in template.names(sample, t, mark))
        for sample in samples
        for t in range(len(sample["word"]))
    ]


COLUMNS = st.sampled_from(["word", "pos"])
OFFSETS = st.integers(-3, 3)


@st.composite
def lines(draw):
    """A line of the template language and the templates it stands for."""
    kind = draw(st.sampled_from(["conjunction"] * 4 + ["equal", "flag", "ngrams"]))
    if kind == "flag":
        flag = Flag(draw(st.sampled_from(["bias", "bos", "eos"])))
        return str(flag), [flag]
    if kind == "ngrams":
        low = draw(st.integers(1, 3))
        bag = Ngrams(draw(COLUMNS), low, low + draw(st.integers(0, 2)))
        return str(bag), [bag]
    if kind == "equal":
        column, function = draw(COLUMNS), draw(st.sampled_from(list(FUNCTIONS)))
        a = draw(OFFSETS)
        b = draw(OFFSETS.filter(lambda k: k != a))
        equal = Equal(Term(column, function, a), Term(column, function, b))
        return str(equal), [equal]
    width = draw(st.sampled_from([1, 1, 2, 3]))  # of the ranges
    parts, alternatives = [], []
    for _ in range(draw(st.integers(1, 4))):
        column, function = draw(COLUMNS), draw(st.sampled_from(list(FUNCTIONS)))
        first = draw(OFFSETS)
        n = draw(st.sampled_from([1, width]))
        where = f"[{first}]" if n == 1 else f"[{first}..{first + n - 1}]"
        parts.append(function.format(column) + where)
        alternatives.append([Term(column, function, first + i) for i in range(n)])
    n = max(map(len, alternatives))
    moved = [tuple(a[i] if len(a) > 1 else a[0] for a in alternatives) for i in range(n)]
    return " & ".join(parts), [Conjunction(terms) for terms in moved]


@st.composite
def template_sets(draw):
    """Template text, the templates, and whether boundaries are marked."""
    drawn = draw(st.lists(lines(), min_size=1, max_size=5))
    mark = draw(st.booleans())
    text = "\n".join((["edges = mark"] if mark else []) + [line for line, _ in drawn])
    return text, [template for _, templates in drawn for template in templates], mark


@st.composite
def samples(draw, symbols=SYMBOLS):
    """Samples as dicts of two columns; short ones are common, empty ones occur."""
    lengths = draw(st.lists(st.sampled_from([0, 1, 1, 2, 3, 6]), min_size=1, max_size=4))
    symbol = st.sampled_from(symbols)
    return [
        {c: draw(st.lists(symbol, min_size=n, max_size=n)) for c in ("word", "pos")}
        for n in lengths
    ]

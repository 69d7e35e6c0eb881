"""Regular expressions in bounded time: what ``re`` finds, and no word that takes for ever."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trellis.errors import TemplateError
from trellis.features import Templates
from trellis.features.linear_regex import LinearRegex

PARTS = st.sampled_from(
    [
        *("a", "b", "A", "é", ".", "", "-", "[ab]", "[^a]", "[^-a]", "[A-c0-9]", r"[\W_a]"),
        *(r"\d", r"\w", r"\s", r"\D", r"\.", "^", "$", r"\b", r"\B", r"\A", r"\Z"),
    ]
)
REPEATS = st.sampled_from(
    ["*", "+", "?", "*?", "+?", "??", "{2}", "{1,3}", "{0,2}?", "{2,}", "{1,}?"]
)
PATTERNS = st.recursive(
    PARTS,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map("(?:{0[0]}|{0[1]})".format),
        st.tuples(inner, REPEATS).map("({0[0]}){0[1]}".format),
        st.tuples(st.sampled_from(["i", "s", "m", "a", "x", "s-i"]), inner).map(
            "(?{0[0]}:{0[1]})".format
        ),
    ),
    max_leaves=8,
)


@settings(max_examples=60)
@given(PATTERNS, st.lists(st.text("abA1-é._ \n", max_size=7), min_size=1, max_size=6))
def test_the_match_is_that_of_python(pattern, words):
    try:
        expression = LinearRegex(pattern)
    except TemplateError as error:
        assert "it repeats without limit what can match nothing" in str(error)
        return
    for word in words:
        hit = re.search(pattern, word)
        expected = None if hit is None else hit.group()
        assert expression.search(word) == expected
        assert expression.search_linearly(word) == expected


@pytest.mark.parametrize(
    "pattern",
    [
        "^(a|a)*$", "^(a+)+$", "(a|aa)+$", "(.*a){20}$", "(a?){50}a{50}b", "(x+x+)+y", "([a-z]+)*y",
        "^(([a-z])+.)+[A-Z]([a-z])+$", ".*.*.*.*.*.*.*x", "(a|b|ab)*c", "(?i)(A|a)+$",
        "(a{1,30}){1,30}b", "a*a*a*a*a*a*a*a*b", "(?:a|(?:a|(?:a|a)))*?b",
    ],
)  # fmt: skip
@pytest.mark.parametrize("letter", ["a", "x"])
def test_no_word_takes_for_ever(pattern, letter):
    LinearRegex(pattern).search(letter * 500 + "!")
    for call in ("test", "match"):
        Templates.parse(f'{call}(word, "{pattern}")')


def test_a_long_word_is_searched_in_bounded_memory_and_time():
    assert LinearRegex("[a-z]*[0-9]").search("a" * 20_000) is None
    assert LinearRegex("b.?$").search("a" * 20_000 + "bc") == "bc"


@pytest.mark.parametrize(
    ("pattern", "word", "expected"),
    [
        (r"(.)\1", "hello", "ll"),
        (r"(?<![0-9])1(?=a|b)", "21 1b", "1"),
        (r"(?!x).y", "xyzy", "zy"),
        (r"(?>ab|a)c", "aac", "ac"),
        (r"(a)?(?(1)b|c)", "xc", "c"),
        (r"a{2}+b", "aab", "aab"),
    ],
)
def test_what_is_not_regular_is_taken_where_it_is_harmless(pattern, word, expected):
    expression = LinearRegex(pattern)
    assert expression.search(word) == expected
    assert expression.search("y" * 5000 + word) in (expected, "yy")


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("(", "'(': missing ), unterminated subpattern"),
        ("(" * 5000 + ")" * 5000, "recursion"),
        ("(?=.*b)a", "looking around and referring to groups cannot be combined with repeating"),
        (r"(a*)\1b", "cannot be combined with repeating a variable number of times"),
        ("(?:a|b){0,40}(?=x)", "cannot be combined with repeating a variable number of times"),
        ("(?>a*)b", "cannot be combined with repeating a variable number of times"),
        ("a*+b", "cannot be combined with repeating a variable number of times"),
        ("(a?)*b", "it repeats without limit what can match nothing"),
        ("(a{200}){200}", "it has more than 10000 parts"),
    ],
)
def test_what_cannot_be_bounded_is_refused(pattern, message):
    with pytest.raises(TemplateError, match=re.escape(message)):
        LinearRegex(pattern)

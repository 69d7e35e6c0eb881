"""String functions of templates, by example, and n-grams against their definition."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trellis.errors import TemplateError
from trellis.features.functions import FUNCTIONS, check_call, string_function
from trellis.predictor import ngrams


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("lower", (), {"McX-1": "mcx-1", "É": "é", "": ""}),
        ("shape", (), {"McX-1": "XxX-0", "É٣中 ": "X0x ", "": ""}),
        ("short_shape", (), {"McXX--11": "XxX-0", "aab": "x", "": ""}),
        (
            "char_type",
            (),
            {
                "3": "digit",
                "５": "digit",
                "三": "numeral",
                "年": "date",
                "a": "latin",
                "Ｂ": "latin",
                "中": "cjk",
                "𠀀": "cjk",
                "カ": "kana",
                "ｶ": "kana",
                "한": "hangul",
                "я": "letter",
                "。": "punctuation",
                "+": "symbol",
                " ": "space",
                "\x00": "other",
                "a1中国": "latin-digit-cjk",
                "": "",
            },
        ),
        ("digits", (), {"a12-3": "a00-0", "": ""}),
        ("has_digit", (), {"a1": "yes", "a": None, "": None}),
        ("has_hyphen", (), {"a-b": "yes", "a_b": None}),
        ("has_upper", (), {"aB": "yes", "ab": None}),
        ("initial_upper", (), {"Ab": "yes", "aB": None, "": None}),
        ("all_upper", (), {"AB1": "yes", "Ab": None, "1": None}),
        ("prefix", (2,), {"abc": "ab", "ab": "ab", "a": None, "": None}),
        ("suffix", (2,), {"abc": "bc", "ab": "ab", "a": None, "": None}),
        ("test", ("^a.c",), {"abc": "yes", "xabc": None}),
        ("match", ("[0-9]+",), {"a12b3": "12", "ab": None}),
        ("match", ("x*",), {"ab": ""}),
    ],
)
def test_values(name, arguments, expected):
    function = string_function(name, arguments)
    assert {word: function(word) for word in expected} == expected


def test_all_names_are_listed():
    flags = {"has_digit", "has_hyphen", "has_upper", "initial_upper", "all_upper"}
    others = {"lower", "shape", "short_shape", "digits", "prefix", "suffix", "test", "match"}
    others |= {"char_type", "cluster", "dictionary", "lexicon"}
    assert set(FUNCTIONS) == flags | others
    assert len(FUNCTIONS) == len(flags | others)


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("lower", (1,), "lower takes no argument but the column"),
        ("prefix", (), "prefix takes a length, e.g. prefix(word, 3) or prefix(word, 1..4)"),
        ("suffix", (0,), "suffix takes a length"),
        ("suffix", ("a",), "suffix takes a length"),
        ("test", (), 'test takes a pattern in quotes, e.g. test(word, "[0-9]")'),
        ("match", (3,), "match takes a pattern in quotes"),
        ("match", ("(",), "regular expression '(': missing ), unterminated subpattern"),
        (
            "nope",
            (),
            "unknown function 'nope'; known: all_upper, char_type, cluster, dictionary, digits",
        ),
    ],
)
def test_bad_calls(name, arguments, message):
    with pytest.raises(TemplateError, match=re.escape(message)):
        string_function(name, arguments)


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("cluster", (0,), "cluster takes a number of bits, or nothing, e.g. cluster(word, 4..8)"),
        ("cluster", ("a",), "cluster takes a number of bits, or nothing"),
        ("dictionary", (), 'dictionary takes a name in quotes, e.g. dictionary(word, "cities")'),
        ("dictionary", (3,), "dictionary takes a name in quotes"),
        ("dictionary", ("",), "dictionary takes a name in quotes"),
        ("lower", (1,), "lower takes no argument but the column"),
    ],
)
def test_bad_calls_of_what_is_learned(name, arguments, message):
    with pytest.raises(TemplateError, match=re.escape(message)):
        check_call(name, arguments)


@given(st.text("ab", max_size=5), st.integers(1, 4), st.integers(0, 3))
def test_ngrams(word, low, more):
    marked = "^" + word + "$"
    expected = [
        marked[i : i + n]
        for n in range(low, low + more + 1)
        for i in range(len(marked))
        if i + n <= len(marked)
    ]
    found = ngrams(word, low, low + more)
    assert set(found) == set(expected)
    assert len(set(found)) == len(found)
    assert found == sorted(found, key=expected.index)

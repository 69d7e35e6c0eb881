"""What values parameters may have: tests, words, and what a command line makes of them."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from trellis.domains import (
    anything,
    flag,
    function,
    generator,
    has,
    instance,
    is_finite,
    is_number,
    is_whole,
    nothing,
    number,
    one_of,
    samples,
    seed,
    sequence_of,
    strings,
    takes,
    text,
    whole,
)
from trellis.errors import ParameterError

CASES = [
    (number(), "a number", [0, -1.5, np.float32(2), np.int8(3), Fraction(1, 3)],
     [math.nan, math.inf, -math.inf, "1", None, True, np.bool_(True), 1j, np.ones(2)]),
    (number(at_least=0), "a number of at least 0", [0, 0.5, 1e300], [-1e-9, math.inf]),
    (number(infinite=True), "a number (or inf)", [-math.inf, np.float32(math.inf)], [10**400]),
    (number(at_least=0, infinite=True), "a number of at least 0 (or inf)", [0, math.inf],
     [-1, -math.inf, math.nan]),
    (number(above=0), "a positive number", [1e-300, 7], [0, -1]),
    (number(above=2), "a number above 2", [2.1], [2]),
    (number(at_most=3), "a number of at most 3", [3, -9], [3.1]),
    (number(below=3), "a number below 3", [2.9], [3]),
    (number(at_least=0, at_most=1), "a number from 0 to 1", [0, 1], [-0.1, 1.1]),
    (number(above=0, below=1), "a number between 0 and 1, both excluded", [0.5], [0, 1]),
    (number(above=0, at_most=1), "a number above 0 and of at most 1", [1], [0, 1.5]),
    (number(at_least=0, below=1), "a number of at least 0 and below 1", [0], [1]),
    (whole(), "an integer", [-3, np.uint8(4)], [1.0, True, "1", None, math.nan]),
    (whole(0), "an integer of at least 0", [0], [-1]),
    (whole(1), "a positive integer", [1, np.int64(9)], [0, 1.5, True]),
    (whole(2, 4), "an integer from 2 to 4", [2, 4], [1, 5]),
    (one_of("a", "b", -1), "'a', 'b' or -1", ["a", np.str_("b"), -1], ["c", 1, None, ["a"],
     np.array(["a", "a"])]),
    (one_of(1), "1", [1, np.int32(1)], [True, 1.0, "1"]),
    (nothing, "None", [None], [0, False, ""]),
    (flag, "True or False", [True, False, np.bool_(True)], [0, 1, None, "yes"]),
    (anything, "anything", [None, 1, object()], []),
    (text, "a string", ["", np.str_("x")], [b"x", None]),
    (function, "a function", [len, lambda: 0, int], ["len", None]),
    (instance(Fraction), "a Fraction", [Fraction(1)], [1, Fraction]),
    (instance(ArithmeticError), "an ArithmeticError", [ArithmeticError()], [ValueError()]),
    (has("keys", "items"), "an object with keys and items", [{}], [[], dict]),
    (sequence_of(whole(0), "a list of columns"), "a list of columns",
     [[], (1, 2), np.array([1, 2])], ["12", b"12", 3, iter([1]), [-1], None]),
    (generator, "a Generator", [np.random.default_rng(0)],
     [0, None, np.random.RandomState(0), np.random, np.random.Generator]),
    (seed, "an integer of at least 0 or a Generator", [0, np.int64(2**62), np.random.default_rng()],
     [-1, 1.0, True, None, "0", np.random.RandomState(0)]),
    (samples, "a list of samples", [[], [None], (1, "a"), np.zeros((2, 3))],
     [None, 3, "ab", b"ab", {"a": 1}, iter([1]), np.array(3), list]),
    (strings, "a list of strings", [[], ["a"], ("a", "b"), np.array(["a"])],
     ["ab", [1], ["a", None], [b"a"], None, {"a": 1}]),
    (nothing | whole(1) | one_of(-1), "None, a positive integer or -1", [None, 3, -1], [0, -2]),
    (one_of("auto") | number(above=0), "'auto' or a positive number", ["auto", 0.1], ["x", 0]),
]  # fmt: skip


@pytest.mark.parametrize(("domain", "words", "good", "bad"), CASES, ids=lambda x: None)
def test_what_a_domain_accepts_and_says(domain, words, good, bad):
    assert domain.words == words
    for value in good:
        assert domain.accepts(value), value
        domain.check("name", value)
    for value in bad:
        assert not domain.accepts(value), value
        with pytest.raises(ParameterError) as caught:
            domain.check("name", value)
        assert str(caught.value).startswith(f"name must be {words}, got ")
        assert caught.value.parameter == "name" and caught.value.requirement == words
        assert caught.value.value is value


def test_long_values_are_cut_in_messages():
    with pytest.raises(ParameterError) as caught:
        whole(1).check("n", "x" * 1000)
    assert len(str(caught.value)) < 150


@pytest.mark.parametrize(
    ("domain", "said", "value"),
    [
        (number(above=0), "0.5", 0.5),
        (number(above=0), "-1", -1.0),  # the range is for check
        (whole(1), "7", 7),
        (one_of("auto") | whole(1), "auto", "auto"),
        (one_of("auto") | whole(1), "7", 7),
        (nothing | one_of(-1) | whole(1), "-1", -1),
        (text, "auto", "auto"),
        (sequence_of(text, "names"), "a, b,", ["a", "b"]),
    ],
)
def test_what_a_command_line_says(domain, said, value):
    parsed = domain.parse(said)
    assert parsed == value and type(parsed) is type(value)


@pytest.mark.parametrize(
    ("domain", "said", "message"),
    [
        (number(above=0), "much", "must be a positive number, got 'much'"),
        (nothing | one_of("auto") | whole(1), "1.5", "must be auto or a positive integer, got"),
        (whole(1), "None", "must be a positive integer, got 'None'"),
        (sequence_of(whole(0), "columns"), "1,x", "must be columns, got '1,x'"),
    ],
)
def test_what_a_command_line_cannot_say(domain, said, message):
    with pytest.raises(ValueError, match=message):
        domain.parse(said)


def test_signs_and_flags():
    assert (nothing | one_of("auto") | whole(1) | number()).signs == ["auto", "K", "X"]
    assert flag.has_flag and (nothing | flag).has_flag and (flag | one_of("both")).has_flag
    assert not one_of("both").has_flag and not nothing.has_flag
    assert (nothing | one_of("a", "B")).is_choice and not (one_of("auto") | whole(1)).is_choice


def test_numbers_and_integers():
    assert is_number(np.float32(1)) and is_number(math.inf)
    assert not is_number(math.nan) and not is_number("1")
    assert is_finite(np.float32(1)) and is_finite(10**300) and is_finite(True)
    assert not any(map(is_finite, (math.inf, -math.inf, math.nan, 10**400, "1", 1j, None)))
    assert is_whole(np.int8(1)) and not is_whole(True) and not is_whole(1.0)


@takes(k=whole(1), name=text)
def asked(items, k=1, *, name="x", other=None):
    """What is asked."""
    return items, k, name, other


def test_arguments_in_their_domains_are_passed_on():
    assert asked("a") == ("a", 1, "x", None)
    assert asked(None, 2, name="y", other=[]) == (None, 2, "y", [])
    assert asked(k=np.int8(3), items=4) == (4, 3, "x", None)
    assert asked.__name__ == "asked" and asked.__doc__ == "What is asked."


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        (("a", 0), {}, "k must be a positive integer, got 0"),
        (("a", 2.5), {}, "k must be a positive integer, got 2.5"),
        (("a",), {"k": True}, "k must be a positive integer, got True"),
        (("a", 1), {"name": 3}, "name must be a string, got 3"),
        (("a", None), {"name": None}, "k must be a positive integer, got None"),
    ],
)
def test_arguments_outside_their_domains_are_refused(args, kwargs, message):
    with pytest.raises(ParameterError) as caught:
        asked(*args, **kwargs)
    assert str(caught.value) == message


def test_an_argument_too_many_is_the_business_of_the_function():
    with pytest.raises(TypeError, match="positional"):
        asked("a", 1, 2)
    with pytest.raises(TypeError, match="missing"):
        asked(k=1)

"""The weak taggers: each learns from its own part, and the rule knows the marks of code."""

from __future__ import annotations

from trellis.demo.manual import code_words
from trellis.demo.taggers import Rule, weak_taggers


def test_the_rule():
    words = ["Use", "str.join()", "x_y", "with", "in", "TypeError", "but", "while"]
    assert Rule().predict([words]) == [
        ["O", "B-code", "I-code", "I-code", "O", "B-code", "O", "B-code"]
    ]


def test_each_learns_from_its_own_sixth():
    words, labels = code_words(0, n=61)
    whole = weak_taggers(words[:60], labels[:60], seed=0)
    assert len(whole) == 7
    assert list(whole)[-1] == "rule"
    # Other labels for the last sixth change nothing but the last learner.
    other = weak_taggers(words[:60], labels[:50] + [["O"] * len(w) for w in words[50:60]], seed=0)
    same = [whole[name].predict(words[:60]) == other[name].predict(words[:60]) for name in whole]
    assert same == [True] * 5 + [False, True]

"""What a person should look at: counted by hand, and shown as it is."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from trellis.demo.doubts import (
    Level,
    Look,
    curve_of_errors,
    levels_table,
    places_to_look_at,
)
from trellis.demo.trials import Estimate
from trellis.experts import Doubt

N, LENGTH = 40, 10  # sentences, and words of each


@pytest.fixture(scope="module")
def look():
    """Of each sentence word 3 is in doubt; it is wrong in 20 sentences, word 0 in 10 others.

    The first ten doubts are all wrong: 10 of 400 words (2.5 %) hold 10 of 30 errors.
    """
    truth = [["O"] * LENGTH for _ in range(N)]
    answers = [["O"] * LENGTH for _ in range(N)]
    order = [*range(0, N, 2), *range(1, N, 2)]
    for i in (*order[:10], *order[-10:]):
        answers[i][3] = "B-code"
    for i in order[10:20]:
        answers[i][0] = "B-code"
    doubts = [Doubt(i, 3, 4, "B-code", k / N, ("O", "B-code")) for k, i in enumerate(order)]
    sure = [np.array([1.0] * 3 + [0.5] + [0.8] * 6) for _ in range(N)]
    weights = np.random.default_rng(0).multinomial(N, np.full(N, 1 / N), 300).astype(float)
    return Look.measure(answers, sure, doubts, truth, weights)


def test_errors_found_are_counted_by_hand(look):
    assert (look.n_places, look.in_places) == (N, pytest.approx(10))
    assert look.errors_in_places == pytest.approx(100 * 20 / 30)
    found = {x: e.value for x, e in zip(look.looked, look.found, strict=True)}
    # Of 400 words: 4, 8, 12 (ten of them wrong), 20 and 32 (two of the last ten).
    assert found[0] == 0
    for x, n in ((1, 4), (2, 8), (3, 10), (5, 10), (8, 12)):
        assert found[x] == pytest.approx(100 * n / 30), x
    for one in look.found[1:]:
        assert one.low < one.value < one.high


def test_after_the_last_doubt_words_are_looked_at_at_random():
    truth, answers = [["O"] * 100], [["B-code"] * 10 + ["O"] * 90]
    doubts = [Doubt(0, 0, 2, "B-code B-code", 0.5, ("O O",))]
    look = Look.measure(answers, [np.full(100, 0.8)], doubts, truth, np.ones((3, 1)))
    found = dict(zip(look.looked, (e.value for e in look.found), strict=True))
    assert found[2] == pytest.approx(20)  # 2 of 10 errors
    assert found[8] == pytest.approx(20 + 80 * 6 / 98)


def test_no_doubts_and_no_errors():
    truth = [["O"] * 10, ["O"] * 10]
    look = Look.measure(truth, [np.ones(10)] * 2, [], truth, np.ones((3, 2)))
    assert [e.value for e in look.found] == pytest.approx(look.looked)  # as random words do
    assert "not surely more" in str(look)
    assert "0 places" in curve_of_errors(look)
    assert "<tbody></tbody>" in places_to_look_at([], [], truth)


def test_levels(look):
    rows = [(level.low, level.high, level.share, level.said) for level in look.levels]
    assert np.allclose(rows, [(0, 0.7, 0.1, 50), (0.7, 0.9, 0.6, 80), (0.9, 1, 0.3, 100)])
    right = [level.right.value for level in look.levels]
    assert right == pytest.approx([50, 100, 100 * 110 / 120])
    assert "70 to 90 %" in levels_table(look)


def test_levels_that_do_not_mean_what_they_say_are_told(look):
    good = Level(0.7, 0.9, 1.0, 81.0, Estimate(80.0, 78.0, 82.0))
    bad = replace(good, said=84.0)
    told = [
        re.search(r"outside the interval in (.*) rows", levels_table(replace(look, levels=levels)))
        for levels in ((good,), (good, bad), (bad, bad))
    ]
    assert [one[1] for one in told] == ["none of 1", "1 of 2", "2 of 2"]


def test_in_words(look):
    def said(*found):
        return str(replace(look, looked=(5,), found=(Estimate(*found),)))

    assert said(52.6, 47.4, 58.0) == (
        "The 5 % of words that are most in doubt hold 53 % (47 to 58) of all errors that are left: "
        "a person should look there first."
    )
    for low in (4.0, 5.4):  # which is shown as 5
        assert "that is not surely more than random words hold" in said(9.0, low, 14.0)


def test_the_curve_and_random_words(look):
    picture = curve_of_errors(look)
    assert picture.count("<polyline") == 2
    assert picture.count("<polygon class=") == 1  # only what is measured has a band
    assert "in 40 places (10.0 % of the words, 67 % of the errors)" in picture


def test_places_are_escaped_and_right_answers_framed():
    doubts = [
        Doubt(0, 0, 1, "O", 0.49, ("B-code", "O", "")),
        Doubt(0, 1, 2, "O", 0.5, ("O", "O", "O")),  # of the same sentence
        Doubt(1, 0, 4, "O O O O", 0.6, ("O O O O",) * 3),  # too long
        Doubt(2, 7, 9, "B-code I-code", 0.7, ("B-code I-code", "O B-code", "O O")),
    ]
    words = [["a<b", "&c"], list("abcd"), list("abcdefghijklmnop")]
    truth = [["B-code", "O"], ["O"] * 4, ["O"] * 7 + ["B-code", "I-code"] + ["O"] * 7]
    text = places_to_look_at(doubts, words, truth)
    assert re.findall(r"<th>([^<]*)</th>", text) == [
        "most in doubt",
        *"ABC",
        "all",
        "sure",
        "truth",
    ]
    rows = re.findall(r"<tr><td>(.*?)</tr>", text)
    assert len(rows) == 2
    assert "<mark>a&lt;b</mark> &amp;c</td>" in rows[0]
    assert "49 %" in rows[0]
    assert re.findall(r'<i( class="right")?>([^<]*)</i>', rows[0]) == [
        (' class="right"', "B"), ("", "·"), ("", ""), ("", "·"),
    ]  # fmt: skip
    assert "… c d e f g <mark>h i</mark> j k l m n …" in rows[1]
    assert re.findall(r'<i( class="right")?>([^<]*)</i>', rows[1]) == [
        (' class="right"', "BI"), ("", "·B"), ("", "··"), (' class="right"', "BI"),
    ]  # fmt: skip
    many = [Doubt(i, 0, 1, "O", 0.5, ("O",)) for i in range(20)]
    assert places_to_look_at(many, [["x"]] * 20, [["O"]] * 20).count("<mark>") == 8

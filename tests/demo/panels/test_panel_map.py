"""The panel «A map»: what it shows is what was computed, and it says where others are as good."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from trellis.demo.charts import Measured
from trellis.demo.elements import source_of, summary_of
from trellis.demo.panels import map as panel_map
from trellis.demo.panels.map import (
    Score,
    Town,
    against,
    elsewhere,
    error_map,
    example,
    held_words,
    look,
    missed,
    price_map,
    score,
    summed_up,
    town,
    wilson,
)

FLATS, SHARES, SHOWN, TOWNS = 120, (0.2, 0.5), 0.5, 2
GIVEN, ALONE, BASE, NEAR, MEAN = range(5)


@pytest.fixture(scope="module")
def small():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(panel_map, "_FLATS", FLATS)
        patch.setattr(panel_map, "_SHARES", SHARES)
        patch.setattr(panel_map, "_SHOWN", SHOWN)
        patch.setattr(panel_map, "_TOWNS", TOWNS)
        patch.setattr(panel_map, "_DRAWS", 200)
        yield panel_map


@pytest.fixture(scope="module")
def made(small):
    return small.panel(3)


@pytest.fixture(scope="module")
def computed(small):
    towns = {share: [look(seed, FLATS, share) for seed in (3, 1003)] for share in SHARES}
    return towns, [score(share, them) for share, them in towns.items()]


class Tags(HTMLParser):
    """Every tag that is opened is closed, in order."""

    def __init__(self):
        super().__init__()
        self.open, self.count = [], {}

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.count[tag] = self.count.get(tag, 0) + 1

    def handle_startendtag(self, tag, attrs):
        self.count[tag] = self.count.get(tag, 0) + 1

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_structure(made):
    tags = Tags()
    tags.feed(made)
    assert not tags.open
    assert tags.count["svg"] == 5 and tags.count["figure"] == 5 and tags.count["table"] == 1
    assert made.count('class="summary"') == 1
    assert "generated" in made
    assert "http" not in made and "nan" not in made  # NaN is in the code alone
    unknown = FLATS - round(SHOWN * FLATS)
    assert made.count("</title></circle>") == 3 * unknown  # two maps of errors, one of prices
    assert made.count("</title></rect>") == FLATS - unknown


def test_same_seed_same_page(small, made):
    assert small.panel(3) == made
    assert small.panel(4) != made


def test_figures_are_those_computed(made, computed):
    towns, scores = computed
    here = scores[SHARES.index(SHOWN)]
    assert summary_of(made) == summed_up(here, scores)
    squares = np.mean([one.squared_errors().mean(axis=1) for one in towns[SHOWN]], axis=0)
    assert [e.value for e in here.errors] == pytest.approx(np.sqrt(squares))
    assert here.changes[BASE].value == pytest.approx(
        100 * (np.sqrt(squares[GIVEN] / squares[BASE]) - 1)
    )
    assert f"{np.sqrt(squares[GIVEN]):,.0f} €/m²" in summary_of(made)
    for one in scores:
        cells = "".join(rf"<td[^>]*>{e.value:,.0f}</td>" for e in one.errors)
        assert re.search(cells, made)
        assert f"{100 * one.coverage.value:.1f} ({100 * one.coverage.low:.1f} to" in made
    for which in (BASE, GIVEN):
        assert f"{100 * missed(towns[SHOWN][0], which):.0f} % off" in made


def test_the_code_shown_makes_the_prediction(computed):
    shown = source_of(example, seed=3, flats=FLATS, share=SHOWN)
    space = {}
    exec(shown, space)
    np.testing.assert_allclose(space["mean"], computed[0][SHOWN][0].predictions[GIVEN])
    assert len([line for line in shown.splitlines() if line]) <= 10


def test_towns():
    few, many = town(80, 0.1, 5), town(80, 0.5, 5)
    assert (few[0] == many[0]).all() and (few[2] == many[2]).all()
    known = [np.isfinite(t[1]) for t in (few, many)]
    assert [int(k.sum()) for k in known] == [8, 40]
    assert (known[0] <= known[1]).all()  # who is known of few is known of many
    assert (many[1][known[1]] == many[2][known[1]]).all()


def a_town(errors, std=100.0):
    """Two known flats and some with these errors, one row for each predictor."""
    errors = np.asarray(errors, dtype=float)
    n = errors.shape[1] + 2
    known = np.arange(n) < 2
    truth = np.full(n, 4000.0)
    predictions = np.column_stack([np.zeros((5, 2)), errors]) + truth
    X = np.column_stack([np.linspace(-4, 4, n), np.linspace(-2, 3, n), *np.ones((3, n))])
    return Town(X, known, truth, predictions, np.where(known, 0.0, std))


def test_scores_by_hand():
    errors = np.array([[3.0, -4, 3, -4], [3, 4, 3, 4], [6, 8, 6, 8], [1, 1, 1, 1], [300, 9, 9, 9]])
    found = score(0.3, [a_town(errors), a_town(errors)])
    rmse = np.sqrt((errors**2).mean(axis=1))
    assert [e.value for e in found.errors] == pytest.approx(rmse)
    assert found.changes[BASE].value == pytest.approx(-50)
    assert (found.changes[BASE].low, found.changes[BASE].high) == pytest.approx((-50, -50))
    assert found.changes[NEAR].low > 0  # pairs: the nearest are better in every draw
    assert found.changes[ALONE].low == found.changes[ALONE].high == 0
    assert found.coverage.value == 1
    narrow = score(0.3, [a_town(errors, std=2.0)])  # 3 is within 1.645 * 2, 4 is not
    assert narrow.coverage.value == 0.5


def test_wilson_contains_what_it_should():
    for successes, trials in ((0, 5), (5, 5), (90, 100), (1, 1)):
        found = wilson(successes, trials)
        assert -1e-12 <= found.low <= found.value + 1e-12
        assert found.value <= found.high + 1e-12 <= 1 + 1e-9
    assert wilson(90, 100).low == pytest.approx(0.8256, abs=1e-4)
    assert wilson(90, 100).high == pytest.approx(0.9448, abs=1e-4)


def test_maps_mark_sign_size_and_knowledge():
    errors = np.array([[-900.0, 900.0, 10.0]] * 5)
    one = a_town(errors)
    svg = error_map(one, BASE, 1000.0)
    drawn = re.findall(r'<circle class="([^"]+)" [^>]*r="([\d.]+)"><title>', svg)
    assert drawn == [("dearer bad", "13.5"), ("cheaper bad", "13.5"), ("cheaper", "1.0")]
    assert svg.count("h4m-2-2v4") == 2  # known
    assert "4,000 €/m², predicted 3,100</title>" in svg
    assert "(2,936 to 3,264)" in error_map(one, GIVEN, 1000.0)
    prices = price_map(one)
    assert prices.count("known: 4,000") == 2
    assert "predicted 4,900 (4,736 to 5,064)" in prices


def change(low, value, high):
    return Measured("", value, low, high)


ZERO, WIN, LOSS, OPEN = change(0, 0, 0), change(-9, -6, -3), change(2, 4, 7), change(-3, -1, 2)


def a_score(share, *changes, held=(0.88, 0.9, 0.92)):
    errors = tuple(Measured("", v, v - 1, v + 1) for v in (400.0, 430, 450, 420, 800))
    return Score(share, errors, (ZERO, *changes), Measured("", held[1], held[0], held[2]))


def test_a_gain_is_said_only_when_its_interval_says_so():
    assert against(WIN) == "6.0 % (3.0 to 9.0) less than"
    assert against(LOSS) == "4.0 % (2.0 to 7.0) more than"
    assert "no different" in against(OPEN) and "less" not in against(OPEN)
    assert "no different" in against(change(-3, -2, 0))


def test_coverage_is_judged():
    assert "too narrow" in held_words(Measured("", 0.8, 0.78, 0.82))
    assert "wider than they need be" in held_words(Measured("", 0.95, 0.93, 0.97))
    fine = held_words(Measured("", 0.9, 0.88, 0.92))
    assert fine == "Its 90 % intervals hold 90.0 % (88.0 to 92.0) of them."


def test_where_others_are_better_is_said():
    ahead = [a_score(0.1, WIN, WIN, WIN, WIN), a_score(0.4, WIN, WIN, WIN, WIN)]
    assert elsewhere(ahead) == "It is ahead of all the others at every share tried (10, 40 %)."
    mixed = [a_score(0.05, WIN, OPEN, LOSS, WIN), a_score(0.1, WIN, WIN, LOSS, WIN), ahead[1]]
    said = elsewhere(mixed)
    assert "Better than it: the mean of the nearest five at 5, 10 %." in said
    assert "No worse than it, as far as can be told: the base model at 5 %." in said
    assert "every share" not in said
    text = summed_up(mixed[0], mixed)
    assert "no different" in text and "more than the mean of the nearest five" in text
    bad = replace(mixed[0], coverage=Measured("", 0.8, 0.78, 0.82))
    assert "too narrow" in summed_up(bad, mixed)

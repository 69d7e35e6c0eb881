"""The panel «Cells»: what it shows is what was measured, and it claims no more."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from trellis.datasets import simulate_cells
from trellis.demo.elements import source_of, summary_of
from trellis.demo.panels import cells
from trellis.tracking import annotated_events, score_links

SMALL = {"_RUNS": 2, "_LINKS": (10,), "_TRAIN": (8, 8), "_TEST": (10, 8)}


@pytest.fixture(scope="module")
def small():
    """The panel with few and small movies."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in SMALL.items():
            patch.setattr(cells, name, value)
        yield cells.panel(0)


@pytest.fixture(scope="module")
def scores():
    return cells._measured(0, *SMALL.values())


@pytest.fixture(scope="module")
def movie(small):
    (text,) = re.findall(r'<script type="application/json" id="cells-data">(.*?)</script>', small)
    return json.loads(text)


def made_up(gains, n=6):
    """Scores of a run in which learning gains so much over flow: (links, divisions) by size."""
    noise = np.linspace(-1, 1, n)[:, None, None]
    flow = np.full((n, 2), 70.0)
    learned = flow[:, None] + np.array(gains)[None] + noise
    others = {cells._NEAREST: np.full((n, 2), 60.0), cells._FLOW: flow}
    return cells._Scores((10, 30, 200)[: len(gains)], learned, others)


# ------------------------------------------------------------------ the page


def test_parts(small):
    assert small.count('class="summary"') == 1
    assert small.count("<figure>") == 4 and small.count('class="chart"') == 2
    assert small.count('type="radio"') == 2 and small.count('type="range"') == 1
    assert "prefers-reduced-motion" in small
    assert "simulate_cells" in small and "studies/REPORT.md" in small
    assert "http" not in small  # nothing is asked of the network


def test_shows_the_code_that_ran(small):
    code = source_of(cells.example)
    assert "TrackingModel().fit(annotated).predict(new)" in code and "return" not in code
    assert code.splitlines()[-1] in small


def test_same_seed_same_page(small, monkeypatch):
    for name, value in SMALL.items():
        monkeypatch.setattr(cells, name, value)
    assert cells.panel(0) == small
    assert cells.panel(1) != small


def test_size(small):
    assert len(small) < 150_000  # of the movie and the tree, which are as large as ever


def test_every_id_is_there_once(small):
    ids = re.findall(r'\bid="([^"]+)"', small)
    assert len(ids) == len(set(ids))
    script = small[small.index('"use strict"') :]
    for name in re.findall(r'getElementById\("([^"]+)"\)', script):
        assert name in ids


# ------------------------------------------------------------------ the movie


def test_movie_holds_all_cells_and_links(movie):
    _, new, learned, nearest = cells.example(0)
    truth, _ = annotated_events(new)
    assert [len(frame) for frame in movie["frames"]] == [
        *(len(pair.source) for pair in new),
        len(new[-1].target),
    ]
    for name, result in (("learned", learned), ("nearest neighbour", nearest)):
        steps = movie["trackers"][name]
        found = score_links(truth, [link for link in result.links if not link.gap]).links
        n = {what: sum(len(step[what]) for step in steps) for what in ("right", "wrong", "missed")}
        assert n == {
            "right": found.correct,
            "wrong": found.predicted - found.correct,
            "missed": found.support - found.correct,
        }
        for before, after, step in zip(
            movie["frames"][:-1], movie["frames"][1:], steps[1:], strict=True
        ):
            for a, b in step["right"] + step["wrong"] + step["missed"]:
                assert a < len(before) and b < len(after)
    assert 0 < movie["telling"] < len(movie["frames"])


def test_ellipses_have_the_area_of_their_cells(movie):
    _, new, *_ = cells.example(0)
    drawn = [np.pi * a * b for _, _, a, b, _, _ in movie["frames"][0]]
    np.testing.assert_allclose(drawn, new[0].source["area"], rtol=0.03)


def test_long_axis_is_where_the_cell_parts(movie):
    """Daughters lie at the ends of their mother's long axis: the angle is drawn the right way."""
    _, new, *_ = cells.example(0)
    cosines = []
    for pair, before, after in zip(new, movie["frames"], movie["frames"][1:], strict=False):
        daughters = {}
        for a, b, kind in pair.annotation.links:
            if kind == "division":
                daughters.setdefault(a, []).append(after[b][:2])
        for mother, (first, second) in daughters.items():
            turn = np.radians(before[mother][4])
            apart = np.subtract(first, second) / np.linalg.norm(np.subtract(first, second))
            cosines.append(abs(apart @ [np.cos(turn), np.sin(turn)]))
    assert len(cosines) > 5 and np.median(cosines) > 0.9


def test_families_keep_their_colour_through_true_links():
    new = simulate_cells(15, 10, lab=cells._COLONY, seed=5)
    colour = cells._families(new)
    truth, _ = annotated_events(new)
    for link in truth:
        assert colour[link.frame, link.source_id] == colour[link.frame + 1, link.target_id]
        if link.kind == "division":
            assert 0 <= colour[link.frame, link.source_id] < cells._COLOURS


# ------------------------------------------------------------------ figures and words


def test_summary_has_the_measured_figures(small, scores):
    text = summary_of(small)
    for values in (
        scores.learned[:, -1],
        scores.others[cells._NEAREST],
        scores.others[cells._FLOW],
    ):
        links, divisions = values.mean(axis=0)
        assert f"{links:.1f} and {divisions:.1f}" in text
    assert f"from the {scores.sizes[-1]} links" in text


def test_claims_only_what_the_intervals_bear_out():
    text = cells._said(made_up([(-3.0, -30.0), (0.5, 0.5), (3.0, 20.0)]))
    assert "better than flow in links and divisions (200 annotated)" in text
    assert "worse in links and divisions (10 annotated)" in text
    assert "30" not in text.split("Learning is")[1]
    text = cells._said(made_up([(0.1, -5.0), (2.0, -0.1), (3.0, 4.0)]))
    assert "in links (30 or 200 annotated) and in divisions (200 annotated)" in text
    assert "worse in divisions (10 annotated)" in text
    text = cells._said(made_up([(0.1, 0.1), (0.2, -0.2), (0.3, 0.0)]))
    assert "surely better than flow nowhere, surely worse nowhere" in text


def test_interval_is_that_of_scipy():
    from scipy import stats

    values = np.array([3.0, 5.0, 4.0, 8.0, 1.0])
    mean, low, high = cells._interval(values)
    expected = stats.ttest_1samp(values, 0.0).confidence_interval(0.95)
    assert mean == pytest.approx(4.2)
    assert (low, high) == pytest.approx((expected.low, expected.high))


def test_draws_so_many_links_and_whole_divisions():
    pairs = simulate_cells(12, 12, lab=cells._COLONY, seed=3)
    parts = cells._some_links(pairs, (10, 30), np.random.default_rng(0))
    drawn = [
        {(t, link) for t, p in enumerate(part) if p.annotation for link in p.annotation.links}
        for part in parts
    ]
    assert drawn[0] < drawn[1]
    for size, links in zip((10, 30), drawn, strict=True):
        assert size <= len(links) <= size + 1
    truth = {(t, link) for t, pair in enumerate(pairs) for link in pair.annotation.links}
    divisions = {(t, a) for t, (a, _, kind) in drawn[1] if kind == "division"}
    assert divisions and drawn[1] <= truth
    for t, a in divisions:
        assert {x for x in truth if x[0] == t and x[1][0] == a} <= drawn[1]
    assert all(not p.annotation.complete for part in parts for p in part if p.annotation)


def test_warm():
    cells.warm_assignments()

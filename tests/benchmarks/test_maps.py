"""Cuts of maps keep what is asked about apart; errors and intervals are what they are called."""

from __future__ import annotations

from functools import partial
from importlib.util import find_spec

import numpy as np
import pytest

from benchmarks.map_peers import (
    ELSEWHERE,
    HERE,
    Answer,
    Elsewhere,
    base_of,
    boosting,
    conformal,
    kriged,
    lagged,
    left_by,
    mean_around,
    nearest,
    of_features,
    out_of_fold,
)
from benchmarks.map_sets import (
    SETS,
    Cut,
    MapSet,
    Task,
    cells,
    drawn_blocks,
    generated,
    points_of,
    regions,
    smaller,
)
from benchmarks.maps import compare, scored, spread
from trellis.datasets import spatial_field
from trellis.regression import RegressionData


def task(n=120, asked=40, metric="euclidean"):
    """A rough field, and its right answers."""
    places, X, y, _ = spatial_field(n + asked, random_state=3)
    return Task(X[:n], y[:n], places[:n], metric, X[n:], places[n:], 0), y[n:]


# ------------------------------------------------------------------------- cuts


def numbered(n, repeat):
    """Data whose targets say which row they are."""
    places = np.random.default_rng(0).random((n, 2))
    return RegressionData("toy", places, np.arange(float(n)), places, None, ("a", "b"))


@pytest.mark.parametrize("how", ["random", "blocked"])
def test_cuts(how):
    one = MapSet("toy", partial(numbered, 300), 150, 60, regions)
    first = []
    for cut in one.draw(how, 3):
        train, test = cut.task.y.astype(int), cut.truth.astype(int)
        assert (len(train), len(test)) == (150, 60)
        assert not set(train) & set(test)
        assert len(set(train)) == 150
        data = numbered(300, 0)
        assert (cut.task.places == data.coords[train]).all()
        assert (cut.task.X_asked == data.X[test]).all()
        blocks = regions(data, cut.task.seed)
        assert bool(set(blocks[train]) & set(blocks[test])) == (how == "random")
        first.append(test.tolist())
    assert first[0] != first[1]
    again = next(one.draw(how, 1))
    assert again.truth.tolist() == first[0]


def test_four_fifths():
    (cut,) = smaller(SETS["rough-field"], 101).draw("random", 1)
    assert (len(cut.task.y), len(cut.truth)) == (81, 20)


def test_blocks_are_drawn_up_to_a_share():
    blocks = np.repeat(np.arange(10), 10)
    inside = drawn_blocks(blocks, 0.3, np.random.default_rng(0))
    assert inside.sum() in (30, 40)
    assert {int(inside[blocks == k].sum()) for k in range(10)} == {0, 10}
    assert not drawn_blocks(blocks, 1.0, np.random.default_rng(0)).all()  # something is left


def test_cells_are_of_degrees():
    data = numbered(4, 0)
    object.__setattr__(data, "coords", np.array([[47.51, -122.3], [47.54, -122.26],
                                                 [47.56, -122.3], [47.51, -122.2]]))  # fmt: skip
    found = cells(data, 0)
    assert found[0] == found[1]
    assert len(set(found.tolist())) == 3


def test_points_of_degrees():
    points = points_of(np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 179.9], [0.0, -179.9]]), "haversine")
    assert np.linalg.norm(points[1] - points[0]) == pytest.approx(111.2, rel=1e-3)
    assert np.linalg.norm(points[3] - points[2]) == pytest.approx(22.2, rel=1e-2)


def test_generated_fields_differ():
    a, b = (generated(50, 0.5, repeat) for repeat in (0, 1))
    assert (a.y != b.y).all()
    assert (a.X[:, -2:] == a.coords).all()


# ------------------------------------------------------------------------- contestants


def test_conformal():
    residuals = np.arange(1.0, 100) * np.where(np.arange(99) % 2, 1, -1)
    assert conformal(residuals) == 90  # the 90th of 99
    assert conformal(np.array([3.0, -1.0])) == 3


def test_no_row_learns_from_itself():
    """Out of fold, a model that knows its rows by heart knows nothing."""
    rng = np.random.default_rng(0)
    X, y = np.arange(50.0)[:, None], rng.normal(size=50)

    def by_heart(X, y, P, asked, Q):
        known = dict(zip(X[:, 0].tolist(), y.tolist(), strict=True))
        return np.array([known.get(x, 7.0) for x in asked[:, 0].tolist()])

    assert (out_of_fold(by_heart, X, y, X, 0) == 7).all()
    of = Task(X, y, X, "euclidean", X[:2], X[:2], 0)
    base = left_by(by_heart, of)
    assert (base.mean == y[:2]).all()
    assert base.answer.half == conformal(y - 7)


def test_mean_of_the_nearest_leaves_a_row_out():
    points, y = np.arange(12.0)[:, None], np.arange(12.0) ** 2
    around = mean_around("euclidean")
    assert around(points, y, None)[0] == np.mean(y[1:6])
    assert around(points, y, np.array([[-1.0]]))[0] == np.mean(y[:5])
    corner = np.array([[0.0, 0.0], [0.0, 3.0], [2.0, 2.0]])
    assert nearest(corner, None, "euclidean", 1)[0, 0] == 2
    assert nearest(corner, None, "manhattan", 1)[0, 0] == 1


@pytest.mark.parametrize("name", HERE)
def test_contestants(name):
    """All that run here beat the mean, with missing values, too; the seed says all."""
    of, truth = task(300, 100)
    of.X[::17, 5 % of.X.shape[1]] = np.nan
    answer = HERE[name][1](of)
    again = HERE[name][1](Task(*[getattr(of, f) for f in (
        "X", "y", "places", "metric", "X_asked", "places_asked", "seed")]))  # fmt: skip
    assert (answer.mean == again.mean).all()
    assert np.mean((answer.mean - truth) ** 2) < 0.9 * np.var(truth)
    covered = np.mean(np.abs(answer.mean - truth) <= answer.half)
    assert 0.75 < covered <= 1


def test_what_is_shared_counts_for_all():
    of, _ = task()
    first, second = base_of(of, "hgb"), base_of(of, "hgb")
    assert first.earlier == 0
    assert second.earlier > 0
    assert second.answer.elsewhere == second.earlier
    assert (first.residuals == second.residuals).all()
    plain = of_features(boosting, 0)(of.X, of.y, of.points, of.X_asked, of.points_asked)
    assert (first.mean == plain).all()


def test_gaussian_processes_are_for_few(monkeypatch):
    monkeypatch.setattr("benchmarks.map_peers.AT_MOST", 50)
    assert HERE["gp"][1](task()[0]) is None


def test_peers_that_are_not_installed():
    process = Elsewhere()
    found = process.contestants()
    assert ("kriging" in found) == (find_spec("pykrige") is not None)
    assert {*found} <= {*ELSEWHERE}
    assert ("lag" in found) == (find_spec("spreg") is not None)
    process.close()


@pytest.mark.extras
def test_kriging_by_pykrige():
    """At once and in tiles: a field without features is predicted far better than by its mean."""
    pytest.importorskip("pykrige")
    field = spatial_field(700, field_share=0.95, noise_share=0.05, length_scale=0.3)
    known, asked, y = field.places[:600], field.places[600:], field.y
    for at_once in (1000, 300):
        mean, variance = np.array(
            kriged(known.tolist(), y[:600].tolist(), asked.tolist(), False, at_once, 20, 30)
        )
        away = y[600:] - mean
        assert np.mean(away**2) < 0.5 * np.var(y)
        assert 0.8 < np.mean(np.abs(away) < 1.645 * np.sqrt(variance)) < 0.98


@pytest.mark.extras
def test_spatial_lag_by_spreg():
    pytest.importorskip("spreg")
    of, truth = task(400, 100)
    near, asked = nearest(of.points, None, "euclidean"), nearest(of.points, of.points_asked, "")
    tables = (of.X, of.y, near, of.X_asked, asked)
    mean = np.array(lagged(*(table.tolist() for table in tables)))
    assert np.mean((mean - truth) ** 2) < 0.8 * np.var(truth)


# ------------------------------------------------------------------------- scores


def test_scores():
    of, _ = task(10, 4)
    cut = Cut(of, np.array([1.0, 2.0, 3.0, 4.0]))
    found = scored(lambda task: Answer(np.zeros(4), np.array([1.0, 1.0, 4.0, 4.0]), 100.0), cut)
    assert found.errors.tolist() == [1, 4, 9, 16]
    assert (found.covered, found.width) == (0.75, 5.0)
    assert found.seconds >= 100
    assert scored(lambda task: None, cut) is None


def test_spread():
    rows = [np.full(5, k) for k in (1.0, 2.0, 3.0, 6.0)]
    plain, overlapping = spread(rows, 0.0), spread(rows, 0.25)
    assert plain.mean == 3
    assert plain.error == pytest.approx(np.std([1, 2, 3, 6], ddof=1) / 2)
    assert overlapping.error == pytest.approx(plain.error * np.sqrt(2))
    assert plain.half == pytest.approx(3.1824 * plain.error, rel=1e-4)
    few = spread([np.array([1.0, 3.0])], 0.25)  # of rows
    assert few.error == pytest.approx(1)


def test_a_table(capsys):
    """Who cannot answer everywhere has no row; differences are to Trellis in the same repeats."""
    contestants = {
        "trellis": ("Trellis", lambda task: Answer(np.zeros(len(task.X_asked)), 1.0)),
        "worse": ("worse", lambda task: Answer(np.full(len(task.X_asked), 9.0), 20.0)),
        "sometimes": (
            "sometimes", lambda task: Answer(np.zeros(1), 1.0) if task.seed else None,
        ),
    }  # fmt: skip
    compare(smaller(SETS["rough-field"], 60), "random", 3, contestants)
    shown = capsys.readouterr().out
    rows = [line.split(" | ") for line in shown.splitlines() if line.startswith("| ")]
    assert [row[0] for row in rows[1:]] == ["| Trellis", "| worse"]
    error, gap = float(rows[2][1]), float(rows[2][3].split()[0])
    assert gap == pytest.approx(error - float(rows[1][1]), abs=0.3)
    assert rows[2][4] == "100"
    assert "48 rows to learn from, 12 asked about, 3 repeats" in shown

"""Pictures of regressions: coverage of intervals, residuals on a map, variograms."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import binom, norm

from trellis.errors import DataError
from trellis.pictures import draw_coverage, draw_residuals, draw_variogram
from trellis.regression import variogram

pytest.importorskip("matplotlib", reason="matplotlib is not installed")

RNG = np.random.default_rng(0)
PLACES = RNG.uniform(size=(200, 2))
Y = np.sin(5 * PLACES[:, 0]) + 0.3 * RNG.normal(size=200)
MEAN = np.sin(5 * PLACES[:, 0])
STD = np.full(200, 0.3)


# ------------------------------------------------------------------------- coverage


def test_coverage_is_counted():
    figure = draw_coverage(Y, MEAN, STD, title="kept")
    main, widths = figure.axes
    line = main.get_lines()[1]
    for level, kept in zip(line.get_xdata(), line.get_ydata(), strict=True):
        z = norm.ppf((1 + level / 100) / 2)
        assert kept == pytest.approx(100 * np.mean(np.abs(Y - MEAN) <= z * STD))
    assert widths.get_lines()[0].get_ydata()[0] == pytest.approx(2 * norm.ppf(0.525) * 0.3)
    band = main.collections[0].get_paths()[0].vertices
    at_half = band[np.isclose(band[:, 0], 50)][:, 1]
    assert at_half.min() == pytest.approx(100 * binom.ppf(0.025, 200, 0.5) / 200)
    assert at_half.max() == pytest.approx(100 * binom.ppf(0.975, 200, 0.5) / 200)


def test_coverage_of_several_and_of_those_that_are_known():
    y = np.where(np.arange(200) < 150, Y, np.nan)
    figure = draw_coverage({"random": (Y, MEAN, STD), "blocked": (y, MEAN, STD / 2)})
    labels = figure.axes[0].get_legend_handles_labels()[1]
    within = 100 * np.mean(np.abs(Y - MEAN)[:150] <= norm.ppf(0.95) * 0.15)
    assert labels[0].startswith("random (9") and labels[1] == f"blocked ({within:.1f} % of 90 %)"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: draw_coverage(Y), "give targets, means and standard deviations"),
        (lambda: draw_coverage({"a": (Y, MEAN)}), "a: give targets, means and standard"),
        (lambda: draw_coverage({}), "there is nothing to draw"),
        (lambda: draw_coverage(Y * np.nan, MEAN, STD), "no target is known"),
        (lambda: draw_coverage(Y, MEAN[:3], STD), "mean"),
        (lambda: draw_coverage(Y, MEAN, 0 * STD), "the standard deviation of row 0 is 0, not abo"),
    ],
)
def test_what_coverage_refuses(call, message):
    with pytest.raises(DataError, match=re.escape(message)):
        call()


# ------------------------------------------------------------------------- residuals


def marks(axes):
    """Residuals by place, and which mark they have."""
    found = {}
    (drawn,) = axes.collections
    rows = zip(drawn.get_offsets().tolist(), drawn.get_array(), drawn.get_paths(), strict=True)
    for place, value, path in rows:
        height = path.vertices[:3, 1]  # one corner is up or two are
        found[tuple(place)] = (1 if (height > 0).sum() == 1 else -1, float(value))
    return found


def test_residuals_and_what_they_are_of():
    y = np.where(np.arange(200) < 190, Y, np.nan)
    figure = draw_residuals(PLACES, y, MEAN, base=0.5 * MEAN, label="height", names=("e", "n"))
    panels = figure.axes[:4]
    assert [p.get_title() for p in panels] == ["height", "base", "predicted", "residual"]
    scales = [p.collections[0].get_clim() for p in panels[:3]]
    assert scales[0] == scales[1] == scales[2]
    found = marks(panels[3])
    assert len(found) == 190
    for i in range(190):
        sign, value = found[tuple(PLACES[i])]
        assert value == pytest.approx(Y[i] - MEAN[i])
        assert sign == (1 if Y[i] >= MEAN[i] else -1)
    low, high = panels[3].collections[0].get_clim()
    assert -low == high == pytest.approx(np.quantile(np.abs(Y - MEAN)[:190], 0.98))
    assert panels[2].get_xlabel() == "e" and panels[0].get_ylabel() == "n"


def test_residuals_in_degrees_and_alone():
    from matplotlib.figure import Figure

    where = np.column_stack([50 + PLACES[:, 0], 8 + PLACES[:, 1]])
    figure = draw_residuals(where, Y, MEAN, geographic=True)
    assert [p.get_title() for p in figure.axes[:3]] == ["value", "predicted", "residual"]
    assert figure.axes[0].get_xlabel() == "longitude [°]"
    (x, _), *_ = figure.axes[0].collections[0].get_offsets().tolist()
    assert 8 <= x <= 9
    axes = Figure().subplots()
    assert draw_residuals(where, Y, MEAN, geographic=True, ax=axes) is axes
    assert len(marks(axes)) == 200
    perfect = draw_residuals(PLACES, Y, Y)
    assert len(marks(perfect.axes[2])) == 200


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: draw_residuals(PLACES, Y, MEAN[:2]), "predicted"),
        (lambda: draw_residuals(PLACES[:, :1], Y, MEAN), "coordinates"),
        (lambda: draw_residuals(PLACES, Y * np.nan, MEAN), "no target has a prediction"),
        (lambda: draw_residuals(PLACES + 100, Y, MEAN, geographic=True), "beyond 90"),
        (lambda: draw_residuals(PLACES, Y, MEAN, names=("x",)), "names must be those of the two"),
        (lambda: draw_residuals(PLACES, Y, MEAN, geographic=1), "geographic must be"),
    ],
)
def test_what_residuals_refuse(call, message):
    with pytest.raises(DataError, match=re.escape(message)):
        call()


# ------------------------------------------------------------------------- variogram


def test_variograms_of_several():
    figure = draw_variogram(PLACES, {"before": Y, "after": Y - MEAN}, title="residuals")
    main = figure.axes[0]
    before, _, after, level = main.get_lines()
    found = variogram(PLACES, Y)
    assert before.get_ydata() == pytest.approx(found.gamma)
    assert before.get_xdata() == pytest.approx(found.distance)
    assert after.get_ydata()[0] < before.get_ydata()[-1]
    assert level.get_ydata()[0] == pytest.approx((Y - MEAN).var())
    assert main.get_xlabel() == "distance" and main.get_title() == "residuals"


def test_a_variogram_that_was_made():
    where = np.column_stack([50 + PLACES[:, 0], 8 + PLACES[:, 1]])
    made = variogram(where, Y, metric="haversine")
    main = draw_variogram(None, made, metric="haversine", label="price² / 2").axes[0]
    assert main.get_lines()[0].get_ydata() == pytest.approx(made.gamma)
    assert (main.get_xlabel(), main.get_ylabel()) == ("distance [km]", "price² / 2")
    assert main.get_legend() is None
    with pytest.raises(DataError, match="needs three places"):
        draw_variogram(PLACES, Y * np.nan)
    with pytest.raises(DataError, match="label must be"):
        draw_variogram(PLACES, Y, label=3)


def test_numbers_of_a_map_can_be_read():
    """Far coordinates have few numbers that do not run into each other, large targets no 1e6."""
    metres = np.array([178_500.0, 329_700.0]) + 3000 * PLACES * [1, 1.4]
    figure = draw_residuals(metres, 1e6 * Y, 1e6 * MEAN, base=1e6 * MEAN, label="price")
    figure.canvas.draw()
    panels, bars = figure.axes[:4], figure.axes[4:]
    for axes in panels:
        boxes = [label.get_window_extent() for label in axes.get_xticklabels() if label.get_text()]
        boxes = [box for box in boxes if box.width]
        assert all(a.x1 < b.x0 for a, b in pairwise(boxes))
    assert panels[2].get_xticklabels()[1].get_text().isdigit()
    assert any(label.get_text() == "500,000" for label in bars[0].get_yticklabels())
    small = draw_residuals(PLACES, Y, MEAN, label="rate")
    small.canvas.draw()
    assert any(label.get_text() == "0.5" for label in small.axes[3].get_yticklabels())


def test_a_strip_of_the_earth_fills_its_panel():
    """Degrees keep their shape, but not where a map would be a line."""
    pole = np.column_stack([89.8 + PLACES[:, 0] / 10, 360 * PLACES[:, 1] - 180])
    aspects = [
        draw_residuals(places, Y, MEAN, geographic=True).axes[0].get_aspect()
        for places in (pole, 50 + PLACES)
    ]
    assert aspects[0] == "auto" and aspects[1] == pytest.approx(1.57, abs=0.03)

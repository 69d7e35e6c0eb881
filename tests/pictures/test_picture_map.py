"""Maps: where points stand, what colours mean, and which panels there are."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from trellis.errors import DataError
from trellis.pictures import draw_map

pytest.importorskip("matplotlib", reason="matplotlib is not installed")

PLACES = np.array([[0.0, 1.0], [1.0, 3.0], [2.0, 2.0], [3.0, 0.5]])
VALUES = np.array([4.0, 1.0, 3.0, 2.0])


def points(axes):
    """Values by place, as drawn."""
    drawn = axes.collections[-1] if len(axes.collections) == 1 else next(
        c for c in axes.collections if c.get_array() is not None
    )  # fmt: skip
    found = zip(drawn.get_offsets().tolist(), drawn.get_array().tolist(), strict=True)
    return {tuple(place): value for place, value in found}, drawn


def titles(figure, n):
    return [axes.get_title() for axes in figure.axes[:n]]


def test_values_at_their_places():
    figure = draw_map(PLACES, VALUES, label="height [m]", names=("east", "north"))
    axes = figure.axes[0]
    found, drawn = points(axes)
    assert found == dict(zip(map(tuple, PLACES.tolist()), VALUES.tolist(), strict=True))
    assert drawn.get_array().tolist() == [1, 2, 3, 4]  # what is much lies on top
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("east", "north")
    assert figure.axes[1].get_ylabel() == "height [m]"  # of the bar
    assert axes.get_title() == ""
    assert axes.get_aspect() == 1.0
    assert axes.get_legend() is None


def test_latitudes_run_upwards():
    places = [[60.0, 10.0], [60.5, 11.0]]
    axes = draw_map(places, [1.0, 2.0], geographic=True).axes[0]
    assert set(points(axes)[0]) == {(10.0, 60.0), (11.0, 60.5)}
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("longitude [°]", "latitude [°]")
    assert axes.get_aspect() == pytest.approx(1 / np.cos(np.radians(60.25)))
    named = draw_map(places, [1.0, 2.0], geographic=True, names=("lat", "lon")).axes[0]
    assert named.get_xlabel() == "lon"


def test_far_off_values_share_the_ends():
    values = np.r_[np.linspace(0, 1, 99), 1000.0]
    figure = draw_map(np.random.default_rng(0).random((100, 2)), values)
    low, high = points(figure.axes[0])[1].get_clim()
    assert 0 <= low < 0.05
    assert 0.9 < high <= 1.0


def test_widths_of_intervals():
    lower, upper = VALUES - [1, 2, 3, 4], VALUES + 1
    figure = draw_map(PLACES, VALUES, lower=lower, upper=upper)
    found, _ = points(figure.axes[1])
    assert found[0.0, 1.0] == 2
    assert found[3.0, 0.5] == 5
    assert titles(figure, 2) == ["value", "width of the interval"]
    assert titles(draw_map(PLACES, VALUES, std=VALUES), 2)[1] == "standard deviation"


def test_observed_points_have_rings():
    axes = draw_map(PLACES, VALUES, observed=[True, False, False, True]).axes[0]
    _, drawn = points(axes)
    rings = dict(zip(drawn.get_array().tolist(), drawn.get_linewidths(), strict=True))
    assert rings[4.0] == rings[2.0] > 2 * rings[1.0] == 2 * rings[3.0]
    assert axes.get_legend_handles_labels()[1] == ["observed"]


def test_observed_numbers_have_a_panel_on_the_same_scale():
    observed = np.array([10.0, np.nan, 3.0, np.nan])
    figure = draw_map(PLACES, VALUES, observed=observed, std=VALUES, title="All")
    predicted, seen, _ = figure.axes[:3]
    assert set(points(seen)[0]) == {(0.0, 1.0), (2.0, 2.0)}
    assert points(predicted)[1].get_clim() == points(seen)[1].get_clim()
    assert titles(figure, 3) == ["value, predicted", "value, observed", "standard deviation"]
    assert figure.get_suptitle() == "All"


@pytest.mark.parametrize(
    "edges",
    [
        [[0, 1], [1, 0], [1, 2], [2, 2]],
        csr_array(([1.0, 1.0, 1.0, 2.0], ([0, 1, 1, 2], [1, 0, 2, 2])), shape=(4, 4)),
    ],
    ids=["pairs", "sparse"],
)
def test_edges(edges):
    axes = draw_map(PLACES, VALUES, edges=edges).axes[0]
    segments = [s.tolist() for s in axes.collections[0].get_segments()]
    assert segments == [[[0, 1], [1, 3]], [[1, 3], [2, 2]]]


def test_values_that_are_not_known():
    values = np.array([1.0, np.nan, 2.0, 3.0])
    axes = draw_map(PLACES, values).axes[0]
    assert set(points(axes)[0].values()) == {1, 2, 3}
    crosses = [c for c in axes.collections if c.get_array() is None]
    assert crosses[0].get_offsets().tolist() == [[1, 3]]


@pytest.mark.parametrize("n", [1, 2])
def test_few_points(n, tmp_path):
    draw_map(PLACES[:n], VALUES[:n], path=tmp_path / "map.png")
    assert (tmp_path / "map.png").stat().st_size > 1000


def test_quantities_that_are_not_of_a_kind():
    axes = draw_map([[0, 0], [1, 1000]], [1.0, 2.0]).axes[0]
    assert axes.get_aspect() == "auto"


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"std": VALUES, "lower": VALUES, "upper": VALUES}, "give std, or lower and upper"),
        ({"lower": VALUES}, "intervals have two ends"),
        ({"std": -VALUES}, "the standard deviation of point 0 is negative: -4"),
        ({"lower": VALUES + 1, "upper": VALUES}, "the width of the interval of point 0 is neg"),
        ({"std": [1.0]}, r"std have shape \(1,\); expected \(4,\)"),
        ({"std": [np.nan] * 4}, "no point has a finite standard deviation"),
        ({"observed": [True]}, r"observed have shape \(1,\)"),
        ({"edges": [[0, 4]]}, "edges hold 4"),
        ({"edges": csr_array((3, 3))}, r"edges have shape \(3, 3\); expected \(4, 4\)"),
        ({"geographic": "yes"}, "geographic must be True or False"),
        ({"names": ["x"]}, "names must be those of the two coordinates, got 1"),
        ({"label": 3}, "label must be a string"),
    ],
)
def test_what_is_refused(how, message):
    with pytest.raises(DataError, match=message):
        draw_map(PLACES, VALUES, **how)


def test_places_that_are_refused():
    with pytest.raises(DataError, match=r"coordinates have shape \(4,\)"):
        draw_map(VALUES, VALUES)
    with pytest.raises(DataError, match="coordinates hold nan"):
        draw_map([[0, np.nan]], [1.0])
    with pytest.raises(DataError, match="no point has a finite value"):
        draw_map(np.empty((0, 2)), [])
    with pytest.raises(DataError, match="no point has a finite value"):
        draw_map([[0, 1]], [np.nan])
    with pytest.raises(DataError, match="some latitudes are beyond 90"):
        draw_map([[121.0, 38.0]], [1.0], geographic=True)

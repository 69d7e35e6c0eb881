"""The gate that is learned from frame pairs."""

from __future__ import annotations

import numpy as np
import pytest

from tracking_problems import frame_pair
from trellis.datasets import simulate_cells
from trellis.errors import DataError
from trellis.tracking import TrackingModel
from trellis.tracking.gates import learned_gate, usual_reach
from trellis.tracking.objects import PairAnnotation


def test_gate_grows_with_the_longest_links():
    near, far = (
        frame_pair([(0, 0)], [(0, step)], PairAnnotation(((10, 20, "move"),))) for step in (2, 6)
    )
    assert 2 < learned_gate([near]) < learned_gate([near, far])
    assert learned_gate([near, far]) > 6


def test_every_kind_of_link_counts():
    """However few divisions there are: a daughter may be farther than any cell moves."""
    still = frame_pair([(0, 0)], [(0, 1)], PairAnnotation(((10, 20, "move"),)))
    links = ((10, 20, "division"), (10, 21, "division"))
    parted = frame_pair([(0, 0)], [(0, 9), (0, -9)], PairAnnotation(links))
    assert learned_gate([still] * 300 + [parted]) > 9


def test_most_annotated_links_are_within():
    pairs = simulate_cells(60, 6, lab="b", seed=0)
    gate = learned_gate(pairs)
    steps = [
        np.hypot(*(p.target.position[b] - p.source.position[a]))
        for p in pairs for a, b, _ in p.annotation.links
    ]  # fmt: skip
    assert np.mean(np.array(steps) <= gate) > 0.99


def test_without_links_neighbours_decide():
    grid = [(x, y) for x in range(0, 40, 10) for y in range(0, 40, 10)]
    moved = [(x + 1, y) for x, y in grid]
    assert 10 <= learned_gate([frame_pair(grid, moved)]) <= 40
    # An annotation without links, or of links without length, says nothing of distances.
    note = PairAnnotation((), (), ())
    assert learned_gate([frame_pair(grid, moved, note)]) == learned_gate([frame_pair(grid, moved)])
    still = PairAnnotation(((10, 20, "move"),), (), ())
    assert learned_gate([frame_pair(grid, grid, still)]) > 0


def test_the_gate_scales_with_the_data():
    rng = np.random.default_rng(0)
    a, b = rng.random((9, 2)), rng.random((8, 2))
    one, ten = (learned_gate([frame_pair(s * a, s * b)]) for s in (1, 10))
    assert ten == pytest.approx(10 * one)


@pytest.mark.parametrize(
    ("source", "target"),
    [([], []), ([(0, 0)], []), ([], [(0, 0)]), ([(1, 1)], [(1, 1)]), ([(1, 1)] * 3, [(1, 1)] * 2)],
)
def test_always_positive(source, target):
    gate = learned_gate([frame_pair(source, target)])
    assert 0 < gate < np.inf


def test_what_cannot_be_is_refused_where_hypotheses_are_made():
    lost = frame_pair([(0, 0), (np.nan, 0)], [(0, 1), (0, 3)])
    assert 0 < learned_gate([lost]) < np.inf
    unknown = frame_pair([(0, 0)], [(0, 1)], PairAnnotation(((10, 99, "move"),)))
    assert learned_gate([unknown]) > 0
    with pytest.raises(DataError, match="frame 3: the centre of object 11 is not finite"):
        TrackingModel().fit([lost])
    with pytest.raises(DataError, match="names object 99"):
        TrackingModel().fit([unknown])


def test_usual_reach_is_a_few_steps_and_at_least_half_a_spacing():
    rng = np.random.default_rng(0)
    here = 100 * np.stack(np.meshgrid(range(8), range(8)), -1).reshape(-1, 2).astype(float)
    slow, fast = (here + step * rng.normal(size=here.shape) for step in (0.5, 30.0))
    assert usual_reach([frame_pair(here, slow)]) == pytest.approx(50)
    assert 70 < usual_reach([frame_pair(here, fast)]) < 150
    assert usual_reach([frame_pair(3 * here, 3 * slow)]) == pytest.approx(150)


@pytest.mark.parametrize(
    ("source", "target"),
    [([], []), ([(0, 0)], []), ([], [(0, 0)]), ([(1, 1)], [(1, 1)]), ([(1, 1)] * 3, [(1, 1)] * 2)],
)
def test_usual_reach_is_always_positive(source, target):
    assert 0 < usual_reach([frame_pair(source, target)]) < np.inf

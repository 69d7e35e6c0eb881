"""Folds at random and by cells of the map."""

from __future__ import annotations

import numpy as np
import pytest

from trellis.errors import DataError
from trellis.regression.folds import blocked_folds, map_cells, random_folds

POINTS = np.random.default_rng(0).uniform(size=(500, 2))


def test_at_random():
    fold = random_folds(101, 5, 3)
    assert sorted(np.bincount(fold)) == [20, 20, 20, 20, 21]
    assert (fold == random_folds(101, 5, 3)).all()
    assert (fold != random_folds(101, 5, 4)).any()


@pytest.mark.parametrize("how", ["kmeans", "grid"])
def test_cells_stay_whole_and_folds_are_even(how):
    fold, cells = blocked_folds(POINTS, 5, how=how)
    for cell in np.unique(cells):
        assert len(np.unique(fold[cells == cell])) == 1
    assert 30 <= len(np.unique(cells)) <= 60
    assert np.bincount(fold).min() > 70
    apart = [np.ptp(POINTS[cells == c], axis=0).max() for c in np.unique(cells)]
    assert max(apart) < 0.45
    again, _ = blocked_folds(POINTS, 5, how=how)
    assert (again == fold).all()


def test_degrees_are_kilometres():
    """Far north a degree of longitude is short: cells are squares on the ground."""
    lat_lon = np.column_stack([60 + POINTS[:, 0], 20 + 2 * POINTS[:, 1]])
    cells = map_cells(lat_lon, 25, how="grid", geographic=True)
    sizes = np.array([np.ptp(lat_lon[cells == c], axis=0) for c in np.unique(cells)])
    ratio = sizes[:, 1].max() / sizes[:, 0].max()
    assert 1.6 < ratio < 2.4
    across = np.column_stack([np.zeros(40), np.r_[np.full(20, 179.9), np.full(20, -179.9)]])
    across[:, 0] = np.arange(40) / 400
    assert len(np.unique(map_cells(across, 2, geographic=True))) == 2
    assert map_cells(across[[0, 39]], 1, geographic=True).tolist() == [0, 0]


def test_few_places():
    assert map_cells(np.zeros((4, 2)), 3).tolist() == [0, 0, 0, 0]
    assert map_cells(np.zeros((4, 2)), 3, how="grid").tolist() == [0, 0, 0, 0]
    with pytest.raises(DataError, match="the map has 1 cells, too few for 2 folds; ask for fewer"):
        blocked_folds(np.zeros((4, 2)), 2)

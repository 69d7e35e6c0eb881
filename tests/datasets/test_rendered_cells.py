"""Drawn movies: that what is drawn is what was simulated."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from trellis.datasets import render_cells, simulate_cells, simulate_volume
from trellis.errors import DataError
from trellis.tracking import Objects, read_label_images

MOVIE = simulate_cells(25, 5, lab="b", seed=4)


def test_drawn_cells_look_as_simulated():
    drawn = render_cells(MOVIE)
    pairs = read_label_images(drawn.masks, drawn.images, drawn.links)
    assert [pair.annotation for pair in pairs] == [pair.annotation for pair in MOVIE]
    assert all(
        np.array_equal(p.source.ids, q.source.ids) for p, q in zip(pairs, MOVIE, strict=True)
    )
    seen, true = pairs[0].source, MOVIE[0].source
    low, high = np.array(MOVIE[0].extent).reshape(2, 2)
    free = np.minimum(true.position - low, high - true.position).min(axis=1) > 12
    assert free.sum() > 5
    assert np.median(np.abs(seen.position - true.position)[free]) < 1
    assert np.median(np.abs(seen["area"] / true["area"] - 1)[free]) < 0.1
    assert np.median(np.abs(seen["mean_intensity"] / true["mean_intensity"] - 1)[free]) < 0.1
    long = free & (true["eccentricity"] > 0.7)
    turn = np.mod(seen["orientation"] - true["orientation"], np.pi)[long]
    assert np.median(np.minimum(turn, np.pi - turn)) < 0.15


def test_every_cell_has_a_pixel():
    for lab in ("a", "b"):
        movie = simulate_cells(40, 4, lab=lab, seed=7)
        for mask, pair in zip(render_cells(movie).masks, movie, strict=False):
            assert set(np.unique(mask)) - {0} == set(pair.source.ids + 1)


def test_volumes():
    movie = simulate_volume(8, 10, seed=3)
    other = simulate_volume(8, 10, seed=3)
    np.testing.assert_array_equal(movie.masks, other.masks)
    np.testing.assert_array_equal(movie.images, other.images)
    assert movie.links == other.links
    pairs = read_label_images(movie.masks, movie.images, movie.links)
    kinds = [link[2] for pair in pairs for link in pair.annotation.links]
    assert kinds.count("division") >= 4
    assert kinds.count("division") % 2 == 0
    volume = pairs[0].source["area"]
    assert 4 / 3 * np.pi * 2.5**3 < np.median(volume) < 4 / 3 * np.pi * 6**3


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: render_cells([]), "there are no frame pairs to draw"),
        (lambda: render_cells(MOVIE[::2]), "frame 2 does not follow that of frame 0; draw one"),
        (lambda: render_cells(MOVIE, seed=-1), "seed must be"),
        (lambda: render_cells([replace(MOVIE[0], extent=())]), "two dimensions and have an extent"),
        (
            lambda: render_cells([replace(MOVIE[0], source=Objects([0], [[1.0, 1.0]]))]),
            "the objects have no column 'area' to draw ellipses by",
        ),
        (lambda: simulate_volume(0, seed=0), "n_cells must be"),
        (lambda: simulate_volume(1, 1, seed=0), "n_frames must be"),
        (lambda: simulate_volume(size=(9, 9), seed=0), "size must be three numbers of pixels, at"),
        (lambda: simulate_volume(size=(9, 9, 2), seed=0), "size must be three numbers of pixels"),
    ],
)
def test_what_cannot_be_drawn(make, message):
    with pytest.raises(DataError, match=message):
        make()

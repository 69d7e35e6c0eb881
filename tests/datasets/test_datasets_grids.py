"""Images on grids: their edges, what nodes see, and what is refused."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pytest

from trellis import DataError
from trellis.datasets import TEXTURES, grid_edges, noisy_digits, textures


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (1, 4), (3, 1), (2, 3), (5, 4)])
def test_edges_join_neighbours(rows, columns):
    edges = grid_edges(rows, columns)
    assert edges.shape == (rows * (columns - 1) + (rows - 1) * columns, 2)
    a, b = edges.T
    away = abs(a // columns - b // columns) + abs(a % columns - b % columns)
    assert (away == 1).all()
    assert len({frozenset(e) for e in edges.tolist()}) == len(edges)


def checked_neighbours(corpus, rows, columns):
    """All images as arrays of symbols; the columns of neighbours must be views of them."""
    images = np.array(corpus.columns["pixel"].strings(), object).reshape(-1, rows, columns)
    padded = np.pad(images, ((0, 0), (1, 1), (1, 1)), constant_values="off")
    for name, view in {
        "north": padded[:, :-2, 1:-1], "south": padded[:, 2:, 1:-1],
        "west": padded[:, 1:-1, :-2], "east": padded[:, 1:-1, 2:],
    }.items():  # fmt: skip
        assert corpus.columns[name].strings() == view.ravel().tolist(), name
    return images


def test_digits():
    from sklearn.datasets import load_digits

    digits = noisy_digits(levels=2, noise=0.0)
    checked_neighbours(digits, 8, 8)
    true = load_digits().images.ravel()
    assert digits.labels.classes == ("0", "1")
    assert digits.labels.tolist() == ["1" if v >= 8 else "0" for v in true]
    # Without noise the eight levels that are seen say the label.
    seen = digits.columns["pixel"].strings()
    assert all((int(s) >= 4) == (v >= 8) for s, v in zip(seen, true, strict=True))
    assert len(digits.edges) == 1797 * 112
    assert digits.edge_types is None


def test_noise_depends_on_the_seed():
    one, again, other = (noisy_digits(random_state=seed) for seed in (0, 0, 1))
    pixels = [c.columns["pixel"].codes for c in (one, again, other)]
    assert (pixels[0] == pixels[1]).all()
    assert (pixels[0] != pixels[2]).mean() > 0.2
    assert one.label_lists() == other.label_lists()


def test_textures_are_what_they_say():
    corpus = textures(60, size=20, coherence=1.0)
    images = checked_neighbours(corpus, 20, 20)
    labels = np.array([x for y in corpus.label_lists() for x in y]).reshape(images.shape)
    assert set(labels.ravel()) == set(TEXTURES)
    west_same = images[:, :, 1:] == images[:, :, :-1]
    assert west_same[labels[:, :, 1:] == "rows"].all()
    assert not west_same[labels[:, :, 1:] == "checks"].any()
    north_same = images[:, 1:] == images[:, :-1]
    assert north_same[labels[:, 1:] == "columns"].all()
    speckle = labels[:, :, 1:] == "speckle"
    assert west_same[speckle].mean() == pytest.approx(0.5, abs=0.05)


def test_plots_are_few():
    corpus = textures(20, size=10, plots=1)
    assert all(len(Counter(labels)) == 1 for labels in corpus.label_lists())
    mixed = textures(20, size=10, plots=8)
    assert any(len(Counter(labels)) > 2 for labels in mixed.label_lists())


def test_coherence_of_zero_is_noise():
    corpus = textures(50, size=12, coherence=0.0)
    images = np.array(corpus.columns["pixel"].strings()).reshape(-1, 12, 12)
    assert (images[:, :, 1:] == images[:, :, :-1]).mean() == pytest.approx(0.5, abs=0.03)


def test_types_of_edges():
    corpus = textures(2, size=3, typed=True)
    a, b = corpus.edges.T
    expected = np.where(b - a == 1, "across", "down").tolist()
    assert corpus.edge_types.strings() == expected
    assert Counter(expected) == {"across": 12, "down": 12}
    taken = corpus.take([1])
    assert taken.edges.max() == 8


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: grid_edges(0, 3), "rows must be a positive integer, got 0"),
        (lambda: grid_edges(2, 1.5), "columns must be a positive integer, got 1.5"),
        (lambda: noisy_digits(levels=1), "levels must be an integer from 2 to 8, got 1"),
        (lambda: noisy_digits(noise=-1), "noise must be a number of at least 0, got -1"),
        (lambda: noisy_digits(noise=float("nan")), "noise must be a number of at least 0, got nan"),
        (lambda: noisy_digits(noise="much"), "noise must be a number of at least 0, got 'much'"),
        (lambda: textures(0), "n_images must be a positive integer, got 0"),
        (lambda: textures(1, size=0), "size must be a positive integer, got 0"),
        (lambda: textures(1, plots=-2), "plots must be a positive integer, got -2"),
        (lambda: textures(1, coherence=1.5), "coherence must be a number from 0 to 1, got 1.5"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(DataError, match=re.escape(message)):
        call()

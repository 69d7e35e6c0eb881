"""Snakes: walks that never meet themselves, colours that say where they go."""

from __future__ import annotations

import numpy as np
import pytest

from trellis import DataError
from trellis.datasets import snakes

STEPS = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}


def shape_of(corpus, s: int) -> tuple[int, int]:
    """Rows and columns, from the edges across: each row but its last cell begins one."""
    n, here = int(corpus.lengths[s]), corpus.edges[:, 0] >= corpus.offsets[s]
    here &= corpus.edges[:, 0] < corpus.offsets[s + 1]
    rows = n - int((corpus.edge_types.codes[here] == 0).sum())
    return rows, n // rows


@pytest.mark.parametrize("length", [2, 5, 10, 60])
def test_labels_count_along_the_colours(length):
    corpus = snakes(30, length=length, random_state=3)
    assert len(corpus) == 30
    for s, (sample, labels) in enumerate(zip(corpus, corpus.label_lists(), strict=True)):
        rows, columns = shape_of(corpus, s)
        label = np.array(labels).reshape(rows, columns)
        colour = np.array(sample.columns["here"], object).reshape(rows, columns)
        assert ((colour == "grass") == (label == 0)).all()
        assert (label[[0, -1]] == 0).all() and (label[:, [0, -1]] == 0).all()
        for k in range(1, length):
            (at,) = np.argwhere(label == k)
            assert label[tuple(at + STEPS[colour[tuple(at)]])] == k + 1
        (head,) = np.argwhere(label == length)
        assert label[tuple(head + STEPS[colour[tuple(head)]])] == 0
        padded = np.pad(colour, 1, constant_values="grass")
        for name, (r, c) in {"nw": (0, 0), "n": (0, 1), "e": (1, 2), "se": (2, 2)}.items():
            view = padded[r : r + rows, c : c + columns]
            assert sample.columns[name] == view.ravel().tolist()


def test_the_seed_decides_and_bad_sizes_are_refused():
    assert snakes(3).label_lists() == snakes(3).label_lists() != snakes(3, random_state=1)
    assert len(snakes(0)) == 0
    with pytest.raises(DataError, match="length must be an integer from 2 to 100"):
        snakes(3, length=1)
    with pytest.raises(DataError, match="n_images must be"):
        snakes(-1)

"""Snakes: images in which only counting from cell to cell tells the labels.

A snake of ten cells lies on a grid, a walk that never meets itself. The colour of a cell says where
the snake goes from there: ``up``, ``down``, ``left`` or ``right``; around it is ``grass``. The head
looks on as it came, at grass: a snake that bites itself has no end that could be told. Cells are to
be labelled with their number, 1 at the tail to 10 at the head, all else with 0. What is around a
cell shows the two ends; the others are told by their neighbours alone. (After the game of the same
name, a test of structured prediction since Nowozin, Rother, Bagon, Sharp, Yao & Kohli, *Decision
tree fields*, ICCV 2011.)

Every cell is a node with nine symbols, the colours of the cells around it row by row (``nw``,
``n``, ``ne``, ``w``, ``here``, ``e``, ``sw``, ``s``, ``se``), and edges to the right and downwards,
of the types "across" and "down". Images are as large as the snake and a rim of grass.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trellis.corpus import Column, Corpus
from trellis.corpus.corpus import bounds
from trellis.corpus.labels import Labels
from trellis.datasets.grids import grid_edges
from trellis.domains import whole

__all__ = ["snakes"]

_COLOURS = ("grass", "up", "down", "left", "right")
_STEPS = np.array([(0, 0), (-1, 0), (1, 0), (0, -1), (0, 1)])
_AROUND = ("nw", "n", "ne", "w", "here", "e", "sw", "s", "se")


def snakes(n_images: int, *, length: int = 10, random_state: int = 0) -> Corpus:
    """Images of snakes on grids.

    Parameters
    ----------
    n_images : int
    length : int
        Cells of a snake, from 2 to 100.
    random_state : int
        Seed.

    Returns
    -------
    Corpus
        With labels, edges and types of edges.

    Examples
    --------
    >>> from trellis.datasets import snakes
    >>> images = snakes(2)
    >>> images.columns["here"].strings()[:3], sorted(set(images.label_lists()[0]))[-3:]
    (['grass', 'grass', 'grass'], [8, 9, 10])
    >>> images.edge_types.values
    ['across', 'down']
    """
    whole(0).check("n_images", n_images)
    whole(2, 100).check("length", length)
    rng = np.random.default_rng(random_state)
    drawn = [_image(length, rng) for _ in range(n_images)]
    sizes = np.array([colour.size for colour, _ in drawn], np.int64)
    offsets = bounds(sizes)
    edges, types, views = [np.zeros((0, 2), np.int64)], [np.zeros(0, np.int32)], []
    for (colour, _), first in zip(drawn, offsets[:-1].tolist(), strict=True):
        rows, columns = colour.shape
        pairs = grid_edges(rows, columns)
        edges.append(pairs + first)
        types.append((np.arange(len(pairs)) >= rows * (columns - 1)).astype(np.int32))
        padded = np.pad(colour, 1)
        views.append(
            np.stack([padded[r : r + rows, c : c + columns].ravel()
                      for r in range(3) for c in range(3)])
        )  # fmt: skip
    seen = np.concatenate([np.zeros((9, 0), np.int32), *views], axis=1)
    labels = np.concatenate([np.zeros(0, np.int32), *(part.ravel() for _, part in drawn)])
    return Corpus(
        offsets,
        {name: Column(row.astype(np.int32), list(_COLOURS))
         for name, row in zip(_AROUND, seen, strict=True)},
        labels=Labels.from_codes(labels, range(length + 1)),
        edges=np.concatenate(edges),
        edge_types=Column(np.concatenate(types), ["across", "down"]),
    )  # fmt: skip


def _image(length: int, rng: np.random.Generator) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Colours and labels of one snake."""
    way: list[int] = []
    while len(way) < length - 1:  # a snake that is caught in itself, or bites itself
        way = _walk(length, rng)
    cells = np.concatenate([[(0, 0)], np.cumsum(_STEPS[way], axis=0)])
    cells = cells - cells.min(axis=0) + 1
    colour = np.zeros(cells.max(axis=0) + 2, np.int32)
    label = np.zeros_like(colour)
    colour[tuple(cells.T)] = np.append(way, way[-1])
    label[tuple(cells.T)] = np.arange(1, length + 1)
    return colour, label


def _walk(length: int, rng: np.random.Generator) -> list[int]:
    """Steps to cells that are free, until there is none."""
    at, taken, way = (0, 0), {(0, 0)}, list[int]()
    while len(way) < length - 1:
        to = {k: (at[0] + int(_STEPS[k, 0]), at[1] + int(_STEPS[k, 1])) for k in range(1, 5)}
        free = [k for k, cell in to.items() if cell not in taken]
        if not free:
            break
        way.append(free[int(rng.integers(len(free)))])
        at = to[way[-1]]
        taken.add(at)
    ahead = at[0] + int(_STEPS[way[-1], 0]), at[1] + int(_STEPS[way[-1], 1])
    return [] if ahead in taken else way

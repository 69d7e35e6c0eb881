"""Images as grids of pixels that are to be labelled, each joined to the four around it.

Every pixel is a node with five symbols: its own noisy observation (``pixel``) and those of the
pixels around it (``north``, ``south``, ``west``, ``east``; ``off`` beyond the rim). Nodes are
numbered row by row, so node r · columns + c is in row r and column c.

- :func:`noisy_digits`: scanned digits whose grey levels are to be told from noisy ones. A pixel
  alone says a good deal about its label.
- :func:`textures`: plots of different textures, to be told from black and white pixels. A pixel
  alone says nothing, and with its neighbours only a little.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trellis.corpus import Column, Corpus
from trellis.corpus.labels import Labels
from trellis.domains import number, whole

__all__ = ["TEXTURES", "grid_edges", "noisy_digits", "textures"]

TEXTURES = ("checks", "columns", "rows", "speckle")
"""The labels of :func:`textures`."""

_SYMBOLS = 8  # levels of what is seen of a digit's pixel
_MOST = 16.0  # darkest value of scikit-learn's digits


def grid_edges(rows: int, columns: int) -> NDArray[np.int64]:
    """Edges of a grid: those within rows, left to right, then those within columns, downwards.

    Parameters
    ----------
    rows, columns : int
        Size of the grid; nodes are numbered row by row.

    Returns
    -------
    int64 array (rows · (columns − 1) + (rows − 1) · columns, 2)

    Examples
    --------
    >>> from trellis.datasets import grid_edges
    >>> grid_edges(2, 2).tolist()
    [[0, 1], [2, 3], [0, 2], [1, 3]]
    """
    whole(1).check("rows", rows)
    whole(1).check("columns", columns)
    at = np.arange(rows * columns, dtype=np.int64).reshape(rows, columns)
    across = np.stack([at[:, :-1].ravel(), at[:, 1:].ravel()], axis=1)
    down = np.stack([at[:-1].ravel(), at[1:].ravel()], axis=1)
    return np.concatenate([across, down])


def noisy_digits(
    *, levels: int = 4, noise: float = 5.0, typed: bool = False, random_state: int = 0
) -> Corpus:
    """Scikit-learn's 1,797 scanned digits (8 × 8 pixels) with noise, labelled with the true levels.

    Parameters
    ----------
    levels : int
        Number of grey levels that are told apart, 2 to 8; the labels are "0" (paper) and so on.
    noise : float
        Standard deviation of the noise that is added to values from 0 to 16.
    typed : bool
        Give edges within rows the type "across" and those within columns "down".
    random_state : int
        Seed of the noise.

    Returns
    -------
    Corpus
        With labels and edges, in scikit-learn's order.

    Examples
    --------
    >>> from trellis.datasets import noisy_digits
    >>> digits = noisy_digits(levels=2)
    >>> len(digits), digits.lengths[0].item(), digits.labels.classes
    (1797, 64, ('0', '1'))
    """
    whole(2, _SYMBOLS).check("levels", levels)
    number(at_least=0).check("noise", noise)
    from sklearn.datasets import load_digits

    values = load_digits().images
    rng = np.random.default_rng(random_state)
    seen = np.clip(values + noise * rng.standard_normal(values.shape), 0, _MOST)
    return _corpus(
        _binned(seen, _SYMBOLS), [str(i) for i in range(_SYMBOLS)],
        _binned(values, levels), [str(i) for i in range(levels)], typed,
    )  # fmt: skip


def textures(
    n_images: int,
    *,
    size: int = 24,
    plots: int = 5,
    coherence: float = 0.8,
    typed: bool = False,
    random_state: int = 0,
) -> Corpus:
    """Square images that fall into plots, each of one of four textures, the labels.

    The plots are the points closest to one of some random centres. With probability ``coherence``
    a pixel of "rows" is like its neighbour to the west, of "columns" like that to the north, of
    "checks" unlike that to the west; else, and in "speckle", it is black or white by chance.

    Parameters
    ----------
    n_images : int
    size : int
        Rows and columns of an image.
    plots : int
        Number of plots; two of them may have the same texture.
    coherence : float
        From 0 (nothing can be told) to 1.
    typed : bool
        Give edges within rows the type "across" and those within columns "down".
    random_state : int
        Seed.

    Returns
    -------
    Corpus
        With labels and edges.

    Examples
    --------
    >>> from trellis.datasets import textures
    >>> images = textures(3, size=10)
    >>> len(images), images.lengths[0].item(), len(images.edges)
    (3, 100, 540)
    """
    for name, value in (("n_images", n_images), ("size", size), ("plots", plots)):
        whole(1).check(name, value)
    number(at_least=0, at_most=1).check("coherence", coherence)
    rng = np.random.default_rng(random_state)
    centres = rng.uniform(0, size, (n_images, plots, 2))
    kinds = rng.integers(len(TEXTURES), size=(n_images, plots))
    at = np.indices((size, size)).transpose(1, 2, 0) + 0.5
    away = ((at[None, :, :, None] - centres[:, None, None]) ** 2).sum(axis=-1)
    labels = np.take_along_axis(kinds, away.argmin(axis=-1).reshape(n_images, -1), axis=1)
    labels = labels.reshape(n_images, size, size)

    pixels = rng.integers(2, size=labels.shape)
    follows = rng.random(labels.shape) < coherence
    for r in range(size):
        for c in range(size):
            kind, follow = labels[:, r, c], follows[:, r, c]
            if c:
                west = pixels[:, r, c - 1]
                here = follow & (kind == TEXTURES.index("rows"))
                pixels[here, r, c] = west[here]
                here = follow & (kind == TEXTURES.index("checks"))
                pixels[here, r, c] = 1 - west[here]
            if r:
                here = follow & (kind == TEXTURES.index("columns"))
                pixels[here, r, c] = pixels[here, r - 1, c]
    return _corpus(pixels, ["white", "black"], labels, list(TEXTURES), typed)


def _corpus(
    pixels: NDArray[np.int64],
    symbols: list[str],
    labels: NDArray[np.int64],
    names: list[str],
    typed: bool,
) -> Corpus:
    """Corpus of images (S, rows, columns)."""
    n_images, rows, columns = pixels.shape
    n = rows * columns
    off = len(symbols)
    padded = np.full((n_images, rows + 2, columns + 2), off, np.int32)
    padded[:, 1:-1, 1:-1] = pixels
    views = {
        "pixel": padded[:, 1:-1, 1:-1],
        "north": padded[:, :-2, 1:-1],
        "south": padded[:, 2:, 1:-1],
        "west": padded[:, 1:-1, :-2],
        "east": padded[:, 1:-1, 2:],
    }
    edges = grid_edges(rows, columns)
    offsets = np.arange(n_images + 1, dtype=np.int64) * n
    types = None
    if typed:
        codes = (np.arange(len(edges)) >= rows * (columns - 1)).astype(np.int32)
        types = Column(np.tile(codes, n_images), ["across", "down"])
    return Corpus(
        offsets,
        {name: Column(view.ravel(), [*symbols, "off"]) for name, view in views.items()},
        labels=Labels.from_codes(labels.ravel().astype(np.int32), names),
        edges=(edges[None] + offsets[:-1, None, None]).reshape(-1, 2),
        edge_types=types,
    )


def _binned(values: NDArray[np.float64], n: int) -> NDArray[np.int64]:
    """Values from 0 to 16 as n levels of equal width."""
    return np.minimum((values * (n / _MOST)).astype(np.int64), n - 1)

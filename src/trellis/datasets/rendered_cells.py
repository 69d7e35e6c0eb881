r"""Movies of images of cells: ellipses drawn from a simulated movie, and ellipsoids in space.

A cell with centre c, semi-axes s and axes R covers the pixels p with
:math:`\lVert \operatorname{diag}(s)^{-1} R^\top (p - c) \rVert \le 1`; where two would, the one for
which this is less. Label images hold id + 1; intensities are the cell's own with noise on a dim
background.

In space a cell grows from volume V to 2V within a cycle of random length, divides along a random
axis into two of half its volume, wanders, and is pushed off by those that it overlaps. Cells whose
centre leaves the field are not seen any more, and none comes in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import Float64s, Int64s
from trellis.domains import whole
from trellis.errors import DataError

if TYPE_CHECKING:
    from trellis.tracking.objects import FramePair

__all__ = ["RenderedCells", "render_cells", "simulate_volume"]

_DIM, _NOISE = 10.0, 0.1  # background; relative noise of a pixel
_COLUMNS = ("area", "eccentricity", "orientation")


@dataclass(frozen=True, eq=False)
class RenderedCells:
    """A movie of label images with intensities and true links.

    Attributes
    ----------
    masks : uint16, shape (T, Y, X) or (T, Z, Y, X)
        Label images: the id of an object, plus one; 0 for the background.
    images : float32, of the same shape
        Intensities.
    links : dict of str to list
        True links, a table as :func:`~trellis.tracking.read_label_images` takes it.
    """

    masks: NDArray[np.uint16]
    images: NDArray[np.float32]
    links: dict[str, list[Any]]


def render_cells(pairs: Sequence[FramePair], *, seed: int = 0) -> RenderedCells:
    """Draw a movie in two dimensions, every object as an ellipse of its area and direction.

    Parameters
    ----------
    pairs : sequence of FramePair
        Consecutive frames of one sequence, annotated in full, with the columns area, eccentricity
        and orientation; :func:`simulate_cells` makes them. Areas are in pixels.
    seed : int
        Of the noise.

    Examples
    --------
    >>> from trellis.datasets import simulate_cells
    >>> from trellis.tracking import read_label_images
    >>> movie = simulate_cells(20, 4, seed=0)
    >>> drawn = render_cells(movie)
    >>> read = read_label_images(drawn.masks, drawn.images, drawn.links)
    >>> drawn.masks.shape, len(read), read[0].annotation == movie[0].annotation
    ((4, 169, 169), 3, True)
    """
    if not pairs:
        raise DataError("there are no frame pairs to draw")
    for before, after in pairwise(pairs):
        if (after.sequence, after.frame) != (before.sequence, before.frame + 1):
            raise DataError(
                f"the pair of frame {after.frame} does not follow that of frame {before.frame}; "
                "draw one sequence at a time, without gaps"
            )
    whole(0).check("seed", seed)
    frames = [pair.source for pair in pairs] + [pairs[-1].target]
    low, high = np.array(pairs[0].extent[:2]), np.array(pairs[0].extent[2:])
    if pairs[0].dimensions != 2 or not np.isfinite([*low, *high]).all():
        raise DataError("the movie must be in two dimensions and have an extent")
    shape = tuple(int(n) + 1 for n in np.ceil(high - low)[::-1])
    rng = np.random.default_rng(seed)
    drawn = []
    for objects in frames:
        lacking = [name for name in _COLUMNS if name not in objects]
        if lacking:
            raise DataError(f"the objects have no column {lacking[0]!r} to draw ellipses by")
        flat = np.sqrt(1 - objects["eccentricity"] ** 2)  # short axis over long axis
        long = np.sqrt(objects["area"] / np.pi / flat)
        turn = objects["orientation"]
        axes = np.stack([np.cos(turn), np.sin(turn), -np.sin(turn), np.cos(turn)], axis=1)
        bright = (
            objects["mean_intensity"] if "mean_intensity" in objects else np.full(len(turn), 100.0)
        )
        drawn.append(
            _drawn(
                shape, objects.ids, (objects.position - low)[:, ::-1],
                np.stack([long, long * flat], axis=1),
                axes.reshape(-1, 2, 2).transpose(0, 2, 1), bright, rng,
            )
        )  # fmt: skip
    links = [
        (pair.frame - pairs[0].frame, *link)
        for pair in pairs
        for link in (pair.annotation.links if pair.annotation else ())
    ]
    return _movie(drawn, links)


def simulate_volume(
    n_cells: int = 12, n_frames: int = 8, *, size: Sequence[int] = (32, 80, 80), seed: int
) -> RenderedCells:
    """Simulate cells that move and divide in space, and draw them.

    Parameters
    ----------
    n_cells : int
        Cells in the first frame.
    n_frames : int
        Number of frames.
    size : sequence of 3 int
        Pixels along z, y and x.
    seed : int
        Seed.

    Examples
    --------
    >>> movie = simulate_volume(6, 5, seed=0)
    >>> movie.masks.shape, sorted(set(movie.links["kind"]))
    ((5, 32, 80, 80), ['division', 'move'])
    """
    whole(1).check("n_cells", n_cells)
    whole(2).check("n_frames", n_frames)
    whole(0).check("seed", seed)
    shape = tuple(int(n) for n in size)
    if len(shape) != 3 or min(shape) < 8:
        raise DataError(f"size must be three numbers of pixels, at least 8 each, got {size!r:.80}")
    rng = np.random.default_rng(seed)
    room = np.array(shape, np.float64)
    place = rng.uniform(0.2, 0.8, (n_cells, 3)) * room
    age = rng.uniform(0, 1, n_cells)
    speed = 1 / rng.gamma(20, 8 / 20, n_cells)  # cycles a frame
    drawn = []
    links: list[tuple[int, int, int, str]] = []
    past = np.full(n_cells, -1)
    for t in range(n_frames):
        for _ in range(5):
            place = _apart(place, age)
        inside = ((place > 0) & (place < room - 1)).all(axis=1)
        place, age, speed, past = place[inside], age[inside], speed[inside], past[inside]
        n = len(place)
        many = np.bincount(past[past >= 0], minlength=1) > 1
        links += [
            (t - 1, int(p), i, "division" if many[p] else "move")
            for i, p in enumerate(past.tolist())
            if p >= 0
        ]
        semi = _radius(age)[:, None] * np.exp(rng.normal(0, 0.08, (n, 3)))
        frames = np.linalg.qr(rng.normal(size=(n, 3, 3)))[0]
        drawn.append(_drawn(shape, np.arange(n), place, semi, frames, 100 * (1 + age), rng))
        over = age + speed >= 1
        way = rng.normal(size=(n, 3))
        way *= (0.8 * _radius(age) / np.linalg.norm(way, axis=1))[:, None]
        past = np.concatenate([np.flatnonzero(~over), *[np.flatnonzero(over)] * 2])
        place = np.concatenate([place[~over], place[over] + way[over], place[over] - way[over]])
        place = place + rng.normal(0, 0.8, place.shape)
        age = np.concatenate([(age + speed)[~over], np.zeros(2 * int(over.sum()))])
        speed = np.concatenate([speed[~over], 1 / rng.gamma(20, 8 / 20, 2 * int(over.sum()))])
    return _movie(drawn, links)


def _radius(age: Float64s) -> Float64s:
    """Radius of a ball whose volume doubles from age 0 to 1."""
    radius: Float64s = 4.0 * np.cbrt(1 + age)
    return radius


def _apart(place: Float64s, age: Float64s) -> Float64s:
    """Push cells that overlap a third of the way apart."""
    step = place[:, None] - place[None]
    far = np.linalg.norm(step, axis=2)
    radius = _radius(age)
    into = np.maximum(radius[:, None] + radius[None] - far, 0.0) * (far > 0)
    away = np.divide(into, far, out=np.zeros_like(far), where=far > 0) / 3
    pushed: Float64s = place + (away[:, :, None] * step).sum(axis=1)
    return pushed


def _drawn(
    shape: tuple[int, ...], ids: Int64s, place: Float64s, semi: Float64s, axes: Float64s,
    bright: Float64s, rng: np.random.Generator,
) -> tuple[NDArray[np.uint16], NDArray[np.float32]]:  # fmt: skip
    """Labels and intensities of a frame; centres and axes in the order of the image's axes."""
    labels = np.zeros(shape, np.uint16)
    nearest = np.full(shape, np.inf)
    image = np.full(shape, _DIM)
    for i, label in enumerate((ids + 1).tolist()):
        reach = semi[i].max()
        low = np.maximum(np.floor(place[i] - reach), 0).astype(int)
        high = np.minimum(np.ceil(place[i] + reach) + 1, shape).astype(int)
        box = tuple(slice(a, max(a, b)) for a, b in zip(low, high, strict=True))
        grid = np.stack(np.meshgrid(*(np.arange(s.start, s.stop) for s in box), indexing="ij"), -1)
        far = np.linalg.norm((grid - place[i]) @ axes[i] / semi[i], axis=-1)
        mine = (far <= 1) & (far < nearest[box])
        labels[box][mine] = label
        nearest[box][mine] = far[mine]
        image[box][mine] = bright[i]
    for i in np.flatnonzero(~np.isin(ids + 1, labels)).tolist():  # at least the pixel in its middle
        middle = np.clip(np.rint(place[i]), 0, np.array(shape) - 1).astype(int)
        labels[tuple(middle)] = ids[i] + 1
    noisy = image * (1 + _NOISE * rng.normal(size=shape))
    return labels, np.maximum(noisy, 0).astype(np.float32)


def _movie(
    drawn: list[tuple[NDArray[np.uint16], NDArray[np.float32]]],
    links: list[tuple[int, int, int, str]],
) -> RenderedCells:
    names = ("frame", "source_id", "target_id", "kind")
    columns = zip(*links, strict=True) if links else ([],) * 4
    return RenderedCells(
        np.stack([labels for labels, _ in drawn]),
        np.stack([image for _, image in drawn]),
        {name: list(cells) for name, cells in zip(names, columns, strict=True)},
    )

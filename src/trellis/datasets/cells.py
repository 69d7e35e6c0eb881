r"""Simulated movies of dividing cells, with every fate and every past known.

A cell has a place, a velocity, an age and the age at which it will divide. From frame to frame

- it moves by a persistent random walk and a drift that all share,
  :math:`v' = \kappa v + \sqrt{1 - \kappa^2}\,\sigma\varepsilon`, :math:`z' = z + v' + d`,
  and cells that overlap push one another apart;
- its area doubles over a cycle of Gamma-distributed length. It rounds up and brightens two frames
  before the division, and is long and bright in the last one; its daughters, of about half its area
  each, then lie at the two ends of its long axis;
- it dies, wherever it is, with a small probability;
- if ``fusion`` says so, two cells that touch become one for good, with the area of both, which
  neither grows nor divides.

The field of view is a window of a larger world (a torus), so cells enter and leave through the
border. What is seen of them is imperfect: measurements are noisy, a cell may be detected as two
parts for a frame, two cells that touch as one object for some frames, and some detections are no
cell. A cell that was in a wrong detection is seen rightly in the next frame, and so is one that
divides or fuses, before and after; hence every pair of frames is an assignment of moves, divisions,
splits, merges, appearances and disappearances (and fusions), and nothing else. A mother with only
one daughter in the field of view "moves".
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import Bools, Float64s, Int64s
from trellis.datasets._cell_detection import (
    DetectedFrame,
    annotation_between,
    detect,
    long_axis,
    semi_axes,
    touching,
)
from trellis.domains import number, whole
from trellis.errors import DataError

if TYPE_CHECKING:
    from trellis.tracking.objects import FramePair

__all__ = ["LABS", "Lab", "simulate_cells"]


@dataclass(frozen=True)
class Lab:
    """How the cells of a laboratory live, and how well they are seen.

    Parameters
    ----------
    name : str
        Name of the laboratory; the movies are called after it.
    area : float
        Mean area of a new-born cell in pixels.
    crowding : float
        Share of the field of view that cells cover in the first frame; it sets the size of the
        field.
    speed : float
        Standard deviation of each coordinate of the velocity, in pixels a frame.
    persistence : float
        Correlation of a cell's velocities in two consecutive frames.
    drift : tuple of 2 floats
        What all cells move in every frame, x and y.
    cycle : float
        Mean number of frames from birth to division.
    regularity : float
        Shape of the Gamma distribution of the cycle: the larger, the more alike are all cycles.
    death : float
        Probability that a cell dies between two frames.
    intensity : float
        Mean intensity of an ordinary cell.
    noise : float
        Relative standard deviation of measured area and intensity; half of it is that of the
        eccentricity.
    position_noise : float
        Standard deviation of a measured coordinate in pixels.
    eccentricity : float
        Mean eccentricity of an ordinary cell, 0 (round) to below 1.
    over_segmentation : float
        Probability that a cell is detected as two parts in a frame.
    under_segmentation : float
        Probability that two cells that touch are detected as one from this frame on.
    false_detections : float
        Expected number of detections that are no cell, for each cell.
    fusion : float
        Probability that two cells that touch become one before the next frame; links of the kind
        "fusion" say so, an event of one's own (:class:`trellis.tracking.EventKind`).

    Examples
    --------
    >>> from dataclasses import replace
    >>> quiet = replace(LABS["a"], name="quiet", over_segmentation=0.0, under_segmentation=0.0)
    >>> quiet.speed == LABS["a"].speed
    True
    >>> Lab(death=2.0)
    Traceback (most recent call last):
    trellis.errors.ParameterError: death of a Lab must be a number from 0 to 1, got 2.0
    """

    name: str = "lab"
    area: float = 250.0
    crowding: float = 0.25
    speed: float = 4.0
    persistence: float = 0.5
    drift: tuple[float, float] = (0.5, 0.2)
    cycle: float = 40.0
    regularity: float = 12.0
    death: float = 0.004
    intensity: float = 1000.0
    noise: float = 0.06
    position_noise: float = 0.5
    eccentricity: float = 0.55
    over_segmentation: float = 0.003
    under_segmentation: float = 0.008
    false_detections: float = 0.01
    fusion: float = 0.0

    def __post_init__(self) -> None:
        for name, domain in _DOMAINS.items():
            domain.check(f"{name} of a Lab", getattr(self, name))
        try:
            steps = [float(step) for step in self.drift]
        except (TypeError, ValueError):
            steps = []
        if len(steps) != 2 or not np.isfinite(steps).all():
            raise DataError(f"drift of a Lab must be two finite numbers, got {self.drift!r}")


_TINY = 1e-9
_SHARE, _SIZE = number(at_least=0, at_most=1), number(at_least=0)
_DOMAINS = {
    "area": number(at_least=1),
    "crowding": number(at_least=0.01, at_most=0.8),
    "speed": _SIZE,
    "persistence": _SHARE,
    "cycle": number(at_least=3),
    "regularity": number(at_least=1),
    "death": _SHARE,
    "intensity": number(at_least=_TINY),
    "noise": _SHARE,
    "position_noise": _SIZE,
    "eccentricity": number(at_least=0, at_most=0.9),
    "over_segmentation": _SHARE,
    "under_segmentation": _SHARE,
    "false_detections": _SHARE,
    "fusion": _SHARE,
}


LABS = {
    "a": Lab(name="lab_a"),
    "b": Lab(
        name="lab_b",
        area=350.0,
        crowding=0.45,
        speed=5.5,
        persistence=0.3,
        drift=(-0.5, 1.0),
        cycle=16.0,
        regularity=8.0,
        death=0.025,
        intensity=150.0,
        noise=0.12,
        position_noise=1.0,
        eccentricity=0.65,
        over_segmentation=0.005,
        under_segmentation=0.005,
        false_detections=0.005,
    ),
}
"""Two laboratories: sparse, slow and sharp ("a"), and crowded, fast and noisy ("b")."""


def simulate_cells(
    n_cells: int = 100, n_frames: int = 20, *, lab: str | Lab = "a", seed: int
) -> list[FramePair]:
    """Simulate a movie of dividing cells; all pairs of consecutive frames, completely annotated.

    Parameters
    ----------
    n_cells : int
        Expected number of cells in the first frame.
    n_frames : int
        Number of frames, at least 2; there is a pair less.
    lab : str or Lab
        "a", "b", or a :class:`Lab` of one's own.
    seed : int
        Seed; the sequence is named after the laboratory and the seed.

    Returns
    -------
    list of FramePair
        Objects with columns area, mean_intensity, eccentricity and orientation (angle from the
        y axis to the long axis, as in scikit-image); ids are 0, 1, … by y, then x, in each frame.

    Examples
    --------
    >>> pairs = simulate_cells(50, 5, seed=0)
    >>> len(pairs), pairs[0].sequence, pairs[0].annotation.complete, sorted(pairs[0].source.columns)
    (4, 'lab_a_0', True, ['area', 'eccentricity', 'mean_intensity', 'orientation'])
    """
    from trellis.tracking.objects import FramePair

    whole(1).check("n_cells", n_cells)
    whole(2).check("n_frames", n_frames)
    whole(0).check("seed", seed)
    if isinstance(lab, str):
        if lab not in LABS:
            raise DataError(f"unknown lab {lab!r}; known: {', '.join(LABS)}, or give a Lab")
        lab = LABS[lab]
    frames, side = _movie(int(n_cells), int(n_frames), lab, np.random.default_rng(seed))
    sequence, extent = f"{lab.name}_{seed}", (0.0, 0.0, side, side)
    return [
        FramePair(sequence, t, a.objects, b.objects, annotation_between(a, b), extent)
        for t, (a, b) in enumerate(pairwise(frames))
    ]


# ------------------------------------------------------------------ cells


@dataclass(frozen=True, eq=False)
class Cells:
    """True cells of one frame; columns of equal length."""

    key: Int64s  # number of the cell, another than any other's of this and the next frame
    parent: Int64s  # key of its mother if it is new-born in this frame, else -1
    position: Float64s  # (n, 2) in the world
    velocity: Float64s  # (n, 2)
    birth_area: Float64s
    age: Float64s
    cycle: Float64s  # age at division
    angle: Float64s  # of the long axis, from the y axis towards the x axis
    eccentricity: Float64s
    brightness: Float64s  # relative to the lab's

    def take(self, rows: NDArray[np.int64 | np.bool_]) -> Cells:
        return Cells(**{f.name: getattr(self, f.name)[rows] for f in fields(self)})

    @property
    def area(self) -> Float64s:
        return self.birth_area * 2.0 ** (self.age / self.cycle)

    @property
    def dividing(self) -> Bools:
        """Whether the cell divides before the next frame."""
        return self.age + 1 >= self.cycle


def _movie(
    n_cells: int, n_frames: int, lab: Lab, rng: np.random.Generator
) -> tuple[list[DetectedFrame], float]:
    """Frames of detections and the side of the square field of view."""
    side = float(np.sqrt(n_cells * 1.4 * lab.area / lab.crowding))  # 1.4: mean over the cycle
    diameter = 2 * np.sqrt(2 * lab.area / np.pi)
    # No step is longer than the margin, so no cell that is seen jumps to the other side.
    margin = float(4 * diameter + 6 * lab.speed + np.hypot(*lab.drift))
    cells = _first_cells(n_cells, side, margin, lab, rng)
    frames: list[DetectedFrame] = []
    wrong: dict[int, int] = {}
    fused: dict[int, int] = {}
    for t in range(n_frames):
        if t:
            if lab.fusion > 0:
                cells, fused = _fused(cells, wrong, lab, rng)
            cells = _next_cells(cells, side, margin, lab, rng)
        # What has fused is seen rightly, as what was wrong before is.
        frame, wrong = detect(cells, wrong | {key: key for key in fused}, side, lab, rng)
        frames.append(replace(frame, fused=fused))
    return frames, side


def _fused(
    cells: Cells, wrong: dict[int, int], lab: Lab, rng: np.random.Generator
) -> tuple[Cells, dict[int, int]]:
    """Cells of which some that touch have become one, and which: key of the one to the other's."""
    plain = np.array([key not in wrong for key in cells.key.tolist()], bool)
    rows = np.flatnonzero(plain & ~cells.dividing & (cells.parent < 0))
    i, j = np.array(touching(cells, rows, lab.fusion, rng), np.int64).reshape(-1, 2).T
    area = cells.area[i] + cells.area[j]
    share = (cells.area[i] / area)[:, None]
    changed = replace(cells, **{f.name: getattr(cells, f.name).copy() for f in fields(cells)})
    changed.position[i] = share * cells.position[i] + (1 - share) * cells.position[j]
    changed.velocity[i] = share * cells.velocity[i] + (1 - share) * cells.velocity[j]
    changed.birth_area[i], changed.cycle[i] = area, np.inf
    left = np.setdiff1d(np.arange(len(cells.key)), j)
    return changed.take(left), dict(zip(cells.key[i].tolist(), cells.key[j].tolist(), strict=True))


def _first_cells(
    n_cells: int, side: float, margin: float, lab: Lab, rng: np.random.Generator
) -> Cells:
    world = side + 2 * margin
    n = max(1, round(n_cells * (world / side) ** 2))
    cycle = _cycles(n, lab, rng)
    cells = Cells(
        key=np.arange(n),
        parent=np.full(n, -1),
        position=rng.uniform(-margin, side + margin, (n, 2)),
        velocity=lab.speed * rng.standard_normal((n, 2)),
        birth_area=lab.area * np.exp(0.1 * rng.standard_normal(n)),
        age=np.floor(rng.random(n) * (cycle - 1)),
        cycle=cycle,
        angle=rng.uniform(-np.pi / 2, np.pi / 2, n),
        eccentricity=np.clip(lab.eccentricity + 0.12 * rng.standard_normal(n), 0, 0.95),
        brightness=np.exp(0.2 * rng.standard_normal(n)),
    )
    return replace(cells, position=_spread(cells, side, margin, rounds=8))


def _cycles(n: int, lab: Lab, rng: np.random.Generator) -> Float64s:
    # From 3 frames on, so that each stage of a division has a frame of its own.
    return np.maximum(rng.gamma(lab.regularity, lab.cycle / lab.regularity, n), 3.0)


def _next_cells(
    cells: Cells, side: float, margin: float, lab: Lab, rng: np.random.Generator
) -> Cells:
    """Cells of the next frame: those that live on, then the first and the second daughters."""
    n = len(cells.key)
    dies = rng.random(n) < lab.death
    kept = np.flatnonzero(~dies & ~cells.dividing)
    mothers = np.flatnonzero(cells.dividing)
    m = len(mothers)
    moved = cells.take(np.concatenate([kept, mothers, mothers]))

    jitter = rng.standard_normal((len(kept) + m, 2))
    jitter = np.concatenate([jitter, jitter[len(kept) :]])  # sisters share what moved the mother
    kappa = lab.persistence
    velocity = kappa * moved.velocity + np.sqrt(1 - kappa**2) * lab.speed * jitter
    step = velocity + np.asarray(lab.drift, np.float64)
    born = np.arange(len(kept), len(kept) + 2 * m)
    semi_major = semi_axes(cells.area[mothers], np.full(m, 0.8))[0]
    apart = 0.75 * semi_major * np.exp(0.15 * rng.standard_normal(m))
    away = apart[:, None] * long_axis(cells.angle[mothers] + 0.1 * rng.standard_normal(m))
    step[born] += np.concatenate([away, -away])
    length = np.maximum(np.hypot(step[:, 0], step[:, 1]), _TINY)[:, None]
    step *= np.minimum(1.0, 0.9 * margin / length)

    share = np.clip(0.5 + 0.04 * rng.standard_normal(m), 0.3, 0.7)
    area = moved.birth_area.copy()
    area[born] = np.concatenate([share, 1 - share]) * np.tile(cells.area[mothers], 2)
    age = moved.age + 1
    age[born] = 0.0
    cycle = moved.cycle.copy()
    cycle[born] = _cycles(2 * m, lab, rng)
    parent = np.full(len(moved.key), -1)
    parent[born] = moved.key[born]
    key = moved.key.copy()
    # Only within two consecutive frames must keys differ.
    key[born] = cells.key.max(initial=-1) + 1 + np.arange(2 * m)
    # An ordinary cell turns slowly; daughters lie across the axis along which they parted.
    angle = moved.angle + 0.15 * rng.standard_normal(len(key))
    angle[born] += np.pi / 2
    turned = replace(
        moved, key=key, parent=parent, position=moved.position + step, velocity=velocity,
        birth_area=area, age=age, cycle=cycle, angle=angle,
    )  # fmt: skip
    return replace(turned, position=_spread(turned, side, margin, rounds=1))


def _spread(cells: Cells, side: float, margin: float, *, rounds: int) -> Float64s:
    """Positions after overlapping cells pushed each other apart, on the torus of the world."""
    from scipy.spatial import cKDTree

    world = side + 2 * margin
    radius = np.sqrt(cells.area / np.pi)
    at = (cells.position + margin) % world
    for _ in range(rounds):
        at[at >= world] = 0.0  # what rounding leaves of a tiny negative number
        pairs = cKDTree(at, boxsize=np.full(2, world)).query_pairs(
            min(2 * radius.max(initial=0.0), 0.49 * world), output_type="ndarray"
        )
        i, j = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))].T
        apart = at[i] - at[j]
        apart -= world * np.round(apart / world)
        distance = np.maximum(np.hypot(apart[:, 0], apart[:, 1]), _TINY)
        overlap = np.maximum(0.9 * (radius[i] + radius[j]) - distance, 0.0)
        push = (0.25 * overlap / distance)[:, None] * apart
        for axis in (0, 1):
            at[:, axis] += np.bincount(i, push[:, axis], len(at))
            at[:, axis] -= np.bincount(j, push[:, axis], len(at))
        at %= world
    return at - margin

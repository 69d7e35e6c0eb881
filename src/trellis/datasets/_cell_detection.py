"""What is seen of simulated cells: noisy measurements, cells in two parts, two cells as one.

The detections of a frame and the cells behind each of them give the links between two frames: an
object belongs to those of the next frame in which one of its cells is, or a daughter of one.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from trellis.arrays import Bools, Float64s, Int64s

if TYPE_CHECKING:
    from trellis.datasets.cells import Cells, Lab
    from trellis.tracking.objects import Objects, PairAnnotation

__all__ = ["DetectedFrame", "annotation_between", "detect", "long_axis", "semi_axes", "touching"]


_STAYS_MERGED = 0.5  # probability that two cells seen as one are so in the next frame, too
_TOUCHING = 1.1  # distance in sums of radii below which two cells may be seen as one


@dataclass(frozen=True, eq=False)
class DetectedFrame:
    """Detections of one frame, and the true cells (keys, -1 for none) behind each."""

    objects: Objects
    members: Int64s  # (n, 2)
    mother_of: dict[int, int]  # new-born cell -> mother
    fused: dict[int, int] = field(default_factory=dict)  # cell -> other that became one with it


def long_axis(angle: Float64s) -> Float64s:
    return np.stack([np.sin(angle), np.cos(angle)], axis=-1)


def semi_axes(area: Float64s, eccentricity: Float64s) -> tuple[Float64s, Float64s]:
    """Semi-axes of ellipses of these areas and eccentricities."""
    ratio = np.sqrt(1 - eccentricity**2)
    major = np.sqrt(area / (np.pi * ratio))
    return major, major * ratio


def detect(
    cells: Cells, wrong_before: dict[int, int], side: float, lab: Lab, rng: np.random.Generator
) -> tuple[DetectedFrame, dict[int, int]]:
    """Detections of a frame, and which cells are detected wrongly.

    ``wrong`` maps the key of a cell in two parts to itself, of a cell seen as one with another to
    the key of that.
    """
    inside: Bools = np.all((cells.position >= 0) & (cells.position <= side), axis=1)
    seen = cells.take(inside)
    n = len(seen.key)
    steady = (seen.parent < 0) & ~seen.dividing
    fresh = steady & np.array([key not in wrong_before for key in seen.key.tolist()], bool)
    halved = fresh & (rng.random(n) < lab.over_segmentation)
    joined = _joined(seen, steady, fresh & ~halved, wrong_before, lab, rng)

    area, intensity, eccentricity = _looks(seen, lab)
    plain = ~halved
    plain[joined.ravel()] = False
    whole = np.flatnonzero(plain)
    halves = np.flatnonzero(halved)
    i, j = joined.T

    # Two parts lie along the long axis of the cell and share its area.
    share = rng.uniform(0.3, 0.7, len(halves))
    major = semi_axes(area[halves], eccentricity[halves])[0]
    axis = long_axis(seen.angle[halves]) * major[:, None]
    # Two cells seen as one lie where their mass is, and are long in the direction of both.
    total = area[i] + area[j]
    weight = (area[i] / total)[:, None]
    across = seen.position[i] - seen.position[j]
    n_false = int(rng.poisson(lab.false_detections * n))

    position = [
        seen.position[whole],
        seen.position[halves] + (1 - share)[:, None] * axis,
        seen.position[halves] - share[:, None] * axis,
        weight * seen.position[i] + (1 - weight) * seen.position[j],
        rng.uniform(0, side, (n_false, 2)),
    ]
    areas = [
        area[whole],
        share * area[halves],
        (1 - share) * area[halves],
        total,
        lab.area * rng.uniform(0.1, 0.6, n_false),
    ]
    mean = weight[:, 0] * intensity[i] + (1 - weight[:, 0]) * intensity[j]
    intensities = [
        intensity[whole],
        intensity[halves],
        intensity[halves],
        mean,
        lab.intensity * rng.uniform(0.3, 0.9, n_false),
    ]
    half = np.full(len(halves), 0.5)
    eccentricities = [
        eccentricity[whole], half, half, np.full(len(i), 0.85), rng.uniform(0.2, 0.9, n_false),
    ]  # fmt: skip
    angles = [
        seen.angle[whole],
        seen.angle[halves] + np.pi / 2,
        seen.angle[halves] + np.pi / 2,
        np.arctan2(across[:, 0], across[:, 1]),
        rng.uniform(-np.pi / 2, np.pi / 2, n_false),
    ]
    none = np.full(n_false, -1)
    members = np.concatenate(
        [
            np.stack([seen.key[rows], np.full(len(rows), -1)], axis=1)
            for rows in (whole, halves, halves)
        ]
        + [seen.key[joined], np.stack([none, none], axis=1)]
    )
    objects, order = _measured(
        np.concatenate(position), np.concatenate(areas), np.concatenate(intensities),
        np.concatenate(eccentricities), np.concatenate(angles), side, lab, rng,
    )  # fmt: skip
    new = seen.parent >= 0
    mother_of = dict(zip(seen.key[new].tolist(), seen.parent[new].tolist(), strict=True))
    wrong = {key: key for key in seen.key[halves].tolist()}
    for a, b in seen.key[joined].tolist():
        wrong[a], wrong[b] = b, a
    return DetectedFrame(objects, members[order], mother_of), wrong


def _joined(
    seen: Cells,
    steady: Bools,
    free: Bools,
    wrong_before: dict[int, int],
    lab: Lab,
    rng: np.random.Generator,
) -> Int64s:
    """Rows (k, 2) of cells that are seen as one: some of those that were, and new ones."""
    row = {key: i for i, key in enumerate(seen.key.tolist()) if steady[i]}
    pairs = [
        (row[a], row[b])
        for a, b in sorted(wrong_before.items())
        if a < b and a in row and b in row and rng.random() < _STAYS_MERGED
    ]
    pairs += touching(seen, np.flatnonzero(free), lab.under_segmentation, rng)
    return np.array(pairs, np.int64).reshape(-1, 2)


def touching(
    cells: Cells, rows: Int64s, share: float, rng: np.random.Generator
) -> list[tuple[int, int]]:
    """A share of the pairs among cells in these rows that touch, each cell in one at most."""
    from scipy.spatial import cKDTree

    pairs: list[tuple[int, int]] = []
    if share > 0 and len(rows) > 1:
        radius = np.sqrt(cells.area[rows] / np.pi)
        reach = 2 * _TOUCHING * float(radius.max())
        near = cKDTree(cells.position[rows]).query_pairs(reach, output_type="ndarray")
        near = near[np.lexsort((near[:, 1], near[:, 0]))]
        apart = cells.position[rows[near[:, 0]]] - cells.position[rows[near[:, 1]]]
        limit = _TOUCHING * (radius[near[:, 0]] + radius[near[:, 1]])
        near = near[np.hypot(apart[:, 0], apart[:, 1]) < limit]
        taken: set[int] = set()
        for a, b in near[rng.random(len(near)) < share].tolist():
            if a not in taken and b not in taken:
                taken |= {a, b}
                pairs.append((int(rows[a]), int(rows[b])))
    return pairs


def _looks(seen: Cells, lab: Lab) -> tuple[Float64s, Float64s, Float64s]:
    """True area, intensity and eccentricity: cells round up, brighten, and lengthen to divide."""
    last = seen.dividing
    rounding = ~last & (seen.age + 2 >= seen.cycle)
    glow = np.where(last, 1.6, np.where(rounding, 1.3, np.where(seen.parent >= 0, 1.25, 1.0)))
    area = seen.area * np.where(last | rounding, 0.9, 1.0)
    eccentricity = np.where(last, 0.8, np.where(rounding, 0.3, seen.eccentricity))
    return area, lab.intensity * seen.brightness * glow, eccentricity


def _measured(
    position: Float64s,
    area: Float64s,
    intensity: Float64s,
    eccentricity: Float64s,
    angle: Float64s,
    side: float,
    lab: Lab,
    rng: np.random.Generator,
) -> tuple[Objects, Int64s]:
    """Noisy measurements, sorted by y and x, and the order in which they were."""
    from trellis.tracking.objects import Objects

    n = len(area)
    noise = rng.standard_normal((6, n))
    position = np.clip(position + lab.position_noise * noise[:2].T, 0, side)
    turned = angle + lab.noise * noise[5] / np.maximum(eccentricity, 0.1)
    columns = {
        "area": area * np.exp(lab.noise * noise[2]),
        "mean_intensity": intensity * np.exp(lab.noise * noise[3]),
        "eccentricity": np.clip(eccentricity + 0.5 * lab.noise * noise[4], 0, 0.99),
        "orientation": (turned + np.pi / 2) % np.pi - np.pi / 2,
    }
    order = np.lexsort((position[:, 0], position[:, 1]))
    sorted_columns = {name: values[order] for name, values in columns.items()}
    return Objects(np.arange(n), position[order], sorted_columns), order


def annotation_between(before: DetectedFrame, after: DetectedFrame) -> PairAnnotation:
    """Links of the detections whose cells are the same or have become one, or are daughters."""
    from trellis.tracking.objects import PairAnnotation

    sources: dict[int, list[int]] = {}
    for i, keys in enumerate(before.members.tolist()):
        for key in keys:
            if key >= 0:
                sources.setdefault(key, []).append(i)
    links: dict[tuple[int, int], bool] = {}
    for j, keys in enumerate(after.members.tolist()):
        for key in keys:
            mother = after.mother_of.get(key)
            pasts_of = [key if mother is None else mother, after.fused.get(key, -1)]
            for i in (i for past in pasts_of for i in sources.get(past, ())):
                links[i, j] = mother is not None
    fates = Counter(i for i, _ in links)
    pasts = Counter(j for _, j in links)

    def kind(i: int, j: int) -> str:
        if pasts[j] > 1:
            return "fusion" if after.fused.keys() & set(after.members[j].tolist()) else "merge"
        if fates[i] > 1:
            return "division" if links[i, j] else "split"
        return "move"

    return PairAnnotation(tuple((i, j, kind(i, j)) for i, j in sorted(links)))

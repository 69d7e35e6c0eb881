"""Maps to learn from: real tables and generated fields, cut at random or by blocks of the map.

A random cut asks about places among those that are known, a blocked one about regions from which
nothing is known: cells of 0.05 degrees of King County, elsewhere blocks that k-means makes of the
places. Blocks are drawn until they hold the share of rows to be asked about; of what they hold and
of the rest as many rows are drawn as are wanted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from studies.datasets.regression import (
    load_kingcounty,
    load_medicare,
    load_sacramento,
    load_spatial,
)
from trellis.datasets import spatial_field
from trellis.regression import RegressionData

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]

EARTH_KM = 6371.0
CELL = 0.05  # degrees
SMALL_MAP = 500  # places, below which there are 10 blocks and not 20


@dataclass(frozen=True)
class Task:
    """What a contestant sees: rows with targets, rows without, where both are, a seed."""

    X: Floats
    y: Floats
    places: Floats
    metric: str
    X_asked: Floats
    places_asked: Floats
    seed: int
    kept: dict[Any, Any] = field(default_factory=dict)
    """What one contestant computed and another needs, too."""

    @property
    def points(self) -> Floats:
        """Places as points between which distances are straight lines: kilometres of degrees."""
        return points_of(self.places, self.metric)

    @property
    def points_asked(self) -> Floats:
        """The same of the places asked about."""
        return points_of(self.places_asked, self.metric)


class Cut(NamedTuple):
    """A task and its right answers."""

    task: Task
    truth: Floats


def points_of(places: Floats, metric: str) -> Floats:
    """Degrees of latitude and longitude as points on the globe; other coordinates as they are."""
    if metric != "haversine":
        return places
    latitude, longitude = np.radians(places).T
    round_axis = np.cos(latitude)
    xyz = [round_axis * np.cos(longitude), round_axis * np.sin(longitude), np.sin(latitude)]
    return EARTH_KM * np.stack(xyz, axis=1)


# ------------------------------------------------------------------------- sets


@dataclass(frozen=True)
class MapSet:
    """A map, and how it is cut."""

    name: str
    load: Callable[[int], RegressionData]
    """The data of a repeat; those of real sets are always the same."""
    n_train: int
    """Rows to learn from; 0: four fifths."""
    n_test: int
    blocks: Callable[[RegressionData, int], Whole] | None
    """Number of each row's block; None: no blocked cut."""
    fresh: bool = False
    """Whether rows of one repeat are (nearly) not those of another."""
    repeats: int | None = None
    """No more than so many."""

    @property
    def cuts(self) -> tuple[str, ...]:
        """How the map can be cut."""
        return ("random",) if self.blocks is None else ("random", "blocked")

    def sizes(self, n: int) -> tuple[int, int]:
        """Rows to learn from and to be asked about, of n."""
        return (self.n_train, self.n_test) if self.n_train else (n - n // 5, n // 5)

    def draw(self, how: str, repeats: int) -> Iterator[Cut]:
        """Tasks, one for each repeat."""
        for repeat in range(repeats):
            data = self.load(repeat)
            n_train, n_test = self.sizes(len(data.y))
            rng = np.random.default_rng([repeat, how == "blocked"])
            order = rng.permutation(len(data.y))
            if how == "random":
                test, train = order[:n_test], order[n_test : n_test + n_train]
            else:
                assert self.blocks is not None
                inside = drawn_blocks(self.blocks(data, repeat), n_test / (n_train + n_test), rng)
                test, train = order[inside[order]][:n_test], order[~inside[order]][:n_train]
            assert data.coords is not None
            yield Cut(
                Task(
                    data.X[train], data.y[train], data.coords[train], data.metric,
                    data.X[test], data.coords[test], repeat,
                ),
                data.y[test],
            )  # fmt: skip


def drawn_blocks(blocks: Whole, share: float, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Which rows are in blocks that were drawn until they held a share of all."""
    names, size = np.unique(blocks, return_counts=True)
    order = rng.permutation(len(names))
    enough = int(np.searchsorted(np.cumsum(size[order]), share * len(blocks))) + 1
    return np.isin(blocks, names[order[: min(enough, len(names) - 1)]])


def cells(data: RegressionData, seed: int) -> Whole:
    """Cells of degrees."""
    assert data.coords is not None
    found: Whole = np.unique(np.floor(data.coords / CELL), axis=0, return_inverse=True)[1]
    return found.ravel()


def regions(data: RegressionData, seed: int) -> Whole:
    """Blocks that k-means makes of the places."""
    from sklearn.cluster import KMeans

    assert data.coords is not None
    k = 10 if len(data.y) < SMALL_MAP else 20
    points = points_of(data.coords, data.metric)
    found: Whole = KMeans(k, n_init=1, random_state=seed).fit_predict(points)
    return found


def generated(n: int, smoothness: float, repeat: int) -> RegressionData:
    """A field of its own for each repeat; the coordinates are features, too, as in real tables."""
    places, X, y, _ = spatial_field(n, smoothness=smoothness, clusters=0, random_state=repeat)
    names = (*(f"x{k + 1}" for k in range(X.shape[1])), "east", "north")
    return RegressionData("field", np.hstack([X, places]), y, places, None, names)


def _real(load: Callable[[], RegressionData]) -> Callable[[int], RegressionData]:
    known: list[RegressionData] = []

    def once(repeat: int) -> RegressionData:
        if not known:
            known.append(load())
        return known[0]

    return once


def _sets() -> Mapping[str, MapSet]:
    county = _real(load_kingcounty)
    rough, smooth = (partial(generated, 10_000, smoothness) for smoothness in (0.5, 1.5))
    sets = [
        MapSet("kingcounty", county, 2000, 1000, cells, fresh=True),
        MapSet("sacramento", _real(load_sacramento), 785, 200, regions),
        MapSet("medicare", _real(load_medicare), 500, 500, None),
        MapSet("meuse", _real(partial(load_spatial, "meuse")), 0, 0, regions),
        MapSet("atlantic", _real(partial(load_spatial, "atlantic")), 0, 0, regions),
        MapSet("plants", _real(partial(load_spatial, "plants")), 0, 0, regions),
        MapSet("rough-field", rough, 0, 0, regions, fresh=True),
        MapSet("smooth-field", smooth, 0, 0, regions, fresh=True),
        MapSet("kingcounty-all", county, 0, 0, cells, repeats=2),
        MapSet("rough-field-100k", partial(generated, 100_000, 0.5), 0, 0, None, True, 1),
        MapSet("smooth-field-100k", partial(generated, 100_000, 1.5), 0, 0, None, True, 1),
    ]
    return {one.name: one for one in sets}


SETS = _sets()
USUAL = tuple(name for name, one in SETS.items() if one.repeats is None)
LARGE = tuple(name for name in SETS if name not in USUAL)


def smaller(one: MapSet, n: int) -> MapSet:
    """A field of n places, for small mode; of a real set the stand-in is small already."""
    if "field" not in one.name:
        return replace(one, n_train=0)
    return replace(one, load=partial(generated, n, 1.5 if "smooth" in one.name else 0.5))

"""A million places on a map, a tenth of them known: seconds and memory on one core.

    python -m benchmarks.map_scale                  # 10^6 places, 10^5 known
    python -m benchmarks.map_scale --nodes 100000 --ways joined

Targets are base predictions, a rough field (Matérn, ν = 1/2, length 0.1 of the map's side) and
noise. Base predictions are given, so what is timed is the Gaussian CRF with its graph, in two ways:
each place that is not known is joined to those that are, or one graph joins all. Errors are those
of places that were not known, beside those of the base predictions alone and of the dumbest use of
places: the mean of what base predictions leave at the five nearest known ones. The noise has a
variance of 0.1, below which no error can be.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.options import begin
from benchmarks.side_by_side import Table, once, peak
from trellis.datasets import spatial_field
from trellis.regression import GCRF, KNN

Floats = NDArray[np.float64]
Timed = Callable[[str, Callable[[], Any]], Any]
"""Run a step, tell how long it took, and return its result."""

NOISE, Z90 = 0.1, 1.6449


class Map(NamedTuple):
    """Places with base predictions; those in front are known."""

    places: Floats
    base: Floats
    y: Floats
    n_known: int
    asked: NDArray[np.int64]
    """Of which standard deviations are wanted: rows that are not known."""


def joined(told: Map, timed: Timed) -> tuple[Floats, Floats]:
    """Mean of all places that are not known, standard deviations of those asked about.

    A graph of known places, which each other place joins by itself.
    """
    k = told.n_known
    model = GCRF("precomputed", random_state=0)
    timed("learning", lambda: model.fit(told.base[:k], told.y[:k], coords=told.places[:k]))
    mean = timed(
        "mean of all others",
        lambda: model.predict(told.base[k:], coords=told.places[k:]),
    )
    _, std = timed(
        f"standard deviations of {len(told.asked):,}",
        lambda: model.predict(
            told.base[told.asked], coords=told.places[told.asked], return_std=True
        ),
    )
    return mean, std


def whole(told: Map, timed: Timed) -> tuple[Floats, Floats]:
    """The same on one graph of all places, on which what is not known is joined, too."""
    k = told.n_known
    graph = timed("graph", lambda: KNN()(told.places))
    known = np.where(np.arange(len(told.y)) < k, told.y, np.nan)
    model = GCRF("precomputed", random_state=0)
    timed("learning", lambda: model.fit(told.base, known, graph=graph))
    mean, std = timed(
        "mean and standard deviations of all",
        lambda: model.predict(told.base, graph=graph, observed=known, return_std=True),
    )
    return mean[k:], std[told.asked]


WAYS: dict[str, tuple[str, Callable[[Map, Timed], tuple[Floats, Floats]]]] = {
    "joined": ("each joined to the known places", joined),
    "whole": ("one graph of all places", whole),
}


def generated(n: int, n_known: int, n_asked: int) -> Map:
    """Places in random order."""
    field = spatial_field(n, field_share=1 - NOISE, noise_share=NOISE, random_state=0)
    rng = np.random.default_rng(1)
    base = rng.normal(size=n)
    asked = n_known + rng.permutation(n - n_known)[:n_asked]
    return Map(field.places, base, base + field.y, n_known, asked)


def left_nearby(told: Map) -> Floats:
    """Base predictions, and the mean of what they leave at the five nearest known places."""
    from scipy.spatial import cKDTree

    k = told.n_known
    near = cKDTree(told.places[:k]).query(told.places[k:], 5)[1]
    mean: Floats = told.base[k:] + (told.y - told.base)[near].mean(axis=1)
    return mean


def main() -> None:
    args = begin(
        __doc__,
        nodes=(1_000_000, 2000),
        asked=(10_000, 50, "standard deviations"),
        ways=(["joined", "whole"], ["joined", "whole"], "how places that are not known are joined"),
    )
    told = generated(args.nodes, args.nodes // 10, args.asked)
    truth = told.y[told.n_known :]
    errors = Table(
        "places that were not known", "prediction", "mean squared error", "90 % intervals hold, %"
    )
    for way in args.ways:
        name, answer = WAYS[way]
        table = Table(
            f"{args.nodes:,} places, {told.n_known:,} known: {name}",
            *("step", "seconds", "peak GB so far"),
        )
        table.add("the data in memory", "", peak())
        mean, std = answer(told, partial(step, table))
        table.show()
        away = np.abs(told.y[told.asked] - mean[told.asked - told.n_known])
        covered = 100 * float(np.mean(away < Z90 * std))
        errors.add(f"Trellis, {name}", float(np.mean((truth - mean) ** 2)), covered)
    for name, other in (
        ("base predictions alone", told.base[told.n_known :]),
        ("and the mean nearby", left_nearby(told)),
    ):
        errors.add(name, float(np.mean((truth - other) ** 2)), "")
    errors.show()


def step(table: Table, name: str, run: Callable[[], Any]) -> Any:
    """Run a step; its seconds and the memory are a row."""
    result, seconds = once(run)
    table.add(name, seconds, peak())
    return result


if __name__ == "__main__":
    main()

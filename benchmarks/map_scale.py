"""A million places on a map, a tenth of them known: seconds and memory on one core.

    python -m benchmarks.map_scale                  # 10^6 places, 10^5 known
    python -m benchmarks.map_scale --nodes 100000

Targets are base predictions, a rough field (Matérn, ν = 1/2, length 0.1 of the map's side) and
noise. Base predictions are given, so what is timed is the Gaussian CRF with its graph: to learn
from the known tenth, the mean of all other places, and standard deviations of some that are asked
about. The errors are those of places that were not known, beside those of the base predictions
alone and of the dumbest use of places: the mean of what base predictions leave at the five nearest
known ones. The noise has a variance of 0.1, below which no error can be.
"""

from __future__ import annotations

from collections.abc import Callable
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


def trellis(told: Map, timed: Timed) -> tuple[Floats, Floats]:
    """Mean of all places that are not known, standard deviations of those asked about."""
    k = told.n_known
    # Until GCRF takes places: the graph of all of them, and standard deviations of all.
    model = GCRF("precomputed", n_probes=16, random_state=0)
    builder = KNN()
    timed(
        "learning",
        lambda: model.fit(told.base[:k], told.y[:k], graph=builder(told.places[:k])),
    )
    observed = np.where(np.arange(len(told.y)) < k, told.y, np.nan)

    def predicted(**how: bool) -> Any:
        return model.predict(told.base, graph=builder(told.places), observed=observed, **how)

    mean = timed("mean of all others", predicted)
    _, std = timed(
        f"standard deviations of {len(told.asked):,}", lambda: predicted(return_std=True)
    )
    return mean[k:], std[told.asked]


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
    args = begin(__doc__, nodes=(1_000_000, 2000), asked=(10_000, 50, "standard deviations"))
    told = generated(args.nodes, args.nodes // 10, args.asked)
    table = Table(
        f"{args.nodes:,} places, {told.n_known:,} known",
        *("step", "seconds", "peak GB so far"),
    )

    def timed(step: str, run: Callable[[], Any]) -> Any:
        result, seconds = once(run)
        table.add(step, seconds, peak())
        return result

    table.add("the data in memory", "", peak())
    mean, std = trellis(told, timed)
    truth = told.y[told.n_known :]
    table.show()
    table = Table(
        "places that were not known", "prediction", "mean squared error", "90 % intervals hold, %"
    )
    away = np.abs(told.y[told.asked] - mean[told.asked - told.n_known])
    table.add(
        "Trellis", float(np.mean((truth - mean) ** 2)), 100 * float(np.mean(away < Z90 * std))
    )
    for name, other in (
        ("base predictions alone", told.base[told.n_known :]),
        ("and the mean nearby", left_nearby(told)),
    ):
        table.add(name, float(np.mean((truth - other) ** 2)), "")
    table.show()


if __name__ == "__main__":
    main()

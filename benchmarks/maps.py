"""Numbers on maps: Trellis's default beside what a geographer or a data scientist would use.

    python -m benchmarks.maps                                       # without PyKrige and spreg
    python -m benchmarks.maps --peer-python peers/bin/python        # of another environment
    python -m benchmarks.maps --sets meuse --only trellis hgb gp --repeats 3
    python -m benchmarks.maps --large                               # 17,000 to 80,000 places

Maps: prices of houses of King County (2000 to learn from and 1000 asked about; with ``--large`` 80
and 20 % of all) and of Sacramento (785 and 200), readmissions of hospitals, whose «places» are
their attributes with the Manhattan distance (500 and 500), zinc in the soil along the Meuse, lung
cancer in counties of the eastern United States, plant species in regions of the Americas, and
generated fields, rough and smooth (Matérn, ν = 1/2 and 3/2), 10,000 places, a new field for each
repeat (80 and 20 %). The noise of the fields has a variance of 0.1, below which no error can be.

Cut at random, the places asked about lie among known ones; blocked, whole regions are asked about.
All contestants see the same rows, coordinates are features, too, and nothing is chosen by what is
asked about. They are boosting, forests, ridge and a stack of the three, as they come; boosting and
the stack with the mean target of the five nearest rows as a feature; ordinary kriging and Gaussian
processes of out-of-fold residuals of these; and a spatial lag model. Details are in
``benchmarks/map_peers.py``. The intervals of those that have none are split-conformal, of
out-of-fold residuals.

The error is the mean squared one; beside it stand its 95 % interval, and how much more it is than
Trellis's in the same repeats (less than 0: better), with the standard error of this difference.
Both are by Student's t over repeats. Parts of one table overlap, so where all its rows take part
in each repeat the variance is that of Nadeau and Bengio (2003). With fewer than three repeats both
are of the rows asked about, as if these were independent. Coverage and mean width are those of
90 % intervals. CPU seconds are to learn, predict and have the intervals, one thread.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import t as student
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # no stubs

from benchmarks.map_peers import ELSEWHERE, HERE, Z90, Answer, Contestant, Elsewhere
from benchmarks.map_sets import LARGE, SETS, USUAL, Cut, Floats, MapSet, Task, smaller
from benchmarks.options import begin
from benchmarks.side_by_side import Table, short
from trellis.regression import GCRF

FEW = 3  # repeats, below which errors are of rows
TRELLIS = "trellis"


def trellis_default(task: Task) -> Answer:
    """What Trellis answers with nothing set but the distance."""
    model = GCRF(metric=task.metric, random_state=task.seed)
    model.fit(task.X, task.y, coords=task.places)
    mean, std = model.predict(task.X_asked, coords=task.places_asked, return_std=True)
    return Answer(mean, Z90 * std)


# ------------------------------------------------------------------------- one cut


class Scored(NamedTuple):
    """How a contestant did in one repeat."""

    errors: Floats
    """Squared ones, of each row."""
    covered: float
    width: float
    seconds: float


def scored(run: Contestant, cut: Cut) -> Scored | None:
    """Let a contestant answer; None if it cannot."""
    started = time.process_time()
    answer = run(cut.task)
    if answer is None:
        return None
    seconds = time.process_time() - started + answer.elsewhere
    away = np.abs(cut.truth - answer.mean)
    half = np.broadcast_to(answer.half, away.shape)
    return Scored(away**2, float((away <= half).mean()), float(2 * half.mean()), seconds)


# ------------------------------------------------------------------------- all repeats


class Spread(NamedTuple):
    """A mean over repeats, its standard error, and half the width of its 95 % interval."""

    mean: float
    error: float
    half: float


def spread(rows: Sequence[Floats], overlap: float) -> Spread:
    """Of values of rows, repeat by repeat; ``overlap`` is test to training rows, 0 if apart."""
    means = np.array([values.mean() for values in rows])
    if len(means) >= FEW:
        error = means.std(ddof=1) * np.sqrt(1 / len(means) + overlap)
        freedom = len(means) - 1
    else:
        every = np.concatenate(rows)
        error, freedom = every.std(ddof=1) / np.sqrt(len(every)), len(every) - 1
    return Spread(float(means.mean()), float(error), float(student.ppf(0.975, freedom) * error))


def signed(number: float) -> str:
    """With a sign, and three digits."""
    return f"{'−' if number < 0 else '+'}{short(abs(float(number)))}"


def compare(
    one: MapSet, how: str, repeats: int, contestants: Mapping[str, tuple[str, Contestant]]
) -> None:
    """A table: all contestants on one map, cut one way."""
    repeats = min(repeats, one.repeats or repeats)
    found: dict[str, list[Scored]] = {}
    n_train, n_test = [], []
    for repeat, cut in enumerate(one.draw(how, repeats)):
        n_train.append(len(cut.task.y))
        n_test.append(len(cut.truth))
        for key, (name, run) in contestants.items():
            result = scored(run, cut)
            if result is not None:
                found.setdefault(key, []).append(result)
                told = f"{one.name} {how} {repeat} {name}: {result.errors.mean():.4g}"
                print(told, f"{result.seconds:.3g} s", file=sys.stderr, flush=True)
    overlap = 0.0 if one.fresh else sum(n_test) / sum(n_train)
    table = Table(
        f"{one.name}, {how}: {np.mean(n_train):,.0f} rows to learn from,"
        f" {np.mean(n_test):,.0f} asked about, {repeats} repeat{'s' * (repeats > 1)}",
        "contestant", "mean squared error", "95 % interval", "more than Trellis (s.e.)",
        "90 % intervals hold, %", "their width", "CPU s", "times Trellis",
    )  # fmt: skip
    ours = found.get(TRELLIS)
    for key, results in found.items():
        if len(results) < repeats:  # it failed somewhere: its mean is of other rows
            continue
        error = spread([one.errors for one in results], overlap)
        more, times = "", ""
        seconds = float(np.mean([one.seconds for one in results]))
        if ours is not None and key != TRELLIS:
            gap = spread([a.errors - b.errors for a, b in zip(results, ours, strict=True)], overlap)
            more = f"{signed(gap.mean)} ({short(gap.error)})"
            times = f"{seconds / np.mean([one.seconds for one in ours]):.2f}×"
        table.add(
            contestants[key][0], error.mean,
            f"{short(max(error.mean - error.half, 0.0))} to {short(error.mean + error.half)}",
            more, 100 * float(np.mean([one.covered for one in results])),
            float(np.mean([one.width for one in results])), seconds, times,
        )  # fmt: skip
    if table.rows:
        table.show()


def main() -> None:
    args = begin(
        __doc__,
        sets=([*USUAL], ["meuse", "rough-field"], f"maps; also {', '.join(LARGE)}"),
        large=(False, False, "the large maps, with no more than two repeats"),
        cuts=(["random", "blocked"], ["random", "blocked"], "how maps are cut"),
        repeats=(10, 2),
        only=([TRELLIS, *HERE, *ELSEWHERE], [TRELLIS, *HERE, *ELSEWHERE], "contestants"),
        peer_python=(sys.executable, sys.executable, "where PyKrige and spreg are"),
    )  # fmt: skip
    elsewhere = Elsewhere(args.peer_python) if {*ELSEWHERE} & {*args.only} else None
    others = elsewhere.contestants() if elsewhere is not None else {}
    if elsewhere is not None and len(others) < len(ELSEWHERE):
        print("PyKrige or spreg is left out: not installed", file=sys.stderr)
    every = {TRELLIS: ("Trellis", trellis_default), **HERE, **others}
    contestants = {key: told for key, told in every.items() if key in args.only}
    names = [*LARGE] if args.large else args.sets
    with threadpool_limits(1):
        for one in (SETS[name] for name in names):
            for how in (how for how in one.cuts if how in args.cuts):
                chosen = smaller(one, 150) if args.small else one
                compare(chosen, how, args.repeats, contestants)
    if elsewhere is not None:
        elsewhere.close()


if __name__ == "__main__":
    main()

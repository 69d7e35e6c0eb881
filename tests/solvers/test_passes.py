"""The loop over passes: what is drawn and recorded, and when it stops."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import trellis.solvers.passes as passes_module
from chain_problems import altered, random_data
from trellis.corpus import Labels
from trellis.decompose import ChainPieces, WholeSamples
from trellis.features import Encoded
from trellis.problems import Weights
from trellis.solvers import Passes, Progress, Watch, convergence_value


class Scripted:
    """Returns the objectives it was given and remembers what it was shown."""

    def __init__(self, objectives, n_samples: int = 6, windows: int = 1) -> None:
        self.problem = random_data(np.random.default_rng(0), n_samples=n_samples)
        self.objectives = list(objectives)
        self.seen: list[list[tuple[int, int]]] = []
        self.numbers: list[int] = []
        self.events: list[tuple] = []
        self.windows = windows

    def visit(self, these, number, done, total):
        if done == 0:
            self.seen.append([])
            self.numbers.append(number)
        assert done == len(self.seen[-1])
        self.seen[-1] += zip(these.starts.tolist(), these.ends.tolist(), strict=True)
        self.events.append(("visit", number, done, done + len(these)))
        # Half of the objective is the penalty, the other half is met evenly.
        return self.objectives[number] / 2 * len(these) / total

    def end_window(self, number, visited, total):
        self.events.append(("window", number, visited, total))

    def end_pass(self, number):
        self.events.append(("pass", number))
        return self.objectives[number] / 2

    def limit(self, these):
        return np.inf

    def weights(self):
        return Weights.zeros(len(self.seen), 2)  # tells how many passes there were

    def state(self):
        return {}

    def restore(self, state):
        assert not state


def run(learner, *, part=None, seed=0, **options):
    rng, limits = np.random.default_rng(seed), {"max_passes": len(learner.objectives), "tol": 0.0}
    limits |= {name: options.pop(name) for name in ("max_passes", "tol") if name in options}
    visit = options.pop("visit", "pooled")
    passes = Passes(learner, part or WholeSamples(), rng, visit)
    before = len(options["progress"].records) if "progress" in options else 0
    return passes.run(**limits, watch=Watch(**options)).records[before:]


def test_one_record_a_pass():
    objectives = [100.0, 50.0, 40.0, 35.0]
    learner = Scripted(objectives)
    records = run(learner)
    assert [r.number for r in records] == [1, 2, 3, 4]
    assert learner.numbers == [0, 1, 2, 3]
    assert [r.objective for r in records] == objectives  # with the penalty
    assert [r.change for r in records] == [convergence_value(objectives[:p]) for p in (1, 2, 3, 4)]
    assert all(r.dev_score is None and r.seconds >= 0 for r in records)


def test_each_pass_visits_every_piece_once_in_a_fresh_order():
    learner = Scripted([3.0, 2.0])
    run(learner)
    first, second = learner.seen
    offsets = learner.problem.encoded.offsets.tolist()
    assert sorted(first) == sorted(second) == list(itertools.pairwise(offsets))
    assert first != second


def test_pieces_are_drawn_anew_each_pass():
    learner = Scripted([3.0, 2.0], n_samples=20)
    run(learner, part=ChainPieces(1.5))
    first, second = (sorted(pieces) for pieces in learner.seen)
    assert first != second
    for pieces in (first, second):
        assert [t for a, b in pieces for t in range(a, b)] == list(
            range(learner.problem.encoded.offsets[-1])
        )


def test_with_replacement_there_are_as_many_visits_with_repeats():
    learner = Scripted([3.0], n_samples=50)
    run(learner, visit="replacement")
    (seen,) = learner.seen
    assert len(seen) == 50 and len(set(seen)) < 50


def test_the_seed_decides_everything():
    passes = []
    for seed in (1, 1, 2):
        learner = Scripted([3.0, 2.0, 1.0])
        run(learner, part=ChainPieces(2.5), seed=seed)
        passes.append(learner.seen)
    assert passes[0] == passes[1] != passes[2]


def test_it_stops_when_the_change_falls_below_the_tolerance():
    objectives = [100.0, 50.0, 49.0, 48.9, 48.89, 48.88]
    changes = [convergence_value(objectives[:p]) for p in range(1, 7)]
    assert changes[3] > 0.3 > changes[4] > 0.2  # the numbers below mean something
    assert len(run(Scripted(objectives), tol=0.3)) == 5
    assert len(run(Scripted(objectives), tol=0.0)) == 6
    assert len(run(Scripted([1.0, 2.0, 3.0, 4.0]), tol=0.0)) == 3  # worse counts as converged
    assert len(run(Scripted([1.0, 2.0, 3.0, 4.0]), tol=-np.inf)) == 4


def test_it_never_exceeds_the_number_of_passes():
    assert len(run(Scripted([9.0, 8.0, 7.0]), max_passes=2)) == 2


@pytest.mark.parametrize(("patience", "expected"), [(1, 3), (2, 4), (3, 8), (None, 9)])
def test_patience_counts_passes_since_the_best_score(patience, expected):
    scores = [0.1, 0.5, 0.5, 0.4, 0.6, 0.6, 0.6, 0.6, 0.6]
    learner = Scripted([100.0 * 0.5**p for p in range(9)])
    asked = []

    def dev_score(weights):
        asked.append(len(weights.node))
        return scores[len(weights.node) - 1]

    records = run(learner, dev_score=dev_score, patience=patience)
    assert len(records) == expected
    assert [r.dev_score for r in records] == scores[:expected]
    assert asked == list(range(1, expected + 1))  # after each pass, with the weights of then


def test_patience_without_held_out_data_changes_nothing():
    assert len(run(Scripted([9.0, 8.0, 7.0, 6.0]), patience=1)) == 4


def test_passes_are_done_one_at_a_time():
    """A record can be acted upon (a progress line, an interrupt) before the next pass begins."""
    learner = Scripted([3.0, 2.0, 1.0])
    seen = []

    def report(record):
        seen.append(list(learner.numbers))
        if record.number == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(learner, report=report)
    assert seen == [[0], [0, 1]] and learner.numbers == [0, 1]


@pytest.mark.parametrize(
    ("objectives", "options", "reason"),
    [
        ([9.0, 5.0, 4.0], {"tol": -np.inf}, "max_passes"),
        ([9.0, 5.0, 5.0, 5.0], {"tol": 0.5}, "tol"),
        ([5.0, 6.0, 7.0, 8.0], {"tol": 0.5}, "rising"),
        ([9.0, 5.0, 4.0], {"tol": -np.inf, "patience": 1, "dev_score": lambda w: 0.5}, "patience"),
    ],
)
def test_why_it_ended_is_a_code(objectives, options, reason):
    watch = Watch(**{name: options.pop(name) for name in list(options) if name != "tol"})
    passes = Passes(Scripted(objectives), WholeSamples(), np.random.default_rng(0))
    passes.run(max_passes=len(objectives), watch=watch, **options)
    assert passes.stop_reason == reason


# ------------------------------------------------------------------------- windows and blocks


def test_windows_divide_a_pass_evenly():
    learner = Scripted([4.0, 2.0], n_samples=25, windows=10)
    run(learner)
    for number in range(2):
        mine = [e for e in learner.events if e[1] == number]
        assert mine[-1] == ("pass", number)
        sizes = [e[2] for e in mine if e[0] == "window"]
        assert len(sizes) == 10 and sum(sizes) == 25 and set(sizes) <= {2, 3}
        assert all(e[3] == 25 for e in mine if e[0] == "window")
        # A window ends when its last piece has been visited, and not before.
        ends = np.cumsum(sizes).tolist()
        order = [e[3] if e[0] == "visit" else "end" for e in mine[:-1]]
        assert order == [x for end in ends for x in (end, "end")]


def test_there_are_no_more_windows_than_pieces():
    learner = Scripted([4.0], n_samples=3, windows=10)
    run(learner)
    assert [e[2] for e in learner.events if e[0] == "window"] == [1, 1, 1]


def test_blocks_divide_windows_and_are_saved_one_by_one(monkeypatch):
    monkeypatch.setattr(passes_module, "BLOCK", 10)
    learner = Scripted([4.0, 2.0], n_samples=25, windows=2)
    saved = []
    run(learner, save=lambda now: saved.append((len(now.records), now.visited, now.met)))
    assert [e[2] for e in learner.events if e[0] == "window"] == [12, 13, 12, 13]
    blocks = [e for e in learner.events if e[0] == "visit" and e[1] == 0]
    assert len(blocks) > 6
    assert [b[2] for b in blocks] == [0, *(b[3] for b in blocks[:-1])]
    assert {12, 25} <= {b[3] for b in blocks}  # no block reaches across the end of a window
    first = [s for s in saved if s[0] == 0]
    assert [s[1] for s in first] == [b[3] for b in blocks[:-1]]
    np.testing.assert_allclose([s[2] for s in first], [2.0 * b[3] / 25 for b in blocks[:-1]])
    assert saved[-1] == (2, 0, 0.0)  # nothing of a pass that has not begun


def test_a_progress_that_is_finished_stays_so():
    learner = Scripted([4.0, 2.0, 1.0])
    done = Progress()
    records = run(learner, max_passes=2, progress=done)
    assert done.records == records
    assert run(learner, max_passes=2, progress=done) == []
    assert [r.number for r in run(learner, max_passes=3, progress=done)] == [3]


def test_no_pieces_are_no_steps():
    learner = Scripted([4.0])
    nothing = Encoded(np.zeros(3, np.int64), [0], [], [])
    labels = Labels.from_lists([], learner.problem.classes)
    learner.problem = altered(learner.problem, encoded=nothing, labels=labels, sample_weight=None)
    (record,) = run(learner)
    assert learner.seen == [] and record.objective == 2.0  # the penalty


# ------------------------------------------------------------------------- runs that diverge


class Diverging(Scripted):
    """As scripted, with objectives for each start and a limit."""

    def __init__(self, starts, limit: float) -> None:
        super().__init__(starts[0])
        self.starts, self.most, self.begun = starts, limit, 0

    def limit(self, these):
        return self.most

    def restart(self):
        self.begun += 1
        self.objectives = self.starts[min(self.begun, len(self.starts) - 1)]
        return f"start {self.begun}"


def run_with(learner, max_passes=3):
    passes = Passes(learner, WholeSamples(), np.random.default_rng(0))
    saved = []
    watch = Watch(save=lambda now: saved.append(len(now.records)))
    records = passes.run(max_passes=max_passes, tol=-1.0, watch=watch).records
    return passes, [r.objective for r in records], saved


@pytest.mark.parametrize("bad", [11.0, np.inf, np.nan])
def test_a_run_that_diverges_begins_again(bad):
    learner = Diverging([[9.0, bad, 1.0], [8.0, 7.0, 6.0]], limit=10.0)
    passes, objectives, saved = run_with(learner)
    assert objectives == [8.0, 7.0, 6.0] and learner.begun == 1
    assert passes.slowed_down == "start 1" and passes.stop_reason == "max_passes"
    assert learner.numbers == [0, 1, 0, 1, 2] and saved == [1, 0, 1, 2, 3]


def test_a_first_pass_may_be_a_little_worse_than_nothing():
    passes, objectives, _ = run_with(Diverging([[19.0, 9.0, 8.0]], limit=10.0))
    assert objectives == [19.0, 9.0, 8.0] and not passes.slowed_down
    passes, objectives, _ = run_with(Diverging([[21.0, 9.0, 8.0], [7.0, 6.0, 5.0]], limit=10.0))
    assert objectives == [7.0, 6.0, 5.0] and passes.slowed_down == "start 1"


def test_a_run_that_diverges_at_every_rate_ends():
    learner = Diverging([[30.0, 30.0]], limit=10.0)
    passes, objectives, _ = run_with(learner, max_passes=2)
    assert objectives == [] and passes.stop_reason == "diverged" and learner.begun == 9


def test_without_a_limit_nothing_diverges():
    passes, objectives, _ = run_with(Diverging([[3.0, 30.0, 300.0]], limit=np.inf))
    assert objectives == [3.0, 30.0, 300.0] and not passes.slowed_down

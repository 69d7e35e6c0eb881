"""Frame pairs as a learning problem, against a list of all their trackings."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracking_problems import assignments, frame_pair, objects
from trellis.errors import DataError, InfeasibleError
from trellis.problems.partial import PARTIAL_LOSSES, PartialObjective
from trellis.tracking.annotation import annotation_of, events_of, fixed_variables, links_of
from trellis.tracking.features import EventFeature, event_features
from trellis.tracking.hypotheses import make_hypotheses
from trellis.tracking.hypothesis_space import HypothesisSpace
from trellis.tracking.objects import EVENTS, FramePair, Link, Objects, PairAnnotation
from trellis.tracking.preconditioning import Preconditioner
from trellis.tracking.problem import TrackingProblem, as_annotation

REACH = 30.0
SEEDS = st.integers(0, 3)
SIGNS = st.sampled_from([-1.0, 1.0])
LOSSES = st.sampled_from([("hamming", False), ("hamming", True), ("recall", False)])


def odd(*given):
    """A number for each hypothesis that no other has."""
    total = np.zeros(len(given[0]))
    for i, one in enumerate(o for o in given if isinstance(o, Objects)):
        total = total + np.sin((i + 2.0) * one["v"])
    return total


FEATURES = tuple(
    EventFeature(event, name, values)
    for event in EVENTS
    for name, values in (("odd", odd), ("odder", lambda *given: np.cos(9 * odd(*given))))
)


def told_of(pair, h, chosen):
    """What is said if only these hypotheses are."""
    appear, disappear = events_of(pair, h, chosen)
    links = tuple(link[2:5] for link in links_of(pair, h, chosen))
    return PairAnnotation(links, tuple(disappear.tolist()), tuple(appear.tolist()))


def crowd(rng, n, m):
    frames = [
        replace(objects(rng.uniform(0, 10, (k, 2)), first), columns={"v": rng.normal(size=k)})
        for k, first in ((n, 10), (m, 20))
    ]
    return FramePair("film", 3, *frames)


def space_of(pairs, max_distance=REACH):
    blocks = [
        event_features(p, make_hypotheses(p, events=EVENTS, max_distance=max_distance), FEATURES)
        for p in pairs
    ]
    scale = Preconditioner.learn(blocks)
    return HypothesisSpace(EVENTS, 4, max_distance, FEATURES, scale, ("v",))


class Enumerated:
    """Pairs (one known in full, two in part, one not at all, one empty) and all their trackings."""

    def __init__(self, seed, **options):
        rng = np.random.default_rng(seed)
        bare = [crowd(rng, *size) for size in ((2, 3), (3, 2), (2, 2), (2, 1), (0, 0))]
        self.made = space_of(bare)
        self.pairs, self.choices, self.fixed, self.matrix = [], [], [], []
        for pair, share in zip(bare, (1.0, 0.5, 0.4, 0.0, 1.0), strict=True):
            h = make_hypotheses(pair, events=EVENTS, max_distance=REACH)
            choices = list(assignments(h, len(pair.source), len(pair.target)))
            truth = choices[rng.integers(len(choices))]
            told = annotation_of(pair, h, truth)
            if share < 1:  # some of it, not all
                events = rng.permutation(np.flatnonzero(truth))
                known = np.zeros(len(h), bool)
                known[events[: int(np.clip(share * len(events), 1, len(events) - 1))]] = True
                told = told_of(pair, h, known)
            self.pairs.append(replace(pair, annotation=told if share else None))
            self.choices.append(np.array(choices).reshape(len(choices), len(h)))
            self.fixed.append(fixed_variables(pair, h, told if share else None))
            self.matrix.append(self._dense(pair, h))
        self.problem = TrackingProblem(self.pairs, self.made, **options)
        self.cost = options.get("cost", "hamming")
        self.normalise = options.get("normalise", False)

    def _dense(self, pair, h):
        blocks = self.made.preconditioner.transform(event_features(pair, h, FEATURES))
        matrix = np.zeros((len(h), self.made.n_weights))
        seen = [0] * len(EVENTS)
        for row, kind in enumerate(h.kind):
            first = sum(block.shape[1] for block in blocks[:kind])
            values = blocks[kind][seen[kind]]
            matrix[row, first : first + len(values)] = values
            seen[kind] += 1
        return matrix

    def features(self, i):
        return self.choices[i] @ self.matrix[i]

    def loss(self, i):
        f, y = self.fixed[i], self.choices[i]
        missing = (y[:, f == 1] == 0).sum(1)
        false = y[:, f == 0].sum(1) if self.cost == "hamming" else 0
        return (missing + false) / (max(1, (f == 1).sum()) if self.normalise else 1)

    def compatible(self, i):
        f, y = self.fixed[i], self.choices[i]
        return (y[:, f >= 0] == (f[f >= 0] == 1)).all(1)

    def allowed(self, i, space):
        fits = self.compatible(i)
        return {"all": np.ones(len(fits), bool), "compatible": fits, "incompatible": ~fits}[space]

    def values(self, w, i, space, loss=False):
        every = self.features(i) @ w + (self.loss(i) if loss else 0.0)
        return every[self.allowed(i, space)]


@cache
def enumerated(seed, cost="hamming", normalise=False):
    return Enumerated(seed, cost=cost, normalise=normalise)


def weights(case, seed, sign=1.0):
    """Of one sign: with the biases all events are welcome, or none is."""
    return sign * np.abs(np.random.default_rng(seed).normal(size=case.made.n_weights))


# ---------------------------------------------------------------------------------------- maxima


@given(SEEDS, SIGNS, LOSSES, st.booleans(), st.sampled_from(["all", "compatible", "incompatible"]))
@settings(max_examples=16)
def test_maxima_are_those_of_all_trackings(seed, sign, cost, loss, space):
    case = enumerated(seed, *cost)
    w = weights(case, seed, sign)
    if seed % 2:
        w *= np.where(np.arange(len(w)) % 2, 1.0, -1.0)
    found = case.problem.maxima(w, space, loss=loss)
    for i in range(len(case.pairs)):
        values = case.values(w, i, space, loss)
        if not len(values):
            assert found.values[i] == -np.inf
            continue
        assert found.values[i] == pytest.approx(values.max(), abs=1e-9)
        assert found.bounds[i] == pytest.approx(found.values[i], abs=1e-9)
        # The tracking itself: its loss and features make the value.
        mine = case.features(i)[case.allowed(i, space)]
        at = np.abs(mine - found.totals[i]).sum(1).argmin()
        np.testing.assert_allclose(mine[at], found.totals[i], atol=1e-9)
        lost = case.loss(i)[case.allowed(i, space)][at]
        assert found.losses[i] == pytest.approx(lost)
        assert found.totals[i] @ w + loss * lost == pytest.approx(found.values[i], abs=1e-9)
    if space == "compatible":
        np.testing.assert_allclose(found.losses, 0.0, atol=1e-12)


def test_features_are_the_gradient_of_the_values():
    case = enumerated(1)
    w = weights(case, 1, -1.0)
    found = case.problem.maxima(w, "all", loss=True)
    share = np.array([1.0, 0.5, 2.0, 0.0, 1.0])
    slope = np.array(
        [
            (share @ case.problem.maxima(w + step, "all", loss=True).values
             - share @ case.problem.maxima(w - step, "all", loss=True).values) / 2e-6
            for step in 1e-6 * np.eye(len(w))
        ]
    )  # fmt: skip
    np.testing.assert_allclose(found.features(share), slope, atol=1e-5)
    np.testing.assert_allclose(found.features(), found.totals.sum(0))


def test_some_samples_are_as_all():
    case = enumerated(2)
    w = weights(case, 2)
    for space in ("all", "compatible", "incompatible", "mean"):
        whole = case.problem.maxima(w, space, loss=True)
        for samples in ([1], [2, 0], [4, 3, 1], []):
            part = case.problem.maxima(w, space, loss=True, samples=np.array(samples, np.int64))
            np.testing.assert_allclose(part.values, whole.values[samples], atol=1e-12)
            np.testing.assert_allclose(part.losses, whole.losses[samples], atol=1e-12)
            np.testing.assert_allclose(part.totals, whole.totals[samples], atol=1e-12)


@given(SEEDS, SIGNS)
@settings(max_examples=6)
def test_mean_of_all_compatible_trackings(seed, sign):
    case = enumerated(seed)
    w = weights(case, seed, sign)
    found = case.problem.maxima(w, "mean")
    for i in range(len(case.pairs)):
        mean = case.features(i)[case.compatible(i)].mean(0)
        np.testing.assert_allclose(found.totals[i], mean, atol=1e-12)
        assert found.values[i] == pytest.approx(mean @ w, abs=1e-12)
        assert found.losses[i] == 0


def test_what_is_known():
    case = enumerated(0)
    # Nothing can be said of a pair without objects, and nothing is left to be said.
    assert case.problem.annotated.tolist() == [True, True, True, False, False]
    assert case.problem.complete.tolist() == [True, False, False, False, True]
    assert case.problem.n_samples == 5
    assert case.problem.n_weights == 18
    assert case.problem.pairs == case.pairs
    space, scores = case.problem.scores(np.ones(18))
    assert len(scores) == len(space) == sum(len(h) for _, h in case.problem.hypotheses)
    np.testing.assert_allclose(scores, np.concatenate([m.sum(1) for m in case.matrix]))


def test_frames_without_objects():
    rng = np.random.default_rng(0)
    pairs = [crowd(rng, 0, 2), crowd(rng, 2, 0), crowd(rng, 0, 0)]
    pairs = [replace(p, annotation=PairAnnotation()) for p in pairs]
    problem = TrackingProblem(pairs, space_of([crowd(rng, 2, 2)]))
    w = rng.normal(size=problem.n_weights)
    for space in ("all", "compatible", "mean"):
        found = problem.maxima(w, space, loss=True)
        assert found.losses.tolist() == [0, 0, 0]
        assert found.values[2] == 0
    assert (problem.maxima(w, "incompatible").values == -np.inf).all()
    assert not any(problem.update(i, w) for i in range(3))
    everything = np.arange(3)
    assert (problem.margins(w, "best-vs-second", everything) == np.inf).all()
    assert (problem.margins(w, "best-vs-worst", everything) == 0).all()
    assert [len(problem.weakest_part(i, w, 3)) for i in range(3)] == [0, 0, 0]
    nothing = TrackingProblem([], problem.hypothesis_space)
    assert nothing.maxima(w, "all").values.shape == (0,)


def test_unknown_words():
    case = enumerated(0)
    w = weights(case, 0)
    with pytest.raises(DataError, match="there is no space 'some' of trackings"):
        case.problem.maxima(w, "some")
    with pytest.raises(DataError, match="there is no measure 'luck'"):
        case.problem.margins(w, "luck", np.arange(2))
    with pytest.raises(DataError, match="size is 0; a part has at least one object"):
        case.problem.weakest_part(0, w, 0)


# ------------------------------------------------------------------------------ steps and margins


@given(SEEDS, SIGNS)
@settings(max_examples=8)
def test_update_is_a_perceptron_step(seed, sign):
    case = enumerated(seed)
    for i in range(len(case.pairs)):
        w = weights(case, seed + i, sign)
        before = w.copy()
        every, fits = case.features(i), case.compatible(i)
        best = (every @ w).argmax()
        right = every[fits][(every[fits] @ w).argmax()]
        moved = case.problem.update(i, w)
        assert moved == (not fits[best])
        np.testing.assert_allclose(w, before + (right - every[best] if moved else 0), atol=1e-9)


@given(SEEDS, SIGNS, st.sampled_from(["hamming", "recall"]), st.sampled_from([0.01, 100.0]))
@settings(max_examples=12)
def test_passive_aggressive_update(seed, sign, cost, most):
    """The step goes from the greatest of f + loss; unless cut, the two are even after it."""
    case = enumerated(seed, cost)
    for i in range(len(case.pairs)):
        w = weights(case, seed + i, sign)
        before = w.copy()
        every, fits = case.features(i), case.compatible(i)
        offered = every @ w + case.loss(i)
        worst, right = offered.argmax(), every[fits][(every[fits] @ w).argmax()]
        hinge, change = offered[worst] - right @ w, right - every[worst]
        moved = case.problem.update(i, w, most=most)
        assert moved == (not fits[worst] and hinge > 1e-9)
        if moved:
            step = min(most, hinge / (change @ change))
            np.testing.assert_allclose(w, before + step * change, atol=1e-9)
            left = every[worst] @ w + case.loss(i)[worst] - right @ w
            assert left == pytest.approx(max(0.0, hinge - most * (change @ change)), abs=1e-8)
        else:
            np.testing.assert_array_equal(w, before)


@given(SEEDS, SIGNS)
@settings(max_examples=8)
def test_margins(seed, sign):
    case = enumerated(seed)
    w = weights(case, seed, sign)
    samples = np.array([3, 1, 0])
    found = {
        measure: case.problem.margins(w, measure, samples)
        for measure in ("scoring", "best-vs-worst", "best-vs-second")
    }
    for k, i in enumerate(samples):
        values = np.sort(case.values(w, i, "compatible"))[::-1]
        assert found["scoring"][k] == pytest.approx(values[0])
        assert found["best-vs-worst"][k] == pytest.approx(values[0] - values[-1], abs=1e-9)
        second = values[1] if len(values) > 1 else -np.inf
        assert found["best-vs-second"][k] == pytest.approx(values[0] - second, abs=1e-9)


@given(SEEDS, SIGNS, st.integers(1, 6))
@settings(max_examples=12)
def test_weakest_part_is_where_best_and_second_differ(seed, sign, size):
    case = enumerated(seed)
    w = weights(case, seed, sign)
    for i in range(4):
        pair, h = case.problem.hypotheses[i]
        rows = h.covers(len(pair.source))
        known = set(rows[case.fixed[i] == 1].ravel().tolist()) - {-1}
        n = len(pair.source) + len(pair.target)
        part = case.problem.weakest_part(i, w, size)
        assert part.tolist() == sorted(set(part.tolist()) - known)
        mine = case.choices[i][case.compatible(i)]
        order = np.argsort(-(mine @ (case.matrix[i] @ w)), kind="stable")
        differ = set()
        if len(mine) > 1:
            differ = set(rows[mine[order[0]] != mine[order[1]]].ravel().tolist()) - {-1}
        assert differ <= set(part.tolist())
        assert len(part) == min(max(size, len(differ)), n - len(known))


def test_neighbours_fill_the_weakest_part():
    """The object nearest to those in doubt, and not one that is known."""
    pair = frame_pair([(0, 0), (9, 0), (3, 0)], [(0, 1)], PairAnnotation((), (12,), ()))
    for frame in (pair.source, pair.target):
        frame.columns["v"] = np.zeros(len(frame))
    made = space_of([pair], 2.0)
    problem = TrackingProblem([pair], made)
    # Source 10 may have moved to target 20; 11 and 12 are too far from everything.
    w = np.zeros(made.n_weights)
    assert problem.weakest_part(0, w, 1).tolist() == [0, 3]
    assert problem.weakest_part(0, w, 3).tolist() == [0, 1, 3]
    assert problem.weakest_part(0, w, 9).tolist() == [0, 1, 3]


# ------------------------------------------------------------------------------------- annotating


def near_and_far():
    pair = frame_pair([(0, 0), (4, 0)], [(0, 1), (4, 1), (90, 90)])
    for frame in (pair.source, pair.target):
        frame.columns["v"] = np.arange(len(frame), dtype=float)
    other = frame_pair([(0, 0)], [(0, 1)])
    for frame in (other.source, other.target):
        frame.columns["v"] = np.zeros(1)
    return TrackingProblem([pair, other], space_of([pair, other], 10.0))


def test_annotations_add_up():
    problem = near_and_far()
    w = np.ones(problem.n_weights)
    for space in ("all", "mean"):  # nothing of this may be remembered
        problem.maxima(w, space)
    problem.annotate(0, [(10, 20, "move")])
    assert problem.pairs[0].annotation == PairAnnotation(((10, 20, "move"),), (), ())
    assert problem.annotated.tolist() == [True, False]
    assert not problem.complete.any()
    problem.annotate(0, {"links": [], "known_sources": [11], "known_targets": []})
    problem.annotate(0, PairAnnotation((), (), (21, 22)))
    assert problem.complete.tolist() == [True, False]
    problem.annotate(0, [Link("film", 3, 10, 20, "move")])  # said before
    problem.annotate(0, PairAnnotation(((10, 20, "move"),)))  # the same in full
    note = problem.pairs[0].annotation
    assert note.links == ((10, 20, "move"),)
    assert note.complete
    fresh = TrackingProblem(problem.pairs, problem.hypothesis_space)
    for space in ("all", "compatible", "mean"):
        one, two = (p.maxima(w, space, loss=True) for p in (problem, fresh))
        np.testing.assert_array_equal(one.values, two.values)


def test_a_link_outside_the_gates_is_added():
    problem = near_and_far()
    w = np.ones(problem.n_weights)
    before = problem.maxima(w, "all").values
    n = len(problem.hypotheses[0][1])
    problem.annotate(0, [(10, 22, "move")])
    assert len(problem.hypotheses[0][1]) == n + 1
    far = problem.maxima(w, "compatible")
    assert far.losses.tolist() == [0, 0]
    assert problem.maxima(w, "all").values[1] == before[1]
    fresh = TrackingProblem(problem.pairs, problem.hypothesis_space)
    np.testing.assert_array_equal(problem.scores(w)[1], fresh.scores(w)[1])
    np.testing.assert_array_equal(far.values, fresh.maxima(w, "compatible").values)


@pytest.mark.parametrize(
    ("said", "error", "message"),
    [
        ([(10, 21, "move")], InfeasibleError, "source 10 has two fates: .*annotated before"),
        ([(11, 20, "move")], InfeasibleError, "target 20 has two pasts: .*annotated before"),
        ([(10, 20, "merge"), (11, 20, "merge")], InfeasibleError, "two fates: a m.* before"),
        (PairAnnotation((), (10,), ()), InfeasibleError, "source 10 has a link in one annotation"),
        (PairAnnotation((), (), (20,)), InfeasibleError, "target 20 has a link in one annotation"),
        (PairAnnotation(), InfeasibleError, "source 10 has a link in one annotation and none"),
        ([(11, 22, "move")], InfeasibleError, "target 22 has a link in one annotation and none"),
        ([(99, 21, "move")], DataError, "names object 99, which is not in the first frame"),
        (PairAnnotation((), (), (99,)), DataError, "known_targets names object 99"),
        ([(11, 21, "jump")], DataError, "of kind 'jump'"),
        ([(11, 20, "move"), (11, 21, "move")], DataError, "source 11 has two fates[^;]*$"),
        ([(11, 21, "division")], DataError, "not two"),
        (7, DataError, "an annotation is a PairAnnotation, its dict, or a list .* got 7"),
        ([(1, 2)], DataError, "an annotation is a PairAnnotation"),
        ({"links": [3]}, DataError, "an annotation is a PairAnnotation"),
    ],
)
def test_what_cannot_be_changes_nothing(said, error, message):
    problem = near_and_far()
    problem.annotate(0, PairAnnotation(((10, 20, "move"),), (), (22,)))
    w = np.ones(problem.n_weights)
    before, note = problem.maxima(w, "compatible").values, problem.pairs[0].annotation
    with pytest.raises(error, match=message) as caught:
        problem.annotate(0, said)
    assert type(caught.value) is error
    assert problem.pairs[0].annotation == note
    np.testing.assert_array_equal(problem.maxima(w, "compatible").values, before)


def test_annotations_of_no_pair():
    problem = near_and_far()
    for i in (-1, 2):
        with pytest.raises(DataError, match=rf"there is no pair {i}; they are numbered 0 to 1"):
            problem.annotate(i, [(10, 20, "move")])


def test_an_event_that_the_model_does_not_have():
    problem = near_and_far()
    plain = replace(problem.hypothesis_space, events=("move", "appear", "disappear"))
    problem = TrackingProblem(problem.pairs, plain)
    with pytest.raises(DataError, match="a division is annotated, but the events are"):
        problem.annotate(0, [(10, 20, "division"), (10, 21, "division")])
    assert problem.pairs[0].annotation is None


def test_annotation_as_an_annotator_writes_it():
    note = PairAnnotation(((1, 2, "move"),), (), ())
    assert as_annotation(note) is note
    assert as_annotation(note.as_dict()) == note
    assert as_annotation([Link("film", 0, 1, 2, "move")]) == note
    assert as_annotation([]) == PairAnnotation((), (), ())


# --------------------------------------------------------------------------------------- losses


@given(SEEDS, SIGNS, st.sampled_from(list(PARTIAL_LOSSES)), LOSSES)
@settings(max_examples=12)
def test_losses_of_partial_annotations(seed, sign, loss, cost):
    case = enumerated(seed, *cost)
    w = 0.3 * weights(case, seed, sign)
    objective = PartialObjective(case.problem, loss)
    assert objective.samples.tolist() == [0, 1, 2]
    expected = []
    for i in objective.samples:
        spaces = PARTIAL_LOSSES[loss]
        penalty = case.values(w, i, spaces.penalty, loss=True).max()
        if spaces.reward == "mean":
            reward = case.problem.maxima(w, "mean").values[i]
        else:
            reward = case.values(w, i, spaces.reward).max()
        expected.append(max(0.0, penalty - reward))
    np.testing.assert_allclose(objective.losses(w), expected, atol=1e-9)
    assert objective.value(w) == pytest.approx(sum(expected))


@given(SEEDS, SIGNS)
@settings(max_examples=6)
def test_bridge_is_the_latent_hinge(seed, sign):
    """By enumeration of its own definition, over incompatible trackings."""
    case = enumerated(seed)
    w = weights(case, seed, sign)
    bridge, latent = (PartialObjective(case.problem, name) for name in ("bridge", "latent-hinge"))
    np.testing.assert_allclose(bridge.losses(w), latent.losses(w), atol=1e-9)
    direct = case.problem.maxima(w, "incompatible", loss=True).values
    direct -= case.problem.maxima(w, "compatible").values
    np.testing.assert_allclose(bridge.losses(w), np.maximum(direct, 0)[:3], atol=1e-9)

"""TrackingModel: what it learns, from how much, and every complaint."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from tracking_problems import frame_pair
from trellis.cheap import ActiveLearner
from trellis.datasets import LABS, Lab, simulate_cells
from trellis.errors import DataError
from trellis.problems.partial import PartialObjective
from trellis.solvers.frank_wolfe import minimise_frank_wolfe
from trellis.tracking import (
    EVENTS,
    EventFeature,
    FlowTracker,
    FramePair,
    Link,
    Objects,
    PairAnnotation,
    TrackingModel,
    annotated_events,
    patchify,
    score_links,
)
from trellis.tracking.guesses import weight_of_guesses
from trellis.tracking.problem import TrackingProblem

QUIET = Lab(name="quiet", over_segmentation=0.0, under_segmentation=0.0, cycle=12.0)
MOVIE = simulate_cells(20, 8, lab=QUIET, seed=1)
TRAIN, TEST = MOVIE[:4], MOVIE[4:]


def partly(pairs, share, seed=0):
    """Only so many objects are annotated: a random share of them, with the events they are in."""
    rng = np.random.default_rng(seed)
    return [replace(pair, annotation=some(pair, share, rng)) for pair in pairs]


def some(pair, share, rng):
    chosen = [set(o.ids[rng.random(len(o)) < share].tolist()) for o in (pair.source, pair.target)]
    kept = {link for link in pair.annotation.links if link[0] in chosen[0] or link[1] in chosen[1]}
    parents = {a for a, _, kind in kept if kind == "division"}
    kept |= {link for link in pair.annotation.links if link[0] in parents}
    ends = [{link[i] for link in pair.annotation.links} for i in (0, 1)]
    alone = [tuple(sorted(c - e)) for c, e in zip(chosen, ends, strict=True)]
    return PairAnnotation(tuple(sorted(kept)), *alone)


@pytest.fixture(scope="module")
def model():
    return TrackingModel().fit(TRAIN)


def bare(pairs):
    return [replace(pair, annotation=None) for pair in pairs]


# ------------------------------------------------------------------------------- fit and predict


def test_learns_to_track(model):
    result = model.predict(bare(TEST))
    assert {link.kind for link in result.links} == {"move", "division"}
    assert {event.kind for event in result.events} <= {"appear", "disappear"}
    n = sum(len(p.source) for p in TEST) + len(TEST[-1].target)
    assert len(result.objects) == n
    assert any(track.parent > 0 for track in result.tracks)
    assert model.score(TEST) > 0.9
    assert model.task_loss(TEST) < 0.15
    assert model.task_loss(TRAIN) < 0.05


def test_every_object_is_explained_once(model):
    result = model.predict(TEST)
    for pair in TEST:
        mine = [link for link in result.links if link.frame == pair.frame]
        gone = {e.id for e in result.events if (e.frame, e.kind) == (pair.frame, "disappear")}
        came = {e.id for e in result.events if (e.frame, e.kind) == (pair.frame + 1, "appear")}
        assert {link.source_id for link in mine} ^ gone == set(pair.source.ids.tolist())
        assert {link.target_id for link in mine} ^ came == set(pair.target.ids.tolist())


def test_what_training_says_of_itself(model):
    # Without a proof of every maximum the gap may stay somewhat larger than asked for.
    assert model.stop_reason_ in ("gap", "no progress")
    assert 0 <= model.gap_ <= 0.1 * model.objective_
    assert model.history_[-1].objective == pytest.approx(model.objective_)
    assert model.columns_ == ("area", "mean_intensity", "eccentricity", "orientation")
    assert model.max_distance_ > 0
    weights = [w for event in model.coefficients().values() for w in event.values()]
    np.testing.assert_array_equal(weights, model.weights_)
    named = model.coefficients()
    assert list(named) == ["move", "division", "appear", "disappear"]
    assert all(list(event)[-1] == "bias" for event in named.values())
    plain = TrackingModel(bias=False, knots=0).fit(TRAIN[:2]).coefficients()
    assert "distance" in plain["move"]
    assert "bias" not in plain["move"]
    steps = TrackingModel(knots=3).fit(TRAIN[:2]).coefficients()
    assert len(steps["move"]) == 3 * len(plain["move"]) + 1


def test_annotations_and_windows_change_no_prediction(model):
    whole = model.predict(TEST)
    for pairs, window in ((bare(TEST), 50), (TEST, 1), (iter(TEST), 3)):
        other = model.predict(pairs, window=window)
        assert (other.links, other.events) == (whole.links, whole.events)
        assert other.tracks == whole.tracks


def test_k_best(model):
    pairs = TEST[:1]
    best = [
        [link for link in model.predict(pairs).links if link.frame == pair.frame] for pair in pairs
    ]
    for ranked, first in zip(model.predict_kbest(pairs, 4, window=1), best, strict=True):
        scores = [score for _, score in ranked]
        assert ranked[0][0] == first
        assert scores == sorted(scores, reverse=True)
        assert len({tuple(links) for links, _ in ranked}) == len(ranked) == 4
    diverse = model.predict_kbest(pairs, 3, diversity=1e3)[0]
    assert all(score <= diverse[0][1] for _, score in diverse)
    shared = [set(links) & set(diverse[0][0]) for links, _ in diverse[1:]]
    assert min(map(len, shared)) < len(diverse[0][0]) / 2
    alone = frame_pair([(1, 1)], [])
    for column in model.columns_:
        alone.source.columns[column], alone.target.columns[column] = np.ones(1), np.ones(0)
    assert [links for links, _ in model.predict_kbest([alone], 5)[0]] == [[]]


def test_frames_without_objects(model):
    empty = TEST[0].source.take(np.zeros(0, int))
    pairs = [
        FramePair("film", 0, TEST[0].source, empty), FramePair("film", 1, empty, empty),
        FramePair("film", 2, empty, TEST[0].source),
    ]  # fmt: skip
    n = len(TEST[0].source)
    without = clone(model).set_params(max_gap=0).fit(TRAIN).predict(pairs)
    assert without.links == []
    assert [e.kind for e in without.events].count("appear") == n
    missed = model.predict(pairs)
    assert missed.links == [Link("film", 0, i, i, "move", 3) for i in TEST[0].source.ids.tolist()]
    assert missed.events == []
    assert len(missed.tracks) == n


def test_same_seed_same_bits(model):
    np.testing.assert_array_equal(TrackingModel().fit(TRAIN).weights_, model.weights_)
    half = partly(TRAIN[:1], 0.5)
    one, two = (TrackingModel(random_state=3).fit(half).weights_ for _ in range(2))
    np.testing.assert_array_equal(one, two)


# ------------------------------------------------------------------------- objectives and solvers


@pytest.mark.parametrize("options", [{}, {"cost": "recall"}])
def test_complete_annotations_agree_with_frank_wolfe(options):
    pairs, l2 = TRAIN[:2], 0.5
    model = TrackingModel(l2=l2, tol=1e-3, **options).fit(pairs)
    problem = TrackingModel(**options).learning_problems({"": pairs})[""]

    def oracle(i, w):
        here = np.array([i])
        best = problem.maxima(w, "all", loss=True, samples=here)
        true = problem.maxima(w, "compatible", samples=here)
        above = float(best.bounds[0] - true.values[0])
        return (true.totals - best.totals)[0], float(best.losses[0]), above

    other = minimise_frank_wolfe(
        oracle, len(pairs), problem.n_weights, l2=l2, tol=0.03, max_passes=60, seed=0
    )
    assert other.objective >= model.objective_ - model.gap_ - 1e-9
    assert model.objective_ >= other.objective - other.gap - 1e-9
    value = PartialObjective(problem).value(model.weights_) + l2 * model.weights_ @ model.weights_
    assert model.objective_ - model.gap_ - 1e-9 <= value <= model.objective_ + 1e-9


def test_a_quarter_of_the_objects_is_enough():
    """Well above what nothing learned would give, and not far from all annotations."""
    some_known = partly(TRAIN, 0.25)
    assert all(not pair.annotation.complete for pair in some_known)
    model = TrackingModel(l2=0.1, random_state=0).fit(some_known)
    assert model.gap_ == np.inf
    assert model.score(TEST) > 0.9
    heights = [record.objective for record in model.history_]
    assert heights == sorted(heights, reverse=True)


def test_switches_of_the_concave_convex_procedure():
    half = partly(TRAIN[:1], 0.5)
    alone = {"random_state": 0, "prior": None, "knots": 7}
    plain = TrackingModel(**alone, recycle=False, adaptive=False).fit(half)
    usual = TrackingModel(**alone).fit(half)
    assert {record.tol for record in plain.history_} == {0.01}
    assert usual.history_[0].tol > 0.01
    assert sum(r.n_planes for r in plain.history_) > sum(r.n_planes for r in usual.history_)
    assert plain.objective_ == pytest.approx(usual.objective_, rel=0.3)


@pytest.mark.parametrize(
    "options",
    [{"loss": "ramp"}, {"loss": "max", "tol": 0.1}, {"l2": 0.0, "l1": 0.5, "knots": 0}],
)
def test_other_objectives_learn_from_parts(options):
    model = TrackingModel(**{"l2": 0.1, "random_state": 0, **options}).fit(partly(TRAIN[:3], 0.5))
    assert model.score(TEST) > 0.85
    assert (model.gap_ < np.inf) == (options.get("loss") == "max")


def test_l1_leaves_most_features_out():
    model = TrackingModel(l2=0.0, l1=0.1, knots=0).fit(TRAIN[:3])
    assert (model.weights_ == 0).mean() > 0.3
    assert model.score(TRAIN[:3]) > 0.95


def test_pairs_without_annotation_say_nothing_but_scale():
    """They have a share in the quantiles of the features, none in the losses."""
    model = TrackingModel().fit([*TRAIN[:2], *bare(TRAIN[2:])])
    problem = model.learning_problems({"": [*TRAIN[:2], *bare(TRAIN[2:])]})[""]
    assert PartialObjective(problem).samples.tolist() == [0, 1]
    assert model.score(TEST) > 0.9


def test_perceptron():
    model = TrackingModel(solver="perceptron", random_state=0, max_iter=5).fit(TRAIN)
    assert (model.stop_reason_, model.history_, model.gap_) == ("perceptron", [], np.inf)
    assert model.objective_ >= 0
    assert model.score(TEST) > 0.9
    again = TrackingModel(solver="perceptron", random_state=0, max_iter=5).fit(TRAIN)
    np.testing.assert_array_equal(model.weights_, again.weights_)


def test_limit():
    model = TrackingModel(max_iter=2, tol=1e-9).fit(TRAIN[:2])
    assert (model.stop_reason_, len(model.history_)) == ("max_iterations", 2)


@pytest.mark.parametrize("share", [1.0, 0.5])
def test_interrupt_keeps_what_was_learned(share, monkeypatch):
    calls = 0
    maxima = TrackingProblem.maxima

    def interrupted(self, w, space, **more):
        nonlocal calls
        calls += space == "all" and more.get("loss", False)
        if calls > 4:
            raise KeyboardInterrupt
        return maxima(self, w, space, **more)

    monkeypatch.setattr(TrackingProblem, "maxima", interrupted)
    pairs = TRAIN[:2] if share == 1 else partly(TRAIN[:2], share)
    model = TrackingModel(tol=1e-6)
    with pytest.raises(KeyboardInterrupt):
        model.fit(pairs)
    assert model.stop_reason_ == "interrupted"
    assert model.weights_.any()
    assert model.predict(TEST).links


# ------------------------------------------------------------------------------ events, features


def test_events_follow_the_annotations(model):
    assert model.events_ == ("move", "division", "appear", "disappear")
    links = ((10, 20, "split"), (10, 21, "split"))
    pair = frame_pair([(0, 0)], [(0, 1), (1, 0)], PairAnnotation(links))
    found = TrackingModel().fit([pair])
    assert found.events_ == ("move", "division", "appear", "disappear", "split")
    assert [link.kind for link in found.predict([pair]).links] == ["split", "split"]
    fewer = TrackingModel(["move", "appear", "disappear"])
    with pytest.raises(DataError, match="a division is annotated, but the events are move"):
        fewer.fit(TRAIN)


def test_features_of_ones_own():
    """Cells that only go right or left: nothing but the user's feature can tell."""

    def goes_right(source, target):
        return np.sign(target.position[:, 0] - source.position[:, 0])

    rng = np.random.default_rng(0)
    pairs = []
    for t in range(6):
        at = 40.0 * np.arange(6)
        source = Objects(np.arange(6), np.stack([at, rng.random(6)], 1))
        two = np.concatenate([at - 5, at + 5])
        target = Objects(np.arange(12), np.stack([two, rng.random(12)], 1))
        links = tuple((i, 6 + i, "move") for i in range(6))
        pairs.append(FramePair("film", t, source, target, PairAnnotation(links)))
    options = {"events": ("move", "appear", "disappear"), "max_distance": 8.0, "knots": 0}
    mine = EventFeature("move", "goes right", goes_right)
    model = TrackingModel(**options, features=[mine]).fit(pairs[:4])
    assert model.coefficients()["move"]["goes right"] > 0
    assert model.score(pairs[4:]) == 1.0
    assert TrackingModel(**options).fit(pairs[:4]).score(pairs[4:]) < 0.9
    assert model.max_distance_ == 8.0
    broken = EventFeature("move", "broken", lambda source, target: source["colour"])
    with pytest.raises(DataError, match="feature 'broken' of move failed: KeyError"):
        TrackingModel(**options, features=[broken]).fit(pairs)
    with pytest.raises(DataError, match="two features of move with the name 'distance'"):
        TrackingModel(features=[EventFeature("move", "distance", goes_right)]).fit(pairs)


# --------------------------------------------------------------------------- cheap data: two labs


def test_data_sets_count_alike_in_the_scale():
    few = simulate_cells(15, 3, lab="a", seed=2)
    many = simulate_cells(15, 4, lab="b", seed=3)
    model = TrackingModel(EVENTS, max_distance=40.0)
    once = model.learning_problems({"a": few, "b": many})["a"].hypothesis_space
    twice = model.learning_problems({"a": few, "b": many * 3})["a"].hypothesis_space
    swapped = model.learning_problems({"b": many, "a": few})["a"].hypothesis_space
    for other in (twice, swapped):
        for e in range(len(EVENTS)):
            for ours, theirs in (
                (once.preconditioner.quantiles[e], other.preconditioner.quantiles[e]),
                (once.preconditioner.knots[e], other.preconditioner.knots[e]),
            ):
                np.testing.assert_allclose(ours, theirs, rtol=0.1, atol=0.1)


def test_biases_are_the_columns_that_say_so():
    for bias in (True, False):
        problem = TrackingModel(bias=bias).learning_problems({"": TRAIN})[""]
        model = TrackingModel(bias=bias).with_weights(problem, np.arange(problem.n_weights))
        named = [w["bias"] for w in model.coefficients().values() if "bias" in w]
        assert named == problem.bias_columns.tolist()
        assert bool(named) is bias


def test_a_problem_divided_into_patches():
    problem = TrackingModel().learning_problems({"": [*TRAIN[:1], *bare(TRAIN[1:])]})[""]
    divided = problem.divided(objects=3)
    assert divided.n_samples > problem.n_samples and divided.n_weights == problem.n_weights
    assert divided.hypothesis_space is problem.hypothesis_space
    assert sum(len(p.source) for p in divided.pairs) == sum(len(p.source) for p in problem.pairs)
    assert 1 < divided.annotated.sum() < divided.n_samples


def test_two_labs_share_weights_scale_and_gate(tmp_path):
    a = simulate_cells(15, 4, lab=QUIET, seed=2)
    b = simulate_cells(15, 4, lab=replace(LABS["b"], over_segmentation=0.0), seed=3)
    b = [
        replace(p, **{end: without(getattr(p, end), "orientation") for end in ("source", "target")})
        for p in b
    ]
    b[1:] = bare(b[1:])
    model = TrackingModel()
    problems = model.learning_problems({"a": a, "b": b})
    assert problems["a"].n_weights == problems["b"].n_weights
    assert problems["a"].hypothesis_space is problems["b"].hypothesis_space
    alone = [model.learning_problems({"": pairs})[""].hypothesis_space for pairs in (a, b)]
    gates = [space.max_distance for space in alone]
    assert gates[0] != gates[1] and problems["a"].hypothesis_space.max_distance == max(gates)
    assert problems["a"].annotated.all()
    assert problems["b"].annotated.tolist() == [True, False, False]
    names = [(f.event, f.name) for f in problems["a"].hypothesis_space.features]
    assert names == [(f.event, f.name) for f in problems["b"].hypothesis_space.features]
    assert not any("orientation" in name for _, name in names)
    w = np.random.default_rng(0).normal(size=problems["a"].n_weights)
    for name, pairs in (("a", a), ("b", b)):
        fitted = model.with_weights(problems[name], w)
        assert fitted is not model
        assert fitted.max_distance_ == problems[name].hypothesis_space.max_distance
        # A column that only lab a has is neither used nor asked for, also after a file.
        assert "orientation" not in fitted.columns_
        fitted.save(tmp_path / "m.trellis")
        links = fitted.predict(b).links
        assert TrackingModel.load(tmp_path / "m.trellis").predict(b).links == links
        assert len(fitted.predict(pairs).objects) > 0
    assert not hasattr(model, "weights_")
    w[:] = 0  # the copy has weights of its own
    assert fitted.weights_.any()


def without(objects, column):
    return replace(objects, columns={c: v for c, v in objects.columns.items() if c != column})


# -------------------------------------------------------------------------------------- complaints


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": "hinge"}, "loss must be 'bridge', 'latent-hinge', 'ramp' or 'max', got 'hinge'"),
        ({"cost": "f1"}, "cost must be 'hamming' or 'recall', got 'f1'"),
        ({"solver": "sgd"}, "solver must be 'bundle' or 'perceptron', got 'sgd'"),
        ({"l2": -1.0}, "l2 must be a number of at least 0, got -1.0"),
        ({"l1": "much"}, "l1 must be a number of at least 0, got 'much'"),
        ({"l2": 0.0}, "one of l2 and l1 must be positive and the other 0, got l2=0.0 and l1=0.0"),
        ({"l1": 1.0}, "one of l2 and l1 must be positive and the other 0, got l2=1.0 and l1=1.0"),
        ({"tol": 0.0}, "tol must be a positive number, got 0.0"),
        ({"max_distance": "far"}, "max_distance must be 'auto' or a positive number, got 'far'"),
        ({"max_distance": 0}, "max_distance must be 'auto' or a positive number, got 0"),
        ({"max_distance": np.inf}, "max_distance must be 'auto' or a positive number, got inf"),
        ({"max_iter": 0}, "max_iter must be None or a positive integer, got 0"),
        ({"max_iter": 2.5}, "max_iter must be None or a positive integer, got 2.5"),
        ({"random_state": -1}, "random_state must be None or an integer of at least 0, got -1"),
        ({"knots": -1}, "knots must be 'auto' or an integer of at least 0, got -1"),
        ({"prior": "nearest"}, "prior must be None or 'flow', got 'nearest'"),
        ({"knots": 2.5}, "knots must be 'auto' or an integer of at least 0, got 2.5"),
        ({"features": ["area"]}, r"features must be a list of EventFeature, got \['area'\]"),
        ({"events": ("move",)}, "events must be a list with move, appear and"),
        ({"events": "move"}, "events must be 'auto' or a list of move, .*, got 'move'"),
        ({"events": None}, "events must be 'auto' or a list of move, .*, got None"),
        ({"n_neighbors": 0}, "n_neighbors must be a positive integer, got 0"),
        ({"n_neighbors": "all"}, "n_neighbors must be a positive integer, got 'all'"),
    ],
)
def test_parameters(options, message):
    with pytest.raises(DataError, match=message):
        TrackingModel(**options).fit(TRAIN[:1])


def test_data_that_cannot_be(model):
    for call in (model.fit, model.predict, model.score, model.task_loss):
        with pytest.raises(DataError, match="there are no frame pairs"):
            call([])
    with pytest.raises(DataError, match=r"item 1 is of type int, not FramePair; read_detections"):
        TrackingModel().fit([TRAIN[0], 7])
    with pytest.raises(DataError, match="expected a list of FramePair, got FramePair"):
        TrackingModel().fit(TRAIN[0])
    with pytest.raises(DataError, match="expected a list of FramePair, got int"):
        TrackingModel().fit(7)
    with pytest.raises(DataError, match="data set 'b': there are no frame pairs"):
        model.learning_problems({"a": TRAIN, "b": []})
    with pytest.raises(DataError, match="there is no data set"):
        model.learning_problems({})
    with pytest.raises(DataError, match="no frame pair is annotated"):
        model.task_loss(bare(TEST))
    for options in ({"prior": None}, {"solver": "perceptron"}):
        with pytest.raises(DataError, match="nothing is annotated: there is nothing to learn"):
            TrackingModel(**options).fit(bare(TRAIN))
    for window in (0, 1.5):
        with pytest.raises(DataError, match=f"window must be a positive integer, got {window}"):
            model.predict(TEST, window=window)
    for k in (0, 1.5):
        with pytest.raises(DataError, match=f"k must be a positive integer, got {k}"):
            model.predict_kbest(TEST, k)


def test_a_missing_column(model):
    pair = TEST[0]
    blind = replace(pair, target=without(pair.target, "area"))
    with pytest.raises(
        DataError, match=r"'quiet_1', frame 4: the objects have no column 'area', which the model"
    ):
        model.predict([TEST[1], blind])


def test_not_fitted():
    for use in (
        lambda m: m.predict(TEST), lambda m: m.coefficients(), lambda m: m.events_,
        lambda m: m.max_distance_, lambda m: m.save("nowhere"),
    ):  # fmt: skip
        with pytest.raises(NotFittedError, match="this TrackingModel is not fitted yet"):
            use(TrackingModel())


def test_manners_of_scikit_learn(model):
    other = clone(model.set_params(verbose=False))
    assert not hasattr(other, "weights_")
    assert other.get_params() == model.get_params()
    assert repr(TrackingModel(l2=2.0)) == "TrackingModel(l2=2.0)"
    with pytest.raises(DataError, match="TrackingModel has no parameter 'C'"):
        other.set_params(C=1.0)


def test_a_line_for_each_iteration(caplog):
    caplog.set_level("INFO", logger="trellis")
    for pairs in (TRAIN[:1], partly(TRAIN[:1], 0.5)):
        caplog.clear()
        model = TrackingModel().fit(pairs)
        lines = [line for line in caplog.messages if "objective" in line]
        assert len(lines) == len(model.history_) > 0
        assert f"{model.history_[-1].objective:.4f}" in lines[-1]


# ------------------------------------------------------------------------------- little annotation


def f1(pairs, result):
    scores = score_links(annotated_events(pairs)[0], result.links)
    return scores.links.f1, scores.divisions.f1


@pytest.fixture(scope="module")
def untrained():
    """A larger movie, and how well it is tracked without learning."""
    movie = simulate_cells(100, 8, lab=replace(QUIET, cycle=20.0), seed=3)
    return movie, f1(movie, FlowTracker().fit(bare(movie)).predict(bare(movie)))


@pytest.mark.parametrize("n_links", [0, 5, 30])
def test_few_links_are_never_worse_than_none(untrained, n_links):
    """Moves only: divisions are found all the same."""
    movie, (links, divisions) = untrained
    rng = np.random.default_rng(0)
    notes = [[] for _ in movie]
    moves = [(t, link) for t, p in enumerate(movie) for link in p.annotation.links]
    moves = [(t, link) for t, link in moves if link[2] == "move"]
    for i in rng.choice(len(moves), n_links, replace=False):
        notes[moves[i][0]].append(moves[i][1])
    some_known = [
        replace(p, annotation=PairAnnotation(tuple(note), (), ()) if note else None)
        for p, note in zip(movie, notes, strict=True)
    ]
    learned = f1(movie, TrackingModel().fit(some_known).predict(movie))
    assert learned[0] >= links - 0.005
    assert learned[1] >= divisions - 0.02
    assert learned[1] > 0.5


def test_links_that_contradict_the_guesses_are_learned(untrained):
    """All of a pair is annotated otherwise than it looks: everything went, everything came."""
    movie, _ = untrained
    gone = [replace(p, annotation=PairAnnotation()) for p in movie]
    assert len(TrackingModel().fit(gone).predict(movie).links) == 0
    once = TrackingModel().fit([gone[0], *bare(movie[1:])]).predict(movie)
    assert len(once.links) > 0


def test_the_more_is_annotated_the_less_guesses_weigh():
    weights = [weight_of_guesses(known, 1000) for known in (0, 100, 1000, 5000, 10**5)]
    assert weights == sorted(weights, reverse=True)
    assert weights[0] == 1.0
    assert weights[-1] == 0.0
    assert weight_of_guesses(5, 0) == 0.0


def test_without_a_prior_only_annotations_count():
    part = partly(TRAIN[:2], 0.5)
    alone = TrackingModel(prior=None, knots=3, random_state=0).fit(part)
    more = TrackingModel(prior=None, knots=3, random_state=0).fit([*part, *bare(TRAIN[2:])])
    # The scale of features is learned from all pairs, so the weights differ; the losses do not.
    assert len(alone.history_) > 0
    assert alone.objective_ == pytest.approx(more.objective_, rel=0.5)
    with pytest.raises(DataError, match="nothing is annotated"):
        TrackingModel(prior=None).fit(bare(TRAIN))


def test_knots_follow_the_annotation():
    def knots(pairs):
        return TrackingModel(max_iter=1).fit(pairs).hypothesis_space_.preconditioner.knots[0]

    assert len(knots(TRAIN[:1])) == 3
    assert len(knots(simulate_cells(160, 8, lab=QUIET, seed=0))) == 5


def test_a_movie_of_next_to_nothing():
    here, there = frame_pair([(0, 0)], [(1, 0)]), frame_pair([(0, 0)], [])
    model = TrackingModel().fit([here])
    assert [link.kind for link in model.predict([here]).links] == ["move"]
    assert TrackingModel().fit([there]).predict([there]).links == []


@pytest.mark.parametrize(("n", "words"), [(1, "no division in 1 annotated frame pair,")])
def test_a_pair_alone_forgets_divisions_and_says_so(n, words):
    movie = simulate_cells(15, 6, lab=QUIET, seed=3)
    with pytest.warns(RuntimeWarning, match=words):
        TrackingModel().fit(movie[:n])
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        TrackingModel().fit([*movie[:n], *bare(movie[n:])])
        TrackingModel(("move", "appear", "disappear")).fit(movie[:n])
        TrackingModel(prior=None).fit(movie[:n])


def test_steps_on_the_way_are_small_where_there_is_a_prior(untrained):
    movie, _ = untrained
    for prior, most in (("flow", 0.03), (None, None)):
        model = TrackingModel(EVENTS, prior=prior)
        problem = model.learning_problems({"": movie[:2]})[""]
        start = np.random.default_rng(0).normal(size=problem.n_weights)
        w, expected = start.copy(), start.copy()
        assert model.improve(problem, w, [1, 0])
        for i in (1, 0):
            problem.update(i, expected, most=most)
        np.testing.assert_array_equal(w, expected)


def test_answers_do_not_spoil_what_is_known_without_them(untrained):
    """The model on the way is not far worse than the one that nothing was told to."""
    movie, _ = untrained
    patches = patchify(movie, objects=20)
    pool = bare(patches)
    learner = ActiveLearner(TrackingModel(EVENTS), random_state=0)
    learner.query(pool)
    losses = [learner.model_.task_loss(movie)]
    for _ in range(8):
        i = learner.query(pool)
        learner.tell(i, patches[i].annotation)
        losses.append(learner.model_.task_loss(movie))
    assert max(losses) < 1.5 * losses[0]

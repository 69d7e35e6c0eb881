"""Problems with label sets: every maximum, feature, margin and step against enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from label_problems import COSTS, STRUCTURES, Enumerated
from margin_problems import CLASSES, make_problem
from trellis.corpus import Labels, as_corpus
from trellis.decompose import WholeSamples
from trellis.errors import DataError, InfeasibleError
from trellis.features import AttributeEncoder, Encoded
from trellis.problems import HingeLoss, LogLikelihood, Weights
from trellis.problems.label_problem import LabelProblem


def some_problems(n=3, **more):
    for (structure, options), seed in itertools.product(STRUCTURES, range(n)):
        yield Enumerated(seed, structure, indicators=seed == 1, **options, **more)


def split(labels, offsets):
    return [tuple(labels[a:b].tolist()) for a, b in itertools.pairwise(offsets)]


@pytest.mark.parametrize("cost", ["hamming", COSTS], ids=["hamming", "costs"])
@pytest.mark.parametrize("space", ["all", "compatible", "incompatible", "mean"])
def test_maxima(space, cost):
    for e in some_problems(cost=cost):
        base = e.weights()
        for w, augmented in itertools.product((base, -base), (False, True)):
            found = e.problem.maxima(w, space, loss=augmented)
            expected = e.values(w, space, augmented)
            np.testing.assert_allclose(found.values, expected, atol=1e-5)
            weight = e.rng.normal(size=e.n_samples)
            phi = np.zeros(len(w))
            if space == "mean":
                assert not found.losses.any()
                for s in range(e.n_samples):
                    phi += weight[s] * np.mean([e.phi(s, y) for y in e.labellings(s, space)], 0)
            else:
                labels = split(found.labels, e.plain.offsets)
                for s, y in enumerate(labels):
                    if np.isfinite(expected[s]):
                        assert y in set(e.labellings(s, space))
                        assert found.losses[s] == pytest.approx(e.loss(s, y))
                        phi += weight[s] * e.phi(s, y)
                    else:
                        assert found.losses[s] == 0
            np.testing.assert_allclose(found.features(weight), phi, atol=1e-5)
        np.testing.assert_allclose(found.features(), found.features(np.ones(e.n_samples)))


def test_some_samples_in_any_order():
    for e in some_problems(1, known=0.9):
        w = e.weights()
        samples = np.array([2, 0, 2])
        for space in ("all", "compatible", "incompatible", "mean"):
            whole = e.problem.maxima(w, space, loss=True)
            part = e.problem.maxima(w, space, loss=True, samples=samples)
            np.testing.assert_allclose(part.values, whole.values[samples])
            np.testing.assert_allclose(part.losses, whole.losses[samples])
            np.testing.assert_allclose(
                part.features(np.array([1.0, 2, 0])), whole.features(np.array([2.0, 0, 1]))
            )
        none = e.problem.maxima(w, "all", samples=np.zeros(0, np.int64))
        assert none.values.shape == (0,)
        assert not none.features().any()


def test_constrained_copies_in_blocks(monkeypatch):
    monkeypatch.setattr("trellis.problems.label_inference._BLOCK", 20)
    for e in some_problems(2, known=0.9):
        w = e.weights()
        found = e.problem.maxima(w, "incompatible", loss=True)
        np.testing.assert_allclose(found.values, e.values(w, "incompatible", True), atol=1e-5)
        np.testing.assert_allclose(
            found.features() @ w + found.losses.sum(),
            found.values[np.isfinite(found.values)].sum(), atol=1e-5,
        )  # fmt: skip


def test_complete_labels_are_the_hinge_loss():
    p = make_problem(0, longest=5)
    problem, c = p.problem, p.problem.sample_weight
    w = np.random.default_rng(0).normal(size=problem.n_weights)
    best, gold = problem.maxima(w, "all", loss=True), problem.maxima(w, "compatible")
    assert c @ (best.values - gold.values) == pytest.approx(p.risk(w))
    cut = HingeLoss(problem).risk(w)
    assert cut.upper == cut.lower == pytest.approx(p.risk(w))
    np.testing.assert_allclose(best.features(c) - gold.features(c), cut.slope, atol=1e-12)


def test_what_is_known():
    e = Enumerated(3, known=0.5)
    for s in range(e.n_samples):
        assert e.problem.annotated[s] == any(len(known) < 3 for known in e.own(s))
        assert e.problem.complete[s] == all(len(known) == 1 for known in e.own(s))


@pytest.mark.parametrize(("structure", "options"), STRUCTURES)
def test_update_is_a_step_from_best_to_best_compatible(structure, options):
    e = Enumerated(5, structure, known=0.8, **options)
    moved = 0
    for _ in range(5):
        w = e.weights()
        for i in range(e.n_samples):
            new = w.copy()
            changed = e.problem.update(i, new)
            best = max(e.labellings(i), key=lambda y: e.score(w, i, y))
            right = max(e.labellings(i, "compatible"), key=lambda y: e.score(w, i, y))
            assert changed == (best != right)
            np.testing.assert_allclose(new - w, e.phi(i, right) - e.phi(i, best), atol=1e-6)
            moved += changed
    assert moved > 3


@pytest.mark.parametrize(("structure", "options"), STRUCTURES)
def test_margins(structure, options):
    e = Enumerated(6, structure, known=0.5, **options)
    samples = np.array([2, 1, 0])
    for w in (e.weights(), e.weights()):
        for measure in ("scoring", "best-vs-worst", "best-vs-second"):
            found = e.problem.margins(w, measure, samples)
            for s, margin in zip(samples, found, strict=True):
                scores = sorted(e.score(w, s, y) for y in e.labellings(s, "compatible"))
                lead = scores[-1] - scores[-2] if len(scores) > 1 else np.inf
                expected = {"scoring": scores[-1], "best-vs-worst": scores[-1] - scores[0]}
                assert margin == pytest.approx(expected.get(measure, lead), abs=1e-5)


def chain(words, labels, classes=CLASSES):
    corpus = as_corpus([[[w] for w in words.split()]])
    encoder = AttributeEncoder()
    encoded = encoder.learn(corpus)
    return LabelProblem(encoded, Labels.from_lists([labels], classes), encoder.n_features)


def test_weakest_part_of_a_chain_is_a_span():
    p = chain("s s s u s s s", [None, None, None, None, "a", None, None])
    w = np.zeros(p.n_weights)
    W = p.weights(w).node
    W[0] = [5.0, 0, 0]  # s is surely a
    W[1] = [0.1, 0, -1]
    assert p.weakest_part(0, w, 1).tolist() == [3]
    assert p.weakest_part(0, w, 3).tolist() == [1, 2, 3]  # rather than ask for what is known
    assert p.weakest_part(0, w, 100).tolist() == [0, 1, 2, 3, 5, 6]
    p.annotate(0, {3: "b"})
    assert 3 not in p.weakest_part(0, w, 7)
    p.annotate(0, ["a", "a", "a", None, None, "a", "a"])
    assert p.weakest_part(0, w, 3).tolist() == []
    with pytest.raises(DataError, match="size must be a positive integer"):
        p.weakest_part(0, w, 0)


def test_weakest_part_keeps_most_of_what_differs():
    """The one change brings others with it: more nodes differ than are asked for."""
    p = chain("u v v v v s", [None] * 6)
    w = np.zeros(p.n_weights)
    W, T = p.weights(w).arrays()
    W[0] = [0.1, 0, -9]
    W[1] = [0, 0, -99]
    W[2] = [0, 0, 9]
    T[:] = [[5, 0, 0], [0, 5, 0], [0, 0, 0]]
    part = p.weakest_part(0, w, 3)
    assert len(part) == 3
    assert (np.diff(part) == 1).all()
    assert part[-1] <= 4


@pytest.mark.parametrize("structure", ["tree", "graph"])
def test_weakest_part_elsewhere_is_a_neighbourhood(structure):
    edges = [(0, 1), (1, 2), (2, 3), (3, 4), (2, 5)] + [(0, 4)] * (structure == "graph")
    corpus = as_corpus([[["s"]] * 5 + [["u"]]])
    p = LabelProblem(
        AttributeEncoder().learn(corpus), Labels.from_lists([[None] * 6], CLASSES), 2,
        structure=structure, edges=np.array(edges),
    )  # fmt: skip
    w = np.zeros(p.n_weights)
    W = p.weights(w).node
    W[0], W[1] = [5, 0, 0], [0.1, 0, -1]
    assert p.weakest_part(0, w, 1).tolist() == [5]
    assert p.weakest_part(0, w, 2).tolist() == [2, 5]
    assert p.weakest_part(0, w, 4).tolist() == [1, 2, 3, 5]
    p.annotate(0, {2: "a"})
    assert p.weakest_part(0, w, 3).tolist() == [1, 3, 5]


def test_annotations_are_added_up():
    p = chain("s u", [{"a", "b"}, None])
    p.annotate(0, [{"b", "c"}, None])
    assert p.labels.allowed().tolist() == [[False, True, False], [True, True, True]]
    p.annotate(0, {1: "c"})
    assert p.complete.all()
    with pytest.raises(InfeasibleError, match=r"sample 0, position 1: .* 'a' contradicts 'c'"):
        p.annotate(0, ["b", "a"])
    assert p.labels.allowed()[1].tolist() == [False, False, True]


def test_annotation_changes_the_costs():
    e = Enumerated(2, cost=COSTS, known=0.3)
    said = [{"a", "b"} if 0 in known or 1 in known else None for known in e.own(0)]
    e.problem.annotate(0, said)
    for t, names in enumerate(said):
        if names is not None:
            e.sets[t] &= {0, 1}
    w = e.weights()
    found = e.problem.maxima(w, "all", loss=True)
    np.testing.assert_allclose(found.values, e.values(w, "all", True), atol=1e-5)


@pytest.mark.parametrize(
    ("sample", "annotation", "message"),
    [
        (1, ["a", "b"], "no sample 1; they are numbered 0 to 0"),
        (0, ["a"], "sample 0 has 2 positions, but there are 1 labels"),
        (0, {2: "a"}, "sample 0 has positions 0 to 1, not 2"),
        (0, {"0": "a"}, "sample 0 has positions 0 to 1, not '0'"),
        (0, {0: "z"}, "label 'z' at sample 0, position 0 is unknown"),
    ],
)
def test_bad_annotations(sample, annotation, message):
    with pytest.raises(DataError, match=message):
        chain("s u", [None, None]).annotate(sample, annotation)


def test_error_names_the_sample():
    e = Enumerated(0)
    with pytest.raises(DataError, match="label 'z' at sample 2, position 0"):
        e.problem.annotate(2, {0: "z"})


def test_bad_problems():
    e = Enumerated(0)
    with pytest.raises(DataError, match="scores are not finite"):
        e.problem.maxima(np.full(e.problem.n_weights, np.nan), "all")
    with pytest.raises(DataError, match="there is no space 'some'"):
        e.problem.maxima(e.weights(), "some")
    with pytest.raises(DataError, match="there is no measure 'luck'"):
        e.problem.margins(e.weights(), "luck", np.array([0]))
    encoded, labels = e.plain.problem.encoded, Labels.from_lists(e.lists, CLASSES)
    with pytest.raises(DataError, match='structure="tree" needs edges'):
        LabelProblem(encoded, labels, 4, structure="tree")
    function = LabelProblem(encoded, labels, 4, cost=lambda y, c: y)
    with pytest.raises(DataError, match="a cost that is a function needs one label"):
        function.maxima(np.zeros(function.n_weights), "all", loss=True)
    loop = np.array([(0, 1), (1, 2), (0, 2)])
    corpus = as_corpus([[["s"]] * 3])
    with pytest.raises(DataError, match="close a cycle"):
        LabelProblem(
            AttributeEncoder().learn(corpus), Labels.from_lists([[None] * 3], CLASSES), 1,
            structure="tree", edges=loop,
        )  # fmt: skip


def test_features_out_of_range_are_refused():
    labels = Labels.from_lists([["x", "y"]], ["x", "y"])

    def value(indices, n_features=2):
        problem = LabelProblem(Encoded([0, 2], [0, 1, 2], indices, []), labels, n_features)
        pieces = WholeSamples().draw(problem.offsets, np.random.default_rng(0))
        weights = Weights.zeros(2, 2, float)
        return LogLikelihood(problem).value_and_gradient(weights, problem.visits(pieces))[0]

    assert value([0, 1]) == pytest.approx(np.log(4))
    for index in (2, 10**9):
        with pytest.raises(DataError, match=f"indices go up to {index}, but n_features=2"):
            value([0, index])
    with pytest.raises(
        DataError, match=r"node \(2, 2\) .*; expected \(1000000001, 2\) and \(2, 2\)"
    ):
        value([0, 10**9], 10**9 + 1)  # the weights are too few then


@pytest.mark.parametrize("structure", ["chain", "graph"])
def test_arrays_stay_as_they_were_given(structure):
    given = {"sample_weight": np.array([1.0, 2.0])}
    if structure == "graph":
        given |= {"edges": np.array([[0, 1], [2, 3]]), "types": np.array([0, 1])}
    before = {name: array.tolist() for name, array in given.items()}
    corpus = as_corpus([[["s"], ["s"]]] * 2, [["x", "y"]] * 2)
    problem = LabelProblem(
        AttributeEncoder().learn(corpus), corpus.labels, 1, structure=structure, n_types=2, **given
    )
    for name, array in given.items():
        array[:] = 10**8
        assert getattr(problem, name).tolist() == before[name]
        with pytest.raises(ValueError, match="read-only"):
            getattr(problem, name)[0] = 10**8


def test_inexact_inference_is_said():
    corpus = as_corpus([[["s"], ["s"], ["s"]]])
    edges = np.array([(0, 1), (1, 2), (0, 2)])
    labels = Labels.from_lists([[None] * 3], CLASSES[:2])
    found = {}
    for inference in ("lp", "exact"):
        p = LabelProblem(
            AttributeEncoder().learn(corpus), labels, 1, structure="graph", edges=edges,
            inference=inference,
        )  # fmt: skip
        w = np.zeros(p.n_weights)
        p.weights(w).transitions[0] = [[-1, 0], [0, -1]]
        found[inference] = p.maxima(w, "all")
    assert found["lp"].values[0] <= found["exact"].values[0] == -1.0
    assert found["exact"].bounds[0] == pytest.approx(-1.0)
    assert found["lp"].bounds[0] > -0.5


def test_what_is_compatible_costs_nothing():
    """Even where some errors are welcome."""
    costs = np.array([[0.0, -2.0, 0.5], [-1.0, 0.0, 3.0], [0.25, 4.0, 0.0]])
    for e in some_problems(2, cost=costs):
        w = e.weights()
        found = e.problem.maxima(w, "all", loss=True)
        np.testing.assert_allclose(found.values, e.values(w, "all", True), atol=1e-5)


# ---------------------------------------------------------------------- parts by probabilities


@pytest.mark.parametrize(("structure", "more"), STRUCTURES)
@pytest.mark.parametrize("measure", ["information-density", "token-confidence", "token-entropy"])
@pytest.mark.parametrize("size", [1, 2, 9])
def test_weakest_parts_are_those_of_the_enumerated_labellings(structure, more, measure, size):
    p = Enumerated(4, structure, **more)
    w, problem = p.weights(), p.problem
    parts, margins = problem.weakest_parts(w, measure, np.arange(p.n_samples), size)
    familiar = problem.familiarity
    for s, (part, margin) in enumerate(zip(parts, margins, strict=True)):
        doubts = doubts_of(p, w, s, measure)
        rows = problem.offsets[s] + np.arange(len(doubts))
        if measure == "information-density":
            doubts *= familiar[rows] ** 2
        open_ = problem.open_nodes(s)
        assert set(part.tolist()) <= set(open_.tolist())
        assert (np.diff(part) > 0).all()
        assert margin == pytest.approx(-doubts[part].sum(), abs=1e-9)
        if structure == "chain":
            width = min(size, len(doubts))
            windows = [doubts[a : a + width].sum() for a in range(len(doubts) + 1 - width)]
            assert -margin == pytest.approx(max(windows, default=0.0), abs=1e-9)
        else:
            assert len(part) == min(size, len(open_))
            if len(open_) and doubts.max() > 1e-9:
                assert np.isclose(doubts[part], doubts.max(), atol=1e-9).any()


def doubts_of(p, w, s, measure):
    """Doubt of each node by all labellings that are possible."""
    ys = list(p.labellings(s, "compatible"))
    scores = np.array([p.score(w, s, y) for y in ys])
    chances = np.exp(scores - scores.max())
    chances /= chances.sum()
    n = len(p.own(s))
    q = np.zeros((n, p.problem.n_labels))
    for chance, y in zip(chances, ys, strict=True):
        for t in range(n):
            q[t, y[t]] += chance
    if measure == "token-entropy":
        return -(q * np.log(np.where(q > 0, q, 1.0))).sum(axis=1)
    return -np.log(q.max(axis=1)) if n else np.zeros(0)


def test_parts_are_checked():
    p = chain("s u", [None, None])
    with pytest.raises(DataError, match="measure must be 'information-density', "):
        p.weakest_parts(np.zeros(p.n_weights), "best-vs-second", np.array([0]), 1)
    with pytest.raises(DataError, match="size must be a positive integer, got 0"):
        p.weakest_parts(np.zeros(p.n_weights), "token-entropy", np.array([0]), 0)


def test_open_nodes_are_those_without_one_label():
    p = chain("s u s s", ["a", None, {"a", "b"}, "c"])
    assert p.open_nodes(0).tolist() == [1, 2]
    assert p.n_open.tolist() == [2]
    assert p.vague_rows.tolist() == [False, True, False, False]


def test_near_annotated_are_the_known_and_their_neighbours():
    p = chain("s u v s u v s", [None, "a", None, None, None, "b", None])
    near = p.near_annotated(np.array([0]))
    assert near.offsets.tolist() == [0, 3, 6]
    assert near.labels.tolist() == [None, "a", None, None, "b", None]
    assert near.encoded.indices.tolist() == [0, 1, 2, 1, 2, 0]
    assert near.sample_weight.tolist() == [1.0, 1.0]
    p = chain("s u v", ["a", {"a", "b"}, "c"])
    assert p.near_annotated(np.array([0])).offsets.tolist() == [0, 3]
    assert chain("s u", [None, None]).near_annotated(np.array([0])).n_samples == 0


def test_features_met_are_numbered_anew():
    p = chain("s u v s", ["a", "b", "c", "a"])
    part = p.part(np.zeros(0, np.int64))
    few, met = part.with_features_met()
    assert (few.n_features, met.tolist()) == (0, [])
    corpus = as_corpus([[["s"], ["u"]], [["v"], ["s"]]])
    encoder = AttributeEncoder()
    encoded = encoder.learn(corpus)
    p = LabelProblem(encoded, Labels.from_lists([["a", "b"], ["c", "a"]], CLASSES), 3)
    few, met = p.part(np.array([1])).with_features_met()
    assert met.tolist() == [0, 2]
    assert few.encoded.indices.tolist() == [1, 0]
    assert few.n_weights == (2 + 3) * 3
    w = np.random.default_rng(0).normal(size=p.n_weights)
    small = p.weights(w)
    own = np.concatenate([small.node[met].ravel(), small.transitions.ravel()])
    value = p.maxima(w, "all", samples=np.array([1])).values
    assert few.maxima(own, "all").values == pytest.approx(value)

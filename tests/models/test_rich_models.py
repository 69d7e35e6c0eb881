"""Rich edges: what they learn, and that every answer is that of enumeration."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from rich_models import edge_weight, rich_scores, same_model, switches

import trellis.models.scored_model as predictor
from chain_problems import in_scheme, log_sum, probabilities, toy_language
from trellis import ChainCRF, ChainPerceptron, Corpus, DataError, InfeasibleError
from trellis.corpus import as_corpus
from trellis.corpus.schemes import get_scheme
from trellis.features import prepare

BOTH = pytest.mark.parametrize("kind", [ChainCRF, ChainPerceptron])
X, Y = switches(150)
X_NEW, Y_NEW = switches(40, seed=1)
BIO, BIO_Y = toy_language(60)


# ------------------------------------------------------------------------- learning


def learned(kind, n_labels=2, late=False, n=150, **options):
    train, new = (switches(m, n_labels, seed, late) for m, seed in ((n, 0), (40, 1)))
    if kind is ChainCRF:
        options = {"l2": 0.01, **options}
    model = kind("word", max_passes=20, tol=-1, random_state=0, **options).fit(*train)
    return model, model.score(*new)


@BOTH
@pytest.mark.parametrize("rich", [True, "current", "both"])
@pytest.mark.parametrize("pairs", ["all", "observed"])
def test_transitions_that_depend_on_the_observation_are_learned(kind, rich, pairs):
    model, score = learned(kind, rich_edges=rich, edge_pairs=pairs)
    _, plain = learned(kind)
    assert plain < 0.7 and score > 0.95
    edge = model.weights_.edge
    assert edge.both == (rich == "both")
    assert edge.n_crossed == model.n_features_ == 4
    assert bool(edge.ptr.size) == (pairs == "observed")


@BOTH
def test_many_labels_have_observed_pairs_only(kind):
    model, score = learned(kind, 9, n=400, rich_edges=True, edge_negatives=2)
    assert score > 0.95
    edge = model.weights_.edge
    sizes = np.diff(edge.ptr)
    assert len(sizes) == model.n_features_ and sizes.max() <= 9 + 2  # of 81 pairs
    few, _ = learned(kind, 8, n=20, rich_edges=True)
    assert not few.weights_.edge.ptr.size and few.weights_.edge.values.size == 64 * few.n_features_


@BOTH
def test_features_of_the_position_before_are_another_matter(kind):
    """Each symbol says how the label goes on *after* it: only «both» can know."""
    _, current = learned(kind, late=True, rich_edges="current")
    _, both = learned(kind, late=True, rich_edges="both")
    assert current < 0.85 and both > 0.98


@pytest.mark.parametrize("solver", ["sgd", "adf", "lbfgs"])
@pytest.mark.parametrize("pairs", ["all", "observed"])
def test_every_solver_learns_them(solver, pairs):
    _, score = learned(ChainCRF, rich_edges=True, edge_pairs=pairs, solver=solver)
    assert score > 0.98


def test_pairs_that_are_rare_can_be_left_out():
    x = [["start0", "by0"]] * 99 + [["start0", "by0"]]
    y = [["A", "A"]] * 99 + [["A", "B"]]
    sizes = {
        share: ChainCRF(
            "word", rich_edges=True, edge_pairs="observed", edge_negatives=0,
            edge_min_share=share, max_passes=1, random_state=0,
        ).fit(x, y).weights_.edge.values.size
        for share in (0.0, 0.01, 0.02)
    }  # fmt: skip
    assert sizes == {0.0: 2, 0.01: 2, 0.02: 1}


def test_without_rich_edges_there_are_none():
    for value in (False, np.False_):
        assert ChainCRF(rich_edges=value, max_passes=1).fit(X, Y).weights_.edge is None
    assert ChainCRF(rich_edges=np.True_, max_passes=1).fit(X, Y).weights_.edge is not None


# ------------------------------------------------------------------------- templates with @ edge


@BOTH
def test_only_templates_that_say_so_are_crossed(kind):
    corpus = Corpus.from_columns({"word": X, "junk": [["j"] * len(s) for s in X]}, Y)
    model = kind("junk; word @ edge; word & junk", random_state=0, max_passes=15).fit(corpus)
    names = model.encoder_.names(range(model.n_features_))
    crossed = [n for n, row in zip(names, model.weights_.edge.row, strict=True) if row >= 0]
    assert crossed == [n for n in names if n.startswith("word=") and "&" not in n]
    assert len(crossed) == 4
    new = Corpus.from_columns({"word": X_NEW, "junk": [["j"] * len(s) for s in X_NEW]}, Y_NEW)
    assert model.score(new) > 0.98
    everything = kind("junk; word @ edge", rich_edges=True, max_passes=1).fit(corpus)
    assert (everything.weights_.edge.row == np.arange(5)).all()


def test_ready_made_features_are_crossed_when_asked():
    samples = [[{"w": w, "n": 1.0} for w in s] for s in X]
    model = ChainCRF(rich_edges=True, l2=0.01, random_state=0).fit(samples, Y)
    assert model.score(samples, Y) > 0.98
    assert ChainCRF(max_passes=1, random_state=0).fit(samples, Y).weights_.edge is None


@BOTH
def test_a_prepared_corpus_gives_the_same_bits(kind, tmp_path):
    corpus = Corpus.from_columns({"word": X}, Y)
    for features, rich in (("word; bias @ edge", False), ("word", "both")):
        options = {"edge_pairs": "observed", "rich_edges": rich, "random_state": 0, "max_passes": 2}
        made = prepare(corpus, tmp_path / f"p{rich}", features)
        a = kind(features, **options).fit(made)
        b = kind(features, **options).fit(corpus)
        assert b.weights_.edge is not None and same_model(a.weights_, b.weights_)


# ------------------------------------------------------------------------- exact answers


KINDS = {
    "dense": {"rich_edges": True, "edge_pairs": "all"},
    "dense both": {"rich_edges": "both", "edge_pairs": "all"},
    "sparse": {"rich_edges": True, "edge_pairs": "observed", "edge_negatives": 1},
    "sparse both": {"rich_edges": "both", "edge_pairs": "observed", "edge_negatives": 1},
    "some": {"features": "word @ edge; word[-1]; bias"},
}
SHORT = [["Ada", "met"], ["the", "Bohr", "Curie", "Ada"], ["Zuse", "Ada", "Ada"], ["qq"]]


@pytest.fixture(scope="module", params=KINDS)
def crf(request) -> ChainCRF:
    """A model that is not too sure of itself."""
    options = {"features": "word; word[-1]", **KINDS[request.param]}
    return ChainCRF(**options, l2=1.0, max_passes=3, random_state=0).fit(BIO, BIO_Y)


@pytest.fixture(scope="module", params=KINDS)
def perceptron(request) -> ChainPerceptron:
    options = {"features": "word; word[-1]", **KINDS[request.param]}
    return ChainPerceptron(**options, max_passes=2, random_state=0).fit(BIO, BIO_Y)


def test_the_weights_are_not_trivial(crf, perceptron):
    for model in (crf, perceptron):
        assert np.abs(model.weights_.edge.values).max() > 0.05
        assert len(set(model.weights_.edge.values.tolist())) > 10


@pytest.mark.parametrize("sample", SHORT)
def test_labels_and_k_best(crf, perceptron, sample):
    for model in (crf, perceptron):
        scores = rich_scores(model, sample)
        ranked = model.predict_kbest([sample], 1000)[0]
        (found,) = model.predict([sample])
        assert scores[tuple(found)] == pytest.approx(max(scores.values()), abs=1e-4)
        assert {tuple(y) for y, _ in ranked} == set(scores)
        for y, score in ranked:
            assert score == pytest.approx(scores[tuple(y)], abs=1e-4)
        assert [s for _, s in ranked] == sorted((s for _, s in ranked), reverse=True)


@pytest.mark.parametrize("sample", SHORT)
def test_marginals_and_entropy(crf, sample):
    share = probabilities(rich_scores(crf, sample))
    expected = np.zeros((len(sample), 3))
    for y, p in share.items():
        for t, label in enumerate(y):
            expected[t, crf.classes_.index(label)] += p
    (found,) = crf.predict_marginals([sample])
    np.testing.assert_allclose(found, expected, atol=1e-5)
    entropy = -math.fsum(p * math.log(p) for p in share.values() if p > 0)
    assert crf.entropy([sample])[0] == pytest.approx(entropy, abs=1e-4)


def test_samples_are_drawn_from_the_distribution(crf):
    sample = SHORT[1][:3]
    share = probabilities(rich_scores(crf, sample))
    (drawn,) = crf.sample([sample], 4000, random_state=0)
    for y, p in share.items():
        count = sum(tuple(d) == y for d in drawn)
        assert abs(count - 4000 * p) < 5 * math.sqrt(4000 * p * (1 - p)) + 1


def test_probabilities_of_spans(crf):
    rules = get_scheme("BIO")
    seen = 0
    for sample in SHORT:
        share = probabilities(rich_scores(crf, sample))
        predicted = crf.predict([sample])[0]
        for kind, start, end, p in crf.predict_spans([sample])[0]:
            expected = math.fsum(
                q
                for y, q in share.items()
                if (kind, start, end) in rules.spans(list(y))
                and y[start:end] == tuple(predicted[start:end])
            )
            assert p == pytest.approx(expected, abs=1e-5)
            seen += 1
    assert seen >= 3


def test_constraints(crf):
    sample = SHORT[1]
    sets = [[{"O", "B-PER"}, None, "O", {"I-PER", "B-PER"}]]
    allowed = [set(s) if isinstance(s, set) else {s} if s else set(crf.classes_) for s in sets[0]]
    scores = {
        y: s
        for y, s in rich_scores(crf, sample).items()
        if all(label in may for label, may in zip(y, allowed, strict=True))
    }
    (found,) = crf.predict([sample], constraints=sets)
    assert tuple(found) == max(scores, key=scores.__getitem__)
    (marginals,) = crf.predict_marginals([sample], constraints=sets)
    share = probabilities(scores)
    for t, j in itertools.product(range(4), range(3)):
        expected = math.fsum(p for y, p in share.items() if y[t] == crf.classes_[j])
        assert marginals[t, j] == pytest.approx(expected, abs=1e-5)


PAIRS = pytest.mark.parametrize("pairs", ["all", "observed"])


@PAIRS
def test_a_scheme_rules_rich_edges_too(pairs):
    model = ChainCRF(
        "word", scheme="BIO", rich_edges="both", edge_pairs=pairs, max_passes=1, l2=5.0,
        random_state=0,
    ).fit(BIO, BIO_Y)  # fmt: skip
    for sample in SHORT:
        valid = {y: s for y, s in rich_scores(model, sample).items() if in_scheme("BIO", y)}
        (found,) = model.predict([sample])
        assert valid[tuple(found)] == pytest.approx(max(valid.values()), abs=1e-5)
        assert model.predict_kbest([sample], 1)[0][0][1] == pytest.approx(max(valid.values()), 1e-4)
        log_z = log_sum(list(valid.values()))
        expected = -math.fsum(math.exp(s - log_z) * (s - log_z) for s in valid.values())
        assert model.entropy([sample])[0] == pytest.approx(expected, abs=1e-4)
    with pytest.raises(InfeasibleError, match=r"sample 1 \(of 2 positions\) has no allowed label"):
        model.predict([["Ada"], ["Ada", "met"]], constraints=[[None], ["O", "I-PER"]])


@pytest.mark.parametrize("block", [1, 40])
def test_blocks_of_samples_change_nothing(crf, monkeypatch, block):
    samples = [*BIO[:6], [], ["Ada"]]

    def answers():
        return (
            crf.predict(samples),
            crf.predict_kbest(samples, 3),
            [m.tolist() for m in crf.predict_marginals(samples)],
            crf.entropy(samples).tolist(),
            crf.predict_spans(samples),
        )

    at_once = answers()
    monkeypatch.setattr(predictor, "_EDGES", block)
    assert answers() == at_once


def test_potentials_have_the_same_tables_in_either_form(crf):
    corpus = as_corpus([*BIO[:6], [], ["Ada"]])
    ((plain, _),) = crf.potentials(corpus)
    ((compact, _),) = crf.potentials(corpus, compact=True)
    assert plain.changes is None and plain.trans.ndim == 3
    assert (compact.changes is None) == (not crf.weights_.edge.ptr.size)
    assert (compact.tables()[plain.steps] == plain.trans[plain.steps]).all()
    assert (compact.node == plain.node).all()


@PAIRS
def test_real_values_weigh_edges(pairs):
    rng = np.random.default_rng(0)
    samples = [[{"x": rng.normal(), "y": rng.normal()} for _ in range(4)] for _ in range(40)]
    labels = [["A" if p["x"] > p["y"] else "B" for p in s] for s in samples]
    model = ChainCRF(rich_edges="both", edge_pairs=pairs, max_passes=4, random_state=0)
    model.fit(samples, labels)
    scores = rich_scores(model, samples[0])
    for y, score in model.predict_kbest(samples[:1], 100)[0]:
        assert score == pytest.approx(scores[tuple(y)], abs=1e-4)


@PAIRS
def test_edges_too_large_to_be_scored_are_named(pairs):
    samples = [[{"x": 1.0}, {"x": -1.0}, {"x": 2.0}]] * 5
    model = ChainCRF(rich_edges=True, edge_pairs=pairs, max_passes=3, random_state=0)
    model.fit(samples, [["A", "B", "A"]] * 5)
    model.weights_.node[:] = 0  # nodes can be scored, edges cannot
    model.weights_.edge.values[:] = 1e3
    huge = [[{"x": 1.0}], [{"x": 1.0}, {"x": 3e38}]]
    with np.errstate(over="ignore"):
        with pytest.raises(DataError, match="sample 1, position 1: feature values are too large"):
            model.predict(huge)
        # the first position has no edge, so nothing of it is too large
        assert len(model.predict([[{"x": 1.0}], [{"x": 3e38}], [{"x": 3e38}]])) == 3


# ------------------------------------------------------------------------- explanations


def check_sums(model, sample) -> None:
    explained = model.explain([sample], n_features=10**6).positions
    predicted = model.predict([sample])[0]
    scores = rich_scores(model, sample)
    for t, position in enumerate(explained):
        swapped = {
            other: scores[(*predicted[:t], other, *predicted[t + 1 :])]
            for other in model.classes_
            if other != predicted[t]
        }
        assert swapped[position.rival] == pytest.approx(max(swapped.values()), abs=1e-4)
        listed = position.transitions + sum(value for _, value in position.features)
        difference = scores[tuple(predicted)] - swapped[position.rival]
        assert listed == pytest.approx(difference, abs=1e-4)


@pytest.mark.parametrize("sample", SHORT)
def test_contributions_add_up(crf, perceptron, sample):
    check_sums(crf, sample)
    check_sums(perceptron, sample)


def test_a_feature_contributes_what_its_edges_add():
    model = ChainCRF("word @ edge", max_passes=3, random_state=0).fit(BIO, BIO_Y)
    sample = ["the", "Ada", "met"]
    position = model.explain([sample]).positions[1]
    predicted = [model.classes_.index(y) for y in model.predict([sample])[0]]
    rival = model.classes_.index(position.rival)
    (f,) = np.flatnonzero(np.array(model.encoder_.names(range(model.n_features_))) == "word=Ada")
    node, edge = model.weights_.node[f], model.weights_.edge
    own = [edge_weight(edge, 3, f, 0, predicted[0], y) for y in range(3)]
    expected = node[predicted[1]] + own[predicted[1]] - node[rival] - own[rival]
    assert dict(position.features)["word=Ada"] == pytest.approx(expected, abs=1e-5)


def test_contributions_of_real_values_add_up():
    rng = np.random.default_rng(0)
    samples = [[{"x": rng.normal(), "y": rng.normal()} for _ in range(4)] for _ in range(40)]
    labels = [["A" if p["x"] > p["y"] else "B" for p in s] for s in samples]
    check_sums(ChainCRF(rich_edges="both", random_state=0).fit(samples, labels), samples[0])


# ------------------------------------------------------------------------- more data later


@BOTH
@pytest.mark.parametrize("pairs", ["all", "observed"])
@pytest.mark.parametrize("rich", ["current", "both"])
def test_warm_start_keeps_the_edges_and_adds_those_of_new_features(kind, pairs, rich):
    model = kind(
        "word", rich_edges=rich, edge_pairs=pairs, max_passes=5, warm_start=True, random_state=0
    ).fit(X, Y)
    before = model.weights_.copy()
    seen = []
    real = model._learner

    def spy(data, start, rng):
        seen.append(start.copy())
        return real(data, start, rng)

    model._learner = spy
    swapped = [[w.replace("by", "new") for w in s] for s in X]
    model.fit(swapped, Y)
    (start,) = seen
    names = model.encoder_.names(range(model.n_features_))
    assert model.n_features_ == len(start.node) == len(start.edge.row) == 6
    known = len(before.node)
    for f, back, a, b in itertools.product(range(known), (0, 1), (0, 1), (0, 1)):
        old = edge_weight(before.edge, 2, f, back, a, b)
        assert edge_weight(start.edge, 2, f, back, a, b) == old, names[f]
    for f in range(known, 6):
        assert start.edge.row[f] >= 0 and not any(
            edge_weight(start.edge, 2, f, back, a, b)
            for back, a, b in itertools.product((0, 1), repeat=3)
        )
    assert model.score(swapped, Y) > 0.98 and model.score(X, Y) > 0.8
    if pairs == "observed":
        assert len(start.edge.ptr) == start.edge.n_rows + 1


def test_warm_start_crosses_new_features_of_edge_templates_only():
    corpus = Corpus.from_columns({"word": X, "junk": [["j"] * len(s) for s in X]}, Y)
    model = ChainCRF("junk; word @ edge", max_passes=1, warm_start=True, random_state=0).fit(corpus)
    more = Corpus.from_columns({"word": [["w", "v"]], "junk": [["k", "j"]]}, [["L00", "L01"]])
    model.fit(more)
    names = model.encoder_.names(range(model.n_features_))
    crossed = {n for n, row in zip(names, model.weights_.edge.row, strict=True) if row >= 0}
    assert "word=w" in crossed and "junk=k" in names
    assert crossed == {n for n in names if n.startswith("word")}


@BOTH
@pytest.mark.parametrize("pairs", ["all", "observed"])
def test_a_stream_learns_rich_edges(kind, pairs):
    """Batch by batch, symbols in batches of their own: the vocabulary grows on the way."""
    options = {"l2": 0.01, "learning_rate": 0.3} if kind is ChainCRF else {}
    model = kind("word", rich_edges="both", edge_pairs=pairs, random_state=0, **options)
    sizes = []
    for round_ in range(4):
        for i in range(0, 150, 30):
            part = X[i : i + 30]
            if i >= 60 or round_:
                part = [[w.replace("by1", "move") for w in s] for s in part]
            model.partial_fit(part, Y[i : i + 30], classes=["L00", "L01"])
            sizes.append(len(model.weights_.edge.row))
            assert sizes[-1] == model.n_features_ == len(model.weights_.node)
    assert sizes[0] < sizes[-1]
    moved = [[w.replace("by1", "move") for w in s] for s in X_NEW]
    assert model.score(moved, Y_NEW) > 0.95


def test_an_interrupt_while_features_are_learned_leaves_edges_that_fit(monkeypatch):
    model = ChainCRF("word", rich_edges=True, max_passes=1, warm_start=True, random_state=0)
    model.fit(X, Y)
    before = model.predict(X_NEW)
    real = type(model.encoder_).learn

    def interrupted(self, corpus):
        real(self, corpus)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(type(model.encoder_), "learn", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.fit([["strange", "word"]], [["L00", "L01"]])
    assert len(model.weights_.edge.row) == model.n_features_
    assert model.predict(X_NEW) == before
    model.predict([["strange", "word"]])


@BOTH
@pytest.mark.parametrize("first", [("both", "observed"), (True, "all")])
def test_the_kind_of_edges_stays_that_of_the_first_fit(kind, first):
    model = kind(
        "word", rich_edges=first[0], edge_pairs=first[1], max_passes=2, warm_start=True,
        random_state=0,
    ).fit(X, Y)  # fmt: skip
    before = model.weights_.edge
    other = (True, "all") if first[0] == "both" else ("both", "observed")
    model.set_params(rich_edges=other[0], edge_pairs=other[1])
    model.fit([["strange", "word"]] * 3, [["L00", "L01"]] * 3)
    edge = model.weights_.edge
    assert edge.both == before.both and bool(edge.ptr.size) == bool(before.ptr.size)
    assert edge.n_crossed == before.n_crossed + 2
    assert model.score(X, Y) > 0.7


def test_edges_cannot_be_added_to_a_model_fitted_without():
    model = ChainCRF("word", max_passes=1, warm_start=True, random_state=0)
    model.fit([["a", "b"]], [["X", "Y"]]).set_params(rich_edges=True)
    with pytest.raises(DataError, match="fitted without rich edges; fit it afresh"):
        model.fit([["a", "b"]], [["X", "Y"]])

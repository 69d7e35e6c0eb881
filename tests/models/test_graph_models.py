"""Tree and graph estimators: they learn, agree with enumeration, and mind their manners."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from functools import partial

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from trellis import (
    DataError,
    GraphCRF,
    GraphPerceptron,
    InfeasibleError,
    TreeCRF,
    TreePerceptron,
    load_model,
)
from trellis.corpus import as_graph_corpus

MODELS = [TreeCRF, TreePerceptron, GraphCRF, GraphPerceptron]
SQUARE = [(0, 1), (1, 2), (2, 3), (3, 0)]


def toy_trees(n: int, seed: int = 0):
    """Trees whose inner nodes are B below A and A below B; half of the nodes show their label."""
    rng = np.random.default_rng(seed)
    X, y, edges, types = [], [], [], []
    for _ in range(n):
        size = int(rng.integers(2, 8))
        parents = [int(rng.integers(0, v)) for v in range(1, size)]
        labels = [str(rng.choice(["A", "B"]))]
        kinds = []
        for v, p in enumerate(parents, 1):
            kind = str(rng.choice(["same", "other"]))
            kinds.append(kind)
            flipped = {"A": "B", "B": "A"}[labels[p]]
            labels.append(labels[p] if kind == "same" else flipped)
            assert v == len(labels) - 1
        shown = [[y] if rng.random() < 0.5 else ["?"] for y in labels]
        X.append(shown)
        y.append(labels)
        edges.append([(v, p) for v, p in enumerate(parents, 1)])
        types.append(kinds)
    return X, y, edges, types


def toy_squares(n: int, seed: int = 0):
    """Squares of one label each; a node shows it, or nothing."""
    rng = np.random.default_rng(seed)
    y = [[str(rng.choice(["A", "B", "C"]))] * 4 for _ in range(n)]
    X = [[[label] if rng.random() < 0.5 else ["?"] for label in labels] for labels in y]
    for sample, labels in zip(X, y, strict=True):
        sample[0] = [labels[0]]
    return X, y, [SQUARE] * n


@pytest.mark.parametrize("model", MODELS)
def test_learns_what_types_of_edges_mean(model):
    X, y, edges, types = toy_trees(60)
    fitted = model(random_state=0, directed=True).fit(X, y, edges=edges, edge_types=types)
    assert fitted.edge_types_ == ("other", "same")
    assert fitted.weights_.transitions.shape == (2, 2, 2)
    X, y, edges, types = toy_trees(30, seed=1)
    with_types = fitted.score(X, y, edges=edges, edge_types=types)
    blind = model(random_state=0, directed=True).fit(X, y, edges=edges)
    assert blind.edge_types_ == () and blind.weights_.transitions.shape == (1, 2, 2)
    assert with_types > 0.9 > blind.score(X, y, edges=edges)


@pytest.mark.parametrize("model", [GraphCRF, GraphPerceptron])
@pytest.mark.parametrize("options", [{}, {"piece_size": 2.5}, {"directed": True}])
def test_learns_on_loops(model, options):
    X, y, edges = toy_squares(40)
    fitted = model(random_state=0, **options).fit(X, y, edges=edges)
    assert fitted.score(*toy_squares(20, seed=1)[:2], edges=edges[:20]) >= 0.95


@pytest.mark.parametrize("piece_size", [None, 2.5])
def test_learns_from_pieces_with_loops(piece_size):
    X, y, edges = toy_squares(20)
    crf = GraphCRF(pieces="graph", piece_size=piece_size, batch_size=8, random_state=0)
    crf.fit(X, y, edges=edges)
    assert crf.score(*toy_squares(20, seed=1)[:2], edges=edges) == 1.0


def frustrated(n: int):
    """Graphs in which all nodes are joined, far too many for exact sums, and one of two nodes."""
    rng = np.random.default_rng(0)
    every = list(itertools.combinations(range(26), 2))
    X = [[[w] for w in rng.choice(["a", "b"], 26)] for _ in range(n)] + [[["a"], ["b"]]]
    y = [[x.upper() for (x,) in nodes] for nodes in X]
    return X, y, [every] * n + [[(0, 1)]]


def test_says_on_how_many_graphs_belief_propagation_did_not_converge(recwarn, monkeypatch):
    monkeypatch.setattr("trellis.models.crf._TURNS", 20)
    X, y, edges = frustrated(3)
    crf = GraphCRF(random_state=0, max_passes=1).fit(X, y, edges=edges)
    crf.weights_.transitions[:] = 0.0
    crf.predict_marginals(X, edges=edges)
    assert not recwarn.list
    crf.weights_.transitions[:] = -8 * np.eye(2)
    for ask in (crf.predict_marginals, crf.marginals, crf.entropy):
        with pytest.warns(ConvergenceWarning, match="did not converge on 3 of 4 graphs") as told:
            ask(X, edges=edges)
        assert len(told) == 1 and told[0].filename == __file__


def test_graphs_too_dense_for_exact_sums_are_sampled_by_blocks():
    X, y, edges = frustrated(2)
    crf = GraphCRF(random_state=0).fit(X, y, edges=edges)
    drawn = crf.sample(X, 30, edges=edges, random_state=0)
    assert [np.shape(of_graph) for of_graph in drawn] == [(30, 26), (30, 26), (30, 2)]
    assert drawn == crf.sample(X, 30, edges=edges, random_state=0)
    first = crf.classes_.index("A")
    for chances, of_graph in zip(crf.predict_marginals(X, edges=edges), drawn, strict=True):
        share = (np.array(of_graph) == "A").mean(axis=0)
        assert np.abs(share - chances[:, first]).mean() < 0.15


@pytest.mark.parametrize("solver", ["sgd", "adf"])
def test_training_says_on_how_many_graphs_belief_propagation_did_not_converge(solver, recwarn):
    X, y, edges = frustrated(2)
    crf = GraphCRF(
        pieces="graph", random_state=0, max_passes=1, l2=0.0, solver=solver, warm_start=True,
        learning_rate=1e-9,
    )  # fmt: skip
    crf.fit(X, y, edges=edges)
    assert not recwarn.list
    crf.weights_.node[:] = np.eye(2)
    crf.weights_.transitions[:] = -8 * np.eye(2)
    with pytest.warns(ConvergenceWarning, match="did not converge on 2 of 2 graphs: ") as told:
        crf.fit(X, y, edges=edges)
    assert len(told) == 1


def all_labellings(model, X, edges, types=None):
    """Score of every labelling of one sample, from the weights alone."""
    corpus = as_graph_corpus([X], None, [edges], None if types is None else [types])
    encoded = model.encoder_.encode(corpus)
    node = np.zeros((len(X), len(model.classes_)))
    for v in range(len(X)):
        for f in encoded.indices[encoded.indptr[v] : encoded.indptr[v + 1]]:
            node[v] += model.weights_.node[f]
    directed = model.structure == "tree" if model.directed == "auto" else model.directed
    found = {}
    for y in itertools.product(range(len(model.classes_)), repeat=len(X)):
        score = sum(node[v, label] for v, label in enumerate(y))
        for e, (a, b) in enumerate(edges):
            k = 0 if types is None else model.edge_types_.index(types[e])
            table = model.weights_.transitions[k].astype(float) * getattr(model, "edge_share_", 1.0)
            score += (table if directed else table + table.T)[y[a], y[b]]
        found[tuple(model.classes_[label] for label in y)] = float(score)
    return found


@pytest.mark.parametrize("model", [TreeCRF, GraphCRF])
@pytest.mark.parametrize("directed", [False, True])
def test_predictions_agree_with_enumeration(model, directed):
    X, y, edges, types = toy_trees(25)
    crf = model(random_state=0, directed=directed, l2=0.1)
    crf.fit(X, y, edges=edges, edge_types=types)
    sample = 0
    scores = all_labellings(crf, X[sample], edges[sample], types[sample])
    given = {"edges": edges[sample : sample + 1], "edge_types": types[sample : sample + 1]}
    ranked = sorted(scores, key=lambda y: -scores[y])
    decoded = crf.decode(X[sample : sample + 1], **given)[0]
    assert tuple(decoded.labels) == ranked[0]
    assert decoded.exact and decoded.gap == pytest.approx(0, abs=1e-6)
    assert decoded.score == pytest.approx(scores[ranked[0]], rel=1e-5)
    best = crf.predict_kbest(X[sample : sample + 1], 3, **given)[0]
    assert [tuple(labels) for labels, _ in best] == ranked[:3]
    z = sum(np.exp(s) for s in scores.values())
    expected = np.zeros((len(X[sample]), 2))
    for labels, s in scores.items():
        for v, label in enumerate(labels):
            expected[v, crf.classes_.index(label)] += np.exp(s) / z
    marginals = crf.predict_marginals(X[sample : sample + 1], **given)[0]
    np.testing.assert_allclose(marginals, expected, atol=1e-5)


def test_graph_decoding_says_how_good_it_is():
    X, y, edges = toy_squares(30)
    crf = GraphCRF(random_state=0).fit(X, y, edges=edges)
    scores = all_labellings(crf, X[3], SQUARE)
    for inference in ("auto", "exact", "elimination", "ilp", "lp", "dual"):
        decoded = crf.set_params(inference=inference).decode(X[3:4], edges=[SQUARE])[0]
        assert decoded.score == pytest.approx(scores[tuple(decoded.labels)], rel=1e-5)
        assert decoded.bound >= max(scores.values()) - 1e-5
        if decoded.exact:
            assert decoded.score == pytest.approx(max(scores.values()), rel=1e-5)
    assert crf.marginals(X[:1], edges=[SQUARE])[0][1]  # exact


@pytest.mark.parametrize("model", MODELS)
def test_constraints_are_kept_and_contradictions_named(model):
    X, y, edges, _ = toy_trees(10)
    fitted = model(random_state=0).fit(X, y, edges=edges)
    wanted = [[{"A"} if v % 2 else None for v in range(len(sample))] for sample in X]
    for labels in fitted.predict(X, edges=edges, constraints=wanted):
        assert all(label == "A" for label in labels[1::2])
    fitted.weights_.transitions[...] = -np.inf
    with pytest.raises(InfeasibleError, match="sample 0"):
        fitted.predict(X, edges=edges, constraints=wanted)


@pytest.mark.parametrize("model", MODELS)
def test_partial_labels_teach(model):
    X, y, edges, types = toy_trees(60)
    rng = np.random.default_rng(0)
    some = [[label if rng.random() < 0.6 else None for label in labels] for labels in y]
    fitted = model(random_state=0, directed=True).fit(X, some, edges=edges, edge_types=types)
    assert fitted.score(X, y, edges=edges, edge_types=types) > 0.85


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("rich", [False, "both"])
def test_saved_and_loaded(model, rich, tmp_path):
    X, y, edges, types = toy_trees(20)
    fitted = model(rich_edges=rich, directed=True, random_state=0, max_passes=2)
    fitted.fit(X, y, edges=edges, edge_types=types)
    fitted.save(tmp_path / "m.trellis")
    loaded = load_model(tmp_path / "m.trellis")
    assert type(loaded) is model and loaded.edge_types_ == fitted.edge_types_
    assert loaded.get_params() == fitted.get_params()
    assert loaded.predict(X, edges=edges, edge_types=types) == fitted.predict(
        X, edges=edges, edge_types=types
    )


@pytest.mark.parametrize("model", MODELS)
def test_same_seed_same_bits(model):
    X, y, edges, _ = toy_trees(20)
    runs = [
        model(random_state=3, piece_size=2.5, max_passes=2).fit(X, y, edges=edges).weights_
        for _ in range(2)
    ]
    for a, b in zip(runs[0].arrays(), runs[1].arrays(), strict=True):
        assert a.tobytes() == b.tobytes()


def test_threads_do_not_change_a_bit():
    X, y, edges, _ = toy_trees(30)
    for options in ({"batch_size": 8}, {"solver": "lbfgs", "max_passes": 5}):
        runs = [
            TreeCRF(random_state=0, n_jobs=jobs, max_passes=options.get("max_passes", 2),
                    **{k: v for k, v in options.items() if k != "max_passes"})
            .fit(X, y, edges=edges).weights_
            for jobs in (1, 3)
        ]  # fmt: skip
        for a, b in zip(runs[0].arrays(), runs[1].arrays(), strict=True):
            assert a.tobytes() == b.tobytes()


@pytest.mark.parametrize("solver", ["sgd", "adf", "lbfgs"])
def test_all_solvers_learn(solver):
    X, y, edges, types = toy_trees(40)
    crf = TreeCRF(solver=solver, random_state=0).fit(X, y, edges=edges, edge_types=types)
    assert crf.score(X, y, edges=edges, edge_types=types) > 0.9
    assert crf.stop_reason_ and crf.solver_ == solver


def test_lbfgs_finds_the_optimum_of_sgd():
    X, y, edges, _ = toy_trees(30)
    exact = TreeCRF(solver="lbfgs", tol=1e-9, random_state=0).fit(X, y, edges=edges)
    rough = TreeCRF(max_passes=200, decay=0.97, tol=-1, random_state=0).fit(X, y, edges=edges)
    assert exact.history_[-1].objective <= rough.history_[-1].objective * 1.001
    np.testing.assert_allclose(exact.weights_.transitions, rough.weights_.transitions, atol=0.05)


@pytest.mark.parametrize("model", MODELS)
def test_interrupted_and_resumed(model, tmp_path):
    X, y, edges, _ = toy_trees(12)
    steps = {"solver": "sgd"} if model is GraphCRF else {}  # few graphs have L-BFGS
    made = partial(model, random_state=0, **steps)
    whole = made(max_passes=4, tol=-1, patience=None)
    whole.fit(X, y, edges=edges, checkpoint=tmp_path / "a", dev=(X, y, edges))
    assert whole.history_[0].dev_score is not None
    assert not (tmp_path / "a").exists()

    class Stop(Exception):
        pass

    part = made(max_passes=4, tol=-1)
    original = part._dev_score

    def interrupt(corpus):
        (score, metric), calls = original(corpus), []

        def counted(weights):
            calls.append(1)
            if len(calls) == 3:
                raise Stop
            return score(weights)

        return counted, metric

    part._dev_score = interrupt
    with pytest.raises(Stop):
        part.fit(X, y, edges=edges, dev=(X, y, edges), checkpoint=tmp_path / "b")
    again = made(max_passes=4, tol=-1)
    again.fit(X, y, edges=edges, dev=(X, y, edges), checkpoint=tmp_path / "b", resume=True)
    for a, b in zip(again.weights_.arrays(), whole.weights_.arrays(), strict=True):
        assert a.tobytes() == b.tobytes()
    other = [list(reversed(e)) for e in edges]
    whole_checkpoint = tmp_path / "c"
    with pytest.raises(Stop):
        again = made(max_passes=4, tol=-1)
        again._dev_score = interrupt
        again.fit(X, y, edges=edges, dev=(X, y, edges), checkpoint=whole_checkpoint)
    with pytest.raises(DataError, match="other data or parameters"):
        made(max_passes=4, tol=-1).fit(
            X, y, edges=other, dev=(X, y, edges), checkpoint=whole_checkpoint, resume=True
        )


@pytest.mark.parametrize("model", MODELS)
def test_streams_and_warm_starts(model):
    X, y, edges, types = toy_trees(40)
    stream = model(random_state=0, directed=True)
    for i in range(0, 40, 10):
        part = slice(i, i + 10)
        stream.partial_fit(
            X[part], y[part], edges=edges[part], edge_types=types[part], classes=["A", "B"]
        )
    assert stream.score(X, y, edges=edges, edge_types=types) > 0.8
    with pytest.raises(DataError, match="edge type 'new' is unknown; the model has other, same"):
        stream.partial_fit(X[:1], y[:1], edges=edges[:1],
                           edge_types=[["new"] * len(edges[0])])  # fmt: skip
    with pytest.raises(DataError, match="has types of edges, but these edges have none"):
        stream.predict(X[:1], edges=edges[:1])
    warm = model(random_state=0, warm_start=True, max_passes=1, directed=True)
    for _ in range(2):
        warm.fit(X, y, edges=edges, edge_types=types)
    assert warm.score(X, y, edges=edges, edge_types=types) > 0.8


def test_edges_of_loopy_graphs_count_as_often_as_spanning_trees_had_them(tmp_path):
    X, y, edges = toy_squares(20)
    crf = GraphCRF(random_state=0).fit(X, y, edges=edges)
    assert crf.edge_share_ == 0.75  # three of a square's four edges
    crf.save(tmp_path / "m.trellis")
    assert load_model(tmp_path / "m.trellis").edge_share_ == 0.75
    loopy = GraphCRF(random_state=0, pieces="graph", max_passes=1).fit(X, y, edges=edges)
    assert loopy.edge_share_ == 1.0
    X, y, edges, _ = toy_trees(5)
    assert GraphCRF(max_passes=1).fit(X, y, edges=edges).edge_share_ == 1.0
    assert GraphCRF(max_passes=1).fit(X, y, edges=[[] for _ in X]).edge_share_ == 1.0


def test_unknown_types_couple_nothing():
    X, y, edges, types = toy_trees(20)
    crf = TreeCRF(random_state=0).fit(X, y, edges=edges, edge_types=types)
    strange = [["strange"] * len(e) for e in edges]
    alone = crf.predict(X, edges=[[] for _ in X], edge_types=[[] for _ in X])
    assert crf.predict(X, edges=edges, edge_types=strange) == alone


def test_explains_features_and_edges():
    X, y, edges = toy_squares(20)
    crf = GraphCRF(random_state=0).fit(X, y, edges=edges)
    explanation = crf.explain(X[:1], edges=[SQUARE])
    assert len(explanation.positions) == 4
    unsure = [p for p, x in zip(explanation.positions, X[0], strict=True) if x == ["?"]]
    assert all(p.transitions > 0 for p in unsure)
    shown = explanation.positions[0]
    assert shown.features[0][0] == X[0][0][0] and shown.features[0][1] > 0
    # What speaks for a label is what its score has over the rival's, the others kept.
    scores = all_labellings(crf, X[0], SQUARE)
    predicted = [p.label for p in explanation.positions]
    for v, position in enumerate(explanation.positions):
        other = [*predicted[:v], position.rival, *predicted[v + 1 :]]
        gain = scores[tuple(predicted)] - scores[tuple(other)]
        total = position.transitions + sum(value for _, value in position.features)
        assert total == pytest.approx(gain, abs=1e-4)


def test_grid_search_takes_pairs():
    from sklearn.model_selection import GridSearchCV

    X, y, edges, _ = toy_trees(20)
    pairs = [(x, np.array(e)) for x, e in zip(X, edges, strict=True)]
    search = GridSearchCV(TreeCRF(random_state=0, max_passes=2), {"l2": [0.1, 10.0]}, cv=2)
    search.fit(pairs, y)
    assert search.best_params_["l2"] in (0.1, 10.0)


def test_empty_inputs():
    X, y, edges, _ = toy_trees(5)
    for model in MODELS:
        fitted = model(random_state=0, max_passes=1).fit(X, y, edges=edges)
        assert fitted.predict([], edges=[]) == []
        assert fitted.predict([[]], edges=[[]]) == [[]]


X1, Y1 = [[["a"], ["b"], ["c"]]], [["A", "B", "A"]]
TRIANGLE = [[(0, 1), (1, 2), (2, 0)]]
BAD = [
    (TreeCRF, {}, {"edges": TRIANGLE}, "sample 0: the edges close a cycle"),
    (TreePerceptron, {}, {"edges": TRIANGLE}, "sample 0: the edges close a cycle"),
    (TreeCRF, {}, {}, "there are no edges"),
    (GraphCRF, {}, {"edges": [[(0, 3)]]}, "sample 0, edge 0 joins nodes 0 and 3"),
    (GraphCRF, {"pieces": "star"}, {"edges": TRIANGLE}, "pieces must be 'tree' or 'graph'"),
    (GraphCRF, {"piece_size": 0}, {"edges": TRIANGLE}, "piece_size must be None or a number"),
    (
        GraphCRF,
        {"directed": 2},
        {"edges": TRIANGLE},
        "directed must be 'auto' or True or False, got 2",
    ),
    (
        GraphCRF,
        {"inference": "magic"},
        {"edges": TRIANGLE},
        "inference must be 'auto', 'marginals', ",
    ),
    (GraphCRF, {}, {"edges": TRIANGLE, "dev": (X1,)}, "dev needs labelled samples"),
    (GraphCRF, {}, {"edges": TRIANGLE, "dev": (X1, [[None] * 3], TRIANGLE)}, "dev needs labelled"),
]


@pytest.mark.parametrize(("model", "options", "given", "message"), BAD)
def test_bad_input_is_refused(model, options, given, message):
    with pytest.raises(DataError, match=re.escape(message)):
        model(**options).fit(X1, Y1, **given)


def test_other_errors():
    X, y, edges = toy_squares(5)
    crf = GraphCRF(random_state=0, max_passes=1).fit(X, y, edges=edges)
    with pytest.raises(DataError, match="k must be a positive integer, got 0"):
        crf.predict_kbest(X, 0, edges=edges)
    with pytest.raises(DataError, match="explain takes one sample, got 5"):
        crf.explain(X, edges=edges)
    with pytest.raises(DataError, match="score needs labels"):
        crf.score(X, edges=edges)
    real = [np.full((2, 1), 1.0)]
    fitted = TreeCRF(max_passes=1).fit(real, [["A", "B"]], edges=[[(0, 1)]])
    fitted.weights_.node[...] = 1e30
    with pytest.raises(DataError, match="sample 0, position 0: feature values are too large"):
        fitted.predict([np.full((2, 1), 1e30)], edges=[[(0, 1)]])


# ------------------------------------------------------------------------- probabilities


@pytest.mark.parametrize("types", [False, True])
@pytest.mark.parametrize(
    ("model", "options"),
    [(TreeCRF, {}), (GraphCRF, {}), (GraphCRF, {"directed": True, "pieces": "graph"})],
)
def test_entropy_and_draws_agree_with_enumeration(model, options, types):
    X, y, edges, kinds = toy_trees(30)
    if model is GraphCRF and not types:
        X, y, edges = toy_squares(30)
    given = {"edges": edges} | ({"edge_types": kinds} if types else {})
    crf = model(random_state=0, l2=1.0, max_passes=5, **options).fit(X, y, **given)
    chosen = [s for s in range(30) if 3 <= len(X[s]) <= 4][:3]
    few = {name: [value[s] for s in chosen] for name, value in given.items()}
    samples = [X[s] for s in chosen]
    entropies = crf.entropy(samples, **few)
    drawn = crf.sample(samples, 3000, random_state=0, **few)
    assert drawn == crf.sample(samples, 3000, random_state=0, **few)
    for i, s in enumerate(chosen):
        scores = all_labellings(crf, X[s], edges[s], kinds[s] if types else None)
        log_z = np.logaddexp.reduce(list(scores.values()))
        p = {labels: np.exp(score - log_z) for labels, score in scores.items()}
        entropy = -sum(q * np.log(q) for q in p.values() if q > 0)
        assert entropies[i] == pytest.approx(entropy, abs=1e-5)
        assert entropy > 0.01
        alone = {name: [value[s]] * len(p) for name, value in given.items()}
        found = crf.log_prob([X[s]] * len(p), list(map(list, p)), **alone)
        np.testing.assert_allclose(np.exp(found), list(p.values()), atol=1e-6)
        counts = Counter(map(tuple, drawn[i]))
        assert sum(counts.values()) == 3000
        for labels, q in p.items():
            deviation = np.sqrt(q * (1 - q) / 3000)
            assert counts[labels] / 3000 == pytest.approx(q, abs=5 * deviation + 1e-3)


def test_of_nothing_there_is_nothing_to_draw():
    X, y, edges, _ = toy_trees(5)
    for model in (TreeCRF, GraphCRF):
        crf = model(random_state=0, max_passes=1).fit(X, y, edges=edges)
        assert crf.entropy([], edges=[]).tolist() == []
        assert crf.entropy([[]], edges=[[]]).tolist() == [0.0]
        assert crf.sample([[]], 2, edges=[[]]) == [[[], []]]


@pytest.mark.parametrize("model", [TreePerceptron, GraphPerceptron])
def test_scores_that_are_no_probabilities(model):
    fitted = model(max_passes=1)
    for name in ("entropy", "marginals", "predict_marginals", "sample"):
        with pytest.raises(AttributeError, match=f"{model.__name__} has no {name}: its scores are"):
            getattr(fitted, name)
        assert not hasattr(fitted, name)

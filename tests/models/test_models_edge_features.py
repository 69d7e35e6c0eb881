"""Features of edges in tree and graph models: learned, scored, kept, grown and refused."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from test_graph_models import toy_trees

from trellis import (
    ChainCRF,
    CorruptModelError,
    DataError,
    GraphCRF,
    GraphPerceptron,
    MaxMargin,
    TreeCRF,
    TreePerceptron,
    load_model,
)
from trellis.cheap import ActiveLearner, TransferLearner
from trellis.corpus import as_graph_corpus
from trellis.features import Prepared, prepare
from trellis.files.atomic import atomic_write
from trellis.files.container import (
    PREPARED,
    map_container,
    read_container,
    stream_container,
    write_container,
)
from trellis.models import Checkpoint
from trellis.problems import LogLikelihood
from trellis.problems.log_objective import whole_samples
from trellis.tuning import tune

MODELS = {
    "tree crf": lambda **k: TreeCRF(**k),
    "graph crf": lambda **k: GraphCRF(**k),
    "tree perceptron": lambda **k: TreePerceptron(**k),
    "graph perceptron": lambda **k: GraphPerceptron(**k),
    "tree margin": lambda **k: MaxMargin(structure="tree", **k),
    "graph margin": lambda **k: MaxMargin(structure="graph", **k),
}


def toys(n, seed=0):
    """Trees whose ends are alike where a number of the edge is positive, and differ where not."""
    X, y, edges, types = toy_trees(n, seed)
    rng = np.random.default_rng(seed + 1)
    own = [
        [{"pull": float(rng.uniform(0.5, 3) * (1 if k == "same" else -1)), "any": True} for k in t]
        for t in types
    ]
    return {"X": X, "y": y, "edges": edges, "edge_features": own}


def asked(data, *parts):
    """What is asked of a model: some samples, without their labels."""
    part = slice(*parts) if parts else slice(None)
    return {name: value[part] for name, value in data.items() if name != "y"}


TRAIN, TEST = toys(60), toys(30, 1)
SMALL = {name: value[:15] for name, value in TRAIN.items()}


def same_bits(one, other):
    return all(
        a.tobytes() == b.tobytes()
        for a, b in zip(one.weights_.arrays(), other.weights_.arrays(), strict=True)
    )


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("kind", MODELS)
def test_learns_what_the_numbers_of_edges_mean(kind, directed):
    model = MODELS[kind](random_state=0, directed=directed).fit(**TRAIN)
    assert model.edge_encoder_.names([0, 1]) == ["pull", "any"]
    blind = MODELS[kind](random_state=0, directed=directed)
    blind.fit(TRAIN["X"], TRAIN["y"], edges=TRAIN["edges"])
    assert blind.edge_encoder_ is None and blind.weights_.edge is None
    assert model.score(**TEST) > 0.9 > blind.score(TEST["X"], TEST["y"], edges=TEST["edges"])


OTHERS = [
    ("tree crf", {"solver": "adf", "max_passes": 30}),
    ("tree crf", {"solver": "lbfgs"}),
    ("tree crf", {"solver": "lbfgs", "l1": 0.1, "l2": 0.0, "states": "observed"}),
    ("tree crf", {"rich_edges": "both", "edge_pairs": "observed"}),
    ("tree crf", {"piece_size": 3.0, "batch_size": 4, "n_jobs": 2}),
    ("graph crf", {"pieces": "graph", "piece_size": 4, "max_passes": 5}),
    ("graph crf", {"rich_edges": True, "solver": "adf", "max_passes": 30}),
    ("graph perceptron", {"piece_size": 3.0}),
    ("tree margin", {"solver": "frank-wolfe", "max_passes": 10}),
    ("tree margin", {"solver": "bundle"}),
    ("graph margin", {"solver": "sgd", "piece_size": 3.0}),
]


@pytest.mark.parametrize(("kind", "options"), OTHERS)
def test_every_solver_learns_them(kind, options):
    model = MODELS[kind](random_state=0, **options).fit(**TRAIN)
    assert model.score(**TEST) > 0.88


@pytest.mark.parametrize("kind", ["tree crf", "tree perceptron", "tree margin", "graph crf"])
def test_label_sets_teach(kind):
    rng = np.random.default_rng(0)
    partial = [[None if rng.random() < 0.2 else label for label in s] for s in TRAIN["y"]]
    partial[0][0] = {"A", "B"}
    model = MODELS[kind](random_state=0).fit(**TRAIN | {"y": partial})
    assert model.score(**TEST) > 0.85


def test_frank_wolfe_finds_the_optimum_of_planes():
    values = [
        MODELS["tree margin"](solver=solver, tol=1e-4, max_passes=2000, random_state=0)
        .fit(**SMALL).objective_
        for solver in ("frank-wolfe", "bundle")
    ]  # fmt: skip
    assert values[0] == pytest.approx(values[1], rel=1e-3)


# ------------------------------------------------------------------------- oracles


def all_labellings(model, X, edges, own):
    """Score of every labelling of one sample, from names and weights alone."""
    L, w = len(model.classes_), model.weights_
    place = {name: f for f, name in enumerate(model.encoder_.names(range(model.n_features_)))}
    n_own = model.edge_encoder_.n_features
    names = model.edge_encoder_.names(range(n_own))
    rows = w.edge.rows()
    tables = np.zeros((n_own, L * L))
    for g in range(n_own):
        row = slice(rows[len(rows) - 1 - n_own + g], rows[len(rows) - n_own + g])
        tables[g, w.edge.pair[row] if w.edge.ptr.size else slice(None)] = w.edge.values[row]
    scale = dict(zip(names, model.edge_encoder_.scale, strict=True))
    found = {}
    for y in itertools.product(range(L), repeat=len(X)):
        score = sum(w.node[place[f], label] for f, label in zip(X, y, strict=True))
        for (a, b), features in zip(edges, own, strict=True):
            table = w.transitions[0].astype(float)
            for name, value in features.items():
                if name in names:
                    g = names.index(name)
                    table = table + tables[g].reshape(L, L) * float(value) / scale[name]
            table = table if model._is_directed else table + table.T
            score += table[y[a], y[b]] * getattr(model, "edge_share_", 1.0)
        found[tuple(model.classes_[label] for label in y)] = float(score)
    return found


@pytest.mark.parametrize("pairs", ["all", "observed"])
@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("kind", ["tree crf", "graph crf", "graph perceptron"])
def test_answers_agree_with_enumeration(kind, directed, pairs):
    rng = np.random.default_rng(0)
    loop = [(0, 1), (1, 2), (2, 3), (3, 0)][: 3 if kind.startswith("tree") else 4]
    X = [[[str(x)] for x in rng.integers(0, 3, 4)] for _ in range(20)]
    y = [["ABC"[int(x[0]) if rng.random() < 0.7 else rng.integers(3)] for x in s] for s in X]
    own = [[{"u": rng.normal(), "v": bool(rng.random() < 0.5)} for _ in loop] for _ in X]
    model = MODELS[kind](
        random_state=0, directed=directed, edge_pairs=pairs, edge_negatives=1, edge_min_share=0.2,
        max_passes=5,
    )  # fmt: skip
    model.fit(X, y, edges=[loop] * 20, edge_features=own)
    assert bool(model.weights_.edge.ptr.size) == (pairs == "observed")
    unseen = [*own[0][:-1], own[0][-1] | {"never": 3.0}]  # ignored
    one = {"X": X[:1], "edges": [loop], "edge_features": [unseen]}
    scores = all_labellings(model, [x[0] for x in X[0]], loop, own[0])
    ranked = sorted(scores, key=lambda labels: -scores[labels])
    decoded = model.decode(**one)[0]
    assert tuple(decoded.labels) == ranked[0]
    assert decoded.score == pytest.approx(scores[ranked[0]], abs=1e-4)
    for (labels, score), expected in zip(model.predict_kbest(k=4, **one)[0], ranked, strict=False):
        assert score == pytest.approx(scores[expected], abs=1e-4)
        assert scores[tuple(labels)] == pytest.approx(score, abs=1e-4)
    explained = model.explain(n_features=20, **one).positions
    for v, position in enumerate(explained):
        other = (*ranked[0][:v], position.rival, *ranked[0][v + 1 :])
        total = position.transitions + sum(value for _, value in position.features)
        assert total == pytest.approx(scores[ranked[0]] - scores[other], abs=1e-4)
    named = {name for p in explained for name, _ in p.features}
    assert {"u (edge to node 1)", "u (edge to node 0)"} <= named
    if not kind.endswith("crf"):
        return
    p = np.exp(np.array([scores[labels] for labels in ranked]))
    p /= p.sum()
    expected = np.array(
        [[p[[r[v] == c for r in ranked]].sum() for c in model.classes_] for v in range(4)]
    )
    np.testing.assert_allclose(model.predict_marginals(**one)[0], expected, atol=1e-5)
    np.testing.assert_allclose(model.marginals(**one)[0][0], expected, atol=1e-5)
    assert model.entropy(**one)[0] == pytest.approx(-(p * np.log(p)).sum(), abs=1e-4)
    drawn = model.sample(n_samples=400, random_state=0, **one)[0]
    shares = [[np.mean([d[v] == c for d in drawn]) for c in model.classes_] for v in range(4)]
    np.testing.assert_allclose(shares, expected, atol=0.12)


@pytest.mark.parametrize("kind", ["tree crf", "graph crf"])
def test_gradients_are_differences_of_the_likelihood(kind):
    problem = MODELS[kind](rich_edges=True).learning_problems(
        {"a": as_graph_corpus(**{k: v[:4] for k, v in TRAIN.items()})}
    )["a"]
    visits = whole_samples(problem)
    loss, rng = LogLikelihood(problem), np.random.default_rng(0)
    w = rng.normal(size=problem.n_weights)
    _, gradient = loss.value_and_gradient(problem.weights(w), visits)
    flat, step = problem.flat(gradient), 1e-5
    own = range(problem.n_weights - problem.rich.n_own * 4, problem.n_weights)
    for place in [*own, *rng.integers(0, own[0], 5).tolist()]:
        ends = []
        for sign in (1, -1):
            moved = w.copy()
            moved[place] += sign * step
            ends.append(loss.value_and_gradient(problem.weights(moved), visits)[0])
        assert flat[place] == pytest.approx((ends[0] - ends[1]) / (2 * step), abs=1e-5)


# ------------------------------------------------------------------------- types as features


def test_an_indicator_for_each_type_scores_as_types_do():
    X, y, edges, types = toy_trees(30)
    typed = TreeCRF(random_state=0).fit(X, y, edges=edges, edge_types=types)
    named = [[[k] for k in t] for t in types]
    model = TreeCRF(random_state=0, max_passes=1).fit(X, y, edges=edges, edge_features=named)
    model.weights_.node[:] = typed.weights_.node
    model.weights_.transitions[:] = 0
    tables = {name: typed.weights_.transitions[k] for k, name in enumerate(typed.edge_types_)}
    order = model.edge_encoder_.names([0, 1])
    model.weights_.edge.values[:] = np.concatenate([tables[name].ravel() for name in order])
    for one, other in zip(
        typed.decode(X, edges=edges, edge_types=types),
        model.decode(X, edges=edges, edge_features=named), strict=True,
    ):  # fmt: skip
        assert one.labels == other.labels
        assert one.score == pytest.approx(other.score, abs=1e-4)


def test_an_indicator_for_each_type_has_the_optimum_of_types():
    X, y, edges, types = toy_trees(40)
    rng = np.random.default_rng(0)
    y = [[label if rng.random() < 0.8 else "AB"[rng.integers(2)] for label in s] for s in y]
    options = {"solver": "lbfgs", "l2": 1e-5, "tol": 1e-9, "max_passes": 2000}
    typed = TreeCRF(**options).fit(X, y, edges=edges, edge_types=types)
    named = [[[k] for k in t] for t in types]
    model = TreeCRF(**options).fit(X, y, edges=edges, edge_features=named)
    for one, other in zip(
        typed.predict_marginals(X, edges=edges, edge_types=types),
        model.predict_marginals(X, edges=edges, edge_features=named), strict=True,
    ):  # fmt: skip
        np.testing.assert_allclose(one, other, atol=0.01)


def test_features_and_types_go_together():
    X, y, edges, types = toy_trees(20)
    own = [[{"n": float(len(k))} for k in t] for t in types]
    crf = TreeCRF(random_state=0).fit(X, y, edges=edges, edge_types=types, edge_features=own)
    strange = [["strange"] * len(e) for e in edges]  # couples nothing, whatever its features
    nothing = [[] for _ in X]
    alone = crf.predict(X, edges=nothing, edge_types=nothing)
    assert crf.predict(X, edges=edges, edge_types=strange, edge_features=own) == alone


# ------------------------------------------------------------------------- many labels


def many_labels(seed=0):
    """Pairs of nodes of twelve labels, the second one more than the first, or one less."""
    rng = np.random.default_rng(seed)
    y, own = [], []
    for _ in range(300):
        a, up = int(rng.integers(12)), bool(rng.random() < 0.5)
        y.append([f"{a:02d}", f"{(a + (1 if up else -1)) % 12:02d}"])
        own.append([["up" if up else "down"]])
    X = [[[first], ["?"]] for first, _ in y]
    return {"X": X, "y": y, "edges": [[(0, 1)]] * 300, "edge_features": own}


@pytest.mark.parametrize("directed", [True, False])
def test_many_labels_have_observed_pairs_only(directed):
    data = many_labels()
    crf = TreeCRF(random_state=0, directed=directed, edge_min_share=0.0).fit(**data)
    edge = crf.weights_.edge
    assert 24 <= len(edge.pair) <= 2 * (12 + 10)
    a, b = edge.pair // 12, edge.pair % 12
    assert directed or (a <= b).all()
    if directed:
        assert crf.score(**many_labels(1)) > 0.95
    again = {k: v[:50] for k, v in data.items()}
    again["edge_features"] = [[["up", "new"]] for _ in range(50)]
    before = edge.pair.tolist()
    crf.partial_fit(**again)
    assert crf.edge_encoder_.n_features == 3
    assert crf.weights_.edge.pair[: len(before)].tolist() == before
    with pytest.raises(DataError, match="features of edges of more than 8 labels know the pairs"):
        TreeCRF().learning_problems({"a": as_graph_corpus(**data)})
    everything = TreeCRF(edge_pairs="all").learning_problems({"a": as_graph_corpus(**data)})
    assert everything["a"].rich.values.size == 2 * 144


# ------------------------------------------------------------------------- kept, grown, resumed


@pytest.mark.parametrize("rich", [False, True])
@pytest.mark.parametrize("kind", MODELS)
def test_saved_and_loaded(kind, rich, tmp_path):
    pairs = "observed" if rich else "auto"
    model = MODELS[kind](random_state=0, rich_edges=rich, edge_pairs=pairs, max_passes=3)
    model.fit(**SMALL)
    model.save(tmp_path / "m")
    again = load_model(tmp_path / "m")
    assert same_bits(model, again)
    assert again.edge_encoder_.names([0, 1]) == ["pull", "any"]
    np.testing.assert_array_equal(again.edge_encoder_.scale, model.edge_encoder_.scale)
    assert again.predict(**asked(TEST)) == model.predict(**asked(TEST))
    if not kind.endswith("margin"):
        again.set_params(warm_start=True, max_passes=1).fit(**SMALL)
    whole = model.compressed(keep=1.0, precision="float32")
    assert whole.predict(**asked(TEST)) == model.predict(**asked(TEST))


def test_damaged_files_are_refused(tmp_path):
    TreeCRF(random_state=0, max_passes=1).fit(**SMALL).save(tmp_path / "m")
    header, arrays = read_container(tmp_path / "m")

    def refused(message, header=header, arrays=arrays):
        write_container(tmp_path / "damaged", header, arrays)
        with pytest.raises(CorruptModelError, match=message):
            load_model(tmp_path / "damaged")

    without = {k: v for k, v in header.items() if k != "edge_encoder"}
    refused("edge weights do not fit", header=without)
    refused(
        "one of 'templates', 'attributes' expected",
        header=header | {"edge_encoder": {"kind": "strange"}},
    )
    refused("edge weights do not fit", arrays=arrays | {
        "edge.values": np.zeros(4, np.float32)})  # fmt: skip
    refused("scale", arrays=arrays | {"edge_encoder.scale": np.zeros(3, np.float32)})
    chain = ChainCRF(random_state=0, rich_edges=True).fit([["a", "b"]], [["A", "B"]])
    chain.save(tmp_path / "c")
    theirs, other = read_container(tmp_path / "c")
    more = {k: v for k, v in arrays.items() if k.startswith("edge_encoder.")}
    refused("features of edges must be attributes, of a tree or graph",
            header=theirs | {"edge_encoder": header["edge_encoder"]},
            arrays=other | more)  # fmt: skip


def test_a_small_model_forgets_features_of_edges():
    rng = np.random.default_rng(0)
    own = [
        [e | {f"noise{rng.integers(30)}": True} for e in sample]
        for sample in TRAIN["edge_features"]
    ]  # fmt: skip
    model = TreeCRF(random_state=0).fit(**TRAIN | {"edge_features": own})
    small = model.compressed(keep=0.2)
    kept = small.edge_encoder_.names(range(small.edge_encoder_.n_features))
    assert "pull" in kept and len(kept) < 10 < model.edge_encoder_.n_features
    assert small.weights_.edge.n_own == len(kept)
    assert small.score(**TEST) > 0.9
    assert model.compressed(threshold=1e9).edge_encoder_.n_features == 0
    assert model.compressed(threshold=1e9).predict(**asked(TEST))


@pytest.mark.parametrize("rich", [False, "both"])
@pytest.mark.parametrize("kind", [k for k in MODELS if not k.startswith("graph")])
def test_streams_and_warm_starts_add_features(kind, rich):
    model = MODELS[kind](random_state=0, rich_edges=rich)
    steps = {"solver": "sgd"} if kind.endswith("margin") else {}
    for i in range(0, 60, 15):
        part = {name: value[i : i + 15] for name, value in TRAIN.items()}
        part["X"] = [[[*f, f"n{i}"] for f in sample] for sample in part["X"]]
        part["edge_features"] = [[e | {f"s{i}": True} for e in s] for s in part["edge_features"]]
        model.partial_fit(**part, **({"classes": ["A", "B"]} if i == 0 else {}))
        edge = model.weights_.edge
        assert edge.n_own == model.edge_encoder_.n_features == 3 + i // 15
        assert edge.values.size == edge.n_rows * 4
    assert model.score(**TEST) > 0.85
    warm = MODELS[kind](random_state=0, warm_start=True, max_passes=1, rich_edges=rich, **steps)
    warm.fit(**SMALL)
    before = warm.weights_.edge
    more = [[e | {"new": 1.0} for e in s] for s in SMALL["edge_features"]]
    fresh = [[[*f, "other"] for f in sample] for sample in SMALL["X"]]
    problem = warm._learn_more(
        as_graph_corpus(fresh, SMALL["y"], SMALL["edges"], None, more), np.ones(15),
        np.random.default_rng(0),
    )  # fmt: skip
    after = warm.weights_.edge
    assert problem.rich is after and after.n_own == before.n_own + 1
    old, new = before.rows(), after.rows()
    own = slice(new[after.n_joined], new[after.n_joined + 2])
    np.testing.assert_array_equal(after.values[own], before.values[old[before.n_joined] :])
    np.testing.assert_array_equal(after.values[own.stop :], np.zeros(4))
    np.testing.assert_array_equal(
        after.values[: old[before.n_crossed]], before.values[: old[before.n_crossed]]
    )


class Interrupted(Checkpoint):
    """A checkpoint that is written once."""

    def save(self, *state):
        super().save(*state)
        if self.path.exists():  # within a pass it is not yet due
            raise KeyboardInterrupt


@pytest.mark.parametrize("kind", ["tree crf", "graph crf", "graph perceptron"])
def test_interrupted_and_resumed(kind, tmp_path):
    def model():
        return MODELS[kind](random_state=0, max_passes=3, tol=-1)

    dev = as_graph_corpus(**TEST)
    whole = model().fit(**SMALL, dev=dev)
    with pytest.raises(KeyboardInterrupt):
        model().fit(**SMALL, dev=dev, checkpoint=Interrupted(tmp_path / "c"))
    other = SMALL | {"edge_features": [[e | {"pull": 1} for e in s] for s in
                                       SMALL["edge_features"]]}  # fmt: skip
    with pytest.raises(DataError, match="other data or parameters"):
        model().fit(**other, dev=dev, checkpoint=tmp_path / "c", resume=True)
    assert same_bits(model().fit(**SMALL, dev=dev, checkpoint=tmp_path / "c", resume=True), whole)


@pytest.mark.parametrize("kind", MODELS)
def test_a_prepared_corpus_gives_the_same_bits(kind, tmp_path):
    corpus = as_graph_corpus(**SMALL)
    prepare(corpus, tmp_path / "p")
    made = Prepared.open(tmp_path / "p")
    model = MODELS[kind](random_state=0, max_passes=3).fit(made)
    assert same_bits(model, MODELS[kind](random_state=0, max_passes=3).fit(corpus))
    assert model.edge_encoder_.n_features == 2
    given = prepare(SMALL["X"], tmp_path / "q", y=SMALL["y"], edges=SMALL["edges"],
                    edge_features=SMALL["edge_features"])  # fmt: skip
    assert same_bits(model, MODELS[kind](random_state=0, max_passes=3).fit(given))
    if not kind.endswith("margin"):
        again = model.set_params(warm_start=True).fit(made)
        assert again.weights_.edge.n_own == 2
    with pytest.raises(DataError, match="leave out y, edges and edge_types, and edge_features"):
        model.fit(made, edge_features=SMALL["edge_features"])


def test_damaged_prepared_features_are_refused(tmp_path):
    prepare(as_graph_corpus(**SMALL), tmp_path / "p")
    header, arrays = map_container(tmp_path / "p", PREPARED)
    arrays = {name: np.array(array) for name, array in arrays.items()}
    arrays["edge_features.indices"] = arrays["edge_features.indices"] + 5
    with atomic_write(tmp_path / "d") as file:
        stream_container(file, header, arrays, PREPARED)
    with pytest.raises(DataError, match=r"feature indices must lie in 0\.\.1"):
        Prepared.open(tmp_path / "d")


def test_threads_do_not_change_a_bit():
    one, two = (
        TreeCRF(random_state=0, batch_size=8, n_jobs=n, max_passes=3).fit(**TRAIN) for n in (1, 2)
    )
    assert same_bits(one, two)


# ------------------------------------------------------------------------- other services


@pytest.mark.parametrize("kind", ["tree crf", "graph crf", "tree perceptron", "tree margin"])
def test_cheap_data(kind):
    corpus = as_graph_corpus(**SMALL)
    pool = as_graph_corpus(**asked(SMALL))
    learner = ActiveLearner(MODELS[kind](random_state=0, max_passes=3), labels=["A", "B"])
    for _ in range(3):
        i = learner.query(pool)
        learner.tell(i, SMALL["y"][i])
    finished = learner.finish()
    assert finished.edge_encoder_.n_features == 2
    assert finished.predict(**asked(TEST))
    if kind.endswith("perceptron"):
        return
    data = {"a": corpus, "b": as_graph_corpus(**{k: v[20:30] for k, v in TRAIN.items()})}
    transfer = TransferLearner(MODELS[kind](random_state=0, max_passes=3), target="b").fit(data)
    assert transfer.predict(as_graph_corpus(**asked(TEST)))
    bare = as_graph_corpus(SMALL["X"], SMALL["y"], SMALL["edges"])
    with pytest.raises(DataError, match="some data sets have features of edges and others have no"):
        MODELS[kind]().learning_problems({"a": corpus, "b": bare})


def test_tuning_takes_them():
    result = tune(TreeCRF(), **SMALL, grid={"max_passes": [2]}, folds=2)
    assert result.best_model().edge_encoder_.n_features == 2


def test_the_group_lasso_drops_features_of_edges():
    rng = np.random.default_rng(0)
    own = [[e | {"noise": rng.normal()} for e in sample] for sample in TRAIN["edge_features"]]
    crf = TreeCRF(random_state=0, group_lasso=3.0, l2=0.0, max_passes=30)
    crf.fit(**TRAIN | {"edge_features": own})
    rows = crf.weights_.edge.values.reshape(-1, 4)
    strength = dict(zip(crf.edge_encoder_.names(range(3)), np.abs(rows).max(axis=1), strict=True))
    assert strength["pull"] > 0.1 and strength["noise"] == 0


# ------------------------------------------------------------------------- refusals


def test_chains_have_none():
    with pytest.raises(DataError, match="edges are for trees and graphs; chains have none"):
        ChainCRF().fit([["a", "b"]], [["A", "B"]], edge_features=[[{}]])
    with pytest.raises(DataError, match="edges are for trees and graphs; chains have none"):
        ChainCRF().fit([["a", "b"]], [["A", "B"]]).predict([["a"]], edge_features=[[]])


@pytest.mark.parametrize("kind", MODELS)
def test_with_features_or_without(kind):
    model = MODELS[kind](random_state=0, max_passes=1).fit(**SMALL)
    X, edges = TEST["X"][:2], TEST["edges"][:2]
    for ask in (model.predict, model.decode):
        with pytest.raises(DataError, match="has features of edges, but these edges have none"):
            ask(X, edges=edges)
    with pytest.raises(DataError, match="has features of edges, but these edges have none"):
        model.partial_fit(X, TEST["y"][:2], edges=edges)
    with pytest.raises(DataError, match="has features of edges, but these edges have none"):
        MODELS[kind](max_passes=1).fit(**SMALL, dev=(X, TEST["y"][:2], edges))
    assert model.predict(X, edges=[[], []]) == model.predict(
        X, edges=[[], []], edge_features=[[], []]
    )
    empty = [[{} for _ in e] for e in edges]
    assert model.predict(X, edges=edges, edge_features=empty)
    plain = MODELS[kind](random_state=0, max_passes=1)
    plain.fit(SMALL["X"], SMALL["y"], edges=SMALL["edges"])
    with pytest.raises(DataError, match="leave out edge_features, or fit the model w"):
        plain.predict(**asked(TEST))
    with pytest.raises(DataError, match="the model has no features of edges"):
        plain.partial_fit(**SMALL)
    assert plain.predict(X, edges=edges, edge_features=empty) == plain.predict(X, edges=edges)


def test_rich_edges_cannot_be_added_later():
    crf = TreeCRF(random_state=0, max_passes=1, warm_start=True).fit(**SMALL)
    with pytest.raises(DataError, match="the model was fitted without rich edges"):
        crf.set_params(rich_edges=True).fit(**SMALL)


def test_a_new_fit_forgets_the_features_of_the_last():
    crf = TreeCRF(random_state=0, max_passes=1).fit(**SMALL)
    crf.fit(SMALL["X"], SMALL["y"], edges=SMALL["edges"])
    assert crf.edge_encoder_ is None and crf.weights_.edge is None


def test_values_too_large_to_be_scored_are_named():
    tiny = [[{"pull": 1e-9 * e["pull"]} for e in s] for s in SMALL["edge_features"]]
    crf = TreeCRF(random_state=0).fit(**SMALL | {"edge_features": tiny})
    own = [[{"pull": 1e-9}], [{"pull": 3e38}]]
    given = {"edges": [[(0, 1)], [(1, 0)]], "edge_features": own}
    with pytest.raises(DataError, match="sample 1, the edge between nodes 1 and 0: feature values"):
        crf.predict([[["A"], ["B"]]] * 2, **given)

"""MaxMargin: it learns, on all structures and with both solvers, and says what it did."""

from __future__ import annotations

import numpy as np
import pytest
from rich_models import switches
from sklearn.base import clone

from trellis import ChainCRF, MaxMargin, load_model
from trellis.errors import CorruptModelError, DataError
from trellis.models.checkpoint import Checkpoint

WORDS = {"D": ["the", "a"], "N": ["cat", "dog", "bird"], "V": ["sat", "ran"]}


def sentences(n, seed=0):
    rng = np.random.default_rng(seed)
    y = [["D", "N", "V"] if rng.random() < 0.5 else ["N", "V", "D", "N"] for _ in range(n)]
    X = [[str(rng.choice(WORDS[label])) for label in labels] for labels in y]
    return X, y


def paths(X):
    """Edges that join neighbours."""
    return [[(t, t + 1) for t in range(len(x) - 1)] for x in X]


X, Y = sentences(30)
X2, Y2 = sentences(20, 1)


@pytest.mark.parametrize("solver", ["frank-wolfe", "bundle"])
@pytest.mark.parametrize("structure", ["chain", "tree", "graph"])
def test_learns(structure, solver):
    edges = {} if structure == "chain" else {"edges": paths(X)}
    edges2 = {} if structure == "chain" else {"edges": paths(X2)}
    svm = MaxMargin("word", structure=structure, l2=0.01, solver=solver, random_state=0)
    svm.fit(X, Y, **edges)
    assert svm.score(X2, Y2, **edges2) == 1.0
    assert svm.stop_reason_ == "gap"
    assert svm.exact_
    assert 0 <= svm.gap_ <= 0.01 * svm.objective_
    assert svm.n_passes_ == len(svm.history_)
    assert svm.predict_kbest(X2[:1], 2, **{k: v[:1] for k, v in edges2.items()})[0][0][0] == Y2[0]
    assert "cat" in str(svm.explain([["the", "cat"]], **({"edges": [[(0, 1)]]} if edges else {})))


def test_structures_agree_on_paths():
    runs = [
        MaxMargin("word", structure=s, l2=0.1, solver="bundle", tol=1e-6, directed=True).fit(
            X, Y, **e
        )
        for s, e in (("chain", {}), ("tree", {"edges": paths(X)}), ("graph", {"edges": paths(X)}))
    ]
    for other in runs[1:]:
        assert other.objective_ == pytest.approx(runs[0].objective_, rel=1e-5)
        np.testing.assert_allclose(
            other.weights_.transitions[0], runs[0].weights_.transitions, atol=1e-3
        )


def test_predictions_are_those_of_a_chain_model_with_these_weights():
    svm = MaxMargin("word; word[-1]", l2=0.1, random_state=0).fit(X, Y)
    crf = ChainCRF("word; word[-1]", max_passes=1).fit(X, Y)
    crf.weights_ = svm.weights_
    assert svm.predict(X2) == crf.predict(X2)
    constraints = [[None] * (len(x) - 1) + ["D"] for x in X2]
    assert svm.predict(X2, constraints=constraints) == crf.predict(X2, constraints=constraints)


def test_scheme_is_kept_to():
    x, y = [["a", "b", "c"]] * 3, [["B-X", "I-X", "O"]] * 3
    svm = MaxMargin("word", scheme="BIO", random_state=0).fit(x, y)
    assert svm.predict([["b"]]) != [["I-X"]]
    with pytest.raises(DataError, match="BIO"):
        MaxMargin("word", scheme="BIO").fit(x, [["u", "v", "w"]] * 3)


def test_loops_need_not_be_solved_exactly():
    rng = np.random.default_rng(0)
    triangle = [(0, 1), (1, 2), (0, 2)]
    x = [rng.normal(size=(3, 2)) for _ in range(6)]
    y = [["p" if v[0] + 0.3 * v[1] > 0 else "q" for v in sample] for sample in x]
    edges = [triangle] * 6
    exact = MaxMargin(structure="graph", l2=1.0, solver="bundle", directed=False, tol=1e-3)
    exact.fit(x, y, edges=edges)
    assert exact.exact_
    assert exact.stop_reason_ == "gap"
    relaxed = clone(exact).set_params(inference="lp", max_passes=20).fit(x, y, edges=edges)
    assert relaxed.objective_ - relaxed.gap_ <= exact.objective_ + 1e-6
    assert relaxed.objective_ >= exact.objective_ - exact.gap_ - 1e-6
    steps = clone(exact).set_params(solver="frank-wolfe", max_passes=30).fit(x, y, edges=edges)
    assert steps.objective_ == pytest.approx(exact.objective_, rel=0.1)
    decoded = exact.decode(x[:1], edges=edges[:1])[0]
    assert decoded.exact
    assert decoded.labels == exact.predict(x[:1], edges=edges[:1])[0]


def test_types_of_edges_have_tables_of_their_own():
    """The one type makes its ends equal, the other makes them differ."""
    rng = np.random.default_rng(0)
    x, y, edges, types = [], [], [], []
    for _ in range(40):
        first, kind = rng.integers(0, 2, 2)
        second = first if kind else 1 - first
        x.append([f"w{first}", "?"])
        y.append([f"{first}", f"{second}"])
        edges.append([(0, 1)])
        types.append(["same" if kind else "other"])
    svm = MaxMargin("word", structure="tree", l2=0.01, random_state=0)
    svm.fit(x, y, edges=edges, edge_types=types)
    assert svm.edge_types_ == ("other", "same")
    assert svm.weights_.transitions.shape == (2, 2, 2)
    assert svm.score(x, y, edges=edges, edge_types=types) == 1.0


def test_cost_is_what_the_margin_has_to_be():
    """With hardly any weights, each sample loses the largest cost of its labels."""
    x, y = [["u", "v"]] * 4, [["a", "b"]] * 3 + [["a", "a"]]
    costs = [[0, 5], [2, 0]]
    matrix = MaxMargin("word", l2=1e6, cost=costs, random_state=0).fit(x, y)
    assert matrix.objective_ == pytest.approx(5 * 5 + 3 * 2, rel=1e-3)

    def cost(labels, classes):
        return [[costs["ab".index(gold)]["ab".index(c)] for c in classes] for gold in labels]

    a, b = (MaxMargin("word", l2=0.1, cost=c, random_state=0).fit(x, y) for c in (cost, costs))
    np.testing.assert_array_equal(a.weights_.node, b.weights_.node)
    plain = MaxMargin("word", l2=0.1, random_state=0).fit(x, y)
    assert not np.array_equal(a.weights_.node, plain.weights_.node)


def test_sample_weight_is_repetition():
    weight = np.arange(len(X)) % 3
    repeated = [i for i, n in enumerate(weight) for _ in range(n)]
    a = MaxMargin("word", l2=0.1, solver="bundle", tol=1e-6).fit(X, Y, sample_weight=weight)
    b = MaxMargin("word", l2=0.1, solver="bundle", tol=1e-6).fit(
        [X[i] for i in repeated], [Y[i] for i in repeated]
    )
    assert a.objective_ == pytest.approx(b.objective_, rel=1e-5)


def test_l1_leaves_weights_at_zero():
    dense = MaxMargin("word; word[-1]; word[1]", l2=0.1, solver="bundle").fit(X, Y)
    sparse = MaxMargin("word; word[-1]; word[1]", l2=0.0, l1=0.5, solver="bundle").fit(X, Y)
    assert sparse.score(X2, Y2) > 0.9
    used = [(abs(m.weights_.node) > 1e-6).mean() for m in (sparse, dense)]
    assert used[0] < used[1] / 2


@pytest.mark.parametrize("solver", ["frank-wolfe", "bundle"])
def test_same_seed_same_bits(solver):
    a, b = (
        MaxMargin("word", l2=0.1, solver=solver, random_state=3, max_passes=7).fit(X, Y)
        for _ in range(2)
    )
    np.testing.assert_array_equal(a.weights_.node, b.weights_.node)
    np.testing.assert_array_equal(a.weights_.transitions, b.weights_.transitions)


@pytest.mark.parametrize("structure", ["chain", "tree", "graph"])
def test_saved_and_loaded(structure, tmp_path):
    edges = {} if structure == "chain" else {"edges": paths(X)}
    svm = MaxMargin("word", structure=structure, cost=1 - np.eye(3), random_state=0)
    svm.fit(X, Y, **edges).save(tmp_path / "m")
    again = load_model(tmp_path / "m")
    assert isinstance(again, MaxMargin)
    assert again.structure == structure
    assert again.stop_reason_ == svm.stop_reason_
    assert again.predict(X, **edges) == svm.predict(X, **edges)
    again.save(tmp_path / "n")
    assert (tmp_path / "n").read_bytes() == (tmp_path / "m").read_bytes()


def test_function_as_cost_cannot_be_saved(tmp_path):
    svm = MaxMargin("word", cost=lambda y, classes: [[c != z for c in classes] for z in y])
    svm.fit(X, Y)
    with pytest.raises(DataError, match=r"cost=.* cannot be written"):
        svm.save(tmp_path / "m")
    svm.set_params(cost="hamming").save(tmp_path / "m")
    assert load_model(tmp_path / "m").predict(X2) == svm.predict(X2)


def test_damaged_parameters_are_refused(tmp_path):
    from trellis.files.container import read_container, write_container

    MaxMargin("word").fit(X, Y).save(tmp_path / "m")
    header, arrays = read_container(tmp_path / "m")
    header = dict(header) | {"parameters": dict(header["parameters"]) | {"structure": "ring"}}
    write_container(tmp_path / "n", header, dict(arrays))
    with pytest.raises(CorruptModelError, match="structure must be 'chain', 'tree' or 'graph'"):
        load_model(tmp_path / "n")


def test_one_line_a_pass(caplog):
    with caplog.at_level("INFO", logger="trellis"):
        MaxMargin("word", max_passes=11, tol=0.0, random_state=0).fit(X, Y)
    lines = [r.message for r in caplog.records if r.message.startswith("pass")]
    assert len(lines) == 11
    assert all("objective" in line and "bound" in line for line in lines)


def test_sklearn_manners():
    svm = MaxMargin("word", l2=0.5)
    assert clone(svm).get_params() == svm.get_params()
    assert repr(svm) == "MaxMargin(features='word', l2=0.5)"
    with pytest.raises(ValueError, match="not fitted"):
        svm.predict(X)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"structure": "ring"}, "structure must be 'chain', 'tree' or 'graph', got"),
        ({"solver": "lbfgs"}, "solver must be 'auto', 'frank-wolfe', 'bundle' or 'sgd', got"),
        ({"inference": "guess"}, "inference must be 'auto', 'marginals', "),
        ({"l2": -1.0}, "l2 must be 'auto' or a number of at least 0"),
        ({"l1": np.nan}, "l1 must be a number of at least 0"),
        ({"l1": 1.0, "l2": 1.0}, "one of l2 and l1"),
        ({"l2": 0.0}, "one of l2 and l1"),
        ({"l2": 0.0, "l1": 1.0, "solver": "frank-wolfe"}, "l1=1.0 needs solver='bundle'"),
        ({"loss": "ramp", "solver": "frank-wolfe"}, "loss='ramp' needs solver='bundle'"),
        ({"loss": "f1"}, "loss must be 'bridge', 'latent-hinge', 'ramp' or 'max', got"),
        ({"cost": "f1"}, 'cost must be "hamming"'),
        ({"warm_start": True}, "warm_start=True needs solver='sgd'"),
        ({"tol": -1}, "tol must be"),
        ({"max_passes": 0}, "max_passes must be"),
        ({"memory": 1}, "memory must be None"),
        ({"directed": 2}, "directed must be"),
        ({"random_state": -1}, "random_state must be"),
        ({"scheme": "XYZ"}, "scheme"),
        ({"scheme": "BIO", "structure": "tree"}, "scheme='BIO' is for structure='chain'"),
    ],
)
def test_bad_parameters(change, message):
    with pytest.raises(DataError, match=message):
        MaxMargin(**({"features": "word"} | change)).fit(
            X, Y, edges=paths(X) if change.get("structure") == "tree" else None
        )


def test_bad_data():
    svm = MaxMargin("word")
    with pytest.raises(DataError, match="fit needs labels"):
        svm.fit(X)
    with pytest.raises(DataError, match="edges are for trees and graphs; chains have none"):
        svm.fit(X, Y, edges=paths(X))
    with pytest.raises(DataError, match="the cost is not additive"):
        svm.set_params(cost=lambda y, classes: 1.0).fit(X, Y)
    assert not svm.__sklearn_is_fitted__()
    tree = MaxMargin("word", structure="tree")
    with pytest.raises(DataError, match="cycle"):
        tree.fit([["a", "b", "c"]], [["X", "Y", "X"]], edges=[[(0, 1), (1, 2), (2, 0)]])
    with pytest.raises(DataError, match="there are no edges"):
        tree.fit(X, Y)
    fitted = MaxMargin("word", max_passes=1).fit(X, Y)
    with pytest.raises(DataError, match="edges are for trees and graphs; chains have none"):
        fitted.predict(X, edges=paths(X))


@pytest.mark.parametrize("solver", ["frank-wolfe", "bundle"])
def test_an_interrupt_keeps_what_was_learned(solver, monkeypatch):
    def interrupt(record, *_):
        if record.number == 3:
            raise KeyboardInterrupt
        return ""

    monkeypatch.setattr("trellis.models.linear_model.format_record", interrupt)
    X, y = [["the", "cat", "sat"], ["a", "dog", "ran"]] * 3, [["D", "N", "V"]] * 6
    model = MaxMargin(solver=solver, tol=0.0, random_state=0)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert model.stop_reason_ == "interrupted"
    assert model.predict(X) == y


# ------------------------------------------------------------------------- as other models can


def test_the_old_names_of_the_losses():
    costs = [[0, 5, 1], [2, 0, 7], [1, 3, 0]]
    for old in (costs, "hamming"):
        with pytest.warns(FutureWarning, match="the task loss is now called cost"):
            svm = MaxMargin("word", loss=old)
        assert (svm.cost, svm.loss) == (old, "bridge")
    with pytest.warns(FutureWarning, match="partial"):
        assert MaxMargin("word", partial="ramp").loss == "ramp"


@pytest.mark.parametrize("solver", ["frank-wolfe", "bundle"])
@pytest.mark.parametrize("structure", ["chain", "tree", "graph"])
def test_rich_edges(structure, solver, tmp_path):
    """What a word says is how the label moves on: without rich edges it can only be guessed."""
    x, y = switches(25)
    x2, y2 = switches(20, seed=1)
    more = [{} if structure == "chain" else {"edges": paths(z)} for z in (x, x2)]
    options = {"structure": structure, "directed": True, "l2": 0.05, "solver": solver}
    options |= {"max_passes": 60} if solver == "frank-wolfe" else {}
    plain, rich = (
        MaxMargin("word", rich_edges=r, random_state=0, **options).fit(x, y, **more[0])
        for r in (False, True)
    )
    assert plain.score(x2, y2, **more[1]) < 0.9 < 0.99 < rich.score(x2, y2, **more[1])
    assert rich.exact_ and 0 <= rich.gap_ < rich.objective_ < plain.objective_
    assert plain.weights_.edge is None and rich.weights_.edge.values.any()
    rich.save(tmp_path / "m")
    assert load_model(tmp_path / "m").predict(x2, **more[1]) == rich.predict(x2, **more[1])
    templates = MaxMargin("word @ edge", random_state=0, **options).fit(x, y, **more[0])
    assert templates.objective_ == pytest.approx(rich.objective_, rel=1e-6)


def test_both_solvers_enclose_the_optimum_of_rich_edges():
    x, y = switches(15)
    one, two = (
        MaxMargin("word", rich_edges="both", l2=1.0, solver=s, tol=0.02, random_state=0).fit(x, y)
        for s in ("frank-wolfe", "bundle")
    )
    assert one.objective_ - one.gap_ <= two.objective_ <= one.objective_ + two.gap_ + 1e-9
    assert one.objective_ == pytest.approx(two.objective_, rel=0.05)


@pytest.mark.parametrize("solver", ["frank-wolfe", "bundle"])
@pytest.mark.parametrize("structure", ["chain", "tree", "graph"])
def test_pieces(structure, solver):
    """Trained on pieces: the objective is that of the pieces as samples."""
    edges = {} if structure == "chain" else {"edges": paths(X)}
    edges2 = {} if structure == "chain" else {"edges": paths(X2)}
    options = {"structure": structure, "l2": 0.01, "solver": solver, "random_state": 0}
    cut = MaxMargin("word", piece_size=2, **options).fit(X, Y, **edges)
    assert cut.score(X2, Y2, **edges2) == 1.0
    whole = MaxMargin("word", **options).fit(X, Y, **edges)
    assert not np.array_equal(cut.weights_.node, whole.weights_.node)
    again = clone(cut).fit(X, Y, **edges)
    np.testing.assert_array_equal(cut.weights_.node, again.weights_.node)
    single = MaxMargin("word", piece_size=1, **options).fit(X, Y, **edges)
    assert not single.weights_.transitions.any()  # no piece has an edge


def test_overlapping_pieces_are_refused():
    with pytest.raises(DataError, match="pieces that overlap cannot be samples of their own"):
        MaxMargin("word", piece_size=2, overlap=1).fit(X, Y)


@pytest.mark.parametrize("solver", ["frank-wolfe", "bundle"])
def test_held_out_data_decide(solver):
    rng = np.random.default_rng(0)
    noisy = [[str(rng.choice(list("DNV"))) for _ in labels] for labels in Y]
    svm = MaxMargin("word; word[-1]", l2=1e-3, tol=0.0, patience=2, max_passes=400, solver=solver,
                    random_state=0)  # fmt: skip
    svm.fit(X, noisy, dev=(X2, Y2))
    scores = [r.dev_score for r in svm.history_ if r.dev_score is not None]
    assert svm.stop_reason_ == "patience" and svm.n_passes_ < 400
    assert len(scores) - 1 - int(np.argmax(scores)) == 2
    assert svm.score(X2, Y2) == pytest.approx(max(scores))


class Killed(BaseException):
    """As if the process ended here."""


def stop_after(patch, n):
    """Write every checkpoint that can be written; let every n-th be the last thing that happens."""
    save, count = Checkpoint.save, 0

    def eager(self, *arguments):
        nonlocal count
        self._cost = 0.0
        save(self, *arguments)
        count += 1
        if count % n == 0:
            raise Killed

    patch.setattr(Checkpoint, "save", eager)


@pytest.mark.parametrize("labels", ["complete", "partial"])
@pytest.mark.parametrize("options", [{}, {"piece_size": 2}, {"structure": "tree"}])
def test_interrupted_and_resumed(options, labels, tmp_path, monkeypatch):
    y = Y if labels == "complete" else [[None, *rest] for _, *rest in Y]
    dev = (X2, Y2)
    edges = {}
    if options.get("structure") == "tree":
        edges, dev = {"edges": paths(X)}, (X2, Y2, paths(X2))
    settings = {"l2": 0.01, "tol": 0.0, "max_passes": 45, "random_state": 0} | options

    def model():
        return MaxMargin("word; word[-1]", **settings)

    file = tmp_path / "c"
    taken_up = 0
    with monkeypatch.context() as patch:
        stop_after(patch, 2)
        for _ in range(20):
            part = model()
            try:
                part.fit(X, y, **edges, dev=dev, checkpoint=file, checkpoint_minutes=0, resume=True)
            except Killed:
                taken_up += 1
                continue
            break
    assert taken_up > 1
    assert not file.exists()
    whole = model().fit(X, y, **edges, dev=dev)
    np.testing.assert_array_equal(part.weights_.node, whole.weights_.node)
    np.testing.assert_array_equal(part.weights_.transitions, whole.weights_.transitions)
    assert [r.objective for r in part.history_] == [r.objective for r in whole.history_]
    assert [r.dev_score for r in part.history_] == [r.dev_score for r in whole.history_]
    assert (part.objective_, part.gap_) == (whole.objective_, whole.gap_)
    assert part.stop_reason_ == whole.stop_reason_


def test_without_a_seed_all_continuations_are_the_same(tmp_path, monkeypatch):
    options = {"l2": 0.01, "tol": 0.0, "max_passes": 45, "piece_size": 2}
    file, copy = tmp_path / "c", tmp_path / "copy"
    with monkeypatch.context() as patch, pytest.raises(Killed):
        stop_after(patch, 2)
        MaxMargin("word", **options).fit(X, Y, checkpoint=file, checkpoint_minutes=0)
    copy.write_bytes(file.read_bytes())
    one, two = (
        MaxMargin("word", **options).fit(X, Y, checkpoint=path, resume=True)
        for path in (file, copy)
    )
    np.testing.assert_array_equal(one.weights_.node, two.weights_.node)
    other = MaxMargin("word", **options).fit(X, Y)
    assert not np.array_equal(one.weights_.node, other.weights_.node)


@pytest.mark.parametrize("options", [{"solver": "bundle"}, {"rich_edges": True}])
def test_what_cannot_be_taken_up_says_so(options, tmp_path):
    with pytest.raises(DataError, match="a run of this solver cannot be taken up in the middle"):
        MaxMargin("word", **options).fit(X, Y, checkpoint=tmp_path / "c")
    with pytest.raises(DataError, match="resume=True needs the file"):
        MaxMargin("word", **options).fit(X, Y, resume=True)


def test_scores_are_no_probabilities():
    svm = MaxMargin("word", max_passes=1).fit(X, Y)
    message = "MaxMargin has no predict_marginals: its scores are no probabilities; a CRF's are"
    with pytest.raises(AttributeError, match=message):
        svm.predict_marginals(X)
    for name in ("entropy", "marginals", "predict_spans", "sample"):
        with pytest.raises(AttributeError, match=f"MaxMargin has no {name}: its scores are no"):
            getattr(svm, name)
    with pytest.raises(AttributeError, match="'MaxMargin' object has no attribute 'nothing'"):
        svm.nothing  # noqa: B018 (it is the attribute that is asked for)

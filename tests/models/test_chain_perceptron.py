"""ChainPerceptron through its public methods."""

from __future__ import annotations

import numpy as np
import pytest

import trellis.kernels.perceptron as kernels
import trellis.models.scored_model as model_module
import trellis.solvers.passes as passes_module
from chain_problems import chain_problem, in_scheme, labelling_scores, same_bits, toy_language
from trellis import ChainPerceptron
from trellis.corpus import as_corpus
from trellis.decompose import WholeSamples
from trellis.problems import PerceptronLoss, Weights
from trellis.solvers import AveragedPerceptron

X, Y = toy_language(60)
X_NEW, Y_NEW = toy_language(20, seed=1)
SHORT = [["Ada", "met"], ["the", "Bohr", "Curie"], ["Zuse", "Ada", "Ada"]]


@pytest.fixture(scope="module")
def perceptron() -> ChainPerceptron:
    return ChainPerceptron("word; word[-1]", max_passes=3, random_state=0).fit(X, Y)


@pytest.mark.parametrize("piece_size", [None, 1, 2.5])
@pytest.mark.parametrize("visit", ["pooled", "permutation", "replacement"])
def test_it_learns_the_toy_language(piece_size, visit):
    model = ChainPerceptron(piece_size=piece_size, visit=visit, random_state=0).fit(X, Y)
    assert model.score(X_NEW, Y_NEW) > 0.97
    assert model.classes_ == ("B-PER", "I-PER", "O")
    assert model.history_[-1].objective < model.history_[0].objective
    assert model.weights_.node.dtype == np.float32


def test_the_objective_counts_wrong_positions():
    model = ChainPerceptron(max_passes=8, tol=-1, random_state=0).fit(X, Y)
    counts = [r.objective for r in model.history_]
    assert counts[0] > 0 and all(c == int(c) for c in counts)
    assert counts[-1] == 0  # separable


def test_it_stops_when_errors_fall_no_more():
    model = ChainPerceptron(max_passes=100, tol=0.5, random_state=0).fit(X, Y)
    assert 3 <= model.n_passes_ < 100


def test_the_weights_are_averages():
    """One pass over one sequence that needs two updates: the mean of both."""
    model = ChainPerceptron("word", max_passes=1, random_state=0)
    model.fit([["a"], ["b"], ["c"], ["d"]], [["Y"], ["Y"], ["Y"], ["X"]])
    raw = np.abs(model.weights_.node).sum(axis=1)
    assert np.any(raw != np.round(raw))  # updates themselves are whole numbers


@pytest.mark.parametrize("sample", SHORT)
def test_predictions_are_those_of_enumeration(perceptron, sample):
    scores = labelling_scores(perceptron, sample)
    best = max(scores.values())
    (found,) = perceptron.predict([sample])
    assert scores[tuple(found)] == pytest.approx(best, abs=1e-4)
    ranked = perceptron.predict_kbest([sample], 1000)[0]
    assert ranked[0][0] == found
    assert {tuple(y) for y, _ in ranked} == set(scores)
    for y, score in ranked:
        assert score == pytest.approx(scores[tuple(y)], abs=1e-4)


def test_constraints_and_schemes_are_honoured():
    model = ChainPerceptron("word", max_passes=1, scheme="BIO", random_state=0).fit(X, Y)
    samples = [[str(w) for w in np.random.default_rng(i).choice(X[0], 6)] for i in range(20)]
    assert all(in_scheme("BIO", y) for y in model.predict(samples))
    sets = [[{"B-PER", "I-PER"}] * 6] * 20
    found = model.predict(samples, constraints=sets)
    assert all(in_scheme("BIO", y) and "O" not in y for y in found)


def test_probabilities_are_not_offered(perceptron):
    for name in ("predict_marginals", "predict_spans", "sample", "entropy"):
        assert not hasattr(perceptron, name)


def test_partial_labels_teach():
    rng = np.random.default_rng(0)
    few = [[label if rng.random() < 0.3 else None for label in s] for s in Y]
    fits = [ChainPerceptron(random_state=0).fit(X, few) for _ in range(2)]
    assert same_bits(fits[0].weights_, fits[1].weights_)
    assert fits[0].score(X_NEW, Y_NEW) > 0.85
    sets = [[{"B-PER", "I-PER"} if label != "O" else "O" for label in s] for s in Y]
    model = ChainPerceptron(random_state=0).fit(X, sets)
    for gold, found in zip(Y_NEW, model.predict(X_NEW), strict=True):
        assert [g == "O" for g in gold] == [f == "O" for f in found]


def test_blocks_change_not_a_bit(monkeypatch):
    whole = ChainPerceptron(piece_size=2.5, random_state=0).fit(X, Y)
    at_once = whole.predict(X_NEW)
    monkeypatch.setattr(passes_module, "BLOCK", 10)
    monkeypatch.setattr(model_module, "_POSITIONS", 5)
    divided = ChainPerceptron(piece_size=2.5, random_state=0).fit(X, Y)
    assert same_bits(whole.weights_, divided.weights_)
    assert whole.predict(X_NEW) == divided.predict(X_NEW) == at_once


def test_the_seed_decides_the_bits():
    fits = [
        ChainPerceptron(piece_size=2.5, max_passes=3, random_state=s).fit(X, Y) for s in (0, 0, 1)
    ]
    assert same_bits(fits[0].weights_, fits[1].weights_)
    assert not same_bits(fits[0].weights_, fits[2].weights_)


def test_weight_zero_is_an_absence():
    """A sample of weight zero is visited without effect: it dilutes the average, no more."""
    words, odd = [["Ada", "met"], ["Bob", "ran"]], [["O", "I-PER"], ["I-PER", "O"]]
    with_it = ChainPerceptron("word", max_passes=1, random_state=0)
    with_it.fit(words * 2, odd * 2, sample_weight=[0.0, 1.0, 0.0, 1.0])
    names = with_it.encoder_.names(range(len(with_it.weights_.node)))
    rows = dict(zip(names, with_it.weights_.node.any(axis=1).tolist(), strict=True))
    assert {name: True for name, moved in rows.items() if moved} == {"word=ran": True}


def test_warm_start_goes_on_from_the_average():
    model = ChainPerceptron(max_passes=1, warm_start=True, random_state=0).fit(X, Y)
    first = model.history_[0].objective
    model.fit(X, Y)
    assert model.history_[0].objective < first


def test_a_stream_averages_over_all_its_batches():
    """Batches of one sequence are one pass over all of them, in their order."""
    model = ChainPerceptron("word; word[-1] & word", random_state=0)
    sizes = []
    for sample, labels in zip(X, Y, strict=True):
        model.partial_fit([sample], [labels], classes=["B-PER", "I-PER", "O"])
        sizes.append(model.n_features_)
        assert len(model.weights_.node) == model.n_features_
    assert sizes == sorted(sizes) and sizes[0] < sizes[-1]
    assert model.n_batches_ == 60
    assert model.score(X_NEW, Y_NEW) > 0.9
    corpus = as_corpus(X, Y)
    data = chain_problem(model.encoder_.encode(corpus), corpus.labels, np.ones(60))
    learner = AveragedPerceptron(PerceptronLoss(data), Weights.zeros(model.n_features_, 3))
    pieces = WholeSamples().draw(corpus.offsets, np.random.default_rng(0))
    learner.visit(data.visits(pieces), 0, 0, 60)
    np.testing.assert_allclose(model.weights_.node, learner.weights().node, atol=1e-5)


def test_fit_forgets_a_stream():
    fresh = ChainPerceptron(random_state=0).fit(X, Y)
    used = ChainPerceptron(random_state=0).partial_fit([["u", "v"]], [["A", "B"]]).fit(X, Y)
    assert same_bits(fresh.weights_, used.weights_)
    for model in (fresh, used):
        model.partial_fit([["Zuse", "met"]], [["B-PER", "O"]])
        assert model.weights_.node.shape == (model.n_features_, 3)
    assert same_bits(fresh.weights_, used.weights_)


def test_ctrl_c_leaves_a_usable_model(monkeypatch):
    real = AveragedPerceptron.visit

    def interrupted(self, these, number, done, total):
        if number == 1:
            raise KeyboardInterrupt
        return real(self, these, number, done, total)

    expected = ChainPerceptron(max_passes=1, random_state=0).fit(X, Y)
    model = ChainPerceptron(random_state=0)
    with monkeypatch.context() as patch:
        patch.setattr(AveragedPerceptron, "visit", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, Y)
    assert same_bits(model.weights_, expected.weights_)
    assert model.predict(X_NEW) == expected.predict(X_NEW)


def test_ctrl_c_in_a_stream_does_not_spoil_the_average(monkeypatch):
    """What the interrupted batch taught is counted with it, and the stream goes on."""
    real = kernels.averaged_perceptron

    def interrupted(*arguments):
        real(*arguments)
        raise KeyboardInterrupt

    calm, hasty = (ChainPerceptron("word", random_state=0) for _ in range(2))
    for i in (0, 20, 40):
        batch = X[i : i + 20], Y[i : i + 20]
        calm.partial_fit(*batch)
        if i == 20:
            with monkeypatch.context() as patch:
                patch.setattr(kernels, "averaged_perceptron", interrupted)
                with pytest.raises(KeyboardInterrupt):
                    hasty.partial_fit(*batch)
        else:
            hasty.partial_fit(*batch)
        assert same_bits(calm.weights_, hasty.weights_)

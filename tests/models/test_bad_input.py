"""Bad input: one exception type, and a message that names the place and says what to do."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from chain_problems import same_bits, toy_language
from trellis import (
    ChainCRF,
    ChainPerceptron,
    Corpus,
    DataError,
    InfeasibleError,
    TemplateError,
    load_model,
)

X, Y = toy_language(10)
BOTH = pytest.mark.parametrize("kind", [ChainCRF, ChainPerceptron])
NUMBERS = [np.ones((2, 3)), np.ones((1, 3))]
ROWS = [["A", "B"], ["A"]]


def with_nan(value):
    bad = np.ones((2, 3))
    bad[1, 2] = value
    return [np.ones((1, 3)), bad]


# ------------------------------------------------------------------------- data


BAD_TRAINING = {
    "no corpus": (5, None, r"expected a corpus or a list of samples, got int"),
    "a text": ("the cat", None, r"expected a corpus or a list of samples, got str"),
    "nothing": ([], [], r"fit needs at least one sequence; the corpus is empty"),
    "no labels": (X, None, r"fit needs labels: pass y or a corpus that carries them"),
    "empty sequence": ([["a"], []], [["A"], []], r"sample 1 is empty; remove empty sequences"),
    "NaN in an array": (with_nan(np.nan), [["A"], ["A", "B"]], r"sample 1, position 1, column 2 "),
    "inf in an array": (with_nan(-np.inf), [["A"], ["A", "B"]], r"sample 1, position 1, column 2"),
    "NaN in a dict": ([[{"x": math.nan}]], [["A"]], r"sample 0, position 0: feature 'x' is nan"),
    "ragged rows": (
        [np.ones((2, 3)), np.ones((2, 4))],
        [["A", "B"]] * 2,
        r"sample 1 has 4 columns, sample 0 has 3",
    ),
    "flat array": ([np.ones(3)], [["A"] * 3], r"sample 0 is \(3,\); expected an \(n, d\) array"),
    "array of texts": ([np.array([["a"]])], [["A"]], r"sample 0 has dtype <U1; expected numbers"),
    "array among lists": ([np.ones((1, 2)), [["a"]]], [["A"]] * 2, r"sample 1 is list; expected"),
    "too few label lists": (X, Y[:-1], r"X and y differ in number: 10 and 9 samples"),
    "too few labels": (
        X,
        [*Y[:3], Y[3][:-1], *Y[4:]],
        rf"sample 3: X has {len(X[3])} positions, y has {len(X[3]) - 1}",
    ),
    "list as label": ([["a"]], [[[1]]], r"label at sample 0, position 0 is \[1\] of type list"),
    "labels as a text": ([["a", "b"]], ["AB"], r"labels of sample 0"),
    "empty label set": ([["a"]], [[set()]], r"label set at sample 0, position 0 is empty"),
    "no annotation": (X[:1], [[None] * len(X[0])], r"no position is annotated: there is nothing"),
    "feature that is no text": ([[["a", 1]]], [["A"]], r"sample 0, position 0: attribute 1 is no"),
    "position that is no features": ([[1, 2]], [["A", "B"]], r"sample 0, position 0 is 1"),
    "list as value": ([[{"x": [1]}]], [["A"]], r"sample 0, position 0: feature 'x' is \[1\]"),
}


@BOTH
@pytest.mark.parametrize("case", BAD_TRAINING)
def test_training_data(kind, case):
    samples, labels, message = BAD_TRAINING[case]
    model = kind(random_state=0)
    for learn in (model.fit, model.partial_fit):
        with pytest.raises(DataError, match=message):
            learn(samples, labels)
        with pytest.raises(NotFittedError):  # nothing is left half done
            model.predict(X)


@BOTH
def test_a_refused_fit_leaves_the_model_as_it_was(kind):
    model = kind(random_state=0).fit(X, Y)
    before, weights = model.predict(X), model.weights_.copy()
    for samples, labels, _ in BAD_TRAINING.values():
        with pytest.raises(DataError):
            model.fit(samples, labels)
    for options in (
        {"sample_weight": [1.0]},
        {"dev": (X, None)},
    ):
        with pytest.raises(DataError):
            model.fit(X, Y, **options)
    assert model.predict(X) == before and same_bits(model.weights_, weights)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0], r"sample_weight must have shape \(10,\), got \(1,\)"),
        (np.ones((10, 1)), r"sample_weight must have shape \(10,\), got \(10, 1\)"),
        ([-1.0] * 10, r"sample_weight must be finite and not negative"),
        ([math.nan] * 10, r"sample_weight must be finite and not negative"),
        ([math.inf] * 10, r"sample_weight must be finite and not negative"),
        (["heavy"] * 10, r"entries of sample_weight have dtype <U5; expected numbers"),
        ([None] + [[1.0]] * 9, r"entries of sample_weight cannot be read as an array"),
    ],
)
def test_sample_weights(weights, message):
    model = ChainCRF(random_state=0)
    for learn in (model.fit, model.partial_fit):
        with pytest.raises(DataError, match=message):
            learn(X, Y, sample_weight=weights)
    fitted = ChainCRF(max_passes=1, random_state=0).fit(X, Y)
    with pytest.raises(DataError, match=message):
        fitted.score(X, Y, sample_weight=weights)


@pytest.mark.parametrize(
    "dev", [X, (X,), (X, None), (X, Y, Y), [], ([], []), (X[:1], [[None] * len(X[0])])]
)
def test_held_out_data(dev):
    with pytest.raises(DataError, match="dev needs labelled samples: a corpus with labels or a"):
        ChainCRF(random_state=0).fit(X, Y, dev=dev)


def test_held_out_data_of_another_length():
    with pytest.raises(DataError, match="X and y differ in number"):
        ChainCRF(random_state=0).fit(X, Y, dev=(X, Y[:-1]))


def test_samples_of_another_kind_than_the_models():
    by_column = ChainCRF(max_passes=1, random_state=0).fit(X, Y)
    with pytest.raises(DataError, match="the columns are word, but position 0 of sample 0 has x"):
        by_column.predict([[{"x": 1.0}]])
    by_features = ChainCRF(max_passes=1, random_state=0).fit(NUMBERS, ROWS)
    with pytest.raises(DataError, match="this model learned from ready-made features"):
        by_features.predict(X)


def test_values_too_large_to_be_scored():
    tiny = [np.full((2, 3), 1e-3), np.full((1, 3), -2e-3)]
    model = ChainCRF(l2=0.0, max_passes=20, random_state=0).fit(tiny, ROWS)
    large = [tiny[0], np.array([[1e-3] * 3, [3e38, 3e38, 3e38]])]
    for ask in (model.predict, model.predict_marginals, model.entropy):
        message = "sample 1, position 1: feature values are too large"
        with np.errstate(over="ignore"), pytest.raises(DataError, match=message):
            ask(large)


def test_scores_need_labels():
    model = ChainCRF(max_passes=1, random_state=0).fit(X, Y)
    with pytest.raises(DataError, match="score needs labels: pass y or a corpus that carries"):
        model.score(X)
    for labels in ([[None]], [[]]):
        with pytest.raises(DataError, match="score needs at least one annotated position"):
            model.score([["Ada"] * len(labels[0])], labels)


@pytest.mark.parametrize("k", [0, -1, 1.5, 2.5, True, "2", None])
def test_number_of_best(k):
    model = ChainCRF(max_passes=1, random_state=0).fit(X, Y)
    with pytest.raises(DataError, match=f"k must be a positive integer, got {k!r}"):
        model.predict_kbest(X, k)


def test_number_of_draws():
    model = ChainCRF(max_passes=1, random_state=0).fit(X, Y)
    with pytest.raises(DataError, match="n_samples must be an integer of at least 0, got -1"):
        model.sample(X, -1)


# ------------------------------------------------------------------------- constraints


@pytest.mark.parametrize(
    ("sets", "message"),
    [
        ([["B-PER", "X"]], r"label 'X' at sample 0, position 1 is unknown; known labels: B-PER, I"),
        ([[None, {"O", "X"}]], r"label 'X' at sample 0, position 1 is unknown"),
        ([[None, set()]], r"label set at sample 0, position 1 is empty"),
        ([[None]], r"sample 0: X has 2 positions, constraints has 1"),
        ([], r"X and constraints differ in number: 1 and 0 samples"),
        ([None], r"constraints of sample 0"),
        (5, r"samples of constraints are of type int; expected a list"),
        ([[None, 3]], r"label 3 at sample 0, position 1 is unknown; known labels: 'B-PER'"),
    ],
)
@BOTH
def test_constraints(kind, sets, message):
    model = kind(max_passes=1, random_state=0).fit(X, Y)
    with pytest.raises(DataError, match=message):
        model.predict([["Ada", "met"]], constraints=sets)
    with pytest.raises(DataError, match=message):
        model.predict_kbest([["Ada", "met"]], 2, constraints=sets)


@BOTH
def test_constraints_that_leave_nothing_under_a_scheme(kind):
    model = kind(max_passes=1, scheme="BIO", random_state=0).fit(X, Y)
    samples = [["Ada"], ["Ada", "met"]]
    with pytest.raises(InfeasibleError, match=r"sample 1 \(of 2 positions\) has no allowed label"):
        model.predict(samples, constraints=[[None], ["O", {"I-PER"}]])
    with pytest.raises(InfeasibleError, match=r"sample 0 \(of 1 positions\)"):
        model.predict(samples, constraints=[["I-PER"], [None, None]])


# ------------------------------------------------------------------------- labels later on


@BOTH
def test_an_unknown_label_when_training_goes_on(kind):
    model = kind(max_passes=1, warm_start=True, random_state=0).fit(X, Y)
    before, n = model.weights_.copy(), model.n_features_
    for learn in (model.fit, model.partial_fit):
        with pytest.raises(DataError, match="label 'X' is unknown; known labels: B-PER, I-PER, O"):
            learn([["brand", "new"]], [["O", "X"]])
    assert same_bits(model.weights_, before) and model.n_features_ == n


@BOTH
@pytest.mark.parametrize(
    ("classes", "message"),
    [
        (["B-PER", "O"], "label 'I-PER' is unknown; known labels: B-PER, O"),
        ([1, 2], "label 'B-PER' is unknown; known labels: 1, 2"),
        ("B-PER", "label 'I-PER' is unknown; known labels: B-PER"),
    ],
)
def test_classes_of_a_stream(kind, classes, message):
    with pytest.raises(DataError, match=message):
        kind(random_state=0).partial_fit(X, Y, classes=classes)


def test_a_batch_that_is_refused_does_not_count():
    model = ChainCRF(random_state=0).partial_fit(X, Y)
    before = model.weights_.copy()
    with pytest.raises(DataError):
        model.partial_fit(X, Y, sample_weight=[1.0])
    with pytest.raises(DataError):
        model.partial_fit([["a"]], [["A"]])
    assert (model.n_batches_, model.n_seen_) == (1, 10)
    assert same_bits(model.weights_, before)


# ------------------------------------------------------------------------- parameters


COMMON = {
    "piece_size": (
        [0, 0.5, math.nan, math.inf, "2"],
        "piece_size must be None or a number of at least 1",
    ),
    "max_passes": (
        [0, -1, 1.5, "3", None],
        "max_passes must be 'auto' or a positive integer, got",
    ),
    "overlap": ([-1, 1.5, "2", None], "overlap must be an integer of at least 0, got"),
    "rich_edges": (
        ["all", None, 0, 2, []],
        "rich_edges must be True or False, 'current', 'both' or 'typed', got",
    ),
    "edge_pairs": (["some", None, True], "edge_pairs must be 'auto', 'all' or 'observed', got"),
    "edge_negatives": ([-1, 1.5, "x", None], "edge_negatives must be an integer of at least 0, go"),
    "edge_min_share": (
        [-0.1, 1.1, math.nan, "x", None],
        "edge_min_share must be a number from 0 to 1, got",
    ),
    "batch_size": ([0, -1, 1.5, True, "x", None], "batch_size must be a positive integer, got"),
    "n_jobs": (
        [0, -2, 1.5, True, "x"],
        "n_jobs must be None, a positive integer or -1, got",
    ),
    "tol": ([math.nan, math.inf, -math.inf, "x", None], "tol must be a number, got"),
    "visit": (["random", None], "visit must be 'pooled', 'permutation' or 'replacement', got"),
    "patience": ([0, "x"], "patience must be None or a positive integer, got"),
    "random_state": ([-1, 1.5, "x"], "random_state must be None or an integer of at least 0, got"),
    "scheme": (["XYZ"], "scheme must be None, 'BIO', 'BILOU', 'IOBES', 'BMES' or a Scheme"),
}
OF_CRF = {
    "l2": ([-1, math.nan, math.inf, "x", None], "l2 must be 'auto' or a number of at least 0, got"),
    "averaged": (["x", None, 2], "averaged must be 'auto' or True or False, got"),
    "encoding": (["BIO", None], "encoding must be 'auto', 'iobes' or 'given', got"),
    "l1": ([-1, math.nan, math.inf, "x", None], "l1 must be a number of at least 0, got"),
    "group_lasso": ([-1, math.nan, math.inf, "x", None], "group_lasso must be a number of at lea"),
    "solver": (["newton", None], "solver must be 'sgd', 'adf', 'lbfgs' or 'auto', got"),
    "states": (["some", None], "states must be 'all' or 'observed', got"),
    "decay": (
        [0, -0.5, 1.5, math.nan, "x", None],
        "decay must be 'auto' or a number above 0 and of at most 1, got",
    ),
    "learning_rate": (
        [0, -1, math.nan, math.inf, "fast", None],
        "learning_rate must be 'auto' or a positive number, got",
    ),
}


@pytest.mark.parametrize(
    ("kind", "name", "value", "message"),
    [
        (kind, name, value, message)
        for kind, table in ((ChainCRF, COMMON | OF_CRF), (ChainPerceptron, COMMON))
        for name, (values, message) in table.items()
        for value in values
    ],
)
def test_parameters(kind, name, value, message):
    model = kind(**{name: value})  # stored as it is, refused when it is used
    for learn in (model.fit, model.partial_fit):
        with pytest.raises(DataError, match=message):
            learn(X, Y)
    with pytest.raises(NotFittedError):
        model.predict(X)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"states": "observed"}, "states='observed' is for solver='lbfgs'"),
        ({"states": "observed", "solver": "auto"}, "states='observed' is for solver='lbfgs'"),
        ({"lock_free": True, "solver": "adf"}, "lock_free=True is for solver='sgd'"),
        ({"averaged": True, "solver": "lbfgs"}, "averaged=True is for solver='sgd'"),
        ({"averaged": True, "l1": 0.1}, "averaged=True needs l1=0 and group_lasso=0: a mean"),
    ],
)
def test_parameters_that_do_not_go_together(options, message):
    model = ChainCRF(**options)
    for learn in (model.fit, model.partial_fit):
        with pytest.raises(DataError, match=message):
            learn(X, Y)


@pytest.mark.parametrize(
    ("features", "message"),
    [
        ("lemma[-1]; word", "template 'lemma\\[-1\\]' needs the column 'lemma'; the corpus has wo"),
        (["word & lemma"], "template 'word & lemma' needs the column 'lemma'"),
        ("nosuch", "no template set 'nosuch'; there are"),
        ("word[", "template line 1"),
        ("frobnicate(word)", "unknown function 'frobnicate'"),
        ("", "no templates"),
        (5, "features must be a set's name, template text, a list of lines or Templates, got int"),
    ],
)
@BOTH
def test_templates(kind, features, message):
    model = kind(features)
    with pytest.raises(TemplateError, match=message):
        model.fit(X, Y)
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_templates_for_ready_made_features():
    with pytest.raises(DataError, match="template 'word' needs the column 'word'; the corpus has"):
        ChainCRF("word").fit([[{"w": "a"}]], [["A"]])
    with pytest.raises(DataError, match="the samples are ready-made features; leave features='au"):
        ChainCRF("word").fit(NUMBERS, ROWS)


def test_a_number_template_over_words():
    with pytest.raises(DataError, match=r"column .word., sample 0, position 0: .* is not a finite"):
        ChainCRF("number(word)").fit(X, Y)


def test_a_column_missing_at_prediction():
    corpus = Corpus.from_columns({"word": X, "pos": [["x"] * len(s) for s in X]}, Y)
    model = ChainCRF("word; pos", max_passes=1, random_state=0).fit(corpus)
    message = "the templates need the column 'pos'; the "
    with pytest.raises(DataError, match=message + "corpus has word"):
        model.predict(Corpus.from_columns({"word": X}))
    remedy = r"samples have word. Give each position a tuple \(word, pos\) or a dict with the names"
    with pytest.raises(DataError, match=message + remedy):
        model.predict(X)


def test_labels_that_do_not_fit_the_scheme():
    model = ChainCRF(scheme="BIO")
    with pytest.raises(DataError, match="label 'N' does not fit the tag scheme BIO"):
        model.fit([["a"]], [["N"]])
    with pytest.raises(NotFittedError):
        model.predict([["a"]])


# ------------------------------------------------------------------------- divergence


@pytest.mark.parametrize("options", [{"l2": 0.0}, {"l2": 1.0}, {"l2_once": True}])
def test_a_rate_far_too_large_is_an_error_and_leaves_no_weights_that_are_not_numbers(options):
    model = ChainCRF(learning_rate=1e39, random_state=0, **options)
    message = "training diverged: the objective rose above that of zero weights, or beyond all"
    with pytest.raises(DataError, match=message):
        model.fit(X, Y)
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_a_rate_far_too_large_without_features_is_seen_in_the_transitions():
    model = ChainCRF(learning_rate=1e39, l2=0.0, random_state=0)
    with pytest.warns(RuntimeWarning, match="the learning rate .* was too high: .* began again"):
        model.fit([[[], [], []]] * 3, [["A", "B", "B"]] * 3)
    assert model.weights_.finite() and model.learning_rate_ < 1e39
    assert model.history_[-1].objective <= 9 * np.log(2)


def test_divergence_when_training_goes_on_keeps_the_weights_before():
    model = ChainCRF(max_passes=2, warm_start=True, random_state=0).fit(X, Y)
    before = model.predict(X)
    with pytest.raises(DataError, match="training diverged"):
        model.set_params(learning_rate=1e39).fit(X, Y)
    assert model.predict(X) == before
    model.set_params(learning_rate=0.1).fit(X, Y)
    stream = ChainCRF(learning_rate=0.1, random_state=0).partial_fit(X, Y)
    before = stream.predict(X)
    stream.learning_rate_ = 1e39
    with pytest.raises(DataError, match="training diverged"):
        stream.partial_fit(X, Y)
    assert stream.predict(X) == before


@BOTH
def test_too_many_labels(kind):
    many = [[str(i)] for i in range(5001)]
    message = "5001 distinct labels: is this the label column"
    for fit in (kind("word").fit, kind("word").partial_fit):
        with pytest.raises(DataError, match=message):
            fit([["a"]] * 5001, many)
    with pytest.raises(DataError, match=message):
        kind("word").learning_problems({"a": ([["a"]] * 5001, many)})
    with pytest.raises(DataError, match="3 distinct labels"):
        kind("word", max_labels=2).fit([["a"]] * 3, many[:3])


@BOTH
def test_many_labels_are_asked_about_once(kind, tmp_path, caplog):
    """Not again for the same model, when it is saved or loaded."""
    model = kind("word", max_passes=1).fit([["a"]] * 501, [[str(i)] for i in range(501)])
    model.save(tmp_path / "m")
    load_model(tmp_path / "m").predict([["a"]])
    assert caplog.text.count("501 distinct labels: is this the label column?") == 1


@BOTH
def test_sample_weights_of_zero(kind):
    for fit in (kind("word").fit, kind("word").partial_fit):
        with pytest.raises(DataError, match="sample_weight is 0 for every sample"):
            fit([["a"], ["b"]], [["A"], ["B"]], sample_weight=[0, 0])

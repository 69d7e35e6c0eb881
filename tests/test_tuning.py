"""Tuning: a loop by hand gives the same, whatever runs the fits; searches, logs, refusals."""

from __future__ import annotations

import io
import json
import re
import sys

import joblib
import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV

from chain_problems import same_bits, toy_language
from screens import Terminal, screen
from trellis import ChainCRF, ChainPerceptron, Corpus, DataError, TemplateError
from trellis.corpus import as_corpus
from trellis.errors import ParametersError
from trellis.evaluation import span_scores, token_accuracy
from trellis.files.tuning_log import TuningLog, plain
from trellis.tuning import Trial, Tuning, default_grid, tune

BOTH = pytest.mark.parametrize("kind", [ChainCRF, ChainPerceptron])


def noisy_language(n=40, seed=0):
    """The toy language with some words of each sentence replaced: not to be learned perfectly."""
    X, Y = toy_language(n, seed)
    rng = np.random.default_rng(seed + 1)
    return [[w if rng.random() < 0.7 else "what" for w in s] for s in X], Y


X, Y = noisy_language()
DEV = noisy_language(20, seed=5)
POS = [[label[0] + "!" for label in s] for s in Y]  # no tag scheme
GRID = {"piece_size": [None, 1.5], "max_passes": [1, 3]}


@pytest.fixture
def fits(monkeypatch):
    """Every model that is fitted in this process, in order."""
    found = []
    for kind in (ChainCRF, ChainPerceptron):

        def fit(self, *arguments, _fit=kind.fit, **options):
            _fit(self, *arguments, **options)
            found.append(self)
            return self

        monkeypatch.setattr(kind, "fit", fit)
    return found


def by_hand(kind, labels, folds, seed, score):
    """Means and scores of a grid with pinned seeds, with lists and nothing of the module."""
    parts = np.array_split(np.random.default_rng(seed).permutation(len(X)), folds)
    found = []
    for size in GRID["piece_size"]:
        for passes in GRID["max_passes"]:
            scores = []
            for part in parts:
                train = [i for i in range(len(X)) if i not in part]
                test = [i for i in range(len(X)) if i in part]
                model = kind("word", piece_size=size, max_passes=passes, random_state=9)
                model.fit([X[i] for i in train], [labels[i] for i in train])
                predicted = model.predict([X[i] for i in test])
                scores.append(score([labels[i] for i in test], predicted))
            found.append((size, passes, scores))
    return found


def f1(gold, predicted):
    return span_scores(gold, predicted, "BIO").f1


def without_seconds(result):
    return [(t.params, t.mean, t.sd, t.scores) for t in result.table]


# ------------------------------------------------------------------ what is computed


@BOTH
@pytest.mark.parametrize(("labels", "score"), [(Y, f1), (POS, token_accuracy)], ids=["F1", "acc"])
@pytest.mark.parametrize("form", ["lists", "corpus"])
def test_a_loop_by_hand_gives_the_same(kind, labels, score, form):
    data = (X, labels) if form == "lists" else (Corpus.from_columns({"word": X}, labels),)
    result = tune(kind("word"), *data, grid=GRID | {"random_state": [9]}, folds=3, random_state=4)
    expected = by_hand(kind, labels, 3, 4, score)
    assert len(result.table) == 4
    for trial, (size, passes, scores) in zip(result.table, expected, strict=True):
        assert trial.params == {"piece_size": size, "max_passes": passes, "random_state": 9}
        assert trial.scores == tuple(scores)
        assert trial.mean == pytest.approx(np.mean(scores), abs=1e-15)
        assert trial.sd == pytest.approx(np.std(scores, ddof=1), abs=1e-15)
        assert trial.seconds > 0
    means = [t.mean for t in result.table]
    assert len(set(means)) > 1  # else the choice below would show nothing
    assert result.best is result.table[means.index(max(means))]
    assert result.best_params_ == result.best.params
    assert result.best_score_ == max(means)
    assert result.metric == ("span F1" if score is f1 else "accuracy")


@BOTH
@pytest.mark.parametrize("form", ["lists", "corpus"])
def test_development_data(kind, form):
    dev = DEV if form == "lists" else Corpus.from_columns({"word": DEV[0]}, DEV[1])
    result = tune(kind("word"), X, Y, grid=GRID | {"random_state": [9]}, dev=dev)
    for trial in result.table:
        model = kind("word", **trial.params).fit(X, Y)
        assert trial.scores == (f1(DEV[1], model.predict(DEV[0])),)
        assert (trial.mean, trial.sd) == (trial.scores[0], None)


def test_grid_search_of_scikit_learn_finds_the_same():
    parts = np.array_split(np.random.default_rng(0).permutation(len(X)), 4)
    splits = [(np.setdiff1d(np.arange(len(X)), part), np.sort(part)) for part in parts]
    search = GridSearchCV(ChainCRF("word", random_state=9), GRID, cv=splits, error_score="raise")
    search.fit(X, POS)
    result = tune(ChainCRF("word"), X, POS, grid=GRID | {"random_state": [9]})
    found = {(t.params["piece_size"], t.params["max_passes"]): t.mean for t in result.table}
    for params, mean in zip(
        search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True
    ):
        assert found[params["piece_size"], params["max_passes"]] == pytest.approx(mean, abs=1e-12)
    assert search.best_score_ == pytest.approx(result.best_score_, abs=1e-12)


@pytest.mark.parametrize("backend", ["loky", "threading", "multiprocessing"])
def test_the_result_does_not_depend_on_what_runs_the_fits(backend):
    alone = tune(ChainCRF(), X, Y, grid=GRID, folds=2)
    with joblib.parallel_config(backend, n_jobs=2):
        assert without_seconds(tune(ChainCRF(), X, Y, grid=GRID, folds=2)) == without_seconds(alone)
    if backend == "loky":
        again = tune(ChainCRF(), X, Y, grid=GRID, folds=2, n_jobs=2)
        assert without_seconds(again) == without_seconds(alone)


def test_scores_do_not_depend_on_the_rest_of_the_grid():
    large = tune(ChainCRF(), X, Y, grid=GRID, folds=2)
    turned = {"max_passes": [np.int64(3)], "piece_size": [np.float64(1.5)]}
    small = tune(ChainCRF(), X, Y, grid=turned, folds=2)
    (found,) = [t for t in large.table if t.params == small.best_params_]
    assert found.scores == small.best.scores


def test_every_fit_has_its_own_seed(fits):
    model = ChainCRF("word", random_state=3)
    for _ in range(2):
        tune(model, X, Y, grid=GRID, folds=2)
    tune(model, X, Y, grid=GRID, folds=2, random_state=1)
    seeds = [m.random_state for m in fits]
    assert seeds[:8] == seeds[8:16]
    assert len(set(seeds)) == 16


def test_features_and_labels_come_from_the_training_part_only(fits):
    words = [[f"w{i}", "all"] for i in range(6)]
    corpus = Corpus.from_columns({"word": words}, [[f"L{i}", "A"] for i in range(6)])
    tune(ChainPerceptron("word", scheme=None), corpus, grid={"max_passes": [1]}, folds=3)
    parts = np.array_split(np.random.default_rng(0).permutation(6), 3)
    for model, part in zip(fits, parts, strict=True):
        kept = [i for i in range(6) if i not in part]
        assert model.classes_ == ("A", *(f"L{i}" for i in kept))
        assert model.n_features_ == 5


def test_the_score_is_of_one_kind_in_all_folds():
    labels = [["O", "O"]] * 5 + [["B-X", "O"]]  # most folds have nothing but O
    words = [["a", "b"]] * 5 + [["x", "b"]]
    result = tune(ChainCRF("word"), words, labels, grid={"l2": [1.0]}, folds=3)
    assert result.metric == "span F1"
    # The one span cannot be known where it is held out; elsewhere there is none, and none is found.
    assert result.best.scores == (1, 0, 1)


@pytest.mark.parametrize(
    ("labels", "dev", "metric"),
    [
        (Y, None, "span F1"),
        (Y, DEV, "span F1"),
        (Y, (X, POS), "accuracy"),
        (POS, None, "accuracy"),
        ([[None, *s[1:]] for s in Y], None, "accuracy"),
        (Y, (X, [[None, *s[1:]] for s in Y]), "accuracy"),
    ],
)
def test_which_score(labels, dev, metric):
    # Sequences of one position would lose all they are labelled with.
    kept = [i for i, s in enumerate(X) if len(s) > 1]
    data = [X[i] for i in kept], [labels[i] for i in kept]
    model = ChainPerceptron("word", max_passes=1)
    assert tune(model, *data, grid={"piece_size": [None]}, dev=dev, folds=2).metric == metric


def test_the_model_keeps_its_state_and_gives_the_other_parameters(fits):
    model = ChainCRF("word", max_passes=2, scheme="BIO", warm_start=True, random_state=0)
    model.fit(X, Y)
    before = model.weights_.copy()
    result = tune(model, X, Y, grid={"l2": [0.5]}, folds=2)
    assert same_bits(model.weights_, before)
    for m in fits[1:]:
        assert (m.l2, m.max_passes, m.scheme, m.features) == (0.5, 2, "BIO", "word")
        assert not m.warm_start
    # Fitted from nothing, though the model has warm_start.
    assert all(m.n_features_ <= model.n_features_ for m in fits)
    best = result.best_model()
    assert best.get_params() == model.get_params() | {"l2": 0.5}
    assert same_bits(best.weights_, ChainCRF(**best.get_params()).fit(X, Y).weights_)


def test_the_best_model_has_a_seed():
    assert tune(ChainCRF(), X, Y, grid={"l2": [1]}, folds=2).best_model().random_state == 0
    result = tune(ChainCRF(), X, Y, grid={"l2": [1]}, folds=2, random_state=7)
    assert result.best_model().random_state == 7
    assert same_bits(result.best_model().weights_, result.best_model().weights_)


# ------------------------------------------------------------------ which points are tried


def test_default_grids():
    sizes = [None, 20.5, 15.5, 10.5, 5.5, 3.5, 2.5, 1.5]
    assert default_grid(ChainCRF()) == {"l2": [0.03, 0.1, 0.3, 1.0, 5.0], "piece_size": sizes}
    assert default_grid(ChainPerceptron()) == {"piece_size": sizes}
    few = [["a", "b"], ["b", "a"]]
    result = tune(ChainCRF("word", max_passes=1), few, few, dev=(few, few))
    assert [tuple(t.params.values()) for t in result.table] == [
        (l2, size) for l2 in (0.03, 0.1, 0.3, 1, 5) for size in sizes
    ]
    result = tune(ChainPerceptron("word", max_passes=1), few, few, folds=2)
    assert [t.params for t in result.table] == [{"piece_size": size} for size in sizes]


def test_coordinate_search_is_l2_on_whole_sequences_then_the_size(fits):
    grid = {"l2": [0.1, 30.0, 2.0], "piece_size": [1.5, None, 5.5]}
    model = ChainCRF("word", piece_size=2.5, max_passes=2)
    result = tune(model, X, Y, grid=grid, search="coordinate", folds=2)
    first, second = result.table[:3], result.table[3:]
    assert [t.params for t in first] == [{"l2": l2, "piece_size": None} for l2 in grid["l2"]]
    best = max(first, key=lambda t: t.mean)
    assert best.params["l2"] != 30
    assert [t.params for t in second] == [best.params | {"piece_size": n} for n in (1.5, 5.5)]
    assert len(fits) == 2 * 5  # whole sequences at the best l2 are not tried twice
    assert result.best == max([second[0], best, second[1]], key=lambda t: t.mean)
    # What both searches try scores the same in both.
    full = {json.dumps(t.params): t.scores for t in tune(model, X, Y, grid=grid, folds=2).table}
    assert all(full[json.dumps(t.params)] == t.scores for t in result.table)


def test_coordinate_search_ends_within_the_grid():
    grid = {"l2": [0.1, 2.0], "piece_size": [1.5]}
    result = tune(ChainCRF("word"), X, Y, grid=grid, search="coordinate", folds=2)
    assert [t.params["piece_size"] for t in result.table] == [None, None, 1.5]
    assert result.best is result.table[2]


def test_coordinate_search_starts_at_the_models_own_values():
    grid = {"l2": [0.1, 2.0], "max_passes": [2, 1]}
    model = ChainCRF("word", max_passes=5)
    result = tune(model, X, Y, grid=grid, search="coordinate", folds=2)
    assert [t.params["max_passes"] for t in result.table] == [5, 5, 2, 1]


def test_the_first_of_equals_is_chosen():
    grid = {"verbose": [True, False], "random_state": [0]}
    assert tune(ChainCRF(), X, Y, grid=grid, folds=2).best_params_["verbose"] is True


# ------------------------------------------------------------------ the log


def same_but_for_seconds(a, b):
    return without_seconds(a) == without_seconds(b) and a.best_params_ == b.best_params_


def test_a_log_has_a_line_for_each_fit_and_saves_them(fits, tmp_path):
    log = tmp_path / "log"
    first = tune(ChainCRF("word"), X, Y, grid=GRID, folds=2, log=log)
    assert len(fits) == 8
    head, *lines = map(json.loads, log.read_text().splitlines())
    assert head["trellis"] == "tuning log"
    assert [line["params"] for line in lines[::2]] == [t.params for t in first.table]
    assert [line["fold"] for line in lines] == [1, 2] * 4
    assert [line["score"] for line in lines] == [s for t in first.table for s in t.scores]
    before = log.read_bytes()
    assert tune(ChainCRF("word"), X, Y, grid=GRID, folds=2, log=str(log)) == first  # seconds too
    assert (len(fits), log.read_bytes()) == (8, before)


def test_the_same_data_in_another_form_have_the_same_log(fits, tmp_path):
    options = {"grid": {"l2": [1]}, "folds": 2, "log": tmp_path / "log"}
    tune(ChainCRF("word"), X, Y, **options)
    larger = Corpus.from_columns({"word": [["new"], *X]}, [["NEW"], *Y])
    tune(ChainCRF("word"), larger[1:], **options | {"grid": {"l2": [1.0]}})
    tune(ChainCRF("word", verbose=True, random_state=5), X, Y, **options)
    assert len(fits) == 2


@pytest.mark.parametrize(
    "change",
    [
        {"model": ChainPerceptron("word")},
        {"model": ChainCRF("word[-1]")},
        {"model": ChainCRF("word", max_passes=7)},
        {"folds": 3},
        {"random_state": 1},
        {"grid": {"piece_size": [2.5]}},
    ],
    ids=str,
)
def test_other_settings_are_computed_and_added(fits, tmp_path, change):
    settings = {"model": ChainCRF("word"), "grid": {"piece_size": [1.5]}, "folds": 2}
    settings["log"] = tmp_path / "log"
    tune(X=X, y=Y, **settings)
    changed = tune(X=X, y=Y, **settings | change)
    assert len(fits) == 2 + change.get("folds", 2)
    assert without_seconds(changed) == without_seconds(
        tune(X=X, y=Y, **settings | change | {"log": None})
    )


def test_what_another_version_computed_is_computed_again(fits, tmp_path, monkeypatch):
    for version in ("1", "1", "2"):
        monkeypatch.setattr("trellis.tuning.__version__", version)
        tune(ChainCRF("word"), X, Y, grid={"l2": [1]}, folds=2, log=tmp_path / "log")
    assert len(fits) == 4


@pytest.mark.parametrize("left", range(1, 60, 7))
def test_a_torn_line_is_cut_off_and_its_fit_made_again(fits, tmp_path, left):
    log = tmp_path / "log"
    options = {"grid": {"max_passes": [1, 2]}, "folds": 2, "log": log}
    whole = tune(ChainCRF("word"), X, Y, **options)
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(lines[:3]) + lines[3][:left])
    assert same_but_for_seconds(tune(ChainCRF("word"), X, Y, **options), whole)
    assert len(fits) == 4 + 2
    for a, b in zip(log.read_bytes().splitlines(), lines, strict=True):
        found, expected = json.loads(a), json.loads(b)
        assert found.pop("seconds", 1) and expected.pop("seconds", 1)
        assert found == expected


def test_a_torn_head(tmp_path):
    log = tmp_path / "log"
    options = {"grid": {"l2": [1]}, "folds": 2, "log": log}
    tune(ChainCRF("word"), X, Y, **options)
    head = log.read_bytes().splitlines(keepends=True)[0]
    for left in (0, 1, len(head) - 1):
        log.write_bytes(head[:left])
        tune(ChainCRF("word"), X, Y, **options)
        assert log.read_bytes().startswith(head)
        assert len(log.read_bytes().splitlines()) == 3


@pytest.mark.parametrize(
    "content", [b"The DT\ncat NN\n", b"The DT", b"[1]\n", b'{"a": 1}\n', b"\x00\xff\n", b"\n"]
)
def test_a_file_that_is_no_log_is_refused_and_left_alone(tmp_path, content):
    log = tmp_path / "train.txt"
    log.write_bytes(content)
    with pytest.raises(DataError, match=r"train\.txt is not a tuning log; name a new file"):
        tune(ChainCRF(), X, Y, grid={"l2": [1]}, log=log)
    assert log.read_bytes() == content


@pytest.mark.parametrize("other", ["words", "labels", "dev", "order"])
def test_a_log_of_other_data_is_refused(tmp_path, other):
    log = tmp_path / "log"
    options = {"grid": {"l2": [1]}, "folds": 2, "log": log}
    tune(ChainCRF(), X, Y, **options)
    before = log.read_bytes()
    data = {
        "words": ([["other", *X[0][1:]], *X[1:]], Y),
        "labels": (X, [["O" if Y[0][0] != "O" else "B-PER", *Y[0][1:]], *Y[1:]]),
        "dev": (X, Y),
        "order": (X[::-1], Y[::-1]),
    }[other]
    dev = DEV if other == "dev" else None
    with pytest.raises(DataError, match=r"log is the log of other data: .*; name a new file"):
        tune(ChainCRF(), *data, dev=dev, **options)
    assert log.read_bytes() == before


def test_a_log_of_another_format_is_refused(tmp_path):
    log = tmp_path / "log"
    log.write_text('{"trellis": "tuning log", "format": 2}\n')
    with pytest.raises(
        DataError, match=r"log is a tuning log of format 2; this version .* 1; name"
    ):
        TuningLog(log, "data")


@pytest.mark.parametrize(
    "line",
    [
        "",
        "oops",
        "[]",
        '{"score": 1, "seconds": 1}',
        '{"key": "a", "score": NaN, "seconds": 1}',
        '{"key": "a", "score": true, "seconds": 1}',
        '{"key": "a", "score": 1}',
    ],
)
def test_a_damaged_line_is_named(tmp_path, line):
    log = tmp_path / "log"
    TuningLog(log, "data").add("k", {}, None, 0.5, 1.0)
    with log.open("a") as file:
        file.write(line + "\n")
    with pytest.raises(DataError, match=r"log, line 3: not a record of this log; remove the line"):
        TuningLog(log, "data")


def test_a_log_that_cannot_be_written_is_noticed_before_the_work(fits, tmp_path):
    for path in (tmp_path, tmp_path / "no" / "log"):
        with pytest.raises(OSError, match=str(path)):
            tune(ChainCRF(), X, Y, log=path)
    assert not fits


def test_an_interrupt_keeps_what_is_done(fits, tmp_path, monkeypatch):
    whole = tune(ChainCRF("word"), X, Y, grid=GRID, folds=2)
    log, patient = tmp_path / "log", ChainCRF.fit

    def impatient(self, *arguments, **options):
        if len(fits) == 8 + 3:
            raise KeyboardInterrupt
        return patient(self, *arguments, **options)

    monkeypatch.setattr(ChainCRF, "fit", impatient)
    kept = r"^the fits made so far are in .*log; the same call goes on from them$"
    with pytest.raises(KeyboardInterrupt, match=kept):
        tune(ChainCRF("word"), X, Y, grid=GRID, folds=2, log=log)
    assert len(log.read_text().splitlines()) == 1 + 3
    with pytest.raises(KeyboardInterrupt, match=r"^with log=FILE the fits made so far would have"):
        tune(ChainCRF("word"), X, Y, grid=GRID, folds=2)
    monkeypatch.setattr(ChainCRF, "fit", patient)
    assert same_but_for_seconds(
        tune(ChainCRF("word"), X, Y, grid=GRID, folds=2, log=log, n_jobs=1), whole
    )
    assert len(fits) == 8 + 3 + 5


# ------------------------------------------------------------------ what is written


def test_equal_values_are_written_alike():
    assert plain([1, 1.0, np.float32(1), np.int8(1)]) == [1] * 4
    assert plain((True, np.True_, None, "a", 0.5)) == [True, True, None, "a", 0.5]
    assert plain(np.array(["a", "b"])) == ["a", "b"]
    assert plain(2**60 + 1) == 2**60 + 1
    assert plain(float("inf")) == float("inf")
    assert plain(DataError("x")) == "DataError('x')"


# ------------------------------------------------------------------ what is shown


@pytest.mark.parametrize("stream", [Terminal, io.StringIO])
@pytest.mark.parametrize("verbose", [True, False])
def test_a_line_for_each_fit(monkeypatch, capsys, stream, verbose):
    shown = stream()
    monkeypatch.setattr(sys, "stderr", shown)
    model = ChainCRF("word", verbose=True)  # its passes are not what one wants to see here
    grid = {"piece_size": [None, 1.5]}
    result = tune(model, X, Y, grid=grid, folds=2, verbose=verbose)
    lines = screen(shown.getvalue())[0][:-1]
    assert capsys.readouterr().out == ""
    if verbose:
        assert len(lines) == 4
        score = 100 * result.table[1].scores[0]
        assert lines[2].startswith(f"fit 3/4  piece_size 1.5, fold 1: {score:.2f}  ")
        assert lines[2].endswith(" s")
    else:
        assert lines == []


def test_the_table_as_text():
    trials = [
        Trial({"l2": 0.5, "piece_size": None, "scheme": None}, 0.875, 0.1, (0.8, 0.95), 1.5),
        Trial({"l2": 10, "piece_size": 5.5, "scheme": "BIO"}, 0.5, 0.0, (0.5, 0.5), 12.25),
    ]
    corpus = as_corpus(X, Y)
    assert str(Tuning(trials, trials[0], "span F1", ChainCRF(), corpus)).splitlines() == [
        " l2  piece_size  scheme  span F1     sd  training",
        "0.5       whole    None    87.50  10.00    1.50 s",
        " 10         5.5     BIO    50.00   0.00   12.25 s",
        "",
        "best: l2 0.5, piece_size whole, scheme None (span F1 87.50, mean of 2 folds)",
    ]
    alone = [Trial({"l2": 1.0}, 0.5, None, (0.5,), 1.0)]
    assert str(Tuning(alone, alone[0], "accuracy", ChainCRF(), corpus)).splitlines() == [
        "l2  accuracy  training",
        " 1     50.00    1.00 s",
        "",
        "best: l2 1 (accuracy 50.00, development data)",
    ]


# ------------------------------------------------------------------ what is refused


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": ChainCRF}, r"tune takes a linear model such as ChainCRF\(\), got <class"),
        ({"random_state": None}, "random_state must be an integer of at least 0, got None"),
        ({"random_state": -1}, "random_state must be an integer of at least 0, got -1"),
        ({"n_jobs": 0}, "n_jobs must be None or an integer other than 0, got 0"),
        ({"n_jobs": 1.5}, "n_jobs must be None or an integer other than 0, got 1.5"),
        ({"search": "random"}, "search must be 'grid' or 'coordinate', got 'random'"),
        ({"grid": {}}, "grid must be a dict of parameter names to lists of values, got {}"),
        ({"grid": [1]}, r"grid must be a dict of parameter names to lists of values, got \[1\]"),
        ({"grid": {"l2": 1}}, "grid: l2 must have a list of values, got 1"),
        ({"grid": {"features": "word"}}, "grid: features must have a list of values, got 'word'"),
        ({"grid": {"l2": []}}, "grid: l2 has no values"),
        ({"grid": {"l2": [1, 2, 1.0]}}, "grid: l2 has the value 1.0 twice"),
        ({"grid": {"l2": [1, -1]}}, "l2 must be 'auto' or a number of at least 0, got -1"),
        ({"grid": {"c2": [1]}}, "ChainCRF has no parameter 'c2'; it has features"),
        ({"model": ChainPerceptron(), "grid": {"l2": [1]}}, "ChainPerceptron has no parameter"),
        ({"folds": 1}, "folds must be an integer of at least 2, got 1"),
        ({"folds": 2.0}, "folds must be an integer of at least 2, got 2.0"),
        ({"folds": 41}, r"41 folds of 40 sequence\(s\): use fewer folds"),
        ({"y": None}, "fit needs labels"),
        ({"y": Y[1:]}, "X and y differ in number"),
        ({"dev": X}, "dev needs labelled samples"),
    ],
)
def test_refusals(fits, tmp_path, change, message):
    settings = {"model": ChainCRF(), "X": X, "y": Y, "grid": {"l2": [1]}, "log": tmp_path / "log"}
    with pytest.raises(DataError, match=f"^{message}"):
        tune(**settings | change)
    assert not fits
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("annotated", [0, 1])
def test_folds_without_labels_are_refused(annotated):
    labels = [["A"]] * annotated + [[None]] * (3 - annotated)
    with pytest.raises(DataError, match=r"a fold would have no annotated position to learn from"):
        tune(ChainCRF("word"), [["a"]] * 3, labels, grid={"l2": [1]}, folds=3)


@pytest.mark.parametrize("dev", [None, DEV])
@pytest.mark.parametrize(
    ("name", "bad", "kind", "message"),
    [
        (
            "learning_rate",
            1e39,
            DataError,
            "training diverged: the objective rose above that of zero weights",
        ),
        ("features", "word[", TemplateError, "template line 1, 'word[': expected number"),
    ],
)
def test_an_error_of_a_fit_says_where_and_keeps_the_others(tmp_path, dev, name, bad, kind, message):
    good = getattr(ChainCRF("word"), name)
    where = f"at {name} {bad}" if dev else f"at {name} {bad}, fold 1"
    with pytest.raises(kind, match=f"^{re.escape(f'{where}: {message}')}"):
        tune(ChainCRF("word"), X, Y, grid={name: [good, bad]}, dev=dev, log=tmp_path / "log")
    assert len((tmp_path / "log").read_text().splitlines()) == 1 + (1 if dev else 4)


@pytest.mark.parametrize("features", ["word", "test(word, 'a{2}')"])
def test_parameters_that_do_not_go_together(features):
    """Their names and values stay apart from the words, for the command line."""
    grid = {"features": [features], "solver": ["adf"], "lock_free": [True]}
    place = f"at features {features}, solver adf, lock_free True: "
    with pytest.raises(ParametersError) as caught:
        tune(ChainCRF(), X, Y, grid=grid, dev=DEV)
    assert str(caught.value) == f"{place}lock_free=True is for solver='sgd'"
    assert caught.value.values == {"lock_free": True, "solver": "sgd"}
    assert caught.value.worded(lambda name, value: name) == f"{place}lock_free is for solver"


def test_training_data_without_labels():
    with pytest.raises(DataError, match=r"^at l2 1: no position is annotated: there is nothing to"):
        tune(ChainCRF("word"), [["a"]], [[None]], grid={"l2": [1]}, dev=DEV)

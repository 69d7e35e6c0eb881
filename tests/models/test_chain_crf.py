"""ChainCRF through its public methods: what it learns, and that its answers are exact."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import trellis.models.scored_model as model_module
import trellis.solvers.passes as passes_module
from chain_problems import (
    in_scheme,
    labelling_scores,
    probabilities,
    same_bits,
    toy_language,
)
from trellis import ChainCRF, Corpus, DataError, InfeasibleError
from trellis.corpus.schemes import get_scheme
from trellis.evaluation import span_scores, token_accuracy
from trellis.solvers import StochasticGradient

X, Y = toy_language(60)
X_NEW, Y_NEW = toy_language(20, seed=1)


ENCODINGS = ["given", "iobes"]


@pytest.fixture(scope="module", params=ENCODINGS)
def crf(request) -> ChainCRF:
    """A model that is not too sure of itself."""
    options = {"l2": 2.0, "max_passes": 3, "encoding": request.param, "random_state": 0}
    return ChainCRF(features="word; word[-1]", **options).fit(X, Y)


@pytest.fixture(scope="module", params=ENCODINGS)
def bio_crf(request) -> ChainCRF:
    options = {"l2": 2.0, "max_passes": 2, "encoding": request.param, "random_state": 0}
    return ChainCRF(features="word; bos", scheme="BIO", **options).fit(X, Y)


SHORT = [["Ada", "met"], ["the", "Bohr", "Curie"], ["Zuse", "Ada", "Ada"]]


# ------------------------------------------------------------------------- learning


@pytest.mark.parametrize("piece_size", [None, 1, 2.5])
@pytest.mark.parametrize("visit", ["pooled", "permutation", "replacement"])
@pytest.mark.parametrize("l2_once", [False, True])
def test_it_learns_the_toy_language(piece_size, visit, l2_once):
    model = ChainCRF(
        piece_size=piece_size, visit=visit, l2=0.1, l2_once=l2_once, max_passes=20, random_state=0
    )
    assert model.fit(X, Y).score(X_NEW, Y_NEW) > 0.99
    assert model.classes_ == ("B-PER", "I-PER", "O")
    assert 1 <= model.n_passes_ == len(model.history_) <= 20
    assert model.history_[-1].objective < model.history_[0].objective
    assert model.n_features_ == len(model.weights_.node)
    assert model.weights_.node.dtype == np.float32


def test_every_kind_of_sample_is_learned_alike():
    """Words as lists of attributes, as dicts, as arrays and as a column give one model."""
    names = sorted({word for sample in X for word in sample})
    one_hot = {name: np.eye(len(names))[i] for i, name in enumerate(names)}
    forms = {
        "column": (X, "word"),
        "lists": ([[[f"word={w}"] for w in s] for s in X], "auto"),
        "dicts": ([[{"word": w} for w in s] for s in X], "auto"),
        "arrays": ([np.array([one_hot[w] for w in s]) for s in X], "auto"),
        "corpus": (Corpus.from_columns({"word": X}), "word"),
    }
    answers = {}
    for name, (samples, features) in forms.items():
        model = ChainCRF(features, max_passes=3, learning_rate=0.1, random_state=0)
        model.fit(samples, Y)
        answers[name] = np.concatenate(model.predict_marginals(samples))
    for name in forms:
        np.testing.assert_allclose(answers[name], answers["column"], atol=1e-4, err_msg=name)


def test_real_values_count():
    rng = np.random.default_rng(0)
    samples = [rng.normal(size=(6, 2)) * [1.0, 50.0] for _ in range(80)]
    labels = [["up" if row[1] > 0 else "down" for row in s] for s in samples]
    model = ChainCRF(l2=0.01, max_passes=30, random_state=0).fit(samples, labels)
    assert model.score(samples, labels) > 0.97


def test_a_given_rate_is_used_and_auto_finds_one():
    model = ChainCRF(learning_rate=0.25, max_passes=1, random_state=0).fit(X, Y)
    assert model.learning_rate_ == 0.25
    assert ChainCRF(max_passes=1, random_state=0).fit(X, Y).learning_rate_ > 0


def test_training_stops_when_converged():
    model = ChainCRF(tol=0.05, decay=0.75, max_passes=100, random_state=0).fit(X, Y)
    assert 3 <= model.n_passes_ < 100
    assert model.history_[-1].change < 0.05
    assert all(r.change is None or r.change >= 0.05 for r in model.history_[:-1])


def test_a_stronger_penalty_gives_smaller_weights():
    norms = [
        ChainCRF(l2=l2, max_passes=5, random_state=0).fit(X, Y).weights_.squared_norm()
        for l2 in (0.0, 1.0, 100.0)
    ]
    assert norms[0] > norms[1] > norms[2] > 0


def test_one_label_and_one_position():
    model = ChainCRF(random_state=0).fit([["a"], ["b"]], [["A"], ["A"]])
    assert model.predict([["a"], ["c"]]) == [["A"], ["A"]]
    assert model.predict_marginals([["a"]])[0].tolist() == [[1.0]]
    assert model.entropy([["a"]]).tolist() == [0.0]


# ------------------------------------------------------------------------- seeds and blocks


def test_the_seed_decides_the_bits():
    fits = [
        ChainCRF(piece_size=2.5, max_passes=3, random_state=s).fit(X, Y).weights_ for s in (0, 0, 1)
    ]
    assert same_bits(fits[0], fits[1])
    assert not same_bits(fits[0], fits[2])


def test_the_division_into_blocks_does_not_change_what_is_learned(monkeypatch):
    options = {"l2": 0.1, "max_passes": 10, "learning_rate": 0.2, "random_state": 0}
    whole = ChainCRF(**options).fit(X, Y)
    monkeypatch.setattr(passes_module, "BLOCK", 50)
    divided = ChainCRF(**options).fit(X, Y)
    assert divided.predict(X_NEW) == whole.predict(X_NEW)
    for a, b in zip(divided.predict_marginals(X_NEW), whole.predict_marginals(X_NEW), strict=True):
        np.testing.assert_allclose(a, b, atol=0.05)  # transitions are refreshed at block ends


@pytest.mark.parametrize("block", [1, 7])
def test_the_division_into_blocks_does_not_change_predictions(crf, monkeypatch, block):
    samples = [*X_NEW[:6], [], ["Ada"]]
    sets = [[None if w != "met" else {"O", "B-PER"} for w in s] for s in samples]

    def answers():
        return (
            crf.predict(samples),
            crf.predict(samples, constraints=sets),
            crf.predict_kbest(samples, 3),
            [m.tolist() for m in crf.predict_marginals(samples)],
            crf.entropy(samples).tolist(),
            crf.log_prob(samples, crf.predict(samples)).tolist(),
            crf.predict_spans(samples),
        )

    at_once = answers()
    monkeypatch.setattr(model_module, "_POSITIONS", block)
    assert answers() == at_once


# ------------------------------------------------------------------------- exact answers


@pytest.mark.parametrize("sample", SHORT)
def test_predictions_are_those_of_enumeration(crf, sample):
    scores = labelling_scores(crf, sample)
    share = probabilities(scores)
    best = max(scores, key=scores.__getitem__)
    assert crf.predict([sample]) == [list(best)]

    (marginals,) = crf.predict_marginals([sample])
    assert marginals.shape == (len(sample), 3)
    np.testing.assert_allclose(marginals.sum(axis=1), 1, rtol=1e-12)
    for t, j in np.ndindex(marginals.shape):
        expected = sum(p for y, p in share.items() if y[t] == crf.classes_[j])
        assert marginals[t, j] == pytest.approx(expected, abs=1e-6)

    found = crf.log_prob([sample] * len(share), [list(y) for y in share])
    np.testing.assert_allclose(np.exp(found), list(share.values()), atol=1e-6)

    (ranked,) = crf.predict_kbest([sample], len(scores) + 5)
    assert len(ranked) == len(scores)  # no more than there are
    assert len({tuple(y) for y, _ in ranked}) == len(scores)
    assert [s for _, s in ranked] == sorted((s for _, s in ranked), reverse=True)
    for y, score in ranked:
        assert score == pytest.approx(scores[tuple(y)], abs=1e-5)

    exact = -sum(p * math.log(p) for p in share.values())
    assert crf.entropy([sample])[0] == pytest.approx(exact, abs=1e-5)


@pytest.mark.parametrize("k", [10**8, 10**30])
def test_far_more_than_there_are(crf, k):
    """All of them, at once."""
    samples = [["Ada", "met", "Bob"], ["Ada"], []]
    ranked = crf.predict_kbest(samples, k)
    assert ranked == crf.predict_kbest(samples, 27)
    assert [len(labellings) for labellings in ranked] == [27, 3, 1]


def test_the_first_of_the_best_is_the_prediction(crf):
    assert [ranked[0][0] for ranked in crf.predict_kbest(X_NEW, 2)] == crf.predict(X_NEW)


def test_draws_follow_the_probabilities(crf):
    sample = SHORT[1]
    share = probabilities(labelling_scores(crf, sample))
    n = 4000
    (drawn,) = crf.sample([sample], n, random_state=0)
    assert len(drawn) == n
    for y, p in share.items():
        found = sum(tuple(d) == y for d in drawn) / n
        assert abs(found - p) < 6 * math.sqrt(p * (1 - p) / n) + 1e-9
    assert crf.sample(SHORT, 5, random_state=3) == crf.sample(SHORT, 5, random_state=3)
    assert crf.sample(SHORT, 20, random_state=3) != crf.sample(SHORT, 20, random_state=4)


def test_answers_are_plain_python(crf):
    (labels,) = crf.predict([["Ada", "met"]])
    assert type(labels) is list and all(type(label) is str for label in labels)
    ((first, score), *_) = crf.predict_kbest([["Ada"]], 2)[0]
    assert type(first[0]) is str and type(score) is float
    assert type(crf.sample([["Ada"]])[0][0][0]) is str
    assert type(crf.score(X_NEW, Y_NEW)) is float


# ------------------------------------------------------------------------- constraints, schemes


def test_constraints_are_honoured(crf):
    sample = ["Ada", "met", "the", "Bohr"]
    sets = [{"O", "I-PER"}, None, "B-PER", {"O"}]
    scores = {
        y: s
        for y, s in labelling_scores(crf, sample).items()
        if y[0] in {"O", "I-PER"} and y[2] == "B-PER" and y[3] == "O"
    }
    share = probabilities(scores)
    best = max(scores, key=scores.__getitem__)
    assert crf.predict([sample], constraints=[sets]) == [list(best)]
    ranked = crf.predict_kbest([sample], 100, constraints=[sets])[0]
    assert {tuple(y) for y, _ in ranked} == set(scores)
    (marginals,) = crf.predict_marginals([sample], constraints=[sets])
    for t, j in np.ndindex(marginals.shape):
        expected = sum(p for y, p in share.items() if y[t] == crf.classes_[j])
        assert marginals[t, j] == pytest.approx(expected, abs=1e-6)
    assert marginals[0, 0] == 0 and marginals[2, 0] == pytest.approx(1)


def test_constraints_may_come_from_an_annotator_one_at_a_time(crf):
    """Fixing what is predicted changes nothing; fixing something else changes that."""
    samples = X_NEW[:5]
    predicted = crf.predict(samples)
    assert crf.predict(samples, constraints=predicted) == predicted
    nothing = [[None] * len(s) for s in samples]
    assert crf.predict(samples, constraints=nothing) == predicted
    other = "O" if predicted[0][0] != "O" else "B-PER"
    nothing[0][0] = other
    assert crf.predict(samples, constraints=nothing)[0][0] == other


@pytest.mark.parametrize("sample", SHORT)
def test_a_scheme_allows_only_valid_sequences(bio_crf, sample):
    scores = {y: s for y, s in labelling_scores(bio_crf, sample).items() if in_scheme("BIO", y)}
    share = probabilities(scores)
    assert bio_crf.predict([sample]) == [list(max(scores, key=scores.__getitem__))]
    ranked = bio_crf.predict_kbest([sample], 100)[0]
    assert {tuple(y) for y, _ in ranked} == set(scores)
    (marginals,) = bio_crf.predict_marginals([sample])
    for t, j in np.ndindex(marginals.shape):
        expected = sum(p for y, p in share.items() if y[t] == bio_crf.classes_[j])
        assert marginals[t, j] == pytest.approx(expected, abs=1e-6)
    assert all(in_scheme("BIO", y) for y in bio_crf.sample([sample], 200, random_state=0)[0])
    exact = -sum(p * math.log(p) for p in share.values())
    assert bio_crf.entropy([sample])[0] == pytest.approx(exact, abs=1e-5)


@pytest.mark.parametrize(
    ("scheme", "letters"), [("BILOU", "BILUO"), ("IOBES", "BIESO"), ("BMES", "BMES")]
)
def test_schemes_that_mark_ends_are_kept_to_the_last_position(scheme, letters):
    """Trained on noise, the model would write anything."""
    rng = np.random.default_rng(0)
    samples = [[str(w) for w in rng.choice(list("abcdef"), 5)] for _ in range(30)]
    labels = [[str(c) for c in rng.choice(list(letters), 5)] for _ in range(30)]
    free, bound = (
        ChainCRF("word[-1..1]", l2=0.01, random_state=0, scheme=name).fit(samples, labels)
        for name in (None, scheme)
    )
    assert not all(in_scheme(scheme, y) for y in free.predict(samples))
    assert all(in_scheme(scheme, y) for y in bound.predict(samples))
    assert same_bits(free.weights_, bound.weights_)  # the scheme is a matter of prediction
    single = bound.predict([["a"]])[0]
    assert in_scheme(scheme, single)


def test_span_probabilities_under_a_scheme_are_those_of_the_span(bio_crf):
    rules = get_scheme("BIO")
    seen = 0
    for sample in [*SHORT, ["Ada", "Bohr", "the", "Curie", "Ada"]]:
        scores = labelling_scores(bio_crf, sample)
        share = probabilities({y: s for y, s in scores.items() if in_scheme("BIO", y)})
        (found,) = bio_crf.predict_spans([sample])
        assert [s[:3] for s in found] == rules.spans(bio_crf.predict([sample])[0])
        for kind, start, end, probability in found:
            exact = sum(p for y, p in share.items() if (kind, start, end) in rules.spans(y))
            assert probability == pytest.approx(exact, abs=1e-6)
            seen += 1
    assert seen >= 4


def test_span_probabilities_without_a_scheme_are_those_of_the_labels_as_predicted():
    """I-PER first is read as a span too; a labelling in which it goes back further is not it."""
    rng = np.random.default_rng(0)
    samples = [[str(w) for w in rng.choice(list("abcd"), 4)] for _ in range(20)]
    labels = [[str(c) for c in rng.choice(["B-X", "I-X", "O"], 4)] for _ in range(20)]
    model = ChainCRF("word", max_passes=3, l2=0.1, random_state=0).fit(samples, labels)
    rules = get_scheme("BIO")
    opened = set()
    for sample in samples[:8]:
        share = probabilities(labelling_scores(model, sample))
        predicted = model.predict([sample])[0]
        for kind, start, end, probability in model.predict_spans([sample])[0]:
            opened.add(predicted[start][0])
            exact = sum(
                p
                for y, p in share.items()
                if list(y[start:end]) == predicted[start:end]
                and (kind, start, end) in rules.spans(y)
            )
            assert probability == pytest.approx(exact, abs=1e-6)
    assert opened == {"B", "I"}


def test_spans_need_a_scheme():
    model = ChainCRF(max_passes=1, random_state=0).fit([["a", "b"]], [["X", "Y"]])
    with pytest.raises(DataError, match="the labels follow no known tag scheme"):
        model.predict_spans([["a"]])


def test_the_error_names_the_sample_whatever_the_block(bio_crf, monkeypatch):
    samples = [["Ada"], [], ["met", "the"], ["Ada", "Bohr"]]
    sets = [[None], [], [None, None], ["O", "I-PER"]]
    message = r"sample 3 \(of 2 positions\) has no allowed labelling"
    for block in (1 << 16, 1):
        monkeypatch.setattr(model_module, "_POSITIONS", block)
        for ask in (
            lambda: bio_crf.predict(samples, constraints=sets),
            lambda: bio_crf.predict_marginals(samples, constraints=sets),
            lambda: bio_crf.predict_kbest(samples, 2, constraints=sets),
        ):
            with pytest.raises(InfeasibleError, match=message):
                ask()


# ------------------------------------------------------------------------- empty input


def test_empty_sequences_are_answered_with_nothing(crf):
    assert crf.predict([]) == []
    assert crf.predict([[]]) == [[]]
    assert crf.predict([[], ["Ada"], []]) == [[], crf.predict([["Ada"]])[0], []]
    assert [m.shape for m in crf.predict_marginals([[], ["Ada"]])] == [(0, 3), (1, 3)]
    assert crf.predict_marginals([]) == [] and crf.predict_spans([[]]) == [[]]
    assert crf.predict_kbest([[]], 3) == [[([], 0.0)]]
    assert crf.sample([[]], 2) == [[[], []]]
    assert crf.entropy([[]]).tolist() == [0.0] and crf.entropy([]).tolist() == []
    assert crf.predict([[]], constraints=[[]]) == [[]]


@pytest.mark.parametrize("empty", [[[]], [np.zeros((0, 2))], []])
def test_empty_sequences_whatever_the_features(empty):
    model = ChainCRF(max_passes=1, random_state=0).fit([np.eye(2)], [["A", "B"]])
    assert model.predict(empty) == [[]] * len(empty)


def test_a_word_never_seen_is_labelled_by_its_neighbours(crf):
    assert crf.predict([["qwertz"]]) in ([["O"]], [["B-PER"]], [["I-PER"]])
    (marginals,) = crf.predict_marginals([["qwertz", "qwertz"]])
    np.testing.assert_allclose(marginals.sum(axis=1), 1)


# ------------------------------------------------------------------------- scores


def test_score_is_the_share_of_annotated_positions_that_are_right(crf):
    predicted = crf.predict(X_NEW)
    assert crf.score(X_NEW, Y_NEW) == pytest.approx(token_accuracy(Y_NEW, predicted))
    assert crf.score(X_NEW, predicted) == 1.0
    corpus = Corpus.from_columns({"word": X_NEW}, Y_NEW)
    assert crf.score(corpus) == crf.score(X_NEW, Y_NEW)


def test_labels_never_seen_in_training_count_as_wrong(crf):
    predicted = crf.predict([["Ada", "met"]])[0]
    assert crf.score([["Ada", "met"]], [[predicted[0], "I-LST"]], metric="accuracy") == 0.5
    assert crf.score([["Ada", "met"]], [["X", "Y"]]) == 0.0


def test_score_skips_what_is_not_annotated_and_accepts_any_of_a_set(crf):
    a, b = crf.predict([["Ada", "met"]])[0]
    others = {"B-PER", "I-PER", "O"} - {a}
    assert crf.score([["Ada", "met"]], [[a, None]]) == 1.0
    assert crf.score([["Ada", "met"]], [[{a, *others}, b]]) == 1.0
    assert crf.score([["Ada", "met"]], [[others, b]]) == 0.5


def test_score_weighs_sequences(crf):
    a = crf.predict([["Ada"]])[0][0]
    wrong = "X"
    assert crf.score([["Ada"], ["Ada"]], [[a], [wrong]], sample_weight=[3.0, 1.0]) == 0.75


# ------------------------------------------------------------------------- held-out data


def test_held_out_spans_are_scored_after_each_pass():
    options = {"learning_rate": 0.01, "l2": 1.0, "random_state": 0}
    model = ChainCRF(max_passes=4, **options).fit(X, Y, dev=(X_NEW, Y_NEW))
    for record in model.history_:
        then = ChainCRF(max_passes=record.number, **options).fit(X, Y)
        expected = span_scores(Y_NEW, then.predict(X_NEW), "BIO").f1
        assert record.dev_score == pytest.approx(expected)


@pytest.mark.parametrize("why", ["no scheme", "a gap", "a label of another scheme"])
def test_held_out_tokens_are_scored_where_spans_cannot_be(why):
    rename = {"B-PER": "first", "I-PER": "more", "O": "none"} if why == "no scheme" else {}
    train = [[rename.get(label, label) for label in s] for s in Y]
    held_out: list[list] = [[rename.get(label, label) for label in s] for s in Y_NEW]
    if why == "a gap":
        held_out[0][0] = None
    elif why == "a label of another scheme":
        held_out[0][0] = "S-PER"
    model = ChainCRF(max_passes=2, random_state=0).fit(X, train, dev=(X_NEW, held_out))
    last = ChainCRF(max_passes=2, random_state=0).fit(X, train)
    assert model.history_[-1].dev_score == token_accuracy(held_out, last.predict(X_NEW))


def test_held_out_data_may_be_a_corpus():
    corpus = Corpus.from_columns({"word": X_NEW}, Y_NEW)
    a = ChainCRF(max_passes=2, random_state=0).fit(X, Y, dev=corpus)
    b = ChainCRF(max_passes=2, random_state=0).fit(X, Y, dev=(X_NEW, Y_NEW))
    assert [r.dev_score for r in a.history_] == [r.dev_score for r in b.history_]


@pytest.mark.parametrize(("patience", "passes"), [(2, 4), (None, 6)])
def test_the_weights_of_the_best_pass_are_kept(monkeypatch, patience, passes):
    options = {"tol": -1, "decay": 0.75, "random_state": 0}
    expected = ChainCRF(max_passes=2, **options).fit(X, Y).weights_
    scores = iter([0.1, 0.9, 0.5, 0.9, 0.6, 0.7])
    made_up = (lambda weights: next(scores)), "score"
    monkeypatch.setattr(ChainCRF, "_dev_score", lambda self, dev: made_up)
    model = ChainCRF(max_passes=6, patience=patience, **options)
    model.fit(X, Y, dev=(X_NEW, Y_NEW))
    assert model.n_passes_ == passes
    assert same_bits(model.weights_, expected)


# ------------------------------------------------------------------------- partial labels


def test_partial_labels_teach_and_repeat_with_the_seed():
    rng = np.random.default_rng(0)
    few = [[label if rng.random() < 0.25 else None for label in s] for s in Y]
    fits = [ChainCRF(l2=0.1, random_state=0).fit(X, few) for _ in range(2)]
    assert same_bits(fits[0].weights_, fits[1].weights_)
    assert fits[0].score(X_NEW, Y_NEW) > 0.9


def test_one_annotated_position_in_all_is_enough_to_train():
    few: list[list[str | None]] = [[None] * len(s) for s in X]
    few[0][0], few[1][0] = "A", "B"
    model = ChainCRF(random_state=0).fit(X, few)
    assert model.classes_ == ("A", "B")
    assert model.predict([X[0], X[1]])[0][0] == "A"


def test_sets_teach_that_it_is_one_of_them():
    """Names are B or I, nobody says which; they are never O."""
    sets = [[{"B-PER", "I-PER"} if label != "O" else "O" for label in s] for s in Y]
    model = ChainCRF(l2=0.1, random_state=0).fit(X, sets)
    assert model.classes_ == ("B-PER", "I-PER", "O")
    for gold, found in zip(Y_NEW, model.predict(X_NEW), strict=True):
        assert [g == "O" for g in gold] == [f == "O" for f in found]


def test_a_sequence_without_annotation_changes_nothing_but_the_penalty():
    """Its loss is zero, so with l2 = 0 the same steps are taken on the others."""
    silent = [*X[:10], ["Ada"]]
    model = ChainCRF("word", l2=0.0, decay=1.0, learning_rate=0.1, max_passes=1, random_state=0)
    model.fit(silent, [*Y[:10], [None]])
    assert math.isfinite(model.history_[0].objective)
    assert model.predict(X[:1])


# ------------------------------------------------------------------------- sample weights


def converged(samples, labels, **options) -> ChainCRF:
    model = ChainCRF(
        "word; word[-1]",
        l2=1.0,
        learning_rate=0.2,
        decay=0.94,
        max_passes=120,
        tol=-1,
        random_state=0,
    )
    return model.fit(samples, labels, **options)


def test_weight_two_is_a_duplicate_and_weight_zero_an_absence():
    samples, labels = X[:8], Y[:8]
    labels = [list(s) for s in labels]
    labels[0] = ["O"] * len(labels[0])  # make the odd ones matter
    labels[1] = ["I-PER"] * len(labels[1])
    weighted = converged(samples, labels, sample_weight=[2, 0, 1, 1, 1, 1, 1, 1])
    by_hand = converged([samples[0], samples[0], *samples[2:]], [labels[0], labels[0], *labels[2:]])
    plain = converged(samples, labels)
    for sample in samples:
        a, b = (m.predict_marginals([sample])[0] for m in (weighted, by_hand))
        np.testing.assert_allclose(a, b, atol=0.01)
    assert (
        max(
            np.abs(weighted.predict_marginals([s])[0] - plain.predict_marginals([s])[0]).max()
            for s in samples
        )
        > 0.1
    )  # so the weights did something


# ------------------------------------------------------------------------- going on


def test_warm_start_goes_on_from_the_weights():
    options = {"l2": 0.1, "learning_rate": 0.1, "random_state": 0}
    cold = ChainCRF(max_passes=2, **options).fit(X, Y)
    warm = ChainCRF(max_passes=2, warm_start=True, **options).fit(X, Y)
    assert same_bits(cold.weights_, warm.weights_)  # the first time there is nothing to go on from
    first = warm.history_[0].objective
    warm.fit(X, Y)
    assert warm.history_[0].objective < first
    cold.fit(X, Y)
    assert cold.history_[0].objective == first


def test_warm_start_learns_new_features_and_keeps_the_labels():
    model = ChainCRF("word", max_passes=5, warm_start=True, l2=0.01, random_state=0).fit(X, Y)
    before = model.n_features_
    known = model.weights_.node.shape
    model.fit([["Zuse", "met", "Noether"]] * 10, [["B-PER", "O", "B-PER"]] * 10)
    assert model.n_features_ == before + 2 == len(model.weights_.node) == known[0] + 2
    assert model.classes_ == ("B-PER", "I-PER", "O")
    assert model.predict([["Noether"]]) == [["B-PER"]]


def test_a_stream_is_learned_batch_by_batch():
    model = ChainCRF("word; word[-1] & word", l2=0.1, learning_rate=0.2, random_state=0)
    sizes = []
    for i in range(0, 60, 10):
        model.partial_fit(X[i : i + 10], Y[i : i + 10], classes=["O", "B-PER", "I-PER", "X"])
        sizes.append(model.n_features_)
        assert len(model.weights_.node) == model.n_features_
    assert sizes == sorted(sizes) and sizes[0] < sizes[-1]  # the vocabulary grows
    assert model.classes_ == ("B-PER", "I-PER", "O", "X")  # the classes do not
    assert model.n_batches_ == 6 and model.n_seen_ == 60
    assert model.score(X_NEW, Y_NEW) > 0.95


def test_a_stream_repeats_with_the_seed():
    def streamed(seed):
        model = ChainCRF(piece_size=2.5, random_state=seed)
        for i in range(0, 60, 20):
            model.partial_fit(X[i : i + 20], Y[i : i + 20])
        return model.weights_

    assert same_bits(streamed(0), streamed(0))
    assert not same_bits(streamed(0), streamed(1))
    assert not same_bits(streamed(None), streamed(None))


def test_fit_forgets_a_stream_and_a_stream_goes_on_from_a_fit():
    options = {"learning_rate": 0.1, "max_passes": 2, "random_state": 0}
    fresh = ChainCRF(**options).fit(X, Y)
    used = ChainCRF(**options).partial_fit([["u", "v"]], [["A", "B"]]).fit(X, Y)
    assert same_bits(fresh.weights_, used.weights_)
    assert used.n_batches_ == 0 and used.n_seen_ == len(X)
    for model in (fresh, used):
        model.partial_fit([["Zuse", "met"]], [["B-PER", "O"]])
    assert same_bits(fresh.weights_, used.weights_)
    assert fresh.n_seen_ == len(X) + 1


def test_the_penalty_of_a_batch_is_its_share_of_what_was_seen(monkeypatch):
    shares = []
    real = StochasticGradient.__init__

    def spy(self, *arguments, penalty, **options):
        shares.append((penalty.l2, penalty.l1, penalty.group_lasso))
        real(self, *arguments, penalty=penalty, **options)

    monkeypatch.setattr(StochasticGradient, "__init__", spy)
    model = ChainCRF(l2=6.0, l1=3.0, group_lasso=1.5, learning_rate=0.1, random_state=0)
    for a, b in itertools.pairwise([0, 10, 20, 60]):
        model.partial_fit(X[a:b], Y[a:b])
    assert shares == [(6.0, 3.0, 1.5), (3.0, 1.5, 0.75), (4.0, 2.0, 1.0)]


# ------------------------------------------------------------------------- interrupts


def test_ctrl_c_leaves_the_weights_of_the_passes_done(monkeypatch):
    real = StochasticGradient.visit

    def interrupted(self, these, number, done, total):
        if number == 2:
            raise KeyboardInterrupt
        return real(self, these, number, done, total)

    options = {"tol": -1, "decay": 0.75, "random_state": 0}
    expected = ChainCRF(max_passes=2, **options).fit(X, Y)
    model = ChainCRF(max_passes=9, **options)
    with monkeypatch.context() as patch:
        patch.setattr(StochasticGradient, "visit", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, Y)
    assert model.n_passes_ == 2
    assert model.stop_reason_ == "interrupted"
    assert same_bits(model.weights_, expected.weights_)
    assert model.predict(X_NEW) == expected.predict(X_NEW)


def test_ctrl_c_before_the_first_pass_leaves_a_usable_model(monkeypatch):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    model = ChainCRF(random_state=0)
    with monkeypatch.context() as patch:
        patch.setattr("trellis.models.stochastic_model.calibrate", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, Y)
    assert (model.n_passes_, model.stop_reason_) == (0, "interrupted")
    assert len(model.predict(X_NEW)) == len(X_NEW)
    assert model.fit(X, Y).score(X_NEW, Y_NEW) > 0.9


def test_features_half_learned_do_not_outgrow_the_weights(monkeypatch):
    """An interrupt while more features are learned: predicting must not read beyond the weights."""
    model = ChainCRF("word", max_passes=2, warm_start=True, random_state=0).fit(X, Y)
    real = type(model.encoder_).learn

    def interrupted(self, corpus):
        real(self, corpus)
        raise KeyboardInterrupt

    before = model.predict(X_NEW)
    with monkeypatch.context() as patch:
        patch.setattr(type(model.encoder_), "learn", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.fit([["Zuse", "Noether"]], [["O", "O"]])
    assert len(model.weights_.node) == model.n_features_
    assert model.predict(X_NEW) == before
    model.predict([["Zuse", "Noether"]])


# ------------------------------------------------------------------------- decoding


@pytest.mark.parametrize("sample", SHORT)
def test_decoding_says_that_it_is_exact(crf, sample):
    scores = labelling_scores(crf, sample)
    (decoded,) = crf.decode([sample])
    assert decoded.labels == crf.predict([sample])[0]
    assert decoded.score == decoded.bound == pytest.approx(max(scores.values()), abs=1e-4)
    assert (decoded.exact, decoded.gap, decoded.method) == (True, 0.0, "chain")
    sets = [[None] * (len(sample) - 1) + ["O"]]
    (bound,) = crf.decode([sample], constraints=sets)
    best = max((y for y in scores if y[-1] == "O"), key=scores.get)
    assert (tuple(bound.labels), bound.exact) == (best, True)
    assert bound.score == pytest.approx(scores[best], abs=1e-4)

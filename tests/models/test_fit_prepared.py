"""Training on a prepared corpus: the same bits as on the corpus it was made of."""

from __future__ import annotations

import numpy as np
import pytest

from chain_problems import same_bits, toy_language
from trellis import ChainCRF, ChainPerceptron, Corpus, DataError, load_model
from trellis.corpus import as_corpus
from trellis.features import Prepared, prepare
from trellis.kernels import crf, perceptron

X, Y = toy_language(40)
X_NEW, Y_NEW = toy_language(10, seed=1)
BOTH = pytest.mark.parametrize("kind", [ChainCRF, ChainPerceptron])
PARTIAL = [[None if t % 5 == 4 else y for t, y in enumerate(labels)] for labels in Y]

SEGMENTED = [list("abcab"), list("cabab"), list("ab")] * 5
TAGS = [list("BEBME"), list("BMEBE"), list("BE")] * 5


def columns(samples):
    return {"word": samples, "n": [[str(len(w)) for w in s] for s in samples]}


def dicts(samples):
    return [[{"w": w, "cap": w[0].isupper(), "n": len(w) / 3} for w in s] for s in samples]


CASES = {
    "templates": ("word[-1..1]; suffix(word, 1..2)", Corpus.from_columns(columns(X), Y)),
    "numbers": ("word; number(n); bias", Corpus.from_columns(columns(X), PARTIAL)),
    "rare": ("min_count = 2; word[-1..1]; word[-1] & word", Corpus.from_columns(columns(X), Y)),
    "auto": ("auto", as_corpus(X, Y)),
    "dicts": ("auto", as_corpus(dicts(X), Y)),
    "word list": (
        "word[-1..1]; wordlist(word, 1..2); ngrams(word, 2..2); word == word[1]",
        Corpus.from_columns({**columns(SEGMENTED), "char": SEGMENTED}, TAGS),
    ),
}


@BOTH
@pytest.mark.parametrize("case", CASES)
def test_the_same_bits(tmp_path, kind, case):
    features, corpus = CASES[case]
    prepare(corpus, tmp_path / "p", features)
    before = (tmp_path / "p").read_bytes()
    options = {"max_passes": 3, "piece_size": 2.5, "random_state": 0}
    weight = np.linspace(0.5, 2, len(corpus))
    plain = kind(features, **options).fit(corpus, sample_weight=weight)
    for given in (features, "auto"):
        model = kind(given, **options)
        model.fit(Prepared.open(tmp_path / "p"), sample_weight=weight)
        assert same_bits(model.weights_, plain.weights_)
        assert model.classes_ == plain.classes_
        assert [r.objective for r in model.history_] == [r.objective for r in plain.history_]
        assert model.n_seen_ == len(corpus)
        new = dicts(X_NEW) if case == "dicts" else Corpus.from_columns(columns(X_NEW))
        assert model.predict(new) == plain.predict(new)
    model.set_params(features=features).save(tmp_path / "a")
    plain.save(tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert (tmp_path / "p").read_bytes() == before


@BOTH
def test_no_kernel_is_compiled_anew(tmp_path, kind):
    """Numba has other types for read-only and for unaligned arrays."""
    features, corpus = CASES["templates"]
    kind(features, max_passes=1).fit(corpus)
    kernel = crf.crf_steps if kind is ChainCRF else perceptron.averaged_perceptron
    variants = set(kernel.signatures)
    assert variants
    kind(max_passes=1).fit(prepare(corpus, tmp_path / "p", features))
    assert set(kernel.signatures) == variants


@BOTH
def test_dev_data_are_encoded_by_the_model(tmp_path, kind):
    corpus = as_corpus(X, Y)
    prepared = prepare(corpus, tmp_path / "p", "word[-1..1]")
    options = {"max_passes": 4, "random_state": 0}
    model = kind(**options).fit(prepared, dev=(X_NEW, Y_NEW))
    plain = kind("word[-1..1]", **options).fit(corpus, dev=(X_NEW, Y_NEW))
    assert [r.dev_score for r in model.history_] == [r.dev_score for r in plain.history_]
    assert same_bits(model.weights_, plain.weights_)


def test_later_learning_does_not_touch_the_prepared(tmp_path):
    prepared = prepare(as_corpus(X, Y), tmp_path / "p", "word")
    n = prepared.encoder.n_features
    model = ChainCRF(max_passes=1, random_state=0, warm_start=True).fit(prepared)
    model.fit([["never", "seen"]], [[Y[0][0], Y[0][0]]])
    assert model.n_features_ > prepared.encoder.n_features == n
    with pytest.raises(DataError, match="warm_start: the model has other features"):
        model.fit(prepared)


@BOTH
def test_training_goes_on_over_the_same_file(tmp_path, kind):
    corpus = as_corpus(X, Y)
    prepared = prepare(corpus, tmp_path / "p", "word[-1..1]")
    kind("word[-1..1]", max_passes=2, random_state=0).fit(prepared).save(tmp_path / "m")
    loaded, plain = load_model(tmp_path / "m"), load_model(tmp_path / "m")
    loaded.set_params(warm_start=True).fit(prepared)
    plain.set_params(warm_start=True).fit(corpus)
    assert same_bits(loaded.weights_, plain.weights_)
    if kind is ChainCRF:  # the perceptron makes no mistake any more, and so learns nothing
        assert not same_bits(loaded.weights_, load_model(tmp_path / "m").weights_)


# ------------------------------------------------------------------------- refusals


@pytest.fixture
def prepared(tmp_path):
    return prepare(as_corpus(X, Y), tmp_path / "p", "word[-1..1]")


@BOTH
def test_other_features(kind, prepared):
    model = kind("word")
    with pytest.raises(DataError, match=r"differs from the templates .* \(word\[-1\]; word; word"):
        model.fit(prepared)
    assert not hasattr(model, "classes_")


@BOTH
def test_labels_are_in_the_file(kind, prepared):
    with pytest.raises(DataError, match="a prepared corpus carries its labels; leave out y"):
        kind().fit(prepared, Y)


def test_weights_must_fit(prepared):
    with pytest.raises(DataError, match=r"sample_weight must have shape \(40,\)"):
        ChainCRF().fit(prepared, sample_weight=[1.0])


def test_labels_must_fit_the_scheme(tmp_path):
    made = prepare(as_corpus([["a"]], [["NOUN"]]), tmp_path / "q")
    with pytest.raises(DataError, match="NOUN"):
        ChainCRF(scheme="BIO").fit(made)


@BOTH
def test_only_fit_takes_it(kind, prepared):
    model = kind(max_passes=1).fit(prepared)
    for use in (
        kind().partial_fit,
        model.partial_fit,
        model.predict,
        lambda X: kind().fit(prepared, dev=X),
    ):
        with pytest.raises(DataError, match="expected a corpus or a list of samples, got Prepared"):
            use(prepared)

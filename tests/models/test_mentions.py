"""Marked mentions: what is presumed of unmarked words, and what is learned from them."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone

from trellis import ChainCRF, GraphCRF, TreeCRF, load_model
from trellis.corpus import Labels, as_corpus
from trellis.corpus.schemes import get_scheme
from trellis.errors import DataError, ParametersError
from trellis.features import prepare
from trellis.models.mentions import Mentions, judged_by_others, lacks_outside

PEOPLE = [f"{a}{b}" for a in ("An", "Bo", "Cy", "Di") for b in ("na", "ris", "lo", "ta", "mi")]
WORDS = ["sees", "meets", "the", "dog", "in", "a", "house", "today"]


def sentences(n=150, seed=0):
    """Words, of which some are names of one or two words."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        words, labels = [], []
        for _ in range(4):
            if rng.random() < 0.4:
                k = int(rng.integers(1, 3))
                words += rng.choice(PEOPLE, k).tolist()
                labels += ["B-PER", "I-PER"][:k]
            words += rng.choice(WORDS, 2).tolist()
            labels += ["O", "O"]
        X.append(words)
        y.append(labels)
    return X, y


def marked(y, share, unmarked="O", seed=0):
    """Labels of which so many names are left."""
    rng = np.random.default_rng(seed)
    result = []
    for labels in y:
        kept, keep = [], False
        for label in labels:
            if label[0] == "B":
                keep = rng.random() < share
            kept.append(label if keep and label != "O" else unmarked)
        result.append(kept)
    return result


X, Y = sentences()
NEW, GOLD = sentences(100, seed=1)


def mentions(*arguments, **options):
    return ChainCRF("ner", partial="mentions", random_state=0, **options).fit(*arguments)


# ---------------------------------------------------------------------------- what is learned


@pytest.mark.parametrize("share", [0.25, 0.5, 0.75])
def test_better_than_both_simple_ways(share):
    found = mentions(X, marked(Y, share)).score(NEW, GOLD)
    outside = ChainCRF("ner", random_state=0).fit(X, marked(Y, share)).score(NEW, GOLD)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        unknown = ChainCRF("ner", random_state=0).fit(X, marked(Y, share, None)).score(NEW, GOLD)
    assert found > 0.85
    assert found > outside
    assert found > unknown


def test_nothing_is_lost_where_all_is_marked():
    model = mentions(X, Y)
    assert model.score(NEW, GOLD) > 0.97
    assert model.share_marked_ == pytest.approx(1, abs=0.05)


def test_the_share_that_is_marked_is_told():
    model = mentions(X, marked(Y, 0.5))
    n = sum(label != "O" for labels in Y for label in labels)
    assert model.share_marked_ == pytest.approx(0.5, abs=0.1)
    assert model.entity_ratio_ == pytest.approx(n / sum(map(len, X)), abs=0.1)


def test_o_and_none_are_the_same():
    a, b = (mentions(X, marked(Y, 0.5, unmarked)) for unmarked in ("O", None))
    np.testing.assert_array_equal(a.weights_.node, b.weights_.node)


def test_the_expected_ratio_is_kept():
    model = ChainCRF("ner", partial="entity-ratio", random_state=0).fit(X, marked(Y, 0.5))
    assert model.score(NEW, GOLD) > 0.8
    assert model.solver_ == "lbfgs"
    expected = np.mean(np.concatenate(model.predict_marginals(X))[:, :2].sum(axis=1))
    assert expected == pytest.approx(model.entity_ratio_, rel=0.2)


def test_a_given_ratio_needs_no_first_models():
    model = ChainCRF("ner", partial="entity-ratio", entity_ratio=0.3, random_state=0)
    model.fit([["Ann", "sees", "Bo"]], [["B-PER", None, None]])
    assert model.entity_ratio_ == 0.3
    assert model.share_marked_ is None


@pytest.mark.parametrize("partial", ["mentions", "entity-ratio"])
def test_the_same_seed_gives_the_same_bits(partial):
    few = X[:60], marked(Y, 0.5)[:60]
    a, b = (ChainCRF("ner", partial=partial, random_state=3).fit(*few) for _ in range(2))
    np.testing.assert_array_equal(a.weights_.node, b.weights_.node)
    np.testing.assert_array_equal(a.weights_.transitions, b.weights_.transitions)


def test_first_models_have_not_seen_what_they_judge():
    corpus = as_corpus(X[:7], Y[:7])
    seen = []

    class First:
        def __init__(self, samples):
            self.samples = set(samples.tolist())

        def predict_marginals(self, held_out):
            seen.append((self.samples, len(held_out)))
            return [np.full((n, 3), i) for i, n in enumerate(held_out.lengths.tolist())]

    marks = Mentions.of(corpus).marked
    chances = judged_by_others(corpus, First, marks, np.random.default_rng(0), lambda _: None)
    assert len(chances) == corpus.n_positions
    assert [len(samples) + n for samples, n in seen] == [7, 7, 7]
    assert set.intersection(*(samples for samples, _ in seen)) == set()


# ---------------------------------------------------------------------------- what is presumed


def test_marked_mentions_do_not_go_on():
    labels = [["B-X", None, "O", None], [None, "B-Y", "I-Y", None]]
    found = Mentions.of(as_corpus([["a"] * 4] * 2, labels))
    outside = np.zeros(8, bool)
    outside[2] = True
    begins = frozenset({"B-X", "B-Y", "O"})
    assert found.presumed(outside).tolist() == [
        "B-X", begins, "O", begins, begins, "B-Y", "I-Y", begins,
    ]  # fmt: skip
    assert found.presumed(np.zeros(8, bool)).tolist()[2:4] == [None, None]
    assert found.if_outside().tolist() == ["B-X", "O", "O", "O", "O", "B-Y", "I-Y", "O"]


def test_sets_of_labels():
    labels = [[{"B-X", "B-Y"}, {"B-X", "O"}, None, "I-X"]]
    found = Mentions.of(as_corpus([["a"] * 4], labels))
    assert found.marked.tolist() == [True, False, False, True]
    assert found.presumed(np.zeros(4, bool)).tolist()[:2] == [{"B-X", "B-Y"}, {"B-X", "O"}]
    assert found.presumed(np.ones(4, bool)).tolist()[1] == "O"


def test_labels_need_no_letters():
    found = Mentions.of(as_corpus([["a", "b", "c"]], [["name", None, "place"]]))
    assert not found.goes_on.any()
    assert sorted(found.types.tolist()) == [-1, 0, 1]
    words = ["Ann", "sees", "Bo"]
    y = [["name", None, "O"], ["name", "O", "name"], [None, "O", "name"]] * 4
    assert mentions([words] * 12, y).predict([words]) == [["name", "O", "name"]]


def test_ends_have_letters():
    bio, iobes = get_scheme("BIO"), get_scheme("IOBES")
    y = [iobes.labels_for(bio.spans(labels), len(labels)) for labels in marked(Y, 0.5)]
    model = mentions(X, y, scheme="IOBES")
    assert set(model.classes_) == {"B-PER", "E-PER", "S-PER", "O"}
    gold = [iobes.labels_for(bio.spans(labels), len(labels)) for labels in GOLD]
    assert model.score(NEW, gold) > 0.9


# ---------------------------------------------------------------------------- refused


def test_no_mention():
    with pytest.raises(DataError, match="no mention is marked"):
        mentions(X, [[None] * len(x) for x in X])
    with pytest.raises(DataError, match="no mention is marked"):
        mentions(X, [["O"] * len(x) for x in X])


def test_nothing_but_mentions():
    with pytest.raises(DataError, match="every position is marked"):
        mentions([["a", "b"]] * 3, [["B-X", "out"]] * 3)


def test_the_column_of_words():
    with pytest.raises(DataError, match="is this the label column"):
        mentions(X, [[f"{word}{s}" for word in x] for s, x in enumerate(X)], max_labels=100)


def test_one_sample():
    with pytest.raises(DataError, match="needs two samples at least"):
        mentions(X[:1], Y[:1])


def test_labels_that_are_no_strings():
    with pytest.raises(DataError, match="labels that are strings"):
        mentions([["a", "b"]] * 3, [[1, None]] * 3)


def test_no_streams():
    with pytest.raises(DataError, match="partial_fit takes labels as they are"):
        ChainCRF("ner", partial="mentions").partial_fit(X, Y)


def test_no_active_learning():
    with pytest.raises(DataError, match="learning_problems takes labels as they are"):
        ChainCRF("ner", partial="mentions").learning_problems({"a": (X, Y)})


def test_no_prepared_corpus(tmp_path):
    corpus = prepare(as_corpus(X, Y, columns=["word"]), tmp_path / "prepared", "ner")
    with pytest.raises(DataError, match="cannot do so with a prepared corpus"):
        mentions(corpus)


@pytest.mark.parametrize(
    "options, text",
    [
        ({"entity_ratio": 0.1}, "entity_ratio=0.1 is for partial='entity-ratio'"),
        (
            {"partial": "entity-ratio", "solver": "sgd"},
            "partial='entity-ratio' needs solver='lbfgs'",
        ),
        (
            {"partial": "entity-ratio", "piece_size": 3.0},
            "partial='entity-ratio' needs piece_size=None",
        ),
        (
            {"partial": "entity-ratio", "transitions": "observed"},
            "partial='entity-ratio' needs transitions='all'",
        ),
        (
            {"partial": "entity-ratio", "averaged": True},
            "partial='entity-ratio' needs averaged='auto'",
        ),
    ],
)
def test_parameters_that_do_not_go_together(options, text):
    with pytest.raises(ParametersError) as error:
        ChainCRF("ner", **options).fit(X, Y)
    assert str(error.value) == text


@pytest.mark.parametrize("kind", [TreeCRF, GraphCRF])
def test_for_chains_only(kind):
    with pytest.raises(TypeError, match="partial"):
        kind(partial="mentions")
    from trellis.models.crf import CRF

    with pytest.raises(ParametersError, match="partial='mentions' is for structure='chain'"):
        CRF("word", structure=kind.structure, partial="mentions").fit([], [])


def test_a_failed_training_leaves_no_model():
    model = ChainCRF("ner", partial="mentions")
    with pytest.raises(DataError):
        model.fit(X[:1], Y[:1])
    assert not model.__sklearn_is_fitted__()


# ---------------------------------------------------------------------------- with all else


def test_files_clones_and_pickles(tmp_path):
    model = mentions(X, marked(Y, 0.5))
    assert clone(model).get_params() == model.get_params()
    again = pickle.loads(pickle.dumps(model))
    assert again.share_marked_ == model.share_marked_
    model.save(tmp_path / "model")
    read = load_model(tmp_path / "model")
    assert read.partial == "mentions"
    assert read.predict(NEW) == model.predict(NEW) == again.predict(NEW)


def test_held_out_data_stop_the_last_model():
    model = ChainCRF("ner", partial="mentions", max_passes=30, patience=2, random_state=0)
    model.fit(X, marked(Y, 0.5), dev=(NEW, GOLD))
    assert model.n_passes_ < 30
    assert max(record.dev_score for record in model.history_) > 0.9


def test_sample_weights():
    y = marked(Y, 0.5)
    weight = np.ones(len(X))
    weight[::2] = 3
    heavy = ChainCRF("ner", partial="mentions", random_state=0)
    heavy.fit(X, y, sample_weight=weight)
    assert heavy.score(NEW, GOLD) > 0.9
    assert not np.array_equal(heavy.weights_.node, mentions(X, y).weights_.node)


def test_more_data_later():
    model = ChainCRF("ner", partial="mentions", warm_start=True, random_state=0)
    y = marked(Y, 0.5)
    before = model.fit(X[:60], y[:60]).n_features_
    assert model.fit(X, y).n_features_ > before
    assert model.score(NEW, GOLD) > 0.9


def test_raw_text_and_dictionaries():
    model = ChainCRF("ner", partial="mentions", random_state=0)
    model.fit(X, marked(Y, 0.5), unlabelled=NEW, dictionaries={"name": PEOPLE})
    assert model.score(NEW, GOLD) > 0.9


def test_checkpoints(tmp_path):
    file = tmp_path / "checkpoint"
    plain = mentions(X[:60], marked(Y, 0.5)[:60])
    model = ChainCRF("ner", partial="mentions", random_state=0)
    model.fit(X[:60], marked(Y, 0.5)[:60], checkpoint=file)
    np.testing.assert_array_equal(model.weights_.node, plain.weights_.node)
    assert not file.exists()


def test_named_columns_and_tables():
    pandas = pytest.importorskip("pandas")
    y = marked(Y, 0.5, None)
    pairs = [[(word, word[:1]) for word in x] for x in X]
    model = ChainCRF(columns=["word", "letter"], partial="mentions", random_state=0).fit(pairs, y)
    assert model.predict(pairs[:1]) == model.predict(pairs)[:1]
    rows = [
        (s, w, a)
        for s, (x, r) in enumerate(zip(X, y, strict=True))
        for w, a in zip(x, r, strict=True)
    ]
    table = pandas.DataFrame(rows, columns=["sentence", "word", "label"])
    model = ChainCRF(group="sentence", partial="mentions", random_state=0).fit(table, "label")
    assert model.classes_ == ("B-PER", "I-PER", "O")


def test_tables_of_numbers():
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(6, 3)) for _ in range(40)]
    y = [["N" if row[0] > 0.5 and rng.random() < 0.6 else None for row in x] for x in X]
    model = ChainCRF(partial="mentions", random_state=0).fit(X, y)
    assert set(model.classes_) == {"N", "O"}
    assert model.predict([np.array([[3.0, 0, 0], [-3.0, 0, 0]])]) == [["N", "O"]]


# ---------------------------------------------------------------------------- the warning


def warned(y, n=20, kind=ChainCRF, **options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        kind("word", max_passes=1, random_state=0, **options).fit([["a", "b", "c"]] * n, y)
    return [str(w.message) for w in caught if "partial='mentions'" in str(w.message)]


@pytest.mark.parametrize(
    "sample",
    [["B-X", "I-X", None], [{"B-X", "O"}, {"I-X", "O"}, "B-X"]],
    ids=["names", "sets"],
)
def test_nothing_is_outside(sample):
    (told,) = warned([sample] * 20)
    assert "spans nearly everywhere" in told


@pytest.mark.parametrize(
    "samples",
    [
        [["B-X", "I-X", "O"]],
        [["B-X", "I-X", "B-X"]],
        [["B-X", "I-X", None]] * 19 + [["O", None, None]],
        [["B-X", "I-X", "B-X"]] * 19 + [["B-X", None, "B-X"]],
        [["B", "I", None]],
        [["B", "M", "E"], ["S", None, None]],
        [["NOUN", None, "VERB"]],
        [[1, None, 2]],
        [["B-X", "M-X", None]],
    ],
    ids=["all", "no O", "an O", "one None", "letters", "words", "tags", "numbers", "typed words"],
)
def test_ordinary_data_are_not_warned_of(samples):
    assert not warned((samples * 20)[:20])


def test_marked_mentions_are_not_warned_of():
    assert not warned([["B-X", "I-X", None]] * 20, partial="mentions")
    assert not lacks_outside(Labels.from_lists([["a"]]))

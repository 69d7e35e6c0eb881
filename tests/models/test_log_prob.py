"""log p(y | x) against enumeration: partial and refined labels, tag schemes, loops."""

from __future__ import annotations

import itertools
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

from chain_problems import in_scheme, labelling_scores, probabilities, toy_language
from trellis import ChainCRF, ChainPerceptron, DataError, GraphCRF, TreeCRF
from trellis.corpus import as_corpus
from trellis.structures import ChainPotentials, event_probability, log_event_probability

X, Y = toy_language(60)
WORDS = sorted({word for sample in X for word in sample})[:6]
CLASSES = ("B-PER", "I-PER", "O")


@cache
def fitted(encoding: str, scheme: str | None = None, rich: bool = False) -> ChainCRF:
    """A model that is not too sure of itself."""
    options = {"l2": 2.0, "max_passes": 2, "rich_edges": rich, "random_state": 0}
    return ChainCRF("word; word[-1]", encoding=encoding, scheme=scheme, **options).fit(X, Y)


def agrees(labels, known) -> bool:
    """Whether labels are among those that are known of each position."""
    return all(
        k is None or (label in k if isinstance(k, set | frozenset) else label == k)
        for label, k in zip(labels, known, strict=True)
    )


known_of_a_position = st.none() | st.sampled_from(CLASSES) | st.sets(
    st.sampled_from(CLASSES), min_size=1
)  # fmt: skip


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(WORDS), known_of_a_position), min_size=1, max_size=4),
    st.sampled_from(["given", "iobes"]),
    st.booleans(),
)
def test_partial_labels(pairs, encoding, rich):
    crf = fitted(encoding, rich=rich)
    words, known = (list(each) for each in zip(*pairs, strict=True))
    if rich:  # the scores of all labellings, from the search for the best
        (ranked,) = crf.predict_kbest([words], len(CLASSES) ** len(words))
        share = probabilities({tuple(y): score for y, score in ranked})
    else:
        share = probabilities(labelling_scores(crf, words))
    expected = sum(p for y, p in share.items() if agrees(y, known))
    (found,) = crf.log_prob([words], [known])
    assert found <= 0
    assert np.exp(found) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("encoding", ["given", "iobes"])
def test_a_tag_scheme(encoding):
    crf = fitted(encoding, "BIO")
    words = ["Ada", "met", "Zuse"]
    every = [list(y) for y in itertools.product(CLASSES, repeat=3)]
    found = crf.log_prob([words] * 27, every)
    assert np.exp(found).sum() == pytest.approx(1, abs=1e-9)
    valid = np.array([in_scheme("BIO", y) for y in every])
    assert np.isneginf(found[~valid]).all() and np.isfinite(found[valid]).all()


def test_long_samples_do_not_vanish():
    crf = fitted("given")
    words = ["Ada", "met"] * 3000
    (found,) = crf.log_prob([words], [["O"] * 6000])
    assert -1e6 < found < -800
    assert crf.log_prob([words], [[None] * 6000]).tolist() == [0.0]


def test_labels_of_a_corpus_and_of_none():
    crf = fitted("given")
    np.testing.assert_array_equal(crf.log_prob(as_corpus(X[:5], Y[:5])), crf.log_prob(X[:5], Y[:5]))
    assert crf.log_prob([], []).tolist() == []
    assert crf.log_prob([[], ["Ada"], []], [[], [None], []]).tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("pieces", ["tree", "graph"])
def test_loops(pieces):
    ring = [(0, 1), (1, 2), (2, 0)]
    X = [[["a"], ["b"], ["a"]], [["b"], ["b"], ["a"]]] * 5
    y = [["A", "B", "A"], ["B", "B", "A"]] * 5
    crf = GraphCRF(pieces=pieces, random_state=0).fit(X, y, edges=[ring] * 10)
    every = [list(labels) for labels in itertools.product("AB", repeat=3)]
    p = np.exp(crf.log_prob([X[0]] * 8, every, edges=[ring] * 8))
    assert p.sum() == pytest.approx(1)
    first = p[[labels[0] == "A" for labels in every]].sum()
    asked = crf.log_prob([X[0]], [["A", None, {"A", "B"}]], edges=[ring])
    assert np.exp(asked[0]) == pytest.approx(first)
    assert crf.predict_marginals([X[0]], edges=[ring])[0][0, 0] == pytest.approx(first)


def test_graphs_beyond_exact_inference_are_refused():
    n = 40
    edges = list(itertools.combinations(range(n), 2))
    X, y = [[[f"f{i % 3}"] for i in range(n)]] * 2, [["A", "B", "C", "D"] * 10] * 2
    crf = GraphCRF(max_passes=1, random_state=0).fit(X, y, edges=[edges] * 2)
    with pytest.raises(DataError, match="exact inference"):
        crf.log_prob(X[:1], y[:1], edges=[edges])


def test_what_is_refused():
    crf = fitted("given")
    with pytest.raises(DataError, match="log_prob needs labels: pass y or a corpus that carries"):
        crf.log_prob(X)
    with pytest.raises(DataError, match="label 'B-LOC' is unknown; known labels: B-PER, I-PER, O"):
        crf.log_prob([["Ada"]], [["B-LOC"]])
    with pytest.raises(DataError, match="sample 0: X has 1 positions, y has 2"):
        crf.log_prob([["Ada"]], [["O", "O"]])
    with pytest.raises(NotFittedError):
        TreeCRF().log_prob([["a"]], [["A"]], edges=[[]])
    with pytest.raises(AttributeError, match="ChainPerceptron has no log_prob: its scores are no"):
        _ = ChainPerceptron().log_prob


@given(st.integers(0, 10_000))
def test_both_probabilities_of_events_agree(seed):
    rng = np.random.default_rng(seed)
    p = ChainPotentials(rng.normal(size=(5, 3)), rng.normal(size=(3, 3)), [0, 2, 5])
    allowed = rng.random((5, 3)) < 0.7
    chances, logs = event_probability(p, allowed), log_event_probability(p, allowed)
    np.testing.assert_array_equal(np.exp(logs), chances)
    assert (logs <= 0).all()


@pytest.mark.parametrize("model", [TreeCRF, GraphCRF])
def test_features_of_edges(model):
    X, y = [[["a"], ["b"], ["a"]]] * 6, [["A", "B", "A"], ["A", "A", "A"]] * 3
    edges = [[(1, 0), (2, 1)]] * 6
    own = [[["far"], ["near"]], [["near"], ["near"]]] * 3
    crf = model(random_state=0, max_passes=5).fit(X, y, edges=edges, edge_features=own)
    every = [list(labels) for labels in itertools.product("AB", repeat=3)]
    for asked in own[:2]:
        given = {"edges": edges[:1] * 8, "edge_features": [asked] * 8}
        p = np.exp(crf.log_prob(X[:1] * 8, every, **given))
        assert p.sum() == pytest.approx(1)
        (chances,) = crf.predict_marginals(X[:1], edges=edges[:1], edge_features=[asked])
        for t, j in np.ndindex(chances.shape):
            share = p[[labels[t] == crf.classes_[j] for labels in every]].sum()
            assert chances[t, j] == pytest.approx(share)

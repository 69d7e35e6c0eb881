"""Measured stability and rate: right, below the bounds, and the same each time."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from chain_problems import toy_language
from studies.measured import measure_rate, measure_stability, observed_stability
from studies.measured.mini_samples import MiniSamples, encode
from trellis import ChainCRF
from trellis.corpus import as_corpus
from trellis.decompose import ChainPieces
from trellis.errors import DataError
from trellis.theory import Stability, stability_from_function

X, Y = toy_language(16, seed=3)
SIZES = [None, 2.5, 1]
REAL = [[{"a": float(t), "b": -0.5}, {"a": 2.0}, {"b": float(t) - 2}] for t in range(4)]
REAL_Y = [["A", "B", "A"], ["B", "B", "A"], ["A", "A", "B"], ["B", "A", "B"]]


@pytest.mark.parametrize("removed", ["sample", "mini-sample"])
@pytest.mark.parametrize(
    ("corpus", "features", "l2"),
    [((X, Y), "word", 1.0), ((X, Y), "word; word[-1]", 0.1), ((REAL, REAL_Y), "auto", 0.5)],
    ids=["words", "pairs", "real"],
)
def test_bounds_really_bound(corpus, features, l2, removed):
    """Theorem 11 and Corollary 12, and Lemma 10, on problems solved exactly."""
    for r in measure_stability(
        corpus, SIZES, removed=removed, n_removed=4, features=features, l2=l2
    ):
        assert r.error < 1e-4
        for name in ("function", "loss", "sample_loss"):
            assert 0 < getattr(r.mean, name) <= getattr(r.largest, name)
            assert getattr(r.largest, name) <= getattr(r.bound, name)
        assert 0 < r.typical <= r.mean.function
        longest = max(map(len, corpus[0]))
        by_lemma = stability_from_function(r.largest.function, n=longest)
        assert r.largest.loss <= by_lemma.loss
        assert r.largest.sample_loss <= by_lemma.sample_loss
        assert r.weights > 0


def test_change_of_the_weights_is_bounded_by_the_gradient_of_what_is_removed():
    """λ‖f − f\\i‖² ≤ … in the proof of Theorem 11: ‖w − w\\i‖ ≤ ‖∇L(removed)‖ / (2 l2)."""
    data, _, n_features = encode((X, Y), "word")
    problem = MiniSamples.draw(data, n_features, 2.5, 0.5, 0)
    whole = problem.minimise()
    for part in range(4):
        less = problem.minimise(start=whole.weights, without=np.array([part]))
        a, b = whole.weights, less.weights
        moved = np.hypot(
            np.linalg.norm(a.node - b.node), np.linalg.norm(a.transitions - b.transitions)
        )
        size = int(problem.pieces.offsets[part + 1] - problem.pieces.offsets[part])
        assert 0 < moved <= math.sqrt(2) * math.sqrt(2) * size / (2 * 0.5)


def test_removing_is_training_without():
    """A solution without the mini-samples of a sample is that of the corpus without the sample."""
    data, _, n_features = encode((X, Y), "word")
    problem = MiniSamples.draw(data, n_features, None, 1.0, 0)
    less = problem.minimise(without=np.array([5]))
    rest = [x for i, x in enumerate(X) if i != 5], [y for i, y in enumerate(Y) if i != 5]
    other, _, n_other = encode(rest, "word")
    alone = MiniSamples.draw(other, n_other, None, 1.0, 0).minimise()
    assert less.value == pytest.approx(alone.value)
    assert less.error < 1e-4


def test_minimiser_is_where_sgd_goes():
    data, _, n_features = encode((X, Y), "word")
    problem = MiniSamples.draw(data, n_features, None, 1.0, 0)
    found = problem.minimise()
    crf = ChainCRF("word", l2=1.0, max_passes=200, decay=0.97, tol=-1, random_state=0).fit(X, Y)
    assert problem.value(crf.weights_) == pytest.approx(found.value, rel=1e-3)
    assert problem.value(crf.weights_) >= found.value - 1e-4
    np.testing.assert_allclose(crf.weights_.node, found.weights.node, atol=0.05)


def test_mini_samples_keep_features_across_cuts():
    """The corpus of mini-samples gives a CRF the features that the whole samples have."""
    data, _, n_features = encode((X, Y), "word; word[-1]; word[1]")
    problem = MiniSamples.draw(data, n_features, 1.5, 1.0, 0)
    crf = ChainCRF(max_passes=1, learning_rate=0.1, random_state=0).fit(problem.as_corpus())
    encoded = crf.encoder_.encode(problem.as_corpus())
    assert crf.n_features_ == n_features
    np.testing.assert_array_equal(encoded.indices, data.encoded.indices)
    np.testing.assert_array_equal(encoded.indptr, data.encoded.indptr)
    assert len(problem.as_corpus()) == len(problem.pieces)


def test_test_data_are_looked_at_in_their_own_right():
    train = X[:12], Y[:12]
    (seen,) = measure_stability(train, [None], n_removed=2, features="word")
    (same,) = measure_stability(train, [None], n_removed=2, features="word", test=train)
    (other,) = measure_stability(
        train, [None], n_removed=2, features="word", test=([*X[12:], ["unseen"]], [*Y[12:], ["O"]])
    )
    assert same == seen
    assert other.weights == seen.weights
    assert other.largest != seen.largest
    assert other.largest.function <= other.bound.function


def test_stability_is_deterministic_and_depends_on_the_seed():
    a, b, c = (
        measure_stability((X, Y), [2.5], n_removed=2, features="word", random_state=seed)
        for seed in (0, 0, 1)
    )
    assert a == b != c


def test_all_samples_at_most_are_removed():
    (r,) = measure_stability((X[:3], Y[:3]), [2], n_removed=50, features="word")
    assert (r.n_removed, r.removed, r.piece_size) == (3, "sample", 2)


def test_alpha_is_the_number_of_mini_samples_a_sample():
    corpus = as_corpus(X, Y)
    pieces = ChainPieces(2.5).draw(corpus.offsets, np.random.default_rng(7))
    (r,) = measure_stability(corpus, [2.5], n_removed=1, features="word", random_state=7)
    (run,) = measure_rate(corpus, [2.5], features="word", random_state=7, max_passes=1)
    assert r.alpha == run.alpha == len(pieces) / 16
    assert run.n_mini_samples == len(pieces)


def test_rate_counts_passes_and_updates():
    runs = measure_rate((X, Y), SIZES, learning_rates=(0.05, 0.2), epsilon=0.05, features="word")
    assert [(r.piece_size, r.learning_rate) for r in runs] == [
        (size, rate) for size in SIZES for rate in (0.05, 0.2)
    ]
    for run in runs:
        assert run.passes == len(run.gaps)
        assert run.updates == run.passes * run.n_mini_samples
        assert run.gaps[-1] <= 0.05 < min([1.0, *run.gaps[:-1]])
        assert all(gap > -1e-6 for gap in run.gaps)
    slow, fast = runs[:2]
    assert fast.passes < slow.passes


def test_rate_is_deterministic():
    a, b = (measure_rate((X, Y), [2], features="word", max_passes=3) for _ in range(2))
    assert a == b


def test_a_run_that_does_not_arrive():
    (run,) = measure_rate((X, Y), [None], features="word", learning_rates=[1e-4], max_passes=2)
    assert (len(run.gaps), run.passes, run.updates) == (2, None, None)
    assert run.gaps[1] < run.gaps[0] < 1


def test_a_run_that_diverges_does_not_arrive():
    X_large = [[{"a": 1.0, "b": 3.0}, {"a": -1.0}]] * 3
    (run,) = measure_rate(
        (X_large, [["A", "B"]] * 3), [None], learning_rates=[1e38], l2=1e-3, max_passes=5
    )
    assert (run.passes, run.updates) == (None, None)


@pytest.mark.parametrize("measure", [measure_stability, measure_rate])
@pytest.mark.parametrize(
    ("corpus", "sizes", "more", "message"),
    [
        ((X, Y), [], {}, "piece_sizes is empty; give at least one size, or None for whole"),
        ((X, Y), [0.5], {}, "piece_size must be a number of at least 1, got 0.5"),
        ((X, Y), [2], {"l2": 0}, "l2 must be a positive number, got 0"),
        ((X, Y), [2], {"l2": True}, "l2 must be a positive number, got True"),
        ((X, Y), [2], {"l2": "1"}, "l2 must be a positive number, got '1'"),
        ((X, Y), [2], {"random_state": None}, "random_state must be an integer of at least 0"),
        ((X, Y), [2], {"random_state": -1}, "random_state must be an integer of at least 0"),
        (X, [2], {}, r"labels are needed: pass a corpus that carries them or a pair \(X, y\)"),
        (
            ([["a", "b"]] * 2, [["A", "B"], ["A", None]]),
            [2],
            {},
            "corpus: sample 1, position 1 has no single label; the theory is for complete labels",
        ),
    ],
)
def test_shared_refusals(measure, corpus, sizes, more, message):
    with pytest.raises(DataError, match=message):
        measure(corpus, sizes, **more)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: measure_stability((X, Y), [2], removed="word"),
            "removed must be 'sample' or 'mini-sample', got 'word'",
        ),
        (
            lambda: measure_stability((X, Y), [2], n_removed=0),
            "n_removed must be a positive integer, got 0",
        ),
        (
            lambda: measure_stability((X, Y), [2], test=([["a"]], [[None]])),
            "test: sample 0, position 0 has no single label",
        ),
        (
            lambda: measure_rate((X, Y), [2], learning_rates=[]),
            "learning_rates is empty; give at least one rate",
        ),
        (
            lambda: measure_rate((X, Y), [2], learning_rates=[0.1, -1]),
            "learning_rate must be a positive number, got -1",
        ),
        (lambda: measure_rate((X, Y), [2], epsilon=1), "epsilon must be a number between 0 and 1"),
        (
            lambda: measure_rate((X, Y), [2], max_passes=0),
            "max_passes must be a positive integer, got 0",
        ),
        (
            lambda: measure_rate((X, Y), [2], visit="sorted"),
            "visit must be 'pooled', 'permutation' or 'replacement', got 'sorted'",
        ),
    ],
)
def test_own_refusals(call, message):
    with pytest.raises(DataError, match=message):
        call()


@given(
    st.integers(0, 2**32 - 1),
    st.lists(st.integers(0, 4), min_size=1, max_size=5),
    st.floats(0.01, 10),
)
def test_lemma_10_holds_for_what_is_observed(seed, lengths, tau):
    """Losses that are τ-Lipschitz in the function value, here τ |f − target|."""
    assume(sum(lengths))
    rng = np.random.default_rng(seed)
    n = sum(lengths)
    f, g, target = rng.normal(size=(3, n))
    offsets = np.cumsum([0, *lengths])
    seen = observed_stability(f, g, tau * abs(f - target), tau * abs(g - target), offsets)
    allowed = stability_from_function(seen.function, n=max(lengths), tau=tau)
    assert seen.loss <= allowed.loss * (1 + 1e-12)
    assert seen.sample_loss <= allowed.sample_loss * (1 + 1e-12)
    by_hand = [
        abs(sum(tau * abs(f[t] - target[t]) - tau * abs(g[t] - target[t]) for t in range(a, b)))
        for a, b in itertools.pairwise(offsets)
    ]
    assert seen.sample_loss == pytest.approx(max(by_hand), abs=1e-9)


def test_observed_stability_takes_several_values_a_position():
    seen = observed_stability([[0.0, 1.0]], [[0.0, 3.0]], [1.0], [1.5], [0, 1])
    assert seen == Stability(2.0, 0.5, 0.5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: observed_stability(["x"], [0.0], [0.0], [0.0], [0, 1]),
            "values must be numbers: could not convert",
        ),
        (
            lambda: observed_stability([0.0], [math.nan], [0.0], [0.0], [0, 1]),
            "values_without must be finite; some are NaN or infinite",
        ),
        (
            lambda: observed_stability([0.0], [0.0, 1.0], [0.0], [0.0], [0, 1]),
            r"values_without has shape \(2,\); expected \(1,\)",
        ),
        (
            lambda: observed_stability([[0.0, 1.0]], [[0.0, 1.0]], [0.0, 1.0], [0.0], [0, 1]),
            r"losses has shape \(2,\); expected \(1,\)",
        ),
        (
            lambda: observed_stability([0.0], [0.0], [0.0], [0.0, 1.0], [0, 1]),
            r"losses_without has shape \(2,\); expected \(1,\)",
        ),
        *(
            (
                lambda offsets=offsets: observed_stability([0.0], [0.0], [0.0], [0.0], offsets),
                "offsets must rise from 0 to the number of positions, 1, at least 1",
            )
            for offsets in ([0, 2], [1, 1], [0.0, 1.0], [0], [0, 2, 1], [[0, 1]])
        ),
        (
            lambda: observed_stability([], [], [], [], [0, 0]),
            "offsets must rise from 0 to the number of positions, 0, at least 1",
        ),
    ],
)
def test_what_is_observed_is_checked(call, message):
    with pytest.raises(DataError, match=message):
        call()

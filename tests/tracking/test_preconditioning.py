"""Preconditioning: the formula, missing and extreme values, the way through a dict, every error."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from trellis.errors import DataError
from trellis.tracking.objects import EVENTS
from trellis.tracking.preconditioning import Preconditioner

SIZES = (2, 3, 1, 0, 2, 1)


def blocks(seed, rows=(9, 7, 8, 5, 6, 4)):
    rng = np.random.default_rng(seed)
    return [
        rng.normal(size=(h, k)) * 10.0 ** rng.integers(-3, 4, k)
        for h, k in zip(rows, SIZES, strict=True)
    ]


def test_formula():
    """The quantiles are over all pairs together, and the formula is the plain one."""
    pairs = [blocks(0), blocks(1), blocks(2, rows=(0, 0, 3, 0, 2, 1))]
    p = Preconditioner.learn(pairs)
    assert p.sizes == tuple(k + 1 for k in SIZES)
    for pair in pairs:
        for e, (raw, done) in enumerate(zip(pair, p.transform(pair), strict=True)):
            assert done.shape == (len(raw), SIZES[e] + 1)
            assert (done[:, -1] == 1).all()
            for k in range(SIZES[e]):
                everything = np.concatenate([other[e][:, k] for other in pairs])
                low, high = np.quantile(everything, 0.1), np.quantile(everything, 0.9)
                x = (2 * raw[:, k] - low - high) / (high - low + 1e-8)
                np.testing.assert_allclose(done[:, k], 1 / (1 + np.exp(-x)) - 1, rtol=1e-9)


def test_bias_where_it_is_wanted():
    pair = blocks(0)
    assert Preconditioner.learn([pair], bias=False).sizes == SIZES
    p = Preconditioner.learn([pair], events=("move", "disappear"))
    assert p.sizes == (3, 3, 1, 1, 2, 1)
    assert [a.shape[1] for a in p.transform(pair)] == [3, 3, 1, 1, 2, 1]


def test_knots_are_steps_at_the_quantiles():
    pair = blocks(0)
    p = Preconditioner.learn([pair], knots=3)
    assert p.sizes == tuple(3 * k + 1 for k in SIZES)
    done = p.transform(pair)
    for e, raw in enumerate(pair):
        for k in range(SIZES[e]):
            low, high = np.quantile(raw[:, k], [0.1, 0.9])
            for j, level in enumerate((0.05, 0.5, 0.95)):
                x = (raw[:, k] - np.quantile(raw[:, k], level)) / (high - low) * 30 / 7
                expected = 1 / (1 + np.exp(-x)) - 1
                np.testing.assert_allclose(done[e][:, 3 * k + j], expected, atol=1e-5)
    names = p.column_names(0, ["a", "b"])
    assert len(names) == p.sizes[0]
    assert names[0].startswith("a > ")
    assert names[4].startswith("b > ")
    assert names[-1] == "bias"
    assert Preconditioner.learn([pair]).column_names(0, ["a", "b"]) == ["a", "b", "bias"]
    q = Preconditioner.from_dict(json.loads(json.dumps(p.as_dict())))
    for a, b in zip(done, q.transform(pair), strict=True):
        np.testing.assert_array_equal(a, b)


VALUES = st.one_of(
    st.floats(-1e150, 1e150), st.sampled_from([0.0, 1.0, np.nan, np.inf, -np.inf, 1e-320])
)


@given(arrays(float, (6, 2), elements=VALUES), arrays(float, (5, 2), elements=VALUES))
@settings(max_examples=30)
def test_always_finite_and_in_range(train, new):
    """Also if a feature is constant, missing everywhere, or far outside what was learned from."""
    rest = [np.zeros((0, 1))] * 5
    p = Preconditioner.learn([[train, *rest]], bias=False)
    done = p.transform([new, *rest])[0]
    assert np.isfinite(done).all()
    assert (done >= -1).all()
    assert (done < 0).all()
    for k in range(2):
        order = np.argsort(new[:, k])
        rising = done[order, k][np.isfinite(new[order, k])]
        assert (np.diff(rising) >= 0).all()


def test_missing_values_count_as_the_median():
    train = np.array([[0.0], [np.nan], [1.0], [7.0], [np.inf]])
    rest = [np.zeros((0, 0))] * 5
    p = Preconditioner.learn([[train, *rest]], bias=False)
    np.testing.assert_allclose(p.quantiles[0][:, 0], np.quantile([0.0, 1.0, 7.0], [0.1, 0.5, 0.9]))
    done = p.transform([np.array([[1.0], [np.nan], [np.inf], [-np.inf]]), *rest])[0]
    assert (done == done[0]).all()


def test_nothing_to_learn_from():
    """Events without hypotheses and constant features give finite numbers afterwards."""
    empty = [np.zeros((0, 1))] * 6
    p = Preconditioner.learn([empty], bias=False)
    new = [np.array([[0.0], [np.nan], [5.0], [-5.0]])] * 6
    for done in p.transform(new):
        assert done[:2, 0].tolist() == [-0.5, -0.5]
        assert done[2, 0] > -1e-9
        assert done[3, 0] == -1.0
    constant = Preconditioner.learn([[np.full((4, 1), 3.3), *empty[1:]]], bias=False)
    assert constant.transform([np.full((2, 1), 3.3), *empty[1:]])[0].tolist() == [[-0.5], [-0.5]]


def test_way_through_json():
    pair = blocks(3)
    p = Preconditioner.learn([pair], events=("move", "appear", "disappear"))
    q = Preconditioner.from_dict(json.loads(json.dumps(p.as_dict())))
    assert q.sizes == p.sizes
    for a, b in zip(p.transform(pair), q.transform(pair), strict=True):
        np.testing.assert_array_equal(a, b)


def test_errors_of_learning():
    with pytest.raises(DataError, match="no frame pair to learn the scale"):
        Preconditioner.learn([])
    other = blocks(0)
    other[1] = other[1][:, :2]
    with pytest.raises(DataError, match=r"pair 1 has \(2, 2, 1, 0, 2, 1\) .*pair 0 has \(2, 3,"):
        Preconditioner.learn([blocks(0), other])
    with pytest.raises(DataError, match="pair 0 has 5 tables of features; one for each of move"):
        Preconditioner.learn([blocks(0)[:5]])
    with pytest.raises(DataError, match=r"pair 0 has 6 tables .* a row for each hypothesis"):
        Preconditioner.learn([[np.zeros(3)] * 6])
    with pytest.raises(DataError, match=r"the pair has \(2, 2,.*those learned from had \(2, 3,"):
        Preconditioner.learn([blocks(0)]).transform(other)


def stored(**changes):
    good = Preconditioner.learn([blocks(0)]).as_dict()
    return good | changes


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({}, "cannot be read: KeyError: 'quantiles'"),
        (stored(quantiles=None), "cannot be read: TypeError"),
        (stored(bias=None), "cannot be read: TypeError"),
        (stored(quantiles={"move": [[1.0]]}), "of features cannot be read: KeyError: 'division'"),
        (stored(quantiles={e: [["a"]] for e in EVENTS}), "cannot be read: ValueError"),
        (stored(quantiles={e: [[1.0]] for e in EVENTS}), "features of move is not three rows"),
        (stored(quantiles={e: [[1.0], [0.0], [2.0]] for e in EVENTS}), "not three rows of asc"),
        (stored(quantiles={e: [[1.0], [2.0], [np.inf]] for e in EVENTS}), "not three rows"),
        (stored(knots={e: [[1.0]] for e in EVENTS}), "the knots of the features of move do not"),
        (
            stored(
                knots={
                    e: [[1.0] * k] * i for i, (e, k) in enumerate(zip(EVENTS, SIZES, strict=True))
                }
            ),
            "the events differ in their number of knots",
        ),
        (stored(bias=["fusion"]), r"the events with a bias are \['fusion'\], not of move"),
    ],
)
def test_errors_of_reading(value, message):
    with pytest.raises(DataError, match=message):
        Preconditioner.from_dict(value)

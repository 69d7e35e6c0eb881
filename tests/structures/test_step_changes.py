"""Transitions with changes: the same answers as with a table for every position, and all errors.

Against all labellings they are checked with other chains (``enumerate_passes.chains``).
"""

from __future__ import annotations

import numpy as np
import pytest
from enumerate_passes import ORDINARY, step_changes
from hypothesis import given
from hypothesis import strategies as st

from trellis.errors import DataError, InfeasibleError
from trellis.structures import (
    ChainPotentials,
    StepChanges,
    best,
    entropy,
    event_probability,
    kbest,
    labelling_score,
    marginals,
    sample,
)
from trellis.structures.windows import window_probabilities

HUGE = [-np.inf, -1e30, -500.0, -240.0, -220.0, -50.0, 50.0, 220.0, 240.0, 500.0, 1e30]
SCORES = st.one_of(ORDINARY, ORDINARY, st.sampled_from(HUGE))


@st.composite
def changed(draw):
    """Chains of up to 20 labels, some empty or of one position, with changes of any size."""
    n_labels = draw(st.integers(1, 20))
    lengths = draw(st.lists(st.integers(0, 6), max_size=4))
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    node = rng.integers(-40, 41, (sum(lengths), n_labels)) / 8
    trans = rng.integers(-40, 41, (n_labels, n_labels)) / 8
    trans[rng.random(trans.shape) < draw(st.sampled_from([0.0, 0.2]))] = -np.inf
    changes = draw(step_changes(*node.shape, draw(st.sampled_from([ORDINARY, SCORES])), most=12))
    return ChainPotentials(node, trans, np.cumsum([0, *lengths]), changes)


def dense(p: ChainPotentials) -> ChainPotentials:
    return ChainPotentials(p.node, p.tables(), p.offsets)


def answer(ask, p):
    """What a function says, or that there is no labelling."""
    try:
        return ask(p)
    except InfeasibleError as error:
        return str(error)


def both(ask, p):
    """The answers with changes and with tables; None where samples have no labelling."""
    ours, theirs = answer(ask, p), answer(ask, dense(p))
    if isinstance(theirs, str):
        assert ours == theirs
        return None
    return ours, theirs


@given(changed())
def test_best_and_k_best_are_those_of_tables_to_the_bit(p):
    for ask in (best, lambda p: kbest(p, 4), lambda p: kbest(p, 150)):
        found = both(ask, p)
        if found is not None:
            for ours, theirs in zip(*map(tuple, found), strict=True):
                np.testing.assert_array_equal(ours, theirs)


@given(changed())
def test_probabilities_are_those_of_tables(p):
    # Scores of 1e30 are known to 1e14: then log Z and what near ties share is left open.
    sure = np.abs(np.nan_to_num(p.tables(), neginf=0.0)).max(initial=0.0) < 1e4
    found = both(lambda p: marginals(p, pairs=True), p)
    if found is None:
        return
    ours, theirs = found
    np.testing.assert_allclose(ours.log_z, theirs.log_z, rtol=1e-12, atol=1e-10)
    np.testing.assert_allclose(ours.node.sum(axis=1), 1.0, rtol=1e-12)
    if sure:
        np.testing.assert_allclose(ours.node, theirs.node, rtol=1e-10, atol=1e-300)
        np.testing.assert_allclose(ours.pair, theirs.pair, rtol=1e-10, atol=1e-300)
        np.testing.assert_allclose(entropy(p), entropy(dense(p)), rtol=1e-8, atol=1e-12)
        draws = [sample(q, 3, np.random.default_rng(0)) for q in (p, dense(p))]
        assert (draws[0] == draws[1]).all()


@given(changed(), st.data())
def test_events_and_windows_are_those_of_tables(p, data):
    size = p.node.size
    allowed = np.array(data.draw(st.lists(st.booleans(), min_size=size, max_size=size)), bool)
    allowed = allowed.reshape(p.node.shape) | (np.arange(p.node.shape[1]) == 0)
    large = np.abs(np.nan_to_num(p.tables(), neginf=0.0)).max(initial=0.0) > 1e4
    if large:
        return
    rows = np.arange(len(p.node))
    ends = np.append(rows, len(p.node)).astype(np.int64)
    for ask in (
        lambda p: event_probability(p, allowed),
        lambda p: window_probabilities(p, rows, ends, rows, allowed),
    ):
        found = both(ask, p)
        if found is not None:
            np.testing.assert_allclose(*found, rtol=1e-9, atol=1e-200)


@given(changed())
def test_scores_of_labellings_and_samples_alone(p):
    labels = np.zeros(len(p.node), int)
    found = both(lambda p: labelling_score(p, labels), p)
    if found is not None:
        np.testing.assert_array_equal(*found)
    for s in range(p.n_samples):
        one, rows = p.alone(s), slice(*p.offsets[s : s + 2])
        np.testing.assert_array_equal(one.tables(), p.tables()[rows])
        np.testing.assert_array_equal(one.node, p.node[rows])


@pytest.mark.parametrize("exponent", [950, 1020])
def test_scores_near_the_largest_float(exponent):
    size = 2.0**exponent
    changes = StepChanges([0, 0, 1, 3], [0, 1, 1], [1, 1, 0], [size, size, -size])
    p = ChainPotentials(np.zeros((3, 2)), np.zeros((2, 2)), [0, 3], changes)
    assert best(p).labels.tolist() == [0, 1, 1]
    assert marginals(p).node.tolist() == [[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]
    assert entropy(p).tolist() == [0.0]
    assert sample(p, 1, np.random.default_rng(0)).tolist() == [[0, 1, 1]]


def test_of_equal_pairs_the_last_one_counts():
    changes = StepChanges([0, 0, 2], [0, 0], [1, 1], [9.0, 2.0])
    p = ChainPotentials(np.zeros((2, 2)), np.zeros((2, 2)), [0, 2], changes)
    assert p.tables()[1].tolist() == [[0.0, 2.0], [0.0, 0.0]]
    assert best(p).scores.tolist() == [2.0]
    assert marginals(p).log_z.tolist() == [pytest.approx(np.log(np.exp(2.0) + 3))]


def test_arrays_are_held():
    score = np.array([1.0])
    changes = StepChanges([0, 0, 1], np.array([0]), np.array([1]), score)
    score[0] = 5.0
    assert changes.score.tolist() == [1.0] and not changes.score.flags.writeable
    assert (changes.source.dtype, changes.position.tolist()) == (np.int32, [1])


NODE, TRANS = np.zeros((2, 2)), np.zeros((2, 2))


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        (
            ([0, 0, 1], [0], [1], [np.nan]),
            r"from label 0 to label 1 into position 1 of sample 0 is",
        ),
        (([0, 0, 1], [0], [1], [np.inf]), r"scores must be finite, or -inf to forbid"),
        (([0, 0, 1], [0], [2], [1.0]), r"there are changes of label 2, but 2 labels"),
        (([0, 1], [0], [1], [1.0]), r"there are changes of 1 positions, but 2 positions"),
        (([0, 0, 2], [0], [1], [1.0]), r"ptr end at 2; expected 1"),
        (([0, 0, 1], [-1], [1], [1.0]), r"source hold -1"),
        (([0, 0, 1], [0, 0], [1], [1.0]), r"source have shape \(2,\); expected \(1,\)"),
    ],
)
def test_changes_that_do_not_fit(arrays, message):
    with pytest.raises(DataError, match=message):
        ChainPotentials(NODE, TRANS, [0, 2], StepChanges(*arrays))


def test_tables_of_each_position_have_no_changes():
    changes = StepChanges([0, 0, 1], [0], [1], [1.0])
    with pytest.raises(DataError, match="differ from position to position have no changes"):
        ChainPotentials(NODE, np.zeros((2, 2, 2)), [0, 2], changes)
    with pytest.raises(DataError, match="changes are of type tuple; expected StepChanges"):
        ChainPotentials(NODE, TRANS, [0, 2], (1, 2))

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_experts_weighted_majority import problem

from trellis.errors import DataError
from trellis.experts import WeightedMajority
from trellis.experts.conversions import (
    Candidates,
    Suffixes,
    best_set,
    gamma,
    held_out_penalty,
    suffix_gammas,
)

losses_ = st.lists(st.floats(0, 1), min_size=1, max_size=40)


@given(losses_, st.floats(0.01, 0.9))
def test_suffix_gammas_are_gammas_of_suffixes(losses, delta):
    found = suffix_gammas(np.array(losses), delta)
    wanted = [gamma(np.array(losses[t:]), delta) for t in range(len(losses))]
    np.testing.assert_allclose(found, wanted, atol=1e-12)


@given(losses_)
def test_the_best_set_is_the_best(losses):
    losses = np.array(losses)
    sets = [range(t, len(losses)) for t in range(len(losses))] + [[0]]
    rounds, value, count = best_set(lambda n: sets, losses, 0.05)
    assert count == len(sets)
    assert value == pytest.approx(min(gamma(losses[list(s)], 0.05) for s in sets))
    assert value == pytest.approx(gamma(losses[rounds], 0.05))


def test_bad_collections_are_refused():
    for collection, message in (([], "no set"), ([[]], "between 0 and 2"), ([[3]], "got \\[3\\]")):
        with pytest.raises(DataError, match=message):
            best_set(collection, np.zeros(3), 0.05)
    said, gold, _ = problem(0)
    model = WeightedMajority(collection=[[0, 1]]).fit(said, gold)
    with pytest.raises(DataError, match="suffixes"):
        model.partial_fit(said, gold)


@pytest.mark.parametrize("tie", ["position", "label"])
def test_suffixes_given_as_sets_are_the_same_as_by_name(tie):
    said, gold, _ = problem(3, n=30, equal=False)
    named = WeightedMajority(tie=tie).fit(said, gold)
    given_ = WeightedMajority(tie=tie, collection=lambda n: [range(t, n) for t in range(n)])
    given_.fit(said, gold)
    np.testing.assert_array_equal(given_.rounds_, named.rounds_)
    np.testing.assert_allclose(given_.weights_, named.weights_)
    assert given_.gamma_ == pytest.approx(named.gamma_)
    assert named.gamma_ == pytest.approx(named.gammas().min())


def test_a_scattered_set_is_the_average_of_its_rounds():
    said, gold, _ = problem(4, n=20)
    chosen = [0, 3, 4, 9, 19]
    model = WeightedMajority(collection=[chosen]).fit(said, gold)
    single = [WeightedMajority(collection=[[t]]).fit(said, gold).weights_ for t in chosen]
    np.testing.assert_allclose(model.weights_, np.mean(single, axis=0))


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 1500), st.integers(0, 100))
def test_blocks_sum_what_was_added(n, seed):
    rng = np.random.default_rng(seed)
    tables = rng.random((n, 2, 2))
    suffixes = Suffixes()
    done = 0
    while done < n:
        step = min(n - done, suffixes.room(), int(rng.integers(1, 9)))
        suffixes.add(np.log(tables[done : done + step].sum(axis=0)), step)
        done += step
    assert suffixes.starts[0] == 0
    assert len(suffixes.starts) <= 257
    if n <= 256:
        assert list(suffixes.starts) == list(range(n))
    for start in suffixes.starts[:: max(1, len(suffixes.starts) // 5)]:
        wanted = tables[start:].mean(axis=0)
        np.testing.assert_allclose(np.exp(suffixes.log_average(start)), wanted)


@pytest.mark.parametrize("n", [5, 256, 257, 2000])
def test_candidates_keep_their_own_losses(n):
    rng = np.random.default_rng(0)
    losses = rng.random((n, n)) if n < 300 else None
    candidates = Candidates()
    done = 0
    while done < n:
        candidates.begin(np.full((1, 1), -float(done)))
        step = min(n - done, candidates.room())
        rows = candidates.starts
        if losses is None:
            added = np.full(len(rows), float(step))
        else:
            added = losses[rows, done : done + step].sum(axis=1)
        candidates.add(added, step)
        done += step
    assert [-table[0, 0] for table in candidates.tables] == list(candidates.starts)
    assert len(candidates.starts) <= 256
    if n <= 256:
        assert list(candidates.starts) == list(range(n))
    wanted = [
        (losses[t, t:].sum() if losses is not None else float(n - t)) for t in candidates.starts
    ]
    np.testing.assert_allclose(candidates.losses, wanted)


def test_cross_validation_takes_the_best_round_on_unseen_samples():
    said, gold, codes = problem(6, n=40)
    model = WeightedMajority("cross-validation", beta=0.8).fit(said, gold)
    wrong = (said.codes != codes[:, None]).reshape(40, 3, 3)
    values = []
    for t in range(40):
        weights = 0.8 ** wrong[:t].sum(axis=0)
        weights = weights / weights.sum(axis=1, keepdims=True)
        mean = (weights * wrong[t:]).sum(axis=(1, 2)).mean() / 3
        values.append((mean + held_out_penalty(np.array(40 - t), 40, 0.05), mean))
    assert model.rounds_.tolist() == [int(np.argmin([v[0] for v in values]))]
    assert model.gamma_ == pytest.approx(min(v[0] for v in values))
    assert model.expected_loss_ == pytest.approx(values[model.rounds_[0]][1])
    assert held_out_penalty(np.array(3), 4, 0.05) == pytest.approx(math.sqrt(math.log(400) / 8))

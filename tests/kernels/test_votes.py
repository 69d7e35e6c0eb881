"""Kernels of votes against sums that are taken one after the other."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from trellis.kernels.experts import add_vote, vote_slots
from trellis.kernels.votes import (
    add_first_votes,
    best_said,
    count_errors,
    count_said,
    most_voted,
    said_scores,
    stacked_features,
)

SEEDS = st.integers(0, 10**6)
N_LABELS = 4


def drawn(seed, n=25, p=5):
    """Answers, some of them missing, and positions where nobody or everybody says the same."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(-1, N_LABELS, (n, p)).astype(np.int32)
    codes[rng.random(n) < 0.1] = -1
    codes[rng.random(n) < 0.1] = 2
    return rng, codes


def votes_of(row, weights):
    """Votes of the labels said, added in the order of the experts."""
    votes = {}
    for code, weight in zip(row.tolist(), weights.tolist(), strict=True):
        if code >= 0:
            votes[code] = votes.get(code, 0.0) + weight
    return votes


@settings(max_examples=30, deadline=None)
@given(SEEDS, st.booleans(), st.booleans())
def test_most_voted(seed, by_position, shuffled):
    rng, codes = drawn(seed)
    n, p = codes.shape
    weights = rng.integers(0, 3, (n if by_position else 1, p)) / 7
    order = rng.permutation(p) if shuffled else np.arange(p)
    found = np.empty(n, np.int32)
    most_voted(codes, weights, order, N_LABELS, 1e-12, found)
    for t in range(n):
        row, weight = codes[t, order], np.broadcast_to(weights, (n, p))[t, order]
        votes = votes_of(row, weight)
        if sum(votes.values()) == 0:
            votes = votes_of(row, np.ones(p))
        top = max(votes.values(), default=0)
        tied = {code for code, count in votes.items() if np.isclose(count, top)}
        assert found[t] == next((code for code in row.tolist() if code in tied), -1)


@settings(max_examples=30, deadline=None)
@given(SEEDS, st.booleans())
def test_scores_of_what_is_said(seed, equal):
    rng, codes = drawn(seed)
    n, p = codes.shape
    table = np.ones((N_LABELS, p)) if equal else rng.normal(size=(N_LABELS, p))
    plain, wins = rng.integers(-1, N_LABELS, n).astype(np.int32), 0.5
    ends = np.empty(n + 1, np.int64)
    count_said(codes, N_LABELS, ends)
    label, scores = np.empty(ends[-1], np.int64), np.empty(ends[-1])
    said_scores(codes, table, plain, wins, ends, label, scores)
    answer = np.empty(n, np.int32)
    best_said(codes, table, plain, wins, 1e-12, answer)
    for t, row in enumerate(codes):
        own = np.array([table[code, j] for j, code in enumerate(row)])
        wanted = {
            code: votes + (wins if code == plain[t] else 0.0)
            for code, votes in sorted(votes_of(row, own).items())
        }
        here = slice(ends[t], ends[t + 1])
        assert label[here].tolist() == list(wanted)
        assert scores[here].tolist() == list(wanted.values())  # the same bits
        assert answer[t] == max(wanted, key=wanted.__getitem__, default=-1)


@settings(max_examples=25, deadline=None)
@given(SEEDS)
def test_errors_are_counted(seed):
    rng, codes = drawn(seed)
    truth = rng.integers(0, N_LABELS, len(codes)).astype(np.int32)
    offsets = np.array([0, 4, 5, len(codes)])
    errors = np.zeros((3, codes.shape[1]))
    count_errors(codes, truth, offsets, errors)
    wrong = np.where(codes < 0, 0.5, codes != truth[:, None])
    assert np.array_equal(errors, np.add.reduceat(wrong, offsets[:-1], axis=0))


@settings(max_examples=25, deadline=None)
@given(SEEDS, st.integers(1, 3))
def test_first_votes_are_those_added_one_by_one(seed, times):
    rng, codes = drawn(seed)
    n, p = codes.shape
    gold = rng.integers(0, N_LABELS, n).astype(np.int32)
    slots, right = np.empty((n, p), np.int16), np.empty(n, np.int16)
    n, width, _ = vote_slots(codes, gold, slots, right, np.empty(n, np.uint64))
    slots, right, ones = slots[:n], right[:n], np.ones(n, np.int64)

    def blank():
        votes = np.zeros((n, max(1, width)), np.int32)
        none = np.iinfo(np.int32).max
        return votes, np.full(votes.shape, none, np.int32), np.full(n, -1, np.int16)

    wanted, found = blank(), blank()
    gained, lost = np.zeros(p, np.int64), np.zeros(p, np.int64)
    for k in range(times * p):
        add_vote(slots, right, ones, k % p, k, *wanted, gained, lost)
    add_first_votes(slots, times, *found)
    for a, b in zip(wanted, found, strict=True):
        assert np.array_equal(a, b)


@settings(max_examples=25, deadline=None)
@given(SEEDS, st.integers(0, 3))
def test_features_of_a_window(seed, window):
    _, codes = drawn(seed, n=9, p=3)
    offsets, n_said, p = np.array([0, 1, 4, 9]), N_LABELS + 1, 3
    width = 2 * window + 1
    indptr, ids = np.empty(10, np.int64), np.empty(codes.size * width, np.int32)
    n = stacked_features(offsets, codes, window, n_said, indptr, ids)
    assert n == indptr[-1]
    for s in range(3):
        for t in range(offsets[s], offsets[s + 1]):
            wanted = []
            for k in range(-window, window + 1):
                inside = offsets[s] <= t + k < offsets[s + 1]
                for j in range(p):
                    code = codes[t + k, j] if inside else n_said - 1
                    if code >= 0:
                        wanted.append(((k + window) * p + j) * n_said + code)
            assert ids[indptr[t] : indptr[t + 1]].tolist() == wanted

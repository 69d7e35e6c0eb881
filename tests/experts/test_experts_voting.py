import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from trellis.experts import voting


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6))
def test_votes_are_counted(seed):
    rng = np.random.default_rng(seed)
    codes = rng.integers(-1, 3, (20, 4)).astype(np.int32)
    weights = rng.integers(0, 3, 4).astype(float) / 7
    found = voting.vote(codes, weights, 3)
    for t, row in enumerate(codes):
        counts = np.array([weights[row == c].sum() for c in range(3)])
        if counts.max() == 0:  # no weight at all: an unweighted vote
            counts = np.array([(row == c).sum() for c in range(3)])
        best = np.flatnonzero(np.isclose(counts, counts.max()) & (counts > 0))
        wanted = next((c for c in row if c in best), -1)
        assert found[t] == wanted


def test_parts_make_no_difference(monkeypatch):
    rng = np.random.default_rng(0)
    codes = rng.integers(-1, 5, (300, 6)).astype(np.int32)
    weights = rng.random((300, 6))
    whole = voting.vote(codes, weights, 5)
    monkeypatch.setattr(voting, "_CELLS", 70)
    np.testing.assert_array_equal(voting.vote(codes, weights, 5), whole)

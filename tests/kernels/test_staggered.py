"""The search over few of many labels: against the plain one, and with bounds that hold."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trellis.kernels import chain_max
from trellis.kernels.chain_max import _viterbi, pruned_viterbi, viterbi
from trellis.kernels.staggered import staggered_viterbi
from trellis.kernels.step_changes import none


@st.composite
def chains(draw):
    """Scores with ties, with forbidden labels and transitions, sharp or not, in both types."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_labels = draw(st.integers(1, 30))
    offsets = np.concatenate([[0], np.cumsum(rng.integers(0, 8, size=4))]).astype(np.int64)
    kind = draw(st.sampled_from([np.float32, np.float64]))
    if draw(st.booleans()):
        node = rng.integers(-2, 3, size=(offsets[-1], n_labels)).astype(kind)
        trans = rng.integers(-1, 2, size=(n_labels, n_labels)).astype(kind)
    else:
        scale = draw(st.sampled_from([0.0, 1.0, 5.0, 1e6]))
        node = (scale * rng.normal(size=(offsets[-1], n_labels))).astype(kind)
        trans = rng.normal(size=(n_labels, n_labels)).astype(kind)
    if draw(st.booleans()):
        node[rng.random(node.shape) < 0.4] = -np.inf
        trans[rng.random(trans.shape) < 0.3] = -np.inf
    return node, trans, offsets


@given(chains(), st.integers(0, 6))
def test_what_is_found_is_the_best(chain, k):
    node, trans, offsets = chain
    labels, scores = _viterbi(node, trans[None], offsets, none(trans))
    found, value, bound = staggered_viterbi(node, trans, offsets, k, True)
    for s in range(len(scores)):
        rows = slice(offsets[s], offsets[s + 1])
        if bound[s] == np.inf:  # given up
            assert (found[rows] == -1).all() and value[s] == -np.inf
        else:
            assert value[s] == scores[s] == bound[s]
            assert (found[rows] == labels[rows]).all()


@given(chains(), st.integers(1, 30))
def test_pruned_labellings_are_bounded(chain, k):
    node, trans, offsets = chain
    labels, scores = _viterbi(node, trans[None], offsets, none(trans))
    found, value, bound = pruned_viterbi(node, trans, offsets, k)
    assert (value <= scores).all() and (bound >= scores).all()
    for s in range(len(scores)):
        rows = slice(offsets[s], offsets[s + 1])
        y = found[rows]
        if value[s] == -np.inf:
            assert scores[s] == -np.inf and (y == -1).all()
            continue
        own = node[rows].astype(float)[np.arange(len(y)), y].sum()
        assert value[s] == pytest.approx(own + trans.astype(float)[y[:-1], y[1:]].sum())
        if value[s] == bound[s]:
            assert (y == labels[rows]).all()


def test_with_many_labels_the_best_is_found_in_either_way(monkeypatch):
    """Sharp scores are searched among few labels, flat ones are given up and searched fully."""
    rng = np.random.default_rng(0)
    offsets = np.arange(0, 201, 10)
    trans = rng.normal(size=(450, 450)).astype(np.float32)
    node = rng.normal(size=(200, 450)).astype(np.float32)
    node[:100] *= 30
    plain = _viterbi(node, trans[None], offsets, none(trans))
    bounds = staggered_viterbi(node, trans, offsets, 0, True)[2]
    assert np.isfinite(bounds[:10]).all() and not np.isfinite(bounds[10:]).any()
    for room in (1 << 23, 100):  # a sample of more scores is searched fully
        monkeypatch.setattr(chain_max, "_ROOM", room)
        for found, wanted in zip(viterbi(node, trans, offsets), plain, strict=True):
            assert (found == wanted).all()

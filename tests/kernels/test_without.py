"""Answers without one expert against answers of the others alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trellis.experts import AnnotatorModel, ExpertOutputs
from trellis.experts.guarded import _votes_without
from trellis.experts.voting import vote

SEEDS = st.integers(0, 10**6)


def drawn(seed):
    rng = np.random.default_rng(seed)
    p = int(rng.integers(1, 7))
    codes = rng.integers(-1, 3, (40, p)).astype(np.int32)
    codes[rng.random(40) < 0.2] = 1
    names = tuple(f"expert {j}" for j in range(p))
    return ExpertOutputs(np.arange(0, 41, 4), codes, ("a", "b", "c"), names)


def silenced(outputs, j):
    codes = np.array(outputs.codes)
    codes[:, j] = -1
    return replace(outputs, codes=codes)


@settings(max_examples=30, deadline=None)
@given(SEEDS)
def test_votes_of_the_others(seed):
    outputs = drawn(seed)
    for j, found in enumerate(_votes_without(outputs)):
        wanted = vote(silenced(outputs, j).codes, np.ones(outputs.n_experts), 3)
        assert np.array_equal(found, wanted)


@pytest.mark.parametrize("model", ["one-coin", "mace", "dawid-skene"])
@settings(max_examples=25, deadline=None)
@given(seed=SEEDS)
def test_models_asked_about_the_others(model, seed):
    outputs = drawn(seed)
    fitted = AnnotatorModel(model, max_iter=5).fit(outputs)
    for j, found in enumerate(fitted.answers_without(outputs)):
        others = silenced(outputs, j)
        wanted = fitted.codes_of(others)
        # A matrix has an answer where nobody speaks, too: the most frequent label.
        spoken = (others.codes >= 0).any(axis=1) | (model != "dawid-skene")
        assert np.array_equal(found[spoken], wanted[spoken])

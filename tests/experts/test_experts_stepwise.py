"""SLE: greedy selection against a plain implementation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trellis.errors import DataError
from trellis.experts import ForwardStepwise, as_gold, as_outputs

label = st.sampled_from("abc")


@st.composite
def problems(draw):
    lengths = draw(st.lists(st.integers(1, 3), min_size=1, max_size=4))
    p = draw(st.integers(1, 4))
    gold = [draw(st.lists(label, min_size=n, max_size=n)) for n in lengths]
    outputs = []
    for _ in range(p):
        said = [draw(st.lists(st.none() | label, min_size=n, max_size=n)) for n in lengths]
        outputs.append(said)
    return outputs, gold


def answer(codes, added):
    """Vote at one position; ties to the label that was voted for first."""
    votes = {}
    for j in added:
        if codes[j] >= 0:
            votes[codes[j]] = votes.get(codes[j], 0) + 1
    return max(votes, key=votes.__getitem__) if votes else -1  # dicts keep the order


@settings(max_examples=80)
@given(problems(), st.integers(0, 3))
def test_every_addition_is_a_best_one(problem, seed):
    outputs, gold = problem
    sle = ForwardStepwise(n_rounds=6, random_state=seed).fit(outputs, gold)
    right, said = as_gold(gold, as_outputs(outputs))
    added = []
    for name, error in zip(sle.path_, sle.errors_, strict=True):
        wrong = [
            sum(answer(codes, [*added, j]) != y for codes, y in zip(said.codes, right, strict=True))
            for j in range(said.n_experts)
        ]
        j = said.names.index(name)
        assert wrong[j] == min(wrong)
        assert error == min(wrong) / len(right)
        added.append(j)
    counts = np.bincount(added, minlength=said.n_experts)
    assert np.allclose(sle.weights_, counts / 6)
    silent = (said.codes[:, np.unique(added)] < 0).all(axis=1)
    found = [y for sample in sle.predict(outputs) for y in sample]
    for codes, y, skip in zip(said.codes, found, silent, strict=True):
        if not skip:
            assert said.labels[answer(codes, added)] == y


def test_ties_of_selection_are_drawn():
    outputs, gold = [[["a"]], [["a"]], [["b"]]], [["a"]]
    firsts = {
        ForwardStepwise(n_rounds=1, random_state=seed).fit(outputs, gold).path_[0]
        for seed in range(20)
    }
    assert firsts == {"expert 1", "expert 2"}
    again = [ForwardStepwise(random_state=5).fit(outputs, gold).path_ for _ in range(2)]
    assert again[0] == again[1]
    assert len(again[0]) == 100


def test_pairs_of_labels_and_viterbi():
    gold = [["a", "b", "a"], ["b", "a", "b"]]
    outputs = [
        [["a", "b", "b"], ["b", "a", "b"]],
        [["a", "a", "a"], ["b", "b", "b"]],
        [["b", "b", "a"], ["b", "a", None]],
    ]
    sle = ForwardStepwise(n_rounds=4, pairs=True, random_state=0).fit(outputs, gold)
    predicted = sle.predict(outputs)
    wrong = sum(
        y != z for a, b in zip(predicted, gold, strict=True) for y, z in zip(a, b, strict=True)
    )
    assert wrong / 6 == pytest.approx(sle.errors_[-1])
    assert sle.predict([[[None]], [[None]], [["b"]]]) == [["b"]]


def test_pair_votes_keep_neighbours_together():
    # Three experts, one vote each: by position a wins twice, but a is never followed by a.
    outputs = [[["a", "b"]], [["b", "a"]], [["a", "b"]]]
    sle = ForwardStepwise(n_rounds=3, pairs=True, random_state=0)
    sle.fit(outputs, [["a", "b"]])
    assert sle.predict(outputs) == [["a", "b"]]


@pytest.mark.parametrize("n_rounds", [0, 2.5, True])
def test_bad_options(n_rounds):
    with pytest.raises(DataError, match="n_rounds must be a positive integer, got"):
        ForwardStepwise(n_rounds=n_rounds).fit([[["a"]]], [["a"]])

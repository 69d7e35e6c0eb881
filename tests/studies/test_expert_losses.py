"""Losses against hand counts and the evaluation's own."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from studies.ensembles.losses import additive_loss, expert_losses, mean_edit_distance
from trellis.errors import DataError
from trellis.evaluation import hamming_loss

samples = st.lists(
    st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("abc")), min_size=1, max_size=3),
    min_size=1,
    max_size=4,
)


@given(samples)
def test_hamming(pairs):
    gold = [[y for y, _ in sample] for sample in pairs]
    said = [[z for _, z in sample] for sample in pairs]
    wanted = hamming_loss(gold, said, average="sample")
    assert additive_loss(gold, said) == pytest.approx(wanted)
    assert additive_loss(gold, said, lambda y, z: float(y != z)) == pytest.approx(wanted)
    assert expert_losses([said], gold)[0] == pytest.approx(wanted)


def test_losses_of_sleepers():
    gold = [["a", "b"], ["a"]]
    outputs = [[["b", None], None], [["a", "a"], ["a"]], [["a", None], ["b"]]]
    assert expert_losses(outputs, gold).tolist() == [1.0, 0.25, 0.5]
    assert np.isnan(expert_losses([[None, None], gold], gold)[0])
    assert expert_losses(outputs, gold, lambda y, z: 2.0 * (y < z)).tolist() == [2.0, 0.0, 1.0]


def test_edit_distance():
    assert mean_edit_distance([["a", "b"], []], [["b"], ["c"]]) == 1.0


def test_empty_samples_have_no_loss():
    assert additive_loss([["a"], []], [["b"], []]) == 0.5


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda: additive_loss([["a"]], [["a"]], "edit"), "loss is 'edit'"),
        (lambda: additive_loss([["a"]], [["b"]], lambda y, z: -1.0), "finite number of at least 0"),
        (lambda: additive_loss([["a"]], [["a", "b"]]), "1 positions in gold but 2"),
        (lambda: expert_losses([[]], []), "no samples to judge"),
        (lambda: mean_edit_distance([["a"]], []), "1 samples in gold but 0"),
    ],
)
def test_bad_input(call, expected):
    with pytest.raises(DataError, match=expected):
        call()

"""Similarity by its definition, reliabilities as the fixed point of theirs, orders."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trellis.evaluation import normalised_edit_distance, sentence_gleu
from trellis.experts.agreement import (
    Measure,
    agreement_order,
    closest_first,
    coded,
    reliabilities,
)

ANSWER = st.lists(st.sampled_from("abc"), max_size=5)


@st.composite
def crowds(draw):
    """Answers of up to five experts to up to four samples, each answered by somebody."""
    p, n = draw(st.integers(1, 5)), draw(st.integers(1, 4))
    said = [[draw(st.none() | ANSWER) for _ in range(n)] for _ in range(p)]
    for i in range(n):
        if all(column[i] is None for column in said):
            said[draw(st.integers(0, p - 1))][i] = draw(ANSWER)
    return said


def similar(a, b, kind, longest):
    values = {"overlap": sentence_gleu(a, b, longest), "edit": 1 - normalised_edit_distance(a, b)}
    return values[kind] if kind in values else sum(values.values()) / 2


@given(crowds(), st.sampled_from(["overlap", "edit", "both"]), st.integers(1, 5))
def test_similarity(said, kind, longest):
    for i in range(len(said[0])):
        sample = coded(said, i)
        there = [(j, column[i]) for j, column in enumerate(said) if column[i] is not None]
        assert sample.experts.tolist() == [j for j, _ in there]
        found = Measure(kind, longest).among(sample)
        expected = [[similar(a, b, kind, longest) for _, b in there] for _, a in there]
        assert found == pytest.approx(np.array(expected))


def by_definition(said, shrinkage, reliable):
    """One round of the iteration, written out."""
    p, n = len(said), len(said[0])
    sums, number, every = np.zeros(p), np.zeros(p), []
    for i in range(n):
        there = [j for j in range(p) if said[j][i] is not None]
        for j in there:
            others = [k for k in there if k != j]
            if others:
                weights = np.array([max(reliable[k], 1e-12) for k in others])
                values = [similar(said[j][i], said[k][i], "edit", 1) for k in others]
                every.append(weights @ values / weights.sum())
                sums[j] += every[-1]
                number[j] += 1
    mean = np.mean(every) if every else 1.0
    weight = number + shrinkage
    return np.where(weight > 0, (sums + shrinkage * mean) / np.maximum(weight, 1e-12), mean), number


@given(crowds(), st.sampled_from([0.0, 1.0, 10.0]))
def test_reliabilities_without_gold(said, shrinkage):
    samples = [coded(said, i) for i in range(len(said[0]))]
    alike = [Measure("edit").among(sample) for sample in samples]
    found, number = reliabilities(samples, alike, len(said), shrinkage)
    expected = np.ones(len(said))
    _, counts = by_definition(said, shrinkage, expected)
    assert number.tolist() == counts.tolist()
    for _ in range(50 if counts.any() else 0):
        expected, _ = by_definition(said, shrinkage, expected)
    assert found == pytest.approx(expected, abs=1e-6)
    assert (found >= 0).all()
    assert (found <= 1 + 1e-12).all()


def test_gold_outweighs_agreement():
    """Two agree with each other, the third with the right answers."""
    said = [[list("abc")] * 20, [list("abc")] * 20, [list("xyz")] * 20]
    samples = [coded(said, i) for i in range(20)]
    alike = [Measure("edit").among(sample) for sample in samples]
    without, _ = reliabilities(samples, alike, 3, 1.0)
    assert without[0] == without[1] > without[2]
    right = [np.array([0.0, 0.0, 1.0])] * 20
    found, number = reliabilities(samples, alike, 3, 1.0, right)
    prior = np.clip(without * (1 / 3) / without.mean(), 0, 1)
    assert found == pytest.approx((np.array([0, 0, 20]) + prior) / 21)
    assert number.tolist() == [20, 20, 20]
    # Gold for one sample moves them by a step of 1 / (1 + λ).
    one, _ = reliabilities(samples, alike, 3, 9.0, [right[0], *[None] * 19])
    assert (one[2] > without[2]) & (one[0] < without[0])


def test_little_is_shrunk_towards_the_mean():
    said = [[list("ab")] * 9, [list("ab")] * 9, [list("ab"), *[None] * 8], [list("xy")] * 9]
    samples = [coded(said, i) for i in range(9)]
    alike = [Measure("edit").among(sample) for sample in samples]
    plain, _ = reliabilities(samples, alike, 4, 0.0)
    shrunk, _ = reliabilities(samples, alike, 4, 5.0)
    assert plain[2] > plain[0]  # of whose nine samples in eight every second other is wrong
    assert shrunk[2] < shrunk[0]


def test_orders():
    said = [[list("xyz"), list("b")], [list("abd"), None], [list("abc"), list("bc")], [None, None]]
    assert agreement_order(said)[-1] == 3
    assert closest_first(said).tolist() == [[1, 2, 0, 3], [0, 2, 1, 3]]


@given(crowds())
def test_the_medoid_comes_first(said):
    order = closest_first(said)
    for i, row in enumerate(order.tolist()):
        assert sorted(row) == list(range(len(said)))
        there = [j for j in row if said[j][i] is not None]
        assert all(said[j][i] is None for j in row[len(there) :])
        total = {
            j: sum(normalised_edit_distance(said[j][i], said[k][i]) for k in there) for j in there
        }
        assert total[row[0]] == pytest.approx(min(total.values()))
        from_it = [normalised_edit_distance(said[row[0]][i], said[j][i]) for j in there]
        assert from_it == sorted(from_it)

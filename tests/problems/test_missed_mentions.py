"""Estimates from positive and unlabelled examples."""

from __future__ import annotations

import numpy as np
import pytest

from trellis.problems.missed_mentions import missed_by_type, missed_chances, share_marked


def drawn(share, n=20_000, seed=0, sharpness=4.0):
    """Positions with a chance each, of whose mentions a share is marked."""
    rng = np.random.default_rng(seed)
    chances = 1 / (1 + np.exp(-sharpness * rng.normal(-1, 1.2, n)))
    mention = rng.random(n) < chances
    return mention, mention & (rng.random(n) < share), chances


@pytest.mark.parametrize("share", [0.1, 0.25, 0.5, 0.75, 1.0])
def test_the_share_marked_is_found(share):
    _, marked, chances = drawn(share)
    assert share_marked(marked, chances) == pytest.approx(share, abs=0.05)


@pytest.mark.parametrize("share", [0.25, 0.5, 0.75])
def test_only_the_order_of_chances_counts(share):
    _, marked, chances = drawn(share, n=2000)
    squeezed = 1e-6 * chances**3
    assert share_marked(marked, squeezed) == share_marked(marked, chances)
    np.testing.assert_allclose(missed_chances(marked, squeezed), missed_chances(marked, chances))


@pytest.mark.parametrize("share", [0.25, 0.5, 0.75])
def test_chances_of_missed_mentions_are_calibrated(share):
    mention, marked, chances = drawn(share)
    missed = missed_chances(marked, chances)
    assert not missed[marked].any()
    for low, high in ((0.02, 0.1), (0.3, 0.7)):
        there = ~marked & (missed > low) & (missed <= high)
        assert there.sum() > 50
        assert mention[there].mean() == pytest.approx(missed[there].mean(), abs=0.12)


def test_nothing_is_missed_where_all_is_marked():
    mention, marked, chances = drawn(1.0, sharpness=20.0)
    assert missed_chances(marked, chances)[~mention].mean() < 0.02


def test_without_marks_nothing_is_missed():
    assert not missed_chances(np.zeros(3, bool), np.array([0.1, 0.5, 0.9])).any()


def test_equal_chances_are_one_point():
    marked = np.array([True, False, True, False])
    missed = missed_chances(marked, np.full(4, 0.3))
    assert missed[1] == missed[3]


def test_a_type_that_is_seldom_marked_is_judged_by_itself():
    often, marks_often, q_often = drawn(0.8, seed=1)
    seldom, marks_seldom, q_seldom = drawn(0.1, seed=2)
    zero = np.zeros_like(q_often)
    chances = np.stack([np.append(q_often, zero), np.append(zero, q_seldom * 0.1)], axis=1)
    types = np.append(np.where(marks_often, 0, -1), np.where(marks_seldom, 1, -1))
    missed = missed_by_type(types, chances)
    together = missed_chances(types >= 0, chances.sum(axis=1))
    there = np.append(np.zeros(len(often), bool), seldom & ~marks_seldom)
    assert missed[there].mean() > 0.6 > 0.3 > together[there].mean()


def test_types_alike_are_judged_together():
    _, marks, q = drawn(0.5, n=4000)
    half = np.arange(4000) % 2 == 0
    types = np.where(marks, np.where(half, 0, 1), -1)
    chances = np.stack([q * half, q * ~half], axis=1)
    np.testing.assert_array_equal(missed_by_type(types, chances), missed_chances(marks, q))

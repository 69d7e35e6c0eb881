"""The mean of all assignments against enumeration; what is not counted against what is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_assignment import enumerate_assignments, problems

from trellis.errors import DataError, InfeasibleError
from trellis.structures import AssignmentSpace, mean_assignment


def listed(space: AssignmentSpace, tables: Any, fixed: Any) -> list[Any]:
    """The assignments of each sample that have the fixed variables."""
    left = []
    for s, table in enumerate(tables):
        f = fixed[space.offsets[s] : space.offsets[s + 1]]
        left.append(table[(table == (f == 1))[:, f >= 0].all(1)])
    return left


@given(problems(), st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.1, 0.4]))
def test_shares_and_counts_agree_with_enumeration(problem: Any, seed: int, known: float) -> None:
    space, _, tables = problem
    rng = np.random.default_rng(seed)
    fixed = np.where(rng.random(len(space)) < known, rng.random(len(space)) < 0.3, -1)
    left = listed(space, tables, fixed)
    if any(len(table) == 0 for table in left):
        with pytest.raises(InfeasibleError, match="covers every row once") as caught:
            mean_assignment(space, fixed)
        assert len(left[caught.value.sample]) == 0
        return
    found = mean_assignment(space, fixed)
    assert found.exact.all()
    np.testing.assert_allclose(
        found.shares, np.concatenate([table.mean(0) for table in left]), atol=1e-12
    )
    np.testing.assert_allclose(found.log_counts, [np.log(len(table)) for table in left], atol=1e-9)


@given(problems(), st.sampled_from([0.0, 0.2]), st.sampled_from([0, 4, 100]))
def test_belief_propagation_finds_what_has_none_and_stays_in_the_polytope(
    problem: Any, known: float, windows: int
) -> None:
    space, scores, tables = problem
    fixed = np.where(np.abs(scores) < known, 0, -1)
    left = listed(space, tables, fixed)
    if any(len(table) == 0 for table in left):
        with pytest.raises(InfeasibleError):
            mean_assignment(space, fixed, entries=0, windows=windows)
        return
    found = mean_assignment(space, fixed, entries=0, windows=windows)
    assert ((found.shares >= 0) & (found.shares <= 1 + 1e-12)).all()
    assert (found.shares[fixed == 0] == 0).all()
    for s in np.flatnonzero(found.exact):  # what is known left no choice
        own = found.shares[space.offsets[s] : space.offsets[s + 1]]
        np.testing.assert_array_equal(own, left[s].mean(0))


def pairs_and_triples(rng: Any, n: int, reach: float) -> AssignmentSpace:
    """Two frames of n objects: moves, a few divisions, appearing and disappearing."""
    a = rng.random((n, 2))
    b = a + 0.1 * rng.normal(size=a.shape)
    near = [np.argsort(((b - one) ** 2).sum(1))[:4] for one in a]
    near = [j[((b[j] - one) ** 2).sum(1) < reach**2] for one, j in zip(a, near, strict=True)]
    sets = [(i, n + int(j), -1) for i in range(n) for j in near[i]]
    sets += [(i, n + int(j[0]), n + int(j[1])) for i, j in enumerate(near) if len(j) > 1]
    sets += [(i, -1, -1) for i in range(2 * n)]
    return AssignmentSpace(sets, [0, len(sets)], [0, 2 * n])


def test_windows_are_much_closer_than_belief_propagation() -> None:
    errors: dict[int, list[float]] = {0: [], 2**8: [], 2**12: []}
    for seed in range(10):
        space = pairs_and_triples(np.random.default_rng(seed), 40, 0.3)
        exact = mean_assignment(space)
        assert exact.exact.all()
        for windows, found in errors.items():
            near = mean_assignment(space, entries=0, windows=windows)
            assert not near.exact.any()
            assert near.log_counts[0] == pytest.approx(exact.log_counts[0], rel=0.1)
            found.append(np.abs(near.shares - exact.shares).mean())
            sums = np.zeros(80)
            for k in range(3):
                used = space.covers[:, k] >= 0
                np.add.at(sums, space.covers[used, k], near.shares[used])
            np.testing.assert_allclose(sums, 1.0, atol=0.1 if windows else 1e-6)
    alone, narrow, wide = (np.mean(found) for found in errors.values())
    assert alone < 0.02
    assert narrow < alone / 2
    assert wide < alone / 50


def test_a_tree_is_exact_by_belief_propagation() -> None:
    # A row of objects each of which may be joined to the next: Fibonacci numbers.
    n = 12
    sets = [(j, j + 1, -1) for j in range(n - 1)] + [(j, -1, -1) for j in range(n)]
    space = AssignmentSpace(sets, [0, len(sets)], [0, n])
    table = enumerate_assignments(space.covers, n)
    assert len(table) == 233
    for entries, windows in ((2**20, 0), (0, 0), (0, 8)):
        found = mean_assignment(space, entries=entries, windows=windows)
        np.testing.assert_allclose(found.shares, table.mean(0), atol=1e-8)
        assert found.log_counts[0] == pytest.approx(np.log(233))


def test_small_components_are_exact_in_one_window() -> None:
    space = pairs_and_triples(np.random.default_rng(0), 6, 0.6)
    near = mean_assignment(space, entries=0)
    np.testing.assert_allclose(near.shares, mean_assignment(space).shares, atol=1e-12)


def test_long_components_have_counts_beyond_floats() -> None:
    n = 4000
    sets = [(j, j + 1, -1) for j in range(n - 1)] + [(j, -1, -1) for j in range(n)]
    found = mean_assignment(AssignmentSpace(sets, [0, len(sets)], [0, n]))
    golden = (1 + np.sqrt(5)) / 2
    assert found.exact.all()
    assert found.log_counts[0] == pytest.approx((n + 1) * np.log(golden) - np.log(5) / 2)


def test_nothing_and_what_is_refused() -> None:
    nothing = mean_assignment(AssignmentSpace(np.zeros((0, 3), int), [0], [0]))
    assert nothing.shares.shape == nothing.log_counts.shape == (0,)
    empty = mean_assignment(AssignmentSpace(np.zeros((0, 3), int), [0, 0], [0, 0]))
    assert empty.log_counts.tolist() == [0.0] and empty.exact.all()
    space = AssignmentSpace([[0, 1, -1], [0, -1, -1], [1, -1, -1]], [0, 3], [0, 2])
    with pytest.raises(InfeasibleError, match="sample 0"):
        mean_assignment(space, [1, 1, -1])
    with pytest.raises(DataError, match="fixed"):
        mean_assignment(space, [1, 1])

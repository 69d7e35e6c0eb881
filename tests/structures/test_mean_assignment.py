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


# ------------------------------------------------------------------------------- with scores


def weighed(space: AssignmentSpace, left: Any, scores: Any) -> tuple[Any, Any]:
    """Probabilities and log Z of the listed assignments; None where there is none."""
    shares, logs = [], []
    for s, table in enumerate(left):
        own = np.where(table, scores[space.offsets[s] : space.offsets[s + 1]], 0.0).sum(1)
        if not len(table) or np.isneginf(own).all():
            return None, s
        logs.append(np.logaddexp.reduce(own))
        shares.append(np.exp(own - logs[-1]) @ table)
    return np.concatenate(shares), np.array(logs)


SCALES = st.sampled_from([0.0, 1e-3, 0.1, 1.0, 30.0, 1e3])


@given(
    problems(), SCALES, st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.2]),
    st.sampled_from([0.0, 0.2]),
)  # fmt: skip
def test_probabilities_agree_with_enumeration(
    problem: Any, scale: float, seed: int, known: float, forbidden: float
) -> None:
    space, scores, tables = problem
    rng = np.random.default_rng(seed)
    fixed = np.where(rng.random(len(space)) < known, rng.random(len(space)) < 0.3, -1)
    scores = np.where(np.isneginf(scores), scores, scale * scores)
    scores[(rng.random(len(space)) < forbidden) & (fixed != 1)] = -np.inf
    scores[np.isneginf(scores) & (fixed == 1)] = 0.0  # what is fixed must be allowed
    shares, logs = weighed(space, listed(space, tables, fixed), scores)
    if shares is None:
        with pytest.raises(InfeasibleError, match="covers every row once"):
            mean_assignment(space, fixed, scores)
        return
    found = mean_assignment(space, fixed, scores, reach=np.inf)
    assert found.exact.all()
    np.testing.assert_allclose(found.shares, shares, atol=1e-9)
    np.testing.assert_allclose(found.log_counts, logs, rtol=1e-9, atol=1e-9)
    # What is left out is at most so probable, for each of the assignments.
    n = max(map(len, tables))
    near = mean_assignment(space, fixed, scores, reach=12.0)
    np.testing.assert_allclose(near.shares, shares, atol=n * np.exp(-12.0))
    np.testing.assert_allclose(near.log_counts, logs, rtol=1e-9, atol=2 * n * np.exp(-12.0))


@given(problems(), st.sampled_from([0.1, 1.0, 3.0]))
def test_probabilities_are_the_slope_of_the_log_partition_function(
    problem: Any, scale: float
) -> None:
    space, scores, tables = problem
    scores = np.where(np.isneginf(scores), -1.0, scale * scores)
    if any(not len(table) for table in tables):
        return
    shares = mean_assignment(space, None, scores, reach=np.inf).shares
    for h in range(0, len(space), 3):
        ends = []
        for step in (1e-4, -1e-4):
            moved = scores.copy()
            moved[h] += step
            ends.append(mean_assignment(space, None, moved, reach=np.inf).log_counts.sum())
        assert (ends[0] - ends[1]) / 2e-4 == pytest.approx(shares[h], abs=1e-6)


def test_without_differences_scores_count_all_alike() -> None:
    space = pairs_and_triples(np.random.default_rng(3), 20, 0.3)
    alike = mean_assignment(space)
    weighed = mean_assignment(space, None, np.zeros(len(space)))
    np.testing.assert_allclose(weighed.shares, alike.shares, atol=1e-9)
    np.testing.assert_allclose(weighed.log_counts, alike.log_counts)


@pytest.mark.parametrize("scale", [0.3, 1.0, 3.0])
def test_windows_of_scores_are_near_the_exact(scale: float) -> None:
    alone, near = [], []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        space = pairs_and_triples(rng, 40, 0.3)
        scores = scale * rng.normal(size=len(space))
        exact = mean_assignment(space, None, scores, entries=2**20, reach=np.inf)
        assert exact.exact.all()
        for windows, errors in ((0, alone), (2**12, near)):
            found = mean_assignment(space, None, scores, entries=0, windows=windows, reach=np.inf)
            assert not found.exact.all()
            assert found.log_counts[0] == pytest.approx(exact.log_counts[0], rel=0.1)
            errors.append(np.abs(found.shares - exact.shares).mean())
    assert np.mean(alone) < 0.02
    assert np.mean(near) < np.mean(alone) / 10


def test_a_movie_as_one_sample_is_what_its_parts_are() -> None:
    """Components are found within a sample: parts that share no row, put together."""
    rng = np.random.default_rng(5)
    parts = [pairs_and_triples(rng, 12, 0.3) for _ in range(6)]
    scores = [rng.normal(size=len(part)) for part in parts]
    rows = np.cumsum([0, *(int(part.row_offsets[1]) for part in parts)])
    covers = np.concatenate(
        [np.where(p.covers >= 0, p.covers + r, -1) for p, r in zip(parts, rows, strict=False)]
    )
    together = AssignmentSpace(covers, [0, len(covers)], [0, int(rows[-1])])
    whole = mean_assignment(together, None, np.concatenate(scores))
    each = [mean_assignment(p, None, s) for p, s in zip(parts, scores, strict=True)]
    np.testing.assert_allclose(whole.shares, np.concatenate([m.shares for m in each]), atol=1e-6)
    assert whole.log_counts[0] == pytest.approx(sum(m.log_counts[0] for m in each))


def test_what_is_too_large_is_divided_by_a_nearer_reach() -> None:
    rng = np.random.default_rng(1)
    space = pairs_and_triples(rng, 60, 0.3)
    scores = 6.0 * rng.normal(size=len(space))
    exact = mean_assignment(space, None, scores, entries=2**22, reach=np.inf)
    assert exact.exact.all()
    near = mean_assignment(space, None, scores, entries=2**10, windows=0)
    alone = mean_assignment(space, None, scores, entries=0, windows=0, reach=np.inf)
    assert not near.exact.any()
    errors = [np.abs(found.shares - exact.shares).sum() for found in (near, alone)]
    assert errors[0] < errors[1] / 2
    assert near.log_counts[0] == pytest.approx(exact.log_counts[0], rel=1e-2)


def test_rows_that_no_hypothesis_leaves_alone() -> None:
    """A matching: there is no price for staying alone, and dead ends in the tables."""
    rng = np.random.default_rng(2)
    n = 5
    sets = [(i, n + j, -1) for i in range(n) for j in range(n) if rng.random() < 0.7 or i == j]
    space = AssignmentSpace(sets, [0, len(sets)], [0, 2 * n])
    scores = 3.0 * rng.normal(size=len(sets))
    table = enumerate_assignments(space.covers, 2 * n)
    shares, logs = weighed(space, [table], scores)
    for reach in (np.inf, 25.0):
        found = mean_assignment(space, None, scores, reach=reach)
        np.testing.assert_allclose(found.shares, shares, atol=1e-9)
        np.testing.assert_allclose(found.log_counts, logs)


def test_scores_that_are_refused() -> None:
    space = AssignmentSpace([[0, 1, -1], [0, -1, -1], [1, -1, -1]], [0, 3], [0, 2])
    for bad in (np.nan, np.inf):
        with pytest.raises(DataError, match=r"scores hold NaN or \+inf"):
            mean_assignment(space, None, [bad, 0.0, 0.0])
    with pytest.raises(DataError, match="fixed to 1 but its score is -inf"):
        mean_assignment(space, [1, -1, -1], [-np.inf, 0.0, 0.0])
    with pytest.raises(InfeasibleError, match="sample 0"):
        mean_assignment(space, None, [-np.inf, -np.inf, 0.0])

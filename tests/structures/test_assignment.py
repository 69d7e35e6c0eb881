"""Assignments against enumeration, with both signs of scores, fixed variables and cuts."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.optimize
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from trellis.errors import DataError, InfeasibleError
from trellis.structures import (
    AssignmentSpace,
    assignment,
    best_assignment,
    best_incompatible_assignment,
    kbest_assignments,
    second_best_assignment,
)


def enumerate_assignments(covers: NDArray[Any], n_rows: int) -> NDArray[np.bool_]:
    """All choices of hypotheses that cover every row once, one in each line."""
    found: list[list[int]] = []

    def extend(chosen: list[int], covered: set[int]) -> None:
        left = [j for j in range(n_rows) if j not in covered]
        if not left:
            found.append(chosen)
            return
        for h, rows in enumerate(covers):
            own = {int(j) for j in rows if j >= 0}
            if left[0] in own and not own & covered:
                extend([*chosen, h], covered | own)

    extend([], set())
    table = np.zeros((len(found), len(covers)), bool)
    for line, chosen in zip(table, found, strict=True):
        line[chosen] = True
    return table


@st.composite
def problems(draw: Any) -> tuple[AssignmentSpace, NDArray[np.float64], list[NDArray[np.bool_]]]:
    """A few stacked problems; every row can be alone except, sometimes, one."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    covers, offsets, rows, tables = [], [0], [0], []
    for _ in range(draw(st.integers(1, 3))):
        n_rows = int(rng.integers(0, 7))
        sets = [
            c
            for size in (2, 3)
            for c in itertools.combinations(range(n_rows), size)
            if rng.random() < 0.4
        ]
        sets += [(j,) for j in range(n_rows) if rng.random() < 0.97]
        rng.shuffle(sets)
        own = np.array([(*c, -1, -1)[:3] for c in sets], int).reshape(-1, 3)
        tables.append(enumerate_assignments(own, n_rows))
        covers.append(np.where(own >= 0, own + rows[-1], -1))
        offsets.append(offsets[-1] + len(own))
        rows.append(rows[-1] + n_rows)
    space = AssignmentSpace(np.concatenate(covers), np.array(offsets), np.array(rows))
    scores = rng.normal(draw(st.sampled_from([-1.0, 0.0, 1.0])), 1.0, len(space))
    if draw(st.booleans()):
        scores = np.round(scores)  # ties
    return space, scores, tables


def ranked(space: AssignmentSpace, scores: Any, tables: Any, s: int) -> NDArray[np.float64]:
    own = scores[space.offsets[s] : space.offsets[s + 1]]
    return np.sort(tables[s] @ own)[::-1]


def assert_valid(space: AssignmentSpace, chosen: Any, tables: Any) -> None:
    for s, table in enumerate(tables):
        own = chosen[space.offsets[s] : space.offsets[s + 1]]
        assert (table == own).all(1).any()


@given(problems(), st.sampled_from(["auto", "lp", "ilp"]))
def test_best_and_worst_agree_with_enumeration(problem: Any, method: str) -> None:
    space, scores, tables = problem
    for sign in (1.0, -1.0):
        if any(len(table) == 0 for table in tables):
            with pytest.raises(InfeasibleError, match="covers every row once"):
                best_assignment(space, sign * scores, method=method)
            return
        found = best_assignment(space, sign * scores, method=method)
        expected = [ranked(space, sign * scores, tables, s)[0] for s in range(len(tables))]
        np.testing.assert_allclose(found.values, expected, atol=1e-9)
        assert_valid(space, found.chosen, tables)


@given(problems(), st.integers(2, 4))
def test_k_best_agree_with_enumeration(problem: Any, k: int) -> None:
    space, scores, tables = problem
    if any(len(table) == 0 for table in tables):
        with pytest.raises(InfeasibleError):
            kbest_assignments(space, scores, k)
        return
    found = kbest_assignments(space, scores, k)
    for s in range(len(tables)):
        expected = np.append(ranked(space, scores, tables, s), np.full(k, -np.inf))[: len(found)]
        np.testing.assert_allclose([f.values[s] for f in found], expected, atol=1e-9)
        own = slice(space.offsets[s], space.offsets[s + 1])
        there = [tuple(f.chosen[own]) for f in found if f.values[s] > -np.inf]
        assert len(set(there)) == len(there)
    assert len(found) == min(k, max(map(len, tables), default=1))
    second = second_best_assignment(space, scores)
    values = found[1].values if len(found) > 1 else np.full(len(tables), -np.inf)
    np.testing.assert_allclose(second.values, values, atol=1e-9)


@given(problems(), st.sampled_from([10**9, 10**30]))
def test_k_best_of_far_more_than_there_are(problem: Any, k: int) -> None:
    space, scores, tables = problem
    most = max(map(len, tables))
    if most > 12 or any(len(table) == 0 for table in tables):
        return
    ranked = kbest_assignments(space, scores, k)
    expected = kbest_assignments(space, scores, most + 1)
    assert len(ranked) == len(expected) == most
    for one, other in zip(ranked, expected, strict=True):
        assert np.array_equal(one.values, other.values)


@given(problems(), st.randoms(use_true_random=False))
def test_fixed_variables_agree_with_enumeration(problem: Any, random: Any) -> None:
    space, scores, tables = problem
    fixed = np.array([random.choice([-1, -1, -1, 0, 1]) for _ in range(len(space))], np.int8)
    values, others = [], []
    for s, table in enumerate(tables):
        f = fixed[space.offsets[s] : space.offsets[s + 1]]
        compatible = ((table == (f == 1)) | (f < 0)).all(1)
        own = scores[space.offsets[s] : space.offsets[s + 1]]
        values.append((table[compatible] @ own).max(initial=-np.inf))
        others.append((table[~compatible] @ own).max(initial=-np.inf))
    if min(values) == -np.inf:
        with pytest.raises(InfeasibleError):
            best_assignment(space, scores, fixed=fixed)
    else:
        np.testing.assert_allclose(
            best_assignment(space, scores, fixed=fixed).values, values, atol=1e-9
        )
    if all(len(table) for table in tables):
        found = best_incompatible_assignment(space, scores, fixed)
        np.testing.assert_allclose(found.values, others, atol=1e-9)


@given(problems())
def test_forbidden_hypotheses(problem: Any) -> None:
    space, scores, tables = problem
    scores = np.where(np.arange(len(space)) % 3 == 0, -np.inf, scores)
    allowed = [
        table[(~table | np.isfinite(scores[space.offsets[s] : space.offsets[s + 1]])).all(1)]
        for s, table in enumerate(tables)
    ]
    if any(len(table) == 0 for table in allowed):
        with pytest.raises(InfeasibleError):
            best_assignment(space, scores)
        return
    found = best_assignment(space, scores)
    finite = np.where(np.isfinite(scores), scores, 0.0)
    expected = [ranked(space, finite, allowed, s)[0] for s in range(len(allowed))]
    np.testing.assert_allclose(found.values, expected, atol=1e-9)


def crowd(rng: np.random.Generator, n: int) -> tuple[AssignmentSpace, NDArray[np.float64]]:
    """n sources and targets on a line, each with all events among its neighbours."""
    covers: list[tuple[int, int, int]] = []
    for i in range(n):
        near = [n + j for j in range(max(0, i - 2), min(n, i + 3))]
        covers += [(i, j, -1) for j in near]
        covers += [(i, a, b) for a, b in itertools.combinations(near, 2)]
        covers += [(i, i + 1, j) for j in near if i + 1 < n]
    covers += [(j, -1, -1) for j in range(2 * n)]
    space = AssignmentSpace(np.array(covers), np.array([0, len(covers)]), np.array([0, 2 * n]))
    return space, rng.normal(size=len(covers))


@pytest.mark.parametrize("seed", range(3))
def test_agrees_with_highs_on_larger_problems(seed: int) -> None:
    space, scores = crowd(np.random.default_rng(seed), 40)
    own, highs = (best_assignment(space, scores, method=m).values for m in ("auto", "ilp"))
    np.testing.assert_allclose(own, highs, atol=1e-7)


def test_gives_up_to_the_general_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    space, scores = crowd(np.random.default_rng(0), 12)
    expected = [found.values for found in kbest_assignments(space, scores, 2)]
    monkeypatch.setattr(assignment, "_BUDGET", 0)
    monkeypatch.setattr(assignment, "_ROUNDS", (0,))
    assert assignment.search(space, *assignment._checked(space, scores, None), True)[2][0, 0] == 0
    np.testing.assert_allclose(best_assignment(space, scores).values, expected[0])
    found = [found.values for found in kbest_assignments(space, scores, 2)]
    np.testing.assert_allclose(found, expected)


@given(problems(), st.integers(0, 1), st.booleans())
def test_what_a_search_leaves_open_is_settled(problem: Any, rounds: int, fix: bool) -> None:
    """Whatever the search has at hand when it gives up, the components that are open decide."""
    space, scores, tables = problem
    fixed = np.full(len(space), -1, np.int8)
    if fix and len(space):
        fixed[:: max(1, len(space) // 2)] = 0
    values = []
    for s, table in enumerate(tables):
        own = slice(space.offsets[s], space.offsets[s + 1])
        compatible = (~table | (fixed[own] < 0)).all(1)
        values.append((table[compatible] @ scores[own]).max(initial=-np.inf))
    if min(values) == -np.inf:
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(assignment, "_BUDGET", 0)
        patch.setattr(assignment, "_ROUNDS", (rounds,))
        found = best_assignment(space, scores, fixed=fixed)
        quick = best_assignment(space, scores, fixed=fixed, nodes=1)
    np.testing.assert_allclose(found.values, values, atol=1e-9)
    np.testing.assert_allclose(found.bounds, values, atol=1e-9)
    assert_valid(space, found.chosen, tables)
    assert_valid(space, quick.chosen, tables)
    assert (quick.values <= np.array(values) + 1e-9).all()
    assert (quick.bounds >= np.array(values) - 1e-9).all()


def test_a_search_that_is_cut_off_has_an_honest_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Random scores of a crowd leave large components open, with many fractions."""
    space, scores = crowd(np.random.default_rng(1), 60)
    best = best_assignment(space, scores, method="ilp").values[0]
    monkeypatch.setattr(assignment, "_ROUNDS", (12,))
    monkeypatch.setattr(assignment, "_BUDGET", 20)
    cut_off = best_assignment(space, scores, nodes=1)
    rows = space.covers[cut_off.chosen]
    assert np.array_equal(np.sort(rows[rows >= 0]), np.arange(space.row_offsets[1]))
    assert cut_off.values[0] <= best + 1e-9 <= cut_off.bounds[0] + 2e-9
    assert best_assignment(space, scores).values[0] == pytest.approx(best)


@pytest.mark.parametrize("scale", [1e-300, 1e-12, 1e-7, 1e7, 1e19, 1e20, 1e30, 1e300])
def test_scores_of_any_size(scale: float) -> None:
    """HiGHS takes very large numbers for infinite, and the differences of small ones for none."""
    space = AssignmentSpace(
        [[0, -1, -1], [0, 1, -1], [1, -1, -1], [1, 2, -1], [2, -1, -1], [0, 2, -1]], [0, 6], [0, 3]
    )
    for seed in range(10):
        scores = np.random.default_rng(seed).normal(size=6)
        ranked = [found.chosen.tolist() for found in kbest_assignments(space, scores, 4)]
        found = kbest_assignments(space, scale * scores, 4)
        assert [one.chosen.tolist() for one in found] == ranked
        for method in ("auto", "lp", "ilp"):
            best = best_assignment(space, scale * scores, method=method)
            assert best.chosen.tolist() == ranked[0]


def test_a_solver_that_fails_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    space = AssignmentSpace([[0, -1, -1]], [0, 1], [0, 1])
    failed = SimpleNamespace(status=4, message="out of luck", x=None)
    for solver, method in (("milp", "ilp"), ("linprog", "lp")):
        monkeypatch.setattr(scipy.optimize, solver, lambda *arguments, **options: failed)
        message = "the solver could not solve the assignment problem: out of luck"
        with pytest.raises(DataError, match=message):
            best_assignment(space, [1.0], method=method)


def test_diverse_assignments_differ_in_more() -> None:
    space, scores = crowd(np.random.default_rng(0), 10)
    first, close = kbest_assignments(space, scores, 2)
    _, far = kbest_assignments(space, scores, 2, diversity=2.0)
    assert (first.chosen != far.chosen).sum() > (first.chosen != close.chosen).sum()
    assert far.values[0] <= close.values[0] < first.values[0]


def test_part_of_a_space() -> None:
    a, _ = crowd(np.random.default_rng(0), 3)
    n, m = len(a), 6
    covers = np.concatenate([a.covers, np.where(a.covers >= 0, a.covers + m, -1)])
    space = AssignmentSpace(covers, np.array([0, n, 2 * n]), np.array([0, m, 2 * m]))
    part, index = space.part(np.array([1]))
    assert part.covers.tolist() == a.covers.tolist()
    assert index.tolist() == list(range(n, 2 * n))
    assert part.row_offsets.tolist() == [0, m]


@pytest.mark.parametrize(
    ("covers", "offsets", "rows", "message"),
    [
        ([[-1, -1, -1]], [0, 1], [0, 1], "one to three different rows"),
        ([[0, -1, 1]], [0, 1], [0, 2], "one to three different rows"),
        ([[0, 0, -1]], [0, 1], [0, 1], "one to three different rows"),
        ([[0, 1, 1]], [0, 1], [0, 2], "one to three different rows"),
        ([[2, -1, -1]], [0, 1], [0, 1], "one to three different rows"),
        ([[0, -1, -1], [0, -1, -1]], [0, 2], [0, 1], "same single row"),
        ([[0, -1, -1]], [0, 2], [0, 1], "offsets end at 2; expected 1"),
        ([[0, -1, -1]], [0, 1], [0, 1, 2], "there are 2 offsets and 3 row_offsets"),
        ([[0.0, -1.0, -1.0]], [0, 1], [0, 1], "covers have dtype float64; expected integers"),
        ([[0.5, -1.0, -1.0]], [0, 1], [0, 1], "covers have dtype float64; expected integers"),
        ([[0, -1, -1]], [0.0, 1.0], [0, 1], "offsets have dtype float64; expected integers"),
        ([[0, -1, -1]], [0, 1], [0.0, 1.0], "row_offsets have dtype float64; expected integers"),
        (
            [[2**32, -1, -1]], [0, 1], [0, 1],
            r"covers hold 4294967296 at index \(0, 0\); expected -1 to 2147483647",
        ),
        (
            [[0, 2**32 - 1, -1]], [0, 1], [0, 1],
            r"covers hold 4294967295 at index \(0, 1\); expected -1 to 2147483647",
        ),
        ([[0, -2, -1]], [0, 1], [0, 1], r"covers hold -2 at index \(0, 1\); expected at least -1"),
        ([[0, -1]], [0, 1], [0, 1], r"covers have shape \(1, 2\); expected \(any, 3\)"),
        (
            [[0, -1, -1], [1, -1, -1]], [0, 1, 2], [0, 2, 1],
            "row_offsets fall at sample 1, from 2 to 1",
        ),
        (
            [[0, -1, -1], [1, -1, -1]], [0, 2, 1], [0, 1, 2],
            "offsets fall at sample 1, from 2 to 1",
        ),
        ([[0, -1, -1]], [0, 2**32], [0, 1], "offsets end at 4294967296; expected 1"),
    ],
)  # fmt: skip
def test_bad_spaces(covers: Any, offsets: Any, rows: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        AssignmentSpace(np.array(covers), np.array(offsets), np.array(rows))


@pytest.mark.parametrize("n_rows", [1, 10**6, 2**40, 2**62])
@pytest.mark.parametrize("solve", [best_assignment, second_best_assignment])
def test_rows_without_hypotheses(n_rows: int, solve: Any) -> None:
    """However many: they take no memory."""
    space = AssignmentSpace([[0, -1, -1]], [0, 1, 1], [0, 1, 1 + n_rows])
    with pytest.raises(InfeasibleError, match=r"^sample 1 has no assignment that covers"):
        solve(space, [1.0])


@pytest.mark.parametrize("name", ["covers", "offsets", "row_offsets"])
def test_a_space_does_not_change(name: str) -> None:
    arrays = {
        "covers": np.array([[0, 1, -1], [0, -1, -1], [1, -1, -1]], np.int32),
        "offsets": np.array([0, 3]),
        "row_offsets": np.array([0, 2]),
    }
    space = AssignmentSpace(**arrays)
    with pytest.raises(ValueError, match="read-only"):
        getattr(space, name)[-1] = 10**8
    arrays[name][:] = 10**8  # what was given can be written to, and is another array
    assert best_assignment(space, [1.0, 0.0, 0.5]).chosen.tolist() == [True, False, False]


def test_bad_arguments() -> None:
    space = AssignmentSpace(np.array([[0, -1, -1]]), np.array([0, 1]), np.array([0, 1]))
    with pytest.raises(DataError, match="shape"):
        best_assignment(space, [1.0, 2.0])
    with pytest.raises(DataError, match="NaN"):
        best_assignment(space, [np.nan])
    with pytest.raises(DataError, match="fixed hold 2 at index 0; expected -1 to 1"):
        best_assignment(space, [1.0], fixed=[2])
    with pytest.raises(DataError, match="fixed to 1"):
        best_assignment(space, [-np.inf], fixed=[1])
    with pytest.raises(DataError, match="method"):
        best_assignment(space, [1.0], method="magic")
    for k in (0, -1, 2.5, True, None):
        with pytest.raises(DataError, match=f"k must be a positive integer, got {k}"):
            kbest_assignments(space, [1.0], k)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="diversity"):
        kbest_assignments(space, [1.0], 2, diversity=-1.0)

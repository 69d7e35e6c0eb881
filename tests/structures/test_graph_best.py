"""Best labellings of graphs: every method against brute force, its bound and its claim."""

from __future__ import annotations

import numpy as np
import pytest
from enumerate_graph import feasible, is_forest, labellings, problems, samples_of, score
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from trellis.errors import DataError, InfeasibleError, TrellisError
from trellis.structures import (
    GraphPotentials,
    best,
    elimination,
    elimination_cost,
    kbest,
)
from trellis.structures import graph_labelling as graph_module
from trellis.structures.elimination import make_plan

INF = np.inf


def close(a: float, b: float) -> bool:
    return a == b or abs(a - b) <= 2e-6 * max(1.0, abs(b))


def check(p: GraphPotentials, found, always_exact: bool) -> None:
    """Scores are those of the labels, bounds hold, and who says exact is exact."""
    assert found.labels.shape == (len(p.node),) and found.labels.dtype == np.int32
    assert found.gap.shape == found.exact.shape == (len(found.method),)
    for s, alone in enumerate(samples_of(p)):
        y = found.labels[p.offsets[s] : p.offsets[s + 1]]
        highest = max(labellings(alone).values())
        assert close(found.scores[s], score(alone, y))
        assert found.bounds[s] >= highest - 2e-6 * max(1.0, abs(highest))
        assert found.gap[s] >= 0
        if found.exact[s]:
            assert close(found.scores[s], highest)
            assert found.gap[s] == 0
        assert found.exact[s] or not always_exact


@given(problems(), st.sampled_from(["auto", "elimination", "ilp"]))
@settings(max_examples=30)
def test_exact_methods(p, method):
    assume(feasible(p))
    found = best(p, method=method)
    check(p, found, always_exact=True)
    for s, alone in enumerate(samples_of(p)):
        usual = {"tree"} if is_forest(alone) else {"dual", "max-flow", "elimination"}
        assert found.method[s] in (usual if method == "auto" else {method})


@given(problems(), st.sampled_from(["dual", "lp"]), st.integers(1, 12))
@settings(max_examples=30)
def test_bounds_hold_after_any_number_of_iterations(p, method, n):
    assume(feasible(p))
    found = best(p, method=method, max_iterations=n)
    check(p, found, always_exact=False)
    for s, alone in enumerate(samples_of(p)):
        assert found.exact[s] or not is_forest(alone)


@given(problems(), st.integers(1, 3))
@settings(max_examples=30)
def test_exactness_on_request(p, n):
    assume(feasible(p))
    check(p, best(p, budget=1, max_iterations=n, exact=True), always_exact=True)
    check(p, best(p, method="lp", exact=True), always_exact=True)


@given(problems(forest=True))
def test_trees(p):
    assume(feasible(p))
    found = best(p, method="tree")
    check(p, found, always_exact=True)
    assert set(found.method) <= {"tree"}


@given(problems(binary=True, submodular=True, most_nodes=6))
@settings(max_examples=30)
def test_max_flow(p):
    assume(feasible(p))
    check(p, best(p, method="max-flow"), always_exact=True)
    check(p, best(p, budget=1), always_exact=True)


@given(problems(binary=True))
def test_max_flow_serves_or_refuses(p):
    assume(feasible(p))
    try:
        found = best(p, method="max-flow")
    except DataError as error:
        assert "submodular" in str(error)
    else:
        check(p, found, always_exact=True)


@given(problems(forbidden=(0.6, 0.8)), st.sampled_from(["auto", "elimination", "ilp"]))
@settings(max_examples=30)
def test_infeasible_samples_are_named(p, method):
    bad = [s for s, alone in enumerate(samples_of(p)) if not labellings(alone)]
    assume(bad)
    with pytest.raises(InfeasibleError, match=rf"sample {bad[0]} \(of \d+ nodes\) has no"):
        best(p, method=method)
    with pytest.raises(InfeasibleError, match=rf"sample {bad[0]} "):
        kbest(p, 2)


@given(problems(most_nodes=4), st.integers(1, 12), st.booleans())
@settings(max_examples=30)
def test_kbest(p, k, tight):
    assume(feasible(p))
    labels, scores = kbest(p, k, budget=1 if tight else 10**7)
    ranks = max([1, *(min(k, len(labellings(alone))) for alone in samples_of(p))])
    assert labels.shape == (ranks, len(p.node)) and scores.shape == (len(p.offsets) - 1, ranks)
    for s, alone in enumerate(samples_of(p)):
        every = labellings(alone)
        want = list(every.values())[:k]
        assert np.allclose(scores[s, : len(want)], want, rtol=1e-6, atol=1e-6)
        assert (scores[s, len(want) :] == -INF).all()
        own = labels[:, p.offsets[s] : p.offsets[s + 1]]
        assert (own[len(want) :] == -1).all()
        found = [tuple(int(label) for label in y) for y in own[: len(want)]]
        assert len(set(found)) == len(found)
        assert all(close(every[y], x) for y, x in zip(found, scores[s], strict=False))


# ---------------------------------------------------------------- larger graphs, one with another


def grid(rng, height: int, width: int, n_labels: int, pair) -> GraphPotentials:
    at = np.arange(height * width).reshape(height, width)
    edges = np.concatenate(
        [
            np.stack([at[:, :-1].ravel(), at[:, 1:].ravel()], axis=1),
            np.stack([at[:-1].ravel(), at[1:].ravel()], axis=1),
        ]
    )
    node = rng.normal(size=(at.size, n_labels))
    return GraphPotentials(node, pair, edges, [0, at.size])


def test_methods_agree_on_grids():
    rng = np.random.default_rng(1)
    for pair in (0.7 * np.eye(2), -0.7 * np.eye(2), np.array([[0.5, -INF], [0.3, 0.2]])):
        p = grid(rng, 6, 5, 2, pair)
        sure = best(p, method="elimination")
        for method in ("dual", "lp", "ilp"):
            found = best(p, method=method)
            assert found.bounds[0] >= sure.scores[0] - 1e-6
            assert found.scores[0] <= sure.scores[0] + 1e-9
            if method == "ilp":
                assert found.scores[0] == pytest.approx(sure.scores[0])
    attractive = grid(rng, 7, 6, 2, 0.7 * np.eye(2))
    found = [best(attractive, method=m) for m in ("max-flow", "elimination", "lp", "dual")]
    assert [f.scores[0] for f in found[1:3]] == pytest.approx([found[0].scores[0]] * 2)
    assert all(f.exact[0] for f in found[:3])


def test_large_capacities_are_cut_exactly():
    # Scores over six orders of magnitude: one round of integers could not tell the small ones.
    rng = np.random.default_rng(2)
    p = grid(rng, 5, 6, 2, 0.5 * np.eye(2))
    p = p.with_costs(np.where(rng.random(p.node.shape) < 0.1, 1e6, 0.0))
    flow, exact = best(p, method="max-flow"), best(p, method="elimination")
    assert flow.exact[0]
    assert flow.labels.tolist() == exact.labels.tolist()


def test_more_turns_never_loosen_the_bound():
    rng = np.random.default_rng(3)
    p = grid(rng, 6, 6, 3, rng.normal(size=(60, 3, 3)))
    bounds = [best(p, method="dual", max_iterations=n).bounds[0] for n in (1, 2, 5, 20, 100)]
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[-1] < bounds[0]
    assert bounds[-1] == pytest.approx(best(p, method="lp").bounds[0], abs=0.05)


def test_samples_of_one_graph_are_solved_together():
    rng = np.random.default_rng(4)
    one = grid(rng, 3, 3, 2, rng.normal(size=(2, 2)))
    n = len(one.node)
    edges = np.concatenate([one.edges + n * s for s in range(5)])
    p = GraphPotentials(rng.normal(size=(5 * n, 2)), one.pair[0], edges, n * np.arange(6))
    for budget in (10**7, 300):  # all at once, and few at a time
        assert elimination_cost(p)[1][0] <= budget
        check(p, best(p, method="elimination", budget=budget), always_exact=True)


def test_auto_turns_to_the_dual_and_then_to_integers():
    rng = np.random.default_rng(5)
    p = grid(rng, 5, 5, 3, -2.0 * np.eye(3))
    fast = best(p, budget=10)
    assert fast.method == ("dual",)
    hard = best(p, budget=10, max_iterations=1)
    assert not hard.exact[0] and hard.gap[0] > 0
    sure = best(p, budget=10, max_iterations=1, exact=True)
    assert sure.method == ("ilp",) and sure.exact[0]
    assert sure.scores[0] == pytest.approx(best(p).scores[0])


def test_auto_goes_from_cheap_to_dear():
    rng = np.random.default_rng(7)
    alike = grid(rng, 8, 8, 3, 0.5 * np.eye(3))
    assert best(alike).method == ("dual",) and best(alike).exact[0]
    torn = grid(rng, 4, 4, 3, rng.normal(size=(24, 3, 3)) * 3)
    found = best(torn)
    assert found.method == ("elimination",) and found.exact[0]
    assert found.scores[0] == pytest.approx(best(torn, method="ilp").scores[0])
    large = grid(rng, 15, 15, 2, 0.5 * np.eye(2))
    assert best(large).method == ("max-flow",) and best(large).exact[0]


def test_small_scores_are_told_apart():
    """A gap of a millionth is much for scores of that size."""
    rng = np.random.default_rng(8)
    for _ in range(20):
        p = grid(rng, 3, 3, 3, rng.normal(size=(12, 3, 3)))
        small = p.with_scores(lambda scores: 1e-9 * scores)
        want = best(p, method="elimination")
        assert best(small).labels.tolist() == want.labels.tolist() == best(p).labels.tolist()


@pytest.mark.parametrize("method", ["auto", "dual", "lp"])
def test_samples_do_not_depend_on_those_beside_them(method):
    rng = np.random.default_rng(9)
    parts = [grid(rng, 5, n, 3, np.eye(3)) for n in (4, 6, 7)]
    offsets = np.cumsum([0] + [len(part.node) for part in parts])
    pair = rng.normal(size=(sum(len(part.edges) for part in parts), 3, 3))
    edges = [part.edges + first for part, first in zip(parts, offsets, strict=False)]
    node = np.concatenate([part.node for part in parts])
    p = GraphPotentials(node, pair, np.concatenate(edges), offsets)
    together = best(p, method=method, budget=200)
    for s in range(3):
        alone = best(p.alone(s), method=method, budget=200)
        assert together.labels[p.rows(s)].tolist() == alone.labels.tolist()
        assert together.bounds[s] == alone.bounds[0] and together.method[s] == alone.method[0]


def odd_cycle(n_labels: int) -> GraphPotentials:
    """Neighbours must differ: with two labels arc consistent, yet infeasible."""
    differ = np.where(np.eye(n_labels), -INF, 0.0)
    node = np.arange(5.0 * n_labels).reshape(5, n_labels) % 3
    return GraphPotentials(node, differ, [[0, 1], [1, 2], [2, 3], [3, 4], [4, 0]], [0, 5])


def test_what_only_exact_methods_notice():
    p = odd_cycle(2)
    lost = best(p, method="dual")
    assert lost.scores[0] == -INF and not lost.exact[0] and lost.gap[0] == INF
    with pytest.raises(InfeasibleError, match="sample 0"):
        best(p, budget=1)
    with pytest.raises(InfeasibleError, match="sample 0"):
        best(p, method="dual", exact=True)
    assert best(odd_cycle(3), budget=1).scores[0] > -INF


def test_label_sets_shrink_the_cost():
    rng = np.random.default_rng(6)
    p = grid(rng, 6, 6, 4, rng.normal(size=(4, 4)))
    allowed = rng.random(p.node.shape) < 0.4
    allowed[np.arange(36), rng.integers(4, size=36)] = True
    q = p.constrained(allowed)
    budget = int(elimination_cost(q)[1][0])
    assert budget < elimination_cost(p)[1][0]
    cut = best(q, method="elimination", budget=budget)
    assert cut.scores[0] == pytest.approx(best(q, method="elimination").scores[0])


# ------------------------------------------------------------------------------------------- cost


def test_cost_of_known_graphs():
    def cost(n, edges, n_labels=3):
        p = GraphPotentials(np.zeros((n, n_labels)), np.zeros((n_labels, n_labels)), edges, [0, n])
        widths, entries = elimination_cost(p)
        return int(widths[0]), int(entries[0])

    path = [[i, i + 1] for i in range(4)]
    assert cost(5, path) == (1, 4 * 9 + 3)
    assert cost(5, [*path, [4, 0]]) == (2, 3 * 27 + 9 + 3)
    assert cost(4, [[a, b] for a in range(4) for b in range(a)]) == (3, 81 + 27 + 9 + 3)
    assert cost(3, []) == (0, 9)
    assert cost(3, [[0, 1], [1, 2], [0, 2]], n_labels=1) == (0, 3)
    rng = np.random.default_rng(0)
    assert elimination_cost(grid(rng, 8, 8, 10, np.eye(10)))[0][0] == 8
    assert elimination_cost(GraphPotentials(np.zeros((0, 2)), np.eye(2), [], [0]))[0].shape == (0,)


def test_costs_above_the_limit_are_not_planned():
    edges = [(a, b) for a in range(6) for b in range(a)]
    assert make_plan([3] * 6, edges, limit=3**6 - 1) is None
    assert make_plan([3] * 6, edges).entries == sum(3**i for i in range(1, 7))


def test_large_graphs_are_planned():
    n = 500  # above the number of nodes for which minimal fill is tried
    plan = make_plan([2] * n, [(i, (i + 1) % n) for i in range(n)])
    assert plan.width == 2


@pytest.mark.parametrize("seed", range(20))
def test_the_plan_is_the_cheapest_of_all_orders(seed):
    """Orders that are given up half-way would not have been taken."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 15))
    edges = [(i, j) for i in range(n) for j in range(i) if rng.random() < 0.3]
    sizes = rng.integers(1, 5, n).tolist()
    orders = [elimination._greedy(sizes, edges, np.inf, kind) for kind in ("size", "given", "fill")]
    assert make_plan(sizes, edges) == min(orders, key=lambda plan: plan.entries)


def test_the_cost_of_long_grids_is_told_at_once():
    """In the order of the numbers a grid of 3 rows has tables of thousands of nodes."""
    n = 1500
    node = np.arange(3 * n).reshape(3, n)
    edges = np.concatenate(
        [
            np.stack([node[:, :-1].ravel(), node[:, 1:].ravel()], axis=1),
            np.stack([node[:-1].ravel(), node[1:].ravel()], axis=1),
        ]
    )
    p = GraphPotentials(np.zeros((3 * n, 2)), np.zeros((2, 2)), edges, [0, 3 * n])
    width, entries = elimination_cost(p)
    assert width.tolist() == [3]
    assert entries[0] < 16 * 3 * n


# ----------------------------------------------------------------------------------------- errors


def triangle() -> GraphPotentials:
    return GraphPotentials(
        [[0.0, 0.1], [0.0, 0.0], [0.0, 0.5]],
        [[-1.0, 0.0], [0.0, -1.0]],
        [[0, 1], [1, 2], [0, 2]],
        [0, 0, 3],
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "magic"}, "method must be 'auto', 'tree', 'elimination', 'max-flow', 'dual', "),
        ({"budget": 0}, "budget must be a positive integer, got 0"),
        ({"max_iterations": 0}, "max_iterations must be an integer from 1 to"),
        ({"rounds": -1}, "rounds must be None or an integer from 0 to"),
        ({"time_limit": 0.0}, "time_limit must be None or a positive number"),
        ({"mip_gap": -1.0}, "mip_gap must be a number of at least 0"),
        ({"method": "tree"}, "sample 1: the edges close a cycle at node"),
        (
            {"method": "elimination", "budget": 10},
            r"sample 1: exact inference by elimination takes 14 table entries of 8 bytes "
            r"\(width 2\), and budget=10; raise the budget",
        ),
        (
            {"method": "max-flow"},
            "sample 1: the edge between nodes 0 and 1 likes its ends to differ: it is not "
            'submodular; method="max-flow" needs',
        ),
    ],
)
def test_refusals(options, message):
    with pytest.raises(DataError, match=message):
        best(triangle(), **options)


def test_max_flow_refuses_three_labels():
    p = GraphPotentials(np.zeros((2, 3)), np.eye(3), [[0, 1]], [0, 2])
    with pytest.raises(DataError, match="sample 0: node 0 has 3 labels to choose from, not two"):
        best(p, method="max-flow")
    two = p.constrained(np.array([[True, False, True], [False, True, True]]))
    found = best(two, method="max-flow")
    assert found.labels.tolist() == [2, 2] and found.exact[0]


@pytest.mark.parametrize("k", [10**9, 10**30])
def test_kbest_of_far_more_than_there_are(k):
    """Time and memory go by the labellings there are, with loops and beside samples without."""
    one = triangle()
    loop, path = one.edges, [[3, 4]]
    node = np.concatenate([one.node, np.zeros((2, one.node.shape[1]))])
    pair = np.zeros((node.shape[1],) * 2)
    p = GraphPotentials(node, pair, [*loop.tolist(), *path], [0, 3, 5])
    labels, scores = kbest(p, k)
    assert labels.shape == (node.shape[1] ** 3, 5)
    assert np.isfinite(scores).sum(axis=1).tolist() == [node.shape[1] ** 3, node.shape[1] ** 2]
    expected = kbest(p, 30)
    assert np.array_equal(labels, expected[0]) and np.array_equal(scores, expected[1])


def test_kbest_refusals():
    for k in (0, -1, 2.5, True, None, "2"):
        with pytest.raises(DataError, match=f"k must be a positive integer, got {k!r}"):
            kbest(triangle(), k)
    with pytest.raises(DataError, match="budget must be a positive integer"):
        kbest(triangle(), 1, budget=0)


def test_lp_notices_infeasibility(monkeypatch):
    # Arc consistency is switched off, so that the program itself must find out.
    monkeypatch.setattr(graph_module, "supported", lambda p: p)
    p = GraphPotentials(np.zeros((2, 2)), np.full((2, 2), -INF), [[0, 1]], [0, 2])
    with pytest.raises(InfeasibleError, match="sample 0"):
        best(p, method="lp")


@pytest.mark.parametrize(("method", "name"), [("lp", "linprog"), ("ilp", "milp")])
def test_failures_of_the_solver_are_told(monkeypatch, method, name):
    import scipy.optimize

    class Failed:
        status = 4
        message = "numerical trouble"

    monkeypatch.setattr(scipy.optimize, name, lambda *args, **options: Failed())
    with pytest.raises(TrellisError, match=r"HiGHS did not solve the .*: numerical trouble"):
        best(triangle(), method=method)


def test_time_limit_keeps_the_labelling_of_the_dual(monkeypatch):
    import scipy.optimize

    class OutOfTime:
        status = 1
        x = None
        mip_dual_bound = None

    given_options = {}

    def milp(*args, options, **rest):
        given_options.update(options)
        return OutOfTime()

    monkeypatch.setattr(scipy.optimize, "milp", milp)
    p = triangle()
    found = best(p, method="ilp", time_limit=2.0, mip_gap=0.1)
    assert given_options == {"time_limit": 2.0, "mip_rel_gap": 0.1}
    assert not found.exact[1] and found.gap[1] == pytest.approx(0.7)
    assert found.scores[1] == pytest.approx(-0.4)

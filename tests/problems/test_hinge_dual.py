"""The dual of hinge losses: its weights are those of its means, whatever is rewarded."""

from __future__ import annotations

import numpy as np
import pytest

from label_problems import Enumerated
from margin_problems import make_problem, nodes_of
from trellis.errors import DataError
from trellis.problems import HingeDual, HingeLoss
from trellis.problems.hinge_dual import slots
from trellis.structures import Forest


def test_empty_samples_lose_nothing():
    offsets = np.array([0, 0, 2, 2])
    assert Forest.of(offsets, [[0, 1]]).parent.tolist() == [-1, 0]
    assert slots(offsets, np.array([-1, 0]))[0].tolist() == [-1, 0]


def test_slots_are_numbered_as_they_occur():
    slot, n = slots(np.array([0, 4, 5]), np.array([-1, 3, 1, 3, -1]))
    assert slot.tolist() == [-1, 0, 1, 0, -1]
    assert n == 2


def edges_of(nodes):
    """First ends, second ends and tables of all edges."""
    inner = np.flatnonzero(nodes.parent >= 0)
    child, upper = nodes.order[inner], nodes.order[nodes.parent[inner]]
    down = nodes.down[inner]
    return np.where(down, upper, child), np.where(down, child, upper), nodes.table[inner]


@pytest.mark.parametrize("structure", ["chain", "tree"])
def test_edges_of_the_node_order_are_those_of_the_problem(structure):
    p = make_problem(8, structure, 6, n_types=2)
    for nodes in (HingeDual(HingeLoss(p.problem), 0.3).nodes, nodes_of(p)):
        found = sorted(zip(*(x.tolist() for x in edges_of(nodes)), strict=True))
        assert found == sorted(
            (int(a), int(b), int(k))
            for (a, b), k in zip(p.problem.edges, p.problem.types, strict=True)
        )


def weights_of_the_means(dual):
    """w = 1 / 2λ Σ c_i (rewarded features − mean features), from the dual point alone."""
    problem, loss = dual.loss.problem, dual.loss
    L, out = problem.n_labels, np.zeros(problem.n_weights)
    weights = problem.weights(out)
    node, tables = weights.node, weights.transitions.reshape(-1, L, L)
    e, c = problem.encoded, np.repeat(loss.sample_weight, np.diff(problem.offsets))
    means = np.eye(L)[loss.gold] - dual._means
    for t in range(len(c)):
        for p in range(e.indptr[t], e.indptr[t + 1]):
            node[e.indices[p]] += c[t] * (e.values[p] if e.values.size else 1.0) * means[t]
    slot_table, slot_weight = {}, {}
    for place, k in enumerate(dual.nodes.slot):
        if k >= 0:
            slot_table[k] = dual.nodes.table[place]
            slot_weight[k] = c[dual.nodes.order[place]]
    for k, table in slot_table.items():
        tables[table] -= slot_weight[k] * dual._pairs[k].reshape(L, L)
    for first, second, table in zip(*edges_of(dual.nodes), strict=True):
        tables[table, loss.gold[first], loss.gold[second]] += c[first]
    if not problem.directed:
        tables += tables.transpose(0, 2, 1).copy()
    return out / (2 * dual.l2)


CASES = [
    ("chain", {}),
    ("chain", {"directed": False}),
    ("tree", {"n_types": 2}),
    ("tree", {"directed": False, "n_types": 2}),
]


@pytest.mark.parametrize(("structure", "options"), CASES)
def test_weights_are_those_of_the_means(structure, options):
    p = make_problem(11, structure, 6, **options)
    loss = HingeLoss(p.problem)
    dual = HingeDual(loss, 0.3)
    assert not dual.weights().any()
    rng = np.random.default_rng(0)
    for _ in range(7):
        dual.sweep(rng.permutation(loss.n_samples))
        np.testing.assert_allclose(dual.weights(), weights_of_the_means(dual), atol=1e-9)
    np.testing.assert_allclose(dual._means.sum(1), 1.0)
    assert (dual._means >= -1e-12).all()
    costs = p.problem.costs.dense()
    losses = [
        (dual._means * costs)[a:b].sum() for a, b in zip(p.offsets[:-1], p.offsets[1:], strict=True)
    ]
    used = loss.sample_weight > 0
    np.testing.assert_allclose(dual._losses[used], np.array(losses)[used], atol=1e-9)


@pytest.mark.parametrize(("structure", "options"), CASES)
def test_other_labels_may_be_rewarded(structure, options):
    e = Enumerated(21, structure, n_samples=6, known=0.7, **options)
    rng, l2 = np.random.default_rng(0), 0.2
    loss = HingeLoss(e.problem, e.problem.maxima(e.weights(), "compatible").labels)
    dual = HingeDual(loss, l2)
    moved = 0
    for _ in range(4):
        for _ in range(3):
            dual.sweep(rng.permutation(e.n_samples))
        before = dual.weights().copy()
        gold = e.problem.maxima(e.weights(), "compatible").labels
        dual.reward(gold)
        assert dual.loss.gold.tolist() == gold.tolist()
        np.testing.assert_allclose(dual.weights(), weights_of_the_means(dual), atol=1e-9)
        # Still a lower bound on the optimum of the new surrogate, and J is that of the new one.
        w = dual.weights().copy()
        assert dual.dual() <= dual.objective(w) + 1e-9
        assert dual.objective(w) == pytest.approx(l2 * w @ w + dual.loss.value(w))
        dual.reward(loss.gold)
        dual.reward(gold)
        np.testing.assert_allclose(dual.weights(), w, atol=1e-9)
        moved += bool(np.abs(w - before).max() > 1e-6)
        loss = dual.loss
    assert moved


def test_a_state_is_all_there_is():
    p = make_problem(5, "tree", 6)
    one, two = (HingeDual(HingeLoss(p.problem), 0.1) for _ in range(2))
    orders = [np.random.default_rng(k).permutation(one.n_samples) for k in range(6)]
    for order in orders[:3]:
        one.sweep(order)
    two.restore({name: array.copy() for name, array in one.state().items()})
    for order in orders[3:]:
        one.sweep(order)
        two.sweep(order)
    assert one.weights().tobytes() == two.weights().tobytes()
    assert one.dual() == two.dual()


@pytest.mark.parametrize("structure", ["chain", "tree"])
def test_rich_edges_are_refused(structure):
    loss = HingeLoss(make_problem(0, structure, 3, rich="sparse").problem)
    with pytest.raises(DataError, match="a dual point is for problems without rich edges"):
        HingeDual(loss, 0.1)

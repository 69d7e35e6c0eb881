import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from path_oracle import path_probabilities, random_automaton

from trellis.errors import DataError
from trellis.experts import PathAutomaton

seeds = st.integers(0, 10**6)


def draw(seed):
    rng = np.random.default_rng(seed)
    net = random_automaton(rng, 3, int(rng.integers(1, 5)))
    return rng, net, rng.normal(size=net.n_edges) * 3


@settings(max_examples=40, deadline=None)
@given(seeds)
def test_pushing_makes_probabilities_and_keeps_the_distribution(seed):
    _, net, logs = draw(seed)
    pushed = net.push(logs)
    sums = np.bincount(net.origin, np.exp(pushed))
    np.testing.assert_allclose(sums[np.unique(net.origin)], 1)
    paths, shares = path_probabilities(net, logs)
    np.testing.assert_allclose(np.exp(pushed[paths].sum(axis=1)), shares, rtol=1e-9)
    np.testing.assert_allclose(net.push(pushed), pushed, atol=1e-9)


@settings(max_examples=40, deadline=None)
@given(seeds)
def test_marginals_are_those_of_the_paths(seed):
    _, net, logs = draw(seed)
    paths, shares = path_probabilities(net, logs)
    wanted = np.array([shares[(paths == e).any(axis=1)].sum() for e in range(net.n_edges)])
    found = net.edge_marginals(logs)
    np.testing.assert_allclose(found, wanted, atol=1e-12)
    table = net.expert_marginals(found)
    np.testing.assert_allclose(table.sum(axis=1), 1)
    assert table.shape == (net.length, net.n_experts)


@settings(max_examples=40, deadline=None)
@given(seeds)
def test_best_path_is_the_best_of_all(seed):
    rng, net, logs = draw(seed)
    many = np.stack([logs, rng.integers(0, 2, net.n_edges)], axis=1).astype(float)
    found = net.best_path(many)
    for column in range(2):
        totals = many[net.paths(), column].sum(axis=1)
        path = found[:, column]
        assert (net.destination[path[:-1]] == net.origin[path[1:]]).all()
        assert many[path, column].sum() == pytest.approx(totals.max())


@settings(max_examples=10, deadline=None)
@given(seeds)
def test_samples_have_the_marginals(seed):
    rng, net, logs = draw(seed)
    paths = net.sample(logs / 3, 4000, rng)
    assert (net.destination[paths[:, :-1]] == net.origin[paths[:, 1:]]).all()
    share = np.bincount(paths.ravel(), minlength=net.n_edges) / 4000
    marginals = net.edge_marginals(logs / 3)
    assert np.abs(share - marginals).max() < 0.06
    again = net.sample_pushed(marginals, 4000, rng)
    assert np.abs(np.bincount(again.ravel(), minlength=net.n_edges) / 4000 - marginals).max() < 0.06


def test_complete_and_ngram_and_restricted_have_the_right_paths():
    assert PathAutomaton.complete(3, 4).n_paths == 81
    assert PathAutomaton.complete(3, 4).is_complete
    for n in (1, 2, 3, 5):
        net = PathAutomaton.ngram(2, 4, n)
        assert net.n_paths == 16
        experts = {tuple(net.expert[path]) for path in net.paths()}
        assert len(experts) == 16
        assert net.is_complete == (n == 1)
    allowed = np.array([[True, False, True], [False, True, False], [True, True, True]])
    net = PathAutomaton.restricted(3, 4, allowed)
    experts = {tuple(net.expert[path].tolist()) for path in net.paths()}
    grid = np.stack(np.meshgrid(*[range(3)] * 4), -1).reshape(-1, 4)
    assert experts == {tuple(g) for g in grid.tolist() if allowed[g[:-1], g[1:]].all()}


def test_edge_order_given_does_not_matter():
    net = PathAutomaton.ngram(2, 3, 2)
    order = np.random.default_rng(0).permutation(net.n_edges)
    again = PathAutomaton(
        net.origin[order], net.destination[order], net.expert[order], net.position[order]
    )
    key = [net.origin, net.destination, net.expert]
    assert sorted(zip(*key, strict=True)) == sorted(
        zip(again.origin, again.destination, again.expert, strict=True)
    )


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        (([], [], []), "one edge at least"),
        (([0.5], [1], [0]), "origin have dtype float64; expected integers"),
        (([0, 1], [1, 0], [0, 0]), "no cycle"),
        (([0, 0, 1], [1, 2, 2], [0, 0, 0]), "one position"),
        (([0, 0, 1], [1, 2, 3], [0, 0, 0]), "dead end"),
        (([0, 2], [1, 3], [0, 0]), "cannot be reached"),
        (([0, 0, 3], [1, 2, 2], [0, 0, 0]), "state 3 cannot be reached"),
        (([0], [2**40], [0]), "state 1 cannot be reached"),
        (([0], [1], [-1]), "expert hold -1 at index 0; expected 0 to 2147483647"),
    ],
)
def test_bad_edges_are_refused(edges, message):
    with pytest.raises(DataError, match=message):
        PathAutomaton(*(np.array(e) for e in edges))


def test_other_bad_input_is_refused():
    net = PathAutomaton.complete(2, 2)
    one = np.array([0])
    with pytest.raises(DataError, match="number of edges before"):
        PathAutomaton(one, one + 1, one, np.array([3]))
    with pytest.raises(DataError, match="one edge at least"):
        PathAutomaton(one[:0], one[:0], one[:0])
    with pytest.raises(DataError, match="one expert and one position"):
        PathAutomaton.complete(0, 3)
    with pytest.raises(DataError, match="n must be at least 1"):
        PathAutomaton.ngram(2, 3, 0)
    with pytest.raises(DataError, match="must be bool"):
        PathAutomaton.restricted(2, 3, np.ones((2, 2)))
    with pytest.raises(DataError, match="nobody follow expert 1"):
        PathAutomaton.restricted(2, 3, np.array([[True, True], [False, False]]))
    with pytest.raises(DataError, match="4 edges"):
        net.push(np.zeros(3))
    with pytest.raises(DataError, match="NaN"):
        net.best_path(np.full(4, np.nan))
    with pytest.raises(DataError, match="finite"):
        net.push(np.full(4, -np.inf))
    with pytest.raises(DataError, match="too many to list"):
        PathAutomaton.complete(10, 7).paths()

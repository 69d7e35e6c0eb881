"""Families of automata against all their paths, one by one."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_experts_weighted_majority import problem

from trellis.errors import DataError
from trellis.experts import MajorityVote, PathFamily, WeightedMajority

seeds = st.integers(0, 10**6)


def sequences(family, length):
    """Experts of all paths of one length."""
    net, move = family.unrolled(length)
    np.testing.assert_array_equal(family.expert[move], net.expert)
    for path in net.paths():
        steps = move[path]
        assert family.origin[steps[0]] == 0
        assert (family.destination[steps[:-1]] == family.origin[steps[1:]]).all()
    return sorted(map(tuple, net.expert[net.paths()].tolist()))


def runs(path):
    return [len(list(group)) for _, group in itertools.groupby(path)]


@pytest.mark.parametrize("length", [1, 2, 3, 5])
@pytest.mark.parametrize("p", [1, 3])
def test_families_have_the_right_paths(length, p):
    every = sorted(itertools.product(range(p), repeat=length))
    assert sequences(PathFamily.complete(p), length) == every
    for most in (0, 1, 2):
        wanted = [path for path in every if len(runs(path)) <= most + 1]
        assert sequences(PathFamily.switching(p, most), length) == wanted
    for least in (1, 2, 3):
        wanted = [path for path in every if all(n >= least for n in runs(path)[:-1])]
        assert sequences(PathFamily.staying(p, least), length) == wanted
    allowed = np.tri(p, dtype=bool)
    wanted = [path for path in every if all(allowed[a, b] for a, b in itertools.pairwise(path))]
    assert sequences(PathFamily.restricted(allowed), length) == wanted


def test_paths_end_in_final_states():
    family = PathFamily([0, 1, 0], [1, 0, 0], [0, 1, 2], final=[0])
    assert sequences(family, 2) == [(0, 1), (2, 2)]
    assert sequences(family, 1) == [(2,)]


def by_hand(family, said, gold, eta, even_paths):
    """Losses, those of votes, and log weights of moves before each round, in plain Python."""
    gain, spoken = np.zeros(family.n_moves), np.zeros(family.n_moves)
    losses, votes, tables = [], [], []
    for s in range(len(said)):
        codes = said.codes[said.offsets[s] : said.offsets[s + 1]]
        right = gold[said.offsets[s] : said.offsets[s + 1]]
        length = len(codes)
        a = eta * gain / (spoken + 10)
        tables.append(a)
        charged = np.empty(codes.shape)
        for t, row in enumerate(codes):
            wrong = [float(c != right[t]) for c in row if c >= 0]
            mean = np.mean(wrong) if wrong else 1.0
            charged[t] = [float(c != right[t]) if c >= 0 else mean for c in row]
        net, move = family.unrolled(length)
        paths = net.paths()
        degree = np.bincount(net.origin, minlength=net.n_states)
        share = np.exp(a[move][paths].sum(axis=1))
        if not even_paths:
            share = share / np.prod(degree[net.origin[paths]], axis=1)
        share /= share.sum()
        experts = net.expert[paths]
        loss = charged[np.arange(length), experts].mean(axis=1)
        losses.append(share @ loss)
        votes.append(best_score(codes, share, experts)[0])
        for t in range(length):
            for e in np.flatnonzero(net.position == t):
                j = net.expert[e]
                if codes[t, j] >= 0:
                    awake = codes[t] >= 0
                    gain[move[e]] += charged[t][awake].mean() - charged[t, j]
                    spoken[move[e]] += 1
    return np.array(losses), votes, np.array(tables)


def best_score(codes, share, experts):
    """The largest score of a path, and the scores of what is said at each position."""
    length = len(codes)
    scores = np.ones(codes.shape)
    for t in range(length):
        weight = np.array([share[experts[:, t] == j].sum() for j in range(codes.shape[1])])
        awake = codes[t] >= 0
        if not awake.any():
            continue
        if weight[awake].sum() == 0:
            weight = np.ones(len(weight))
        total = weight[awake].sum()
        own = [weight[awake & (codes[t] == c)].sum() / total for c in codes[t]]
        mean = np.mean([own[j] for j in np.flatnonzero(awake)])
        scores[t] = [own[j] if awake[j] else mean for j in range(len(own))]
    return np.prod(scores[np.arange(length), experts], axis=1).max(), scores


@settings(max_examples=30, deadline=None)
@given(seeds, st.sampled_from([0.0, 0.3]), st.booleans(), st.integers(0, 2))
def test_weights_of_moves_are_those_of_all_paths(seed, asleep, even_paths, kind):
    family = [
        PathFamily.switching(3, 1),
        PathFamily.staying(3, 2),
        PathFamily.restricted(np.tri(3, dtype=bool)),
    ][kind]
    said, gold, codes = problem(seed, n=9, length=4, equal=False, asleep=asleep)
    start = "paths" if even_paths else "edges"
    model = WeightedMajority(automaton=family, start=start).fit(said, gold)
    for strand in model._strands:
        losses, _, tables = by_hand(family, said, codes, strand.learner.eta, even_paths)
        np.testing.assert_allclose(strand.losses, losses, atol=1e-10)
    _, _, tables = by_hand(family, said, codes, model._learner.eta, even_paths)
    mean = np.exp(tables[model.rounds_]).mean(axis=0)
    np.testing.assert_allclose(model.weights_, mean, atol=1e-10)
    # The answer is that of the best path under the votes.
    answers = model._label(said)
    for s in range(len(said)):
        part = slice(said.offsets[s], said.offsets[s + 1])
        net, move = family.unrolled(int(said.lengths[s]))
        paths = net.paths()
        share = np.prod(mean[move][paths], axis=1)
        if not even_paths:
            degree = np.bincount(net.origin, minlength=net.n_states)
            share = share / np.prod(degree[net.origin[paths]], axis=1)
        experts = net.expert[paths]
        best, scores = best_score(said.codes[part], share / share.sum(), experts)
        places = np.arange(len(scores))
        said_by = said.codes[part][places, experts]
        fits = ((said_by == answers[part]) | (said_by < 0)).all(axis=1)
        own = np.prod(scores[places, experts], axis=1)[fits]
        assert own.max() == pytest.approx(best)


@settings(max_examples=20, deadline=None)
@given(seeds, st.sampled_from(["edges", "paths"]))
def test_the_complete_family_is_one_weight_an_expert(seed, start):
    said, gold, _ = problem(seed, n=12, equal=False)
    family = WeightedMajority(automaton=PathFamily.complete(3), start=start).fit(said, gold)
    tied = WeightedMajority(tie="expert").fit(said, gold)
    np.testing.assert_allclose(family.round_losses_, tied.round_losses_, atol=1e-10)
    assert family._strand == tied._strand
    assert family.predict(said) == tied.predict(said)
    assert (family.tie_, tied.tie_) == ("move", "expert")
    assert family.contexts_ == [0, 1, 2]
    assert "moves of the family" in family.bound().covers
    assert family.bound().excess is None
    assert family.edge_weights_ is None


@settings(max_examples=10, deadline=None)
@given(seeds)
def test_paths_are_drawn_of_the_family(seed):
    said, gold, _ = problem(seed, n=12, length=4, equal=False, asleep=0.2)
    family = PathFamily.switching(3, 0)
    model = WeightedMajority("randomised", automaton=family, random_state=0).fit(said, gold)
    assert len(model.predict(said)) == 12
    assert model.predict(said.take([])) == []
    full, truth, _ = problem(seed, n=12, length=4, equal=False)
    each = [full.lists(full.codes[:, j]) for j in range(3)]
    for i, answer in enumerate(model.predict(full)):
        assert answer in [each[j][i] for j in range(3)]
    many = full.take(np.tile(np.arange(12), 1500))
    assert 1 - model.score(many, truth * 1500) == pytest.approx(
        model.expected_loss(full, truth), abs=0.03
    )


def test_a_family_is_learned_without_right_answers_too():
    said, gold, _ = problem(1, equal=False)
    model = WeightedMajority(automaton=PathFamily.switching(3, 1)).fit(said)
    assert model.predict(said) == MajorityVote().fit(said, gold).predict(said)


def test_bad_families_are_refused():
    for moves, message in (
        (([], [], []), "one move at least"),
        (([1], [1], [0]), "no move leaves state 0"),
        (([0], [5], [0]), "6 states are more than 1 moves can reach"),
        (([0], [0], [-1]), "expert hold -1"),
    ):
        with pytest.raises(DataError, match=message):
            PathFamily(*(np.array(m, int) for m in moves))
    with pytest.raises(DataError, match="one expert at least"):
        PathFamily.complete(0)
    with pytest.raises(DataError, match="max_switches must be at least 0"):
        PathFamily.switching(2, -1)
    with pytest.raises(DataError, match="at_least must be at least 1"):
        PathFamily.staying(2, 0)
    with pytest.raises(DataError, match="must be bool and square"):
        PathFamily.restricted(np.ones((2, 3), bool))
    once = PathFamily([0], [1], [0])
    with pytest.raises(DataError, match="no path of 2 positions"):
        once.unrolled(2)
    said, gold, _ = problem(0)
    with pytest.raises(DataError, match="speaks of 4 experts, there are 3"):
        WeightedMajority(automaton=PathFamily.complete(4)).fit(said, gold)
    family = PathFamily.complete(3)
    for options in ({"loss_scale": "0/1"}, {"beta": "regret"}):
        with pytest.raises(DataError, match="tied over positions and follow mean losses"):
            WeightedMajority(automaton=family, **options).fit(said, gold)
    with pytest.raises(DataError, match="weights on edges"):
        WeightedMajority(automaton=family, tie="label").fit(said, gold)

"""Families of automata against all their paths, one by one."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_experts_weighted_majority import edge_losses, problem, unequal

from trellis import load_model
from trellis.errors import CorruptModelError, DataError
from trellis.experts import (
    ESPBoost,
    FollowPerturbedLeader,
    MajorityVote,
    PathAutomaton,
    PathFamily,
    WeightedMajority,
    as_gold,
)
from trellis.experts.follow_perturbed_leader import _WIDTHS

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


def small_family(kind):
    return [
        PathFamily.switching(3, 1),
        PathFamily.staying(3, 2),
        PathFamily.restricted(np.tri(3, dtype=bool)),
        PathFamily([0, 0, 1, 1, 2, 2], [1, 2, 2, 1, 1, 2], [0, 2, 1, 0, 2, 1], final=[1]),
    ][kind]


@settings(max_examples=30, deadline=None)
@given(seeds, st.sampled_from([0.0, 0.3]), st.booleans(), st.integers(0, 3))
def test_weights_of_moves_are_those_of_all_paths(seed, asleep, even_paths, kind):
    family = small_family(kind)
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


def best_by_hand(family, scores, length):
    """The best path of moves, of all of them one by one; of equals the one that comes first."""
    net, move = family.unrolled(length)
    paths = move[net.paths()]
    return paths[int(np.argmax(scores[paths].sum(axis=1).round(9)))]


@settings(max_examples=30, deadline=None)
@given(seeds, st.integers(0, 3), st.integers(1, 5))
def test_best_paths_are_the_best_of_all(seed, kind, length):
    family = small_family(kind)
    rng = np.random.default_rng(seed)
    scores = rng.integers(-3, 4, (4, family.n_moves)) / 4 + rng.integers(2) * rng.random(
        (4, family.n_moves)
    )
    for row, path in zip(scores, family.best_paths(scores, length), strict=True):
        best = best_by_hand(family, row, length)
        assert row[path].sum() == pytest.approx(row[best].sum())
        net, move = family.unrolled(length)
        assert path.tolist() in move[net.paths()].tolist()
        # The same moves as those of the unrolled automaton, also where paths are equal.
        assert path.tolist() == move[net.best_path(row[move])].tolist()


def leaders_by_hand(family, said, gold, noise):
    """Scores of moves and losses of each round; ``noise`` (T, M) is that of the rounds."""
    losses, scores = [], []
    total, seen = np.zeros(family.n_moves), np.zeros(family.n_moves)
    for s in range(len(said)):
        part = slice(said.offsets[s], said.offsets[s + 1])
        one = said.take([s])
        length = int(said.lengths[s])
        mean = [total[m] / seen[m] if seen[m] else 0.0 for m in range(family.n_moves)]
        scores.append(-(np.array(mean) + noise[s]))
        net, move = family.unrolled(length)
        charged = edge_losses(net, one, gold[part])[0]  # of the edges of the unrolled automaton
        path = best_by_hand(family, scores[-1], length)
        cost = {(int(k), int(m)): c for k, m, c in zip(net.position, move, charged, strict=True)}
        losses.append(np.mean([cost[k, int(m)] for k, m in enumerate(path)]))
        for e in range(net.n_edges):
            total[move[e]] += charged[e]
            seen[move[e]] += 1
    return np.array(scores), np.array(losses)


def shares_by_hand(family, scores, length, prior):
    """How many path experts follow each expert at each position, (l, p)."""
    p = family.n_experts
    votes = np.zeros((length, p))
    for row in scores:
        votes[np.arange(length), family.expert[best_by_hand(family, row, length)]] += 1
    if prior:
        net, _ = family.unrolled(length)
        degree = np.bincount(net.origin, minlength=net.n_states)
        for path in net.paths():
            chance = np.prod(1 / degree[net.origin[path]])
            votes[np.arange(length), net.expert[path]] += p * chance / total_chance(net, degree)
    return votes / votes.sum(axis=1, keepdims=True)


def total_chance(net, degree):
    return sum(np.prod(1 / degree[net.origin[path]]) for path in net.paths())


def answer_fits(family, codes, shares, answer):
    """Whether an answer is that of a best path under votes (l, p)."""
    net, _ = family.unrolled(len(codes))
    experts = net.expert[net.paths()]
    wide = np.zeros(codes.shape)
    wide[:, : shares.shape[1]] = shares
    places = np.arange(len(codes))
    scores = np.ones(codes.shape)
    for t in range(len(codes)):
        awake = codes[t] >= 0
        if awake.any():
            weight = wide[t] if wide[t, awake].sum() > 0 else np.ones(codes.shape[1])
            own = [weight[awake & (codes[t] == c)].sum() for c in codes[t]]
            mean = np.mean([own[j] for j in np.flatnonzero(awake)])
            scores[t] = [own[j] if awake[j] else mean for j in range(len(own))]
            scores[t] /= weight[awake].sum()
    value = np.prod(scores[places, experts], axis=1)
    said_by = codes[places, experts]
    fits = ((said_by == answer) | (said_by < 0)).all(axis=1)
    return value[fits].max(initial=-1.0) == pytest.approx(value.max())


@settings(max_examples=30, deadline=None)
@given(
    seeds,
    st.sampled_from([0.0, 0.3]),
    st.integers(0, 3),
    st.sampled_from(["auto", 5.0]),
    st.sampled_from(["majority-vote", "cross-validation"]),
)
def test_perturbed_leaders_are_the_best_of_all_paths(seed, asleep, kind, epsilon, conversion):
    family = small_family(kind)
    said, gold, codes = problem(seed, n=9, length=4, equal=False, asleep=asleep)
    model = FollowPerturbedLeader(
        conversion, automaton=family, epsilon=epsilon, random_state=seed
    ).fit(said, gold)
    for strand in model._strands[len(model._strands) > 1 :]:
        learner = strand.learner.again()
        noise = []
        for learner.n_rounds in range(9):
            noise.append(learner.perturbation(learner.noise))
        assert np.max(noise) <= learner.noise
        scores, losses = leaders_by_hand(family, said, codes, np.array(noise))
        np.testing.assert_allclose(strand.losses, losses, atol=1e-12)
        np.testing.assert_allclose(strand.learner.kept.since(0)[0], scores, atol=1e-12)
        for s, loss in enumerate(strand.vote_losses):  # the leaders of the rounds before
            part = slice(said.offsets[s], said.offsets[s + 1])
            right = codes[part]
            votes = shares_by_hand(family, scores[:s], len(right), prior=True)
            answers = [
                np.array(y) for y in itertools.product(*[sorted({*c, *right}) for c in
                said.codes[part].tolist()]) if answer_fits(family, said.codes[part], votes, y)
            ]  # fmt: skip
            assert any(
                np.where(y >= 0, y != right, 1).mean() == pytest.approx(loss) for y in answers
            )
        if strand.learner is not model._learner:
            continue
        chosen, prior = scores[model.rounds_], len(model._strands) > 1
        if conversion == "cross-validation":  # its loss on the samples that it has not seen
            unseen = [
                np.mean([
                    loss_of_path(family, row, said.take([s]), codes, said.offsets[s])
                    for s in range(t, 9)
                ])
                for t, row in enumerate(scores)
            ]  # fmt: skip
            assert model.expected_loss_ == pytest.approx(unseen[int(model.rounds_[0])])
        answers = model._label(said)
        lost = []
        for s in range(9):
            part = slice(said.offsets[s], said.offsets[s + 1])
            votes = shares_by_hand(family, chosen, int(said.lengths[s]), prior)
            assert answer_fits(family, said.codes[part], votes, answers[part])
            net, _ = family.unrolled(int(said.lengths[s]))
            charged = edge_losses(net, said.take([s]), codes[part])[0]
            table = np.zeros((net.length, 3))
            table[net.position, net.expert] = charged
            lost.append((table[:, : votes.shape[1]] * votes).sum() / net.length)
        assert model.expected_loss(said, gold) == pytest.approx(np.mean(lost))
        share = sum(
            np.bincount(best_by_hand(family, row, int(n)), minlength=family.n_moves) / n
            for row in chosen
            for n in said.lengths
        )
        if conversion == "cross-validation":
            np.testing.assert_allclose(model.weights_, share / 9)
    assert model.weights_.sum() == pytest.approx(1)
    assert (model.tie_, len(model.contexts_)) == ("move", family.n_moves)
    assert "moves of the family" in model.bound().covers


def loss_of_path(family, scores, one, codes, begin):
    net, _ = family.unrolled(len(one.codes))
    charged = edge_losses(net, one, codes[begin : begin + net.length])[0]
    table = np.zeros((net.length, 3))
    table[net.position, net.expert] = charged
    path = best_by_hand(family, scores, net.length)
    return table[np.arange(net.length), family.expert[path]].mean()


@settings(max_examples=20, deadline=None)
@given(
    seeds,
    st.sampled_from(["majority-vote", "cross-validation"]),
    st.sampled_from(["auto", 3.0]),
    st.sampled_from([0.0, 0.3]),
)
def test_leaders_of_the_complete_family_are_tied_by_expert(seed, conversion, epsilon, asleep):
    said, gold, _ = problem(seed, n=12, equal=False, asleep=asleep)
    options = {"epsilon": epsilon, "loss_scale": "mean", "random_state": seed}
    family = FollowPerturbedLeader(conversion, automaton=PathFamily.complete(3), **options)
    tied = FollowPerturbedLeader(conversion, tie="expert", **options).fit(said, gold)
    family.fit(said, gold)
    np.testing.assert_allclose(family.round_losses_, tied.round_losses_, atol=1e-12)
    assert family.gamma_ == pytest.approx(tied.gamma_)
    if asleep == 0:
        np.testing.assert_allclose(family.weights_, tied.weights_, atol=1e-12)
        assert family._strand == tied._strand
        assert family.predict(said) == tied.predict(said)
        assert family.expected_loss(said, gold) == pytest.approx(tied.expected_loss(said, gold))


def layered(net):
    """A family whose moves are the edges of an automaton: each position has its own."""
    return PathFamily(net.origin, net.destination, net.expert)


@settings(max_examples=20, deadline=None)
@given(seeds, st.sampled_from([0.0, 0.3]), st.sampled_from(["majority-vote", "cross-validation"]))
def test_leaders_of_moves_by_position_are_those_of_an_automaton(seed, asleep, conversion):
    """Means are sums up to a factor, which counts for nothing beside next to no noise."""
    net = PathAutomaton.restricted(3, 3, np.tri(3, dtype=bool))
    said, gold, _ = problem(seed, asleep=asleep)
    one = FollowPerturbedLeader(conversion, automaton=net, epsilon=1e9, random_state=seed)
    many = FollowPerturbedLeader(conversion, automaton=layered(net), epsilon=1e9, random_state=seed)
    one.fit(said, gold), many.fit(said, gold)
    np.testing.assert_allclose(many.round_losses_, one.round_losses_, atol=1e-12)
    np.testing.assert_array_equal(many.rounds_, one.rounds_)
    np.testing.assert_allclose(many.weights_ * 3, one.edge_weights_, atol=1e-12)
    assert many.predict(said) == one.predict(said)


def test_the_noise_is_chosen_by_the_votes():
    family = PathFamily.complete(7)
    test, truth = unequal(200, seed=1)
    vote = MajorityVote().fit(test, truth).score(test, truth)
    model = FollowPerturbedLeader(automaton=family, random_state=0).fit(*unequal(300))
    assert model._strand > 0
    assert model._learner.noise == _WIDTHS[model._strand - 1]
    assert model.score(test, truth) > vote + 0.01
    family = PathFamily.switching(7, 1)
    few = FollowPerturbedLeader(automaton=family, random_state=0).fit(*unequal(2))
    assert few._strand == 0
    assert few.weights_.sum() == pytest.approx(1)
    assert few.expected_loss(test, truth) == pytest.approx(
        np.mean(1 - np.array([0.92, 0.88, 0.5, 0.5, 0.45, 0.45, 0.4])), abs=0.02
    )


def test_given_rounds_of_leaders_are_kept(tmp_path):
    said, gold, _ = problem(2, n=12, length=4, equal=False)
    family = PathFamily.staying(3, 2)
    model = FollowPerturbedLeader(
        automaton=family, collection=[[0, 5, 6]], epsilon=2.0, random_state=0
    ).fit(said, gold)
    model.save(tmp_path / "m")
    loaded = load_model(tmp_path / "m")
    assert loaded.predict(said) == model.predict(said)
    assert loaded.expected_loss(said, gold) == model.expected_loss(said, gold)
    alone = [
        FollowPerturbedLeader(
            automaton=family, collection=[[t]], epsilon=2.0, random_state=0
        ).fit(said, gold)
        for t in (0, 5, 6)
    ]  # fmt: skip
    assert model.expected_loss(said, gold) == pytest.approx(
        np.mean([one.expected_loss(said, gold) for one in alone])
    )
    with pytest.raises(DataError, match='knows collection="suffixes" only'):
        model.partial_fit(said, gold)


def test_a_long_stream_of_leaders_keeps_some_of_them():
    said, gold, _ = problem(1, n=350, equal=False, asleep=0.1)
    family = PathFamily.switching(3, 1)
    whole = FollowPerturbedLeader(automaton=family, random_state=0).fit(said, gold)
    parts = FollowPerturbedLeader(automaton=family, random_state=0)
    for cut in (slice(0, 1), slice(1, 300), slice(300, 309), slice(309, 350)):
        parts.partial_fit(said.take(cut), gold[cut])
    for a, b in zip(parts._strands, whole._strands, strict=True):
        np.testing.assert_array_equal(a.losses, b.losses)
        np.testing.assert_array_equal(a.vote_losses, b.vote_losses)
    np.testing.assert_allclose(parts.weights_, whole.weights_, rtol=1e-12)
    assert parts.predict(said) == whole.predict(said)
    tables, counts = whole._strands[1].learner.kept.since(0)
    assert len(tables) == 175
    assert counts.sum() == 350


@settings(max_examples=40, deadline=None)
@given(
    seeds,
    st.integers(0, 3),
    st.sampled_from([0.0, 0.3]),
    st.sampled_from(["nothing", "vote"]),
)
def test_boosting_on_a_family_by_its_definition(seed, kind, asleep, start):
    family = small_family(kind)
    said, gold, codes = problem(seed, n=12, length=4, equal=False, asleep=asleep)
    model = ESPBoost(automaton=family, start=start, n_rounds=4).fit(said, gold)
    n, p = len(codes), 3
    rho = np.where(said.codes < 0, 0.0, np.where(said.codes == codes[:, None], 1.0, -1.0))
    place = np.concatenate([np.arange(length) for length in said.lengths])
    share = np.full(n, 1 / n)
    votes = np.zeros((n, p))
    from_vote = int(start == "vote")
    assert len(model._moves) == len(model.alphas_) - from_vote
    for t, alpha in enumerate(model.alphas_):
        if t < from_vote:
            labels = np.array([[(row == c).mean() for c in range(3)] for row in said.codes])
            own = labels[np.arange(n), codes].copy()
            labels[np.arange(n), codes] = 0
            margins = own - labels.max(axis=1)
            votes += alpha / p
        else:
            total, count = np.zeros(family.n_moves), np.zeros(family.n_moves)
            for s in range(len(said)):
                net, move = family.unrolled(int(said.lengths[s]))
                for e in range(net.n_edges):
                    at = said.offsets[s] + net.position[e]
                    total[move[e]] += share[at] * rho[at, net.expert[e]]
                    count[move[e]] += 1
            scores = total / np.maximum(count, 1) * count.max()
            np.testing.assert_allclose(model._moves[t - from_vote], scores, atol=1e-9)
            # Where paths are as good within rounding, those of the model count.
            scores = model._moves[t - from_vote]
            paths = {int(k): family.best_paths(scores[None], int(k))[0] for k in said.lengths}
            for length, path in paths.items():
                best = best_by_hand(family, scores, length)
                assert scores[path].sum() == pytest.approx(scores[best].sum())
            expert = np.array(
                [family.expert[paths[int(length)][k]] for length in said.lengths for k in
                 range(length)]
            )  # fmt: skip
            margins = rho[np.arange(n), expert]
            votes[np.arange(n), expert] += alpha
        assert model.errors_[t] == pytest.approx((1 - share @ margins) / 2)
        share = share * np.exp(-alpha * margins)
        assert model.normalisers_[t] == pytest.approx(share.sum())
        share /= share.sum()
    assert place.max() < 4
    np.testing.assert_allclose(model._position_weights(said)(slice(None)), votes)
    np.testing.assert_allclose(model.weights_, votes.mean(axis=0, keepdims=True))
    for margin in (0.0, 0.2):
        assert model.margin_loss(said, gold, margin) <= model.bound(margin) + 1e-9


@settings(max_examples=20, deadline=None)
@given(seeds, st.sampled_from(["auto", "nothing", "vote"]), st.sampled_from([0.0, 0.3]))
def test_boosting_the_complete_family_is_tied_by_expert(seed, start, asleep):
    said, gold, _ = problem(seed, n=12, equal=False, asleep=asleep)
    family = ESPBoost(automaton=PathFamily.complete(3), start=start).fit(said, gold)
    tied = ESPBoost(tie="expert", start=start).fit(said, gold)
    np.testing.assert_allclose(family.alphas_, tied.alphas_)
    np.testing.assert_allclose(family.normalisers_, tied.normalisers_)
    np.testing.assert_allclose(family.weights_, tied.weights_)
    assert family.stop_reason_ == tied.stop_reason_
    assert family.predict(said) == tied.predict(said)


@settings(max_examples=20, deadline=None)
@given(seeds, st.sampled_from(["nothing", "vote"]), st.sampled_from([0.0, 0.3]))
def test_boosting_moves_by_position_is_that_of_an_automaton(seed, start, asleep):
    net = PathAutomaton.restricted(3, 3, np.tri(3, dtype=bool))
    said, gold, _ = problem(seed, asleep=asleep)
    one = ESPBoost(automaton=net, start=start).fit(said, gold)
    many = ESPBoost(automaton=layered(net), start=start).fit(said, gold)
    np.testing.assert_allclose(many.alphas_, one.alphas_)
    np.testing.assert_allclose(many.errors_, one.errors_)
    np.testing.assert_allclose(many.weights_[0], one.weights_.mean(axis=0))
    assert many.predict(said) == one.predict(said)


def test_boosting_on_a_family_starts_from_the_vote(tmp_path):
    family = PathFamily.switching(7, 1)
    test, truth = unequal(200, seed=1)
    vote = MajorityVote().fit(test, truth)
    model = ESPBoost(automaton=family).fit(*unequal(300))
    assert len(model._moves) == len(model.alphas_) - 1
    assert model.score(test, truth) > vote.score(test, truth) + 0.01
    few = ESPBoost(automaton=family).fit(*unequal(3))
    assert len(few._moves) == 0
    assert few.predict(test) == vote.predict(test)
    for one in (model, few):
        one.save(tmp_path / "m")
        loaded = load_model(tmp_path / "m")
        assert loaded.predict(test) == one.predict(test)
        assert loaded.margin_loss(test, truth) == one.margin_loss(test, truth)
        assert loaded.bound() == one.bound()


def test_lengths_that_were_not_learned_from():
    said, gold, _ = problem(1, n=30, length=3, equal=False)
    longer, _, _ = problem(2, n=5, length=9)
    family = PathFamily.switching(3, 0)
    columns = [longer.lists(longer.codes[:, j]) for j in range(3)]
    for model in (
        FollowPerturbedLeader(automaton=family, random_state=0),
        FollowPerturbedLeader("cross-validation", automaton=family, random_state=0),
        WeightedMajority(automaton=family),
    ):
        answers = model.fit(said, gold).predict(longer)
        assert all(answer in [c[i] for c in columns] for i, answer in enumerate(answers))
    assert len(ESPBoost(automaton=family, start="nothing").fit(said, gold).predict(longer)) == 5


def test_a_family_is_learned_without_right_answers_too():
    said, gold, _ = problem(1, equal=False)
    family = PathFamily.switching(3, 1)
    vote = MajorityVote().fit(said, gold).predict(said)
    for kind in (WeightedMajority, FollowPerturbedLeader, ESPBoost):
        assert kind(automaton=family).fit(said).predict(said) == vote


def test_boosting_real_scores_on_a_family():
    said, gold, codes = problem(3, n=20, equal=False)
    sure = np.random.default_rng(0).uniform(0.4, 0.9, (*said.codes.shape, 1))
    scores = np.where(np.arange(3) == said.codes[:, :, None], sure, (1 - sure) / 2)
    said = replace(said, scores=scores)
    model = ESPBoost(base="real", automaton=PathFamily.staying(3, 2), start="nothing")
    model.fit(said, gold)
    assert model.margin_loss(said, gold) <= model.bound() + 1e-9
    assert len(model.predict(said)) == 20
    right, _ = as_gold(gold, said)
    np.testing.assert_array_equal(right, codes)


def test_damaged_files_are_refused():
    said, gold, _ = problem(1, n=6, equal=False)
    family = PathFamily.switching(3, 1)
    boost = ESPBoost(automaton=family, start="nothing").fit(said, gold)
    state = boost._state() | {"moves": np.zeros((9, family.n_moves))}
    with pytest.raises(CorruptModelError, match="scores of moves are not those of the rounds"):
        ESPBoost(automaton=family)._restore(state)
    endless = np.full(family.n_moves, -np.inf)

    def without_leaders(state):
        del state["blocks"], state["learner"]

    def other_lengths(state):
        state["learner"]["lengths"] = np.array([[1, 99]])

    def endless_leader(state):
        state["learner"]["kept"]["tables"][0] = endless

    def endless_member(state):
        state["members"][0] = endless

    def endless_candidate(state):
        state["blocks"]["tables"][0] = endless

    for conversion, damage, message in (
        ("majority-vote", without_leaders, "lacks the leaders of its rounds"),
        ("majority-vote", other_lengths, "leaders and lengths are not those of the rounds"),
        ("majority-vote", endless_leader, "scores of moves are not numbers"),
        ("cross-validation", endless_member, "scores of moves are not numbers"),
        ("cross-validation", endless_candidate, "scores of moves are not numbers"),
    ):
        model = FollowPerturbedLeader(conversion, automaton=family, epsilon=2.0)
        state = model.fit(said, gold)._state()
        damage(state)
        with pytest.raises(CorruptModelError, match=message):
            FollowPerturbedLeader(conversion, automaton=family, epsilon=2.0)._restore(state)


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
    with pytest.raises(DataError, match="scores of moves"):
        once.best_paths([[np.inf]], 1)
    with pytest.raises(DataError, match="scores of moves"):
        once.best_paths([[1.0, 2.0]], 1)
    said, gold, _ = problem(0)
    family = PathFamily.complete(3)
    for model in (
        WeightedMajority(automaton=family, loss_scale="0/1"),
        WeightedMajority(automaton=family, beta="regret"),
        FollowPerturbedLeader(automaton=family, loss_scale="1/l"),
        FollowPerturbedLeader(automaton=family, epsilon="paper"),
    ):
        with pytest.raises(DataError, match="tied over positions and follow mean losses"):
            model.fit(said, gold)
    with pytest.raises(DataError, match="weights on edges"):
        WeightedMajority(automaton=family, tie="label").fit(said, gold)
    with pytest.raises(DataError, match="weights on edges or moves; leave tie at auto"):
        ESPBoost(automaton=family, tie="label").fit(said, gold)
    even = PathFamily([0, 1], [1, 0], [0, 1], final=[0])
    for kind in (WeightedMajority, FollowPerturbedLeader, ESPBoost):
        with pytest.raises(DataError, match="speaks of 4 experts, there are 3"):
            kind(automaton=PathFamily.complete(4)).fit(said, gold)
        with pytest.raises(DataError, match="the family has no path of 3 positions"):
            kind(automaton=even).fit(said, gold)

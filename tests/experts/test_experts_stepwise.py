"""SLE: greedy selection against a plain implementation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trellis.errors import DataError
from trellis.experts import ForwardStepwise, MajorityVote, as_gold, as_outputs, stepwise

label = st.sampled_from("abc")


@st.composite
def problems(draw):
    lengths = draw(st.lists(st.integers(1, 3), min_size=1, max_size=4))
    p = draw(st.integers(1, 4))
    gold = [draw(st.lists(label, min_size=n, max_size=n)) for n in lengths]
    outputs = []
    for _ in range(p):
        said = [draw(st.lists(st.none() | label, min_size=n, max_size=n)) for n in lengths]
        outputs.append(said)
    return outputs, gold


def answer(codes, added):
    """Vote at one position; ties to the label that was voted for first."""
    votes = {}
    for j in added:
        if codes[j] >= 0:
            votes[codes[j]] = votes.get(codes[j], 0) + 1
    return max(votes, key=votes.__getitem__) if votes else -1  # dicts keep the order


@settings(max_examples=40)
@given(problems(), st.integers(0, 3))
def test_every_addition_is_a_best_one(problem, seed):
    outputs, gold = problem
    sle = ForwardStepwise(start="empty", n_rounds=6, random_state=seed).fit(outputs, gold)
    right, said = as_gold(gold, as_outputs(outputs))
    added = []
    for name, error in zip(sle.path_, sle.errors_, strict=True):
        wrong = [
            sum(answer(codes, [*added, j]) != y for codes, y in zip(said.codes, right, strict=True))
            for j in range(said.n_experts)
        ]
        j = said.names.index(name)
        assert wrong[j] == min(wrong)
        assert error == min(wrong) / len(right)
        added.append(j)
    counts = np.bincount(added, minlength=said.n_experts)
    assert np.allclose(sle.weights_, counts / 6)
    silent = (said.codes[:, np.unique(added)] < 0).all(axis=1)
    found = [y for sample in sle.predict(outputs) for y in sample]
    for codes, y, skip in zip(said.codes, found, silent, strict=True):
        if not skip:
            assert said.labels[answer(codes, added)] == y


class PlainBallot:
    """Votes in a table of all positions and labels, and what one vote more of each expert does."""

    def __init__(self, codes, gold, n_labels):
        self.codes, self.gold = codes, gold
        self.votes = np.zeros((len(gold), n_labels))
        self.first = np.full(self.votes.shape, np.iinfo(np.int64).max)
        self.rows = np.arange(len(gold))
        self.winner = np.full(len(gold), -1)
        self.n_added = 0

    def winner_with(self, j):
        code = self.codes[:, j]
        awake, said = code >= 0, np.maximum(code, 0)
        votes = self.votes[self.rows, said] + 1
        holder = np.maximum(self.winner, 0)
        held = np.where(self.winner >= 0, self.votes[self.rows, holder], 0.0)
        earlier = self.first[self.rows, said] < self.first[self.rows, holder]
        takes = awake & ((votes > held) | ((votes == held) & earlier))
        return np.where(takes, said, self.winner)

    def wrong_with(self, j):
        return int((self.winner_with(j) != self.gold).sum())

    def add(self, j):
        self.winner = self.winner_with(j)
        awake = self.codes[:, j] >= 0
        rows, said = self.rows[awake], self.codes[awake, j]
        self.votes[rows, said] += 1
        self.first[rows, said] = np.minimum(self.first[rows, said], self.n_added)
        self.n_added += 1


@st.composite
def larger_problems(draw):
    """Up to 40 positions of up to 6 experts, who agree often and sleep sometimes."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    p, n_labels, n = draw(st.integers(1, 6)), draw(st.integers(1, 5)), draw(st.integers(1, 40))
    gold = rng.integers(0, n_labels, n)
    codes = np.where(rng.random((n, p)) < 0.5, gold[:, None], rng.integers(0, n_labels, (n, p)))
    codes[rng.random((n, p)) < draw(st.sampled_from([0, 0.2]))] = -1
    codes[(codes < 0).all(axis=1), 0] = 0
    outputs = [[[None if c < 0 else str(c) for c in codes[:, j]]] for j in range(p)]
    return outputs, [[str(c) for c in gold]]


@settings(max_examples=60)
@given(larger_problems(), st.integers(0, 5), st.booleans())
def test_counts_that_are_kept_give_what_counting_anew_gives(problem, seed, collide):
    outputs, gold = problem
    sle = ForwardStepwise(start="empty", n_rounds=12, random_state=seed)
    with pytest.MonkeyPatch.context() as patched:
        if collide:  # as if two patterns had one hash
            patched.setattr(stepwise, "same_rows", lambda *_: False)
        sle.fit(outputs, gold)
    right, said = as_gold(gold, as_outputs(outputs))
    rng = np.random.default_rng(seed)
    ballot = PlainBallot(said.codes, right, len(said.labels))
    path, errors = [], []
    for _ in range(12):
        wrong = np.array([ballot.wrong_with(j) for j in range(said.n_experts)])
        j = int(rng.choice(np.flatnonzero(wrong == wrong.min())))
        ballot.add(j)
        path.append(j)
        errors.append(int(wrong[j]) / len(right))
    assert sle.path_ == [said.names[j] for j in path]
    assert sle.errors_.tolist() == errors
    assert sle.weights_.tolist() == (np.bincount(path, minlength=said.n_experts) / 12).tolist()


@settings(max_examples=60)
@given(larger_problems(), st.integers(0, 5), st.integers(1, 4))
def test_from_the_vote_each_addition_is_worth_it(problem, seed, n_rounds):
    outputs, gold = problem
    sle = ForwardStepwise(n_rounds=n_rounds, random_state=seed).fit(outputs, gold)
    right, said = as_gold(gold, as_outputs(outputs))
    ballot = PlainBallot(said.codes, right, len(said.labels))
    everyone = [*range(said.n_experts)] * 2
    for j in everyone:
        ballot.add(j)
    plain = MajorityVote().fit(outputs, gold).predict(outputs)
    assert [[said.labels[c] for c in ballot.winner]] == plain

    def worth():
        then = [ballot.winner_with(j) == right for j in range(said.n_experts)]
        now = ballot.winner == right
        gained = np.array([(t & ~now).sum() for t in then])
        lost = np.array([(now & ~t).sum() for t in then])
        return np.where(gained - lost > np.sqrt(gained + lost), gained - lost, 0)

    for name, error in zip(sle.path_, sle.errors_, strict=True):
        gains, j = worth(), said.names.index(name)
        assert gains[j] == gains.max() > 0
        ballot.add(j)
        assert error == (ballot.winner != right).mean()
    assert len(sle.path_) == n_rounds or not worth().any()
    votes = np.bincount([*everyone, *map(said.names.index, sle.path_)])
    assert np.allclose(sle.weights_, votes / votes.sum())
    assert sle.predict(outputs) == [[said.labels[c] for c in ballot.winner]]


def test_from_the_vote_one_mistake_more_or_less_is_luck():
    gold = [["a"]] * 9
    wrong_once, wrong_twice = [["b"]] + [["a"]] * 8, [["b"]] * 2 + [["a"]] * 7
    assert ForwardStepwise().fit([wrong_once, gold], gold).path_ == []
    sle = ForwardStepwise().fit([wrong_twice, gold], gold)
    assert sle.path_ == ["expert 2"]
    assert sle.predict([wrong_twice, gold]) == gold


@pytest.mark.parametrize("start", ["vote", "empty"])
@pytest.mark.parametrize("pairs", [False, True])
def test_without_labelled_samples_everyone_has_the_same_votes(start, pairs):
    outputs = as_outputs([[["b", "a"]], [["a", "a"]], [["b", "c"]], [["a", "c"]]])
    sle = ForwardStepwise(start=start, pairs=pairs)
    sle._learn(outputs.take([]), np.zeros(0, np.int32), fresh=True)
    assert sle.weights_.tolist() == [0.25] * 4
    assert (sle.path_, len(sle.errors_)) == ([], 0)
    if not pairs:
        assert sle._label(outputs).tolist() == [1, 0]  # ties go to the first expert


def test_pairs_from_the_vote():
    gold = [["b", "a", "b"]] * 3
    poor = [["a", "b", "a"]] * 3
    sle = ForwardStepwise(pairs=True, random_state=0).fit([poor, gold], gold)
    assert sle.path_ == ["expert 2"]
    assert sle.predict([poor, gold]) == gold
    assert sle.errors_.tolist() == [0.0]


def test_ties_of_selection_are_drawn():
    outputs, gold = [[["a"]], [["a"]], [["b"]]], [["a"]]
    firsts = {
        ForwardStepwise(start="empty", n_rounds=1, random_state=seed).fit(outputs, gold).path_[0]
        for seed in range(20)
    }
    assert firsts == {"expert 1", "expert 2"}
    again = [
        ForwardStepwise(start="empty", random_state=5).fit(outputs, gold).path_ for _ in range(2)
    ]
    assert again[0] == again[1]
    assert len(again[0]) == 100


def test_pairs_of_labels_and_viterbi():
    gold = [["a", "b", "a"], ["b", "a", "b"]]
    outputs = [
        [["a", "b", "b"], ["b", "a", "b"]],
        [["a", "a", "a"], ["b", "b", "b"]],
        [["b", "b", "a"], ["b", "a", None]],
    ]
    sle = ForwardStepwise(start="empty", n_rounds=4, pairs=True, random_state=0).fit(outputs, gold)
    predicted = sle.predict(outputs)
    wrong = sum(
        y != z for a, b in zip(predicted, gold, strict=True) for y, z in zip(a, b, strict=True)
    )
    assert wrong / 6 == pytest.approx(sle.errors_[-1])
    assert sle.predict([[[None]], [[None]], [["b"]]]) == [["b"]]


def test_pair_votes_keep_neighbours_together():
    # Three experts, one vote each: by position a wins twice, but a is never followed by a.
    outputs = [[["a", "b"]], [["b", "a"]], [["a", "b"]]]
    sle = ForwardStepwise(start="empty", n_rounds=3, pairs=True, random_state=0)
    sle.fit(outputs, [["a", "b"]])
    assert sle.predict(outputs) == [["a", "b"]]


@pytest.mark.parametrize("n_rounds", [0, 2.5, True])
def test_bad_options(n_rounds):
    with pytest.raises(DataError, match="n_rounds must be a positive integer, got"):
        ForwardStepwise(n_rounds=n_rounds).fit([[["a"]]], [["a"]])


def test_bad_start():
    with pytest.raises(DataError, match="start must be 'vote' or 'empty', got 'best'"):
        ForwardStepwise(start="best").fit([[["a"]]], [["a"]])

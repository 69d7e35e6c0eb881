"""Re-ranking, log-linear votes and stacking; the conditional logit beneath them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trellis import ChainPerceptron
from trellis.errors import DataError
from trellis.experts import LogLinearVote, MajorityVote, Rerank, Stacking, as_outputs
from trellis.experts.logit import STRENGTHS, best_candidates, fit_logit, fit_shrunk

GOLD = [["a", "b"], ["b", "b", "a"], ["a", "a"]]


# ------------------------------------------------------------------ conditional logit


@settings(max_examples=25)
@given(st.integers(0, 10**6))
def test_logit_is_a_minimum(seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 4, 12)
    ends = np.concatenate([[0], np.cumsum(sizes)])
    features = rng.normal(size=(ends[-1], 3))
    right = np.zeros(ends[-1], bool)
    answered = rng.random(12) < 0.8  # the others have no right candidate
    right[(ends[:-1] + rng.integers(0, sizes))[answered]] = True
    mean, l2 = rng.normal(size=3), rng.uniform(0.1, 2, 3)

    def value(w):
        total = l2 @ (w - mean) ** 2
        for a, b in itertools.pairwise(ends):
            if right[a:b].any():
                score = features[a:b] @ w
                total += np.log(np.exp(score).sum()) - score[right[a:b]][0]
        return total

    w = fit_logit(features, ends, right, l2, mean)
    for step in np.concatenate([np.eye(3), -np.eye(3)]) * 1e-3:
        assert value(w) <= value(w + step) + 1e-9


def test_logit_with_nothing_to_learn():
    assert fit_logit(np.ones((2, 3)), np.array([0, 1, 2]), np.array([True, False]), 1.0).any() == 0
    assert best_candidates(np.zeros(0), np.zeros(1, np.int64)).tolist() == []
    assert best_candidates(np.array([1.0, 2.0, 2.0]), np.array([0, 1, 3])).tolist() == [0, 1]


def questions(rng, n, bias):
    """Two candidates a question; the one with the feature is right with odds e^bias."""
    right = np.zeros((n, 2), bool)
    first = rng.random(n) < 1 / (1 + np.exp(-bias))
    right[np.arange(n), np.where(first, 0, 1)] = True
    return np.tile(np.array([[1.0], [0.0]]), (n, 1)), np.arange(0, 2 * n + 1, 2), right.ravel()


def test_a_strength_is_chosen_by_a_part_of_many(monkeypatch):
    rng = np.random.default_rng(0)
    features, ends, right = questions(rng, 400, bias=2.0)
    group, start, ones = np.arange(400) // 100, np.zeros(1), np.ones(1)
    monkeypatch.setattr("trellis.experts.logit._CHOSEN_BY", 150)
    w, strength = fit_shrunk(features, ends, right, group, start, ones)
    part = fit_shrunk(features[:400], ends[:201], right[:400], group[:200], start, ones)
    assert strength == part[1]  # of the first two groups
    assert np.array_equal(w, fit_logit(features, ends, right, strength))
    monkeypatch.setattr("trellis.experts.logit._CHOSEN_BY", 10)
    assert fit_shrunk(features, ends, right, group, start, ones)[1] == strength


def test_weights_leave_the_mean_where_it_pays():
    rng = np.random.default_rng(0)
    group, ones = np.arange(400), np.ones(1)
    features, ends, right = questions(rng, 400, bias=2.0)
    w, strength = fit_shrunk(features, ends, right, group, np.zeros(1), ones)
    assert strength < STRENGTHS[2] and abs(w[0] - 2) < 0.5
    w, strength = fit_shrunk(features, ends, right, group, np.full(1, 2.0), ones)
    assert strength == STRENGTHS[-1] and abs(w[0] - 2) < 0.01  # the mean is right already
    w, strength = fit_shrunk(features, ends, right, group, np.zeros(1), ones, l2=7.0)
    assert strength == 7.0 and np.array_equal(w, fit_logit(features, ends, right, 7.0))
    w, strength = fit_shrunk(features, ends, right, 0 * group, np.zeros(1), ones)
    assert w.tolist() == [0.0] and strength == STRENGTHS[-1]  # one sample teaches nothing
    w, _ = fit_shrunk(features, ends, right, group, np.zeros(1), 0 * ones)
    assert abs(w[0] - 2) < 0.5  # free, however strong


@settings(max_examples=30)
@given(st.integers(0, 10**6))
def test_held_fast_they_are_the_vote(seed):
    rng = np.random.default_rng(seed)
    gold = [rng.choice(["a", "b", "c"], rng.integers(1, 5)).tolist() for _ in range(4)]
    said = [
        [[y if rng.random() < 0.5 else str(rng.choice(["a", "b", "c"])) for y in s] for s in gold]
        for _ in range(4)
    ]
    plain = MajorityVote().fit(said).predict(said)
    for combo in (LogLinearVote(l2=1e9), Rerank(l2=1e9), Stacking(l2=1e9)):
        assert combo.fit(said, gold).predict(said) == plain


# ------------------------------------------------------------------ re-ranking


def test_plurality_of_whole_answers():
    said = [[["a", "b"]], [["a", "a"]], [["b", "a"]], [["b", "a"]]]
    combo = Rerank(unit="sample", weights="uniform").fit(said, [["a", "a"]])
    assert combo.predict(said) == [["b", "a"]]  # position by position it would be a tie, then a a
    assert combo.weights_.tolist() == [[1.0] * 4, [0.0] * 4]
    tied = [[["a", "b"]], [["b", "a"]]]
    first = Rerank(unit="sample", weights="uniform").fit(tied, [["b", "a"]])
    assert first.predict(tied) == [["a", "b"]]


@given(st.lists(st.lists(st.sampled_from("ab"), min_size=4, max_size=4), min_size=1, max_size=4))
def test_the_answer_to_a_sample_is_that_of_an_expert_or_the_vote(answers):
    said = [[answer] for answer in answers]
    for combo in (Rerank(unit="sample"), Rerank(unit="sample", similar=False)):
        known = [*answers, *MajorityVote().fit(said).predict(said)]
        assert combo.fit(said, [["a", "b", "a", "b"]]).predict(said)[0] in known


@given(st.lists(st.lists(st.sampled_from("ab"), min_size=5, max_size=5), min_size=1, max_size=4))
def test_runs_are_answered_by_one_expert_each(answers):
    said = [[answer] for answer in answers]
    found = Rerank(l2=0.1).fit(said, [["a", "b", "a", "b", "a"]]).predict(said)[0]
    known = [*answers, *MajorityVote().fit(said).predict(said)]
    disputed = [len(set(labels)) > 1 for labels in zip(*answers, strict=True)]
    at = 0
    while at < 5:
        end = at + 1
        while end < 5 and disputed[at] and disputed[end]:
            end += 1
        assert found[at:end] in [answer[at:end] for answer in known]
        at = end


def test_runs_do_not_cross_samples():
    said = [[["a"], ["a"]], [["b"], ["b"]], [["a"], ["b"]]]
    combo = Rerank(weights="uniform").fit(said, [["a"], ["b"]])
    assert combo.predict(said) == [["a"], ["b"]]
    assert Rerank().fit(said, [["a"], ["b"]]).predict(said) == [["a"], ["b"]]


def test_weights_are_learned():
    poor = [["b", "a"], ["a", "a", "b"], ["b", "b"]]
    for unit in ("run", "sample"):
        combo = Rerank(unit=unit, l2=0.01).fit([poor, GOLD, poor], GOLD)
        assert combo.predict([poor, GOLD, poor]) == GOLD
        assert combo.weights_.shape == (2, 3)
        assert combo.weights_[:, 1].sum() > combo.weights_[:, 0].sum()


def test_agreement_in_part_counts():
    # No two answers are equal; the one in the middle is nearest to the others.
    said = [[["a", "a", "b"]], [["a", "a", "a"]], [["b", "a", "a"]]]
    combo = Rerank(unit="sample", l2=0.1).fit(said, [["a", "a", "a"]])
    assert combo.predict(said) == [["a", "a", "a"]]


def test_silent_experts_are_no_candidates():
    said = [[["a", None], ["a"]], [["a", "b"], None], [["b", None], ["b"]]]
    combo = Rerank(unit="sample", weights="uniform").fit(said, [["a", "b"], ["b"]])
    assert combo.predict(said) == [["a", "b"], ["a"]]
    # Nobody gives a whole answer: the first that speaks is followed where it does.
    parts = [[[None, None]], [["a", None]], [[None, "b"]]]
    assert combo.predict(parts) == [["a", combo.default_label_]]
    runs = Rerank(weights="uniform").fit(said, [["a", "b"], ["b"]])
    assert runs.predict(parts) == [["a", "b"]]


def test_blocks_of_samples(monkeypatch):
    rng = np.random.default_rng(0)
    said = [[list(rng.choice(["a", "b"], 3)) for _ in range(9)] for _ in range(3)]
    gold = [list(rng.choice(["a", "b"], 3)) for _ in range(9)]
    stacked = Stacking().fit(said, gold)
    whole = stacked.predict(said)
    monkeypatch.setattr("trellis.experts.stacking._BLOCK", 18)  # two samples at a time
    assert stacked.predict(said) == whole


def test_agreement_everywhere():
    for unit in ("run", "sample"):
        combo = Rerank(unit=unit).fit([GOLD, GOLD], GOLD)
        assert combo.predict([GOLD, GOLD]) == GOLD


# ------------------------------------------------------------------ log-linear vote


def test_log_linear_vote_by_expert_and_label():
    # The first expert is right when it says a, the second when it says b.
    gold = [["a", "b", "c"]] * 6
    first, second = [["a", "c", "b"]] * 6, [["c", "b", "a"]] * 6
    third = [["c", "c", "c"]] * 6
    said = [first, second, third]
    combo = LogLinearVote(l2=0.01).fit(said, gold)
    assert combo.predict(said) == gold
    assert combo.weights_.shape == (3, 3)
    plain = LogLinearVote(by_label=False).fit(said, gold)
    assert np.ptp(plain.weights_, axis=1).tolist() == [0, 0, 0]


def test_log_linear_vote_with_new_labels_and_sleepers():
    combo = LogLinearVote().fit([GOLD, [["b", "a"], ["b", "b", "a"], ["b", "a"]]], GOLD)
    assert combo.predict([[["d", None]], [["b", None]]]) == [["d", combo.default_label_]]
    assert combo.predict([[[None]], [["b"]]]) == [["b"]]


def test_log_linear_vote_without_disagreement():
    assert LogLinearVote().fit([GOLD], GOLD).predict([GOLD]) == GOLD


# ------------------------------------------------------------------ stacking


def test_stacking_answers_what_nobody_says():
    gold = [["B-X", "I-X", "O"], ["O", "B-X", "I-X"], ["O", "O", "O"]] * 60
    late = [["O", "I-X", "O"], ["O", "O", "I-X"], ["O", "O", "O"]] * 60
    for scheme in (None, "BIO"):
        combo = Stacking(scheme=scheme).fit([late, late], gold)
        assert combo.predict([late[:3]] * 2) == gold[:3]
        assert combo.predict([[None], [["O"]]]) == [["O"]]


def test_window_sees_neighbours():
    # What is right at the second position shows at the first only.
    gold = [["a", "x"], ["b", "y"]] * 60
    said = [[["a", "x"], ["b", "x"]] * 60]
    assert Stacking(window=1).fit(said, gold).predict(said) == gold
    model = Stacking(window=0).fit(said, gold).model_
    # The expert or the vote says one of four labels or nothing, and any of four may be right.
    assert model.weights_.node.shape == (10, 4)


def test_other_models_and_new_labels():
    base = ChainPerceptron(random_state=0)
    combo = Stacking(base).fit([GOLD, GOLD], GOLD)
    assert isinstance(combo.model_, ChainPerceptron)
    assert not hasattr(base, "classes_")
    assert combo.predict([GOLD, GOLD]) == GOLD
    assert len(combo.predict([[["new", "b"]]] * 2)[0]) == 2


def test_same_data_same_bits():
    said = as_outputs([GOLD, [["b", "b"], ["b", "a", "a"], ["a", "a"]]])
    weights = [Stacking().fit(said, GOLD).model_.weights_.node for _ in range(2)]
    assert np.array_equal(*weights)


@pytest.mark.parametrize(
    ("combiner", "expected"),
    [
        (Rerank(unit="word"), "unit must be 'run' or 'sample', got 'word'"),
        (Rerank(weights="equal"), "weights must be 'learned' or 'uniform', got 'equal'"),
        (Rerank(l2=-1), "l2 must be 'auto' or a number of at least 0, got -1"),
        (LogLinearVote(l2=None), "l2 must be 'auto' or a number of at least 0, got None"),
        (Stacking(window=-1), "window must be an integer from 0 to 100, got -1"),
        (Stacking(ChainPerceptron(), scheme="BIO"), "give the scheme to the base model"),
    ],
)
def test_bad_options(combiner, expected):
    with pytest.raises(DataError, match=expected):
        combiner.fit([GOLD], GOLD)


@pytest.mark.parametrize(("n", "l2"), [(99, 10.0), (100, 3.0)])
def test_stacking_is_drawn_less_to_the_vote_by_many_samples(n, l2):
    rng = np.random.default_rng(0)
    gold = rng.choice(["a", "b"], (n, 1)).tolist()
    said = [[[str(rng.choice(["a", "b"]))] for _ in gold], gold]
    auto, same, other = (
        Stacking(l2=strength).fit(said, gold).model_.weights_.node
        for strength in ("auto", l2, 13.0 - l2)
    )
    assert np.array_equal(auto, same)
    assert not np.array_equal(auto, other)

"""Re-ranking, log-linear votes and stacking; the conditional logit beneath them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trellis import ChainPerceptron
from trellis.errors import DataError
from trellis.experts import LogLinearVote, Rerank, Stacking, as_outputs
from trellis.experts.logit import best_candidates, fit_logit

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

    def value(w):
        total = 0.5 * w @ w
        for a, b in itertools.pairwise(ends):
            if right[a:b].any():
                score = features[a:b] @ w
                total += np.log(np.exp(score).sum()) - score[right[a:b]][0]
        return total

    w = fit_logit(features, ends, right, 0.5)
    for step in np.concatenate([np.eye(3), -np.eye(3)]) * 1e-3:
        assert value(w) <= value(w + step) + 1e-9


def test_logit_with_nothing_to_learn():
    assert fit_logit(np.ones((2, 3)), np.array([0, 1, 2]), np.array([True, False]), 1.0).any() == 0
    assert best_candidates(np.zeros(0), np.zeros(1, np.int64)).tolist() == []
    assert best_candidates(np.array([1.0, 2.0, 2.0]), np.array([0, 1, 3])).tolist() == [0, 1]


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
def test_the_answer_to_a_sample_is_that_of_an_expert(answers):
    said = [[answer] for answer in answers]
    for combo in (Rerank(unit="sample"), Rerank(unit="sample", similar=False)):
        assert combo.fit(said, [["a", "b", "a", "b"]]).predict(said)[0] in answers


@given(st.lists(st.lists(st.sampled_from("ab"), min_size=5, max_size=5), min_size=1, max_size=4))
def test_runs_are_answered_by_one_expert_each(answers):
    said = [[answer] for answer in answers]
    found = Rerank(l2=0.1).fit(said, [["a", "b", "a", "b", "a"]]).predict(said)[0]
    disputed = [len(set(labels)) > 1 for labels in zip(*answers, strict=True)]
    at = 0
    while at < 5:
        end = at + 1
        while end < 5 and disputed[at] and disputed[end]:
            end += 1
        assert found[at:end] in [answer[at:end] for answer in answers]
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
    whole = Rerank(unit="sample").fit(said, gold)
    monkeypatch.setattr("trellis.experts.rerank._CELLS", 18)  # two samples at a time
    parts = Rerank(unit="sample").fit(said, gold)
    assert np.array_equal(whole.weights_, parts.weights_)
    assert whole.predict(said) == parts.predict(said)


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
    gold = [["B-X", "I-X", "O"], ["O", "B-X", "I-X"], ["O", "O", "O"]] * 6
    late = [["O", "I-X", "O"], ["O", "O", "I-X"], ["O", "O", "O"]] * 6
    for scheme in (None, "BIO"):
        combo = Stacking(scheme=scheme).fit([late, late], gold)
        assert combo.predict([late[:3]] * 2) == gold[:3]
        assert combo.predict([[None], [["O"]]]) == [["O"]]


def test_window_sees_neighbours():
    # What is right at the second position shows at the first only.
    gold = [["a", "x"], ["b", "y"]] * 8
    said = [[["a", "x"], ["b", "x"]] * 8]
    assert Stacking(window=1).fit(said, gold).predict(said) == gold
    model = Stacking(window=0).fit(said, gold).model_
    assert model.weights_.node.shape == (3, 4)  # one feature for each label that is said


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
        (Rerank(l2=-1), "l2 must be a number of at least 0, got -1"),
        (LogLinearVote(l2=None), "l2 must be a number of at least 0, got None"),
        (Stacking(window=-1), "window must be an integer from 0 to 100, got -1"),
        (Stacking(ChainPerceptron(), scheme="BIO"), "give the scheme to the base model"),
    ],
)
def test_bad_options(combiner, expected):
    with pytest.raises(DataError, match=expected):
        combiner.fit([GOLD], GOLD)

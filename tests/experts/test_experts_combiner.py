"""What all combiners share: gold for all samples, for some or for none; how sure they are."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trellis import load_model
from trellis.errors import DataError
from trellis.experts import (
    BestExpert,
    ESPBoost,
    FollowPerturbedLeader,
    ForwardStepwise,
    LogLinearVote,
    MajorityVote,
    Rerank,
    Rover,
    Stacking,
    WeightedMajority,
)

LEARNED = (
    BestExpert(),
    ESPBoost(),
    FollowPerturbedLeader(random_state=0),
    ForwardStepwise(random_state=0),
    LogLinearVote(),
    Rerank(),
    Rover(),
    Stacking(),
    WeightedMajority(),
)


@st.composite
def answers(draw, n_experts=3):
    """Answers of experts, some of which sleep."""
    lengths = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    label = st.sampled_from(["a", "b", None])
    said = [
        [draw(st.lists(label, min_size=n, max_size=n)) for n in lengths] for _ in range(n_experts)
    ]
    said[0] = [[y or "a" for y in sample] for sample in said[0]]  # somebody says something
    return said


@pytest.mark.parametrize("combiner", LEARNED, ids=lambda c: type(c).__name__)
@settings(max_examples=30)
@given(said=answers())
def test_without_gold_it_is_the_vote(combiner, said):
    plain = MajorityVote().fit(said).predict(said)
    for gold in (None, [None] * len(said[0])):
        combiner.fit(said, gold)
        assert not combiner.taught_
        assert combiner.predict(said) == plain


@pytest.mark.parametrize("combiner", LEARNED, ids=lambda c: type(c).__name__)
def test_samples_without_gold_teach_nothing(combiner):
    rng = np.random.default_rng(0)
    gold = [[str(y) for y in rng.integers(0, 3, 4)] for _ in range(12)]
    said = [
        [[y if rng.random() < share else "0" for y in sample] for sample in gold]
        for share in (0.9, 0.6, 0.5)
    ]
    some = combiner.fit([column[:6] for column in said], gold[:6]).predict(said)
    more = combiner.fit(said, [*gold[:6], *[None] * 6]).predict(said)
    assert combiner.taught_
    assert some == more


@pytest.mark.parametrize("combiner", LEARNED, ids=lambda c: type(c).__name__)
def test_one_that_was_not_taught_is_saved(combiner, tmp_path):
    said = [[["a", "b"]], [["a", "a"]], [["b", "a"]]]
    combiner.fit(said).save(tmp_path / "vote.trellis")
    loaded = load_model(tmp_path / "vote.trellis")
    assert loaded.predict(said) == [["a", "a"]]
    assert not loaded.taught_
    assert loaded.expert_losses_.tolist() == [0.5, 0.0, 0.5]


def test_learning_begins_with_the_first_right_answer():
    said = [[["a", "b"]], [["a", "a"]], [["b", "a"]]]
    combiner = WeightedMajority(tie="expert").partial_fit(said, None)
    assert not combiner.taught_
    combiner.partial_fit(said, [["a", "b"]])
    assert combiner.taught_
    assert combiner.weights_.argmax() == 0


def test_probabilities_of_a_vote():
    said = [[["a", "b"]], [["a", "a"]], [["b", None]]]
    vote = MajorityVote().fit(said)
    table = vote.predict_proba(said)[0]
    assert np.allclose(table, [[2.25 / 3.5, 1.25 / 3.5], [1.25 / 2.5, 1.25 / 2.5]])
    assert np.allclose(vote.predict_confidence(said)[0], [2.25 / 3.5, 0.5])


@pytest.mark.parametrize("combiner", [MajorityVote(), *LEARNED], ids=lambda c: type(c).__name__)
@settings(max_examples=30)
@given(said=answers())
def test_confidence_is_the_probability_of_the_answer(combiner, said):
    gold = [[y or "b" for y in sample] for sample in said[1]]
    combiner.fit(said, gold)
    sure = combiner.predict_confidence(said)
    tables = combiner.predict_proba(said)
    for answer, level, table in zip(combiner.predict(said), sure, tables, strict=True):
        assert np.allclose(table.sum(axis=1), 1)
        assert np.allclose(
            level, [row[combiner.classes_.index(y)] for y, row in zip(answer, table, strict=True)]
        )


def test_score_needs_gold():
    said = [[["a"]], [["a"]]]
    with pytest.raises(DataError, match="no samples to score"):
        MajorityVote().fit(said).score(said, [None])

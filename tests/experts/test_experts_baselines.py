"""Best expert, majority vote and ROVER's vote, counted by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from trellis.errors import DataError
from trellis.experts import BestExpert, MajorityVote, Rover, as_outputs

GOLD = [["a", "b"], ["b", "b", "a", "a"]]
FIRST = [["a", "a"], ["b", "b", "a", "a"]]  # one wrong position, one sample all right
SECOND = [["a", "b"], ["a", "b", "b", "a"]]  # two wrong positions, one sample all right
THIRD = [["b", "b"], ["b", "b", "a", "b"]]  # two wrong positions, no sample all right


def test_best_expert_by_hamming_loss():
    # Mean shares of mistakes: 1/4, 1/4, 3/8; the first of equals.
    combo = BestExpert().fit([FIRST, SECOND, THIRD], GOLD)
    assert combo.best_ == "expert 1"
    assert combo.ranking_ == ["expert 1", "expert 2", "expert 3"]
    assert combo.predict([FIRST, SECOND, THIRD]) == FIRST
    assert BestExpert().fit([THIRD, SECOND], GOLD).best_ == "expert 2"


def test_best_expert_by_samples_that_are_right():
    poor = [["a", "b"], ["a", "a", "b", "b"]]
    close = [["a", "a"], ["b", "b", "a", "b"]]
    assert BestExpert().fit([poor, close], GOLD).best_ == "expert 2"
    assert BestExpert(criterion="exact").fit([poor, close], GOLD).best_ == "expert 1"


def test_next_best_answers_where_the_best_sleeps():
    combo = BestExpert().fit([FIRST, SECOND, GOLD], GOLD)
    assert combo.best_ == "expert 3"
    new = [[["a", "a"]], [["b", None]], [[None, None]]]
    assert combo.predict(new) == [["a", "a"]]
    assert combo.predict([[[None]], [["b"]], [None]]) == [["b"]]


def test_majority_and_its_ties():
    combo = MajorityVote().fit([FIRST, SECOND, THIRD], GOLD)
    assert combo.predict([FIRST, SECOND, THIRD]) == [["a", "b"], ["b", "b", "a", "a"]]
    two = [THIRD, GOLD]
    assert MajorityVote().fit(two, GOLD).predict(two) == THIRD
    assert MajorityVote(order="accuracy").fit(two, GOLD).predict(two) == GOLD


def test_majority_that_keeps_to_a_scheme():
    gold = [["B-X", "I-X", "O"]]
    said = [[["O", "I-X", "O"]], [["B-X", "O", "O"]], [["O", "I-X", "I-X"]]]
    assert MajorityVote().fit(said, gold).predict(said) == [["O", "I-X", "O"]]
    valid = MajorityVote(scheme="BIO").fit(said, gold).predict(said)
    assert valid == [["B-X", "I-X", "O"]]


def test_majority_of_sleepers():
    combo = MajorityVote().fit([FIRST, SECOND], GOLD)
    assert combo.predict([[["a", None, None]], [["b", "b", None]]]) == [["a", "b", "a"]]


def test_short_samples_go_to_the_best_expert():
    combo = MajorityVote(short=2).fit([FIRST, SECOND, THIRD], GOLD)
    assert combo.short_expert_ == "expert 2"
    assert combo.predict([[["a", "a"]], [["b", "b"]], [["a", "a"]]]) == [["b", "b"]]


def test_rover_precisions_and_alpha():
    rover = Rover().fit([FIRST, SECOND, THIRD], GOLD)
    # The first says a four times, three of them right: (3 + 6/8) / (4 + 1).
    assert rover.precisions_[0, 0] == pytest.approx((3 + 0.75) / 5)
    assert rover.precisions_.shape == (3, 2)
    assert rover.alpha_ == 1.0  # the plain vote has no mistake, and the largest α of equals wins
    assert rover.predict([FIRST, SECOND, THIRD]) == GOLD


@pytest.mark.parametrize("pool", ["mean", "max"])
def test_rover_trusts_the_confident(pool):
    poor = [["b", "a"], ["a", "a", "b", "b"]]
    said = [poor, poor, GOLD]
    rover = Rover(pool=pool).fit(said, GOLD)
    assert rover.alpha_ < 1
    assert rover.predict(said) == GOLD
    # Frequency alone is the plain vote.
    assert Rover(alpha=1.0).fit(said, GOLD).predict(said) == poor


def test_rover_pools_differently():
    # Two experts say a with confidence .5, one says b with .7: mean and max agree on b, but with
    # one doubtful expert for b besides, the mean falls below.
    said = as_outputs([[["a"]], [["a"]], [["b"]], [["b"]]])
    scores = np.zeros((1, 4, 2))
    scores[0, :, 0] = [0.5, 0.5, 0.3, 0.9]
    scores[0, :, 1] = [0.5, 0.5, 0.7, 0.1]
    said = replace(said, scores=scores)
    fitted = {
        pool: Rover(pool=pool, alpha=0.0).fit(said, [["a"]]).predict(said)
        for pool in ("mean", "max")
    }
    assert fitted == {"mean": [["a"]], "max": [["b"]]}


def test_rover_with_scores_only_where_asked():
    said = as_outputs([[["a", "b"]], [["b", "b"]]])
    scores = np.array([[[0.9, 0.1], [0.4, 0.6]], [[0.4, 0.6], [0.1, 0.9]]])
    with_scores = replace(said, scores=scores)
    own = Rover(alpha=0.0).fit(with_scores, [["a", "b"]])
    assert own.predict(with_scores) == [["a", "b"]]
    with pytest.raises(DataError, match="confidence='scores' needs"):
        own.predict(said)
    with pytest.raises(DataError, match="confidence='scores' needs"):
        Rover(confidence="scores").fit(said, [["a", "b"]])
    learned = Rover(confidence="precision").fit(with_scores, [["a", "b"]])
    assert learned.predict(said) == learned.predict(with_scores)


def test_rover_with_new_labels_and_sleepers():
    rover = Rover().fit([FIRST, SECOND], GOLD)
    assert rover.predict([[["c", None]], [["c", None]]]) == [["c", rover.default_label_]]


@pytest.mark.parametrize(
    ("combiner", "expected"),
    [
        (BestExpert(criterion="f1"), "criterion must be 'hamming' or 'exact', got 'f1'"),
        (MajorityVote(order="random"), "order must be 'given' or 'accuracy'"),
        (Rover(confidence="high"), "confidence must be 'auto', 'scores' or 'precision'"),
        (Rover(pool="sum"), "pool must be 'mean' or 'max'"),
        (Rover(alpha=1.5), "alpha must be 'auto' or a number from 0 to 1, got 1.5"),
        (Rover(alpha="best"), "alpha must be 'auto' or a number from 0 to 1, got 'best'"),
    ],
)
def test_bad_options(combiner, expected):
    with pytest.raises(DataError, match=expected):
        combiner.fit([FIRST], GOLD)

"""Best expert, majority vote and ROVER's vote, counted by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trellis.errors import DataError
from trellis.experts import BestExpert, MajorityVote, Rover, as_outputs, baselines

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
    # The first says a four times, three of them right, and is right five times of six: 20 answers
    # of its mean precision, 6/8, are added.
    assert rover.precisions_[0, 0] == pytest.approx((3 + 20 * 0.75) / (4 + 20))
    assert rover.precisions_.shape == (3, 2)
    assert rover.alpha_ == 1.0  # the plain vote has no mistake
    assert rover.predict([FIRST, SECOND, THIRD]) == GOLD


@pytest.mark.parametrize("pool", ["mean", "max"])
def test_rover_trusts_the_confident(pool):
    poor = [["b", "a"], ["a", "a", "b", "b"]] * 4
    said, gold = [poor, poor, GOLD * 4], GOLD * 4
    rover = Rover(pool=pool).fit(said, gold)
    assert rover.alpha_ < 1
    assert rover.predict(said) == gold
    # Frequency alone is the plain vote.
    assert Rover(alpha=1.0).fit(said, gold).predict(said) == poor


ALPHAS = [k / 10 for k in range(10, -1, -1)]


def rover_answer(said, trust, alpha, pool, p):
    """The best of the labels said at one position, in the order of the experts."""
    best, top = None, -1.0
    for label in dict.fromkeys(y for y in said if y is not None):
        believed = [t for y, t in zip(said, trust, strict=True) if y == label]
        confidence = max(believed) if pool == "max" else sum(believed) / len(believed)
        score = alpha * len(believed) / p + (1 - alpha) * confidence
        if score > top + 1e-12:
            best, top = label, score
    return best


def precision_of(experts, gold, kept, j, label):
    """Of expert j for a label on the samples that are kept, smoothed."""
    pairs = [(y, g) for i in kept for y, g in zip(experts[j][i], gold[i], strict=True) if y]
    mean = (sum(y == g for y, g in pairs) + 1) / (len(pairs) + 2)
    own = [(y, g) for y, g in pairs if y == label]
    return (sum(y == g for y, g in own) + 20 * mean) / (len(own) + 20)


@st.composite
def rover_problems(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, p = draw(st.integers(1, 6)), draw(st.integers(1, 4))
    labels = ["a", "b", "c"]
    gold = [[labels[c] for c in rng.integers(0, 3, rng.integers(1, 6))] for _ in range(n)]
    chances = rng.random(p)
    experts = [
        [[y if rng.random() < chances[j] else labels[rng.integers(3)] for y in s] for s in gold]
        for j in range(p)
    ]
    if draw(st.booleans()):
        experts = [[[None if rng.random() < 0.2 else y for y in s] for s in e] for e in experts]
        experts[0] = [[y or "a" for y in s] for s in experts[0]]
    return experts, gold


@settings(max_examples=40)
@given(rover_problems(), st.sampled_from(["mean", "max"]), st.sampled_from([1, 2, 4096]))
def test_rover_learns_leaving_out_one_sample(problem, pool, block):
    experts, gold = problem
    n, p = len(gold), len(experts)
    wrong = np.zeros((n, 11), int)
    for s in range(n):
        kept = [i for i in range(n) if i != s]
        for t, right in enumerate(gold[s]):
            said = [expert[s][t] for expert in experts]
            trust = [precision_of(experts, gold, kept, j, y) for j, y in enumerate(said)]
            for k, alpha in enumerate(ALPHAS):
                wrong[s, k] += rover_answer(said, trust, alpha, pool, p) != right
    alpha = 1.0
    if n > 1:
        best = int(wrong.sum(axis=0).argmin())
        for k in range(11):  # the first that is no more than a standard error worse
            more = wrong[:, k] - wrong[:, best]
            if more.sum() <= np.sqrt(n) * more.std(ddof=1) + 1e-9:
                alpha = ALPHAS[k]
                break
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(baselines, "_BLOCK", block)
        rover = Rover(pool=pool).fit(experts, gold)
        answers = rover.predict(experts)
    assert rover.alpha_ == alpha
    for s in range(n):
        for t in range(len(gold[s])):
            said = [expert[s][t] for expert in experts]
            trust = [precision_of(experts, gold, range(n), j, y) for j, y in enumerate(said)]
            assert answers[s][t] == rover_answer(said, trust, alpha, pool, p)


def test_rover_stays_with_the_vote_unless_it_is_clearly_worse():
    # Two poor experts outvote a good one in one sample of ten: not enough.
    gold = [["a", "b"]] * 10
    poor = [["b", "b"], *gold[1:]]
    assert Rover().fit([poor, poor, gold], gold).alpha_ == 1.0
    poor = [["b", "b"]] * 6 + gold[6:]
    assert Rover().fit([poor, poor, gold], gold).alpha_ < 1.0
    assert Rover().fit([poor[:1], poor[:1], gold[:1]], gold[:1]).alpha_ == 1.0


@pytest.mark.parametrize("alpha", ["auto", 0.3])
def test_rover_without_labelled_samples_is_the_vote(alpha):
    said = as_outputs([[["b", "a"]], [["a", "a"]], [["b", "c"]], [["a", "c"]]])
    rover = Rover(alpha=alpha)
    rover._learn(said.take([]), np.zeros(0, np.int32), fresh=True)
    assert rover.alpha_ == 1.0
    assert said.lists(rover._label(said)) == [["b", "a"]]
    assert MajorityVote().fit(said, [["a", "a"]]).predict(said) == [["b", "a"]]


def test_ties_of_rover_go_to_the_first_expert():
    two = [THIRD, GOLD]
    assert Rover(alpha=1.0).fit(two, GOLD).predict(two) == THIRD
    assert Rover(alpha=1.0).fit(two[::-1], GOLD).predict(two[::-1]) == GOLD


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

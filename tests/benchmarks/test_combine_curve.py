"""Scores by the number of gold samples: what methods are given, scores, and intervals."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.combine import (
    VOTE,
    Bootstrap,
    Cell,
    Point,
    combined,
    curve,
    trellis_methods,
)
from benchmarks.combine_peers import PeerMethod, plain_vote
from benchmarks.expert_sets import ExpertSet, skewed
from trellis.evaluation import span_scores
from trellis.experts import as_outputs
from trellis.experts.quality import Quality

DATA = skewed(n=60)


# ---------------------------------------------------------------------------- scores


def test_scores():
    gold = [["B-x", "I-x", "O"], ["O", "B-y"]]
    answers = [["B-x", "O", "O"], ["O", "B-y"]]
    said = as_outputs([answers])
    spans = ExpertSet("spans", said, gold, "BIO", "span-f1")
    assert spans.score(answers) == pytest.approx(100 * span_scores(gold, answers, "BIO").f1)
    assert ExpertSet("positions", said, gold, None, "hamming").score(answers) == 80
    assert ExpertSet("samples", said, gold, None, "exact").score(answers) == 50
    assert ExpertSet("words", said, gold, None, "edit").score(answers) == 20


# ---------------------------------------------------------------------------- the protocol


def test_what_methods_are_given():
    calls = []

    def spy(known, gold, asked):
        calls.append((known.codes.tolist(), gold, asked.codes.tolist()))
        return PeerMethod(plain_vote)(known, gold, asked)

    points = curve(DATA, {"spy": spy}, sizes=(0, 10, None, 31), repeats=2)
    sizes = [len(gold) for _, gold, _ in calls]
    assert sizes == [0, 10, 30, 0, 10, 30]  # 31 are more than the pool has
    assert [point.size for point in points if point.method == "spy"] == [0, 10, None]
    for none, some, every in (calls[:3], calls[3:]):
        assert none[2] == some[2] == every[2]  # one test half
        assert len(none[2]) == 5 * 30
        assert every[1][:10] == some[1]  # less gold is a part of more
        assert sorted(map(tuple, every[0] + every[2])) == sorted(map(tuple, DATA.outputs.codes))
    assert calls[0][2] != calls[3][2]


def test_the_vote_itself_gains_nothing():
    points = curve(DATA, {"same": combined("vote", DATA)}, sizes=(0, 10), repeats=3)
    assert [(point.method, point.size) for point in points] == [
        (VOTE, 0), (VOTE, 10), ("same", 0), ("same", 10)
    ]  # fmt: skip
    assert len({point.score for point in points}) == 1
    for point in points[2:]:
        assert (point.gain, point.low, point.high) == (0, 0, 0)
        assert point.seconds > 0


def test_same_seed_same_points():
    def run(seed):
        methods = {"one": combined("log-linear", DATA)}
        points = curve(DATA, methods, sizes=(10,), repeats=2, seed=seed)
        return [(point.score, point.gain, point.low, point.high) for point in points]

    assert run(0) == run(0)
    assert run(0) != run(1)


def test_limits():
    calls = []

    def slow(known, gold, asked):
        calls.append(len(gold))
        return PeerMethod(plain_vote)(known, gold, asked)

    points = curve(DATA, {"slow": slow}, sizes=(10,), repeats=4, limits={"slow": 1})
    assert calls == [10]
    assert points[-1].gain == 0  # against the vote of the same repeat


def test_seconds_of_another_process():
    class Elsewhere:
        seconds = 5.0

        def __call__(self, known, gold, asked):
            return PeerMethod(plain_vote)(known, gold, asked)

    assert curve(DATA, {"far": Elsewhere()}, sizes=(10,), repeats=2)[-1].seconds == 5.0


def test_every_method_of_a_set_answers():
    methods = trellis_methods(DATA)
    points = curve(DATA, methods, sizes=(0, None), repeats=1)
    for size in (0, None):
        assert {point.method for point in points if point.size == size} == {VOTE, *methods}
    ragged = [
        [list("ab"), list("c")] * 4,
        [list("a"), list("cd")] * 4,
        [list("ab"), list("cd")] * 4,
    ]
    words = ExpertSet("words", ragged, [list("ab"), list("cd")] * 4, None, "exact")
    points = curve(words, trellis_methods(words), sizes=(None,), repeats=1)
    assert "Stacking" not in {point.method for point in points}
    assert points[0].score == 100


# ---------------------------------------------------------------------------- intervals


def interval(rights, votes, tests, n):
    """Mean, gain and interval, given whether samples are right, by repeat."""
    bootstrap = Bootstrap(n, len(tests), 0, Quality("exact"))

    def rows(found):
        ones = [np.stack([right, np.ones(len(right))], axis=1) for right in found]
        return [bootstrap.scores(test, one) for test, one in zip(tests, ones, strict=True)]

    return bootstrap.gain(rows(rights), rows(votes))


def test_interval_of_one_repeat_is_that_of_samples():
    rng = np.random.default_rng(0)
    mine, vote = rng.random(2000) < 0.8, rng.random(2000) < 0.7
    mean, gain, low, high = interval([mine], [vote], [np.arange(2000)], 2000)
    difference = mine.astype(float) - vote
    half = 196 * difference.std() / np.sqrt(2000)
    assert mean == pytest.approx(100 * mine.mean())
    assert gain == pytest.approx(100 * difference.mean())
    assert [gain - low, high - gain] == pytest.approx([half, half], rel=0.1)


def test_repeats_of_the_same_samples_are_no_more_samples():
    rng = np.random.default_rng(0)
    mine, vote = rng.random(500) < 0.8, rng.random(500) < 0.7
    test = np.arange(500)
    _, _, low, high = interval([mine], [vote], [test], 500)
    _, _, low_of_ten, high_of_ten = interval([mine] * 10, [vote] * 10, [test] * 10, 500)
    assert high_of_ten - low_of_ten == pytest.approx(high - low, rel=1e-6)


def test_interval_covers_repeats():
    """Samples are all alike in a repeat, so that repeats alone differ."""
    share = np.array([0.0, 1, 0, 1, 1, 1, 0, 1, 1, 1])
    test = np.arange(50)
    rights = [np.full(50, value) for value in share]
    _, gain, low, high = interval(rights, [np.zeros(50)] * 10, [test] * 10, 50)
    half = 196 * share.std() / np.sqrt(10)
    assert gain == pytest.approx(70)
    assert high - low == pytest.approx(2 * half, rel=0.15)


def test_cells():
    assert str(Cell([45.171, 0.92, -0.134, 1.7])) == "45.17 (+0.92, −0.13 to +1.70)"
    vote = Point(VOTE, 0, 44.0, 0.0, 0.0, 0.0, 0.1)
    assert str(vote.cell) == "44.00"

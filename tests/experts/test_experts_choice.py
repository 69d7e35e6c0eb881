"""The vote stays unless another method is surely better."""

import numpy as np

from trellis.experts.choice import choose
from trellis.experts.quality import Quality


def answers(rng, n, share):
    """Counts of n samples, of which a share is right."""
    return np.stack([rng.random(n) < share, np.ones(n)], axis=1).astype(float)


def test_the_better_one_is_taken():
    rng = np.random.default_rng(0)
    counts = {
        "vote": answers(rng, 500, 0.6),
        "a": answers(rng, 500, 0.5),
        "b": answers(rng, 500, 0.8),
    }
    choice = choose(counts, Quality("exact"), 0)
    assert choice.name == "b"
    assert 10 < choice.gain < 30
    low, high = choice.trial.interval
    assert low < choice.trial.gain < high
    assert choice.trials[0].gain == 0


def test_fewer_errors_are_better():
    rng = np.random.default_rng(0)
    counts = {"vote": answers(rng, 500, 0.6), "a": answers(rng, 500, 0.3)}
    choice = choose(counts, Quality("edit"), 0)
    assert choice.name == "a"
    assert choice.gain > 10


def test_the_vote_stays():
    # Ten methods as good as the vote: the best of them looks better, by luck.
    n_left, flattered, honest = 0, [], []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        counts = {"vote": answers(rng, 60, 0.7)} | {
            str(m): answers(rng, 60, 0.7) for m in range(10)
        }
        choice = choose(counts, Quality("exact"), seed)
        n_left += choice.name != "vote"
        flattered.append(max(trial.gain for trial in choice.trials))
        honest.append(choice.gain)
    # Of ten that differ by luck alone one is a standard error ahead nearly always.
    assert np.mean(flattered) > 5
    assert abs(np.mean(honest)) < 0.5 * np.mean(flattered)


def test_equal_methods_leave_the_vote():
    rng = np.random.default_rng(0)
    same = answers(rng, 30, 0.5)
    choice = choose({"vote": same, "a": same.copy()}, Quality("exact"), 0)
    assert choice.name == "vote"
    assert choice.gain == 0


def test_same_seed_same_choice():
    rng = np.random.default_rng(0)
    counts = {"vote": answers(rng, 50, 0.6), "a": answers(rng, 50, 0.7)}
    assert choose(counts, Quality("exact"), 3) == choose(counts, Quality("exact"), 3)

"""Kernels of whole answers against comparing all pairs of experts."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from trellis.experts import Rerank, as_outputs
from trellis.experts.logit import best_candidates
from trellis.experts.rerank import candidates, with_vote
from trellis.experts.voting import vote
from trellis.kernels.whole_answers import disputed_runs

SEEDS = st.integers(0, 10**6)


def drawn(seed, asleep):
    """Answers of few labels to samples of several lengths: many are alike."""
    rng = np.random.default_rng(seed)
    lengths, p = rng.integers(1, 5, 8), int(rng.integers(1, 6))
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    codes = rng.integers(0, 2, (offsets[-1], p)).astype(np.int32)
    if asleep:
        codes[rng.random(codes.shape) < 0.3] = -1
    return rng, offsets, codes


def all_pairs(codes, offsets):
    """Ends, first givers, equality and agreement of the distinct answers, pair by pair."""
    ends, who, equal, agree = [0], [], [], []
    p = codes.shape[1]
    for a, b in itertools.pairwise(offsets):
        answers = [codes[a:b, j].tolist() for j in range(p)]
        whole = [min(answer) >= 0 for answer in answers]
        firsts = [j for j in range(p) if whole[j] and answers.index(answers[j]) == j]
        if not firsts:
            firsts = [next((j for j in range(p) if max(answers[j]) >= 0), 0)]
        for j in firsts:
            who.append(j)
            equal.append([float(whole[j] and other == answers[j]) for other in answers])
            same = [
                [x == y and x >= 0 for x, y in zip(answers[j], other, strict=True)]
                for other in answers
            ]
            agree.append([sum(one) / (b - a) for one in same])
        ends.append(len(who))
    return ends, who, equal, agree


@settings(max_examples=30, deadline=None)
@given(SEEDS, st.booleans(), st.booleans())
def test_candidates(seed, asleep, similar):
    _, offsets, codes = drawn(seed, asleep)
    ends, who, equal, agree = (x.tolist() for x in candidates(codes, offsets, similar))
    wanted = all_pairs(codes, offsets)
    assert (ends, who, equal) == wanted[:3]
    assert agree == (wanted[3] if similar else [[]] * len(who))  # the same bits


@settings(max_examples=30, deadline=None)
@given(SEEDS, st.booleans())
def test_disputed_runs(seed, asleep):
    _, offsets, codes = drawn(seed, asleep)
    starts, stops = np.empty((2, len(codes)), np.int64)
    n = disputed_runs(offsets, codes, starts, stops)
    found = list(zip(starts[:n].tolist(), stops[:n].tolist(), strict=True))
    disputed = [len({code for code in row if code >= 0}) > 1 for row in codes.tolist()]
    wanted = []
    for a, b in itertools.pairwise(offsets.tolist()):
        for t in range(a, b):
            if disputed[t]:
                if t > a and disputed[t - 1]:
                    wanted[-1] = (wanted[-1][0], t + 1)
                else:
                    wanted.append((t, t + 1))
    assert found == wanted


@settings(max_examples=30, deadline=None)
@given(SEEDS, st.booleans(), st.booleans(), st.sampled_from(["run", "sample"]))
def test_best_answers(seed, asleep, with_the_vote, unit):
    """What is answered is the candidate of the highest score, by all features of it."""
    rng, offsets, codes = drawn(seed, asleep)
    p = codes.shape[1]
    names = np.array(["a", "b", None], object)  # -1 is the last one
    lists = [
        [names[codes[a:b, j]].tolist() for a, b in itertools.pairwise(offsets)] for j in range(p)
    ]
    spoken = [s for s in range(8) if any(any(column[s]) for column in lists)]
    said = as_outputs([[column[s] for s in spoken] for column in lists], labels=["a", "b"])
    combo = Rerank(unit=unit).fit(said, [["a"] * n for n in said.lengths])
    # Equal weights make ties, others none.
    combo.weights_ = rng.normal(size=(2, p)) if seed % 2 else np.ones((2, p))
    combo.vote_weight_ = 0.5 if with_the_vote else 0.0
    codes, offsets = said.codes, said.offsets
    wanted = codes.max(axis=1)
    every = with_vote(codes, 2) if with_the_vote else codes
    starts, stops = combo._units(said)
    for a, b in zip(starts, stops, strict=True):
        _, who, equal, agree = all_pairs(every[a:b], [0, b - a])
        scores = np.array(equal)[:, :p] @ combo.weights_[0]
        scores += np.array(agree)[:, :p] @ combo.weights_[1]
        if with_the_vote:
            scores += 0.5 * np.array(equal)[:, p]
        best = best_candidates(scores, np.array([0, len(who)]))[0]
        wanted[a:b] = every[a:b, who[best]]
    default = said.labels.index(combo.default_label_)
    found = [said.labels.index(y) for sample in combo.predict(said) for y in sample]
    assert found == np.where(wanted < 0, default, wanted).tolist()


def test_the_vote_is_one_more_expert():
    codes = np.array([[0, 1, 1], [1, 0, 1]], np.int32)
    assert np.array_equal(with_vote(codes, 2)[:, 3], vote(codes, np.ones(3), 2))

"""Peers of combiners: what they are given, votes and features by brute force, the other process."""

from __future__ import annotations

import stat
import sys
from importlib.util import find_spec
from itertools import chain, pairwise

import numpy as np
import pytest

from benchmarks.combine_peers import (
    CROWD_KIT,
    CrowdKit,
    PeerMethod,
    Task,
    accuracies,
    as_task,
    here,
    logistic_stacking,
    most_frequent_answers,
    networks,
    one_hot,
    plain_vote,
    vote_by_accuracy,
    vote_by_log_odds,
)
from benchmarks.expert_sets import skewed, take
from benchmarks.peers import PeerError
from trellis.experts import MajorityVote, as_outputs

FAKE = """
import pandas

class MajorityVote:
    def fit_predict(self, data, true_labels=None):
        return data.groupby("task")["label"].agg(lambda said: said.mode()[0])

class DawidSkene(MajorityVote):
    def fit_predict(self, data, true_labels=None):
        found = super().fit_predict(data)
        return found if true_labels is None else found * 0 + int(true_labels.iloc[0])

class Wawa:
    def fit_predict(self, data):
        print("noise")
        raise ValueError("it fails")
"""


def task(known, truth, asked, n_labels=3):
    """A task whose samples have one position."""
    known, asked = np.array(known, np.int32).reshape(-1, 3), np.array(asked, np.int32)
    labels = tuple("abc"[:n_labels])
    bounds = np.arange(len(known) + 1), np.arange(len(asked) + 1)
    return Task(known, np.array(truth, np.int32), bounds[0], asked, bounds[1], labels)


# ---------------------------------------------------------------------------- in this process


def test_plain_vote_is_that_of_trellis():
    data = skewed(n=50)
    expected = MajorityVote().fit(data.outputs, data.gold).predict(data.outputs)
    assert PeerMethod(plain_vote)([], [], data.outputs) == expected


def test_votes_by_accuracy_and_by_log_odds():
    known = [[0, 1, 1], [1, 0, 0], [2, 0, 1], [0, 0, 0]]  # right: 4, 1, 1 of 4
    one = task(known, [0, 1, 2, 0], [[0, 1, 1], [1, -1, 0], [0, 1, 2]])
    assert accuracies(one) == pytest.approx([4.5 / 5, 1.5 / 5, 1.5 / 5])
    assert vote_by_accuracy(one).tolist() == [0, 1, 0]
    assert vote_by_log_odds(one).tolist() == [0, 1, 0]
    # Two of .6 outvote one of .9 by accuracies, not by log-odds.
    known = [[0, 0, 0]] * 5 + [[0, 1, 1]] * 4 + [[1, 0, 0]]
    two = task(known, [0] * 10, [[0, 1, 1]], n_labels=2)
    assert vote_by_accuracy(two).tolist() == [1]
    assert vote_by_log_odds(two).tolist() == [0]
    # Experts below chance have no vote.
    below = task([[0, 1, 1]] * 9, [0] * 9, [[0, 1, 1]], n_labels=2)
    assert vote_by_log_odds(below).tolist() == [0]


def test_silent_positions_count_for_nobody():
    one = task([[0, -1, 1], [0, -1, 1]], [0, 1], [[-1, -1, -1], [1, 1, 1]])
    assert accuracies(one) == pytest.approx([1.5 / 3, 0.5, 1.5 / 3])
    said = as_outputs([[["a", None], ["a"]], [["a", None], ["b"]]])
    assert PeerMethod(plain_vote)([], [], said) == [["a", "a"], ["a"]]


def test_without_gold_there_is_no_answer():
    data = skewed(n=5)
    for method in here().values():
        assert method([], [], data.outputs) is None


def test_one_hot_by_brute_force():
    rng = np.random.default_rng(0)
    codes, offsets = rng.integers(-1, 3, (9, 2)).astype(np.int32), np.array([0, 1, 5, 9])
    found = one_hot(codes, offsets, 3).toarray()
    expected = np.zeros((9, 3 * 2 * 5))
    for a, b in pairwise(offsets.tolist()):
        for t in range(a, b):
            for k, place in enumerate((t - 1, t, t + 1)):
                for j in range(2):
                    said = codes[place, j] if a <= place < b else 4
                    value = 3 if said < 0 else said
                    expected[t, (k * 2 + j) * 5 + value] = 1
    assert np.array_equal(found, expected)


def test_logistic_stacking_learns():
    data = skewed(n=300, accuracies=(0.3, 0.9, 0.3))
    method = PeerMethod(logistic_stacking)
    known, asked = take(data.outputs, range(200)), take(data.outputs, range(200, 300))
    answers = method(known, data.gold[:200], asked)
    pairs = zip(chain(*answers), chain(*data.gold[200:]), strict=True)
    assert np.mean([a == g for a, g in pairs]) > 0.85
    assert method.seconds is None
    one = task([[0, 1, 1], [1, 0, 0]], [2, 2], [[0, 1, 1]])
    assert logistic_stacking(one).tolist() == [2]


# ---------------------------------------------------------------------------- what they are given


def test_both_parts_have_the_same_codes():
    known, asked = as_outputs([[["b"]], [["d"]]]), as_outputs([[["c", "b"]], [["b", "b"]]])
    given, said = as_task(known, [["a"]], asked)
    assert given.labels == said.labels == ("a", "b", "c", "d")
    assert given.known.tolist() == [[1, 3]]
    assert given.truth.tolist() == [0]
    assert given.asked.tolist() == [[2, 1], [1, 1]]
    assert (given.known_offsets.tolist(), given.asked_offsets.tolist()) == ([0, 1], [0, 2])
    nothing, _ = as_task(take(known, []), [], asked)
    assert nothing.known.shape == (0, 2)
    assert nothing.labels == ("b", "c")


def test_answers_of_different_lengths():
    said = [[list("cat"), list("dg")], [list("ct"), list("dog")], [list("cat"), list("dog")]]
    assert PeerMethod(plain_vote)([], [], said) == [list("cat"), list("dog")]
    gold = [list("cat"), list("dog")]
    network, right, asked = networks(said, gold, said)
    assert network.lengths.tolist() == asked.lengths.tolist() == [3, 3]
    assert right == gold
    assert PeerMethod(vote_by_accuracy)(said, gold, said) == gold


def test_whole_answers():
    said = [[["a"], ["a"]], [["a", "b"], ["b"]], [["a", "b"], None], [None, None]]
    assert most_frequent_answers([], [], said) == [["a", "b"], ["a"]]
    assert most_frequent_answers([], [], as_outputs([[["a"]]])) is None


# ---------------------------------------------------------------------------- in another process


@pytest.fixture
def python(tmp_path):
    """An interpreter that has a stand-in for crowd-kit."""
    pytest.importorskip("pandas")
    package, about = tmp_path / "crowdkit", tmp_path / "crowd_kit-9.9.dist-info"
    package.mkdir()
    about.mkdir()
    (package / "__init__.py").write_text("")
    (package / "aggregation.py").write_text(FAKE)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: crowd-kit\nVersion: 9.9\n")
    script = tmp_path / "python"
    script.write_text(f'#!/bin/sh\nPYTHONPATH={tmp_path} exec "{sys.executable}" "$@"\n')
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return str(script)


def test_another_process(python, capsys):
    peers = CrowdKit(python)
    assert peers.version == "9.9"
    methods = peers.methods()
    assert [*methods] == [f"crowd-kit 9.9 {name}" for name in CROWD_KIT]
    vote, clamped, _, _, broken, _ = methods.values()
    asked = as_outputs([[["a", "b", None]], [["a", "b", None]], [["b", "a", None]]])
    known, gold = as_outputs([[["a"]], [["a"]], [["b"]]]), [["b"]]
    assert vote([], [], asked) == [["a", "b", "a"]]  # where all are silent the usual label
    assert vote.seconds > 0
    assert vote(known, gold, asked) is None  # it cannot use gold
    assert clamped([], [], asked) == [["a", "b", "a"]]
    assert clamped(known, gold, asked) == [["b", "b", "a"]]  # gold is passed on
    assert broken([], [], asked) is broken([], [], asked) is None
    assert capsys.readouterr().err.count("crowd-kit's Wawa is left out: ValueErr") == 1
    peers.close()


def test_not_installed():
    if find_spec("crowdkit"):
        pytest.skip("it is")
    peers = CrowdKit()
    assert peers.version is None
    assert peers.methods() == {}
    with pytest.raises(PeerError, match=r"No module named '(crowdkit|pandas)"):
        peers.answer("MACE", task([], [], [[0, 0, 0]]))
    peers.close()


def test_a_process_that_ends():
    with pytest.raises(PeerError, match="ended the process"):
        CrowdKit("/bin/true")

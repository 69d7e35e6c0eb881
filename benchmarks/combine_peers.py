r"""What others make of experts' answers: crowd-kit, scikit-learn, and weighted votes.

A peer is given all that a method of Trellis is given (:class:`Task`): the answers to samples with
gold, their right labels, and the answers to the samples that it is asked about, all at once, so
that those that learn without gold learn from these too. All defaults are theirs.

- crowd-kit (Ustalov, Pavlichenko and Tseitlin 2024): ``MajorityVote``, ``DawidSkene``,
  ``OneCoinDawidSkene`` and ``MACE``, each position a task and each expert a worker. Gold is clamped
  (``true_labels``) where that is possible, in ``DawidSkene``; the others cannot use gold and answer
  only where there is none. ``Wawa`` and ``GoldMajorityVote`` fail with scikit-learn 1.6 and later
  (they have no ``__sklearn_tags__``), and are left out where they fail; the second is the vote
  weighted by accuracy below. It runs in the interpreter of ``--peer-python``, which need not know
  Trellis.
- scikit-learn: logistic regression on what each expert says at positions -1, 0 and 1, one-hot.
- for answers of different lengths, the whole answer that most experts give.
- votes in which expert j of accuracy :math:`a_j` on the gold weighs :math:`a_j`, or, with k labels,
  :math:`\log ((k - 1) a_j / (1 - a_j))`, which is best for independent experts whose errors are
  uniform (Nitzan and Paroush 1982), and nothing if that is below 0; the accuracies are counted with
  half a position right and half a position wrong in addition.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.expert_sets import Answers, Labels, Outputs
from benchmarks.peers import PeerError, PeerProcess
from trellis.evaluation import edit_distance
from trellis.experts import ExpertOutputs, align, strip
from trellis.experts.voting import vote

Codes = NDArray[np.int32]
EPSILON = "<eps>"

CROWD_KIT = ("MajorityVote", "DawidSkene", "OneCoinDawidSkene", "MACE", "Wawa", "GoldMajorityVote")
WITH_GOLD = ("DawidSkene", "GoldMajorityVote")
WITHOUT_GOLD = ("MajorityVote", "DawidSkene", "OneCoinDawidSkene", "MACE", "Wawa")


@dataclass(frozen=True)
class Task:
    """Answers and right labels as codes; -1: says nothing."""

    known: Codes
    """Answers (N', p) to the samples with gold."""
    truth: Codes
    """Their right labels (N',)."""
    known_offsets: NDArray[np.int64]
    """Positions at which these samples begin and end."""
    asked: Codes
    """Answers (N, p) to the samples in question."""
    asked_offsets: NDArray[np.int64]
    labels: tuple[str, ...]


Peer = Callable[[Task], Codes | None]
"""The label of each position in question; None if there is no answer without gold, or with it."""


# ---------------------------------------------------------------------------- as methods


@dataclass
class PeerMethod:
    """A peer as a method ``(outputs_gold, gold, outputs_test) -> answers``.

    Answers of different lengths are aligned first, in the order of their edit distance from the
    gold, as they stand if there is none.
    """

    peer: Peer

    @property
    def seconds(self) -> float | None:
        """CPU seconds of the last call in another process; None if it was in this one."""
        return getattr(self.peer, "seconds", None)

    def __call__(self, outputs_gold: Outputs, gold: Labels, outputs_test: Outputs) -> Labels | None:
        """Answers to the samples in question."""
        aligned = isinstance(outputs_test, ExpertOutputs)
        if not aligned:
            outputs_gold, gold, outputs_test = networks(outputs_gold, gold, outputs_test)
        task, asked = as_task(outputs_gold, gold, outputs_test)
        found = self.peer(task)
        if found is None:
            return None
        answers = asked.lists(said_or_usual(found, task.asked))
        return answers if aligned else strip(answers, EPSILON)


def networks(
    known: Answers, gold: Labels, asked: Answers
) -> tuple[ExpertOutputs | None, Labels, ExpertOutputs]:
    """Answers of different lengths as confusion networks, and the gold that fits them."""
    order = list(range(len(asked)))
    if not gold:
        return None, [], align(asked, epsilon=EPSILON, order=order)[0]

    def distance(j: int) -> float:
        pairs = [(a, g) for a, g in zip(known[j], gold, strict=True) if a is not None]
        return sum(edit_distance(a, g) for a, g in pairs) / max(len(pairs), 1)

    order.sort(key=[distance(j) for j in order].__getitem__)
    network, right = align(known, gold, epsilon=EPSILON, order=order)
    assert right is not None
    return network, right, align(asked, epsilon=EPSILON, order=order)[0]


def as_task(known: Any, gold: Labels, asked: ExpertOutputs) -> tuple[Task, ExpertOutputs]:
    """Both parts in the same codes, and what is asked in these codes."""
    labels = {*asked.labels, *chain(*gold), *(known.labels if gold else ())}
    asked = asked.recoded(sorted(labels))
    code = {label: k for k, label in enumerate(asked.labels)}
    truth = np.array([code[label] for label in chain(*gold)], np.int32)
    if gold:
        known = known.recoded(asked.labels)
        said, offsets = known.codes, known.offsets
    else:
        said, offsets = np.zeros((0, asked.n_experts), np.int32), np.zeros(1, np.int64)
    return Task(said, truth, offsets, asked.codes, asked.offsets, asked.labels), asked


def said_or_usual(answer: Codes, asked: Codes) -> Codes:
    """The answer; where there is none, the label that experts say most often."""
    usual = np.bincount(asked[asked >= 0]).argmax()
    return np.where(answer < 0, usual, answer).astype(np.int32)


def most_frequent_answers(
    outputs_gold: Outputs, gold: Labels, outputs_test: Outputs
) -> Labels | None:
    """The whole answer that most experts give, the first of equals: for different lengths only."""
    if isinstance(outputs_test, ExpertOutputs):
        return None
    answers = zip(*outputs_test, strict=True)
    counts = (Counter(tuple(one) for one in said if one is not None) for said in answers)
    return [list(count.most_common(1)[0][0]) if count else [] for count in counts]


# ---------------------------------------------------------------------------- in this process


def plain_vote(task: Task) -> Codes:
    """The most frequent label, among equals that of the first expert."""
    return vote(task.asked, np.ones(task.asked.shape[1]), len(task.labels))


def accuracies(task: Task) -> NDArray[np.float64]:
    """Of the experts, where they say something about the gold."""
    right = (task.known == task.truth[:, None]).sum(axis=0)
    return (right + 0.5) / ((task.known >= 0).sum(axis=0) + 1.0)


def vote_by_accuracy(task: Task) -> Codes | None:
    """A vote with accuracies as weights."""
    if not len(task.truth):
        return None
    return vote(task.asked, accuracies(task), len(task.labels))


def vote_by_log_odds(task: Task) -> Codes | None:
    """A vote with log-odds of accuracies as weights."""
    if not len(task.truth):
        return None
    share, others = accuracies(task), max(len(task.labels) - 1, 1)
    weights = np.maximum(np.log(others * share / (1 - share)), 0.0)
    return vote(task.asked, weights, len(task.labels))


def logistic_stacking(task: Task) -> Codes | None:
    """Logistic regression on the experts' labels here, before and after."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    if not len(task.truth):
        return None
    if len(np.unique(task.truth)) == 1:  # nothing to tell apart
        return np.full(len(task.asked), task.truth[0], np.int32)
    n = len(task.labels)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # its defaults are what is measured
        model = LogisticRegression().fit(one_hot(task.known, task.known_offsets, n), task.truth)
    found: Codes = model.predict(one_hot(task.asked, task.asked_offsets, n)).astype(np.int32)
    return found


def one_hot(codes: Codes, offsets: NDArray[np.int64], n_labels: int) -> Any:
    """Sparse rows: what each expert says at -1, 0, 1; nothing and outside are values, too."""
    from scipy.sparse import csr_array

    n, p = codes.shape
    values = n_labels + 2
    columns = np.empty((n, 3, p), np.int64)
    for k, step in enumerate((-1, 0, 1)):
        there = np.full((n, p), n_labels + 1)  # outside
        for a, b in pairwise(offsets.tolist()):
            first, last = max(a, a - step), min(b, b - step)
            there[first:last] = codes[first + step : last + step]
        there[there < 0] = n_labels
        columns[:, k] = there + values * (k * p + np.arange(p))
    shape = (n, 3 * p * values)
    bounds = np.arange(0, 3 * p * n + 1, 3 * p)
    return csr_array((np.ones(3 * p * n), columns.ravel(), bounds), shape=shape)


HERE: Mapping[str, Peer] = {
    "vote by accuracy": vote_by_accuracy,
    "vote by log-odds": vote_by_log_odds,
    "scikit-learn LogisticRegression": logistic_stacking,
}


# ---------------------------------------------------------------------------- in another process


def aggregate(
    name: str, known: list[list[int]], truth: list[int], asked: list[list[int]]
) -> list[int]:
    """What a class of crowd-kit answers: labels (N,) of the positions in question."""
    import crowdkit.aggregation
    import numpy as np
    import pandas

    codes = np.array([*known, *asked], np.int32)
    task, worker = np.nonzero(codes >= 0)
    said = pandas.DataFrame({"task": task, "worker": worker, "label": codes[task, worker]})
    model = getattr(crowdkit.aggregation, name)()
    if truth:
        right = pandas.Series(truth, index=np.arange(len(truth)))
        found = model.fit_predict(said, true_labels=right)
    else:
        found = model.fit_predict(said)
    positions = np.arange(len(known), len(codes))
    answer: list[int] = found.reindex(positions).fillna(-1).astype(int).tolist()
    return answer


class CrowdKit:
    """The process in which crowd-kit runs."""

    def __init__(self, python: str = sys.executable) -> None:
        self._process = PeerProcess(python, aggregate)
        self.version = self._process.version("crowd-kit", "crowdkit.aggregation")
        """None if it is not installed there."""

    def answer(self, name: str, task: Task) -> tuple[Codes, float]:
        """Labels of the positions in question, and CPU seconds."""
        parts = (part.tolist() for part in (task.known, task.truth, task.asked))
        found, seconds = self._process.ask("aggregate", name, *parts)
        return np.array(found, np.int32), seconds

    def methods(self, names: Sequence[str] = CROWD_KIT) -> dict[str, PeerMethod]:
        """Its classes as methods; none if it is not installed."""
        if self.version is None:
            return {}
        return {
            f"crowd-kit {self.version} {name}": PeerMethod(CrowdKitPeer(self, name))
            for name in names
        }

    def close(self) -> None:
        """End the process."""
        self._process.close()


class CrowdKitPeer:
    """A class of crowd-kit as a peer; one that fails is told of once, and answers nothing."""

    def __init__(self, process: CrowdKit, name: str) -> None:
        self._process, self._name, self._fails = process, name, False
        self.seconds: float | None = None

    def __call__(self, task: Task) -> Codes | None:
        """Labels of the positions in question."""
        able = WITH_GOLD if len(task.truth) else WITHOUT_GOLD
        if self._fails or self._name not in able:
            return None
        try:
            found, self.seconds = self._process.answer(self._name, task)
        except PeerError as error:
            self._fails = True
            print(f"crowd-kit's {self._name} is left out: {error!s:.150}", file=sys.stderr)
            return None
        return found


def here() -> dict[str, PeerMethod]:
    """The peers that run in this process, as methods."""
    return {name: PeerMethod(peer) for name, peer in HERE.items()}

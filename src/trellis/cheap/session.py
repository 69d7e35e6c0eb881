"""What follows from the answers of an annotator: the state of an active learner.

A session begins with the pool as it is and takes one answer after the other. It is a function of
them alone: the same answers in the same order give the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from trellis.arrays import Bools, Float64s, Int64s
from trellis.cheap.annotation_log import Entry
from trellis.cheap.pool import Pool
from trellis.cheap.uncertainty import uncertainty, vote_entropy
from trellis.errors import DataError
from trellis.problems.problem import Learnable, Measure, Problem

__all__ = ["Session"]


class Session:
    """The problem, the weights and the uncertainties after some answers.

    Parameters
    ----------
    model : Learnable
        Makes the learning problem.
    pool : Pool
        The samples.
    strategy, labels, retrain_every, start, experts
        As for :class:`~trellis.cheap.ActiveLearner`.
    seed : int or None
        Seed of the strategy "random".
    entries : sequence of Entry
        Answers to begin with.

    Attributes
    ----------
    entries : list of Entry
        All answers, in order.
    problem : Problem
        The samples with what is known of them.
    w : float64, shape (D,)
        Weights.
    history : list of float
        Average uncertainty of the samples left, after each answer that left any.
    """

    def __init__(
        self,
        model: Learnable,
        pool: Pool,
        *,
        strategy: str,
        labels: Sequence[Any] | None,
        retrain_every: int | None,
        start: Float64s | None,
        experts: Sequence[Any] | None,
        seed: int | None,
        entries: Sequence[Entry],
    ) -> None:
        self._model, self._pool, self._labels = model, pool, labels
        self._strategy, self._retrain_every = strategy, retrain_every
        self.problem = self._new_problem()
        n = len(pool)
        if self.problem.n_samples != n:
            raise DataError(
                f"the pool has {n} samples, but the model sees {self.problem.n_samples}: give a "
                "corpus or a list of samples"
            )
        self.w = _weights(start, self.problem.n_weights)
        self.history: list[float] = []
        self._margins: Float64s = np.zeros(n)
        self._known: Bools = np.zeros(n, bool)  # whose margin belongs to the weights as they are
        self._votes: _Votes | None = None
        if strategy == "random":
            self._margins = -np.log(1.0 - np.random.default_rng(seed).random(n))
        if experts is not None:
            self._votes = _Votes(experts, pool)
        self._order: list[int] = np.flatnonzero(self.problem.annotated).tolist()
        self._pass()
        self.entries: list[Entry] = []
        for entry in entries:
            self.annotate(entry.sample, entry.annotation, entry.replaces)
            self.learn(entry)

    def _new_problem(self) -> Problem:
        problems = self._model.learning_problems({"pool": self._pool.data}, labels=self._labels)
        problem: Problem = problems["pool"]
        return problem

    def left(self, parts: bool) -> Int64s:
        """Samples to ask for: those not complete, if by parts, else those not annotated."""
        done = self.problem.complete if parts else self.problem.annotated
        return np.flatnonzero(~done)

    def annotate(self, i: int, said: Any, replace: bool) -> None:
        """Add an annotation to the problem, or raise and leave everything as it was."""
        if (
            isinstance(i, bool)
            or not isinstance(i, int | np.integer)
            or not (0 <= i < len(self._pool))
        ):
            raise DataError(
                f"there is no sample {i!r}; they are numbered 0 to {len(self._pool) - 1}"
            )
        if not replace:
            self.problem.annotate(int(i), said)
            return
        problem = self._new_problem()
        for number, entry in enumerate(self.entries, 1):
            later = self.entries[number:]
            if entry.sample != i and not any(
                other.sample == entry.sample and other.replaces for other in later
            ):
                problem.annotate(entry.sample, entry.annotation)
        problem.annotate(int(i), said)
        self.problem = problem

    def learn(self, entry: Entry) -> None:
        """Update the weights after an answer, and note the uncertainty left."""
        self.entries.append(entry)
        if entry.sample not in self._order:
            self._order.append(entry.sample)
        if self._votes is not None:
            self._votes.answered(entry)
        every = self._retrain_every
        if every is not None and len(self.entries) % every == 0:
            self.w = self._model.trained_on(self.problem).flat_weights(self.problem)
            self._known[:] = False
        else:
            self._pass()
        self._known[entry.sample] = False  # what is known of it counts for its margin
        left = self.left(entry.nodes is not None)
        if left.size:
            self.history.append(float(self.uncertainties(left).mean()))

    def _pass(self) -> None:
        """One pass over all annotated samples."""
        if self._model.improve(self.problem, self.w, self._order):
            self._known[:] = False

    def margins(self, samples: Int64s) -> Float64s:
        """How sure we are of some samples; the least is the most uncertain."""
        if self._votes is not None:
            return -self._votes.shares[samples]
        if self._strategy != "random":
            wanted = samples[~self._known[samples]]
            if wanted.size:
                measure = cast("Measure", self._strategy)
                self._margins[wanted] = self.problem.margins(self.w, measure, wanted)
                self._known[wanted] = True
        return self._margins[samples]

    def uncertainties(self, samples: Int64s) -> Float64s:
        """Uncertainties q of some samples."""
        if self._votes is not None:
            return self._votes.shares[samples]
        return uncertainty(self.margins(samples))

    def part(self, i: int, size: int) -> Int64s:
        """Nodes of a sample to ask for."""
        if self._votes is not None:
            nodes = self._votes.nodes(i, size)
            if nodes.size:
                return nodes
        return self.problem.weakest_part(i, self.w, size)


class _Votes:
    """Where experts disagree, less what was asked for already."""

    def __init__(self, experts: Sequence[Any], pool: Pool) -> None:
        from trellis.experts import as_outputs

        answers = [getattr(expert, "predict", expert)(pool.data) for expert in experts]
        outputs = as_outputs(answers)
        if len(outputs) != len(pool):
            raise DataError(
                f"the experts answer {len(outputs)} samples, but the pool has {len(pool)}"
            )
        self._offsets, self._lengths = outputs.offsets, outputs.lengths
        self._entropy = vote_entropy(outputs.codes)
        self.shares: Float64s = np.add.reduceat(self._entropy, self._offsets[:-1]) / self._lengths

    def answered(self, entry: Entry) -> None:
        """Nodes that were asked for are settled."""
        i, a = entry.sample, int(self._offsets[entry.sample])
        settled = self._entropy[a : a + int(self._lengths[i])]
        settled[slice(None) if entry.nodes is None else list(entry.nodes)] = 0.0
        self.shares[i] = settled.mean()

    def nodes(self, i: int, size: int) -> Int64s:
        """The nodes of most disagreement; none where all agree."""
        entropy = self._entropy[self._offsets[i] : self._offsets[i + 1]]
        order = np.argsort(-entropy, kind="stable")[:size]
        return np.sort(order[entropy[order] > 0])


def _weights(start: Float64s | None, n: int) -> Float64s:
    if start is None:
        return np.zeros(n)
    w = np.array(start, np.float64)
    if w.shape != (n,) or not np.isfinite(w).all():
        raise DataError(f"start must be {n} finite numbers, got an array of shape {w.shape}")
    return w

"""What follows from the answers of an annotator: the state of an active learner.

A session begins with the pool as it is and takes one answer after the other. It is a function of
them alone: the same answers in the same order give the same bits.

**Candidates.** Of a large pool only some samples are looked at after each answer, so that nobody
waits: half of their number are the first of a fixed random order that are left, and the others
come from the rest by turns, so that all are looked at in time. The stopping rule looks at the first
half alone: from answer to answer they are the same samples but for those answered, and their
average changes by what was learned and not by who was looked at.

**On the way.** Strategies that need probabilities learn on the way by steps of the log-likelihood
(:mod:`trellis.problems.log_steps`), whatever the loss of the model is: its scores alone are no
probabilities, and do not tell well what to ask for.

**The beginning.** Before anything is known all labels are as likely, and the first questions decide
what is asked next. With "auto" the first :data:`FIRST` questions are those that bring the most
features which are new and not rare, by position (:mod:`trellis.problems.familiarity`), as long as
there are any.

**Several at once.** Questions of one model are much alike. Of the most uncertain ones that is taken
first which is the most uncertain, then always that of the largest :math:`u (1 - c)`, c being the
largest cosine of its features and those of one that was taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from trellis.arrays import Bools, Float64s, Int64s
from trellis.cheap.annotation_log import Entry
from trellis.cheap.pool import Pool
from trellis.cheap.uncertainty import uncertainty, vote_entropy
from trellis.errors import DataError
from trellis.models.linear_model import LinearModel
from trellis.problems.confidence import OF_POSITIONS, PROBABILITIES
from trellis.problems.label_problem import LabelProblem
from trellis.problems.log_steps import log_pass
from trellis.problems.problem import Learnable, Measure, Problem

__all__ = ["FIRST", "Part", "Session"]

FIRST = 10
"""Questions at the beginning that are chosen by their features."""

_CHOICE = 8  # times as many questions as are asked for at once are compared with each other
_L2 = 0.1  # of the log-likelihood, where the model has another loss
_SPARE = 2  # positions that a sample of no features is long, where features by position are counted


class Part(NamedTuple):
    """Nodes of a sample that an annotator is asked for."""

    sample: int
    nodes: tuple[int, ...]


class Session:
    """The problem, the weights and the uncertainties after some answers.

    Parameters
    ----------
    model : Learnable
        Makes the learning problem.
    pool : Pool
        The samples.
    strategy, labels, retrain_every, candidates, start, experts
        As for :class:`~trellis.cheap.ActiveLearner`.
    seed : int
        Seed of the strategy "random".
    entries : sequence of Entry
        Answers to begin with.

    Attributes
    ----------
    entries : list of Entry
        All answers, in order.
    problem : Problem
        The samples with what is known of them.
    strategy : str
        The measure that "auto" stands for, or that given.
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
        candidates: int | None,
        start: Float64s | None,
        experts: Sequence[Any] | None,
        seed: int,
        entries: Sequence[Entry],
    ) -> None:
        self._model, self._pool, self._labels = model, pool, labels
        self._retrain_every, self._seed = retrain_every, seed
        self.problem = self._new_problem()
        self._is_automatic = strategy == "auto" and start is None
        self.strategy = automatic(model) if strategy == "auto" else strategy
        n, n_weights = len(pool), self.problem.n_weights
        if self.problem.n_samples != n:
            raise DataError(
                f"the pool has {n} samples, but the model sees {self.problem.n_samples}: give a "
                "corpus or a list of samples"
            )
        self.w = _weights(_first(model, self.problem) if start is None else start, n_weights)
        self.history: list[float] = []
        self._margins: Float64s = np.zeros(n)
        self._known: Bools = np.zeros(n, bool)  # whose margin belongs to the weights as they are
        self._votes: _Votes | None = None
        self._half = n if candidates is None else (candidates + 1) // 2
        self._rank = np.random.default_rng(1).permutation(n)
        if self.strategy == "random":
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
            same, _ = self._halves(left)
            self.history.append(float(self.uncertainties(same).mean()))

    def _pass(self) -> None:
        """One pass over all annotated samples."""
        problem = self.problem
        by_chance = self.strategy in PROBABILITIES and self._model.training_loss != "log"
        if by_chance and isinstance(problem, LabelProblem):
            changed = log_pass(problem, self.w, np.array(self._order, np.int64), _L2)
        else:
            changed = self._model.improve(problem, self.w, self._order)
        if changed:
            self._known[:] = False

    def margins(self, samples: Int64s) -> Float64s:
        """How sure we are of some samples; the least is the most uncertain."""
        if self._votes is not None:
            return -self._votes.shares[samples]
        if self.strategy != "random":
            wanted = samples[~self._known[samples]]
            if wanted.size:
                measure = cast("Measure", self.strategy)
                self._margins[wanted] = self.problem.margins(self.w, measure, wanted)
                self._known[wanted] = True
        return self._margins[samples]

    def uncertainties(self, samples: Int64s) -> Float64s:
        """Uncertainties q of some samples."""
        if self._votes is not None:
            return self._votes.shares[samples]
        return uncertainty(self.margins(samples))

    # ---------------------------------------------------------------- questions

    def samples(self, open_: Int64s, n: int) -> Int64s:
        """At most n samples to ask for, of those given: the most uncertain, unlike each other."""
        if self._begins and (newest := self._newest(self._candidates(open_), n)).size:
            return newest
        near = open_ if self.strategy == "random" else self._candidates(open_)
        margins = self.margins(near)
        if n == 1:
            return near[[margins.argmin()]]
        top = np.argsort(margins, kind="stable")[: _CHOICE * n]
        return near[top[self._unlike(margins[top], [Part(int(i), ()) for i in near[top]], n)]]

    def parts(self, open_: Int64s, n: int, size: int) -> list[Part]:
        """At most n parts of samples to ask for, one of each, of about ``size`` nodes."""
        if self.strategy == "random":
            return self._random_parts(open_, n, size)
        problem = self.problem
        by_position = self.strategy in OF_POSITIONS and isinstance(problem, LabelProblem)
        if not by_position or not isinstance(problem, LabelProblem):
            return [
                Part(i, tuple(self._weakest(i, size).tolist()))
                for i in self.samples(open_, n).tolist()
            ]
        near = self._candidates(open_)
        batch, new = problem.batch(near), np.zeros(0)
        if self._begins:
            new = problem.feature_counts.novelty(batch.rows, self._seen())
        if new.any():
            nodes, margins = problem.largest_parts(batch, new, size)
        else:
            measure = cast("Measure", self.strategy)
            nodes, margins = problem.weakest_parts(self.w, measure, near, size)
        top = np.argsort(margins, kind="stable")[: _CHOICE * n]
        chosen = [Part(int(near[k]), tuple(nodes[k].tolist())) for k in top]
        return [chosen[k] for k in self._unlike(margins[top], chosen, n)]

    def _candidates(self, open_: Int64s) -> Int64s:
        """Those of some samples that are looked at now, ascending."""
        same, rest = self._halves(open_)
        if not rest.size:
            return np.sort(same)
        start = len(self.entries) * self._half
        turn = rest[np.arange(start, start + min(self._half, len(rest))) % len(rest)]
        return np.sort(np.concatenate([same, turn]))

    def _halves(self, samples: Int64s) -> tuple[Int64s, Int64s]:
        """Those of some samples that are looked at in each round, and the others, in an order.

        As many as twice are looked at: where there are fewer, all are the first half.
        """
        if len(samples) <= 2 * self._half:
            return samples, samples[:0]
        ordered = samples[np.argsort(self._rank[samples], kind="stable")]
        return ordered[: self._half], ordered[self._half :]

    @property
    def _begins(self) -> bool:
        """Whether so little is known that questions are chosen by their features."""
        return (
            self._is_automatic
            and isinstance(self.problem, LabelProblem)
            and len(self.entries) < FIRST
            and len(self._order) < FIRST
        )

    def _newest(self, near: Int64s, n: int) -> Int64s:
        """At most n of some samples, of the most new features by position; none if none is new."""
        problem = cast("LabelProblem", self.problem)
        batch, seen, chosen = problem.batch(near), self._seen(), list[int]()
        while len(chosen) < min(n, len(near)):
            values = problem.feature_counts.sample_novelty(batch.rows, batch.offsets, seen)
            if not chosen and not values.any():
                break
            values /= np.diff(batch.offsets) + _SPARE
            values[chosen] = -1.0
            chosen.append(int(values.argmax()))
            i = int(near[chosen[-1]])
            seen |= problem.feature_counts.of_rows(
                np.arange(problem.offsets[i], problem.offsets[i + 1])
            )
        return near[chosen]

    def _seen(self) -> Bools:
        """Features of positions of which anything is known."""
        problem = cast("LabelProblem", self.problem)
        return problem.feature_counts.of_rows(np.flatnonzero(~problem.vague_rows))

    def _unlike(self, margins: Float64s, parts: Sequence[Part], n: int) -> Int64s:
        """Places of n of some questions, in the order in which they are taken."""
        problem = self.problem
        if n >= len(parts) or n == 1 or not isinstance(problem, LabelProblem):
            return np.arange(min(n, len(parts)))
        worth = -margins if self.strategy in PROBABILITIES else uncertainty(margins)
        rows = [
            problem.offsets[i] + (np.array(nodes) if nodes else problem.open_nodes(i))
            for i, nodes in parts
        ]
        alike = problem.feature_counts.alike(rows)
        nearest, chosen = np.zeros(len(parts)), [0]
        while len(chosen) < n:
            nearest = np.maximum(nearest, alike[chosen[-1]])
            left = np.maximum(worth, 0.0) * (1.0 - nearest)
            left[chosen] = -1.0
            chosen.append(int(left.argmax()))
        return np.array(chosen)

    def _random_parts(self, open_: Int64s, n: int, size: int) -> list[Part]:
        """Neighbouring nodes that are open, drawn anew for each question.

        Every open node is as likely to be the one that a part is drawn around.
        """
        rng = np.random.default_rng([2, self._seed, len(self.entries)])
        chances = self.problem.n_open[open_].astype(np.float64)
        parts = []
        for _ in range(min(n, len(open_))):
            k = int(rng.choice(len(open_), p=chances / chances.sum()))
            chances[k] = 0.0
            nodes = self.problem.open_nodes(int(open_[k]))
            width = min(size, len(nodes))
            first = min(int(rng.integers(len(nodes))) // size * size, len(nodes) - width)
            parts.append(Part(int(open_[k]), tuple(nodes[first : first + width].tolist())))
        return parts

    def _weakest(self, i: int, size: int) -> Int64s:
        """Nodes of a sample to ask for."""
        if self._votes is not None:
            nodes = self._votes.nodes(i, size)
            if nodes.size:
                return nodes
        return self.problem.weakest_part(i, self.w, size)


def automatic(model: Learnable) -> str:
    """The strategy that "auto" stands for.

    On chunks, names and parts of speech (``python -m benchmarks.active_chains``) the first was the
    best of a CRF, and of a max-margin model, too, if a CRF of its features chooses. What has no
    labels has no better than the second; on graphs with loops probabilities are dear and rough.
    """
    by_chance = isinstance(model, LinearModel) and (
        model.training_loss == "log" or model.structure != "graph"
    )
    return "information-density" if by_chance else "best-vs-second"


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


def _first(model: Learnable, problem: Problem) -> Float64s | None:
    """Weights that a model has before anything is annotated; None: zero."""
    first = getattr(model, "first_weights", None)
    return None if first is None else first(problem)


def _weights(start: Float64s | None, n: int) -> Float64s:
    if start is None:
        return np.zeros(n)
    w = np.array(start, np.float64)
    if w.shape != (n,) or not np.isfinite(w).all():
        raise DataError(f"start must be {n} finite numbers, got an array of shape {w.shape}")
    return w

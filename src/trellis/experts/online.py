"""Ensembles made by on-line learning over path experts, one sample a round.

:class:`OnlineCombiner` runs a learner over the samples, chooses a set of its distributions (or one
of them) and votes with the result; :class:`~trellis.experts.WeightedMajority` and
:class:`~trellis.experts.FollowPerturbedLeader` bring the learners, which
:mod:`trellis.experts.learners` describes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import Float64s
from trellis.domains import anything, function, instance, nothing, number, one_of, sequence_of
from trellis.errors import CorruptModelError, DataError
from trellis.estimator import Seeded, fitted, parameter, renamed
from trellis.experts.automaton import PathAutomaton
from trellis.experts.combiner import TIE, Combiner
from trellis.experts.conversions import (
    Candidates,
    Suffixes,
    best_set,
    clearly_positive,
    suffix_gammas,
)
from trellis.experts.learners import Batch, EdgeLearner, FamilyLearner, Learner, TableLearner
from trellis.experts.outputs import ExpertOutputs, as_gold
from trellis.experts.path_family import PathFamily
from trellis.experts.tying import Tie, Tying
from trellis.files.stored import check_range, header_value, take

__all__ = ["Guarantee", "OnlineCombiner"]


@dataclass(frozen=True)
class Guarantee:
    """A bound on the expected normalised loss on new samples, and what it says.

    Attributes
    ----------
    value : float
        With probability 1 - δ over the training sample the loss on new samples is at most this.
    excess : float or None
        How far H_Rand can be above the best path expert (Theorem 1); None where it says nothing.
    theorem : str
        Which results were used.
    covers : str
        Which weights and which rule the bound is about.
    """

    value: float
    excess: float | None
    theorem: str
    covers: str

    def __float__(self) -> float:
        return self.value


@dataclass(eq=False)
class Strand:
    """A learner with one rate of learning, and what its rounds have left."""

    learner: Learner
    blocks: Suffixes | Candidates
    losses: Float64s  # expected loss of each round, (T,)
    vote_losses: Float64s  # loss of the vote before each sample, (T,), if there is a choice

    def play(self, batch: Batch) -> None:
        """Play one round a sample."""
        done, n = 0, len(batch.offsets) - 1
        losses, votes = [self.losses], [self.vote_losses]
        blocks = self.blocks
        while done < n:
            if isinstance(blocks, Candidates):
                blocks.begin(self.learner.log_table().copy())
            part = batch.part(done, min(n, done + blocks.room()))
            size = len(part.offsets) - 1
            if isinstance(blocks, Candidates):
                tables = blocks.stack(len(self.learner.log_table()))
                blocks.add(self.learner.expected(part, tables).sum(axis=1), size)
            rounds = self.learner.rounds(part)
            losses.append(rounds.losses)
            votes.append(rounds.vote_losses)
            if isinstance(blocks, Suffixes):
                blocks.add(rounds.log_sum, size)
            done += size
        self.losses, self.vote_losses = np.concatenate(losses), np.concatenate(votes)

    def state(self) -> dict[str, Any]:
        """What a model file holds of it."""
        return {
            "learner": self.learner.state(),
            "blocks": self.blocks.state(),
            "losses": self.losses,
            "vote_losses": self.vote_losses,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Undo :meth:`state`, checking everything."""
        self.learner.restore(header_value(state, "learner", dict))
        self.blocks.restore(header_value(state, "blocks", dict), self.learner.table.shape)
        self.losses = take(state, "losses", np.float64, (None,))
        self.vote_losses = take(state, "vote_losses", np.float64, self.losses.shape)
        if not self.learner.n_rounds == self.blocks.n_rounds == len(self.losses):
            raise CorruptModelError("the rounds are not those of the losses")


def beats_vote(strands: Sequence[Strand]) -> int:
    """Return the strand whose vote lost least before each sample, 0 unless it is clearly better.

    Strand 0 is the plain vote.
    """
    best = 1 + int(np.argmin([strand.vote_losses.mean() for strand in strands[1:]]))
    gain = strands[0].vote_losses - strands[best].vote_losses
    return best if clearly_positive(gain) else 0


class OnlineCombiner(Combiner, Seeded):
    """Learning one sample a round, and conversion of what was learned to one rule."""

    conversion: str = parameter(
        one_of("majority-vote", "randomised", "cross-validation"),
        """H_MVote: vote with the average weights of the rounds that minimise Γ. H_Rand: for each
        sample draw one of those rounds, then a path by its weights (with tied weights, an expert
        for each context). H_CV: vote with the weights of the one round that did
        best on the samples after it.""",
        default="majority-vote",
        kw_only=False,
    )
    delta: float = parameter(number(above=0, below=1), "Confidence parameter of Γ.", default=0.05)
    loss_scale: str = parameter(
        one_of("auto", "0/1", "1/l", "mean"),
        """The loss that weights follow: the number of mistakes so far, the sum of their shares of
        samples, or their mean over all positions so far, which does not grow with the sample.
        "auto": the mean if positions share weights and the rate of learning is "auto", else the
        number, as in the paper. All losses reported are shares.""",
        default="auto",
    )
    cost: Any = parameter(
        one_of("hamming") | function,
        """Cost of a position, any number from 0 to 1: a function of the right label and the label
        said.""",
        default="hamming",
    )
    tie: Any = TIE
    automaton: Any = parameter(
        nothing | instance(PathAutomaton) | instance(PathFamily),
        """The allowed paths: of samples of one length, with a weight on each edge, or a
        :class:`~trellis.experts.PathFamily` for samples of any length, with a weight on each move.
        None: all.""",
        default=None,
    )
    collection: Any = parameter(
        one_of("suffixes") | sequence_of(anything, "sets of rounds") | function,
        """Sets among which Γ is minimised (rounds count from 0), or a function from T to them;
        suffixes begin at any of the first 256 rounds, and in longer streams at one of 128 to 256
        evenly spaced rounds.""",
        default="suffixes",
    )
    ties: str = parameter(
        one_of("first", "random"),
        "Equal votes go to the label that the first expert in order says, or to any of them.",
        default="first",
    )
    loss = renamed("cost")
    _blocks: Suffixes | Candidates | None = fitted()  # None: of a file that has none

    def _check_together(self) -> None:
        if self.automaton is not None and self.tie not in ("auto", "position"):
            raise DataError("an automaton has its weights on edges; leave tie at auto")
        if isinstance(self.automaton, PathAutomaton) and self.loss_scale == "mean":
            raise DataError("on an automaton of one length losses are counted; use '0/1' or '1/l'")
        if isinstance(self.automaton, PathFamily) and (
            self.loss_scale not in ("auto", "mean") or self._rate() in ("regret", "paper")
        ):
            raise DataError(
                "the weights of a PathFamily are tied over positions and follow mean losses; leave "
                'loss_scale at auto, and beta (or epsilon) is a number or "auto"'
            )

    def partial_fit(self, outputs: Any, gold: Any) -> Self:
        """Go on learning from further samples, one round each; the first call starts afresh.

        Calls on parts of a sample, in order, give the same bits as :meth:`fit` on the whole.
        """
        fresh = not hasattr(self, "_learner")
        if not fresh and not self._by_suffixes():
            raise DataError('partial_fit knows collection="suffixes" only; use fit for other sets')
        if not fresh and self._blocks is None:
            raise DataError(
                "this ensemble was read from a file of an earlier version, which has not kept the "
                "rounds that partial_fit goes on from; fit it again"
            )
        self._enter(outputs, gold, fresh)
        return self

    def expected_loss(self, outputs: Any, gold: Any) -> float:
        """Return the mean loss of H_Rand on these samples, in expectation over its draws.

        The expert of a position is drawn by its weight among those awake, and the loss is averaged
        over positions, then over samples. H_Rand first draws a round; for the other rules this is
        the loss of drawing by their weights (``weights_``).
        """
        truth, answers = as_gold(gold, self._recognised(outputs))
        if not len(answers):
            raise DataError("no samples to score")
        tables, counts = [self._log_table], np.ones(1, np.int64)
        learner = self._learner
        cells = None
        partly = isinstance(learner, FamilyLearner)
        if isinstance(learner, TableLearner):
            cells = learner.tying.cells(answers)
            # Averages come to the same unless weights are normalised over some experts only.
            partly = learner.tying.by_label or bool((answers.codes < 0).any())
        if self.conversion == "randomised" and partly:
            tables, counts = self._distributions()
        if isinstance(learner, TableLearner):
            tables = [learner.tying.with_fallback(table) for table in tables]
        batch = Batch(answers.offsets, answers.codes, truth, self._cost(answers), cells)
        return self._mean_loss(batch, tables, counts)

    def _mean_loss(self, batch: Batch, tables: list[Float64s], counts: NDArray[np.int64]) -> float:
        """Mean expected loss under tables that stand for so many rounds each."""
        learner = self._learner
        weights = np.stack([learner.weights(table - table.max()) for table in tables], axis=-1)
        losses = learner.expected(batch, weights).mean(axis=1)
        return float(losses @ counts / counts.sum())

    # ------------------------------------------------------------------ for subclasses

    def _new_learners(self, tie: Tie, n_experts: int, outputs: ExpertOutputs) -> list[Learner]:
        """Learners before their first round; if there are several, the first one is the vote."""
        raise NotImplementedError  # abstract

    def _blank_learners(self, tie: Tie, n_experts: int, state: Mapping[str, Any]) -> list[Learner]:
        """Learners to be restored from a file."""
        raise NotImplementedError  # abstract

    def _chosen(self, strands: Sequence[Strand]) -> int:
        """Return which of several strands answers."""
        return beats_vote(strands)

    def _scale(self, tie: Tie) -> str:
        """The scale of the loss in fact."""
        if self.loss_scale != "auto":
            return self.loss_scale
        return "mean" if tie != "position" and self._rate() == "auto" else "0/1"

    def _rate(self) -> float | str:
        """The parameter that says how fast is learned."""
        raise NotImplementedError  # abstract

    def _stored_scale(self, state: Mapping[str, Any]) -> str:
        if "scale" not in state:  # a file of an earlier version, in which it was given
            return self.loss_scale
        return header_value(state, "scale", str, choices=("0/1", "1/l", "mean"))

    def _restricted(self) -> PathAutomaton | None:
        """The automaton of one length, unless all paths are allowed."""
        if not isinstance(self.automaton, PathAutomaton) or self.automaton.is_complete:
            return None
        return self.automaton

    def _by_suffixes(self) -> bool:
        return isinstance(self.collection, str)

    def _new_strand(self, learner: Learner) -> Strand:
        one = self.conversion == "cross-validation"
        blocks = Candidates(learner.weights) if one else Suffixes()
        return Strand(learner, blocks, np.zeros(0), np.zeros(0))

    # ------------------------------------------------------------------ learning

    def _learn(self, outputs: ExpertOutputs, gold: NDArray[np.int32], fresh: bool) -> None:
        if fresh:
            if isinstance(self.automaton, PathAutomaton):
                self.automaton.check_samples(outputs.lengths, outputs.n_experts)
            learners = self._new_learners(self._tie(outputs), outputs.n_experts, outputs)
            for learner in learners:
                learner.judged = len(learners) > 1
            self._strands = [self._new_strand(learner) for learner in learners]
        first = self._strands[0].learner
        batch = first.batch(outputs, gold, self._cost(outputs))
        for strand in self._strands:
            if isinstance(first, TableLearner) and isinstance(strand.learner, TableLearner):
                strand.learner.follow(first)
            strand.play(batch)
        self._take(self._chosen(self._strands) if len(self._strands) > 1 else 0)
        self._choose(batch)

    def _take(self, strand: int) -> None:
        """Answer with this strand."""
        self._strand = strand
        chosen = self._strands[strand]
        self._learner, self._blocks, self._losses = chosen.learner, chosen.blocks, chosen.losses

    def _tie(self, outputs: ExpertOutputs) -> Tie:
        if self.automaton is not None:
            return "position"
        if callable(self.tie) or self.tie != "auto":
            tie: Tie = self.tie
            return tie
        return "position" if len(set(outputs.lengths.tolist())) == 1 else self._TIED

    _TIED = "expert"

    def _cost(self, outputs: ExpertOutputs) -> Float64s:
        """Loss (L, L) of the right label and the label said; empty for 0/1."""
        if not callable(self.cost):
            return np.zeros((0, 0))
        table = np.array(
            [[self.cost(g, c) for c in outputs.labels] for g in outputs.labels], np.float64
        )
        if not ((table >= 0) & (table <= 1)).all():
            raise DataError("cost must give numbers between 0 and 1 for every pair of labels")
        return table

    def _choose(self, batch: Batch) -> None:
        """Choose a set of rounds (or one), and keep its average table."""
        self._members: list[Float64s] | None = None
        self.round_losses_ = self._losses
        n_rounds = len(self._losses)
        blocks = self._blocks
        if isinstance(blocks, Candidates):
            chosen, self.gamma_, self.expected_loss_ = blocks.best(self.delta)
            self.rounds_ = np.array([blocks.starts[chosen]])
            table = blocks.tables[chosen]
            full = np.zeros(self._learner.log_table().shape)
            full[: len(table)] = table
            self._log_table = full
            self._n_sets = len(blocks.starts)
            return
        if self._by_suffixes():
            assert isinstance(blocks, Suffixes)
            start, self.gamma_ = blocks.best(self._losses, self.delta)
            self.rounds_ = np.arange(start, n_rounds)
            self._log_table = blocks.log_average(start)
            self._n_sets = len(blocks.starts)
        else:
            self.rounds_, self.gamma_, self._n_sets = best_set(
                self.collection, self._losses, self.delta
            )
            self._log_table = self._average_over(batch, self.rounds_)
            if self.conversion == "randomised":
                self._members = self._each_of(batch, self.rounds_)
        self.expected_loss_ = float(self._losses[self.rounds_].mean())

    def _average_over(self, batch: Batch, rounds: NDArray[np.int64]) -> Float64s:
        """Play all rounds again and average the tables of some of them."""
        learner = self._learner.again()
        total: Float64s | None = None
        cuts = np.flatnonzero(np.diff(rounds) > 1) + 1
        done = 0
        for run in np.split(rounds, cuts):
            first, after = int(run[0]), int(run[-1]) + 1
            if first > done:
                learner.rounds(batch.part(done, first))
            log_sum = learner.rounds(batch.part(first, after)).log_sum
            total = log_sum if total is None else np.logaddexp(total, log_sum)
            done = after
        assert total is not None
        average: Float64s = total - math.log(len(rounds))
        return average

    def _each_of(self, batch: Batch, rounds: NDArray[np.int64]) -> list[Float64s]:
        """Play all rounds again and keep the tables of some of them."""
        learner = self._learner.again()
        tables, done = [], 0
        for t in rounds.tolist():
            if t > done:
                learner.rounds(batch.part(done, t))
            tables.append(learner.log_table().copy())
            learner.rounds(batch.part(t, t + 1))
            done = t + 1
        return tables

    # ------------------------------------------------------------------ results

    @property
    def weights_(self) -> Float64s:
        """The weights of the vote; the class says what shape they have."""
        self._check_fitted()
        table = self._log_table
        if isinstance(self._learner, EdgeLearner):
            net = self._learner.automaton
            weights = np.zeros((net.length, len(self.expert_names_)))
            weights[:, : net.n_experts] = net.expert_marginals(np.exp(table))
            return weights
        if isinstance(self._learner, FamilyLearner):
            return np.exp(table)
        assert isinstance(self._learner, TableLearner)
        tying = self._learner.tying
        if tying.by_label:
            rows = [tying.row_of.get(label, tying.n_rows) for label in self.classes_]
            return np.exp(tying.with_fallback(table)[rows])
        weights = np.exp(table - table.max(axis=1, keepdims=True))
        weights = weights / weights.sum(axis=1, keepdims=True)
        shares: Float64s = weights[0] if tying.tie == "expert" else weights
        return shares

    @property
    def edge_weights_(self) -> Float64s | None:
        """Average edge marginals (E,) on an automaton that is not complete, else None."""
        self._check_fitted()
        return np.exp(self._log_table) if isinstance(self._learner, EdgeLearner) else None

    @property
    def tie_(self) -> Tie:
        """How the weights are tied in fact."""
        self._check_fitted()
        if isinstance(self._learner, FamilyLearner):
            return "move"
        return self._learner.tying.tie if isinstance(self._learner, TableLearner) else "position"

    @property
    def contexts_(self) -> list[Any]:
        """The contexts of the weights: positions, labels, the function's values, or moves."""
        self._check_fitted()
        if isinstance(self._learner, FamilyLearner):
            return list(range(self._learner.family.n_moves))
        if isinstance(self._learner, TableLearner):
            if self._learner.tying.by_label:
                return list(self.classes_)
            return list(self._learner.tying.row_of)
        return list(range(self._learner.automaton.length))  # type: ignore[attr-defined]  # of edges

    def _label(self, outputs: ExpertOutputs) -> NDArray[np.int32]:
        rng = np.random.default_rng(self.random_state)
        if self.conversion == "randomised":
            tables, counts = self._distributions()
            lots = rng.choice(len(tables), len(outputs), p=counts / counts.sum())
            return self._learner.follow_drawn(outputs, tables, lots, rng)
        return self._learner.label(outputs, self._log_table, rng if self.ties == "random" else None)

    def _distributions(self) -> tuple[list[Float64s], NDArray[np.int64]]:
        """The chosen set of distributions as logarithms, and how many rounds each stands for.

        They are the p_t themselves up to 256 rounds; in longer streams, averages over the blocks
        of rounds that are kept.
        """
        if self._members is not None:
            return self._members, np.ones(len(self._members), np.int64)
        blocks = self._blocks
        if not isinstance(blocks, Suffixes) or not self._by_suffixes():
            return [self._log_table], np.ones(1, np.int64)
        return blocks.averages(int(self.rounds_[0]), self._log_table)

    def _deviation(self, delta: float) -> float:
        """How far a mean of independent (or martingale) losses strays, over all sets at once."""
        one = self.conversion == "cross-validation"
        n = len(self._losses) - int(self.rounds_[0]) if one else len(self.rounds_)
        return math.sqrt(math.log(self._n_sets / delta) / (2 * n))

    def bound(self, delta: float = 0.05) -> Guarantee:
        """Bound the expected normalised loss on new samples, with probability 1 - ``delta``.

        The distribution p_t depends on the samples before t only, so by the inequality of
        Hoeffding and Azuma, over all K sets of the collection at once,

            E L(H_Rand) ≤ (1/|P|) Σ_{p_t ∈ P} L_t + sqrt(log(K/δ) / 2|P|)

        for samples drawn independently. This needs nothing of the p_t but that, and so holds for
        every tying, for sleeping experts and for samples of different lengths. H_Rand draws t from
        the chosen set and then follows p_t (in streams of more than 256 rounds, the average of a
        block of them). A vote has the weights of the *average* of the p_t: if experts sleep or
        weights are tied by label, what it is compared with is close to that but not covered. H_CV
        uses one p_t and the same inequality on the samples after
        it. Voting costs a factor 2 (Proposition 2; it is about the Hamming loss, so for other
        losses, and for votes along an automaton, the bound is that of H_Rand).

        ``excess`` is Theorem 1 with the β given instead of the best one: how far H_Rand can be
        above the best of all path experts. Those are the p^l paths (or the paths of the automaton)
        for weights by position, as in the paper; for tied weights they are the p^C functions from
        contexts to experts, a smaller class with a smaller price but a best member that is less
        good. It is None for specialists (weights by label, sleeping experts), whose regret is
        against each expert on its own waking positions; for ``loss_scale="0/1"`` on samples of
        different lengths, where the regret is about counts of mistakes, not shares; for H_CV; and
        for follow the perturbed leader.
        """
        self._check_fitted()
        number(above=0, below=1).check("delta", delta)
        value = self.expected_loss_ + self._deviation(delta)
        theorem = "Hoeffding-Azuma over the sets of the collection (first part of Theorem 1)"
        rule = "H_Rand, in expectation over its draws"
        edges = isinstance(self._learner, EdgeLearner | FamilyLearner)
        if self.conversion != "randomised" and self.cost == "hamming" and not edges:
            value, theorem, rule = 2 * value, f"{theorem}, Proposition 2", "the majority vote"
        if edges:
            tied = "weights on the edges of the automaton"
            if isinstance(self._learner, FamilyLearner):
                tied = "weights on the moves of the family, tied over positions"
        elif isinstance(self.tie_, str):
            tied = {
                "position": "one weight for each position and expert, as in the paper",
                "expert": "one weight for each expert at all positions",
                "label": "one weight for each expert and label it says",
            }[self.tie_]
        else:
            tied = "one weight for each context and expert"
        covers = f"{rule}, with {tied}"
        if self.conversion == "majority-vote" and self._learner.log_experts is None:
            covers += "; exact for drawing a round first, the averaged weights only come near it"
        return Guarantee(min(value, 1.0), self._excess(delta), theorem, covers)

    def _excess(self, delta: float) -> float | None:
        """Return how far H_Rand can be above the best path expert, if that is known."""
        return None

    def gammas(self) -> Float64s:
        """Γ of the suffix sets that begin with each round, (T,)."""
        self._check_fitted()
        return suffix_gammas(self._losses, self.delta)

    # ------------------------------------------------------------------ files

    def _state(self) -> dict[str, Any]:
        """What it votes with, and the rounds that ``partial_fit`` goes on from."""
        state = super()._state() | {
            "log_table": self._log_table,
            "round_losses": self._losses,
            "rounds": self.rounds_,
            "gamma": float(self.gamma_),
            "expected_loss": float(self.expected_loss_),
            "n_sets": self._n_sets,
            "strand": self._strand,
        }
        learner = self._learner
        if isinstance(learner, TableLearner):
            state |= learner.tying.state() | {"slept": learner.slept}
        if self._members is not None:
            state["members"] = self._members
        if self._by_suffixes() and self._blocks is not None:
            if len(self._strands) > 1:
                state["strands"] = [strand.state() for strand in self._strands]
            else:
                state |= {"learner": learner.state(), "blocks": self._blocks.state()}
        return state

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        p = len(self.expert_names_)
        paths = self._restricted() is not None or isinstance(self.automaton, PathFamily)
        tying = None if paths else Tying.restored(state, p)
        learners = self._blank_learners("position" if tying is None else tying.tie, p, state)
        for learner in learners:
            learner.judged = len(learners) > 1
            if isinstance(learner, TableLearner):
                assert tying is not None
                learner.tying = tying
                learner.slept = header_value(state, "slept", bool)
                learner.grow(learner.tying.n_rows)
        self._strand = 0
        if "strand" in state:
            self._strand = header_value(state, "strand", int, low=0, high=len(learners))
        self._learner = learner = learners[self._strand]
        shape = learner.table.shape
        self._log_table = take(state, "log_table", np.float64, shape, finite=False)
        if not (self._log_table < np.inf).all() or not np.isfinite(self._log_table.max()):
            raise CorruptModelError("the weights are not the logarithms of numbers")
        self._losses = take(state, "round_losses", np.float64, (None,))
        self.round_losses_ = self._losses
        self.rounds_ = take(state, "rounds", np.int64, (None,))
        check_range(self.rounds_, 0, len(self._losses), "rounds")
        if not len(self.rounds_):
            raise CorruptModelError("no round was chosen")
        self.gamma_ = header_value(state, "gamma", float)
        self.expected_loss_ = header_value(state, "expected_loss", float)
        self._n_sets = header_value(state, "n_sets", int, low=1)
        self._members = None
        if "members" in state:
            tables = header_value(state, "members", list, items=np.ndarray)
            self._members = [
                take({"members": table}, "members", np.float64, shape, finite=False)
                for table in tables
            ]
            if len(tables) != len(self.rounds_) or not all((t < np.inf).all() for t in tables):
                raise CorruptModelError("the weights of rounds are not logarithms, one a round")
        self._blocks = None
        self._strands = [self._new_strand(one) for one in learners]
        if "strands" in state:
            kept = header_value(state, "strands", list, items=dict)
            if len(kept) != len(learners):
                raise CorruptModelError("the strands are not those of the rates")
            for strand, entries in zip(self._strands, kept, strict=True):
                strand.restore(entries)
            self._take(self._strand)
            if not np.array_equal(self._losses, self.round_losses_):
                raise CorruptModelError("the rounds are not those of the losses")
        elif "blocks" in state:
            strand = self._strands[self._strand]
            learner.restore(header_value(state, "learner", dict))
            strand.blocks.restore(header_value(state, "blocks", dict), shape)
            if not learner.n_rounds == strand.blocks.n_rounds == len(self._losses):
                raise CorruptModelError("the rounds are not those of the losses")
            strand.losses, self._blocks, self._strands = self._losses, strand.blocks, [strand]

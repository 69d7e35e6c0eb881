r"""SLE: forward stepwise selection of experts (Caruana et al. 2004, Nguyen and Guo 2007).

Start with no votes. T times, add one vote of the expert (the same one again, if need be) with which
the ensemble's vote makes the fewest mistakes on the training positions. Equal votes for two labels
go to the one that an expert added earlier says; equally good experts are drawn from at random.

With few labelled samples this chooses by luck, and does worse than the plain vote. By default the
start is therefore the vote, two votes of each expert (so that the first one added decides ties
only), and a vote is added only as long as it lowers the number of mistakes by more than a standard
error: if it puts g positions right and l wrong, :math:`g - l > \sqrt{g + l}`.

With ``pairs=True`` the ensemble also counts votes for pairs of neighbouring labels and answers with
the sequence that collects most,

.. math:: \arg\max_y \sum_k n_k(y_k) + \sum_{k>1} n_k(y_{k-1}, y_k),

by Viterbi, as Nguyen and Guo do.

References
----------
R. Caruana, A. Niculescu-Mizil, G. Crew, A. Ksikes, *Ensemble selection from libraries of models*,
2004; N. Nguyen and Y. Guo, *Comparisons of sequence labeling algorithms and extensions*, 2007.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.domains import flag, one_of, whole
from trellis.errors import CorruptModelError
from trellis.estimator import Seeded, changed, parameter
from trellis.experts.combiner import Combiner, restored_order
from trellis.experts.outputs import ExpertOutputs
from trellis.experts.voting import vote
from trellis.files.stored import check_range, header_value, take
from trellis.kernels.experts import add_vote, same_rows, vote_slots
from trellis.kernels.votes import add_first_votes

__all__ = ["ForwardStepwise"]


class ForwardStepwise(Combiner, Seeded):
    """Ensemble by greedy selection with replacement (SLE).

    Attributes
    ----------
    weights_ : float64 (p,)
        Share of the votes that each expert has.
    path_ : list of str
        The experts in the order in which votes of theirs were added.
    errors_ : float64 (rounds,)
        Share of training positions that are wrong after each addition.

    Examples
    --------
    >>> from trellis.experts import ForwardStepwise
    >>> gold = [["a", "b", "a"]]
    >>> said = [[["a", "b", "b"]], [["a", "a", "a"]], [["b", "b", "a"]]]
    >>> sle = ForwardStepwise(start="empty", n_rounds=3, random_state=0).fit(said, gold)
    >>> sle.predict(said), sorted(sle.path_)
    ([['a', 'b', 'a']], ['expert 1', 'expert 2', 'expert 3'])
    >>> ForwardStepwise().fit(said, gold).path_  # the plain vote is right already
    []
    """

    start: str = parameter(
        one_of("vote", "empty"),
        """What votes are added to: "vote", two votes of each expert, and only as long as an
        addition clearly lowers the number of mistakes; "empty", nothing, and ``n_rounds`` are added
        (the rule of the papers, for a thousand labelled samples or more).""",
        default="vote",
    )
    n_rounds: int = parameter(
        whole(1), "How many votes are added; with ``start='vote'`` at most.", default=100
    )
    pairs: bool = parameter(
        flag,
        "Count votes for pairs of neighbouring labels, too, and decode with Viterbi.",
        default=False,
    )
    random_state = changed(help="Seed of the choice among equally good experts.")

    def _learn(self, outputs: ExpertOutputs, gold: NDArray[np.int32], fresh: bool) -> None:
        rng = np.random.default_rng(self.random_state)
        ballot = _PairBallot(outputs, gold) if self.pairs else _Ballot(outputs, gold)
        everyone = range(outputs.n_experts)
        # Without labelled samples there is nothing to choose by.
        given = [*everyone, *everyone] if self.start == "vote" or not len(gold) else []
        if given:
            ballot.add_all(2)
        path: list[int] = []
        errors = []
        while len(path) < self.n_rounds and len(gold):
            gained, lost = ballot.ahead()
            wrong = ballot.wrong - gained + lost
            worth = np.ones(len(wrong), bool)
            if given:
                worth = gained - lost > np.sqrt(gained + lost)
                if not worth.any():
                    break
            fewest = wrong[worth].min()
            j = int(rng.choice(np.flatnonzero(worth & (wrong == fewest))))
            ballot.add(j)
            path.append(j)
            errors.append(int(fewest) / len(gold))
        votes = np.bincount([*given, *path], minlength=outputs.n_experts)
        self.weights_ = votes / votes.sum()
        self.path_ = [outputs.names[j] for j in path]
        self.errors_ = np.array(errors)
        self._order = np.array([*dict.fromkeys([*given, *path, *everyone])])

    def _label(self, outputs: ExpertOutputs) -> NDArray[np.int32]:
        if self.pairs:
            ballot = _PairBallot(outputs, np.zeros(outputs.n_positions, np.int32))
            for j in np.flatnonzero(self.weights_):
                ballot.add(int(j), self.weights_[j])
            return ballot.answer()
        # Ties go to what was added first.
        return vote(outputs.codes, self.weights_, len(outputs.labels), order=self._order)

    def _state(self) -> dict[str, Any]:
        return super()._state() | {
            "weights": self.weights_,
            "path": self.path_,
            "shares": self.errors_,
            "order": self._order,
        }

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        self.weights_ = take(state, "weights", np.float64, (len(self.expert_names_),))
        check_range(self.weights_, 0, np.inf, "votes of experts")
        self.path_ = header_value(state, "path", list, items=str)
        if not set(self.path_) <= set(self.expert_names_):
            raise CorruptModelError("the path names an expert that there is not")
        self.errors_ = take(state, "shares", np.float64, (len(self.path_),))
        if "order" in state:
            self._order = restored_order(state, "order", len(self.expert_names_))
        else:  # files of the first version: all began with nothing
            names = dict.fromkeys([*self.path_, *self.expert_names_])
            self._order = np.array([self.expert_names_.index(name) for name in names])


class _Ballot:
    """Votes so far, and the mistakes they make with one vote more.

    Positions where all experts are awake and say the same are never decided otherwise, and are
    counted once and for all. Those with the same pattern of answers are kept once (see
    :mod:`trellis.kernels.experts`).
    """

    def __init__(self, outputs: ExpertOutputs, gold: NDArray[np.int32]) -> None:
        n, p = outputs.codes.shape
        slots, right = np.empty((n, p), np.int16), np.empty(n, np.int16)
        hashes = np.empty(n, np.uint64)
        n, width, self._fixed = vote_slots(outputs.codes, gold, slots, right, hashes)
        _, kept, row, times = np.unique(
            hashes[:n], return_index=True, return_inverse=True, return_counts=True
        )
        slots, right = slots[:n], right[:n]
        if same_rows(slots, right, kept[row]):
            slots, right = slots[kept], right[kept]
        else:  # two patterns with one hash
            times = np.ones(n, np.int64)
        self._slots, self._right, self._times = slots, right, times
        self._votes = np.zeros((len(slots), max(1, width)), np.int32)
        self._first = np.full(self._votes.shape, np.iinfo(np.int32).max, np.int32)
        self._winner = np.full(len(slots), -1, np.int16)
        self._gained, self._lost = np.zeros(p, np.int64), np.zeros(p, np.int64)
        self._n_added = 0
        self._vote(-1)

    @property
    def wrong(self) -> int:
        """Number of wrong positions."""
        return int(self._fixed + self._wrong)

    def ahead(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Positions that would become right, and wrong, if expert j had one vote more; (p,)."""
        return self._gained, self._lost

    def add(self, j: int) -> None:
        """Give expert j one vote more."""
        self._vote(j)
        self._n_added += 1

    def add_all(self, times: int) -> None:
        """Give every expert so many votes at the start, one after the other."""
        add_first_votes(self._slots, times, self._votes, self._first, self._winner)
        self._n_added = times * self._slots.shape[1]
        self._vote(-1)

    def _vote(self, j: int) -> None:
        self._wrong = add_vote(
            self._slots, self._right, self._times, j, self._n_added, self._votes, self._first,
            self._winner, self._gained, self._lost,
        )  # fmt: skip


class _PairBallot:
    """Votes for labels and for pairs of neighbouring labels."""

    def __init__(self, outputs: ExpertOutputs, gold: NDArray[np.int32]) -> None:
        n, n_labels = outputs.n_positions, len(outputs.labels)
        self._codes, self._gold, self._offsets = outputs.codes, gold, outputs.offsets
        self._node = np.zeros((n, n_labels))
        self._pair = np.zeros((n, n_labels, n_labels))
        self._inner = np.ones(n, bool)
        self._inner[outputs.offsets[:-1]] = False

    @property
    def wrong(self) -> int:
        """Number of wrong positions."""
        return int((self.answer() != self._gold).sum())

    def ahead(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Positions that would become right, and wrong, if expert j had one vote more; (p,)."""
        right = self.answer() == self._gold
        gained, lost = (np.zeros(self._codes.shape[1], np.int64) for _ in range(2))
        for j in range(len(gained)):
            self.add(j)
            then = self.answer() == self._gold
            gained[j], lost[j] = (then & ~right).sum(), (right & ~then).sum()
            self.add(j, -1.0)
        return gained, lost

    def add(self, j: int, votes: float = 1.0) -> None:
        """Give expert j votes more."""
        code = self._codes[:, j]
        here = np.flatnonzero(code >= 0)
        self._node[here, code[here]] += votes
        both = here[self._inner[here]]
        both = both[code[both - 1] >= 0]
        self._pair[both, code[both - 1], code[both]] += votes

    def add_all(self, times: int) -> None:
        """Give every expert so many votes."""
        for j in range(self._codes.shape[1]):
            self.add(j, float(times))

    def answer(self) -> NDArray[np.int32]:
        """Label codes of the ensemble, -1 where nobody says anything."""
        from trellis.structures import ChainPotentials, best

        labels = best(ChainPotentials(self._node, self._pair, self._offsets))[0]
        return np.where((self._codes < 0).all(axis=1), -1, labels).astype(np.int32)

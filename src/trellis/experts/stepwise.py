r"""SLE: forward stepwise selection of experts (Caruana et al. 2004, Nguyen and Guo 2007).

Start with no votes. T times, add one vote of the expert (the same one again, if need be) with which
the ensemble's vote makes the fewest mistakes on the training positions. Equal votes for two labels
go to the one that an expert added earlier says; equally good experts are drawn from at random.

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

from trellis.domains import flag, whole
from trellis.errors import CorruptModelError
from trellis.estimator import Seeded, changed, parameter
from trellis.experts.combiner import Combiner
from trellis.experts.outputs import ExpertOutputs
from trellis.experts.voting import vote
from trellis.files.stored import check_range, header_value, take

__all__ = ["ForwardStepwise"]


class ForwardStepwise(Combiner, Seeded):
    """Ensemble by greedy selection with replacement (SLE).

    Attributes
    ----------
    weights_ : float64 (p,)
        Share of the votes that each expert was given.
    path_ : list of str
        The experts in the order in which they were added.
    errors_ : float64 (n_rounds,)
        Share of training positions that are wrong after each addition.

    Examples
    --------
    >>> from trellis.experts import ForwardStepwise
    >>> gold = [["a", "b", "a"]]
    >>> said = [[["a", "b", "b"]], [["a", "a", "a"]], [["b", "b", "a"]]]
    >>> sle = ForwardStepwise(n_rounds=3, random_state=0).fit(said, gold)
    >>> sle.predict(said), sle.weights_.tolist()
    ([['a', 'b', 'a']], [0.3333333333333333, 0.3333333333333333, 0.3333333333333333])
    """

    n_rounds: int = parameter(whole(1), "How many votes are given.", default=100)
    pairs: bool = parameter(
        flag,
        "Count votes for pairs of neighbouring labels, too, and decode with Viterbi.",
        default=False,
    )
    random_state = changed(help="Seed of the choice among equally good experts.")

    def _learn(self, outputs: ExpertOutputs, gold: NDArray[np.int32], fresh: bool) -> None:
        rng = np.random.default_rng(self.random_state)
        ballot = _PairBallot(outputs, gold) if self.pairs else _Ballot(outputs, gold)
        counts = np.zeros(outputs.n_experts)
        path, errors = [], []
        for _ in range(self.n_rounds):
            wrong = np.array([ballot.wrong_with(j) for j in range(outputs.n_experts)])
            best = np.flatnonzero(wrong == wrong.min())
            j = int(rng.choice(best))
            ballot.add(j)
            counts[j] += 1
            path.append(j)
            errors.append(int(wrong[j]) / len(gold))
        self.weights_ = counts / self.n_rounds
        self.path_ = [outputs.names[j] for j in path]
        self.errors_ = np.array(errors)

    def _label(self, outputs: ExpertOutputs) -> NDArray[np.int32]:
        if self.pairs:
            ballot = _PairBallot(outputs, np.zeros(outputs.n_positions, np.int32))
            for j in np.flatnonzero(self.weights_):
                ballot.add(int(j), self.weights_[j])
            return ballot.answer()
        # The vote's ties go to the first column, so the columns are put in order of addition.
        index = {name: j for j, name in enumerate(self.expert_names_)}
        order = list(dict.fromkeys(index[name] for name in (*self.path_, *self.expert_names_)))
        return vote(outputs.codes[:, order], self.weights_[order], len(outputs.labels))

    def _state(self) -> dict[str, Any]:
        state = super()._state()
        return state | {"weights": self.weights_, "path": self.path_, "shares": self.errors_}

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        self.weights_ = take(state, "weights", np.float64, (len(self.expert_names_),))
        check_range(self.weights_, 0, np.inf, "votes of experts")
        self.path_ = header_value(state, "path", list, items=str)
        if not set(self.path_) <= set(self.expert_names_):
            raise CorruptModelError("the path names an expert that there is not")
        self.errors_ = take(state, "shares", np.float64, (len(self.path_),))


class _Ballot:
    """Votes so far, and the mistakes they make with one vote more.

    Positions where all experts that are awake say the same are never decided otherwise, and are
    counted once and for all.
    """

    def __init__(self, outputs: ExpertOutputs, gold: NDArray[np.int32]) -> None:
        codes = outputs.codes
        low = np.where(codes < 0, len(outputs.labels), codes).min(axis=1)
        open_ = (codes.max(axis=1) != low) | (codes < 0).any(axis=1)
        self._fixed = int((low != gold)[~open_].sum())
        self._codes, self._gold = codes[open_], gold[open_]
        n = len(self._gold)
        self._votes = np.zeros((n, len(outputs.labels)))
        self._first = np.full(self._votes.shape, np.iinfo(np.int64).max)  # when first voted for
        self._rows = np.arange(n)
        self._winner = np.full(n, -1)
        self._n_added = 0

    def wrong_with(self, j: int) -> int:
        """Number of wrong positions if expert j had one vote more."""
        return self._fixed + int((self._winner_with(j) != self._gold).sum())

    def _winner_with(self, j: int) -> NDArray[np.int64]:
        code = self._codes[:, j]
        awake, label = code >= 0, np.maximum(code, 0)
        votes = self._votes[self._rows, label] + 1
        leads = self._winner >= 0
        holder = np.maximum(self._winner, 0)
        held = np.where(leads, self._votes[self._rows, holder], 0.0)
        earlier = self._first[self._rows, label] < self._first[self._rows, holder]
        takes = awake & ((votes > held) | ((votes == held) & earlier))
        return np.where(takes, label, self._winner)

    def add(self, j: int) -> None:
        """Give expert j one vote more."""
        self._winner = self._winner_with(j)
        awake = self._codes[:, j] >= 0
        rows, label = self._rows[awake], self._codes[awake, j]
        self._votes[rows, label] += 1
        self._first[rows, label] = np.minimum(self._first[rows, label], self._n_added)
        self._n_added += 1


class _PairBallot:
    """Votes for labels and for pairs of neighbouring labels."""

    def __init__(self, outputs: ExpertOutputs, gold: NDArray[np.int32]) -> None:
        n, n_labels = outputs.n_positions, len(outputs.labels)
        self._codes, self._gold, self._offsets = outputs.codes, gold, outputs.offsets
        self._node = np.zeros((n, n_labels))
        self._pair = np.zeros((n, n_labels, n_labels))
        self._inner = np.ones(n, bool)
        self._inner[outputs.offsets[:-1]] = False

    def wrong_with(self, j: int) -> int:
        self.add(j)
        wrong = int((self.answer() != self._gold).sum())
        self.add(j, -1.0)
        return wrong

    def add(self, j: int, votes: float = 1.0) -> None:
        code = self._codes[:, j]
        here = np.flatnonzero(code >= 0)
        self._node[here, code[here]] += votes
        both = here[self._inner[here]]
        both = both[code[both - 1] >= 0]
        self._pair[both, code[both - 1], code[both]] += votes

    def answer(self) -> NDArray[np.int32]:
        from trellis.structures import ChainPotentials, best

        labels = best(ChainPotentials(self._node, self._pair, self._offsets))[0]
        return np.where((self._codes < 0).all(axis=1), -1, labels).astype(np.int32)

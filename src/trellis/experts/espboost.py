r"""ESPBoost: boosting path experts (Cortes, Kuznetsov and Mohri 2014, section 4).

A path expert follows one of the p experts in each context (each position, in the seed). ESPBoost is
coordinate descent on

.. math:: F(\alpha) = \frac1N \sum_{i,k} \exp\Big(-\sum_t \alpha_t\,\rho(h_t^k, x_i, y_i)\Big),
          \qquad \rho(h^k, x, y) = h^k(x, y^k) - \max_{c \ne y^k} h^k(x, c),

which bounds the Hamming loss of :math:`\arg\max_y \sum_k \sum_t \alpha_t h_t^k(x, y^k)` (Lemma 3).
D is one distribution over all pairs (i, k) of sample and position. Each round takes the path of
largest edge :math:`\sum D\rho`, which is found context by context; the step that minimises F; and
multiplies D by :math:`e^{-\alpha\rho}/Z`.

* With 0/1 scores, :math:`h^k(x, c) = 1[\text{the expert says } c]` and ρ = ±1, so that
  :math:`\alpha = \frac12\log\frac{1-\epsilon}{\epsilon}` and
  :math:`Z = 2\sqrt{\epsilon(1-\epsilon)}` with the path's weighted error ε. Where the expert sleeps
  ρ = 0, the abstention of Schapire and Singer (1999): :math:`\alpha = \frac12 \log(W_+/W_-)`,
  :math:`Z = W_0 + 2\sqrt{W_+ W_-}`.
* With real scores, h is the expert's probability of c, and the step is found by bisection.

Contexts are those of :mod:`trellis.experts.tying`. If weights are shared by *label*, the candidates
of a round are the pairs «expert j where it says c», which abstain elsewhere.

Where weights are tied, an expert that is best everywhere is the first path, its mistakes carry half
of D, and nobody else is right there often enough: Algorithm 1 ends as the best expert, which many a
plain vote beats. So with tied weights boosting starts from the vote (``start="vote"``): round 0 has
the hypothesis whose score of c is the *share* of the experts that say c, a real score as
above, and the rounds of Algorithm 1 correct it while their edge is two standard errors above 0. If
in five-fold cross-validation the corrected vote is not clearly better than the plain one, that one
answers. Lemma 3 and Theorem 5 hold for the vote as for any other hypothesis.

An ``automaton`` (:class:`~trellis.experts.PathAutomaton`) restricts the paths to its own: the path
of a round is the shortest one under the weighted errors of the edges. On a
:class:`~trellis.experts.PathFamily`, for samples of any length, a path expert is a path for each
length. That of a round is given by scores of moves, tied over positions and lengths,

.. math:: s(m) = \frac1{n(m)} \sum_{(i, k) \in P(m)} D(i, k)\,\rho(h_{j(m)}^k, x_i, y_i),
          \qquad h(l) = \arg\max_{m_1 \dots m_l} \sum_k s(m_k),

where P(m) are the n(m) positions at which the move m may be made. On the complete family that is
the expert of largest edge (``tie="expert"``); if each position has moves of its own and all samples
have one length, it is the path of largest edge of the unrolled automaton. In other families it is
the best path as far as tied scores can tell; the step and Z are those of its own margins, so that
Lemma 3 and Theorem 5 hold. The answer is the vote, position by position, of the paths h(l).

Boosting stops when the edge is not positive (ε ≥ 1/2: the weak-learning assumption fails), or when
no position is wrong (ε = 0: the step is capped). The scores then make a table of votes, one weight
for each context and expert.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trellis.domains import instance, nothing, one_of, whole
from trellis.errors import CorruptModelError, DataError
from trellis.estimator import fitted, parameter
from trellis.experts.automaton import PathAutomaton
from trellis.experts.combiner import SCHEME, TIE, Combiner, sample_means
from trellis.experts.conversions import clearly_positive
from trellis.experts.decoding import best_valid, vote_table
from trellis.experts.learners import by_length
from trellis.experts.outputs import ExpertOutputs, as_gold
from trellis.experts.path_family import PathFamily
from trellis.experts.tying import Tie, Tying
from trellis.experts.voting import vote
from trellis.files.stored import check_range, header_value, take

__all__ = ["ESPBoost"]

_BLOCK = 1 << 16
_FOLDS = 5
_SURE = 2.0  # standard errors that the edge of a correction of the vote is above 0
_FIRST_REASONS = {  # sentences of the first files
    "n_rounds": "max_rounds",
    "no position is wrong": "no mistakes",
    "weak learning fails: no path is right for half the weight": "weak learning",
}


class ESPBoost(Combiner):
    """Boosted ensemble of path experts.

    Attributes
    ----------
    alphas_ : float64 (T,)
        Weights of the rounds.
    errors_ : float64 (T,)
        Weighted error of each round's path: (1 - edge) / 2.
    normalisers_ : float64 (T,)
        The Z of each round; their product bounds the training error.
    weights_ : float64 (C, p)
        Votes of the experts in each context: sums of alphas. On a family of automata (1, p): their
        mean over the positions of training.
    stop_reason_ : str
        Why boosting ended: "no mistakes", "weak learning" (no path is right for half of the weight)
        or "max_rounds".

    Examples
    --------
    >>> from trellis.experts import ESPBoost
    >>> gold = [["a", "b"], ["b", "a"]] * 3
    >>> first = [["a", "a"], ["b", "b"]] * 3  # right at the first position
    >>> second = [["b", "b"], ["a", "a"]] * 3  # right at the second
    >>> boost = ESPBoost().fit([first, second], gold)
    >>> boost.predict([first, second]) == gold, boost.stop_reason_
    (True, 'no mistakes')
    >>> bool(boost.bound() < 1)
    True
    """

    scoring: str = parameter(
        one_of("sum", "product"),
        """Score a sequence by the sum or by the product over its positions. They differ only with
        a ``scheme``.""",
        default="sum",
    )
    base: str = parameter(
        one_of("0/1", "real"),
        """Scores of an expert: 1 for the label it says, or its label probabilities, which the
        outputs must then hold.""",
        default="0/1",
    )
    n_rounds: int = parameter(whole(1), "Rounds at most.", default=100)
    tie: Tie = TIE
    start: str = parameter(
        one_of("auto", "nothing", "vote"),
        """What boosting starts from: nothing, as in the paper, or the plain vote as round 0, which
        paths then correct. "auto": the vote if weights are tied, else nothing.""",
        default="auto",
    )
    automaton: PathAutomaton | PathFamily | None = parameter(
        nothing | instance(PathAutomaton) | instance(PathFamily),
        """The allowed paths: of samples of one length, or a
        :class:`~trellis.experts.PathFamily` for samples of any length, with scores of moves that
        are tied over positions. None: all.""",
        default=None,
    )
    scheme: str | None = SCHEME
    weights_: NDArray[np.float64] = fitted()
    alphas_: NDArray[np.float64] = fitted()
    errors_: NDArray[np.float64] = fitted()
    normalisers_: NDArray[np.float64] = fitted()
    _moves: NDArray[np.float64] = fitted()  # scores of moves in each round (T, M), on a family

    def _check_together(self) -> None:
        if self.automaton is not None and self.tie not in ("auto", "position"):
            raise DataError("an automaton has its weights on edges or moves; leave tie at auto")

    def _learn(self, outputs: ExpertOutputs, gold: NDArray[np.int32], fresh: bool) -> None:
        tie = self.tie
        if tie == "auto":
            tie = "position" if len(set(outputs.lengths.tolist())) == 1 else "expert"
        if isinstance(self.automaton, PathAutomaton):
            tie = "position"
            self.automaton.check_samples(outputs.lengths, outputs.n_experts)
        elif self.automaton is not None:
            tie = "expert"
            self.automaton.check_experts(outputs.n_experts)
        self._tying = Tying(tie, outputs.n_experts)
        cells = self._tying.learn(outputs)
        rho = self._margins(outputs, gold)
        if cells.by_label:
            rows = cells.rows(outputs.codes, slice(None))
            paths: _Paths = _ByLabel(rho, rows, self._tying.n_rows)
        elif isinstance(self.automaton, PathFamily):
            paths = _OnFamily(rho, self.automaton, outputs.offsets)
        elif self.automaton is not None and not self.automaton.is_complete:
            paths = _OnAutomaton(rho, self.automaton)
        else:
            paths = _ByContext(rho, cells.context, self._tying.n_rows)
        from_vote = self.start == "vote" or (self.start == "auto" and tie != "position")
        self._boost(paths, self._vote_margins(outputs, gold) if from_vote else None)
        if from_vote and len(self.alphas_) > 1 and not self._corrects(outputs, gold):
            self._keep_vote(self.alphas_[0] / outputs.n_experts)
            self.stop_reason_ = "weak learning"

    def _keep_vote(self, weight: float) -> None:
        """Forget the rounds that correct the vote; it has this weight for each expert."""
        self.weights_ = np.full(self.weights_.shape, weight)
        self.alphas_, self.errors_ = self.alphas_[:1], self.errors_[:1]
        self.normalisers_ = self.normalisers_[:1]
        self._moves = self._moves[:0]

    def _corrects(self, outputs: ExpertOutputs, gold: NDArray[np.int32]) -> bool:
        """Whether, in cross-validation, corrections of the vote are clearly better than it."""
        if len(outputs) < _FOLDS:
            return False
        fold = np.arange(len(outputs)) % _FOLDS
        gains = np.empty(len(outputs))
        for k in range(_FOLDS):
            held_out = np.repeat(fold == k, outputs.lengths)
            other = _Corrected(**{name: getattr(self, name) for name in self._parameter_table})
            other._learn(outputs.take(fold != k), gold[~held_out], fresh=True)
            new, right = outputs.take(fold == k), gold[held_out]
            corrected = other._label(new) != right
            other._keep_vote(1.0)
            wrong = 1.0 * (other._label(new) != right) - corrected
            gains[fold == k] = sample_means(wrong, new.offsets)
        return clearly_positive(gains)

    def _vote_margins(self, outputs: ExpertOutputs, gold: NDArray[np.int32]) -> NDArray[np.float64]:
        """Margins (N,) of the plain vote, whose score of a label is the mean of the experts'."""
        n_labels = len(outputs.labels)
        margins = np.empty(len(gold))
        for a in range(0, len(gold), _BLOCK):
            part = slice(a, min(a + _BLOCK, len(gold)))
            share = (outputs.codes[part] >= 0) / outputs.n_experts
            if self.base == "real":
                votes = np.einsum("tj,tjc->tc", share, self._scores(outputs)[part])
            else:
                votes = vote_table(outputs.codes[part], share, n_labels)
            margins[part] = _margin(votes, gold[part])
        return margins

    def _boost(self, paths: _Paths, vote_margins: NDArray[np.float64] | None) -> None:
        n = len(paths.rho)
        cap = 0.5 * math.log(2 * n - 1) if n > 1 else 1.0
        share = np.full(n, 1.0 / n)
        self.weights_ = np.zeros(paths.shape)
        alphas: list[float] = []
        errors: list[float] = []
        normalisers: list[float] = []
        self.stop_reason_ = "max_rounds"
        for round_ in range(self.n_rounds + (vote_margins is not None)):
            if vote_margins is not None and round_ == 0:
                # The vote's score is a mean: each of p experts has a p-th of its weight.
                chosen, part, rho = _Path(slice(None), 1 / paths.shape[1], vote_margins)
            else:
                chosen, part, rho = paths.best(share)
            edge = float(share @ rho)
            least = 1e-12
            if vote_margins is not None and round_ > 0:
                least = _SURE * math.sqrt(float(share**2 @ rho**2))
            if edge <= least:
                self.stop_reason_ = "weak learning"
                if alphas:
                    break
            alpha = min(_step(share, rho), cap) if edge > least else 1.0
            share = share * np.exp(-alpha * rho)
            z = float(share.sum())
            share /= z
            self.weights_[chosen] += alpha * part
            alphas.append(alpha)
            errors.append((1 - edge) / 2)
            normalisers.append(z)
            if edge <= least:  # not even the first path: it is the answer all the same
                break
            if (rho > 0).all():
                self.stop_reason_ = "no mistakes"
                break
        self.alphas_, self.errors_ = np.array(alphas), np.array(errors)
        self.normalisers_ = np.array(normalisers)
        self._moves = paths.moves(len(alphas) - (vote_margins is not None))

    def bound(self, rho: float = 0.0) -> float:
        r"""Bound on the empirical margin loss in training (Theorem 5).

        The share of training positions with a margin of at most ``rho`` times the sum of the
        alphas is at most the product of the Z times e^(rho · sum of alphas), which with 0/1 scores
        and no expert asleep is
        :math:`2^T\prod_t\sqrt{\epsilon_t^{1-\rho}(1-\epsilon_t)^{1+\rho}}`.
        With ``rho=0`` it bounds the training error.
        """
        self._check_fitted()
        return float(np.exp(np.log(self.normalisers_).sum() + rho * self.alphas_.sum()))

    def margin_loss(self, outputs: Any, gold: Any, rho: float = 0.0) -> float:
        """Share of positions whose margin is at most ``rho`` times the sum of the alphas."""
        right, answers = as_gold(gold, self._recognised(outputs))
        votes = self._votes(answers)
        at = np.arange(len(right))
        gold_votes = votes[at, right].copy()
        votes[at, right] = -np.inf
        rival = np.maximum(votes.max(axis=1), 0.0)  # a label that nobody names has no votes
        return float(np.mean(gold_votes - rival <= rho * self.alphas_.sum() + 1e-12))

    def _label(self, outputs: ExpertOutputs) -> NDArray[np.int32]:
        if self.base == "0/1" and self.scheme is None:
            weights = self._position_weights(outputs)
            return vote(outputs.codes, weights, len(outputs.labels))
        votes = self._votes(outputs)
        if self.scheme is not None:
            return best_valid(votes, outputs, self.scheme, self.scoring)
        return np.where(votes.any(axis=1), votes.argmax(axis=1), -1).astype(np.int32)

    def _position_weights(self, outputs: ExpertOutputs) -> Any:
        if isinstance(self.automaton, PathFamily):
            return self._family_weights(self.automaton, outputs)
        with np.errstate(divide="ignore"):
            table = np.exp(self._tying.with_fallback(np.log(self.weights_)))
        cells = self._tying.cells(outputs)
        columns = np.arange(outputs.n_experts)
        return lambda part: table[cells.rows(outputs.codes, part), columns]

    def _family_weights(self, family: PathFamily, outputs: ExpertOutputs) -> Any:
        """Sums of the alphas of the rounds whose path follows each expert."""
        p, tables, n_rows = outputs.n_experts, [], 0
        rows = np.empty(outputs.n_positions, np.int64)
        from_vote = len(self.alphas_) - len(self._moves)
        for length, _, places in by_length(outputs.offsets):
            cells = np.arange(length) * p + family.expert[family.best_paths(self._moves, length)]
            alphas = np.repeat(self.alphas_[from_vote:], length)
            table = np.bincount(cells.ravel(), alphas, length * p).reshape(length, p)
            tables.append(table + self.alphas_[:from_vote].sum() / p)
            rows[places] = n_rows + np.arange(length)
            n_rows += length
        weights = np.concatenate([np.zeros((0, p)), *tables])
        return lambda part: weights[rows[part]]

    def _votes(self, outputs: ExpertOutputs) -> NDArray[np.float64]:
        """Scores (N, L) of all labels."""
        n_labels = len(outputs.labels)
        weights = self._position_weights(outputs)
        votes = np.empty((outputs.n_positions, n_labels))
        for a in range(0, outputs.n_positions, _BLOCK):
            part = slice(a, min(a + _BLOCK, outputs.n_positions))
            weight = np.where(outputs.codes[part] >= 0, weights(part), 0.0)
            if self.base == "real":
                votes[part] = np.einsum("tj,tjc->tc", weight, self._scores(outputs)[part])
            else:
                votes[part] = vote_table(outputs.codes[part], weight, n_labels)
        return votes

    def _margins(self, outputs: ExpertOutputs, gold: NDArray[np.int32]) -> NDArray[np.float64]:
        """Margins (N, p) of the experts' own scores; 0 where they sleep."""
        if self.base == "0/1":
            rho = np.where(outputs.codes == gold[:, None], 1.0, -1.0)
        else:
            scores = self._scores(outputs)
            rho = np.empty(outputs.codes.shape)
            for j in range(outputs.n_experts):
                rho[:, j] = _margin(scores[:, j], gold)
        rho[outputs.codes < 0] = 0.0
        return rho

    def _scores(self, outputs: ExpertOutputs) -> NDArray[np.float32]:
        if outputs.scores is None:
            raise DataError(
                "base='real' needs the experts' label probabilities (scores), and these outputs "
                "have none; use base='0/1'"
            )
        return outputs.scores

    def _state(self) -> dict[str, Any]:
        moves = {"moves": self._moves} if isinstance(self.automaton, PathFamily) else {}
        return super()._state() | self._tying.state() | moves | {
            "weights": self.weights_,
            "alphas": self.alphas_,
            "round_errors": self.errors_,
            "normalisers": self.normalisers_,
            "stop_reason": self.stop_reason_,
        }  # fmt: skip

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        p = len(self.expert_names_)
        self._tying = Tying.restored(state, p)
        if self.automaton is not None:
            self.automaton.check_experts(p)
        self.weights_ = take(state, "weights", np.float64, (self._tying.n_rows, p))
        check_range(self.weights_, 0, np.inf, "votes of experts")
        self.alphas_ = take(state, "alphas", np.float64, (None,))
        self.errors_ = take(state, "round_errors", np.float64, self.alphas_.shape)
        self.normalisers_ = take(state, "normalisers", np.float64, self.alphas_.shape)
        self._moves = np.zeros((0, 0))
        if isinstance(self.automaton, PathFamily):
            self._moves = take(state, "moves", np.float64, (None, self.automaton.n_moves))
            if len(self.alphas_) - len(self._moves) not in (0, 1):
                raise CorruptModelError("the scores of moves are not those of the rounds")
        reason = header_value(state, "stop_reason", str)
        self.stop_reason_ = _FIRST_REASONS.get(reason.split("=")[0], reason)


class _Corrected(ESPBoost):
    """The vote with its corrections, whatever they are worth."""

    def _corrects(self, outputs: ExpertOutputs, gold: NDArray[np.int32]) -> bool:
        return True


class _Path(NamedTuple):
    """A path expert: cells of the table of weights, their part of its weight, margins (N,)."""

    cells: Any
    part: Any
    rho: NDArray[np.float64]


class _Paths:
    """All path experts: margins ``rho`` (N, p), and the table of weights they are choices in."""

    def __init__(self, rho: NDArray[np.float64], n_rows: int) -> None:
        self.rho = rho
        self.shape = (n_rows, rho.shape[1])

    def best(self, share: NDArray[np.float64]) -> _Path:
        """Return the path with the largest edge under ``share`` (N,)."""
        raise NotImplementedError  # abstract

    def moves(self, n_rounds: int) -> NDArray[np.float64]:
        """Scores of moves of the first rounds; (0, 0) where there are none."""
        return np.zeros((0, 0))


class _ByContext(_Paths):
    """A path follows one expert in each context."""

    def __init__(self, rho: NDArray[np.float64], context: NDArray[np.int64], n_rows: int) -> None:
        super().__init__(rho, n_rows)
        self._context = context
        order = np.argsort(context, kind="stable")
        ends = np.searchsorted(context[order], np.arange(n_rows + 1))
        self._groups = [order[a:b] for a, b in pairwise(ends.tolist())]

    def best(self, share: NDArray[np.float64]) -> _Path:
        if len(self._groups) == 1:
            edges = (share @ self.rho)[None]
        else:
            edges = np.stack([share[g] @ self.rho[g] for g in self._groups])
        expert = _first_best(edges)
        rho = self.rho[np.arange(len(self.rho)), expert[self._context]]
        return _Path((np.arange(len(expert)), expert), 1.0, rho)


class _OnAutomaton(_Paths):
    """A path is one of an automaton's, for samples of its length."""

    def __init__(self, rho: NDArray[np.float64], automaton: PathAutomaton) -> None:
        super().__init__(rho, automaton.length)
        self._net = automaton
        self._place = np.tile(np.arange(automaton.length), len(rho) // automaton.length)

    def best(self, share: NDArray[np.float64]) -> _Path:
        net = self._net
        edges = (share[:, None] * self.rho).reshape(-1, *self.shape).sum(axis=0)
        path = net.best_path(edges[net.position, net.expert].round(12))
        expert = net.expert[path]
        rho = self.rho[np.arange(len(self.rho)), expert[self._place]]
        return _Path((np.arange(net.length), expert), 1.0, rho)


class _OnFamily(_Paths):
    """A path expert is the best path of a family for each length, under scores of moves."""

    def __init__(
        self, rho: NDArray[np.float64], family: PathFamily, offsets: NDArray[np.int64]
    ) -> None:
        super().__init__(rho, 1)
        self._family = family
        self._lengths = [
            (places, *family.unrolled(length)) for length, _, places in by_length(offsets)
        ]
        count = np.zeros(family.n_moves)
        for places, _, move in self._lengths:
            count += len(places) * np.bincount(move, minlength=family.n_moves)
        # Means up to one factor for all: where a move has all positions, it is a sum of shares.
        self._to_means = count.max() / np.maximum(count, 1)
        self._kept: list[NDArray[np.float64]] = []

    def best(self, share: NDArray[np.float64]) -> _Path:
        family = self._family
        gains = share[:, None] * self.rho
        scores = np.zeros(family.n_moves)
        for places, net, move in self._lengths:
            edges = gains[places].sum(axis=0)[net.position, net.expert]
            scores += np.bincount(move, edges, family.n_moves)
        scores = (scores * self._to_means).round(12)
        self._kept.append(scores)
        rho = np.empty(len(self.rho))
        followed = np.zeros(self.shape[1])
        for places, net, _ in self._lengths:
            expert = family.expert[family.best_paths(scores[None], net.length)[0]]
            rho[places] = self.rho[places, expert]
            followed += len(places) * np.bincount(expert, minlength=len(followed))
        return _Path(slice(None), followed / len(rho), rho)

    def moves(self, n_rounds: int) -> NDArray[np.float64]:
        return np.array(self._kept[:n_rounds]).reshape(-1, self._family.n_moves)


class _ByLabel(_Paths):
    """A path follows one expert where it says one label, and abstains elsewhere."""

    def __init__(self, rho: NDArray[np.float64], rows: NDArray[np.int64], n_rows: int) -> None:
        super().__init__(rho, n_rows)
        self._rows = rows

    def best(self, share: NDArray[np.float64]) -> _Path:
        n_rows, p = self.shape
        edges = np.empty((p, n_rows))
        for j in range(p):
            edges[j] = np.bincount(self._rows[:, j], share * self.rho[:, j], n_rows)
        j, row = divmod(int(_first_best(edges.reshape(1, -1))[0]), n_rows)
        rho = np.where(self._rows[:, j] == row, self.rho[:, j], 0.0)
        return _Path((row, j), 1.0, rho)


def _margin(scores: NDArray[Any], gold: NDArray[np.int32]) -> NDArray[np.float64]:
    """Score of the right label less that of its best rival, (N,), of scores (N, L)."""
    at = np.arange(len(gold))
    rival = scores.copy()
    rival[at, gold] = -np.inf
    margin: NDArray[np.float64] = scores[at, gold] - np.maximum(rival.max(axis=1), 0.0)
    return margin


def _first_best(edges: NDArray[np.float64]) -> NDArray[np.int64]:
    """First column of each row within rounding of the largest."""
    top = edges.max(axis=1, keepdims=True)
    first: NDArray[np.int64] = (edges >= top - 1e-12).argmax(axis=1)
    return first


def _step(share: NDArray[np.float64], rho: NDArray[np.float64]) -> float:
    """The α > 0 that minimises Σ share · e^(−α rho); infinite if nothing is wrong."""
    right, wrong = share[rho > 0].sum(), share[rho < 0].sum()
    if wrong == 0:
        return math.inf
    if np.isin(rho, (-1.0, 0.0, 1.0)).all():
        return 0.5 * math.log(right / wrong)
    low, high = 0.0, 1.0
    while float((share * rho) @ np.exp(-high * rho)) > 0 and high < 1e3:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        if float((share * rho) @ np.exp(-middle * rho)) > 0:
            low = middle
        else:
            high = middle
    return (low + high) / 2

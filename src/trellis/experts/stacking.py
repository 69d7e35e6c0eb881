r"""Stacking: a model learned on top of the experts' answers (Wolpert 1992).

* :class:`LogLinearVote` is a weighted vote whose weights are learned by conditional logit: among
  the labels that experts say at position t,

  .. math:: p(c \mid t) \propto \exp\Big(a\,[c \text{ wins the plain vote}] +
            \sum_j (u + u_j + v_{j,c})\,[h_j \text{ says } c \text{ at } t]\Big).

  The :math:`u_j` and :math:`v_{j,c}` are drawn to 0, where it is the plain vote.

* :class:`Stacking` trains a sequence model on the features «expert j says c here», «… just before»
  and «… just after». It may answer with a label that no expert says (all say I where the phrase has
  no beginning), weighs neighbouring labels, and can keep to a tag scheme. Its weights are drawn to
  those of the plain vote: u for label c where an expert says c here, and 0 for all else.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import for_kernels
from trellis.corpus.corpus import Corpus, Features
from trellis.corpus.labels import Labels
from trellis.domains import flag, has, nothing, number, one_of, whole
from trellis.errors import CorruptModelError, DataError
from trellis.estimator import parameter
from trellis.experts.combiner import SCHEME, Combiner, distinct_names
from trellis.experts.logit import EQUAL, L2, candidate_shares, fit_shrunk
from trellis.experts.outputs import ExpertOutputs
from trellis.experts.voting import vote
from trellis.files.storable import is_fitted
from trellis.files.stored import header_value, take
from trellis.kernels.votes import best_said, count_said, said_scores, stacked_features

__all__ = ["LogLinearVote", "Stacking"]

_TAUGHT_BY = 100_000  # positions at most
_ANSWERS = 1_000_000  # of experts to them
_STACKED = 2_000_000  # answers at most that a sequence model learns from
_BLOCK = 1 << 22  # answers at a time that a sequence model is asked about
_FEW, _FEW_L2, _MANY_L2 = 100, 10.0, 3.0  # settled on chunks, code, digits and made-up answers
_UNSAID = 0.01  # probability of what no expert says
_VOTE = "(vote)"
_SURE = 6.0  # log odds of a label that all experts say, before anything is learned


class LogLinearVote(Combiner):
    """Vote with weights learned by conditional maximum likelihood, drawn to the plain vote.

    Attributes
    ----------
    weights_ : float64 (p, L)
        Weight of an expert when it says one of ``classes_``: equal ones are the plain vote.
    l2_ : float
        Factor of the squared distance from it.

    Notes
    -----
    Only positions where experts disagree teach something. Of more than 100,000 of them, or more
    than a million answers, evenly spaced ones are taken, which is plenty for so few weights.

    Examples
    --------
    >>> from trellis.experts import LogLinearVote
    >>> gold = [["a", "b"], ["b", "a"]]
    >>> good, poor = [["a", "b"], ["b", "a"]], [["b", "b"], ["b", "b"]]
    >>> LogLinearVote(l2=0.01).fit([poor, good, poor], gold).predict([poor, good, poor]) == gold
    True
    """

    by_label: bool = parameter(
        flag,
        "Besides one weight for each expert, learn one for each expert and label that it says.",
        default=True,
    )
    l2: float | str = L2

    def _learn(self, outputs: ExpertOutputs, gold: NDArray[np.int32], fresh: bool) -> None:
        from scipy.sparse import csr_matrix, hstack

        p, n_labels = outputs.n_experts, len(outputs.labels)
        split = (outputs.codes != outputs.codes[:, :1]).any(axis=1)  # the others teach nothing
        rows = np.flatnonzero(split)
        rows = rows[:: 1 + max(len(rows) // _TAUGHT_BY, len(rows) * p // _ANSWERS)]
        plain = _plain_vote(outputs, rows)
        ends, label, voters, expert = _candidates(outputs.codes[rows], n_labels)
        ones = np.ones(len(expert))
        wins = (label == np.repeat(plain, np.diff(ends))).astype(np.float64)
        n_votes = np.bincount(voters, minlength=len(label)).astype(np.float64)
        parts: list[Any] = [
            np.stack([wins, n_votes], axis=1),
            csr_matrix((ones, (voters, expert)), (len(label), p)),
        ]
        if self.by_label:
            column = expert * n_labels + label[voters]
            parts.append(csr_matrix((ones, (voters, column)), (len(label), p * n_labels)))
        features = hstack(parts, "csr")
        right = label == np.repeat(gold[rows], np.diff(ends))
        sample = np.repeat(np.arange(len(outputs)), outputs.lengths)[rows]
        # Free: how sure the vote is. An expert's weight for one label has less to go by than its
        # weight for all.
        scale = np.concatenate(
            [[0.0, 0.0], np.full(p, 1.0), np.full(features.shape[1] - p - 2, 3.0)]
        )
        mean = np.concatenate([[0.5, 1.0], np.zeros(features.shape[1] - 2)])
        weights, self.l2_ = fit_shrunk(features, ends, right, sample, mean, scale, self.l2)
        self._wins = float(weights[0])
        self._mean = weights[1] + weights[2 : p + 2]
        self.weights_ = np.repeat(self._mean[:, None], n_labels, axis=1)
        if self.by_label:
            self.weights_ += weights[p + 2 :].reshape(p, n_labels)
        self._weight_of = dict(zip(outputs.labels, self.weights_.T, strict=True))

    def _table(self, outputs: ExpertOutputs) -> NDArray[np.float64]:
        """Weight of each expert that says a label, (L, p)."""
        return np.array([self._weight_of.get(y, self._mean) for y in outputs.labels])

    def _scores(self, outputs: ExpertOutputs) -> tuple[Any, Any, NDArray[np.float64]]:
        """Ends, labels and scores of all candidates."""
        table = self._table(outputs)
        codes, plain = for_kernels(outputs.codes), _plain_vote(outputs, slice(None))
        ends = np.empty(len(codes) + 1, np.int64)
        count_said(codes, len(table), ends)
        label, scores = np.empty(ends[-1], np.int64), np.empty(ends[-1])
        said_scores(codes, table, plain, self._wins, ends, label, scores)
        return ends, label, scores

    def _label(self, outputs: ExpertOutputs) -> NDArray[np.int32]:
        answer = np.empty(outputs.n_positions, np.int32)
        plain = _plain_vote(outputs, slice(None))
        codes, table = for_kernels(outputs.codes), self._table(outputs)
        best_said(codes, table, plain, self._wins, EQUAL, answer)
        return answer

    def _shares(self, outputs: ExpertOutputs) -> NDArray[np.float64]:
        ends, label, scores = self._scores(outputs)
        n_labels = len(outputs.labels)
        awake = np.diff(ends) > 0
        shares = candidate_shares(scores, np.concatenate([[0], ends[1:][awake]]))
        table = np.full((outputs.n_positions, n_labels), _UNSAID / n_labels)
        table[np.repeat(np.arange(len(awake)), np.diff(ends)), label] += (1 - _UNSAID) * shares
        table[~awake] = 1 / n_labels
        return table

    def _state(self) -> dict[str, Any]:
        labels = list(self._weight_of)
        return super()._state() | {
            "labels": labels, "mean": self._mean, "weights": self.weights_, "wins": self._wins,
            "strength": self.l2_,
        }  # fmt: skip

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        p, labels = len(self.expert_names_), distinct_names(state, "labels")
        self._mean = take(state, "mean", np.float64, (p,))
        self.weights_ = take(state, "weights", np.float64, (p, len(labels)))
        self._weight_of = dict(zip(labels, self.weights_.T, strict=True))
        # Files of 0.1 have neither.
        self._wins = header_value(state, "wins", float) if "wins" in state else 0.0
        self.l2_ = header_value(state, "strength", float, low=0) if "strength" in state else 1.0


def _plain_vote(outputs: ExpertOutputs, rows: Any) -> NDArray[np.int32]:
    return vote(outputs.codes[rows], np.ones(outputs.n_experts), len(outputs.labels))


def _candidates(
    codes: NDArray[np.int32], n_labels: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """The labels said at each position, and by whom.

    Returns ends (N + 1,), the label of each candidate, and for each vote its candidate and expert.
    """
    position, expert = np.nonzero(codes >= 0)
    key = position * n_labels + codes[position, expert]
    distinct, voters = np.unique(key, return_inverse=True)
    ends = np.searchsorted(distinct, np.arange(len(codes) + 1) * n_labels)
    return ends.astype(np.int64), distinct % n_labels, voters.reshape(-1), expert


class Stacking(Combiner):
    """A sequence model on top of the experts' answers, drawn to the plain vote.

    Attributes
    ----------
    model_ : the trained model

    Notes
    -----
    Where the plain vote is a label that the model does not know, it is the answer. Of samples with
    more than two million answers evenly spaced ones are learned from.

    Examples
    --------
    >>> from trellis.experts import Stacking
    >>> gold = [["B", "I", "O"], ["O", "B", "I"]] * 40
    >>> late = [["O", "I", "O"], ["O", "O", "I"]] * 40  # both always miss the beginning
    >>> Stacking().fit([late, late], gold).predict([late[:1], late[:1]])
    [['B', 'I', 'O']]
    """

    base: Any = parameter(
        nothing | has("fit", "predict"),
        """Model with ``fit(corpus)`` and ``predict(corpus)``, of which a copy is trained (nothing
        draws it to the vote); None: a :class:`~trellis.models.ChainCRF` that is drawn there.""",
        default=None,
        kw_only=False,
    )
    window: int = parameter(
        whole(0, 100),
        "How far to look to the left and to the right for what experts say there.",
        default=1,
    )
    l2: float | str = parameter(
        one_of("auto") | number(above=0),
        """Factor of the squared distance of the weights from those of the plain vote; "auto": 10
        for fewer than 100 samples with right answers, else 3.""",
        default="auto",
    )
    scheme: str | None = SCHEME

    def _check_together(self) -> None:
        if self.base is not None and self.scheme is not None:
            raise DataError("give the scheme to the base model, not to Stacking")

    def _learn(self, outputs: ExpertOutputs, gold: NDArray[np.int32], fresh: bool) -> None:
        step = 1 + outputs.codes.size // _STACKED
        if step > 1:
            every = np.arange(0, len(outputs), step)
            rows = np.repeat(np.isin(np.arange(len(outputs)), every), outputs.lengths)
            outputs, gold = outputs.take(every), gold[rows]
        used, codes = np.unique(gold, return_inverse=True)
        names = [outputs.labels[code] for code in used]
        labels = Labels.from_codes(codes.reshape(-1).astype(np.int32), names)
        corpus = self._corpus(outputs, labels)
        self.model_: Any
        if self.base is None:
            self.model_ = self._drawn_to_the_vote(corpus, outputs)
        else:
            self.model_ = copy.deepcopy(self.base).fit(corpus)

    def _drawn_to_the_vote(self, corpus: Corpus, outputs: ExpertOutputs) -> Any:
        from scipy.optimize import minimize

        from trellis.models import ChainCRF
        from trellis.problems.log_objective import LogObjective

        crf = ChainCRF(scheme=self.scheme, random_state=0)
        assert corpus.features is not None
        names = corpus.features.names
        # One sample has all features, so that what is not said in training has its weight, too.
        every = Features(
            np.array([0, len(names)]), np.arange(len(names), dtype=np.int32), None, names
        )
        data = {"gold": corpus, "features": Corpus(np.array([0, 1]), {}, every, None)}
        problem = crf.learning_problems(data, labels=outputs.labels)["gold"]
        centre = np.zeros(problem.n_weights)
        node = problem.weights(centre).node
        row_of = {name: f for f, name in enumerate(problem.owner.encoder_.names(range(len(node))))}
        for c, label in enumerate(problem.classes):
            for expert in outputs.names:
                node[row_of[_feature(expert, 0, label)], c] = _SURE / outputs.n_experts
            node[row_of[_feature(_VOTE, 0, label)], c] = 0.5 * _SURE / outputs.n_experts
        loss = LogObjective(problem)
        l2 = self._strength(corpus)

        def value(w: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
            height, slope = loss.value_and_gradient(w)
            away = w - centre
            return height + l2 * float(away @ away), slope + 2 * l2 * away

        options: Any = {"maxiter": 500, "ftol": 1e-8}
        optimum = minimize(value, centre, jac=True, method="L-BFGS-B", options=options)
        return crf.with_weights(problem, optimum.x)

    def _strength(self, corpus: Corpus) -> float:
        """What draws to the vote; cross-validation of a sequence model would take too long."""
        if not isinstance(self.l2, str):
            return self.l2
        return _FEW_L2 if len(corpus) < _FEW else _MANY_L2

    def _label(self, outputs: ExpertOutputs) -> NDArray[np.int32]:
        code_of = {label: code for code, label in enumerate(outputs.labels)}
        answer = np.empty(outputs.n_positions, np.int32)
        step = max(1, _BLOCK * len(outputs) // max(1, outputs.codes.size))
        for first in range(0, len(outputs), step):
            part = outputs.take(slice(first, first + step))
            answers = self.model_.predict(self._corpus(part, None))
            said = [code_of[y] for sample in answers for y in sample]
            rows = int(outputs.offsets[first])
            answer[rows : rows + len(said)] = said
        known = np.array([label in self.classes_ for label in outputs.labels])
        plain = _plain_vote(outputs, slice(None))
        return np.where(known[plain] | (plain < 0), answer, plain).astype(np.int32)

    def _recognised(self, outputs: Any) -> ExpertOutputs:
        answers = super()._recognised(outputs)
        return answers.recoded(
            sorted({*answers.labels, *self.classes_})
        )  # it may answer any of them

    def _corpus(self, outputs: ExpertOutputs, labels: Labels | None) -> Corpus:
        """Samples with the features «what expert j says k positions on», k = −window … window.

        The plain vote is one of the experts.
        """
        plain = _plain_vote(outputs, slice(None))
        codes = np.concatenate([outputs.codes, plain[:, None]], axis=1)
        around = range(-self.window, self.window + 1)
        values = [*outputs.labels, "(none)"]  # the last one: outside the sample
        names = [
            _feature(name, k, y) for k in around for name in (*outputs.names, _VOTE) for y in values
        ]
        indptr = np.empty(len(codes) + 1, np.int64)
        ids = np.empty(codes.size * len(around), np.int32)
        offsets = for_kernels(outputs.offsets)
        n = stacked_features(offsets, codes, self.window, len(values), indptr, ids)
        features = Features(indptr, ids[:n], None, names)
        return Corpus(outputs.offsets, {}, features, labels)

    def _state(self) -> dict[str, Any]:
        return super()._state() | {"model": self.model_}

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        model: Any = state.get("model")
        if not is_fitted(model):
            raise CorruptModelError("the model inside is none, or not fitted")
        if not set(getattr(model, "classes_", ("",))) <= set(self.classes_):
            raise CorruptModelError("the model inside has labels that the experts do not know")
        self.model_ = model
        self.predict([[[self.default_label_]]] * len(self.expert_names_))  # raises if it cannot


def _feature(expert: str, k: int, label: str) -> str:
    return f"{expert}[{k}]={label}"

r"""Stacking: a model learned on top of the experts' answers (Wolpert 1992).

* :class:`LogLinearVote` is a weighted vote whose weights are learned by conditional logit: among
  the labels that experts say at position t,

  .. math:: p(c \mid t) \propto
            \exp\Big(\sum_j (u_j + v_{j,c})\,[h_j \text{ says } c \text{ at } t]\Big).

* :class:`Stacking` trains a sequence model on the features «expert j says c here», «… just before»
  and «… just after». It may answer with a label that no expert says (all say I where the phrase has
  no beginning), weighs neighbouring labels, and can keep to a tag scheme.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.corpus.corpus import Corpus, Features
from trellis.corpus.labels import Labels
from trellis.domains import flag, has, nothing, number, whole
from trellis.errors import CorruptModelError, DataError
from trellis.estimator import parameter
from trellis.experts.combiner import SCHEME, Combiner, distinct_names
from trellis.experts.logit import best_candidates, fit_logit
from trellis.experts.outputs import ExpertOutputs
from trellis.files.storable import is_fitted
from trellis.files.stored import take

__all__ = ["LogLinearVote", "Stacking"]


class LogLinearVote(Combiner):
    """Vote with weights learned by conditional maximum likelihood.

    Attributes
    ----------
    weights_ : float64 (p, L)
        Weight of an expert when it says one of ``classes_``.

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
    l2: float = parameter(number(at_least=0), "Factor of the squared weights.", default=1.0)

    def _learn(self, outputs: ExpertOutputs, gold: NDArray[np.int32], fresh: bool) -> None:
        from scipy.sparse import csr_matrix, hstack

        p, n_labels = outputs.n_experts, len(outputs.labels)
        split = (outputs.codes != outputs.codes[:, :1]).any(axis=1)  # the others teach nothing
        ends, label, voters, expert = _candidates(outputs.codes[split], n_labels)
        shape = (len(label), p)
        ones = np.ones(len(expert))
        features = csr_matrix((ones, (voters, expert)), shape)
        if self.by_label:
            column = expert * n_labels + label[voters]
            shape = (len(label), p * n_labels)
            features = hstack([features, csr_matrix((ones, (voters, column)), shape)], "csr")
        right = label == np.repeat(gold[split], np.diff(ends))
        weights = fit_logit(features, ends, right, self.l2)
        self._mean = weights[:p]
        self.weights_ = np.repeat(self._mean[:, None], n_labels, axis=1)
        if self.by_label:
            self.weights_ += weights[p:].reshape(p, n_labels)
        self._weight_of = dict(zip(outputs.labels, self.weights_.T, strict=True))

    def _label(self, outputs: ExpertOutputs) -> NDArray[np.int32]:
        table = np.array([self._weight_of.get(y, self._mean) for y in outputs.labels])
        ends, label, voters, expert = _candidates(outputs.codes, len(outputs.labels))
        scores = np.bincount(voters, table[label[voters], expert], len(label)).astype(np.float64)
        awake = np.diff(ends) > 0
        best = best_candidates(scores, np.concatenate([[0], ends[1:][awake]]))
        answer = np.full(outputs.n_positions, -1, np.int32)
        answer[awake] = label[best]
        return answer

    def _state(self) -> dict[str, Any]:
        labels = list(self._weight_of)
        return super()._state() | {"labels": labels, "mean": self._mean, "weights": self.weights_}

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        p, labels = len(self.expert_names_), distinct_names(state, "labels")
        self._mean = take(state, "mean", np.float64, (p,))
        self.weights_ = take(state, "weights", np.float64, (p, len(labels)))
        self._weight_of = dict(zip(labels, self.weights_.T, strict=True))


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
    """A sequence model on top of the experts' answers.

    Attributes
    ----------
    model_ : the trained model

    Examples
    --------
    >>> from trellis.experts import Stacking
    >>> gold = [["B", "I", "O"], ["O", "B", "I"]] * 4
    >>> late = [["O", "I", "O"], ["O", "O", "I"]] * 4  # both always miss the beginning
    >>> Stacking().fit([late, late], gold).predict([late[:1], late[:1]])
    [['B', 'I', 'O']]
    """

    base: Any = parameter(
        nothing | has("fit", "predict"),
        """Model with ``fit(corpus)`` and ``predict(corpus)``, of which a copy is trained; None: a
        :class:`~trellis.models.ChainCRF` with ``l2=10``, trained by L-BFGS.""",
        default=None,
        kw_only=False,
    )
    window: int = parameter(
        whole(0, 100),
        "How far to look to the left and to the right for what experts say there.",
        default=1,
    )
    scheme: str | None = SCHEME

    def _check_together(self) -> None:
        if self.base is not None and self.scheme is not None:
            raise DataError("give the scheme to the base model, not to Stacking")

    def _learn(self, outputs: ExpertOutputs, gold: NDArray[np.int32], fresh: bool) -> None:
        from trellis.models import ChainCRF

        if self.base is None:
            base = ChainCRF(l2=10.0, solver="lbfgs", scheme=self.scheme, random_state=0)
        else:
            base = copy.deepcopy(self.base)
        used, codes = np.unique(gold, return_inverse=True)
        names = [outputs.labels[code] for code in used]
        labels = Labels.from_codes(codes.reshape(-1).astype(np.int32), names)
        self.model_: Any = base.fit(self._corpus(outputs, labels))

    def _label(self, outputs: ExpertOutputs) -> NDArray[np.int32]:
        answers = self.model_.predict(self._corpus(outputs, None))
        code_of = {label: code for code, label in enumerate(outputs.labels)}
        flat = [code_of[y] for sample in answers for y in sample]
        return np.array(flat, np.int32)

    def _recognised(self, outputs: Any) -> ExpertOutputs:
        answers = super()._recognised(outputs)
        return answers.recoded(
            sorted({*answers.labels, *self.classes_})
        )  # it may answer any of them

    def _corpus(self, outputs: ExpertOutputs, labels: Labels | None) -> Corpus:
        """Samples with the features «what expert j says k positions on», k = −window … window."""
        n, p = outputs.codes.shape
        n_said = len(outputs.labels) + 1  # the last one: outside the sample
        values = [*outputs.labels, "(none)"]
        place = np.arange(n) - np.repeat(outputs.offsets[:-1], outputs.lengths)
        left = np.repeat(outputs.lengths, outputs.lengths) - place
        columns: list[NDArray[np.int64]] = []
        names: list[str] = []
        for k in range(-self.window, self.window + 1):
            inside = (place + k >= 0) & (k < left)
            shifted = np.where(inside[:, None], np.roll(outputs.codes, -k, axis=0), n_said - 1)
            base = len(names) + np.arange(p) * n_said
            columns.append(np.where(shifted >= 0, shifted + base, -1))
            names += [f"{name}[{k}]={y}" for name in outputs.names for y in values]
        ids = np.concatenate(columns, axis=1)
        heard = ids >= 0
        indptr = np.concatenate([[0], np.cumsum(heard.sum(axis=1))]).astype(np.int64)
        features = Features(indptr, ids[heard].astype(np.int32), None, names)
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

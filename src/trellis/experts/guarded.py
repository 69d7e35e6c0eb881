r"""Leave the plain vote only where the experts themselves say so: a guard that needs no gold.

A model of annotators (:mod:`trellis.experts.annotators`: Dawid–Skene, or MACE where labels are too
many for confusion matrices) may be far better than the vote, or run away with a wrong idea of who
is good. The experts are asked, one after the other: the others' consensus :math:`C` is compared
with an expert that they have not heard. The better it is, the more it tells about what that expert
says. The measure is the gain in log-likelihood of its answers a over its label frequencies f,

.. math:: \log\big(\alpha\,[a_t = C_t] / f(a_t) + 1 - \alpha\big),

with the α that suits best: to meet on a rare label counts for more than on a frequent one, and
labels that have only been renamed count for nothing. The model replaces the vote if it tells more

* about all experts together, by more than four standard errors (these are too small, since what
  experts get wrong together is counted for each of them);
* about the half of the experts that it trusts least, by more than two. Experts that copy from each
  other, or learned from the same source, look good to a model, which follows them: then it tells
  much more about them, and less about the others. (If they are the majority, the vote follows them,
  too.) Experts of whom the vote explains less than a twentieth, as an entropy, know too little to
  be asked; if no three are left, nobody is.

Right answers for some samples, ten or more, have the last word if they are clear: they are one more
expert to be told about, by models that have not seen them. What tells less about them by more than
two standard errors is not taken, what tells more by more than two is.

Chances of labels are those of the model to the power ½, made to sum to 1: it takes each expert's
word for new evidence, which in part it is not, and so is too sure. (Experts that really are
independent it then believes too little.)

Thresholds were settled on synthetic experts, on weak taggers of chunks, parts of speech, names and
words of code, and on weak classifiers of digits and of movements.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import for_kernels
from trellis.domains import whole
from trellis.errors import CorruptModelError
from trellis.estimator import parameter
from trellis.experts.annotator_model import MANY_LABELS, AnnotatorModel
from trellis.experts.annotators import drawn
from trellis.experts.combiner import SCHEME, Combiner
from trellis.experts.decoding import best_valid, vote_table
from trellis.experts.outputs import ExpertOutputs
from trellis.experts.voting import vote
from trellis.files.stored import header_value
from trellis.kernels.without import voted_without

__all__ = ["GuardedVote", "told"]

Codes = NDArray[np.int32]
Floats = NDArray[np.float64]

_BETTER = 4.0  # standard errors by which a model must tell more about all experts,
_FOR_HALF = 2.0  # and about the half of them that it trusts least
_KNOWING = 0.05  # share of an expert's entropy that the vote explains, if the expert knows anything
_CLEAR = 2.0  # standard errors at which right answers decide
_TEMPERATURE = 2.0  # at which the chances are told that a model gives to labels
_TAUGHT = 10  # samples with right answers that are enough to be asked
_SAMPLES = 30  # samples that are enough for a standard error over samples


class GuardedVote(Combiner):
    """The plain vote, or a model of the annotators if their agreement speaks for it.

    The model is Dawid–Skene (:class:`AnnotatorModel`), or MACE if there are more than 100 labels.

    Attributes
    ----------
    chosen_ : str
        "vote", "dawid-skene" or "mace".
    model_ : AnnotatorModel or None
        The model that answers; None: the vote does.
    evidence_ : dict
        By how many standard errors the model tells more than the vote about "all" experts, about
        the "half" of them that it trusts least (if there are such), and about right answers
        ("gold"), if there are enough.

    Examples
    --------
    >>> import numpy as np
    >>> from trellis.experts import GuardedVote, MajorityVote
    >>> rng = np.random.default_rng(0)
    >>> gold = rng.integers(0, 4, (100, 10))
    >>> said = [
    ...     np.where(rng.random(gold.shape) < right, gold, rng.integers(0, 4, gold.shape))
    ...     for right in (0.9, 0.8, 0.2, 0.2, 0.2)
    ... ]
    >>> said, gold = [s.astype(str).tolist() for s in said], gold.astype(str).tolist()
    >>> guarded = GuardedVote().fit(said)
    >>> guarded.chosen_
    'dawid-skene'
    >>> bool(guarded.score(said, gold) > MajorityVote().fit(said).score(said, gold))
    True
    """

    scheme: str | None = SCHEME
    max_positions: int = parameter(
        whole(1),
        """Learn from so many positions at most, of samples drawn at random (always the same ones)
        besides those with right answers. All are answered.""",
        default=20_000,
    )

    _ALONE = True

    def _learn(self, outputs: ExpertOutputs, gold: Codes, fresh: bool) -> None:
        outputs, gold = drawn(outputs, gold, self.max_positions)
        name = "dawid-skene" if len(outputs.labels) <= MANY_LABELS else "mace"
        model = AnnotatorModel(name, max_positions=self.max_positions)
        self._fitted(model, outputs, np.full_like(gold, -1))
        self.evidence_ = self._evidence(outputs, gold, model)
        self.chosen_, self.model_ = "vote", None
        if _speaks_for_it(self.evidence_):
            self.chosen_, self.model_ = name, model
        if self.model_ is not None and (gold >= 0).any():
            self._fitted(self.model_, outputs, gold)

    def _fitted(self, model: AnnotatorModel, outputs: ExpertOutputs, gold: Codes) -> None:
        """Fit a model to answers that are laid out already."""
        truth = [None] * len(outputs) if (gold < 0).all() else _truth(outputs, gold)
        model.fit(outputs, truth)

    def _evidence(
        self, outputs: ExpertOutputs, gold: Codes, model: AnnotatorModel
    ) -> dict[str, float]:
        """Standard errors by which a model tells more than the vote."""
        n_labels = len(outputs.labels)
        by_sample = len(outputs) >= _SAMPLES
        n_terms = len(outputs) if by_sample else outputs.n_positions
        gains = np.empty((outputs.n_experts, n_terms))
        explained = np.zeros(len(gains))
        held_out = zip(model.answers_without(outputs), _votes_without(outputs), strict=True)
        for j, (modelled, voted) in enumerate(held_out):
            said = outputs.codes[:, j]
            now = told(said, voted, n_labels)
            gain = told(said, modelled, n_labels) - now
            gains[j] = np.add.reduceat(gain, outputs.offsets[:-1]) if by_sample else gain
            explained[j] = now.sum() / max(_entropy(said, n_labels), 1e-9)
        evidence = {"all": _standard_errors(gains.sum(axis=0))}
        trusted = np.argsort(model.reliabilities_, kind="stable")
        knowing = trusted[explained[trusted] > _KNOWING]
        if len(knowing) > 2:
            least = knowing[: (len(knowing) + 1) // 2]
            evidence["half"] = _standard_errors(gains[least].sum(axis=0))
        taught = gold[outputs.offsets[:-1]] >= 0
        if taught.sum() >= _TAUGHT:
            known = outputs.take(taught)
            right = gold[np.repeat(taught, outputs.lengths)]
            gain = told(right, model.codes_of(known), n_labels)
            gain -= told(right, _plain(known.codes, n_labels), n_labels)
            evidence["gold"] = _standard_errors(np.add.reduceat(gain, known.offsets[:-1]))
        return evidence

    def _recognised(self, outputs: Any) -> ExpertOutputs:
        answers = super()._recognised(outputs)
        return answers.recoded(sorted({*answers.labels, *self.classes_}))

    def _label(self, outputs: ExpertOutputs) -> Codes:
        if self.model_ is not None and self.scheme is None:
            return self.model_.codes_of(outputs)
        if self.scheme is None:
            return _plain(outputs.codes, len(outputs.labels))
        votes = self._shares(outputs)
        if votes is None:
            votes = vote_table(outputs.codes, np.ones(outputs.n_experts), len(outputs.labels))
        return best_valid(votes, outputs, self.scheme)

    def _shares(self, outputs: ExpertOutputs) -> Floats | None:
        if self.model_ is None:
            return None
        shares = self.model_.shares_of(outputs) ** (1 / _TEMPERATURE)
        shares /= shares.sum(axis=1, keepdims=True)
        return shares

    def _state(self) -> dict[str, Any]:
        state = super()._state() | {"evidence": self.evidence_}
        return state | ({} if self.model_ is None else {"model": self.model_})

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        self.evidence_ = header_value(state, "evidence", dict, items=float)
        self.model_, self.chosen_ = state.get("model"), "vote"
        if self.model_ is not None:
            model = self.model_
            if not isinstance(model, AnnotatorModel) or model.expert_names_ != self.expert_names_:
                raise CorruptModelError("the model inside is not one of these experts")
            if not set(model.classes_) <= set(self.classes_):
                raise CorruptModelError("the model inside has labels that the vote does not know")
            self.chosen_ = model.model


def told(said: Codes, consensus: Codes, n_labels: int) -> Floats:
    """What a consensus tells about the answers of an expert, at each position (N,).

    Parameters
    ----------
    said, consensus : int32 (N,)
        -1 where nothing is said, which nothing is told about.
    n_labels : int

    Examples
    --------
    >>> import numpy as np
    >>> said = np.array([0, 0, 0, 1, 0, 1], np.int32)
    >>> bool(told(said, said, 2).sum() > told(said, np.zeros(6, np.int32), 2).sum() + 1)
    True
    """
    awake = said >= 0
    gain = np.zeros(len(said))
    if not awake.any():
        return gain
    share = np.bincount(said[awake], minlength=n_labels) / awake.sum()
    lift = (said == consensus)[awake] / share[said[awake]]
    alpha = 0.5
    for _ in range(20):  # EM; it need not be exact
        alpha = float(np.mean(alpha * lift / (alpha * lift + 1 - alpha)))
        alpha = min(max(alpha, 1e-9), 1 - 1e-9)
    gain[awake] = np.log(alpha * lift + 1 - alpha)
    return gain


def _entropy(said: Codes, n_labels: int) -> float:
    """Of all that an expert says, from its label frequencies."""
    counts = np.bincount(said[said >= 0], minlength=n_labels)
    counts = counts[counts > 0]
    return float(-(counts * np.log(counts / counts.sum())).sum())


def _speaks_for_it(evidence: dict[str, float]) -> bool:
    """Whether a model takes the place of the vote."""
    certain = evidence.get("gold", 0.0)
    if abs(certain) > _CLEAR:
        return certain > 0
    return evidence["all"] > _BETTER and evidence.get("half", np.inf) > _FOR_HALF


def _standard_errors(gains: Floats) -> float:
    """A sum in units of its standard error; 0 if there is none."""
    spread = float(np.sqrt(((gains - gains.mean()) ** 2).sum()))
    return float(gains.sum() / spread) if spread > 1e-9 * (1 + np.abs(gains).max()) else 0.0


def _plain(codes: Codes, n_labels: int) -> Codes:
    return vote(codes, np.ones(codes.shape[1]), n_labels)


def _votes_without(outputs: ExpertOutputs) -> Codes:
    """The plain vote of all experts but one, for each of them, (p, N)."""
    answers = np.empty(outputs.codes.shape[::-1], np.int32)
    voted_without(for_kernels(outputs.codes), len(outputs.labels), answers)
    return answers


def _truth(outputs: ExpertOutputs, gold: Codes) -> list[list[str] | None]:
    """Right answers as lists, None where they are not known."""
    lists = outputs.lists(np.maximum(gold, 0))
    known = gold[outputs.offsets[:-1]] >= 0
    return [labels if sure else None for labels, sure in zip(lists, known, strict=True)]

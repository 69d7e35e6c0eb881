r"""Leave the plain vote only where the experts themselves say so: a guard that needs no gold.

A model of annotators (:mod:`trellis.experts.annotators`) may be far better than the vote, or run
away with a wrong idea of who is good. Two checks, neither of which needs right answers:

* **Held-out experts.** The others' consensus :math:`C` is asked about an expert that they have not
  heard. The better it is, the more it tells about what that expert says. The measure is the gain in
  log-likelihood of its answers a over its label frequencies f,

  .. math:: \log\big(\alpha\,[a_t = C_t] / f(a_t) + 1 - \alpha\big),

  with the α that suits best: to meet on a rare label counts for more than on a frequent one, and
  labels that have only been renamed count for nothing. A model replaces the vote (and a richer
  model a plainer one) if the sum over all experts is larger by more than two standard errors.
* **Camps.** If three experts share many of the mistakes that the model charges them with, many more
  than independent mistakes would coincide, then perhaps they are right and the model has taken
  sides with another camp. Nobody can tell without right answers, so the vote stays. The measure
  for two experts is the share of mistakes that they have in common beyond what is expected, where a
  mistake counts 1 / f(its label): that two miss the same hard name is no conspiracy. A camp are
  three experts of whom any two share more than a third.

Right answers for some samples, ten or more, have the last word if they are clear: they are one more
expert to be told about, by models that have not seen them. What tells less about them by more than
two standard errors is not taken, what tells more by more than two is.

Thresholds were settled on synthetic experts and on weak taggers of chunks, parts of speech, names
and words of code.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import for_kernels
from trellis.domains import whole
from trellis.errors import CorruptModelError
from trellis.estimator import parameter
from trellis.experts.annotators import MANY_LABELS, AnnotatorModel, drawn
from trellis.experts.combiner import SCHEME, Combiner
from trellis.experts.decoding import best_valid, vote_table
from trellis.experts.outputs import ExpertOutputs
from trellis.experts.voting import vote
from trellis.files.stored import header_value
from trellis.kernels.votes import shared_mistakes
from trellis.kernels.without import voted_without

__all__ = ["GuardedVote", "camp", "told"]

Codes = NDArray[np.int32]
Floats = NDArray[np.float64]

_BETTER = 2.0  # standard errors by which a challenger must be better
_WORSE = -2.0  # standard errors on right answers at which it is not taken
_SHARED = 1 / 3  # share of mistakes that makes a camp
_TAUGHT = 10  # samples with right answers that are enough to be asked
_SAMPLES = 30  # samples that are enough for a standard error over samples


class GuardedVote(Combiner):
    """The plain vote, or a model of the annotators if their agreement speaks for it.

    Candidates are MACE and, if that is better than the vote, Dawid–Skene
    (:class:`AnnotatorModel`).

    Attributes
    ----------
    chosen_ : str
        "vote", "mace" or "dawid-skene".
    model_ : AnnotatorModel or None
        The model that answers; None: the vote does.
    evidence_ : dict
        For each challenger that was tried, by how many standard errors it tells more about held-out
        experts than what it was to replace, and for "mace on gold" and so on about right answers.
    camp_ : tuple of str
        Three experts that share mistakes as a camp does, if there are such.

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
    'mace'
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
        n_labels = len(outputs.labels)
        self.chosen_, self.model_ = "vote", None
        self.evidence_: dict[str, float] = {}
        self.camp_: tuple[str, ...] = ()
        names = ["mace", "dawid-skene"] if n_labels <= MANY_LABELS else ["mace"]
        told_now = self._told(outputs, gold, None)
        for name in names:
            model = AnnotatorModel(name, max_positions=self.max_positions)
            self._fitted(model, outputs, np.full_like(gold, -1))
            told_new = self._told(outputs, gold, model)
            if name == "mace":
                self.camp_ = _camp(outputs, model)
            gains = [new - now for new, now in zip(told_new, told_now, strict=True)]
            if not self._replaces(name, gains):
                break
            self.chosen_, self.model_, told_now = name, model, told_new
        if self.model_ is not None and (gold >= 0).any():
            self._fitted(self.model_, outputs, gold)

    def _fitted(self, model: AnnotatorModel, outputs: ExpertOutputs, gold: Codes) -> None:
        """Fit a model to answers that are laid out already."""
        truth = [None] * len(outputs) if (gold < 0).all() else _truth(outputs, gold)
        model.fit(outputs, truth)

    def _told(
        self, outputs: ExpertOutputs, gold: Codes, model: AnnotatorModel | None
    ) -> tuple[Floats, Floats]:
        """What a consensus tells about held-out experts, and about right answers, by sample."""
        n_labels = len(outputs.labels)
        by_sample = np.zeros(outputs.n_positions)
        held_out = _votes_without(outputs) if model is None else model.answers_without(outputs)
        for j, consensus in enumerate(held_out):
            by_sample += told(outputs.codes[:, j], consensus, n_labels)
        taught = gold[outputs.offsets[:-1]] >= 0
        on_gold = np.zeros(0)
        if taught.sum() >= _TAUGHT:
            known = outputs.take(taught)
            answer = _plain(known.codes, n_labels) if model is None else model.codes_of(known)
            on_gold = told(gold[np.repeat(taught, outputs.lengths)], answer, n_labels)
            on_gold = np.add.reduceat(on_gold, known.offsets[:-1])
        if len(outputs) >= _SAMPLES:
            by_sample = np.add.reduceat(by_sample, outputs.offsets[:-1])
        return by_sample, on_gold

    def _replaces(self, name: str, gains: list[Floats]) -> bool:
        """Whether a challenger takes over, from what it tells more in each sample."""
        held_out, on_gold = gains
        self.evidence_[name] = _standard_errors(held_out)
        if len(on_gold):
            certain = self.evidence_[f"{name} on gold"] = _standard_errors(on_gold)
            if certain < _WORSE or certain > _BETTER:
                return certain > 0
        return self.evidence_[name] > _BETTER and not self.camp_

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
        return None if self.model_ is None else self.model_.shares_of(outputs)

    def _state(self) -> dict[str, Any]:
        state = super()._state() | {"evidence": self.evidence_, "camp": list(self.camp_)}
        return state | ({} if self.model_ is None else {"model": self.model_})

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        self.evidence_ = header_value(state, "evidence", dict, items=float)
        self.camp_ = tuple(header_value(state, "camp", list, items=str))
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


def camp(
    codes: Codes, answer: Codes, weights: Floats, expected: Floats, shared: float = _SHARED
) -> tuple[int, ...]:
    """Three experts of whom any two share more than a third of their mistakes, or nobody.

    Parameters
    ----------
    codes : int32 (N, p)
    answer : int32 (N,)
        What is taken for right.
    weights : float64 (L,)
        What a mistake with each label counts.
    expected : float64 (p, p)
        What common mistakes of independent experts would count at a position, on average.
    shared : float
        The share that makes a camp.

    Examples
    --------
    >>> import numpy as np
    >>> codes = np.array([[1, 1, 1, 0]] * 3 + [[0, 0, 0, 0]] * 3, np.int32)
    >>> camp(codes, np.zeros(6, np.int32), np.ones(2), np.zeros((4, 4)))
    (0, 1, 2)
    """
    p = codes.shape[1]
    wrong = (codes >= 0) & (codes != answer[:, None])
    counts = np.where(wrong, weights[codes], 0.0)
    rate = counts.mean(axis=0)
    common = np.zeros((p, p))
    both = np.zeros((p, p))
    shared_mistakes(for_kernels(codes), for_kernels(answer), for_kernels(weights), both)
    both /= len(codes)
    for i in range(p):
        for j in range(i):
            fewer = min(rate[i], rate[j]) - expected[i, j]
            if fewer > 0:
                common[i, j] = common[j, i] = (both[i, j] - expected[i, j]) / fewer
    best: tuple[int, ...] = ()
    for i in range(p):
        third = np.minimum(np.minimum.outer(common[i], common[i]), common)
        j, k = np.unravel_index(third.argmax(), third.shape)
        if third[j, k] > shared:
            best, shared = tuple(sorted((i, int(j), int(k)))), float(third[j, k])
    return best


def _camp(outputs: ExpertOutputs, model: AnnotatorModel) -> tuple[str, ...]:
    """Names of a camp that a model is against; mistakes with rare labels count for more."""
    said = np.bincount(outputs.codes[outputs.codes >= 0], minlength=len(outputs.labels))
    weights = said.sum() / np.maximum(said, 1)
    expected = model.expected_coincidences(weights)
    experts = camp(outputs.codes, model.codes_of(outputs), weights, expected)
    return tuple(outputs.names[j] for j in experts)


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

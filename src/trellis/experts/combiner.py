"""What all ensembles of experts share: the door, the fallbacks, and the scheme for short samples.

A combiner learns from the answers of p experts on labelled samples (:meth:`Combiner.fit`) and then
answers with one label sequence a sample. These rules hold for all of them:

- an expert that says nothing at a position has no vote there;
- where nobody says anything the answer is the most frequent label of the training sample;
- right answers may be known for all samples, for some or for none. Those that learn from right
  answers only are the plain vote if there is none (``taught_`` is False);
- with ``short=n``, samples of at most n positions are answered by the expert that made the fewest
  mistakes on such samples in training, and the ensemble learns from the longer ones only
  (section 5.5 of Cortes, Kuznetsov and Mohri 2014).
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import for_kernels
from trellis.corpus.schemes import Scheme
from trellis.domains import function, instance, nothing, one_of, text, whole
from trellis.errors import CorruptModelError, DataError
from trellis.estimator import Estimator, fitted, parameter
from trellis.experts.decoding import vote_table
from trellis.experts.outputs import ExpertOutputs, as_gold, as_outputs
from trellis.experts.voting import vote
from trellis.files.storable import Storable
from trellis.files.stored import check_range, header_value, take
from trellis.kernels.votes import count_errors

__all__ = ["SCHEME", "TIE", "Combiner"]

SCHEME: Any = parameter(
    nothing | text | instance(Scheme),
    "Answer only with label sequences that are valid in this tag scheme.",
    default=None,
)
TIE: Any = parameter(
    one_of("auto", "position", "expert", "label") | function,
    """Contexts that share weights (see :mod:`trellis.experts.tying`); "auto": each position for
    itself if all samples have the same length, else "expert".""",
    default="auto",
)


_CELLS = 1 << 23  # of tables that are made at a time: bounds the memory


class Combiner(Estimator, Storable):
    """Base class of the ensembles; a subclass learns in ``_learn`` and votes in ``_label``.

    Attributes
    ----------
    classes_ : tuple of str
        All labels met in training, sorted.
    expert_names_ : tuple of str
        Names of the experts, in the order of the weights.
    expert_losses_ : float64 (p,)
        Mean normalised Hamming loss of each expert in training, a sleeping position counted as
        half an error, so that silence neither wins nor loses at once. Without right answers, the
        same against the plain vote.
    default_label_ : str
        Most frequent label of the training sample (without right answers, of the vote): the answer
        where every expert sleeps.
    taught_ : bool
        Whether there was something to learn from. If not, the plain vote answers, and there are no
        weights.
    short_expert_ : str or None
        The expert that answers short samples, if ``short`` is given.
    """

    short: int | None = parameter(
        nothing | whole(1),
        "Samples of at most this length are answered by the expert that is best on such samples.",
        default=None,
    )
    classes_: tuple[str, ...] = fitted()
    expert_names_: tuple[str, ...] = fitted()
    default_label_: str = fitted()
    short_expert_: str | None = fitted()
    taught_: bool = fitted()

    _ALONE = False  # whether it learns from answers without the right ones, too

    # ------------------------------------------------------------------ for subclasses

    def _learn(self, outputs: ExpertOutputs, gold: NDArray[np.int32], fresh: bool) -> None:
        """Learn from these samples, from scratch or in addition to those before.

        They all have right answers, unless the class is one that learns without (``_ALONE``): then
        ``gold`` is -1 where they are not known.
        """
        raise NotImplementedError  # abstract

    def _label(self, outputs: ExpertOutputs) -> NDArray[np.int32]:
        """Return one label code a position, (N,); -1 where nobody says anything."""
        raise NotImplementedError  # abstract

    def _shares(self, outputs: ExpertOutputs) -> NDArray[np.float64] | None:
        """Return the probability of every label at every position, (N, L); None: ask the vote."""
        return None

    # ------------------------------------------------------------------ for users

    def fit(self, outputs: Any, gold: Any = None) -> Self:
        """Learn how to combine the experts.

        Parameters
        ----------
        outputs : ExpertOutputs or nested sequences
            ``outputs[j][i]`` is the label sequence of expert j for sample i, or None.
        gold : sequence of label sequences, or None
            The right labels; None for samples, or in place of all, where they are not known.

        Returns
        -------
        self
        """
        with one_blas_thread():
            self._enter(outputs, gold, fresh=True)
        return self

    def predict(self, outputs: Any) -> list[list[str]]:
        """Return the label sequence of the ensemble for each sample."""
        answers = self._recognised(outputs)
        return answers.lists(self._answers(answers))

    def predict_proba(self, outputs: Any) -> list[NDArray[np.float64]]:
        """Return the probability of each label at each position, a table (n, L) a sample.

        Columns are in the order of ``classes_``; labels that training did not have are left out,
        and count as wrong. Methods that have no probabilities of their own give the share of the
        experts that say a label, with half a vote for all that nobody says.
        """
        answers = self._widened(outputs)
        columns = [answers.labels.index(label) for label in self.classes_]
        table = self._probabilities(answers)[:, columns]
        return np.split(table, answers.offsets[1:-1])

    def predict_confidence(self, outputs: Any) -> list[NDArray[np.float64]]:
        """Return how sure the answer is at each position, from 0 to 1, an array a sample.

        It is the probability of what ``predict`` answers (see :meth:`predict_proba`), which need
        not be calibrated: :class:`~trellis.experts.AutoCombiner` calibrates it.
        """
        answers = self._widened(outputs)
        chosen = self._answers(answers)
        sure = np.empty(answers.n_positions)
        step = max(1, int(_CELLS * len(answers) / (answers.codes.size * len(answers.labels) + 1)))
        for first in range(0, len(answers), step):  # tables of all words there are may be large
            part = slice(first, min(len(answers), first + step))
            rows = slice(answers.offsets[part.start], answers.offsets[part.stop])
            table = self._probabilities(answers.take(part))
            sure[rows] = table[np.arange(len(table)), chosen[rows]]
        return np.split(sure, answers.offsets[1:-1])

    def score(self, outputs: Any, gold: Any) -> float:
        """Return 1 - the mean normalised Hamming loss over the samples whose gold is known."""
        truth, answers = as_gold(gold, self._recognised(outputs))
        truth, answers = _known(truth, answers)
        if not len(answers):
            raise DataError("no samples to score")
        wrong = self._answers(answers) != truth
        return float(1 - sample_means(wrong, answers.offsets).mean())

    # ------------------------------------------------------------------ inside

    def _enter(self, outputs: Any, gold: Any, fresh: bool) -> None:
        self._check_parameters()
        answers = as_outputs(outputs) if fresh else self._recognised(outputs)
        truth, answers = as_gold(gold, answers)
        if not len(answers):
            raise DataError("no samples to learn from")
        taught, known = _known(truth, answers)
        if fresh:
            self.expert_names_ = answers.names
            self._label_counts: dict[str, int] = {}
            self._errors = np.zeros((2, answers.n_experts))  # of short samples, of all
            self._n_samples = np.zeros(2)
            self.taught_ = self._ALONE or len(known) > 0
        if len(known):
            self._count(known, taught)
        elif fresh:
            plain = vote(answers.codes, np.ones(answers.n_experts), len(answers.labels))
            self._count(answers, plain)
        if not self._ALONE:
            if not len(known):
                return
            truth, answers = taught, known
        long = np.ones(len(answers), bool) if self.short is None else answers.lengths > self.short
        if long.all():
            self._learn(answers, truth, fresh)
        elif long.any():
            rows = np.repeat(long, answers.lengths)
            self._learn(answers.take(long), truth[rows], fresh)
        elif fresh:
            raise DataError(
                f"no sample is longer than short={self.short}; the ensemble learns from the longer "
                "ones only, so lower it or leave it out"
            )

    def _count(self, outputs: ExpertOutputs, truth: NDArray[np.int32]) -> None:
        counts = np.bincount(truth[truth >= 0], minlength=len(outputs.labels))
        for label, count in zip(outputs.labels, counts.tolist(), strict=True):
            self._label_counts[label] = self._label_counts.get(label, 0) + count
        brief = outputs.lengths <= (self.short or 0)
        wrong = np.zeros((len(outputs), outputs.n_experts))
        count_errors(for_kernels(outputs.codes), truth, for_kernels(outputs.offsets), wrong)
        wrong /= outputs.lengths[:, None]
        for first in range(0, len(outputs), 1000):
            means, short = wrong[first : first + 1000], brief[first : first + 1000]
            self._errors += [means[short].sum(axis=0), means.sum(axis=0)]
        self._n_samples += [brief.sum(), len(outputs)]
        self._summarise()

    def _summarise(self) -> None:
        """Set what follows from the counts."""
        self.classes_ = tuple(sorted(self._label_counts))
        self.default_label_ = max(self.classes_, key=self._label_counts.__getitem__)
        self.expert_losses_ = self._errors[1] / self._n_samples[1]
        best = self.expert_names_[int(self._errors[0].argmin())]
        self.short_expert_ = best if self._n_samples[0] else None

    def _recognised(self, outputs: Any) -> ExpertOutputs:
        """Return outputs at prediction time, with the experts in the order of training."""
        self._check_fitted()
        answers = as_outputs(outputs)
        if answers.n_experts != len(self.expert_names_):
            raise DataError(
                f"the ensemble was trained on {len(self.expert_names_)} experts, here are "
                f"{answers.n_experts}; give None for the samples an expert has not answered"
            )
        if answers.names != self.expert_names_ and set(answers.names) == set(self.expert_names_):
            answers = answers.subset(self.expert_names_)
        if self.default_label_ not in answers.labels:
            answers = answers.recoded(sorted({*answers.labels, self.default_label_}))
        return answers

    def _answers(self, outputs: ExpertOutputs) -> NDArray[np.int32]:
        """Return the codes of the ensemble's answer, fallbacks included."""
        if self.taught_:
            answer = self._label(outputs)
        else:
            answer = vote(outputs.codes, np.ones(outputs.n_experts), len(outputs.labels))
        if self.taught_ and self.short is not None and self.short_expert_ is not None:
            best = outputs.codes[:, self.expert_names_.index(self.short_expert_)]
            brief = np.repeat(outputs.lengths <= self.short, outputs.lengths)
            answer = np.where(brief & (best >= 0), best, answer)
        silent = answer < 0
        if silent.any():
            answer = np.where(silent, outputs.labels.index(self.default_label_), answer)
        return answer.astype(np.int32)

    def _codes(self, outputs: ExpertOutputs) -> NDArray[np.int32]:
        """What ``predict`` answers as codes of ``outputs.labels``, which must hold all of it."""
        answers = self._recognised(outputs)
        codes = self._answers(answers)
        if answers.labels == outputs.labels:
            return codes
        code_of = {label: code for code, label in enumerate(outputs.labels)}
        return np.array([code_of.get(y, -1) for y in answers.labels], np.int32)[codes]

    def _widened(self, outputs: Any) -> ExpertOutputs:
        """Outputs at prediction time, whose labels are all that training had, too."""
        answers = self._recognised(outputs)
        return answers.recoded(sorted({*answers.labels, *self.classes_}))

    def _probabilities(self, outputs: ExpertOutputs) -> NDArray[np.float64]:
        """Probability of every label at every position, (N, L)."""
        table = self._shares(outputs) if self.taught_ and self.short is None else None
        if table is None:
            votes = vote_table(outputs.codes, np.ones(outputs.n_experts), len(outputs.labels))
            table = votes + 0.5 / len(outputs.labels)
            table /= table.sum(axis=1, keepdims=True)
        return table

    def _whole_state(self) -> dict[str, Any]:
        return self._state() if self.taught_ else Combiner._state(self) | {"taught": False}

    def _restore_whole(self, state: dict[str, Any]) -> None:
        self.taught_ = state.pop("taught", True) is not False
        if self.taught_:
            self._restore(state)
        else:
            Combiner._restore(self, state)

    def _state(self) -> dict[str, Any]:
        return {
            "experts": list(self.expert_names_),
            "label_counts": self._label_counts,
            "errors": self._errors,
            "n_samples": self._n_samples,
        }

    def _restore(self, state: dict[str, Any]) -> None:
        self.expert_names_ = distinct_names(state, "experts")
        self._label_counts = header_value(state, "label_counts", dict, items=int)
        distinct_names({"labels": list(self._label_counts)}, "labels")
        self._errors = take(state, "errors", np.float64, (2, len(self.expert_names_)))
        self._n_samples = take(state, "n_samples", np.float64, (2,))
        if min(self._label_counts.values()) < 0 or not self._n_samples[1] > 0:
            raise CorruptModelError("the counts of labels and samples are not those of a training")
        check_range(self._errors, 0, np.inf, "errors of experts")
        check_range(self._n_samples, 0, np.inf, "numbers of samples")
        self._summarise()


def one_blas_thread() -> Any:
    """Limit BLAS to one thread: for so little at a time, more of them take five times as long."""
    return _blas().limit(limits=1)


@functools.cache
def _blas() -> Any:
    import scipy.linalg  # noqa: F401  # its BLAS must be loaded to be limited
    from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]  # no stubs

    return ThreadpoolController().select(user_api="blas")


def _known(
    truth: NDArray[np.int32], outputs: ExpertOutputs
) -> tuple[NDArray[np.int32], ExpertOutputs]:
    """The samples whose right answers are known."""
    known = truth[outputs.offsets[:-1]] >= 0
    if known.all():
        return truth, outputs
    return truth[np.repeat(known, outputs.lengths)], outputs.take(known)


def distinct_names(state: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """Names of a model file, at least one, of which no two are alike."""
    names = header_value(state, name, list, items=str)
    if not names or len(set(names)) < len(names):
        raise CorruptModelError(f"{name} must be distinct names, at least one")
    return tuple(names)


def restored_order(state: Mapping[str, Any], name: str, n: int) -> NDArray[np.int64]:
    """Numbers 0 to n - 1 of a model file in some order."""
    order = take(state, name, np.int64, (n,))
    if not np.array_equal(np.sort(order), np.arange(n)):
        raise CorruptModelError(f"{name} must hold each of 0 to {n - 1} once")
    return order


def sample_means(values: NDArray[Any], offsets: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the mean of ``values`` (N, ...) over the positions of each sample, (S, ...)."""
    if len(offsets) == 1:
        return np.zeros((0, *values.shape[1:]))
    sums = np.add.reduceat(values.astype(np.float64), offsets[:-1], axis=0)
    lengths = np.diff(offsets).reshape(-1, *[1] * (values.ndim - 1))
    means: NDArray[np.float64] = sums / lengths
    return means

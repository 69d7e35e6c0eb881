r"""Answers of different lengths, aligned into confusion networks.

Pronunciations, transcripts and translations of one input differ in length, so there is no «k-th
position» on which the experts could vote. A *confusion network* makes one: columns, in each of
which every expert says one label, or the empty label ε. It is built as in ROVER: begin with one
expert's answer and add the others one after the other, each by the cheapest alignment to the
columns that are there. With r rows in the network, :math:`n_c(x)` of which say x in column c,

.. math:: \text{say } x \text{ in column } c:\ 1 - n_c(x)/r, \qquad
          \text{say nothing there}:\ 1 - n_c(\varepsilon)/r, \qquad
          \text{a new column}:\ 1,

which is the expected number of disagreements with a row drawn at random; for two sequences it is
their edit distance. Right answers are aligned last, onto the finished network. After combining,
the ε are removed.

What comes first shapes the columns, so the better answers should. Which they are is known from the
right answers, or without any from agreement (:mod:`trellis.experts.agreement`): of the experts, or
of the answers to one sample, of which the medoid comes first and then those near to it. The latter
is the default of :class:`Aligned`, with gold too, because nobody is best everywhere.

Time is :math:`O(p^2 n^2)` for p answers of length n.

References
----------
J. G. Fiscus, *A post-processing system to yield reduced word error rates: Recognizer Output Voting
Error Reduction (ROVER)*, 1997.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import as_array, as_list
from trellis.domains import flag, has, one_of, sequence_of, strings, text
from trellis.errors import CorruptModelError, DataError
from trellis.estimator import Estimator, parameter
from trellis.evaluation import edit_distance
from trellis.experts.agreement import agreement_order, closest_first
from trellis.experts.combiner import Combiner, restored_order
from trellis.experts.outputs import ExpertOutputs, answer_lists, checked_names
from trellis.files.storable import Storable, is_fitted
from trellis.files.stored import header_value

__all__ = ["Aligned", "align", "strip"]

Answers = list[list[list[str] | None]]


def align(
    outputs: Any,
    gold: Any = None,
    *,
    names: Sequence[str] | None = None,
    epsilon: str = "<eps>",
    order: Sequence[int] | str | None = None,
    keep_unsaid: bool = False,
) -> tuple[ExpertOutputs, Any]:
    """Align answers of different lengths into confusion networks.

    Parameters
    ----------
    outputs : nested sequences
        ``outputs[j][i]`` is the label sequence, of any length, of expert j for sample i; None if
        the expert says nothing about it.
    gold : sequence of (label sequences or None) or None
        The right answers, as far as they are known, which are aligned onto the finished networks.
    names : sequence of str or None
        Names of the experts.
    epsilon : str
        The empty label; it must not occur as a label.
    order : sequence of int, "agreement", "sample" or None
        In which order the experts' answers are aligned: a given one, that of their agreement with
        the others, or in each sample its medoid first and then those near to it; by default as
        they stand. The better ones should come first.
    keep_unsaid : bool
        Keep right labels for which no expert's answer has a column, in columns of their own where
        all experts are wrong. By default they are left out, because no such column exists when
        predicting.

    Returns
    -------
    outputs : ExpertOutputs
        One position for each column; what an expert does not say is ``epsilon``. A sample about
        which all say the empty sequence has one column.
    gold : list of (lists of str or None), or None
        The right label of each column; None for the samples whose right answers are not known.

    Raises
    ------
    DataError
        If an answer is no sequence of labels, a label is ``epsilon``, numbers of samples differ,
        no expert answers a sample, or ``order`` is not an order of the experts.

    Examples
    --------
    >>> from trellis.experts import align
    >>> said = [[["K", "AE", "T", "S"]], [["K", "T", "S"]], [["K", "AE", "T"]]]
    >>> outputs, gold = align(said, gold=[["K", "AA", "T", "S"]])
    >>> [outputs.lists(outputs.codes[:, j])[0] for j in range(3)]
    [['K', 'AE', 'T', 'S'], ['K', '<eps>', 'T', 'S'], ['K', 'AE', 'T', '<eps>']]
    >>> gold
    [['K', 'AA', 'T', 'S']]
    """
    from trellis.kernels.alignment import align_samples

    text.check("epsilon", epsilon)
    flag.check("keep_unsaid", keep_unsaid)
    answers, labels = checked_answers(outputs, epsilon)
    n_experts, n_samples = len(answers), len(answers[0])
    names = checked_names(names, n_experts)
    for i in range(n_samples):
        if all(column[i] is None for column in answers):
            raise DataError(f"no expert says anything about sample {i} (counted from 0)")
    rows = _checked_order(order, answers)
    if gold is not None:
        right, more = checked_answers([gold], epsilon, "gold")
        if len(right[0]) != n_samples:
            raise DataError(f"gold has {len(right[0])} samples, the experts answer {n_samples}")
        answers, labels = [*answers, *right], labels | more
        rows = np.column_stack([rows, np.full(n_samples, n_experts)])
    table = tuple(sorted(labels | {epsilon}))
    code_of = {label: code for code, label in enumerate(table)}
    flat = [code_of[y] for column in answers for sample in column for y in sample or ()]
    lengths = np.array([[len(s or ()) for s in column] for column in answers]).reshape(-1)
    stop = np.cumsum(lengths, dtype=np.int64).reshape(len(answers), n_samples)
    start = stop - lengths.reshape(stop.shape)
    start[np.array([[s is None for s in column] for column in answers])] = -1
    offsets, codes = align_samples(
        np.array(flat, np.int32),
        start,
        stop,
        np.ascontiguousarray(rows, np.int64),
        code_of[epsilon],
        gold is None or bool(keep_unsaid),
    )
    aligned = ExpertOutputs(offsets, codes[:, :n_experts], table, names)
    if gold is None:
        return aligned, None
    told = aligned.lists(np.maximum(codes[:, n_experts], 0))
    return aligned, [
        None if sample is None else labels
        for sample, labels in zip(answers[n_experts], told, strict=True)
    ]


def strip(labels: Iterable[Iterable[str]], epsilon: str = "<eps>") -> list[list[str]]:
    """Remove the empty label from each sequence.

    Examples
    --------
    >>> from trellis.experts import strip
    >>> strip([["K", "<eps>", "T"], ["<eps>"]])
    [['K', 'T'], []]
    """
    text.check("epsilon", epsilon)
    sequence_of(strings, "a list of lists of labels").check("labels", labels)
    return [[label for label in sample if label != epsilon] for sample in labels]


class Aligned(Estimator, Storable):
    """Combine answers of different lengths with any combiner of this package.

    Training answers and gold are aligned into confusion networks and given to the combiner;
    predictions are aligned in the same way and combined, and the empty labels removed. Labels that
    were not seen in training are kept by the alignment; the combiner decides what to do with them.

    The combiner is given the experts from the best to the worst (``order_``), so that the better
    one wins where votes are equal. Which are better is seen from gold, or if there is none from
    how far they agree with the others.

    Attributes
    ----------
    combiner_ : the fitted combiner
    order_ : list of int
        The experts, the best first.
    classes_ : tuple of str
        The labels, without the empty one.

    Examples
    --------
    >>> from trellis.experts import Aligned, MajorityVote
    >>> said = [[["K", "AE", "T", "S"]], [["K", "T", "S"]], [["K", "AE", "T"]]]
    >>> Aligned(MajorityVote()).fit(said, [["K", "AE", "T", "S"]]).predict(said)
    [['K', 'AE', 'T', 'S']]
    """

    combiner: Any = parameter(
        has("fit", "predict"),
        "An ensemble; it is not changed: a copy is fitted, as ``combiner_``.",
        kw_only=False,
    )
    epsilon: str = parameter(text, "The empty label.", default="<eps>")
    order: str = parameter(
        one_of("sample", "accuracy", "agreement", "given"),
        """What is aligned first: in each sample the answer that is most like the others and then
        those near to it; or the experts in order of their mean edit distance from the gold answers
        in training (without gold, as "agreement"), in order of how far they agree with the others,
        or as they stand.""",
        default="sample",
    )

    def fit(self, outputs: Any, gold: Any = None) -> Self:
        """Align the experts' answers and the right ones, and fit a copy of the combiner.

        Parameters
        ----------
        outputs : nested sequences
            ``outputs[j][i]`` is the label sequence, of any length, of expert j for sample i, or
            None.
        gold : sequence of (label sequences or None), optional
            The right answers, as far as they are known; the combiner is given None for the others,
            and None in place of all if there are none.

        Returns
        -------
        self
        """
        self._check_parameters()
        answers, _ = checked_answers(outputs, self.epsilon)
        right = None if gold is None else checked_answers([gold], self.epsilon, "gold")[0][0]
        if right is not None and all(sample is None for sample in right):
            right = None
        self.order_ = list(range(len(answers)))
        if right is not None and self.order in ("sample", "accuracy"):
            distance = [_mean_distance(column, right) for column in answers]
            self.order_.sort(key=lambda j: distance[j])  # stable: equal ones as they stand
        elif self.order != "given":
            self.order_ = agreement_order(answers)
        aligned, told = self._aligned(answers, right)
        self.combiner_ = copy.deepcopy(self.combiner).fit(aligned, told)
        self.classes_ = tuple(label for label in aligned.labels if label != self.epsilon)
        return self

    def predict(self, outputs: Any) -> list[list[str]]:
        """Return the combined answer to each sample, of whatever length."""
        self._check_fitted()
        answers, _ = checked_answers(outputs, self.epsilon)
        if len(answers) != len(self.order_):
            raise DataError(
                f"the ensemble was trained on {len(self.order_)} experts, here are {len(answers)}; "
                "give None for the samples an expert has not answered"
            )
        return strip(self.combiner_.predict(self._aligned(answers)[0]), self.epsilon)

    def predict_confidence(self, outputs: Any) -> list[NDArray[np.float64]]:
        """Return how sure each word of the answer is, from 0 to 1, an array a sample."""
        self._check_fitted()
        answers, _ = checked_answers(outputs, self.epsilon)
        network, _ = self._aligned(answers)
        said = self.combiner_.predict(network)
        levels = self.combiner_.predict_confidence(network)
        return [
            level[[label != self.epsilon for label in sample]]
            for sample, level in zip(said, levels, strict=True)
        ]

    def _aligned(self, answers: Answers, gold: Any = None) -> tuple[ExpertOutputs, Any]:
        """Networks whose rows are the experts in their order."""
        return align(
            [answers[j] for j in self.order_],
            gold,
            names=[f"expert {j + 1}" for j in self.order_],
            epsilon=self.epsilon,
            order="sample" if self.order == "sample" else None,
        )

    def _state(self) -> dict[str, Any]:
        return {
            "combiner": self.combiner_,
            "order": np.array(self.order_, np.int64),
            "classes": list(self.classes_),
        }

    def _restore(self, state: dict[str, Any]) -> None:
        self.combiner_ = state.get("combiner")
        if not isinstance(self.combiner_, Combiner) or not is_fitted(self.combiner_):
            raise CorruptModelError("the combiner inside is none, or not fitted")
        n_experts = len(self.combiner_.expert_names_)
        self.order_ = restored_order(state, "order", n_experts).tolist()
        self.classes_ = tuple(header_value(state, "classes", list, items=str))


def _mean_distance(column: list[list[str] | None], gold: Any) -> float:
    distances = [
        0 if answer == right else edit_distance(answer, right)
        for answer, right in zip(column, gold, strict=False)  # lengths are checked by align
        if answer is not None and right is not None
    ]
    return sum(distances) / len(distances) if distances else float("inf")


def _checked_order(order: Sequence[int] | str | None, answers: Answers) -> NDArray[np.int64]:
    """In which order the experts are aligned in each sample, (S, p)."""
    n_experts, n_samples = len(answers), len(answers[0])
    if order is None:
        numbers = list(range(n_experts))
    elif isinstance(order, str):
        one_of("agreement", "sample").check("order", order)
        if order == "sample":
            return closest_first(answers)
        numbers = agreement_order(answers)
    else:
        numbers = as_array(order, np.int64, "order", (None,)).tolist()
        if sorted(numbers) != list(range(n_experts)):
            raise DataError(f"order is {numbers}: expected each of 0 to {n_experts - 1} once")
    return np.tile(np.array(numbers, np.int64), (n_samples, 1))


def checked_answers(outputs: Any, epsilon: str, who: str = "") -> tuple[Answers, set[str]]:
    """Answers as lists, and all labels in them."""
    if isinstance(outputs, ExpertOutputs):
        raise DataError("the outputs are aligned already; give label sequences to align")
    answers: Answers = []
    labels: set[str] = set()
    for j, column in enumerate(answer_lists(outputs, who)):
        name = who or f"expert {j} (counted from 0)"
        answers.append([_answer(sample, name, i) for i, sample in enumerate(column)])
        labels.update(y for sample in answers[-1] for y in sample or ())
        if epsilon in labels:
            raise DataError(f"{name} says the label {epsilon!r}; name another epsilon")
    if not answers[0]:
        raise DataError("there are no samples to align")
    return answers, labels


def _answer(answer: Any, who: str, sample: int) -> list[str] | None:
    if answer is None:
        return None
    try:
        labels = as_list(answer, "labels")
    except DataError:
        raise DataError(
            f"{who}, sample {sample}: expected a sequence of labels, got {answer!r:.60}; "
            "split a string into a list of labels first"
        ) from None
    for label in labels:
        if not isinstance(label, str):
            raise DataError(f"{who}, sample {sample}: labels must be strings, got {label!r:.60}")
    return labels

"""What the experts say, as arrays.

p experts label the same S samples; all positions of all samples are laid end to end, N in total.
``codes[t, j]`` is the code of the label that expert j gives to position t, or -1 if it says nothing
there (it sleeps: a missing sample, a missing position); sample s is the positions
``offsets[s]:offsets[s + 1]``. The learners of this package see nothing else of the experts, except
``scores`` (N, p, L), the label probabilities of those that give any.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import as_array, as_offsets, held
from trellis.domains import instance, strings
from trellis.domains import samples as samples_of
from trellis.errors import DataError

__all__ = ["ExpertOutputs", "answer_lists", "as_gold", "as_outputs", "checked_names"]


@dataclass(frozen=True, eq=False)
class ExpertOutputs:
    """The answers of p experts for S samples of N positions in all; see :func:`as_outputs`.

    Attributes
    ----------
    offsets : int64 (S + 1,)
        Sample s is the positions ``offsets[s]:offsets[s + 1]``.
    codes : int32 (N, p)
        Index into ``labels`` of what expert j says at position t; -1: nothing.
    labels : tuple of str
        Label names, sorted.
    names : tuple of str
        Names of the experts.
    scores : float32 (N, p, L) or None
        Label probabilities of probabilistic experts.

    Examples
    --------
    >>> from trellis.experts import as_outputs
    >>> two = as_outputs([[["a", "b"], ["b"]], [["a", "a"], None]])
    >>> two.codes.tolist()
    [[0, 0], [1, 0], [1, -1]]
    >>> len(two), two.n_experts, two.lengths.tolist()
    (2, 2, [2, 1])
    """

    offsets: NDArray[np.int64]
    codes: NDArray[np.int32]
    labels: tuple[str, ...]
    names: tuple[str, ...]
    scores: NDArray[np.float32] | None = None

    def __post_init__(self) -> None:
        strings.check("labels", self.labels)
        strings.check("names", self.names)
        offsets, codes = as_offsets(self.offsets), as_array(self.codes, np.int32, "codes")
        for name, value in (
            ("offsets", held(offsets, self.offsets)), ("codes", held(codes, self.codes)),
            ("labels", tuple(self.labels)), ("names", tuple(self.names)),
        ):  # fmt: skip
            object.__setattr__(self, name, value)
        if self.codes.ndim != 2 or self.codes.shape[1] != len(self.names) or not self.names:
            raise DataError(
                f"codes have shape {self.codes.shape} for {len(self.names)} experts; "
                "they must be (positions, experts), with one expert at least"
            )
        off = self.offsets
        if off[-1] != len(self.codes):
            raise DataError(
                f"offsets must start with 0 and end with the {len(self.codes)} positions of codes"
            )
        if (np.diff(off) < 1).any():
            empty = int(np.flatnonzero(np.diff(off) < 1)[0])
            raise DataError(f"sample {empty} has no positions; leave empty samples out")
        if self.codes.size and not -1 <= self.codes.min() <= self.codes.max() < len(self.labels):
            raise DataError(f"codes must lie between -1 and {len(self.labels) - 1}")
        if self.scores is not None:
            object.__setattr__(self, "scores", _checked_scores(self.scores, self))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def n_experts(self) -> int:
        """Number of experts, p."""
        return len(self.names)

    @property
    def n_positions(self) -> int:
        """Number of positions in all samples, N."""
        return len(self.codes)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Number of positions of each sample."""
        return np.diff(self.offsets)

    def take(self, samples: Any) -> ExpertOutputs:
        """Return the samples with these indices (array, slice or mask), in that order."""
        picked = np.arange(len(self))[samples]
        lengths = self.lengths[picked]
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        rows = np.repeat(self.offsets[picked] - offsets[:-1], lengths) + np.arange(offsets[-1])
        scores = None if self.scores is None else self.scores[rows]
        return replace(self, offsets=offsets, codes=self.codes[rows], scores=scores)

    def subset(self, experts: Iterable[int | str]) -> ExpertOutputs:
        """Return these experts only, by index or by name, in that order."""
        columns = [self._column(expert) for expert in experts]
        names = tuple(self.names[j] for j in columns)
        scores = None if self.scores is None else self.scores[:, columns]
        return replace(self, codes=self.codes[:, columns], names=names, scores=scores)

    def _column(self, expert: int | str) -> int:
        if isinstance(expert, str):
            if expert not in self.names:
                raise DataError(f"no expert is called {expert!r}; they are {_some(self.names)}")
            return self.names.index(expert)
        column = operator.index(expert)
        if not -self.n_experts <= column < self.n_experts:
            raise DataError(f"expert {column} of {self.n_experts}; indices start with 0")
        return column % self.n_experts

    def recoded(self, labels: Sequence[str]) -> ExpertOutputs:
        """Return the same outputs with codes that point into ``labels``, which must hold them all.

        Labels that are new get probability 0 in ``scores``.
        """
        strings.check("labels", labels)
        labels = tuple(labels)
        if labels == self.labels:
            return self
        code_of = {label: code for code, label in enumerate(labels)}
        used = np.zeros(len(self.labels) + 1, bool)  # the last one is for -1
        used[self.codes.ravel()] = True
        table = np.full(len(self.labels) + 1, -1, np.int32)
        for old, label in enumerate(self.labels):
            if label in code_of:
                table[old] = code_of[label]
            elif used[old]:
                raise DataError(f"an expert says {label!r}, which is not among the given labels")
        scores = None
        if self.scores is not None:
            scores = np.zeros((*self.codes.shape, len(labels)), np.float32)
            kept = np.flatnonzero(table[:-1] >= 0)
            scores[:, :, table[kept]] = self.scores[:, :, kept]
        return replace(self, codes=table[self.codes], labels=labels, scores=scores)

    def lists(self, codes: NDArray[Any]) -> list[list[str]]:
        """Return one label code a position, (N,), as one list of label names a sample."""
        flat = np.array(self.labels, dtype=object)[codes].tolist()
        return [flat[a:b] for a, b in itertools.pairwise(self.offsets.tolist())]


def as_outputs(
    outputs: Any, *, names: Sequence[str] | None = None, labels: Sequence[str] | None = None
) -> ExpertOutputs:
    """Check what the experts say and lay it out as arrays.

    Parameters
    ----------
    outputs : ExpertOutputs or nested sequences
        ``outputs[j][i]`` is the label sequence of expert j for sample i. None stands for a sample
        or a position that the expert says nothing about.
    names : sequence of str or None
        Names of the experts; "expert 1", "expert 2", ... if none are given.
    labels : sequence of str or None
        All labels, in order; by default the labels that occur, sorted.

    Examples
    --------
    >>> from trellis.experts import as_outputs
    >>> said = as_outputs([[["D", "N"]], [["D", None]]], names=["crf", "rules"])
    >>> said.labels, said.names, said.codes.tolist()
    (('D', 'N'), ('crf', 'rules'), [[0, 0], [1, -1]])
    """
    if isinstance(outputs, ExpertOutputs):
        if names is not None:
            outputs = replace(outputs, names=checked_names(names, outputs.n_experts))
        same: ExpertOutputs = outputs
        return same if labels is None else same.recoded(labels)
    columns = answer_lists(outputs)
    names = checked_names(names, len(columns))
    lengths = _lengths(columns, names)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    code_of: dict[Any, int] = {None: -1}
    rows = np.empty((len(columns), offsets[-1]), np.int32)
    for j, column in enumerate(columns):
        flat: list[Any] = []
        for sample, length in zip(column, lengths, strict=True):
            flat.extend(sample if sample is not None else [None] * length)
        for label in _distinct(flat, names[j]) - code_of.keys():
            code_of[label] = len(code_of) - 1
        rows[j] = np.fromiter(map(code_of.__getitem__, flat), np.int32, len(flat))
    distinct = [label for label in code_of if label is not None]
    final = tuple(sorted(distinct)) if labels is None else labels
    first = ExpertOutputs(offsets, rows.T, tuple(distinct), names)
    return first.recoded(final)


def as_gold(gold: Any, outputs: ExpertOutputs) -> tuple[NDArray[np.int32], ExpertOutputs]:
    """Code the right answers in the labels of ``outputs``.

    Labels that no expert ever says are added to the labels, so the outputs are returned too,
    recoded if need be.

    Parameters
    ----------
    gold : sequence of label sequences, or None
        The right labels of each sample; None for a sample, or in place of all, where they are not
        known.
    outputs : ExpertOutputs

    Returns
    -------
    codes : int32 (N,)
        -1 at the positions of samples whose right labels are not known.
    outputs : ExpertOutputs

    Examples
    --------
    >>> from trellis.experts import as_gold, as_outputs
    >>> codes, outputs = as_gold([["D", "V"]], as_outputs([[["D", "N"]]]))
    >>> codes.tolist(), outputs.labels
    ([0, 2], ('D', 'N', 'V'))
    """
    instance(ExpertOutputs).check("outputs", outputs)
    if gold is not None and not _iterable(gold):
        raise DataError(f"gold must hold one label sequence a sample; got {type(gold).__name__}")
    samples = [None] * len(outputs) if gold is None else list(gold)
    if len(samples) != len(outputs):
        raise DataError(f"gold has {len(samples)} samples, the experts answer {len(outputs)}")
    flat: list[Any] = []
    unknown = object()  # unlike None, which inside of a sample is a mistake
    for i, (sample, length) in enumerate(zip(samples, outputs.lengths.tolist(), strict=True)):
        labels = [unknown] * length if sample is None else _sequence(sample, "gold", i)
        if len(labels) != length:
            raise DataError(
                f"gold has {len(labels)} labels for sample {i} (counted from 0), the experts give "
                f"{length}; align them first (align=, or trellis.experts.align)"
            )
        flat.extend(labels)
    distinct = _distinct([label for label in flat if label is not unknown], "gold")
    if None in distinct:
        raise DataError("gold has positions without a label (None); leave such samples out")
    if not distinct <= set(outputs.labels):
        outputs = outputs.recoded(sorted(set(outputs.labels) | distinct))
    code_of: dict[Any, int] = {label: code for code, label in enumerate(outputs.labels)}
    code_of[unknown] = -1
    return np.fromiter(map(code_of.__getitem__, flat), np.int32, len(flat)), outputs


def answer_lists(outputs: Any, who: str = "") -> list[list[Any]]:
    """The answers of each expert as a list, one for each sample."""
    if not _iterable(outputs):
        raise DataError(
            "outputs must hold, for each expert, one label sequence a sample; "
            f"got {type(outputs).__name__}"
        )
    columns: list[list[Any]] = []
    for j, column in enumerate(outputs):
        name = who or f"expert {j} (counted from 0)"
        if not _iterable(column):
            raise DataError(f"{name}: expected one label sequence a sample, got {column!r:.60}")
        columns.append(list(column))
        if len(columns[j]) != len(columns[0]):
            raise DataError(
                f"{name} has {len(columns[j])} samples, expert 0 has {len(columns[0])}; use None "
                "for the samples an expert says nothing about"
            )
    if not columns:
        raise DataError("no experts; outputs must hold the answers of one expert at least")
    return columns


def _iterable(values: Any) -> bool:
    """Whether this can be gone through, and is no string."""
    return samples_of.accepts(values) or isinstance(values, Iterator)


def _lengths(columns: list[list[Any]], names: tuple[str, ...]) -> list[int]:
    lengths: list[int] = []
    for i, answers in enumerate(zip(*columns, strict=True)):
        length = -1
        for j, answer in enumerate(answers):
            if answer is None:
                continue
            count = len(_sequence(answer, names[j], i))
            if length >= 0 and count != length:
                raise DataError(
                    f"{names[j]} gives {count} labels for sample {i} (counted from 0), "
                    f"other experts give {length}; align answers of different lengths first "
                    "(align=, or trellis.experts.align)"
                )
            length = count
        if length < 0:
            raise DataError(f"no expert says anything about sample {i} (counted from 0)")
        if length == 0:
            raise DataError(f"sample {i} (counted from 0) is empty; leave empty samples out")
        lengths.append(length)
    return lengths


def _sequence(answer: Any, who: str, sample: int) -> Any:
    if type(answer) is not list and not samples_of.accepts(answer):  # of lists there are many
        raise DataError(
            f"{who}, sample {sample} (counted from 0): expected a sequence of labels, got "
            f"{answer!r:.60}; split a string into a list of labels first"
        )
    return answer


def _distinct(flat: list[Any], who: str) -> set[Any]:
    """Return the set of labels, all of which must be strings (or None)."""
    try:
        distinct = set(flat)
    except TypeError:
        raise DataError(f"{who}: labels must be strings, not lists") from None
    for label in distinct:
        if label is not None and not isinstance(label, str):
            raise DataError(
                f"{who}: labels must be strings (None: says nothing), got {label!r} of type "
                f"{type(label).__name__}"
            )
    return distinct


def checked_names(names: Sequence[str] | None, n_experts: int) -> tuple[str, ...]:
    """Names of the experts, each another; "expert 1" and so on if there are none."""
    if names is None:
        return tuple(f"expert {j + 1}" for j in range(n_experts))
    strings.check("names", names)
    if len(names) != n_experts or len(set(names)) != n_experts:
        raise DataError(f"{n_experts} experts need as many different names, got {_some(names)}")
    return tuple(str(name) for name in names)


def _checked_scores(scores: Any, outputs: ExpertOutputs) -> NDArray[np.float32]:
    array = as_array(scores, np.float32, "scores")
    wanted = (*outputs.codes.shape, len(outputs.labels))
    if array.shape != wanted:
        raise DataError(
            f"scores have shape {array.shape}; (positions, experts, labels) is {wanted}"
        )
    if not (np.isfinite(array).all() and (array >= 0).all()):
        raise DataError("scores must be probabilities; some are negative, infinite or NaN")
    return held(array, scores)


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(map(str, list(names)[:10]))
    return shown + (", ..." if len(names) > 10 else "")

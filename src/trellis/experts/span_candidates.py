r"""Spans that experts give, and who gives each: what span combiners choose from.

Expert j gives the spans :math:`A_j` of a sample, each a start a, an end b > a (one past its last
position) and a type τ. The candidates are those that any expert gives, :math:`C = \bigcup_j A_j`.
How expert j stands to candidate c is a set of marks:

===========  =================================================================================
mark         expert j …
===========  =================================================================================
``AWAKE``    says something about all positions of c
``EXACT``    gives c
``START``    gives a span of the same type with the same start and another end
``END``      gives a span of the same type with the same end and another start
``EXTENT``   gives a span of another type with the same start and end
``OVERLAP``  gives a span of the same type that overlaps c and is not c
``CLASH``    gives a span of another type that overlaps c
===========  =================================================================================

Spans come from two sources: label sequences in a tag scheme (:mod:`trellis.corpus.schemes`, invalid
ones read as ``conlleval`` reads them), of which those of one expert never overlap, and lists of
spans, which language models give: these may overlap and repeat, and their positions are tokens,
characters or whatever the experts agree to count.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.corpus.schemes import Scheme
from trellis.domains import is_whole
from trellis.errors import DataError
from trellis.experts.outputs import ExpertOutputs, answer_lists, checked_names
from trellis.kernels.intervals import (
    best_intervals,
    distinct_spans,
    mark_awake,
    mark_overlaps,
)

__all__ = [
    "AWAKE", "CLASH", "END", "EXACT", "EXTENT", "OVERLAP", "START",
    "SpanCandidates", "SpanOutputs", "as_span_outputs", "best_spans", "holds_spans",
]  # fmt: skip

AWAKE, EXACT, START, END, EXTENT, OVERLAP, CLASH = (1 << k for k in range(7))
_BITS = np.array([START, END, EXTENT, OVERLAP, CLASH], np.uint8)
_HIGHEST = 1 << 30  # positions beyond it could not be told apart in one number
_MOST = 1 << 62
_BLOCK = 1 << 14  # positions read at a time

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class SpanOutputs:
    """The spans that p experts give for S samples, M in all; see :func:`as_span_outputs`.

    Attributes
    ----------
    sample, start, end, type, expert : int64 (M,)
        One row a span that an expert gives; ``type`` is an index into ``types``.
    awake : bool (S, p)
        Whether an expert answers a sample at all, be it without any span.
    types : tuple of str
        Types of spans, sorted.
    names : tuple of str
        Names of the experts.

    Examples
    --------
    >>> from trellis.experts import as_span_outputs
    >>> said = as_span_outputs([[[(0, 2, "PER")], []], [[(0, 2, "LOC")], None]])
    >>> len(said), said.n_experts, said.types
    (2, 2, ('LOC', 'PER'))
    """

    sample: Ints
    start: Ints
    end: Ints
    type: Ints
    expert: Ints
    awake: Bools
    types: tuple[str, ...]
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.awake)

    @property
    def n_experts(self) -> int:
        """Number of experts, p."""
        return len(self.names)

    def take(self, samples: Any) -> SpanOutputs:
        """Return the samples with these indices (array, slice or mask), in that order."""
        picked = np.arange(len(self))[samples]
        order = np.argsort(self.sample, kind="stable")
        ends = np.searchsorted(self.sample[order], np.arange(len(self) + 1))
        counts = np.diff(ends)[picked]
        rows = order[ranges(ends[:-1][picked], counts)]
        return replace(
            self,
            sample=np.repeat(np.arange(len(picked)), counts),
            start=self.start[rows],
            end=self.end[rows],
            type=self.type[rows],
            expert=self.expert[rows],
            awake=self.awake[picked],
        )

    def subset(self, experts: Iterable[str]) -> SpanOutputs:
        """Return the experts of these names only, in that order."""
        columns = [self.names.index(name) for name in experts]
        place = np.full(self.n_experts, -1)
        place[columns] = np.arange(len(columns))
        kept = place[self.expert] >= 0
        fields = {f: getattr(self, f)[kept] for f in ("sample", "start", "end", "type")}
        names = tuple(self.names[j] for j in columns)
        expert = place[self.expert[kept]]
        return replace(self, **fields, expert=expert, awake=self.awake[:, columns], names=names)


def holds_spans(outputs: Any) -> bool:
    """Whether these answers are lists of spans, not label sequences, judged by the first element.

    Examples
    --------
    >>> holds_spans([[[(0, 2, "PER")]]]), holds_spans([[["B-PER", "O"]]])
    (True, False)
    """
    if isinstance(outputs, SpanOutputs | ExpertOutputs):
        return isinstance(outputs, SpanOutputs)
    empty = False
    for column in outputs:
        for answer in column if isinstance(column, Iterable) else ():
            if isinstance(answer, str) or not isinstance(answer, Iterable):
                continue
            for element in answer:
                return isinstance(element, Mapping | tuple | list | np.ndarray)
            empty = True
    return empty  # label sequences are never empty


def as_span_outputs(outputs: Any, *, names: Sequence[str] | None = None) -> SpanOutputs:
    """Check the spans that experts give and lay them out as arrays.

    Parameters
    ----------
    outputs : SpanOutputs or nested sequences
        ``outputs[j][i]`` is a list of the spans of expert j in sample i, None if it has not
        answered. A span is ``(start, end, type)`` with whole numbers 0 <= start < end, or a dict
        with "start", "end" and "type" (or "label"). Spans may overlap, in any order; one that an
        expert repeats counts once.
    names : sequence of str or None
        Names of the experts; "expert 1", "expert 2", ... if none are given.

    Examples
    --------
    >>> from trellis.experts import as_span_outputs
    >>> said = as_span_outputs([[[{"start": 3, "end": 8, "label": "DATE"}]]], names=["model"])
    >>> said.start.tolist(), said.end.tolist(), said.types
    ([3], [8], ('DATE',))
    """
    if isinstance(outputs, SpanOutputs):
        if names is None:
            return outputs
        return replace(outputs, names=checked_names(names, outputs.n_experts))
    columns = answer_lists(outputs)
    names = checked_names(names, len(columns))
    awake = np.zeros((len(columns[0]), len(columns)), np.bool_)
    rows: list[tuple[int, int, int, int, int]] = []
    code_of: dict[str, int] = {}
    for j, column in enumerate(columns):
        for i, answer in enumerate(column):
            awake[i, j] = answer is not None
            for start, end, type_ in spans_of(answer, names[j], i):
                rows.append((i, start, end, code_of.setdefault(type_, len(code_of)), j))
    types = tuple(sorted(code_of))
    rank = np.empty(len(types), np.int64)
    rank[[code_of[type_] for type_ in types]] = np.arange(len(types))
    sample, first, last, kind, expert = np.array(rows, np.int64).reshape(-1, 5).T.copy()
    return SpanOutputs(sample, first, last, rank[kind], expert, awake, types, names)


def spans_of(answer: Any, who: str, sample: int) -> list[tuple[int, int, str]]:
    """The spans of one answer, checked; none if it is None."""
    if answer is None:
        return []
    where = f"{who}, sample {sample} (counted from 0)"
    if isinstance(answer, str | Mapping) or not isinstance(answer, Iterable):
        raise DataError(f"{where}: expected a list of spans, got {answer!r:.60}")
    return [_span(span, where) for span in answer]


def _span(span: Any, where: str) -> tuple[int, int, str]:
    if isinstance(span, Mapping):
        span = (span.get("start"), span.get("end"), span.get("type", span.get("label")))
    if not isinstance(span, tuple | list) or len(span) != 3:
        raise DataError(
            f"{where}: expected spans (start, end, type), or dicts with these keys, got "
            f"{span!r:.60}"
        )
    start, end, type_ = span
    if not (is_whole(start) and is_whole(end) and isinstance(type_, str)):
        raise DataError(
            f"{where}: the span {tuple(span)!r:.60} needs whole numbers for start and end and a "
            "string for its type"
        )
    if not 0 <= start < end <= _HIGHEST:
        raise DataError(
            f"{where}: the span {tuple(span)!r:.60} must have 0 <= start < end <= {_HIGHEST}"
        )
    return int(start), int(end), type_


# ---------------------------------------------------------------------------- candidates


@dataclass(frozen=True, eq=False)
class SpanCandidates:
    """All spans that any of p experts gives, C in all, sample after sample, sorted in each.

    Attributes
    ----------
    offsets : int64 (S + 1,)
        Sample s has the candidates ``offsets[s]:offsets[s + 1]``, sorted by start, end and type.
    start, end : int64 (C,)
        Counted from the beginning of the sample; ``end`` is one past the last position.
    type : int64 (C,)
        Index into ``types``.
    agreement : uint8 (C, p)
        Sum of the marks of each expert.
    types, names : tuples of str
        Types of spans, and names of the experts.

    Examples
    --------
    >>> from trellis.experts import as_span_outputs
    >>> said = as_span_outputs([[[(0, 2, "PER")]], [[(0, 3, "PER")]], [None]])
    >>> found = SpanCandidates.of_spans(said)
    >>> list(zip(found.start.tolist(), found.end.tolist()))
    [(0, 2), (0, 3)]
    >>> (found.agreement[0] == [AWAKE | EXACT, AWAKE | START | OVERLAP, 0]).all()
    np.True_
    """

    offsets: Ints
    start: Ints
    end: Ints
    type: Ints
    agreement: NDArray[np.uint8]
    types: tuple[str, ...]
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.start)

    @property
    def sample(self) -> Ints:
        """Sample of each candidate, (C,)."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))

    def has(self, mark: int) -> Bools:
        """Which experts have a mark, (C, p)."""
        return (self.agreement & mark) > 0

    def take(self, samples: Any) -> SpanCandidates:
        """Return the candidates of the samples with these indices (array, slice or mask)."""
        picked = np.arange(len(self.offsets) - 1)[samples]
        counts = np.diff(self.offsets)[picked]
        rows = ranges(self.offsets[:-1][picked], counts)
        return replace(
            self,
            offsets=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
            start=self.start[rows],
            end=self.end[rows],
            type=self.type[rows],
            agreement=self.agreement[rows],
        )

    @classmethod
    def of_spans(cls, outputs: SpanOutputs) -> SpanCandidates:
        """Candidates of lists of spans."""
        found = cls._gathered(
            outputs.sample, outputs.start, outputs.end, outputs.type, outputs.expert,
            len(outputs), outputs.types, outputs.names,
        )  # fmt: skip
        found.agreement[outputs.awake[found.sample]] |= AWAKE
        return found

    @classmethod
    def of_labels(cls, outputs: ExpertOutputs, scheme: Scheme) -> SpanCandidates:
        """Candidates of label sequences in a tag scheme."""
        reader = LabelReader(outputs.labels, scheme)
        step = max(1, int(_BLOCK // max(1.0, outputs.n_positions / max(1, len(outputs)))))
        blocks = [
            reader.distinct(outputs, first, min(first + step, len(outputs)))
            for first in range(0, len(outputs), step)
        ]
        empty = (*(np.zeros(0, np.int64),) * 4, np.zeros((0, outputs.n_experts), np.bool_))
        sample, start, end, kind, exact = (
            np.concatenate(part) for part in zip(empty, *blocks, strict=True)
        )
        found = cls._marked(
            sample, start, end, kind, exact, len(outputs), reader.types, outputs.names
        )
        base = outputs.offsets[:-1][sample]
        if (outputs.codes < 0).any():
            mark_awake(base + start, base + end, outputs.codes, AWAKE, found.agreement)
        else:
            found.agreement[:] |= AWAKE
        return found

    @classmethod
    def _gathered(
        cls, sample: Ints, start: Ints, end: Ints, kind: Ints, expert: Ints, n_samples: int,
        types: tuple[str, ...], names: tuple[str, ...],
    ) -> SpanCandidates:  # fmt: skip
        """Distinct spans of rows of spans, and who gives them; nobody is awake yet."""
        key = _keys(sample, start, end, kind)
        order = np.argsort(key)
        ranked = key[order]
        new = np.ones(len(order), np.bool_)
        new[1:] = ranked[1:] != ranked[:-1]
        which = np.cumsum(new) - 1
        first = order[new]
        sample, start, end, kind = sample[first], start[first], end[first], kind[first]
        exact = np.zeros((len(sample), len(names)), np.bool_)
        exact[which, expert[order]] = True
        return cls._marked(sample, start, end, kind, exact, n_samples, types, names)

    @classmethod
    def _marked(
        cls, sample: Ints, start: Ints, end: Ints, kind: Ints, exact: Bools, n_samples: int,
        types: tuple[str, ...], names: tuple[str, ...],
    ) -> SpanCandidates:  # fmt: skip
        """Candidates in order, and who gives them; nobody is awake yet."""
        offsets = np.searchsorted(sample, np.arange(n_samples + 1)).astype(np.int64)
        agreement = np.where(exact, np.uint8(EXACT), np.uint8(0))
        mark_overlaps(offsets, start, end, kind, exact, _BITS, agreement)
        return cls(offsets, start, end, kind, agreement, types, names)

    def right(self, gold: Iterable[Iterable[tuple[int, int, str]]]) -> Bools:
        """Which candidates are among the right spans (start, end, type) of their samples, (C,)."""
        code_of = {type_: code for code, type_ in enumerate(self.types)}
        known = {
            (s, start, end, code_of.get(type_, -1))
            for s, spans in enumerate(gold)
            for start, end, type_ in spans
        }
        rows = zip(
            self.sample.tolist(), self.start.tolist(), self.end.tolist(), self.type.tolist(),
            strict=True,
        )  # fmt: skip
        return np.fromiter((row in known for row in rows), np.bool_, len(self))


class LabelReader:
    """Spans of label codes, as :meth:`trellis.corpus.schemes.Scheme.spans` reads labels."""

    def __init__(self, labels: Sequence[str], scheme: Scheme) -> None:
        # Nobody says anything: as outside of all spans.
        self._starts, self._within = scheme.boundaries([*labels, "O"])
        parsed = [scheme.parse(label) for label in labels]
        self.types = tuple(sorted({type_ for role, type_ in parsed if role != "O"}))
        code_of = {type_: code for code, type_ in enumerate(self.types)}
        codes = [code_of[type_] if role != "O" else -1 for role, type_ in parsed]
        self._type_of = np.array([*codes, -1], np.int64)

    def distinct(
        self, outputs: ExpertOutputs, first: int, last: int
    ) -> tuple[Ints, Ints, Ints, Ints, Bools]:
        """Sample, start, end, type and givers of the spans of some samples, sorted."""
        offsets = outputs.offsets[first : last + 1]
        codes = np.ascontiguousarray(outputs.codes[offsets[0] : offsets[-1]])
        found = np.empty((4, codes.size), np.int64)  # sample, start, end and type
        exact = np.zeros((codes.size, codes.shape[1]), np.bool_)  # rows not reached cost nothing
        n = distinct_spans(
            offsets - offsets[0], codes, self._starts, self._within, self._type_of, found, exact
        )
        order = np.argsort(_keys(*found[:, :n]))
        sample, start, end, kind = found[:, order]
        return sample + first, start, end, kind, exact[order]


def label_spans(
    codes: NDArray[np.int32], outputs: ExpertOutputs, scheme: Scheme
) -> list[list[tuple[int, int, str]]]:
    """Spans (start, end, type) of each sample, of one label code a position."""
    spans: list[list[tuple[int, int, str]]] = [[] for _ in range(len(outputs))]
    if not len(outputs):
        return spans
    reader = LabelReader(outputs.labels, scheme)
    one = replace(outputs, codes=codes[:, None], names=("one",), scores=None)
    columns = (column.tolist() for column in reader.distinct(one, 0, len(one))[:4])
    for sample, start, end, kind in zip(*columns, strict=True):
        spans[sample].append((start, end, reader.types[kind]))
    return spans


def best_spans(candidates: SpanCandidates, weights: NDArray[np.float64]) -> Bools:
    """The candidates of each sample that do not overlap and have the largest sum of weights.

    None of weight 0 or less is chosen. Of equal sets, the one whose last span ends first, then
    starts last, then has the first type.

    Parameters
    ----------
    candidates : SpanCandidates
    weights : float64 (C,)

    Returns
    -------
    bool (C,)

    Examples
    --------
    >>> import numpy as np
    >>> from trellis.experts import as_span_outputs
    >>> said = as_span_outputs([[[(0, 2, "X"), (1, 4, "X"), (4, 5, "X"), (3, 5, "X")]]])
    >>> best_spans(SpanCandidates.of_spans(said), np.array([1.0, 2.0, 2.5, 0.5])).tolist()
    [True, False, True, False]
    """
    order = np.lexsort((candidates.type, -candidates.start, candidates.end, candidates.sample))
    chosen = np.zeros(len(order), np.bool_)
    best_intervals(
        candidates.offsets, candidates.start[order], candidates.end[order],
        np.asarray(weights, np.float64)[order], chosen,
    )  # fmt: skip
    picked = np.zeros(len(order), np.bool_)
    picked[order] = chosen
    return picked


def _keys(*columns: Ints) -> Ints:
    """Numbers whose order is that of the rows of these columns, equal for equal rows, (M,)."""
    key, size = np.zeros(len(columns[0]), np.int64), 1
    for column in columns:
        n = int(column.max(initial=0)) + 1
        if size * n > _MOST:  # the ranks of what is so far are smaller
            distinct, key = np.unique(key, return_inverse=True)
            size = len(distinct)
        key = key * n + column
        size *= n
    return key


def ranges(starts: Ints, counts: Ints) -> Ints:
    """start, start + 1, ... of each start, as many as its count."""
    ends = np.cumsum(counts)
    return np.repeat(starts - (ends - counts), counts) + np.arange(ends[-1] if len(ends) else 0)

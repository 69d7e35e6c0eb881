"""Labels as sets: what is known about the label of every position.

Each position holds a number that stands for the set of labels it may have. With L labels, the
numbers 0..L-1 are the single labels (a gold label is a set of one), L is the full set (not
annotated), L+1, L+2, … are whatever other sets occur, each once. So ``id < L`` *is* the gold label,
and the same ids serve partial annotation in training, constrained decoding and tag-scheme rules.

Kernels see the sets as rows of a boolean table (R, L). It has more than L² entries, so it is made
when a model asks for it and not before: whoever takes the column of words for that of the labels
is to be told so, and not to run out of memory.

A set that happens to name every class keeps a number of its own: among more classes it still means
those it names, while «not annotated» means all of them.
"""

from __future__ import annotations

import logging
from collections.abc import Hashable, Iterable, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import Int64s, as_array, as_list, for_kernels, held
from trellis.corpus.label_values import in_order, is_missing, plain_label
from trellis.errors import DataError

__all__ = ["Label", "Labels", "as_positions", "check_label_count"]

_log = logging.getLogger("trellis")

Label = Hashable | Set[Hashable] | None
"""What a user may say of one position: its label, nothing, or the set of allowed labels."""

# Supertags and full morphological tags can be more than a thousand, so these only ask; a column of
# words soon has more than the second number.
_MANY_LABELS, _MOST_LABELS = 500, 5000


@dataclass(frozen=True, eq=False)
class Labels:
    """Label sets of all positions of a corpus.

    Parameters
    ----------
    ids : int32 array (N,)
        The set of each position: a class, L for «not annotated», or L + 1 + k for ``sets[k]``.
    sets : tuple of frozenset of int
        Further sets of classes.
    classes : tuple
        The L labels (:mod:`trellis.corpus.label_values`).

    Examples
    --------
    >>> from trellis.corpus import Labels
    >>> labels = Labels.from_lists([["B", "I", None], [{"B", "O"}]])
    >>> labels.classes
    ('B', 'I', 'O')
    >>> labels.ids
    array([0, 1, 3, 4], dtype=int32)
    >>> labels.table[4]
    array([ True, False,  True])
    """

    ids: NDArray[np.int32]
    sets: tuple[frozenset[int], ...]
    classes: tuple[Any, ...]

    def __post_init__(self) -> None:
        classes = _classes(self.classes)
        n = len(classes)
        ids = held(as_array(self.ids, np.int32, "label ids"), self.ids)
        sets = tuple(_label_set(members, n) for members in as_list(self.sets, "label sets"))
        if ids.ndim != 1:
            raise DataError(f"label ids must be one-dimensional, got the shape {ids.shape}")
        if ids.size and not 0 <= ids.min() <= ids.max() <= n + len(sets):
            raise DataError(f"label ids must lie in 0..{n + len(sets)}")
        for name, value in {"ids": ids, "sets": sets, "classes": classes}.items():
            object.__setattr__(self, name, value)

    @classmethod
    def from_table(cls, ids: Any, table: Any, classes: Sequence[Any]) -> Labels:
        """Labels from the table that :attr:`table` is."""
        names = _classes(classes, letters=True)
        rows, n = as_array(table, np.bool_, "entries of the label table"), len(names)
        if rows.ndim != 2 or rows.shape[1] != n or rows.shape[0] <= n:
            raise DataError(f"label table must be (more than {n}, {n}), got {rows.shape}")
        if not (np.array_equal(rows[:n], np.eye(n, dtype=bool)) and rows[n].all()):
            raise DataError("label table must start with the single labels and the full set")
        sets = tuple(frozenset(np.flatnonzero(row).tolist()) for row in rows[n + 1 :])
        return cls(ids, sets, names)

    @cached_property
    def table(self) -> NDArray[np.bool_]:
        """The distinct sets (R, L), read-only; rows 0..L-1 the single labels, row L the full set.

        Made when it is first asked for.
        """
        n_rows = len(self.classes) + 1 + len(self.sets)
        return held(Labels(np.arange(n_rows, dtype=np.int32), self.sets, self.classes).allowed())

    def for_kernels(self) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
        """The ids and the table as kernels take them."""
        return for_kernels(self.ids), for_kernels(self.table)

    def __len__(self) -> int:
        return len(self.ids)

    @classmethod
    def from_codes(cls, codes: NDArray[np.int32], names: Sequence[Any]) -> Labels:
        """Gold labels from integer codes into ``names``; classes come out sorted."""
        names = _classes(names, letters=True)
        ordered = in_order(names)
        place = {name: i for i, name in enumerate(ordered)}
        rank = np.array([place[name] for name in names], np.int32)
        codes = as_array(codes, np.int64, "label codes", (None,), low=0, high=len(names))
        return cls(rank[codes], (), ordered)

    @classmethod
    def from_lists(
        cls, y: Iterable[Sequence[Label]], classes: Sequence[Any] | None = None, *, first: int = 0
    ) -> Labels:
        """Labels from lists of labels, None or sets of them; with ``classes``, others are refused.

        ``first`` is the number of the first sample, for messages.
        """
        closed = classes is not None
        given = () if classes is None else _classes(classes, letters=True)
        known: dict[Any, int] = {label: i for i, label in enumerate(given)}
        if len(known) != len(given):
            raise DataError(f"a class is named twice: {', '.join(map(str, given))}")
        sets: dict[frozenset[Any], int] = {}
        raw: list[int] = []  # a label's code, -1 for None, -2 - k for the k-th set

        def code(label: Any, s: int, t: int) -> int:
            label = plain_label(label, _place(s, t))
            if label not in known:
                if closed:
                    among = _list(known, quoted=type(label) is not str)
                    raise DataError(f"label {label!r} at {_place(s, t)} is unknown; {among}")
                known[label] = len(known)
            return known[label]

        def code_of_entry(entry: Any, s: int, t: int) -> int:
            if is_missing(entry):
                return -1
            if not isinstance(entry, Set):
                return code(entry, s, t)
            members = _members(entry, _place(s, t))
            codes = [code(member, s, t) for member in in_order(members)]
            return codes[0] if len(codes) == 1 else -2 - sets.setdefault(members, len(sets))

        for s, sample in enumerate(as_list(y, "labels of the samples"), first):
            for t, label in enumerate(as_list(sample, f"labels of sample {s}")):
                try:  # the common case first: a label that was there before
                    raw.append(known[label])
                except (KeyError, TypeError):  # a set has no hash
                    raw.append(code_of_entry(label, s, t))
        names = tuple(known) if closed else in_order(known)
        position = {name: i for i, name in enumerate(names)}
        n = len(names)
        # Negative codes count from the end of the lookup: None is -1, the k-th set -2 - k.
        set_ids = np.arange(n + len(sets), n - 1, -1)
        lookup = np.concatenate([[position[name] for name in known], set_ids]).astype(np.int32)
        numbered = tuple(frozenset(position[member] for member in members) for members in sets)
        return cls(lookup[np.array(raw, np.int32)], numbered, names)

    def take(self, positions: NDArray[Any] | slice) -> Labels:
        """Labels of some positions, in that order."""
        part = object.__new__(Labels)  # all but the ids was checked, and the table is shared
        ids = held(np.ascontiguousarray(self.ids[as_positions(positions, len(self))]))
        vars(part).update(vars(self), ids=ids)
        return part

    def without(self, positions: NDArray[Any]) -> Labels:
        """The same labels, nothing being known of some positions."""
        ids = self.ids.copy()
        ids[as_positions(positions, len(self))] = len(self.classes)
        return Labels(ids, self.sets, self.classes)

    def tolist(self) -> list[Label]:
        """Each position's label, None (not annotated) or frozenset of allowed labels."""
        named: list[Label] = [*self.classes, None]
        named += [frozenset(self.classes[i] for i in members) for members in self.sets]
        return [named[i] for i in self.ids]

    def recoded(self, classes: Sequence[Any]) -> Labels:
        """The same labels in terms of other classes, which must contain every class used."""
        classes = _classes(classes, letters=True)
        if classes == self.classes:
            return self
        n_old, n_new = len(self.classes), len(classes)
        position = {name: i for i, name in enumerate(classes)}
        lookup = np.full(n_old + 1 + len(self.sets), n_new, np.int32)  # the full set stays full
        sets: list[frozenset[int]] = []
        for old in np.unique(self.ids[self.ids != n_old]).tolist():
            members = [old] if old < n_old else sorted(self.sets[old - n_old - 1])
            names = [self.classes[i] for i in members]
            unknown = [name for name in names if name not in position]
            if unknown:
                raise DataError(f"label {unknown[0]!r} is unknown; {_list(classes)}")
            if old < n_old:
                lookup[old] = position[names[0]]
            else:
                lookup[old] = n_new + 1 + len(sets)
                sets.append(frozenset(position[name] for name in names))
        return Labels(lookup[self.ids], tuple(sets), classes)

    def used(self) -> list[int]:
        """The classes that some annotated position may have, in order."""
        n = len(self.classes)
        ids = np.unique(self.ids).tolist()
        classes = {i for i in ids if i < n}
        return sorted(classes.union(*(self.sets[i - n - 1] for i in ids if i > n)))

    def allow(self, chosen: NDArray[Any]) -> NDArray[np.bool_]:
        """Whether each position may have the class that is chosen for it; -1: none."""
        n = len(self.classes)
        allowed: NDArray[np.bool_] = (self.ids == chosen) | ((self.ids == n) & (chosen >= 0))
        for t in np.flatnonzero(self.ids > n).tolist():
            allowed[t] = int(chosen[t]) in self.sets[self.ids[t] - n - 1]
        return allowed

    def allowed(self) -> NDArray[np.bool_]:
        """Boolean (N, L): the labels allowed at each position."""
        n = len(self.classes)
        allowed = np.zeros((len(self), n), bool)
        single = np.flatnonzero(self.ids < n)
        allowed[single, self.ids[single]] = True
        allowed[self.ids == n] = True
        for t in np.flatnonzero(self.ids > n).tolist():
            allowed[t, list(self.sets[self.ids[t] - n - 1])] = True
        return allowed


def check_label_count(n_labels: int, most: int | None = None) -> None:
    """Ask, or refuse, where there are so many labels that they are hardly labels.

    Parameters
    ----------
    n_labels : int
        The number of distinct labels.
    most : int, optional
        More are refused. None: more than 5,000 are, and more than 500 give a warning.

    Examples
    --------
    >>> check_label_count(12_000)
    Traceback (most recent call last):
    trellis.errors.DataError: 12000 distinct labels: is this the label column? Time and memory...
    """
    question = f"{n_labels} distinct labels: is this the label column?"
    if n_labels > (_MOST_LABELS if most is None else most):
        raise DataError(
            f"{question} Time and memory grow with their square; if it is, say so with "
            f"max_labels={n_labels} (--max-labels {n_labels})"
        )
    if most is None and n_labels > _MANY_LABELS:
        _log.warning("%s If it is, max_labels=%d (--max-labels) says so", question, n_labels)


def as_positions(positions: Any, n: int) -> Int64s | slice:
    """Some of n positions: a slice as it is, else integers, checked."""
    if isinstance(positions, slice):
        return positions
    return as_array(positions, np.int64, "positions", (None,), low=0, high=n)


def _classes(classes: Any, *, letters: bool = False) -> tuple[Any, ...]:
    """Classes, checked; with ``letters``, a string is a list of them."""
    if letters and isinstance(classes, str):
        return tuple(classes)
    labels = as_list(classes, "classes")
    for label in labels:
        if is_missing(label) or isinstance(label, Set):
            raise DataError(f"classes hold {label!r:.80}; expected labels")
    return tuple(plain_label(label, "classes") for label in labels)


def _label_set(members: Any, n: int) -> frozenset[int]:
    if type(members) is frozenset and members and all(type(i) is int for i in members):
        numbers = members
    else:
        listed = list(members) if isinstance(members, Set) else as_list(members, "label sets")
        numbers = frozenset(as_array(listed, np.int64, "label sets", (None,)).tolist())
    if not numbers:
        raise DataError("a label set is empty: allow at least one label or use None")
    if not 0 <= min(numbers) <= max(numbers) < n:
        raise DataError(f"a label set holds classes beyond 0..{n - 1}")
    return numbers


def _list(classes: Iterable[Any], quoted: bool = False) -> str:
    ordered = in_order(classes)
    names = list(map(repr, ordered)) if quoted else list(map(str, ordered))
    more = f", … ({len(names)} in all)" if len(names) > 12 else ""
    return f"known labels: {', '.join(names[:12])}{more}"


def _place(sample: int, position: int) -> str:
    return f"sample {sample}, position {position}"


def _members(labels: Set[Any], where: str) -> frozenset[Any]:
    """The labels of a set, as they are kept."""
    if not labels:
        raise DataError(f"label set at {where} is empty: allow at least one label or use None")
    for label in labels:
        if is_missing(label) or isinstance(label, Set):
            raise DataError(f"label set at {where} holds {label!r}; expected labels")
    return frozenset(plain_label(label, where) for label in labels)

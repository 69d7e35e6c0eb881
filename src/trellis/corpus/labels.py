"""Labels as sets: what is known about the label of every position.

Each position holds the id of a row of a boolean table (R, L): the set of labels it may have. The
first L rows are the single labels (a gold label is a set of one), row L is the full set (not
annotated); further rows are whatever sets occur, each once. So ``id < L`` *is* the gold label, and
the same ids serve partial annotation in training, constrained decoding and tag-scheme rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.errors import DataError

__all__ = ["Label", "Labels"]

Label = str | None | Set[str]
"""What a user may say of one position: its label, nothing, or the set of allowed labels."""


@dataclass(frozen=True)
class Labels:
    """Label sets of all positions of a corpus.

    Parameters
    ----------
    ids : int32 array (N,)
        Row of ``table`` for each position.
    table : bool array (R, L)
        The distinct label sets; rows 0..L-1 the single labels, row L the full set.
    classes : tuple of str
        The L label names.

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
    table: NDArray[np.bool_]
    classes: tuple[str, ...]

    def __post_init__(self) -> None:
        n = len(self.classes)
        if self.table.ndim != 2 or self.table.shape[1] != n or self.table.shape[0] <= n:
            raise DataError(f"label table must be (more than {n}, {n}), got {self.table.shape}")
        if not (np.array_equal(self.table[:n], np.eye(n, dtype=bool)) and self.table[n].all()):
            raise DataError("label table must start with the single labels and the full set")
        if not self.table.any(axis=1).all():
            raise DataError("a label set is empty: allow at least one label or use None")
        if self.ids.size and not 0 <= self.ids.min() <= self.ids.max() < len(self.table):
            raise DataError(f"label ids must lie in 0..{len(self.table) - 1}")

    def __len__(self) -> int:
        return len(self.ids)

    @classmethod
    def from_codes(cls, codes: NDArray[np.int32], names: Sequence[str]) -> Labels:
        """Gold labels from integer codes into ``names``; classes come out sorted."""
        order = sorted(range(len(names)), key=names.__getitem__)
        rank = np.empty(len(names), np.int32)
        rank[order] = np.arange(len(names), dtype=np.int32)
        ids = rank[codes] if len(names) else np.zeros(0, np.int32)
        return cls(ids, basic_table(len(names)), tuple(names[i] for i in order))

    @classmethod
    def from_lists(
        cls, y: Iterable[Sequence[Label]], classes: Sequence[str] | None = None
    ) -> Labels:
        """Labels from lists of str, None or sets of str; with ``classes``, others are refused."""
        known: dict[str, int] = {name: i for i, name in enumerate(classes or ())}
        closed = classes is not None
        singles: list[int] = []
        sets: dict[frozenset[str], int] = {}

        def code(label: str, place: str) -> int:
            if label not in known:
                if closed:
                    raise DataError(
                        f"label {label!r} at {place} is unknown; known labels: "
                        f"{', '.join(sorted(known)[:12])}"
                    )
                known[label] = len(known)
            return known[label]

        for s, sample in enumerate(y):
            if isinstance(sample, str):
                raise DataError(f"labels of sample {s} are a string; expected a list of labels")
            for t, label in enumerate(sample):
                if isinstance(label, str):  # the common case first; np.str_ is a str
                    singles.append(known[label] if label in known else code(label, _place(s, t)))
                elif label is None:
                    singles.append(-1)
                else:
                    members = _as_set(label, s, t)
                    for member in sorted(members):
                        code(member, _place(s, t))
                    singles.append(-2 - sets.setdefault(members, len(sets)))
        names = list(known) if closed else sorted(known)
        n = len(names)
        position = {name: i for i, name in enumerate(names)}
        renumber = np.array([position[name] for name in known], np.int32)
        table, rows = basic_table(n), []
        seen = {table[i].tobytes(): i for i in range(n, -1, -1)}
        extra: list[NDArray[np.bool_]] = []
        for members in sets:
            row = np.zeros(n, bool)
            row[[position[m] for m in members]] = True
            key = row.tobytes()
            if key not in seen:
                seen[key] = n + 1 + len(extra)
                extra.append(row)
            rows.append(seen[key])
        raw = np.array(singles, np.int32)
        lookup = np.concatenate([renumber, np.array([*rows[::-1], n], np.int32)])
        ids = lookup[raw]  # negative codes count from the end: -1 is None, -2 - k the k-th set
        return cls(
            ids.astype(np.int32), np.vstack([table, *extra]) if extra else table, tuple(names)
        )

    def take(self, positions: NDArray[Any] | slice) -> Labels:
        """Labels of some positions, in that order."""
        return Labels(self.ids[positions], self.table, self.classes)

    def tolist(self) -> list[Label]:
        """Each position's label, None (not annotated) or frozenset of allowed labels."""
        n = len(self.classes)
        named: list[Label] = [*self.classes, None]
        for row in self.table[n + 1 :]:
            named.append(frozenset(self.classes[i] for i in np.flatnonzero(row)))
        return [named[i] for i in self.ids]

    def recoded(self, classes: Sequence[str]) -> Labels:
        """The same labels in terms of other classes, which must contain every class used."""
        if tuple(classes) == self.classes:
            return self
        position = {name: i for i, name in enumerate(classes)}
        n_old, n_new = len(self.classes), len(classes)
        used = np.zeros(n_old, bool)
        for row in np.unique(self.ids):
            if row != n_old:
                used |= self.table[row]
        for i in np.flatnonzero(used):
            if self.classes[i] not in position:
                raise DataError(
                    f"label {self.classes[i]!r} is unknown; known labels: "
                    f"{', '.join(sorted(classes)[:12])}"
                )
        table = [*basic_table(n_new)]
        seen = {row.tobytes(): i for i, row in reversed(list(enumerate(table)))}
        lookup = np.full(len(self.table), n_new, np.int32)
        for old, row in enumerate(self.table):
            if old == n_old:
                continue
            new = np.zeros(n_new, bool)
            new[
                [
                    position[self.classes[i]]
                    for i in np.flatnonzero(row)
                    if self.classes[i] in position
                ]
            ] = True
            if not new.any():
                continue  # a class that no position uses
            key = new.tobytes()
            if key not in seen:
                seen[key] = len(table)
                table.append(new)
            lookup[old] = seen[key]
        return Labels(lookup[self.ids], np.array(table), tuple(classes))

    def allowed(self) -> NDArray[np.bool_]:
        """Boolean (N, L): the labels allowed at each position."""
        return self.table[self.ids]


def basic_table(n_labels: int) -> NDArray[np.bool_]:
    """The label sets every table starts with: the single labels, then the full set."""
    return np.vstack([np.eye(n_labels, dtype=bool), np.ones((1, n_labels), dtype=bool)])


def _place(sample: int, position: int) -> str:
    return f"sample {sample}, position {position}"


def _as_set(label: Any, sample: int, position: int) -> frozenset[str]:
    where = _place(sample, position)
    if not isinstance(label, Set):
        raise DataError(
            f"label at {where} is {label!r} of type {type(label).__name__}; "
            "expected a string, None (not annotated) or a set of strings"
        )
    if not label:
        raise DataError(f"label set at {where} is empty: allow at least one label or use None")
    for member in label:
        if not isinstance(member, str):
            raise DataError(f"label set at {where} holds {member!r}; expected strings")
    return frozenset(label)

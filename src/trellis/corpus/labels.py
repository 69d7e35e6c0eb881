"""Labels as sets: what is known about the label of every position.

Each position holds the id of a row of a boolean table (R, L): the set of labels it may have. The
first L rows are the single labels (a gold label is a set of one), row L is the full set (not
annotated); further rows are whatever sets occur, each once. So ``id < L`` *is* the gold label, and
the same ids serve partial annotation in training, constrained decoding and tag-scheme rules.

A set that happens to name every class keeps a row of its own: among more classes it still means
those it names, while «not annotated» means all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.errors import DataError

__all__ = ["Label", "Labels"]

Label = str | None | Set[str]
"""What a user may say of one position: its label, nothing, or the set of allowed labels."""


@dataclass(frozen=True, eq=False)
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
        if not self.table[n + 1 :].any(axis=1).all():
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
        cls, y: Iterable[Sequence[Label]], classes: Sequence[str] | None = None, *, first: int = 0
    ) -> Labels:
        """Labels from lists of str, None or sets of str; with ``classes``, others are refused.

        ``first`` is the number of the first sample, for messages.
        """
        closed = classes is not None
        known: dict[str, int] = {name: i for i, name in enumerate(classes or ())}
        if closed and len(known) != len(classes or ()):
            raise DataError(f"a class is named twice: {', '.join(classes or ())}")
        sets: dict[frozenset[str], int] = {}
        raw: list[int] = []  # a label's code, -1 for None, -2 - k for the k-th set

        def code(label: str, s: int, t: int) -> int:
            if label not in known:
                if closed:
                    raise DataError(f"label {label!r} at {_place(s, t)} is unknown; {_list(known)}")
                known[str(label)] = len(known)
            return known[label]

        for s, sample in enumerate(y, first):
            if isinstance(sample, str | Set | Mapping) or not isinstance(sample, Iterable):
                kind = type(sample).__name__
                raise DataError(
                    f"labels of sample {s} are of type {kind}; expected a list of labels"
                )
            for t, label in enumerate(sample):
                if isinstance(label, str):  # the common case first; np.str_ is a str
                    raw.append(known[label] if label in known else code(label, s, t))
                elif label is None:
                    raw.append(-1)
                else:
                    members = _as_set(label, s, t)
                    codes = [code(member, s, t) for member in sorted(members)]
                    only_one = len(codes) == 1
                    raw.append(codes[0] if only_one else -2 - sets.setdefault(members, len(sets)))
        names = tuple(known) if closed else tuple(sorted(known))
        position = {name: i for i, name in enumerate(names)}
        n = len(names)
        rows = np.zeros((len(sets), n), bool)
        for row, members in zip(rows, sets, strict=True):
            row[[position[member] for member in members]] = True
        # Negative codes count from the end of the lookup: None is -1, the k-th set -2 - k.
        set_ids = np.arange(n + len(sets), n - 1, -1)
        lookup = np.concatenate([[position[name] for name in known], set_ids]).astype(np.int32)
        return cls(lookup[np.array(raw, np.int32)], np.vstack([basic_table(n), rows]), names)

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
        n_old, n_new = len(self.classes), len(classes)
        position = {name: i for i, name in enumerate(classes)}
        new_index = np.array([position.get(name, -1) for name in self.classes], np.int64)
        known = new_index >= 0
        lookup = np.full(len(self.table), n_new, np.int32)  # row n_old, the full set, stays full
        extra: list[NDArray[np.bool_]] = []
        for old in np.unique(self.ids[self.ids != n_old]):
            members = np.flatnonzero(self.table[old])
            if not known[members].all():
                unknown = self.classes[members[~known[members]][0]]
                raise DataError(f"label {unknown!r} is unknown; {_list(classes)}")
            if old < n_old:
                lookup[old] = new_index[old]
            else:
                row = np.zeros(n_new, bool)
                row[new_index[members]] = True
                lookup[old] = n_new + 1 + len(extra)
                extra.append(row)
        table = np.vstack([basic_table(n_new), *extra])
        return Labels(lookup[self.ids], table, tuple(classes))

    def allowed(self) -> NDArray[np.bool_]:
        """Boolean (N, L): the labels allowed at each position."""
        return self.table[self.ids]


def basic_table(n_labels: int) -> NDArray[np.bool_]:
    """The label sets every table starts with: the single labels, then the full set."""
    return np.vstack([np.eye(n_labels, dtype=bool), np.ones((1, n_labels), dtype=bool)])


def _list(classes: Iterable[str]) -> str:
    names = sorted(classes)
    more = f", … ({len(names)} in all)" if len(names) > 12 else ""
    return f"known labels: {', '.join(names[:12])}{more}"


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

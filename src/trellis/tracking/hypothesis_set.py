r"""The set of hypotheses of a frame pair: everything that may have happened to its objects.

A hypothesis is an event of some objects of frame t, its *sources*, and of frame t + 1, its
*targets*, of one of the kinds of :mod:`trellis.tracking.event_kinds`:

========== ======= ======= =============================================
event      sources targets says that
========== ======= ======= =============================================
move       i       j       i is j
division   i       j, k    i has divided into j and k
appear               j     j was not seen before
disappear  i               i is not seen any more
split      i       j, k    i was detected as two objects (over-segmentation)
merge      i, k    j       i and k were detected as one (under-segmentation)
========== ======= ======= =============================================

A tracking is a choice :math:`y \in \{0, 1\}^H` of hypotheses that covers every object once: each
source has one fate, each target one past. Appearance and disappearance are hypotheses of every
object, so that there always is such a choice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import Bools, Int8s, Int32s, Int64s, as_array, held, known
from trellis.domains import instance, sequence_of, whole
from trellis.tracking.event_kinds import KINDS, EventKind
from trellis.tracking.objects import FramePair

__all__ = ["Hypotheses", "hypothesis_keys", "in_canonical_order", "place_of"]


@dataclass(frozen=True, eq=False)
class Hypotheses:
    """Hypotheses of one frame pair, by kind in the order of ``kinds``, then sources, then targets.

    Parameters
    ----------
    kind : int8, shape (H,)
        Index into ``kinds``; that of EVENTS, too, if it is one of those.
    source : int64, shape (H, 2)
        Rows of the sources, ascending; -1 for none.
    target : int64, shape (H, 2)
        Rows of the targets, ascending; -1 for none.
    kinds : tuple of EventKind
        The kinds of EVENTS, then those of one's own.

    Examples
    --------
    Source 0 divides into targets 0 and 1:

    >>> h = Hypotheses(np.array([1], np.int8), np.array([[0, -1]]), np.array([[0, 1]]))
    >>> len(h), h.covers(n_source=5).tolist()
    (1, [[0, 5, 6]])
    """

    kind: Int8s
    source: Int64s
    target: Int64s
    kinds: tuple[EventKind, ...] = field(default_factory=lambda: KINDS)

    def __post_init__(self) -> None:
        sequence_of(instance(EventKind), "a tuple of EventKind").check("kinds", self.kinds)
        kind = as_array(self.kind, np.int8, "kinds", (None,), low=0, high=len(self.kinds))
        ends = (
            as_array(a, np.int64, name, (len(kind), 2), low=-1)
            for a, name in ((self.source, "sources"), (self.target, "targets"))
        )
        for name, array in zip(("kind", "source", "target"), (kind, *ends), strict=True):
            vars(self)[name] = held(array, vars(self)[name])

    def __len__(self) -> int:
        return len(self.kind)

    def covers(self, n_source: int) -> Int32s:
        """Rows of the assignment problem that each hypothesis covers, -1 after the last.

        Source i has row i, target j has row ``n_source + j``.

        Parameters
        ----------
        n_source : int
            Number of sources of the pair.

        Returns
        -------
        int32, shape (H, 3)
            Rows, ascending.
        """
        whole(0, 2**31 - 1).check("n_source", n_source)
        target = np.where(self.target >= 0, self.target + n_source, -1)
        merge = self.source[:, 1] >= 0
        middle = np.where(merge, self.source[:, 1], target[:, 0])
        last = np.where(merge, target[:, 0], target[:, 1])
        rows = np.stack([self.source[:, 0], middle, last], axis=1)
        appear = self.source[:, 0] < 0
        rows[appear] = np.roll(rows[appear], -1, axis=1)
        return rows.astype(np.int32)

    def take(self, rows: NDArray[np.generic]) -> Hypotheses:
        """Return the hypotheses in these rows (or where a mask is true)."""
        return known(
            Hypotheses, kind=self.kind[rows], source=self.source[rows], target=self.target[rows],
            kinds=self.kinds,
        )  # fmt: skip

    def of(self, event: str) -> Bools:
        """Whether hypotheses are of the kind with this name."""
        names = [kind.name for kind in self.kinds]
        return np.asarray(self.kind == names.index(event))


def hypothesis_keys(hypotheses: Hypotheses, n: int, m: int) -> Int64s:
    """One number for each hypothesis, in canonical order; n sources, m targets."""
    rows = hypotheses.covers(n).astype(np.int64) + 1
    size = n + m + 1
    key = np.ravel_multi_index(
        (hypotheses.kind.astype(np.int64), rows[:, 0], rows[:, 1], rows[:, 2]),
        (len(hypotheses.kinds), size, size, size),
    )
    return np.asarray(key, dtype=np.int64)


def in_canonical_order(parts: Sequence[Hypotheses], n: int, m: int) -> Hypotheses:
    """All hypotheses of the parts, each once, in canonical order."""
    every = Hypotheses(
        np.concatenate([part.kind for part in parts]),
        np.concatenate([part.source for part in parts]),
        np.concatenate([part.target for part in parts]),
        parts[0].kinds,
    )
    _, first = np.unique(hypothesis_keys(every, n, m), return_index=True)
    return every.take(first)


def place_of(pair: FramePair) -> str:
    """Name a pair in a message."""
    return f"sequence {pair.sequence!r}, frame {pair.frame}"

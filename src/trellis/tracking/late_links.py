r"""Rows of a table of links that lead to a later frame than the next: objects that were missed.

A row (s, t, i, j, u) joins object i of frame t of sequence s with object j of frame u > t + 1. Let
the *fates* of (t, i) be all rows that leave it, the *pasts* of (u, j) all that lead to it. A late
row which is the only fate of its source and the only past of its target is a *gap*: one object,
missed in the frames t + 1, ..., u - 1. Any other is part of a division, a split or a merge, and is
no link; what else there is of that event goes on as the only link that it then is.

Either way, in the pair (t, t + 1) the source of a late row disappears and in (u - 1, u) its target
appears, unless another link names it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import Bools, Int64s
from trellis.files.table import Table
from trellis.tracking.objects import PairAnnotation

__all__ = ["LateLinks"]

_Pair = tuple[int, int]  # number of the sequence, first frame
_Key = tuple[int, int, int]  # number of the sequence, frame, id
_MOST_PASSED = 1000  # frames without any object that a link may pass over


class LateLinks:
    """The late rows among links, and what they say of pairs of frames.

    Attributes
    ----------
    near : bool, shape (n,)
        Which rows lead to the next frame.
    kinds_of_near : array of str, shape (n,)
        Kinds of the rows, "move" for what is left of an event with late rows.
    rows : list of int
        The late rows.
    n_beyond, n_single, n_half : int
        Late rows that are no links; that are moves, though called otherwise; and that are nothing
        known, since they may have a partner.
    """

    def __init__(
        self, table: Table, sequence: Int64s, frame: Int64s, ids: Int64s, kinds: NDArray[Any],
        *, complete: bool,
    ) -> None:  # fmt: skip
        self.table, self.complete = table, complete
        self._sequence, self._frame, self._ids = sequence, frame, ids
        self._until = _frames_of_targets(table, frame)
        self.near: Bools = self._until == frame + 1
        self.rows: list[int] = np.flatnonzero(~self.near).tolist()
        self.kinds_of_near = kinds.copy()
        self.n_beyond = self.n_single = self.n_half = 0
        self._gaps: dict[_Pair, list[tuple[int, int, int]]] = defaultdict(list)
        self._gone: dict[_Pair, set[int]] = defaultdict(set)
        self._begun: dict[_Pair, set[int]] = defaultdict(set)
        if self.rows:
            self._sort_out(kinds)

    def ends(self, row: int) -> tuple[_Key, _Key]:
        """Source and target of a row: number of the sequence, frame, id."""
        s = int(self._sequence[row])
        a, b = self._ids[row].tolist()
        return (s, int(self._frame[row]), a), (s, int(self._until[row]), b)

    def passed(self, there: Container[_Pair]) -> list[_Pair]:
        """Frames between the ends of late rows that are not there."""
        lacking: set[_Pair] = set()
        for row in self.rows:
            (s, t, _), (_, u, _) = self.ends(row)
            before = len(lacking)
            for frame in range(t + 1, u):
                if (s, frame) not in there:
                    lacking.add((s, frame))
                if len(lacking) - before > _MOST_PASSED:
                    raise self.table.fail(
                        row,
                        f"the link passes over more than {_MOST_PASSED} frames without objects, "
                        f"from {t} to {u}; correct its frames or remove it",
                    )
        return sorted(lacking)

    def added_to(self, annotations: Mapping[_Pair, PairAnnotation]) -> dict[_Pair, PairAnnotation]:
        """Annotations of pairs with what the late rows say of them."""
        result = dict(annotations)
        for pair in sorted({*self._gaps, *self._gone}):
            known = None if self.complete else ()
            note = result.get(pair, PairAnnotation((), known, known))
            linked = {source for source, _, _ in note.links}
            gaps = tuple(sorted(self._gaps.get(pair, ())))
            sources = {gap[0] for gap in gaps} | self._gone.get(pair, set()) - linked
            result[pair] = replace(
                note, gaps=gaps, known_sources=_with(note.known_sources, sources)
            )
        for pair, ids in sorted(self._begun.items()):
            note = result.get(pair, PairAnnotation((), (), ()))
            linked = {target for _, target, _ in note.links}
            result[pair] = replace(note, known_targets=_with(note.known_targets, ids - linked))
        return result

    def _sort_out(self, kinds: NDArray[Any]) -> None:
        fates: dict[_Key, list[int]] = defaultdict(list)
        pasts: dict[_Key, list[int]] = defaultdict(list)
        first: dict[tuple[_Key, _Key], int] = {}
        for row in range(len(self._frame)):
            source, target = self.ends(row)
            fates[source].append(row)
            pasts[target].append(row)
            before = first.setdefault((source, target), row)
            if before != row and not self.near[row]:
                raise self.table.fail(
                    row,
                    f"the link {source[2]} -> {target[2]} is already there "
                    f"({self.table.place(before)}); remove one of them",
                )
        for row in self.rows:
            source, target = self.ends(row)
            alone = len(fates[source]) == len(pasts[target]) == 1
            said = alone and kinds[row] not in {"", "move"}
            if said and kinds[row] != "single_daughter" and not self.complete:
                self.n_half += 1
                continue
            self.n_single += said
            if alone:
                self._gaps[source[:2]].append((source[2], target[2], target[1]))
            else:
                self.n_beyond += 1
                self._gone[source[:2]].add(source[2])
                for others in (fates[source], pasts[target]):
                    left = [other for other in others if self.near[other]]
                    if len(left) == 1 and len(others) > 1:
                        self.kinds_of_near[left] = "move"
            self._begun[target[0], target[1] - 1].add(target[2])


def _frames_of_targets(table: Table, frame: Int64s) -> Int64s:
    """Frame of each row's target: the next, unless a column says otherwise."""
    if "frame_target" not in table.columns:
        return frame + 1
    said = table.checked_numbers("frame_target", missing=True)
    empty = np.isnan(said)
    if empty.all():
        return frame + 1
    if empty.any():
        columns = {**table.columns, "frame_target": np.where(empty, frame + 1, said)}
        until = replace(table, columns=columns).integers("frame_target")
    else:
        until = table.integers("frame_target")
    wrong = np.flatnonzero(until <= frame)
    if wrong.size:
        row = int(wrong[0])
        raise table.fail(
            row,
            f"frame_target {until[row]} is not after frame {frame[row]}; a link leads from an "
            "earlier frame to a later one",
        )
    return until


def _with(known: tuple[int, ...] | None, more: set[int]) -> tuple[int, ...] | None:
    return None if known is None else tuple(sorted({*known, *more}))

"""Which positions share their weights.

The seed's algorithms have one weight for each expert and *position*, which suits samples of one
length whose positions mean something. The third word of one sentence has nothing to do with the
third word of another, so weights may be shared. A table (C, p) has one row for each context:

- ``"position"``: the place in the sample, C = l;
- ``"expert"``: a single row, one weight an expert;
- ``"label"``: what the expert itself says, so that expert j has one weight for each label: how far
  to trust it when it says so;
- a function from :class:`~trellis.experts.ExpertOutputs` to one hashable a position: any context,
  such as the label that most experts say or how many of them agree.

A context that training has not seen has no row: there an expert has its mean weight over the
contexts it spoke in.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import as_list
from trellis.errors import CorruptModelError, DataError
from trellis.experts.outputs import ExpertOutputs
from trellis.files.stored import check_range, header_value, take

__all__ = ["Cells", "Tie", "Tying"]

Tie = str | Callable[[ExpertOutputs], Sequence[Hashable]]


@dataclass(frozen=True, eq=False)
class Cells:
    """Rows of the weights: ``row_of_code`` (L,) if ``by_label``, else ``context`` (N,)."""

    context: NDArray[np.int64]
    row_of_code: NDArray[np.int64]
    by_label: bool

    def rows(self, codes: NDArray[np.int32], part: slice) -> NDArray[np.int64]:
        """Row of every expert at these positions, (n, p) or (n, 1)."""
        if self.by_label:
            return self.row_of_code[np.maximum(codes[part], 0)]
        return self.context[part, None]


class Tying:
    """The rows of a table of weights, and how often each was used in training."""

    def __init__(self, tie: Tie, n_experts: int) -> None:
        self.tie = tie
        self.row_of: dict[Hashable, int] = {0: 0} if tie == "expert" else {}
        self.visits = np.zeros((len(self.row_of), n_experts))

    @property
    def n_rows(self) -> int:
        """Number of contexts so far, C."""
        return len(self.row_of)

    @property
    def by_label(self) -> bool:
        """Whether an expert's row depends on what it says itself."""
        return self.tie == "label"

    def learn(self, outputs: ExpertOutputs) -> Cells:
        """Return the rows of these positions, with new rows for new contexts, and count them."""
        from trellis.kernels.experts import count_visits

        cells = self.cells(outputs, new=True)
        p = outputs.n_experts
        missing = self.n_rows - len(self.visits)
        self.visits = np.concatenate([self.visits, np.zeros((missing, p))])
        count_visits(outputs.codes, cells.context, cells.row_of_code, cells.by_label, self.visits)
        return cells

    def cells(self, outputs: ExpertOutputs, new: bool = False) -> Cells:
        """Return the rows of these positions; contexts that training lacks have row C."""
        none = np.zeros(0, np.int64)
        if self.by_label:
            used = np.zeros(len(outputs.labels) + 1, bool)  # the last one is for -1
            used[outputs.codes] = True
            keys = [label for label, use in zip(outputs.labels, used[:-1], strict=True) if use]
            row_of_label = dict(zip(keys, self._rows(keys, new), strict=True))
            rows = [row_of_label.get(label, self.n_rows) for label in outputs.labels]
            return Cells(none, np.array(rows, np.int64), True)
        if self.tie == "expert":
            return Cells(np.zeros(outputs.n_positions, np.int64), none, False)
        if self.tie == "position":
            place = np.arange(outputs.n_positions) - np.repeat(
                outputs.offsets[:-1], outputs.lengths
            )
            rows = self._rows(list(range(int(outputs.lengths.max()))), new) if len(outputs) else []
            return Cells(np.array(rows, np.int64)[place] if rows else place, none, False)
        assert callable(self.tie)
        contexts = as_list(self.tie(outputs), "contexts")
        if len(contexts) != outputs.n_positions:
            raise DataError(
                f"the context function gave {len(contexts)} contexts for {outputs.n_positions} "
                "positions"
            )
        return Cells(np.array(self._rows(contexts, new), np.int64), none, False)

    def _rows(self, keys: list[Any], new: bool) -> list[int]:
        if new:
            return [self.row_of.setdefault(key, len(self.row_of)) for key in keys]
        return [self.row_of.get(key, self.n_rows) for key in keys]

    def with_fallback(self, log_table: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the table (C + 1, p) with the row of unknown contexts, each expert's mean weight.

        By label, an expert has this mean also for the labels it never said itself.
        """
        top = log_table.max()
        weights = np.exp(log_table - top)
        total = np.maximum(self.visits.sum(axis=0), 1)
        with np.errstate(divide="ignore"):
            mean = np.log((weights * self.visits).sum(axis=0) / total) + top
        silent = self.visits.sum(axis=0) == 0
        if silent.any():
            mean = np.where(silent, np.log(weights.mean()) + top, mean)
        if self.by_label:
            log_table = np.where(self.visits > 0, log_table, mean)
        return np.concatenate([log_table, mean[None]])

    def state(self) -> dict[str, Any]:
        """What a model file holds of it."""
        return {"tie": self.tie, "contexts": list(self.row_of), "visits": self.visits}

    @classmethod
    def restored(cls, state: Mapping[str, Any], n_experts: int) -> Tying:
        """Undo :meth:`state`, checking everything."""
        tie = header_value(state, "tie", str, choices=("position", "expert", "label"))
        contexts = header_value(state, "contexts", list, items=str if tie == "label" else int)
        numbered = tie == "label" or contexts == list(range(len(contexts)))
        if not contexts or not numbered or len(set(contexts)) < len(contexts):
            raise CorruptModelError(f"the contexts are not those of tie={tie!r}")
        new = cls(tie, n_experts)
        new.row_of = {context: row for row, context in enumerate(contexts)}
        new.visits = take(state, "visits", np.float64, (len(contexts), n_experts))
        if tie == "expert" and len(contexts) > 1:
            raise CorruptModelError(f"the contexts are not those of tie={tie!r}")
        check_range(new.visits, 0, np.inf, "visits of contexts")
        return new

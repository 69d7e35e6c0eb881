"""What experts answer to samples, of whatever kind, and what is right where that is known.

Answers of the kind "labels" are laid out as arrays (:mod:`trellis.experts.outputs`); words and
spans stay lists ``outputs[j][i]``. Here both look the same: samples can be taken, and right answers
hidden.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import as_list
from trellis.errors import DataError
from trellis.experts.methods import kind_of
from trellis.experts.outputs import ExpertOutputs, answer_lists, as_outputs, checked_names

__all__ = ["Questions"]


@dataclass(frozen=True, eq=False)
class Questions:
    """Samples, their answers, and the right ones.

    Attributes
    ----------
    kind : str
        One of :data:`trellis.experts.methods.KINDS`.
    outputs : ExpertOutputs, or nested lists
        The first for labels.
    gold : list
        The right answer of each sample, or None.
    names : tuple of str
        Of the experts.

    Examples
    --------
    >>> asked = Questions.of([[["a"], ["b"]], [["a"], ["a"]]], [["a"], None])
    >>> asked.kind, asked.labelled.tolist(), asked.take(asked.labelled).columns
    ('labels', [0], [[['a']], [['a']]])
    """

    kind: str
    outputs: Any
    gold: list[Any]
    names: tuple[str, ...]

    @classmethod
    def of(
        cls,
        outputs: Any,
        gold: Any = None,
        kind: str = "auto",
        names: Sequence[str] | None = None,
    ) -> Questions:
        """Check what a user gives; "auto": the kind is told from the answers."""
        if isinstance(outputs, ExpertOutputs):
            if kind not in ("auto", "labels"):
                raise DataError(f"kind is {kind!r}, but outputs that are laid out are labels")
            kind, n, outputs = "labels", len(outputs), as_outputs(outputs, names=names)
        else:
            outputs = answer_lists(outputs)
            n = len(outputs[0])
            if kind == "auto":
                known = outputs if gold is None else [*outputs, as_list(gold, "gold")]
                kind = kind_of(known)
        right = [None] * n if gold is None else as_list(gold, "gold")
        if len(right) != n:
            raise DataError(f"gold has {len(right)} samples, the experts answer {n}")
        if not n:
            raise DataError("no samples to learn from")
        if kind != "labels":
            return cls(kind, outputs, right, checked_names(names, len(outputs)))
        if not isinstance(outputs, ExpertOutputs):
            outputs = as_outputs(outputs, names=names)
        return cls(kind, outputs, right, outputs.names)

    def __len__(self) -> int:
        return len(self.gold)

    @property
    def labelled(self) -> NDArray[np.int64]:
        """The samples whose right answers are known."""
        return np.flatnonzero([right is not None for right in self.gold])

    @property
    def columns(self) -> list[list[Any]]:
        """Answers of each expert, as lists."""
        if not isinstance(self.outputs, ExpertOutputs):
            columns: list[list[Any]] = self.outputs
            return columns
        names = np.array([*self.outputs.labels, None], dtype=object)  # -1 is the last one
        cuts = self.outputs.offsets[1:-1]
        return [
            [part.tolist() for part in np.split(names[codes], cuts)]
            for codes in self.outputs.codes.T
        ]

    @property
    def labels(self) -> list[str]:
        """All labels that anybody says."""
        known = {y for right in self.gold if right is not None for y in right}
        return sorted(known | set(self.outputs.labels))

    def some(self, order: NDArray[Any], samples: int, answers: int) -> NDArray[Any]:
        """The first of these samples, as many as allowed: samples, and answers to positions."""
        if isinstance(self.outputs, ExpertOutputs):
            lengths = self.outputs.lengths[order]
        else:
            rows = ([column[i] or () for column in self.outputs] for i in order)
            lengths = np.array([max(map(len, row)) for row in rows], np.int64)
        upto = np.cumsum(lengths) * len(self.names)
        return order[: max(2, min(samples, int((upto <= answers).sum())))]

    def take(self, samples: NDArray[Any]) -> Questions:
        """Some of the samples."""
        gold = [self.gold[i] for i in samples]
        if isinstance(self.outputs, ExpertOutputs):
            return replace(self, outputs=self.outputs.take(samples), gold=gold)
        columns = [[column[i] for i in samples] for column in self.outputs]
        return replace(self, outputs=columns, gold=gold)

    def without(self, samples: NDArray[Any], everything: bool) -> Questions:
        """The same, but what is right for these samples is not known.

        Only those that somebody can learn from are kept, unless everything is.
        """
        gold = list(self.gold)
        for i in samples.tolist():
            gold[i] = None
        hidden = replace(self, gold=gold)
        return hidden if everything else hidden.take(hidden.labelled)

r"""Which label is taken for which.

.. math:: C_{ab} = \#\{(i,t) : y_{it} = a,\ \hat y_{it} = b\},

rows gold, columns predicted. Positions whose gold entry is ``None`` or a set of several labels
are skipped: they have no row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.corpus.label_values import in_order, plain_label
from trellis.errors import DataError
from trellis.evaluation.pairs import Gold, Labels, check_lengths, checked_classes, single_label

__all__ = ["Confusion", "confusion"]

_WIDEST_TABLE = 20


@dataclass(frozen=True, eq=False)
class Confusion:
    """Confusion matrix of :func:`confusion`; ``str()`` gives a table.

    Attributes
    ----------
    matrix : (L, L) int64 array
        ``matrix[a, b]``: positions with gold label a and predicted label b.
    classes : tuple
        Labels of rows and columns.
    """

    matrix: NDArray[np.int64]
    classes: tuple[Any, ...]

    def most_confused(self, n: int = 10) -> list[tuple[Any, Any, int]]:
        """Up to `n` most frequent mistakes.

        Parameters
        ----------
        n : int, default=10

        Returns
        -------
        list of (gold, predicted, count)
            Most frequent first, equal counts in the order of `classes`.

        Examples
        --------
        >>> confusion([["A", "A", "B"]], [["B", "B", "B"]]).most_confused()
        [('A', 'B', 2)]
        """
        wrong = self.matrix - np.diag(np.diag(self.matrix))
        order = np.argsort(-wrong, axis=None, kind="stable")[: max(n, 0)]
        rows, columns = np.unravel_index(order, wrong.shape)
        return [
            (self.classes[a], self.classes[b], int(wrong[a, b]))
            for a, b in zip(rows, columns, strict=True)
            if wrong[a, b]
        ]

    def __str__(self) -> str:
        if len(self.classes) > _WIDEST_TABLE:
            lines = [f"{len(self.classes)} labels; most frequent mistakes (gold -> predicted):"]
            lines += [f"{count:8}  {a} -> {b}" for a, b, count in self.most_confused()]
            return "\n".join(lines)
        names = list(map(str, self.classes))
        first = max(len("gold"), *map(len, names))
        digits = len(str(self.matrix.max()))
        widths = [max(digits, len(name)) for name in names]
        header = "  ".join(f"{c:>{w}}" for c, w in zip(names, widths, strict=True))
        lines = [f"{'gold':>{first}}  {header}"]
        for label, row in zip(names, self.matrix, strict=True):
            cells = "  ".join(f"{count:>{w}}" for count, w in zip(row, widths, strict=True))
            lines.append(f"{label:>{first}}  {cells}")
        return "\n".join(lines)


def confusion(gold: Gold, predicted: Labels, classes: Sequence[Any] | None = None) -> Confusion:
    """Count how often each gold label is predicted as each label.

    Parameters
    ----------
    gold : list of lists of labels
        An entry may be None or a set of labels; unless the set is of one label it is skipped.
    predicted : list of lists of labels
    classes : sequence, optional
        Order of the labels. Labels that occur but are not listed (gold labels never seen in
        training, say) follow in order, as do all labels if there is no list.

    Raises
    ------
    DataError
        If lengths differ, no position is annotated, or `classes` names a label twice.

    Examples
    --------
    >>> print(confusion([["A", "A", "B"]], [["A", "B", "C"]]))
    gold  A  B  C
       A  1  1  0
       B  0  0  1
       C  0  0  0
    """
    listed = [] if classes is None else checked_classes(classes)
    check_lengths(gold, predicted)
    pairs: Counter[tuple[Any, Any]] = Counter()
    for i, (g, p) in enumerate(zip(gold, predicted, strict=True)):
        for t, (entry, label) in enumerate(zip(g, p, strict=True)):
            single = single_label(entry, i, t)
            if single is not None:
                pairs[single, plain_label(label, f"sample {i}, position {t} of predicted")] += 1
    if not pairs:
        raise DataError("nothing to evaluate: no position of gold has exactly one label")
    seen = {label for pair in pairs for label in pair}
    labels = [*listed, *in_order(seen.difference(listed))]
    index = {label: i for i, label in enumerate(labels)}
    matrix = np.zeros((len(labels), len(labels)), dtype=np.int64)
    for (a, b), count in pairs.items():
        matrix[index[a], index[b]] = count
    return Confusion(matrix, tuple(labels))

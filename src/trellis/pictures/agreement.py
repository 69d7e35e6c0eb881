r"""How often systems say the same.

.. math:: A_{jk} = \frac{\#\{t : h_j(t) = h_k(t)\}}{\#\{t : \text{both say something}\}}.

Systems are ordered so that those who agree stand together: by average linkage on 1 − A, its leaves
ordered so that the distances of neighbours add up to the least (Bar-Joseph et al. 2001). With gold
labels a row below has the accuracy of each.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from trellis.domains import flag, samples
from trellis.errors import DataError
from trellis.evaluation.pairs import single_label
from trellis.pictures.matrix import draw_matrix, matrix_size
from trellis.pictures.sheet import Sheet
from trellis.pictures.style import SEQUENTIAL

if TYPE_CHECKING:
    from trellis.experts import ExpertOutputs

__all__ = ["draw_agreement"]


def draw_agreement(
    outputs: Any,
    *,
    gold: Any = None,
    names: Sequence[str] | None = None,
    arrange: bool = True,
    path: str | os.PathLike[Any] | None = None,
    ax: Any = None,
    title: str | None = None,
) -> Any:
    """Draw the share of positions where each pair of systems agrees.

    Parameters
    ----------
    outputs : mapping from names to lists of lists of labels, ExpertOutputs, or a list of such lists
        What each system answers; None for a sample or a position that it says nothing about.
    gold : list of lists of labels, optional
        Right labels; None, or a set of several: not known. Adds the row of accuracies.
    names : list of str, optional
        Names of the systems, where they have none.
    arrange : bool, default=True
        Whether systems that agree are to stand together; else in the order given.
    path : path, optional
        File to write: .png, .svg or .pdf.
    ax : matplotlib Axes, optional
        Where to draw instead of on a new figure.
    title : str, optional

    Returns
    -------
    matplotlib Figure, or what was given as `ax`

    Raises
    ------
    DataError
        If systems answer different samples or lengths, or there are none.

    Examples
    --------
    >>> from trellis.pictures import draw_agreement
    >>> said = {"a": [["X", "Y"]], "b": [["Y", "X"]], "c": [["X", "Y"]]}
    >>> axes = draw_agreement(said, gold=[["X", "X"]]).axes[0]
    >>> sorted(label.get_text() for label in axes.get_yticklabels())
    ['a', 'accuracy', 'b', 'c']
    """
    sheet = Sheet(path, ax, title)
    flag.check("arrange", arrange)
    coded, code_of = _coded(outputs, names)
    agreement = _agreement(coded.codes)
    order = _arranged(agreement) if arrange else list(range(coded.n_experts))
    systems = [coded.names[j] for j in order]
    table = 100 * agreement[np.ix_(order, order)]
    np.fill_diagonal(table, np.nan)  # that a system agrees with itself is no news
    rows = list(systems)
    if gold is not None:
        accuracy = 100 * _accuracy(coded, _gold_codes(gold, coded, code_of))[order]
        table = np.vstack([table, accuracy])
        rows.append("accuracy")
    known = table[~np.isnan(table)]
    low, high = (np.floor(known.min()), np.ceil(known.max())) if len(known) else (0.0, 100.0)
    with sheet:
        (axes,) = sheet.panels(1, matrix_size(len(rows), systems))
        draw_matrix(
            axes, table, rows, systems, bar="positions with the same label [%]",
            number=lambda i, j: "" if np.isnan(table[i, j]) else f"{table[i, j]:.1f}",
            own=sheet.is_new, cmap=SEQUENTIAL, vmin=min(low, high - 1), vmax=high,
        )  # fmt: skip
        if gold is not None:
            axes.axhline(len(systems) - 0.5, color="white", linewidth=4)
            axes.get_yticklabels()[-1].set_style("italic")
        if title is not None:
            axes.set_title(title)
    return sheet.result


def _coded(
    outputs: Any, names: Sequence[str] | None
) -> tuple[ExpertOutputs, dict[Any, str] | None]:
    """Answers as codes, and the name that each label has there (None: its own)."""
    from trellis.experts.outputs import ExpertOutputs, answer_lists, as_outputs

    if isinstance(outputs, ExpertOutputs):
        return as_outputs(outputs, names=names), None
    if isinstance(outputs, Mapping):
        if names is not None:
            raise DataError("the mapping has names already: leave out names")
        names, outputs = [str(name) for name in outputs], list(outputs.values())
    # Labels may be of any kind; those of experts are strings.
    code_of: dict[Any, str] = {}
    answers = [
        [None if sample is None else _renamed(sample, code_of) for sample in system]
        for system in answer_lists(outputs)
    ]
    return as_outputs(answers, names=names), code_of


def _renamed(sample: Any, code_of: dict[Any, str]) -> Any:
    if not samples.accepts(sample):
        return sample  # which is refused with its place
    try:
        return [
            None if label is None else code_of.setdefault(label, str(len(code_of)))
            for label in sample
        ]
    except TypeError:
        raise DataError("labels must be hashable: strings, numbers, tuples; not lists") from None


def _gold_codes(
    gold: Any, coded: ExpertOutputs, code_of: dict[Any, str] | None
) -> NDArray[np.int64]:
    """Codes of gold labels; -1 where it is not known, -2 where no system ever says it."""
    samples.check("gold", gold)
    if len(gold) != len(coded):
        raise DataError(f"gold has {len(gold)} samples, the systems answer {len(coded)}")
    place = {label: code for code, label in enumerate(coded.labels)}
    codes: list[int] = []
    for i, (sample, length) in enumerate(zip(gold, coded.lengths.tolist(), strict=True)):
        samples.check(f"sample {i} of gold", sample)
        if len(sample) != length:
            raise DataError(
                f"gold has {len(sample)} labels for sample {i}, the systems give {length}"
            )
        for t, entry in enumerate(sample):
            label = single_label(entry, i, t)
            if label is None:
                codes.append(-1)
            else:
                name = label if code_of is None else code_of.get(label)
                codes.append(place.get(name, -2) if isinstance(name, str) else -2)
    return np.array(codes, dtype=np.int64)


def _agreement(codes: NDArray[np.int32]) -> NDArray[np.float64]:
    """Share of positions where each pair says the same, (p, p); NaN where it never meets."""
    p = codes.shape[1]
    shares = np.full((p, p), np.nan)
    for j in range(p):
        both = (codes >= 0) & (codes[:, [j]] >= 0)
        same = (both & (codes == codes[:, [j]])).sum(axis=0)
        n = both.sum(axis=0)
        shares[j, n > 0] = same[n > 0] / n[n > 0]
    return shares


def _accuracy(coded: ExpertOutputs, gold: NDArray[np.int64]) -> NDArray[np.float64]:
    asked = (coded.codes >= 0) & (gold[:, None] != -1)
    right = (asked & (coded.codes == gold[:, None])).sum(axis=0)
    n = asked.sum(axis=0)
    shares = np.full(len(n), np.nan)
    shares[n > 0] = right[n > 0] / n[n > 0]
    return shares


def _arranged(agreement: NDArray[np.float64]) -> list[int]:
    if len(agreement) < 3:
        return list(range(len(agreement)))
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import squareform

    distance = 1.0 - np.nan_to_num(agreement, nan=0.0)
    np.fill_diagonal(distance, 0.0)
    order = leaves_list(linkage(squareform(distance), "average", optimal_ordering=True)).tolist()
    # An order and its reverse are as good; the one in which the first system comes sooner is taken.
    return order if order.index(0) <= order.index(len(order) - 1) else order[::-1]

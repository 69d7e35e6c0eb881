"""The one rule for scoring held-out data: span F1 where there are spans, else token accuracy.

Spans are scored if three things hold: the model's labels are written in a tag scheme, the gold
labels are written in the same one, and every position has its label (spans with holes cannot be
counted).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from trellis.corpus.labels import Label
from trellis.corpus.schemes import detect_scheme, get_scheme
from trellis.evaluation.accuracy import token_accuracy
from trellis.evaluation.spans import span_scores

__all__ = ["held_out_score", "scoring_scheme"]


def scoring_scheme(
    scheme: str | None,
    classes: Iterable[str],
    gold: Sequence[Sequence[Label]],
    gold_classes: Iterable[str],
) -> str | None:
    """Tag scheme whose spans are to be scored, None for token accuracy.

    Parameters
    ----------
    scheme : str or None
        The model's own scheme; None tells it from ``classes``.
    classes : iterable of str
        Labels that the model predicts.
    gold : list of label lists
    gold_classes : iterable of str
        The labels of the gold data.

    Examples
    --------
    >>> scoring_scheme(None, ["B-X", "I-X", "O"], [["B-X", "O"]], ["B-X", "O"])
    'BIO'
    >>> scoring_scheme(None, ["B-X", "I-X", "O"], [["B-X", None]], ["B-X"]) is None
    True
    """
    scheme = scheme or detect_scheme(classes)
    complete = all(isinstance(label, str) for sample in gold for label in sample)
    if scheme is None or not complete or detect_scheme(gold_classes) != get_scheme(scheme).name:
        return None
    return scheme


def held_out_score(
    gold: Sequence[Sequence[Label]], predicted: Sequence[Sequence[str]], scheme: str | None
) -> float:
    """Span F1 in a scheme of :func:`scoring_scheme`; token accuracy if that is None.

    Examples
    --------
    >>> held_out_score([["B-X", "I-X", "O"]], [["B-X", "O", "O"]], "BIO")
    0.0
    >>> round(held_out_score([["B-X", "I-X", "O"]], [["B-X", "O", "O"]], None), 3)
    0.667
    """
    if scheme is None:
        return token_accuracy(gold, predicted)
    return span_scores(gold, predicted, scheme).f1

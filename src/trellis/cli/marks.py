"""What stands for «not annotated» in files of which ``--partial`` says that names are marked."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from trellis.errors import DataError

if TYPE_CHECKING:
    from trellis.corpus import Corpus

__all__ = ["check_not_marked", "with_marks"]

_NOT_ANNOTATED = "_"  # as write_conll writes it


def with_marks(model: Any, corpus: Corpus, dev: Corpus | None) -> tuple[Corpus, Corpus | None]:
    """Training and held-out data for a model; of its ``partial`` it depends what a ``_`` means.

    If names are marked, it is a word that nobody marked in training data, and one outside of all
    names in held-out data, where all are marked; else it is a label as any other.
    """
    from trellis.models.mentions import OUTSIDE

    if not _is_marked(model):
        return corpus, dev
    return _with_unmarked(corpus, None), dev if dev is None else _with_unmarked(dev, OUTSIDE)


def check_not_marked(model: Any, name: str) -> None:
    """Refuse a prepared file for a model that learns from marks."""
    if _is_marked(model):
        raise DataError(
            f"--partial compares sentences with each other, and {name} is the result of 'trellis "
            "prepare', which has their features only; give the file that it was made of"
        )


def _is_marked(model: Any) -> bool:
    return bool(getattr(model, "partial", "unknown") != "unknown")


def _with_unmarked(corpus: Corpus, label: str | None) -> Corpus:
    """A corpus with a label, or none, where there is the mark of what is not annotated."""
    from trellis.corpus.label_values import in_order

    labels = corpus.labels
    assert labels is not None
    if _NOT_ANNOTATED not in labels.classes:
        return corpus
    classes = tuple(c for c in labels.classes if c != _NOT_ANNOTATED)
    nothing = labels.ids == labels.classes.index(_NOT_ANNOTATED)
    rest = labels.without(np.flatnonzero(nothing)).recoded(classes)
    if label is not None:
        rest = rest.recoded(in_order({*classes, label}))
        ids = np.where(nothing, rest.classes.index(label), rest.ids).astype(np.int32)
        rest = replace(rest, ids=ids)
    return replace(corpus, labels=rest)

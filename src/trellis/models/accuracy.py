"""Accuracy of a model: the share of annotated positions labelled right.

Labels never seen in training count as wrong; a set of labels is met by any of its members.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.corpus import Corpus
from trellis.corpus.sample_weights import sample_weights
from trellis.errors import DataError

__all__ = ["accuracy"]


def accuracy(
    corpus: Corpus,
    predict: Callable[[Corpus], list[list[str]]],
    sample_weight: Sequence[float] | NDArray[Any] | None,
) -> float:
    """Accuracy of predictions on a corpus with labels, samples weighted."""
    if corpus.labels is None:
        raise DataError("score needs labels: pass y or a corpus that carries them")
    annotated = corpus.labels.ids != len(corpus.labels.classes)
    weights = sample_weights(sample_weight, len(corpus))
    weight = np.repeat(weights, corpus.lengths)[annotated]
    if not weight.sum() > 0:
        raise DataError("score needs at least one annotated position")
    position = {name: i for i, name in enumerate(corpus.labels.classes)}
    predicted = [position.get(p, -1) for sample in predict(corpus) for p in sample]
    ids = np.array(predicted, np.int64)
    allowed = corpus.labels.table[corpus.labels.ids, np.maximum(ids, 0)] & (ids >= 0)
    return float(np.average(allowed[annotated], weights=weight))

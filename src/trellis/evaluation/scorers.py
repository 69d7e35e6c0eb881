"""Scorers for scikit-learn: functions of a fitted model, samples and labels.

``GridSearchCV(crf, grid, scoring=scorer("accuracy"))`` and ``cross_val_score`` take them. Without
one they call ``score`` of the model, whose metric is "auto" (:mod:`trellis.evaluation.held_out`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from trellis.domains import one_of
from trellis.evaluation.held_out import METRICS

__all__ = ["Scorer", "scorer"]


@dataclass(frozen=True)
class Scorer:
    """Scores models by one metric; larger is better."""

    metric: str

    def __call__(self, model: Any, X: Any, y: Any = None, **more: Any) -> float:
        """Score of a fitted model; ``more`` are other arguments of its ``score``."""
        return float(model.score(X, y, metric=self.metric, **more))


def scorer(metric: str = "auto") -> Scorer:
    """Return a scorer for ``scoring=`` of scikit-learn.

    Parameters
    ----------
    metric : str
        "auto", "f1" (spans), "accuracy", "sequences", "macro_f1" or "weighted_f1" (labels).

    Examples
    --------
    >>> from sklearn.model_selection import cross_val_score
    >>> from trellis import ChainCRF
    >>> from trellis.evaluation import scorer
    >>> X, y = [["the", "cat"], ["a", "dog"]] * 4, [["D", "N"]] * 8
    >>> cross_val_score(ChainCRF(random_state=0), X, y, cv=2, scoring=scorer("sequences"))
    array([1., 1.])
    """
    one_of(*METRICS).check("metric", metric)
    return Scorer(metric)

"""How CRFs on trees and graphs are trained: as all CRFs, on samples with edges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from trellis.corpus import Corpus, Label
from trellis.models.crf_training import CRFTraining
from trellis.models.graph_model import GraphModel
from trellis.problems import GraphLogLikelihood

__all__ = ["GraphCRFTraining"]


class GraphCRFTraining(CRFTraining, GraphModel):
    """What CRFs on trees and graphs have in common; not used by itself."""

    _objective = GraphLogLikelihood

    def partial_fit(
        self,
        X: Any,
        y: Sequence[Sequence[Label]] | None = None,
        *,
        edges: Sequence[Any] | None = None,
        edge_types: Sequence[Sequence[str]] | None = None,
        classes: Sequence[str] | None = None,
        sample_weight: Sequence[float] | NDArray[Any] | None = None,
    ) -> Self:
        """Learn from one batch of a stream: one pass over it at the initial rate.

        Features not seen before are added; labels and types of edges are fixed by the first call.
        """
        batch = self._batch(X, y, edges, edge_types, classes, sample_weight)
        return self._learn_batch(*batch)

    def predict_marginals(
        self,
        X: Any,
        *,
        edges: Sequence[Any] | None = None,
        edge_types: Sequence[Sequence[str]] | None = None,
        constraints: Sequence[Sequence[Label]] | None = None,
    ) -> list[NDArray[np.float64]]:
        """Probability of every label at every node."""
        raise NotImplementedError  # abstract

    def _marginals_or_none(self, corpus: Corpus) -> NDArray[np.float64] | None:
        found = self.predict_marginals(corpus)
        return found[0] if found else None

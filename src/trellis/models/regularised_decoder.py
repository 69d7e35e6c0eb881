"""Decoding with two models: a complex one regularised by a simple one (Sun et al. 2017).

A model of a complex structure fits more and overfits more than one of a simple structure. Decoded
together, the labelling predicted is the best by the sum of their scores,

    ŷ = argmax_y  s_complex(x, y) + strength · s_simple(x, y),

in one Viterbi pass. For CRFs the scores are log-probabilities up to a constant of x, so that this
is the product of the two probabilities. A simple model is, for instance, one trained with
``piece_size=1``: it has no edges at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.corpus import Label, as_corpus
from trellis.corpus.corpus import split
from trellis.corpus.label_values import as_objects
from trellis.domains import number
from trellis.errors import DataError
from trellis.estimator import check_fitted
from trellis.models.prediction import Predictor
from trellis.structures import ChainPotentials, best

__all__ = ["RegularisedDecoder"]


class RegularisedDecoder:
    """Predict with a complex model and a simple one at once.

    Parameters
    ----------
    complex_model, simple_model : fitted chain models
        Any two with the same labels; their features may differ.
    strength : float
        Weight of the simple model's scores.

    Examples
    --------
    >>> from trellis import ChainCRF
    >>> from trellis.models import RegularisedDecoder
    >>> X = [["the", "cat", "sat"], ["the", "dog", "ran"]] * 5
    >>> y = [["D", "N", "V"], ["D", "N", "V"]] * 5
    >>> rich = ChainCRF(rich_edges=True, random_state=0).fit(X, y)
    >>> simple = ChainCRF(piece_size=1, random_state=0).fit(X, y)
    >>> RegularisedDecoder(rich, simple).predict([["the", "cat", "ran"]])
    [['D', 'N', 'V']]
    """

    def __init__(
        self, complex_model: Predictor, simple_model: Predictor, strength: float = 1.0
    ) -> None:
        for model in (complex_model, simple_model):
            if not isinstance(model, Predictor) or model.structure != "chain":
                raise DataError("the two models must be chain models")
            check_fitted(model)
        if complex_model.classes_ != simple_model.classes_:
            raise DataError("the two models have different labels; train both on the same data")
        if complex_model.states_ != simple_model.states_:
            raise DataError(
                "the labels of one model are refined inside, those of the other are not; give both "
                "the same encoding"
            )
        number(at_least=0).check("strength", strength)
        self.complex_model = complex_model
        self.simple_model = simple_model
        self.strength = strength

    def predict(
        self, X: Any, *, constraints: Sequence[Sequence[Label]] | None = None
    ) -> list[list[str]]:
        """Best labels of each sequence by the sum of both scores."""
        corpus = as_corpus(X)
        names = as_objects(self.complex_model.state_labels)
        ids = np.empty(corpus.n_positions, np.int32)
        blocks = (
            model.potentials(corpus, constraints, small=True)
            for model in (self.complex_model, self.simple_model)
        )
        at = 0
        for (a, _), (b, _) in zip(*blocks, strict=True):
            assert isinstance(a, ChainPotentials) and isinstance(b, ChainPotentials)
            together = ChainPotentials(
                a.node + self._times(b.node), a.trans + self._times(b.trans), a.offsets
            )
            ids[at : at + len(a.node)] = best(together)[0]
            at += len(a.node)
        return split(names[ids].tolist(), corpus.offsets)

    def _times(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Scores times the strength; what is forbidden stays so."""
        forbidden = np.isneginf(scores)
        return np.where(forbidden, scores, self.strength * np.where(forbidden, 0.0, scores))

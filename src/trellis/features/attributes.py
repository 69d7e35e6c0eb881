"""Named attributes given by the user: the encoder matches them by name.

Real-valued attributes are divided by their root mean square over the positions that have them, so
that one step size and one penalty suit all; for indicators that is 1, and they stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.corpus import Corpus, Features
from trellis.errors import DataError
from trellis.features.encoded import Encoded, drop_unknown
from trellis.stored import pack_strings

__all__ = ["AttributeEncoder"]


class AttributeEncoder:
    """Encode corpora that come with named attributes.

    Examples
    --------
    >>> from trellis.corpus import as_corpus
    >>> from trellis.features import AttributeEncoder
    >>> encoder = AttributeEncoder()
    >>> encoder.learn(as_corpus([[["a", "b"], ["b"]]])).indices
    array([0, 1, 1], dtype=int32)
    >>> encoder.encode(as_corpus([[["b", "unseen"]]])).indices
    array([1], dtype=int32)
    """

    kind = "attributes"

    def __init__(self, names: Sequence[str] = (), scale: NDArray[np.float32] | None = None) -> None:
        self.vocabulary = {name: i for i, name in enumerate(names)}
        self.scale = np.ones(len(names), np.float32) if scale is None else scale

    @property
    def n_features(self) -> int:
        """Number of features known."""
        return len(self.vocabulary)

    def learn(self, corpus: Corpus) -> Encoded:
        """Encode a corpus, adding attributes not seen before."""
        features = self._features(corpus)
        count = np.bincount(features.indices, minlength=len(features.names))
        scale = np.ones(len(count))
        if features.values is not None:
            squares = features.values.astype(np.float64) ** 2
            total = np.bincount(features.indices, squares, minlength=len(count))
            scale = np.sqrt(np.divide(total, count, out=np.ones_like(total), where=total > 0))
        new: dict[str, int] = {}
        for i in np.flatnonzero(count).tolist():
            if features.names[i] not in self.vocabulary:
                new.setdefault(features.names[i], i)
        known = len(self.vocabulary)
        # The scales first: if this is interrupted, spare ones do no harm.
        new_scale = scale[list(new.values())].astype(np.float32)
        self.scale = np.concatenate([self.scale[:known], new_scale])
        self.vocabulary.update({name: known + k for k, name in enumerate(new)})
        return self.encode(corpus)

    def encode(self, corpus: Corpus) -> Encoded:
        """Encode a corpus; unknown attributes are left out."""
        features = self._features(corpus)
        ids = self._mapping(features.names)[features.indices]
        if features.values is not None:
            values = features.values / np.append(self.scale, np.float32(1))[ids]
        elif np.any(self.scale != 1):
            values = 1 / np.append(self.scale, np.float32(1))[ids]
        else:
            values = np.zeros(0, np.float32)
        return drop_unknown(
            Encoded(corpus.offsets, features.indptr, ids, values.astype(np.float32))
        )

    def _features(self, corpus: Corpus) -> Features:
        if corpus.features is not None:
            return corpus.features
        if corpus.n_positions == 0:  # nothing to predict, of whatever kind
            return Features(np.zeros(1, np.int64), np.zeros(0, np.int32), None, [])
        raise DataError(
            "this model learned from ready-made features (dicts, lists or arrays); "
            "give it samples of the same kind"
        )

    def _mapping(self, names: Sequence[str]) -> NDArray[np.int32]:
        get = self.vocabulary.get
        return np.array([get(name, -1) for name in names], np.int32)

    def names(self, features: Sequence[int] | NDArray[Any]) -> list[str]:
        """Names of some attributes."""
        names = list(self.vocabulary)
        return [names[i] for i in features]

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Everything needed to rebuild the encoder: a JSON header and arrays."""
        packed = pack_strings(list(self.vocabulary))
        arrays = {f"names.{key}": array for key, array in packed.items()}
        return {"kind": self.kind}, {**arrays, "scale": self.scale}

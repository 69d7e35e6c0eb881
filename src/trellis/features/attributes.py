"""Named attributes given by the user: the encoder matches them by name.

Real-valued attributes are divided by their root mean square over the positions that have them, so
that one step size and one penalty suit all; for indicators that is 1, and they stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.corpus import Corpus
from trellis.errors import DataError
from trellis.features.encoded import Encoded, drop_unknown
from trellis.persistence import pack_strings

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
        known = len(self.vocabulary)
        occurs = np.bincount(features.indices, minlength=len(features.names)) > 0
        vocabulary = self.vocabulary
        for i in np.flatnonzero(occurs):
            vocabulary.setdefault(features.names[i], len(vocabulary))
        new_scale = np.ones(len(vocabulary) - known, np.float32)
        if features.values is not None and len(new_scale):
            ids = self._mapping(features.names)[features.indices]
            squares = features.values.astype(np.float64) ** 2
            total = np.bincount(ids, squares, minlength=len(vocabulary))[known:]
            count = np.bincount(ids, minlength=len(vocabulary))[known:]
            mean = total / np.maximum(count, 1)
            new_scale = np.where(mean > 0, np.sqrt(mean), 1.0).astype(np.float32)
        self.scale = np.concatenate([self.scale, new_scale])
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

    def _features(self, corpus: Corpus) -> Any:
        if corpus.features is None:
            if corpus.n_positions == 0:
                from trellis.corpus import Features

                empty = np.zeros(0, np.int32)
                return Features(np.zeros(corpus.n_positions + 1, np.int64), empty, None, [])
            raise DataError(
                "this model learned from ready-made features (dicts, lists or arrays); "
                "give it samples of the same kind"
            )
        return corpus.features

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

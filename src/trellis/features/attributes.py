"""Named attributes given by the user: the encoder matches them by name.

Real-valued attributes are divided by their root mean square over the positions that have them, so
that one step size and one penalty suit all; for indicators that is 1, and they stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import as_array
from trellis.corpus import Corpus, Features
from trellis.domains import instance, strings
from trellis.errors import DataError
from trellis.features.encoded import Encoded, Encoder, Parts, drop_unknown, joined
from trellis.features.nametable import NameTable

__all__ = ["AttributeEncoder"]

_CHUNK = 1 << 16


class AttributeEncoder(Encoder):
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

    def __init__(
        self, names: Sequence[str] | NameTable = (), scale: NDArray[np.float32] | None = None
    ) -> None:
        if not isinstance(names, NameTable):
            strings.check("names", names)
        if scale is None:
            scale = np.ones(len(names), np.float32)
        self.scale = as_array(scale, np.float32, "scale", (len(names),), finite=True)
        distinct = isinstance(names, NameTable) or len(set(names)) == len(names)
        if not distinct or (self.scale <= 0).any():
            raise DataError("names must differ, and scales be positive")
        self.vocabulary = names if isinstance(names, NameTable) else NameTable(names)

    @property
    def scale(self) -> NDArray[np.float32]:
        """What values of each attribute are divided by (F,)."""
        return self._divisor[:-1]

    @scale.setter
    def scale(self, scale: NDArray[np.float32]) -> None:
        self._divisor = np.append(scale, np.float32(1))  # code −1, unknown, picks the 1
        self._unscaled = not np.any(scale != 1)

    @property
    def n_features(self) -> int:
        return len(self.vocabulary)

    def learn_into(self, corpus: Corpus, parts: Parts) -> None:
        features = self._features(corpus)
        names, indices = features.names, features.indices
        count = np.zeros(len(names), np.int64)
        total = np.zeros(len(count))
        for a in range(0, len(indices), _CHUNK):
            here = slice(a, a + _CHUNK)
            np.add.at(count, indices[here], 1)
            if features.values is not None:
                squares = features.values[here].astype(np.float64) ** 2
                np.add.at(total, indices[here], squares)
        scale = np.sqrt(np.divide(total, count, out=np.ones_like(total), where=total > 0))
        known = self.n_features
        new: dict[str, int] = {}
        for i in np.flatnonzero((count > 0) & (self.vocabulary.find(names) < 0)).tolist():
            new.setdefault(names[i], i)
        # The scales first: if this is interrupted, spare ones do no harm.
        new_scale = scale[list(new.values())].astype(np.float32)
        self.scale = np.concatenate([self.scale[:known], new_scale])
        self.vocabulary.extend(list(new))
        for part in self._encode(corpus):
            parts.append(part)

    def encode(self, corpus: Corpus) -> Encoded:
        return joined(corpus.offsets, self._encode(corpus))

    def _encode(self, corpus: Corpus) -> Iterator[Encoded]:
        features = self._features(corpus)
        mapping = self.vocabulary.find(features.names)
        plain = features.values is None and self._unscaled
        for a in range(0, len(features.indptr) - 1, _CHUNK):
            indptr = features.indptr[a : a + _CHUNK + 1]
            here = slice(indptr[0], indptr[-1])
            ids = mapping[features.indices[here]]
            values = np.zeros(0, np.float32)
            if not plain:
                raw = np.float32(1) if features.values is None else features.values[here]
                with np.errstate(over="ignore"):  # what is infinite is refused later on
                    values = (raw / self._divisor[ids]).astype(np.float32)
            bounds = np.array([0, len(indptr) - 1])  # where samples end is not looked at
            yield drop_unknown(Encoded.made(bounds, indptr - indptr[0], ids, values))

    def _features(self, corpus: Corpus) -> Features:
        instance(Corpus).check("corpus", corpus)
        if corpus.features is not None:
            return corpus.features.only_used()
        if corpus.n_positions == 0:  # nothing to predict, of whatever kind
            return Features(np.zeros(1, np.int64), np.zeros(0, np.int32), None, [])
        raise DataError(
            "this model learned from ready-made features (dicts, lists or arrays); "
            "give it samples of the same kind"
        )

    def names(self, features: Sequence[int] | NDArray[Any]) -> list[str]:
        n = self.n_features
        return self.vocabulary[as_array(features, np.int64, "features", (None,), low=0, high=n)]

    def crossed(self) -> NDArray[np.bool_]:
        return np.zeros(self.n_features, bool)  # attributes do not say

    def groups(self) -> NDArray[np.int32]:
        known: dict[str, int] = {}  # those with the same name before «=» belong together
        names = (name.split("=", 1)[0] for name in self.vocabulary)
        return np.array([known.setdefault(name, len(known)) for name in names], np.int32)

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        return {"kind": self.kind}, {**self.vocabulary.pack("names."), "scale": self.scale}

    def only(self, keep: NDArray[np.bool_]) -> tuple[AttributeEncoder, NDArray[np.int64]]:
        kept = np.flatnonzero(keep)
        return AttributeEncoder(self.names(kept), self.scale[kept]), kept

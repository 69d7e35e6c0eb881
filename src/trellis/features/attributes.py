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
from trellis.files.stored import pack_strings

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

    def __init__(self, names: Sequence[str] = (), scale: NDArray[np.float32] | None = None) -> None:
        strings.check("names", names)
        self.vocabulary = {name: i for i, name in enumerate(names)}
        self.scale: NDArray[np.float32] = np.ones(len(names), np.float32)
        if scale is not None:
            self.scale = as_array(scale, np.float32, "scale", (len(names),), finite=True)
        if len(self.vocabulary) < len(names) or (self.scale <= 0).any():
            raise DataError("names must differ, and scales be positive")

    @property
    def n_features(self) -> int:
        return len(self.vocabulary)

    def learn_into(self, corpus: Corpus, parts: Parts) -> None:
        features = self._features(corpus)
        count = np.zeros(len(features.names), np.int64)
        total = np.zeros(len(count))
        for a in range(0, len(features.indices), _CHUNK):
            here = slice(a, a + _CHUNK)
            np.add.at(count, features.indices[here], 1)
            if features.values is not None:
                squares = features.values[here].astype(np.float64) ** 2
                np.add.at(total, features.indices[here], squares)
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
        for part in self._encode(corpus):
            parts.append(part)

    def encode(self, corpus: Corpus) -> Encoded:
        return joined(corpus.offsets, self._encode(corpus))

    def _encode(self, corpus: Corpus) -> Iterator[Encoded]:
        features = self._features(corpus)
        get = self.vocabulary.get
        mapping = np.array([get(name, -1) for name in features.names], np.int32)
        divisor = np.append(self.scale, np.float32(1))  # code −1, unknown, picks the 1
        plain = features.values is None and not np.any(self.scale != 1)
        for a in range(0, len(features.indptr) - 1, _CHUNK):
            indptr = features.indptr[a : a + _CHUNK + 1]
            here = slice(indptr[0], indptr[-1])
            ids = mapping[features.indices[here]]
            values = np.zeros(0, np.float32)
            if not plain:
                raw = np.float32(1) if features.values is None else features.values[here]
                values = (raw / divisor[ids]).astype(np.float32)
            bounds = np.array([0, len(indptr) - 1])  # where samples end is not looked at
            yield drop_unknown(Encoded.made(bounds, indptr - indptr[0], ids, values))

    def _features(self, corpus: Corpus) -> Features:
        instance(Corpus).check("corpus", corpus)
        if corpus.features is not None:
            return corpus.features
        if corpus.n_positions == 0:  # nothing to predict, of whatever kind
            return Features(np.zeros(1, np.int64), np.zeros(0, np.int32), None, [])
        raise DataError(
            "this model learned from ready-made features (dicts, lists or arrays); "
            "give it samples of the same kind"
        )

    def names(self, features: Sequence[int] | NDArray[Any]) -> list[str]:
        names, n = list(self.vocabulary), self.n_features
        return [names[i] for i in as_array(features, np.int64, "features", (None,), low=0, high=n)]

    def crossed(self) -> NDArray[np.bool_]:
        return np.zeros(self.n_features, bool)  # attributes do not say

    def groups(self) -> NDArray[np.int32]:
        known: dict[str, int] = {}  # those with the same name before «=» belong together
        names = (name.split("=", 1)[0] for name in self.vocabulary)
        return np.array([known.setdefault(name, len(known)) for name in names], np.int32)

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        arrays = pack_strings(list(self.vocabulary), "names.")
        return {"kind": self.kind}, {**arrays, "scale": self.scale}

    def only(self, keep: NDArray[np.bool_]) -> tuple[AttributeEncoder, NDArray[np.int64]]:
        kept = np.flatnonzero(keep)
        return AttributeEncoder(self.names(kept), self.scale[kept]), kept

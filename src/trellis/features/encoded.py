"""What a model sees of a corpus: feature ids in CSR form, and the encoder that makes them.

An *encoder* turns corpora into features with a vocabulary learned from the training corpus. There
are two: templates over columns (:mod:`trellis.features.encoder`) and named attributes given by the
user (:mod:`trellis.features.attributes`).

Encoders work on *parts*, chunks of consecutive samples, each an :class:`Encoded` of its own; where
parts are kept, in memory or on disk, is the business of whoever asks for them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from trellis.corpus import Corpus
from trellis.corpus.whole_numbers import for_kernels

__all__ = ["Encoded", "Encoder"]


@dataclass(frozen=True)
class Encoded:
    """Features of all positions: CSR arrays (``values`` is empty when all are indicators)."""

    offsets: NDArray[np.int64]
    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    values: NDArray[np.float32]

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(a.nbytes for a in (self.offsets, self.indptr, self.indices, self.values))


class Parts(Protocol):
    """Encoded chunks of a corpus, in order, wherever they are kept."""

    def append(self, part: Encoded, /) -> None:
        """Add a part."""
        ...

    def __iter__(self) -> Iterator[Encoded]:
        """All parts, in order."""
        ...

    def rewrite(self, change: Callable[[Encoded], Encoded]) -> None:
        """Change every part; it may only lose entries."""
        ...


class PartList(list[Encoded]):
    """Parts in memory."""

    def rewrite(self, change: Callable[[Encoded], Encoded]) -> None:
        """Change every part."""
        self[:] = [change(part) for part in self]


def joined(offsets: NDArray[np.int64], parts: Iterable[Encoded]) -> Encoded:
    """One :class:`Encoded` of all parts; ``offsets`` are those of the whole corpus."""
    kept = list(parts)
    shift = np.cumsum([0] + [len(part.indices) for part in kept])
    indptr = [part.indptr[1:] + s for part, s in zip(kept, shift[:-1], strict=True)]
    return Encoded(
        for_kernels(offsets),
        np.concatenate([np.zeros(1, np.int64), *indptr]),
        np.concatenate([np.zeros(0, np.int32), *(part.indices for part in kept)]),
        np.concatenate([np.zeros(0, np.float32), *(part.values for part in kept)]),
    )


class Encoder(ABC):
    """Turns corpora into features of a fixed or growing vocabulary."""

    @property
    @abstractmethod
    def n_features(self) -> int:
        """Number of features known."""

    def learn(self, corpus: Corpus) -> Encoded:
        """Encode a corpus, adding features not seen before to the vocabulary."""
        parts = PartList()
        self.learn_into(corpus, parts)
        return joined(corpus.offsets, parts)

    @abstractmethod
    def learn_into(self, corpus: Corpus, parts: Parts) -> None:
        """As ``learn``, part by part, for a corpus whose features need not fit into memory."""

    @abstractmethod
    def encode(self, corpus: Corpus) -> Encoded:
        """Encode a corpus; features not in the vocabulary are left out."""

    @abstractmethod
    def names(self, features: Sequence[int] | NDArray[Any]) -> list[str]:
        """Readable names of some features: attributes, or templates and values."""

    @abstractmethod
    def crossed(self) -> NDArray[np.bool_]:
        """Which features the templates ask to be crossed with label pairs (F,)."""

    @abstractmethod
    def groups(self) -> NDArray[np.int32]:
        """Group of each feature (F,): those of one template belong together."""

    @abstractmethod
    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Everything needed to rebuild the encoder: a JSON header and arrays."""


def drop_unknown(encoded: Encoded) -> Encoded:
    """Remove entries whose id is negative."""
    keep = encoded.indices >= 0
    if keep.all():
        return encoded
    before = np.concatenate([[0], np.cumsum(keep)])
    values = encoded.values[keep] if encoded.values.size else encoded.values
    return Encoded(encoded.offsets, before[encoded.indptr], encoded.indices[keep], values)


def subset(arrays: Mapping[str, NDArray[Any]], prefix: str) -> dict[str, NDArray[Any]]:
    """Arrays whose name starts with ``prefix``, without it."""
    return {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}

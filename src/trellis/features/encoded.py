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
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import as_array, as_offsets, for_kernels, held, known
from trellis.corpus import Corpus
from trellis.errors import DataError

__all__ = ["Encoded", "Encoder"]


@dataclass(frozen=True)
class Encoded:
    """Features of all positions: CSR arrays (``values`` is empty when all are indicators).

    The arrays are copied and checked; what encoders make needs neither (:meth:`made`).

    Parameters
    ----------
    offsets : int64, shape (S + 1,)
        Sample s is the positions ``offsets[s]:offsets[s + 1]``.
    indptr : int64, shape (N + 1,)
        Position t has the features ``indices[indptr[t]:indptr[t + 1]]``.
    indices : int32, shape (E,)
        Numbers of features.
    values : float32, shape (E,) or (0,)
        Their values.

    Raises
    ------
    DataError
        If the arrays do not fit each other, or a value is not finite.

    Examples
    --------
    >>> Encoded([0, 2], [0, 1, 3], [0, 0, 4], []).n_features
    5
    """

    offsets: NDArray[np.int64]
    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    values: NDArray[np.float32]

    def __post_init__(self) -> None:
        indices = as_array(self.indices, np.int32, "feature indices", (None,), low=0)
        values = as_array(self.values, np.float32, "feature values", (None,), finite=True)
        if len(values) not in (0, len(indices)):
            raise DataError(f"there are {len(values)} feature values for {len(indices)} indices")
        indptr = as_offsets(self.indptr, "feature indptr", end=len(indices))
        arrays = {
            "offsets": as_offsets(self.offsets, end=len(indptr) - 1), "indptr": indptr,
            "indices": indices, "values": values,
        }  # fmt: skip
        for name, array in arrays.items():
            vars(self)[name] = held(array, vars(self)[name])

    @classmethod
    def made(
        cls,
        offsets: NDArray[np.int64],
        indptr: NDArray[np.int64],
        indices: NDArray[np.int32],
        values: NDArray[np.float32],
    ) -> Encoded:
        """Features that are known to be right; the arrays are held as they are."""
        return known(cls, offsets=offsets, indptr=indptr, indices=indices, values=values)

    def cut(self, offsets: NDArray[np.int64]) -> Encoded:
        """The same positions as other samples, whose offsets are known to be right."""
        return Encoded.made(offsets, self.indptr, self.indices, self.values)

    @cached_property
    def n_features(self) -> int:
        """One more than the greatest number of a feature."""
        return int(self.indices.max(initial=-1)) + 1

    def arguments(self) -> Any:
        """The features as kernels take them (:class:`trellis.kernels.scoring.Features`)."""
        from trellis.kernels.scoring import Features

        return Features(*map(for_kernels, (self.indptr, self.indices, self.values)))

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
    if len(kept) == 1:
        return kept[0].cut(offsets)
    shift = np.cumsum([0] + [len(part.indices) for part in kept])
    indptr = [part.indptr[1:] + s for part, s in zip(kept, shift[:-1], strict=True)]
    return Encoded.made(
        offsets,
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

    @abstractmethod
    def only(self, keep: NDArray[np.bool_]) -> tuple[Encoder, NDArray[np.int64]]:
        """An encoder of the features ``keep`` (F,) alone, and their old numbers in its order."""


def drop_unknown(encoded: Encoded) -> Encoded:
    """Remove entries whose id is negative."""
    keep = encoded.indices >= 0
    if keep.all():
        return encoded
    before = np.concatenate([[0], np.cumsum(keep)])
    values = encoded.values[keep] if encoded.values.size else encoded.values
    return Encoded.made(encoded.offsets, before[encoded.indptr], encoded.indices[keep], values)


def subset(arrays: Mapping[str, NDArray[Any]], prefix: str) -> dict[str, NDArray[Any]]:
    """Arrays whose name starts with ``prefix``, without it."""
    return {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}

r"""What training said of some nodes of a sample, for when the same sample is to be labelled.

A graph some of whose nodes are annotated is mostly both: what is learned from, and what is to be
labelled. The prediction wanted is

.. math:: p(y_v \mid x, \; y_u \in A_u \text{ for all } u),

:math:`A_u` being the labels that node u may have. So a model remembers :math:`A` of samples that
were annotated in part, under a digest of their features and edges, and keeps to it when it meets
the same sample again. Samples whose labels were all known, or none, are not remembered.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import Bools, Int64s
from trellis.corpus.corpus import bounds
from trellis.errors import CorruptModelError
from trellis.files.stored import check_range, take
from trellis.problems import LabelProblem

__all__ = ["KnownLabels"]

_BYTES = 16


@dataclass(frozen=True, eq=False)
class KnownLabels:
    """Label sets of the samples that were annotated in part.

    Parameters
    ----------
    samples : dict of bytes to int32 arrays (n,)
        For each sample, under its digest, the rows of ``table`` that its nodes have.
    table : bool array (R, L)
        Sets of labels.
    """

    samples: dict[bytes, NDArray[np.int32]]
    table: Bools

    @classmethod
    def of(cls, problem: LabelProblem) -> Self | None:
        """What is known of the samples of a problem; None if of each all is known, or nothing."""
        chosen = np.flatnonzero(problem.annotated & ~problem.complete)
        if not len(chosen):
            return None
        offsets, ids = problem.offsets, problem.labels.ids
        marks = _digests(problem, chosen)
        samples = {
            mark: ids[offsets[s] : offsets[s + 1]].copy()
            for s, mark in zip(chosen.tolist(), marks, strict=True)
        }
        return cls(samples, problem.labels.table)

    def and_later(self, others: KnownLabels | None) -> KnownLabels:
        """These and others; what the others say of a sample holds."""
        if others is None:
            return self
        moved = {mark: rows + len(self.table) for mark, rows in others.samples.items()}
        return KnownLabels(self.samples | moved, np.concatenate([self.table, others.table]))

    def allowed(self, problem: LabelProblem) -> Bools | None:
        """Labels (N, L) that the nodes of a problem may have; None if no sample is known."""
        answer = None
        offsets = problem.offsets
        # Others are as long as none that is known, mostly: those need no digest.
        lengths = {len(rows) for rows in self.samples.values()}
        maybe = np.flatnonzero(np.isin(np.diff(offsets), sorted(lengths)))
        for s, mark in zip(maybe.tolist(), _digests(problem, maybe), strict=True):
            rows = self.samples.get(mark)
            if rows is None:
                continue
            if answer is None:
                answer = np.ones((int(offsets[-1]), self.table.shape[1]), bool)
            answer[offsets[s] : offsets[s + 1]] = self.table[rows]
        return answer

    # ---------------------------------------------------------------- files

    def state(self) -> dict[str, NDArray[Any]]:
        """The arrays of a model file."""
        marks = np.frombuffer(b"".join(self.samples), np.uint8).reshape(-1, _BYTES)
        rows = list(self.samples.values())
        return {
            "known.digests": marks,
            "known.offsets": bounds(np.array([len(each) for each in rows])),
            "known.rows": np.concatenate([np.zeros(0, np.int32), *rows]).astype(np.int32),
            "known.table": self.table.astype(np.uint8),
        }

    @classmethod
    def from_state(cls, arrays: Mapping[str, NDArray[Any]], n_labels: int) -> Self | None:
        """The same from the arrays of a model file, checked; None if it has none."""
        if "known.digests" not in arrays:
            return None
        marks = take(arrays, "known.digests", np.uint8, (None, _BYTES))
        offsets = take(arrays, "known.offsets", np.int64, (len(marks) + 1,))
        rows = take(arrays, "known.rows", np.int32, (None,))
        table = take(arrays, "known.table", np.uint8, (None, n_labels))
        if offsets[0] != 0 or offsets[-1] != len(rows) or (np.diff(offsets) < 0).any():
            raise CorruptModelError("bounds of the samples known do not fit them")
        check_range(rows, 0, len(table), "sets of labels known")
        if not table.any(axis=1).all():
            raise CorruptModelError("a node is known to have no label at all")
        parts = np.split(rows, offsets[1:-1]) if len(marks) else []
        samples = {mark.tobytes(): part for mark, part in zip(marks, parts, strict=True)}
        return cls(samples, table > 0)


def _digests(problem: LabelProblem, chosen: Int64s) -> Iterator[bytes]:
    """What tells some samples from all others: their features, edges and types of edges."""
    e, offsets, ends = problem.encoded, problem.offsets, problem.edge_offsets
    own = problem.edge_features
    for s in chosen.tolist():
        first, last = offsets[s], offsets[s + 1]
        entries = slice(int(e.indptr[first]), int(e.indptr[last]))
        links = slice(int(ends[s]), int(ends[s + 1]))
        digest = blake2b(digest_size=_BYTES)
        parts = [
            np.diff(e.indptr[first : last + 1]), e.indices[entries],
            e.values[entries] if e.values.size else e.values,
            problem.edges[links] - first, problem.types[links],
        ]  # fmt: skip
        if own is not None:
            entries = slice(int(own.indptr[links.start]), int(own.indptr[links.stop]))
            parts += [own.indices[entries], own.values[entries] if own.values.size else own.values]
        for part in parts:
            digest.update(np.ascontiguousarray(part).tobytes())
        yield digest.digest()

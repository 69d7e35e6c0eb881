"""A chunk of a corpus as codes of atoms, and the keys of conjunctions over it.

A term has a *digit* wherever its template is evaluated: the code of its atom where it looks, with
the boundary symbols before, or −1 for nothing. A conjunction's key is the mixed-radix number of its
terms' digits. One that looks at parents is evaluated at each node; one with a bag once for each
pair of a node and a node around it.

Boundary symbols are two for each distance beyond a sample (before, after), then one for each
distance above a root.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import for_kernels
from trellis.corpus import Corpus
from trellis.features.atoms import Atom
from trellis.features.neighbourhood import Bags, Neighbourhood
from trellis.features.templates import TYPE, Term

__all__ = ["CodedChunk", "Marks"]


class Marks(NamedTuple):
    """How many boundary symbols there are: at both ends of samples, and above roots."""

    sides: int = 0
    above: int = 0

    @property
    def n(self) -> int:
        """All of them."""
        return self.sides + self.above

    def name(self, mark: int) -> str:
        """Name of a boundary symbol."""
        if mark >= self.sides:
            return f"<above {mark - self.sides + 1}>"
        return f"<{('before', 'after')[mark % 2]} {mark // 2 + 1}>"


@dataclass(frozen=True)
class CodedChunk:
    """Codes of atoms on a chunk.

    ``codes`` (atoms, n) are those of its positions; ``place`` has the row of each atom, by
    identity; ``types`` (m,) are the codes of the types of its edges; ``around`` is None where no
    template looks along edges.
    """

    chunk: Corpus
    codes: NDArray[np.int32]
    place: Mapping[int, int]
    around: Neighbourhood | None
    types: NDArray[np.int32]

    def keys(
        self, terms: Sequence[Term], atoms: Sequence[Atom], radices: Sequence[int], marks: Marks
    ) -> NDArray[np.int64]:
        """Keys of a conjunction at all positions."""
        from trellis.kernels.coding import fold_terms

        rows = [
            (self.place[id(atom)], term.offset, radix)
            for atom, term, radix in zip(atoms, terms, radices, strict=True)
        ]
        keys = np.empty(self.chunk.n_positions, np.int64)
        offsets = for_kernels(self.chunk.offsets)
        fold_terms(self.codes, np.array(rows, np.int64), offsets, marks.n, keys)
        return keys

    def keys_along(
        self, terms: Sequence[Term], atoms: Sequence[Atom], radices: Sequence[int], marks: Marks
    ) -> NDArray[np.int64]:
        """Keys of one that looks along edges: at all positions, or at all pairs of its bag."""
        bags = self.bags(terms)
        keys = np.zeros(self.chunk.n_positions if bags is None else len(bags.nodes), np.int64)
        for term, atom, radix in zip(terms, atoms, radices, strict=True):
            digits = self._digits(term, atom, marks, bags)
            keys = np.where((keys < 0) | (digits < 0), -1, keys * radix + digits)
        return keys

    def bags(self, terms: Sequence[Term]) -> Bags | None:
        """The nodes around each that a conjunction's bag is of, if it has one."""
        along = next((term.along for term in terms if term.is_bag), None)
        if along is None:
            return None
        assert self.around is not None
        return self.around.bags(along)

    def _digits(self, term: Term, atom: Atom, marks: Marks, bags: Bags | None) -> NDArray[np.int64]:
        """Digits of a term of a conjunction that looks along edges."""
        if term.is_bag:
            assert bags is not None
            codes = self.types[bags.edges] if term.call == TYPE else self._codes(atom)[bags.nodes]
            return np.where(codes < 0, -1, codes.astype(np.int64) + marks.n)
        digits = (
            self._above(term, atom, marks)
            if term.along
            else self.keys([Term(term.column, term.call, term.offset)], [atom], [1], marks)
        )
        return digits if bags is None else digits[bags.owner]

    def _above(self, term: Term, atom: Atom, marks: Marks) -> NDArray[np.int64]:
        """Digits of a term that looks at a parent."""
        assert self.around is not None
        if term.call == TYPE:
            where, codes = self.around.edge_up(term.steps), self.types
        else:
            where, codes = self.around.up(term.steps), self._codes(atom)
        found = _taken(codes, where)
        digits = np.where(found < 0, -1, found + marks.n)
        return np.where(where < 0, marks.sides - 1 - where, digits) if marks.n else digits

    def shifted(self, codes: NDArray[np.int32], term: Term) -> NDArray[np.int64]:
        """Codes (n,) where a term that is no bag looks; −1 beyond the sample or a root."""
        from trellis.kernels.coding import fold_terms

        if term.along:
            assert self.around is not None
            return _taken(codes, self.around.up(term.steps))
        keys = np.empty(len(codes), np.int64)
        one = np.array([[0, term.offset, 1]])
        fold_terms(for_kernels(codes)[None], one, for_kernels(self.chunk.offsets), 0, keys)
        return keys

    def _codes(self, atom: Atom) -> NDArray[np.int32]:
        row: NDArray[np.int32] = self.codes[self.place[id(atom)]]
        return row


def _taken(codes: NDArray[np.int32], where: NDArray[np.int64]) -> NDArray[np.int64]:
    """Codes of some places; −1 for what is none."""
    found = np.full(len(where), -1, np.int64)
    there = where >= 0
    found[there] = codes[where[there]]
    return found

r"""Detected objects of two consecutive frames, and what is known of how they belong together.

A frame holds n objects, each with an id, a centre (x, y) or (x, y, z) and any number of measured
columns. Every object of frame t has one *fate* (it moves, divides, disappears, ...) and every
object of frame t + 1 one *past*. An annotation says so of all objects, of some, or of none:

- ``links`` lists pairs (source id, target id, kind);
- an object that no link names appeared or disappeared if it is among ``known_sources`` or
  ``known_targets``, and is not annotated if it is not;
- ``gaps`` lists sources that were missed in frame t + 1 and are seen again later, as (source id,
  target id, frame of the target). Within this pair they disappear, and within the pair that the
  target's frame ends the target appears.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import Float64s, Int64s, as_array, held, known
from trellis.domains import Domain, instance, nothing, number, sequence_of, text, whole
from trellis.errors import DataError

if TYPE_CHECKING:
    import scipy.sparse

__all__ = [
    "EVENTS",
    "FramePair",
    "Link",
    "Objects",
    "PairAnnotation",
    "checked_events",
    "checked_links",
    "checked_pairs",
]


EVENTS = ("move", "division", "appear", "disappear", "split", "merge")
"""Names of the kinds of events (:mod:`trellis.tracking.event_kinds`)."""


class _Link(NamedTuple):
    sequence: str
    frame: int
    source_id: int
    target_id: int
    kind: str
    frame_target: int


class Link(_Link):
    """One line of a table of links: from an object of ``frame`` to one of ``frame_target``.

    The latter is the next frame unless it is said: an object may be missed for a frame or more.

    Examples
    --------
    >>> Link("film", 3, 0, 2, "move").frame_target, Link("film", 3, 0, 2, "move", 5).gap
    (4, 1)
    """

    __slots__ = ()

    def __new__(
        cls, sequence: str, frame: int, source_id: int, target_id: int, kind: str,
        frame_target: int | None = None,
    ) -> Self:  # fmt: skip
        """Make a link, to the next frame if none is named."""
        after = frame + 1 if frame_target is None else frame_target
        return super().__new__(cls, sequence, frame, source_id, target_id, kind, after)

    @property
    def gap(self) -> int:
        """Number of frames between the two in which the object was missed."""
        return self.frame_target - self.frame - 1

    @property
    def ends(self) -> tuple[str, int, int, int, int]:
        """What is linked, whatever the kind: sequence, frames and ids of source and target."""
        return self.sequence, self.frame, self.source_id, self.frame_target, self.target_id


@dataclass(frozen=True, eq=False)
class Objects:
    """Objects of one frame, or any selection of them: columns of equal length.

    Parameters
    ----------
    ids : int64, shape (n,)
        Ids within the frame, each once in a frame.
    position : float64, shape (n, 2) or (n, 3)
        Centres x, y or x, y, z; in one unit of length, so that distances mean something.
    columns : mapping of str to float64, shape (n,)
        Measured features; NaN where a value is missing.

    Examples
    --------
    >>> cells = Objects(np.array([7, 9]), np.zeros((2, 2)), {"area": np.array([30.0, 40.0])})
    >>> len(cells), cells["area"].tolist(), cells.take(np.array([1, 1]))["area"].tolist()
    (2, [30.0, 40.0], [40.0, 40.0])
    """

    ids: Int64s
    position: Float64s
    columns: Mapping[str, Float64s] = field(default_factory=dict)

    def __post_init__(self) -> None:
        instance(Mapping).check("columns", self.columns)
        ids = as_array(self.ids, np.int64, "ids", (None,))
        position = as_array(self.position, np.float64, "positions")
        width = 3 if position.ndim == 2 and position.shape[1] == 3 else 2
        position = as_array(position, np.float64, "positions", (len(ids), width))
        columns = {}
        for name, values in self.columns.items():
            text.check("the name of a column", name)
            columns[name] = as_array(values, np.float64, f"values of {name!r}", (len(ids),))
        vars(self).update(
            ids=held(ids, self.ids), position=held(position, self.position),
            columns={name: held(a, self.columns[name]) for name, a in columns.items()},
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def dimensions(self) -> int:
        """Number of coordinates of a centre, 2 or 3."""
        return int(self.position.shape[1])

    def __getitem__(self, column: str) -> Float64s:
        return self.columns[column]

    def __contains__(self, column: object) -> bool:
        return column in self.columns

    def take(self, rows: NDArray[Any]) -> Objects:
        """Return the objects in these rows (or where a mask is true), in this order."""
        columns = {name: values[rows] for name, values in self.columns.items()}
        return known(Objects, ids=self.ids[rows], position=self.position[rows], columns=columns)


@dataclass(frozen=True)
class PairAnnotation:
    """What is known of a frame pair; plain tuples, so that it can be written as JSON.

    Parameters
    ----------
    links : tuple of (source id, target id, kind)
        Kind is "move", "division", "split", "merge" or one of your own; a division or split has one
        link for each of its two targets, a merge one for each of its two sources.
    known_sources, known_targets : tuple of int, or None
        Ids of the objects whose fate or past is annotated, those that links name included or not;
        None: all of them.
    gaps : tuple of (source id, target id, frame of the target)
        Moves to a later frame than the next. The sources are known, listed or not; they disappear
        in this pair.

    Examples
    --------
    >>> note = PairAnnotation(((0, 0, "move"),), known_sources=(1,), known_targets=())
    >>> PairAnnotation.from_dict(note.as_dict()) == note
    True
    """

    links: tuple[tuple[int, int, str], ...] = ()
    known_sources: tuple[int, ...] | None = None
    known_targets: tuple[int, ...] | None = None
    gaps: tuple[tuple[int, int, int], ...] = ()

    def __post_init__(self) -> None:
        links = tuple(_link(link) for link in _listed(self.links, "links"))
        vars(self)["links"] = links
        vars(self)["gaps"] = tuple(
            _record(gap, (whole(), whole(), whole()), "a gap of an annotation")
            for gap in _listed(self.gaps, "gaps")
        )
        for name in ("known_sources", "known_targets"):
            ids = getattr(self, name)
            if ids is not None:
                vars(self)[name] = tuple(_listed(ids, name))
                sequence_of(whole(), "a tuple of ids").check(name, vars(self)[name])

    @property
    def complete(self) -> bool:
        """Whether every object is annotated."""
        return self.known_sources is None and self.known_targets is None

    def as_dict(self) -> dict[str, Any]:
        """Return what JSON can hold; gaps if there are any."""
        said: dict[str, Any] = {
            "links": [list(link) for link in self.links],
            "known_sources": None if self.known_sources is None else list(self.known_sources),
            "known_targets": None if self.known_targets is None else list(self.known_targets),
        }
        return said | {"gaps": [list(gap) for gap in self.gaps]} if self.gaps else said

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> PairAnnotation:
        """Undo :meth:`as_dict`."""

        def ids(known: Sequence[int] | None) -> tuple[int, ...] | None:
            return None if known is None else tuple(int(i) for i in known)

        links = tuple((int(a), int(b), str(kind)) for a, b, kind in value.get("links", ()))
        gaps = tuple((int(a), int(b), int(t)) for a, b, t in value.get("gaps", ()))
        return cls(links, ids(value.get("known_sources")), ids(value.get("known_targets")), gaps)


@dataclass(frozen=True, eq=False)
class FramePair:
    """Two consecutive frames of a sequence, or a patch of them.

    Parameters
    ----------
    sequence : str
        Name of the movie.
    frame : int
        Number of the first frame.
    source, target : Objects
        Objects of the first and of the second frame, with centres of as many coordinates.
    annotation : PairAnnotation or None
        What is known of the pair; None: nothing.
    extent : tuple of 4 or 6 floats
        Least x, y (and z), then greatest x, y (and z) of the field of view of the sequence (not of
        a patch), for the distance to its border. (): it has no border.
    relations : mapping of str to scipy.sparse.csr_array, shape (n + m, n + m)
        What is known of two objects together, by name, such as the pixels that their masks have in
        common: the n sources come first, then the m targets. On the diagonal is what concerns an
        object and the other frame as a whole. Features may ask for them
        (:class:`~trellis.tracking.features.EventFeature`).
    """

    sequence: str
    frame: int
    source: Objects
    target: Objects
    annotation: PairAnnotation | None = None
    extent: tuple[float, ...] = ()
    relations: Mapping[str, scipy.sparse.csr_array] = field(default_factory=dict)

    def __post_init__(self) -> None:
        text.check("sequence", self.sequence)
        whole(-(2**62), 2**62).check("frame", self.frame)
        instance(Objects).check("source", self.source)
        instance(Objects).check("target", self.target)
        (nothing | instance(PairAnnotation)).check("annotation", self.annotation)
        n = self.source.dimensions
        if self.target.dimensions != n:
            raise DataError(
                f"sequence {self.sequence!r}, frame {self.frame}: the centres of source have {n} "
                f"coordinates, those of target {self.target.dimensions}; give both x and y, or "
                "both x, y and z"
            )
        words = "four numbers" if n == 2 else "six numbers, the least x, y, z and the greatest"
        sequence_of(number(infinite=True), words).check("extent", self.extent)
        extent = tuple(self.extent) or (-np.inf,) * n + (np.inf,) * n
        if len(extent) != 2 * n:
            raise DataError(f"extent must be {words}, got {self.extent!r:.80}")
        # Integers may be too long for arrays.
        vars(self)["extent"] = tuple(map(float, extent))
        instance(Mapping).check("relations", self.relations)
        size = len(self.source) + len(self.target)
        for name, matrix in self.relations.items():
            if getattr(matrix, "format", "") != "csr" or matrix.shape != (size, size):
                raise DataError(
                    f"sequence {self.sequence!r}, frame {self.frame}: the relation {name!r} is not "
                    f"a scipy.sparse.csr_array of shape ({size}, {size}), for all sources and then "
                    "all targets"
                )

    @property
    def dimensions(self) -> int:
        """Number of coordinates of a centre, 2 or 3."""
        return self.source.dimensions

    def part(
        self, sources: NDArray[Any], targets: NDArray[Any], annotation: PairAnnotation | None = None
    ) -> FramePair:
        """Return the pair of some objects, those in these rows (or where masks are true)."""
        every = np.arange(len(self.source)), np.arange(len(self.target)) + len(self.source)
        kept = np.concatenate([every[0][sources], every[1][targets]])
        return replace(
            self,
            source=self.source.take(sources),
            target=self.target.take(targets),
            annotation=annotation,
            relations={name: matrix[kept][:, kept] for name, matrix in self.relations.items()},
        )


def checked_links(links: Iterable[Link]) -> list[Link]:
    """Links as a list; raises if one is none."""
    fields = (text, whole(), whole(), whole(), text)
    checked = []
    for link in _listed(links, "links"):
        said = (*fields, whole()) if isinstance(link, tuple | list) and len(link) > 5 else fields
        one = Link(*_record(link, said, "a link"))
        if one.gap < 0:
            raise DataError(f"{link!r:.80} is not a link: its target is not in a later frame")
        checked.append(one)
    return checked


def checked_events(events: Iterable[Any]) -> list[tuple[str, int, int, str]]:
    """Appearances and disappearances as a list of sequence, frame, id and kind, checked."""
    fields = (text, whole(), whole(), text)
    return [_record(event, fields, "an event") for event in _listed(events, "events")]


def checked_pairs(pairs: Iterable[FramePair]) -> list[FramePair]:
    """Frame pairs as a list; raises if one is none."""
    listed = list(_listed(pairs, "pairs"))
    sequence_of(instance(FramePair), "a list of frame pairs").check("pairs", listed)
    return listed


def _link(link: Any) -> tuple[int, int, str]:
    source, target, kind = _record(link, (whole(), whole(), text), "a link of an annotation")
    return source, target, kind


def _record(values: Any, fields: tuple[Domain, ...], what: str) -> Any:
    fit = isinstance(values, tuple | list) and len(values) == len(fields)
    if not fit or not all(f.accepts(v) for f, v in zip(fields, values, strict=True)):
        raise DataError(f"{values!r:.80} is not {what}")
    return tuple(values)


def _listed(values: Any, what: str) -> Iterable[Any]:
    """What can be gone through; raises if it cannot."""
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise DataError(f"{what} must be a list, got {values!r:.80}")
    if isinstance(values, np.ndarray) and not values.ndim:
        raise DataError(f"{what} must be a list, got a number")
    return values

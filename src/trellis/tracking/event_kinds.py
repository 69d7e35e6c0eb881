r"""Kinds of events: what may happen to objects between two frames, each kind a small class.

An event joins a sources of frame t and b targets of frame t + 1, :math:`a + b \le 3`:

========== ===== ==================================================== ===========================
kind       a, b  says that                                            tracks
========== ===== ==================================================== ===========================
move       1, 1  source i is target j                                 go on
division   1, 2  i has divided into j and k                           end; j and k are daughters
appear     0, 1  j was not seen before                                begin
disappear  1, 0  i is not seen any more                               end
split      1, 2  i was detected as two objects (over-segmentation)    go on in the nearer part
merge      2, 1  i and k were detected as one (under-segmentation)    that of the nearer goes on
========== ===== ==================================================== ===========================

A kind also says which hypotheses there may be among the objects within the gates, what they look
like (:mod:`trellis.tracking.default_features`) and what the flow tracker asks for them. Everything
else asks the kind, so that one of a user's own is a subclass of :class:`EventKind`, named among the
``events`` of a model. It has one source or two and one target or two, three objects at most: links
name it in annotations, and an assignment covers up to three objects at a time. Of an object alone
there is nothing to say but that it appeared or disappeared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from trellis.arrays import Float64s, Int64s, as_array, held
from trellis.domains import flag, instance, one_of, sequence_of, text
from trellis.errors import DataError, ParameterError
from trellis.files.table import MISSING
from trellis.tracking.default_features import of_divisions, of_ends, of_moves, of_parts
from trellis.tracking.features import EventFeature, Frame, area_of, relative_difference
from trellis.tracking.objects import EVENTS, FramePair, Objects

__all__ = [
    "KINDS",
    "SOME_EVENTS",
    "EventKind",
    "Neighbours",
    "all_kinds",
    "event_names",
    "own_kinds",
]

_MOST = 100  # kinds of one's own: their numbers are bytes
_SHAPES = ((1, 1), (1, 2), (2, 1))  # sources and targets of events that links are made of


@dataclass(frozen=True, eq=False)
class Neighbours:
    """Objects of a frame pair that are near each other.

    Parameters
    ----------
    pair : FramePair
        The objects.
    onward : int64, shape (n, k)
        For each source the rows of its nearest targets within the gate, nearest first; -1 where
        there are fewer.
    back : int64, shape (m, k)
        For each target those of its nearest sources.

    Examples
    --------
    >>> cells = Objects(np.arange(2), np.zeros((2, 2)))
    >>> near = Neighbours(FramePair("", 0, cells, cells), np.array([[0, 1], [1, -1]]),
    ...                   np.array([[0, -1], [1, 0]]))
    >>> [side.tolist() for side in near.groups(2, 1)]
    [[[0, 1]], [[1]]]
    """

    pair: FramePair
    onward: Int64s
    back: Int64s

    def __post_init__(self) -> None:
        instance(FramePair).check("pair", self.pair)
        n, m = len(self.pair.source), len(self.pair.target)
        onward = as_array(self.onward, np.int64, "onward neighbours", (n, None), low=-1, high=m)
        back = as_array(self.back, np.int64, "back neighbours", (m, None), low=-1, high=n)
        vars(self).update(onward=held(onward, self.onward), back=held(back, self.back))

    def groups(self, n_sources: int, n_targets: int) -> tuple[Int64s, Int64s]:
        """Rows of sources (H, n_sources) and of targets (H, n_targets) that are near each other.

        One source and one target are near if either is among the nearest of the other; one object
        and two if both are among its nearest. Of no source or no target: every object alone.
        """
        shape = n_sources, n_targets
        if shape not in (*_SHAPES, (0, 1), (1, 0)):
            raise DataError(f"there are no groups of {n_sources} sources and {n_targets} targets")
        n, m = len(self.onward), len(self.back)
        if n_sources == 2 or n_targets == 2:
            table = _with_two(self.back if n_sources == 2 else self.onward)
            one, two = table[:, :1], table[:, 1:]
            return (two, one) if n_sources == 2 else (one, two)
        if not (n_sources and n_targets):
            every = np.arange(n if n_sources else m)[:, None]
            none = np.zeros((len(every), 0), np.int64)
            return (every, none) if n_sources else (none, every)
        source = np.concatenate([np.repeat(np.arange(n), self.onward.shape[1]), self.back.ravel()])
        target = np.concatenate([self.onward.ravel(), np.repeat(np.arange(m), self.back.shape[1])])
        there = (source >= 0) & (target >= 0)
        return source[there, None], target[there, None]


@dataclass(frozen=True)
class EventKind:
    """A kind of event; a kind of your own is a subclass, an object of which models take.

    It is a frozen dataclass: what a subclass can be told are fields, if it is one, too.

    Attributes
    ----------
    name : str
        What links of the kind are called.
    n_sources, n_targets : int
        Number of objects it joins: 1 and 1, 1 and 2, or 2 and 1.
    daughters : bool
        How tracks go on. True: they end, and the targets begin tracks whose parent is that of the
        (nearer) source. False: the track goes on in the (nearer) target or from the (nearer)
        source; of two targets the other begins a track, of two sources the other ends.
    price : function, optional
        What the flow tracker asks for such events, shape (H,), 1 being the price of an object that
        appears; it is given the objects as the functions of features are, and by name ``frame``
        (the :class:`Frame` of the one source or target) and ``gate`` (how far objects go). None:
        the flow tracker does not know the kind, and never guesses it.

    Examples
    --------
    Two cells that become one for good (a merge is an error of detection):

    >>> class Fusion(EventKind):
    ...     name, n_sources, n_targets = "fusion", 2, 1
    >>> from trellis.tracking import TrackingModel
    >>> model = TrackingModel(events=["move", "appear", "disappear", Fusion()])
    """

    name: ClassVar[str] = ""
    n_sources: ClassVar[int] = 1
    n_targets: ClassVar[int] = 1
    daughters: ClassVar[bool] = False
    price: ClassVar[Callable[..., Any] | None] = None
    always: ClassVar[bool] = False  # of the six: whether no model can do without
    usual: ClassVar[bool] = False  # likewise: whether models have it though it is not annotated

    def hypotheses(self, near: Neighbours) -> tuple[Int64s, Int64s]:
        """Which events of the kind there may be, given the objects within the gates.

        Parameters
        ----------
        near : Neighbours
            Objects that are near each other.

        Returns
        -------
        sources : int64, shape (H, n_sources)
            Rows of the sources.
        targets : int64, shape (H, n_targets)
            Rows of the targets. By default all that are near each other; an event that is
            annotated is added if it is not among them.
        """
        return near.groups(self.n_sources, self.n_targets)

    def features(self, columns: Sequence[str]) -> list[EventFeature]:
        """How such events look, if objects have these columns.

        By default the features of a move, or of a split or merge.
        """
        if self.n_sources == self.n_targets:
            return of_moves(self.name, columns)
        return of_parts(self.name, columns, joined=self.n_sources == 2)


# ----------------------------------------------------------------------------------------- the six


class _Move(EventKind):
    name = "move"
    always = usual = True

    def price(self, source: Objects, target: Objects, *, frame: Frame, gate: float) -> Float64s:
        away = np.linalg.norm(target.position - source.position, axis=1) / gate
        price: Float64s = away + relative_difference(area_of(source), area_of(target)) / 2
        return price


@dataclass(frozen=True)
class Division(EventKind):
    """A division; ``least`` is the flow tracker's price of one that fits perfectly."""

    least: float = 0.5
    name = "division"
    n_targets = 2
    daughters = True
    usual = True

    def features(self, columns: Sequence[str]) -> list[EventFeature]:
        """Those of two parts, and how daughters lie and how alike they are."""
        return of_divisions(columns)

    def price(
        self, parent: Objects, first: Objects, second: Objects, *, frame: Frame, gate: float
    ) -> Float64s:
        """Daughters lie around their mother, share her area and are alike."""
        middle = (first.position + second.position) / 2
        off = np.linalg.norm(middle - parent.position, axis=1) / gate
        one, a, b = area_of(parent), area_of(first), area_of(second)
        sizes = relative_difference(one, a + b)
        price: Float64s = self.least + off + sizes + relative_difference(a, b)
        return price


class _End(EventKind):
    always = usual = True

    def features(self, columns: Sequence[str]) -> list[EventFeature]:
        return of_ends(self.name, columns)

    def price(self, objects: Objects, *, frame: Frame, gate: float) -> Float64s:
        return np.minimum(1.0, 0.25 + frame.border_distance(objects) / (2 * gate))


class _Appear(_End):
    name = "appear"
    n_sources = 0


class _Disappear(_End):
    name = "disappear"
    n_targets = 0


class _Split(EventKind):
    name = "split"
    n_targets = 2


class _Merge(EventKind):
    name = "merge"
    n_sources = 2


KINDS: tuple[EventKind, ...] = (
    _Move(), Division(), _Appear(), _Disappear(), _Split(), _Merge(),
)  # fmt: skip
"""The kinds of EVENTS, in their order."""

# ------------------------------------------------------------------------------- names and objects

SOME_EVENTS = sequence_of(
    one_of(*EVENTS) | instance(EventKind),
    f"a list of {', '.join(EVENTS)}, or kinds of your own",
)
"""Kinds of events there may be, by name, or those of one's own."""


def event_names(events: Iterable[str | EventKind]) -> tuple[str, ...]:
    """Names of events.

    Examples
    --------
    >>> event_names(["move", KINDS[4]])
    ('move', 'split')
    """
    return tuple(event if isinstance(event, str) else event.name for event in events)


def own_kinds(events: Iterable[str | EventKind]) -> tuple[EventKind, ...]:
    """Those of events that are no names, each once and checked.

    Raises
    ------
    ParameterError
        If a kind has no name, that of another, or numbers of objects that there cannot be.
    """
    own: list[EventKind] = []
    for kind in events:
        if isinstance(kind, str) or kind in own or kind in KINDS:
            continue
        _check_kind(kind)
        if kind.name in (*EVENTS, *event_names(own)):
            raise ParameterError(
                "events", kind, f"kinds of different names; there are two of {kind.name!r}"
            )
        own.append(kind)
    if len(own) > _MOST:
        raise ParameterError("events", len(own), f"at most {_MOST} kinds of your own")
    return tuple(own)


def all_kinds(events: Iterable[str | EventKind]) -> tuple[EventKind, ...]:
    """Kinds that hypotheses are numbered by: the six, then those of one's own.

    Examples
    --------
    >>> all_kinds(["move", "appear", "disappear"]) == KINDS
    True
    """
    return (*KINDS, *own_kinds(events))


def _check_kind(kind: EventKind) -> None:
    """Refuse a kind that no model could have."""
    what = type(kind).__name__
    if not text.accepts(kind.name) or not kind.name.strip():
        raise ParameterError("events", kind, f"kinds with a name; {what} has none")
    if kind.name.lower() in {*MISSING, "single_daughter"}:
        wanted = f"kinds whose names have no other meaning in tables, unlike {kind.name!r}"
        raise ParameterError("events", kind, wanted)
    if (kind.n_sources, kind.n_targets) not in _SHAPES:
        raise ParameterError(
            "events",
            kind,
            "kinds of one source and one target, one and two, or two and one: an assignment covers "
            "up to three objects at a time, and an object alone can only appear or disappear; "
            f"{what} has n_sources = {kind.n_sources!r} and n_targets = {kind.n_targets!r}",
        )
    flag.check(f"daughters of {what}", kind.daughters)


# ------------------------------------------------------------------------------------------ helpers


def _with_two(nearest: Int64s) -> Int64s:
    """Every row of a table of neighbours with every two of its neighbours (P, 3)."""
    first, second = np.triu_indices(nearest.shape[1], 1)
    pairs = np.sort(np.stack([nearest[:, first], nearest[:, second]], axis=2), axis=2)
    rows = np.broadcast_to(np.arange(len(nearest))[:, None, None], (*pairs.shape[:2], 1))
    triples = np.concatenate([rows, pairs], axis=2).reshape(-1, 3)
    return triples[triples[:, 1] >= 0]

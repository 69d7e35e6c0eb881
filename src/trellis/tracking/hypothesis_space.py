r"""How hypotheses and their features are made of a frame pair: gates, features and their scale.

F (H, D) holds the preconditioned features of each hypothesis of a pair in the columns of its event,
so that a linear score of a hypothesis is :math:`\langle w, F_h\rangle`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from trellis.arrays import Float64s
from trellis.errors import CorruptModelError, DataError
from trellis.files.stored import header_value
from trellis.tracking.default_features import default_features
from trellis.tracking.event_kinds import EventKind, all_kinds, event_names
from trellis.tracking.features import EventFeature, event_features
from trellis.tracking.hypotheses import Hypotheses, check_gates, make_hypotheses
from trellis.tracking.hypothesis_set import place_of
from trellis.tracking.objects import FramePair
from trellis.tracking.preconditioning import Preconditioner

if TYPE_CHECKING:
    import scipy.sparse

__all__ = [
    "HypothesisSpace",
    "common_columns",
    "common_dimensions",
    "common_relations",
    "dimensions_of_file",
    "relations_of_file",
]

Blocks = list[Float64s]  # of each event, (H_e, K_e)


@dataclass(frozen=True, eq=False)
class HypothesisSpace:
    """How hypotheses and their features are made of a frame pair.

    Parameters
    ----------
    events : tuple of str or EventKind
        Kinds of events.
    n_neighbors : int
        Nearest objects considered.
    max_distance : float
        Farthest objects considered.
    features : tuple of EventFeature
        The features.
    preconditioner : Preconditioner
        Their scale.
    columns : tuple of str
        Columns that the objects must have.
    dimensions : int
        Coordinates that their centres must have, 2 or 3.
    relations : tuple of str
        Relations that the pairs must have.
    """

    events: tuple[str | EventKind, ...]
    n_neighbors: int
    max_distance: float
    features: tuple[EventFeature, ...]
    preconditioner: Preconditioner
    columns: tuple[str, ...] = ()
    dimensions: int = 2
    relations: tuple[str, ...] = ()

    @classmethod
    def learned(
        cls,
        pairs: Iterable[FramePair],
        events: tuple[str | EventKind, ...],
        n_neighbors: int,
        max_distance: float,
        features: tuple[EventFeature, ...],
        columns: tuple[str, ...],
        *,
        bias: bool,
        knots: int = 0,
    ) -> tuple[HypothesisSpace, list[tuple[Hypotheses, Blocks]]]:
        """Learn the scale of the features from pairs.

        Returns
        -------
        space : HypothesisSpace
        tables : list of (Hypotheses, list of float64)
            Hypotheses of the pairs, annotated ones included, and their features as they are.
        """
        tables = []
        pairs = list(pairs)
        dimensions = common_dimensions(pairs)
        for pair in pairs:
            hypotheses = make_hypotheses(
                pair, events=events, n_neighbors=n_neighbors, max_distance=max_distance
            )
            tables.append((hypotheses, event_features(pair, hypotheses, features)))
        blocks = [features_of_pair for _, features_of_pair in tables]
        scale = Preconditioner.learn(blocks, bias=bias, events=event_names(events), knots=knots)
        relations = tuple(dict.fromkeys(name for f in features for name in f.relations))
        space = cls(
            events, n_neighbors, max_distance, features, scale, columns, dimensions, relations
        )
        return space, tables

    @classmethod
    def common(
        cls,
        sets: Sequence[Iterable[FramePair]],
        events: tuple[str | EventKind, ...],
        n_neighbors: int,
        max_distance: float,
        features: tuple[EventFeature, ...],
        columns: tuple[str, ...],
        *,
        bias: bool,
        knots: int = 0,
    ) -> HypothesisSpace:
        """Learn one scale of the features for several data sets, each of which counts alike."""
        each = [
            cls.learned(
                pairs, events, n_neighbors, max_distance, features, columns, bias=bias, knots=knots
            )
            for pairs in sets
        ]
        if len(each) == 1:
            return each[0][0]
        blocks = [[features_of_pair for _, features_of_pair in tables] for _, tables in each]
        scale = Preconditioner.common(blocks, bias=bias, events=event_names(events), knots=knots)
        return replace(each[0][0], preconditioner=scale)

    def check_objects(self, pair: FramePair) -> None:
        """Refuse a pair whose objects lack what those learned from had."""
        if pair.dimensions != self.dimensions:
            raise DataError(
                f"{place_of(pair)}: the objects are in {pair.dimensions} dimensions, those that "
                f"the model was trained with in {self.dimensions}; train one with data like these"
            )
        missing = [c for c in self.columns if c not in pair.source or c not in pair.target]
        if missing:
            raise DataError(
                f"{place_of(pair)}: the objects have no column {missing[0]!r}, which the model was "
                "trained with"
            )
        unknown = [name for name in self.relations if name not in pair.relations]
        if unknown:
            raise DataError(
                f"{place_of(pair)}: the pair has no relation {unknown[0]!r} of its objects, which "
                "the model was trained with; it comes from label images (read_label_images)"
            )

    @property
    def kinds(self) -> tuple[EventKind, ...]:
        """Kinds that hypotheses are numbered by: those of EVENTS, then those of one's own."""
        return all_kinds(self.events)

    @property
    def n_weights(self) -> int:
        """Number of columns of F."""
        return sum(self.preconditioner.sizes)

    def hypotheses(self, pair: FramePair, annotated: bool) -> Hypotheses:
        """Return the hypotheses of a pair; with ``annotated`` also those its annotation names."""
        return make_hypotheses(
            pair, events=self.events, n_neighbors=self.n_neighbors, max_distance=self.max_distance,
            annotated=annotated,
        )  # fmt: skip

    def blocks(self, pair: FramePair, hypotheses: Hypotheses) -> Blocks:
        """Return the preconditioned features of these hypotheses, event by event."""
        return self.preconditioner.transform(event_features(pair, hypotheses, self.features))

    def matrix(self, pair: FramePair, hypotheses: Hypotheses) -> scipy.sparse.csr_array:
        """Return F (H, D) of these hypotheses."""
        import scipy.sparse

        blocks = self.blocks(pair, hypotheses)
        sizes = self.preconditioner.sizes
        width = np.array(sizes)[hypotheses.kind]
        first = np.concatenate([[0], np.cumsum(sizes)])[hypotheses.kind]
        ptr = np.concatenate([[0], np.cumsum(width)])
        column = np.arange(ptr[-1]) - np.repeat(ptr[:-1] - first, width)
        values = np.empty(ptr[-1])
        for e in range(len(sizes)):  # hypotheses come event by event
            rows = np.flatnonzero(hypotheses.kind == e)
            if len(rows):
                values[ptr[rows[0]] : ptr[rows[-1] + 1]] = blocks[e].ravel()
        return scipy.sparse.csr_array((values, column, ptr), (len(hypotheses), self.n_weights))

    def feature_names(self) -> list[list[str]]:
        """Event and name of each feature, for a model file."""
        return [[feature.event, feature.name] for feature in self.features]

    @classmethod
    def restored(
        cls,
        events: tuple[str | EventKind, ...],
        n_neighbors: int,
        max_distance: float,
        columns: Sequence[str],
        names: Sequence[Sequence[Any]],
        scale: Preconditioner,
        n_others: int = 0,
        dimensions: int = 2,
        relations: Sequence[str] = (),
    ) -> HypothesisSpace:
        """The space of a model file, checked, without the last ``n_others`` features."""
        check_gates(events, n_neighbors, max_distance)
        # By name: a later version may have features that the model was not trained with.
        known = {(f.event, f.name): f for f in default_features(columns, events, relations)}
        ours = [tuple(name) for name in names[: len(names) - n_others]]
        if not set(ours) <= set(known):
            raise CorruptModelError("it has features that this version of Trellis does not know")
        counts = tuple(sum(name[0] == event for name in names) for event in scale.names)
        if counts != tuple(q.shape[1] for q in scale.quantiles):
            raise CorruptModelError("the scale is not that of the features")
        features = tuple(known[name] for name in ours)
        return cls(
            events, n_neighbors, max_distance, features, scale, tuple(columns), dimensions,
            tuple(relations),
        )  # fmt: skip


def common_columns(pairs: Sequence[FramePair]) -> tuple[str, ...]:
    """Columns that the objects of all pairs have, in the order of the first."""
    columns = list(pairs[0].source.columns)
    for pair in pairs:
        columns = [c for c in columns if c in pair.source and c in pair.target]
    return tuple(columns)


def common_relations(pairs: Sequence[FramePair]) -> tuple[str, ...]:
    """Relations of objects that all pairs have, in the order of the first."""
    return tuple(
        name for name in pairs[0].relations if all(name in pair.relations for pair in pairs)
    )


def common_dimensions(pairs: Sequence[FramePair]) -> int:
    """Number of coordinates that the centres of all pairs have; raises if they differ.

    Examples
    --------
    >>> from trellis.datasets import simulate_cells
    >>> common_dimensions(simulate_cells(5, 3, seed=0))
    2
    """
    for pair in pairs:
        if pair.dimensions != pairs[0].dimensions:
            raise DataError(
                f"{place_of(pair)} is in {pair.dimensions} dimensions, {place_of(pairs[0])} in "
                f"{pairs[0].dimensions}; learn from pairs of one kind"
            )
    return pairs[0].dimensions if len(pairs) else 2


def dimensions_of_file(header: Mapping[str, Any]) -> int:
    """Number of coordinates in a model file; files of old versions, which say nothing: 2."""
    return header_value({"dimensions": 2, **header}, "dimensions", int, choices=(2, 3))


def relations_of_file(header: Mapping[str, Any]) -> list[str]:
    """Relations in a model file; files of old versions have none."""
    return header_value({"relations": [], **header}, "relations", list, items=str)

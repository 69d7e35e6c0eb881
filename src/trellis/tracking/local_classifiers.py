r"""Trackers that score every hypothesis by itself: local classifiers, and weights set by hand.

A hypothesis h of event e has the features :math:`F_h` (:mod:`trellis.tracking.features`,
preconditioned). A tracking is the consistent choice y with the greatest sum of scores
:math:`\sum_h y_h s_h`; consistency is all that joins the hypotheses.

- :class:`LocalClassifiers`: a random forest for each event tells true from false hypotheses, and
  :math:`s_h = \log p_h / (1 - p_h)`. If hypotheses were independent but for consistency, this
  choice would be the most probable one.
- :class:`HandSet`: :math:`s_h = \langle w_e, F_h \rangle` with weights that nobody has learned from
  these data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Self

import numpy as np

from trellis.arrays import Float64s
from trellis.domains import has, instance, nothing, number, sequence_of, whole
from trellis.errors import CorruptModelError, DataError
from trellis.estimator import Seeded, changed, fitted, parameter
from trellis.files.sklearn_state import check_prediction
from trellis.files.stored import header_value
from trellis.tracking.annotation import fixed_variables
from trellis.tracking.baselines import LinkingTracker, cheapest
from trellis.tracking.default_features import default_features
from trellis.tracking.event_kinds import KINDS, SOME_EVENTS, EventKind, event_names
from trellis.tracking.features import EventFeature
from trellis.tracking.hypotheses import Hypotheses
from trellis.tracking.hypothesis_space import (
    Blocks,
    HypothesisSpace,
    common_columns,
    common_relations,
    dimensions_of_file,
    relations_of_file,
)
from trellis.tracking.objects import EVENTS, FramePair
from trellis.tracking.preconditioning import Preconditioner
from trellis.tracking.result import TrackingResult

__all__ = ["HAND_SET_WEIGHTS", "PUBLISHED_WEIGHTS", "HandSet", "LocalClassifiers"]


PUBLISHED_WEIGHTS: Mapping[str, Mapping[str, float]] = MappingProxyType(
    {
        "move": {
            "distance": -1.67,
            "area change": -0.25,
            "axes change": -0.08,
            "area*mean_intensity change": -0.54,
            "mean_intensity change": -0.38,
            "intensity distribution change": 0.27,
        },
        "division": {
            "area*mean_intensity change": -0.47,
            "angle": -1.31,
            "parent's mean_intensity": 0.96,
            "parent's eccentricity": -0.94,
            "area evenness": 1.63,
            "compactness": -0.72,
            "mass evenness": -0.85,
        },
        "appear": {
            "outline on the border": 0.28,
            "border distance": -1.19,
            "area unlike the average": 0.63,
            "area*mean_intensity unlike the average": 1.94,
            "mean_intensity unlike the average": -0.15,
        },
        "disappear": {
            "outline on the border": -0.52,
            "border distance": -0.67,
            "area unlike the average": 0.17,
            "area*mean_intensity unlike the average": -0.11,
            "mean_intensity unlike the average": -0.05,
        },
        "split": {
            "distance to the middle": -0.15,
            "area change": -0.78,
            "axes change": -0.95,
            "mean_intensity change": -1.09,
            "compactness": 1.17,
            "mass evenness": 0.38,
        },
        "merge": {
            "distance to the middle": -1.04,
            "area change": -1.31,
            "axes change": -1.02,
            "mean_intensity change": -0.39,
            "compactness": 1.21,
            "mass evenness": 0.92,
        },
    }
)
"""Weights that come with Lou and Hamprecht's tracker; those of pixels count where images were read
with ``pixels="published"``.

Its eccentricity is a ratio of principal components, ours that of an ellipse; both grow with length.
"""

_END = {"border distance": -1.5, "bias": -1.0}
_PARTS = {
    "distance to the middle": -2.0,
    "area change": -2.0,
    "mean_intensity change": -1.0,
    "bias": -3.0,
}
HAND_SET_WEIGHTS: Mapping[str, Mapping[str, float]] = MappingProxyType(
    {
        "move": {"distance": -4.0, "area change": -1.0, "mean_intensity change": -1.0},
        "division": {
            "distance to the middle": -3.0,
            "area change": -2.0,
            "angle": -2.0,
            "area evenness": 2.0,
            "parent's mean_intensity": 2.0,
        },
        "appear": _END,
        "disappear": _END,
        "split": _PARTS,
        "merge": _PARTS,
    }
)
"""Round numbers found by trying a few and looking at the results: «manual tweaking»."""

_ROWS_A_TREE = 20_000  # more makes forests slower, hardly better


class _FeatureTracker(LinkingTracker):
    """A tracker that scores hypotheses by their preconditioned features."""

    max_distance = changed(
        help="""The gate, half of the greatest distance of linked objects; "auto": the 99th
        percentile of the annotated moves."""
    )
    n_neighbors = changed(default=4)
    events: Sequence[str | EventKind] | None = parameter(
        nothing | SOME_EVENTS,
        "Kinds of events; None: move, appear, disappear and all that are annotated.",
        default=None,
    )
    features: Sequence[EventFeature] | None = parameter(
        nothing | sequence_of(instance(EventFeature), "a list of EventFeature"),
        "None: :func:`~trellis.tracking.features.default_features` of the columns.",
        default=None,
    )
    hypothesis_space_: HypothesisSpace = fitted()

    def _prepare(self, pairs: Sequence[FramePair]) -> tuple[list[Hypotheses], list[Blocks]]:
        """Learn gate, events and scale; hypotheses and preconditioned features of the pairs."""
        self._check_parameters()
        if not len(pairs):
            raise DataError("there are no frame pairs to learn from")
        LinkingTracker.fit(self, pairs)
        events, columns = self._events(pairs), common_columns(pairs)
        features = self.features
        if features is None:
            features = default_features(columns, events, common_relations(pairs))
        self.hypothesis_space_, tables = HypothesisSpace.learned(
            pairs, events, self.n_neighbors, 2 * self.gate, tuple(features), columns, bias=False
        )
        scale = self.hypothesis_space_.preconditioner
        return [h for h, _ in tables], [scale.transform(blocks) for _, blocks in tables]

    def _events(self, pairs: Sequence[FramePair]) -> tuple[str | EventKind, ...]:
        if self.events is not None:
            return tuple(self.events)
        notes = [pair.annotation for pair in pairs if pair.annotation is not None]
        seen = {kind for note in notes for *_, kind in note.links}
        return tuple(kind.name for kind in KINDS if kind.always or kind.name in seen)

    @property
    def events_(self) -> tuple[str, ...]:
        """Kinds of events that the tracker knows."""
        self._check_fitted()
        return event_names(self.hypothesis_space_.events)

    def predict(self, pairs: Sequence[FramePair]) -> TrackingResult:
        """Track; annotations of the pairs are not looked at."""
        self._check_fitted()
        space = self.hypothesis_space_
        for pair in pairs:
            space.check_objects(pair)
        hypotheses = [space.hypotheses(pair, annotated=False) for pair in pairs]
        blocks = [space.blocks(*one) for one in zip(pairs, hypotheses, strict=True)]
        flat = [
            self._scores(e, np.concatenate([b[e] for b in blocks]) if blocks else np.empty((0, 0)))
            for e in range(len(space.kinds))
        ]
        scores = [np.empty(len(candidates)) for candidates in hypotheses]
        start = np.zeros(len(space.kinds), np.int64)
        for candidates, pair_scores in zip(hypotheses, scores, strict=True):
            for e in range(len(space.kinds)):
                here = candidates.kind == e
                stop = start[e] + here.sum()
                pair_scores[here] = flat[e][start[e] : stop]
                start[e] = stop
        return cheapest(pairs, hypotheses, scores)

    def _scores(self, event: int, table: Float64s) -> Float64s:
        """Scores of the hypotheses of an event, from their features."""
        raise NotImplementedError

    def _check_fitted(self) -> None:
        if not self._is_fitted():
            raise DataError(f"{type(self).__name__} is not fitted; call fit first")

    def _is_fitted(self) -> bool:
        return hasattr(self, "hypothesis_space_")

    def _state(self) -> dict[str, Any]:
        space = self.hypothesis_space_
        return super()._state() | {
            "events": list(event_names(space.events)),
            "columns": list(space.columns),
            "dimensions": space.dimensions,
            "relations": list(space.relations),
            "features": space.feature_names(),
            "scale": space.preconditioner.as_dict(),
        }

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        events = tuple(header_value(state, "events", list, items=str))
        columns = header_value(state, "columns", list, items=str)
        names = header_value(state, "features", list, items=list)
        scale = Preconditioner.from_dict(header_value(state, "scale", dict))
        self.hypothesis_space_ = HypothesisSpace.restored(
            events, self.n_neighbors, 2 * self.gate, columns, names, scale,
            dimensions=dimensions_of_file(state), relations=relations_of_file(state),
        )  # fmt: skip
        if self.hypothesis_space_.n_weights != len(names):
            raise CorruptModelError("the scale is not that of the features")


class LocalClassifiers(_FeatureTracker, Seeded):
    """A random forest for each event, and the consistent choice with the best odds.

    Examples
    --------
    >>> from trellis.datasets.cells import simulate_cells
    >>> pairs = simulate_cells(40, 6, seed=0)
    >>> tracker = LocalClassifiers(n_trees=10).fit(pairs[:4])
    >>> sorted({link.kind for link in tracker.predict(pairs[4:]).links} & {"move"})
    ['move']
    """

    n_trees: int = parameter(whole(1), "Number of trees of each forest.", default=100)
    random_state = changed(help="Seed of the forests.")

    def fit(self, pairs: Sequence[FramePair]) -> Self:
        """Learn the gate, the scale of the features and a classifier for each event."""
        from sklearn.ensemble import RandomForestClassifier

        hypotheses, blocks = self._prepare(pairs)
        known = [
            fixed_variables(pair, candidates, pair.annotation)
            for pair, candidates in zip(pairs, hypotheses, strict=True)
        ]
        self.forests_: list[Any] = []
        for e in range(len(self.hypothesis_space_.kinds)):
            X = np.concatenate([block[e] for block in blocks])
            y = np.concatenate(
                [
                    fixed[candidates.kind == e]
                    for fixed, candidates in zip(known, hypotheses, strict=True)
                ]
            )
            X, y = X[y >= 0], y[y >= 0]
            if not X.size or len(np.unique(y)) < 2:
                # Nothing to tell apart: a constant probability that no forest would be needed for.
                self.forests_.append(float(y.mean()) if len(y) else 0.5)
                continue
            forest = RandomForestClassifier(
                self.n_trees,
                min_samples_leaf=3,
                max_samples=min(len(y), _ROWS_A_TREE),
                random_state=self.random_state,
            )
            self.forests_.append(forest.fit(X, y))
        return self

    def _scores(self, event: int, table: Float64s) -> Float64s:
        forest = self.forests_[event]
        if isinstance(forest, float) or not len(table):
            p = np.full(len(table), forest if isinstance(forest, float) else 0.5)
        else:
            p = forest.predict_proba(table)[:, 1]
        least = 0.5 / self.n_trees
        p = np.clip(p, least, 1 - least)
        return np.asarray(np.log(p / (1 - p)), np.float64)

    def _state(self) -> dict[str, Any]:
        return super()._state() | {"forests": self.forests_}

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        self.forests_ = header_value(state, "forests", list)
        if len(self.forests_) != len(KINDS):
            raise CorruptModelError("there is not one classifier for each kind of event")
        sizes = self.hypothesis_space_.preconditioner.sizes
        for forest, n_features in zip(self.forests_, sizes, strict=True):
            if isinstance(forest, float):
                header_value({"share": forest}, "share", float, low=0, high=1 + 1e-9)
            else:
                check_prediction(forest, n_features, classify=True)


class HandSet(_FeatureTracker):
    """Weights set by hand, on preconditioned features; only scale and gate come from data.

    Examples
    --------
    >>> from trellis.datasets.cells import simulate_cells
    >>> pairs = simulate_cells(40, 6, seed=0)
    >>> tracker = HandSet(weights={"move": {"distance": -4.0, "bias": 1.0}}).fit(pairs[:4])
    >>> {link.kind for link in tracker.predict(pairs[4:]).links}
    {'move'}
    """

    weights: Mapping[str, Mapping[str, float]] | None = parameter(
        nothing | has("items", "get", words="a mapping of events to weights by name"),
        """For each event the weights of its features by name, 0 for those not named; "bias" is
        added to the score of every hypothesis. Names of features that the data do not have are left
        out. None: HAND_SET_WEIGHTS; PUBLISHED_WEIGHTS without features of pixels find few
        divisions.""",
        default=None,
    )

    @property
    def _weights(self) -> Mapping[str, Mapping[str, float]]:
        return HAND_SET_WEIGHTS if self.weights is None else self.weights

    def _check_together(self) -> None:
        known = dict.fromkeys((*EVENTS, *event_names(self.events or ())))
        for event, named in self._weights.items():
            if event not in known:
                raise DataError(f"weights of {event!r}; known events: {', '.join(known)}")
            for name, weight in named.items():
                if not number().accepts(weight):
                    raise DataError(f"the weight of {name!r} of {event} is {weight!r}, no number")

    def fit(self, pairs: Sequence[FramePair]) -> Self:
        """Learn the gate and the scale of the features; the weights are as they are."""
        self._prepare(pairs)
        return self

    def _scores(self, event: int, table: Float64s) -> Float64s:
        kind = self.hypothesis_space_.kinds[event].name
        named = self._weights.get(kind, {})
        names = [f.name for f in self.hypothesis_space_.features if f.event == kind]
        w = np.array([named.get(name, 0.0) for name in names], np.float64)
        return table @ w + named.get("bias", 0.0)

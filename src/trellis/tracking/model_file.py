"""Tracking models to and from model files.

Weights are an array, everything else is in the header. Users' own features are functions and their
own events are classes, which are not written: the file holds their names, and they are given again
when it is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np

from trellis.errors import CorruptModelError, DataError
from trellis.files.storable import Arrays, Storable, Stored
from trellis.files.stored import header_value, take
from trellis.tracking.default_features import default_features
from trellis.tracking.event_kinds import SOME_EVENTS, EventKind, event_names, own_kinds
from trellis.tracking.features import EventFeature
from trellis.tracking.gap_model import GapModel
from trellis.tracking.hypothesis_space import HypothesisSpace, dimensions_of_file, relations_of_file
from trellis.tracking.objects import EVENTS
from trellis.tracking.preconditioning import Preconditioner

__all__ = ["StoredTrackingModel"]


class StoredTrackingModel(Storable):
    """How tracking models are written and read."""

    _own_features: tuple[tuple[str, str], ...] = ()  # of a file, not given again yet
    _own_events: tuple[EventKind, ...] = ()  # stand-ins for those of a file, likewise

    def _parameter_values(self) -> dict[str, Any]:
        values = super()._parameter_values()
        del values["features"]
        if values["events"] != "auto":
            values["events"] = list(event_names(values["events"]))
        return {k: v.item() if isinstance(v, np.generic) else v for k, v in values.items()}

    def _stored(self) -> Stored:
        model: Any = self
        space = model.hypothesis_space_
        header, _ = self._stored_parameters()
        header |= {
            "columns": list(model.columns_),
            "events": list(event_names(space.events)),
            "max_distance": float(space.max_distance),
            "dimensions": space.dimensions,
            "relations": list(space.relations),
            "related": [[f.event, f.name] for f in space.features if f.relations],
            "features": space.feature_names(),
            "own_features": [[f.event, f.name] for f in model.features],
            "preconditioner": space.preconditioner.as_dict(),
            "training": {"stop_reason": model.stop_reason_},
        }
        if own := own_kinds(space.events):  # files without are as they were before there were any
            header["own_events"] = [[kind.name, kind.n_sources, kind.n_targets] for kind in own]
        if model.temperature_ is not None:
            header["temperature"] = float(model.temperature_)
            header["calibration"] = model.calibration_
        arrays = {"weights": np.ascontiguousarray(model.weights_)}
        if model.gap_model_ is not None:
            header["gaps"], more = model.gap_model_.stored()
            arrays |= more
        return header, arrays

    @classmethod
    def _restored(cls, header: Mapping[str, Any], arrays: Arrays) -> Self:
        parameters = header_value(header, "parameters", dict)
        if "features" in parameters:
            raise CorruptModelError(f"parameters are not those of {cls.__name__}")
        names = header_value(header, "features", list, items=list)
        own = {kind.name: kind for kind in _stand_ins(header, names)}
        said = parameters.get("events")
        if isinstance(said, list):
            known = [event for event in said if event not in own]
            parameters = {**parameters, "events": {"tuple": known}}
        model: Any = cls._unfitted({"parameters": parameters}, {})
        if own and isinstance(said, list):
            model.events = _exchanged(said, own)
        columns = header_value(header, "columns", list, items=str)
        events = _exchanged(header_value(header, "events", list, items=str), own)
        reach = header_value(header, "max_distance", float)
        dimensions = dimensions_of_file(header)
        scale = Preconditioner.from_dict(
            header_value(header, "preconditioner", dict), (*EVENTS, *own)
        )
        weights = take(arrays, "weights", np.float64, (sum(scale.sizes),))
        user_features = header_value(header, "own_features", list, items=list)
        if names[len(names) - len(user_features) :] != user_features:
            raise CorruptModelError("the features of its user are not the last of its features")
        model.hypothesis_space_ = HypothesisSpace.restored(
            events, model.n_neighbors, reach, columns, names, scale, len(user_features),
            dimensions, relations_of_file(header),
        )  # fmt: skip
        training = header_value(header, "training", dict)
        model.stop_reason_ = header_value(training, "stop_reason", str)
        model._own_features = tuple(tuple(name) for name in user_features)
        model._own_events = own_kinds(events)
        model.weights_, model.columns_ = weights, tuple(columns)
        model.objective_, model.gap_, model.history_ = np.nan, np.inf, []
        if "gaps" in header:
            moves = [list(name) for name in names if name[0] == "move"]
            related = header_value({"related": [], **header}, "related", list, items=list)
            n_moves = sum(name not in related for name in moves)
            model.gap_model_ = GapModel.restored(
                header_value(header, "gaps", dict), arrays, n_moves
            )
        if "temperature" in header:  # not in files of before
            model._temperature = _temperature(header)
            calibrated = header_value(header, "calibration", str, choices=("annotated", "guessed"))
            model._by_guesses = calibrated == "guessed"
        return model  # type: ignore[no-any-return]  # it is one of cls

    def _left_out(self) -> str:
        model: Any = self
        own = [] if isinstance(model.events, str) else own_kinds(model.events)
        what = "features " * bool(model.features), "events " * bool(own)
        return f"{'and '.join(filter(None, what))}of your own, which files do not hold" * any(what)

    def _missing(self) -> str:
        features = ", ".join(f"{event} {name}" for event, name in self._own_features)
        events = ", ".join(kind.name for kind in self._own_events)
        named = [("features", features), ("events", events)]
        missing = [(what, names) for what, names in named if names]
        if not missing:
            return ""
        said = ", and ".join(
            f"{what} of its user, which files do not hold: {names}" for what, names in missing
        )
        given = ", ".join(f"{what}=..." for what, _ in missing)
        return f"the model was trained with {said}; read it with TrackingModel.load(path, {given})"

    def _give_events(self, events: Sequence[str | EventKind]) -> None:
        """Give the kinds of events of its user to a model just read."""
        SOME_EVENTS.check("events", events)
        model: Any = self
        given = {kind.name: kind for kind in own_kinds(events)}
        shapes = [
            {kind.name: (kind.n_sources, kind.n_targets) for kind in some}
            for some in (self._own_events, given.values())
        ]
        if shapes[0] != shapes[1]:
            raise DataError(
                f"the model was trained with events of its user, {_shown(shapes[0])}; give the "
                f"same as events=, got {_shown(shapes[1])}"
            )
        if not given:
            return
        space = model.hypothesis_space_
        columns = space.columns
        all_events = _exchanged(event_names(space.events), given)
        offered = default_features(columns, all_events, space.relations)
        known = {(f.event, f.name): f for f in offered}
        for feature in space.features:
            if (feature.event, feature.name) not in known:
                raise DataError(
                    f"the model was trained with the feature {feature.name!r} of {feature.event}, "
                    f"which the {type(given[feature.event]).__name__} given in events has not"
                )
        features = tuple(known[f.event, f.name] for f in space.features)
        model.hypothesis_space_ = replace(space, events=all_events, features=features)
        if not isinstance(model.events, str):
            model.events = _exchanged(event_names(model.events), given)
        del self._own_events

    def _give_features(self, features: Sequence[EventFeature]) -> None:
        """Give the features of its user to a model just read."""
        model: Any = self
        names = tuple((f.event, f.name) for f in features)
        if names != self._own_features:
            raise DataError(
                "the model was trained with features of its user, "
                f"{[list(name) for name in self._own_features]}; give the same as features=, "
                f"got {[list(name) for name in names]}"
            )
        model.features = tuple(features)
        model.hypothesis_space_ = replace(
            model.hypothesis_space_, features=(*model.hypothesis_space_.features, *features)
        )
        del self._own_features


def _stand_ins(header: Mapping[str, Any], names: Sequence[Sequence[Any]]) -> list[EventKind]:
    """For the own events of a file, kinds of their names and features that can do nothing."""
    if "own_events" not in header:
        return []
    kinds = []
    for entry in header_value(header, "own_events", list, items=list):
        if [type(part) for part in entry] != [str, int, int]:
            raise CorruptModelError("an event of its user is not a name and two numbers")
        event, n_sources, n_targets = entry
        named = [name[1] for name in names if len(name) == 2 and name[0] == event]
        kinds.append(_stand_in(event, n_sources, n_targets, named))
    return list(own_kinds(kinds))


def _stand_in(event: str, n_sources: int, n_targets: int, names: Sequence[str]) -> EventKind:
    def features(self: EventKind, columns: Sequence[str]) -> list[EventFeature]:
        return [EventFeature(event, name, _not_given) for name in names]

    parts = {"name": event, "n_sources": n_sources, "n_targets": n_targets, "features": features}
    kind: EventKind = type("StandIn", (EventKind,), parts)()
    return kind


def _exchanged(names: Sequence[str], own: Mapping[str, EventKind]) -> tuple[str | EventKind, ...]:
    """Names of events, kinds in place of those that are a user's own."""
    kinds: Mapping[str, str | EventKind] = own
    return tuple(kinds.get(name, name) for name in names)


def _not_given(*objects: Any) -> Any:
    raise NotImplementedError("the events of its user were not given to this model")


def _shown(shapes: Mapping[str, tuple[int, int]]) -> str:
    """Names of events, and how many objects they join."""
    named = (f"{name!r} ({a} to {b})" for name, (a, b) in shapes.items())
    return ", ".join(named) or "none"


def _temperature(header: Mapping[str, Any]) -> float:
    value: float = header_value(header, "temperature", float)
    if not 0 < value < np.inf:
        raise CorruptModelError(f"its temperature is {value}, not a positive number")
    return value

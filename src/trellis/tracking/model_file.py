"""Tracking models to and from model files.

Weights are an array, everything else is in the header. Users' own features are functions, which are
not written: the file holds their names, and they are given again when it is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np

from trellis.errors import CorruptModelError, DataError
from trellis.files.storable import Arrays, Storable, Stored
from trellis.files.stored import header_value, take
from trellis.tracking.features import EventFeature
from trellis.tracking.hypothesis_space import HypothesisSpace, dimensions_of_file, relations_of_file
from trellis.tracking.preconditioning import Preconditioner

__all__ = ["StoredTrackingModel"]


class StoredTrackingModel(Storable):
    """How tracking models are written and read."""

    _own_features: tuple[tuple[str, str], ...] = ()  # of a file, not given again yet

    def _parameter_values(self) -> dict[str, Any]:
        values = super()._parameter_values()
        del values["features"]
        if values["events"] != "auto":
            values["events"] = list(values["events"])
        return {k: v.item() if isinstance(v, np.generic) else v for k, v in values.items()}

    def _stored(self) -> Stored:
        model: Any = self
        space = model.hypothesis_space_
        header, _ = self._stored_parameters()
        header |= {
            "columns": list(model.columns_),
            "events": list(space.events),
            "max_distance": float(space.max_distance),
            "dimensions": space.dimensions,
            "relations": list(space.relations),
            "features": space.feature_names(),
            "own_features": [[f.event, f.name] for f in model.features],
            "preconditioner": space.preconditioner.as_dict(),
            "training": {"stop_reason": model.stop_reason_},
        }
        return header, {"weights": np.ascontiguousarray(model.weights_)}

    @classmethod
    def _restored(cls, header: Mapping[str, Any], arrays: Arrays) -> Self:
        parameters = header_value(header, "parameters", dict)
        if "features" in parameters:
            raise CorruptModelError(f"parameters are not those of {cls.__name__}")
        if isinstance(parameters.get("events"), list):
            parameters = {**parameters, "events": {"tuple": parameters["events"]}}
        model: Any = cls._unfitted({"parameters": parameters}, {})
        columns = header_value(header, "columns", list, items=str)
        events = tuple(header_value(header, "events", list, items=str))
        reach = header_value(header, "max_distance", float)
        dimensions = dimensions_of_file(header)
        scale = Preconditioner.from_dict(header_value(header, "preconditioner", dict))
        weights = take(arrays, "weights", np.float64, (sum(scale.sizes),))
        names = header_value(header, "features", list, items=list)
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
        model.weights_, model.columns_ = weights, tuple(columns)
        model.objective_, model.gap_, model.history_ = np.nan, np.inf, []
        return model  # type: ignore[no-any-return]  # it is one of cls

    def _left_out(self) -> str:
        model: Any = self
        return "features of your own, which files do not hold" if model.features else ""

    def _missing(self) -> str:
        if not self._own_features:
            return ""
        names = ", ".join(f"{event} {name}" for event, name in self._own_features)
        return (
            f"the model was trained with features of its user, which files do not hold: {names}; "
            "read it with TrackingModel.load(path, features=...)"
        )

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

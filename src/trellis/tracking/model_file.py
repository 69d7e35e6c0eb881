"""Tracking models to and from the container of :mod:`trellis.files.container`.

Weights and quantiles are arrays, everything else is in the header. Users' own features are
functions, which are not written: the file holds their names, and they are given again when it is
read.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from trellis.errors import CorruptModelError, DataError
from trellis.estimator import current_names, parameters_of
from trellis.files.container import loading, read_container, write_container
from trellis.files.stored import header_value, take
from trellis.tracking.default_features import default_features
from trellis.tracking.features import EventFeature
from trellis.tracking.hypotheses import check_gates
from trellis.tracking.objects import EVENTS
from trellis.tracking.preconditioning import Preconditioner
from trellis.tracking.problem import HypothesisSpace

if TYPE_CHECKING:
    from trellis.tracking.model import TrackingModel

__all__ = ["load_tracking_model", "save_tracking_model"]


def save_tracking_model(model: TrackingModel, path: str | os.PathLike[Any]) -> None:
    """Write a fitted model."""
    made = model.made_
    parameters = {
        name: list(value) if name == "events" and value != "auto" else value
        for name, value in model.get_params(deep=False).items()
        if name != "features"
    }
    parameters = {k: v.item() if isinstance(v, np.generic) else v for k, v in parameters.items()}
    header = {
        "estimator": "TrackingModel",
        "parameters": parameters,
        "columns": list(model.columns_),
        "events": list(made.events),
        "max_distance": float(made.max_distance),
        "features": [[f.event, f.name] for f in made.features],
        "own_features": [[f.event, f.name] for f in model.features],
        "preconditioner": made.preconditioner.as_dict(),
        "training": {"stop_reason": model.stop_reason_},
    }
    write_container(path, header, {"weights": np.ascontiguousarray(model.weights_)})


def load_tracking_model(
    path: str | os.PathLike[Any], features: Sequence[EventFeature]
) -> TrackingModel:
    """Read a model written by :func:`save_tracking_model`."""
    from trellis.tracking.model import TrackingModel

    header, arrays = read_container(path)
    with loading(path):
        header_value(header, "estimator", str, choices=("TrackingModel",))
        parameters = current_names(TrackingModel, header_value(header, "parameters", dict))
        if not set(parameters) <= set(parameters_of(TrackingModel)) - {"features"}:
            raise CorruptModelError("parameters are not those of TrackingModel")
        asked = parameters.get("events")
        if isinstance(asked, list):
            parameters = {**parameters, "events": tuple(asked)}
        model = TrackingModel(**parameters)
        model._check_parameters()
        columns = header_value(header, "columns", list, items=str)
        events = tuple(header_value(header, "events", list, items=str))
        reach = header_value(header, "max_distance", float)
        check_gates(events, model.n_neighbors, reach)
        scale = Preconditioner.from_dict(header_value(header, "preconditioner", dict))
        weights = take(arrays, "weights", np.float64, (sum(scale.sizes),))
        names = header_value(header, "features", list, items=list)
        own = header_value(header, "own_features", list, items=list)
        # By name: a later version may have features that the model was not trained with.
        known = {(f.event, f.name): f for f in default_features(columns, events)}
        n_known = len(names) - len(own)
        used = [known.get(tuple(name)) for name in names[:n_known]]
        counts = tuple(sum(name[0] == event for name in names) for event in EVENTS)
        if names[n_known:] != own or None in used:
            raise CorruptModelError("it has features that this version of Trellis does not know")
        if counts != tuple(q.shape[1] for q in scale.quantiles):
            raise CorruptModelError("the weights are not those of the features")
        stop_reason = header_value(header_value(header, "training", dict), "stop_reason", str)
    given = [[f.event, f.name] for f in features]
    if given != own:
        raise DataError(
            f"the model was trained with features of its user, {own}; give the same as features=, "
            f"got {given}"
        )
    model.features = tuple(features)
    every = (*(f for f in used if f is not None), *features)
    model.made_ = HypothesisSpace(events, model.n_neighbors, reach, every, scale, tuple(columns))
    model.weights_, model.columns_ = weights, tuple(columns)
    model.objective_, model.gap_, model.history_ = np.nan, np.inf, []
    model.stop_reason_ = stop_reason
    return model

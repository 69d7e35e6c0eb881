"""Models from files, for commands that need one of a certain kind."""

from __future__ import annotations

from typing import Any

from trellis.errors import DataError

__all__ = ["load_labelling_model", "load_tracking_model"]

_WHAT = {
    "trellis.cheap": "models of several data sets",
    "trellis.experts": "an ensemble of experts",
    "trellis.models": "a model that labels sequences, trees or graphs",
    "trellis.regression": "a regression on graphs",
    "trellis.tracking": "a tracker",
}


def load_labelling_model(path: str) -> Any:
    """A model that labels sequences, trees or graphs; refuses others."""
    return _loaded(path, "trellis.models", None, "labels sequences, trees or graphs", "train")


def load_tracking_model(path: str) -> Any:
    """A tracking model; refuses others."""
    return _loaded(path, "trellis.tracking", "TrackingModel", "learned to track", "track --learn")


def _loaded(path: str, home: str, only: str | None, does: str, maker: str) -> Any:
    from trellis.files import display_name, load_model
    from trellis.files.registry import ESTIMATORS

    model = load_model(path)
    name = type(model).__name__
    if ESTIMATORS[name] != home or only not in (None, name):
        raise DataError(
            f"{display_name(path)} holds a {name}, {_WHAT[ESTIMATORS[name]]}; this command needs a "
            f"model that {does}, as 'trellis {maker}' makes them"
        )
    return model

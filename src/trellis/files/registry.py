"""The registry of model files: which class a name in a file stands for.

A file's header names its estimator; nothing else in it decides what is made of it. Classes are
imported when they are needed, so that this module, on the ground floor, knows their names only.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from typing import Any

from trellis.errors import CorruptModelError, DataError
from trellis.files.container import loading, read_container
from trellis.files.paths import display_name
from trellis.files.stored import header_value

__all__ = [
    "ESTIMATORS",
    "VALUES",
    "class_named",
    "estimator_name",
    "load_model",
    "name_of",
]

_AT_HOME = {
    "trellis.cheap": ("TransferLearner",),
    "trellis.experts": (
        "Aligned", "AnnotatorModel", "AutoCombiner", "BestExpert", "Committee", "Consensus",
        "ESPBoost", "FollowPerturbedLeader", "ForwardStepwise", "GuardedVote", "LogLinearVote",
        "MajorityVote", "Rerank", "Rover", "SpanCombiner", "SpanVote", "Stacking",
        "WeightedMajority",
    ),
    "trellis.models": (
        "ChainCRF", "ChainPerceptron", "GraphCRF", "GraphPerceptron", "MaxMargin", "TreeCRF",
        "TreePerceptron",
    ),
    "trellis.regression": ("GCRF", "GLACER", "NetworkLasso", "TableRegressor"),
    "trellis.tracking": (
        "FlowTracker", "GraphMatching", "HandSet", "LocalClassifiers", "NearestNeighbour",
        "TrackingModel",
    ),
}  # fmt: skip
ESTIMATORS = dict(sorted((name, home) for home, names in _AT_HOME.items() for name in names))
"""Home of every estimator that can be saved, by its name in files."""

VALUES = {
    "Full": "trellis.regression",
    "KNN": "trellis.regression",
    "PathAutomaton": "trellis.experts",
    "PathFamily": "trellis.experts",
    "Radius": "trellis.regression",
}
"""Home of the other classes that parameters may be of."""


def class_named(name: str, table: Mapping[str, str]) -> Any:
    """The class that a name stands for.

    Examples
    --------
    >>> class_named("KNN", VALUES)
    <class 'trellis.regression.similarity.KNN'>
    """
    return getattr(importlib.import_module(table[name]), name)


def name_of(kind: type, table: Mapping[str, str]) -> str | None:
    """The name of a class in files; None if it has none (a subclass of your own, say)."""
    name = kind.__name__
    return name if name in table and class_named(name, table) is kind else None


def load_model(path: str | os.PathLike[Any]) -> Any:
    """Read a model that ``save`` wrote, of whatever kind.

    Parameters
    ----------
    path
        The file.

    Returns
    -------
    estimator
        A fitted estimator of the class that was saved.

    Raises
    ------
    CorruptModelError
        If the file is damaged, truncated, no model file, or from a newer version of Trellis.
    DataError
        If it was trained with functions of your own, which files do not hold.
    OSError
        If it cannot be opened or read.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from trellis import ChainCRF, load_model
    >>> crf = ChainCRF(random_state=0).fit([["a", "b"]], [["X", "Y"]])
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "model.trellis"
    >>> crf.save(file)
    >>> load_model(file).predict([["a", "b"]]) == crf.predict([["a", "b"]])
    True
    """
    header, arrays = read_container(path)
    with loading(path):
        name = header_value(header, "estimator", str)
        if name == "checkpoint":
            raise CorruptModelError("this is the checkpoint of a training run, not a model")
        if name not in ESTIMATORS:
            raise CorruptModelError(
                f"it holds a {name!r}, which this version of Trellis does not know"
            )
        model = class_named(name, ESTIMATORS)._restored(header, arrays)
    if missing := model._missing():
        raise DataError(f"{display_name(path)}: {missing}")
    return model


def estimator_name(model: Any) -> str:
    """The name of an estimator in files; refuses one that cannot be loaded again."""
    name = name_of(type(model), ESTIMATORS)
    if name is None:
        raise DataError(
            f"{type(model).__name__} is not an estimator of Trellis, so that no file can name it; "
            "save the estimator it is made of"
        )
    return name

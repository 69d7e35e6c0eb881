"""Model files: estimators to and from the container of :mod:`trellis.persistence`.

Everything read is checked before anything is used: the checksum by the container, then types,
shapes, ranges and cross-references here. Training state is not kept: a loaded model predicts, and
``fit`` with ``warm_start`` goes on from its weights.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from trellis.corpus.schemes import Scheme, get_scheme
from trellis.errors import CorruptModelError, DataError
from trellis.features import Templates
from trellis.features.encoded import subset
from trellis.features.state import encoder_from_state
from trellis.models.chain_crf import ChainCRF
from trellis.models.chain_model import ChainModel
from trellis.models.chain_perceptron import ChainPerceptron
from trellis.objectives import ChainWeights
from trellis.persistence import loading, read_container, write_container
from trellis.stored import header_value, pack_strings, take, unpack_strings

__all__ = ["load_model", "save_model"]

_ESTIMATORS: dict[str, type[ChainModel]] = {
    "ChainCRF": ChainCRF,
    "ChainPerceptron": ChainPerceptron,
}


def save_model(model: ChainModel, path: str | os.PathLike[Any]) -> None:
    """Write a fitted chain model."""
    encoder_header, encoder_arrays = model.encoder_.state()
    parameters = {name: _plain(name, value) for name, value in model.get_params().items()}
    header = {
        "estimator": type(model).__name__,
        "parameters": parameters,
        "encoder": encoder_header,
        "input_format": model.input_format_ or {},
    }
    arrays = {f"classes.{key}": a for key, a in pack_strings(list(model.classes_)).items()}
    arrays |= {f"encoder.{key}": array for key, array in encoder_arrays.items()}
    arrays["node"] = np.ascontiguousarray(model.weights_.node, np.float32)
    arrays["transitions"] = np.ascontiguousarray(model.weights_.transitions, np.float32)
    write_container(path, header, arrays)


def _plain(name: str, value: Any) -> Any:
    """Parameter as JSON can hold it."""
    if isinstance(value, Templates):
        return value.text().split("\n")  # a list, since a lone «pos» would name a set
    if isinstance(value, Scheme):
        return value.name
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, tuple | list | np.ndarray):
        return [str(v) for v in value]
    if isinstance(value, str | int | float | bool | None):
        return value
    raise DataError(
        f"parameter {name}={value!r} cannot be written to a model file; "
        "give it as plain text or a number"
    )


def load_model(path: str | os.PathLike[Any]) -> ChainModel:
    """Read a model written by ``save``.

    Raises
    ------
    CorruptModelError
        If the file is damaged, truncated, no model file, or from a newer version of Trellis.

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
        return _build(header, arrays)


def _build(header: Mapping[str, Any], arrays: Mapping[str, Any]) -> ChainModel:
    name = header_value(header, "estimator", str, choices=tuple(_ESTIMATORS))
    kind = _ESTIMATORS[name]
    parameters = header_value(header, "parameters", dict)
    if set(parameters) != set(kind._parameters()):
        raise CorruptModelError(f"parameters are not those of {name}")
    model = kind(**parameters)
    model._check_parameters()
    classes = unpack_strings(
        take(arrays, "classes.blob", np.uint8, (None,)),
        take(arrays, "classes.offsets", np.int64, (None,)),
    )
    if not classes or classes != sorted(set(classes)):
        raise CorruptModelError("classes must be distinct and sorted")
    if model.scheme is not None:
        get_scheme(model.scheme).validity(classes)  # raises if a label does not fit
    encoder = encoder_from_state(
        header_value(header, "encoder", dict), subset(dict(arrays), "encoder.")
    )
    n = len(classes)
    node = take(arrays, "node", np.float32, (encoder.n_features, n))
    transitions = take(arrays, "transitions", np.float32, (n, n))
    model.classes_ = tuple(classes)
    model.encoder_ = encoder
    model.weights_ = ChainWeights(np.array(node), np.array(transitions))
    model.history_ = []
    model.input_format_ = _layout(header_value(header, "input_format", dict))
    return model


def _layout(found: dict[str, Any]) -> dict[str, Any] | None:
    """The command line's layout of the input; only what it can have written."""
    if not found:
        return None
    kinds = {"format": str, "columns": list, "label": str, "tabs": bool, "skip": str}
    for key, value in found.items():
        if key not in kinds or not isinstance(value, kinds[key]):
            raise CorruptModelError(f"input format has a wrong entry {key!r}")
    if not all(isinstance(c, str) for c in found.get("columns", [])):
        raise CorruptModelError("input format has a wrong entry 'columns'")
    needed = set(kinds) if found.get("format") == "conll" else {"format"}
    if not needed <= set(found):
        raise CorruptModelError("input format lacks an entry")
    return found

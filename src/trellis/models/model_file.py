"""Linear models to and from model files: labels, vocabulary, weights.

Everything read is checked before anything is used: the checksum by the container, then types,
shapes, ranges and cross-references here. Training state is not kept: a loaded model predicts, and
``fit`` with ``warm_start`` goes on from its weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from trellis.arrays import for_kernels
from trellis.corpus.label_values import packed_labels, unpacked_labels
from trellis.corpus.refinement import Refinement
from trellis.corpus.schemes import Scheme
from trellis.errors import CorruptModelError, DataError
from trellis.features import AttributeEncoder, Templates
from trellis.features.encoded import subset
from trellis.features.state import columns_used, encoder_from_state
from trellis.files.storable import Arrays, Storable, Stored
from trellis.files.stored import (
    check_range,
    header_value,
    input_layout,
    pack_strings,
    take,
    unpack_strings,
)
from trellis.models.known_labels import KnownLabels
from trellis.problems import EdgeWeights, Weights

__all__ = ["StoredLinearModel"]


class StoredLinearModel(Storable):
    """What all linear models share: how they are written and read."""

    def _parameter_values(self) -> dict[str, Any]:
        values = super()._parameter_values()
        return {name: _plain(name, value) for name, value in values.items()}

    def _stored(self) -> Stored:
        model: Any = self
        header, _ = self._stored_parameters()
        encoder_header, encoder_arrays = model.encoder_.state()
        header |= {
            "encoder": encoder_header,
            "input_format": model.input_format_ or {},
            "training": {"solver": model.solver_, "stop_reason": model.stop_reason_},
        }
        if model.columns_ != columns_used(model.encoder_):
            header["columns"] = list(model.columns_)
        if hasattr(model, "l2_"):
            header["training"]["l2"] = model.l2_
        described, arrays = packed_labels(model.classes_)
        header |= described
        arrays |= {f"encoder.{key}": array for key, array in encoder_arrays.items()}
        arrays["node"] = np.ascontiguousarray(model.weights_.node, np.float32)
        arrays["transitions"] = np.ascontiguousarray(model.weights_.transitions, np.float32)
        if model.structure != "chain":
            arrays |= pack_strings(model.edge_types_, "edge_types.")
        if model.refinement_ is not None:
            header["refined"] = True
        if hasattr(model, "edge_share_"):
            header["edge_share"] = model.edge_share_
        if model.known_ is not None:
            arrays |= model.known_.state()
        edge = model.weights_.edge
        if edge is not None:
            header["edges"] = {"both": edge.both, "types": edge.n_types}
            if model.edge_encoder_ is not None:
                header["edge_encoder"], own = model.edge_encoder_.state()
                arrays |= {f"edge_encoder.{key}": array for key, array in own.items()}
            arrays |= {"edge.row": edge.row, "edge.ptr": edge.ptr, "edge.pair": edge.pair}
            arrays["edge.values"] = np.ascontiguousarray(edge.values, np.float32)
        return header, arrays

    @classmethod
    def _restored(cls, header: Mapping[str, Any], arrays: Arrays) -> Self:
        # A file of an earlier version lacks parameters that were added since; their defaults hold.
        model: Any = cls._unfitted(header, {})
        classes = unpacked_labels(header, arrays)
        model._check_classes(classes)
        encoder = encoder_from_state(
            header_value(header, "encoder", dict), subset(dict(arrays), "encoder.")
        )
        model.classes_ = classes
        if "refined" in header and header_value(header, "refined", bool):
            if model.structure != "chain" or not Refinement.applies(classes):
                raise CorruptModelError("its labels cannot be refined, but are said to be")
            model.refinement_ = Refinement(classes)
        n = len(model.states_)
        node = take(arrays, "node", np.float32, (encoder.n_features, n))
        tables: tuple[int, ...] = (n, n)
        model.edge_types_ = ()
        if model.structure != "chain":
            model.edge_types_ = _names(arrays, "edge_types")
            tables = (max(1, len(model.edge_types_)), n, n)
        transitions = take(arrays, "transitions", np.float32, tables)
        model.encoder_ = encoder
        model.columns_ = columns_used(encoder, header)
        edge = None
        if "edges" in header:
            kinds = header_value(header, "edges", dict)
            both, n_types = header_value(kinds, "both", bool), 1
            if "types" in kinds:  # earlier files do not tell types apart
                n_types = header_value(kinds, "types", int)
            if n_types not in (1, tables[0] if model.structure != "chain" else 1):
                raise CorruptModelError("rich edges are of other types of edges")
            model.edge_encoder_ = _edge_encoder(header, arrays, model.structure)
            n_own = 0 if model.edge_encoder_ is None else model.edge_encoder_.n_features
            edge = _edges(arrays, both, encoder.n_features, n, n_own, n_types)
        model.weights_ = Weights(for_kernels(node), for_kernels(transitions), edge)
        if hasattr(model, "edge_share_"):
            model.edge_share_ = header_value(header, "edge_share", float)
            if not 0 <= model.edge_share_ <= 1:
                raise CorruptModelError("the share of edges must lie between 0 and 1")
        if model.structure != "chain":
            model.known_ = KnownLabels.from_state(arrays, n)
        model.history_ = []
        training = header.get("training", {"solver": "", "stop_reason": ""})  # first files lack it
        model.stop_reason_ = header_value(training, "stop_reason", str)
        model.solver_ = header_value(training, "solver", str)
        if "l2" in training:
            model.l2_ = header_value(training, "l2", float)
            if not 0 <= model.l2_ < np.inf:
                raise CorruptModelError(
                    "the strength of the penalty must be a number of at least 0"
                )
        model.input_format_ = input_layout(header)
        return model  # type: ignore[no-any-return]  # it is one of cls


def _plain(name: str, value: Any) -> Any:
    """Parameter as JSON can hold it."""
    if isinstance(value, Templates):
        return value.text().split("\n")  # a list, since a lone «pos» would name a set
    if isinstance(value, Scheme):
        return value.name
    if isinstance(value, np.generic):
        return value.item()
    if name == "cost" and not isinstance(value, str) and not callable(value):
        return np.asarray(value, np.float64).tolist()
    if isinstance(value, tuple | list | np.ndarray):
        return [str(v) for v in value]
    if isinstance(value, str | int | float | bool | None):
        return value
    raise DataError(
        f"parameter {name}={value!r} cannot be written to a model file; "
        "give it as plain text or a number"
    )


def _names(arrays: Mapping[str, Any], what: str) -> tuple[str, ...]:
    """Types of edges, checked."""
    names = unpack_strings(arrays, f"{what}.")
    if names != sorted(set(names)):
        raise CorruptModelError(f"{what.replace('_', ' ')} must be distinct and sorted")
    return tuple(names)


def _edge_encoder(
    header: Mapping[str, Any], arrays: Arrays, structure: str
) -> AttributeEncoder | None:
    """The names of features of edges; None if there are none."""
    if "edge_encoder" not in header:
        return None
    stored = header_value(header, "edge_encoder", dict)
    encoder = encoder_from_state(stored, subset(dict(arrays), "edge_encoder."))
    if structure == "chain" or not isinstance(encoder, AttributeEncoder):
        raise CorruptModelError("features of edges must be attributes, of a tree or graph")
    return encoder


def _edges(
    arrays: Mapping[str, Any],
    both: bool,
    n_features: int,
    n_labels: int,
    n_own: int,
    n_types: int,
) -> EdgeWeights:
    """Rich edge weights, checked: kernels trust rows, pointers and pairs."""
    row = take(arrays, "edge.row", np.int32, (n_features,))
    ptr = take(arrays, "edge.ptr", np.int64, (None,))
    pair = take(arrays, "edge.pair", np.int32, (None,))
    values = take(arrays, "edge.values", np.float32, (None,))
    crossed = row[row >= 0]
    if row.min(initial=0) < -1 or not np.array_equal(crossed, np.arange(len(crossed))):
        raise CorruptModelError("rows of edge features are not numbered in order")
    n_rows = (2 if both else 1) * n_types * len(crossed) + n_own
    n_pairs = n_labels * n_labels
    if not ptr.size:
        if pair.size or values.size != n_rows * n_pairs:
            raise CorruptModelError("edge weights do not fit the number of features and labels")
    else:
        fits = len(ptr) == n_rows + 1 and ptr[0] == 0 and ptr[-1] == len(pair) == len(values)
        if not fits or (np.diff(ptr) < 0).any():
            raise CorruptModelError("pointers to edge weights do not fit them")
        check_range(pair, 0, n_pairs, "pairs of edge features")
    arrays_of = np.array(row), np.array(ptr), np.array(pair), np.array(values)
    return EdgeWeights(*arrays_of, both, n_own, n_types)

"""What a model of sequences holds, by name: the weights of attributes and of transitions.

Weights are for values as they are given: what the encoder divides a value by is taken into them.
Zeros are left out, and attributes without a weight with them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from trellis.models import ChainCRF

__all__ = ["ParsedDump", "dump_lines", "parsed"]


@dataclass
class ParsedDump:
    """Named weights of a model.

    Parameters
    ----------
    header : dict
        Facts about the model, as text.
    labels, attributes : dict
        Numbers of labels and of attributes with a weight, as text, by name.
    transitions : dict
        Weights by (label before, label).
    state_features : dict
        Weights by (attribute, label).
    """

    header: dict[str, str] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    attributes: dict[str, str] = field(default_factory=dict)
    transitions: dict[tuple[str, str], float] = field(default_factory=dict)
    state_features: dict[tuple[str, str], float] = field(default_factory=dict)


def parsed(model: ChainCRF, labels: list[str], size: int) -> ParsedDump:
    """The weights of a model whose file has this size; ``labels`` are its labels, in any order."""
    states, encoder = model.states_, model.encoder_
    node = np.asarray(model.weights_.node, np.float64)
    scale = getattr(encoder, "scale", None)
    if scale is not None:
        node = node / scale[:, None]
    used = np.flatnonzero(node.any(axis=1))
    names = np.array(encoder.names(used), object)
    row, state = np.nonzero(node[used])
    named = np.array(states, object)
    pairs = zip(names[row].tolist(), named[state].tolist(), strict=True)
    before, after = np.nonzero(model.weights_.transitions)
    steps = zip(named[before].tolist(), named[after].tolist(), strict=True)
    found = model.weights_.transitions[before, after].astype(np.float64)
    return ParsedDump(
        header={
            "type": "ChainCRF",
            "size": str(size),
            "num_features": str(len(row) + len(before)),
            "num_labels": str(len(labels)),
            "num_attrs": str(len(used)),
        },
        labels={label: str(i) for i, label in enumerate(labels)},
        attributes={name: str(i) for i, name in enumerate(names.tolist())},
        transitions=dict(zip(steps, found.tolist(), strict=True)),
        state_features=dict(zip(pairs, node[used][row, state].tolist(), strict=True)),
    )


def dump_lines(model: ParsedDump) -> Iterator[str]:
    """The same as text, in the manner of CRFsuite."""
    tables = {"FILEHEADER": model.header}
    tables |= {
        title: {number: name for name, number in table.items()}
        for title, table in (("LABELS", model.labels), ("ATTRIBUTES", model.attributes))
    }
    for title, table in tables.items():
        yield f"{title} = {{\n"
        for key, value in table.items():
            yield f"  {key}: {value}\n"
        yield "}\n\n"
    weights = {"TRANSITIONS": model.transitions, "STATE_FEATURES": model.state_features}
    for kind, (title, entries) in enumerate(weights.items()):
        yield f"{title} = {{\n"
        for (one, other), weight in entries.items():
            yield f"  ({1 - kind}) {one} --> {other}: {weight:f}\n"
        yield "}\n\n"

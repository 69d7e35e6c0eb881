"""``trellis inspect``: what a model has learned."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from trellis.cli.named_files import InputFile
from trellis.cli.output import one_line, write_stdout
from trellis.cli.parameters import add_number
from trellis.cli.picture_option import add_picture_argument
from trellis.cli.words import ending
from trellis.errors import DataError

if TYPE_CHECKING:
    from trellis.features import Encoder
    from trellis.models.linear_model import LinearModel
    from trellis.problems import EdgeWeights

_WIDEST = 80  # characters of a value

NAME = "inspect"
HELP = "show what a model has learned"
DESCRIPTION = """\
Show a model's parameters, labels, features and strongest weights; of an ensemble, a regression or a
tracker, what it has learned.

  trellis inspect chunk.trellis
  trellis inspect chunk.trellis --label B-NP --top 20
  trellis inspect chunk.trellis --plot transitions.png
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("model", type=InputFile, metavar="MODEL", help="model file")
    what = "features to list for each label, and twice as many transitions and edge features"
    add_number(parser, "--top", 0, what, 5)
    parser.add_argument("--label", metavar="NAME", help="only this label")
    add_picture_argument(parser, "the weights of transitions between labels")


def run(args: argparse.Namespace) -> int:
    """Print the summary."""
    from trellis.files import load_model

    model = load_model(args.model)
    if not hasattr(model, "encoder_"):
        if args.label is not None:
            raise DataError(f"a {type(model).__name__} has no weights of labels; leave out --label")
        if args.plot is not None:
            raise DataError(f"a {type(model).__name__} has no transitions; leave out --plot")
        write_stdout(describe_learned(model) + "\n")
        return 0
    if args.label is not None and args.label not in map(str, model.classes_):
        known = ", ".join(map(str, model.classes_))
        raise DataError(f"no label {args.label!r}; the model has {known}")
    if args.plot is not None:
        from trellis.pictures import draw_transitions

        draw_transitions(model, path=args.plot)
    write_stdout(describe(model, args.top, args.label) + "\n")
    return 0


def describe_learned(model: Any) -> str:
    """Text about a model that is not one of features and labels: what it has learned, by name."""
    learned = {n: v for n, v in sorted(vars(model).items()) if n[-1] == "_" and n[0] != "_"}
    width = max(map(len, learned), default=0)
    lines = [f"{name:{width}}  {_value_text(value)}" for name, value in learned.items()]
    return "\n".join(map(one_line, [repr(model), *lines]))


def _value_text(value: Any) -> str:
    import numpy as np

    if isinstance(value, np.ndarray) and value.size > 8:
        return f"{value.dtype} array of shape {value.shape}"
    if isinstance(value, list | tuple | dict) and len(value) > 8:
        return f"{len(value)} entries"
    text = " ".join(str(value).split())
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 1]}…"


def describe(model: LinearModel, top: int, label: str | None) -> str:
    """Text of the summary."""
    from trellis.features import TemplateEncoder

    lines = [
        repr(model),
        f"labels      {len(model.classes_)}: {', '.join(map(str, model.classes_))}",
    ]
    if model.refinement_ is not None:
        lines.append(f"states      {len(model.states_)}: {', '.join(model.states_)}")
    if types := getattr(model, "edge_types_", ()):
        lines.append(f"edge types  {len(types)}: {', '.join(types)}")
    lines.append(f"features    {model.n_features_}")
    if model.edge_encoder_ is not None:
        lines.append(f"of edges    {model.edge_encoder_.n_features}")
    lines.append(f"weights     {_sparsity_text(model)}")
    if getattr(model, "group_lasso", 0):
        lines.append(f"dropped     {_dropped_text(model)}")
    # What the model file does not say is unknown.
    if training := list(filter(None, [model.solver_, ending(model)])):
        lines.append(f"training    {', '.join(training)}")
    if isinstance(model.encoder_, TemplateEncoder):
        lines.append("templates   " + "; ".join(str(t) for t in model.encoder_.templates))
    if model.input_format_ is not None:
        lines.append(f"input       {_layout_text(model.input_format_)}")
    if top > 0:
        lines += _weights_text(model, top, label)
    return "\n".join(map(one_line, lines))


def _layout_text(layout: dict[str, Any]) -> str:
    """Layout in words, e.g. «conll, columns word,pos,chunk, label chunk, fields between tabs»."""
    parts = [layout["format"]]
    if "columns" in layout:
        parts.append(f"columns {','.join(layout['columns'])}")
    if "label" in layout:
        parts.append(f"label {layout['label']}")
    if "group" in layout:
        parts.append(f"group {layout['group']}")
    if layout.get("tabs"):
        parts.append("fields between tabs")
    if layout.get("skip"):
        parts.append(f"without lines that start with {layout['skip']}")
    return ", ".join(parts)


def _sparsity_text(model: LinearModel) -> str:
    """Number of weights and how many are exactly zero."""
    import numpy as np

    arrays = model.weights_.arrays()
    n = sum(a.size for a in arrays)
    zero = n - sum(int(np.count_nonzero(a)) for a in arrays)
    share = f", {zero} of them zero ({100 * zero / n:.1f} %)" if zero else ""
    return f"{n}{share}"


def _dropped_text(model: LinearModel) -> str:
    """Groups of the group lasso whose weights are all zero: templates, their edges, transitions."""
    import numpy as np

    weights = model.weights_
    groups = model.encoder_.groups()
    used = {"": np.count_nonzero(weights.node, axis=1)}
    members = {"": groups}
    if weights.edge is not None:
        before = np.concatenate([[0], np.cumsum(weights.edge.values != 0)])
        counts, feature = np.diff(before[weights.edge.rows()]), weights.edge.features_of_rows()
        used["edges of "] = counts[: weights.edge.n_joined]
        members["edges of "] = groups[feature[feature >= 0]]
        if model.edge_encoder_ is not None:
            used["edge feature "] = counts[weights.edge.n_joined :]
            members["edge feature "] = model.edge_encoder_.groups()
    names, n_groups = [], 1
    for prefix, member in members.items():
        there = np.bincount(member) > 0
        n_groups += int(there.sum())
        named = model.edge_encoder_ if prefix == "edge feature " else model.encoder_
        assert named is not None
        for group in np.flatnonzero(there & (np.bincount(member, used[prefix]) == 0)):
            names.append(prefix + _group_name(named, int(group)))
    if not weights.transitions.any():
        names.append("transitions")
    return f"{len(names)} of {n_groups} groups{': ' if names else ''}{'; '.join(names)}"


def _group_name(encoder: Encoder, group: int) -> str:
    """The template of a group, or what ready-made features have before «=»."""
    from trellis.features import TemplateEncoder

    if isinstance(encoder, TemplateEncoder):
        return str(list(encoder.templates)[group])
    first = int((encoder.groups() == group).argmax())
    return encoder.names([first])[0].split("=", 1)[0]


def _weights_text(model: LinearModel, top: int, label: str | None) -> list[str]:
    """Strongest features for each label (or one), and strongest transitions."""
    import numpy as np

    node = model.weights_.node
    shown = [j for j, name in enumerate(model.state_labels) if label in (None, str(name))]
    strongest = {j: np.argsort(-node[:, j], kind="stable")[:top] for j in shown}
    # All names at once: an encoder goes through its whole vocabulary for each request.
    ids = np.unique(np.concatenate(list(strongest.values())))
    name_of = dict(zip(ids.tolist(), model.encoder_.names(ids), strict=True))
    lines = []
    for j, features in strongest.items():
        lines += ["", f"{model.states_[j]}: strongest features"]
        lines += [f"  {node[f, j]:+8.3f}  {name_of[f]}" for f in features.tolist()]
    lines += ["", "strongest transitions", *_transitions_text(model, 2 * top, label)]
    if model.weights_.edge is not None:
        lines += _edges_text(model, model.weights_.edge, 2 * top, label)
    return lines


def _transitions_text(model: LinearModel, top: int, label: str | None) -> list[str]:
    """Strongest transitions; those of typed edges with their type."""
    import numpy as np

    n = len(model.states_)
    trans = model.weights_.transitions.reshape(-1, n, n)
    types = getattr(model, "edge_types_", ()) or ("",)
    places = np.argsort(-np.abs(trans), axis=None, kind="stable")
    if model.refinement_ is not None:  # what cannot follow has weights that nobody will see
        places = places[model.refinement_.rules[1].ravel()[places % (n * n)]]
    if label is not None:
        it = np.array([str(name) == label for name in model.state_labels])
        places = places[it[places // n % n] | it[places % n]]
    lines = []
    for flat in places[:top].tolist():
        k, i, j = flat // (n * n), flat // n % n, flat % n
        kind = f"  ({types[k]})" if types[k] else ""
        lines.append(f"  {trans[k, i, j]:+8.3f}  {model.states_[i]} → {model.states_[j]}{kind}")
    return lines


def _edges_text(model: LinearModel, edge: EdgeWeights, top: int, label: str | None) -> list[str]:
    """Strongest weights of features crossed with pairs of labels, and of features of edges."""
    import numpy as np

    n = len(model.states_)
    pair = edge.pair if edge.ptr.size else np.tile(np.arange(n * n), edge.n_rows)
    strength = np.abs(edge.values)
    if label is not None:
        it = np.array([str(name) == label for name in model.state_labels])
        strength = np.where(it[pair // n] | it[pair % n], strength, 0)
    strongest = np.argsort(-strength, kind="stable")[:top]
    strongest = strongest[strength[strongest] > 0]
    row = np.searchsorted(edge.rows(), strongest, side="right") - 1
    feature = edge.features_of_rows()[row]
    ids = np.unique(feature[feature >= 0])
    name_of = dict(zip(ids.tolist(), model.encoder_.names(ids), strict=True))
    own = np.unique(row[feature < 0])
    if model.edge_encoder_ is not None:
        names = model.edge_encoder_.names(own - edge.n_joined)
        own_name = dict(zip(own.tolist(), names, strict=True))
    lines = ["", "strongest edge features"] if len(strongest) else []
    for i, r, f in zip(strongest.tolist(), row.tolist(), feature.tolist(), strict=True):
        first, second = (model.states_[k] for k in divmod(int(pair[i]), n))
        name, where = own_name[r] if f < 0 else name_of[f], ""
        if f >= 0:
            kind, back = divmod(r // edge.n_crossed, edge.families // edge.n_types)
            where = f" at {first}" if back else ""
            where += f" ({model.edge_types_[kind]})" if edge.n_types > 1 else ""
        lines.append(f"  {edge.values[i]:+8.3f}  {first} → {second}  {name}{where}")
    return lines

"""``trellis inspect``: what a model has learned."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from trellis.cli.output import write_stdout
from trellis.errors import DataError

if TYPE_CHECKING:
    from trellis.models.chain_model import ChainModel

NAME = "inspect"
HELP = "show what a model has learned"
DESCRIPTION = """\
Show a model's parameters, labels, features and strongest weights.

  trellis inspect chunk.trellis
  trellis inspect chunk.trellis --label B-NP --top 20
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("model", metavar="MODEL", help="model file")
    parser.add_argument(
        "--top",
        type=int,
        default=5,
        metavar="K",
        help="features to list for each label, and twice as many transitions (default: 5)",
    )
    parser.add_argument("--label", metavar="NAME", help="only this label")


def run(args: argparse.Namespace) -> int:
    """Print the summary."""
    from trellis.models import load_model

    if args.top < 0:
        raise DataError(f"--top must be at least 0, got {args.top}")
    model = load_model(args.model)
    if args.label is not None and args.label not in model.classes_:
        raise DataError(f"no label {args.label!r}; the model has {', '.join(model.classes_)}")
    write_stdout(describe(model, args.top, args.label) + "\n")
    return 0


def describe(model: ChainModel, top: int, label: str | None) -> str:
    """Text of the summary."""
    from trellis.features import TemplateEncoder

    lines = [repr(model), f"labels      {len(model.classes_)}: {', '.join(model.classes_)}"]
    lines.append(f"features    {model.n_features_}")
    if isinstance(model.encoder_, TemplateEncoder):
        lines.append("templates   " + "; ".join(str(t) for t in model.encoder_.templates))
    if model.input_format_ is not None:
        lines.append(f"input       {_layout_text(model.input_format_)}")
    if top > 0:
        lines += _weights_text(model, top, label)
    return "\n".join(lines)


def _layout_text(layout: dict[str, Any]) -> str:
    """Layout in words, e.g. «conll, columns word,pos,chunk, label chunk, fields between tabs»."""
    parts = [layout["format"]]
    if "columns" in layout:
        parts.append(f"columns {','.join(layout['columns'])}")
    if "label" in layout:
        parts.append(f"label {layout['label']}")
    if layout.get("tabs"):
        parts.append("fields between tabs")
    if layout.get("skip"):
        parts.append(f"without lines that start with {layout['skip']}")
    return ", ".join(parts)


def _weights_text(model: ChainModel, top: int, label: str | None) -> list[str]:
    """Strongest features for each label (or one), and strongest transitions."""
    import numpy as np

    node, trans = model.weights_.node, model.weights_.transitions
    shown = [j for j, name in enumerate(model.classes_) if label in (None, name)]
    strongest = {j: np.argsort(-node[:, j], kind="stable")[:top] for j in shown}
    # All names at once: an encoder goes through its whole vocabulary for each request.
    ids = np.unique(np.concatenate(list(strongest.values())))
    name_of = dict(zip(ids.tolist(), model.encoder_.names(ids), strict=True))
    lines = []
    for j, features in strongest.items():
        lines += ["", f"{model.classes_[j]}: strongest features"]
        lines += [f"  {node[f, j]:+8.3f}  {name_of[f]}" for f in features.tolist()]
    n = len(model.classes_)
    pairs = np.argsort(-np.abs(trans), axis=None, kind="stable")
    if label is not None:
        j = model.classes_.index(label)
        pairs = pairs[(pairs // n == j) | (pairs % n == j)]
    lines += ["", "strongest transitions"]
    for flat in pairs[: 2 * top]:
        i, j = divmod(int(flat), n)
        lines.append(f"  {trans[i, j]:+8.3f}  {model.classes_[i]} → {model.classes_[j]}")
    return lines

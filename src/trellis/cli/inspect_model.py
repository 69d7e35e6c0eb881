"""``trellis inspect``: what a model has learned."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

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
    parser.add_argument("model", help="model file")
    parser.add_argument("--top", type=int, default=5, metavar="K", help="weights to list (5)")
    parser.add_argument("--label", help="only this label")


def run(args: argparse.Namespace) -> int:
    """Print the summary."""
    from trellis.models import load_model

    model = load_model(args.model)
    if args.label is not None and args.label not in model.classes_:
        raise DataError(f"no label {args.label!r}; the model has {', '.join(model.classes_)}")
    print(describe(model, args.top, args.label))
    return 0


def describe(model: ChainModel, top: int, label: str | None) -> str:
    """Text of the summary."""
    import numpy as np

    from trellis.features import TemplateEncoder

    node, trans = model.weights_.node, model.weights_.transitions
    lines = [repr(model), f"labels      {len(model.classes_)}: {', '.join(model.classes_)}"]
    lines.append(f"features    {model.n_features_}")
    if isinstance(model.encoder_, TemplateEncoder):
        lines.append("templates   " + "; ".join(str(t) for t in model.encoder_.templates))
    layout = getattr(model, "input_format_", None)
    if layout is not None:
        known = ", ".join(f"{k}={v}" for k, v in layout.items() if v not in ("", False))
        lines.append(f"input       {known}")
    shown = model.classes_ if label is None else (label,)
    for name in shown:
        j = model.classes_.index(name)
        order = np.argsort(-node[:, j], kind="stable")[:top]
        lines += ["", f"{name}: strongest features"]
        lines += [
            f"  {node[f, j]:+8.3f}  {text}"
            for f, text in zip(order, model.encoder_.names(order), strict=True)
        ]
    pairs = np.argsort(-np.abs(trans), axis=None, kind="stable")
    if label is not None:
        j = model.classes_.index(label)
        n = len(model.classes_)
        pairs = pairs[(pairs // n == j) | (pairs % n == j)]
    lines += ["", "strongest transitions"]
    for flat in pairs[: 2 * top]:
        i, j = divmod(int(flat), len(model.classes_))
        lines.append(f"  {trans[i, j]:+8.3f}  {model.classes_[i]} → {model.classes_[j]}")
    return "\n".join(lines)

"""Options of the commands that train a linear model.

They are made from the declared parameters of the models (:mod:`trellis.cli.parameters`), under
headings; those that are no parameters are here: what to take as features, and which model to train.
"""

from __future__ import annotations

import argparse
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from trellis.cli.named_files import InputFile, TemplatesText
from trellis.cli.parameters import add_parameters, given_parameters, sayable
from trellis.errors import DataError
from trellis.estimator import parameters_of

if TYPE_CHECKING:
    from trellis.models.linear_model import LinearModel

__all__ = [
    "add_feature_arguments",
    "add_model_arguments",
    "check_kind",
    "families",
    "model_class",
    "model_parameters",
]

# Training losses, and the kinds of models that have them.
_LOSSES = {
    "log": "crf",
    "perceptron": "perceptron",
    "hinge": "max-margin",
    "latent-hinge": "max-margin",
    "ramp": "max-margin",
    "max": "max-margin",
}

# Parameters by heading; those named nowhere are about the solver.
_HEADINGS: dict[str, tuple[str, ...]] = {
    "model": (
        "structure", "directed", "inference", "scheme", "max_labels", "partial", "entity_ratio",
        "rich_edges", "edge_pairs", "edge_negatives", "edge_min_share",
    ),
    "pieces and penalties": (
        "piece_size", "overlap", "pieces", "l2", "l1", "group_lasso", "l2_once",
    ),
    "solver": (),
    "parallel": ("n_jobs", "lock_free"),
}  # fmt: skip
_SAID_OTHERWISE = ("loss", "warm_start", "verbose")  # --loss, --warm-start MODEL, --progress


def families() -> tuple[type[LinearModel], ...]:
    """The kinds of models, of all structures."""
    from trellis.models import MaxMargin
    from trellis.models.crf import CRF
    from trellis.models.perceptron import Perceptron

    return CRF, Perceptron, MaxMargin


def add_feature_arguments(parser: argparse.ArgumentParser) -> None:
    """--features, --crfpp."""
    group = parser.add_argument_group("features")
    group.add_argument(
        "--features",
        dest="templates",
        type=TemplatesText,
        metavar="SET",
        help="a template set (chunking, pos, ner or wordseg), templates as text, or @FILE with "
        "templates (default: the file's own features, or windows and affixes of all columns)",
    )
    group.add_argument(
        "--crfpp",
        type=InputFile,
        metavar="FILE",
        help="a CRF++ or Wapiti template file instead; it numbers the columns from 0, the "
        "label's not counted",
    )


def add_model_arguments(parser: argparse.ArgumentParser, without: Collection[str] = ()) -> None:
    """--model, --loss and the parameters of models, but for some that the command has itself."""
    kinds = families()
    named = {name for names in _HEADINGS.values() for name in names}
    rest = [name for name in sayable(kinds) if name not in (*named, *_SAID_OTHERWISE)]
    for heading, names in _HEADINGS.items():
        left = [name for name in names or rest if name not in without]
        if not left:
            continue
        group = parser.add_argument_group(heading)
        if heading == "model":
            group.add_argument(
                "--model", choices=[k.kind for k in kinds], help="kind of model (default: crf)"
            )
            group.add_argument(
                "--loss",
                dest="training_loss",
                choices=list(_LOSSES),
                help="training loss, which names the model, too: log for crf, perceptron, and "
                "those of max-margin; they differ where positions have several labels or none",
            )
        add_parameters(group, kinds, left, defaults={"random_state": "0"})


def _kind(args: argparse.Namespace) -> str | None:
    """The kind of model that --model or --loss ask for, if they do."""
    loss, kind = args.training_loss, args.model
    if loss is None:
        return None if kind is None else str(kind)
    if kind not in (None, _LOSSES[loss]):
        raise DataError(f"--loss {loss} is for --model {_LOSSES[loss]}, not for {kind}")
    return _LOSSES[loss]


def model_class(args: argparse.Namespace) -> type[LinearModel]:
    """The estimator that --model, --loss and --structure ask for."""
    from trellis import models

    kind, structure = _kind(args) or "crf", args.structure or "chain"
    every: tuple[type[LinearModel], ...] = (
        models.ChainCRF, models.TreeCRF, models.GraphCRF,
        models.ChainPerceptron, models.TreePerceptron, models.GraphPerceptron,
        models.MaxMargin,
    )  # fmt: skip
    of_kind = [c for c in every if c.kind == kind]
    return next(c for c in of_kind if "structure" in parameters_of(c) or c.structure == structure)


def check_kind(args: argparse.Namespace, model: LinearModel, path: str) -> None:
    """Refuse options that ask for another model than one from a file."""
    if _kind(args) not in (None, model.kind):
        raise DataError(f"{path} holds a {model.kind} model, not a {_kind(args)} model")
    if args.structure not in (None, model.structure):
        raise DataError(f"{path} is for structure {model.structure}, not {args.structure}")


def model_parameters(args: argparse.Namespace, kind: type[LinearModel]) -> dict[str, Any]:
    """The parameters given as options for a model of this class."""
    options = argparse.Namespace(**vars(args))
    if "structure" not in parameters_of(kind):  # the class says it
        options.structure = None
    if "loss" in parameters_of(kind) and args.training_loss is not None:
        options.loss = "bridge" if args.training_loss == "hinge" else args.training_loss
    return given_parameters(options, kind, families())

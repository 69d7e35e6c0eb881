"""Options that become parameters of a model, by groups, for the commands that train one.

Every such option has its parameter's name as ``dest`` and None as default: what is not given stays
as the model has it.
"""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING, Any

from trellis.errors import DataError

if TYPE_CHECKING:
    from trellis.models.linear_model import LinearModel

__all__ = [
    "add_feature_arguments",
    "add_model_arguments",
    "add_parallel_arguments",
    "add_penalty_arguments",
    "add_solver_arguments",
    "add_structure_arguments",
    "given_parameters",
    "in_words_of_options",
    "option_name",
]

_PARAMETERS = (
    "scheme", "rich_edges", "edge_pairs", "edge_negatives", "edge_min_share",
    "piece_size", "overlap", "l2", "l1", "group_lasso", "l2_once",
    "solver", "states", "max_passes", "tol", "learning_rate", "decay", "batch_size", "visit",
    "random_state", "patience", "n_jobs", "lock_free",
    "pieces", "directed", "inference",
)  # fmt: skip

_OTHER_NAMES = {"random_state": "--seed", "n_jobs": "--jobs", "directed": "--directed"}

LOSSES = {"crf": "log", "perceptron": "perceptron", "max-margin": "hinge"}
"""Kinds of models, and the losses they are trained with."""


def option_name(parameter: str) -> str:
    """The option of a parameter: ``--piece-size`` for ``piece_size``."""
    return _OTHER_NAMES.get(parameter, "--" + parameter.replace("_", "-"))


def add_feature_arguments(parser: argparse.ArgumentParser) -> None:
    """--features, --crfpp."""
    group = parser.add_argument_group("features")
    group.add_argument(
        "--features",
        metavar="SET",
        help="a template set (chunking, pos, ner or wordseg), templates as text, or @FILE with "
        "templates (default: the file's own features, or windows and affixes of all columns)",
    )
    group.add_argument(
        "--crfpp",
        metavar="FILE",
        help="a CRF++ or Wapiti template file instead; it numbers the columns from 0, the "
        "label's not counted",
    )


def add_structure_arguments(group: argparse._ArgumentGroup) -> None:
    """--structure and what is about edges."""
    group.add_argument(
        "--structure",
        choices=("chain", "tree", "graph"),
        help="what joins the positions: their order (chain, default), or the edges of the file "
        "(--format conllu or graphs)",
    )
    group.add_argument(
        "--loss",
        choices=tuple(LOSSES.values()),
        help="another way to name the model: log for crf, perceptron, hinge for max-margin",
    )
    group.add_argument(
        "--pieces",
        choices=("tree", "graph"),
        help="with graphs: train on spanning trees of pieces (default) or on all their edges",
    )
    group.add_argument(
        "--directed",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="whether the two ends of an edge play different parts (default: in trees)",
    )
    group.add_argument(
        "--inference",
        choices=("auto", "exact", "elimination", "max-flow", "dual", "lp", "ilp"),
        help="with graphs: how the best labels are found (default: auto)",
    )


def add_model_arguments(
    group: argparse._ArgumentGroup, kinds: tuple[str, ...] = tuple(LOSSES)
) -> None:
    """--model, --scheme and what is about rich edges."""
    group.add_argument("--model", choices=kinds, help="kind of model (default: crf)")
    group.add_argument(
        "--scheme",
        choices=("BIO", "BILOU", "IOBES", "BMES"),
        help="predict only what is valid in this tag scheme",
    )
    group.add_argument(
        "--rich-edges",
        nargs="?",
        const="current",
        choices=("current", "both"),
        help="cross features with pairs of labels, too: those of the position where the pair ends "
        "(current, also without a value), or also where it begins (both)",
    )
    group.add_argument(
        "--edge-pairs",
        choices=("auto", "all", "observed"),
        help="pairs that a crossed feature has: all, or those it was seen with and some random "
        "others (default: all up to 8 labels)",
    )
    group.add_argument(
        "--edge-negatives",
        type=int,
        metavar="K",
        help="random pairs for each crossed feature that does not have all (default: 10)",
    )
    group.add_argument(
        "--edge-min-share",
        type=float,
        metavar="X",
        help="leave out pairs in less than this share of a feature's occurrences (default: 0.02)",
    )


def add_penalty_arguments(group: argparse._ArgumentGroup, *, lists: bool = False) -> None:
    """--piece-size, --l2 (unless the command takes lists of them), --overlap and more penalties."""
    if not lists:
        group.add_argument(
            "--piece-size",
            type=float,
            metavar="N",
            help="structure regularisation: train on pieces of mean size N, e.g. 5.5 (default: "
            "whole sequences)",
        )
    group.add_argument(
        "--overlap",
        type=int,
        metavar="K",
        help="positions that a piece goes on into the next one (default: 0)",
    )
    if not lists:
        group.add_argument(
            "--l2", type=float, metavar="X", help="strength of the CRF's L2 penalty (default: 1)"
        )
    group.add_argument(
        "--l1",
        type=float,
        metavar="X",
        help="strength of an L1 penalty, which makes weights of the CRF exactly zero (default: 0)",
    )
    group.add_argument(
        "--group-lasso",
        type=float,
        metavar="X",
        help="strength of a group lasso, which drops whole templates of the CRF (default: 0)",
    )
    group.add_argument(
        "--l2-once",
        action="store_true",
        default=None,
        help="apply the L2 penalty once a pass instead of at every step",
    )


def add_solver_arguments(group: argparse._ArgumentGroup) -> None:
    """--solver and what says how long and how fast it goes."""
    group.add_argument(
        "--solver",
        choices=("sgd", "adf", "lbfgs", "auto", "frank-wolfe", "bundle"),
        help="of a CRF; sgd: stochastic gradient descent (default); adf: with rates that adapt to "
        "the frequency of features; lbfgs: L-BFGS on the exact objective; auto: lbfgs for whole "
        "sequences of little data, else sgd; of a max-margin model frank-wolfe (default) or bundle",
    )
    group.add_argument(
        "--states",
        choices=("all", "observed"),
        help="with lbfgs: observed leaves weights at zero whose feature and label were never seen "
        "together (default: all)",
    )
    group.add_argument(
        "--max-passes",
        type=int,
        metavar="K",
        help="passes over the data at most (default: 12 for a CRF, 500 iterations of lbfgs, 10 "
        "for a perceptron)",
    )
    group.add_argument(
        "--tol",
        type=float,
        metavar="X",
        help="stop when the convergence value falls below X (default: 1e-4 for a CRF, 0 for a "
        "perceptron)",
    )
    group.add_argument(
        "--learning-rate",
        type=float,
        metavar="X",
        help="initial rate of the CRF (default: found by short trials)",
    )
    group.add_argument(
        "--decay",
        type=float,
        metavar="X",
        help="factor by which the CRF's rate falls in a pass (default: 0.75)",
    )
    group.add_argument(
        "--batch-size",
        type=int,
        metavar="K",
        help="pieces whose gradients are taken at the same weights (default: 1)",
    )
    group.add_argument(
        "--visit",
        choices=("pooled", "permutation", "replacement"),
        help="visit each piece once a pass in a random order, kind to the processor's cache "
        "(pooled, default) or uniform; or draw pieces with replacement",
    )
    group.add_argument(
        "--seed",
        dest="random_state",
        type=int,
        metavar="K",
        help="same seed, same model file (default: 0)",
    )


def add_parallel_arguments(group: argparse._ArgumentGroup) -> None:
    """--jobs, --lock-free."""
    group.add_argument(
        "--jobs",
        dest="n_jobs",
        type=int,
        metavar="K",
        help="threads that share the work of a batch (--batch-size) or of lbfgs; -1: one a core; "
        "the model is the same for any number (default: 1)",
    )
    group.add_argument(
        "--lock-free",
        action="store_true",
        default=None,
        help="with sgd: threads do not wait for each other; each run gives another model",
    )


def given_parameters(args: argparse.Namespace, model: LinearModel) -> dict[str, Any]:
    """The parameters given as options; the others stay as they are."""
    options = {name: getattr(args, name, None) for name in _PARAMETERS}
    given = {name: value for name, value in options.items() if value is not None}
    for name in given:
        if name not in model.get_params():
            raise DataError(f"{option_name(name)} is not for {_called(model)}")
    return given


def _called(model: LinearModel) -> str:
    """What a kind of model is called: «a perceptron», «a chain CRF»."""
    name = type(model).__name__
    special = {"ChainPerceptron": "a perceptron", "MaxMargin": "a max-margin model"}
    if name in special:
        return special[name]
    words = re.sub("([a-z])([A-Z])", r"\1 \2", name).replace("Perceptron", "perceptron")
    return f"a {words[0].lower()}{words[1:]}"


def in_words_of_options(message: str) -> str:
    """Message of the library with parameters called by their options."""
    name, space, rest = message.partition(" ")
    if name in _PARAMETERS:
        rest = rest.replace("None, ", "").replace("None or ", "").replace("'auto' or ", "")
        message = f"{option_name(name)}{space}{rest}"
    message = re.sub(r"\b(solver|states)='(\w+)'", r"--\1 \2", message)
    return message.replace("learning_rate", option_name("learning_rate"))

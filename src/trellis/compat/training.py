r"""CRFsuite's training algorithms, each by the learner of Trellis that stands for it.

All five end in the same model: weights of attributes with labels, :math:`w_{a, y}`, and of
transitions, :math:`t_{y, y'}`, and :math:`p(y \mid x) \propto e^{s(x, y)}`.

=======  ===========================================================================================
lbfgs    :math:`\min_w \sum -\log p(y \mid x) + c_1 \|w\|_1 + c_2 \|w\|^2`. Without ``c1``: averaged
         stochastic steps (Trellis's default). With it: steps that set weights to zero, 20 passes,
         then ten iterations of OWL-QN from there. ``exact``, and always for little data: L-BFGS or
         OWL-QN from zero until they come to rest.
l2sgd    The same without ``c1``, by averaged stochastic steps.
ap       :class:`trellis.ChainPerceptron`.
pa       :class:`trellis.MaxMargin`, whose hinge loss passive-aggressive steps lower one sequence at
         a time; ``c`` weighs the losses, :math:`l_2 = 1 / (2 c)`.
arow     ``ChainCRF(solver="adf")``: steps whose rates fall with the frequency of an attribute, as
         those of AROW do with its variance; :math:`l_2 = \gamma / (2 \cdot variance)`.
=======  ===========================================================================================

The objectives of lbfgs and l2sgd are CRFsuite's; the numbers are not the same bits. Differences: a
real-valued attribute is divided by its root mean square before it is penalised; unless ``exact``,
weights are also learned for attributes and labels never seen together, and iterations are passes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from trellis.compat.items import with_entries
from trellis.corpus import Corpus
from trellis.errors import DataError
from trellis.models import ChainCRF, ChainPerceptron, MaxMargin
from trellis.models.automatic import passes_for
from trellis.models.linear_model import LinearModel

__all__ = ["ALGORITHMS", "Option", "as_chain_crf", "truth"]

_UNLIMITED = 2_147_483_647
# Passes of steps with c1, how their rate falls, and iterations of OWL-QN after them.
_PASSES, _DECAY, _ITERATIONS = 20, 0.9, 10
# Up to so many weights are added to score the data once, L-BFGS takes a second or two at most.
_LITTLE_DATA = 200_000
# What «without slack variables» costs: almost nothing but the margin counts.
_NO_SLACK = 1000.0


def truth(value: Any) -> bool:
    """A truth value, as 0, 1 or text of these."""
    return bool(int(value))


@dataclass(frozen=True)
class Option:
    """A parameter of an algorithm: how text becomes its value, its default, and what it means."""

    kind: Callable[[Any], Any]
    default: Any
    help: str


Options = Mapping[str, Any]
_UNUSED = " Taken, but of no effect: Trellis's solvers need no such choice."

_SHARED = {
    "feature.minfreq": Option(float, 0.0, "The minimum frequency of attributes."),
    "feature.possible_states": Option(
        truth,
        False,
        "Exact training: learn weights also of attributes and labels never seen together.",
    ),
    "feature.possible_transitions": Option(
        truth, False, "Learn weights of all transitions, also of those never seen."
    ),
}
_SEED = {"random_state": Option(int, 0, "Seed; the same seed gives the same model.")}
_C2 = {"c2": Option(float, 1.0, "Coefficient for L2 regularization.")}
_PERIOD = Option(int, 10, "The iterations over which the stopping criterion is tested.")
_DELTA = "Stop when the objective falls by less than this share of itself in a period."


def _iterations(default: int, what: str) -> dict[str, Option]:
    return {"max_iterations": Option(int, default, f"The maximum number of {what}.")}


def _epsilon(default: float) -> dict[str, Option]:
    return {"epsilon": Option(float, default, "The stopping criterion." + _UNUSED)}


_PARAMETERS: dict[str, dict[str, Option]] = {
    "lbfgs": {
        **_SHARED,
        "c1": Option(float, 0.0, "Coefficient for L1 regularization."),
        **_C2,
        **_iterations(_UNLIMITED, "passes over the data, and of iterations of L-BFGS"),
        "num_memories": Option(int, 6, "Limited memories of L-BFGS." + _UNUSED),
        **_epsilon(1e-5),
        "period": _PERIOD,
        "delta": Option(float, 1e-5, f"Exact training: {_DELTA}"),
        "linesearch": Option(str, "MoreThuente", "The line search algorithm." + _UNUSED),
        "max_linesearch": Option(int, 20, "Most trials of the line search." + _UNUSED),
        "exact": Option(
            truth, False, "Train by L-BFGS (OWL-QN with c1) from zero until it comes to rest."
        ),
        **_SEED,
    },
    "l2sgd": {
        **_SHARED,
        **_C2,
        **_iterations(1000, "passes over the data"),
        "period": replace(_PERIOD, help=_PERIOD.help + _UNUSED),
        "delta": Option(float, 1e-6, _DELTA + _UNUSED),
        "calibration.eta": Option(float, 0.1, "The first rate that is tried." + _UNUSED),
        "calibration.rate": Option(float, 2.0, "Ratio of rates that are tried." + _UNUSED),
        "calibration.samples": Option(float, 1000.0, "Sequences of a trial." + _UNUSED),
        "calibration.candidates": Option(int, 10, "Rates to find." + _UNUSED),
        "calibration.max_trials": Option(int, 20, "Most trials." + _UNUSED),
        **_SEED,
    },
    "averaged-perceptron": {
        **_SHARED,
        **_iterations(100, "passes over the data (left at this, Trellis's ten)"),
        **_epsilon(0.0),
        **_SEED,
    },
    "passive-aggressive": {
        **_SHARED,
        "type": Option(
            int, 1, "0: without slack variables (c is 1,000); 1 and 2: with a linear slack."
        ),
        "c": Option(float, 1.0, "The aggressiveness: how much a loss weighs against ‖w‖²/2."),
        "error_sensitive": Option(
            truth, True, "Count wrong labels in the loss; Trellis always does."
        ),
        "averaging": Option(truth, True, "Average the weights, where stochastic steps are made."),
        **_iterations(100, "passes over the data (left at this, Trellis's own)"),
        **_epsilon(0.0),
        **_SEED,
    },
    "arow": {
        **_SHARED,
        "variance": Option(float, 1.0, "The prior variance of every weight."),
        "gamma": Option(float, 1.0, "How much that prior weighs against the losses."),
        **_iterations(100, "passes over the data (left at this, Trellis's twelve)"),
        **_epsilon(0.0),
        **_SEED,
    },
}


@dataclass(frozen=True)
class Algorithm:
    """A training algorithm: its parameters, and who learns."""

    parameters: Mapping[str, Option]
    learner: str
    fit: Callable[[Corpus, Options], LinearModel]

    def train(self, corpus: Corpus, options: Options) -> LinearModel:
        """Learn from a corpus with labels, with all parameters given."""
        return self.fit(_frequent(corpus, options["feature.minfreq"]), options)


def _lbfgs(corpus: Corpus, options: Options) -> LinearModel:
    c1, c2, most = options["c1"], options["c2"], options["max_iterations"]
    shared = _shared(options) | {"l2": c2}
    assert corpus.features is not None
    assert corpus.labels is not None
    entries = len(corpus.features.indices) * len(corpus.labels.classes)
    if options["exact"] or entries <= _LITTLE_DATA:
        exact = {
            "solver": "lbfgs", "l1": c1,
            "states": "all" if options["feature.possible_states"] else "observed",
            # «tol» is a hundredth for an iteration of L-BFGS.
            "tol": 100 * options["delta"] / max(1, options["period"]),
            "max_passes": 1000 if most == _UNLIMITED else max(1, most),
        }  # fmt: skip
        return ChainCRF(**shared, **exact).fit(corpus)
    if not c1:
        few = most < passes_for(corpus.n_positions)
        return ChainCRF(**shared, max_passes=max(1, most) if few else "auto").fit(corpus)
    steps = {"decay": _DECAY, "max_passes": max(1, min(_PASSES, most)), "solver": "sgd"}
    model = ChainCRF(**shared, l1=c1, warm_start=True, **steps).fit(corpus)
    first = model.history_
    model.set_params(solver="lbfgs", max_passes=max(1, min(_ITERATIONS, most))).fit(corpus)
    after = [replace(r, number=r.number + len(first)) for r in model.history_]
    model.history_ = [*first, *after]
    return model.set_params(warm_start=False)


def _l2sgd(corpus: Corpus, options: Options) -> LinearModel:
    passes = _told(options, 1000)
    return ChainCRF(
        **_shared(options), solver="sgd", l2=options["c2"], max_passes=passes
    ).fit(corpus)  # fmt: skip


def _perceptron(corpus: Corpus, options: Options) -> LinearModel:
    shared = {k: v for k, v in _shared(options).items() if k != "transitions"}
    return ChainPerceptron(**shared, max_passes=_told(options, 100)).fit(corpus)


def _passive_aggressive(corpus: Corpus, options: Options) -> LinearModel:
    shared = {k: v for k, v in _shared(options).items() if k != "transitions"}
    c = options["c"] if options["type"] else _NO_SLACK
    if not c > 0:
        raise DataError(f"c must be above 0, got {c}")
    averaged = "auto" if options["averaging"] else False
    return MaxMargin(
        **shared, l2=1 / (2 * c), averaged=averaged, max_passes=_told(options, 100)
    ).fit(corpus)  # fmt: skip


def _arow(corpus: Corpus, options: Options) -> LinearModel:
    if not options["variance"] > 0:
        raise DataError(f"variance must be above 0, got {options['variance']}")
    return ChainCRF(
        **_shared(options), solver="adf", l2=options["gamma"] / (2 * options["variance"]),
        max_passes=_told(options, 100),
    ).fit(corpus)  # fmt: skip


ALGORITHMS = {
    name: Algorithm(_PARAMETERS[name], learner, fit)
    for name, learner, fit in (
        ("lbfgs", "penalised log-likelihood", _lbfgs),
        ("l2sgd", "penalised log-likelihood, averaged stochastic steps", _l2sgd),
        ("averaged-perceptron", "averaged structured perceptron", _perceptron),
        ("passive-aggressive", "max-margin", _passive_aggressive),
        ("arow", "penalised log-likelihood, rates by frequency", _arow),
    )
}
"""Training algorithms by CRFsuite's names."""


def _shared(options: Options) -> dict[str, Any]:
    """What all learners are told; labels stay as they are, so that each weight has its name."""
    every = options["feature.possible_transitions"]
    return {
        "encoding": "given",
        "transitions": "all" if every else "observed",
        "random_state": options["random_state"],
    }


def _told(options: Options, default: int) -> Any:
    most = options["max_iterations"]
    return "auto" if most == default else max(1, most)


def _frequent(corpus: Corpus, least: float) -> Corpus:
    """The corpus without attributes whose values sum to less than this over all items."""
    features = corpus.features
    if least <= 0 or features is None:
        return corpus
    values = np.ones(len(features.indices)) if features.values is None else features.values
    total = np.bincount(features.indices, values, len(features.names))
    return with_entries(corpus, total[features.indices] >= least)


def as_chain_crf(model: Any) -> ChainCRF:
    """The weights of any linear model of chains as those of a CRF, which has probabilities."""
    if type(model) is ChainCRF:
        return model
    if not isinstance(model, LinearModel) or model.structure != "chain":
        raise DataError(f"a {type(model).__name__} is no model of sequences")
    crf = ChainCRF(
        model.features, encoding=model.encoding, scheme=model.scheme,
        random_state=model.random_state,
    )  # fmt: skip
    names = (
        "classes_", "encoder_", "weights_", "edge_types_", "refinement_", "history_",
        "stop_reason_", "solver_", "input_format_",
    )  # fmt: skip
    for name in names:
        setattr(crf, name, getattr(model, name))
    return crf

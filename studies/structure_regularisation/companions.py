"""What the theory speaks of, measured beside the experiments.

*Overfitting.* The gap between test and training loss of the CRFs of the curves, with rich edges,
against α, beside the overfit-bound of Theorem 4, times the number that makes the two agree at
α = 1. The bound is larger than the gap by many orders of magnitude, so that only its shape can be
compared.

*Stability and rate.* :func:`studies.measured.measure_stability` and
:func:`studies.measured.measure_rate` on a corpus small enough for exact training.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from studies.measured import measure_rate, measure_stability
from studies.structure_regularisation.methods import family
from studies.structure_regularisation.protocol import Protocol
from studies.structure_regularisation.study import TaskStudy
from trellis import __version__
from trellis.corpus import Corpus
from trellis.files import fingerprint
from trellis.theory import overfit_bound
from trellis.theory.quantities import RHO, TAU

__all__ = ["COMPANIONS", "Gap", "companion_key", "companion_task", "gaps", "measure"]

COMPANIONS = ("stability", "rate")
_PREFERRED = ("chunking", "pos", "roles")
_EPSILON = 0.01


@dataclass(frozen=True)
class Gap:
    """Losses at one n′, and what the bound predicts from the gap on whole sequences."""

    piece_size: float | None
    alpha: float
    train_loss: float
    test_loss: float
    predicted: float

    @property
    def gap(self) -> float:
        """Test loss minus training loss, in nats per position."""
        return self.test_loss - self.train_loss


def gaps(study: TaskStudy) -> list[Gap]:
    """Gaps of the CRFs of a task, whole sequences first, then by falling n′."""
    facts = study.facts
    results = list(reversed(study.curve(family("crf", "rich"))))
    m, n = facts["n_train"], facts["mean_length"]
    whole = results[0].runs[0]

    def bound(alpha: float) -> float:
        return overfit_bound(
            m=m, n=n, d=whole["n_features"] + 1, alpha=alpha,
            lam=2 * results[0].fit.params["l2"] / (m * n), gamma=whole["largest_loss"],
            v=facts["largest_value"], rho=RHO, tau=TAU,
        )  # fmt: skip

    scale = (whole["test_loss"] - whole["train_loss"]) / bound(1.0)
    found = []
    for result in results:
        run, size = result.runs[0], result.fit.params["piece_size"]
        alpha = 1.0 if size is None else max(1.0, n / size)
        found.append(Gap(size, alpha, run["train_loss"], run["test_loss"], scale * bound(alpha)))
    return found


def companion_task(tasks: list[str]) -> str:
    """The task whose data stability and rate are measured on."""
    return next((name for name in _PREFERRED if name in tasks), tasks[0])


def companion_key(what: str, facts: dict[str, Any], protocol: Protocol) -> str:
    """Fingerprint of everything that decides the measurement."""
    setting = [what, protocol.small, protocol.small_sizes, protocol.rates, _EPSILON, __version__]
    return fingerprint([facts["curves"], facts["features"], *setting])


def measure(what: str, corpus: Corpus, features: str, protocol: Protocol) -> dict[str, Any]:
    """Measure stability or rate on the first sequences of a corpus; returns a record."""
    small = corpus[: protocol.small].only_used_labels()
    found: list[Any]
    if what == "stability":
        found = list(measure_stability(small, protocol.small_sizes, features=features))
    else:
        found = list(
            measure_rate(
                small,
                protocol.small_sizes,
                learning_rates=protocol.rates,
                epsilon=_EPSILON,
                max_passes=50,
                features=features,
            )
        )
    return {
        "kind": "companion",
        "what": what,
        "n_sequences": len(small),
        "epsilon": _EPSILON,
        # Without the gap after every pass, which is infinite where a rate was too large.
        "found": [{k: v for k, v in asdict(item).items() if k != "gaps"} for item in found],
    }

"""One training of the study, and what is written down about it.

Besides scores and times: exact zeros and templates dropped (for L1 and group lasso), and for CRFs
the mean negative log-likelihood per position of whole sequences,

    (1 / Σ_i n_i) Σ_i −log p(y_i | x_i),

on the training part (at most 2,000 sequences of it) and on the test part; sequences with a label
that the model never saw are left out, since their loss is infinite.

Two models are trained once and decoded together with each strength that is asked for; the record
has a list of what each gave, and the scores of the best one on development data.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from studies.packing import pack
from studies.structure_regularisation.tasks import TaskData
from trellis import __version__
from trellis.corpus import Corpus
from trellis.errors import DataError
from trellis.evaluation.held_out import held_out_score
from trellis.files import fingerprint
from trellis.models import ChainCRF, ChainPerceptron, RegularisedDecoder
from trellis.problems import Penalty
from trellis.structures import ChainPotentials, labelling_score, marginals

__all__ = ["Fit", "perform", "setting_words"]

_LOSS_SEQUENCES = 2000
_MODELS: dict[str, type[ChainCRF] | type[ChainPerceptron]] = {
    "crf": ChainCRF,
    "perceptron": ChainPerceptron,
    "default": ChainCRF,
}
_SAID = ("task", "part", "model", "params", "run")


@dataclass(frozen=True)
class Fit:
    """A training: task, which of its training data, model, parameters and number of the run.

    ``part`` is "curves" (the data on which settings are chosen) or "comparison" (all data),
    ``model`` is "crf", "perceptron", "default" (a CRF without parameters) or "two models", whose
    parameters are those of the ``complex`` and the ``simple`` CRF, and ``strengths``.
    """

    task: str
    part: str
    model: str
    params: dict[str, Any] = field(hash=False)
    run: int = 0

    def key(self, facts: dict[str, Any]) -> str:
        """Fingerprint of everything that decides the result; the same data give the same key."""
        return fingerprint(
            [facts[self.part], facts["features"], self.model, self.params, self.run, __version__]
        )

    def with_params(self, **changes: Any) -> Fit:
        """The same training with some parameters changed."""
        return replace(self, params=self.params | changes)

    def __str__(self) -> str:
        words = [self.task, self.model.replace("crf", "CRF"), *setting_words(self.params, "'")]
        if not self.params.get("rich_edges", True):
            words.insert(2, "plain")
        if self.model == "perceptron" and not self.params.get("averaged", True):
            words.append("not averaged")
        if self.model == "perceptron" or self.run:
            words.append(f"run {self.run + 1}")
        if self.part == "comparison":
            words.append("all data")
        return ", ".join(words)


def setting_words(params: dict[str, Any], prime: str = "′") -> list[str]:
    """What was set of the parameters that differ within a method; nothing for the default."""
    if not params:
        return []
    if "complex" in params:
        strengths = ", ".join(f"{x:g}" for x in params["strengths"])
        return [*setting_words(params["complex"], prime), f"strength {strengths}"]
    size = params.get("piece_size")
    words = [f"{n} {params[n]:g}" for n in ("l2", "l1", "group_lasso") if params.get(n)]
    words.append("whole" if size is None else f"n{prime} {size:g}")
    return words + ([f"overlap {params['overlap']}"] if params.get("overlap") else [])


def perform(fit: Fit, data: TaskData) -> dict[str, Any]:
    """Train and measure; returns the record, without its key."""
    try:
        started = time.perf_counter()
        record = {"kind": "fit"} | {name: getattr(fit, name) for name in _SAID}
        record |= _two_models(fit, data) if fit.model == "two models" else _one_model(fit, data)
        return record | {"wall_seconds": time.perf_counter() - started}
    except DataError as error:
        raise DataError(f"at {fit}: {error}") from error


def _one_model(fit: Fit, data: TaskData) -> dict[str, Any]:
    model, record = _trained(fit, data)
    record |= _sparsity(model) | _scores(model, data)
    params = fit.params
    if fit.part == "curves" and params.get("l2") and params.get("rich_edges"):
        assert isinstance(model, ChainCRF)
        record |= _losses(model, data.train, data.test)
    return record


def _two_models(fit: Fit, data: TaskData) -> dict[str, Any]:
    (rich, record), (simple, other) = (
        _trained(replace(fit, model="crf", params=fit.params[part]), data)
        for part in ("complex", "simple")
    )
    decoded = [
        {"strength": s} | _scores(RegularisedDecoder(rich, simple, s), data)
        for s in fit.params["strengths"]
    ]
    record |= {name: record[name] + other[name] for name in ("seconds", "cpu_seconds")}
    best = max(decoded, key=lambda found: found["dev"])
    return record | _sparsity(rich) | best | {"decoded": decoded}


def _trained(fit: Fit, data: TaskData) -> tuple[ChainCRF | ChainPerceptron, dict[str, Any]]:
    """A fitted model, and how its training went."""
    corpus = data.train if fit.part == "curves" else data.whole
    kind = _MODELS[fit.model]
    make: dict[str, Any] = {"features": data.features, "random_state": fit.run} | fit.params
    # Once on a few sequences: loading compiled kernels is not training time.
    warm = kind(**make | {"max_passes": 1}).fit(corpus[:3])
    warm.predict(data.test[:3])
    started, cpu = time.perf_counter(), time.process_time()
    model = kind(**make).fit(corpus)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - started
    passes = sum(r.seconds for r in model.history_)
    return model, {
        # Processor time, since other fits run beside this one: the passes' share of the fit's.
        "seconds": cpu * passes / wall,
        "cpu_seconds": cpu,
        "passes": model.n_passes_,
        "stopped": model.stop_reason_,
        "n_features": model.n_features_,
    }


def _scores(
    model: ChainCRF | ChainPerceptron | RegularisedDecoder, data: TaskData
) -> dict[str, Any]:
    """Scores on development and test data, and what was predicted on the latter."""
    predicted = model.predict(data.test)
    return {
        "dev": held_out_score(data.dev.label_lists(), model.predict(data.dev), data.scheme),
        "test": held_out_score(data.test.label_lists(), predicted, data.scheme),
        "predictions": pack(predicted),
    }


def _sparsity(model: ChainCRF | ChainPerceptron) -> dict[str, Any]:
    """Weights, the share of exact zeros, templates and how many have no weight left."""
    weights = model.weights_
    arrays = weights.arrays()
    n_weights = sum(a.size for a in arrays)
    groups = model.encoder_.groups()
    norms, sizes = Penalty(group_lasso=1.0, groups=groups).group_norms(weights)
    n = int(groups.max(initial=-1)) + 1
    there = sizes[:n] > 0  # a template may give no feature at all
    dropped = there & (norms[:n] == 0) & (norms[n : 2 * n] == 0)  # with labels, with their pairs
    return {
        "n_weights": n_weights,
        "zeros": sum(int((a == 0).sum()) for a in arrays) / n_weights,
        "templates": int(there.sum()),
        "templates_dropped": int(dropped.sum()),
    }


def _losses(model: ChainCRF, train: Corpus, test: Corpus) -> dict[str, float]:
    step = max(1, -(-len(train) // _LOSS_SEQUENCES))
    train_loss, largest = _mean_loss(model, train[::step])
    test_loss, _ = _mean_loss(model, test)
    return {"train_loss": train_loss, "test_loss": test_loss, "largest_loss": largest}


def _mean_loss(model: ChainCRF, corpus: Corpus) -> tuple[float, float]:
    """Mean loss per position of whole sequences, and the largest −log p(y_k | x) of a position."""
    number = {label: i for i, label in enumerate(model.classes_)}
    gold = corpus.label_lists()
    known = [i for i, labels in enumerate(gold) if all(label in number for label in labels)]
    if not known:
        raise DataError("no test sequence has only labels of the training part; take more data")
    ids = np.array([number[label] for i in known for label in gold[i]])
    total, largest = 0.0, 0.0
    last = 0
    for p, _ in model.potentials(corpus.take(known)):
        assert isinstance(p, ChainPotentials)
        log_z, node = marginals(p)
        first, last = last, last + len(node)
        total += float((log_z - labelling_score(p, ids[first:last])).sum())
        right = node[np.arange(last - first), ids[first:last]]
        largest = max(largest, -float(np.log(max(right.min(initial=1.0), 1e-300))))
    return total / len(ids), largest

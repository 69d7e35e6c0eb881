"""Each solver against its peer in python-crfsuite on CoNLL-2000 chunking: objective, F1, seconds.

    python -m benchmarks.solvers             # about 15 minutes, most of it the peer
    python -m benchmarks.solvers --quick     # without L-BFGS and l2sgd of the peer

The same features on both sides, l2 = c2 = 1, one core; seconds are those of the passes or
iterations alone, as both sides count them. «Objective» is the summed log-loss plus the penalty;
perceptrons have none. CRFsuite has a weight only for a feature and a label seen together; Trellis
has all, or with ``states="observed"`` the same as CRFsuite and all transitions. Each solver ends by
its own rule.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import crfsuite
from benchmarks.options import begin
from benchmarks.side_by_side import Table, short
from studies.datasets import data_folder, load
from trellis import ChainCRF, ChainPerceptron, Corpus
from trellis.decompose import WholeSamples
from trellis.evaluation import span_scores
from trellis.problems import LabelProblem, LogLikelihood, Penalty

MODELS: dict[str, tuple[Any, dict[str, Any]]] = {
    "L-BFGS, observed states": (ChainCRF, {"solver": "lbfgs", "states": "observed"}),
    "L-BFGS": (ChainCRF, {"solver": "lbfgs"}),
    "SGD": (ChainCRF, {"decay": 0.75}),
    "SGD, averaged": (ChainCRF, {"averaged": True, "max_passes": 12}),
    "ADF": (ChainCRF, {"solver": "adf"}),
    "SGD, L1": (ChainCRF, {"l2": 0.0, "l1": 1.0}),
    "averaged perceptron": (ChainPerceptron, {}),
}
PEERS: dict[str, tuple[str, dict[str, Any]]] = {
    "averaged perceptron, 10 passes": ("ap", {"max_iterations": 10}),
    "L-BFGS": ("lbfgs", {"c2": 1.0, "c1": 0.0}),
    "l2sgd": ("l2sgd", {"c2": 1.0}),
}


def objective(model: ChainCRF | ChainPerceptron, corpus: Corpus) -> str:
    """Exact summed loss on whole sequences plus the penalty, of a CRF."""
    if isinstance(model, ChainPerceptron):
        return ""
    problem = LabelProblem(model.encoder_.encode(corpus), corpus.labels, model.n_features_)
    visits = problem.visits(WholeSamples().draw(corpus.offsets, np.random.default_rng(0)))
    value, _ = LogLikelihood(problem).value_and_gradient(model.weights_, visits)
    return short(value + Penalty(l2=model.l2_, l1=model.l1).value(model.weights_))


def main() -> None:
    args = begin(
        __doc__,
        quick=(False, False, "only the peer's perceptron"),
        no_l2sgd=(False, False, "without the slowest peer"),
    )
    data = load("conll2000")
    gold = data.test.label_lists()
    table = Table(f"{len(data.train)} sentences", "solver", "objective", "F1", "training s")

    def add(name: str, value: str, labels: list[list[str]], seconds: float) -> None:
        table.add(name, value, f"{100 * span_scores(gold, labels, 'BIO').f1:.2f}", seconds)

    # One objective for all: that of the labels given, with CRFsuite's default penalty.
    same = {ChainCRF: {"encoding": "given", "l2": 1.0}, ChainPerceptron: {"encoding": "given"}}
    for name, (kind, options) in MODELS.items():
        model = kind(data.features, random_state=0, **same[kind] | options).fit(data.train)
        seconds = sum(record.seconds for record in model.history_)
        add(f"Trellis {name}", objective(model, data.train), model.predict(data.test), seconds)
    if crfsuite.is_there():
        folder = data_folder("conll2000")
        train, test = (crfsuite.read(folder / f"{part}.txt.xz") for part in ("train", "test"))
        labels = [[y for *_, y in sentence] for sentence in train]
        left_out = {"l2sgd": args.no_l2sgd or args.quick, "L-BFGS": args.quick}
        for name, (algorithm, options) in PEERS.items():
            if left_out.get(name):
                continue
            with tempfile.TemporaryDirectory() as scratch:
                path, items = str(Path(scratch, "model")), map(crfsuite.attributes, train)
                log, seconds = crfsuite.train(path, items, labels, algorithm, **options)
                tagger = crfsuite.tagger(path)
            value = "" if algorithm == "ap" else re.findall(r"Loss: ([0-9.]+)", log)[-1]
            tagged = tagger(map(crfsuite.attributes, test))
            add(f"CRFsuite {name}", value and short(float(value)), tagged, seconds)
    table.show()


if __name__ == "__main__":
    main()

"""Each solver against its peer in python-crfsuite on CoNLL-2000 chunking: objective, F1, seconds.

    python -m benchmarks.solvers             # about 15 minutes, most of it the peer
    python -m benchmarks.solvers --quick     # without L-BFGS and l2sgd of the peer

The same features on both sides, l2 = c2 = 1, one core, training alone (features extracted, data
handed over). «Objective» is the summed log-loss plus the penalty. CRFsuite has a weight only for a
feature and a label seen together; Trellis has all, or with ``states="observed"`` the same as
CRFsuite and all transitions.
"""

from __future__ import annotations

import argparse
import re
import tempfile
import time
from pathlib import Path

from benchmarks.crfsuite_chunking import attributes, read
from benchmarks.side_by_side import one_core, table
from studies.datasets import data_folder, load
from trellis import ChainCRF, ChainPerceptron, Corpus
from trellis.evaluation import span_scores
from trellis.warmup import warmup


def peer(sentences: list, test: list, algorithm: str, path: str, **parameters: object) -> list:
    """Train python-crfsuite; returns objective, labels and seconds of training."""
    import pycrfsuite

    trainer = pycrfsuite.Trainer(algorithm=algorithm, verbose=False)
    trainer.set_params(parameters)
    for sentence in sentences:
        trainer.append(pycrfsuite.ItemSequence(attributes(sentence)), [y for *_, y in sentence])
    started = time.perf_counter()
    trainer.train(path)
    seconds = time.perf_counter() - started
    log = "".join(trainer.logparser.log)
    losses = re.findall(r"Loss: ([0-9.]+)", log)
    tagger = pycrfsuite.Tagger()
    tagger.open(path)
    labels = [tagger.tag(pycrfsuite.ItemSequence(attributes(s))) for s in test]
    return [float(losses[-1]) if losses else None, labels, seconds]


def objective(model: ChainCRF, corpus: Corpus) -> float:
    """Exact summed loss on whole sequences plus the L2 penalty."""
    import numpy as np

    from trellis.decompose import WholeSamples
    from trellis.problems import LabelProblem, LogLikelihood

    problem = LabelProblem(model.encoder_.encode(corpus), corpus.labels, model.n_features_)
    visits = problem.visits(WholeSamples().draw(corpus.offsets, np.random.default_rng(0)))
    value, _ = LogLikelihood(problem).value_and_gradient(model.weights_, visits)
    return value + model.l2 * model.weights_.squared_norm()


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--quick", action="store_true", help="only the peer's perceptron")
    arguments.add_argument("--no-l2sgd", action="store_true", help="without the slowest peer")
    args = arguments.parse_args()
    one_core()
    warmup()
    data = load("conll2000")
    gold = data.test.label_lists()
    folder = data_folder("conll2000")
    sentences, test = read(folder / "train.txt.xz"), read(folder / "test.txt.xz")
    rows = []

    def add(name: str, value: float | None, labels: list, seconds: float) -> None:
        f1 = 100 * span_scores(gold, labels, "BIO").f1
        rows.append([name, "" if value is None else f"{value:.0f}", f"{f1:.2f}", f"{seconds:.1f}"])
        print(rows[-1], flush=True)

    def ours(name: str, model: ChainCRF | ChainPerceptron) -> None:
        model.fit(data.train)
        seconds = sum(r.seconds for r in model.history_)
        value = objective(model, data.train) if isinstance(model, ChainCRF) else None
        add(f"Trellis {name}", value, model.predict(data.test), seconds)

    observed = {"solver": "lbfgs", "states": "observed"}
    ours("L-BFGS, observed states", ChainCRF(data.features, **observed))
    ours("L-BFGS", ChainCRF(data.features, solver="lbfgs"))
    ours("SGD", ChainCRF(data.features, random_state=0))
    ours("ADF", ChainCRF(data.features, solver="adf", random_state=0))
    ours("SGD, L1", ChainCRF(data.features, l2=0.0, l1=1.0, random_state=0))
    ours("averaged perceptron", ChainPerceptron(data.features, random_state=0))
    with tempfile.TemporaryDirectory() as scratch:
        path = str(Path(scratch, "model"))
        add(
            "CRFsuite averaged perceptron, 10 passes",
            *peer(sentences, test, "ap", path, max_iterations=10),
        )
        if not args.quick:
            add("CRFsuite L-BFGS", *peer(sentences, test, "lbfgs", path, c2=1.0, c1=0.0))
        if not (args.quick or args.no_l2sgd):
            add("CRFsuite l2sgd", *peer(sentences, test, "l2sgd", path, c2=1.0))
    print(table(["", "objective", "F1", "training s"], rows))


if __name__ == "__main__":
    main()

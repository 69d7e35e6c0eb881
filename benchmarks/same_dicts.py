"""Training from the same feature dicts, against python-crfsuite's L-BFGS. One core.

    python -m benchmarks.same_dicts

The dicts are those of sklearn-crfsuite's tutorial on CoNLL-2000, made beforehand; both sides go
from dicts and labels to a trained model with their defaults. F1 is on the test data.
"""

from __future__ import annotations

import tempfile
from typing import Any

from benchmarks import crfsuite
from benchmarks.options import begin
from benchmarks.side_by_side import Table, alternate, ratio
from benchmarks.tutorial import dicts
from studies.datasets import load
from trellis import ChainCRF
from trellis.evaluation import span_scores


def main() -> None:
    args = begin(__doc__, rounds=(1, 1))
    data = load("conll2000")
    X, y = dicts(data.train), data.train.label_lists()
    unseen, gold = dicts(data.test), data.test.label_lists()
    with tempfile.TemporaryDirectory() as scratch:
        path = f"{scratch}/model.crfsuite"
        runs: dict[str, Any] = {"Trellis": lambda: ChainCRF(random_state=0).fit(X, y)}
        if crfsuite.is_there():
            runs["python-crfsuite"] = lambda: crfsuite.train(path, X, y, "lbfgs")
        measured = alternate(runs, args.rounds, keep=lambda model: model)
        title = "from feature dicts to a trained model, one core"
        table = Table(title, "system", "F1", "seconds (median)", "takes, times Trellis")
        for run in measured:
            ours = run.name == "Trellis"
            labels = run.kept[-1].predict(unseen) if ours else crfsuite.tagger(path)(unseen)
            f1 = f"{100 * span_scores(gold, labels, 'BIO').f1:.2f}"
            table.add(run.name, f1, run.wall.median, ratio(run.wall, measured[0].wall))
    table.show()


if __name__ == "__main__":
    main()

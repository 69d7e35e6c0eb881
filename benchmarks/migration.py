"""sklearn-crfsuite's tutorial, with its import line and with ours. One core.

    python -m benchmarks.migration

The dicts and the settings are the tutorial's (``lbfgs``, c1 = c2 = 0.1, 100 iterations, all
possible transitions), the tasks CoNLL-2000 and JNLPBA; both libraries train by turns, from dicts
and labels to a fitted model. F1 is on the test data: the tutorial's (flat, weighted by label,
without O) and that of spans. Weights are those of attributes and labels that are not zero.
Seconds are of the CPU, of which both use one.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from benchmarks.options import begin
from benchmarks.side_by_side import Table, alternate, ratio
from benchmarks.tutorial import dicts
from studies.datasets import load
from trellis.evaluation import span_scores

LIBRARIES = {"trellis.compat": "trellis.compat.sklearn_crfsuite"}
SETTINGS: dict[str, Any] = {
    "algorithm": "lbfgs", "c1": 0.1, "c2": 0.1, "max_iterations": 100,
    "all_possible_transitions": True,
}  # fmt: skip
HEADER = (
    "task", "library", "flat F1", "span F1", "weights", "fit, CPU s (median)",
    "takes, times Trellis",
)  # fmt: skip


def fitted(library: str, X: Any, y: Any) -> Any:
    """The tutorial's model."""
    return import_module(library).CRF(**SETTINGS).fit(X, y)


def contest(task: str, rounds: int, libraries: dict[str, str], table: Table) -> None:
    data = load(task)
    X, y = dicts(data.train), data.train.label_lists()
    unseen, gold = dicts(data.test), data.test.label_lists()
    runs = {name: lambda home=home: fitted(home, X, y) for name, home in libraries.items()}
    measured = alternate(runs, rounds, keep=lambda model: model)
    for run in measured:
        crf, metrics = run.kept[-1], import_module(f"{libraries[run.name]}.metrics")
        found = crf.predict(unseen)
        labels = [label for label in crf.classes_ if label != "O"]
        flat = metrics.flat_f1_score(
            gold, found, average="weighted", labels=labels, zero_division=0
        )
        spans = span_scores(gold, list(map(list, found)), data.scheme).f1
        table.add(
            task, run.name, f"{100 * flat:.2f}", f"{100 * spans:.2f}", len(crf.state_features_),
            run.cpu.median, ratio(run.cpu, measured[0].cpu),
        )  # fmt: skip


def main() -> None:
    args = begin(__doc__, tasks=(["conll2000", "jnlpba"], ["conll2000", "jnlpba"]), rounds=(3, 1))
    libraries = dict(LIBRARIES)
    if find_spec("sklearn_crfsuite") is None:
        print("sklearn-crfsuite is left out: not installed (it comes with the extra «bench»)")
    else:
        libraries["sklearn-crfsuite"] = "sklearn_crfsuite"
    table = Table("sklearn-crfsuite's tutorial, one core", *HEADER)
    for task in args.tasks:
        contest(task, args.rounds, libraries, table)
    table.show()


if __name__ == "__main__":
    main()

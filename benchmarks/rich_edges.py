"""Rich edges and structure regularisation at single settings: F1 on jnlpba and sxu, seconds.

    python -m benchmarks.rich_edges            # about 10 minutes

The settings are fixed here, some of them looked at on the test data before: this shows what they
reach, not which one to choose (``python -m studies structure-regularisation`` chooses on
development data). Then what rich edges cost at prediction: tokens a second of models with plain
and with rich edges, by turns.
"""

from __future__ import annotations

from functools import partial

from benchmarks.options import begin
from benchmarks.side_by_side import Table, alternate, once, ratio
from studies.datasets import DataSet, load
from trellis import ChainCRF, ChainPerceptron
from trellis.evaluation import span_scores

SETTINGS: dict[str, list[dict[str, object]]] = {
    "jnlpba": [
        {},
        {"rich_edges": True},
        {"rich_edges": True, "piece_size": 5.5},
        {"rich_edges": True, "piece_size": 5.5, "l2": 2.0},
    ],
    "sxu": [
        {},
        {"rich_edges": True},
        {"rich_edges": True, "piece_size": 3.5},
        {"rich_edges": True, "piece_size": 3.5, "l2": 0.2},
        {"rich_edges": True, "piece_size": 3.5, "l2": 0.1, "solver": "adf"},
        {"rich_edges": True, "piece_size": 3.5, "model": "perceptron"},
    ],
}


SPEED = {"jnlpba": 4000, "conll2000": 4000, "ud_ewt": 4000}
"""Sentences to train on, for the speed of prediction."""


def predictions(data: DataSet, n: int, rounds: int, table: Table) -> None:
    """Tokens a second with plain and rich edges."""
    models = {
        kind: ChainCRF(data.features, rich_edges=kind == "rich", max_passes=3, random_state=0)
        for kind in ("plain", "rich")
    }
    for model in models.values():
        model.fit(data.train[:n])
    for what in ("predict", "predict_marginals"):
        runs = {kind: partial(getattr(model, what), data.test) for kind, model in models.items()}
        alternate(runs, 1)  # warm
        plain, rich = (run.wall for run in alternate(runs, rounds))
        speed = [data.test.n_positions / wall.median for wall in (plain, rich)]
        table.add(data.name, len(models["rich"].states_), what, *speed, ratio(rich, plain))


def main() -> None:
    args = begin(__doc__, rounds=(5, 1))
    table = Table("Single settings", "data", "setting", "F1", "training s")
    for name, settings in SETTINGS.items():
        data = load(name)
        gold = data.test.label_lists()
        for setting in settings:
            options = dict(setting)
            kind = ChainPerceptron if options.pop("model", "") else ChainCRF
            model = kind(data.features, random_state=0, **options)
            _, seconds = once(lambda model=model, data=data: model.fit(data.train))
            f1 = 100 * span_scores(gold, model.predict(data.test), data.scheme or "BIO").f1
            told = ", ".join(f"{k}={v}" for k, v in setting.items()) or "defaults"
            table.add(name, told, f"{f1:.2f}", seconds)
    header = ("data", "states", "what", "plain", "rich", "time, rich / plain (range)")
    speeds = Table("Tokens a second on one core, features included", *header)
    for name, n in SPEED.items():
        predictions(load(name), n, args.rounds, speeds)
    table.show()
    speeds.show()


if __name__ == "__main__":
    main()

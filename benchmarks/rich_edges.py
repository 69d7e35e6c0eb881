"""Rich edges and structure regularisation at single settings: F1 on jnlpba and sxu, seconds.

    python -m benchmarks.rich_edges            # about 8 minutes

The settings are fixed here, some of them looked at on the test data before: this shows what they
reach, not which one to choose (``python -m studies structure-regularisation`` chooses on
development data).
"""

from __future__ import annotations

from benchmarks.options import begin
from benchmarks.side_by_side import Table, once
from studies.datasets import load
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


def main() -> None:
    begin(__doc__)
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
    table.show()


if __name__ == "__main__":
    main()

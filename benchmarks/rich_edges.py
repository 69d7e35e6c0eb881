"""Rich edges and structure regularisation at single settings: F1 on jnlpba and sxu, seconds.

    python -m benchmarks.rich_edges            # about 8 minutes

The settings are fixed here, some of them looked at on the test data before: this shows what they
reach, not which one to choose (``python -m studies structure-regularisation`` chooses on
development data).
"""

from __future__ import annotations

import time

from benchmarks.side_by_side import one_core, table
from studies.datasets import load
from trellis import ChainCRF, ChainPerceptron
from trellis.evaluation import span_scores
from trellis.warmup import warmup

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
    one_core()
    warmup()
    rows = []
    for name, settings in SETTINGS.items():
        data = load(name)
        gold = data.test.label_lists()
        for setting in settings:
            options = dict(setting)
            kind = ChainPerceptron if options.pop("model", "") else ChainCRF
            started = time.perf_counter()
            model = kind(data.features, random_state=0, **options).fit(data.train)
            seconds = time.perf_counter() - started
            f1 = 100 * span_scores(gold, model.predict(data.test), data.scheme or "BIO").f1
            told = ", ".join(f"{k}={v}" for k, v in setting.items()) or "defaults"
            rows.append([name, told, f"{f1:.2f}", f"{seconds:.1f}"])
            print(rows[-1], flush=True)
    print(table(["data", "setting", "F1", "training s"], rows))


if __name__ == "__main__":
    main()

"""The tables of the report, as Markdown. Scores are in per cent, times in seconds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from studies.markdown import markdown
from studies.structure_regularisation.companions import gaps
from studies.structure_regularisation.comparison import Verdict
from studies.structure_regularisation.study import METHODS, Result, TaskStudy
from studies.structure_regularisation.tasks import TASKS
from studies.texts import p_text, percent, percent_sd, size_text

__all__ = [
    "comparison_table",
    "curve_table",
    "data_table",
    "gap_table",
    "methods_table",
    "published_table",
    "rate_table",
    "sparsity_table",
    "stability_table",
    "tuning_table",
]


def _count(n: float) -> str:
    return f"{n:,.0f}"


def setting_text(result: Result) -> str:
    """The parameters that were chosen."""
    params = result.fit.params
    words = [f"{n} {params[n]:g}" for n in ("l2", "l1", "group_lasso") if params.get(n)]
    size = params.get("piece_size")
    return ", ".join([*words, "whole" if size is None else f"n′ {size:g}"])


def data_table(studies: Sequence[TaskStudy]) -> str:
    """The data of the tasks."""
    rows = []
    for study in studies:
        f, task = study.facts, TASKS[study.task]
        n_raw = study.final("WeightReg").runs[0]["n_features"]
        rows.append(
            [
                task.title, task.data or "embedded", _count(f["n_train"]), _count(f["n_whole"]),
                _count(f["n_dev"]), _count(f["n_test"]), str(f["n_labels"]),
                f"{f['mean_length']:.1f}", _count(n_raw),
                "–" if task.n_raw is None else _count(task.n_raw),
            ]
        )  # fmt: skip
    head = [
        "task", "data", "train (curves)", "train (comparison)", "dev", "test", "labels",
        "mean length", "raw features", "the paper's",
    ]  # fmt: skip
    return markdown(head, rows)


def published_table(studies: Sequence[TaskStudy]) -> str:
    """Table 1 of the paper with our results beside it."""
    rows = []
    for study in studies:
        task = TASKS[study.task]
        if task.published is None or task.benchmark is None:
            continue
        rows.append(
            [
                f"{task.title} ({study.metric})", f"{task.benchmark:.2f}", f"{task.published:.2f}",
                percent(study.final("StructReg").mean("test")),
                percent(study.final("WeightReg").mean("test")),
                task.difference,
            ]
        )  # fmt: skip
    head = [
        "task", "benchmark system", "paper, StructReg", "here, StructReg", "here, WeightReg",
        "our data",
    ]  # fmt: skip
    return markdown(head, rows)


def comparison_table(verdicts: Sequence[tuple[TaskStudy, Verdict]]) -> str:
    """StructReg against its baselines on the test data."""
    rows = [
        [
            TASKS[v.task].title, f"{v.method} ({setting_text(study.chosen(v.method))})",
            v.baseline, percent(v.score), percent(v.baseline_score), f"{100 * v.gain:+.2f}",
            f"{100 * v.interval[0]:+.2f} to {100 * v.interval[1]:+.2f}", p_text(v.p_value), v.test,
        ]
        for study, v in verdicts
    ]  # fmt: skip
    head = [
        "task", "method", "baseline", "score", "baseline's", "gain", "95 % interval", "p", "test",
    ]  # fmt: skip
    return markdown(head, rows)


def methods_table(study: TaskStudy) -> str:
    """All methods of a task, each at the setting chosen on development data."""
    rows = []
    for method in METHODS:
        chosen, final = study.chosen(method), study.final(method)
        run = final.runs[0]
        rows.append(
            [
                method, setting_text(chosen), percent(chosen.mean("dev")),
                percent_sd(final.values("test")), f"{final.mean('seconds'):.1f}",
                f"{final.mean('passes'):g}", f"{100 * final.mean('zeros'):.1f}",
                f"{run['templates_dropped']} of {run['templates']}",
            ]
        )  # fmt: skip
    head = [
        "method", "setting", f"dev {study.metric}", f"test {study.metric}", "training, s", "passes",
        "zero weights, %", "templates dropped",
    ]  # fmt: skip
    return markdown(head, rows)


def curve_table(study: TaskStudy) -> str:
    """Scores and times against n′."""
    rows = []
    pairs = zip(study.curve("crf"), study.curve("perceptron"), strict=True)
    for crf, perceptron in pairs:
        rows.append(
            [
                size_text(crf.fit.params["piece_size"]), percent(crf.mean("dev")),
                percent(crf.mean("test")), f"{crf.mean('seconds'):.2f}",
                f"{crf.mean('passes'):g}", percent(perceptron.mean("dev")),
                percent_sd(perceptron.values("test")), f"{perceptron.mean('seconds'):.2f}",
            ]
        )  # fmt: skip
    head = [
        "n′", "CRF dev", "CRF test", "CRF s", "CRF passes", "perceptron dev", "perceptron test",
        "perceptron s",
    ]  # fmt: skip
    return markdown(head, rows)


def sparsity_table(studies: Sequence[TaskStudy]) -> str:
    """Every strength of L1 and group lasso that was tried, beside the L2 penalty chosen."""
    rows = []
    for study in studies:
        tried = [study.chosen("WeightReg"), *study.tried("L1"), *study.tried("Group lasso")]
        for result in tried:
            run = result.runs[0]
            rows.append(
                [
                    TASKS[study.task].title, setting_text(result), percent(run["dev"]),
                    percent(run["test"]), _count(run["n_weights"]), f"{100 * run['zeros']:.1f}",
                    f"{run['templates_dropped']} of {run['templates']}",
                ]
            )  # fmt: skip
    head = [
        "task", "penalty", "dev", "test", "weights", "zero weights, %", "templates dropped",
    ]  # fmt: skip
    return markdown(head, rows)


def tuning_table(studies: Sequence[TaskStudy]) -> str:
    """Development scores of WeightReg, by the strength of L2."""
    rows = []
    for study in studies:
        best = study.chosen("WeightReg").fit.params["l2"]
        tried = study.tried("WeightReg")
        marks = ["**" if r.fit.params["l2"] == best else "" for r in tried]
        scores = [f"{m}{percent(r.mean('dev'))}{m}" for r, m in zip(tried, marks, strict=True)]
        rows.append([f"{TASKS[study.task].title} ({study.metric})", *scores])
    return markdown(["task", *(f"{x:g}" for x in studies[0].protocol.l2)], rows)


def gap_table(study: TaskStudy) -> str:
    """Training and test loss against α, and the bound's shape."""
    rows = [
        [
            size_text(g.piece_size), f"{g.alpha:.2f}", f"{g.train_loss:.4f}", f"{g.test_loss:.4f}",
            f"{g.gap:.4f}", f"{g.predicted:.4f}",
        ]
        for g in gaps(study)
    ]  # fmt: skip
    head = ["n′", "α", "training loss", "test loss", "gap", "bound, scaled"]
    return markdown(head, rows)


def stability_table(found: Sequence[dict[str, Any]]) -> str:
    """Measured changes of predictions, and the bound."""
    rows = [
        [
            size_text(s["piece_size"]), f"{s['alpha']:.2f}", f"{s['typical']:.3g}",
            f"{s['mean']['function']:.3g}", f"{s['largest']['function']:.3g}",
            f"{s['bound']['function']:.3g}",
        ]
        for s in found
    ]  # fmt: skip
    head = ["n′", "α", "typical change", "mean of largest", "largest", "bound"]
    return markdown(head, rows)


def best_runs(found: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """For each size the run that needed fewest updates; one that never arrived if all did not."""
    sizes: dict[Any, list[dict[str, Any]]] = {}
    for run in found:
        sizes.setdefault(run["piece_size"], []).append(run)
    arrived = {size: [r for r in runs if r["updates"]] for size, runs in sizes.items()}
    return [
        min(arrived[size], key=lambda r: r["updates"]) if arrived[size] else runs[0]
        for size, runs in sizes.items()
    ]


def rate_table(found: Sequence[dict[str, Any]]) -> str:
    """Updates and passes of SGD at the best fixed rate of each size."""
    rows = [
        [
            size_text(r["piece_size"]), f"{r['alpha']:.2f}",
            f"{r['learning_rate']:g}" if r["updates"] else "none",
            _count(r["updates"]) if r["updates"] else "never",
            str(r["passes"]) if r["updates"] else "never",
        ]
        for r in best_runs(found)
    ]  # fmt: skip
    return markdown(["n′", "α", "best rate", "updates", "passes"], rows)

"""The tables of the report, as Markdown. Scores are in per cent, times in seconds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from studies.markdown import markdown
from studies.structure_regularisation.companions import gaps
from studies.structure_regularisation.comparison import Verdict
from studies.structure_regularisation.fits import setting_words
from studies.structure_regularisation.methods import DEFAULT, FAMILIES, METHODS
from studies.structure_regularisation.study import Result, TaskStudy
from studies.structure_regularisation.tasks import TASKS
from studies.texts import p_text, percent, percent_sd, size_text

__all__ = [
    "comparison_table",
    "curve_table",
    "data_table",
    "extensions_table",
    "gap_table",
    "methods_table",
    "published_table",
    "rate_table",
    "sparsity_table",
    "stability_table",
    "tuning_table",
]


_TABLE_1 = (*(m for f in FAMILIES if f.model == "crf" for m in (f.pieces, f.whole)), DEFAULT)


def _count(n: float) -> str:
    return f"{n:,.0f}"


def setting_text(result: Result) -> str:
    """The parameters that were chosen."""
    return ", ".join(setting_words(result.fit.params)) or "nothing set"


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
                *(percent(study.final(method).mean("test")) for method in _TABLE_1),
                task.difference,
            ]
        )  # fmt: skip
    head = ["task", "benchmark system", "paper, StructReg"]
    head += [f"here, {method}" for method in _TABLE_1] + ["our data"]
    return markdown(head, rows)


def comparison_table(verdicts: Sequence[tuple[TaskStudy, Verdict]]) -> str:
    """Methods against their baselines on the test data."""
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


def curve_table(study: TaskStudy, model: str) -> str:
    """Scores and times of CRFs or perceptrons against n′, with rich and with plain edges."""
    families = [f for f in FAMILIES if f.model == model]
    rows = []
    for results in zip(*(study.curve(f) for f in families), strict=True):
        row = [size_text(results[0].fit.params["piece_size"])]
        for r in results:
            row += [percent(r.mean("dev")), percent_sd(r.values("test"))]
            row += [f"{r.mean('seconds'):.2f}", f"{r.mean('passes'):g}"]
        rows.append(row)
    columns = ("dev", "test", "s", "passes")
    return markdown(["n′", *(f"{f.edges} {column}" for f in families for column in columns)], rows)


def extensions_table(study: TaskStudy) -> str:
    """All settings of overlapping pieces and of two models that were tried."""
    rows = [
        [
            method, setting_text(result), percent(result.mean("dev")),
            percent(result.mean("test")), f"{result.mean('seconds'):.2f}",
        ]
        for method in ("StructReg, overlap", "Two models")
        for result in study.tried(method)
    ]  # fmt: skip
    return markdown(["method", "setting", "dev", "test", "training, s"], rows)


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
        for family in FAMILIES:
            if family.model != "crf":
                continue
            best = study.chosen(family.whole).fit.params["l2"]
            tried = study.tried(family.whole)
            marks = ["**" if r.fit.params["l2"] == best else "" for r in tried]
            scores = [f"{m}{percent(r.mean('dev'))}{m}" for r, m in zip(tried, marks, strict=True)]
            rows.append([f"{TASKS[study.task].title} ({study.metric})", family.edges, *scores])
    return markdown(["task", "edges", *(f"{x:g}" for x in studies[0].protocol.l2)], rows)


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

"""The figures: scores and times against n′ (the paper's Figures 2 and 3), and the theory's.

The n′ axis is categorical, smallest pieces at the left and whole sequences at the right. Rich edges
are drawn in solid lines, plain ones in dashed lines, and a dotted line goes on from the value on
whole sequences.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from studies.structure_regularisation.companions import gaps
from studies.structure_regularisation.methods import FAMILIES, Family
from studies.structure_regularisation.study import Outcome, TaskStudy
from studies.structure_regularisation.tables import best_runs
from studies.structure_regularisation.tasks import TASKS
from studies.texts import size_text
from trellis.pictures.style import new_figure, picture_style, save_figure

__all__ = ["FIGURES", "draw_all"]

_NAMES = {"crf": "CRF", "perceptron": "averaged perceptron"}
_STYLES = {"rich": ("C0", "-", "o"), "plain": ("C1", "--", "^")}

FIGURES = {
    "scores-crf.png": "Score of CRFs against the size of mini-samples",
    "scores-perceptron.png": "Score of perceptrons against the size of mini-samples",
    "times-crf.png": "Training time of CRFs against the size of mini-samples",
    "times-perceptron.png": "Training time of perceptrons against the size of mini-samples",
    "overfitting.png": "Gap between test and training loss against α",
    "theory.png": "Measured stability and rate against α",
}
"""The files and what they show."""


@picture_style()
def draw_all(outcome: Outcome, folder: Path) -> None:
    """Write all figures."""
    studies = outcome.studies
    for model in ("crf", "perceptron"):
        _panels(
            studies, folder / f"scores-{model}.png", _score_panel(model),
            f"Test and development score by size of mini-samples: {_NAMES[model]}",
        )  # fmt: skip
        _panels(
            studies, folder / f"times-{model}.png", _time_panel(model),
            f"Training time by size of mini-samples: {_NAMES[model]}",
        )  # fmt: skip
    _panels(
        studies, folder / "overfitting.png", _gap_panel,
        "Overfitting of CRFs by strength of structure regularisation",
    )  # fmt: skip
    _theory(outcome, folder / "theory.png")


def _panels(
    studies: list[TaskStudy], path: Path, draw: Callable[[TaskStudy, Any], None], title: str
) -> None:
    figure, axes = new_figure(len(studies), columns=2 if len(studies) == 4 else 3)
    figure.suptitle(title)
    for study, ax in zip(studies, axes, strict=True):
        ax.set_title(TASKS[study.task].title)
        ax.grid(alpha=0.3)
        draw(study, ax)
    handles, labels = axes[0].get_legend_handles_labels()  # the same in all panels
    figure.legend(handles, labels, loc="outside lower center", ncols=2 * min(2, len(axes)))
    save_figure(figure, path)


def _size_axis(ax: Any, sizes: list[float | None]) -> list[int]:
    x = list(range(len(sizes)))
    ax.set_xticks(x, [size_text(size) for size in sizes])
    ax.set_xlabel("mean size n′ of mini-samples [positions]")
    return x


def _whole_line(ax: Any, family: Family, value: float) -> None:
    """What whole sequences give, across the panel; the colour says which edges."""
    label = "whole sequences" if family.edges == "rich" else None
    ax.axhline(value, color=_STYLES[family.edges][0], linestyle=":", linewidth=1, label=label)


def _score_panel(model: str) -> Callable[[TaskStudy, Any], None]:
    def draw(study: TaskStudy, ax: Any) -> None:
        for family in FAMILIES:
            if family.model != model:
                continue
            color, line, mark = _STYLES[family.edges]
            curve = study.curve(family)
            sizes = [r.fit.params["piece_size"] for r in curve]
            x = _size_axis(ax, sizes)
            test = [100 * r.mean("test") for r in curve]
            spread = [100 * r.sd("test") for r in curve]
            dev = [100 * r.mean("dev") for r in curve]
            label = f"{family.edges} edges, test"
            ax.errorbar(
                x, test, yerr=spread if any(spread) else None, linestyle=line, marker=mark,
                color=color, capsize=3, label=label + (" (± sd of runs)" if any(spread) else ""),
            )  # fmt: skip
            _whole_line(ax, family, test[-1])
            ax.plot(
                x, dev, linestyle=line, marker=mark, color=color, alpha=0.35, markersize=4,
                label=f"{family.edges} edges, development",
            )  # fmt: skip
            at = sizes.index(study.chosen(family.pieces).fit.params["piece_size"])
            ax.plot(
                [at], [dev[at]], "s", color="C3", fillstyle="none", markersize=11,
                label="n′ chosen on development" if family.edges == "plain" else None,
            )  # fmt: skip
        ax.set_ylabel(f"{study.metric} [%]")

    return draw


def _time_panel(model: str) -> Callable[[TaskStudy, Any], None]:
    def draw(study: TaskStudy, ax: Any) -> None:
        highest = 0.0
        for family in FAMILIES:
            if family.model != model:
                continue
            color, line, mark = _STYLES[family.edges]
            curve = study.curve(family)
            x = _size_axis(ax, [r.fit.params["piece_size"] for r in curve])
            seconds = [r.mean("seconds") for r in curve]
            ax.plot(
                x, seconds, linestyle=line, marker=mark, color=color, label=f"{family.edges} edges"
            )
            _whole_line(ax, family, seconds[-1])
            highest = max(highest, *seconds)
        ax.set_ylim(0, 1.1 * highest)
        ax.set_ylabel("training time [s]")

    return draw


def _gap_panel(study: TaskStudy, ax: Any) -> None:
    points = gaps(study)
    x = [g.alpha for g in points]
    ax.plot(x, [g.gap for g in points], "o-", color="C0", label="measured gap")
    ax.plot(
        x, [g.predicted for g in points], "^--", color="C1", markersize=5,
        label="overfit-bound, scaled at α = 1",
    )  # fmt: skip
    ax.set_xscale("log")
    _plain_ticks(ax, x)
    ax.set_ylim(bottom=min(0.0, *(1.1 * g.gap for g in points)))
    ax.set_xlabel("strength α = n / n′")
    ax.set_ylabel("test − training loss [nats/position]")


def _theory(outcome: Outcome, path: Path) -> None:
    stability, rate = (outcome.companions[what] for what in ("stability", "rate"))
    figure, (left, right) = new_figure(2)
    figure.suptitle(
        f"{stability['n_sequences']} sequences of {TASKS[stability['task']].title}, exact training"
    )
    found = stability["found"]
    x = [s["alpha"] for s in found]
    for values, style, label in (
        ([s["bound"]["function"] for s in found], "^--", "bound (Corollary 12)"),
        ([s["largest"]["function"] for s in found], "s-", "largest change"),
        ([s["mean"]["function"] for s in found], "d-", "largest, mean of removals"),
        ([s["typical"] for s in found], "o-", "typical change"),
    ):
        left.plot(x, values, style, label=label)
    left.set(xlabel="strength α", ylabel="change of log p(label | x) [nats]")
    left.set_title("A training sequence is removed")
    left.set_yscale("log")
    runs = [run for run in best_runs(rate["found"]) if run["updates"]]
    right.set_title(f"SGD to {100 * rate['epsilon']:g} % of the initial gap")
    for name, style in (("updates", "o-"), ("passes", "s--")):
        ax = right if name == "updates" else right.twinx()
        color = "C0" if name == "updates" else "C1"
        ax.plot([r["alpha"] for r in runs], [r[name] for r in runs], style, color=color, label=name)
        ax.set_ylabel(f"{name} at the best fixed rate", color=color)
        ax.set_ylim(0, 1.1 * max([1, *(r[name] for r in runs)]))
    right.set_xlabel("strength α")
    handles = [line for ax in figure.axes[1:] for line in ax.get_lines()]
    below = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.16), "ncols": 2}
    right.legend(handles, [line.get_label() for line in handles], **below)
    left.legend(**below)
    for ax, ticks in ((left, x), (right, [r["alpha"] for r in runs] or x)):
        ax.set_xscale("log")
        _plain_ticks(ax, ticks)
        ax.grid(alpha=0.3)
    save_figure(figure, path)


def _plain_ticks(ax: Any, values: list[float]) -> None:
    """Ticks of a logarithmic axis at the values themselves, leaving out those too near."""
    shown: list[float] = []
    apart = max(1.15, (max(values) / min(values)) ** 0.09)
    for value in sorted(values):
        if not shown or value > apart * shown[-1]:
            shown.append(value)
    ax.set_xticks(shown, [f"{value:.3g}" for value in shown])
    ax.set_xticks([], minor=True)

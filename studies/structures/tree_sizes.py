"""Structure regularisation on trees: score and time against the mean size n′ of pieces."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from studies.experiments import Experiment, Records
from studies.folder import Call
from studies.markdown import markdown
from studies.structures.trees import LIMITS, TREE_FITS
from studies.texts import size_text
from trellis.pictures.style import new_figure, save_figure

__all__ = ["TREE_SIZES"]

_SIZES: Mapping[str, tuple[float | None, ...]] = {
    "quick": (1, 2.5, 5.5, None),
    "default": (1, 1.5, 2.5, 3.5, 5.5, 10.5, None),
    "full": (1, 1.5, 2.5, 3.5, 5.5, 10.5, 15.5, None),
}
_TASKS = {"upos": "parts of speech", "deprel": "dependency relations"}
_MODELS = {"crf": "CRF", "perceptron": "averaged perceptron"}


def _kind(task: str, model: str) -> str:
    if model == "perceptron":
        return "tree-perceptron"
    return "typed" if task == "upos" else "tree"


def _curves(protocol: str) -> list[tuple[str, str]]:
    tasks = ["upos"] if protocol == "quick" else list(_TASKS)
    return [(task, model) for task in tasks for model in _MODELS]


def _found(records: Records, protocol: str, task: str, model: str) -> list[dict[str, Any]]:
    """Records of a curve, by size."""
    kind = _kind(task, model)
    return [TREE_FITS.of(records, protocol, task, kind, size) for size in _SIZES[protocol]]


def _calls(protocol: str) -> list[Call]:
    return [
        TREE_FITS.call(
            f"{_TASKS[task]}, {_MODELS[model]}, n′ = {size_text(size)}", protocol, task,
            _kind(task, model), size, sizes=LIMITS[protocol],
        )
        for task, model in _curves(protocol)
        for size in _SIZES[protocol]
    ]  # fmt: skip


def _report(protocol: str, records: Records) -> str:
    sizes = _SIZES[protocol]
    rows, sentences = [], []
    for task, model in _curves(protocol):
        found = _found(records, protocol, task, model)
        name = f"{_MODELS[model]}, {_TASKS[task]}"
        rows.append([f"{name}: accuracy", *(f"{100 * r['accuracy']:.2f}" for r in found)])
        rows.append([f"{name}: seconds a pass", *(f"{_pace(r):.2f}" for r in found)])
        best = max(range(len(sizes)), key=lambda i: found[i]["accuracy"])
        gain = 100 * (found[best]["accuracy"] - found[-1]["accuracy"])
        end = (
            "whole trees score best"
            if sizes[best] is None
            else f"n′ = {size_text(sizes[best])} scores best, {gain:.2f} points above whole trees"
        )
        ratio = _pace(found[1]) / _pace(found[-1])
        sentences.append(
            f"- {name}: {end}; a pass over pieces of {size_text(sizes[1])} takes {ratio:.2f} of "
            "the time of one over whole trees."
        )
    return "\n\n".join(
        [
            "Training trees are cut into connected pieces of n′ nodes on average, anew in each "
            "pass; prediction is on whole trees. n′ = 1 is no structure in training, and none in "
            "prediction either. One run each; accuracy on test sentences in per cent.",
            markdown(["", *(f"n′ = {size_text(s)}" for s in sizes)], rows),
            "\n".join(sentences),
        ]
    )


def _pace(record: dict[str, float]) -> float:
    return record["seconds"] / record["passes"]


def _draw(protocol: str, records: Records, path: Path) -> None:
    curves, sizes = _curves(protocol), _SIZES[protocol]
    figure, axes = new_figure(2, columns=2)
    x = list(range(len(sizes)))
    for task, model in curves:
        found = _found(records, protocol, task, model)
        style = {
            "label": f"{_MODELS[model]}, {_TASKS[task]}",
            "color": "C0" if task == "upos" else "C1",
            "linestyle": "-" if model == "crf" else "--",
            "marker": "o" if model == "crf" else "s",
        }
        axes[0].plot(x, [100 * r["accuracy"] for r in found], **style)
        axes[1].plot(x, [_pace(r) for r in found], **style)
    for ax, what in zip(axes, ("test accuracy [%]", "CPU seconds a pass"), strict=True):
        ax.set_xticks(x, [size_text(s) for s in sizes])
        ax.set_xlabel("mean size n′ of pieces [nodes]")
        ax.set_ylabel(what)
        ax.grid(alpha=0.3)
    axes[1].set_ylim(bottom=0)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2)
    save_figure(figure, path)


TREE_SIZES = Experiment(
    "tree-sizes", "Pieces of trees", _calls, _report, ("ud_ewt",), _draw
)  # fmt: skip

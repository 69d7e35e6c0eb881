"""The log of a training run: messages, and what each iteration brought."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import chain
from typing import Any, NamedTuple

from trellis.solvers.passes import PassRecord

__all__ = [
    "LabelScore",
    "TrainingLog",
    "held_out",
    "held_out_lines",
    "iteration",
    "iteration_lines",
]

Labelling = Sequence[Sequence[Any]]


class LabelScore(NamedTuple):
    """How a label was found in held-out data; None where nothing can be said."""

    match: int
    model: int
    ref: int
    precision: float | None
    recall: float | None
    f1: float | None


class TrainingLog:
    """What a trainer said.

    Attributes
    ----------
    log : list of str
        All messages.
    iterations : list of dict
        For each pass or iteration ``num``, ``loss`` and ``time``; for the last one, with held-out
        data, also ``scores``, ``avg_precision``, ``avg_recall``, ``avg_f1``, ``item_accuracy`` and
        ``instance_accuracy``.
    last_iteration : dict or None
    featgen_num_features : int or None
        Attributes of the training data.
    featgen_seconds, training_seconds, storing_seconds : float or None
    """

    def __init__(self) -> None:
        self.log: list[str] = []
        self.iterations: list[dict[str, Any]] = []
        self.featgen_num_features: int | None = None
        self.featgen_seconds: float | None = None
        self.training_seconds: float | None = None
        self.storing_seconds: float | None = None

    @property
    def last_iteration(self) -> dict[str, Any] | None:
        """What the last iteration brought."""
        return self.iterations[-1] if self.iterations else None


def iteration(record: PassRecord) -> dict[str, Any]:
    """A pass or iteration, as the log has it."""
    return {
        "num": record.number,
        "loss": float(record.objective),
        "time": record.seconds,
        "scores": {},
    }


def iteration_lines(info: dict[str, Any]) -> list[str]:
    """What the log says of an iteration."""
    return [
        f"***** Iteration #{info['num']} *****\n",
        f"Loss: {info['loss']:.6f}\n",
        f"Seconds required for this iteration: {info['time']:.3f}\n",
        *held_out_lines(info),
        "\n",
    ]


def held_out(gold: Labelling, predicted: Labelling, labels: Sequence[str]) -> dict[str, Any]:
    """How well held-out data are labelled.

    Examples
    --------
    >>> found = held_out([["A", "B"], ["A"]], [["A", "A"], ["A"]], ["A", "B"])
    >>> found["scores"]["A"].recall, found["item_accuracy"], found["instance_accuracy_float"]
    (1.0, Fraction(2, 3), 0.5)
    """
    pairs = list(zip(chain.from_iterable(gold), chain.from_iterable(predicted), strict=True))
    match = Counter(g for g, p in pairs if g == p)
    ref, model = Counter(g for g, _ in pairs), Counter(p for _, p in pairs)
    scores = {y: _score(match[y], model[y], ref[y]) for y in labels}
    whole = sum(list(g) == list(p) for g, p in zip(gold, predicted, strict=True))
    item = Fraction(sum(match.values()), max(1, len(pairs)))
    instance = Fraction(whole, max(1, len(gold)))
    return {
        "scores": scores,
        "avg_precision": _mean([s.precision for s in scores.values()]),
        "avg_recall": _mean([s.recall for s in scores.values()]),
        "avg_f1": _mean([s.f1 for s in scores.values()]),
        "item_accuracy": item,
        "item_accuracy_float": float(item),
        "instance_accuracy": instance,
        "instance_accuracy_float": float(instance),
    }


def held_out_lines(info: dict[str, Any]) -> list[str]:
    """What the log says of held-out data, if there were any."""
    if "item_accuracy" not in info:
        return []
    lines = ["Performance by label (#match, #model, #ref) (precision, recall, F1):\n"]
    for label, s in info["scores"].items():
        rates = ", ".join("******" if r is None else f"{r:.4f}" for r in s[3:])
        lines.append(f"    {label}: ({s.match}, {s.model}, {s.ref}) ({rates})\n")
    means = ", ".join(f"{info[f'avg_{name}']:.6f}" for name in ("precision", "recall", "f1"))
    item, instance = info["item_accuracy_float"], info["instance_accuracy_float"]
    return [
        *lines,
        f"Macro-average precision, recall, F1: ({means})\n",
        f"Item accuracy: {item:.4f}\n",
        f"Instance accuracy: {instance:.4f}\n",
    ]


def _score(match: int, model: int, ref: int) -> LabelScore:
    if not model and not ref:
        return LabelScore(0, 0, 0, None, None, None)
    precision, recall = match / max(1, model), match / max(1, ref)
    return LabelScore(match, model, ref, precision, recall, 2 * match / (model + ref))


def _mean(rates: list[float | None]) -> float:
    known = [rate for rate in rates if rate is not None]
    return sum(known) / max(1, len(rates))

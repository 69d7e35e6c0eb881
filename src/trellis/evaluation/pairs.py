"""Gold and predicted labels side by side: what the whole package checks before it counts.

A gold entry is a label, ``None`` (not annotated) or a set of allowed labels (partly annotated).
Labels that no model knows are labels like any other: no prediction equals them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from trellis.arrays import as_list
from trellis.corpus.label_values import is_missing, plain_label
from trellis.domains import samples
from trellis.errors import DataError

__all__ = [
    "Gold",
    "GoldLabel",
    "Labels",
    "check_lengths",
    "check_samples",
    "checked_classes",
    "single_label",
]

GoldLabel = Any
Gold = Sequence[Sequence[GoldLabel]]
Labels = Sequence[Sequence[Any]]


def check_samples(gold: Sequence[Any], other: Sequence[Any], name: str = "predicted") -> None:
    """Raise DataError unless there are samples, and as many in `gold` as in `other`."""
    for listed, origin in ((gold, "gold"), (other, name)):
        if type(listed) is not list:  # a list is one of samples, whatever is in it
            samples.check(origin, listed)
    if len(gold) != len(other):
        raise DataError(f"{len(gold)} samples in gold but {len(other)} in {name}: expected equal")
    if len(gold) == 0:
        raise DataError("nothing to evaluate: there are no samples")


def check_lengths(
    gold: Sequence[Sequence[Any]], other: Sequence[Sequence[Any]], name: str = "predicted"
) -> None:
    """Raise DataError unless `gold` and `other` agree in samples and positions, at least one."""
    check_samples(gold, other, name)
    plain = {*map(type, gold), *map(type, other)} <= {list, tuple}
    if plain and [*map(len, gold)] == [*map(len, other)] and any(gold):
        return
    for i, (g, p) in enumerate(zip(gold, other, strict=True)):
        for sample, origin in ((g, "gold"), (p, name)):
            if not samples.accepts(sample):
                raise DataError(
                    f"sample {i} of {origin} is {sample!r}: expected a list of labels "
                    "(pass a list of samples, each a list of labels)"
                )
        if len(g) != len(p):
            raise DataError(
                f"sample {i} has {len(g)} positions in gold but {len(p)} in {name}: expected equal"
            )
    if not any(len(g) for g in gold):
        raise DataError("nothing to evaluate: all samples are empty")


def checked_classes(classes: Sequence[Any]) -> list[Any]:
    """Labels in an order, each once; raises DataError otherwise."""
    listed = [plain_label(y, f"{i} of classes") for i, y in enumerate(as_list(classes, "classes"))]
    if len(set(listed)) < len(listed):
        twice = next(label for label, n in Counter(listed).items() if n > 1)
        raise DataError(f"classes names {twice!r} twice: expected each label once")
    return listed


def single_label(entry: GoldLabel, sample: int, position: int) -> Any:
    """Label of a gold entry, or None if it leaves a choice."""
    if isinstance(entry, str):
        return entry
    if is_missing(entry):
        return None
    is_set = isinstance(entry, AbstractSet)
    if not (is_set or isinstance(entry, Hashable)) or (is_set and len(entry) == 0):
        raise DataError(
            f"sample {sample}, position {position} of gold is {entry!r:.80}: expected a label, "
            "None (not annotated) or a set of at least one allowed label"
        )
    if not is_set:
        return entry
    return next(iter(entry)) if len(entry) == 1 else None

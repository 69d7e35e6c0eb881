"""The ways to combine answers by name, as ``AutoCombiner`` and the command line know them.

A method is made for the kind of the answers:

========== =================================================================================
"labels"   one label a position, of as many positions as the other experts' answers have
"words"    sequences of any length, which are aligned first
"spans"    lists of (start, end, type)
========== =================================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from trellis.errors import DataError
from trellis.experts.alignment import Aligned
from trellis.experts.baselines import BestExpert, MajorityVote, Rover
from trellis.experts.committee import Committee
from trellis.experts.espboost import ESPBoost
from trellis.experts.rerank import Rerank
from trellis.experts.stacking import LogLinearVote, Stacking
from trellis.experts.stepwise import ForwardStepwise
from trellis.experts.weighted_majority import WeightedMajority

__all__ = [
    "ALONE",
    "COMMITTEE",
    "KINDS",
    "METHODS",
    "alone_name",
    "kind_of",
    "method_names",
    "new_method",
]

KINDS = ("labels", "words", "spans")
"""Kinds of answers."""

COMMITTEE = ("rerank", "stepwise", "log-linear", "stacking")
"""Methods whose answers the committee puts to the vote."""

METHODS: dict[str, Callable[[str | None, int | None], Any]] = {
    "vote": lambda scheme, seed: MajorityVote(),
    "best-expert": lambda scheme, seed: BestExpert(),
    "plurality": lambda scheme, seed: Rerank(weights="uniform"),
    "rerank": lambda scheme, seed: Rerank(),
    "rover": lambda scheme, seed: Rover(),
    "weighted-majority": lambda scheme, seed: WeightedMajority(),
    "espboost": lambda scheme, seed: ESPBoost(scheme=scheme),
    "stepwise": lambda scheme, seed: ForwardStepwise(random_state=seed),
    "log-linear": lambda scheme, seed: LogLinearVote(),
    "stacking": lambda scheme, seed: Stacking(scheme=scheme),
    "committee": lambda scheme, seed: Committee(
        [new_method(name, "labels", scheme, seed) for name in COMMITTEE]
    ),
}
"""Estimators by name, for a tag scheme and a seed."""

ALONE = ("vote", "plurality")
"""Methods that learn from answers without right ones, too."""

_NOT_FOR_WORDS = ("stacking", "espboost", "committee")  # a label for each word of a language


def method_names(kind: str, scheme: str | None) -> tuple[str, ...]:
    """Names of the methods for answers of a kind; the first one is the plain vote.

    Examples
    --------
    >>> method_names("words", None)[:3]
    ('vote', 'best-expert', 'plurality')
    """
    if kind == "words":
        return tuple(name for name in METHODS if name not in _NOT_FOR_WORDS)
    return tuple(METHODS)


def alone_name(kind: str) -> str:
    """Name of the method that answers where there are no right answers to learn from."""
    return "vote"


def new_method(name: str, kind: str, scheme: str | None, seed: int | None) -> Any:
    """An estimator of the method.

    Examples
    --------
    >>> new_method("vote", "words", None, 0)
    Aligned(combiner=MajorityVote())
    """
    if name not in METHODS:
        raise DataError(f"there is no method {name!r}; known are {', '.join(METHODS)}")
    combiner = METHODS[name](scheme, seed)
    return Aligned(combiner) if kind == "words" else combiner


def kind_of(outputs: Sequence[Sequence[Any]]) -> str:
    """Kind of nested answers ``outputs[j][i]``: told from what is in them."""
    for column in outputs:
        for answer in column:
            for item in answer or ():
                if item is not None:
                    if not isinstance(item, str):
                        return "spans"
                    return _kind_of_sequences(outputs)
    return _kind_of_sequences(outputs)


def _kind_of_sequences(outputs: Sequence[Sequence[Any]]) -> str:
    for answers in zip(*outputs, strict=False):
        if len({len(answer) for answer in answers if answer is not None}) > 1:
            return "words"
        if any(answer is not None and len(answer) == 0 for answer in answers):
            return "words"
    return "labels"

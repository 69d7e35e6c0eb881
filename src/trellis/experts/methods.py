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
from trellis.experts.annotator_model import AnnotatorModel
from trellis.experts.baselines import BestExpert, MajorityVote, Rover
from trellis.experts.committee import Committee
from trellis.experts.consensus import Consensus
from trellis.experts.espboost import ESPBoost
from trellis.experts.guarded import GuardedVote
from trellis.experts.rerank import Rerank
from trellis.experts.span_combiner import SpanCombiner
from trellis.experts.span_voting import SpanVote
from trellis.experts.stacking import LogLinearVote, Stacking
from trellis.experts.stepwise import ForwardStepwise
from trellis.experts.weighted_majority import WeightedMajority

__all__ = [
    "ALONE",
    "KINDS",
    "METHODS",
    "alone_name",
    "committee_names",
    "kind_of",
    "method_names",
    "new_method",
    "tried_names",
]

KINDS = ("labels", "words", "spans")
"""Kinds of answers."""

_COMMITTEE = ("stacking", "annotators", "log-linear", "rerank")

METHODS: dict[str, Callable[[str | None, int | None], Any]] = {
    "vote": lambda scheme, seed: MajorityVote(),
    "guarded-vote": lambda scheme, seed: GuardedVote(),
    "span-vote": lambda scheme, seed: SpanVote(scheme=scheme or "auto"),
    "consensus": lambda scheme, seed: Consensus(),
    "whole-answers": lambda scheme, seed: Consensus(prefer_whole=True),
    "best-expert": lambda scheme, seed: BestExpert(),
    "plurality": lambda scheme, seed: Rerank(weights="uniform"),
    "rover": lambda scheme, seed: Rover(),
    "weighted-majority": lambda scheme, seed: WeightedMajority(),
    "espboost": lambda scheme, seed: ESPBoost(scheme=scheme),
    "stepwise": lambda scheme, seed: ForwardStepwise(random_state=seed),
    "annotators": lambda scheme, seed: AnnotatorModel("dawid-skene"),
    "rerank": lambda scheme, seed: Rerank(),
    "log-linear": lambda scheme, seed: LogLinearVote(),
    "stacking": lambda scheme, seed: Stacking(scheme=scheme),
    "spans": lambda scheme, seed: SpanCombiner(scheme=scheme or "auto"),
    "committee": lambda scheme, seed: Committee(
        [new_method(name, "labels", scheme, seed) for name in committee_names(scheme)]
    ),
}
"""Estimators by name, for a tag scheme and a seed."""

ALONE = (
    "vote", "guarded-vote", "span-vote", "consensus", "whole-answers", "plurality", "annotators",
    "committee",
)  # fmt: skip
"""Methods that learn from answers without right ones, too."""

_ONLY_IF_ASKED = ("whole-answers", "best-expert", "plurality", "rover", "espboost")
"""Rarely the best, unless they are what answers alone."""
_OF_ANY_LENGTH = ("consensus", "whole-answers")
_OF_SPANS = ("span-vote", "spans")
# One label for each word of a language is too many for these.
_NOT_FOR_WORDS = ("stacking", "espboost", "annotators", "committee", *_OF_SPANS)
_WITHOUT_GOLD = {"labels": "guarded-vote", "words": "consensus", "spans": "span-vote"}


def method_names(kind: str, scheme: str | None) -> tuple[str, ...]:
    """Names of the methods for answers of a kind; the first one is the plain vote.

    Examples
    --------
    >>> method_names("words", None)[:3]
    ('vote', 'guarded-vote', 'consensus')
    """
    if kind == "spans":
        return _OF_SPANS
    if kind == "words":
        return tuple(name for name in METHODS if name not in _NOT_FOR_WORDS)
    return tuple(
        name
        for name in METHODS
        if name not in _OF_ANY_LENGTH and (scheme is not None or name not in _OF_SPANS)
    )


def tried_names(kind: str, scheme: str | None, metric: str) -> tuple[str, ...]:
    """Names of the methods that are tried if none are named: the fewer, the surer the choice.

    Examples
    --------
    >>> tried_names("spans", None, "span-f1")
    ('span-vote', 'spans')
    """
    alone = alone_name(kind, metric)
    return tuple(
        name for name in method_names(kind, scheme) if name == alone or name not in _ONLY_IF_ASKED
    )


def committee_names(scheme: str | None) -> tuple[str, ...]:
    """Names of the methods whose answers the committee puts to the vote.

    Examples
    --------
    >>> committee_names("BIO")
    ('spans', 'stacking', 'annotators', 'log-linear', 'rerank')
    """
    return _COMMITTEE if scheme is None else ("spans", *_COMMITTEE)


def alone_name(kind: str, metric: str) -> str:
    """Name of the method that answers where there are no right answers to learn from.

    Examples
    --------
    >>> alone_name("labels", "hamming"), alone_name("labels", "span-f1")
    ('guarded-vote', 'span-vote')
    >>> alone_name("words", "edit"), alone_name("words", "exact")
    ('consensus', 'whole-answers')
    """
    if metric == "span-f1":
        return "span-vote"
    if kind == "words" and metric == "exact":
        return "whole-answers"
    return _WITHOUT_GOLD[kind]


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
    return Aligned(combiner) if kind == "words" and name not in _OF_ANY_LENGTH else combiner


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

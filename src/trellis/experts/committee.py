"""A committee: several ways to combine the experts, whose answers are put to the vote in turn.

Each member learns how to combine; what is answered is, for each run of positions on which members
differ, the answer that most of them give (the first of equals). Members err in different places,
so the committee is rarely worse than its best member, which nobody knows beforehand.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.domains import instance, sequence_of
from trellis.errors import CorruptModelError, DataError
from trellis.estimator import parameter
from trellis.experts.combiner import Combiner
from trellis.experts.outputs import ExpertOutputs, as_outputs
from trellis.experts.rerank import Rerank
from trellis.files.storable import is_fitted
from trellis.files.stored import header_value

__all__ = ["Committee", "plurality"]


def plurality(answers: Sequence[Sequence[Sequence[str]]]) -> list[list[str]]:
    """The answers of members ``answers[m][i]``, put to the vote run by run.

    Examples
    --------
    >>> plurality([[["a", "b"]], [["a", "c"]], [["a", "c"]]])
    [['a', 'c']]
    """
    said = as_outputs(answers)
    return said.lists(_plurality(said))


def _plurality(said: ExpertOutputs) -> NDArray[np.int32]:
    return Rerank(weights="uniform").fit(said)._codes(said)


class Committee(Combiner):
    """Several combiners, and the vote over their answers.

    Attributes
    ----------
    members_ : list of fitted combiners

    Examples
    --------
    >>> from trellis.experts import BestExpert, Committee, LogLinearVote, MajorityVote
    >>> said = [[["a", "b"]], [["a", "a"]], [["b", "a"]]]
    >>> team = Committee([MajorityVote(), BestExpert(), LogLinearVote()])
    >>> team.fit(said, [["a", "a"]]).predict(said)
    [['a', 'a']]
    """

    members: Sequence[Any] = parameter(
        sequence_of(instance(Combiner), "combiners"),
        "Combiners, of which copies are fitted.",
        kw_only=False,
    )

    @classmethod
    def of_fitted(cls, members: Sequence[Any]) -> Committee:
        """A committee of combiners that have learned from the same samples already.

        Examples
        --------
        >>> from trellis.experts import BestExpert, Committee, MajorityVote
        >>> said, gold = [[["a", "b"]], [["a", "a"]], [["b", "a"]]], [["a", "a"]]
        >>> members = [member.fit(said, gold) for member in (MajorityVote(), BestExpert())]
        >>> Committee.of_fitted(members).predict(said)
        [['a', 'a']]
        """
        committee = cls(members)
        Combiner._restore(committee, Combiner._state(members[0]))
        committee.taught_, committee.members_ = True, list(members)
        return committee

    @property
    def _ALONE(self) -> bool:  # type: ignore[override]  # noqa: N802  # if one of them does
        return any(member._ALONE for member in self.members)

    def _check_together(self) -> None:
        if not len(self.members):
            raise DataError("a committee needs members, at least one")

    def _learn(self, outputs: ExpertOutputs, gold: NDArray[np.int32], fresh: bool) -> None:
        known = gold[outputs.offsets[:-1]] >= 0
        right = [
            labels if taught else None
            for labels, taught in zip(outputs.lists(gold), known, strict=True)
        ]
        self.members_ = [copy.deepcopy(member).fit(outputs, right) for member in self.members]

    def _label(self, outputs: ExpertOutputs) -> NDArray[np.int32]:
        codes = np.stack([member._codes(outputs) for member in self.members_], axis=1)
        names = tuple(f"member {m + 1}" for m in range(codes.shape[1]))
        return _plurality(replace(outputs, codes=codes, names=names, scores=None))

    def _recognised(self, outputs: Any) -> ExpertOutputs:
        answers = super()._recognised(outputs)
        members: Sequence[Combiner] = getattr(self, "members_", ())  # none without right answers
        known = {y for member in members for y in member._recognised(answers).labels}
        return answers.recoded(sorted({*answers.labels, *known, *self.classes_}))

    def _state(self) -> dict[str, Any]:
        return super()._state() | {"fitted": self.members_}

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        self.members_ = header_value(state, "fitted", list)
        for member in self.members_:
            if not isinstance(member, Combiner) or not is_fitted(member):
                raise CorruptModelError("a member of the committee is none, or not fitted")
            if member.expert_names_ != self.expert_names_:
                raise CorruptModelError("a member of the committee knows other experts")
        if not self.members_:
            raise CorruptModelError("the committee has no members")

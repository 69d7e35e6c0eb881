r"""Labels refined by whether their span goes on: BIO outside, IOBES inside.

With the labels B-X, I-X and O a model of neighbouring labels learns how spans begin and go on, but
not how they end: the last word of a span has the same label as one in its middle. So each label
:math:`a` of a type X that has an I-X is divided into two *states*, :math:`a^+`, whose span goes on
(the next label is I-X), and :math:`a^-`, whose span ends here; all others have one, :math:`a^-`.
In the letters of IOBES,

.. math:: \text{B-X}^+ = \text{B-X}, \quad \text{B-X}^- = \text{S-X}, \quad
    \text{I-X}^+ = \text{I-X}, \quad \text{I-X}^- = \text{E-X}.

Every labelling, valid or not, is that of exactly one sequence of states in which :math:`a^+` is
followed by a state of I-X, :math:`a^-` by one of another label or by nothing. So the best states
are the best labelling, k best states are k labellings, and the probability of a label is the sum
of those of its states, where sequences that break these rules are left out. Training does not leave
them out: their weights learn to be low, and the kernels need no rules.

L. Ratinov and D. Roth, *Design challenges and misconceptions in named entity recognition*, 2009.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import Float64s
from trellis.corpus.labels import Labels
from trellis.corpus.schemes import detect_scheme, get_scheme
from trellis.errors import DataError

__all__ = ["Refinement"]

Rules = tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]
"""Which states may begin a sequence (K,), follow one another (K, K), and end it (K,)."""


class Refinement:
    """The states of labels that are written in BIO.

    Parameters
    ----------
    classes : tuple of str
        The L labels.

    Attributes
    ----------
    states : tuple of str
        The K states, sorted.
    label : int64, shape (K,)
        The label of each state.
    rules : arrays of bool (K,), (K, K) and (K,)
        Which states may begin a sequence, follow one another, and end it.

    Raises
    ------
    DataError
        If the labels are not those of BIO, or no span is longer than one position.

    Examples
    --------
    >>> refinement = Refinement(("B-X", "I-X", "O"))
    >>> refinement.states
    ('B-X', 'E-X', 'I-X', 'O', 'S-X')
    >>> labels = Labels.from_lists([["O", "B-X", "I-X"], ["B-X", None]])
    >>> for states in refinement.refined(labels, [0, 3, 5]).tolist():
    ...     print(states if isinstance(states, str) else sorted(states))
    O
    B-X
    E-X
    ['B-X', 'S-X']
    ['E-X', 'O', 'S-X']
    """

    def __init__(self, classes: Sequence[str]) -> None:
        if not self.applies(classes):
            raise DataError(
                "only labels in BIO with spans of more than one position can be refined, not "
                f"{', '.join(map(str, classes)):.60}; leave encoding='auto'"
            )
        self.classes = tuple(classes)
        parsed = [get_scheme("BIO").parse(label) for label in self.classes]
        inside = {kind: a for a, (role, kind) in enumerate(parsed) if role == "I"}
        states: list[tuple[str, int, bool]] = []  # name, label, and whether the span ends here
        for a, (role, kind) in enumerate(parsed):
            rest = f"-{kind}" if kind else ""
            states.append(({"B": "S", "I": "E", "O": "O"}[role] + rest, a, True))
            if role != "O" and kind in inside:
                states.append((role + rest, a, False))
        states.sort()
        self.states = tuple(name for name, _, _ in states)
        self.label = np.array([a for _, a, _ in states], np.int64)
        closed = np.array([ends for *_, ends in states])
        # The label that goes on with the span of each, or -1.
        goes_on = [-1 if role == "O" else inside.get(kind, -1) for role, kind in parsed]
        self._inside = np.array(goes_on, np.int64)
        self._closed, self._open = (np.full(len(parsed), -1, np.int64) for _ in range(2))
        self._closed[self.label[closed]] = np.flatnonzero(closed)
        self._open[self.label[~closed]] = np.flatnonzero(~closed)
        # An open state is followed by the label inside its span, a closed one by any other.
        follow = (self.label[None, :] == self._inside[self.label][:, None]) != closed[:, None]
        self.rules: Rules = (np.ones(len(closed), bool), follow, closed)

    @staticmethod
    def applies(classes: Sequence[str]) -> bool:
        """Whether labels are those of BIO, with spans of more than one position."""
        return detect_scheme(classes) == "BIO" and any(label[:1] == "I" for label in classes)

    def refined(self, labels: Labels, offsets: Any) -> Labels:
        """The states that positions may have, as label sets, given those of their labels."""
        labels = labels.recoded(self.classes)
        n, ids = len(self.classes), np.asarray(labels.ids, np.int64)
        after = np.full(len(ids), -1, np.int64)  # what is known of the next label; -1: none follows
        after[:-1] = ids[1:]
        ends = np.asarray(offsets, np.int64)[1:]
        after[ends[ends > 0] - 1] = -1
        known = (ids < n) & (after < n)
        a = np.where(known, ids, 0)
        goes_on = (after >= 0) & (after == self._inside[a])
        states = np.where(goes_on, self._open[a], self._closed[a])
        sets: dict[frozenset[int], int] = {}
        rows = np.flatnonzero(~known)
        pairs, which = np.unique(np.stack([ids[rows], after[rows]]), axis=1, return_inverse=True)
        number = np.array(
            [self._number(labels, now, then, sets) for now, then in pairs.T.tolist()], np.int64
        )
        states[rows] = number[which.ravel()] if len(rows) else 0
        return Labels(states.astype(np.int32), tuple(sets), self.states)

    def _number(self, labels: Labels, now: int, after: int, sets: dict[frozenset[int], int]) -> int:
        """Number of the set of states of a position, given those of its label and of the next."""
        n, everything = len(self.classes), range(len(self.classes))

        def members(i: int) -> Any:
            return (i,) if i < n else everything if i == n else labels.sets[i - n - 1]

        following = frozenset(() if after < 0 else members(after))
        allowed = []
        for a in members(now):
            if self._inside[a] in following:
                allowed.append(int(self._open[a]))
            if after < 0 or following - {int(self._inside[a])}:
                allowed.append(int(self._closed[a]))
        if len(allowed) == 1:
            return allowed[0]
        if now == n and len(allowed) == len(self.states):
            return len(self.states)
        return len(self.states) + 1 + sets.setdefault(frozenset(allowed), len(sets))

    def with_rules(self, rules: Rules) -> Rules:
        """Rules of states that follow those of labels, too."""
        start, follow, end = rules
        mine = self.rules
        both = follow[np.ix_(self.label, self.label)] & mine[1]
        return start[self.label] & mine[0], both, end[self.label] & mine[2]

    def merged(self, chances: Float64s) -> Float64s:
        """Probabilities of labels (n, L), given those of states (n, K)."""
        merged = np.zeros((len(chances), len(self.classes)))
        for state, label in enumerate(self.label):
            merged[:, label] += chances[:, state]
        return merged

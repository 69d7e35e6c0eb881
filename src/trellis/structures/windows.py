r"""Windows of chains: the probability that a stretch of positions has labels of given sets.

.. math:: P(y_a \in A_a, \dots, y_b \in A_b)

for many stretches a..b at once, which all come from one forward–backward
(:mod:`trellis.kernels.spans`): linear in the positions of the samples and of the windows.
"""

from __future__ import annotations

import numpy as np

from trellis.arrays import Bools, Float64s, Int64s, for_kernels
from trellis.structures.chain_potentials import ChainPotentials
from trellis.structures.probability import event_probability

__all__ = ["window_probabilities"]

# Sums of larger scores lose too many digits; their windows are taken one at a time.
_LARGE = 1e4


def window_probabilities(
    p: ChainPotentials, first: Int64s, offsets: Int64s, sets: Int64s, table: Bools
) -> Float64s:
    """Compute the probability of each window; nothing is checked but that samples are feasible.

    Parameters
    ----------
    p : ChainPotentials
        The scores.
    first : int64, shape (M,)
        Rows that the windows begin at, in order; each window lies within one sample.
    offsets : int64, shape (M + 1,)
        Window m has the label sets ``sets[offsets[m]:offsets[m + 1]]``, one for each position.
    sets : int64
        Numbers of label sets.
    table : bool, shape (K, L)
        The label sets.

    Returns
    -------
    float64, shape (M,)
        The probabilities; 0 where the label sets leave no feasible labelling.

    Raises
    ------
    InfeasibleError
        If a sample with a window has no feasible labelling even without the label sets.

    Examples
    --------
    Of the labellings 00, 01 and 11, equally probable, two begin with a 0 and two end with a 1:

    >>> p = ChainPotentials(np.zeros((2, 2)), [[0.0, 0.0], [-np.inf, 0.0]], [0, 2])
    >>> first, offsets, sets = np.array([0, 1]), np.array([0, 1, 2]), np.array([0, 1])
    >>> window_probabilities(p, first, offsets, sets, np.eye(2, dtype=bool)).round(3).tolist()
    [0.667, 0.667]
    """
    chances = np.zeros(len(first))
    if p.largest_score() > _LARGE:
        owner = np.searchsorted(p.offsets, first, side="right") - 1
        for m, s in enumerate(owner.tolist()):
            alone, here = p.alone(s), table[sets[offsets[m] : offsets[m + 1]]]
            allowed = np.ones(alone.node.shape, np.bool_)
            start = first[m] - p.offsets[s]
            allowed[start : start + len(here)] = here
            chances[m] = event_probability(alone, allowed)[0]
        return chances
    from trellis.kernels import spans
    from trellis.kernels.chain_max import as_stack
    from trellis.kernels.step_changes import none

    trans = as_stack(for_kernels(p.trans)).astype(np.float64, copy=False)
    changes = none(trans) if p.changes is None else p.changes.arguments()
    feasible = spans.window_probabilities(
        for_kernels(p.node), trans, for_kernels(p.offsets), first, sets, offsets, table, chances,
        changes,
    )  # fmt: skip
    p.require_feasible(feasible)
    return chances

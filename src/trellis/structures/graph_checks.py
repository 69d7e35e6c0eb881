"""What the questions about graphs check: methods, budgets, forests, and that there is an answer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trellis.arrays import Float64s
from trellis.errors import DataError, InfeasibleError
from trellis.structures import elimination
from trellis.structures.graph_potentials import GraphPotentials
from trellis.structures.message_graph import MessageGraph

__all__ = [
    "at_least",
    "one_of",
    "plans_within",
    "require_feasible",
    "require_forests",
    "require_labels",
]


def plans_within(
    p: GraphPotentials, samples: Sequence[int], budget: int
) -> list[tuple[elimination.Plan, bool]]:
    """Plans of all samples; raises and says the cost if one is beyond the budget."""
    found = []
    for s, (plan, cut) in zip(samples, elimination.plans(p, samples, budget), strict=True):
        if plan is None:
            whole = elimination.plans(p, [s])[0][0]
            assert whole is not None  # nothing limits it
            raise DataError(
                f"sample {s}: exact inference by elimination takes {whole.entries:.3g} table "
                f"entries of 8 bytes (width {whole.width}), and budget={budget}; raise the budget "
                'or use an approximate method ("dual" for the best labelling, "bp" for marginals)'
            )
        found.append((plan, cut))
    return found


def require_forests(graph: MessageGraph) -> None:
    """Raise if a sample has a cycle."""
    loopy = np.flatnonzero(~graph.forest)
    if len(loopy) > 0:
        raise DataError(
            f'sample {loopy[0]} has a cycle; method="tree" needs forests, use method="auto"'
        )


def require_labels(p: GraphPotentials) -> None:
    """Raise if a node has no label left."""
    empty = np.flatnonzero(~np.isfinite(p.node).any(axis=1))
    values = np.zeros(len(p.offsets) - 1)
    values[np.searchsorted(p.offsets, empty, side="right") - 1] = -np.inf
    require_feasible(p, values)


def require_feasible(p: GraphPotentials, values: Float64s) -> None:
    """Raise if a bound or log Z is -inf."""
    bad = np.flatnonzero(np.isneginf(values))
    if len(bad) > 0:
        s = bad[0]
        raise InfeasibleError(
            f"(of {p.offsets[s + 1] - p.offsets[s]} nodes) has no labelling of finite score; "
            "allow more labels or pairs of labels",
            sample=int(s),
        )


def one_of(method: str, known: tuple[str, ...]) -> None:
    """Raise if there is no such method."""
    if method not in known:
        raise DataError(f"method is {method!r}; it must be one of {', '.join(known)}")


def at_least(value: int, least: int, what: str) -> None:
    """Raise if a number is too small."""
    if value < least:
        raise DataError(f"{what} is {value}; it must be at least {least}")

r"""Chains and forests: exact answers by two passes of messages, there and back.

A labelling :math:`y` of a sample has the score and probability

.. math::

    s(y) = \sum_v \mathrm{node}_{v, y_v} + \sum_{e = (a, b)} T_e(y_a, y_b),
    \qquad p(y) = e^{s(y)} / Z, \qquad Z = \sum_y e^{s(y)},

:math:`T_e` being the transitions into position b of a chain, or the table of an edge. On a forest
messages go from the leaves to the roots and back, along a chain to its end and back; time is linear
in the nodes, whatever the shape of the trees.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from trellis.arrays import Array, Float64s, Int32s, for_kernels, memory_for
from trellis.domains import instance
from trellis.structures.chain_potentials import ChainPotentials
from trellis.structures.forest import Forest, forest_or_none, rooted
from trellis.structures.graph_potentials import GraphPotentials

__all__ = ["POTENTIALS", "MessagePasses"]

POTENTIALS = instance(ChainPotentials) | instance(GraphPotentials)
"""What can be asked for labellings and probabilities."""

# Numbers of labellings from which it is worth the time to count how many there are.
_MANY = 100


@dataclass(frozen=True, eq=False)
class MessagePasses:
    """Inference on chains, or on graphs whose edges form a forest; nothing is checked.

    Samples that have no feasible labelling get the score or log Z ``-inf``.
    """

    p: ChainPotentials | GraphPotentials
    forest: Forest | None
    """The forest; None of chains."""

    @classmethod
    def of(cls, p: ChainPotentials | GraphPotentials, method: str = "auto") -> MessagePasses | None:
        """Lay out the passes; None where there is a cycle, or another method is asked for."""
        if isinstance(p, ChainPotentials):
            return cls(p, None)
        if method == "tree":  # raises if there is a cycle
            return cls(p, rooted(p.offsets, p.edges))
        forest = forest_or_none(p.offsets, p.edges) if method == "auto" else None
        return None if forest is None else cls(p, forest)

    @property
    def method(self) -> str:
        """What the results are said to be found by."""
        return "chain" if self.forest is None else "tree"

    def best(self) -> tuple[Int32s, Float64s]:
        """Best labels (N,) and their scores (S,)."""
        p = self.p
        if isinstance(p, ChainPotentials):
            from trellis.kernels.chain import viterbi

            return viterbi(*self._scores(), self._changes())
        from trellis.kernels import tree_max

        assert self.forest is not None
        forest = self.forest.arguments(p.types)
        return tree_max.best(*self._scores(), forest, for_kernels(self.forest.tree))

    def kbest(self, k: int) -> tuple[Int32s, Float64s]:
        """Labels (K, N) and scores (S, K), K at most k; -1 and -inf where there are fewer."""
        p = self.p
        if k > _MANY:  # there may be far fewer, and the time and memory go by k
            k = min(k, self._most_labellings(k))
        with memory_for(k, "labellings"):
            if isinstance(p, ChainPotentials):
                from trellis.kernels.chain import kbest

                return kbest(*self._scores(), k, self._changes())
            from trellis.kernels import tree_max

            assert self.forest is not None
            return tree_max.kbest(*self._scores(), self.forest.arguments(p.types), k)

    def posterior(
        self,
        marginals: Float64s | None = None,
        pairs: Float64s | None = None,
        entropy: Float64s | None = None,
        uniforms: Float64s | None = None,
        labels: Int32s | None = None,
    ) -> Float64s:
        """Return log Z (S,) and fill those of the arrays that are there.

        They are ``marginals`` (N, L), ``pairs`` (N, L, L) of chains or (E, L, L), ``entropy`` (S,),
        and ``labels`` (K, N), drawn by the numbers ``uniforms`` (K, N) from [0, 1); all but these
        numbers zero at first.
        """
        wanted: tuple[Any, Any, Any, Any, Any] = (
            np.empty((0, 0)) if marginals is None else marginals,
            np.empty((0, 0, 0)) if pairs is None else pairs,
            np.empty(0) if entropy is None else entropy,
            np.empty((0, 0)) if uniforms is None else uniforms,
            np.empty((0, 0), np.int32) if labels is None else labels,
        )
        p = self.p
        if isinstance(p, ChainPotentials):
            from trellis.kernels import chain

            return chain.posterior(*self._scores(), *wanted, self._changes())
        from trellis.kernels import tree

        assert self.forest is not None
        forest = self.forest.arguments(p.types)
        return tree.posterior(*self._scores(), forest, for_kernels(self.forest.tree), *wanted)

    def _most_labellings(self, limit: int) -> int:
        """At least the number of labellings of the sample with the most; ``limit`` is enough.

        Where every score is 0 or -inf, Z is the number of labellings.
        """
        allowed = self.p.with_scores(lambda scores: np.where(np.isfinite(scores), 0.0, -np.inf))
        log_z = MessagePasses(allowed, self.forest).posterior()
        most = float(log_z.max(initial=0.0))
        return limit if most > math.log(limit) else int(np.exp(most) * (1 + 1e-9)) + 1

    def _changes(self) -> Any:
        """Pairs that some positions of chains have other scores of, as kernels take them."""
        if isinstance(self.p, ChainPotentials) and self.p.changes is not None:
            return self.p.changes.arguments()
        return None

    def _scores(self) -> tuple[Array, Array, Array]:
        p = self.p
        pair = p.trans if isinstance(p, ChainPotentials) else p.pair
        return for_kernels(p.node), for_kernels(pair), for_kernels(p.offsets)

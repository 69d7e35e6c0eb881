r"""The linear relaxation over the local polytope, and the integer program, by HiGHS.

With :math:`\mu_v(i) = [y_v = i]` and :math:`\mu_{ab}(i, j) = [y_a = i, y_b = j]` the score is
linear, and the best labelling solves

.. math::

    \max_\mu \sum_{v, i} n_v(i)\, \mu_v(i) + \sum_{ab, i, j} T_{ab}(i, j)\, \mu_{ab}(i, j)
    \quad\text{s. t.}\quad \sum_i \mu_v(i) = 1, \quad
    \sum_j \mu_{ab}(i, j) = \mu_a(i), \quad \sum_i \mu_{ab}(i, j) = \mu_b(j), \quad
    \mu \ge 0 \text{ integer.}

Without «integer» it is the relaxation (Schlesinger, 1976; Wainwright & Jordan, *Graphical Models,
Exponential Families, and Variational Inference*, 2008, Chapter 8): an upper bound, tight on forests
and for submodular tables of two labels. Its bound is not taken from the solver, which works to a
tolerance, but computed anew from the dual variables of the last two sets of constraints: they are
the messages of :func:`~trellis.structures.dual_decomposition.dual_bound`, which holds for any.
Forbidden labels and pairs have no variable.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from trellis.arrays import Bools, Float64s, Int32s
from trellis.errors import TrellisError
from trellis.structures.dual_decomposition import dual_bound
from trellis.structures.graph_potentials import GraphPotentials

if TYPE_CHECKING:
    from scipy.sparse import csc_array

__all__ = ["integer_program", "linear_relaxation"]


@dataclass(frozen=True, eq=False)
class _Program:
    """Maximise ``gain @ mu`` where ``matrix @ mu == right``.

    The variables are the allowed (node, label) in row-major order, then the allowed (edge, label,
    label). The rows are one for each node, then those of (edge, label of its first end), then those
    of (edge, label of its second end); ``first`` and ``second`` (E, L) tell which labels have one.
    """

    gain: Float64s
    matrix: csc_array
    right: Float64s
    allowed: Bools
    first: Bools
    second: Bools


def _program(p: GraphPotentials) -> _Program:
    from scipy.sparse import csc_array

    allowed = np.isfinite(p.node)
    n = len(p.node)
    a, b = p.edges.T
    tables = p.pair[p.types]
    pairs = np.isfinite(tables) & allowed[a][:, :, None] & allowed[b][:, None, :]
    first, second = allowed[a], allowed[b]
    variable = np.cumsum(allowed).reshape(allowed.shape) - 1  # number of each node variable
    row_first = n + np.cumsum(first).reshape(first.shape) - 1
    row_second = n + first.sum() + np.cumsum(second).reshape(second.shape) - 1
    n_nodes = int(allowed.sum())
    e, i, j = np.nonzero(pairs)
    column = n_nodes + np.arange(len(e))
    row = np.concatenate(
        [
            np.nonzero(allowed)[0],
            row_first[e, i],
            row_second[e, j],
            row_first[first],
            row_second[second],
        ]
    )
    at_first = np.broadcast_to(variable[a][:, :], first.shape)[first]
    at_second = np.broadcast_to(variable[b][:, :], second.shape)[second]
    columns = np.concatenate([np.arange(n_nodes), column, column, at_first, at_second])
    values = np.ones(len(row))
    values[n_nodes + 2 * len(e) :] = -1.0
    n_rows = n + int(first.sum()) + int(second.sum())
    matrix = csc_array((values, (row, columns)), shape=(n_rows, n_nodes + len(e)))
    right = np.zeros(n_rows)
    right[:n] = 1.0
    gain = np.concatenate([p.node[allowed], tables[pairs]])
    return _Program(gain, matrix, right, allowed, first, second)


def linear_relaxation(p: GraphPotentials) -> tuple[Int32s, float] | None:
    """Rounded labels and an upper bound for one arc-consistent sample; None if infeasible."""
    from scipy.optimize import linprog

    if len(p.node) == 0:
        return np.zeros(0, np.int32), 0.0
    program = _program(p)
    solved: Any = linprog(
        -program.gain,
        A_eq=program.matrix,  # type: ignore[call-overload]  # the stubs know no sparse matrices
        b_eq=program.right,
        bounds=(0, None),
        method="highs-ipm" if len(program.gain) > 20_000 else "highs",
    )
    if solved.status == 2:
        return None
    if solved.status != 0:
        raise TrellisError(f"HiGHS did not solve the linear relaxation: {solved.message}")
    # The dual of «sum_j mu_ab(i, j) = mu_a(i)» is what the edge takes from the node, of which the
    # solver, minimising -gain, gives the negative.
    n, m = len(p.node), int(program.first.sum())
    dual = np.asarray(solved.eqlin.marginals)
    into_first = np.zeros(program.first.shape)
    into_second = np.zeros(program.second.shape)
    into_first[program.first] = -dual[n : n + m]
    into_second[program.second] = -dual[n + m :]
    return _rounded(program, solved.x), dual_bound(p, into_first, into_second)


def integer_program(
    p: GraphPotentials, time_limit: float | None, mip_gap: float
) -> tuple[Int32s | None, float, bool] | None:
    """Labels (None if none was found in time), an upper bound, and whether the search was finished.

    None if no labelling of finite score exists.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp

    if len(p.node) == 0:
        return np.zeros(0, np.int32), 0.0, True
    program = _program(p)
    integrality = np.zeros(len(program.gain), np.int64)
    integrality[: program.allowed.sum()] = 1
    options: Any = {"mip_rel_gap": mip_gap}
    if time_limit is not None:
        options["time_limit"] = time_limit
    solved: Any = milp(
        -program.gain,
        integrality=integrality,
        bounds=Bounds(0, 1),
        constraints=LinearConstraint(program.matrix, program.right, program.right),
        options=options,
    )
    if solved.status == 2:
        return None
    if solved.status not in (0, 1):
        raise TrellisError(f"HiGHS did not solve the integer program: {solved.message}")
    bound = np.inf if solved.mip_dual_bound is None else -float(solved.mip_dual_bound)
    labels = None if solved.x is None else _rounded(program, solved.x)
    return labels, bound, solved.status == 0


def _rounded(program: _Program, x: Float64s) -> Int32s:
    """Take at each node the label of the largest share."""
    shares = np.full(program.allowed.shape, -np.inf)
    shares[program.allowed] = x[: program.allowed.sum()]
    labels: Int32s = shares.argmax(axis=1).astype(np.int32)
    return labels

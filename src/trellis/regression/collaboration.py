"""Components that exchange examples: Algorithm 1 of GLACER, with every refit made once.

A refit depends on (component, outgoing, incoming) and the component's subset only, so after an
exchange between components j and k the refits of all pairs without them stay valid: at most M(M-1)
refits in the first iteration and 4M - 6 in each later one, with the same result as refitting
everything. (Fewer where a pair may not swap or two components name the same example.)

A checkpoint holds the subsets, the last exchange and the parameters of each component and the
history; the models are refitted from their seeds, to the same bits.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from trellis.errors import CorruptModelError, DataError
from trellis.files import display_name, fingerprint
from trellis.files.checkpoint import CheckpointFile
from trellis.files.container import loading
from trellis.files.stored import check_range, header_value, take
from trellis.progress import Reporter
from trellis.regression.bases import one_thread
from trellis.regression.gcrf import LARGEST_GAMMA
from trellis.regression.objective import Objective
from trellis.regression.swaps import (
    Component,
    Decomposition,
    Problem,
    Swapped,
    exchanged,
    fit_component,
    fit_model,
)

__all__ = [
    "Collaboration",
    "State",
    "Swap",
    "read_checkpoint",
    "restored_history",
    "run_fingerprint",
    "stored_history",
    "write_checkpoint",
]

_EIGENVECTOR_ENTRIES = 25_000_000  # of all components together: 200 MB


@dataclass(frozen=True)
class Swap:
    """One record of the history: the start, or an exchange carried out.

    Attributes
    ----------
    r_obj, r_emp, dcorr : float
        After it.
    pair : (int, int) or None
        The components that exchanged examples; None at the start.
    examples : (int, int) or None
        What they gave away: the example of the first, and that of the second.
    n_refits : int
        Components fitted for it.
    n_pairs : int
        Pairs that could have exchanged examples.
    seconds : float
    """

    r_obj: float
    r_emp: float
    dcorr: float
    pair: tuple[int, int] | None
    examples: tuple[int, int] | None
    n_refits: int
    n_pairs: int
    seconds: float


@dataclass(frozen=True)
class State:
    """What a checkpoint holds: seed, subsets, last exchanges and parameters, history."""

    seed: int
    nodes: npt.NDArray[np.int64]
    swapped: npt.NDArray[np.int64]
    alpha: npt.NDArray[np.float64]
    gamma: npt.NDArray[np.float64]
    history: list[Swap]


class Collaboration:
    """The state of Algorithm 1: components, candidate refits, history."""

    def __init__(
        self, problem: Problem, objective: Objective, n_jobs: int | None, reporter: Reporter
    ) -> None:
        self._problem, self._objective = problem, objective
        self._n_jobs, self._reporter = n_jobs, reporter
        self.components: list[Component] = []
        self.history: list[Swap] = []
        # (component, outgoing, incoming) -> the component after that exchange.
        self._candidates: dict[tuple[int, int, int], Component] = {}
        self._decompositions: dict[int, Decomposition] = {}

    def begin(self, subsets: Sequence[npt.NDArray[np.int64]]) -> None:
        """Fit the components on their first subsets."""
        start = time.perf_counter()
        tasks = [(m, nodes) for m, nodes in enumerate(subsets)]
        self.components = self._parallel(fit_component, tasks)
        seconds = time.perf_counter() - start
        self._record(self._value(), None, None, len(subsets), 0, seconds)

    def restore(self, state: State) -> None:
        """Go on from a checkpoint: the same subsets, seeds and parameters give the same bits."""
        swapped = [(out, new) for out, new in state.swapped.tolist()]
        tasks = list(zip(range(len(swapped)), state.nodes, swapped, strict=True))
        optima = zip(state.alpha.tolist(), state.gamma.tolist(), strict=True)
        self.components = self._parallel(fit_component, tasks, [{"optimum": o} for o in optima])
        self.history = list(state.history)

    def swap(self) -> bool:
        """Carry out the best exchange; False if none lowers R_obj."""
        start = time.perf_counter()
        members = self.components
        inside = [set(c.nodes.tolist()) for c in members]
        pairs = [
            (j, k)
            for j in range(len(members))
            for k in range(j + 1, len(members))
            if members[k].worst not in inside[j] and members[j].worst not in inside[k]
        ]
        if not pairs:
            return False
        n_refits = self._refit(pairs)
        after = [(self._candidate(j, k), self._candidate(k, j)) for j, k in pairs]
        current = np.stack([c.predictions for c in members])
        trials = np.empty((len(pairs), current.shape[1]))
        for row, ((j, k), (new_j, new_k)) in enumerate(zip(pairs, after, strict=True)):
            stack = current.copy()
            stack[j], stack[k] = new_j.predictions, new_k.predictions
            trials[row] = stack.mean(axis=0)
        values = self._objective(trials)
        best = int(np.argmin(values[0]))
        if not values[0][best] < self.history[-1].r_obj:
            return False
        j, k = pairs[best]
        examples = members[j].worst, members[k].worst
        members[j], members[k] = after[best]
        self._forget(j, k)
        value = (float(values[0][best]), float(values[1][best]), float(values[2][best]))
        seconds = time.perf_counter() - start
        self._record(value, (j, k), examples, n_refits, len(pairs), seconds)
        return True

    def models(self) -> list[Any]:
        """Return the scikit-learn models of the components."""
        tasks = [(m, c.nodes, c.swapped) for m, c in enumerate(self.components)]
        with one_thread():
            return [fit_model(self._problem, *task) for task in tasks]

    def _value(self) -> tuple[float, float, float]:
        mean = np.stack([c.predictions for c in self.components]).mean(axis=0)
        r_obj, r_emp, dcorr = self._objective(mean[None, :])
        return float(r_obj[0]), float(r_emp[0]), float(dcorr[0])

    def _record(
        self,
        value: tuple[float, float, float],
        pair: tuple[int, int] | None,
        examples: tuple[int, int] | None,
        n_refits: int,
        n_pairs: int,
        seconds: float,
    ) -> None:
        assert not self.history or value[0] < self.history[-1].r_obj, "R_obj must decrease"
        self.history.append(Swap(*value, pair, examples, n_refits, n_pairs, seconds))
        what = "start" if pair is None else f"swap {len(self.history) - 1}"
        self._reporter.line(
            f"{what}: R_obj {value[0]:.6f} (R_emp {value[1]:.6f}, dCorr {value[2]:.6f}),"
            f" {n_refits} refits in {seconds:.1f} s"
        )

    def _key(self, j: int, k: int) -> tuple[int, int, int]:
        return j, self.components[j].worst, self.components[k].worst

    def _candidate(self, j: int, k: int) -> Component:
        return self._candidates[self._key(j, k)]

    def _refit(self, pairs: Sequence[tuple[int, int]]) -> int:
        """Refit what these pairs need and is not known yet; return how many."""
        both = [(j, k) for pair in pairs for j, k in (pair, pair[::-1])]
        missing = list(dict.fromkeys(self._key(j, k) for j, k in both))
        missing = [key for key in missing if key not in self._candidates]
        self._decompose(sorted({key[0] for key in missing}))
        tasks, options = [], []
        for m, out, new in missing:
            swapped: Swapped = (out, new)
            tasks.append((m, exchanged(self.components[m].nodes, swapped), swapped))
            options.append({"before": self._decompositions.get(m)})
        fitted = self._parallel(fit_component, tasks, options)
        self._candidates.update(zip(missing, fitted, strict=True))
        return len(missing)

    def _decompose(self, components: Sequence[int]) -> None:
        """Decompose the Laplacians of these components' subsets, where that pays."""
        S = self._problem.S
        wanted = [m for m in components if m not in self._decompositions]
        entries = len(self.components) * len(self.components[0].nodes) ** 2
        if S is None or entries > _EIGENVECTOR_ENTRIES:
            return
        decompositions = self._parallel(_decompose, [(self.components[m].nodes,) for m in wanted])
        self._decompositions.update(zip(wanted, decompositions, strict=True))

    def _forget(self, *components: int) -> None:
        for key in [key for key in self._candidates if key[0] in components]:
            del self._candidates[key]
        for m in components:
            self._decompositions.pop(m, None)

    def _parallel(
        self,
        function: Callable[..., Any],
        tasks: Sequence[tuple[Any, ...]],
        options: Sequence[dict[str, Any]] | None = None,
    ) -> list[Any]:
        """Run function(problem, *task, **option) for all tasks, in order."""
        from joblib import Parallel, delayed, effective_n_jobs

        if options is None:
            options = [{}] * len(tasks)
        calls = [
            delayed(function)(self._problem, *task, **option)
            for task, option in zip(tasks, options, strict=True)
        ]
        results: list[Any] = []
        batch = 32 * effective_n_jobs(self._n_jobs)
        with (
            Parallel(n_jobs=self._n_jobs) as parallel,
            self._reporter.steps("refit", len(calls)) as refits,
        ):
            for first in range(0, len(calls), batch):
                refits.at(first)
                if len(calls) > batch:
                    self._reporter.line(f"{len(calls) - first} refits to go")
                results += parallel(calls[first : first + batch])
        return results


def _decompose(problem: Problem, nodes: npt.NDArray[np.int64]) -> Decomposition:
    with one_thread():
        return Decomposition(nodes, problem.S)


def run_fingerprint(problem: Problem, params: dict[str, Any]) -> str:
    """Return a hash of the data and of the parameters that decide the run."""
    irrelevant = ("n_jobs", "verbose", "max_swaps", "graph", "observed")
    decisive = {name: value for name, value in params.items() if name not in irrelevant}
    if decisive["base"] is None:  # which was another one in 0.1
        decisive["base"] = "histogram gradient boosting"
    S = problem.S
    similarities = None if S is None else (S.indptr, S.indices, S.data)
    return fingerprint(problem.X, problem.y, similarities, decisive)


def write_checkpoint(path: Path, mark: str, seed: int, run: Collaboration) -> None:
    """Write the state of a run."""
    file = CheckpointFile(path)
    file.run, file.seed = mark, seed
    members = run.components
    file.write(
        {"history": stored_history(run.history)},
        {
            "nodes": np.stack([c.nodes for c in members]),
            "swapped": np.array([c.swapped for c in members], np.int64),
            "alpha": np.array([c.alpha for c in members], np.float64),
            "gamma": np.array([c.gamma for c in members], np.float64),
        },
    )


def read_checkpoint(path: Path, mark: str, M: int, N: int) -> State | None:
    """Read and check a checkpoint of M components on N examples; None if there is no file."""
    stored = CheckpointFile(path).read()
    if stored is None:
        return None
    if stored.run != mark:
        raise DataError(
            f"{display_name(path)} was written for other data or parameters; give those, or "
            "another checkpoint"
        )
    with loading(path):
        arrays = stored.arrays
        nodes = take(arrays, "nodes", np.int64, (M, None))
        swapped = take(arrays, "swapped", np.int64, (M, 2))
        alpha = take(arrays, "alpha", np.float64, (M,))
        gamma = take(arrays, "gamma", np.float64, (M,))
        check_range(nodes, 0, N, "examples of components")
        check_range(swapped, -1, N, "exchanged examples")
        check_range(alpha, 0, np.inf, "alpha")
        check_range(gamma, 0, LARGEST_GAMMA, "gamma")
        if nodes.shape[1] < 2 or (np.diff(nodes, axis=1) <= 0).any():
            raise CorruptModelError("the examples of a component are not distinct and in order")
        history = restored_history(stored.header)
    return State(stored.seed, nodes, swapped, alpha, gamma, history)


def stored_history(history: Sequence[Swap]) -> list[dict[str, Any]]:
    """Records as JSON can hold them."""
    records = [asdict(record) for record in history]
    return [{k: list(v) if isinstance(v, tuple) else v for k, v in r.items()} for r in records]


def restored_history(header: Mapping[str, Any]) -> list[Swap]:
    """Undo :func:`stored_history`, checking everything."""
    history = []
    for record in header_value(header, "history", list, items=dict):
        if set(record) != {field.name for field in fields(Swap)}:
            raise CorruptModelError("a record of the history lacks an entry")
        history.append(
            Swap(
                header_value(record, "r_obj", float),
                header_value(record, "r_emp", float),
                header_value(record, "dcorr", float),
                _both(record, "pair"),
                _both(record, "examples"),
                header_value(record, "n_refits", int, low=0),
                header_value(record, "n_pairs", int, low=0),
                header_value(record, "seconds", float),
            )
        )
    if not history:
        raise CorruptModelError("the history is empty")
    return history


def _both(record: Mapping[str, Any], name: str) -> tuple[int, int] | None:
    if record[name] is None:
        return None
    both = header_value(record, name, list, items=int)
    if len(both) != 2 or min(both) < 0:
        raise CorruptModelError(f"{name} of an exchange are two numbers of at least 0")
    return both[0], both[1]

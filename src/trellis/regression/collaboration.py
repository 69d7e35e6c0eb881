"""Components that exchange examples: Algorithm 1 of GLACER, with every refit made once.

A refit depends on (component, outgoing, incoming) and the component's subset only, so after an
exchange between components j and k the refits of all pairs without them stay valid: at most M(M-1)
refits in the first iteration and 4M - 6 in each later one, with the same result as refitting
everything. (Fewer where a pair may not swap or two components name the same example.)

A checkpoint is a JSON file with the subsets, the last exchange and the parameters of each component
and the history; the models are refitted from their seeds, to the same bits.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from trellis.errors import CorruptModelError, DataError
from trellis.files import atomic_write, display_name
from trellis.progress import Reporter
from trellis.regression.objective import Objective
from trellis.regression.swaps import (
    Component,
    Decomposition,
    Problem,
    Swapped,
    exchanged,
    fit_component,
    fit_model,
    one_thread,
)

__all__ = ["Collaboration", "Swap", "fingerprint", "read_checkpoint", "write_checkpoint"]

_FORMAT = "trellis-glacer-1"
_EIGENVECTOR_ENTRIES = 150_000_000  # of all components together: 1.2 GB


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

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a checkpoint: the same subsets, seeds and parameters give the same bits."""
        tasks = [
            (m, np.array(c["nodes"], dtype=np.int64), tuple(c["swapped"]))
            for m, c in enumerate(state["components"])
        ]
        known = [{"optimum": (c["alpha"], c["gamma"])} for c in state["components"]]
        self.components = self._parallel(fit_component, tasks, known)
        self.history = list(state["history"])

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
        made = self._parallel(_decompose, [(self.components[m].nodes,) for m in wanted])
        self._decompositions.update(zip(wanted, made, strict=True))

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
        with Parallel(n_jobs=self._n_jobs) as parallel:
            for first in range(0, len(calls), batch):
                if len(calls) > batch:
                    self._reporter.line(f"{len(calls) - first} refits to go")
                results += parallel(calls[first : first + batch])
        return results


def _decompose(problem: Problem, nodes: npt.NDArray[np.int64]) -> Decomposition:
    with one_thread():
        return Decomposition(nodes, problem.S)


def fingerprint(problem: Problem, params: dict[str, Any]) -> str:
    """Return a hash of the data and of the parameters that decide the run."""
    digest = hashlib.sha256()
    arrays = [problem.X, problem.y]
    if problem.S is not None:
        arrays += [problem.S.indptr, problem.S.indices, problem.S.data]
    for array in arrays:
        digest.update(str((array.shape, array.dtype)).encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    irrelevant = ("n_jobs", "verbose", "max_swaps", "graph")
    # A function's repr ends in where it lies in memory.
    decisive = {
        name: re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))
        for name, value in sorted(params.items())
        if name not in irrelevant
    }
    digest.update(json.dumps(decisive).encode())
    return digest.hexdigest()


def write_checkpoint(path: Path, mark: str, seed: int, run: Collaboration) -> None:
    """Write the state of a run."""
    state = {
        "format": _FORMAT,
        "fingerprint": mark,
        "seed": seed,
        "history": [asdict(record) for record in run.history],
        "components": [
            {
                "nodes": c.nodes.tolist(),
                "swapped": c.swapped,
                "alpha": c.alpha,
                "gamma": c.gamma,
            }
            for c in run.components
        ],
    }
    with atomic_write(path, binary=False) as file:
        json.dump(state, file)


def read_checkpoint(path: Path, mark: str, M: int, N: int) -> dict[str, Any]:
    """Read and check a checkpoint; the history comes back as records."""
    name = display_name(path)
    try:
        state = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, UnicodeError) as error:
        raise CorruptModelError(f"{name} is not a GLACER checkpoint: {error}") from error
    if not isinstance(state, dict) or state.get("format") != _FORMAT:
        raise CorruptModelError(f"{name} is not a GLACER checkpoint")
    if state.get("fingerprint") != mark:
        raise DataError(
            f"{name} was written for other data or parameters; give those, or another checkpoint"
        )
    try:
        history = [Swap(**record) for record in state["history"]]
        pairs = [(h.pair, h.examples) for h in history]
        state["history"] = [
            replace(h, pair=pair and (pair[0], pair[1]), examples=given and (given[0], given[1]))
            for h, (pair, given) in zip(history, pairs, strict=True)
        ]
        parts = state["components"]
        sound = len(parts) == M and len(history) > 0 and state["seed"] >= 0
        for part in parts:
            nodes = part["nodes"]
            sound &= nodes == sorted(set(nodes)) and nodes[0] >= 0 and nodes[-1] < N
            sound &= len(part["swapped"]) == 2 and part["alpha"] >= 0 and part["gamma"] >= 0
    except (TypeError, KeyError, IndexError, AttributeError) as error:
        raise CorruptModelError(f"{name} is a damaged GLACER checkpoint: {error!r}") from error
    if not sound:
        raise CorruptModelError(f"{name} is a damaged GLACER checkpoint")
    return state

"""Structures beyond chains, measured: trees, grids, methods of inference, and max-margin learning.

Each experiment is a module: what it computes for each protocol, and what it says about it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from trellis.reproduce.experiments import Records, render_study, run_study
from trellis.reproduce.structures.grids import GRIDS
from trellis.reproduce.structures.inference import INFERENCE
from trellis.reproduce.structures.letters import LETTERS
from trellis.reproduce.structures.tree_sizes import TREE_SIZES
from trellis.reproduce.structures.trees import TREES

__all__ = ["EXPERIMENTS", "render", "reproduce"]

EXPERIMENTS = (TREES, TREE_SIZES, GRIDS, INFERENCE, LETTERS)
"""The experiments, in the order of the report."""

_TITLE = "Trees, grids and max-margin learning"


def reproduce(
    out: str | os.PathLike[Any],
    *,
    protocol: str = "default",
    tasks: Sequence[str] | None = None,
    n_jobs: int | None = None,
    resume: bool = False,
    figures: bool = True,
    verbose: bool = False,
) -> Records:
    """Run the experiments, write log, report, results and figures to a folder.

    Parameters are those of :func:`trellis.reproduce.reproduce`; the tasks are trees, tree-sizes,
    grids, inference and letters. Returns what was computed, by key.
    """
    return run_study(
        _TITLE, EXPERIMENTS, out, protocol=protocol, tasks=tasks, n_jobs=n_jobs, resume=resume,
        figures=figures, verbose=verbose,
    )  # fmt: skip


def render(out: str | os.PathLike[Any], *, figures: bool = True) -> Records:
    """Write report, results and figures again, from the log of a folder alone."""
    return render_study(_TITLE, EXPERIMENTS, out, figures=figures)

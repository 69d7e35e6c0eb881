"""Learning from cheap data (Lou, Kloft, Rätsch and Hamprecht 2014): cells, and sentences as well.

Their data sets cannot be had, so that the experiments are made in their manner on two real movies
of dividing cells, on simulated ones, and once more on sentences. Each experiment is a module: what
it computes for each protocol, and what it says about it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from trellis.reproduce.cheap_data.active import ACTIVE
from trellis.reproduce.cheap_data.chains import chain_experiments
from trellis.reproduce.cheap_data.methods import METHODS
from trellis.reproduce.cheap_data.partial import PARTIAL
from trellis.reproduce.cheap_data.recycling import RECYCLING
from trellis.reproduce.cheap_data.transfer import TRANSFER
from trellis.reproduce.experiments import Records, render_study, run_study

__all__ = ["EXPERIMENTS", "render", "reproduce"]

EXPERIMENTS = (METHODS, PARTIAL, RECYCLING, ACTIVE, TRANSFER, *chain_experiments)
"""The experiments, in the order of the report."""

_TITLE = "Learning from cheap data"


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
    """Run the study; see :func:`trellis.reproduce.reproduce`."""
    return run_study(
        _TITLE, EXPERIMENTS, out, protocol=protocol, tasks=tasks, n_jobs=n_jobs, resume=resume,
        figures=figures, verbose=verbose,
    )  # fmt: skip


def render(out: str | os.PathLike[Any], *, figures: bool = True) -> Records:
    """Write report, results and figures of a finished run again, from its log alone."""
    return render_study(_TITLE, EXPERIMENTS, out, figures=figures)

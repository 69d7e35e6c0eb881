"""The experiments of Cortes, Kuznetsov and Mohri (2014) on ensembles of structured experts.

Their artificial data are drawn again (Tables 1 and 2). Their other data cannot be had, so that
experiments in their manner are made on public data: part-of-speech tags and letters in place of
Table 5, pronunciations in place of Tables 3 and 4, numbers of experts and lengths in place of
Tables 6 and 7, and the answers of real systems.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from trellis.reproduce.ensembles.artificial import ARTIFICIAL
from trellis.reproduce.ensembles.curves import CURVES
from trellis.reproduce.ensembles.labelling import LABELLING
from trellis.reproduce.ensembles.pronunciation import PRONUNCIATION
from trellis.reproduce.ensembles.systems import SYSTEMS
from trellis.reproduce.experiments import Records, render_study, run_study

__all__ = ["EXPERIMENTS", "render", "reproduce"]

EXPERIMENTS = (ARTIFICIAL, LABELLING, SYSTEMS, PRONUNCIATION, CURVES)
_TITLE = "Ensembles of structured experts"


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

"""The experiments of the papers behind Trellis, run again, and experiments of our own beside them.

A *study* is a subpackage with the functions ``reproduce`` and ``render``; everything that it
computes goes to a log, and tables, figures and the report are made from the log alone.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Sequence
from typing import Any

from trellis.errors import DataError

__all__ = ["STUDIES", "render", "reproduce"]

STUDIES = {
    "structure-regularisation": "CRFs and perceptrons on mini-samples (Sun 2014)",
    "structures": "trees, grids, methods of inference and max-margin learning",
    "ensembles": "combining experts (Cortes, Kuznetsov and Mohri 2014)",
    "glacer": "regression on graphs that balances bias and variance (Pavlovski et al. 2018)",
    "cheap-data": "partial annotation, active learning and transfer (Lou et al. 2014)",
}
"""The studies by name, and what they are about."""


def reproduce(
    study: str,
    out: str | os.PathLike[Any],
    *,
    protocol: Any = "default",
    tasks: Sequence[str] | None = None,
    n_jobs: int | None = None,
    resume: bool = False,
    figures: bool = True,
    verbose: bool = False,
) -> Any:
    """Run the experiments of a study; writes a log, report, results and figures to a folder.

    Parameters
    ----------
    study : str
        One of :data:`STUDIES`.
    out : path
        Folder; made if it does not exist.
    protocol : "quick", "default" or "full"
        How much to compute.
    tasks : list of str, optional
        Parts of the study; by default all.
    n_jobs : int or None
        Computations made at once; None for one on each processor.
    resume : bool
        Go on from the log in the folder; else a folder with a log is refused.
    figures : bool
        Draw figures, which needs matplotlib.
    verbose : bool
        One line for each computation on standard error.

    Returns
    -------
    object
        What was found; it depends on the study.

    Examples
    --------
    >>> from trellis.reproduce import reproduce
    >>> reproduce("alchemy", "out")
    Traceback (most recent call last):
    trellis.errors.DataError: unknown study 'alchemy'; known: structure-regularisation...
    """
    return _module(study).reproduce(
        out, protocol=protocol, tasks=tasks, n_jobs=n_jobs, resume=resume, figures=figures,
        verbose=verbose,
    )  # fmt: skip


def render(study: str, out: str | os.PathLike[Any], *, figures: bool = True) -> Any:
    """Write report, results and figures of a finished study again, from its log alone.

    Parameters
    ----------
    study : str
        One of :data:`STUDIES`.
    out : path
        The folder.
    figures : bool
        Draw the figures, too.

    Examples
    --------
    >>> from trellis.reproduce import render
    >>> render("structure-regularisation", "no/such/folder")
    Traceback (most recent call last):
    trellis.errors.DataError: no/such/folder holds no log.jsonl: nothing was run there
    """
    return _module(study).render(out, figures=figures)


def _module(study: str) -> Any:
    if study not in STUDIES:
        raise DataError(f"unknown study {study!r}; known: {', '.join(STUDIES)}")
    return importlib.import_module(f"{__name__}.{study.replace('-', '_')}")

"""The experiments of the papers behind Trellis, run again, and experiments of our own beside them.

A *study* is a subpackage with a :class:`~studies.experiments.Study` named ``STUDY``; everything
that it computes goes to a log, and tables, figures and the report are made from the log alone.
``python -m studies NAME`` runs one. They live in the repository, not in the library.
"""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

from trellis.errors import DataError

if TYPE_CHECKING:
    from studies.experiments import Study

__all__ = ["STUDIES", "render", "reproduce"]

STUDIES = {
    "structure-regularisation": (
        "Sun (2014): scores and times of CRFs and perceptrons against the size of mini-samples, "
        "with rich and with plain edges, the baselines, overlap, two models, tests of "
        "significance, and the theory's quantities beside their bounds. "
        "Tasks: pos, bio-ner, word-seg, word-seg-msr, act-recog, chunking (data in "
        "$TRELLIS_DATA), and roles (embedded data). On two cores --quick takes about a minute, "
        "the default half an hour, --full up to an hour and a half for each task."
    ),
    "structures": (
        "Trees against chains and no structure, pieces of trees, images on grids, exact and "
        "approximate inference, max-margin learning. Tasks: trees, tree-sizes, letters (data in "
        "$TRELLIS_DATA), grids, inference. On two cores --quick takes half a minute, the default "
        "some minutes."
    ),
    "ensembles": (
        "Cortes, Kuznetsov and Mohri (2014): combining experts. Tasks: artificial (their Tables 1 "
        "and 2), labelling (tags and letters), systems (answers of real systems), pronunciation, "
        "curves (numbers of experts, lengths). --quick takes half a minute, the default about ten "
        "minutes."
    ),
    "glacer": (
        "Pavlovski et al. (2018): regression on graphs against its baselines. Tasks: table-1, "
        "table-2, smoothing, generators, determinants, table-3, improvements, parameters, refits, "
        "calibration, variants. On two cores --quick takes half a minute, the default half an "
        "hour, --full many hours."
    ),
    "cheap-data": (
        "Lou et al. (2014): partial annotation, active learning and transfer, for cell tracking "
        "and for chains. Tasks: methods, partial, recycling, active, transfer, chains-partial, "
        "chains-active, chains-transfer. On two cores --quick takes a minute or two, the default "
        "half an hour, --full, the size of the paper, two hours."
    ),
}
"""The studies by name, and what they are about."""


def reproduce(study: str, out: str | os.PathLike[Any], **options: Any) -> Any:
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
        Parts of the study; by default all, with "quick" those whose data are there.
    n_jobs : int or None
        Computations made at once; None for one on each processor.
    resume : bool
        Go on from the log in the folder; else a folder with a log is refused.
    figures : bool
        Draw figures, which needs matplotlib; they are drawn if nothing is said.
    verbose : bool
        One line for each computation on standard error.

    Returns
    -------
    object
        What was found; it depends on the study.

    Raises
    ------
    DataError
        If a study or a task is unknown, its data are missing, the folder cannot be written or holds
        another run, or matplotlib is missing.

    Examples
    --------
    >>> from studies import reproduce
    >>> reproduce("alchemy", "out")
    Traceback (most recent call last):
    trellis.errors.DataError: unknown study 'alchemy'; known: structure-regularisation...
    """
    return _study(study).run(out, **options)


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
    >>> from studies import render
    >>> render("structure-regularisation", "no/such/folder")
    Traceback (most recent call last):
    trellis.errors.DataError: no/such/folder holds no log.jsonl: nothing was run there
    """
    return _study(study).render(out, figures=figures)


def _study(name: str) -> Study:
    if name not in STUDIES:
        raise DataError(f"unknown study {name!r}; known: {', '.join(STUDIES)}")
    study: Study = importlib.import_module(f"{__name__}.{name.replace('-', '_')}").STUDY
    return study

"""Pavlovski et al. (2018), Generalization-aware structured regression: the experiments again."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from trellis.reproduce.experiments import Records, render_study, run_study

__all__ = ["TITLE", "render", "reproduce"]

TITLE = "GLACER: the paper's experiments again"


def reproduce(out: str | os.PathLike[Any], **options: Any) -> Records:
    """Run the study; options are those of :func:`trellis.reproduce.reproduce`."""
    from trellis.reproduce.glacer.study import EXPERIMENTS

    return run_study(TITLE, EXPERIMENTS, out, **options)


def render(out: str | os.PathLike[Any], *, figures: bool = True) -> Records:
    """Write the report again from the log."""
    from trellis.reproduce.glacer.study import EXPERIMENTS

    return render_study(TITLE, EXPERIMENTS, out, figures=figures)


def experiments() -> Sequence[str]:
    """Names of the experiments."""
    from trellis.reproduce.glacer.study import EXPERIMENTS

    return [e.name for e in EXPERIMENTS]

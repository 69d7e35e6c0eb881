"""Pavlovski et al. (2018), Generalization-aware structured regression: the experiments again."""

from studies.experiments import study_of
from studies.glacer.study import EXPERIMENTS

__all__ = ["EXPERIMENTS", "STUDY"]

STUDY = study_of("GLACER: the paper's experiments again", EXPERIMENTS)

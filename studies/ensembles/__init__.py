"""The experiments of Cortes, Kuznetsov and Mohri (2014) on ensembles of structured experts.

Their artificial data are drawn again (Tables 1 and 2). Their other data cannot be had, so that
experiments in their manner are made on public data: part-of-speech tags and letters in place of
Table 5, pronunciations in place of Tables 3 and 4, numbers of experts and lengths in place of
Tables 6 and 7, and the answers of real systems.
"""

from studies.ensembles.artificial import ARTIFICIAL
from studies.ensembles.curves import CURVES
from studies.ensembles.labelling import LABELLING
from studies.ensembles.pronunciation import PRONUNCIATION
from studies.ensembles.systems import SYSTEMS
from studies.experiments import study_of

__all__ = ["EXPERIMENTS", "STUDY"]

EXPERIMENTS = (ARTIFICIAL, LABELLING, SYSTEMS, PRONUNCIATION, CURVES)
STUDY = study_of("Ensembles of structured experts", EXPERIMENTS)

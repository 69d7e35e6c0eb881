"""Learning from cheap data (Lou, Kloft, Rätsch and Hamprecht 2014): cells, and sentences as well.

Their data sets cannot be had, so that the experiments are made in their manner on two real movies
of dividing cells, on simulated ones, and once more on sentences. Each experiment is a module: what
it computes for each protocol, and what it says about it.
"""

from studies.cheap_data.active import ACTIVE
from studies.cheap_data.chains import chain_experiments
from studies.cheap_data.methods import METHODS
from studies.cheap_data.partial import PARTIAL
from studies.cheap_data.recycling import RECYCLING
from studies.cheap_data.transfer import TRANSFER
from studies.experiments import study_of

__all__ = ["EXPERIMENTS", "STUDY"]

EXPERIMENTS = (METHODS, PARTIAL, RECYCLING, ACTIVE, TRANSFER, *chain_experiments)
STUDY = study_of("Learning from cheap data", EXPERIMENTS)

"""Ensembles of structured experts (Cortes, Kuznetsov and Mohri 2014).

Several taggers, recognisers or annotators answer the same questions, each good in places; a small
labelled sample teaches how to patch their answers together.
"""

from trellis.experts.adapters import (
    AnswerFile,
    from_classifiers,
    from_columns,
    from_files,
    from_models,
)
from trellis.experts.alignment import Aligned, align, strip
from trellis.experts.automaton import PathAutomaton
from trellis.experts.baselines import BestExpert, MajorityVote, Rover
from trellis.experts.espboost import ESPBoost
from trellis.experts.follow_perturbed_leader import FollowPerturbedLeader
from trellis.experts.online import Guarantee
from trellis.experts.outputs import ExpertOutputs, as_gold, as_outputs
from trellis.experts.path_family import PathFamily
from trellis.experts.rerank import Rerank
from trellis.experts.stacking import LogLinearVote, Stacking
from trellis.experts.stepwise import ForwardStepwise
from trellis.experts.weighted_majority import WeightedMajority

__all__ = [
    "Aligned",
    "AnswerFile",
    "BestExpert",
    "ESPBoost",
    "ExpertOutputs",
    "FollowPerturbedLeader",
    "ForwardStepwise",
    "Guarantee",
    "LogLinearVote",
    "MajorityVote",
    "PathAutomaton",
    "PathFamily",
    "Rerank",
    "Rover",
    "Stacking",
    "WeightedMajority",
    "align",
    "as_gold",
    "as_outputs",
    "from_classifiers",
    "from_columns",
    "from_files",
    "from_models",
    "strip",
]

"""Ensembles of structured experts (Cortes, Kuznetsov and Mohri 2014).

Several taggers, recognisers or annotators answer the same questions, each good in places; a small
labelled sample teaches how to patch their answers together.
"""

from trellis.experts.adapters import from_classifiers, from_models
from trellis.experts.alignment import Aligned, align, strip
from trellis.experts.annotator_model import AnnotatorModel
from trellis.experts.answer_files import read_answers
from trellis.experts.answers import Answers
from trellis.experts.auto import AutoCombiner
from trellis.experts.automaton import PathAutomaton
from trellis.experts.baselines import BestExpert, MajorityVote, Rover
from trellis.experts.committee import Committee
from trellis.experts.consensus import Consensus
from trellis.experts.doubts import Doubt
from trellis.experts.espboost import ESPBoost
from trellis.experts.follow_perturbed_leader import FollowPerturbedLeader
from trellis.experts.guarded import GuardedVote
from trellis.experts.online import Guarantee
from trellis.experts.outputs import ExpertOutputs, as_gold, as_outputs
from trellis.experts.path_family import PathFamily
from trellis.experts.rerank import Rerank
from trellis.experts.span_candidates import SpanOutputs, as_span_outputs
from trellis.experts.span_combiner import SpanCombiner
from trellis.experts.span_voting import SpanVote
from trellis.experts.stacking import LogLinearVote, Stacking
from trellis.experts.stepwise import ForwardStepwise
from trellis.experts.weighted_majority import WeightedMajority

__all__ = [
    "Aligned",
    "AnnotatorModel",
    "Answers",
    "AutoCombiner",
    "BestExpert",
    "Committee",
    "Consensus",
    "Doubt",
    "ESPBoost",
    "ExpertOutputs",
    "FollowPerturbedLeader",
    "ForwardStepwise",
    "Guarantee",
    "GuardedVote",
    "LogLinearVote",
    "MajorityVote",
    "PathAutomaton",
    "PathFamily",
    "Rerank",
    "Rover",
    "SpanCombiner",
    "SpanOutputs",
    "SpanVote",
    "Stacking",
    "WeightedMajority",
    "align",
    "as_gold",
    "as_outputs",
    "as_span_outputs",
    "from_classifiers",
    "from_models",
    "read_answers",
    "strip",
]

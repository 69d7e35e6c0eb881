"""Learning from cheap data: active learning and transfer, for every structure."""

from __future__ import annotations

from trellis.cheap.active import ActiveLearner, Part
from trellis.cheap.annotation_log import AnnotationLog, Entry
from trellis.cheap.transfer import TRANSFER_STRATEGIES, TransferLearner
from trellis.cheap.transfer_choice import TransferChoice, TransferTrial, cross_validate_transfer
from trellis.cheap.uncertainty import STRATEGIES, StoppingRule, convergence

__all__ = [
    "STRATEGIES",
    "TRANSFER_STRATEGIES",
    "ActiveLearner",
    "AnnotationLog",
    "Entry",
    "Part",
    "StoppingRule",
    "TransferChoice",
    "TransferLearner",
    "TransferTrial",
    "convergence",
    "cross_validate_transfer",
]

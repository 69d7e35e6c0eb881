"""How good predictions are: accuracy, spans, confusions, calibration, distances, significance."""

from trellis.evaluation.accuracy import hamming_loss, sequence_accuracy, token_accuracy
from trellis.evaluation.calibration import Calibration, calibration
from trellis.evaluation.confusion import Confusion, confusion
from trellis.evaluation.edit_distance import edit_distance, normalised_edit_distance
from trellis.evaluation.significance import (
    Comparison,
    mcnemar,
    paired_bootstrap,
    paired_permutation,
    paired_t_test,
)
from trellis.evaluation.spans import (
    PrecisionRecall,
    SegmentationScores,
    SpanScores,
    span_scores,
    word_segmentation_scores,
)
from trellis.evaluation.tracking import EventKey, LinkScores, event_set, score_links, task_loss

__all__ = [
    "Calibration",
    "Comparison",
    "Confusion",
    "EventKey",
    "LinkScores",
    "PrecisionRecall",
    "SegmentationScores",
    "SpanScores",
    "calibration",
    "confusion",
    "edit_distance",
    "event_set",
    "hamming_loss",
    "mcnemar",
    "normalised_edit_distance",
    "paired_bootstrap",
    "paired_permutation",
    "paired_t_test",
    "score_links",
    "sequence_accuracy",
    "span_scores",
    "task_loss",
    "token_accuracy",
    "word_segmentation_scores",
]

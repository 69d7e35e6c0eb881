"""How good predictions are: accuracy, spans, confusions, calibration, distances, significance."""

from trellis.evaluation.accuracy import hamming_loss, sequence_accuracy, token_accuracy
from trellis.evaluation.calibration import Calibration, calibration
from trellis.evaluation.confusion import Confusion, confusion
from trellis.evaluation.edit_distance import edit_distance, normalised_edit_distance
from trellis.evaluation.overlap import gleu, sentence_gleu, word_error_rate
from trellis.evaluation.ranked import PrecisionRecallCurve, precision_recall_curve
from trellis.evaluation.scorers import Scorer, scorer
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

__all__ = [
    "Calibration",
    "Comparison",
    "Confusion",
    "PrecisionRecall",
    "PrecisionRecallCurve",
    "Scorer",
    "SegmentationScores",
    "SpanScores",
    "calibration",
    "confusion",
    "edit_distance",
    "gleu",
    "hamming_loss",
    "mcnemar",
    "normalised_edit_distance",
    "paired_bootstrap",
    "paired_permutation",
    "paired_t_test",
    "precision_recall_curve",
    "scorer",
    "sentence_gleu",
    "sequence_accuracy",
    "span_scores",
    "token_accuracy",
    "word_error_rate",
    "word_segmentation_scores",
]

"""Cell tracking by assignment: detections, hypotheses, features, tracks."""

from __future__ import annotations

from trellis.tracking.baselines import (
    FlowTracker,
    GraphMatching,
    NearestNeighbour,
)
from trellis.tracking.ctc import read_ctc, write_ctc
from trellis.tracking.ctc_metrics import CTCScores, score_ctc
from trellis.tracking.default_features import default_features
from trellis.tracking.event_kinds import EventKind, Neighbours
from trellis.tracking.features import EventFeature, Frame, Relations
from trellis.tracking.geff_file import write_geff
from trellis.tracking.hypotheses import Hypotheses, make_hypotheses
from trellis.tracking.label_images import read_label_images
from trellis.tracking.link_chances import LinkChance
from trellis.tracking.local_classifiers import HandSet, LocalClassifiers
from trellis.tracking.model import TrackingModel
from trellis.tracking.napari import to_napari
from trellis.tracking.objects import EVENTS, FramePair, Link, Objects, PairAnnotation
from trellis.tracking.patches import patchify
from trellis.tracking.reading import read_detections
from trellis.tracking.result import (
    Track,
    TrackedObject,
    TrackEvent,
    TrackingResult,
    annotated_events,
    assemble_tracks,
)
from trellis.tracking.scores import EventKey, LinkScores, event_set, score_links, task_loss
from trellis.tracking.stitching import close_gaps
from trellis.tracking.trackmate import write_trackmate

__all__ = [
    "EVENTS",
    "CTCScores",
    "EventFeature",
    "EventKey",
    "EventKind",
    "FlowTracker",
    "Frame",
    "FramePair",
    "GraphMatching",
    "HandSet",
    "Hypotheses",
    "Link",
    "LinkChance",
    "LinkScores",
    "LocalClassifiers",
    "NearestNeighbour",
    "Neighbours",
    "Objects",
    "PairAnnotation",
    "Relations",
    "Track",
    "TrackEvent",
    "TrackedObject",
    "TrackingModel",
    "TrackingResult",
    "annotated_events",
    "assemble_tracks",
    "close_gaps",
    "default_features",
    "event_set",
    "make_hypotheses",
    "patchify",
    "read_ctc",
    "read_detections",
    "read_label_images",
    "score_ctc",
    "score_links",
    "task_loss",
    "to_napari",
    "write_ctc",
    "write_geff",
    "write_trackmate",
]

"""Pictures that users expect, one call each: one style, readable in black and white.

All take their data first, ``path`` (a file to write: .png, .svg or .pdf) and ``ax`` (axes to draw
in), and return the figure. They need matplotlib, which is imported when something is drawn. A movie
is no picture but a page for the browser (:func:`movie_page`), and needs nothing.
"""

from trellis.pictures.agreement import draw_agreement
from trellis.pictures.calibration import draw_calibration
from trellis.pictures.confusion import draw_confusion
from trellis.pictures.coverage import draw_coverage
from trellis.pictures.learning import draw_learning
from trellis.pictures.lineage import draw_lineage
from trellis.pictures.map import draw_map
from trellis.pictures.movie_page import movie_page
from trellis.pictures.precision_recall import draw_precision_recall
from trellis.pictures.residuals import draw_residuals
from trellis.pictures.style import picture_style
from trellis.pictures.transitions import draw_transitions
from trellis.pictures.variogram import draw_variogram

__all__ = [
    "draw_agreement",
    "draw_calibration",
    "draw_confusion",
    "draw_coverage",
    "draw_learning",
    "draw_lineage",
    "draw_map",
    "draw_precision_recall",
    "draw_residuals",
    "draw_transitions",
    "draw_variogram",
    "movie_page",
    "picture_style",
]

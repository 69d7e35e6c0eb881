"""A figure that knows its style, and that notebooks show.

Figures of ``pyplot`` are shown by notebooks because ``pyplot`` tells them how; one that was made
without it would be shown as its name. So it brings its own image.
"""

from __future__ import annotations

import io
import warnings
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from trellis.pictures.style import picture_style

__all__ = ["Picture"]


class Picture(Figure):
    """A matplotlib figure in the style of Trellis.

    Examples
    --------
    >>> from trellis.pictures.picture import Picture
    >>> Picture(figsize=(1, 1))._repr_png_()[1:4]
    b'PNG'
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        FigureCanvasAgg(self)

    def draw(self, renderer: Any) -> None:
        """Draw; ticks are made only now, so it must be in the style, too."""
        with picture_style(), warnings.catch_warnings():
            # A name in a script that no font here has is drawn as boxes; once a glyph is too often.
            warnings.filterwarnings("ignore", message=r"(?s)(Glyph|Matplotlib currently)")
            engine = self.get_layout_engine()
            if engine is not None:
                engine.execute(self)  # once is not enough where cells are to stay square
            super().draw(renderer)

    def _repr_png_(self) -> bytes:
        """The image that a notebook shows."""
        file = io.BytesIO()
        self.savefig(file, format="png", dpi=100)
        return file.getvalue()

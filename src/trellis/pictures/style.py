"""The one style of all pictures: what they look like, and how they get into a file.

Pictures are read on paper, by people who do not see all colours, and copied in black and white. So
nothing is told by hue alone. Curves differ in colour, in lightness, in their marks and in their
dashes; colour maps go from light to dark, and dark means more; bars have hatches.

The style is a context: it holds while something is drawn and changes no setting of the program
(:func:`picture_style`). Nothing here uses ``pyplot``. matplotlib is imported when something is
drawn; :func:`check_matplotlib` is the one place that says it is missing.

The colours are of Paul Tol's schemes, chosen for readers who confuse red and green; in this order
neighbours differ by 19 or more in lightness L* (of 100).

P. Tol, *Colour schemes*, SRON technical note 09-002, 2021.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from trellis.errors import DataError
from trellis.files import atomic_write
from trellis.files.paths import display_name

__all__ = [
    "COLOURS",
    "DASHES",
    "HATCHES",
    "MARKERS",
    "POINTS",
    "SEQUENTIAL",
    "SUFFIXES",
    "check_matplotlib",
    "check_picture_name",
    "has_matplotlib",
    "line_style",
    "new_figure",
    "picture_style",
    "save_figure",
]

SUFFIXES = (".png", ".svg", ".pdf")
"""What the name of a picture may end with."""

COLOURS = ("#004488", "#DDAA33", "#BB5566", "#000000", "#66CCEE", "#117733", "#EE7733")
"""Of curves, in their order."""

# The numbers of colours, marks and dashes have no common divisor, so that the first 280 curves
# differ in one of them, and any five that follow one another in dashes alone.
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
DASHES: tuple[Any, ...] = ("-", (0, (5, 1.6)), (0, (1, 1.3)), (0, (6, 1.6, 1, 1.6)), (0, (9, 3)))
HATCHES = ("", "////", "....", "\\\\\\\\", "xxxx")

SEQUENTIAL = "Blues"
"""Of cells: white is nothing, dark is much."""
POINTS = "viridis_r"
"""Of points on white paper, where the lightest must still be seen; dark is much."""

# Fonts with signs of many scripts; those that are there are asked after DejaVu Sans.
_WIDE_FONTS = (
    "Noto Sans CJK SC", "Noto Sans CJK JP", "Noto Sans SC", "Source Han Sans SC",
    "WenQuanYi Micro Hei", "Droid Sans Fallback", "Microsoft YaHei", "PingFang SC",
    "Hiragino Sans", "Arial Unicode MS", "Noto Sans Arabic", "Noto Sans Devanagari", "Noto Sans",
)  # fmt: skip


def has_matplotlib() -> bool:
    """Whether pictures can be drawn."""
    try:
        import matplotlib.figure  # noqa: F401 (only whether it is there)
    except ImportError:
        return False
    return True


def check_matplotlib(who: str = "pictures need", otherwise: str = "") -> None:
    """Refuse to go on without matplotlib.

    Parameters
    ----------
    who, otherwise : str
        What the message begins and ends with.

    Raises
    ------
    DataError
        If it is not installed.
    """
    if not has_matplotlib():
        raise DataError(f"{who} matplotlib: install it, or trellis-structured[plot]{otherwise}")


def check_picture_name(path: str | os.PathLike[Any]) -> str:
    """The form of a picture by its name: png, svg or pdf.

    Raises
    ------
    DataError
        If it is none of them.

    Examples
    --------
    >>> check_picture_name("figures/map.SVG")
    'svg'
    """
    if not isinstance(path, str | bytes | os.PathLike):
        raise DataError(f"path must be the name of a file, got {path!r:.80}")
    suffix = Path(os.fsdecode(path)).suffix.lower()
    if suffix not in SUFFIXES:
        raise DataError(
            f"cannot draw {display_name(path)}: the name of a picture must end with "
            f"{', '.join(SUFFIXES)}"
        )
    return suffix[1:]


@contextmanager
def picture_style() -> Iterator[None]:
    """Draw in the style of Trellis, whatever the settings of matplotlib are.

    Within the context matplotlib has fonts, lines and colours of all pictures here; afterwards it
    has those of before. For your own figures beside them.

    Raises
    ------
    DataError
        If matplotlib is not installed.

    Examples
    --------
    >>> from trellis.pictures import picture_style
    >>> with picture_style():
    ...     from matplotlib.figure import Figure
    ...     axes = Figure().subplots()
    >>> axes.plot([1, 2])[0].get_color()
    '#004488'
    """
    check_matplotlib()
    import matplotlib.style

    with matplotlib.style.context(["default", _settings()]):
        yield


@cache
def _settings() -> dict[str, Any]:
    from cycler import cycler
    from matplotlib.font_manager import fontManager

    known = {font.name for font in fontManager.ttflist}
    return {
        "font.family": ["DejaVu Sans", *(name for name in _WIDE_FONTS if name in known)],
        "font.size": 9,
        "axes.titlesize": 10,
        "axes.labelsize": 9,
        "xtick.labelsize": 8,
        "ytick.labelsize": 8,
        "legend.fontsize": 8,
        "legend.frameon": False,
        "legend.handlelength": 2.8,  # long enough for dashes
        "figure.titlesize": 11,
        "figure.dpi": 100,
        "figure.constrained_layout.h_pad": 0.08,  # inches; with less, titles are cut
        "figure.constrained_layout.w_pad": 0.08,
        "savefig.dpi": 150,
        "axes.prop_cycle": cycler(color=COLOURS),
        "axes.linewidth": 0.7,
        "axes.axisbelow": True,
        "axes.grid": False,
        "grid.color": "0.9",
        "grid.linewidth": 0.6,
        "lines.linewidth": 1.4,
        "lines.markersize": 4.5,
        "hatch.linewidth": 0.6,
        "image.cmap": SEQUENTIAL,
        "image.interpolation": "nearest",
        "pdf.fonttype": 42,  # text stays text
        "svg.hashsalt": "trellis",  # random ids would make every picture another file
    }


def line_style(number: int) -> dict[str, Any]:
    """How the curve of this number is drawn: arguments of matplotlib's ``plot``.

    Examples
    --------
    >>> line_style(0)["marker"], line_style(1)["marker"]
    ('o', 's')
    """
    return {
        "color": COLOURS[number % len(COLOURS)],
        "marker": MARKERS[number % len(MARKERS)],
        "linestyle": DASHES[number % len(DASHES)],
    }


def new_figure(
    n_panels: int = 1, columns: int = 3, *, size: tuple[float, float] | None = None, **how: Any
) -> tuple[Any, list[Any]]:
    """A figure and its panels, in rows.

    Parameters
    ----------
    n_panels : int
    columns : int
        Most panels in a row.
    size : (float, float), optional
        Width and height in inches.
    **how
        Further arguments of matplotlib's ``Figure.subplots``.

    Returns
    -------
    figure : matplotlib Figure
        Shown by notebooks.
    panels : list of matplotlib Axes

    Examples
    --------
    >>> figure, panels = new_figure(2)
    >>> len(panels), figure.get_size_inches().round(1).tolist()
    (2, [9.2, 4.1])
    """
    check_matplotlib()
    from trellis.pictures.picture import Picture

    columns = min(columns, n_panels)
    rows = -(-n_panels // columns)
    if size is None:
        size = (max(6.5, 4.6 * columns), 3.7 * rows + 0.4)
    with picture_style():
        figure = Picture(figsize=size, layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False, **how).ravel().tolist()
    for unused in axes[n_panels:]:
        unused.set_axis_off()
    return figure, axes[:n_panels]


def save_figure(figure: Any, path: str | os.PathLike[Any]) -> None:
    """Write a figure, whole or not at all; the same figure gives the same bytes.

    Parameters
    ----------
    figure : matplotlib Figure
    path : path
        File to write: .png, .svg or .pdf.

    Raises
    ------
    DataError
        If the name ends with something else.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "empty.svg"
    >>> save_figure(new_figure()[0], file)
    >>> file.read_text()[:5]
    '<?xml'
    """
    form = check_picture_name(path)
    dates = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(form)
    with atomic_write(path) as file, picture_style():
        figure.savefig(file, format=form, metadata=dates)

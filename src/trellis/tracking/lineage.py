"""Lineage plots: who descends from whom, over time.

Time runs to the right, each track is a horizontal line, a division an upright line from the parent
to its daughters; :mod:`trellis.tracking.lineage_layout` says in which rows. Families are coloured;
tracks without parent and daughters are grey.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trellis.errors import DataError
from trellis.files import atomic_write
from trellis.tracking.lineage_layout import lineage_layout
from trellis.tracking.result import Track, TrackingResult

__all__ = ["draw_lineage"]

_FORMATS = {".png": "png", ".svg": "svg", ".pdf": "pdf"}
_MANY = 80  # rows; beyond that lines are drawn closer and have no numbers
_COLOURS = ("C0", "C1", "C2", "C3", "C4", "C5", "C6", "C8", "C9")  # C7 is grey


def draw_lineage(
    result: TrackingResult, path: str | os.PathLike[Any], *, sequence: str | None = None
) -> None:
    """Draw the tracks of a result as family trees over time.

    Parameters
    ----------
    result : TrackingResult
        What to draw.
    path : path
        Image to write: .png, .svg or .pdf.
    sequence : str, optional
        Which sequence to draw; by default all, side by side.

    Raises
    ------
    DataError
        If matplotlib is not installed, there is no such sequence, or no such form of images.

    Examples
    --------
    >>> import tempfile
    >>> tracks = [Track("", 1, 0, 4, -1), Track("", 2, 5, 8, 1), Track("", 3, 5, 9, 1)]
    >>> picture = Path(tempfile.mkdtemp()) / "lineage.png"
    >>> draw_lineage(TrackingResult([], [], tracks, []), picture)  # doctest: +SKIP
    """
    form = _FORMATS.get(Path(os.fsdecode(path)).suffix.lower())
    if form is None:
        raise DataError(
            f"cannot draw {os.fsdecode(path)}: the name of a picture must end with "
            f"{', '.join(_FORMATS)}"
        )
    by_sequence: dict[str, list[Track]] = defaultdict(list)
    for track in result.tracks:
        by_sequence[track.sequence].append(track)
    if sequence is not None:
        if sequence not in by_sequence:
            known = ", ".join(map(repr, by_sequence))
            raise DataError(f"there is no sequence {sequence!r} to draw; there are {known}")
        by_sequence = {sequence: by_sequence[sequence]}
    if not by_sequence:
        raise DataError("there are no tracks to draw")
    figure = _figure(by_sequence)
    from matplotlib import rc_context

    # Dates and random ids would make every picture another file.
    metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(form)
    with atomic_write(path) as file, rc_context({"svg.hashsalt": "trellis"}):
        figure.savefig(file, format=form, dpi=120, metadata=metadata)


def _figure(by_sequence: dict[str, list[Track]]) -> Any:
    """A figure with one panel for each sequence."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise DataError(
            "drawing lineages needs matplotlib: install it, or trellis-structured[plot]"
        ) from None

    layouts = {name: lineage_layout(tracks) for name, tracks in by_sequence.items()}
    # Beyond what a screen shows lines come closer, down to about three pixels.
    most = max(n_rows for _, _, n_rows in layouts.values())
    height = 1.0 + max(1.0, 0.16 * min(most, _MANY) + 0.025 * max(most - _MANY, 0))
    figure = Figure(figsize=(max(10, 7 * len(layouts)), height), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, len(layouts), squeeze=False).ravel()
    for axes, (name, layout) in zip(panels, layouts.items(), strict=True):
        _draw(axes, name, by_sequence[name], *layout)
    return figure


def _draw(
    axes: Any,
    name: str,
    tracks: Sequence[Track],
    row: dict[int, float],
    family: dict[int, int],
    n_rows: float,
) -> None:
    from matplotlib.collections import LineCollection

    few = n_rows <= _MANY
    ends = {track.track: track.end for track in tracks}
    divided = {track.parent for track in tracks} - {-1}
    lines, colours = [], []
    for track in tracks:
        y = row[track.track]
        number = family[track.track]
        # A division stands between two frames; other tracks have a length even in a single frame.
        line = [(track.begin - 0.3, y)]
        if track.parent != -1:
            elbow = ends[track.parent] + 0.5
            line = [(elbow, row[track.parent]), (elbow, y)]
        line.append((track.end + (0.5 if track.track in divided else 0.3), y))
        lines.append(line)
        colours.append("0.6" if number < 0 else _COLOURS[number % len(_COLOURS)])
        if few:
            axes.annotate(
                str(track.track), (track.begin, y), (2, 1), textcoords="offset points", fontsize=6
            )
    width = 1.4 if few else 1.0
    axes.add_collection(LineCollection(lines, colors=colours, linewidths=width), autolim=False)
    axes.scatter(
        [ends[p] + 0.5 for p in divided],
        [row[p] for p in divided],
        s=9 if few else 4,
        c="black",
        zorder=3,
    )
    first, last = min(track.begin for track in tracks), max(ends.values())
    margin = max(0.01 * (last - first), 0.5)
    axes.set(
        xlim=(first - margin, last + margin),
        ylim=(n_rows, -1.0),
        yticks=[],
        xlabel="frame",
        title=f"{name + ': ' if name else ''}{len(tracks)} tracks, {len(divided)} divisions",
    )
    axes.tick_params(top=True, labeltop=not few)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.spines[["left", "right"]].set_visible(False)
    axes.grid(axis="x", color="0.9", linewidth=0.6)
    axes.set_axisbelow(True)

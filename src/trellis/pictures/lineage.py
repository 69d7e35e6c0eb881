"""Lineage plots: who descends from whom, over time.

Time runs to the right, each track is a horizontal line, a division an upright line from the parent
to its daughters; :mod:`trellis.tracking.lineage_layout` says in which rows. Families are coloured,
neighbours in other lightness; tracks without parent and daughters are grey.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from trellis.errors import DataError
from trellis.pictures.names import shown
from trellis.pictures.sheet import Sheet
from trellis.pictures.style import COLOURS
from trellis.tracking.lineage_layout import lineage_layout

if TYPE_CHECKING:
    from trellis.tracking import Track, TrackingResult

__all__ = ["draw_lineage"]

_MANY = 80  # rows; beyond that lines are drawn closer and have no numbers


def draw_lineage(
    result: TrackingResult,
    path: str | os.PathLike[Any] | None = None,
    *,
    sequence: str | None = None,
    ax: Any = None,
    title: str | None = None,
) -> Any:
    """Draw the tracks of a result as family trees over time.

    Parameters
    ----------
    result : TrackingResult
        What to draw.
    path : path, optional
        File to write: .png, .svg or .pdf.
    sequence : str, optional
        Which sequence to draw; by default all, side by side.
    ax : matplotlib Axes, or a list of one for each sequence, optional
        Where to draw instead of on a new figure.
    title : str, optional
        By default the number of tracks and divisions; of several sequences it stands above all.

    Returns
    -------
    matplotlib Figure, or what was given as `ax`

    Raises
    ------
    DataError
        If matplotlib is not installed, there is no such sequence, or no such form of images.

    Examples
    --------
    >>> from trellis.pictures import draw_lineage
    >>> from trellis.tracking import Track, TrackingResult
    >>> tracks = [Track("", 1, 0, 4, -1), Track("", 2, 5, 8, 1), Track("", 3, 5, 9, 1)]
    >>> draw_lineage(TrackingResult([], [], tracks, [])).axes[0].get_title()
    '3 tracks, 1 division'
    """
    sheet = Sheet(path, ax, title)
    by_sequence: dict[str, list[Track]] = defaultdict(list)
    if not hasattr(result, "tracks"):
        raise DataError(f"result must be a TrackingResult, got {type(result).__name__}")
    for track in result.tracks:
        by_sequence[track.sequence].append(track)
    if sequence is not None:
        if sequence not in by_sequence:
            known = ", ".join(map(repr, by_sequence))
            raise DataError(f"there is no sequence {sequence!r} to draw; there are {known}")
        by_sequence = {sequence: by_sequence[sequence]}
    if not by_sequence:
        raise DataError("there are no tracks to draw")
    layouts = {name: lineage_layout(tracks) for name, tracks in by_sequence.items()}
    # Beyond what a screen shows lines come closer, down to about three pixels.
    most = max(n_rows for _, _, n_rows in layouts.values())
    height = 1.0 + max(1.0, 0.16 * min(most, _MANY) + 0.025 * max(most - _MANY, 0))
    n = len(layouts)
    with sheet:
        panels = sheet.panels(n, (max(8, 6 * n), height), n, alike="choose one by sequence")
        for axes, (name, layout) in zip(panels, layouts.items(), strict=True):
            _draw(axes, name, by_sequence[name], *layout)
        if title is not None and n == 1:
            panels[0].set_title(title)
        elif title is not None:
            panels[0].figure.suptitle(title)
    return sheet.result


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
        colours.append("0.6" if number < 0 else COLOURS[number % len(COLOURS)])
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
        title=f"{shown(name) + ': ' if name else ''}{_count(len(tracks), 'track')}, "
        f"{_count(len(divided), 'division')}",
    )
    axes.tick_params(top=not few, labeltop=not few)  # of a high picture both ends
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.spines[["left", "right", *(["top"] if few else [])]].set_visible(False)
    axes.grid(axis="x")


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}{'' if n == 1 else 's'}"

r"""Tables of objects as other programs write them: which column is what.

A table of objects has the *roles* sequence, frame, id, x, y, z, track and parent, and features. A
column gets a role by the first of these that tells:

1. what the caller says (``columns={"frame": "FRAME"}``);
2. its own name, if that is the role's;
3. the spellings below, without regard to case and to the sign between words, if only one column
   has that spelling: those of scikit-image (``regionprops_table``: ``centroid-0`` is y of two
   coordinates, z of three), TrackMate (spots and edges tables), trackpy, btrack, LapTrack,
   CellProfiler, ImageJ and napari.

Features get the names that the default features know (``intensity_mean`` is ``mean_intensity``).
What says who an object is rather than what it looks like is no feature: track and parent under any
name, numbers of rows, colours, the time beside the frame, boxes and further centres.

Objects without id are numbered 0, 1, ... in each frame, in the order of the rows.
"""

from __future__ import annotations

import logging
import os
import re
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from trellis.arrays import Int64s
from trellis.errors import DataError
from trellis.files.table import Table, read_table
from trellis.files.text import ReadText, read_bytes
from trellis.tracking.geff_file import is_geff, read_geff
from trellis.tracking.trackmate import read_trackmate

__all__ = ["ROLES", "KnownTable", "has_tracks", "known_table", "open_table", "without_headers"]

_log = logging.getLogger("trellis")

ROLES = ("sequence", "frame", "id", "x", "y", "z", "track", "parent")

# Spellings in lower case with _ between words, the surest first.
_SPELLINGS: dict[str, tuple[str, ...]] = {
    "sequence": ("movie", "video"),
    "frame": (
        "frame_number", "frame_id", "frame_idx", "frame_index", "frameid", "framenumber",
        "imagenumber", "t", "timepoint", "time_point", "time", "slice",
    ),
    "id": (
        "label", "spot_id", "object_id", "detection_id", "cell_id", "node_id", "objectnumber",
        "labelimage_oid",
    ),
    "x": (
        "position_x", "pos_x", "x_pos", "centroid_x", "x_centroid", "center_x", "centre_x",
        "x_center", "x_centre", "location_center_x", "areashape_center_x",
        "center_of_the_object_0", "xm",
    ),
    "track": (
        "track_id", "trackid", "particle", "tracklet_id", "track_number", "trackobjects_label",
    ),
    "parent": (
        "parent_track", "parent_track_id", "parenttrackid", "parent_trackid", "parent_id",
        "track_parent",
    ),
    "area": ("areashape_area",),
    "mean_intensity": ("intensity_mean", "mean_intensity_ch1", "intensity_mean_0", "mean"),
    "max_intensity": ("intensity_max", "max_intensity_ch1", "intensity_max_0", "max"),
    "min_intensity": ("intensity_min", "min_intensity_ch1", "intensity_min_0", "min"),
    "major_axis": (
        "axis_major_length", "major_axis_length", "ellipse_major", "areashape_majoraxislength",
        "major",
    ),
    "minor_axis": (
        "axis_minor_length", "minor_axis_length", "ellipse_minor", "areashape_minoraxislength",
        "minor",
    ),
    "perimeter": ("areashape_perimeter", "perim"),
    "eccentricity": ("areashape_eccentricity",),
    "solidity": ("areashape_solidity",),
    "orientation": (),
}  # fmt: skip
for _axis in "yz":
    _SPELLINGS[_axis] = tuple(
        re.sub(r"(?<![a-z])x(?![a-z])|^x(?=m$)", _axis, name) for name in _SPELLINGS["x"][:-2]
    )
_SPELLINGS["y"] += ("center_of_the_object_1", "ym")
_SPELLINGS["z"] += ("center_of_the_object_2",)

# What is known and no feature; whole names, and beginnings of names with a number behind.
_NO_FEATURES = frozenset(
    (*(name for role in ROLES for name in _SPELLINGS[role] if len(name) > 1), "unnamed",
     "unnamed_0", "index", "level_0", "row", "id", "root", "generation", "dummy", "tree_id",
     "lineage_id", "lineageid", "lineage", "position_t", "quality", "visibility",
     "manual_spot_color", "manual_color", "ellipse_x0", "ellipse_y0", "ellipse_z0",
     "ellipse_theta", "spot_name", "parent_label", "children", "t", *ROLES)
) - {"mean", "max", "min"}  # fmt: skip
_NUMBERED = re.compile(r"(bbox|centroid|weighted_centroid|centroid_weighted|local_centroid|"
                       r"centroid_local|weighted_local_centroid|centroid_weighted_local|"
                       r"axis|unnamed)_\d+(_\d+)?")  # fmt: skip
_NEEDED = ("frame", "x", "y")
_TRACKMATE = {"POSITION_X", "FRAME"}


@dataclass(frozen=True)
class KnownTable:
    """A table whose columns have the names of their roles, and what it has that is no feature.

    Attributes
    ----------
    table : Table
        With columns ``frame``, ``id``, ``x`` and ``y`` at least.
    no_features : set of str
        Columns that say who an object is; those of roles among them.
    """

    table: Table
    no_features: frozenset[str]


def open_table(source: Any, what: str) -> Table:
    """Read a table of objects or ("links") of links, whatever it is written like.

    Separator and mark of decimals follow from the content; a data frame may have the frame as a
    name of its rows; files of TrackMate and GEFF have both objects and links.
    """
    if isinstance(source, str | os.PathLike) and is_geff(source):
        return read_geff(source)[what == "links"]
    if isinstance(source, str | os.PathLike) or hasattr(source, "read"):
        name, data = read_bytes(source)
        if data.lstrip().startswith(b"<"):
            return read_trackmate(name, data)[what == "links"]
        source = ReadText(name, data)
    index = getattr(source, "index", None)
    names = list(getattr(index, "names", ()) or ())
    columns = getattr(source, "columns", None)
    if columns is not None and index is not None and hasattr(index, "get_level_values"):
        extra = [n for n in names if n is not None and n not in list(columns)]
        if extra:
            levels = {str(name): index.get_level_values(name) for name in extra}
            source = {**levels, **{str(name): source[name] for name in columns}}
    return read_table(source, what, separator=None, decimal=None)


def known_table(
    table: Table,
    columns: Mapping[str, str] | None = None,
    ignore: Collection[str] = (),
    *,
    quiet: bool = False,
) -> KnownTable:
    """Give the columns of a table of objects the names of their roles, and log what was done.

    Parameters
    ----------
    table : Table
        As it was read.
    columns : mapping of str to str, optional
        Column of the table for a role, or for a feature by its new name.
    ignore : collection of str
        Columns that are nothing but in the way, by their name in the table.
    quiet : bool
        Log nothing.

    Raises
    ------
    DataError
        If there is no frame, x or y, or a column that was named is not there.

    Examples
    --------
    >>> cells = {"label": [4, 7], "centroid-0": [1, 1], "centroid-1": [5, 9], "frame": [0, 0]}
    >>> known = known_table(read_table({**cells, "intensity_mean": [3, 2]}, "cells")).table
    >>> {name: list(map(int, values)) for name, values in known.columns.items()}
    {'frame': [0, 0], 'id': [4, 7], 'x': [5, 9], 'y': [1, 1], 'mean_intensity': [3, 2]}
    """
    if set(table.columns) >= _TRACKMATE:
        table = without_headers(table, "FRAME")
    chosen = _named_by_caller(table, columns)
    _find(table, chosen, ignore)
    named = {source: role for role, source in chosen.items()}
    no_features = {
        name for name in table.columns if name not in named and _is_no_feature(_plain(name))
    }
    dropped = [name for name in table.columns if name in no_features]
    missing = [role for role in _NEEDED if role not in chosen]
    if missing:
        alike = [name for name in table.columns if name.lower() == missing[0]]
        raise DataError(
            f"{table.name} has no column {missing[0]!r}, only {', '.join(table.columns)}; expected "
            f"a header that names the columns, with {table.between} between them"
            + (f" (is it {alike[0]!r}?)" if alike else "")
            + f"; if it has another name, say columns={{{missing[0]!r}: NAME}}, or --columns "
            f"{missing[0]}=NAME"
        )
    content: dict[str, Any] = {}
    for role in (*ROLES, *(r for r in chosen if r not in ROLES)):
        if role in chosen:
            content[role] = table.columns[chosen[role]]
        elif role == "id":
            content[role] = None  # its place; filled below
    displaced = [name for name in table.columns if name in content and name not in named]
    rest = [name for name in table.columns if name not in {*named, *ignore, *displaced}]
    content |= {name: table.columns[name] for name in rest if name not in no_features}
    roles = sorted(chosen, key=lambda role: ROLES.index(role) if role in ROLES else len(ROLES))
    remarks = [f"{role} is {chosen[role]}" for role in roles if role != chosen[role]]
    dropped += [name for name in displaced if name not in {*ignore, *dropped}]
    flat = chosen.get("z")
    if flat not in (None, "z") and len(table) and _constant(table, flat):
        content.pop("z")
        remarks = [remark for remark in remarks if not remark.startswith("z is ")]
        dropped.append(f"{flat} (always the same)")
    if "id" not in chosen:
        content["id"] = np.zeros(len(table), np.int64)
        frames = replace(table, columns=content, named=dict(chosen))
        content["id"] = _numbers_in_frame(frames)
        remarks.append("id is the number of the row within its frame, from 0")
    dropped += [name for name in table.columns if name in ignore and name not in named]
    if dropped:
        remarks.append(f"no features are {', '.join(dropped)}")
    if remarks and not quiet:
        _log.info("%s: %s", table.name, "; ".join(remarks))
    known = replace(table, columns=content, named=dict(chosen))
    return KnownTable(known, frozenset((*ROLES, *no_features)))


def has_tracks(table: Table, columns: Mapping[str, str]) -> bool:
    """Whether a column says of which track an object is."""
    chosen = dict(columns)
    _find(table, chosen, ())
    return {"track", "frame"} <= set(chosen)


def _plain(name: str) -> str:
    """A name in lower case, with _ between words."""
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")


def _is_no_feature(plain: str) -> bool:
    return plain in _NO_FEATURES or _NUMBERED.fullmatch(plain) is not None


def without_headers(table: Table, column: str) -> Table:
    """Drop the three lines by which TrackMate explains its header: this column has no number."""
    cells = table.texts(column)
    n = 0
    while n < min(len(cells), 3) and not re.fullmatch(r"-?\d+([.,]0*)?", cells[n]):
        n += 1
    return table.subset(np.arange(n, len(table))) if n else table


def _named_by_caller(table: Table, columns: Mapping[str, str] | None) -> dict[str, str]:
    if columns is None:
        return {}
    if not isinstance(columns, Mapping):
        raise DataError(
            "columns must be a mapping of names to columns of the table, such as "
            f"{{'frame': 'FRAME'}}, got {columns!r:.80}"
        )
    chosen: dict[str, str] = {}
    for role, name in columns.items():
        if not isinstance(role, str) or not isinstance(name, str):
            raise DataError(f"columns: {role!r:.40} and {name!r:.40} must both be names")
        if name not in table.columns:
            raise DataError(f"{table.name} has no column {name!r}, only {', '.join(table.columns)}")
        if name in chosen.values():
            raise DataError(f"columns: {name!r} cannot be two things; name it once")
        chosen[role] = name
    return chosen


def _find(table: Table, chosen: dict[str, str], ignore: Collection[str]) -> None:
    """Add the columns that are known by their names to those that the caller named."""
    free = [name for name in table.columns if name not in ignore and name not in chosen.values()]
    by_plain: dict[str, list[str]] = defaultdict(list)
    for name in free:
        by_plain[_plain(name)].append(name)

    def only(plain: str) -> str | None:
        """The column of this spelling, if there is one and no other."""
        found = [name for name in by_plain.get(plain, ()) if name not in chosen.values()]
        return found[0] if len(found) == 1 else None

    for role in (*ROLES, *_SPELLINGS):
        if role not in chosen and role in free:
            chosen[role] = role
    for stem, order in (("centroid", "zyx"), ("axis", "tzyx"), ("weighted_centroid", "zyx")):
        n = sum(f"{stem}_{i}" in by_plain for i in range(4))
        axes = ("t" + order[1:][-(n - 1) :] if stem == "axis" else order[-n:]) if n > 1 else ""
        places = ["frame" if axis == "t" else axis for axis in axes]
        if len(axes) == n and not {"x", "y"} & set(chosen):
            for i, role in enumerate(places):
                if (place := only(f"{stem}_{i}")) is not None:
                    chosen.setdefault(role, place)
    tracked_ids = {"root", "generation"} <= set(by_plain)  # btrack: ID is that of the track
    for role, spellings in _SPELLINGS.items():
        for plain in (*(() if role == "id" and tracked_ids else (role,)), *spellings):
            found = None if role in chosen else only(plain)
            if found is not None and (role != "id" or _may_be_id(table, found, chosen)):
                chosen[role] = found
    if tracked_ids and "track" not in chosen and (found := only("id")) is not None:
        chosen["track"] = found


def _may_be_id(table: Table, name: str, chosen: Mapping[str, str]) -> bool:
    """Whether whole numbers stand there, each once in a frame."""
    if "frame" not in chosen:
        return False
    ids, bad = table.numbers(name)
    frames, odd = table.numbers(chosen["frame"])
    if bad.size or odd.size or not np.isfinite(ids).all() or (ids != np.floor(ids)).any():
        return False
    keys: list[Any] = [ids, frames]
    if "sequence" in chosen:
        keys.append(np.unique(np.array(table.texts(chosen["sequence"])), return_inverse=True)[1])
    order = np.lexsort(keys)
    same = np.ones(max(len(order) - 1, 0), bool)
    for key in keys:
        same &= np.diff(key[order]) == 0
    return not same.any()


def _constant(table: Table, name: str) -> bool:
    values, bad = table.numbers(name)
    known = values[~np.isnan(values)]
    return not bad.size and (not known.size or bool((known == known[0]).all()))


def _numbers_in_frame(table: Table) -> Int64s:
    """0, 1, ... for the rows of each frame of each sequence, in their order."""
    frame = table.integers("frame")
    sequence = np.unique(np.array(table.texts("sequence")), return_inverse=True)[1]
    order = np.lexsort((np.arange(len(table)), frame, sequence))
    keys = np.stack([sequence, frame])[:, order]
    begins = np.flatnonzero(np.r_[True, np.any(keys[:, 1:] != keys[:, :-1], axis=0)])
    counts = np.diff(np.r_[begins, len(order)])
    numbers = np.empty(len(table), np.int64)
    numbers[order] = np.arange(len(order)) - np.repeat(begins, counts)
    return numbers

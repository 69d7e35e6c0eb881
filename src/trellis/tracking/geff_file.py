r"""Tracks as a graph in a GEFF, the exchange format of Zarr for tracking.

A node is an object with the properties t, (z,) y, x, id and track_id; an edge leads from an object
to what it becomes. ``t`` is declared as the axis of time, the others as axes of space, so that a
file of another program is read whatever it calls them.

The package ``geff`` is needed (``pip install 'trellis-structured[geff]'``).
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from trellis.errors import DataError
from trellis.files.table import Table
from trellis.tracking.result import TrackingResult
from trellis.tracking.trackmate import numbers_of_objects, one_movie

__all__ = ["is_geff", "read_geff", "write_geff"]

_MARKS = (".zgroup", ".zattrs", "zarr.json")  # files of a Zarr folder, of either version


def write_geff(result: TrackingResult, path: str | os.PathLike[Any]) -> None:
    """Write the objects and links of a movie as a GEFF, which takes the place of an older one.

    Parameters
    ----------
    result : TrackingResult
        Of one movie.
    path : path
        The folder to make, such as ``tracks.geff``.

    Raises
    ------
    DataError
        If the result is of several movies, the package geff is not there, or there is something
        else at the path.

    Examples
    --------
    >>> from trellis.tracking import FlowTracker, read_detections
    >>> cells = {"frame": [0, 1], "id": [4, 7], "x": [5, 6], "y": [5, 5]}
    >>> result = FlowTracker(9.0).predict(read_detections(cells))
    >>> write_geff(result, "tracks.geff")  # doctest: +SKIP
    >>> read_detections("tracks.geff", "tracks.geff")[0].annotation.links  # doctest: +SKIP
    ((4, 7, 'move'),)
    """
    one_movie(result, "a GEFF")
    geff = _package("write a GEFF")
    import networkx

    target = Path(path)
    if target.exists() and not is_geff(target):
        raise DataError(f"{target} is there and no GEFF; name another folder")
    deep = any(o.z is not None for o in result.objects)
    number = numbers_of_objects(result)
    graph = networkx.DiGraph()
    for o in result.objects:
        place = {"t": o.frame, "y": o.y, "x": o.x}
        if deep:
            place["z"] = o.z or 0.0
        graph.add_node(number[o.frame, o.id], **place, id=o.id, track_id=o.track)
    for link in result.links:
        ends = (link.frame, link.source_id), (link.frame_target, link.target_id)
        graph.add_edge(*(number[end] for end in ends))
    names = ["t", "z", "y", "x"] if deep else ["t", "y", "x"]
    # Whole or not at all: made beside its place, then moved there.
    try:
        with tempfile.TemporaryDirectory(prefix=".geff-", dir=target.absolute().parent) as folder:
            made = Path(folder, "made.geff")
            geff.write(
                graph, made, axis_names=names,
                axis_types=["time", *("space" for _ in names[1:])],
            )  # fmt: skip
            if target.exists():
                shutil.move(target, Path(folder, "old.geff"))
            shutil.move(made, target)
    except OSError as error:
        raise DataError(f"cannot write {target}: {error.strerror or error}") from error


def is_geff(path: str | os.PathLike[Any]) -> bool:
    """Whether a folder is one of Zarr.

    Examples
    --------
    >>> is_geff("no/such/folder")
    False
    """
    return any(Path(path, mark).is_file() for mark in _MARKS)


def read_geff(path: str | os.PathLike[Any]) -> tuple[Table, Table]:
    """Objects and links of a GEFF as tables.

    Parameters
    ----------
    path : path
        The folder.

    Returns
    -------
    Table, Table
        Objects with the columns frame, id, x, y (and z) and the other properties of the nodes that
        hold one value each; links with frame, source_id, frame_target, target_id and kind.

    Raises
    ------
    DataError
        If the package geff is not there, or this is no GEFF of a movie.

    Examples
    --------
    >>> read_geff("tracks.geff")  # doctest: +SKIP
    """
    geff = _package("read a GEFF")
    name = os.fspath(path)
    try:
        graph, about = geff.read(Path(path), structure_validation=True, backend="networkx")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(f"{name}: not a GEFF that can be read ({error!s:.200})") from error
    axes = list(about.axes or ())
    time = [axis.name for axis in axes if axis.type == "time"]
    space = [axis.name for axis in axes if axis.type == "space"]
    if len(time) != 1 or len(space) not in (2, 3):
        raise DataError(
            f"{name}: the GEFF declares {len(time)} axes of time and {len(space)} of space; "
            "expected one of time and two or three of space"
        )
    nodes = dict(graph.nodes(data=True))
    if not nodes:
        raise DataError(f"{name}: the GEFF has no nodes")
    lacking = [axis for axis in (*time, *space) if any(axis not in n for n in nodes.values())]
    if lacking:
        raise DataError(f"{name}: a node of the GEFF has no {lacking[0]!r}")
    frame = {node: values[time[0]] for node, values in nodes.items()}
    ids = {node: values.get("id") for node, values in nodes.items()}
    seen = {(frame[node], number) for node, number in ids.items() if isinstance(number, int)}
    if len(seen) < len(nodes):
        ids = {node: int(node) for node in nodes}
    columns: dict[str, Any] = {"frame": list(frame.values()), "id": list(ids.values())}
    # Axes of space by their names, else in the order of images: (z,) y, x.
    named = set(space) <= {"x", "y", "z"}
    roles = space if named else ["z", "y", "x"][-len(space) :]
    for role, axis in zip(roles, space, strict=True):
        columns[role] = [values[axis] for values in nodes.values()]
    more = dict.fromkeys(key for values in nodes.values() for key in values)
    for key in more:
        if key not in {*columns, *time, *space}:
            cells = [values.get(key, np.nan) for values in nodes.values()]
            if all(isinstance(cell, bool | int | float | str) for cell in cells):
                columns[key] = cells
    objects = Table(name, {key: np.array(cells) for key, cells in columns.items()}, None)
    return objects, _links(name, graph, frame, ids)


def _links(name: str, graph: Any, frame: dict[Any, Any], ids: dict[Any, Any]) -> Table:
    rows = []
    for source, target in graph.edges:
        a, b = (source, target) if frame[source] <= frame[target] else (target, source)
        if frame[a] == frame[b]:
            raise DataError(f"{name}: an edge joins the nodes {a} and {b} of the same time")
        rows.append((frame[a], ids[a], frame[b], ids[b]))
    pasts: dict[Any, int] = {}
    for row in rows:
        pasts[row[2:]] = pasts.get(row[2:], 0) + 1
    ends = np.array(rows).reshape(-1, 4).T
    roles = ("frame", "source_id", "frame_target", "target_id")
    columns: dict[str, Any] = dict(zip(roles, ends, strict=True))
    columns["kind"] = np.array(["merge" if pasts[row[2:]] > 1 else "" for row in rows], dtype=str)
    return Table(name, columns, None)


def _package(what: str) -> Any:
    try:
        import geff
    except ImportError:
        raise DataError(
            f"to {what}, install the package geff: pip install 'trellis-structured[geff]'"
        ) from None
    return geff

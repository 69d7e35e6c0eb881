r"""Files of TrackMate, the tracker of Fiji: spots and the edges between them, in XML.

Of such a file these elements are read, whatever is between them::

    TrackMate/Model/AllSpots/SpotsInFrame/Spot         ID, FRAME, POSITION_X, ..., VISIBILITY
    TrackMate/Model/AllTracks/Track                    TRACK_ID
    TrackMate/Model/AllTracks/Track/Edge               SPOT_SOURCE_ID, SPOT_TARGET_ID
    TrackMate/Model/FilteredTracks/TrackID             TRACK_ID

Spots that a filter hides (VISIBILITY 0), and the edges of tracks that are not among the filtered
ones, are left out. An edge leads from the earlier spot to the later one, however it is written; it
is a merge if its target has several.

XML can do harm: entities that expand to gigabytes, references to other files. A file with a
document type, where all of these have to be declared, is refused. The file goes through the parser
piece by piece; no tree is built of it.

References
----------
D. Ershov et al., *TrackMate 7: integrating state-of-the-art segmentation algorithms into tracking
pipelines*, 2022.
"""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any
from xml.parsers import expat
from xml.sax.saxutils import quoteattr

import numpy as np

from trellis.errors import DataError
from trellis.files import atomic_write
from trellis.files.table import Table
from trellis.tracking.result import TrackedObject, TrackingResult

__all__ = ["links_of_edges", "numbers_of_objects", "one_movie", "read_trackmate", "write_trackmate"]

_PIECE = 1 << 16  # bytes given to the parser at a time
_WITHOUT = {"name", "VISIBILITY", "MANUAL_COLOR", "MANUAL_SPOT_COLOR"}


def read_trackmate(name: str, data: bytes) -> tuple[Table, Table]:
    """Spots and edges of a file as tables of objects and of links, with the lines they are on.

    Parameters
    ----------
    name : str
        Of the file, in messages.
    data : bytes
        Its content.

    Returns
    -------
    Table, Table
        Spots with the columns ID, FRAME, POSITION_X, ... as the file calls them; links with frame,
        source_id, frame_target, target_id and kind.

    Raises
    ------
    DataError
        If this is no such file, or what it says cannot be.

    Examples
    --------
    >>> spots = "".join(
    ...     f'<Spot ID="{t}" FRAME="{t}" POSITION_X="1.5" POSITION_Y="2"/>' for t in (0, 1))
    >>> edge = '<Edge SPOT_SOURCE_ID="1" SPOT_TARGET_ID="0"/>'
    >>> objects, links = read_trackmate("film.xml", f'''<TrackMate><Model>
    ...     <AllSpots><SpotsInFrame frame="0">{spots}</SpotsInFrame></AllSpots>
    ...     <AllTracks><Track TRACK_ID="0">{edge}</Track></AllTracks>
    ... </Model></TrackMate>'''.encode())
    >>> objects.columns["POSITION_X"], [links.texts(end)[0] for end in ("source_id", "target_id")]
    (['1.5', '1.5'], ['0', '1'])
    """
    found = _Reader(name)
    found.parse(data)
    if not found.spots:
        raise DataError(f"{name} has no spot that is visible; is it a file that TrackMate saved?")
    names = dict.fromkeys(key for spot, _ in found.spots for key in spot if key not in _WITHOUT)
    columns = {key: [spot.get(key, "") for spot, _ in found.spots] for key in names}
    objects = Table(name, columns, [line for _, line in found.spots])
    return objects, _links(name, objects, found)


def _links(name: str, objects: Table, found: _Reader) -> Table:
    objects.require(("ID", "FRAME"))
    frame = dict(
        zip(objects.integers("ID").tolist(), objects.integers("FRAME").tolist(), strict=True)
    )
    kept = [edge for edge in found.edges if not found.kept or edge[0] in found.kept]
    edges = Table(
        name,
        {
            "SPOT_SOURCE_ID": [edge[1] for edge in kept],
            "SPOT_TARGET_ID": [edge[2] for edge in kept],
        },
        [edge[3] for edge in kept],
    )
    return links_of_edges(edges, frame)


def links_of_edges(edges: Table, frame: Mapping[int, int]) -> Table:
    """Edges between spots as a table of links.

    Parameters
    ----------
    edges : Table
        With the columns SPOT_SOURCE_ID and SPOT_TARGET_ID, in whichever order of time.
    frame : mapping of int to int
        Frame of each spot by its ID.

    Raises
    ------
    DataError
        If a spot is not there, or an edge is within a frame.

    Examples
    --------
    >>> from trellis.files.table import read_table
    >>> edges = read_table({"SPOT_SOURCE_ID": ["7"], "SPOT_TARGET_ID": ["5"]})
    >>> links = links_of_edges(edges, {5: 0, 7: 2})
    >>> [int(links.columns[name][0]) for name in ("source_id", "frame_target", "target_id")]
    [5, 2, 7]
    """
    sources, targets = (edges.texts(f"SPOT_{end}_ID") for end in ("SOURCE", "TARGET"))
    rows: list[tuple[int, int, int, int]] = []
    for row in range(len(edges)):
        ends = []
        for text in (sources[row], targets[row]):
            if not re.fullmatch(r"-?\d{1,18}", text):
                raise edges.fail(row, f"{text!r:.40} is no id of a spot")
            number = int(text)
            if number not in frame:
                raise edges.fail(
                    row, f"an edge names the spot {number}, which is not among the visible spots"
                )
            ends.append((frame[number], number))
        (t, i), (u, j) = sorted(ends)
        if t == u:
            raise edges.fail(row, f"the spots {i} and {j} of an edge are both in frame {t}")
        rows.append((t, i, u, j))
    columns: dict[str, Any] = dict(
        zip(
            ("frame", "source_id", "frame_target", "target_id"),
            np.array(rows, np.int64).reshape(-1, 4).T,
            strict=True,
        )
    )
    pasts = Counter((u, j) for _, _, u, j in rows)
    columns["kind"] = ["merge" if pasts[u, j] > 1 else "" for _, _, u, j in rows]
    return Table(edges.name, columns, edges.lines)


class _Reader:
    """Gathers spots and edges as the parser meets them."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.spots: list[tuple[dict[str, str], int]] = []
        self.edges: list[tuple[str, str, str, int]] = []
        self.kept: set[str] = set()
        self._path: list[str] = []
        self._track = ""
        self._parser = expat.ParserCreate()
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.StartDoctypeDeclHandler = self._doctype

    def parse(self, data: bytes) -> None:
        try:
            for at in range(0, max(len(data), 1), _PIECE):
                self._parser.Parse(data[at : at + _PIECE], at + _PIECE >= len(data))
        except expat.ExpatError as error:
            raise DataError(
                f"{self.name}, line {error.lineno}: not well-formed XML "
                f"({expat.ErrorString(error.code)}); is the file cut off?"
            ) from None

    def _doctype(self, *_: object) -> None:
        raise DataError(
            f"{self.name}, line {self._parser.CurrentLineNumber}: the XML has a document type "
            "(<!DOCTYPE), which TrackMate does not write and which can do harm; remove it"
        )

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        line = self._parser.CurrentLineNumber
        if not self._path and tag != "TrackMate":
            raise DataError(
                f"{self.name}, line {line}: the XML begins with <{tag:.40}>; of XML files only "
                "those of TrackMate can be read"
            )
        above = self._path[-1] if self._path else ""
        self._path.append(tag)
        if tag == "Spot" and above == "SpotsInFrame":
            if attributes.get("VISIBILITY", "1") != "0":
                self.spots.append((attributes, line))
        elif tag == "Track" and above == "AllTracks":
            self._track = attributes.get("TRACK_ID", "")
        elif tag == "Edge" and above == "Track":
            ends = (attributes.get(f"SPOT_{end}_ID", "") for end in ("SOURCE", "TARGET"))
            self.edges.append((self._track, *ends, line))  # type: ignore[arg-type]
        elif tag == "TrackID" and above == "FilteredTracks":
            self.kept.add(attributes.get("TRACK_ID", ""))

    def _end(self, _: str) -> None:
        self._path.pop()


def write_trackmate(result: TrackingResult, path: str | os.PathLike[Any]) -> None:
    """Write the objects and links of a movie as a file that TrackMate reads.

    The ID of a spot is that of its object, or a running number if ids repeat; its name is always
    the former. TrackMate asks for the image, which the file does not know.

    Parameters
    ----------
    result : TrackingResult
        Of one movie.
    path : path
        The file.

    Raises
    ------
    DataError
        If the result is of several movies.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from trellis.tracking import FlowTracker, read_detections
    >>> cells = {"frame": [0, 1], "id": [4, 7], "x": [5, 6], "y": [5, 5]}
    >>> result = FlowTracker(9.0).predict(read_detections(cells))
    >>> path = Path(tempfile.mkdtemp(), "film.xml")
    >>> write_trackmate(result, path)
    >>> read_detections(path, path)[0].annotation.links
    ((4, 7, 'move'),)
    """
    one_movie(result, "a file of TrackMate")
    number = numbers_of_objects(result)
    frames: dict[int, list[TrackedObject]] = defaultdict(list)
    for seen in result.objects:
        frames[seen.frame].append(seen)
    family = _families(result)
    track = {(o.frame, o.id): family[o.track] for o in result.objects}
    edges: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for link in result.links:
        source = link.frame, link.source_id
        edges[track[source]].append((number[source], number[link.frame_target, link.target_id]))
    with atomic_write(path, binary=False) as file:
        put = file.write
        put('<?xml version="1.0" encoding="UTF-8"?>\n<TrackMate version="7.11.1">\n')
        put(f'  <Model spatialunits="pixel" timeunits="frame">\n{_DECLARED}')
        put(f'    <AllSpots nspots="{len(result.objects)}">\n')
        for frame in sorted(frames):
            put(f'      <SpotsInFrame frame="{frame}">\n')
            for o in frames[frame]:
                z = o.z or 0.0
                put(
                    f'        <Spot ID="{number[frame, o.id]}" name={quoteattr(str(o.id))} '
                    f'FRAME="{frame}" POSITION_X="{o.x!r}" POSITION_Y="{o.y!r}" '
                    f'POSITION_Z="{z!r}" POSITION_T="{float(frame)!r}" RADIUS="5.0" '
                    'QUALITY="1.0" VISIBILITY="1" />\n'
                )
            put("      </SpotsInFrame>\n")
        put("    </AllSpots>\n    <AllTracks>\n")
        for name in sorted(edges):
            put(f'      <Track name="Track_{name}" TRACK_ID="{name}" TRACK_INDEX="{name}">\n')
            for a, b in edges[name]:
                put(f'        <Edge SPOT_SOURCE_ID="{a}" SPOT_TARGET_ID="{b}" />\n')
            put("      </Track>\n")
        put("    </AllTracks>\n    <FilteredTracks>\n")
        for name in sorted(edges):
            put(f'      <TrackID TRACK_ID="{name}" />\n')
        put("    </FilteredTracks>\n  </Model>\n</TrackMate>\n")


def numbers_of_objects(result: TrackingResult) -> dict[tuple[int, int], int]:
    """A number for each object (frame, id) of a movie: its id, unless ids repeat."""
    ids = [o.id for o in result.objects]
    own = len(set(ids)) == len(ids) and min(ids, default=0) >= 0
    return {(o.frame, o.id): o.id if own else i for i, o in enumerate(result.objects)}


def one_movie(result: TrackingResult, what: str) -> None:
    """Refuse a result of several movies."""
    names = sorted({o.sequence for o in result.objects})
    if len(names) > 1:
        raise DataError(
            f"{what} holds one movie, but the result has {len(names)}, {names[0]!r}, {names[1]!r} "
            "…; write each alone: result.of(sequence)"
        )


def _families(result: TrackingResult) -> dict[int, int]:
    """What each track belongs to: the least track that links join it with, in any way."""
    home = {o.track: o.track for o in result.objects}
    track = {(o.frame, o.id): o.track for o in result.objects}

    def root(name: int) -> int:
        while home[name] != name:
            home[name] = home[home[name]]
            name = home[name]
        return name

    for link in result.links:
        ends = track[link.frame, link.source_id], track[link.frame_target, link.target_id]
        a, b = sorted(root(end) for end in ends)
        home[b] = a
    return {name: root(name) for name in home}


def _feature(name: str, dimension: str, whole: bool = False) -> str:
    return (
        f'        <Feature feature="{name}" name="{name}" shortname="{name}" '
        f'dimension="{dimension}" isint="{str(whole).lower()}" />\n'
    )


_DECLARED = (
    "    <FeatureDeclarations>\n      <SpotFeatures>\n"
    + "".join(_feature(f"POSITION_{axis}", "POSITION") for axis in "XYZ")
    + _feature("POSITION_T", "TIME")
    + _feature("FRAME", "NONE", whole=True)
    + _feature("RADIUS", "LENGTH")
    + _feature("QUALITY", "QUALITY")
    + _feature("VISIBILITY", "NONE", whole=True)
    + "      </SpotFeatures>\n      <EdgeFeatures>\n"
    + _feature("SPOT_SOURCE_ID", "NONE", whole=True)
    + _feature("SPOT_TARGET_ID", "NONE", whole=True)
    + "      </EdgeFeatures>\n      <TrackFeatures>\n"
    + _feature("TRACK_INDEX", "NONE", whole=True)
    + _feature("TRACK_ID", "NONE", whole=True)
    + "      </TrackFeatures>\n    </FeatureDeclarations>\n"
)

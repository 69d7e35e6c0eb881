"""Files of TrackMate: what is read, what comes back as written, and what is refused."""

from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trellis.errors import DataError
from trellis.tracking import (
    annotated_events,
    assemble_tracks,
    read_detections,
    write_trackmate,
)
from trellis.tracking.objects import FramePair, Link, Objects

FILE = """<?xml version="1.0" encoding="UTF-8"?>
<TrackMate version="7.11.1">
  <Log>for the image named: film.tif &#xD; 3 &lt; 4</Log>
  <Model spatialunits="pixel" timeunits="sec">
    <FeatureDeclarations><SpotFeatures>
      <Feature feature="QUALITY" name="Quality" isint="false" />
    </SpotFeatures></FeatureDeclarations>
    <AllSpots nspots="7">
      <SpotsInFrame frame="0">
        <Spot ID="10" name="ID10" FRAME="0" POSITION_X="1.5" POSITION_Y="2" POSITION_Z="0.0"
          MEAN_INTENSITY_CH1="7.5" QUALITY="1" VISIBILITY="1" ROI_N_POINTS="2">0.1 0.2 0.3</Spot>
        <Spot ID="11" name="ID11" FRAME="0" POSITION_X="30" POSITION_Y="2" POSITION_Z="0.0"
          MEAN_INTENSITY_CH1="8" VISIBILITY="0" />
      </SpotsInFrame>
      <SpotsInFrame frame="1">
        <Spot ID="12" FRAME="1" POSITION_X="1" POSITION_Y="2" POSITION_Z="0.0" VISIBILITY="1" />
        <Spot ID="13" FRAME="1" POSITION_X="2" POSITION_Y="2" POSITION_Z="0.0" VISIBILITY="1" />
        <Spot ID="16" FRAME="1" POSITION_X="9" POSITION_Y="2" POSITION_Z="0.0" VISIBILITY="1" />
      </SpotsInFrame>
      <SpotsInFrame frame="3">
        <Spot ID="14" FRAME="3" POSITION_X="1" POSITION_Y="2" POSITION_Z="0.0" VISIBILITY="1" />
        <Spot ID="15" FRAME="3" POSITION_X="9" POSITION_Y="2" POSITION_Z="0.0" VISIBILITY="1" />
      </SpotsInFrame>
    </AllSpots>
    <AllTracks>
      <Track name="Track_0" TRACK_ID="0" NUMBER_SPOTS="4">
        <Edge SPOT_SOURCE_ID="10" SPOT_TARGET_ID="12" LINK_COST="1" />
        <Edge SPOT_SOURCE_ID="13" SPOT_TARGET_ID="10" />
        <Edge SPOT_SOURCE_ID="12" SPOT_TARGET_ID="14" />
      </Track>
      <Track name="Track_1" TRACK_ID="1"><Edge SPOT_SOURCE_ID="16" SPOT_TARGET_ID="15" /></Track>
    </AllTracks>
    <FilteredTracks><TrackID TRACK_ID="0" /></FilteredTracks>
  </Model>
</TrackMate>
"""


def read(text, links=True):
    data = text if isinstance(text, bytes) else text.encode()
    return read_detections(io.BytesIO(data), io.BytesIO(data) if links else None)


def test_divisions_gaps_and_what_filters_hide():
    pairs = read(FILE)
    assert pairs[0].source.ids.tolist() == [10]  # 11 is not visible
    assert pairs[0].target.ids.tolist() == [12, 13, 16]
    assert pairs[0].source["mean_intensity"].tolist() == [7.5]
    assert pairs[0].source.dimensions == 2  # z is always 0
    links, _ = annotated_events(pairs)
    assert {link[1:] for link in links} == {
        (0, 10, 12, "division", 1), (0, 10, 13, "division", 1), (1, 12, 14, "move", 3),
    }  # fmt: skip
    assert [pair.annotation for pair in read(FILE.replace("VISIBILITY", "V"), links=False)] == [
        None
    ]
    all_tracks = FILE.replace('<TrackID TRACK_ID="0" />', "")
    assert len(annotated_events(read(all_tracks))[0]) == 4


def test_a_file_by_its_path(tmp_path):
    path = tmp_path / "film.xml"
    path.write_text("\ufeff" + FILE)
    assert len(read_detections(path, path)) == 3
    utf16 = FILE.replace("UTF-8", "UTF-16").encode("utf-16")
    with pytest.raises(DataError, match="NUL byte"):
        read(utf16)


LAUGHS = '<!DOCTYPE lolz [<!ENTITY lol "lol"><!ENTITY l2 "&lol;&lol;">]><TrackMate>&l2;</TrackMate>'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (LAUGHS, r"line 1: the XML has a document type \(<!DOCTYPE\)"),
        (
            '<!DOCTYPE a SYSTEM "file:///etc/passwd"><TrackMate/>',
            "which TrackMate does not write and which can do harm; remove it",
        ),
        (FILE[:1500], "not well-formed XML .*; is the file cut off"),
        ("<TrackMate>\n<Model>\n</Modal>", "line 3: not well-formed XML"),
        ("<svg></svg>", "line 1: the XML begins with <svg>; of XML files only those of TrackMate"),
        ("<TrackMate></TrackMate>", "has no spot that is visible"),
        (FILE.replace('POSITION_X="30"', ""), None),
        (
            FILE.replace('POSITION_X="1.5"', 'POSITION_X="far"'),
            "line 10, column 'POSITION_X': 'far'",
        ),
        (
            FILE.replace('_ID="14" />', '_ID="99" />'),
            "line 29: an edge names the spot 99",
        ),
        (FILE.replace('_ID="14" />', '_ID="x" />'), "line 29: 'x' is no id of a spot"),
        (FILE.replace('SOURCE_ID="10"', 'SOURCE_ID="-"'), "line 27: '-' is no id of a spot"),
        (
            FILE.replace('ID="12" SPOT_TARGET_ID="14"', 'ID="12" SPOT_TARGET_ID="13"'),
            "the spots 12 and 13 of an edge are both in frame 1",
        ),
        (FILE.replace(' FRAME="', ' TIME="'), "has no column 'FRAME'"),
    ],
)
def test_files_that_cannot_be(text, message):
    if message is None:  # what is not visible may lack anything
        assert read(text)
        return
    with pytest.raises(DataError, match=message):
        read(text)


def test_merges_are_merges():
    text = FILE.replace('<Edge SPOT_SOURCE_ID="13" SPOT_TARGET_ID="10" />', "").replace(
        "</Track>", '<Edge SPOT_SOURCE_ID="11" SPOT_TARGET_ID="12" /></Track>', 1
    )
    links, _ = annotated_events(read(text.replace('VISIBILITY="0"', 'VISIBILITY="1"')))
    assert sorted(link[2:5] for link in links if link.frame == 0) == [
        (10, 12, "merge"), (11, 12, "merge"),
    ]  # fmt: skip


@settings(max_examples=50, deadline=None)
@given(st.data())
def test_what_is_written_is_read(tmp_path_factory, data):
    n = data.draw(st.integers(2, 5))
    sizes = [data.draw(st.integers(1, 3)) for _ in range(n)]
    number = st.floats(-1e6, 1e6)
    apart = data.draw(st.booleans())  # ids that no other frame has
    ids = [np.arange(k) + 10 * t * apart for t, k in enumerate(sizes)]
    centre = st.tuples(number, number)
    centres = [data.draw(st.lists(centre, min_size=k, max_size=k)) for k in sizes]
    frames = [Objects(ids[t], np.array(rows)) for t, rows in enumerate(centres)]
    pairs = [FramePair("", t, frames[t], frames[t + 1]) for t in range(n - 1)]
    made, free = [], {(t, i) for t, own in enumerate(ids) for i in own.tolist()}
    for t in range(n - 1):
        for i in ids[t].tolist():
            after = sorted((u, j) for u, j in free if t < u <= t + 2)
            k = min(data.draw(st.integers(0, 2)), len(after))
            near = [end for end in after if end[0] == t + 1]
            targets = near[:2] if k == 2 and len(near) > 1 else after[: min(k, 1)]
            free -= set(targets)
            kind = "division" if len(targets) == 2 else "move"
            made += [Link("", t, i, j, kind, u) for u, j in targets]
    path = tmp_path_factory.mktemp("tm") / "film.xml"
    write_trackmate(assemble_tracks(pairs, made), path)
    again = read_detections(path, path)
    order = {(o.frame, o.id): i for i, o in enumerate(assemble_tracks(pairs, made).objects)}
    for pair, other in zip(pairs, again, strict=True):
        np.testing.assert_array_equal(pair.source.position, other.source.position)
        np.testing.assert_array_equal(pair.target.position, other.target.position)
    found = {link.ends for link in annotated_events(again)[0]}
    unique = apart
    assert found == {
        (
            "", k.frame, k.source_id if unique else order[k.frame, k.source_id],
            k.frame_target, k.target_id if unique else order[k.frame_target, k.target_id],
        )
        for k in made
    }  # fmt: skip


def test_one_movie_a_file(tmp_path):
    cells = {"sequence": ["a", "a", "b", "b"], "frame": [0, 1] * 2, "x": [0] * 4, "y": [0] * 4}
    result = assemble_tracks(read_detections(cells), [])
    with pytest.raises(DataError, match=r"holds one movie, but the result has 2, 'a', 'b'.*of\("):
        write_trackmate(result, tmp_path / "film.xml")
    write_trackmate(result.of("b"), tmp_path / "film.xml")
    assert len(read_detections(tmp_path / "film.xml")) == 1


@pytest.mark.extras
def test_another_program_reads_it(tmp_path):
    convert = pytest.importorskip("geff.convert")
    path = tmp_path / "film.xml"
    result = assemble_tracks(read(FILE), annotated_events(read(FILE))[0])
    write_trackmate(result, path)
    with pytest.warns(UserWarning):  # it misses what TrackMate says of the image
        convert.from_trackmate_xml_to_geff(path, tmp_path / "film.geff")
    again = read_detections(tmp_path / "film.geff", tmp_path / "film.geff")
    assert {k.ends for k in annotated_events(again)[0]} == {k.ends for k in result.links}

"""Frame pairs from files and tables: what is read, what is refused and what is said of it."""

from __future__ import annotations

import bz2
import gzip
import io
import logging
import lzma
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trellis.errors import DataError
from trellis.tracking.objects import PairAnnotation
from trellis.tracking.reading import read_detections
from trellis.tracking.result import annotated_events, assemble_tracks

OBJECTS = """sequence,frame,id,x,y,area,track
b,4,1,3.5,1,30,9
b,4,0,1,2,,8
b,5,7,9,-1,nan,-1
a,0,0,0,0,1,1
a,1,0,0,0,1,1
"""
LINKS = """sequence,frame,source_id,target_id,kind
b,4,1,7,move
"""


def write(folder, text, name="objects.csv"):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_all_that_a_pair_holds(tmp_path):
    first, pair = read_detections(write(tmp_path, OBJECTS), write(tmp_path, LINKS, "links.csv"))
    assert (first.sequence, first.frame, first.annotation) == ("a", 0, None)
    assert (pair.sequence, pair.frame, pair.extent) == ("b", 4, (1.0, -1.0, 9.0, 2.0))
    assert pair.source.ids.tolist() == [0, 1]
    assert pair.source.position.tolist() == [[1.0, 2.0], [3.5, 1.0]]
    assert list(pair.source.columns) == ["area"]
    np.testing.assert_array_equal(pair.source["area"], [np.nan, 30.0])
    assert pair.target.ids.tolist() == [7]
    assert np.isnan(pair.target["area"]).all()
    assert pair.annotation == PairAnnotation(((1, 7, "move"),))


def test_incomplete_links_and_no_links(tmp_path):
    objects = write(tmp_path, OBJECTS)
    first, pair = read_detections(objects, io.StringIO(LINKS), complete=False)
    assert first.annotation is None
    assert pair.annotation == PairAnnotation(((1, 7, "move"),), (), ())
    assert [p.annotation for p in read_detections(objects)] == [None, None]
    none = read_detections(objects, io.StringIO("frame,source_id,target_id,sequence\n"))
    assert [p.annotation for p in none] == [None, None]


@pytest.mark.parametrize(
    ("suffix", "compress"),
    [("", bytes), (".gz", gzip.compress), (".xz", lzma.compress), (".bz2", bz2.compress)],
)
def test_compressed_files(tmp_path, suffix, compress):
    text = "\ufeff" + OBJECTS.replace("\n", "\r\n")
    path = write(tmp_path, compress(text.encode()), f"objects.csv{suffix}")
    assert [len(p.source) for p in read_detections(str(path))] == [1, 2]


def test_files_tables_and_frames_agree(tmp_path):
    class Frame:  # as much of a pandas.DataFrame as is used
        def __init__(self, table):
            self.table = table
            self.columns = list(table)

        def __getitem__(self, name):
            return self.table[name]

    table = {
        "sequence": np.array(["b", "b", "b", "a", "a"]),
        "frame": [4.0, 4.0, 5.0, 0.0, 1.0],
        "id": np.array([1, 0, 7, 0, 0], np.uint8),
        "x": [3.5, 1, 9, 0, 0],
        "y": np.array([1, 2, -1, 0, 0], dtype=object),
        "area": [30, None, float("nan"), 1, 1],
        "track": ["?"] * 5,
    }
    for source in (table, Frame(table)):
        read = read_detections(source)
        for one, other in zip(read, read_detections(write(tmp_path, OBJECTS)), strict=True):
            assert (one.sequence, one.frame, one.extent) == (
                other.sequence,
                other.frame,
                other.extent,
            )
            for a, b in ((one.source, other.source), (one.target, other.target)):
                np.testing.assert_array_equal(a.ids, b.ids)
                np.testing.assert_array_equal(a.position, b.position)
                np.testing.assert_array_equal(a["area"], b["area"])


def test_features_are_the_columns_with_numbers(tmp_path, caplog):
    text = "frame,id,x,y,name,empty,size,lab\n0,0,0,0,cell,,1e1,5\n1,0,0,0,cell,NA,-2,5\n"
    with caplog.at_level(logging.INFO, "trellis"):
        pair = read_detections(write(tmp_path, text), ignore=["lab"])[0]
    assert pair.sequence == ""
    assert list(pair.source.columns) == ["size"]
    assert "objects.csv: left out, for they hold no numbers: name, empty" in caplog.text


def test_gaps_have_no_pair(tmp_path, caplog):
    rows = "".join(f"{t},0,0,0\n" for t in (7, 0, 1, 3, 4))
    with caplog.at_level(logging.INFO, "trellis"):
        pairs = read_detections(write(tmp_path, "frame,id,x,y\n" + rows))
    assert [p.frame for p in pairs] == [0, 3]
    assert "2 gap(s) between frames" in caplog.text


def frames(n_source, n_target):
    """Objects of two frames in a row along x, ids from 0."""
    x = [*range(n_source), *range(n_target)]
    return {"frame": [0] * n_source + [1] * n_target, "id": x, "x": x, "y": [0] * len(x)}


def links(*rows):
    return {
        "frame": [0] * len(rows),
        "source_id": [row[0] for row in rows],
        "target_id": [row[1] for row in rows],
        "kind": [row[2] for row in rows],
    }


def test_kinds_are_inferred():
    table = links((0, 0, ""), (1, 1, ""), (1, 2, ""))
    expected = ((0, 0, "move"), (1, 1, "division"), (1, 2, "division"))
    assert read_detections(frames(2, 3), table)[0].annotation.links == expected
    del table["kind"]
    assert read_detections(frames(2, 3), table)[0].annotation.links == expected


def test_split_and_merge():
    rows = (0, 0, "split"), (0, 1, "split"), (1, 2, "merge"), (2, 2, "merge")
    assert read_detections(frames(3, 3), links(*rows))[0].annotation.links == rows


def test_one_link_is_a_move(caplog):
    rows = (0, 0, "division"), (1, 1, "single_daughter"), (2, 2, "split"), (3, 3, "merge")
    note = read_detections(frames(4, 4), links(*rows))[0].annotation
    assert note.links == tuple((i, i, "move") for i in range(4))
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "4 division(s), split(s) or merge(s) with one link: moves" in caplog.text


def test_in_a_partial_annotation_one_link_of_a_division_says_nothing(caplog):
    rows = (0, 0, "division"), (1, 1, "single_daughter"), (2, 2, "move")
    note = read_detections(frames(3, 3), links(*rows), complete=False)[0].annotation
    assert note.links == ((1, 1, "move"), (2, 2, "move"))
    assert (note.known_sources, note.known_targets) == ((), ())
    assert "1 division(s), split(s) or merge(s) with one link only: not annotated" in caplog.text


@pytest.mark.parametrize("complete", [True, False])
def test_of_three_daughters_the_nearest_two(caplog, complete):
    rows = [(2, j, "division") for j in (0, 1, 4, 3)]
    note = read_detections(frames(3, 5), links(*rows), complete=complete)[0].annotation
    assert note.links == ((2, 1, "division"), (2, 3, "division"))
    assert note.known_targets == (None if complete else (0, 4))  # they appear
    assert note.known_sources == (None if complete else ())
    assert "1 of three or more: only the two nearest" in caplog.text


def test_of_three_merging_the_nearest_two():
    rows = [(i, 2, "merge") for i in (0, 1, 2)]
    note = read_detections(frames(3, 3), links(*rows), complete=False)[0].annotation
    assert note.links == ((1, 2, "merge"), (2, 2, "merge"))
    assert (note.known_sources, note.known_targets) == ((0,), ())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "objects.csv is empty; expected a header"),
        ("frame,id,x,y\n", "objects.csv is empty: a header, but no objects"),
        (
            "frame,id,x\n0,0,0\n",
            "objects.csv has no column 'y', only frame, id, x; expected a head",
        ),
        (
            "frames;x;y\n0;0;0\n",
            "has no column .frame., only frames, x, y; .* semicolons .*; if it has",
        ),
        ("frame,id,x,y,x\n0,0,0,0,0\n", "line 1: the header names column 'x' twice"),
        (
            "frame,id,x,y\n0,0,0,0\n\n0,1,0\n",
            "line 4: 3 cells, but the header has 4; is the file cut",
        ),
        ("frame,id,x,y\n0,0,zero,0\n", "objects.csv, line 2, column 'x': 'zero' is not a number$"),
        (
            "frame,id,x,y,a\n0,0,0,0,1\n1,0,0,0,big\n",
            "line 3, column 'a': 'big' is not a number; .* ignore",
        ),
        ("frame,id,x,y,a\n0,0,0,0,1\n1,0,0,0,1_0\n", "line 3, column 'a': '1_0' is not a number"),
        (
            "frame,id,x,y,a\n0,0,0,0,1\n1,0,0,0,inf\n",
            "line 3, column 'a': .* is not finite; leave the cell",
        ),
        ("frame,id,x,y\n0.5,0,0,0\n", "line 2, column 'frame': '0.5' is not a whole number"),
        (
            "frame,id,x,y\n0,1e300,0,0\n",
            "line 2, column 'id': '1e300' is not a whole number up to 2\\^53",
        ),
        (
            "frame,id,x,y\n0,,0,0\n",
            "line 2, column 'id': the value is missing; correct or remove the row",
        ),
        (
            "frame,id,x,y\n0,0,0,\n",
            "line 2, column 'y': the value is missing; correct or remove the row",
        ),
        (
            "frame,id,x,y\n0,0,-inf,0\n",
            "line 2, column 'x': .* is not finite; correct or remove the row",
        ),
        (
            "frame,id,x,y,sequence\n0,0,0,0,a\n0,0,0,0,b\n0,0,0,0,a\n",
            "line 4: id 0 is already in frame 0 of sequence 'a' \\(.*objects.csv, line 2\\); give",
        ),
        ("frame,id,x,y\n0,0,0,0\n2,0,0,0\n", "no sequence has two frames t and t \\+ 1; number"),
        ('frame,id,x,y\n0,0,0,"0\n', "line 2: unexpected end of data; expected cells"),
        (b"frame\0id", "line 1: a NUL byte; this is not a text file"),
        (b"frame,id,x,y\n0,0,0,\xff\n", "line 2: not UTF-8 text"),
        (lzma.compress(OBJECTS.encode())[:-20], "the xz data is truncated"),
        (gzip.compress(OBJECTS.encode(), mtime=0)[:-9], "the gzip data is truncated"),
    ],
)
def test_objects_that_cannot_be(tmp_path, text, message):
    with pytest.raises(DataError, match=message):
        read_detections(write(tmp_path, text))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([(0, 9, "move")], "links, row 0: target_id 9 is not in frame 1 of objects; correct the"),
        ([(0, 0, "move"), (7, 1, "move")], "row 1: source_id 7 is not in frame 0 of objects"),
        ([(0, 0, "hop")], "row 0: unknown kind 'hop'; known are move, division"),
        (
            [(1, 2, "move"), (0, 2, "move")],
            "row 1: object 2 has two pasts, source 1 as move \\(links, row 0\\) and source 0 as "
            "move; remove one, or call all of them merge",
        ),
        ([(0, 2, ""), (1, 2, "")], "object 2 has two pasts"),
        ([(0, 2, "merge"), (1, 2, "move")], "object 2 has two pasts, source 0 as merge"),
        (
            [(0, 0, "move"), (0, 1, "move")],
            "row 1: object 0 has two fates, target 0 as move \\(links, row 0\\) and target 1 as "
            "move; remove one, or call all of them division or split",
        ),
        ([(0, 0, "division"), (0, 1, "split")], "object 0 has two fates, target 0 as division"),
        ([(0, 0, "single_daughter"), (0, 1, "")], "object 0 has two fates"),
        ([(0, 0, "merge"), (1, 0, "merge"), (0, 1, "division")], "object 0 has two fates"),
        (
            [(0, 0, "division"), (0, 0, "division")],
            "row 1: the link 0 -> 0 is already there \\(links",
        ),
    ],
)
@pytest.mark.parametrize("complete", [True, False])
def test_links_that_cannot_be(rows, message, complete):
    with pytest.raises(DataError, match=message):
        read_detections(frames(3, 3), links(*rows), complete=complete)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("frame,source_id\n", "links.csv has no column 'target_id'"),
        (
            "frame,source_id,target_id\n",
            "has no column 'sequence', but .*objects.csv has 2 sequences",
        ),
        (
            "sequence,frame,source_id,target_id\nc,0,0,0\n",
            "line 2: .*objects.csv has no sequence 'c'",
        ),
        (
            "sequence,frame,source_id,target_id\nb,5,7,0\n",
            "line 2: .*objects.csv has no frame 6 of sequence 'b'; a link of frame 5 joins the "
            "frames 5 and 6",
        ),
        ("sequence,frame,source_id,target_id\nb,3,0,0\n", "has no frame 3 of sequence 'b'"),
        (
            "sequence,frame,source_id,target_id\nb,4,x,0\n",
            "line 2, column 'source_id': 'x' is not a number",
        ),
        (
            "sequence,frame,source_id,target_id\nb,4,0,8\n",
            "target_id 8 is not in frame 5 of sequence",
        ),
        ("", "links.csv is empty"),
    ],
)
def test_link_files_that_cannot_be(tmp_path, text, message):
    with pytest.raises(DataError, match=message):
        read_detections(write(tmp_path, OBJECTS), write(tmp_path, text, "links.csv"))


def test_one_sequence_needs_no_name_in_the_links():
    table = frames(1, 1) | {"sequence": ["a", "a"]}
    assert read_detections(table, links((0, 0, "move")))[0].annotation.links == ((0, 0, "move"),)


def test_sources_that_cannot_be(tmp_path):
    with pytest.raises(DataError, match=r"cannot read .*: No such file"):
        read_detections(tmp_path / "none.csv")
    with pytest.raises(DataError, match="objects is a int; expected a path, a mapping"):
        read_detections(3)
    with pytest.raises(DataError, match="objects is empty: it has no columns"):
        read_detections({})
    with pytest.raises(DataError, match="columns must have one length, not frame 1, id 2"):
        read_detections({"frame": [0], "id": [0, 1]})
    with pytest.raises(
        DataError, match="column 'x' has shape \\(1, 2\\), expected one value a row"
    ):
        read_detections({"frame": [0], "id": [0], "x": [[0, 1]], "y": [0]})
    with pytest.raises(DataError, match="ignore must be a collection of column names"):
        read_detections(frames(1, 1), ignore="track")


@settings(max_examples=40)
@given(st.data())
def test_any_true_links_come_back(data):
    """Links drawn as a set of moves, divisions, splits and merges are read as they are."""
    n, m = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 6))
    sources, targets = (data.draw(st.permutations(range(k))) for k in (n, m))
    sources, targets = list(sources), list(targets)
    rows = []
    for kind in data.draw(st.lists(st.sampled_from(["move", "division", "split", "merge"]))):
        a, b = {"move": (1, 1), "merge": (2, 1)}.get(kind, (1, 2))
        if len(sources) < a or len(targets) < b:
            continue
        ours = [sources.pop() for _ in range(a)]
        rows += [(i, j, kind) for j in [targets.pop() for _ in range(b)] for i in ours]
    pair = read_detections(frames(n, m), links(*rows))[0]
    assert pair.annotation == (PairAnnotation(tuple(sorted(rows))) if rows else None)
    if not rows:
        return
    events = annotated_events([pair])[1]
    assert {e.id for e in events if e.kind == "disappear"} == set(sources)
    assert {e.id for e in events if e.kind == "appear"} == set(targets)


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        # objects, unmatched, moves and single daughters, divisions, appear, disappear, tracks
        ("cellmigration", {"cellmigration": (27630, 1543, 25516, 101, 150, 37, 571)}),
        (
            "epidermis",
            {
                "epidermis_area1": (4453, 0, 3383 + 17, 335, 77, 428, 1070 - 17),
                "epidermis_area2": (4415, 0, 3341 + 30, 328, 81, 430, 1074 - 30),
            },
        ),
    ],
)
def test_counts_of_real_data(real_data, name, counts):
    folder: Path = real_data("celltracking")
    read = [folder / f"{name}_{part}.csv.xz" for part in ("objects", "links")]
    pairs = read_detections(*read, columns={"truth": "track"})  # to count those of no cell
    true_links, events = annotated_events(pairs)
    result = assemble_tracks(pairs, true_links, events)
    assert {p.sequence for p in pairs} == set(counts)
    for sequence, expected in counts.items():
        n_objects, n_unmatched, n_moves, n_divisions, n_appear, n_disappear, n_tracks = expected
        own = [p for p in pairs if p.sequence == sequence]
        # A detection that is no cell appears and disappears, and is a track of its own.
        in_first, in_last = (int((o["truth"] < 0).sum()) for o in (own[0].source, own[-1].target))
        assert in_first + sum((p.target["truth"] < 0).sum() for p in own) == n_unmatched
        kinds = [link.kind for link in true_links if link.sequence == sequence]
        assert kinds.count("move") == n_moves
        assert kinds.count("division") == 2 * n_divisions
        third = name == "cellmigration"  # one cell has three daughters
        fates = [event.kind for event in events if event.sequence == sequence]
        assert fates.count("appear") == n_appear + third + n_unmatched - in_first
        assert fates.count("disappear") == n_disappear + n_unmatched - in_last
        assert sum(o.sequence == sequence for o in result.objects) == n_objects
        tracks = [track for track in result.tracks if track.sequence == sequence]
        assert len(tracks) == n_tracks + n_unmatched
        assert len({track.parent for track in tracks}) == n_divisions + 1

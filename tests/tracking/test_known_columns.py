"""Tables as other programs write them: what is read of them, what is said, what is refused."""

from __future__ import annotations

import io
import logging

import numpy as np
import pytest

from trellis.errors import DataError
from trellis.files.table import read_table
from trellis.tracking.known_columns import ROLES, known_table
from trellis.tracking.reading import read_detections

TRACKMATE = """LABEL,ID,TRACK_ID,QUALITY,POSITION_X,POSITION_Y,POSITION_Z,POSITION_T,FRAME,RADIUS,\
VISIBILITY,MANUAL_SPOT_COLOR,MEAN_INTENSITY_CH1,AREA,ELLIPSE_X0,ELLIPSE_THETA,ELLIPSE_MAJOR
Label,Spot ID,Track ID,Quality,X,Y,Z,T,Frame,Radius,Visibility,Manual spot color,Mean intensity,\
Area,Ellipse x0,Ellipse angle,Ellipse long axis
Label,Spot ID,Track ID,Quality,X,Y,Z,T,Frame,R,Visibility,Spot color,Mean ch1,Area,El. x0,El. a,L
,,,(quality),(micron),(micron),(micron),(sec),,(micron),,,(counts),(micron^2),(micron),(rad),(m)
ID93,93,0,5.1,1.5,2.5,0,0,0,4,1,,30,50,.1,.2,9
ID95,95,,5.1,4.5,7.5,0,0,0,4,1,,31,60,.1,.2,9
ID94,94,0,5.1,1.6,2.6,0,300,1,4,1,,32,51,.1,.2,9
"""


def csv(text):
    return io.StringIO(text)


def roles(table):
    """Which columns have which role, the others as features."""
    known = known_table(read_table(table))
    return {
        name: list(known.table.columns[name]) for name in known.table.columns if name in ROLES
    }, [name for name in known.table.columns if name not in ROLES]


def test_trackmate(caplog):
    with caplog.at_level(logging.INFO, "trellis"):
        (pair,) = read_detections(csv(TRACKMATE))
    assert pair.source.ids.tolist() == [93, 95]
    assert pair.source.position[:, :2].tolist() == [[1.5, 2.5], [4.5, 7.5]]
    assert sorted(pair.source.columns) == ["RADIUS", "area", "major_axis", "mean_intensity"]
    assert "frame is FRAME; id is ID; x is POSITION_X; y is POSITION_Y" in caplog.text
    assert "POSITION_Z (always the same)" in caplog.text
    with pytest.raises(DataError, match=r"line 6, column 'POSITION_X': 'no' is not a number"):
        read_detections(csv(TRACKMATE.replace("4.5,7.5", "no,7.5")))


def test_a_table_may_be_its_own_truth():
    (pair,) = read_detections(csv(TRACKMATE), csv(TRACKMATE))
    assert pair.annotation.links == ((93, 94, "move"),)
    (file,) = [csv(TRACKMATE)]
    assert read_detections(file, file)[0].annotation.links == ((93, 94, "move"),)


EDGES = """LABEL,TRACK_ID,SPOT_SOURCE_ID,SPOT_TARGET_ID,LINK_COST
Label,Track ID,Source ID,Target ID,Cost
Label,Track ID,Source ID,Target ID,Cost
,,,,(cost)
ID94,0,94,93,1.5
"""


def test_edges_of_trackmate():
    (pair,) = read_detections(csv(TRACKMATE), csv(EDGES))
    assert pair.annotation.links == ((93, 94, "move"),)
    with pytest.raises(DataError, match="line 5: an edge names the spot 7, which is not among"):
        read_detections(csv(TRACKMATE), csv(EDGES.replace("94,93", "94,7")))
    with pytest.raises(DataError, match="line 5: 'x' is no id of a spot"):
        read_detections(csv(TRACKMATE), csv(EDGES.replace("94,93", "94,x")))
    cells = {"frame": [0, 1], "x": [0, 0], "y": [0, 0]}
    with pytest.raises(DataError, match="objects has the id 0 in the frames 0 and 1; give the tab"):
        read_detections(cells, csv(EDGES))


def test_trackmate_in_three_dimensions():
    known, _ = roles(csv(TRACKMATE.replace("7.5,0,0", "7.5,3,0")))
    assert known["z"] == ["0", "3", "0"]


def test_scikit_image_counts_rows_first():
    flat = {"label": [1], "centroid-0": [2], "centroid-1": [3], "frame": [0], "bbox-0": [1],
            "axis_major_length": [5], "area": [7], "centroid_weighted-0": [2],
            "centroid_weighted-1": [3], "orientation": [1]}  # fmt: skip
    assert roles(flat) == (
        {"frame": [0], "id": [1], "x": [3], "y": [2]}, ["area", "orientation", "major_axis"],
    )  # fmt: skip
    deep = {"label": [1], "centroid-0": [2], "centroid-1": [3], "centroid-2": [4], "t": [0]}
    known = known_table(read_table({**deep, "intensity_mean-0": [1], "intensity_mean-1": [2]}))
    columns = known.table.columns
    assert (columns["x"][0], columns["y"][0]) == (4, 3)
    assert [name for name in columns if name not in ROLES] == ["mean_intensity", "intensity_mean-1"]


@pytest.mark.parametrize(
    ("columns", "expected", "features"),
    [
        ("x,y,mass,size,ecc,frame,particle", "x y frame track", ["mass", "size", "ecc"]),  # trackpy
        ("ID,t,x,y,parent,root,generation,area", "track frame x y parent", ["area"]),  # btrack
        ("frame,index,x,y,track_id,tree_id,a", "frame x y track", ["a"]),  # LapTrack
        ("index,axis-0,axis-1,axis-2", "frame y x", []),  # napari points
        ("ImageNumber,ObjectNumber,AreaShape_Area,Location_Center_X,Location_Center_Y",
         "frame id x y", ["area"]),  # CellProfiler
        (" ,Area,Mean,X,Y,Slice,Perim.", "x y frame", ["area", "mean_intensity", "perimeter"]),
        (",frame,x,y,area", "frame x y", ["area"]),  # the index of a data frame
        ("Unnamed: 0,Frame,X,Y,Area", "frame x y", ["area"]),
        ("movie,time,x_centroid,y_centroid", "sequence frame x y", []),
        ("id,Id,frame,Frame,t,x,X,y,area", "id frame x y", ["area"]),  # by its own name
    ],
)  # fmt: skip
def test_tables_of_other_programs(columns, expected, features):
    n = columns.count(",") + 1
    table = csv(columns + "\n" + "\n".join(",".join([str(t)] * n) for t in (0, 1)) + "\n")
    known, rest = roles(table)
    assert set(known) == {*expected.split(), "id"}
    assert rest == features


def test_names_that_leave_it_open_are_not_taken():
    """Two spellings that differ in case only: neither is guessed."""
    with pytest.raises(DataError, match=r"has no column 'x', only frame, X, Pos_X, POS_X, y"):
        known_table(
            read_table({"frame": [0], "X": [1], "Pos_X": [1], "POS_X": [1], "y": [1]}), ignore=["X"]
        )


def test_what_the_caller_says_comes_first():
    table = {"T": [0, 1], "x": [0, 0], "y": [0, 0], "a": [5, 6], "b": [7, 8], "Size": [1, 2]}
    (pair,) = read_detections(table, columns={"frame": "T", "x": "a", "y": "b", "area": "Size"})
    assert pair.source.position[:, :2].tolist() == [[5, 7]]
    assert pair.target["area"].tolist() == [2]
    for wrong, message in (
        ({"frame": "Z"}, "objects has no column 'Z', only T, x"),
        ({"frame": "T", "x": "T"}, "columns: 'T' cannot be two things"),
        ({"frame": 3}, "columns: 'frame' and 3 must both be names"),
        (["frame"], "columns must be a mapping of names to columns of the table"),
    ):
        with pytest.raises(DataError, match=message):
            read_detections(table, columns=wrong)


def test_objects_without_id_are_numbered_in_the_order_of_rows():
    table = {"sequence": ["b", "a", "b", "b", "a", "b"], "frame": [1, 0, 0, 1, 1, 0],
             "x": [0, 1, 2, 3, 4, 5], "y": [0] * 6}  # fmt: skip
    a, b = read_detections(table)
    assert a.source.position[:, 0].tolist() == [1.0]
    assert b.source.ids.tolist() == [0, 1]
    assert b.source.position[:, 0].tolist() == [2.0, 5.0]
    assert b.target.position[:, 0].tolist() == [0.0, 3.0]


def test_ids_that_are_none():
    table = {"frame": [0, 0, 1], "id": [4, 4, 4], "x": [1, 2, 3], "y": [0] * 3}
    with pytest.raises(DataError, match=r"id 4 is already in frame 0 .*name 'id' in ignore"):
        read_detections(table)
    (pair,) = read_detections(table, ignore=("id",))
    assert pair.source.ids.tolist() == [0, 1]
    named = {("label" if name == "id" else name): values for name, values in table.items()}
    (pair,) = read_detections(named)  # a label that is not unique is no id, and no feature
    assert pair.source.ids.tolist() == [0, 1]
    assert not pair.source.columns


@pytest.mark.parametrize(
    "text",
    [
        "frame;x;y;area\n0;1,5;2;3,25\n1;1,5;2;4\n",
        "\ufeffframe\tx\ty\tarea\n0\t1.5\t2\t3.25\n1\t1.5\t2\t4\n",
        "sep=;\nframe;x;y;area\n0;1,5;2;3,25\n1;1,5;2;4\n",
        'frame,x,y,area\n0,"1,5",2,"3,25"\n1,"1,5",2,4\n',
    ],
)
def test_what_spreadsheets_write(text):
    (pair,) = read_detections(io.BytesIO(text.encode()))
    assert pair.source.position[:, :2].tolist() == [[1.5, 2.0]]
    assert pair.source["area"].tolist() == [3.25]


def test_rows_of_a_data_frame_may_have_the_frame():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"frame": [0, 0, 1], "index": [0, 1, 0], "x": [1, 2, 3], "y": [0] * 3})
    (pair,) = read_detections(table.set_index(["frame", "index"]))
    assert pair.source.position[:, 0].tolist() == [1.0, 2.0]
    both = table.set_index(pandas.Index([5, 6, 7], name="frame"))
    assert len(read_detections(both)[0].source) == 2


def test_frames_that_are_no_numbers():
    with pytest.raises(DataError, match=r"column 'time': '0.5' is not a whole number"):
        read_detections({"time": [0.5, 1], "x": [0, 0], "y": [0, 0]})


def test_nothing_is_said_of_a_plain_table(caplog):
    with caplog.at_level(logging.INFO, "trellis"):
        read_detections({"frame": [0, 1], "id": [0, 0], "x": [0, 0], "y": [0, 0], "area": [1, 2]})
    assert caplog.text == ""


def test_the_table_stays_as_it_is():
    table = {"frame": np.array([0, 1]), "X": np.array([0.0, 1]), "Y": np.array([0.0, 1])}
    before = {name: values.copy() for name, values in table.items()}
    read_detections(table)
    assert list(table) == list(before)
    for name, values in table.items():
        np.testing.assert_array_equal(values, before[name])

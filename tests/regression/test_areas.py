"""Graphs of areas: who shares a border, whatever the areas come as."""

from __future__ import annotations

import json
import re
import warnings

import numpy as np
import pytest
from scipy.sparse import csr_array

from trellis.errors import DataError
from trellis.regression import areas_graph, edges_graph
from trellis.regression.areas import read_areas


def square(x, y, size=1.0):
    corners = [[x, y], [x + size, y], [x + size, y + size], [x, y + size], [x, y]]
    return {"type": "Polygon", "coordinates": [corners]}


def collection(shapes, key="name"):
    features = [
        {"type": "Feature", "properties": {key: name}, "geometry": shape}
        for name, shape in shapes.items()
    ]
    return {"type": "FeatureCollection", "features": features}


def board(n=3):
    """The squares of a board."""
    return collection({f"{i}{j}": square(i, j) for i in range(n) for j in range(n)})


@pytest.mark.parametrize(("rule", "reach"), [("queen", "king"), ("rook", "rook")])
def test_a_board(rule, reach):
    S = areas_graph(board(), id="name", rule=rule).toarray()
    places = [(i, j) for i in range(3) for j in range(3)]
    for a, (i, j) in enumerate(places):
        for b, (k, m) in enumerate(places):
            near = max(abs(i - k), abs(j - m)) if reach == "king" else abs(i - k) + abs(j - m)
            assert S[a, b] == float(near == 1)


def test_against_geometry_in_general_position():
    """Triangles of a Delaunay triangulation: rook neighbours are what SciPy says."""
    from scipy.spatial import Delaunay

    mesh = Delaunay(np.random.default_rng(0).uniform(size=(40, 2)) * 1e5)
    shapes = {
        f"t{t}": {"type": "Polygon", "coordinates": [mesh.points[[*c, c[0]]].tolist()]}
        for t, c in enumerate(mesh.simplices)
    }
    S = areas_graph(collection(shapes), id="name", rule="rook")
    expected = np.zeros(S.shape)
    for t, others in enumerate(mesh.neighbors):
        expected[t, others[others >= 0]] = 1
    assert (S.toarray() == expected).all()
    queen = areas_graph(collection(shapes), id="name")
    shared = [[len(set(a) & set(b)) > 0 for b in mesh.simplices] for a in mesh.simplices]
    assert (queen.toarray() == np.array(shared) - np.eye(len(shared))).all()


def test_borders_that_differ_in_their_last_digits():
    shapes = {"a": square(0, 0), "b": square(1 + 1e-12, 0), "c": square(2.1, 0)}
    with pytest.warns(UserWarning, match=r"1 of 3 areas have no neighbour and are isolated \(c\)"):
        S = areas_graph(collection(shapes), id="name", rule="rook")
    assert S.toarray().tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 0]]
    assert areas_graph(collection(shapes), id="name", tolerance=0.3).nnz == 4


def test_files_parts_and_order(tmp_path):
    """Several features of one id, several polygons of one feature, and holes."""
    hole = {
        "type": "Polygon",
        "coordinates": [square(0, 0, 3)["coordinates"][0], square(1, 1)["coordinates"][0]],
    }
    both = {"type": "MultiPolygon", "coordinates": [square(1, 1)["coordinates"],
                                                    square(8, 8)["coordinates"]]}  # fmt: skip
    data = collection({"ring": hole, "0042": both, "far": square(9, 8)})
    data["features"].append(
        {"type": "Feature", "id": "far", "properties": {}, "geometry": square(20, 20)}
    )
    path = tmp_path / "areas.geojson"
    path.write_text(json.dumps(data), "utf-8")
    assert read_areas(path, "name").ids == ["ring", "42", "far"]
    S = areas_graph(path, ["far", 42, "ring"], id="name")
    assert S.toarray().tolist() == [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    assert areas_graph(path, ["far", "42"], id="name").nnz == 2
    centres = read_areas(path, "name").centres()
    assert centres[0].tolist() == pytest.approx([1.5, 1.5])


def test_the_property_that_names_areas_is_found():
    data = collection({"a": square(0, 0), "b": square(1, 0), "c": square(2, 0)})
    for i, feature in enumerate(data["features"]):
        feature["properties"] = {"OBJECTID": i, "GEOID": f"0{1001 + i}", "name": f"County {i}"}
        feature["id"] = 7 + i
    rows = ["1001", "1002", "99"]
    assert read_areas(data, "fips", ids=rows).ids == ["1001", "1002", "1003"]
    assert read_areas(data, "OBJECTID", ids=rows).ids == ["0", "1", "2"]  # as it was said
    assert read_areas(data, "fips", ids=[7, 8]).ids == ["7", "8", "9"]
    assert read_areas(data, "fips", ids=rows).has(rows).tolist() == [True, True, False]


def test_areas_that_nobody_drew():
    data = collection({"a": square(0, 0), "b": square(1, 0), "c": square(2, 0)})
    data["features"][1]["geometry"] = None
    with pytest.warns(UserWarning, match="1 features without a geometry are left out"):
        assert read_areas(data, "name").ids == ["a", "c"]
    for feature in data["features"]:
        feature["geometry"] = None
    with pytest.raises(DataError, match="no feature has a geometry"):
        read_areas(data, "name")


class Frame:
    """What GeoPandas and shapely objects show of themselves."""

    def __init__(self, data):
        self.__geo_interface__ = data


def test_objects_of_other_libraries():
    assert areas_graph(Frame(board()), id="name").nnz == areas_graph(board(), id="name").nnz

    class W:
        sparse = csr_array([[0, 1, 0], [0.5, 0, 0.5], [0, 1, 0]])  # each row sums to 1
        id_order = ("a", "b", "c")

    S = areas_graph(W(), ids=["b", "a", "c"]).toarray()
    assert S.tolist() == [[0, 0.75, 0.75], [0.75, 0, 0], [0.75, 0, 0]]
    weighted = areas_graph({1: {2: 0.5}, 2: {}, 3: {1: 2.0}}, ids=["3", "1", "2"]).toarray()
    assert weighted.tolist() == [[0, 2, 0], [2, 0, 0.5], [0, 0.5, 0]]


def test_edges(tmp_path):
    path = tmp_path / "edges.csv"
    path.write_text("a;b;w\n1;2;0,5\n2;1;2,5\n2;2;1,5\n3;9;1,5\n1;3;1,5\n", "utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        S = edges_graph(path, [1, 2, 3])
    assert S.toarray().tolist() == [[0, 2.5, 1.5], [2.5, 0, 0], [1.5, 0, 0]]
    with pytest.warns(UserWarning, match=r"2 of 4 rows have no neighbour and are isolated \(x, y"):
        edges_graph({"a": [1], "b": [2]}, ["x", "1", "2", "y"])


def test_edges_without_a_header(tmp_path):
    path = tmp_path / "edges.csv"
    path.write_text("01,2,0.5\n2,3,1.5\n", "utf-8")
    assert edges_graph(path, [1, 2, 3]).toarray().tolist() == [
        [0, 0.5, 0],
        [0.5, 0, 1.5],
        [0, 1.5, 0],
    ]
    path.write_text("1,2\n2,3\n", "utf-8")
    assert edges_graph(path, [1, 2, 3]).nnz == 4
    with pytest.warns(UserWarning, match="1 of 3 rows have no neighbour"):  # names are no line
        edges_graph({"a": ["b"], "b": ["c"]}, ["a", "b", "c"])
    path.write_text("1,2,much\n2,3,1\n", "utf-8")
    with pytest.raises(DataError, match=r"edges.csv, line 1: 'much' is no similarity above 0"):
        edges_graph(path, [1, 2, 3])


def test_edges_of_other_rows(tmp_path):
    path = tmp_path / "edges.csv"
    path.write_text("from,to\n1,2\n7,8\n8,9\n", "utf-8")
    with pytest.warns(
        UserWarning, match=r"2 of 3 edges name ids that no row has, and are left out"
    ):
        edges_graph(path, [1, 2])


def test_maps_that_are_no_geojson(tmp_path):
    with pytest.raises(DataError, match=r"areas.shp is no GeoJSON; make it with 'ogr2ogr areas"):
        read_areas(tmp_path / "areas.shp")


class Half:
    sparse = csr_array((2, 2))
    id_order = ("a",)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: areas_graph(3), "areas are a int; expected GeoJSON"),
        (lambda: areas_graph({"type": "Feature"}), "holds no GeoJSON FeatureCollection"),
        (lambda: areas_graph({"type": "x", "features": [3]}), "feature 0 is no GeoJSON feature"),
        (lambda: areas_graph(board()), "feature 0 has no id; it has name"),
        (lambda: areas_graph(board(), id="x"), "has no property 'x', and no id; it has name"),
        (
            lambda: areas_graph(
                collection({"a": {"type": "Point", "coordinates": [1, 2]}}), id="name"
            ),
            "feature 0 is a Point; areas are polygons",
        ),
        (
            lambda: areas_graph(
                collection({"a": {"type": "Polygon", "coordinates": [[1, 2]]}}), id="name"
            ),
            "a border is no list of points",
        ),
        *(
            (
                lambda c=c: areas_graph(collection({"a": {"type": "Polygon", **c}}), id="name"),
                "a border is no list of points",
            )
            for c in ({}, {"coordinates": 3}, {"coordinates": [[[1e300, 0], [0, 1], [1, 1]]]})
        ),
        (
            lambda: areas_graph(
                collection({"a": {"type": "Polygon", "coordinates": []}}), id="name"
            ),
            "feature 0 has no border",
        ),
        (lambda: areas_graph(board(), rule="bishop", id="name"), "rule must be"),
        (
            lambda: areas_graph(board(), ["00", "77"], id="name"),
            "1 of 2 ids are none of the areas (77",
        ),
        (lambda: areas_graph(board(), ["01", "1"], id="name"), "rows 0 and 1 have one id, '1'"),
        (lambda: areas_graph({}), "the mapping of areas to their neighbours is empty"),
        (lambda: areas_graph({"a": ["b"]}), "area 'a' has the neighbour 'b', which is no area"),
        (lambda: areas_graph({"a": 3}), "the neighbours of area 'a' are of type int; expected"),
        (lambda: areas_graph({"a": {"a": "x"}}), "areas 'a' and 'a' have the weight 'x'"),
        (lambda: areas_graph(board(), 3, id="name"), "ids are of type int; expected a list"),
        (lambda: areas_graph(Half()), "weights of 2 areas have 1 ids"),
        (lambda: edges_graph({"a": [1]}, [1]), "has one column; the first two of a list"),
        (lambda: edges_graph({"a": [1], "b": [2]}, [3, 4]), "no edge joins two rows; its ids are"),
        (
            lambda: edges_graph({"a": [1], "b": [2], "w": [0]}, [1, 2]),
            "row 0, column 'w': 0 is no similarity above 0",
        ),
    ],
)
def test_what_is_refused(call, message):
    with pytest.raises(DataError, match=re.escape(message)):
        call()


def test_no_json(tmp_path):
    path = tmp_path / "areas.json"
    path.write_text('{"type":\n oops', "utf-8")
    with pytest.raises(DataError, match=r"areas.json, line 2: this is no GeoJSON"):
        areas_graph(path)

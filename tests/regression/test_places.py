"""Coordinates by their names, in either order."""

from __future__ import annotations

import re

import numpy as np
import pytest

from trellis.errors import DataError
from trellis.files.table import read_table
from trellis.regression.places import Places


@pytest.mark.parametrize(
    ("columns", "metric", "expected", "of"),
    [
        (["lat", "lon"], None, ("lat", "lon"), "haversine"),
        (["lon", "lat"], None, ("lat", "lon"), "haversine"),
        (["Longitude", "LATITUDE"], None, ("LATITUDE", "Longitude"), "haversine"),
        (["pickup_lng", "pickup_lat"], None, ("pickup_lat", "pickup_lng"), "haversine"),
        (["startLong", "startLat"], None, ("startLat", "startLong"), "haversine"),
        (["lon", "lat"], "euclidean", ("lon", "lat"), "euclidean"),
        (["x", "y"], None, ("x", "y"), "euclidean"),
        (["x", "y"], "haversine", ("y", "x"), "haversine"),
        (["easting", "northing"], None, ("easting", "northing"), "euclidean"),
        (["a", "b"], "haversine", ("a", "b"), "haversine"),
        (["flat", "colon"], None, ("flat", "colon"), "euclidean"),
        (["x", "y", "z"], "manhattan", ("x", "y", "z"), "manhattan"),
        (["depth"], None, ("depth",), "euclidean"),
    ],
)
def test_names(columns, metric, expected, of):
    assert Places.of(columns, metric) == Places(expected, of)


@pytest.mark.parametrize(
    ("columns", "points", "expected"),
    [
        (["x", "y"], [[-66.22, -0.44], [2.35, 48.86]], True),
        (["x", "y"], [[-66, 0], [2, 48]], False),
        (["x", "y"], [[181072.5, 333611], [181025, 333558]], False),
        (["x", "y"], [[0.1, 0.2], [0.3, 0.4]], False),
        (["a", "b"], [[-66.22, -0.44], [2.35, 48.86]], False),
        (["x"], [[-66.22]], False),
        (["lat", "lon"], [[48.86, 2.35], [-0.44, -66.22]], False),
    ],
)
def test_what_may_be_degrees(columns, points, expected):
    assert Places.of(columns).may_be_degrees(np.array(points)) == expected


def test_found_in_a_table():
    table = read_table({"price": [1], "Long": ["2"], "lat": [3.0], "flat": ["x"]})
    assert Places.found(table).columns == ("lat", "Long")
    assert Places.found(table, "manhattan") == Places(("lat", "Long"), "manhattan")
    two = read_table({"lat": [1], "lon": [1], "end_lat": [1]})
    assert Places.found(two) is None
    assert Places.found(read_table({"lat": ["a"], "lon": [1]})) is None


def test_reading():
    table = read_table({"lon": [200.0, 10.0], "lat": [50.0, -89.0]})
    assert Places.of(["lon", "lat"]).read(table).tolist() == [[50, 200], [-89, 10]]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Places.of([]), "coordinates are columns, each of them once, not []"),
        (lambda: Places.of(["x", "x"]), "coordinates are columns, each of them once"),
        (
            lambda: Places.of(["x", "y", "z"], "haversine"),
            "haversine distances are for two coordinates, latitude and longitude in degrees; got x",
        ),
        (
            lambda: Places.of(["lat", "lon"]).read(
                read_table({"lat": [1, 4512300], "lon": [1, 2]})
            ),
            "row 1, column 'lat': 4512300 is no latitude in degrees (at most 90); for metres say",
        ),
        (
            lambda: Places.of(["lon", "lat"]).read(read_table({"lat": [1], "lon": ["west"]})),
            "row 0, column 'lon': 'west' is not a number",
        ),
        (
            lambda: Places.of(["lon", "lat"]).read(read_table({"lat": [1], "lon": [-361]})),
            "column 'lon': -361 is no longitude in degrees (at most 360); correct it, or empty",
        ),
        (
            lambda: Places.of(["lon", "lat"]).read(
                read_table({"lat": [-122.3, 1], "lon": [47.5, 1]})
            ),
            "-122.3 is no latitude in degrees (at most 90); latitude and longitude seem to be swap",
        ),
        (lambda: Places.of(["lon", "lat"]).read(read_table({"lat": [1]})), "has no column 'lon'"),
    ],
)
def test_what_is_refused(call, message):
    with pytest.raises(DataError, match=re.escape(message)):
        call()


def test_rows_without_a_place():
    table = read_table({"lat": [1, None, 2, ""], "lon": [3, 4, "NA", 5]})
    points = Places.of(["lat", "lon"]).read(table)
    assert points[0].tolist() == [1, 3] and np.isnan(points[1:]).all()


def test_zero_is_somewhere_unless_all_else_is_far_from_it():
    places = Places.of(["lat", "lon"])
    ghana = np.array([[5.6, -0.2], [0.0, 0.0], [4.9, 1.7]])
    seattle = np.array([[47.6, -122.3], [0.0, 0.0], [np.nan, np.nan], [0.0, 0.0]])
    assert (places.nowhere(ghana), places.nowhere(seattle)) == (0, 2)
    assert places.nowhere(np.zeros((3, 2))) == 0
    assert Places.of(["x", "y"]).nowhere(seattle) == 0


def test_what_may_be_meant():
    assert list(Places.odd(read_table({"lat": ["47N", "48N"], "lon": [1, 2]}))) == [("lat", 0)]
    assert Places.likely(read_table({"easting": [1], "northing": [2]})) == ["easting", "northing"]
    assert Places.likely(read_table({"x": [1], "y": [2], "north": [3]})) == []

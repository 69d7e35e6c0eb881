"""GEFF: what is written comes back, others' files are read, and what is no such file."""

from __future__ import annotations

import sys

import pytest

from trellis.errors import DataError
from trellis.tracking import annotated_events, assemble_tracks, read_detections, write_geff
from trellis.tracking.objects import Link

CELLS = {
    "frame": [0, 0, 1, 1, 1, 2, 3], "id": [0, 1, 0, 1, 2, 0, 0],
    "x": [1.5, 20, 1, 2, 21, 1, 1], "y": [0.25, 1, 2, 3, 4, 5, 6],
}  # fmt: skip
LINKS = [
    Link("", 0, 0, 0, "division"), Link("", 0, 0, 1, "division"), Link("", 0, 1, 2, "move"),
    Link("", 1, 0, 0, "move", 3),
]  # fmt: skip


def result(**more):
    return assemble_tracks(read_detections({**CELLS, **more}), LINKS)


def test_without_the_package(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "geff", None)
    with pytest.raises(DataError, match="to write a GEFF, install the package geff: pip install"):
        write_geff(result(), tmp_path / "t.geff")
    (tmp_path / "t.geff").mkdir()
    (tmp_path / "t.geff" / "zarr.json").write_text("{}")
    with pytest.raises(DataError, match="to read a GEFF, install the package geff"):
        read_detections(tmp_path / "t.geff")


@pytest.mark.extras
@pytest.mark.parametrize("more", [{}, {"z": [1, 2, 3, 4, 5, 6, 7.5]}])
def test_what_is_written_is_read(tmp_path, more):
    pytest.importorskip("geff")
    path = tmp_path / "tracks.geff"
    made = result(**more)
    write_geff(made, path)
    pairs = read_detections(path, path)
    assert set(annotated_events(pairs)[0]) == set(LINKS)
    expected = read_detections({**CELLS, **more})
    for pair, other in zip(pairs, expected, strict=True):
        assert pair.source.ids.tolist() == other.source.ids.tolist()
        assert pair.target.position.tolist() == other.target.position.tolist()
        assert not pair.source.columns  # the track is no feature
    write_geff(assemble_tracks(expected, []), path)  # takes its place
    assert annotated_events(read_detections(path, path))[0] == []
    assert [p.name for p in tmp_path.iterdir()] == ["tracks.geff"]


@pytest.mark.extras
def test_files_of_others(tmp_path):
    geff, networkx = pytest.importorskip("geff"), pytest.importorskip("networkx")
    graph = networkx.DiGraph()
    for node, (t, a, b) in enumerate([(0, 5.0, 6.0), (1, 5.5, 6.5), (1, 7.0, 8.0)], start=7):
        graph.add_node(node, time=t, rows=a, columns=b, area=10.0 * node)
    graph.add_edges_from([(8, 7), (7, 9)])  # one leads backwards

    def written(name, types=("time", "space", "space")):
        path = tmp_path / name
        geff.write(graph, path, axis_names=["time", "rows", "columns"], axis_types=list(types))
        return path

    path = written("a.geff")
    (pair,) = read_detections(path, path)
    assert pair.annotation.links == ((7, 8, "division"), (7, 9, "division"))
    assert pair.source.position.tolist() == [[6.0, 5.0]]
    assert pair.target["area"].tolist() == [80.0, 90.0]
    with pytest.raises(DataError, match="declares 0 axes of time and 3 of space"):
        read_detections(written("b.geff", ["space"] * 3))
    graph.add_edge(8, 9)
    with pytest.raises(DataError, match="an edge joins the nodes 8 and 9 of the same time"):
        read_detections(written("c.geff"), tmp_path / "c.geff")
    graph.clear()
    graph.add_node(1, time=0, rows=1.0, columns=1.0)
    (tmp_path / "d.geff").mkdir()
    (tmp_path / "d.geff" / "zarr.json").write_text("{}")
    with pytest.raises(DataError, match=r"d.geff: not a GEFF that can be read \("):
        read_detections(tmp_path / "d.geff")


@pytest.mark.extras
def test_places_that_cannot_be(tmp_path):
    pytest.importorskip("geff")
    (tmp_path / "mine").mkdir()
    with pytest.raises(DataError, match="mine is there and no GEFF; name another folder"):
        write_geff(result(), tmp_path / "mine")
    with pytest.raises(DataError, match=r"cannot write .*No such file or directory"):
        write_geff(result(), tmp_path / "none" / "t.geff")
    two = assemble_tracks(read_detections({**CELLS, "sequence": ["a"] * 3 + ["b"] * 4}), [])
    with pytest.raises(DataError, match="a GEFF holds one movie, but the result has 2"):
        write_geff(two, tmp_path / "t.geff")
    with pytest.raises(DataError):
        read_detections(tmp_path)  # a folder of something else

"""Lineage plots: where tracks stand, and what is drawn."""

from __future__ import annotations

import sys
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trellis.errors import DataError
from trellis.tracking.lineage import draw_lineage
from trellis.tracking.lineage_layout import lineage_layout
from trellis.tracking.result import Track, TrackingResult


def result(tracks):
    return TrackingResult([], [], tracks, [])


FAMILY = [
    Track("a", 1, 0, 3, -1),
    Track("a", 2, 0, 9, -1),
    Track("a", 3, 4, 6, 1),
    Track("a", 4, 4, 9, 1),
    Track("a", 5, 7, 9, 3),
    Track("a", 6, 7, 9, 3),
]


@st.composite
def forests(draw):
    """Tracks of random family trees, numbered as results number them."""
    tracks = []
    for number in range(1, draw(st.integers(1, 14)) + 1):
        ended = [t for t in tracks if sum(s.parent == t.track for s in tracks) < 2]
        parent = draw(st.sampled_from([None, *ended]))
        begin = draw(st.integers(0, 20)) if parent is None else parent.end + 1
        number_of_parent = -1 if parent is None else parent.track
        tracks.append(Track("", number, begin, begin + draw(st.integers(0, 6)), number_of_parent))
    return tracks


def test_rows_of_a_family():
    row, family, n_rows = lineage_layout(FAMILY)
    assert row == {1: 1.25, 3: 0.5, 5: 0.0, 6: 1.0, 4: 2.0, 2: 4.0}
    assert family == {1: 0, 3: 0, 5: 0, 6: 0, 4: 0, 2: -1}
    assert 4 < n_rows < 5


def test_lone_tracks_share_rows():
    tracks = [Track("", 1, 0, 2, -1), Track("", 2, 3, 4, -1), Track("", 3, 4, 4, -1)]
    row, _, n_rows = lineage_layout(tracks)
    assert row[1] == row[3] != row[2]  # 2 would touch 1
    assert n_rows == pytest.approx(1.2)


@settings(max_examples=60)
@given(forests())
def test_no_two_tracks_overlap(tracks):
    row, family, n_rows = lineage_layout(tracks)
    assert set(row) == set(family) == {t.track for t in tracks}
    assert max(row.values()) < n_rows
    for a, b in combinations(tracks, 2):
        if row[a.track] == row[b.track]:
            assert a.end < b.begin or b.end < a.begin
    for t in tracks:
        daughters = [row[d.track] for d in tracks if d.parent == t.track]
        if daughters:
            assert row[t.track] == (min(daughters) + max(daughters)) / 2
        if t.parent != -1:
            assert family[t.track] == family[t.parent]
    leaves = [
        t for t in tracks if family[t.track] >= 0 and t.track not in {d.parent for d in tracks}
    ]
    in_order = [family[t.track] for t in sorted(leaves, key=lambda t: row[t.track])]
    assert in_order == sorted(in_order)  # a family's leaves are consecutive
    assert sorted(row[t.track] for t in leaves) == list(range(len(leaves)))


@pytest.mark.parametrize(
    ("suffix", "mark"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("PDF", b"%PDF")]
)
def test_pictures(tmp_path, suffix, mark):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    paths = [tmp_path / f"{i}.{suffix}" for i in range(2)]
    for path in paths:
        draw_lineage(result(FAMILY), path)
    one, two = (path.read_bytes() for path in paths)
    assert one.startswith(mark)
    assert one == two


def test_sequences_stand_side_by_side(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    from matplotlib.figure import Figure

    saved = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, file, **_: saved.append(figure))
    many = [Track("b", i + 1, i % 3, 4 + i % 5, -1) for i in range(150)]
    for sequence in (None, "a"):
        draw_lineage(result([*FAMILY, *many]), tmp_path / "x.png", sequence=sequence)
    titles = [[axes.get_title() for axes in figure.axes] for figure in saved]
    assert titles == [["a: 6 tracks, 2 divisions", "b: 150 tracks, 0 divisions"], titles[0][:1]]
    assert (saved[0].get_size_inches() > saved[1].get_size_inches()).all()
    assert [len(axes.texts) for axes in saved[0].axes] == [6, 0]  # no numbers where lines are close


def test_lines_of_a_division():
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    from trellis.tracking.lineage import _figure

    (axes,) = _figure({"a": FAMILY}).axes
    lines = [line.vertices.tolist() for line in axes.collections[0].get_paths()]
    assert lines[0] == [[-0.3, 1.25], [3.5, 1.25]]
    assert lines[2] == [[3.5, 1.25], [3.5, 0.5], [6.5, 0.5]]
    assert lines[4] == [[6.5, 0.5], [6.5, 0.0], [9.3, 0.0]]
    assert axes.get_title() == "a: 6 tracks, 2 divisions"
    assert {text.get_text() for text in axes.texts} == set("123456")


def test_what_cannot_be_drawn(tmp_path, monkeypatch):
    with pytest.raises(
        DataError, match=r"cannot draw .*x.jpg: the name of a picture must end with"
    ):
        draw_lineage(result(FAMILY), tmp_path / "x.jpg")
    with pytest.raises(DataError, match="there is no sequence 'c' to draw; there are 'a'"):
        draw_lineage(result(FAMILY), tmp_path / "x.png", sequence="c")
    with pytest.raises(DataError, match="there are no tracks to draw"):
        draw_lineage(result([]), tmp_path / "x.png")
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(
        DataError, match="drawing lineages needs matplotlib: install it, or trellis"
    ):
        draw_lineage(result(FAMILY), tmp_path / "x.png")
    assert not list(tmp_path.iterdir())

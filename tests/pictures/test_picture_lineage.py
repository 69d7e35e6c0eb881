"""Lineage plots: where tracks stand, and what is drawn."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trellis.errors import DataError
from trellis.pictures import draw_lineage
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


@settings(max_examples=30)
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


def test_sequences_stand_side_by_side():
    many = [Track("b", i + 1, i % 3, 4 + i % 5, -1) for i in range(150)]
    both, one = (draw_lineage(result([*FAMILY, *many]), sequence=s) for s in (None, "a"))
    titles = [[axes.get_title() for axes in figure.axes] for figure in (both, one)]
    assert titles == [["a: 6 tracks, 2 divisions", "b: 150 tracks, 0 divisions"], titles[0][:1]]
    assert (both.get_size_inches() > one.get_size_inches()).all()
    assert [len(axes.texts) for axes in both.axes] == [6, 0]  # no numbers where lines are close


def test_lines_of_a_division():
    (axes,) = draw_lineage(result(FAMILY)).axes
    lines = [line.vertices.tolist() for line in axes.collections[0].get_paths()]
    assert lines[0] == [[-0.3, 1.25], [3.5, 1.25]]
    assert lines[2] == [[3.5, 1.25], [3.5, 0.5], [6.5, 0.5]]
    assert lines[4] == [[6.5, 0.5], [6.5, 0.0], [9.3, 0.0]]
    assert axes.get_title() == "a: 6 tracks, 2 divisions"
    assert {text.get_text() for text in axes.texts} == set("123456")


def test_neighbouring_families_differ_and_lone_tracks_are_grey():
    tracks = [*FAMILY, Track("a", 7, 0, 1, -1), Track("a", 8, 2, 3, 7), Track("a", 9, 2, 3, 7)]
    (axes,) = draw_lineage(result(tracks)).axes
    colours = [tuple(c) for c in axes.collections[0].get_colors()]
    assert colours[0] == colours[2] == colours[5] != colours[6] == colours[7]
    assert len(set(colours[1][:3])) == 1  # track 2 is grey


def test_title_of_one_and_of_several():
    other = [track._replace(sequence="b") for track in FAMILY]
    assert draw_lineage(result(FAMILY), title="Cells").axes[0].get_title() == "Cells"
    both = draw_lineage(result([*FAMILY, *other]), title="Cells")
    assert both.get_suptitle() == "Cells"
    assert both.axes[1].get_title().startswith("b: ")


def test_axes_of_the_user():
    from matplotlib.figure import Figure

    other = [track._replace(sequence="b") for track in FAMILY]
    axes = Figure().subplots(1, 2)
    draw_lineage(result([*FAMILY, *other]), ax=axes)
    assert axes[1].get_title() == "b: 6 tracks, 2 divisions"
    with pytest.raises(DataError, match="2 panels; give as many, or choose one by sequence"):
        draw_lineage(result([*FAMILY, *other]), ax=axes[0])


def test_what_cannot_be_drawn(tmp_path):
    with pytest.raises(DataError, match="there is no sequence 'c' to draw; there are 'a'"):
        draw_lineage(result(FAMILY), tmp_path / "x.png", sequence="c")
    with pytest.raises(DataError, match="there are no tracks to draw"):
        draw_lineage(result([]), tmp_path / "x.png")
    with pytest.raises(DataError, match="result must be a TrackingResult, got list"):
        draw_lineage(FAMILY)
    assert not list(tmp_path.iterdir())

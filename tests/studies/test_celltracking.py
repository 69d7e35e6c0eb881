"""Real movies of cells: counts as in their own description; thinning by composing links."""

from __future__ import annotations

import itertools
import lzma
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from studies.datasets.celltracking import drop_detections, load_cells
from trellis.datasets import LABS, simulate_cells
from trellis.errors import DataError
from trellis.tracking import FramePair, Objects, PairAnnotation, annotated_events


@pytest.fixture
def real(real_data, monkeypatch):
    monkeypatch.setenv("TRELLIS_DATA", str(real_data("celltracking").parent))
    return load_cells


def kinds(pairs):
    return Counter(kind for pair in pairs for *_, kind in pair.annotation.links)


def test_cellmigration(real):
    pairs = real("cellmigration")
    assert len(pairs) == 85
    assert len(pairs[0].source) + sum(len(p.target) for p in pairs) == 27_630
    assert kinds(pairs) == {"move": 25_516, "division": 202}  # one mother has a third daughter
    assert {"area", "mean_intensity"} <= set(pairs[0].source.columns)
    assert "track" not in pairs[0].source  # the truth is no feature


def test_epidermis(real):
    pairs = real("epidermis")
    assert Counter(p.sequence for p in pairs) == {"epidermis_area1": 14, "epidermis_area2": 14}
    # A parent with a single daughter moves: 17 and 30 of them.
    assert kinds(pairs) == {"move": 3_383 + 17 + 3_341 + 30, "division": 670 + 656}
    one = real("epidermis", sequences=["epidermis_area2"], frames=(3, 7))
    assert [(p.sequence, p.frame) for p in one] == [("epidermis_area2", t) for t in (3, 4, 5)]


# ------------------------------------------------------------------ a small copy

OBJECTS = """\
sequence,frame,id,x,y,area,track
s,0,0,0,0,9,1
s,0,1,50,50,9,2
s,0,2,90,90,9,-1
s,1,0,-1,0,5,3
s,1,1,1,0,5,4
s,1,2,51,50,9,2
s,2,0,-4,0,3,5
s,2,1,-2,0,3,6
s,2,2,1,0,3,7
s,2,3,2,0,3,8
s,2,4,52,50,9,2
s,3,0,-4,0,3,5
s,3,1,52,50,9,2
s,4,0,-4,0,3,5
s,4,1,52,49,4,9
s,4,2,52,53,4,10
"""
LINKS = """\
sequence,frame,source_id,target_id,kind
s,0,0,0,division
s,0,0,1,division
s,0,1,2,move
s,1,0,0,division
s,1,0,1,division
s,1,1,2,division
s,1,1,3,division
s,1,2,4,move
s,2,0,0,move
s,2,4,1,move
s,3,0,0,move
s,3,1,1,division
s,3,1,2,division
"""


@pytest.fixture
def small(tmp_path, monkeypatch):
    folder = tmp_path / "celltracking"
    folder.mkdir()
    for what, text in (("objects", OBJECTS), ("links", LINKS)):
        (folder / f"epidermis_{what}.csv.xz").write_bytes(lzma.compress(text.encode()))
    monkeypatch.setenv("TRELLIS_DATA", str(tmp_path))
    return folder


def test_thinning_composes_links(small):
    every = load_cells("epidermis")
    assert [p.frame for p in every] == [0, 1, 2, 3]
    first, second = load_cells("epidermis", thin=2)
    assert [first.frame, second.frame] == [0, 1]
    # Four grandchildren: the two nearest, at -2 and 1 (distances 4, 2, 1, 2; the first of equals).
    assert first.annotation.links == ((0, 1, "division"), (0, 2, "division"), (1, 4, "move"))
    assert first.annotation.complete
    assert second.annotation.links == ((0, 0, "move"), (4, 1, "division"), (4, 2, "division"))
    assert np.array_equal(second.target.position, every[3].target.position)
    (whole,) = load_cells("epidermis", thin=4)
    # Of object 0 only one grandchild is left, object 1 divided at last.
    assert whole.annotation.links == ((0, 0, "move"), (1, 1, "division"), (1, 2, "division"))
    assert whole.extent == every[0].extent


def test_frames_and_thinning(small):
    assert [p.frame for p in load_cells("epidermis", frames=(1, 4))] == [1, 2]
    (pair,) = load_cells("epidermis", frames=(1, 5), thin=2)  # frames 2 and 4
    assert pair.frame == 1
    assert len(pair.source) == 5


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"source": "dermis"}, r"unknown cells 'dermis'; known: cellmigration, epidermis"),
        ({"thin": 0}, r"thin must be an integer, at least 1; got 0"),
        ({"frames": 3}, r"frames must be a pair \(first, stop\) of integers, got 3"),
        ({"sequences": ["s", "t"]}, r"no sequence 't' in epidermis; known: s"),
        ({"frames": (3, 4)}, r"no two frames of epidermis are left by .* frames \(3, 4\)"),
        ({"thin": 5}, r"no two frames of epidermis are left by .* thin 5; take more"),
    ],
)
def test_bad_arguments(small, change, message):
    with pytest.raises(DataError, match=message):
        load_cells(**{"source": "epidermis", **change})


def test_missing_files(small, tmp_path, monkeypatch):
    with pytest.raises(DataError, match=r"cellmigration_objects"):
        load_cells("cellmigration")
    monkeypatch.setenv("TRELLIS_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(DataError, match=r"set TRELLIS_DATA to the folder of data"):
        load_cells("epidermis")


# ------------------------------------------------------------------ detections left out


def film(*notes):
    """Frames of objects 0, 1, … on a line, as many as the links name."""
    sizes = [
        1 + max([a for a, *_ in after] + [b for _, b, _ in before], default=0)
        for before, after in zip([(), *notes], [*notes, ()], strict=True)
    ]
    frames = [Objects(np.arange(n), np.stack([np.arange(n), np.zeros(n)], 1)) for n in sizes]
    return [
        FramePair("s", t, frames[t], frames[t + 1], PairAnnotation(note))
        for t, note in enumerate(notes)
    ]


def without(pairs, *gone):
    """Leave out these (frame, id): by the first seed that draws just them."""
    for seed in range(20_000):
        dropped = drop_detections(pairs, 0.3, seed=seed)
        frames = [pair.source for pair in dropped] + [dropped[-1].target]
        whole = [pair.source for pair in pairs] + [pairs[-1].target]
        lost = {
            (t, i)
            for t, (a, b) in enumerate(zip(whole, frames, strict=True))
            for i in set(a.ids.tolist()) - set(b.ids.tolist())
        }
        if lost == set(gone):
            return dropped
    raise AssertionError("no seed draws them")


MOVE, FORK = ((0, 0, "move"),), ((0, 0, "division"), (0, 1, "division"))
BOTH = ((0, 0, "move"), (1, 1, "move"))


@pytest.mark.parametrize(
    ("notes", "gone", "links", "gaps"),
    [
        ((MOVE, MOVE), [(1, 0)], [(), ()], [((0, 0, 2),), ()]),
        ((MOVE, MOVE, MOVE), [(1, 0), (2, 0)], [(), (), ()], [((0, 0, 3),), (), ()]),
        ((MOVE, MOVE), [(2, 0)], [MOVE, ()], [(), ()]),
        ((MOVE, MOVE), [(0, 0)], [(), MOVE], [(), ()]),
        ((FORK, BOTH), [(1, 1)], [((0, 0, "move"),), ((0, 0, "move"),)], [(), ()]),
        ((FORK, BOTH), [(1, 0), (1, 1)], [(), ()], [(), ()]),  # divided while it was missed
        ((MOVE, FORK), [(1, 0), (2, 1)], [(), ()], [((0, 0, 2),), ()]),
        ((MOVE, FORK), [], [MOVE, FORK], [(), ()]),
    ],
)
def test_links_of_what_is_left(notes, gone, links, gaps):
    pairs = without(film(*notes), *gone)
    assert [pair.annotation.links for pair in pairs] == links
    assert [pair.annotation.gaps for pair in pairs] == gaps
    annotated_events(pairs)


def test_detections_are_left_out_alike_in_both_pairs_of_a_frame():
    lab = replace(LABS["a"], over_segmentation=0.0, under_segmentation=0.0)
    whole = simulate_cells(60, 12, lab=lab, seed=0)
    pairs = drop_detections(whole, 0.1, seed=3)
    for a, b in itertools.pairwise(pairs):
        assert a.target is b.source
    n = sum(len(pair.source) for pair in whole)
    assert 0.07 * n < n - sum(len(pair.source) for pair in pairs) < 0.13 * n
    again = drop_detections(reversed(whole), 0.1, seed=3)
    assert [p.annotation for p in again] == [p.annotation for p in pairs]
    other = drop_detections(whole, 0.1, seed=4)
    assert [p.annotation for p in other] != [p.annotation for p in pairs]
    targets = Counter((k.frame_target, k.target_id) for k in annotated_events(pairs)[0])
    assert set(targets.values()) == {1}  # one past each
    same = drop_detections(whole, 0.0, seed=0)
    links = [{link for link in p.annotation.links if link[2] == "division"} for p in whole]
    assert [{k for k in p.annotation.links if k[2] == "division"} for p in same] == links


@pytest.mark.parametrize(
    ("note", "share", "message"),
    [
        (PairAnnotation(MOVE), 1.0, r"share must be at least 0 and less than 1, got 1\.0"),
        (None, 0.1, r"s, frame 0 must be annotated in full, without gaps"),
        (PairAnnotation(MOVE, (), ()), 0.1, r"s, frame 0 must be annotated in full"),
        (PairAnnotation(((0, 0, "split"),)), 0.1, r"s, frame 0 has a link of kind 'split'"),
    ],
)
def test_what_cannot_be_left_out(note, share, message):
    one = Objects(np.arange(1), np.zeros((1, 2)))
    with pytest.raises(DataError, match=message):
        drop_detections([FramePair("s", 0, one, one, note)], share, seed=0)

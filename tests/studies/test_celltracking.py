"""Real movies of cells: counts as in their own description; thinning by composing links."""

from __future__ import annotations

import lzma
from collections import Counter

import numpy as np
import pytest

from studies.datasets.celltracking import load_cells
from trellis.errors import DataError


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

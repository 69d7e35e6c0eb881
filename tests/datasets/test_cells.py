"""Simulated cells: every annotation is an assignment, nothing is lost, same seed same bits."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trellis.datasets.cells import LABS, Lab, _movie, simulate_cells
from trellis.errors import DataError

labs = st.builds(
    Lab,
    crowding=st.floats(0.05, 0.8),
    speed=st.floats(0, 30),
    persistence=st.floats(0, 1),
    drift=st.tuples(st.floats(-20, 20), st.floats(-20, 20)),
    cycle=st.floats(3, 20),
    death=st.floats(0, 0.3),
    noise=st.floats(0, 0.3),
    over_segmentation=st.floats(0, 1),
    under_segmentation=st.floats(0, 1),
    false_detections=st.floats(0, 0.3),
    fusion=st.just(0.0) | st.floats(0, 1),
)


def check_assignment(pair):
    """Each object has one fate or one past, and each kind the number of links it must have."""
    fates, pasts = {}, {}
    for i, j, kind in pair.annotation.links:
        assert 0 <= i < len(pair.source)
        assert 0 <= j < len(pair.target)
        fates.setdefault(i, []).append((j, kind))
        pasts.setdefault(j, []).append((i, kind))
    for ends, kinds_of_two in ((fates, {"division", "split"}), (pasts, {"merge", "fusion"})):
        for found in ends.values():
            kinds = {kind for _, kind in found}
            assert len(kinds) == 1
            assert len(found) == (2 if kinds & kinds_of_two else 1)
    assert pair.annotation.complete


@given(lab=labs, seed=st.integers(0, 2**32), n=st.integers(1, 60))
@settings(max_examples=40)
def test_annotations_are_assignments(lab, seed, n):
    pairs = simulate_cells(n, 6, lab=lab, seed=seed)
    assert len(pairs) == 5
    for t, pair in enumerate(pairs):
        assert pair.frame == t
        check_assignment(pair)
        for objects in (pair.source, pair.target):
            assert objects.ids.tolist() == list(range(len(objects)))
            x, y = objects.position.T
            assert (np.lexsort((x, y)) == np.arange(len(objects))).all()
            low, high = np.array(pair.extent[:2]), np.array(pair.extent[2:])
            assert ((objects.position >= low) & (objects.position <= high)).all()
            assert all(np.isfinite(v).all() for v in objects.columns.values())
            assert (objects["area"] > 0).all()
            assert (np.abs(objects["orientation"]) <= np.pi / 2).all()
            assert ((objects["eccentricity"] >= 0) & (objects["eccentricity"] < 1)).all()
    for first, second in pairwise(pairs):
        assert first.target is second.source


@given(lab=labs, seed=st.integers(0, 1000))
@settings(max_examples=15)
def test_no_cell_is_lost(lab, seed):
    """Detections are linked if and only if a cell, its mother or what it is made of is in both."""
    frames, _ = _movie(30, 6, lab, np.random.default_rng(seed))
    pairs = simulate_cells(30, 6, lab=lab, seed=seed)
    for pair, before, after in zip(pairs, frames[:-1], frames[1:], strict=True):
        expected = set()
        for i, a in enumerate(before.members.tolist()):
            for j, b in enumerate(after.members.tolist()):
                pasts = {after.mother_of.get(key, key) for key in b if key >= 0}
                pasts |= {after.fused[key] for key in b if key in after.fused}
                if pasts & set(a):
                    expected.add((i, j))
        assert {(i, j) for i, j, _ in pair.annotation.links} == expected
    for frame in frames:  # a cell is in one detection, or is both parts of itself
        seen = Counter(key for keys in frame.members.tolist() for key in keys if key >= 0)
        assert set(seen.values()) <= {1, 2}


def test_same_seed_same_bits():
    one, two, other = (simulate_cells(40, 4, lab="b", seed=s) for s in (3, 3, 4))
    for a, b in zip(one, two, strict=True):
        assert a.annotation == b.annotation
        assert (a.target.position == b.target.position).all()
        assert all((a.target[c] == b.target[c]).all() for c in a.target.columns)
    assert [p.sequence for p in (one[0], other[0])] == ["lab_b_3", "lab_b_4"]
    assert one[0].annotation != other[0].annotation


def test_perfect_eyes_and_immortal_cells():
    lab = Lab(death=0, over_segmentation=0, under_segmentation=0, false_detections=0, cycle=8)
    kinds = Counter(
        kind for p in simulate_cells(100, 10, lab=lab, seed=0) for *_, kind in p.annotation.links
    )
    assert set(kinds) == {"move", "division"}
    # Nothing but the border takes cells away.
    still = replace(lab, speed=0, drift=(0, 0), crowding=0.1, cycle=1000, regularity=1000)
    for pair in simulate_cells(50, 4, lab=still, seed=0):
        assert len(pair.annotation.links) == pytest.approx(len(pair.source), abs=2)


def test_cells_fuse_for_good():
    """Two that touch are one with the area of both, which goes on and divides no more."""
    sharp = {"noise": 0, "position_noise": 0, "death": 0, "false_detections": 0}
    perfect = {"over_segmentation": 0, "under_segmentation": 0}
    lab = Lab(crowding=0.4, cycle=30, fusion=0.05, **sharp, **perfect)
    frames, _ = _movie(200, 10, lab, np.random.default_rng(1))
    pairs = simulate_cells(200, 10, lab=lab, seed=1)
    n_fused = 0
    for pair, before, after in zip(pairs, frames[:-1], frames[1:], strict=True):
        fused = {}
        for i, j, kind in pair.annotation.links:
            if kind == "fusion":
                fused.setdefault(j, []).append(i)
        for j, (a, b) in fused.items():
            one, two = pair.source.position[[a, b]]
            areas = pair.source["area"][[a, b]]
            assert np.hypot(*(one - two)) < 1.2 * np.sqrt(areas / np.pi).sum()  # they touch
            # They do not grow that time, but one that rounds up looks smaller.
            assert areas.sum() == pytest.approx(pair.target["area"][j], rel=0.11)
            keys = {int(before.members[i, 0]) for i in (a, b)}
            assert keys & set(after.members[j].tolist())
        n_fused += len(fused)
        later = {key for frame in frames[pair.frame + 2 :] for key in frame.mother_of.values()}
        assert not later & after.fused.keys()  # they divide no more
        assert not {*after.fused.values()} & {
            k for f in frames[pair.frame + 1 :] for k in f.members[:, 0]
        }
    assert n_fused > 20
    kinds = {kind for pair in pairs for *_, kind in pair.annotation.links}
    assert kinds == {"move", "division", "fusion"}


def gains(pairs, column, kind):
    """Ratios of a column of the source to the mean of its frame, for the links of a kind."""
    return np.array(
        [p.source[column][i] / p.source[column].mean() for p in pairs
         for i, _, k in p.annotation.links if k == kind]
    )  # fmt: skip


@pytest.mark.parametrize("name", ["a", "b"])
def test_divisions_look_like_divisions(name):
    pairs = simulate_cells(200, 12, lab=name, seed=1)
    assert gains(pairs, "mean_intensity", "division").mean() > 1.3
    assert gains(pairs, "mean_intensity", "move").mean() < 1.05
    assert gains(pairs, "area", "division").mean() > 1.2
    ratios, cosines = [], []
    for p in pairs:
        links = [link for link in p.annotation.links if link[2] == "division"]
        for (i, a, _), (_, b, _) in zip(links[::2], links[1::2], strict=True):
            ratios.append(p.target["area"][[a, b]].sum() / p.source["area"][i])
            away = p.target.position[[a, b]] - p.source.position[i]
            cosines.append(away[0] @ away[1] / np.prod(np.linalg.norm(away, axis=1)))
    assert np.mean(ratios) == pytest.approx(1.1, abs=0.1)  # the mother had rounded up
    assert np.mean(cosines) < -0.5


def test_all_kinds_in_both_labs():
    for name in LABS:
        pairs = simulate_cells(300, 10, lab=name, seed=0)
        kinds = Counter(kind for p in pairs for *_, kind in p.annotation.links)
        assert set(kinds) == {"move", "division", "split", "merge"}
        unlinked = [
            (len(p.source) - len({i for i, *_ in p.annotation.links}),
             len(p.target) - len({j for _, j, _ in p.annotation.links})) for p in pairs
        ]  # fmt: skip
        assert np.min(np.sum(unlinked, axis=0)) > 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"lab": "c"}, r"unknown lab 'c'; known: a, b, or give a Lab"),
        ({"n_cells": 0}, r"n_cells must be a positive integer, got 0"),
        ({"n_cells": 2.0}, r"n_cells must be a positive integer"),
        ({"n_frames": 1}, r"n_frames must be an integer of at least 2, got 1"),
        ({"seed": -1}, r"seed must be an integer of at least 0, got -1"),
        ({"seed": None}, r"seed must be an integer of at least 0, got None"),
    ],
)
def test_bad_arguments(change, message):
    with pytest.raises(DataError, match=message):
        simulate_cells(**{"seed": 0, **change})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"death": 1.5}, r"death of a Lab must be a number from 0 to 1, got 1.5"),
        ({"fusion": -0.1}, r"fusion of a Lab must be a number from 0 to 1, got -0.1"),
        ({"cycle": 1}, r"cycle of a Lab must be a number of at least 3, got 1"),
        ({"speed": float("inf")}, r"speed of a Lab must be a number of at least 0, got inf"),
        ({"speed": "fast"}, r"speed of a Lab must be a number of at least 0, got 'fast'"),
        ({"noise": float("nan")}, r"noise of a Lab"),
        ({"drift": (1,)}, r"drift of a Lab must be two finite numbers, got \(1,\)"),
        ({"drift": 3}, r"drift of a Lab must be two finite numbers, got 3"),
    ],
)
def test_bad_lab(change, message):
    with pytest.raises(DataError, match=message):
        Lab(**change)

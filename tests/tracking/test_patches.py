"""Patches: every object in one, nothing said that the whole pair does not say, every error."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trellis.errors import DataError
from trellis.tracking.annotation import annotated_hypotheses, fixed_variables
from trellis.tracking.hypotheses import make_hypotheses
from trellis.tracking.objects import EVENTS, FramePair, Objects, PairAnnotation
from trellis.tracking.patches import patchify

EXTENT = (0.0, 0.0, 20.0, 12.0)


def some_pair(seed, n=14, m=14, complete=True, extent=EXTENT):
    """Random objects, and a random annotation with every kind of event."""
    rng = np.random.default_rng(seed)

    def frame(size):
        position = rng.random((size, 2)) * [20, 12]
        return Objects(100 + rng.permutation(size), position, {"area": position.sum(axis=1)})

    pair = FramePair("film", 4, frame(n), frame(m), extent=extent)
    sources, targets = (
        rng.permutation(pair.source.ids.copy()),
        rng.permutation(pair.target.ids.copy()),
    )
    a, b = sources.tolist(), targets.tolist()
    links = []
    while a and b and rng.random() < 0.9:
        kind = rng.choice(["move", "move", "division", "split", "merge"])
        many = 1 + (kind != "move")
        if len(a) < many or len(b) < many:
            break
        if kind == "merge":
            links += [(a.pop(), b[-1], "merge"), (a.pop(), b.pop(), "merge")]
        else:
            links += [(a[-1], b.pop(), str(kind)) for _ in range(many)]
            a.pop()
    known = () if complete else (tuple(a[::2]), tuple(b[::2]))
    return replace(pair, annotation=PairAnnotation(tuple(links), *known))


def facts(pair):
    """What an annotation says, by ids."""
    h = annotated_hypotheses(pair, pair.annotation)
    return {
        (
            EVENTS[kind],
            tuple(sorted(pair.source.ids[a[a >= 0]].tolist())),
            tuple(sorted(pair.target.ids[b[b >= 0]].tolist())),
        )
        for kind, a, b in zip(h.kind, h.source, h.target, strict=True)
    }


@given(st.integers(0, 10_000), st.sampled_from([3.0, 5.0, 7.0, 50.0, "auto"]), st.booleans())
@settings(max_examples=25)
def test_patches_say_what_the_pair_says(seed, size, complete):
    pair = some_pair(seed, complete=complete)
    patches = patchify([pair], size, objects=4)
    for whole, part in ((pair.source, "source"), (pair.target, "target")):
        parts = [getattr(patch, part) for patch in patches]
        ids = np.concatenate([p.ids for p in parts])
        assert sorted(ids) == sorted(whole.ids)  # each in exactly one
        order = np.argsort(ids)
        for column in (lambda o: o.position, lambda o: o["area"]):
            stacked = np.concatenate([column(p) for p in parts])
            np.testing.assert_array_equal(stacked[order], column(whole)[np.argsort(whole.ids)])
    told = [facts(patch) for patch in patches]
    inside = set()
    for fact in facts(pair):
        _, sources, targets = fact
        if any(
            {*sources} <= {*patch.source.ids.tolist()}
            and {*targets} <= {*patch.target.ids.tolist()}
            for patch in patches
        ):
            inside.add(fact)
    assert set().union(*told) == inside  # all that lies in a patch, and no more
    assert sum(map(len, told)) == len(inside)
    for patch, said in zip(patches, told, strict=True):
        assert (patch.sequence, patch.frame, patch.extent) == ("film", 4, EXTENT)
        assert len(patch.source) + len(patch.target) > 0
        h = make_hypotheses(patch, events=EVENTS, max_distance=30.0)
        assert (fixed_variables(patch, h, patch.annotation) == 1).sum() == len(said)
        n_told = sum(len(sources) + len(targets) for _, sources, targets in said)
        n_objects = len(patch.source) + len(patch.target)
        assert patch.annotation.complete == (n_told == n_objects)


@given(st.integers(0, 10_000), st.sampled_from([2.5, 4.0, 6.0]))
@settings(max_examples=20)
def test_patches_are_squares_of_the_grid(seed, size):
    """Of the size asked for, up to half of it more or less at the far ends."""
    pair = some_pair(seed)
    cells = []
    for patch in patchify([pair], size):
        position = np.concatenate([patch.source.position, patch.target.position])
        last = np.maximum(1, np.rint(np.array([20, 12]) / size)) - 1
        cell = {tuple(np.minimum(np.floor(p / size), last)) for p in position}
        assert len(cell) == 1
        cells += cell
    assert len(set(cells)) == len(cells)
    assert cells == sorted(cells, key=lambda c: (c[1], c[0]))  # row by row


def test_annotation_is_not_needed_and_does_not_matter():
    pair = some_pair(1)
    with_it, without = patchify([pair], 5.0), patchify([replace(pair, annotation=None)], 5.0)
    assert all(patch.annotation is None for patch in without)
    for a, b in zip(with_it, without, strict=True):
        np.testing.assert_array_equal(a.source.ids, b.source.ids)
        np.testing.assert_array_equal(a.target.ids, b.target.ids)


def test_division_across_a_border():
    """One daughter beyond the border: nothing is known of any of the three, nor said to be new."""
    before = Objects(np.array([1]), np.array([[4.0, 1.0]]))
    after = Objects(np.array([2, 3, 4]), np.array([[3.0, 1.0], [6.0, 1.0], [1.0, 1.0]]))
    note = PairAnnotation(((1, 2, "division"), (1, 3, "division")))
    pair = FramePair("film", 0, before, after, note, extent=(0.0, 0.0, 10.0, 5.0))
    left, right = patchify([pair], 5.0)
    assert left.annotation == PairAnnotation((), (), (4,))
    assert right.annotation == PairAnnotation((), None, ())
    h = make_hypotheses(left, max_distance=9.0)
    fixed = fixed_variables(left, h, left.annotation)
    free = {(EVENTS[k], t) for k, t, f in zip(h.kind, h.target[:, 0], fixed, strict=True) if f < 0}
    assert free == {("move", 0), ("appear", 0), ("disappear", -1)}


def test_auto_finds_the_size():
    rng = np.random.default_rng(0)

    def pair(n, side):
        cells = Objects(np.arange(n), rng.random((n, 2)) * side)
        return FramePair("film", 0, cells, cells, extent=(0.0, 0.0, side, side))

    patches = patchify([pair(600, 100.0), pair(600, 100.0)], "auto", objects=20)
    assert 50 <= len(patches) <= 72
    assert len(patchify([pair(15, 10.0)], objects=20)) == 1


def test_field_unknown():
    """Without a field of view, the objects are divided by where they are."""
    infinite = (-np.inf, -np.inf, np.inf, np.inf)
    pair = some_pair(2, n=60, m=60, extent=infinite)
    patches = patchify([pair], objects=10)
    assert 4 <= len(patches) <= 9
    assert all(patch.extent == infinite for patch in patches)


def test_no_objects_and_no_area():
    empty = replace(some_pair(0, n=0, m=0), annotation=None)
    assert patchify([], 5.0) == patchify([], "auto") == patchify([empty], "auto") == []
    cells = Objects(np.arange(3), np.ones((3, 2)))
    (patch,) = patchify([FramePair("film", 0, cells, cells)], "auto", objects=1)
    assert len(patch.source) == 3
    targets_only = some_pair(3, n=0, m=4)
    assert sum(len(patch.target) for patch in patchify([targets_only], 5.0)) == 4
    assert sum(len(patch.target) for patch in patchify([targets_only], "auto")) == 4


@pytest.mark.parametrize("size", [0.0, -1.0, np.nan, np.inf, "small"])
def test_bad_size(size):
    with pytest.raises(DataError, match="size must be 'auto' or a positive number, got"):
        patchify([some_pair(0)], size)


def test_other_errors():
    pair = some_pair(0)
    with pytest.raises(DataError, match=r"objects must be a number of at least 1, got 0\.5"):
        patchify([pair], objects=0.5)
    with pytest.raises(DataError, match="frame 4: patches of size 1e-09 would divide the field"):
        patchify([pair], 1e-9)
    lost = replace(pair.source, position=np.full((14, 2), np.nan))
    with pytest.raises(DataError, match="'film', frame 4: a centre is not finite"):
        patchify([replace(pair, source=lost)], 5.0)
    wrong = replace(pair, annotation=PairAnnotation(((999, 100, "move"),)))
    with pytest.raises(DataError, match="names object 999"):
        patchify([wrong], 5.0)

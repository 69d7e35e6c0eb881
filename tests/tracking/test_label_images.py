"""Label images as frame pairs: objects, relations, links, and what does not fit."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trellis.datasets import render_cells, simulate_cells, simulate_volume
from trellis.errors import DataError
from trellis.tracking import TrackingModel, read_label_images, score_links, write_ctc
from trellis.tracking.image_frames import ImageMovie
from trellis.tracking.result import annotated_events


def blobs(*frames, shape=(9, 12)):
    """Frames of squares (label, y, x, side)."""
    movie = np.zeros((len(frames), *shape), np.uint16)
    for t, squares in enumerate(frames):
        for label, y, x, side in squares:
            movie[t, y : y + side, x : x + side] = label
    return movie


def test_objects_and_relations():
    masks = blobs([(5, 0, 0, 4), (2, 0, 8, 2)], [(1, 1, 0, 2), (7, 1, 3, 3), (3, 6, 8, 2)])
    images = np.where(masks > 0, 10.0 * masks, 4.0)
    (pair,) = read_label_images(masks, images, pixels="published")
    assert pair.source.ids.tolist() == [1, 4]
    assert pair.target.ids.tolist() == [0, 2, 6]
    assert pair.source.position.tolist() == [[8.5, 0.5], [1.5, 1.5]]
    assert pair.extent == (-0.5, -0.5, 11.5, 8.5)
    shared = pair.relations["overlap"].toarray()
    np.testing.assert_array_equal(shared, shared.T)
    assert shared[1, 2] == 4  # label 5 and label 1
    assert shared[1, 4] == 3  # label 5 and label 7
    assert shared.diagonal().tolist() == [0, 7, 4, 0, 3]
    # Labels 1 and 7: a square of 2, one of 3 beside it, a column between them.
    hulls, filling = (pair.relations[name].toarray() for name in ("hull", "filling"))
    assert hulls[2, 4] == hulls[4, 2] == 16.5
    assert filling[2, 4] == 4.0
    assert hulls[0, 1] == 34
    assert set(read_label_images(masks, images, pixels="overlap")[0].relations) == {"overlap"}
    assert not read_label_images(masks, images)[0].relations


@given(st.integers(0, 10**6))
@settings(max_examples=10, deadline=None)
def test_hulls_are_of_all_that_may_meet(seed):
    """Every two of the nearest of an object have a hull; no fewer than a model asks for."""
    from trellis.tracking import make_hypotheses

    drawn = render_cells(simulate_cells(25, 3, lab="b", seed=seed))
    pair = read_label_images(drawn.masks, pixels="published")[0]
    h = make_hypotheses(
        pair, events=("move", "division", "appear", "disappear", "merge"), n_neighbors=6,
        max_distance=1e9,
    )  # fmt: skip
    n, hulls = len(pair.source), pair.relations["hull"]
    known = set(zip(*map(np.ndarray.tolist, hulls.tocoo().coords), strict=True))
    for kind, (j, k) in ((1, h.target[h.kind == 1].T + n), (5, h.source[h.kind == 5].T)):
        assert (h.kind == kind).sum() == len(j)
        assert set(zip(j.tolist(), k.tolist(), strict=True)) <= known


def test_spacing_is_the_size_of_a_pixel():
    movie = simulate_volume(5, 3, seed=1)
    given = (movie.masks, movie.images, movie.links)
    one = read_label_images(*given, pixels="overlap")[0]
    other = read_label_images(*given, spacing=(3.0, 1.0, 0.5), pixels="overlap")[0]
    np.testing.assert_allclose(other.source.position, one.source.position * [0.5, 1.0, 3.0])
    np.testing.assert_allclose(other.source["area"], 1.5 * one.source["area"])
    np.testing.assert_allclose(
        other.relations["overlap"].toarray(), 1.5 * one.relations["overlap"].toarray()
    )
    np.testing.assert_allclose(np.array(other.extent), np.array(one.extent) * ([0.5, 1, 3] * 2))
    assert set(one.relations) == {"overlap"}


def test_a_volume_of_one_slice_is_tracked_as_an_image():
    drawn = render_cells(simulate_cells(20, 6, lab="b", seed=3))
    flat = read_label_images(drawn.masks, drawn.images, pixels="overlap")
    deep = read_label_images(drawn.masks[:, None], drawn.images[:, None], pixels="overlap")
    assert deep[0].extent[2] == deep[0].extent[5]
    for a, b in zip(flat, deep, strict=True):
        np.testing.assert_array_equal(a.source.position, b.source.position[:, :2])
        np.testing.assert_array_equal(a.source["area"], b.source["area"])
        np.testing.assert_array_equal(
            a.relations["overlap"].toarray(), b.relations["overlap"].toarray()
        )


def test_two_frames_are_in_memory():
    alive = weakref.WeakSet()
    most = 0

    def frames():
        nonlocal most
        for t in range(9):
            gc.collect()
            most = max(most, len(alive))
            frame = blobs([(1, 2, t % 3, 4)])[0].view(_Frame)
            alive.add(frame)
            yield f"frame {t}", frame
            del frame

    assert len(read_label_images(ImageMovie("", "film", range(9), frames))) == 8
    assert most <= 2


class _Frame(np.ndarray):
    __hash__ = object.__hash__


def test_links_of_a_table_and_of_tracks(tmp_path):
    masks = blobs(
        [(1, 0, 0, 3)], [(1, 0, 1, 3)], [(2, 0, 0, 2), (3, 0, 4, 2)], [(2, 0, 0, 2)],
        [(2, 0, 0, 2), (3, 0, 4, 2)],
    )  # fmt: skip
    (tmp_path / "man_track.txt").write_text("1 0 1 0\n2 2 4 1\n3 2 4 1\n")
    for links in (tmp_path, tmp_path / "man_track.txt", {"": str(tmp_path)}):
        pairs = read_label_images(masks, links=links)
        assert [pair.annotation.links for pair in pairs] == [
            ((0, 0, "move"),),
            ((0, 1, "division"), (0, 2, "division")),
            ((1, 1, "move"),),
            ((1, 1, "move"),),
        ]
        assert pairs[2].annotation.gaps == ((2, 2, 4),)
    table = {"frame": [0], "source_id": [0], "target_id": [0]}
    pairs = read_label_images(masks, links=table, complete=False)
    assert pairs[0].annotation.links == ((0, 0, "move"),)
    assert not pairs[0].annotation.complete
    assert pairs[1].annotation is None


def test_sequences_and_frames_keep_their_names():
    movie = blobs([(1, 0, 0, 3)], [(1, 0, 1, 3)], [(4, 0, 1, 3)])
    pairs = read_label_images({"b": movie, "a": movie[:2]})
    assert [(pair.sequence, pair.frame) for pair in pairs] == [("a", 0), ("b", 0), ("b", 1)]
    late = ImageMovie("", "film", [7, 8], lambda: iter([("x", movie[0]), ("y", movie[1])]))
    assert [pair.frame for pair in read_label_images(late)] == [7]


def test_an_empty_frame_ends_tracks():
    masks = blobs([(1, 0, 0, 3)], [(1, 0, 1, 3)], [], [(1, 0, 1, 3)], [(1, 0, 1, 3)])
    assert [pair.frame for pair in read_label_images(masks)] == [0, 3]


@pytest.mark.parametrize(
    ("masks", "given", "message"),
    [
        (np.zeros((3, 4, 4), int), {}, "masks: there are no labels, only background"),
        (
            np.random.default_rng(0).integers(0, 4000, (2, 40, 40)),
            {},
            r"masks, frame 0: \d+ labels, and hardly a pixel has that of its neighbour; is this an",
        ),
        (blobs([(1, 0, 0, 3)]), {}, "masks has one frame; tracking needs two at least"),
        (np.zeros((3, 4, 4)), {}, "masks, frame 0: label images hold whole numbers, this one fl"),
        (
            blobs([(1, 0, 0, 3)], [(1, 0, 0, 3)]),
            {"spacing": (1.0, 2.0, 3.0)},
            r"spacing has 3 numbers, masks has images of 2 axes; give one for each, \(y, x\)",
        ),
        (
            blobs([(1, 0, 0, 3)], [(1, 0, 0, 3)]),
            {"spacing": (1.0, 0.0)},
            "spacing must be sizes of a pixel, positive numbers",
        ),
        (
            blobs([(1, 0, 0, 3)], [(1, 0, 0, 3)]),
            {"images": np.zeros((2, 9, 11))},
            r"images, frame 0: the image has the shape \(9, 11\), the masks of masks, frame 0 have",
        ),
        (
            blobs([(1, 0, 0, 3)], [(1, 0, 0, 3)]),
            {"images": np.zeros((1, 9, 12))},
            "images has no image of frame 1, which masks has",
        ),
        (
            blobs([(1, 0, 0, 3)], [(1, 0, 0, 3)]),
            {"images": np.zeros((2, 9, 12), complex)},
            "images, frame 0: intensities are numbers, got complex128",
        ),
        (
            blobs([(1, 0, 0, 3)], [(1, 0, 0, 3)]),
            {"images": {"a": np.zeros((2, 9, 12))}},
            "masks has the sequences '', images has 'a'; there must be images",
        ),
        (
            {"a": blobs([(1, 0, 0, 3)] * 1, [(1, 0, 0, 3)]), "b": np.ones((2, 2, 3, 3), int)},
            {},
            r"some sequences are of images \(Y, X\), others of volumes \(Z, Y, X\); read",
        ),
        (blobs([(1, 0, 0, 3)], [(1, 0, 0, 3)]), {"complete": 7}, "complete must be"),
    ],
)
def test_what_does_not_fit(masks, given, message):
    with pytest.raises(DataError, match=message):
        read_label_images(masks, **given)


def test_more_images_than_masks_are_passed_over():
    masks = blobs([(1, 0, 0, 3)], [(1, 0, 1, 3)])
    images = np.arange(4.0)[:, None, None] * np.ones((4, 9, 12))
    late = ImageMovie("", "film", [1, 2], lambda: iter([("a", masks[0]), ("b", masks[1])]))
    (pair,) = read_label_images(late, images)
    assert pair.source["mean_intensity"].tolist() == [1.0]
    assert pair.target["mean_intensity"].tolist() == [2.0]


@pytest.mark.parametrize("movie", ["plane", "space"])
def test_from_images_to_tracks(tmp_path, movie):
    """All the way: learned from one movie, tracked in another, written with its masks."""
    if movie == "plane":
        first, second = (render_cells(simulate_cells(25, 7, lab="b", seed=seed)) for seed in (0, 1))
    else:
        first, second = (simulate_volume(12, 9, seed=seed) for seed in (0, 1))
    learned, others = (
        read_label_images(m.masks, m.images, m.links, pixels="overlap") for m in (first, second)
    )
    model = TrackingModel().fit(learned)
    assert "overlap" in model.hypothesis_space_.relations
    result = model.predict(others)
    truth = annotated_events(others)[0]
    assert score_links(truth, result.links).links.f1 > 0.9
    write_ctc(result, tmp_path, masks=second.masks)
    assert len(list(tmp_path.glob("mask*.tif"))) == len(second.masks)
    labels = {(seen.frame, seen.id): seen.track for seen in result.objects}
    assert len(labels) == len(result.objects)


def test_a_frame_without_objects_in_between():
    """Tracks may go on over it, and overlap is known of consecutive frames only."""
    drawn = render_cells(simulate_cells(25, 9, lab="b", seed=5))
    masks = drawn.masks.copy()
    masks[5] = 0
    pairs = read_label_images(masks, drawn.images)
    assert [pair.frame for pair in pairs] == [0, 1, 2, 3, 6, 7]
    result = TrackingModel().fit(pairs).predict(pairs)
    assert {seen.frame for seen in result.objects} == {0, 1, 2, 3, 4, 6, 7, 8}

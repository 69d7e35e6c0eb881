"""Movies from TIFF files and Zarr folders, as other programs write them."""

from __future__ import annotations

import numpy as np
import pytest

from trellis.errors import DataError
from trellis.tracking import read_label_images, write_ctc
from trellis.tracking.image_frames import open_movies
from trellis.tracking.result import Track, TrackedObject, TrackingResult

pytestmark = [
    pytest.mark.extras,
    pytest.mark.filterwarnings("ignore:.*are stored as RGB:DeprecationWarning"),
]
tifffile = pytest.importorskip("tifffile", reason="tifffile is not installed")

MOVIE = np.random.default_rng(0).integers(0, 5, (3, 6, 7)).astype(np.uint16)


def everything(source):
    (movie,) = open_movies(source, "masks")
    return list(movie.numbers), np.stack(list(movie))


@pytest.mark.parametrize(
    "pattern", ["mask{:03}.tif", "man_seg{:04}.TIF", "t{}.tiff", "a1_c{:02}.tif"]
)
@pytest.mark.parametrize("movie", [MOVIE, np.stack([MOVIE, MOVIE + 1])])
def test_folders(tmp_path, pattern, movie):
    for t, frame in enumerate(movie, start=9):
        tifffile.imwrite(tmp_path / pattern.format(t), frame)
    (tmp_path / "man_track.txt").write_text("")
    numbers, frames = everything(tmp_path)
    assert numbers == list(range(9, 9 + len(movie)))
    np.testing.assert_array_equal(frames, movie)


@pytest.mark.parametrize("kind", ["<u2", ">u2", "u1", "i4"])
@pytest.mark.parametrize(
    "given",
    [
        {},
        {"compression": "zlib"},
        {"imagej": True},
        {"photometric": "minisblack", "metadata": {"axes": "TYX"}},
        {"ome": True, "metadata": {"axes": "TYX"}},
    ],
)
def test_stacks(tmp_path, kind, given):
    if given.get("imagej") and kind == "i4":
        pytest.skip("ImageJ has no such pixels")
    movie = MOVIE.astype(kind)
    tifffile.imwrite(tmp_path / "a.tif", movie, **given)
    numbers, frames = everything(tmp_path / "a.tif")
    assert numbers == [0, 1, 2]
    np.testing.assert_array_equal(frames, movie)


@pytest.mark.parametrize("given", [{"imagej": True}, {"ome": True}, {"compression": "zlib"}])
def test_stacks_of_volumes(tmp_path, given):
    movie = np.stack([MOVIE, MOVIE + 1])
    tifffile.imwrite(tmp_path / "a.tif", movie, metadata={"axes": "TZYX"}, **given)
    np.testing.assert_array_equal(everything(tmp_path / "a.tif")[1], movie)


def test_lzw_is_read(tmp_path):
    pytest.importorskip("imagecodecs", reason="imagecodecs is not installed")
    tifffile.imwrite(tmp_path / "a.tif", MOVIE, compression="lzw")
    np.testing.assert_array_equal(everything(tmp_path / "a.tif")[1], MOVIE)


def test_pages_written_one_by_one(tmp_path):
    with tifffile.TiffWriter(tmp_path / "a.tif") as file:
        for frame in MOVIE:
            file.write(frame, contiguous=False)
    np.testing.assert_array_equal(everything(tmp_path / "a.tif")[1], MOVIE)


def test_zarr(tmp_path):
    zarr = pytest.importorskip("zarr", reason="zarr is not installed")
    zarr.save_array(str(tmp_path / "a.zarr"), MOVIE)
    np.testing.assert_array_equal(everything(tmp_path / "a.zarr")[1], MOVIE)
    group = zarr.open_group(str(tmp_path / "b.zarr"), mode="w")
    group.create_array("0", data=np.stack([MOVIE, MOVIE])[:, None])
    group.create_array("1", data=np.stack([MOVIE, MOVIE])[:, None, :, ::2, ::2])
    np.testing.assert_array_equal(everything(tmp_path / "b.zarr")[1], np.stack([MOVIE, MOVIE]))
    group = zarr.open_group(str(tmp_path / "c.zarr"), mode="w")
    for name in ("left", "right"):
        group.create_array(name, data=MOVIE)
    assert [m.name for m in open_movies(tmp_path / "c.zarr", "masks")] == ["left", "right"]
    zarr.open_group(str(tmp_path / "d.zarr"), mode="w")
    with pytest.raises(DataError, match=r"d.zarr has no arrays"):
        open_movies(tmp_path / "d.zarr", "masks")
    (tmp_path / "e.zarr").mkdir()
    with pytest.raises(DataError, match=r"cannot read .*e.zarr: "):
        open_movies(tmp_path / "e.zarr", "masks")


def test_bad_folders(tmp_path):
    def folder(name, files):
        place = tmp_path / name
        place.mkdir()
        for file, frame in files.items():
            tifffile.imwrite(place / file, frame)
        return place

    one = MOVIE[0]
    for files, message in (
        (
            {"mask0.tif": one, "mask2.tif": one},
            "frame 1 is missing, between mask0.tif and mask2.tif",
        ),
        ({"mask.tif": one}, "no number in the name says which frame it is"),
        ({"mask1.tif": one, "t01.tif": one}, "both have the number 1; keep the images of one kind"),
        ({"m0.tif": one, "m1.tif": one[:3]}, "m1.tif: the image has the size 3 × 7, that of"),
        (
            {"m0.tif": np.zeros((5, 5, 3), "u1"), "m1.tif": one},
            "has colours or channels .axes YXS.",
        ),
        ({"m0.tif": one.astype("f4"), "m1.tif": one}, "m0.tif: label images hold whole numbers"),
        ({"m0.tif": one * 0, "m1.tif": one * 0}, "there are no labels, only background"),
        ({"m0.tif": one}, "has one frame; tracking needs two at least"),
    ):
        with pytest.raises(DataError, match=message):
            read_label_images(folder(f"f{len(list(tmp_path.iterdir()))}", files))


def test_damaged_files(tmp_path):
    tifffile.imwrite(tmp_path / "whole.tif", MOVIE, compression="zlib")
    data = (tmp_path / "whole.tif").read_bytes()
    for name, damaged in (("a", b"no image"), ("b", b""), ("c", data[:90]), ("d", data[:-9])):
        path = tmp_path / f"{name}.tif"
        path.write_bytes(damaged)
        with pytest.raises(DataError, match=r"cannot read .*\.tif: .*; is the file damaged|\.tif"):
            everything(path)
    tifffile.imwrite(tmp_path / "e.tif", MOVIE[0])
    with pytest.raises(DataError, match=r"e.tif is one image \(6, 7\), not a movie; give a stack"):
        everything(tmp_path / "e.tif")
    with tifffile.TiffWriter(tmp_path / "f.tif") as file:
        file.write(MOVIE[0])
        file.write(MOVIE[0, :3])
    with pytest.raises(
        DataError, match=r"f.tif holds images of different sizes or types, 6 × 7 uint16 and"
    ):
        everything(tmp_path / "f.tif")


@pytest.mark.parametrize("shape", [(2, 6, 7), (2, 3, 6, 7), (2, 1, 6, 7)])
def test_masks_that_are_written_are_read(tmp_path, shape):
    masks = np.random.default_rng(1).integers(0, 6, shape).astype(np.uint16)
    seen = [
        TrackedObject("", t, int(i) - 1, n, 0.0, 0.0)
        for n, (t, i) in enumerate(
            ((t, i) for t in range(2) for i in np.unique(masks[t]) if i), start=1
        )
    ]
    tracks = [Track("", one.track, one.frame, one.frame, -1) for one in seen]
    write_ctc(TrackingResult([], [], tracks, seen), tmp_path, masks=masks)
    labels = {(one.frame, one.id + 1): one.track for one in seen}
    frames = everything(tmp_path)[1].reshape(shape)
    for t in range(2):
        wanted = np.vectorize(lambda value, t=t: labels.get((t, value), 0))(masks[t])
        np.testing.assert_array_equal(frames[t], wanted)
        assert tifffile.imread(tmp_path / f"mask00{t}.tif").dtype == np.uint16

"""Movies of images from arrays and NumPy's files, one frame in memory at a time."""

from __future__ import annotations

import sys
import tracemalloc
import zipfile

import numpy as np
import pytest

from trellis.errors import DataError
from trellis.tracking.image_frames import ImageMovie, checked_labels, is_images, open_movies

MOVIE = np.random.default_rng(0).integers(0, 5, (4, 6, 7)).astype(np.uint16)


def everything(source):
    (movie,) = open_movies(source, "masks")
    assert len(movie) == len(movie.numbers)
    return np.stack(list(movie))


@pytest.mark.parametrize("movie", [MOVIE, MOVIE.reshape(2, 2, 6, 7), MOVIE.astype(">i4")])
def test_arrays_and_files_of_them(tmp_path, movie):
    np.testing.assert_array_equal(everything(movie), movie)
    np.testing.assert_array_equal(everything(movie.tolist()), movie)
    np.save(tmp_path / "a.npy", movie)
    np.testing.assert_array_equal(everything(tmp_path / "a.npy"), movie)
    for save in (np.savez, np.savez_compressed):
        save(tmp_path / "a.npz", cells=movie)
        np.testing.assert_array_equal(everything(str(tmp_path / "a.npz")), movie)
    np.savez(tmp_path / "f.npz", np.asfortranarray(movie))
    np.testing.assert_array_equal(everything(tmp_path / "f.npz"), movie)


def test_sequences_have_the_names_of_their_arrays(tmp_path):
    np.savez(tmp_path / "a.npz", left=MOVIE, right=MOVIE[:2])
    movies = open_movies(tmp_path / "a.npz", "masks")
    assert [(movie.name, len(movie)) for movie in movies] == [("left", 4), ("right", 2)]
    named = open_movies({"one": MOVIE, "two": MOVIE[:3]}, "masks")
    assert [(movie.name, len(movie)) for movie in named] == [("one", 4), ("two", 3)]


@pytest.mark.parametrize("kind", ["npy", "npz"])
def test_a_frame_at_a_time_is_in_memory(tmp_path, kind):
    frames = np.zeros((40, 256, 256), np.uint16)
    frames[:, ::3] = 7
    path = tmp_path / f"long.{kind}"
    (np.save if kind == "npy" else np.savez_compressed)(path, frames)
    (movie,) = open_movies(path, "masks")
    tracemalloc.start()
    for frame in movie:
        assert frame[0, 0] == 7
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * frames[0].nbytes


@pytest.mark.parametrize(
    ("name", "image"),
    [("a.csv", False), ("A.TIF", True), ("a.tiff", True), ("a.zarr", True), ("-", False)],
)
def test_what_is_images(name, image):
    assert is_images(name) is image
    assert not is_images(MOVIE)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            MOVIE[0],
            r"masks: expected an array \(T, Y, X\) or \(T, Z, Y, X\), got the shape \(6, 7\)",
        ),
        (MOVIE[:0], "masks has no frames"),
        ({}, "masks is an empty mapping"),
        ({7: MOVIE}, "masks: the name of a sequence is text, got 7"),
        ({"a": MOVIE[0]}, "masks of sequence 'a': expected an array"),
        ("gone.npy", r"cannot read gone.npy: there is no such file or folder"),
        (np.zeros((2, 0, 4), int), r"masks, frame 0: the image has no pixels \(shape \(0, 4\)\)"),
    ],
)
def test_bad_sources(source, message):
    with pytest.raises(DataError, match=message):
        [list(movie) for movie in open_movies(source, "masks")]


def test_bad_files(tmp_path):
    def fails(name, data, message):
        path = tmp_path / name
        path.write_bytes(data)
        with pytest.raises(DataError, match=message):
            everything(path)

    fails("a.txt", b"1 2", "a.txt is no image file; expected a folder, or a name that ends in .tif")
    fails("a.npy", b"no array", "cannot read .*a.npy: ")
    fails("a.npz", b"no archive", "cannot read .*a.npz: ")
    np.savez_compressed(tmp_path / "b.npz", left=MOVIE, right=MOVIE)
    with pytest.raises(
        DataError, match=r"has 2 sequences, and one is wanted; give the file itself"
    ):
        open_movies({"a": tmp_path / "b.npz"}, "masks")
    whole = (tmp_path / "b.npz").read_bytes()
    fails("cut.npz", whole[: len(whole) // 2], "cannot read .*cut.npz: ")
    with zipfile.ZipFile(tmp_path / "c.npz", "w") as archive:
        archive.writestr("readme.txt", "nothing")
    with pytest.raises(DataError, match=r"c.npz has no arrays"):
        everything(tmp_path / "c.npz")
    np.save(tmp_path / "d.npy", MOVIE)
    header = (tmp_path / "d.npy").read_bytes()[:200]
    with zipfile.ZipFile(tmp_path / "d.npz", "w") as archive:
        archive.writestr("cells.npy", header)
    with pytest.raises(DataError, match=r"cannot read .*array 'cells': it ends too early"):
        everything(tmp_path / "d.npz")
    np.save(tmp_path / "o.npy", np.array([{}, {}], object), allow_pickle=True)
    with pytest.raises(DataError, match=r"cannot read .*o.npy: "):
        everything(tmp_path / "o.npy")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="has no TIFF files; expected one for each frame"):
        everything(tmp_path / "empty")


def test_frames_of_other_sizes():
    sizes = [("a", np.zeros((3, 4), int)), ("b", np.zeros((3, 5), int))]
    movie = ImageMovie("", "film", [0, 1], lambda: iter(sizes))
    with pytest.raises(DataError, match=r"b: the image has the size 3 × 5, that of a is 3 × 4"):
        list(movie)
    movie = ImageMovie("", "film", [0], lambda: iter([("a", np.zeros((3, 4, 2, 2), int))]))
    with pytest.raises(DataError, match=r"a: expected an image \(Y, X\) or \(Z, Y, X\), got an ar"):
        list(movie)


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        (np.zeros((2, 2)), "film: label images hold whole numbers, this one float64; is it one of"),
        (np.zeros((2, 2), bool), "film: the mask is true and false, which does not tell objects"),
        (np.array([[0, -3]]), "film: a label is -3; the background is 0, labels are above"),
        (np.array([[2**63]], np.uint64), "film: a label is 9223372036854775808, and"),
    ],
)
def test_what_is_no_label_image(mask, message):
    with pytest.raises(DataError, match=message):
        checked_labels("film", mask)


def test_labels_of_any_integers():
    for kind in (np.uint8, np.int8, np.uint64, ">u4"):
        assert checked_labels("", np.array([[0, 7]], kind)).tolist() == [[0, 7]]


def test_libraries_that_are_missing(tmp_path, monkeypatch):
    for name in ("tifffile", "zarr"):
        monkeypatch.setitem(sys.modules, name, None)
    (tmp_path / "a.tif").write_bytes(b"")
    (tmp_path / "frames").mkdir()
    (tmp_path / "frames" / "t0.tif").write_bytes(b"")
    (tmp_path / "b.zarr").mkdir()
    for name in ("a.tif", "frames"):
        with pytest.raises(
            DataError, match=r"needs tifffile: pip install 'trellis-structured.imag"
        ):
            open_movies(tmp_path / name, "masks")
    with pytest.raises(
        DataError, match=r"b.zarr is a Zarr folder, which needs zarr: pip install z"
    ):
        open_movies(tmp_path / "b.zarr", "masks")

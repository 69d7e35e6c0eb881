"""Cell Tracking Challenge files, read back by their own reader and by an imaging library."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from trellis.errors import DataError
from trellis.tracking.ctc import _mask_name, read_ctc, write_ctc
from trellis.tracking.image_frames import ImageMovie
from trellis.tracking.result import Track, TrackedObject, TrackingResult

TRACKS = [Track("a", 1, 0, 0, -1), Track("a", 2, 1, 1, 1), Track("a", 3, 1, 1, 1)]
OBJECTS = [TrackedObject("a", 0, 4, 1, 0.0, 0.0)] + [
    TrackedObject("a", 1, i, 3 - i, 0.0, 0.0) for i in (0, 1)
]
RESULT = TrackingResult([], [], TRACKS, OBJECTS)
# Value 9 is an object that the result does not have.
MASKS = np.array(
    [[[0, 5, 5], [9, 5, 0]], [[1, 0, 2], [1, 2, 2]], [[0, 0, 0], [0, 7, 0]]], np.uint16
)
LABELS = [[[0, 1, 1], [0, 1, 0]], [[3, 0, 2], [3, 2, 2]], [[0, 0, 0], [0, 0, 0]]]


def tiff_pixels(data):
    """Pixels of a little-endian 16-bit TIFF of one strip, by its tags."""
    mark, version, at = struct.unpack_from("<2sHI", data)
    assert (mark, version) == (b"II", 42)
    (n,) = struct.unpack_from("<H", data, at)
    entries = [struct.unpack_from("<HHII", data, at + 2 + 12 * i) for i in range(n)]
    assert [e[0] for e in entries] == sorted({e[0] for e in entries})
    tags = {tag: value for tag, _, count, value in entries if count == 1}
    assert len(tags) == n
    assert struct.unpack_from("<I", data, at + 2 + 12 * n) == (0,)
    assert (tags[258], tags[259], tags[262], tags[277]) == (16, 1, 1, 1)
    assert struct.unpack_from("<II", data, tags[282]) == (1, 1)
    assert tags[279] == 2 * tags[256] * tags[257]
    assert len(data) == tags[273] + tags[279]
    return np.frombuffer(data, "<u2", offset=tags[273]).reshape(tags[257], tags[256])


@pytest.mark.parametrize("dtype", [np.uint16, np.int64, ">u2"])
def test_files_of_a_result(tmp_path, dtype):
    write_ctc(RESULT, tmp_path / "new", masks={"a": MASKS.astype(dtype)})
    folder = tmp_path / "new" / "a"
    names = ["mask000.tif", "mask001.tif", "mask002.tif", "res_track.txt"]
    assert sorted(path.name for path in folder.iterdir()) == names
    assert (folder / "res_track.txt").read_bytes() == b"1 0 0 0\n2 1 1 1\n3 1 1 1\n"
    for name, labels in zip(names, LABELS, strict=False):
        assert tiff_pixels((folder / name).read_bytes()).tolist() == labels


def test_an_imaging_library_reads_the_masks(tmp_path):
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    big = np.random.default_rng(0).integers(0, 1 << 16, (1, 31, 17))
    objects = [TrackedObject("", 0, i, i + 1, 0.0, 0.0) for i in set((big - 1).ravel()) - {-1}]
    tracks = [Track("", o.track, 0, 0, -1) for o in objects]
    write_ctc(TrackingResult([], [], tracks, objects), tmp_path, masks={"": big})
    with image.open(tmp_path / "mask000.tif") as picture:
        assert picture.mode == "I;16"
        np.testing.assert_array_equal(np.array(picture), big[0])


def test_text_comes_back(tmp_path):
    others = [Track("b", 1, 2, 5, -1), Track("b", 2, 7, 7, 1)]
    write_ctc(TrackingResult([], [], [*TRACKS, *others], []), tmp_path)
    assert read_ctc(tmp_path / "a", "a") == TRACKS
    assert read_ctc(tmp_path / "b" / "res_track.txt", "b") == others
    assert not list(tmp_path.glob("*/*.tif"))
    assert not list(tmp_path.glob("*.txt"))


def test_many_frames_have_longer_names():
    assert [_mask_name(t, n) for t, n in ((7, 8), (7, 1000), (7, 1001), (1000, 1001))] == [
        "mask007.tif",
        "mask007.tif",
        "mask0007.tif",
        "mask1000.tif",
    ]


@pytest.mark.parametrize(
    ("masks", "message"),
    [
        ({"b": MASKS}, "masks has no sequence 'a'; it has b"),
        (
            {"a": MASKS[0]},
            r"masks of sequence 'a': expected an array \(T, Y, X\) or \(T, Z, Y, X\), got the",
        ),
        (
            {"a": MASKS.astype(float)},
            "'a', frame 0: label images hold whole numbers, this one float64",
        ),
        (
            {"a": MASKS[:1]},
            "masks of sequence 'a' are of the frames 0 to 0, and there are objects of frame 1",
        ),
        ({"a": MASKS[1:]}, "sequence 'a', frame 0: object 4 has no pixel; an object's pixels must"),
    ],
)
def test_masks_that_do_not_fit(tmp_path, masks, message):
    with pytest.raises(DataError, match=message):
        write_ctc(RESULT, tmp_path, masks=masks)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("tracks", "masks", "message"),
    [
        (
            [Track("..", 1, 0, 0, -1)],
            None,
            r"sequence '\.\.' cannot be the name of a folder; rename",
        ),
        ([Track("a/b", 1, 0, 0, -1)], None, "sequence 'a/b' cannot be the name of a folder"),
        ([Track("a", 1, -1, 0, -1)], None, "track 1 of sequence 'a' begins in frame -1; the Cell"),
        (
            [Track("a", i + 1, 0, 0, -1) for i in range(65536)],
            {"a": MASKS},
            "sequence 'a' has 65536 tracks; a 16-bit mask holds 65535",
        ),
    ],
)
def test_results_that_cannot_be_written(tmp_path, tracks, masks, message):
    with pytest.raises(DataError, match=message):
        write_ctc(TrackingResult([], [], tracks, []), tmp_path, masks=masks)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 0 0\n", r"man_track.txt, line 1: expected four whole numbers \(label, begin, end, par"),
        ("\n1 0 x 0\n", "line 2: expected four whole numbers .* got '1 0 x 0'"),
        ("0 0 0 0\n", "line 1: expected label >= 1, 0 <= begin <= end and parent >= 0, got"),
        ("1 5 4 0\n", "line 1: expected label >= 1"),
        ("1 0 0 0\n1 2 3 0\n", "line 2: label 1 is already on line 1"),
        ("1 1 1 2\n", "line 1: there is no track 2 to be parent"),
        (
            "1 0 4 0\n2 4 5 1\n",
            "line 2: the parent 1 does not end before frame 4, where track 2 beg",
        ),
    ],
)
def test_text_that_cannot_be(tmp_path, text, message):
    (tmp_path / "man_track.txt").write_text(text)
    with pytest.raises(DataError, match=message):
        read_ctc(tmp_path)


def test_folder_without_tracks(tmp_path):
    with pytest.raises(DataError, match=r"has neither res_track.txt nor man_track.txt"):
        read_ctc(tmp_path)


def test_volumes_are_pages(tmp_path):
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    rng = np.random.default_rng(0)
    for size in ((3, 5, 7), (1, 4, 4), (4, 3, 1)):
        volume = rng.integers(0, 9, (1, *size)).astype(np.uint16)
        objects = [
            TrackedObject("", 0, i, i + 1, 0.0, 0.0, 0.0)
            for i in set((volume.astype(int) - 1).ravel())
        ]
        objects = [seen for seen in objects if 0 <= seen.id < 9]
        tracks = [Track("", seen.track, 0, 0, -1) for seen in objects]
        write_ctc(TrackingResult([], [], tracks, objects), tmp_path, masks=volume)
        with image.open(tmp_path / "mask000.tif") as file:
            assert file.n_frames == size[0]
            for z in range(size[0]):
                file.seek(z)
                np.testing.assert_array_equal(np.array(file), volume[0, z])


def test_frames_keep_their_numbers(tmp_path):
    """As files are numbered, so are those that are written."""
    movie = ImageMovie("", "masks", [4], lambda: iter([("frame 4", np.array([[0, 1]]))]))
    seen = TrackedObject("", 4, 0, 1, 0.0, 0.0)
    write_ctc(TrackingResult([], [], [Track("", 1, 4, 4, -1)], [seen]), tmp_path, masks=movie)
    assert [path.name for path in sorted(tmp_path.glob("*.tif"))] == ["mask004.tif"]
    assert tiff_pixels((tmp_path / "mask004.tif").read_bytes()).tolist() == [[0, 1]]

"""Folders of the Cell Tracking Challenge: what is read and what is refused."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from trellis.errors import DataError
from trellis.tracking import score_ctc

pytestmark = pytest.mark.extras


def movie(folder, frames=2, name="man_track", text="man_track.txt"):
    tifffile = pytest.importorskip("tifffile")
    folder.mkdir(parents=True)
    for t in range(frames):
        tifffile.imwrite(folder / f"{name}{t:03}.tif", np.full((2, 3, 4), 5, np.uint16))
    (folder / text).write_text(f"5 0 {frames - 1} 0\n")
    return folder


def test_truth_and_result(tmp_path):
    tifffile = pytest.importorskip("tifffile")
    truth = movie(tmp_path / "01_GT" / "TRA").parent
    result = movie(tmp_path / "01_RES", name="mask", text="res_track.txt")
    for folder in (truth, truth / "TRA"):
        assert score_ctc(folder, result).tra == score_ctc(folder, result).seg == 1
    seg = truth / "SEG"
    seg.mkdir()
    plane = np.array([[7, 7, 7, 7], [0, 0, 0, 0], [0, 0, 0, 0]], np.uint16)
    tifffile.imwrite(seg / "man_seg_001_1.tif", plane)
    for folder in (truth, truth / "TRA"):
        assert score_ctc(folder, result).seg == pytest.approx(1 / 3)
    tifffile.imwrite(seg / "man_seg_001_2.tif", plane)
    with pytest.raises(DataError, match=r"SEG has an image of plane 2 of frame 1, .*01_RES none"):
        score_ctc(truth, result)
    (seg / "man_seg_001_2.tif").unlink()
    tifffile.imwrite(seg / "man_seg009.tif", plane)
    with pytest.raises(DataError, match=r"SEG has an image of frame 9, .*01_RES has none"):
        score_ctc(truth, result)
    (seg / "man_seg009.tif").unlink()
    tifffile.imwrite(seg / "man_seg001.tif", plane)
    with pytest.raises(DataError, match=r"frame 1: the image of SEG has shape \(3, 4\), that of"):
        score_ctc(truth, result)


def test_folders_that_cannot_be(tmp_path, monkeypatch):
    tifffile = pytest.importorskip("tifffile")
    good = movie(tmp_path / "good")
    for folder, message in (
        (tmp_path / "none", "none is no folder"),
        (tmp_path, "has no label images; expected man_trackTTT.tif or maskTTT.tif"),
    ):
        with pytest.raises(DataError, match=message):
            score_ctc(folder, good)
    tifffile.imwrite(good / "mask001.tif", np.zeros((2, 2), np.uint8))
    with pytest.raises(DataError, match=r"man_track001.tif and mask001.tif are both of frame 1"):
        score_ctc(good, good)
    (good / "mask001.tif").unlink()
    (good / "man_track001.tif").write_bytes(b"not an image")
    with pytest.raises(DataError, match=r"cannot read .*man_track001.tif"):
        score_ctc(good, good)
    tifffile.imwrite(good / "man_track001.tif", np.zeros((2, 2), np.float32))
    with pytest.raises(DataError, match=r"expected whole numbers in two or three .* float32"):
        score_ctc(good, good)
    (good / "man_track.txt").unlink()
    with pytest.raises(DataError, match=r"has neither res_track.txt nor man_track.txt"):
        score_ctc(good, good)
    other = movie(tmp_path / "other")
    monkeypatch.setitem(sys.modules, "tifffile", None)
    with pytest.raises(DataError, match="install the package tifffile: pip install tifffile"):
        score_ctc(other, other)

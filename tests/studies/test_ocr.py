"""The handwritten words and their folds."""

from __future__ import annotations

import lzma

import numpy as np
import pytest

from studies.datasets.ocr import load_ocr
from trellis.errors import DataError


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TRELLIS_DATA", str(tmp_path))
    (tmp_path / "ocr").mkdir()
    return tmp_path / "ocr"


def test_small_copy(folder):
    pixels = "80" + "00" * 15
    lines = ["b\t2\t1\t1\t" + pixels, "a\t1\t1\t0\t" + "ff" * 16, "c\t1\t2\t0\t" + pixels]
    (folder / "letters.tsv.xz").write_bytes(lzma.compress("\n".join(lines).encode()))
    corpus, folds = load_ocr()
    assert corpus.label_lists() == [["a", "c"], ["b"]]
    assert folds.tolist() == [0, 1]
    assert len(corpus) == 2


@pytest.mark.parametrize("line", ["a\t1\t1\t0", "a\tx\t1\t0\t00", "a\t1\t1\t0\tzz"])
def test_damage_is_named(folder, line):
    (folder / "letters.tsv.xz").write_bytes(lzma.compress(line.encode()))
    with pytest.raises(DataError, match=r"cannot read .*letters.tsv.xz"):
        load_ocr()


def test_real_words(real_data, monkeypatch):
    monkeypatch.setenv("TRELLIS_DATA", str(real_data("ocr").parent))
    corpus, folds = load_ocr()
    assert (len(corpus), corpus.n_positions, len(corpus.labels.classes)) == (6877, 52152, 26)
    assert np.bincount(folds).tolist() == [626, 704, 684, 698, 693, 651, 739, 717, 690, 675]

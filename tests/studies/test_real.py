"""Loaders of real data: counts as in the data sets' own descriptions, small copies, damage."""

from __future__ import annotations

import lzma
from collections import Counter

import numpy as np
import pytest

from studies.datasets import data_folder, load
from trellis.errors import DataError


@pytest.fixture
def real(real_data, monkeypatch):
    """Load a real data set, or skip the test."""

    def find(name):
        monkeypatch.setenv("TRELLIS_DATA", str(real_data(name).parent))
        return load(name)

    return find


def sizes(corpus):
    return len(corpus), corpus.n_positions, len(corpus.labels.classes)


def counts(corpus):
    """How often each label stands in a corpus."""
    labels = corpus.labels
    number = np.bincount(labels.ids, minlength=len(labels.classes))
    return Counter(dict(zip(labels.classes, number.tolist(), strict=False)))


def spans(corpus):
    """Spans by type: in valid BIO, one for each B-."""
    return {name[2:]: n for name, n in counts(corpus).items() if name.startswith("B-")}


def words(corpus):
    found = counts(corpus)
    return found["B"] + found["S"]


# ------------------------------------------------------------------ the real thing


def test_conll2000(real):
    data = real("conll2000")
    assert sizes(data.train) == (8_936, 211_727, 22)
    assert sizes(data.test) == (2_012, 47_377, 19)
    assert sum(spans(data.train).values()) == 106_978
    assert sum(spans(data.test).values()) == 23_852
    assert len(set(data.train.labels.classes) | set(data.test.labels.classes)) == 23
    assert [len(c.columns["pos"].values) for c in (data.train, data.test)] == [44, 43]
    assert [len(c.columns["word"].values) for c in (data.train, data.test)] == [19_122, 8_118]
    assert (data.dev, data.features, data.scheme) == (None, "chunking", "BIO")


def test_ud_ewt(real):
    data = real("ud_ewt")
    assert sizes(data.train) == (12_544, 204_577, 49)
    assert sizes(data.dev) == (2_001, 25_147, 49)
    assert sizes(data.test) == (2_077, 25_094, 48)
    for corpus, types, relations in ((data.train, 19_674, 51), (data.test, 5_629, 49)):
        assert len(corpus.columns["word"].values) == types
        assert len(corpus.columns["upos"].values) == 17
        assert len(corpus.columns["deprel"].values) == relations
    assert data.train.label_name == "xpos"
    assert (data.features, data.scheme) == ("pos", None)


def test_jnlpba(real):
    data = real("jnlpba")
    assert sizes(data.train) == (18_546, 492_551, 11)
    assert sizes(data.test) == (3_856, 101_039, 11)
    assert spans(data.train) == {
        "protein": 30_269,
        "DNA": 9_533,
        "RNA": 951,
        "cell_type": 6_718,
        "cell_line": 3_830,
    }
    assert sum(spans(data.train).values()) == 51_301
    assert sum(spans(data.test).values()) == 8_662
    assert [len(c.columns["word"].values) for c in (data.train, data.test)] == [22_056, 9_623]
    assert [int(c.lengths.max()) for c in (data.train, data.test)] == [204, 208]
    assert (data.features, data.scheme) == ("ner", "BIO")


def test_sxu(real):
    data = real("sxu")
    assert sizes(data.train) == (17_115, 854_001, 4)
    assert sizes(data.test) == (3_654, 184_269, 4)
    assert [words(c) for c in (data.train, data.test)] == [528_238, 113_527]
    assert [len(c.columns["char"].values) for c in (data.train, data.test)] == [4_175, 2_851]
    assert (data.features, data.scheme) == ("wordseg", "BMES")


def test_msr(real):
    data = real("msr")
    assert sizes(data.train) == (8_693, 394_046, 4)
    assert sizes(data.test) == (3_985, 177_883, 4)
    assert [words(c) for c in (data.train, data.test)] == [246_662, 106_873]
    assert (data.features, data.scheme) == ("wordseg", "BMES")


def test_har(real):
    data = real("har")
    assert sizes(data.train) == (42, 7_767, 12)
    assert sizes(data.test) == (19, 3_162, 12)
    both = counts(data.train) + counts(data.test)
    assert sorted(both.values()) == sorted(
        [1722, 1544, 1407, 1801, 1979, 1958, 70, 33, 107, 85, 139, 84]
    )
    assert both["WALKING"] == 1722
    assert both["LIE_TO_STAND"] == 84
    lengths = np.concatenate([data.train.lengths, data.test.lengths])
    assert (lengths.min(), np.median(lengths), lengths.max()) == (69, 179, 226)
    assert len(data.train.features.names) == 110  # 109 and a constant
    assert (data.features, data.scheme) == (None, None)


def test_ocr(real):
    data = real("ocr")
    assert sizes(data.train) == (626, 4_617, 26)
    assert sizes(data.test) == (6_877 - 626, 52_152 - 4_617, 26)
    lengths = np.concatenate([data.train.lengths, data.test.lengths])
    assert (lengths.min(), lengths.max()) == (3, 14)
    distinct = {
        "".join(labels) for corpus in (data.train, data.test) for labels in corpus.label_lists()
    }
    assert len(distinct) == 55
    assert (data.features, data.scheme) == (None, None)


# ------------------------------------------------------------------ small copies


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Make a folder of data: ``folder(name, {file: text})``."""
    monkeypatch.setenv("TRELLIS_DATA", str(tmp_path))

    def make(name, files):
        (tmp_path / name).mkdir()
        for file, text in files.items():
            (tmp_path / name / file).write_bytes(lzma.compress(text.encode()))
        return tmp_path / name

    return make


def test_small_column_files(folder):
    folder("conll2000", {"train.txt.xz": "a P B-X\nb Q I-X\n\n", "test.txt.xz": "a P O\n\n"})
    data = load("conll2000")
    assert data.train[0].columns == {"word": ["a", "b"], "pos": ["P", "Q"]}
    assert data.train.label_lists() == [["B-X", "I-X"]]
    assert data.test.label_lists() == [["O"]]

    row = "New York\tPROPN\tNNP\t0\troot\n\n"
    folder("ud_ewt", {f"{part}.tsv.xz": row for part in ("train", "dev", "test")})
    data = load("ud_ewt")
    assert data.dev[0].columns["word"] == ["New York"]
    assert data.dev.label_lists() == [["NNP"]]

    text = "###MEDLINE:1\n\nIL-2\tB-DNA\ngene\tI-DNA\n\n"
    folder("jnlpba", {f"{part}.iob2.xz": text for part in ("train", "test")})
    assert load("jnlpba").train.label_lists() == [["B-DNA", "I-DNA"]]


def test_small_segmented_files(folder):
    folder("sxu", {"train.txt.xz": "ab c\n", "test.txt.xz": "d\n"})
    assert load("sxu").train.label_lists() == [["B", "E", "S"]]
    names = ("train_tenth_preprocessed.txt.xz", "test_gold_preprocessed.txt.xz")
    folder("msr", dict.fromkeys(names, "ab c\n"))
    assert load("msr").test.label_lists() == [["B", "E", "S"]]


def windows(path, **changes):
    arrays = {
        "X": np.array([[1.0, 5.0], [3.0, 5.0], [2.0, 5.0], [7.0, 6.0]], np.float32),
        "y": np.array([1, 2, 1, 2], np.uint8),
        "experiment": np.array([1, 1, 2, 3]),
        "is_test": np.array([False, False, False, True]),
        "label_names": np.array(["UNLABELLED", "SIT", "GO"]),
    } | changes
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})


def test_small_windows_are_standardised_on_the_training_part(folder):
    windows(folder("har", {}) / "windows.npz")
    data = load("har")
    assert data.train.label_lists() == [["SIT", "GO"], ["SIT"]]
    assert data.test.label_lists() == [["GO"]]
    spread = np.std([1.0, 3.0, 2.0])
    first = data.train.features
    # The second feature is constant in training: centred only, so zero, and not stored.
    dense = np.zeros((3, 3))
    rows = np.repeat(np.arange(3), np.diff(first.indptr))
    dense[rows, first.indices] = first.values
    assert np.allclose(dense, [[-1 / spread, 0, 1], [1 / spread, 0, 1], [0, 0, 1]])


def test_small_letters_are_divided_by_fold(folder):
    image = "80" + "00" * 15  # the first pixel only
    rows = [("a", 7, 1, 0), ("b", 7, 2, 0), ("c", 3, 1, 1), ("d", 9, 1, 0), ("e", 5, 1, 2)]
    text = "".join(f"{a}\t{word}\t{place}\t{fold}\t{image}\n" for a, word, place, fold in rows)
    folder("ocr", {"letters.tsv.xz": text})
    data = load("ocr")
    assert data.train.label_lists() == [["a", "b"], ["d"]]
    assert data.test.label_lists() == [["c"], ["e"]]
    assert data.train.features.indices.tolist() == [0, 0, 0]


# ------------------------------------------------------------------ what is refused


def test_unknown_name():
    with pytest.raises(DataError, match="unknown data set 'wsj'; known: conll2000, ud_ewt, jnlpba"):
        load("wsj")


def test_missing_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TRELLIS_DATA", str(tmp_path))
    with pytest.raises(DataError, match=r"no data set 'sxu' in .*; set TRELLIS_DATA to the folder"):
        load("sxu")
    (tmp_path / "sxu").mkdir()
    assert data_folder("sxu") == tmp_path / "sxu"


def test_default_folder(tmp_path, monkeypatch):
    monkeypatch.delenv("TRELLIS_DATA", raising=False)
    (tmp_path / "shared" / "data" / "sxu").mkdir(parents=True)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert data_folder("sxu").samefile(tmp_path / "shared" / "data" / "sxu")


@pytest.mark.parametrize("name", ["conll2000", "ud_ewt", "jnlpba", "sxu", "msr", "har", "ocr"])
def test_missing_files(folder, name):
    folder(name, {})
    with pytest.raises(DataError, match=rf"cannot read .*{name}.*No such file"):
        load(name)


def test_damaged_windows(folder):
    path = folder("har", {}) / "windows.npz"
    for changes in ({"y": None}, {"label_names": np.array([None], object)}):
        windows(path, **changes)
        with pytest.raises(DataError, match=r"cannot read .*windows.npz"):
            load("har")
    for content in (b"", b"PK\x03\x04", b"text"):
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"cannot read .*windows.npz"):
            load("har")


@pytest.mark.parametrize("text", ["a\t1\t1\t0\n", "a\tx\t1\t0\t00\n", "a\t1\t1\t0\tzz\n", "é\n"])
def test_damaged_letters(folder, text):
    folder("ocr", {"letters.tsv.xz": text})
    with pytest.raises(DataError, match=r"cannot read .*letters.tsv.xz"):
        load("ocr")

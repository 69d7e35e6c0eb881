"""The dependency trees of ud_ewt: real, and in small copies."""

from __future__ import annotations

import lzma
import re

import numpy as np
import pytest

from studies.datasets import load_trees
from trellis import DataError
from trellis.structures import is_forest

ROWS = [
    ("The", "DET", "DT", 2, "det"),
    ("cat", "NOUN", "NN", 3, "nsubj"),
    ("sat", "VERB", "VBD", 0, "root"),
]


@pytest.fixture
def small(tmp_path, monkeypatch):
    """A folder with one sentence, twice, in each part."""
    monkeypatch.setenv("TRELLIS_DATA", str(tmp_path))
    text = "".join("\t".join(map(str, row)) + "\n" for row in ROWS) + "\n"
    (tmp_path / "ud_ewt").mkdir()
    for part in ("train", "dev", "test"):
        (tmp_path / "ud_ewt" / f"{part}.tsv.xz").write_bytes(lzma.compress(2 * text.encode()))
    return tmp_path


@pytest.mark.parametrize(
    ("label", "columns", "labels"),
    [
        ("upos", {"form"}, ["DET", "NOUN", "VERB"]),
        ("xpos", {"form"}, ["DT", "NN", "VBD"]),
        ("deprel", {"form", "upos", "xpos"}, ["det", "nsubj", "root"]),
    ],
)
def test_small_trees(small, label, columns, labels):
    trees = load_trees(label, "dev")
    assert trees.label_lists() == [labels, labels]
    assert set(trees.columns) == columns
    assert trees.label_name == label
    assert trees.edges.tolist() == [[0, 1], [1, 2], [3, 4], [4, 5]]
    if label == "deprel":
        assert trees.edge_types is None
    else:
        assert trees.edge_types.strings() == ["det", "nsubj"] * 2


@pytest.mark.parametrize(
    ("label", "part", "message"),
    [
        ("lemma", "train", "label must be one of upos, xpos, deprel, got 'lemma'"),
        ("upos", "tests", "part must be one of train, dev, test, got 'tests'"),
    ],
)
def test_wrong_names(label, part, message):
    with pytest.raises(DataError, match=re.escape(message)):
        load_trees(label, part)


def test_missing_data(tmp_path, monkeypatch):
    monkeypatch.setenv("TRELLIS_DATA", str(tmp_path))
    with pytest.raises(DataError, match=r"no data set 'ud_ewt' in .*; set TRELLIS_DATA"):
        load_trees()


def test_real_trees(real_data, monkeypatch):
    monkeypatch.setenv("TRELLIS_DATA", str(real_data("ud_ewt").parent))
    trees = load_trees("deprel", "test")
    assert (len(trees), trees.n_positions) == (2_077, 25_094)
    assert is_forest(trees.offsets, trees.edges)
    # Every sentence has one root: one edge less than words.
    owner = np.searchsorted(trees.offsets, trees.edges[:, 0], side="right") - 1
    assert (np.bincount(owner, minlength=len(trees)) == trees.lengths - 1).all()
    assert sum(labels.count("root") for labels in trees.label_lists()) == len(trees)

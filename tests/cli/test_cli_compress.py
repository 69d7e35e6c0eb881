"""``trellis compress``: the table, the file, and what is refused."""

from __future__ import annotations

import re

import numpy as np
from toy_files import LABELLED, SENTENCES, conll

from trellis import ChainCRF, TreeCRF, load_model

HEADINGS = ["features", "size", "tokens/s", "accuracy", "F1"]


def rows(text):
    """Cells of the table, by the first of a line."""
    first, *lines = text.splitlines()
    assert first.split() == [h for h in HEADINGS if h != "F1" or "F1" in first]
    return {line[:18].strip(): line[18:].split() for line in lines}


def test_table(run, toys, models):
    result = run("compress", models["conll"], "--data", toys / "train.txt")
    assert (result.code, result.err) == (0, [])
    table = rows(result.out)
    shares = ["1", "0.5", "0.2", "0.1", "0.05", "0.02"]
    assert list(table) == ["as it is", *(f"keep {share}" for share in shares)]
    features = [int(row[0].replace(",", "")) for row in table.values()]
    assert features == sorted(features, reverse=True) and features[-1] >= 1
    sizes = [float(row[1]) for row in table.values()]
    assert sizes == sorted(sizes, reverse=True)
    assert all(row[2] == "kB" and float(row[3].replace(",", "")) > 0 for row in table.values())
    assert table["as it is"][-2:] == ["100.00", "100.00"] and float(table["keep 0.02"][-1]) < 100


def test_table_of_what_is_asked_for(run, toys, models, tmp_path):
    small = tmp_path / "small"
    result = run(
        "compress", models["conll"], "--data", "-", "--threshold", 0.1, "-o", small,
        stdin=conll(SENTENCES[:3]),
    )  # fmt: skip
    assert result.code == 0 and list(rows(result.out)) == ["as it is", "threshold 0.1"]
    assert len(result.err) == 1 and load_model(small).n_features_ > 0


def test_labels_without_spans_have_no_f1(run, toys, models):
    table = rows(run("compress", models["conllu"], "--data", toys / LABELLED["conllu"]).out)
    assert {len(row) for row in table.values()} == {5}


def test_file(run, models, tmp_path):
    for options, expected in (([], {}), (["--keep", "0.5", "--precision", "float32"],
                                         {"keep": 0.5, "precision": "float32"})):  # fmt: skip
        result = run("compress", models["conll"], "-o", tmp_path / "small", *options)
        assert (result.code, result.out) == (0, "")
        model, small = load_model(models["conll"]), load_model(tmp_path / "small")
        assert np.array_equal(small.weights_.node, model.compressed(**expected).weights_.node)
        said = rf"{tmp_path}/small: [\d,]+ of [\d,]+ features, [\d.]+ kB of [\d.]+ kB"
        assert re.fullmatch(said, result.err[0])
        assert small.input_format_ == model.input_format_


def test_large_sizes_are_in_megabytes(run, tmp_path):
    rng = np.random.default_rng(0)
    words = [[str(w) for w in rng.integers(0, 10**6, 20)] for _ in range(500)]
    model = ChainCRF("word[-1..1]", max_passes=1, random_state=0).fit(
        words, [["ABCDEFGHIJKLMNOPQRSTUVWXYZ"[int(w[-1])] for w in s] for s in words]
    )
    model.save(tmp_path / "large")
    result = run("compress", tmp_path / "large", "-o", tmp_path / "small")
    assert re.search(r"kB of [\d.]+ MB$", result.err[0])


def test_refusals(fails, models, toys, tmp_path):
    small = tmp_path / "small"
    assert fails("compress", models["conll"]) == (
        "name the file to write with -o, or data to try models on with --data"
    )
    assert fails("compress", models["conll"], "-o", small, "--keep", "2").startswith("keep must be")
    assert "threshold must be" in fails("compress", models["conll"], "-o", small, "--threshold=-1")
    assert "has no labels" in fails(
        "compress", models["jsonl"], "--data", "-", stdin='{"word": []}'
    )
    assert not small.exists()


def test_keep_or_threshold(run, models, tmp_path):
    both = ["--keep", "0.1", "--threshold", "0.1"]
    assert run("compress", models["conll"], "-o", tmp_path / "s", *both).code == 2


def test_trees_can_be_compressed(run, tmp_path):
    X, y, edges = [["a", "b"], ["b", "a"]], [["X", "Y"], ["Y", "X"]], [np.array([[0, 1]])] * 2
    TreeCRF(random_state=0).fit(X, y, edges=edges).save(tmp_path / "tree")
    file = tmp_path / "data"
    file.write_text("a X\nb Y\n@edge 1 2\n\n")
    result = run(
        "compress", tmp_path / "tree", "--data", file, "--keep", "0.5", "-o", tmp_path / "s"
    )
    assert result.code == 0 and "F1" not in result.out
    assert load_model(tmp_path / "s").predict(X, edges=edges) == y

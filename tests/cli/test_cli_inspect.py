"""``trellis inspect``: the weights that are listed are those of the model, strongest first."""

from __future__ import annotations

import re

import numpy as np
import pytest

from trellis import ChainCRF, load_model


def blocks(text):
    """Heading → list of (weight, name)."""
    found = {}
    for block in text.split("\n\n")[1:]:
        head, *lines = block.splitlines()
        found[head] = [(float(line.split()[0]), line.split(maxsplit=1)[1]) for line in lines]
    return found


def test_summary(run, models):
    result = run("inspect", models["conll"], "--top", "0")
    assert (result.code, result.err) == (0, [])
    model = load_model(models["conll"])
    first, labels, features, templates, layout = result.out.splitlines()
    assert first == "ChainCRF(random_state=0)"
    assert labels == "labels      5: B-ADVP, B-NP, B-VP, I-NP, O"
    assert features == f"features    {model.n_features_}"
    assert re.fullmatch(r"templates +word\[-2\]; .*; bos; eos", templates)
    assert layout == "input       conll, columns word,pos,label, label label"


@pytest.mark.parametrize("name", ["conll", "perceptron", "crfsuite"])
def test_strongest_weights(run, models, name):
    model = load_model(models[name])
    names = model.encoder_.names(range(model.n_features_))
    found = blocks(run("inspect", models[name], "--top", "3").out)
    assert len(found) == len(model.classes_) + 1
    for j, label in enumerate(model.classes_):
        listed = found[f"{label}: strongest features"]
        weights = np.sort(model.weights_.node[:, j])[::-1][:3]
        assert np.allclose([w for w, _ in listed], weights, atol=6e-4)
        for weight, feature in listed:
            assert abs(model.weights_.node[names.index(feature), j] - weight) < 6e-4
    listed = found["strongest transitions"]
    assert len(listed) == 6
    for weight, pair in listed:
        i, j = (model.classes_.index(label) for label in pair.split(" → "))
        assert abs(model.weights_.transitions[i, j] - weight) < 6e-4
    strengths = [abs(weight) for weight, _ in listed]
    assert strengths == sorted(strengths, reverse=True)
    assert strengths[0] == round(float(np.abs(model.weights_.transitions).max()), 3)


def test_one_label(run, models):
    found = blocks(run("inspect", models["conll"], "--label", "O", "--top", "2").out)
    assert list(found) == ["O: strongest features", "strongest transitions"]
    assert all("O" in pair.split(" → ") for _, pair in found["strongest transitions"])


def test_model_made_in_python_and_one_label_only(run, tmp_path):
    ChainCRF("word", random_state=0).fit([["a"]], [["X"]]).save(tmp_path / "m")
    out = run("inspect", tmp_path / "m", "--top", "100").out
    assert "input" not in out
    assert len(blocks(out)["X: strongest features"]) == 1
    assert len(blocks(out)["strongest transitions"]) == 1


def test_model_without_any_feature(run, tmp_path):
    ChainCRF(random_state=0).fit([[[], []]], [["X", "Y"]]).save(tmp_path / "m")
    found = blocks(run("inspect", tmp_path / "m").out)
    assert found["X: strongest features"] == []


def test_every_format_says_how_its_input_looks(run, models):
    def layout(kind):
        out = run("inspect", models[kind], "--top", "0").out
        return out.splitlines()[-1].removeprefix("input       ")

    assert layout("conllu") == "conllu, label upos"
    assert layout("jsonl") == "jsonl, label labels"
    assert layout("crfsuite") == "crfsuite"
    assert layout("segmented") == "segmented"


def test_errors(fails, toys, models, tmp_path):
    assert fails("inspect", "no") == "no: No such file or directory"
    assert fails("inspect", tmp_path).endswith("Is a directory")
    message = fails("inspect", toys / "train.txt")
    assert message == f"{toys / 'train.txt'}: not a Trellis model file"
    message = fails("inspect", models["conll"], "--label", "X")
    assert message == "no label 'X'; the model has B-ADVP, B-NP, B-VP, I-NP, O"
    assert fails("inspect", models["conll"], "--top", "-1") == "--top must be at least 0, got -1"

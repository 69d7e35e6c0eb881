"""``trellis inspect``: the weights that are listed are those of the model, strongest first."""

from __future__ import annotations

import re

import numpy as np
import pytest

from trellis import ChainCRF, load_model
from trellis.cli.inspect_model import describe


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
    first, labels, features, weights, training, templates, layout = result.out.splitlines()
    assert first == "ChainCRF(random_state=0)"
    assert training == "training    sgd"
    assert labels == "labels      5: B-ADVP, B-NP, B-VP, I-NP, O"
    assert features == f"features    {model.n_features_}"
    assert weights == f"weights     {5 * (model.n_features_ + 5)}"
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


@pytest.mark.parametrize("options", ["current", "both --edge-pairs observed"])
@pytest.mark.parametrize("label", [None, "O"])
def test_strongest_edge_features(run, toys, tmp_path, options, label):
    train = ["--rich-edges", *options.split(), "--features", "word[-1..0]", "-o", tmp_path / "m"]
    assert run("train", toys / "train.txt", *train).code == 0
    model = load_model(tmp_path / "m")
    shown = ["--top", "50", *(["--label", label] if label else [])]
    listed = blocks(run("inspect", tmp_path / "m", *shown).out)["strongest edge features"]

    edge, n = model.weights_.edge, len(model.classes_)
    bounds, expected = edge.rows(), {}
    for f, name in enumerate(model.encoder_.names(range(model.n_features_))):
        for back in range(1 + edge.both):
            i = edge.row[f] + back * edge.n_crossed
            pairs = edge.pair[bounds[i] : bounds[i + 1]] if edge.ptr.size else range(n * n)
            for pair, weight in zip(pairs, edge.values[bounds[i] : bounds[i + 1]], strict=True):
                first, second = (model.classes_[k] for k in divmod(int(pair), n))
                if label in (None, first, second) and weight != 0:
                    where = f" at {first}" if back else ""
                    expected[f"{first} → {second}  {name}{where}"] = float(weight)
    assert len(listed) == min(100, len(expected)) > 20
    for weight, text in listed:
        assert abs(expected.pop(text) - weight) < 6e-4
    strengths = [abs(weight) for weight, _ in listed]
    assert strengths == sorted(strengths, reverse=True)
    assert max(map(abs, expected.values()), default=0) < strengths[-1] + 6e-4
    assert any(" at " in text for _, text in listed) == (options != "current")


def lines_by_name(text):
    return dict(line.split(maxsplit=1) for line in text.split("\n\n")[0].splitlines()[1:])


def test_weights_that_are_zero(run, toys, tmp_path):
    options = ["--l1", "2", "--features", "word", "-o", tmp_path / "m"]
    assert run("train", toys / "train.txt", *options).code == 0
    weights = load_model(tmp_path / "m").weights_
    n = weights.node.size + weights.transitions.size
    zero = int((weights.node == 0).sum() + (weights.transitions == 0).sum())
    assert 0 < zero < n
    shown = lines_by_name(run("inspect", tmp_path / "m").out)["weights"]
    assert shown == f"{n}, {zero} of them zero ({100 * zero / n:.1f} %)"


def fitted(encoder_of, dropped, edges, path):
    """A model with a group lasso whose weights are zero for some templates, nodes or edges."""
    model = load_model(encoder_of).set_params(group_lasso=1.0)
    names = np.array([n.split("=")[0] for n in model.encoder_.names(range(model.n_features_))])
    model.weights_.node[...] = 1
    model.weights_.node[np.isin(names, dropped)] = 0
    if model.weights_.edge is not None:
        edge = model.weights_.edge
        edge.values[...] = 1
        per_row = np.repeat(np.tile(names, 1 + edge.both), np.diff(edge.rows()))
        edge.values[np.isin(per_row, edges)] = 0
    model.save(path)


def test_groups_that_were_dropped(run, toys, models, tmp_path):
    options = ["--features", "word; pos; pos[1]", "--rich-edges", "both", "-o", tmp_path / "m"]
    assert run("train", toys / "train.txt", *options).code == 0
    fitted(tmp_path / "m", ["pos"], ["word", "pos[1]"], tmp_path / "n")
    shown = lines_by_name(run("inspect", tmp_path / "n", "--top", "0").out)
    assert shown["dropped"] == "3 of 7 groups: pos; edges of word; edges of pos[1]"
    fitted(models["crfsuite"], ["p", "len"], [], tmp_path / "n")
    shown = lines_by_name(run("inspect", tmp_path / "n", "--top", "0").out)
    assert shown["dropped"] == "2 of 4 groups: p; len"
    fitted(models["crfsuite"], [], [], tmp_path / "n")
    shown = lines_by_name(run("inspect", tmp_path / "n", "--top", "0").out)
    assert shown["dropped"] == "0 of 4 groups"
    model = load_model(tmp_path / "n")
    model.weights_.transitions[...] = 0
    model.save(tmp_path / "n")
    shown = lines_by_name(run("inspect", tmp_path / "n", "--top", "0").out)
    assert shown["dropped"] == "1 of 4 groups: transitions"
    assert "dropped" not in lines_by_name(run("inspect", tmp_path / "m").out)


def test_group_lasso_drops_templates(run, toys, tmp_path):
    options = ["--features", "word; pos; pos[1]", "--group-lasso", "3", "--solver", "lbfgs"]
    assert run("train", toys / "train.txt", *options, "-o", tmp_path / "m").code == 0
    shown = lines_by_name(run("inspect", tmp_path / "m").out)
    assert re.match(r"[1-3] of 4 groups: ", shown["dropped"])
    assert "of them zero" in shown["weights"]


def test_edge_features_that_are_all_zero_are_not_listed(run, toys, tmp_path):
    options = ["--features", "word", "--rich-edges", "-o", tmp_path / "m"]
    assert run("train", toys / "train.txt", *options).code == 0
    model = load_model(tmp_path / "m")
    model.weights_.edge.values[...] = 0
    model.save(tmp_path / "m")
    assert "edge features" not in run("inspect", tmp_path / "m").out


def test_the_course_of_training_is_told_if_it_is_known():
    model = ChainCRF(random_state=0, solver="lbfgs").fit([["a", "b"]], [["X", "Y"]])
    shown = lines_by_name(describe(model, 0, None))["training"]
    assert shown == "lbfgs, converged"
    del model.solver_, model.stop_reason_
    assert "training" not in lines_by_name(describe(model, 0, None))


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

"""``trellis train --partial``: files in which names are marked, and the rest is not."""

from __future__ import annotations

import pytest

from trellis import load_model
from trellis.cli import main

SENTENCES = [
    "Ann/B-PER sees/_ the/_ dog/_",
    "the/_ dog/_ sees/_ Bo/_",
    "Bo/B-PER Lee/I-PER meets/_ Ann/_",
    "the/_ house/_ is/_ old/_",
    "Cy/B-PER meets/_ the/_ dog/_",
    "today/_ Cy/_ sees/_ Ann/B-PER",
] * 6


def file_of(folder, unmarked="_", name="names.txt", between=" "):
    lines = [
        "\n".join(pair.replace("/_", f"/{unmarked}").replace("/", between) for pair in s.split())
        for s in SENTENCES
    ]
    path = folder / name
    path.write_text("\n\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def trained(folder, data, *options):
    model = str(folder / "model")
    code = main(["train", data, "-o", model, "--quiet", "--no-checkpoint", *options])
    return code, model


@pytest.mark.parametrize("partial", ["mentions", "entity-ratio"])
def test_underscore_and_o_are_not_marked(tmp_path, partial):
    found = []
    for unmarked in ("_", "O"):
        code, file = trained(tmp_path, file_of(tmp_path, unmarked), "--partial", partial)
        assert code == 0
        model = load_model(file)
        assert model.partial == partial
        assert model.classes_ == ("B-PER", "I-PER", "O")
        found.append(model.predict([["Ann", "sees", "the", "dog"], ["Bo", "Lee"]]))
    assert found[0] == found[1]
    assert found[0][0] == ["B-PER", "O", "O", "O"]


def test_names_in_held_out_data_are_all_marked(tmp_path, capsys):
    data = file_of(tmp_path)
    code, file = trained(tmp_path, data, "--partial", "mentions", "--dev", data, "--patience", "2")
    assert code == 0
    assert load_model(file).classes_ == ("B-PER", "I-PER", "O")


def test_without_the_option_underscore_is_a_label(tmp_path):
    _, file = trained(tmp_path, file_of(tmp_path))
    assert "_" in load_model(file).classes_


def test_a_given_share(tmp_path):
    more = ("--partial", "entity-ratio", "--entity-ratio", "0.25")
    code, file = trained(tmp_path, file_of(tmp_path), *more)
    assert code == 0
    assert load_model(file).entity_ratio == 0.25


@pytest.mark.parametrize(
    "options, text",
    [
        (("--entity-ratio", "0.1"), "--entity-ratio 0.1 is for --partial entity-ratio"),
        (
            ("--partial", "entity-ratio", "--solver", "sgd"),
            "--partial entity-ratio needs --solver lbfgs",
        ),
        (("--partial", "names"), "names"),
        (("--partial", "mentions", "--model", "perceptron"), "--partial"),
    ],
)
def test_what_does_not_go_together(tmp_path, capsys, options, text):
    try:
        code, _ = trained(tmp_path, file_of(tmp_path), *options)
    except SystemExit as error:
        code = error.code
    assert code != 0
    assert text in capsys.readouterr().err


def test_no_name_is_marked(tmp_path, capsys):
    (tmp_path / "names.txt").write_text("a O\nb _\n\na O\n", encoding="utf-8")
    code, _ = trained(tmp_path, str(tmp_path / "names.txt"), "--partial", "mentions")
    assert code != 0
    assert "no mention is marked" in capsys.readouterr().err


def test_prepared_files_are_refused(tmp_path, capsys):
    prepared = str(tmp_path / "prepared")
    assert main(["prepare", file_of(tmp_path), "-o", prepared, "--quiet"]) == 0
    code, _ = trained(tmp_path, prepared, "--partial", "mentions")
    assert code != 0
    assert "give the file that it was made of" in capsys.readouterr().err


def test_an_empty_label_is_told(tmp_path, capsys):
    data = file_of(tmp_path, "", between="\t")
    code, _ = trained(tmp_path, data, "--tabs", "--partial", "mentions")
    assert code != 0
    assert "names.txt" in capsys.readouterr().err


def test_tuning_needs_complete_held_out_data(tmp_path, capsys):
    data = file_of(tmp_path)
    assert main(["tune", data, "--partial", "mentions", "--l2", "0.1,1"]) != 0
    assert "with all mentions marked" in capsys.readouterr().err
    few = ("--l2", "0.1,1", "--piece-size", "whole", "--dev", data, "-o", str(tmp_path / "best"))
    assert main(["tune", data, "--partial", "mentions", *few]) == 0
    assert load_model(str(tmp_path / "best")).classes_ == ("B-PER", "I-PER", "O")


@pytest.mark.parametrize("partial", ["mentions", "entity-ratio"])
def test_interrupted(tmp_path, capsys, monkeypatch, partial):
    import trellis.models.marked_mentions as marked_mentions

    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(marked_mentions, "judged_by_others", interrupted)
    try:
        code, _ = trained(tmp_path, file_of(tmp_path), "--partial", partial)
    except KeyboardInterrupt:
        code = 130
    assert code == 130
    assert not (tmp_path / "model").exists()

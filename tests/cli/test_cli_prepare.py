"""``trellis prepare``, and ``trellis train`` on what it made."""

from __future__ import annotations

import re

import pytest
from toy_files import FORMATS, LABELLED, conll

from trellis import Corpus, load_model
from trellis.features import Prepared, prepare


@pytest.fixture
def made(run, toys, tmp_path):
    """The toy corpus, prepared."""
    options = ["--columns", "word,pos,chunk", "--features", "chunking", "--quiet"]
    target = tmp_path / "made"
    assert run("prepare", toys / "train.txt", *options, "-o", target).code == 0
    return target


@pytest.mark.parametrize("model", ["crf", "perceptron"])
@pytest.mark.parametrize("kind", FORMATS)
def test_the_same_model_file_as_from_the_text(run, toys, tmp_path, kind, model):
    file, target = toys / LABELLED[kind], tmp_path / "p.txt"  # whatever its name
    result = run("prepare", file, "--format", kind, "-o", target)
    assert (result.code, result.out) == (0, "")
    shape = r": 20 sequences, \d+ positions, \d+ labels, \d+ features, \d+\.\d MB"
    assert re.fullmatch(re.escape(str(target)) + shape, result.err[0]) and len(result.err) == 1
    options = ["--model", model, "--dev", file, "--max-passes", "3"]
    ours, theirs = tmp_path / "a", tmp_path / "b"
    assert run("train", target, *options, "-o", ours).code == 0
    assert run("train", file, "--format", kind, *options, "-o", theirs).code == 0
    assert ours.read_bytes() == theirs.read_bytes()


def test_tag_works_as_if_trained_from_the_text(run, toys, made, tmp_path):
    assert run("train", made, "-o", tmp_path / "m").code == 0
    assert run("tag", tmp_path / "m", toys / "new.txt").out == conll()
    shown = run("inspect", tmp_path / "m").out
    assert "input       conll, columns word,pos,chunk, label chunk" in shown
    assert "features='chunking'" in shown


def test_templates_of_every_kind(run, toys, tmp_path):
    crfpp, lines = tmp_path / "crfpp", tmp_path / "lines"
    crfpp.write_text("U00:%x[-1,0]\nU01:%x[0,1]\n")
    lines.write_text("word\n# mine\npos[1]\n")
    for options in (["--crfpp", crfpp], ["--features", f"@{lines}"], ["--features", "word"], []):
        target, ours, theirs = (tmp_path / name for name in "pab")
        assert run("prepare", toys / "train.txt", *options, "-o", target).code == 0
        assert run("train", target, "-o", ours).code == 0
        assert run("train", toys / "train.txt", *options, "-o", theirs).code == 0
        assert ours.read_bytes() == theirs.read_bytes()


def test_from_standard_input(run, tmp_path):
    assert run("prepare", "-", "-o", tmp_path / "p", stdin=conll()).code == 0
    assert Prepared.open(tmp_path / "p").input_format["columns"] == ["word", "pos", "label"]


def test_quiet(run, toys, tmp_path):
    result = run("prepare", toys / "train.txt", "--quiet", "-o", tmp_path / "p")
    assert (result.code, result.out, result.err) == (0, "", [])


def test_progress_names_the_size(run, made, tmp_path):
    result = run("train", made, "--progress", "--max-passes", "1", "-o", tmp_path / "m")
    assert result.err[0] == "20 sequences, 80 positions, 5 labels"


def test_warm_start_over_the_same_file(run, fails, toys, made, models, tmp_path):
    assert run("train", made, "--max-passes", "2", "-o", tmp_path / "m").code == 0
    more = ["--warm-start", tmp_path / "m", "-o", tmp_path / "n"]
    assert run("train", made, *more).code == 0
    model = load_model(tmp_path / "n")
    assert model.input_format_ == load_model(tmp_path / "m").input_format_ is not None
    message = fails("train", made, "--warm-start", models["jsonl"], "-o", tmp_path / "o")
    assert "the model has other features than the prepared corpus" in message


def test_prepared_in_python(run, tmp_path):
    corpus = Corpus.from_columns({"word": [["a", "b"]] * 5}, [["X", "Y"]] * 5)
    prepare(corpus, tmp_path / "p", "word")
    (tmp_path / "dev.txt").write_text("a X\nb Y\n")
    assert (
        run("train", tmp_path / "p", "--dev", tmp_path / "dev.txt", "-o", tmp_path / "m").code == 0
    )
    assert load_model(tmp_path / "m").input_format_ is None
    assert run("tag", tmp_path / "m", tmp_path / "dev.txt").out == "a X X\nb Y Y\n\n"


# ------------------------------------------------------------------ what is refused


@pytest.mark.parametrize(
    "option",
    [
        "--format conll",
        "--columns a,b",
        "--label a",
        "--tabs",
        "--skip x",
        "--features pos",
        "--crfpp x",
    ],
)
def test_options_that_were_for_prepare(fails, made, tmp_path, option):
    message = fails("train", made, *option.split(), "-o", tmp_path / "m")
    assert message == f"{option.split()[0]} is for 'trellis prepare', {made} is its result"


def test_a_damaged_file(fails, made, tmp_path):
    data = bytearray(made.read_bytes())
    data[-100] ^= 1
    made.write_bytes(data)
    message = fails("train", made, "-o", tmp_path / "m")
    assert message == f"{made}: the checksum does not match: the file is damaged or truncated"
    made.write_bytes(data[:20])
    message = fails("train", made, "-o", tmp_path / "m")
    assert message == f"{made}: the file is truncated, it ends after 20 bytes"
    assert not (tmp_path / "m").exists()


def test_not_a_model(fails, made, toys):
    message = fails("tag", made, toys / "new.txt")
    assert message == f"{made}: a Trellis prepared corpus, not a model file"


def test_what_cannot_be_prepared(fails, toys, tmp_path):
    target = tmp_path / "p"
    assert fails("prepare", toys / "train.txt", "-o", tmp_path) == (
        f"{tmp_path} is a folder; name a file to write"
    )
    assert "No such file" in fails("prepare", tmp_path / "none", "-o", target)
    (tmp_path / "empty").write_text("")
    assert "there is no sequence" in fails("prepare", tmp_path / "empty", "-o", target)
    options = ["--features", "word", "--crfpp", "x", "-o", target]
    assert fails("prepare", toys / "train.txt", *options) == "give --features or --crfpp, not both"
    crfsuite = [toys / "train.crfsuite", "--format", "crfsuite", "--features", "word"]
    assert fails("prepare", *crfsuite, "-o", target).endswith("has ready features")
    assert not target.exists()


@pytest.mark.parametrize("command", ["train", "prepare"])
def test_the_wrong_column_as_label(run, tmp_path, command):
    file, target = tmp_path / "words.txt", tmp_path / "out"
    file.write_text("".join(f"w{i} X\n\n" for i in range(600)))
    options = ["--columns", "word,tag", "--label", "word", "--features", "tag", "-o", target]
    options += ["--max-passes", 1, "--model", "perceptron"] if command == "train" else []
    result = run(command, file, *options)
    assert result.code == 0
    assert (
        "600 distinct labels: is this the label column? If it is, max_labels=600" in result.err[0]
    )
    assert "600 distinct" not in "".join(run(command, file, *options, "--max-labels", 600).err)
    target.unlink()
    result = run(command, file, *options, "--max-labels", 599)
    assert result.code == 1 and not target.exists()
    assert "600 distinct labels: is this the label column? Time and" in result.err[-1]
    assert "max_labels=600 (--max-labels 600)" in result.err[-1]

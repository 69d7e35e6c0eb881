"""``trellis export``: the file tags as ``trellis tag`` does, and says what it cannot."""

from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import pytest
from toy_files import LABELLED, conll, segmented, unlabelled

from trellis import ChainCRF, predictor
from trellis.cli import export
from trellis.corpus.schemes import tags_to_words


def tagged(file, *arguments, stdin=b""):
    """Run an exported file: exit code, standard output, standard error."""
    ended = subprocess.run(
        [sys.executable, "-I", file, *arguments], input=stdin, capture_output=True
    )
    return ended.returncode, ended.stdout.decode(), ended.stderr.decode()


@pytest.fixture
def exported(run, models, tmp_path):
    """The exported file of a model, by its name."""

    def make(model):
        file = tmp_path / "predictor.py"
        result = run("export", models.get(model, model), "-o", file)
        assert (result.code, result.out) == (0, "")
        assert re.fullmatch(rf"{file}: 0\.\d\d MB", result.err[0])
        return file

    return make


@pytest.mark.parametrize("name", ["conll", "perceptron", "crfsuite", "segmented"])
def test_the_same_output(run, exported, toys, models, name):
    file = exported(name)
    kind = "conll" if name == "perceptron" else name
    for source in [toys / LABELLED[kind]] + [toys / "new.txt"] * (kind == "conll"):
        expected = run("tag", models[name], source).out
        assert tagged(file, source) == (0, expected, "")
        text = source.read_bytes()
        assert tagged(file, stdin=text) == tagged(file, "-", stdin=text) == (0, expected, "")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("conll", ""),
        ("conll", "\ufeffThe DT\ncat NN\n\n\n \t\nIt   PRP\t\n"),
        ("conll", unlabelled().replace("\n", "\r\n").replace(" ", "\t ")),
        ("conll", "unseen X\n" * 300),
        ("crfsuite", "?\tw=cat\tp=NN\tlen:3\t\tw=cat\n?\ta\\:b:2\\\n\n".replace("2\\", "2")),
        ("crfsuite", "?\n?\tw=cat\n"),
        ("segmented", "猫坐在 垫子上\r\n\n \n大狗\tabc猫"),
        ("segmented", segmented().replace(" ", "")),
    ],
)
def test_the_same_output_of_odd_files(run, exported, models, name, text):
    expected = run("tag", models[name], stdin=text)
    assert expected.code == 0
    assert tagged(exported(name), stdin=text.encode()) == (0, expected.out, "")


def test_tabs_and_comments(run, exported, toys, tmp_path):
    file, model = tmp_path / "t", tmp_path / "m"
    file.write_text("# one\n" + conll(gap="\t").replace("dog", "hot dog"))
    options = ["--tabs", "--skip", "#", "--columns", "word,pos,chunk", "--label", "pos"]
    assert run("train", file, *options, "--quiet", "-o", model).code == 0
    assert tagged(exported(model), file) == (0, run("tag", model, file).out, "")


def test_words_of_tags_that_are_not_valid():
    rng = np.random.default_rng(0)
    for _ in range(300):
        tags = [str(tag) for tag in rng.choice(list("BMES"), rng.integers(1, 7))]
        text = list("abcdefg"[: len(tags)])
        assert predictor.words(text, tags) == " ".join(tags_to_words(text, tags))


def test_a_model_made_in_python(run, exported, tmp_path):
    ChainCRF(random_state=0).fit([["a", "b"]], [["X", "Y"]]).save(tmp_path / "m")
    file = exported(tmp_path / "m")
    assert tagged(file, stdin=b"b\na\n") == (0, "b Y\na X\n\n", "")
    assert tagged(file, stdin=b"b ?\na ?\n") == (0, "b ? Y\na ? X\n\n", "")


@pytest.mark.parametrize("name", ["conllu", "jsonl"])
def test_formats_that_it_does_not_read(exported, toys, name):
    code, out, error = tagged(exported(name), toys / LABELLED[name])
    assert (code, out) == (1, "")
    assert error == (
        "predictor.py: this model does not say how columns of a file are named, or was trained on "
        "files of another format; call predict() instead\n"
    )


@pytest.mark.parametrize(
    ("arguments", "text", "message"),
    [
        (["a", "b"], b"", "usage: python predictor.py [FILE] > TAGGED"),
        (["--help"], b"", "usage: python predictor.py [FILE] > TAGGED"),
        (
            ["no such file"],
            b"",
            "predictor.py: [Errno 2] No such file or directory: 'no such file'",
        ),
        ([], b"a b\nc\n", "predictor.py: 1 fields, expected 2: c"),
        ([], b"a b c d\n", "predictor.py: 4 fields, expected 2: a b c d"),
        ([], b"\xff b\n", "predictor.py: 'utf-8' codec can't decode byte 0xff in position 0"),
    ],
)
def test_refusals_of_the_file(exported, arguments, text, message):
    code, out, error = tagged(exported("conll"), *arguments, stdin=text)
    assert (code, out) == (1, "") and error.startswith(message) and error.count("\n") == 1


def test_a_large_file_is_told(run, models, tmp_path, monkeypatch):
    monkeypatch.setattr(export, "_LARGE", 1000)
    result = run("export", models["conll"], "-o", tmp_path / "p.py")
    assert result.err[0].endswith(" MB; 'trellis compress' makes a model small")


def test_refusals(run, fails, models, tmp_path):
    assert run("export", models["conll"]).code == 2
    model = ChainCRF("variety(word, 1..2)", random_state=0).fit([["a", "b"]], [["X", "Y"]])
    model.save(tmp_path / "m")
    assert fails("export", tmp_path / "m", "-o", tmp_path / "p.py") == (
        "the template 'variety(word, 1..2)' cannot be exported; leave it out"
    )
    assert not (tmp_path / "p.py").exists()

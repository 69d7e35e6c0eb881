"""``--unlabelled`` and ``--dictionary`` of ``trellis train`` and ``trellis prepare``."""

from __future__ import annotations

import pytest
from toy_files import FORMATS, LABELLED

from trellis import load_model


@pytest.fixture
def pets(tmp_path):
    file = tmp_path / "pets.txt"
    file.write_text("cat\nbig dog\n", encoding="utf-8")
    return file


def templates(path):
    return load_model(path).encoder_.templates.text()


@pytest.mark.parametrize("kind", [kind for kind in FORMATS if kind != "crfsuite"])
def test_text_of_every_format(run, toys, tmp_path, kind):
    file = toys / LABELLED[kind]
    options = ["--format", kind, "--max-passes", "2", "--unlabelled", file]
    assert run("train", file, *options, "-o", tmp_path / "m").code == 0
    added = "variety(char, 2..4)" if kind == "segmented" else "cluster("
    assert added in templates(tmp_path / "m")
    assert run("train", file, *options[:4], "-o", tmp_path / "n").code == 0
    assert added not in templates(tmp_path / "n")


def test_with_labels_or_without_them(run, toys, tmp_path):
    train = ["train", toys / "train.txt", "--max-passes", "2"]
    one, two = tmp_path / "one", tmp_path / "two"
    for raw, target in (("train.txt", one), ("new.txt", two)):
        assert run(*train, "--unlabelled", toys / raw, "-o", target).code == 0
    assert one.read_bytes() == two.read_bytes()
    both = ["--unlabelled", toys / "new.txt", "--unlabelled", toys / "train.txt"]
    assert run(*train, *both, "-o", two).code == 0
    assert load_model(two).encoder_.clusters["word"].keys() >= {"cat", "dog"}


def test_dictionaries(run, toys, tmp_path, pets):
    train = ["train", toys / "train.txt", "--max-passes", "2", "-o", tmp_path / "m"]
    assert run(*train, "--dictionary", f"pets={pets}").code == 0
    assert 'dictionary(word, "pets")[-1]' in templates(tmp_path / "m")
    shown = run("inspect", tmp_path / "m", "--top", "200").out
    assert 'dictionary(word, "pets")=whole' in shown
    written = ["--features", 'word; dictionary(word, "pets")', "--dictionary", f"pets={pets}"]
    assert run(*train, *written).code == 0
    assert templates(tmp_path / "m") == 'word\ndictionary(word, "pets")'


def test_prepared(run, toys, tmp_path, pets):
    beside = ["--unlabelled", toys / "new.txt", "--dictionary", f"pets={pets}"]
    file, made = toys / "train.txt", tmp_path / "made"
    assert run("prepare", file, "--features", "pos", *beside, "-o", made).code == 0
    assert run("train", made, "-o", tmp_path / "a").code == 0
    assert run("train", file, "--features", "pos", *beside, "-o", tmp_path / "b").code == 0
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_resume_takes_the_same_text(run, toys, tmp_path):
    train = ["train", toys / "train.txt", "--max-passes", "2", "-o", tmp_path / "m"]
    assert run(*train, "--unlabelled", toys / "new.txt", "--resume").code == 0


def test_what_is_refused(fails, run, toys, tmp_path, pets):
    train, out = ["train", toys / "train.txt"], ["-o", tmp_path / "m"]
    raw = ["--unlabelled", toys / "new.txt"]
    lists = ["--dictionary", f"pets={pets}"]
    assert fails(*train, "--features", "word", *raw, *out).startswith("no template learns from")
    assert fails(*train, "--features", "word", *lists, *out).startswith("no template uses the dict")
    gone = ["--features", 'dictionary(word, "x")']
    assert fails(*train, *gone, *out).startswith("the templates name the dictionary 'x'")
    ready = ["train", toys / "train.crfsuite", "--format", "crfsuite"]
    assert "ready-made features" in fails(*ready, *lists, *out)
    assert "ready-made features" in fails(*ready, "--unlabelled", toys / "train.crfsuite", *out)
    (tmp_path / "empty").write_text("")
    empty = ["--unlabelled", tmp_path / "empty"]
    assert fails(*train, *empty, *out) == "unlabelled= holds no text; leave it out"
    (tmp_path / "wide").write_text("a b c d\n")
    wide = ["--unlabelled", tmp_path / "wide"]
    assert "4 field(s) in the first line" in fails(*train, *wide, *out)
    assert run(*train, *out).code == 0
    more = [*train, "--warm-start", tmp_path / "m", *out]
    for options in (raw, lists):
        expected = f"{options[0]} cannot go with --warm-start: the model has its features"
        assert fails(*more, *options) == expected
    made = tmp_path / "made"
    assert run("prepare", toys / "train.txt", "-o", made).code == 0
    for options in (raw, lists):
        expected = f"{options[0]} is for 'trellis prepare', {made} is its result"
        assert fails("train", made, *options, *out) == expected


@pytest.mark.parametrize("said", ["pets", "=file", "pets="])
def test_a_dictionary_has_a_name_and_a_file(run, toys, tmp_path, said):
    result = run("train", toys / "train.txt", "--dictionary", said, "-o", tmp_path / "m")
    assert result.code == 2
    assert "expected NAME=FILE, such as cities=cities.txt" in result.err[-1]

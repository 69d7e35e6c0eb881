"""``trellis eval``: numbers that can be counted by hand, and what is refused."""

from __future__ import annotations

import io
import sys

import pytest
from toy_files import SENTENCES, conll

from trellis.cli import main

# Five positions, one wrong; of three gold spans two are found, and one found is wrong.
TAGGED = """\
The DT B-NP B-NP
cat NN I-NP I-NP
sat VB B-VP O

Dogs NN B-NP B-NP
. . O B-VP

"""
REPORT = """\
positions  5, in 2 sequences
accuracy   60.00 % of positions, 0.00 % of sequences

spans (BIO)
processed 5 tokens with 3 spans; found: 3 spans; correct: 2
accuracy: 60.00%; macro F1: 50.00
         precision   recall       F1  support  predicted
overall     66.67%   66.67%    66.67        3          3
     NP    100.00%  100.00%   100.00        2          2
     VP      0.00%    0.00%     0.00        1          1

most confused (gold → predicted)
       1  B-VP → O
       1  O → B-VP
"""


@pytest.fixture
def tagged(tmp_path):
    file = tmp_path / "tagged.txt"
    file.write_text(TAGGED)
    return file


def test_file_of_predictions(run, tagged):
    result = run("eval", tagged)
    assert (result.code, result.out, result.err) == (0, REPORT, [])


def test_predictions_on_standard_input_with_tabs_and_comments(run):
    text = "# comment here\n" + TAGGED.replace(" ", "\t").replace("The", "The one")
    assert run("eval", "-", "--tabs", "--skip", "#", stdin=text).out == REPORT


def test_tag_then_eval_equals_eval_with_the_model(run, models, tmp_path):
    # Make mistakes: every gold label is that of the position before.
    shifted = [
        [(*row[:2], sentence[i - 1][2]) for i, row in enumerate(sentence)] for sentence in SENTENCES
    ]
    (tmp_path / "test.txt").write_text(conll(shifted))
    assert run("tag", models["conll"], tmp_path / "test.txt", "-o", tmp_path / "out").code == 0
    scored = run("eval", "--model", models["conll"], tmp_path / "test.txt")
    assert scored.code == 0
    assert scored.out == run("eval", tmp_path / "out").out
    assert "accuracy   100" not in scored.out


def test_number_of_confusions(run, tagged):
    head, _, tail = REPORT.partition("\nmost confused (gold → predicted)\n")
    assert run("eval", tagged, "--confusions", "1").out == (
        f"{head}\nmost confused (gold → predicted)\n" + tail.splitlines()[0] + "\n"
    )
    assert run("eval", tagged, "--confusions", "0").out == head


def test_scheme(run, tagged, tmp_path):
    assert "spans" not in run("eval", tagged, "--scheme", "none").out
    assert run("eval", tagged, "--scheme", "BIO").out == REPORT
    (tmp_path / "bmes").write_text("B B\nE E\nS S\n")
    assert "spans (BMES)" in run("eval", tmp_path / "bmes").out
    (tmp_path / "plain").write_text("DT DT\nNN VB\n")
    plain = run("eval", tmp_path / "plain").out
    assert "spans" not in plain
    assert plain.startswith("positions  2, in 1 sequences\naccuracy   50.00 % of positions")


def test_nothing_confused(run, tmp_path):
    (tmp_path / "right").write_text("X X\nY Y\n")
    out = run("eval", tmp_path / "right").out
    assert out.endswith("accuracy   100.00 % of positions, 100.00 % of sequences\n")


def test_partly_annotated_gold_gives_no_spans(run, models, tmp_path):
    file = tmp_path / "a.jsonl"
    file.write_text('{"word": ["The", "cat"], "pos": ["DT", "NN"], "labels": ["B-NP", null]}\n')
    result = run("eval", "--model", models["jsonl"], file)
    assert (result.code, result.err) == (0, [])
    assert "accuracy   100.00 % of positions" in result.out
    assert "spans" not in result.out


def test_labels_never_seen_in_training_are_wrong(run, models, tmp_path):
    (tmp_path / "a.txt").write_text("The DT B-NP\ncat NN I-LST\n\n")
    out = run("eval", "--model", models["conll"], tmp_path / "a.txt").out
    assert "accuracy   50.00 % of positions" in out
    assert "I-LST → I-NP" in out


@pytest.mark.parametrize(
    ("content", "options", "expected"),
    [
        ("", "", "file is empty: there is no sequence in it"),
        ("a\nb\n", "", "file has one column; expected gold and predicted labels as the last two"),
        ("a b\nc\n", "", "file, line 2: 1 fields, expected 2 (as many as on the first line)"),
        ("a b\n", "--format jsonl", "without --model, only conll files can be scored, not jsonl"),
        ("a b\n", "--columns a,b", "--columns and --label need --model; without, the last two"),
        ("a b\n", "--label b", "--columns and --label need --model; without, the last two"),
        ("a b\n", "--confusions -1", "--confusions must be at least 0, got -1"),
        ("B-X I-X\n", "--scheme BMES", "sample 0 of predicted, position 0: label 'I-X' does not"),
        ("B-X 0.93\n", "", "sample 0 of predicted, position 0: label '0.93' does not fit"),
        ("a b\n", "--model no", "no: No such file or directory"),
        ("a b\n", "--model file", "file: not a Trellis model file"),
    ],
)
def test_one_line_for_each_error(fails, tmp_path, monkeypatch, content, options, expected):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text(content)
    assert fails("eval", "file", *options.split()).startswith(expected)


def test_with_a_model_the_labels_must_be_there(fails, toys, models, tmp_path):
    message = fails("eval", "--model", models["conll"], toys / "new.txt")
    assert message.endswith("line 1: 2 fields, expected 3 (word pos label)")
    message = fails("eval", "--model", models["conll"], "-", "--columns", "word,pos,x")
    assert message.startswith("label column 'label' is not among the columns word, pos, x")
    (tmp_path / "a.jsonl").write_text('{"word": ["The"], "pos": ["DT"]}\n')
    message = fails("eval", "--model", models["jsonl"], tmp_path / "a.jsonl")
    assert "has no labels: no key 'labels'" in message
    (tmp_path / "empty").write_text("")
    message = fails("eval", "--model", models["conll"], tmp_path / "empty")
    assert message.endswith("is empty: there is no sequence in it")


def test_missing_file(fails, models):
    assert fails("eval", "no") == "cannot read no: No such file or directory"
    assert fails("eval", "no", "--model", models["conll"]).startswith("cannot read no: ")


def test_terminal_that_cannot_show_arrows(tagged, monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(), "ascii", newline="")
    monkeypatch.setattr(sys, "stdout", stream)
    assert main(["eval", str(tagged)]) == 0
    assert stream.buffer.getvalue().decode("ascii") == REPORT.replace("→", "\\u2192")

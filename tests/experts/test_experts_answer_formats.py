"""Formats of answer files: told from name and content, read, and written again."""

from __future__ import annotations

import io
import json

import pytest

from trellis.errors import DataError
from trellis.experts import Answers, read_answers


def file(text, name="file"):
    data = io.BytesIO(text.encode())
    data.name = name
    return data


def both(text, name="file", **options):
    """Answers of two systems that say the same."""
    return read_answers([file(text, name), file(text, name)], **options)


def written(answers, path, combined=None, confidence=None, **options):
    answers.write(path, answers.answers[0] if combined is None else combined, confidence, **options)
    return path.read_text()


# ------------------------------------------------------------------ telling formats


@pytest.mark.parametrize(
    ("text", "name", "format", "kind"),
    [
        ("a X\nb Y\n\nc X\n", "f", "conll", "labels"),
        ("a X\nb Y\n \t\r\n", "f.txt", "conll", "labels"),
        ("X\nY\n\nX\n", "f", "conll", "labels"),
        ("X\nY\n", "f", "lines", "single"),
        ("a b c\n\na b\n", "f", "lines", "words"),
        ("a b\n", "f.conll", "conll", "labels"),
        ("a\tX\nb\tY\n\nc\tX\n", "f.tsv", "conll", "labels"),
        ("a b (u1)\nc d (u2)\n", "f", "trn", "words"),
        ("(u1) a b\n(u2) c\n", "f", "trn", "words"),
        ("u1 1 0.0 0.5 a\nu1 1 .5 1e-1 b 0.9\n", "f", "trn", "words"),
        ('{"answer": 1}\n', "f.txt", "jsonl", "single"),
        ('[{"answer": 1}]', "f", "json", "single"),
        ('[\n {"answer": 1}\n]', "f.jsonl", "json", "single"),
        ('{"answer": 1}\n{"answer": 2}\n', "f.json", "jsonl", "single"),
        ('{"answer": 1}', "f.json", "json", "single"),
        ("answer\nx\n", "f.csv", "csv", "single"),
    ],
)
def test_formats_are_told(text, name, format, kind):
    answers = both(text, name)
    assert (answers.format, answers.kind) == (format, kind)


def test_tables_without_a_name_are_told_from_their_columns():
    comma = read_answers(file('"a",b\nx,y\n'), systems=["a", "b"])
    assert (comma.format, comma.answers) == ("csv", [[["x"]], [["y"]]])
    tab = read_answers(file("a\tb\nx\ty\n"), systems=["a"])
    assert (tab.format, tab.answers) == ("tsv", [[["x"]]])


def test_words_and_samples_are_told_apart_together():
    blanks = [file("X\n\nY\n", "a"), file("X\nY\n\n", "b")]
    assert read_answers([*blanks, file("X\nY\nX\n", "c")]).format == "lines"
    gold = read_answers([file("a X\n\nb Y\n"), file("a X\n\nb X\n")], gold=file("X\n\nY\n"))
    assert (gold.format, gold.gold) == ("conll", [["X"], ["Y"]])
    with pytest.raises(DataError, match="no answer could be read: file, line 1: empty"):
        both("\n\n")


# ------------------------------------------------------------------ CSV


def test_cells():
    text = 'a;b\r\n"x;\n""y""";z\r\n\r\n w ;\r\n"";v"v\r\n'
    answers = read_answers(file(text, "t.csv"))
    assert answers.answers == [[['x;\n"y"'], ["w"], None], [["z"], None, ['v"v']]]
    assert "first at t.csv, line 6" in answers.notes[0]
    one = both('answer\nx\n\n""\ny\n', "t.csv")
    assert one.answers[0] == [["x"], None, ["y"]]
    assert read_answers(file("a,b\nx,y\n,\n", "t.csv")).answers == [[["x"], None], [["y"], None]]
    short = read_answers(file("a,b,c\nx\ny,z,,,\n", "t.csv"))
    assert short.answers == [[["x"], ["y"]], [None, ["z"]], [None, None]]
    assert "key not there: 1" in short.notes[0]


def test_quotes_in_tab_separated_files():
    text = 'a\tb\n"x" said\ty\n"p\tq"\tz\n"open\tw\n'
    answers = read_answers(file(text, "t.tsv"), kind="single")
    assert answers.answers == [[['"x" said'], ["p\tq"], ['"open']], [["y"], ["z"], ["w"]]]


def test_cells_of_any_length(tmp_path):
    long = "x" * 200_000
    answers = read_answers(file(f"a,b\n{long},{long}\n", "t.csv"))
    assert answers.answers[0] == [[long]]


@pytest.mark.parametrize(
    ("text", "name", "message"),
    [
        ("", "t.csv", "t.csv is empty; expected a header and rows of cells"),
        ("a,b\n", "t.csv", "t.csv is empty: there is no sample in it"),
        ("a,,b\nx,y,z\n", "t.csv", "t.csv, line 1: column 2 of the header has no name"),
        ("\na,a\nx,y\n", "t.csv", "t.csv, line 2: the header names column 'a' twice"),
        ("a,b\nx,y,z\n", "t.csv", "t.csv, line 2: 3 cells, but the header has 2; put cells"),
        ('a,b\nx,"y\n', "t.csv", "t.csv, line 2: a cell begins with a double quote that is not"),
        ('a,b\nx,"y"z\n', "t.csv", "t.csv, line 2: a cell begins with a double quote that is not"),
        ("no\nno\n", "t.jsonl", "t.jsonl, line 1: expected JSON lines, an object a line, and no"),
        ("[1, 2]", "t.json", "t.json: expected a list of objects, one for each sample"),
        ("3", "t.json", "t.json: expected a list of objects, one for each sample"),
        ("[" * 10**5, "t.json", "t.json: not JSON"),
        ("a b\n", "t.trn", r"t.trn, line 1: expected words and an utterance in brackets"),
        ("u 1 a b c\n", "t.ctm", "t.ctm, line 1: expected utterance, channel, start, duration"),
        ("u 1 nan 1 c\n", "t.ctm", "t.ctm, line 1: expected utterance, channel, start, duration"),
        ("a\0b\n", "t.txt", "t.txt, line 1: a NUL byte"),
    ],
)
def test_files_that_are_refused(text, name, message):
    with pytest.raises(DataError, match=message):
        read_answers(file(text, name))


def test_text_that_is_not_unicode_is_refused():
    for name in ("a.conll", "a.csv", "a.txt", "a.jsonl"):
        data = io.BytesIO(b"\xff X\n")
        data.name = name
        with pytest.raises(DataError, match=f"{name}, line 1: not UTF-8 text"):
            read_answers(data)


# ------------------------------------------------------------------ speech


def test_ctm_files(tmp_path):
    one = ";; comment\nu1 1 0.5 0.1 world 0.9\nu1 1 0.0 0.3 hello\nu2 1 0 1 x\nbroken\n"
    answers = read_answers([file(one, "a.ctm"), file("u1 A 0 0.3 hello\n", "b.ctm")])
    assert answers.ids == ["u1", "u2"]
    assert answers.answers == [[["hello", "world"], ["x"]], [["hello"], None]]
    assert answers.notes[0] == "a.ctm: 1 line(s) left out that are not of a ctm file; first line 5"
    text = written(answers, tmp_path / "out", [["hello", "world"], None], [[0.5, 1], None])
    assert text == "hello world (u1)\t0.5000 1.0000\n_ (u2)\t\n"
    with pytest.raises(DataError, match=r"a\.ctm, line 5: not a line of a ctm file"):
        read_answers([file(one, "a.ctm"), file(one, "b.ctm")], missing="error")


def test_channels_of_an_utterance_are_samples_of_their_own(tmp_path):
    answers = both("u1 A 0 1 yes\nu1 B 0 1 no\n", "x.ctm")
    assert answers.ids == ["u1-A", "u1-B"]
    assert written(answers, tmp_path / "out") == "yes (u1-A)\nno (u1-B)\n"
    odd = both("u(1 A 0 1 yes\n", "x.ctm")
    with pytest.raises(DataError, match=r"an utterance holds 'u\(1', which a trn file cannot"):
        odd.write(tmp_path / "out", odd.answers[0])


def test_trn_files(tmp_path):
    one = ";; comment\nthe cat (u1)\n\n(u2)\nno id\n"
    answers = read_answers([file(one, "a.trn"), file("(u2) no\n(u1) cat\n", "b.trn")])
    assert answers.ids == ["u1", "u2"]
    assert answers.answers == [[["the", "cat"], []], [["cat"], ["no"]]]
    assert "a.trn: 1 line(s) left out that are not of a trn file; first line 5" in answers.notes
    assert written(answers, tmp_path / "out") == "the cat (u1)\n(u2)\n"


# ------------------------------------------------------------------ writing


def test_column_files_keep_what_else_is_in_them(tmp_path):
    text = "The\tX\tDT \r\ncat  Y\tNN\r\n\r\n\r\nsat Z VB"
    answers = both(text, "a.conll", column=2)
    assert answers.answers[0] == [["X", "Y"], ["Z"]]
    out = tmp_path / "out"
    answers.write(out, [["A", "B"], None])
    assert out.read_bytes() == b"The\tA\tDT \r\ncat  B\tNN\r\n\r\n\r\nsat _ VB"
    answers.write(out, [["A", "B"], ["C"]], [[1, 0.5], [0.25]])
    assert out.read_bytes() == (
        b"The\tA\tDT\t1.0000 \r\ncat  B\tNN\t0.5000\r\n\r\n\r\nsat C VB 0.2500"
    )


def test_labels_of_a_sample_that_nobody_answers(tmp_path):
    answers = both("a X\n\nb _\n", "f.conll")
    assert answers.answered == [0]
    assert written(answers, tmp_path / "out", [["X"], ["Y"]]) == "a X\n\nb Y\n"
    with pytest.raises(DataError, match=r"f\.conll, line 3: 2 labels for 1 lines"):
        answers.write(tmp_path / "out", [["X"], ["Y", "Z"]])


def test_column_files_of_different_lengths_become_labels(tmp_path):
    files = [file("a X\nb Y\n"), file("a X\n")]
    answers = read_answers(files, format="conll", kind="words")
    assert answers.answers == [[["X", "Y"]], [["X"]]]
    assert written(answers, tmp_path / "out", [["Y"]], [[0.5]]) == "Y 0.5000\n\n"
    assert written(answers, tmp_path / "out", [None]) == "_\n\n"


def test_records_keep_what_else_is_in_them(tmp_path):
    text = '{"n": [1], "answer": 3, "é": "\\ud800"}\nno\n{"answer": "x"}\n'
    answers = both(text, "a.jsonl")
    assert answers.answers[0] == [["3"], None, ["x"]]
    assert written(answers, tmp_path / "out", [["3"], ["x"], None], [0.5, 1, None]) == (
        '{"n": [1], "answer": 3, "\\u00e9": "\\ud800", "confidence": 0.5}\n'
        '{"answer": "x", "confidence": 1.0}\n{"answer": null, "confidence": null}\n'
    )
    listed = both('[{"answer": true}, 3]', "a.json")
    assert json.loads(written(listed, tmp_path / "out")) == [{"answer": True}, {"answer": None}]


def test_tables_get_new_columns(tmp_path):
    table = read_answers(file("a;b;combined\nx;y;z\n", "t.csv"), systems=["a", "b"])
    assert written(table, tmp_path / "out", [["y"]]) == "a;b;combined;combined2\nx;y;z;y\n"
    records = read_answers(file('{"a": ["X"], "b": ["Y"]}\n', "t.jsonl"))
    assert json.loads(written(records, tmp_path / "out", [["Y"]], [[0.33333333]])) == {
        "a": ["X"], "b": ["Y"], "combined": ["Y"], "confidence": [0.3333],
    }  # fmt: skip
    text = read_answers(file("a,b\nx y,x\n", "t.csv"), kind="words")
    out = written(text, tmp_path / "out", [["x", "y"]], [[1, 0.5]])
    assert out == 'a,b,combined,confidence\nx y,x,x y,"[1.0, 0.5]"\n'


def test_files_of_one_system_in_csv(tmp_path):
    answers = both("id,answer,why\n1,x,because\n2,y,\n", "a.csv")
    assert written(answers, tmp_path / "out", [["y"], None], [0.5, None]) == (
        "id,answer,why,confidence\n1,y,because,0.5000\n2,,,\n"
    )


def test_spans_are_objects(tmp_path):
    answers = both('{"labels": [[0, 3, "PER"]], "text": "Ann"}\n', "a.jsonl")
    out = written(answers, tmp_path / "out", [[(0, 3, "PER")]], [[0.75]])
    assert json.loads(out) == {
        "labels": [{"start": 0, "end": 3, "type": "PER", "confidence": 0.75}], "text": "Ann",
    }  # fmt: skip
    again = read_answers([tmp_path / "out", tmp_path / "out"], format="jsonl")
    assert again.answers == answers.answers


def test_lines(tmp_path):
    answers = both("a b\n\nc d e\n", "f", format="lines")
    out = written(answers, tmp_path / "out", [["a"], [], None], [[0.5], [], None])
    assert out == "a\t0.5000\n\t\n_\t\n"
    labels = both("x\ny\n", "f")
    assert written(labels, tmp_path / "out", [["y"], ["y"]], [0.5, 1]) == "y\t0.5000\ny\t1.0000\n"
    with pytest.raises(DataError, match="an answer holds 'a b', which a file of lines cannot"):
        answers.write(tmp_path / "out", [["a b"], [], []])


def test_some_samples_only(tmp_path):
    answers = both("x\ny\nz\n", "f")
    assert written(answers, tmp_path / "out", [["a"], ["b"]], rows=[2, 0]) == "b\n_\na\n"


def test_answers_from_no_file_become_json_lines(tmp_path):
    answers = Answers(("a",), [[["x"], None]], ["p", "q"], "single")
    assert answers.format == "jsonl"
    assert written(answers, tmp_path / "out", confidence=[1, None]) == (
        '{"id": "p", "answer": "x", "confidence": 1.0}\n'
        '{"id": "q", "answer": null, "confidence": null}\n'
    )


@pytest.mark.parametrize(
    ("kind", "answer", "confidence", "message"),
    [
        ("labels", ["X"], None, "the combined answer to sample '1': 1 labels, expected 2"),
        ("labels", ["X", "Y"], [1], "its confidence must be 2 number"),
        ("labels", ["X", "Y"], [1, "a"], "its confidence must be 2 number"),
        ("labels", ["X", "Y"], [1, float("nan")], "its confidence must be 2 number"),
        ("labels", ["X", "Y"], 1.0, "its confidence must be 2 number"),
        ("labels", "XY", None, "expected a list, got 'XY'"),
        ("labels", ["X", 3], None, "labels must be strings, or None"),
        ("spans", [3], None, "expected spans .start, end, type."),
        ("single", ["X", "Y"], None, "2 labels, expected 1"),
        ("fields", ["X"], None, "1 labels, expected 2"),
        ("spans", [(1, 2)], None, "expected spans .start, end, type."),
        ("spans", [("a", 2, "X")], None, "expected spans .start, end, type."),
    ],
)
def test_what_cannot_be_written(tmp_path, kind, answer, confidence, message):
    answers = Answers(("a",), [[["X", "Y"]]], ["1"], kind, fields=("p", "q"))
    with pytest.raises(DataError, match=message):
        answers.write(tmp_path / "out", [answer], None if confidence is None else [confidence])
    with pytest.raises(DataError, match="combined has 2 entries for 1 samples"):
        answers.write(tmp_path / "out", [None, None])
    with pytest.raises(DataError, match="confidence has 0 entries for 1 samples"):
        answers.write(tmp_path / "out", [None], [])


def test_records_too_deep_to_be_written(tmp_path):
    deep = "[" * 900 + "]" * 900
    answers = both(f'{{"answer": 1, "x": {deep}}}\n', "a.jsonl")

    def further(levels):
        if levels:
            return further(levels - 1)
        return answers.write(tmp_path / "out", [["1"]])

    with pytest.raises(DataError, match="a record is nested too deeply to be written"):
        further(700)

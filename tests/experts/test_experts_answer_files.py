"""Answers of several systems from files of all kinds: what is read, and what is missing."""

from __future__ import annotations

import gzip
import io
import json

import pytest

from trellis.errors import DataError
from trellis.experts import Aligned, Answers, MajorityVote, read_answers


def file(text, name="file"):
    data = io.BytesIO(text.encode())
    data.name = name
    return data


def jsonl(*records, name="file.jsonl"):
    return file("".join(f"{json.dumps(r)}\n" for r in records), name)


# ------------------------------------------------------------------ the three commands


def test_files_without_gold(tmp_path):
    texts = {
        "sys1.txt": "The DT B-NP\ncat NN I-NP\n\nIt PRP B-NP\n",
        "sys2.txt": "The DT B-NP\ncat NN O\n\nIt PRP _\n",
        "sys3.txt": "The DT B-NP\ncat NN I-NP\n\nIt PRP O\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    answers = read_answers([tmp_path / name for name in texts])
    assert answers.names == ("sys1", "sys2", "sys3")
    assert answers.kind == "labels"
    assert answers.gold is None
    assert answers.ids == ["1", "2"]
    assert answers.answers[1] == [["B-NP", "O"], None]
    assert answers.notes == [
        f"sys2: 1 of 2 answers missing (marked '_': 1); first at {tmp_path / 'sys2.txt'}, line 4"
    ]
    answers.write(tmp_path / "merged.txt", [["B-NP", "I-NP"], ["O"]], [[1, 0.66667], [0.5]])
    merged = "The DT B-NP 1.0000\ncat NN I-NP 0.6667\n\nIt PRP O 0.5000\n"
    assert (tmp_path / "merged.txt").read_text() == merged


TABLE = (
    "\ufeffid,gpt,claude,rules,gold,remark\r\n"
    "007,yes,no,,yes,\r\n"
    '2024-01-02,"I am sorry, I cannot",no,no,,"two\r\nlines"\r\n'
    "9,no,no,no,no,x\r\n"
)


def test_one_wide_table(tmp_path):
    path = tmp_path / "answers.csv"
    path.write_bytes(TABLE.encode())
    answers = read_answers(path, id="id", systems=["gpt", "claude", "rules"], gold="gold")
    assert answers.names == ("gpt", "claude", "rules")
    assert answers.kind == "single"
    assert answers.ids == ["007", "2024-01-02", "9"]
    assert answers.gold == [["yes"], None, ["no"]]
    assert answers.answers[0] == [["yes"], ["I am sorry, I cannot"], ["no"]]
    assert answers.answers[2][0] is None
    assert answers.notes == [f"rules: 1 of 3 answers missing (empty: 1); first at {path}, line 2"]
    assert answers.labelled == [0, 2]
    rows = answers.labelled
    vote = MajorityVote().fit(answers.sequences(rows), [answers.gold[i] for i in rows])
    combined = vote.predict(answers.sequences())
    answers.write(tmp_path / "out.csv", combined, [0.5, 2 / 3, 1])
    again = read_answers(tmp_path / "out.csv", systems=["combined"], gold="gold")
    assert again.answers[0] == combined
    text = (tmp_path / "out.csv").read_text()
    assert text.splitlines()[0] == "id,gpt,claude,rules,gold,remark,combined,confidence"
    assert text.splitlines()[-1] == "9,no,no,no,no,x,no,1.0000"


def test_new_files_of_the_same_systems(tmp_path):
    for name, text in {"new1.txt": "the cat sat\n", "new2.txt": "the cat\n"}.items():
        (tmp_path / name).write_text(text)
    answers = read_answers([tmp_path / "new1.txt", tmp_path / "new2.txt"], names=["sys1", "sys2"])
    assert answers.names == ("sys1", "sys2")
    assert answers.kind == "words"
    combined = Aligned(MajorityVote()).fit(answers.sequences(), [["the", "cat", "sat"]])
    answers.write(tmp_path / "merged.txt", combined.predict(answers.sequences()))
    assert (tmp_path / "merged.txt").read_text() == "the cat sat\n"


# ------------------------------------------------------------------ kinds


def test_scalars_are_labels():
    answers = read_answers(
        [
            jsonl({"answer": 3}, {"answer": True}, {"answer": " x "}, name="a.jsonl"),
            jsonl({"answer": 3.0}, {"answer": "true"}, {"answer": 0.5}, name="b.jsonl"),
            jsonl({"answer": "3"}, {"answer": float("nan")}, {}, name="c.jsonl"),
        ]
    )
    assert answers.kind == "single"
    assert answers.answers == [
        [["3"], ["true"], ["x"]], [["3"], ["true"], ["0.5"]], [["3"], None, None],
    ]  # fmt: skip
    assert answers.notes == [
        "c: 2 of 3 answers missing (empty: 1, key not there: 1); first at c.jsonl, line 2"
    ]


def test_whole_numbers_with_a_point_are_whole_numbers():
    answers = read_answers(file("a,b\n3,3.0\n4,\n", "x.csv"))
    assert answers.answers == [[["3"], ["4"]], [["3"], None]]
    assert "b: 1 answers like 3.0 are taken as 3" in answers.notes
    assert read_answers(file("a,b\n1.0,2.0\n", "x.csv")).answers == [[["1.0"]], [["2.0"]]]


def test_objects_are_fields():
    answers = read_answers(
        jsonl(
            {"a": {"name": "Ann", "age": 3}, "b": {"name": "Ann", "age": None, "x": 1}},
            {"a": {"name": ["A", "B"]}, "b": '```json\n{"name": "", "age": "3"}\n```'},
            {"a": "I am sorry", "b": {"name": "_"}},
        )
    )
    assert (answers.kind, answers.fields) == ("fields", ("age", "name"))
    assert answers.answers[0] == [["3", "Ann"], ["", '["A", "B"]'], None]
    assert answers.answers[1] == [["", "Ann"], ["3", ""], ["", None]]
    assert answers.notes == [
        "1 field(s) left out that only one system has: 'x'",
        "a: 1 of 3 answers missing (text instead of an object: 1); first at file.jsonl, line 3",
        "b: 1 label(s) missing in 1 answers",
    ]
    assert answers.values([["3", '["A", "B"]'], ["", None]]) == [
        {"age": 3, "name": ["A", "B"]}, {"age": None, "name": "_"},
    ]  # fmt: skip


def test_fields_are_those_of_the_gold_or_as_asked():
    records = [{"a": {"x": 1, "y": 2}, "b": {"y": 2}, "gold": {"x": 1}}]
    answers = read_answers(jsonl(*records))
    assert answers.fields == ("x",)
    assert answers.gold == [["1"]]
    assert answers.notes == [
        "file.jsonl: the column 'gold' is taken as the right answers",
        "1 field(s) left out that the right answers have not: 'y'",
    ]
    assert read_answers(jsonl(*records), fields=["z", "y"]).answers == [[["2", ""]], [["2", ""]]]


def test_whole_records_as_answers(tmp_path):
    files = [
        jsonl({"id": 1, "name": "Ann", "age": 3}, name="a.jsonl"),
        jsonl({"id": 1, "name": "Bob"}, name="b.jsonl"),
    ]
    answers = read_answers(files, kind="fields")
    assert answers.fields == ("name",)
    assert answers.answers == [[["Ann"]], [["Bob"]]]
    answers.write(tmp_path / "out.jsonl", [["Bob"]], [[0.5]])
    assert json.loads((tmp_path / "out.jsonl").read_text()) == {
        "id": 1, "name": "Bob", "age": 3, "confidence": {"name": 0.5},
    }  # fmt: skip


def test_lists_are_labels_or_words():
    even = [{"a": ["X", "Y"], "b": ["X", None]}] * 3
    odd = {"a": ["X", "Y"], "b": ["X"]}
    assert read_answers(jsonl(*even)).kind == "labels"
    answers = read_answers(jsonl(*even, odd))
    assert answers.kind == "labels"
    assert answers.answers[1][3] is None
    assert answers.notes == [
        "b: 1 of 4 answers missing (not as long as others: 1); first at file.jsonl, line 4",
        "b: 3 label(s) missing in 3 answers",
    ]
    answers = read_answers(jsonl(odd, odd, even[0]))
    assert answers.kind == "words"
    assert answers.notes[0] == (
        "the answers to 2 of 3 samples differ in length: they are taken as words, to be aligned"
    )


def test_the_right_answer_has_the_right_length():
    record = {"a": ["X", "Y"], "b": ["X", "Y"], "gold": ["X"]}
    same = {"a": ["X"], "b": ["X"], "gold": ["X"]}
    answers = read_answers(jsonl(same, same, record), gold="gold")
    assert [column[2] for column in answers.answers] == [None, None]
    assert answers.answered == answers.labelled == [0, 1]


def test_spans_in_all_forms():
    text = "Ann went to Rome"
    answers = read_answers(
        jsonl(
            {
                "text": text,
                "a": [[12.0, 16, "LOC"], [0, 3, "PER"], [0, 3, "PER"]],
                "b": [{"start": 0, "end": 3, "entity_group": "PER", "score": 0.9}],
                "c": [{"start": 0, "end": 99, "label": "X"}, [0, 3, "PER"], [3, 3, "X"], ["a"]],
            },
            {"text": text, "a": [], "b": "none", "c": [["x", 3, "PER"], [1, 2, "Y"]]},
            {"text": text, "a": [], "b": [], "c": [[1, 2, None], [0, 1, ""]]},
        )
    )
    assert answers.kind == "spans"
    assert answers.texts == [text] * 3
    assert answers.answers == [
        [[(0, 3, "PER"), (12, 16, "LOC")], [], []],
        [[(0, 3, "PER")], None, []],
        [[(0, 3, "PER")], [(1, 2, "Y")], None],
    ]
    assert answers.notes == [
        "c: 4 span(s) left out that are not start, end (beyond start, within the text) and type",
        "b: 1 of 3 answers missing (text instead of a list of spans: 1); first at file.jsonl, "
        "line 2",
        "c: 1 of 3 answers missing (a list of something else instead of a list of spans: 1); "
        "first at file.jsonl, line 3",
    ]
    assert answers.answered == [0, 1, 2]
    beyond = read_answers(jsonl({"text": "abc", "a": [[0, 9, "X"]], "b": [[0, 3, "X"]]}))
    assert beyond.answers == [[None], [[(0, 3, "X")]]]
    assert "a: 1 of 1 answers missing (no valid span: 1)" in beyond.notes[1]


def test_lists_in_cells():
    cells = ['"[""X"", ""Y""]"', "\"['X', 'Y']\"", '"I am sorry"', "\"['X' 'Y']\""]
    answers = read_answers(file("a,b\n" + "".join(f"{c},{cells[0]}\n" for c in cells), "t.csv"))
    assert answers.kind == "labels"
    assert answers.answers[0] == [["X", "Y"], ["X", "Y"], None, None]
    single = read_answers(file("a,b\n[UNK],[PAD]\n", "t.csv"))
    assert single.answers == [[["[UNK]"]], [["[PAD]"]]]


def test_texts_are_split_into_words():
    answers = read_answers(file("a\tb\nthe cat sat\tthe cat\nyes it did so\tyes\n", "t.tsv"))
    assert answers.kind == "words"
    assert answers.answers[0] == [["the", "cat", "sat"], ["yes", "it", "did", "so"]]
    assert answers.notes[0].startswith("answers are taken as texts, and split into words")
    same = file("a,b\n" + "not at all sure,very very sure\n" * 4, "t.csv")
    assert read_answers(same).kind == "single"
    answers = read_answers(file("a,b\nx y,x\n", "t.csv"), kind="words")
    assert answers.answers == [[["x", "y"]], [["x"]]]
    mixed = jsonl({"a": "x y"}, {"a": ["x"]}, {"a": "z"})
    assert read_answers(mixed, kind="labels").answers == [[["x", "y"], None, ["z"]]]


def test_a_label_a_line():
    answers = read_answers([file("yes\n\nno\n", "a"), file("yes\nno\nno\n", "b")])
    assert (answers.kind, answers.format) == ("single", "lines")
    assert answers.answers == [[["yes"], None, ["no"]], [["yes"], ["no"], ["no"]]]
    phrases = [file("very good\n_\n"), file("not good\nbad\n")]
    answers = read_answers(phrases, format="lines", kind="single")
    assert answers.answers == [[["very good"], None], [["not good"], ["bad"]]]


def test_columns_of_one_column_file(tmp_path):
    text = "the D D N\ncat N _ V\n\nsat V V V\n"
    answers = read_answers(file(text), systems=["3", -1], gold=2)
    assert answers.names == ("column 3", "column -1")
    assert answers.gold == [["D", "N"], ["V"]]
    assert answers.answers == [[["D", None], ["V"]], [["N", "V"], ["V"]]]
    answers.write(tmp_path / "out", [["D", "N"], ["V"]], [[1, 1], [1]])
    assert (tmp_path / "out").read_text() == (
        "the D D N D 1.0000\ncat N _ V N 1.0000\n\nsat V V V V 1.0000\n"
    )
    assert read_answers(file(text)).answers == [[["N", "V"], ["V"]]]


# ------------------------------------------------------------------ joining


def test_files_are_joined_by_id(tmp_path):
    answers = read_answers(
        [
            jsonl({"id": 1, "labels": ["X"]}, {"id": 2, "labels": ["Y"]}, name="a.jsonl"),
            file('id,labels\n3,"[""Z""]"\n1.0,"[""X""]"\n1,"[""V""]"\n', "b.csv"),
        ],
        gold=jsonl({"id": 2, "gold": ["Y"]}, {"id": 9, "gold": ["X"]}, name="g.jsonl"),
    )
    assert answers.ids == ["1", "2", "3", "1.0"]
    assert answers.answers == [[["X"], ["Y"], None, None], [["V"], None, ["Z"], ["X"]]]
    assert answers.gold == [None, ["Y"], None, None]
    assert answers.notes == [
        "gold: 1 right answers left out that no system has a sample for; first at g.jsonl, line 2",
        "a: 2 of 4 answers missing (no such id: 2); first at a.jsonl",
        "b: 1 of 4 answers missing (no such id: 1); first at b.csv",
    ]
    answers.write(tmp_path / "out.jsonl", [["X"], ["Y"], ["Z"], None])
    assert (tmp_path / "out.jsonl").read_text() == (
        '{"id": 1, "labels": ["X"]}\n{"id": 2, "labels": ["Y"]}\n'
        '{"id": "3", "labels": ["Z"]}\n{"id": "1.0", "labels": null}\n'
    )


def test_lines_that_are_not_json():
    good = {"answer": "x"}
    by_order = [file('{"answer": "x"}\nI am sorry\n', "a.jsonl"), jsonl(good, good, name="b.jsonl")]
    answers = read_answers(by_order)
    assert answers.answers == [[["x"], None], [["x"], ["x"]]]
    assert answers.notes == ["a: 1 of 2 answers missing (not JSON: 1); first at a.jsonl, line 2"]
    by_id = [
        file('{"id": 1, "answer": "x"}\n[1]\n', "a.jsonl"),
        jsonl({"id": 1, **good}, {"id": 2, **good}, name="b.jsonl"),
    ]
    answers = read_answers(by_id)
    assert answers.answers == [[["x"], None], [["x"], ["x"]]]
    assert answers.notes == [
        "a.jsonl: 1 of 2 samples left out that have no id; first at a.jsonl, line 2",
        "a: 1 of 2 answers missing (no such id: 1); first at a.jsonl",
    ]
    table = read_answers(file('{"id": 1, "a": "x"}\nno\n', "a.jsonl"))
    assert table.ids == ["1", "line 2"]


def test_ids_that_name_nothing_are_not_used():
    answers = read_answers(
        [jsonl({"id": 1, "answer": "x"}, {"id": 1, "answer": "y"}, name=n) for n in ("a", "b")],
        format="jsonl",
    )
    assert answers.ids == ["1", "2"]
    assert answers.notes[0] == (
        "a: the column 'id' does not name samples ('1' is at a, line 1 and at a, line 2)"
    )
    answers = read_answers([jsonl({"id": 7, "answer": "x"}), jsonl({"answer": "x"}, name="b")],
                           format="jsonl")  # fmt: skip
    assert answers.ids == ["7"]
    assert answers.notes == ["joined by order, since b has no ids that are distinct"]


def test_gold_in_a_file_of_its_own():
    table = "id,a,b\n1,x,y\n2,y,y\n"
    gold = file("id,label\n2,y\n", "gold.csv")
    assert read_answers(file(table, "t.csv"), gold=gold).gold == [None, ["y"]]
    lines = [file("x y\n", "a"), file("x\n", "b")]
    answers = read_answers(lines, format="lines", gold=file("x y z\n", "g"))
    assert answers.gold == [["x", "y", "z"]]
    wide = read_answers(file("the D\ncat N\n", "w"), format="conll", gold=file("D\nN\n"))
    assert wide.gold == [["D", "N"]]
    systems = [jsonl({"p": "x", "q": 1}, name=n) for n in "ab"]
    answers = read_answers(systems, format="jsonl", column="p", gold=jsonl({"label": "y"}))
    assert (answers.answers, answers.gold) == ([[["x"]], [["x"]]], [["y"]])


def test_an_empty_column_of_gold_is_no_gold():
    answers = read_answers(file("a,b,gold\nx,y,\n", "t.csv"))
    assert answers.names == ("a", "b")
    assert answers.gold is None


def test_text_columns():
    table = "a,b,text,t\nx,y,one,two\n"
    assert read_answers(file(table, "t.csv")).texts == ["one"]
    answers = read_answers(file(table, "t.csv"), text="t", systems=["a", "b"])
    assert answers.texts == ["two"]


def test_packed_files(tmp_path):
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(b'{"answer": "x"}\n'))
    (tmp_path / "b.jsonl").write_text('{"answer": "y"}\n')
    answers = read_answers([str(tmp_path / "a.jsonl.gz"), str(tmp_path / "b.jsonl")])
    assert (answers.names, answers.answers) == (("a", "b"), [[["x"]], [["y"]]])


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (["sys1.txt", "sys2.txt"], ("sys1", "sys2")),
        (["runs/gpt/out.jsonl", "runs/claude/out.jsonl"], ("gpt", "claude")),
        (["ner-gpt-dev.txt", "ner-claude-dev.txt"], ("gpt", "claude")),
        (["run.1.txt", "run.2.txt"], ("run.1", "run.2")),
        (["a.txt", "a.conll"], ("a 1", "a 2")),
        (["input", "input"], ("input 1", "input 2")),
        (["x.txt"], ("x",)),
    ],
)
def test_names_of_files(paths, names):
    assert read_answers([file("a\n", p) for p in paths], format="lines").names == names


# ------------------------------------------------------------------ missing


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ({"a": None}, "null"),
        ({"a": " "}, "empty"),
        ({}, "key not there"),
        ({"a": "I am sorry"}, "text instead of a list of labels"),
        ({"a": {"x": 1}}, "an object instead of a list of labels"),
        ({"a": [["x"]]}, "a list of something else instead of a list of labels"),
        ({"a": [[0, 1, "X"]]}, "a list of spans instead of a list of labels"),
        ({"a": [None]}, "nothing but nulls"),
        ({"a": ["_", "N/A"]}, "marked as missing"),
        ({"a": "N/A"}, "marked 'N/A'"),
        ({"a": ["\ud800"]}, "marked as missing"),
        ("x", "not a JSON object"),
    ],
)
def test_reasons(record, reason):
    rows = [{"a": ["X"], "b": ["X"]}] * 3
    rest = record if isinstance(record, str) else {**record, "b": ["X"]}
    answers = read_answers(jsonl(*rows, rest), missing_marks=["_", "N/A"])
    assert answers.answers[0][3] is None
    assert answers.notes[0] == (
        f"a: 1 of 4 answers missing ({reason}: 1); first at file.jsonl, line 4"
    )
    with pytest.raises(DataError) as caught:
        read_answers(jsonl(*rows, rest), missing_marks=["_", "N/A"], missing="error")
    assert str(caught.value) == f"file.jsonl, line 4: an answer of a is missing: {reason}"


def test_reasons_of_other_kinds():
    single = jsonl({"a": "x"}, {"a": ["y"]}, {"a": ["x", "y"]}, {"a": "\ud800"})
    answers = read_answers(single, kind="single")
    assert answers.answers == [[["x"], ["y"], None, None]]
    assert "a list of labels instead of one label: 1" in answers.notes[0]
    words = jsonl({"a": "x y"}, {"a": "\ud800"}, {"a": ["x", "y"]}, {"a": "z"})
    answers = read_answers(words, kind="words")
    assert answers.answers == [[["x", "y"], None, None, ["z"]]]
    assert "not valid text: 1, a list of labels instead of text: 1" in answers.notes[0]


def test_gold_may_be_missing_but_not_odd():
    rows = [{"a": ["X"], "gold": g} for g in (["X"], None, "", "_", "a b")]
    answers = read_answers(jsonl(*rows), gold="gold")
    assert answers.gold == [["X"], None, None, None, None]
    assert answers.notes == [
        "gold: 1 of 5 answers missing (text instead of a list of labels: 1); first at file.jsonl, "
        "line 5"
    ]
    with pytest.raises(DataError, match="line 5: an answer of gold is missing: text instead"):
        read_answers(jsonl(*rows), gold="gold", missing="error")
    assert read_answers(jsonl(*rows[:4]), gold="gold", missing="error").notes == []


# ------------------------------------------------------------------ refusals

LISTS = [{"labels": ["X", "Y"]}]
CSV = "id,a,b\n1,x,y\n"


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda: read_answers([]), "there are no files to read answers from"),
        (lambda: read_answers(3), "there are no files to read answers from"),
        (lambda: read_answers([3]), "cannot read a int: give a path, '-' or an open file"),
        (lambda: read_answers(file(CSV), format="xml"), "format must be .*got 'xml'"),
        (lambda: read_answers(file(CSV), kind="trees"), "kind must be .*got 'trees'"),
        (lambda: read_answers(file(CSV), missing="ignore"), "missing must be .*got 'ignore'"),
        (lambda: read_answers(file(CSV), missing_marks="_"), "missing_marks must be"),
        (lambda: read_answers(file(CSV), id=3), "id must be None or a string"),
        (lambda: read_answers(file(CSV), fields="ab"), "fields must be"),
        (lambda: read_answers(file(CSV), systems="a,b"), "systems must be a list of names, got"),
        (lambda: read_answers(file(""), format="lines"), "file is empty: there is no sample in it"),
        (
            lambda: read_answers([file("a\n"), file("b\n")], systems=["a"]),
            "systems are columns of one table, but there are several files",
        ),
        (
            lambda: read_answers(file(CSV, "t.csv"), systems=["a", "c"]),
            "the system 'c' is not a column of t.csv: its columns are id, a, b",
        ),
        (
            lambda: read_answers(file(CSV, "t.csv"), systems=["a", "a"]),
            "the column 'a' is named for two things",
        ),
        (
            lambda: read_answers(file(CSV, "t.csv"), systems=["a", "b"], gold="b"),
            "the column 'b' is named for two things",
        ),
        (
            lambda: read_answers(file(CSV, "t.csv"), id="utt"),
            "id 'utt' is not a column of t.csv: its columns are id, a, b",
        ),
        (
            lambda: read_answers(file(CSV, "t.csv"), text="t"),
            "text 't' is not a column of t.csv",
        ),
        (
            lambda: read_answers(file(CSV, "t.csv"), gold="truth"),
            "gold 'truth' is neither a column of t.csv nor a file; the columns are id, a, b",
        ),
        (
            lambda: read_answers(file(CSV, "t.csv"), gold="tru\0th"),
            "is neither a column of t.csv nor a file",
        ),
        (
            lambda: read_answers(file(CSV, "t.csv"), gold="x" * 5000),
            "is neither a column of t.csv nor a file",
        ),
        (
            lambda: read_answers(file("id\n1\n", "t.csv")),
            "t.csv has no column of a system's answers",
        ),
        (
            lambda: read_answers(file(CSV, "t.csv"), systems=["a"], column="b"),
            "name the columns by systems or by column, not by both",
        ),
        (
            lambda: read_answers(file("a b\n"), format="lines", systems=[1]),
            "file has the format lines: it has no columns",
        ),
        (
            lambda: read_answers([file("a b\n"), file("a b\n")], format="lines", column=1),
            "file has the format lines: it has no columns",
        ),
        (
            lambda: read_answers([jsonl({"p": 1, "q": 2}), jsonl({"p": 1, "q": 2})]),
            "file.jsonl: which of its columns has the answers. They are p, q; name one by column",
        ),
        (
            lambda: read_answers([jsonl(*LISTS), jsonl(*LISTS)], column="tags"),
            "the column 'tags' is not a column of file.jsonl: its columns are labels",
        ),
        (
            lambda: read_answers([file("a b\n"), file("a b\n")], format="conll", gold=2),
            "gold is 2: with several files it is one more file",
        ),
        (
            lambda: read_answers([file("a b\nc\n"), file("a b\n")], format="conll", column=2),
            "file, line 2: 1 fields, expected column 2",
        ),
        (
            lambda: read_answers(file("a b\n"), format="conll", column="pos"),
            "column is 'pos': expected the number of a column of a column file",
        ),
        (
            lambda: read_answers(file("a b\n"), format="conll", systems=[0]),
            "column is 0: expected the number",
        ),
        (
            lambda: read_answers(file("a b\n"), format="conll", id="id"),
            "id is 'id', but file is no table with a header",
        ),
        (
            lambda: read_answers([file("a\n\nb\n", "one"), file("a\n", "two")], format="conll"),
            "two has 1 samples, one has 2: the first without a counterpart is at one, line 3",
        ),
        (
            lambda: read_answers([file("a\n", "one"), file("a\n\n\nb\n", "two")], format="conll"),
            "two has 2 samples, one has 1: the first without a counterpart is at two, line 4",
        ),
        (
            lambda: read_answers([file("a\nb\n", "one"), file("a\n", "two")], format="conll"),
            "two, line 1: two has 1 labels, but one has 2 .one, line 1.; say kind='words'",
        ),
        (
            lambda: read_answers(
                jsonl(*[{"a": ["X"], "b": ["X"]}] * 2, {"a": ["X"], "b": []}), missing="error"
            ),
            "file.jsonl, line 3: b has 0 labels, but a has 1 .file.jsonl, line 3.; say kind",
        ),
        (
            lambda: read_answers(jsonl({"id": 1, "a": 1}, {"id": 1, "a": 1}), id="id"),
            "file.jsonl, line 2: the id '1' is also at file.jsonl, line 1",
        ),
        (
            lambda: read_answers([file("a (u)\nb (u)\n", "a.trn"), file("a (u)\n", "b.trn")]),
            "a.trn, line 2: the id 'u' is also at a.trn, line 1",
        ),
        (
            lambda: read_answers(jsonl({"id": [], "a": 1}), missing="error"),
            "file.jsonl, line 1: no id",
        ),
        (
            lambda: read_answers([file("a (u1)\n", "a.trn"), file("a (u2)\n", "b.trn")]),
            "b.trn has no id that the files before it have; its first is 'u2', that of a.trn is "
            "'u1'",
        ),
        (
            lambda: read_answers(jsonl({"a": "x"}), kind="spans"),
            "no answer could be read: file.jsonl, line 1: text instead of a list of spans; say",
        ),
        (
            lambda: read_answers(jsonl({"a": "x", "g": None}), gold="g"),
            "gold: no right answer could be read; file.jsonl, line 1: null",
        ),
        (
            lambda: read_answers([file("a\n"), file("b\n")], format="lines", kind="spans"),
            "file has the format lines, which cannot hold spans; they can be in jsonl",
        ),
        (
            lambda: read_answers([file("a b\n", "x"), file("a b\n", "y")], names=["n", "n"]),
            "cannot tell whether x has one word or one sample a line: say format='conll'",
        ),
        (
            lambda: read_answers([file("a\n"), file("b\n")], format="lines", names=["n", "n"]),
            "2 experts need as many different names, got n, n",
        ),
    ],
)
def test_refusals(call, expected):
    with pytest.raises(DataError, match=expected):
        call()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "trees"}, "kind must be"),
        ({"names": ("a", "b")}, "answers must hold a list for each name, with an answer for each"),
        ({"ids": ["1", "2"]}, "answers must hold a list for each name, with an answer for each id"),
        ({"gold": []}, "answers must hold a list for each name, with an answer for each id"),
    ],
)
def test_answers_made_by_hand(change, message):
    good = {"names": ("a",), "answers": [[["x"]]], "ids": ["1"], "kind": "single"}
    assert len(Answers(**good)) == 1
    assert Answers(**good).labelled == []
    with pytest.raises(DataError, match=message):
        Answers(**(good | change))

"""What one answer is, and whatever else may stand in its place."""

from __future__ import annotations

import io
import json
import math
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from trellis.errors import DataError
from trellis.experts import as_outputs, read_answers
from trellis.experts.answer_values import KINDS, Missing, Reading, label_text, structure

SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 10**20), st.floats(), st.text(max_size=4),
    st.sampled_from(["_", "3", "3.0", "yes", "[1]", '{"a": 1}', "['a']", "```json\n[1]\n```"]),
)  # fmt: skip
SPANS = st.tuples(st.integers(-1, 4), st.integers(-1, 9), st.sampled_from(["A", "B", None]))
SPAN_OBJECTS = st.fixed_dictionaries(
    {"start": SCALARS | st.integers(0, 3), "end": st.integers(0, 5)},
    optional={"type": SCALARS, "label": st.just("A")},
)
VALUES = st.recursive(
    SCALARS | st.lists(SPANS | SPAN_OBJECTS, max_size=3),
    lambda x: st.lists(x, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", ""]), x),
    max_leaves=6,
)
RECORDS = st.dictionaries(st.sampled_from(["id", "a", "b", "gold", "text"]), VALUES)


def file(data, name):
    source = io.BytesIO(data)
    source.name = name
    return source


@pytest.mark.parametrize(
    ("value", "label"),
    [
        (3, "3"), (3.0, "3"), (-0.0, "0"), ("3", "3"), ("007", "007"), (" a b ", "a b"),
        (0.1, "0.1"), (1e300, "1e+300"), (math.inf, "inf"), (True, "true"), (False, "false"),
        (None, None), (math.nan, None), ("\ud800", None), ("é", "é"),
    ],
)  # fmt: skip
def test_labels(value, label):
    assert label_text(value) == label


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('["a", 1]', ["a", 1]),
        ("['a', None]", ["a", None]),
        ("[('a', 1)]", [["a", 1]]),
        ("{'a': {1}}", {"a": "{1}"}),
        ("{1: 'x'}", {"1": "x"}),
        ('Here it is:\n```json\n{"a": 1}\n```\nEnjoy!', {"a": 1}),
        ("```\n[1]\n```", [1]),
    ],
)
def test_lists_and_objects_in_text(text, value):
    assert structure(text) == value


@pytest.mark.parametrize(
    "text", ["['a' 'b']", "[a, b]", "[", "[" * 10**5, "yes", "['\\d']", "[1or 2]", "(1, 2)", ""]
)
def test_text_that_is_text(text):
    assert structure(text) == text


def test_a_field_that_cannot_be_written_is_missing():
    reading = Reading("fields", "object", fields=["a", "b"])
    assert reading({"a": ["\ud800"], "b": 1}) == [None, "1"]
    assert reading({"a": ["\ud800"], "b": "\ud800"}) == Missing("marked as missing")
    deep: list[object] = []
    for _ in range(10**5):
        deep = [deep]
    assert reading({"a": deep, "b": 1}) == [None, "1"]


# ------------------------------------------------------------------ whatever comes


def used(sources, path, **options):
    """Read and, if it can be read, check, write and read again: the same, or refused."""
    try:
        answers = read_answers(sources, **options)
    except DataError:
        return
    n = len(answers.ids)
    assert answers.kind in KINDS
    assert len(set(answers.names)) == len(answers.names)
    columns = [*answers.answers, *([] if answers.gold is None else [answers.gold])]
    assert all(len(column) == n for column in columns)
    assert all(isinstance(note, str) and note for note in answers.notes)
    silent = sum(a is None for column in answers.answers for a in column)
    assert silent == 0 or any("missing" in note for note in answers.notes)
    for i in range(n):
        said = [column[i] for column in columns if column[i] is not None]
        if answers.kind == "spans":
            assert all(0 <= s < e and kind for a in said for s, e, kind in a)
            continue
        assert all(y is None or y.encode() is not None for a in said for y in a)
        lengths = {len(a) for a in said}
        if answers.kind == "labels":
            assert len(lengths) <= 1
        elif answers.kind != "words":
            assert lengths <= {1 if answers.kind == "single" else len(answers.fields)}
    if answers.kind in ("labels", "single", "fields") and answers.answered:
        as_outputs(answers.sequences(answers.answered))
    try:
        answers.write(path, answers.answers[0])
    except DataError:
        return
    if all(answer is None for answer in answers.answers[0]):
        return
    wide = isinstance(sources, io.BytesIO)
    again = read_answers(
        path if wide else [path, path],
        format=answers.format,
        kind=answers.kind,
        fields=answers.fields,
        systems=[combined_name(path, answers.format)] if wide else None,
    )
    assert again.answers[0] == answers.answers[0]


def combined_name(path, format):
    text = path.read_text()
    if format in ("json", "jsonl"):
        first = json.loads(text)[0] if format == "json" else json.loads(text.split("\n")[0])
        return next(k for k in first if k.startswith("combined"))
    return re.match(r".*?\b(combined\d*)(?=\n)", text, re.DOTALL)[1]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("answers") / "out"


@given(records=st.lists(RECORDS, min_size=1, max_size=5), kind=st.sampled_from(["auto", *KINDS]))
@example(records=[{"a": "[1]"}, {"a": "x"}, {"a": "y"}], kind="auto")
@example(records=[{"a": {}}], kind="auto")
def test_any_values_in_a_table(path, records, kind):
    lines = "".join(f"{json.dumps(record)}\n" for record in records)
    used(file(lines.encode(), "t.jsonl"), path, kind=kind)
    strict = {"kind": kind, "missing": "error"}
    used(file(lines.encode(), "t.jsonl"), path, **strict)


@given(
    records=st.lists(st.fixed_dictionaries({"answer": VALUES}), min_size=1, max_size=5),
    numbered=st.booleans(),
    data=st.data(),
)
def test_any_values_in_files_of_systems(path, records, numbered, data):
    names = [data.draw(st.permutations(range(len(records)))) for _ in range(2)]
    files = []
    for order in names:
        rows = [{**({"id": i} if numbered else {}), **records[i]} for i in order]
        files.append(file("".join(f"{json.dumps(r)}\n" for r in rows).encode(), "t.jsonl"))
    used(files, path)


SEEDS = [
    b"The D B-NP\ncat N I-NP\n\nIt P _\n",
    b"the cat sat\n\nyes\n",
    b"the cat (u1)\nsat (u2)\n",
    b";; x\nu1 1 0.5 0.1 b 0.9\nu1 1 0.1 0.1 a\nu2 A 0 1 c\n",
    b'id,a,b,gold\n1,yes,"n""o",\n2,,"a\nb",x\n',
    b"a;b\n3;3.0\n4;\n",
    b'id\ta\tb\n1\t[1, 2]\t["x", null]\n',
    b'{"id": 1, "labels": ["a", null]}\n{"id": "2", "labels": null}\nno\n',
    b'[{"answer": {"x": 1}}, {"answer": {"x": [1]}}]',
    b'{"text": "Ann", "labels": [[0, 3, "PER"], {"start": 1, "end": 2, "tag": "X"}]}\n',
]
NAMES = ["f", "f.csv", "f.tsv", "f.json", "f.jsonl", "f.ctm", "f.trn", "f.conll"]


@given(
    seed=st.sampled_from(SEEDS),
    cuts=st.lists(st.tuples(st.integers(0, 90), st.integers(0, 6), st.binary(max_size=4)),
                  max_size=4),
    name=st.sampled_from(NAMES),
)  # fmt: skip
def test_damaged_files(path, seed, cuts, name):
    data = seed
    for place, n, new in cuts:
        data = data[:place] + new + data[place + n :]
    used([file(data, name), file(data, name)], path)
    used([file(data, name), file(seed, name)], path)
    if name in ("f.csv", "f.jsonl"):
        used(file(data, name), path)


@given(data=st.binary(max_size=60), name=st.sampled_from(NAMES))
def test_any_bytes(path, data, name):
    used([file(data, name), file(data, name)], path)

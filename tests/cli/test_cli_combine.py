"""``trellis combine``: the table, the output in every format, and what is refused."""

from __future__ import annotations

import json
import random

import pytest

WORDS = ["the", "cat", "sat", "on", "it"]
TAG = {"the": "D", "cat": "N", "sat": "V", "on": "P", "it": "N"}
QUICK = ("--only", "majority-vote,rerank")


def sentences(n, seed):
    draw = random.Random(seed)
    return [[draw.choice(WORDS) for _ in range(draw.randint(2, 5))] for _ in range(n)]


def answers(samples, j):
    """Expert j is always wrong about word j, and right about the others."""
    return [["X" if w == WORDS[j] else TAG[w] for w in sample] for sample in samples]


def conll(samples, labels):
    return "".join(
        "".join(f"{w} {y}\n" for w, y in zip(ws, ys, strict=True)) + "\n"
        for ws, ys in zip(samples, labels, strict=True)
    )


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Gold and three experts on 30 sentences, the experts on 8 new ones; in the work folder."""
    monkeypatch.chdir(tmp_path)
    known, new = sentences(30, 1), sentences(8, 2)
    right = [[TAG[w] for w in sample] for sample in known]
    (tmp_path / "gold.txt").write_text(conll(known, right))
    for j in range(3):
        (tmp_path / f"s{j}.txt").write_text(conll(known, answers(known, j)))
        (tmp_path / f"n{j}.txt").write_text(conll(new, answers(new, j)))
    return new


def test_table(run, files):
    result = run("combine", "--gold", "gold.txt", "s0.txt", "s1.txt", "s2.txt", *QUICK)
    assert (result.code, result.err) == (0, [])
    lines = result.out.splitlines()
    assert lines[0] == (
        "30 samples, 3 experts; positions that are right, %; methods by 5-fold cross-validation"
    )
    rows = [line.split() for line in lines[4:] if line]
    assert [row[0] for row in rows] == ["s0.txt", "s1.txt", "s2.txt", "majority-vote", "rerank"]
    by_name = {row[0]: [float(x) for x in row[1:3]] for row in rows}
    assert by_name["majority-vote"][0] == 100.0
    assert by_name["majority-vote"][1] > 0
    assert (
        result.out == run("combine", "--gold", "gold.txt", "s0.txt", "s1.txt", "s2.txt", *QUICK).out
    )


def test_every_method(run, files):
    result = run("combine", "--gold", "gold.txt", "s0.txt", "s1.txt", "s2.txt", "--folds", "2")
    assert (result.code, result.err) == (0, [])
    names = [line.split()[0] for line in result.out.splitlines()[4:] if line]
    assert names[3:] == [
        "best-expert", "majority-vote", "plurality", "rerank", "rover", "weighted-majority",
        "espboost", "stepwise", "log-linear", "stacking",
    ]  # fmt: skip


def test_output_keeps_the_other_columns(run, files, tmp_path):
    arguments = ["--gold", "gold.txt", "s0.txt", "s1.txt", "s2.txt"]
    result = run(
        "combine", *arguments, "--apply", "n0.txt", "n1.txt", "n2.txt", "-o", "out.txt", *QUICK
    )
    assert result.code == 0
    assert result.out.endswith("8 samples combined by majority-vote: out.txt\n")
    wanted = conll(files, [[TAG[w] for w in sample] for sample in files])
    assert (tmp_path / "out.txt").read_text() == wanted


def test_method_of_the_output(run, files):
    arguments = ["--gold", "gold.txt", "s0.txt", "s1.txt", "--apply", "n0.txt", "n1.txt"]
    result = run("combine", *arguments, "-o", "out.txt", *QUICK, "--method", "best-expert")
    assert "8 samples combined by best-expert: out.txt" in result.out


def test_column_and_tabs(run, files, tmp_path):
    text = (tmp_path / "n0.txt").read_text()
    columns = "\n".join(
        f"{line.replace(' ', chr(9))}\trest" if line else "" for line in text.split("\n")
    )
    (tmp_path / "tabs.txt").write_text(columns)
    for name in ("gold", "s0"):
        old = (tmp_path / f"{name}.txt").read_text()
        (tmp_path / f"{name}.txt").write_text(
            "\n".join(f"{line} rest" if line else "" for line in old.split("\n"))
        )
    arguments = ["--gold", "gold.txt", "s0.txt", "--apply", "tabs.txt", "--column", "2"]
    assert run("combine", *arguments, "-o", "out.txt", *QUICK).code == 0
    assert (tmp_path / "out.txt").read_text() == columns


def test_spans_are_the_default_with_a_scheme(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sample = "a B-X\nb I-X\nc O\n\n"
    (tmp_path / "gold").write_text(sample * 6)
    (tmp_path / "one").write_text(sample * 3 + sample.replace("I-X", "O") * 3)
    assert "F1 of spans, %" in run("combine", "--gold", "gold", "one", "one", *QUICK).out
    other = run("combine", "--gold", "gold", "one", "one", *QUICK, "--scheme", "none").out
    assert "positions that are right, %" in other
    exact = run("combine", "--gold", "gold", "one", "one", *QUICK, "--metric", "exact").out
    assert "samples that are all right, %" in exact
    assert "50.000" in exact


LINES = ["K AE T", "D AO G", "K AE T S", "D AO G Z", "B ER D", "K AA T", "D EH G", "B ER D Z"]


def test_answers_of_different_lengths(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gold").write_text("".join(f"{line}\n" for line in LINES))
    shorter = [line.rsplit(" ", 1)[0] if i % 3 == 0 else line for i, line in enumerate(LINES)]
    longer = [line + " AH" if i % 3 == 1 else line for i, line in enumerate(LINES)]
    other = ["X " + line if i % 3 == 2 else line for i, line in enumerate(LINES)]
    for name, lines in (("a", shorter), ("b", longer), ("c", other)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    base = ["combine", "--gold", "gold", "a", "b", "c", "--format", "lines", "--align"]
    result = run(
        *base, "--only", "majority-vote", "--folds", "2", "--apply", "a", "b", "c", "-o", "o"
    )
    assert (result.code, result.err) == (0, [])
    assert "mean edit distance (less is better)" in result.out
    row = next(line for line in result.out.splitlines() if line.startswith("majority-vote"))
    assert float(row.split()[1]) == 0.0
    assert float(row.split()[2]) > 0  # a smaller distance is a gain
    assert (tmp_path / "o").read_text() == (tmp_path / "gold").read_text()


def test_aligned_columns_are_written_as_labels(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, end in (("gold", "b"), ("one", "b"), ("two", "b\nc")):
        (tmp_path / name).write_text(f"a\n{end}\n\n" * 4)
    arguments = ["--gold", "gold", "one", "two", "--align", "--folds", "2", "--only", "rerank"]
    assert run("combine", *arguments, "--apply", "one", "two", "-o", "out").code == 0
    assert (tmp_path / "out").read_text() == "a\nb\n\n" * 4


def test_jsonl_and_missing_answers(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [["a", "b"], ["b", "b"], ["a", "a"], ["b", "a"]]
    texts = {
        "gold": rows,
        "one": [*rows[:3], None],
        "two": [["b", "b"], ["b", None], ["a", "a"], ["b", "a"]],
    }
    for name, samples in texts.items():
        lines = [json.dumps({"id": i, "tags": y}) for i, y in enumerate(samples)]
        (tmp_path / name).write_text("\n".join(lines))
    arguments = ["--gold", "gold", "one", "two", "--format", "jsonl", "--column", "tags"]
    result = run(
        "combine", *arguments, "--folds", "2", "--only", "majority-vote", "--apply", "one", "two",
        "-o", "out",
    )  # fmt: skip
    assert (result.code, result.err) == (0, [])
    found = [json.loads(line) for line in (tmp_path / "out").read_text().splitlines()]
    assert found == [{"id": i, "tags": y} for i, y in enumerate(rows)]
    row = next(line for line in result.out.splitlines() if line.startswith("one"))
    assert float(row.split()[1]) == 75.0  # what is not answered is wrong


@pytest.mark.parametrize(
    ("extra", "expected"),
    [
        ("s0.txt --apply n0.txt", "--apply and -o belong together"),
        ("s0.txt -o out", "--apply and -o belong together"),
        ("s0.txt s1.txt --apply n0.txt -o out", "2 systems but 1 files after --apply"),
        ("s0.txt --apply n0.txt -o .", ". is a folder; name a file to write"),
        ("s0.txt --only magic", "--only: unknown method 'magic'; known: best-expert"),
        ("s0.txt --column x", "--column: expected a number, got 'x'"),
        ("s0.txt --column 3", "gold.txt, line 1: 2 fields, expected column 3"),
        ("none.txt", "cannot read none.txt: No such file or directory"),
        ("empty.txt", "empty.txt is empty: there is no sample in it"),
        ("n0.txt", "n0.txt has 8 samples, gold.txt has 30: the first without a counterpart is at"),
        ("short.txt", "short.txt, line 1: 1 labels, but gold.txt, line 1 has "),
        ("s0.txt --folds 1", "--folds must be between 2 and the 30 samples, got 1"),
        ("s0.txt --folds 31", "--folds must be between 2 and the 30 samples, got 31"),
        ("s0.txt --metric span-f1", "--metric span-f1 needs labels of a tag scheme"),
        ("s0.txt --align --metric hamming", "--metric hamming cannot score answers of different"),
        ("s0.txt s1.txt --apply n0.txt s0.txt -o out", "s0.txt has 30 samples, n0.txt has 8"),
        ("silent.txt", "gold.txt, line 1: no system answers this sample"),
    ],
)
def test_one_line_for_each_error(fails, files, tmp_path, extra, expected):
    (tmp_path / "empty.txt").write_text("")
    gold = (tmp_path / "gold.txt").read_text()
    (tmp_path / "short.txt").write_text("the D\n\n" + gold.split("\n\n", 1)[1])
    (tmp_path / "silent.txt").write_text(
        "\n".join(f"{line.split()[0]} _" if line else "" for line in gold.split("\n"))
    )
    message = fails("combine", "--only", "majority-vote", "--gold", "gold.txt", *extra.split())
    assert message.startswith(expected)
    assert not (tmp_path / "out").exists()


def test_gold_must_be_complete(fails, files, tmp_path):
    (tmp_path / "gold.txt").write_text((tmp_path / "gold.txt").read_text().replace(" D", " _", 1))
    message = fails("combine", "--gold", "gold.txt", "s0.txt")
    assert message.startswith("gold.txt, line ")
    assert message.endswith("a right answer with labels missing")


def test_new_samples_need_an_answer(fails, files, tmp_path):
    (tmp_path / "n.txt").write_text("the _\n\n")
    message = fails(
        "combine", "--gold", "gold.txt", "s0.txt", "--apply", "n.txt", "-o", "out", *QUICK
    )
    assert message == "n.txt, line 1: no system answers this sample"

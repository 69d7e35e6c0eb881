"""``trellis combine``: the table, the output in every format, and what is refused."""

from __future__ import annotations

import csv
import json
import random

import pytest

from trellis import load_model
from trellis.experts.methods import tried_names

WORDS = ["the", "cat", "sat", "on", "it"]
TAG = {"the": "D", "cat": "N", "sat": "V", "on": "P", "it": "N"}
QUICK = ("--only", "log-linear,rerank")
SYSTEMS = ("s0.txt", "s1.txt", "s2.txt")
NEW = ("n0.txt", "n1.txt", "n2.txt")


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


def right_tags(samples):
    return [[TAG[w] for w in sample] for sample in samples]


# ------------------------------------------------------------------ without right answers


def test_no_gold_at_all(run, files, tmp_path):
    result = run("combine", *NEW, "-o", "merged.txt", "--confidence")
    assert (result.code, result.err) == (0, [])
    assert result.out.startswith("8 samples, 0 with the right answer; 3 systems; labels\n")
    assert "how often each system says what the combination says:" in result.out
    assert result.out.endswith("8 samples combined by guarded-vote: merged.txt\n")
    lines = [line.split() for line in (tmp_path / "merged.txt").read_text().split("\n") if line]
    assert [line[:2] for line in lines] == [[w, TAG[w]] for sample in files for w in sample]
    assert all(0 < float(line[2]) <= 1 for line in lines)


def test_review_lists_what_is_disputed(run, files, tmp_path):
    assert run("combine", *NEW, "--review", "review.csv").code == 0
    rows = list(csv.DictReader((tmp_path / "review.csv").open()))
    assert list(rows[0]) == ["id", "start", "end", "answer", "confidence", "n0", "n1", "n2"]
    levels = [float(row["confidence"]) for row in rows]
    assert levels == sorted(levels)
    for row in rows:
        words = files[int(row["id"]) - 1][int(row["start"]) : int(row["end"])]
        assert row["answer"].split() == [TAG[w] for w in words]
        assert all("X" in row[name] for name in ("n0", "n1", "n2") if row[name] != row["answer"])


# ------------------------------------------------------------------ with right answers


def test_table(run, files):
    result = run("combine", "--gold", "gold.txt", *SYSTEMS, *QUICK)
    assert (result.code, result.err) == (0, [])
    lines = result.out.splitlines()
    assert lines[0] == "30 samples, 30 with the right answer; 3 systems; labels"
    assert lines[1] == (
        "positions that are right, %; methods by 5-fold cross-validation; gain: over the plain "
        "vote, with 95 % interval"
    )
    rows = [line.split() for line in lines[4:-1] if line]
    assert [row[0] for row in rows] == ["s0", "s1", "s2", "vote", "log-linear", "rerank"]
    assert float(rows[3][1]) == 100.0
    assert all(float(row[2]) < 0 for row in rows[:3])
    assert lines[-1] == "combined by vote: nothing is surely better than the vote"
    assert result.out == run("combine", "--gold", "gold.txt", *SYSTEMS, *QUICK).out


def test_every_method(run, files):
    result = run("combine", "--gold", "gold.txt", *SYSTEMS, "--folds", "2")
    assert (result.code, result.err) == (0, [])
    table = result.out.split("\n\n")[2]
    names = [line.split()[0] for line in table.splitlines()]
    assert tuple(names) == tried_names("labels", None, "hamming")


def test_a_better_method_is_taken_and_its_gain_not_flattered(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    draw = random.Random(0)
    right = [draw.choice("abc") for _ in range(300)]
    for name, share in (("good", 0.95), ("p", 0.4), ("q", 0.4), ("r", 0.4), ("t", 0.4)):
        said = [y if draw.random() < share else draw.choice("abc") for y in right]
        (tmp_path / f"{name}.jsonl").write_text("".join(f'{{"labels": "{y}"}}\n' for y in said))
    (tmp_path / "gold.jsonl").write_text("".join(f'{{"labels": "{y}"}}\n' for y in right))
    files = [f"{name}.jsonl" for name in ("p", "good", "q", "r", "t")]
    result = run("combine", "--gold", "gold.jsonl", *files, "--only", "log-linear")
    assert (result.code, result.err) == (0, [])
    assert "combined by log-linear; to be expected on new answers: +" in result.out
    assert "log-linear" in next(x for x in result.out.splitlines() if x.endswith("<- taken"))


def test_output_keeps_the_other_columns(run, files, tmp_path):
    result = run(
        "combine", "--gold", "gold.txt", *SYSTEMS, "--apply", *NEW, "-o", "out.txt", *QUICK
    )
    assert result.code == 0
    assert result.out.endswith("8 samples combined by vote: out.txt\n")
    assert (tmp_path / "out.txt").read_text() == conll(files, right_tags(files))


def test_without_new_samples_the_old_ones_are_combined(run, files, tmp_path):
    assert run("combine", "--gold", "gold.txt", *SYSTEMS, "-o", "out.txt", *QUICK).code == 0
    assert (tmp_path / "out.txt").read_text() == (tmp_path / "gold.txt").read_text()


def test_method_that_is_asked_for(run, files):
    arguments = ["--gold", "gold.txt", *SYSTEMS, "--apply", *NEW]
    result = run("combine", *arguments, "-o", "out.txt", *QUICK, "--method", "best-expert")
    assert "combined by best-expert, as asked; the trials would take vote" in result.out
    assert "8 samples combined by best-expert: out.txt" in result.out


def test_saved_and_loaded(run, files, tmp_path):
    assert run("combine", "--gold", "gold.txt", *SYSTEMS, *QUICK, "--save", "c.trellis").code == 0
    assert load_model(tmp_path / "c.trellis").expert_names_ == ("s0", "s1", "s2")
    result = run("combine", "--load", "c.trellis", *NEW, "-o", "out.txt", "--review", "r.csv")
    assert (result.code, result.err) == (0, [])
    assert (tmp_path / "out.txt").read_text() == conll(files, right_tags(files))
    assert (tmp_path / "r.csv").exists()


def test_column_and_tabs(run, files, tmp_path):
    for name in ("gold.txt", *SYSTEMS, *NEW):
        old = (tmp_path / name).read_text().replace(" ", "\t")
        (tmp_path / name).write_text(
            "\n".join(f"{line}\trest" if line else "" for line in old.split("\n"))
        )
    arguments = ["--gold", "gold.txt", *SYSTEMS, "--apply", *NEW, "--column", "2"]
    assert run("combine", *arguments, "-o", "out.txt", *QUICK).code == 0
    wanted = conll(files, right_tags(files)).replace(" ", "\t")
    assert (tmp_path / "out.txt").read_text() == "\n".join(
        f"{line}\trest" if line else "" for line in wanted.split("\n")
    )


def test_spans_are_the_default_with_a_scheme(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sample = "a B-X\nb I-X\nc O\n\n"
    (tmp_path / "gold").write_text(sample * 6)
    (tmp_path / "one").write_text(sample * 3 + sample.replace("I-X", "O") * 3)
    base = ["combine", "--gold", "gold", "one", "one", "--format", "conll", "--only", "rerank"]
    assert "F1 of spans, %" in run(*base).out
    assert "positions that are right, %" in run(*base, "--scheme", "none").out
    exact = run(*base, "--metric", "exact").out
    assert "samples that are all right, %" in exact
    assert "50.00" in exact


# ------------------------------------------------------------------ files as people have them


def test_one_wide_table(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = ["id,gpt,claude,rules,gold"]
    rows += [f"q{i},yes,{'yes' if i % 2 else 'no'},,{'yes' if i < 6 else ''}" for i in range(9)]
    (tmp_path / "answers.csv").write_text("\n".join(rows))
    base = ["combine", "answers.csv", "--id", "id", "--systems", "gpt,claude,rules"]
    result = run(*base, "--gold", "gold", "-o", "out.csv", "--save", "c.trellis", *QUICK)
    assert result.code == 0
    assert result.out.startswith("note: rules: 9 of 9 answers missing (empty: 9); first at answers")
    found = list(csv.DictReader((tmp_path / "out.csv").open()))
    assert [row["combined"] for row in found] == ["yes"] * 9
    again = run(*base[:2], "--load", "c.trellis", *base[2:], "-o", "again.csv", "--confidence")
    assert again.code == 0
    assert {"combined", "confidence"} <= set(
        csv.DictReader((tmp_path / "again.csv").open()).fieldnames
    )


LINES = ["K AE T", "D AO G", "K AE T S", "D AO G Z", "B ER D", "K AA T", "D EH G", "B ER D Z"]


def test_answers_of_different_lengths(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gold").write_text("".join(f"{line}\n" for line in LINES))
    shorter = [line.rsplit(" ", 1)[0] if i % 3 == 0 else line for i, line in enumerate(LINES)]
    longer = [line + " AH" if i % 3 == 1 else line for i, line in enumerate(LINES)]
    other = ["X " + line if i % 3 == 2 else line for i, line in enumerate(LINES)]
    for name, lines in (("a", shorter), ("b", longer), ("c", other)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    base = ["combine", "a", "b", "c", "--format", "lines", "--align"]
    gold = ["--gold", "gold", "--only", "vote", "--folds", "2"]
    result = run(*base, *gold, "--apply", "a", "b", "c", "-o", "o")
    assert (result.code, result.err) == (0, [])
    assert "word error rate, %" in result.out
    rows = {line.split()[0]: line.split() for line in result.out.splitlines() if line}
    assert float(rows["vote"][1]) == 0.0
    assert float(rows["a"][2]) < 0  # more errors are no gain
    assert (tmp_path / "o").read_text() == (tmp_path / "gold").read_text()
    assert run(*base, "-o", "o2", "--review", "r.csv").code == 0
    assert (tmp_path / "o2").read_text() == (tmp_path / "gold").read_text()


def test_spans_with_offsets(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = {
        "a": [[[0, 4, "PER"], [8, 12, "LOC"]], [[2, 5, "LOC"]]],
        "b": [[{"start": 0, "end": 4, "label": "PER"}], [[2, 5, "LOC"]]],
        "c": [[[0, 4, "PER"], [8, 12, "LOC"]], []],
    }
    for name, samples in said.items():
        lines = [json.dumps({"id": str(i), "spans": spans}) for i, spans in enumerate(samples)]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines))
    files = [f"{name}.jsonl" for name in said]
    result = run("combine", *files, "--column", "spans", "-o", "o.jsonl", "--confidence")
    assert (result.code, result.err) == (0, [])
    found = [json.loads(line)["spans"] for line in (tmp_path / "o.jsonl").read_text().splitlines()]
    kept = [[(s["start"], s["end"], s["type"]) for s in spans] for spans in found]
    assert kept == [[(0, 4, "PER"), (8, 12, "LOC")], [(2, 5, "LOC")]]
    assert all(0 < s["confidence"] <= 1 for spans in found for s in spans)


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
    result = run("combine", *arguments, "--folds", "2", "--only", "vote", "-o", "out")
    assert result.code == 0
    found = [json.loads(line) for line in (tmp_path / "out").read_text().splitlines()]
    assert found == [{"id": i, "tags": y} for i, y in enumerate(rows)]
    row = next(line for line in result.out.splitlines() if line.startswith("one"))
    assert float(row.split()[1]) == 75.0  # what is not answered is wrong


# ------------------------------------------------------------------ errors


@pytest.mark.parametrize(
    ("extra", "expected"),
    [
        ("s0.txt s1.txt --apply n0.txt n1.txt", "--apply needs -o or --review: say where"),
        ("s0.txt s1.txt --apply n0.txt -o out", "2 files of answers but 1 after --apply"),
        ("s0.txt s1.txt -o .", ". is a folder; name a file to write"),
        ("s0.txt s1.txt --confidence", "--confidence needs -o"),
        ("s0.txt s1.txt --only magic", "there is no method 'magic' for labels; known are vote"),
        ("s0.txt s1.txt --column 3", "s0.txt, line 1: 2 fields, expected column 3"),
        ("s0.txt none.txt", "cannot read none.txt: No such file or directory"),
        ("n0.txt s0.txt", "s0.txt has 30 samples"),
        ("s0.txt s1.txt --folds 1", "n_folds must be an integer of at least 2, got 1"),
        ("s0.txt s1.txt --metric span-f1", "metric 'span-f1' cannot score labels without a tag"),
        ("s0.txt s1.txt --align --metric hamming", "metric 'hamming' cannot score answers of diff"),
    ],
)
def test_one_line_for_each_error(fails, files, tmp_path, extra, expected):
    message = fails("combine", "--gold", "gold.txt", *extra.split())
    assert message.startswith(expected)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("extra", "expected"),
    [
        ("--gold gold.txt -o out", "--load takes what was learned before; --gold has no place"),
        ("--only vote -o out", "--load takes what was learned before; --only has no place"),
        ("", "--load needs -o or --review"),
    ],
)
def test_what_load_refuses(fails, files, extra, expected):
    message = fails("combine", "--load", "s0.txt", "n0.txt", "n1.txt", *extra.split())
    assert message.startswith(expected)


def test_names_are_those_of_the_package():
    from trellis.cli import combine
    from trellis.experts import answer_formats, answer_values, methods, quality

    assert tuple(methods.METHODS) == combine.METHODS
    assert tuple(quality.METRICS) == combine.METRICS
    assert tuple(answer_formats.FORMATS) == combine.FORMATS
    assert tuple(answer_values.KINDS) == combine.KINDS


def test_gold_is_not_written_over(fails, files):
    message = fails("combine", "--gold", "gold.txt", *SYSTEMS, "-o", "gold.txt")
    assert message == "gold.txt holds the right answers; write to another file"


def test_one_system_is_not_enough(fails, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text("id,x,gold\n1,yes,yes\n")
    message = fails("combine", "a.csv", "--gold", "gold")
    assert message.startswith("there is only one system, x; name a file for each")


def test_samples_without_answers_are_left_empty(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text("id,x,y\n1,yes,yes\n2,,\n3,no,no\n")
    result = run("combine", "a.csv", "-o", "out.csv")
    assert result.out.endswith("samples without any answer, left empty: 1\n")
    found = [row["combined"] for row in csv.DictReader((tmp_path / "out.csv").open())]
    assert found == ["yes", "", "no"]


def test_fields_are_kept_with_the_model(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        rows = [json.dumps({"name": "Bob", "age": 3}) for _ in range(4)]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(f'{{"out": {row}}}' for row in rows))
        new = json.dumps({"out": {"city": "Rome", "name": "Eve", "age": 4}})
        (tmp_path / f"{name}2.jsonl").write_text(new + "\n")
    base = ["combine", "--column", "out"]
    assert run(*base, "a.jsonl", "b.jsonl", "--save", "c.trellis").code == 0
    assert load_model(tmp_path / "c.trellis").fields_ == ("age", "name")
    result = run(*base, "--load", "c.trellis", "a2.jsonl", "b2.jsonl", "-o", "o.jsonl")
    assert result.code == 0
    assert json.loads((tmp_path / "o.jsonl").read_text())["out"] == {"age": 4, "name": "Eve"}


def test_a_model_of_another_kind(run, fails, files, tmp_path):
    from trellis import ChainPerceptron

    ChainPerceptron(random_state=0).fit([["a"]], [["A"]]).save(tmp_path / "p.trellis")
    message = fails("combine", "--load", "p.trellis", *NEW, "-o", "out")
    assert message == "p.trellis holds a ChainPerceptron, no combined systems"

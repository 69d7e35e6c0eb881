"""CSV files on the command line: train, tag, eval, prepare, and what is refused."""

import pytest

ROWS = ["sentence,word,tag"] + [f"{s},{w},{t}" for s in range(8)
                                for w, t in (("the", "D"), ("cat", "N"), ("sat", "V"))]  # fmt: skip


@pytest.fixture
def table(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text("\n".join(ROWS) + "\n")
    return file


@pytest.fixture
def model(run, table, tmp_path):
    file = tmp_path / "m.trellis"
    options = ["--format", "csv", "--group", "sentence", "--seed", "0"]
    assert run("train", table, *options, "-o", file).code == 0
    return file


def test_train_tag_and_eval(run, model, table, tmp_path):
    lines = run("tag", model, table).out.splitlines()
    assert lines[0] == "sentence,word,tag,predicted" and lines[1] == "0,the,D,D"
    assert len(lines) == len(ROWS)
    bare = tmp_path / "bare.csv"
    bare.write_text("word,sentence\ncat,a\nthe,b\n")
    assert run("tag", model, bare).out.splitlines()[0] == "word,sentence,predicted"
    chances = run("tag", model, table, "--marginals").out.splitlines()
    assert chances[0].endswith(",predicted,probability") and float(chances[1].split(",")[-1]) > 0.5
    assert "accuracy   100.00 %" in run("eval", "--model", model, table).out
    assert "csv, columns word, label tag, group sentence" in run("inspect", model).out


def test_the_same_from_a_prepared_file(run, model, table, tmp_path):
    prepared, again = tmp_path / "p", tmp_path / "m2.trellis"
    assert run("prepare", table, "--format", "csv", "--group", "sentence", "-o", prepared).code == 0
    assert run("train", prepared, "--seed", "0", "-o", again).code == 0
    assert again.read_bytes() == model.read_bytes()
    message = run("train", prepared, "--group", "sentence", "-o", again).err[-1]
    assert "--group is for 'trellis prepare'" in message


def test_another_label_and_fewer_columns(run, table, tmp_path):
    options = ["--format", "csv", "--group", "sentence", "--label", "word", "--columns", "tag"]
    assert run("train", table, *options, "-o", tmp_path / "m").code == 0
    assert run("tag", tmp_path / "m", table).out.splitlines()[1] == "0,the,D,the"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--format", "csv"], "csv files need --group, the column that says which rows are one "
                              "sample: sentence, word, tag"),
        (["--group", "sentence"], "--group is for csv files, not for conll"),
        (["--format", "csv", "--group", "x"], "has no column 'x'"),
        (["--format", "csv", "--group", "tag", "--label", "tag"],
         "'tag' tells samples apart, so it cannot be the label; name another column with --label"),
        (["--format", "csv", "--group", "sentence", "--tabs"], "--tabs is for conll files"),
        (["--format", "csv", "--group", "sentence", "--skip", "#"], "--skip is for conll files"),
    ],
)  # fmt: skip
def test_refusals(run, table, tmp_path, options, message):
    result = run("train", table, *options, "-o", tmp_path / "m")
    assert result.code == 1 and message in result.err[-1]
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize("text", ["g\n1\n", "", "\n", "g,\n1,2\n", "g,g\n1,2\n"])
def test_strange_headers(run, tmp_path, text):
    (tmp_path / "t.csv").write_text(text)
    result = run(
        "train", tmp_path / "t.csv", "--format", "csv", "--group", "g", "-o", tmp_path / "m"
    )
    assert result.code == 1 and result.err[-1].startswith("trellis: error: ")

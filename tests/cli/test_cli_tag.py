"""``trellis tag``: labelled and unlabelled input, where output goes, probabilities and k best."""

from __future__ import annotations

import json
import resource
import sys

import pytest
from toy_files import (
    FORMATS,
    GOLD,
    LABELLED,
    POS,
    SEGMENTED,
    SENTENCES,
    conll,
    lines_of,
    unlabelled,
)

from trellis import ChainCRF, load_model, read_conll
from trellis.corpus.schemes import words_to_tags

# ------------------------------------------------------------------ input


@pytest.mark.parametrize("name", ["conll", "perceptron"])
def test_with_and_without_the_label_column(run, toys, models, name):
    doubled = conll([[(*row, row[-1]) for row in sentence] for sentence in SENTENCES])
    assert run("tag", models[name], toys / "train.txt").out == doubled
    assert run("tag", models[name], toys / "new.txt").out == conll()


def test_gold_labels_are_copied_not_used(run, models, tmp_path):
    file = tmp_path / "wrong.txt"
    file.write_text("The DT UNSEEN\ncat NN O\n\n")
    assert run("tag", models["conll"], file).out == "The DT UNSEEN B-NP\ncat NN O I-NP\n\n"


@pytest.mark.parametrize("arguments", [[], ["-"]])
def test_standard_input_to_standard_output(run, models, arguments):
    result = run("tag", models["conll"], *arguments, stdin=unlabelled())
    assert (result.code, result.out, result.err) == (0, conll(), [])


def test_empty_input_gives_empty_output(run, models, tmp_path):
    (tmp_path / "empty").write_text("")
    for kind in FORMATS:
        result = run("tag", models[kind], tmp_path / "empty")
        assert (result.code, result.out, result.err) == (0, "", []), kind


def test_label_in_the_middle_may_be_missing_too(run, toys, tmp_path):
    options = ["--columns", "word,pos,chunk", "--label", "pos", "-o", tmp_path / "m"]
    assert run("train", toys / "train.txt", *options).code == 0
    result = run("tag", tmp_path / "m", stdin="The B-NP\ncat I-NP\n\n")
    assert result.out == "The B-NP DT\ncat I-NP NN\n\n"


def test_options_override_the_layout_of_the_model(run, models):
    model = models["conll"]
    tabs = "The\tDT\ncat\tNN\n\n"
    assert run("tag", model, "--tabs", stdin=tabs).out == "The\tDT\tB-NP\ncat\tNN\tI-NP\n\n"
    skipped = "#\nThe DT\ncat NN\n\n"
    assert run("tag", model, "--skip", "#", stdin=skipped).out == "The DT B-NP\ncat NN I-NP\n\n"
    swapped = "DT The\nNN cat\n\n"
    assert run("tag", model, "--columns", "pos,word", stdin=swapped).out == (
        "DT The B-NP\nNN cat I-NP\n\n"
    )
    other = "The DT 7\ncat NN 8\n\n"  # a column the model does not know, and no label
    assert run("tag", model, "--columns", "word,pos,n", stdin=other).out == (
        "The DT 7 B-NP\ncat NN 8 I-NP\n\n"
    )
    record = '{"word": ["The"], "pos": ["DT"]}\n'
    assert json.loads(run("tag", model, "--format", "jsonl", stdin=record).out) == {
        "word": ["The"],
        "pos": ["DT"],
        "predicted": ["B-NP"],
    }


def test_segmented_text_may_have_any_spaces(run, models):
    text = SEGMENTED[0].replace(" ", "") + "\n" + " ".join(SEGMENTED[1].replace(" ", "")) + "\n"
    assert run("tag", models["segmented"], stdin=text).out == "\n".join(SEGMENTED[:2]) + "\n"


def test_json_lines_without_labels(run, models):
    line = '{"word": ["The", "cat"], "pos": ["DT", "NN"]}'
    out = run("tag", models["jsonl"], stdin=line).out
    assert out == line.removesuffix("}") + ', "predicted": ["B-NP", "I-NP"]}\n'


def test_conllu_keeps_everything_but_the_label(run, models):
    def text(label, end="\n"):
        rows = ["# text = The cat", "1-2\tX" + "\t_" * 8]
        rows += [f"1\tThe\tthe\t{label[0]}" + "\t_" * 6, f"2\tcat\tcat\t{label[1]}" + "\t_" * 6]
        return end.join([*rows, "2.1\tnot\tnot" + "\t_" * 7, "", ""])

    for end in ("\n", "\r\n"):
        result = run("tag", models["conllu"], stdin=text("__", end).encode())
        assert result.out == text(["DT", "NN"], end)


# ------------------------------------------------------------------ output


def test_output_file_appears_whole_or_not_at_all(run, fails, toys, models, tmp_path):
    target = tmp_path / "tagged.txt"
    target.write_text("older")
    (tmp_path / "ragged.txt").write_text("a b\nc\n")
    fails("tag", models["conll"], tmp_path / "ragged.txt", "-o", target)
    assert target.read_text() == "older"
    result = run("tag", models["conll"], toys / "new.txt", "-o", target)
    assert (result.code, result.out, result.err) == (0, "", [])
    assert target.read_text() == conll()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["ragged.txt", "tagged.txt"]


def test_marginals(run, toys, models):
    out = run("tag", models["conll"], toys / "new.txt", "--marginals").out
    model = load_model(models["conll"])
    corpus = read_conll(toys / "new.txt", ["word", "pos"])
    expected = []
    for sentence, p in zip(SENTENCES, model.predict_marginals(corpus), strict=True):
        for (word, pos, label), row in zip(sentence, p, strict=True):
            chance = row[model.classes_.index(label)]
            expected.append(f"{word} {pos} {label} {chance:.4f}")
            assert chance == row.max()
    assert [line for line in out.splitlines() if line] == expected


def test_marginal_of_a_label_that_is_not_the_likeliest_at_its_place(run, tmp_path):
    """The predicted label belongs to the best labelling; its probability is its own marginal."""
    X, y = [["a", "b"]] * 10, [["P", "Q"]] * 4 + [["R", "S"]] * 3 + [["R", "T"]] * 3
    model = ChainCRF("bias", l2=0.01, max_passes=100, random_state=0).fit(X, y)
    model.save(tmp_path / "m")
    p = model.predict_marginals(X[:1])[0]
    labels = model.predict(X[:1])[0]
    columns = [model.classes_.index(label) for label in labels]
    assert (p[[0, 1], columns] < p.max(axis=1)).any()
    out = run("tag", tmp_path / "m", "--marginals", "--columns", "word", stdin="a\nb\n").out
    expected = zip("ab", labels, p[[0, 1], columns], strict=True)
    assert out == "".join(f"{w} {y} {chance:.4f}\n" for w, y, chance in expected) + "\n"


def test_marginals_in_other_formats(run, toys, models):
    lines = run("tag", models["crfsuite"], toys / "train.crfsuite", "--marginals").out.splitlines()
    found = [line.split("\t") for line in lines if line]
    assert [label for label, _ in found] == [label for sample in GOLD for label in sample]
    assert all(0.3 < float(chance) <= 1 for _, chance in found)
    out = run("tag", models["conllu"], toys / "train.conllu", "--marginals").out
    fields = [line.split("\t") for line in out.splitlines() if line[:1].isdigit()]
    for row in fields:
        if "-" in row[0]:
            assert row[-1] == "_"
        else:
            note, chance = row[-1].split("|p=")
            assert note == "Note=x"
            assert 0.3 < float(chance) <= 1
    bare = "1\tThe\tthe\t_" + "\t_" * 6
    out = run("tag", models["conllu"], "--marginals", stdin=bare).out
    assert out.startswith("1\tThe\tthe\tDT\t_\t_\t_\t_\t_\tp=0.")


def test_kbest(run, toys, models):
    k = 3
    out = run("tag", models["conll"], toys / "new.txt", "--kbest", k).out
    blocks = [block.splitlines() for block in out.split("\n\n") if block]
    model = load_model(models["conll"])
    expected = model.predict_kbest(read_conll(toys / "new.txt", ["word", "pos"]), k)
    place = 0
    for s, (sentence, found) in enumerate(zip(SENTENCES, expected, strict=True), 1):
        assert len(found) == k
        for rank, (labels, score) in enumerate(found, 1):
            head, *rows = blocks[place]
            assert head == f"# {s} {rank} {score:.4f}"
            words = [" ".join(row[:2]) for row in sentence]
            assert rows == [f"{w} {y}" for w, y in zip(words, labels, strict=True)]
            place += 1
        scores = [score for _, score in found]
        assert scores == sorted(scores, reverse=True)
        assert found[0][0] == GOLD[s - 1]
    assert place == len(blocks)


def test_kbest_of_fewer_labellings_and_of_a_perceptron(run, models):
    out = run("tag", models["perceptron"], "--kbest", "100", stdin="Run VB\n\n").out
    heads = [line for line in out.splitlines() if line.startswith("#")]
    assert [head.split()[1:3] for head in heads] == [["1", str(r)] for r in range(1, 6)]


@pytest.mark.parametrize("kind", FORMATS)
def test_best_of_kbest_is_what_is_predicted(run, toys, models, kind):
    out = run("tag", models[kind], toys / LABELLED[kind], "--kbest", "1").out
    found = [line.replace("\t", " ").split(" ")[-1] for line in out.splitlines() if line]
    heads = [line for line in out.splitlines() if line.startswith("# ")]
    labels = [label for label, line in zip(found, filter(None, out.splitlines()), strict=True)
              if not line.startswith("# ")]  # fmt: skip
    gold = POS if kind == "conllu" else GOLD
    if kind == "segmented":
        gold = [words_to_tags(sentence.split()) for sentence in SEGMENTED]
    assert len(heads) == len(gold)
    assert labels == [label for sample in gold for label in sample]


# ------------------------------------------------------------------ models made in Python


@pytest.fixture
def python_model(tmp_path, toys):
    def make(features, **parameters):
        corpus = read_conll(toys / "train.txt", ["word", "pos", "chunk"], "chunk")
        path = tmp_path / "python.trellis"
        ChainCRF(features, random_state=0, **parameters).fit(corpus).save(path)
        return path

    return make


def test_model_without_layout_that_needs_one_column(run, python_model):
    model = python_model("word; word[-1]")
    assert run("tag", model, stdin="The\ncat\n\n").out == "The B-NP\ncat I-NP\n\n"
    assert run("tag", model, stdin="The X\ncat Y\n\n").out == "The X B-NP\ncat Y I-NP\n\n"


def test_model_without_layout_that_needs_more(run, fails, python_model):
    model = python_model("pos; word")
    message = fails("tag", model, stdin=unlabelled())
    assert message == (
        f"{model} does not say how its input looks; name the columns in their order with "
        "--columns, e.g. --columns pos,word,label"
    )
    assert run("tag", model, "--columns", "word,pos", stdin=unlabelled()).out == conll()
    chunks = ["--columns", "word,pos,chunk"]
    doubled = conll([[(*row, row[-1]) for row in sentence] for sentence in SENTENCES])
    assert run("tag", model, *chunks, stdin=conll()).out == doubled
    assert run("tag", model, *chunks, stdin=unlabelled()).out == conll()
    assert "100.00 % of positions" in run("eval", "--model", model, *chunks, "-", stdin=conll()).out


def test_model_without_layout_on_ready_made_features(run, fails, tmp_path):
    model = tmp_path / "m"
    ChainCRF(random_state=0).fit([[{"w": "a"}, {"w": "b"}]], [["X", "Y"]]).save(model)
    message = fails("tag", model, stdin="a\n")
    assert message == (
        f"{model} was trained on ready-made features, not on a file; name the --format "
        "(crfsuite or jsonl)"
    )
    out = run("tag", model, "--format", "crfsuite", stdin="?\tw=a\n?\tw=b\n").out
    assert out == "X\nY\n\n"


# ------------------------------------------------------------------ what is refused


def test_missing_and_wrong_models(fails, toys, models, tmp_path):
    new = toys / "new.txt"
    missing = tmp_path / "no"
    assert fails("tag", missing, new) == f"{missing}: No such file or directory"
    assert fails("tag", tmp_path, new).endswith("Is a directory")
    assert fails("tag", new, new) == f"{new}: not a Trellis model file"
    whole = models["conll"].read_bytes()
    damaged = tmp_path / "damaged"
    for data in (whole[:-1], whole[:1000], whole[:20], whole + b"x", b""):
        damaged.write_bytes(data)
        assert fails("tag", damaged, new).startswith(f"{damaged}: ")
    one_bit = bytearray(whole)
    one_bit[len(whole) // 2] ^= 1
    damaged.write_bytes(one_bit)
    assert "checksum" in fails("tag", damaged, new)


@pytest.mark.parametrize(
    ("stdin", "options", "expected"),
    [
        ("a\n", "", "standard input: 1 field(s) in the first line, expected 2 (word pos), or 3"),
        ("a b\nc\n", "", "standard input, line 2: 1 fields, expected 2 (word pos)"),
        ("a b c d\n", "", "standard input: 4 field(s) in the first line, expected 2 (word pos)"),
        ("a b c\n", "--columns word,pos", "standard input: 3 field(s) in the first line, expected"),
        ("a b\n", "--columns a,b", "the templates need the column 'word'; the corpus has a, b"),
        ("a b\n", "--label x", "label column 'x' is not among the columns word, pos, label"),
        ("a b\n", "--format jsonl", "standard input, line 1: not JSON"),
        ("a b\n", "--format crfsuite --tabs", "--tabs is for conll files, not for crfsuite"),
        ("\0", "", "standard input, line 1: a NUL byte; this is not a text file"),
        ("a b\n", "--kbest 0", "--kbest must be at least 1, got 0"),
        ("a b\n", "--kbest -2", "--kbest must be at least 1, got -2"),
        ("a b\n", "-o no/folder", "cannot write no/folder: the folder no does not exist"),
        ("a b\n", "-o .", ". is a folder; name a file to write"),
        ("a b\n", "-o /dev/null", "/dev/null is not a regular file; name a file to write"),
    ],
)
def test_one_line_for_each_error(fails, models, tmp_path, monkeypatch, stdin, options, expected):
    monkeypatch.chdir(tmp_path)
    message = fails("tag", models["conll"], *options.split(), stdin=stdin)
    assert message.startswith(expected)
    assert list(tmp_path.iterdir()) == []


def test_missing_input(fails, models, tmp_path):
    file = tmp_path / "no"
    assert fails("tag", models["conll"], file) == f"cannot read {file}: No such file or directory"


def test_marginals_of_a_perceptron(fails, toys, models):
    message = fails("tag", models["perceptron"], toys / "new.txt", "--marginals")
    assert message == "--marginals needs a CRF; ChainPerceptron has no probabilities"


@pytest.mark.parametrize("kind", ["jsonl", "segmented"])
def test_marginals_where_they_have_no_place(fails, toys, models, kind):
    message = fails("tag", models[kind], toys / LABELLED[kind], "--marginals")
    assert message == f"--marginals cannot be written to {kind} files"


def test_marginals_and_kbest_exclude_each_other(run, models):
    assert run("tag", models["conll"], "--marginals", "--kbest", "2").code == 2


def test_more_labellings_than_memory(fails, models, monkeypatch):
    def too_many(*_, **__):
        raise MemoryError

    monkeypatch.setattr(ChainCRF, "predict_kbest", too_many)
    assert fails("tag", models["conll"], "--kbest", "9", stdin="a b\n") == (
        "not enough memory for this"
    )


def test_standard_input_that_is_closed(fails, models, monkeypatch):
    class Sys:
        stdin = None

    monkeypatch.setattr("trellis.cli.inputs.sys", Sys)
    assert fails("tag", models["conll"]) == "cannot read standard input: it is closed"


def test_hint_when_the_input_is_typed(run, models, monkeypatch):
    class Sys:
        class stdin:
            isatty = staticmethod(lambda: True)

        stderr = property(lambda self: sys.stderr)

    monkeypatch.setattr("trellis.cli.inputs.sys", Sys())
    result = run("tag", models["conll"], stdin="Run VB\n")
    assert result.out == "Run VB B-VP\n\n"
    assert result.err == ["trellis: reading from the terminal (end with Ctrl-D)"]


# ------------------------------------------------------------------ as a program


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """More than a pipe holds."""
    file = tmp_path_factory.mktemp("large") / "new.txt"
    file.write_text(unlabelled() * 200)
    return file


def test_reader_that_goes_away(spawn, models, large):
    process = spawn("tag", models["conll"], large)
    assert process.stdout.readline() == b"The DT B-NP\n"
    process.stdout.close()
    assert lines_of(process.stderr.read().decode()) == []
    assert process.wait() == 0


def test_full_disk(spawn, models, large, tmp_path):
    """To a file by name: nothing is left. To standard output: said, not passed over."""
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))  # noqa: E731
    named = spawn("tag", models["conll"], large, "-o", tmp_path / "named", preexec_fn=limit)
    with (tmp_path / "redirected").open("wb") as file:
        # Unbuffered, one write takes what fits and is content.
        options = {"stdout": file, "env": {"PYTHONUNBUFFERED": "1"}, "preexec_fn": limit}
        redirected = spawn("tag", models["conll"], large, **options)
    for process, name in ((named, tmp_path / "named"), (redirected, "standard output")):
        lines = lines_of(process.communicate()[1].decode())
        assert process.returncode == 1
        assert len(lines) == 1
        assert lines[0].startswith(f"trellis: error: {name}: File too large")
    assert [p.name for p in tmp_path.iterdir()] == ["redirected"]


def test_a_second_byte_order_mark_is_a_part_of_the_first_word(run, models):
    result = run("tag", models["conll"], stdin="\ufeff\ufeffcat NN\n\n")
    assert result.out.startswith("\ufeffcat NN ")

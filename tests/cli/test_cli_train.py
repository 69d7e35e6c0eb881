"""``trellis train``: every format and model, what is printed, what is refused, Ctrl-C."""

from __future__ import annotations

import os
import re
import resource
import signal
import time

import pytest
from toy_files import FORMATS, GOLD, LABELLED, SENTENCES, conll, lines_of

from screens import screen
from trellis import ChainCRF, ChainPerceptron, load_model
from trellis.cli.train import summary
from trellis.progress import Reporter

PASS_LINE = re.compile(
    r"pass +\d+ of \d+  objective +[\d.]+( +change +-?[\d.]+e[-+]\d+)?"
    r"( +dev (span F1|accuracy) +[\d.]+)? +[\d.]+ s"
)


def accuracy(report):
    return float(re.search(r"accuracy +([\d.]+) % of positions", report)[1])


# ------------------------------------------------------------------ learning


@pytest.mark.parametrize("model", ["crf", "perceptron"])
@pytest.mark.parametrize("kind", FORMATS)
def test_train_tag_eval_inspect_of_every_format(run, toys, tmp_path, kind, model):
    file, target = toys / LABELLED[kind], tmp_path / "m.trellis"
    trained = run("train", file, "--format", kind, "--model", model, "-o", target)
    assert (trained.code, trained.out) == (0, "")
    assert len(trained.err) == 1  # where the model is
    assert trained.err[0].startswith(f"{target}: ")
    assert isinstance(load_model(target), {"crf": ChainCRF, "perceptron": ChainPerceptron}[model])

    tagged = run("tag", target, file)
    assert (tagged.code, tagged.err) == (0, [])
    source = file.read_text(encoding="utf-8")
    if kind == "conll":  # each prediction beside the gold label it equals
        expected = conll([[(*row, row[-1]) for row in sentence] for sentence in SENTENCES])
        assert tagged.out == expected
    elif kind == "crfsuite":
        assert tagged.out == "".join("".join(f"{y}\n" for y in sample) + "\n" for sample in GOLD)
    elif kind == "jsonl":
        doubled = re.sub(r'"labels": (\[.*\])', r'"labels": \1, "predicted": \1', source)
        assert tagged.out == doubled
    else:  # predictions take the place of the gold labels
        assert tagged.out == source

    scored = run("eval", "--model", target, file)
    assert (scored.code, scored.err) == (0, [])
    assert accuracy(scored.out) == 100

    shown = run("inspect", target)
    assert (shown.code, shown.err) == (0, [])
    assert f"input       {kind}" in shown.out
    assert "strongest transitions" in shown.out


@pytest.mark.parametrize(
    ("row", "columns"),
    [
        ("a X", "word,label"),
        ("a p X", "word,pos,label"),
        ("a p q X", "word,column2,column3,label"),
        ("a p q r X", "word,column2,column3,column4,label"),
    ],
)
def test_columns_are_guessed_by_their_number(run, tmp_path, row, columns):
    file, target = tmp_path / "a.txt", tmp_path / "m"
    file.write_text(f"\n  \n{row}\n{row.replace('X', 'Y')}\n\n")
    assert run("train", file, "-o", target).code == 0
    assert f"input       conll, columns {columns}, label label\n" in run("inspect", target).out


def test_columns_may_be_named_with_spaces_and_the_label_may_be_any(run, toys, tmp_path):
    target = tmp_path / "m"
    columns = ["--columns", "word, pos , chunk", "--label", "pos"]
    assert run("train", toys / "train.txt", *columns, "-o", target).code == 0
    model = load_model(target)
    assert model.input_format_["columns"] == ["word", "pos", "chunk"]
    assert set(model.classes_) == {pos for sentence in SENTENCES for _, pos, _ in sentence}


def test_tabs_allow_spaces_in_fields_and_skip_drops_lines(run, tmp_path):
    file, target = tmp_path / "a.txt", tmp_path / "m"
    file.write_text("#doc 1\nNew York\tB\n#doc 2\nis\tO\n\n")
    assert run("train", file, "--tabs", "--skip", "#doc", "-o", target).code == 0
    assert run("tag", target, file).out == "New York\tB\tB\nis\tO\tO\n\n"
    assert "fields between tabs, without lines that start with #doc" in run("inspect", target).out


def test_training_data_may_come_from_standard_input(run, tmp_path):
    target = tmp_path / "m"
    assert run("train", "-", "-o", target, stdin=conll()).code == 0
    assert load_model(target).input_format_["columns"] == ["word", "pos", "label"]


def test_compressed_training_data(run, tmp_path):
    import lzma

    file, target = tmp_path / "train.txt.xz", tmp_path / "m"
    file.write_bytes(lzma.compress(conll().encode()))
    assert run("train", file, "-o", target).code == 0


def test_templates_as_set_text_and_file(run, toys, tmp_path):
    file = tmp_path / "templates.txt"
    file.write_text("\ufeff# mine\nword[-1..0]\n", encoding="utf-8")

    def templates(features, train="train.txt"):
        result = run("train", toys / train, "--features", features, "-o", tmp_path / "m")
        assert result.code == 0, result.err
        return [str(t) for t in load_model(tmp_path / "m").encoder_.templates]

    assert templates("word[-1..0]; pos & word") == ["word[-1]", "word", "pos & word"]
    assert templates(f"@{file}") == ["word[-1]", "word"]
    assert "pos[-2] & pos[-1] & pos" in templates("chunking")
    file.write_text("pos")  # a template, not the set of that name
    assert templates(f"@{file}") == ["pos"]


def test_crfpp_templates(run, toys, tmp_path):
    file, target = tmp_path / "template", tmp_path / "m"
    file.write_text("# unigrams\nU00:%x[0,0]\nU01:%x[-1,0]/%x[0,1]\n\nB\n")
    assert run("train", toys / "train.txt", "--crfpp", file, "-o", target).code == 0
    found = load_model(target).encoder_.templates
    assert [str(t) for t in found] == ["word", "word[-1] & pos"]
    assert found.mark_edges


def test_crfpp_templates_number_the_keys_of_json_lines(run, toys, tmp_path):
    file, target = tmp_path / "template", tmp_path / "m"
    file.write_text("U00:%x[0,1]\n")
    options = ["--format", "jsonl", "--crfpp", file, "-o", target]
    assert run("train", toys / "train.jsonl", *options).code == 0
    assert [str(t) for t in load_model(target).encoder_.templates] == ["pos"]


def test_scheme_forbids_invalid_tags(run, tmp_path):
    file, target = tmp_path / "a.txt", tmp_path / "m"
    # By the words alone, «i» is always inside; only the scheme forbids it after «o».
    file.write_text("b B-X\ni I-X\n\no O\n\n" * 10)
    (tmp_path / "b.txt").write_text("o\ni\n\n")
    options = ["--features", "word", "-o", target]
    assert run("train", file, *options).code == 0
    assert run("tag", target, tmp_path / "b.txt").out == "o O\ni I-X\n\n"
    assert run("train", file, "--scheme", "BIO", *options).code == 0
    assert run("tag", target, tmp_path / "b.txt").out != "o O\ni I-X\n\n"
    assert load_model(target).scheme == "BIO"


def test_options_become_parameters(run, toys, tmp_path):
    options = "--piece-size 2.5 --l2 0.5 --max-passes 3 --tol -1 --learning-rate 0.1 --decay 0.9"
    target = tmp_path / "m"
    options = [*options.split(), "--seed", "7", "-o", target]
    assert run("train", toys / "train.txt", *options).code == 0
    found = load_model(target).get_params()
    expected = {"piece_size": 2.5, "l2": 0.5, "max_passes": 3, "tol": -1, "learning_rate": 0.1}
    expected |= {"decay": 0.9, "random_state": 7, "warm_start": False}
    assert {name: found[name] for name in expected} == expected


EDGES = [
    ("--rich-edges", {"rich_edges": True}),
    ("--rich-edges current", {"rich_edges": "current"}),
    ("--rich-edges both", {"rich_edges": "both"}),
    ("--edge-pairs all", {"edge_pairs": "all"}),
    ("--edge-negatives 3", {"edge_negatives": 3}),
    ("--edge-min-share 0.1", {"edge_min_share": 0.1}),
    ("--piece-size 4.5 --overlap 2", {"piece_size": 4.5, "overlap": 2}),
    ("--batch-size 8", {"batch_size": 8}),
    ("--visit permutation", {"visit": "permutation"}),
    ("--jobs 3", {"n_jobs": 3}),
    ("--jobs -1", {"n_jobs": -1}),
]
FOR_A_CRF = [
    ("--l1 0.25", {"l1": 0.25}),
    ("--group-lasso 0.5", {"group_lasso": 0.5}),
    ("--l2-once", {"l2_once": True}),
    ("--solver adf", {"solver": "adf"}),
    ("--solver auto", {"solver": "auto"}),
    ("--solver lbfgs --states observed", {"solver": "lbfgs", "states": "observed"}),
    ("--lock-free --jobs 2", {"lock_free": True, "n_jobs": 2}),
]


@pytest.mark.parametrize(
    ("kind", "options", "expected"),
    [
        *(("perceptron", *case) for case in EDGES),
        *(("crf", *case) for case in (*EDGES, *FOR_A_CRF)),
    ],
)
def test_each_option_arrives_alone(run, toys, tmp_path, monkeypatch, kind, options, expected):
    estimator = {"crf": ChainCRF, "perceptron": ChainPerceptron}[kind]
    arrived = {}

    def fit(self, *_, **__):
        arrived.update(self.get_params())
        raise KeyboardInterrupt

    monkeypatch.setattr(estimator, "fit", fit)
    options = [*options.split(), "--model", kind, "-o", tmp_path / "m"]
    assert run("train", toys / "train.txt", *options).err == ["trellis: interrupted"]
    assert arrived == estimator(random_state=0).get_params() | expected


@pytest.mark.parametrize(("options", "expected"), FOR_A_CRF)
def test_options_that_are_not_for_a_perceptron(fails, toys, tmp_path, options, expected):
    option = options.split(" -")[0].split()[0]
    options = [*options.split(), "--model", "perceptron", "-o", tmp_path / "m"]
    message = fails("train", toys / "train.txt", *options)
    assert message.removesuffix(" is not for ChainPerceptron") == option


def test_rich_edges_are_learned(run, toys, tmp_path):
    options = ["--rich-edges", "both", "--features", "word", "-o", tmp_path / "m"]
    assert run("train", toys / "train.txt", *options).code == 0
    edge = load_model(tmp_path / "m").weights_.edge
    assert edge.both
    assert edge.values.any()


@pytest.mark.parametrize(
    "options", ["--batch-size 4", "--solver lbfgs", "--model perceptron --batch-size 4"]
)
def test_any_number_of_threads_gives_the_same_file(run, toys, tmp_path, options):
    for name, jobs in (("a", []), ("b", ["--jobs", "2"]), ("c", ["--jobs", "-1"])):
        options_ = [*options.split(), *jobs, "-o", tmp_path / name]
        assert run("train", toys / "train.txt", *options_).code == 0
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert (tmp_path / "a").read_bytes() == (tmp_path / "c").read_bytes()


@pytest.mark.parametrize("model", ["crf", "perceptron"])
def test_same_seed_same_file(run, toys, tmp_path, model):
    def train(seed, name):
        options = ["--model", model, "--piece-size", "2.5", "--seed", seed]
        assert run("train", toys / "train.txt", *options, "-o", tmp_path / name).code == 0
        return (tmp_path / name).read_bytes()

    assert train(1, "a") == train(1, "b")
    assert train(1, "a") != train(2, "c")


def test_no_seed_is_seed_0(run, toys, tmp_path):
    assert run("train", toys / "train.txt", "-o", tmp_path / "a").code == 0
    assert run("train", toys / "train.txt", "--seed", "0", "-o", tmp_path / "b").code == 0
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_dev_with_patience_stops_early_and_keeps_the_best_pass(run, toys, tmp_path):
    options = ["--dev", toys / "train.txt", "--max-passes", "50", "--tol", "-1"]
    options += ["--patience", "3", "--progress", "-o", tmp_path / "m"]
    result = run("train", toys / "train.txt", *options)
    assert result.code == 0
    passes = [line for line in result.err if line.startswith("pass")]
    scores = [float(re.search(r"dev span F1 +([\d.]+)", line)[1]) for line in passes]
    best = scores.index(max(scores)) + 1
    assert len(passes) == best + 3 < 50
    kept = f"{len(passes)} passes (kept pass {best}, dev {max(scores):.2f}; out of patience)"
    assert kept in result.err[-1]
    assert max(scores) == 100
    assert run("tag", tmp_path / "m", toys / "new.txt").out == conll()


# ------------------------------------------------------------------ warm start


def test_warm_start_goes_on_with_features_parameters_and_layout(run, toys, tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    options = ["--columns", "word,pos,chunk", "--features", "word", "--l2", "0.25"]
    assert run("train", toys / "train.txt", *options, "--model", "crf", "-o", first).code == 0
    (tmp_path / "more.txt").write_text("Fish NN B-NP\nswim VB B-VP\n\n" * 5)
    options = ["--warm-start", first, "--max-passes", "2", "--learning-rate", "0.02"]
    result = run("train", tmp_path / "more.txt", *options, "-o", second)
    assert result.code == 0, result.err
    before, after = load_model(first), load_model(second)
    assert (after.l2, after.max_passes, after.warm_start) == (0.25, 2, False)
    assert after.input_format_ == before.input_format_
    assert after.classes_ == before.classes_
    assert after.n_features_ == before.n_features_ + 2  # Fish, swim
    # What only the first data taught is still there.
    assert run("tag", second, toys / "new.txt").out == conll()
    assert run("tag", second, tmp_path / "more.txt").out.startswith("Fish NN B-NP B-NP\n")


def test_warm_start_of_a_perceptron_needs_no_model_option(run, toys, models, tmp_path):
    options = ["--warm-start", models["perceptron"], "-o", tmp_path / "m"]
    assert run("train", toys / "train.txt", *options).code == 0
    assert isinstance(load_model(tmp_path / "m"), ChainPerceptron)


def test_warm_start_refuses_what_cannot_change(fails, toys, models, tmp_path):
    def message(model, *options):
        options = ["--warm-start", models[model], *options, "-o", tmp_path / "m"]
        return fails("train", toys / "train.txt", *options)

    assert message("conll", "--model", "perceptron").endswith(
        "holds a crf model, not a perceptron model"
    )
    assert message("perceptron", "--model", "crf").endswith(
        "holds a perceptron model, not a crf model"
    )
    for option, value in (
        ("--features", "pos"),
        ("--crfpp", "pos"),
        ("--rich-edges", "both"),
        ("--edge-pairs", "all"),
    ):
        assert message("conll", option, value) == (
            f"{option} cannot go with --warm-start: the model has its features"
        )
    assert not (tmp_path / "m").exists()


def test_warm_start_with_new_labels(fails, models, tmp_path):
    (tmp_path / "a.txt").write_text("a b NEW\n")
    options = ["--warm-start", models["conll"], "-o", tmp_path / "m"]
    assert "'NEW'" in fails("train", tmp_path / "a.txt", *options)


# ------------------------------------------------------------------ what is printed


def test_progress_is_one_line_a_pass(run, toys, tmp_path):
    options = ["--dev", toys / "train.txt", "--max-passes", "4", "--progress"]
    result = run("train", toys / "train.txt", *options, "-o", tmp_path / "m")
    head, *passes, last = result.err
    assert head == f"20 sequences, {4 * 20} positions, 5 labels"
    assert len(passes) == 4
    for number, line in enumerate(passes, 1):
        assert PASS_LINE.fullmatch(line), line
        assert line.startswith(f"pass {number} of 4  objective")
        assert ("change" in line) == (number >= 3)
        assert "dev span F1" in line
    assert last.startswith(f"{tmp_path / 'm'}: 5 labels, ")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("--max-passes 4 --tol -1", r"4 passes, "),
        ("--max-passes 1", r"1 pass, "),
        ("--solver lbfgs --max-passes 1", r"1 L-BFGS iteration \(not converged\), "),
        ("--model max-margin", r"\d+ passes \(within [\d.e-]+ % of the optimum\), "),
        ("--loss hinge --solver bundle", r"\d+ iterations \(within [\d.e-]+ % of the optimum\), "),
        ("--loss ramp --tol 0.1", r"\d+ rounds? \(converged\), "),
        ("--loss ramp --max-passes 1", r"1 round \(not converged\), "),
        (
            "--model max-margin --max-passes 20 --dev DEV",
            r"20 passes \(kept pass \d+, dev 100.00; not converged\), ",
        ),
        ("--max-passes 50 --tol 0.5", r"[1-4]?\d passes \(converged\), "),
        ("--l1 1 --l2 1", r"\d passes \(no more improvement\), "),
        ("--solver lbfgs", r"\d+ L-BFGS iterations \(converged\), "),
        ("--solver lbfgs", r"\d+ L-BFGS iterations \(converged\), "),
        ("--solver lbfgs --max-passes 2", r"2 L-BFGS iterations \(not converged\), "),
        (
            "--solver lbfgs --dev DEV --patience 1",
            r"\d+ L-BFGS iterations \(kept iteration \d+, dev 100.00; out of patience\), ",
        ),
        ("--dev DEV --tol 0.5", r"\d+ passes \(kept pass \d+, dev 100.00; converged\), "),
        ("--model perceptron --max-passes 3 --tol -1", r"3 passes, "),
    ],
)
def test_the_last_line_says_why_training_ended(run, toys, tmp_path, options, expected):
    options = options.replace("DEV", str(toys / "train.txt")).split()
    result = run("train", toys / "train.txt", *options, "-o", tmp_path / "m")
    assert len(result.err) == 1
    assert re.search(r"5 labels, \d+ features, " + expected + r"\d+\.\d\d s$", result.err[0]), (
        result
    )


def test_a_reason_that_has_no_short_name_is_told_as_it_is():
    model = ChainCRF(random_state=0).fit([["a", "b"]], [["X", "Y"]])
    model.stop_reason_ = "out of ideas"
    assert "passes (out of ideas), " in summary(model, "m")


def test_no_progress_without_a_terminal(run, toys, tmp_path):
    result = run("train", toys / "train.txt", "-o", tmp_path / "m")
    assert len(result.err) == 1
    assert not PASS_LINE.search(result.err[0])


def test_quiet_prints_nothing(run, toys, tmp_path):
    result = run("train", toys / "train.txt", "--quiet", "-o", tmp_path / "m")
    assert (result.code, result.out, result.err) == (0, "", [])


def test_quiet_and_progress_exclude_each_other(run, toys, tmp_path):
    options = ["--quiet", "--progress", "-o", tmp_path / "m"]
    assert run("train", toys / "train.txt", *options).code == 2


@pytest.mark.parametrize("quiet", [False, True])
def test_progress_on_a_terminal(spawn, toys, tmp_path, quiet):
    import pty

    ours, theirs = pty.openpty()
    options = ["--max-passes", "3", "-o", tmp_path / "m", *(["--quiet"] if quiet else [])]
    process = spawn("train", toys / "train.txt", *options, stderr=theirs)
    os.close(theirs)
    shown = b""
    try:
        while part := os.read(ours, 4096):
            shown += part
    except OSError:  # how Linux says that the other side has gone
        pass
    os.close(ours)
    assert process.wait() == 0
    lines = lines_of("\n".join(screen(shown.decode().replace("\r\n", "\n"))[0]))
    assert sum(bool(PASS_LINE.fullmatch(line)) for line in lines) == (0 if quiet else 3)
    assert len(lines) == (0 if quiet else 5)


# ------------------------------------------------------------------ Ctrl-C


def test_interrupt_after_a_pass_writes_the_model(run, toys, tmp_path, monkeypatch):
    def line(self, text, shown=[]):  # noqa: B006 (counts the calls)
        shown.append(text)
        if len(shown) == 3:  # after what the data are, and two passes
            raise KeyboardInterrupt

    monkeypatch.setattr(Reporter, "line", line)
    result = run("train", toys / "train.txt", "-o", tmp_path / "m")
    assert result.code == 130
    assert result.err == [
        f"trellis: interrupted in pass 3; what was learned by then is in {tmp_path / 'm'}; "
        "the same command with --resume goes on"
    ]
    assert run("tag", tmp_path / "m", toys / "new.txt").out == conll()


def test_interrupt_before_a_pass_leaves_nothing(run, toys, models, tmp_path, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("trellis.solvers.sgd.StochasticGradient.visit", interrupted)
    for options in ([], ["--warm-start", models["conll"]]):
        result = run("train", toys / "train.txt", *options, "-o", tmp_path / "m")
        assert (result.code, result.err) == (130, ["trellis: interrupted"])
        assert list(tmp_path.iterdir()) == []


def test_ctrl_c_during_training(spawn, run, toys, tmp_path):
    options = ["--max-passes", "10000000", "--tol", "-1", "--progress", "-o", tmp_path / "m"]
    process = spawn("train", toys / "train.txt", *options)
    for line in process.stderr:
        if re.match(rb"pass +2 of", line):  # so that there is a checkpoint
            break
    process.send_signal(signal.SIGINT)
    rest = process.stderr.read().decode()
    assert process.wait() == 130
    assert "Traceback" not in rest
    last = rest.splitlines()[-1]
    assert re.fullmatch(r"trellis: interrupted in pass \d+; what was learned by .* is in .*", last)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m", "m.checkpoint"]
    assert run("tag", tmp_path / "m", toys / "new.txt").out == conll()


def test_ctrl_c_before_the_first_pass_ends(spawn, tmp_path):
    file = tmp_path / "large.txt"
    # Thousands of features and labels enough to keep the first pass busy for long.
    with file.open("w") as out:
        for i in range(60_000):
            out.write(f"w{i} p{i % 997} L{i % 61}\n" + "\n" * (i % 20 == 19))
    process = spawn("train", file, "--progress", "-o", tmp_path / "m")
    for line in process.stderr:
        if b"sequences" in line:
            break
    time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    rest = lines_of(process.stderr.read().decode())
    assert process.wait() == 130
    assert rest == ["trellis: interrupted"]
    assert [p.name for p in tmp_path.iterdir()] == ["large.txt"]


# ------------------------------------------------------------------ what is refused


def test_missing_file(fails, tmp_path):
    message = fails("train", tmp_path / "no.txt", "-o", tmp_path / "m")
    assert message == f"cannot read {tmp_path / 'no.txt'}: No such file or directory"


def test_folder_as_input(fails, tmp_path):
    assert "Is a directory" in fails("train", tmp_path, "-o", tmp_path / "m")


def test_folder_as_output(fails, toys, tmp_path):
    message = fails("train", toys / "train.txt", "-o", tmp_path)
    assert message == f"{tmp_path} is a folder; name a file to write"


def test_device_as_output(fails, toys):
    message = fails("train", toys / "train.txt", "-o", "/dev/null")
    assert message == "/dev/null is not a regular file; name a file to write"


def test_missing_parent_folder(fails, toys, tmp_path):
    target = tmp_path / "no" / "m"
    message = fails("train", toys / "train.txt", "-o", target)
    assert message == f"cannot write {target}: the folder {target.parent} does not exist"
    assert not target.parent.exists()


def test_output_is_checked_before_anything_is_read(fails, tmp_path):
    assert "is a folder" in fails("train", tmp_path / "no.txt", "-o", tmp_path)


CONTENT = {
    "empty": "",
    "blank": "\n \n\t\n",
    "one column": "a\nb\n",
    "ragged": "a X\nb Y Z\n",
    "binary": b"\x7fELF\x00\x00",
    "latin": "caf\xe9 X\n".encode("latin-1"),
    "spaces": "a X\nb Y\n",
    "unlabelled": '{"word": ["a"]}\n',
    "labelled": '{"word": ["a"], "labels": ["X"]}\n',
}


@pytest.mark.parametrize(
    ("content", "options", "expected"),
    [
        ("empty", "", "file is empty: there is no sequence in it"),
        ("blank", "", "file is empty: there is no sequence in it"),
        ("empty", "--columns a,b", "file is empty: there is no sequence in it"),
        *(
            ("empty", f"--format {kind}", "file is empty: there is no sequence in it")
            for kind in FORMATS
        ),
        ("one column", "", "file has one column; expected at least two, the label in the last"),
        ("ragged", "", "file, line 2: 3 fields, expected 2 (word label)"),
        ("binary", "", "file, line 1: a NUL byte; this is not a text file"),
        ("latin", "", "file, line 1: not UTF-8 text; convert the file to UTF-8"),
        ("spaces", "--columns a,b,c", "file, line 1: 2 fields, expected 3 (a b c)"),
        ("spaces", "--columns a,a", "column 'a' is named twice"),
        ("spaces", "--columns a,", "column name '' is not a non-empty string"),
        ("spaces", "--label pos", "label column 'pos' is not among the columns word, label"),
        ("spaces", "--format crfsuite", "file: no position has a feature (crfsuite files"),
        ("spaces", "--format conllu", "file, line 1: 1 fields, expected 10"),
        ("spaces", "--format conllu --label head2", "label column 'head2' is not one of form"),
        ("spaces", "--format jsonl", "file, line 1: not JSON"),
        ("unlabelled", "--format jsonl", "file has no labels: no key 'labels' (--label names"),
        ("labelled", "--format jsonl --label tags", "file has no labels: no key 'tags'"),
        ("spaces", "--format jsonl --columns a", "--columns is for conll files, not for jsonl"),
        ("spaces", "--format jsonl --tabs", "--tabs is for conll files, not for jsonl"),
        ("spaces", "--format conllu --skip x", "--skip is for conll files, not for conllu"),
        ("spaces", "--format segmented --label x", "--label is for conll, conllu and jsonl files"),
        ("spaces", "--features pos2", "no template set 'pos2'; there are chunking, ner, pos"),
        ("spaces", "--features word[", "template line 1, 'word[': expected number"),
        ("spaces", "--features=", "no templates: expected lines such as word[-2..2]"),
        ("spaces", "--features chunking", "template 'pos[-2]' needs the column 'pos'; the corpus"),
        ("spaces", "--features @no/file", "cannot read no/file: No such file or directory"),
        ("spaces", "--crfpp no/file", "cannot read no/file: No such file or directory"),
        ("spaces", "--crfpp x --features y", "give --features or --crfpp, not both"),
        ("spaces", "--piece-size 0", "--piece-size must be a number of at least 1, got 0"),
        ("spaces", "--piece-size -3", "--piece-size must be a number of at least 1, got -3"),
        ("spaces", "--piece-size nan", "--piece-size must be a number of at least 1, got nan"),
        ("spaces", "--l2 -1", "--l2 must "),
        ("spaces", "--max-passes 0", "--max-passes must be auto or a positive integer, got 0"),
        ("spaces", "--seed -1", "--seed must "),
        ("spaces", "--decay 2", "--decay must "),
        ("spaces", "--learning-rate 0", "--learning-rate must be auto or a positive number, got 0"),
        ("spaces", "--tol nan", "--tol must be a "),
        ("spaces", "--l1 -1", "--l1 must be a number of at least 0, got -1"),
        ("spaces", "--group-lasso nan", "--group-lasso must be a number of at least 0, got nan"),
        ("spaces", "--edge-negatives -1", "--edge-negatives must be an integer of at least 0"),
        ("spaces", "--edge-min-share 2", "--edge-min-share must be a number from 0 to 1, got 2"),
        ("spaces", "--overlap 1", "--overlap needs --piece-size: whole sequences cannot overlap"),
        ("spaces", "--overlap -1 --piece-size 2", "--overlap must be an integer of at least 0"),
        ("spaces", "--batch-size 0", "--batch-size must be a positive integer, got 0"),
        ("spaces", "--jobs 0", "--jobs must be a positive integer or -1, got 0"),
        ("spaces", "--states observed", "--states observed is for --solver lbfgs"),
        ("spaces", "--lock-free --solver adf", "--lock-free is for --solver sgd"),
        ("spaces", "--patience 2", "--patience needs --dev"),
        ("spaces", "--directed", "--directed is not for ChainCRF"),
        ("spaces", "--memory 5", "--memory is not for ChainCRF"),
        ("spaces", "--solver bundle", "--solver must be sgd, adf, lbfgs or auto, got bundle"),
        ("spaces", "--loss log --solver bundle", "--solver must be sgd, adf, lbfgs or auto, got"),
        ("spaces", "--loss max --model crf", "--loss max is for --model max-margin, not for crf"),
        (
            "spaces",
            "--loss hinge --l1 1 --l2 1",
            "one of l2 and l1 must be positive and the other 0, got --l2 1 and --l1 1",
        ),
        (
            "spaces",
            "--loss hinge --l1 1 --l2 0 --solver frank-wolfe",
            "--l1 1 needs --solver bundle",
        ),
        ("spaces", "--loss ramp --solver frank-wolfe", "--loss ramp needs --solver bundle"),
        (
            "spaces",
            "--loss ramp --dev file",
            "held-out data cannot be scored between rounds of "
            "planes; leave it out, or take --solver frank-wolfe",
        ),
        (
            "spaces",
            "--loss ramp --resume --quiet",
            "--resume cannot go on from m.checkpoint: a run of this "
            "solver cannot be taken up in the middle; without it training starts afresh",
        ),
        ("spaces", "--model perceptron --l2 1", "--l2 is not for ChainPerceptron"),
        ("spaces", "--model perceptron --decay 1", "--decay is not for ChainPerceptron"),
        ("spaces", "--model perceptron --learning-rate 1", "--learning-rate is not for Chain"),
        ("spaces", "--scheme BIO", "label 'X' does not fit the tag scheme BIO"),
        ("spaces", "--dev no/file", "cannot read no/file: No such file or directory"),
        ("spaces", "--warm-start no/file", "no/file: No such file or directory"),
    ],
)
def test_one_line_for_each_error(fails, tmp_path, monkeypatch, content, options, expected):
    monkeypatch.chdir(tmp_path)
    data = CONTENT[content]
    (tmp_path / "file").write_bytes(data if isinstance(data, bytes) else data.encode())
    message = fails("train", "file", *options.split(), "-o", "m")
    assert message.startswith(expected)
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_patience_of_0(fails, toys, tmp_path):
    options = ["--dev", toys / "train.txt", "--patience", "0", "-o", tmp_path / "m"]
    message = fails("train", toys / "train.txt", *options)
    assert message == "--patience must be a positive integer, got 0"


def test_dev_of_another_layout(fails, toys, tmp_path):
    options = ["--dev", toys / "new.txt", "-o", tmp_path / "m"]
    assert "2 fields, expected 3 (word pos label)" in fails("train", toys / "train.txt", *options)


def test_empty_dev(fails, toys, tmp_path):
    (tmp_path / "dev").write_text("")
    options = ["--dev", tmp_path / "dev", "-o", tmp_path / "m"]
    message = fails("train", toys / "train.txt", *options)
    assert message == f"{tmp_path / 'dev'} is empty: there is no sequence in it"


def test_templates_for_ready_made_features(fails, toys, tmp_path):
    for option in ("--features", "--crfpp"):
        options = ["--format", "crfsuite", option, "pos", "-o", tmp_path / "m"]
        message = fails("train", toys / "train.crfsuite", *options)
        assert message.startswith("--features and --crfpp are for columns; ")


def test_template_file_that_is_no_text(fails, toys, tmp_path):
    (tmp_path / "t").write_bytes(b"\xff\xfe")
    options = ["--features", f"@{tmp_path / 't'}", "-o", tmp_path / "m"]
    assert fails("train", toys / "train.txt", *options) == f"{tmp_path / 't'} is not UTF-8 text"


def test_warm_start_from_what_is_no_model(fails, toys, tmp_path):
    options = ["--warm-start", toys / "train.txt", "-o", tmp_path / "m"]
    assert fails("train", toys / "train.txt", *options).endswith("not a Trellis model file")


@pytest.mark.parametrize("option", [[], ["--no-checkpoint"]])
def test_full_disk_leaves_an_older_model_as_it_was(spawn, toys, tmp_path, option):
    (tmp_path / "m").write_text("older")
    process = spawn(
        "train",
        toys / "train.txt",
        *option,
        "-o",
        tmp_path / "m",
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)),
    )
    out, err = process.communicate()
    assert process.returncode == 1
    assert out == b""
    message = (
        f"{tmp_path / 'm'}: File too large (while writing)"
        if option
        else f"{tmp_path / 'm'}.checkpoint: File too large (while writing); --no-checkpoint trains "
        "without this file"
    )
    assert lines_of(err.decode()) == [f"trellis: error: {message}"]
    assert [p.name for p in tmp_path.iterdir()] == ["m"]
    assert (tmp_path / "m").read_text() == "older"


def test_only_errors_of_the_checkpoint_advise_to_go_without(fails, toys, tmp_path, monkeypatch):
    def fit(self, *args, **options):
        raise OSError(5, "Input/output error", "elsewhere")

    monkeypatch.setattr(ChainCRF, "fit", fit)
    message = fails("train", toys / "train.txt", "-o", tmp_path / "m")
    assert message == "elsewhere: Input/output error"

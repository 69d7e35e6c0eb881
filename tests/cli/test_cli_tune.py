"""``trellis tune``: the table, the model, logs, kills, Ctrl-C, and what is refused."""

from __future__ import annotations

import json
import os
import re
import signal
import time

import pytest
from toy_files import FORMATS, GOLD, LABELLED, WORDS, conll, lines_of

from screens import screen
from trellis import ChainCRF, ChainPerceptron, load_model
from trellis.tuning import tune

ROW = re.compile(r" *[\d.]+ +(whole|[\d.]+) +[\d.]+ +[\d.]+ +[\d.]+ s")
SMALL = ["--features", "word", "--l2", "0.1,5", "--piece-size", "whole, 1.5"]


def table(text):
    """Lines of the output without the seconds."""
    return re.sub(r" +[\d.]+ s$", "", text, flags=re.M).splitlines()


# ------------------------------------------------------------------ tuning


@pytest.mark.parametrize("model", ["crf", "perceptron"])
@pytest.mark.parametrize("kind", FORMATS)
def test_tune_then_tag_every_format(run, toys, tmp_path, kind, model):
    file, target = toys / LABELLED[kind], tmp_path / "m.trellis"
    options = ["--format", kind, "--model", model, "--piece-size", "2.5,whole", "--folds", "2"]
    result = run("tune", file, *options, "--max-passes", "8", "-o", target)
    assert result.code == 0
    *rows, blank, best = result.out.splitlines()
    assert len(rows) == 1 + 2 * (5 if model == "crf" else 1)
    assert blank == ""
    assert best.startswith("best: l2 " if model == "crf" else "best: piece_size ")
    assert len(result.err) == 1
    assert result.err[0].startswith(f"{target}: ")
    found = load_model(target)
    assert isinstance(found, {"crf": ChainCRF, "perceptron": ChainPerceptron}[model])
    assert found.max_passes == 8
    assert f"piece_size {found.piece_size or 'whole'}" in best
    assert run("tag", target, file).code == 0
    assert f"input       {kind}" in run("inspect", target).out


def test_the_output_is_that_of_the_library_and_nothing_is_written(run, toys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run("tune", toys / "train.txt", *SMALL, "--folds", "3", "--seed", "7")
    grid = {"l2": [0.1, 5], "piece_size": [None, 1.5]}
    expected = tune(ChainCRF("word"), WORDS, GOLD, grid=grid, folds=3, random_state=7)
    assert table(result.out) == table(str(expected))
    assert sum(bool(ROW.fullmatch(line)) for line in result.out.splitlines()) == 4
    assert result.err == []
    assert list(tmp_path.iterdir()) == []


def test_development_data_options_and_search(run, toys, tmp_path):
    options = ["--dev", toys / "train.txt", "--search", "coordinate", "--max-passes", "3"]
    options += ["--scheme", "BIO", "--decay", "0.9", "--quiet", "-o", tmp_path / "m"]
    options += ["--rich-edges", "--l1", "0.01", "--batch-size", "2"]
    result = run("tune", toys / "train.txt", *SMALL, *options)
    assert (result.code, result.err) == (0, [])
    assert len(result.out.splitlines()) == 1 + 3 + 2
    assert result.out.splitlines()[-1].endswith(", development data)")
    found = load_model(tmp_path / "m")
    assert (found.scheme, found.decay, found.max_passes) == ("BIO", 0.9, 3)
    assert (found.rich_edges, found.l1, found.batch_size) == (True, 0.01, 2)
    assert found.n_jobs is None


def test_standard_input(run):
    assert run("tune", "-", *SMALL, stdin=conll()).code == 0


# ------------------------------------------------------------------ logs, kills, Ctrl-C


def n_lines(file):
    return file.read_bytes().count(b"\n") if file.exists() else 0


def wait_for_lines(process, file, n):
    while n_lines(file) < n:
        assert process.poll() is None
        time.sleep(0.01)


SLOW = [*SMALL, "--max-passes", "200", "--tol", "-1", "--folds", "3"]


def test_kill_9_and_go_on(spawn, run, toys, tmp_path):
    log, target = tmp_path / "log", tmp_path / "m"
    arguments = ["tune", toys / "train.txt", *SLOW, "--log", log, "-o", target]
    process = spawn(*arguments)
    wait_for_lines(process, log, 1 + 4)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    done = n_lines(log)
    assert done < 1 + 12
    assert not target.exists()
    kept = log.read_bytes()[: log.read_bytes().rindex(b"\n") + 1]
    log.write_bytes(kept + b'{"key": "to')  # as if killed while writing
    again = run(*arguments)
    assert again.code == 0
    assert table(again.out) == table(run("tune", toys / "train.txt", *SLOW).out)
    assert log.read_bytes().startswith(kept)  # not made again
    keys = [json.loads(line)["key"] for line in log.read_text().splitlines()[1:]]
    assert len(keys) == len(set(keys)) == 12
    assert load_model(target).max_passes == 200


def press_ctrl_c(spawn, toys, log, *options):
    """Interrupt a run on a terminal, workers and all, after some fits; its code and lines."""
    import pty

    ours, theirs = pty.openpty()
    process = spawn(
        "tune", toys / "train.txt", *SLOW, *options, stderr=theirs, start_new_session=True
    )
    os.close(theirs)
    shown = b""
    try:
        while part := os.read(ours, 4096):
            sent = shown.count(b"/12  l2 ") >= 2
            shown += part
            if not sent and shown.count(b"/12  l2 ") >= 2:
                os.killpg(process.pid, signal.SIGINT)
    except OSError:  # how Linux says that the other side has gone
        pass
    os.close(ours)
    return process.wait(), lines_of(
        "\n".join(screen(shown.decode().replace("\r\n", "\n"))[0]).strip()
    )


@pytest.mark.parametrize("jobs", [1, 2])
def test_ctrl_c_keeps_what_is_done_and_says_how_to_go_on(spawn, toys, tmp_path, jobs):
    log = tmp_path / "log"
    code, lines = press_ctrl_c(spawn, toys, log, "--log", log, "--jobs", jobs)
    assert code == 130
    *fits, last = lines
    assert last == (
        f"trellis: interrupted; the fits made so far are in {log}; "
        "the same command goes on from them"
    )
    assert 2 <= len(fits) < 12
    for line in fits:
        assert re.match(r"fit \d+/12  l2 [\d.]+, piece_size \S+, fold \d: ", line), fits
    assert n_lines(log) in (1 + len(fits), 2 + len(fits))


def test_ctrl_c_without_a_log(run, toys, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(ChainCRF, "fit", interrupted)
    result = run("tune", toys / "train.txt", *SMALL)
    assert (result.code, result.out) == (130, "")
    assert result.err == [
        "trellis: interrupted; with --log FILE the fits made so far would have been kept"
    ]


# ------------------------------------------------------------------ what is refused


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("--l2 a,1", "argument --l2: 'a' is not a number"),
        ("--l2 1,", "argument --l2: '' is not a number"),
        ("--l2 1,2,1.0", "argument --l2: 1 is named twice"),
        ("--piece-size whole,whole", "argument --piece-size: whole is named twice"),
        ("--piece-size large", "argument --piece-size: 'large' is not a number"),
        ("--dev a --folds 3", "argument --folds: not allowed with argument --dev"),
        ("--search random", "argument --search: invalid choice: 'random'"),
    ],
)
def test_wrong_usage(run, options, expected):
    result = run("tune", "file", *options.split())
    assert (result.code, result.out) == (2, "")
    assert result.err[-1].startswith(f"trellis tune: error: {expected}")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("--folds 1", "--folds must be at least 2, got 1"),
        ("--folds 3", "3 folds of 2 sequence(s): use fewer folds"),
        ("--jobs 0", "--jobs must not be 0; -1 makes one fit on each processor"),
        ("--l2 1,-1", "--l2 must be auto or a number of at least 0, got -1"),
        ("--piece-size 0.5", "--piece-size must be a number of at least 1, got 0.5"),
        ("--model perceptron --l2 1", "--l2 is not for ChainPerceptron"),
        ("--model perceptron --l1 1", "--l1 is not for ChainPerceptron"),
        ("--states observed", "--states observed is for --solver lbfgs"),
        ("--model perceptron --decay 1", "--decay is not for ChainPerceptron"),
        ("--seed -1", "--seed must be an integer of at least 0, got -1"),
        ("--max-passes 0", "--max-passes must be auto or a positive integer, got 0"),
        ("--scheme BIO", "at l2 0.03, piece_size whole, fold 1: label 'X' does not fit"),
        ("--features chunking", "at l2 0.03, piece_size whole, fold 1: template"),
        ("--dev no/file", "cannot read no/file: No such file or directory"),
        ("--log other", "other is not a tuning log; name a new file"),
        ("--log .", ". is a folder; name a file to write"),
        ("--log no/log", "cannot write no/log: the folder no does not exist"),
        ("-o .", ". is a folder; name a file to write"),
        ("-o a --log a", "a would be written twice; each result needs a file of its own"),
    ],
)
def test_one_line_for_each_error(fails, tmp_path, monkeypatch, options, expected):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("a X\nb Y\n\nb Y\na X\n")
    (tmp_path / "other").write_text("a X\n")
    if "--folds" not in options and "--dev" not in options:
        options += " --folds 2"
    assert fails("tune", "file", *options.split()).startswith(expected)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "other"]


def test_a_log_of_another_file(run, fails, toys, tmp_path):
    log = tmp_path / "log"
    assert run("tune", toys / "train.txt", *SMALL, "--log", log).code == 0
    (tmp_path / "other.txt").write_text(conll() + conll())
    message = fails("tune", tmp_path / "other.txt", *SMALL, "--log", log)
    assert message.startswith(f"{log} is the log of other data: ")

"""Checkpoints of ``trellis train``: kills, Ctrl-C, --resume, and what is said about them."""

from __future__ import annotations

import random
import re
import signal
import time

import numpy as np
import pytest
from toy_files import LABELLED, conll, lines_of

from trellis import ChainCRF, load_model
from trellis.files.container import read_container
from trellis.models.checkpoint import Checkpoint
from trellis.progress import Reporter

LONG = ["--max-passes", "40", "--tol", "-1"]


@pytest.fixture
def interrupt_after(monkeypatch):
    """Let Ctrl-C strike when the n-th pass of this process is reported."""

    def install(n, patch=monkeypatch):
        count = 0

        def line(self, text):
            nonlocal count
            count += text.startswith(("pass", "iteration"))
            if count == n:
                raise KeyboardInterrupt

        patch.setattr(Reporter, "line", line)

    return install


def uninterrupted(run, folder, *arguments):
    """The model file of a run without interruption."""
    result = run("train", *arguments, "-o", folder / "whole")
    assert result.code == 0, result.err
    return (folder / "whole").read_bytes()


# ------------------------------------------------------------------ Ctrl-C, then --resume


@pytest.mark.parametrize(
    "options",
    [
        "--piece-size 2.5 --overlap 1",
        "--rich-edges --batch-size 4 --jobs 2",
        "--solver adf --visit replacement",
        "--l2-once --dev DEV --patience 39",
        "--model perceptron --dev DEV",
        "--model perceptron --rich-edges both --edge-pairs observed",
    ],
)
def test_ctrl_c_then_resume(run, toys, tmp_path, monkeypatch, interrupt_after, options):
    options = options.replace("DEV", str(toys / "train.txt")).split()
    arguments = [toys / "train.txt", *options, *LONG]
    expected = uninterrupted(run, tmp_path, *arguments)
    target, checkpoint = tmp_path / "m", tmp_path / "m.checkpoint"
    interrupt_after(7)
    result = run("train", *arguments, "-o", target)
    assert result.code == 130
    assert result.err == [
        f"trellis: interrupted in pass 8; what was learned by then is in {target}; "
        "the same command with --resume goes on"
    ]
    assert load_model(target).warm_start is False
    interrupt_after(12)  # and once more
    assert run("train", *arguments, "-o", target, "--resume").code == 130
    assert checkpoint.exists()
    monkeypatch.undo()
    result = run("train", *arguments, "-o", target, "--resume")
    assert (result.code, len(result.err)) == (0, 1)
    assert " 40 passes" in result.err[0]
    assert target.read_bytes() == expected
    assert not checkpoint.exists()


@pytest.mark.parametrize("options", ["--states observed", "--piece-size 2.5", "--l1 0.1"])
def test_ctrl_c_within_lbfgs(run, toys, tmp_path, monkeypatch, interrupt_after, options):
    monkeypatch.setattr("trellis.solvers.lbfgs.LEG", 4)
    arguments = [toys / "train.txt", "--solver", "lbfgs", *options.split()]
    expected = uninterrupted(run, tmp_path, *arguments)
    with monkeypatch.context() as patch:
        interrupt_after(6, patch)
        result = run("train", *arguments, "-o", tmp_path / "m")
    assert (result.code, len(result.err)) == (130, 1)
    assert result.err[0].startswith("trellis: interrupted in iteration 7; what was learned by ")
    header, _ = read_container(tmp_path / "m.checkpoint")
    assert len(header["records"]) == 4
    result = run("train", *arguments, "--resume", "-o", tmp_path / "m")
    assert result.code == 0
    assert (tmp_path / "m").read_bytes() == expected


@pytest.mark.parametrize("source", ["standard input", "prepared", "jsonl"])
def test_resume_from_any_source(run, toys, tmp_path, monkeypatch, interrupt_after, source):
    file, text = toys / "train.txt", ""
    if source == "standard input":
        file, text = "-", conll()
    elif source == "prepared":
        file = tmp_path / "prepared"
        assert run("prepare", toys / "train.txt", "-o", file).code == 0
    else:
        file = toys / LABELLED["jsonl"]
    arguments = ["train", file, *LONG, *(["--format", "jsonl"] if source == "jsonl" else [])]
    target = tmp_path / "m"
    assert run(*arguments, "-o", tmp_path / "whole", stdin=text).code == 0
    interrupt_after(5)
    assert run(*arguments, "-o", target, stdin=text).code == 130
    monkeypatch.undo()
    assert run(*arguments, "-o", target, "--resume", stdin=text).code == 0
    assert target.read_bytes() == (tmp_path / "whole").read_bytes()


def test_resume_a_warm_start(run, toys, models, tmp_path, monkeypatch, interrupt_after):
    arguments = [toys / "train.txt", "--warm-start", models["conll"], *LONG]
    expected = uninterrupted(run, tmp_path, *arguments)
    interrupt_after(5)
    assert run("train", *arguments, "-o", tmp_path / "m").code == 130
    monkeypatch.undo()
    assert run("train", *arguments, "--resume", "-o", tmp_path / "m").code == 0
    assert (tmp_path / "m").read_bytes() == expected


def test_resume_with_another_number_of_threads(run, toys, tmp_path, monkeypatch, interrupt_after):
    arguments = [toys / "train.txt", "--batch-size", "4", *LONG]
    expected = uninterrupted(run, tmp_path, *arguments)
    interrupt_after(5)
    assert run("train", *arguments, "--jobs", "2", "-o", tmp_path / "m").code == 130
    monkeypatch.undo()
    assert run("train", *arguments, "--resume", "-o", tmp_path / "m").code == 0
    assert (tmp_path / "m").read_bytes() == expected


def test_interrupt_within_the_first_pass_but_after_a_checkpoint(run, toys, tmp_path, monkeypatch):
    def save(self, now, learner, best, original=Checkpoint.save):
        original(self, now, learner, best)
        raise KeyboardInterrupt

    monkeypatch.setattr("trellis.solvers.passes.BLOCK", 20)
    arguments = [toys / "train.txt", "--checkpoint-minutes", "0"]
    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "save", save)
        result = run("train", *arguments, "-o", tmp_path / "m")
    message = "trellis: interrupted in pass 1; the same command with --resume goes on"
    assert (result.code, result.err) == (130, [message])
    assert [p.name for p in tmp_path.iterdir()] == ["m.checkpoint"]
    assert read_container(tmp_path / "m.checkpoint")[0]["visited"] > 0
    assert run("train", *arguments, "--resume", "-o", tmp_path / "m").code == 0
    assert (tmp_path / "m").read_bytes() == uninterrupted(run, tmp_path, *arguments)


def test_an_older_checkpoint_is_no_reason_to_promise_anything(run, toys, tmp_path, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    (tmp_path / "m.checkpoint").write_text("of another run")
    monkeypatch.setattr(ChainCRF, "fit", interrupted)
    result = run("train", toys / "train.txt", "-o", tmp_path / "m")
    assert (result.code, result.err[1:]) == (130, ["trellis: interrupted"])
    assert (tmp_path / "m.checkpoint").read_text() == "of another run"


# ------------------------------------------------------------------ kill -9, then --resume


def large_file(folder, n_sentences):
    """A column file with some noise, so that training has something to do in every pass."""
    rng = np.random.default_rng(0)
    words, noise = rng.integers(0, 300, (n_sentences, 10)), rng.random((n_sentences, 10)) < 0.1
    labels = np.where(noise, words // 7, words) % 4
    file = folder / "large.txt"
    with file.open("w") as out:
        for sentence, tags in zip(words.tolist(), labels.tolist(), strict=True):
            rows = zip(sentence, tags, strict=True)
            out.write("".join(f"w{w} L{y}\n" for w, y in rows) + "\n")
    return file


@pytest.mark.parametrize(
    ("n_kills", "n_sentences", "options"),
    [
        (2, 1000, "--max-passes 200 --piece-size 3.5"),
        (2, 1000, "--max-passes 120 --model perceptron --dev FILE"),
        (2, 40_000, "--max-passes 8 --checkpoint-minutes 0"),  # in the midst of passes
    ],
)
def test_kill_9_then_resume(spawn, run, tmp_path, n_kills, n_sentences, options):
    file = large_file(tmp_path, n_sentences)
    options = options.replace("FILE", str(file)).split()
    arguments = [file, "--features", "word[-1..0]", "--tol", "-1", *options]
    expected = uninterrupted(run, tmp_path, *arguments)
    target, checkpoint = tmp_path / "m", tmp_path / "m.checkpoint"
    moment = random.Random()
    found = []
    for _ in range(n_kills):
        seen = checkpoint.stat().st_mtime_ns if checkpoint.exists() else None
        process = spawn("train", *arguments, "--resume", "-o", target)
        while process.poll() is None and (
            not checkpoint.exists() or checkpoint.stat().st_mtime_ns == seen
        ):
            time.sleep(0.002)
        time.sleep(moment.random() * 0.2)
        process.kill()
        process.wait()
        if target.exists() or not checkpoint.exists():
            break  # it was done before
        header, _ = read_container(checkpoint)  # whole
        found.append((len(header["records"]), header["visited"]))
    assert found and found == sorted(set(found))  # each run went on from the one before
    result = run("train", *arguments, "--resume", "-o", target)
    assert result.code == 0, result.err
    assert target.read_bytes() == expected
    # A process that is killed while it writes leaves the unfinished file.
    left = sorted(p.name for p in tmp_path.iterdir() if p.suffix != ".tmp")
    assert left == ["large.txt", "m", "whole"]


def test_real_ctrl_c_then_resume(spawn, run, tmp_path):
    file = large_file(tmp_path, 1000)
    arguments = [file, "--features", "word[-1..0]", "--tol", "-1", "--max-passes", "300"]
    target = tmp_path / "m"
    process = spawn("train", *arguments, "--progress", "-o", target)
    for line in process.stderr:
        if re.match(rb"pass +10 of", line):
            break
    process.send_signal(signal.SIGINT)
    *_, last = lines_of(process.stderr.read().decode())
    assert process.wait() == 130
    assert re.fullmatch(
        rf"trellis: interrupted in pass \d+; what was learned by then is in {target}; "
        "the same command with --resume goes on", last
    )  # fmt: skip
    assert run("tag", target, file).code == 0
    assert run("train", *arguments, "--resume", "-o", target).code == 0
    assert target.read_bytes() == uninterrupted(run, tmp_path, *arguments)


# ------------------------------------------------------------------ what is said and refused


@pytest.fixture
def cut_off(run, toys, tmp_path, monkeypatch, interrupt_after):
    """Leaves ``m`` and ``m.checkpoint`` of an interrupted run; returns its command line."""
    arguments = ["train", toys / "train.txt", "--l2", "0.5", *LONG, "-o", tmp_path / "m"]
    interrupt_after(3)
    assert run(*arguments).code == 130
    monkeypatch.undo()
    return arguments


@pytest.mark.parametrize("quiet", [[], ["--quiet"]])
def test_a_checkpoint_that_is_not_used(run, cut_off, tmp_path, quiet):
    before = (tmp_path / "m.checkpoint").read_bytes()
    result = run(*cut_off, "--l2", "1", *quiet)
    assert result.code == 0
    assert before
    assert result.err[0] == (
        f"trellis: {tmp_path / 'm.checkpoint'} of an interrupted run is not used, training starts "
        "afresh (--resume would go on from it)"
    )
    assert len(result.err) == (1 if quiet else 2)
    assert not (tmp_path / "m.checkpoint").exists()
    assert load_model(tmp_path / "m").l2 == 1


def test_nothing_to_resume(run, toys, tmp_path):
    arguments = ["train", toys / "train.txt", "--resume", "-o", tmp_path / "m"]
    note = f"trellis: there is no {tmp_path / 'm.checkpoint'}, training starts from the beginning"
    result = run(*arguments)
    assert (result.code, result.err[0], len(result.err)) == (0, note, 2)
    assert run(*arguments, "--quiet").err == []


@pytest.mark.parametrize(
    "change", [["--l2", "2"], ["--max-passes", "41"], ["--solver", "adf"], ["--features", "word"]]
)
def test_checkpoint_of_another_run(fails, cut_off, tmp_path, change):
    before = (tmp_path / "m.checkpoint").read_bytes()
    assert fails(*cut_off, "--resume", *change) == (
        f"{tmp_path / 'm.checkpoint'} is the checkpoint of a run with other data or options; "
        "--resume needs those of that run, without it training starts afresh"
    )
    assert (tmp_path / "m.checkpoint").read_bytes() == before


def test_checkpoint_of_other_data(fails, cut_off, tmp_path):
    (tmp_path / "other.txt").write_text(conll() + conll())
    message = fails("train", tmp_path / "other.txt", *cut_off[2:], "--resume")
    assert " is the checkpoint of a run with other data or options; " in message


def test_damaged_checkpoint(fails, run, cut_off, tmp_path):
    checkpoint = tmp_path / "m.checkpoint"
    checkpoint.write_bytes(checkpoint.read_bytes()[:-1])
    message = fails(*cut_off, "--resume")
    assert message.startswith(f"{checkpoint}: ")
    assert message.endswith("; without --resume training starts afresh")
    assert run(*cut_off).code == 0


def test_a_model_is_no_checkpoint_and_the_other_way_round(fails, cut_off, models, tmp_path):
    checkpoint = tmp_path / "m.checkpoint"
    assert fails("inspect", checkpoint).startswith(f"{checkpoint}: ")
    checkpoint.write_bytes(models["conll"].read_bytes())
    assert fails(*cut_off, "--resume") == (
        f"{checkpoint}: this is a model, not a checkpoint; without --resume training starts afresh"
    )


MARGIN = ["--model", "max-margin", "--l2", "0.01", "--tol", "0"]


def test_ctrl_c_within_frank_wolfe(run, toys, tmp_path, monkeypatch, interrupt_after):
    arguments = [toys / "train.txt", *MARGIN, "--dev", toys / "train.txt", "--max-passes", "40"]
    expected = uninterrupted(run, tmp_path, *arguments)
    with monkeypatch.context() as patch:
        interrupt_after(25, patch)
        result = run("train", *arguments, "-o", tmp_path / "m")
    assert (result.code, result.err) == (
        130,
        [
            f"trellis: interrupted in pass 26; what was learned by then is in {tmp_path / 'm'}; "
            "the same command with --resume goes on"
        ],
    )
    header, _ = read_container(tmp_path / "m.checkpoint")
    assert len(header["records"]) in (10, 20)  # if writing took long, not every tenth pass
    assert run("train", *arguments, "--resume", "-o", tmp_path / "m").code == 0
    assert (tmp_path / "m").read_bytes() == expected


def test_planes_go_without_a_checkpoint(run, fails, toys, tmp_path, monkeypatch, interrupt_after):
    target = tmp_path / "m"
    arguments = ["train", toys / "train.txt", *MARGIN, "--solver", "bundle", "-o", target]
    with monkeypatch.context() as patch:
        interrupt_after(3, patch)
        result = run(*arguments)
    assert (result.code, result.err) == (
        130, [f"trellis: interrupted in iteration 4; what was learned by then is in {target}"],
    )  # fmt: skip
    assert not (tmp_path / "m.checkpoint").exists()
    assert fails(*arguments, "--quiet", "--resume") == (
        f"--resume cannot go on from {target}.checkpoint: a run of this solver cannot be taken up "
        "in the middle; without it training starts afresh"
    )


def test_no_checkpoint(run, toys, tmp_path, interrupt_after):
    interrupt_after(3)
    result = run("train", toys / "train.txt", "--no-checkpoint", "-o", tmp_path / "m")
    assert result.code == 130
    assert result.err == [
        f"trellis: interrupted in pass 4; what was learned by then is in {tmp_path / 'm'}"
    ]
    assert [p.name for p in tmp_path.iterdir()] == ["m"]


def test_no_checkpoint_leaves_one_that_is_there_alone(run, cut_off, tmp_path):
    before = (tmp_path / "m.checkpoint").read_bytes()
    result = run(*cut_off, "--no-checkpoint")
    assert (result.code, len(result.err)) == (0, 1)
    assert (tmp_path / "m.checkpoint").read_bytes() == before


def test_resume_and_no_checkpoint_exclude_each_other(run, cut_off):
    result = run(*cut_off, "--resume", "--no-checkpoint")
    assert result.code == 2
    assert result.err[-1].endswith("argument --no-checkpoint: not allowed with argument --resume")


def test_minutes_arrive(run, toys, tmp_path, monkeypatch):
    seen = []

    def fit(self, corpus, **options):
        seen.append(options)
        raise KeyboardInterrupt

    monkeypatch.setattr(ChainCRF, "fit", fit)
    target = tmp_path / "m"
    run("train", toys / "train.txt", "-o", target)
    run("train", toys / "train.txt", "--checkpoint-minutes", "0.5", "--resume", "-o", target)
    run("train", toys / "train.txt", "--no-checkpoint", "-o", target)
    file = tmp_path / "m.checkpoint"
    first, second, third = (s["checkpoint"] for s in seen)
    assert [(c.path, c.minutes) for c in (first, second)] == [(file, 5.0), (file, 0.5)]
    assert third is None
    assert [s["resume"] for s in seen] == [False, True, False]


@pytest.mark.parametrize("minutes", ["-1", "nan"])
def test_minutes_that_are_none(fails, toys, tmp_path, minutes):
    options = ["--checkpoint-minutes", minutes, "-o", tmp_path / "m"]
    message = fails("train", toys / "train.txt", *options)
    assert message == f"--checkpoint-minutes must be at least 0, got {float(minutes)}"


def test_folder_in_the_checkpoint_s_place(fails, run, toys, tmp_path):
    (tmp_path / "m.checkpoint").mkdir()
    arguments = ["train", toys / "train.txt", "-o", tmp_path / "m"]
    assert fails(*arguments) == f"{tmp_path / 'm.checkpoint'} is a folder; name a file to write"
    assert run(*arguments, "--no-checkpoint").code == 0

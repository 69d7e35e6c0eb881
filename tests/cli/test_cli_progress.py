"""Progress of commands: a bar on a terminal's standard error, and never two silent seconds."""

from __future__ import annotations

import sys
import time

import pytest

from screens import Terminal, screen
from trellis import load_model, progress
from trellis.cli import main


def new_terminal(monkeypatch):
    """Let standard error be a terminal; for the body of a test, since pytest sets it before."""
    monkeypatch.setattr(sys, "stderr", out := Terminal())
    return out


def slowly(monkeypatch, place, seconds):
    """Let a function take its time."""
    module, _, name = place.rpartition(".")
    owner = sys.modules.get(module)
    if owner is None:  # a class
        above, _, kind = module.rpartition(".")
        owner = getattr(sys.modules[above], kind)
    function = getattr(owner, name)

    def slow(*args, **kwargs):
        time.sleep(seconds)
        return function(*args, **kwargs)

    monkeypatch.setattr(owner, name, slow)


def commands(toys, models, folder):
    """Commands, what of them is slow, and what is shown meanwhile."""
    (folder / "gold").write_text("A\nB\n\n" * 4)
    model, train = str(models["conll"]), str(toys / "train.txt")
    few = ["--l2", "1", "--piece-size", "whole", "--folds", "2", "--max-passes", "1"]
    return {
        "train": ([train, "-o", "m"], "cli.train.read_labelled", "reading train.txt  00:0"),
        "tune": ([train, *few], "tuning._Task.score", "fit 2 of 2  |"),
        "prepare": ([train, "-o", "p"], "features.prepare", "encoding 20 samples  00:0"),
        "tag": ([model, train, "-o", "t"], "models.ChainCRF.predict", "labelling 20 sequences  00"),
        "eval": (["--model", model, train], "models.ChainCRF.predict", "labelling 20 sequences"),
        "compress": (
            [model, "--data", train, "--keep", "0.5"], "models.ChainCRF.compressed",
            "model 2 of 2, keep 0.5  |",
        ),
        "inspect": ([model], "cli.inspect_model.describe", "trellis inspect  00:0"),
        "warmup": ([], "warmup.warmup", "compiling kernels  00:0"),
        "combine": (
            ["--gold", "gold", "gold", "gold", "--only", "rerank", "--folds", "2"],
            "experts.Rerank.fit", "method 2 of 2, rerank, fold 2 of 2  |",
        ),
    }  # fmt: skip


NAMES = ("train", "tune", "prepare", "tag", "eval", "compress", "inspect", "warmup", "combine")


@pytest.mark.parametrize("name", NAMES)
def test_what_is_slow_is_shown(toys, models, tmp_path, monkeypatch, capsys, name):
    terminal = new_terminal(monkeypatch)
    import trellis.experts
    import trellis.features
    import trellis.models
    import trellis.tuning
    import trellis.warmup  # noqa: F401

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(progress, "_TICK", 0.01)
    arguments, place, words = commands(toys, models, tmp_path)[name]
    if name == "warmup":
        monkeypatch.setattr("trellis.warmup.warmup", lambda: None)
    slowly(monkeypatch, f"trellis.{place}", 0.2)
    assert main([name, *arguments]) == 0
    assert words in terminal.getvalue()
    assert screen(terminal.getvalue())[1] == 0
    assert "\r" not in capsys.readouterr().out


def test_no_command_is_silent_for_two_seconds(toys, tmp_path, monkeypatch):
    terminal = new_terminal(monkeypatch)
    for place in ("cli.train.read_labelled", "cli.train._save", "cli.train.features_for"):
        slowly(monkeypatch, f"trellis.{place}", 3)
    terminal.times = [time.monotonic()]
    assert main(["train", str(toys / "train.txt"), "-o", str(tmp_path / "m")]) == 0
    assert terminal.silence() < 2
    lines, column = screen(terminal.getvalue())
    assert column == 0 and lines[-1] == ""
    assert "20 sequences" in lines[0] and "pass  1 of 50" in lines[1] and lines[-2].endswith(" s")


def test_quiet_commands_draw_nothing(toys, tmp_path, monkeypatch):
    terminal = new_terminal(monkeypatch)
    monkeypatch.setattr(progress, "_TICK", 0.001)
    assert main(["train", str(toys / "train.txt"), "--quiet", "-o", str(tmp_path / "m")]) == 0
    assert terminal.getvalue() == ""


def test_the_model_does_not_remember_the_terminal(toys, tmp_path, monkeypatch):
    new_terminal(monkeypatch)
    assert main(["train", str(toys / "train.txt"), "-o", str(tmp_path / "m")]) == 0
    assert load_model(tmp_path / "m").verbose is False


def test_an_error_after_a_bar_has_its_own_line(toys, monkeypatch, tmp_path):
    terminal = new_terminal(monkeypatch)
    monkeypatch.setattr(progress, "_TICK", 0.01)
    slowly(monkeypatch, "trellis.cli.train.read_labelled", 0.1)
    (tmp_path / "empty.txt").write_text("\n")
    arguments = ["train", str(tmp_path / "empty.txt"), "--columns", "word,label"]
    assert main([*arguments, "-o", str(tmp_path / "m")]) == 1
    assert "reading empty.txt" in terminal.getvalue()
    lines, column = screen(terminal.getvalue())
    assert len(lines) == 2 and column == 0
    assert lines[0].startswith("trellis: error: ") and lines[0].endswith("no sequence in it")

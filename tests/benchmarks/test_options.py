"""Options of benchmarks: usual and small values, what is given wins, and what a process becomes."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from benchmarks import options
from studies.datasets import load, load_cells, load_ocr


@pytest.fixture
def begin(monkeypatch):
    """Begin with some words of a command line; returns the options and what was done."""
    monkeypatch.setenv("TRELLIS_DATA", "nowhere")
    done: list[object] = []
    monkeypatch.setattr(options, "warmup", lambda: done.append("warm"))
    monkeypatch.setattr(
        os, "sched_setaffinity", lambda _, cores: done.append(len(cores)), raising=False
    )
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {2, 3}, raising=False)

    def call(*words: str, **more: object):
        monkeypatch.setattr(sys, "argv", ["benchmark", *words])
        choices = {"rounds": (5, 1), "sizes": ([0.5, 2.0], [1.0]), "quick": (False, True, "less")}
        return options.begin("What it is.\n\nMore.", **choices, **more), done

    return call


def test_usual_values(begin):
    args, done = begin()
    assert (args.rounds, args.sizes, args.quick, args.small) == (5, [0.5, 2.0], False, False)
    assert done == ["warm", 1]
    assert os.environ["TRELLIS_DATA"] == "nowhere"


def test_small_values_and_stand_ins(begin):
    args, done = begin("--small")
    assert (args.rounds, args.sizes, args.quick) == (1, [1.0], True)
    assert done == []
    assert Path(os.environ["TRELLIS_DATA"]).is_dir()
    for name in ("conll2000", "jnlpba", "ud_ewt", "sxu"):
        data = load(name)
        assert (len(data.train), len(data.test)) == (60, 20)
    assert len(load_ocr()[0]) == 60
    assert len(load_cells("cellmigration")) == 85
    assert len(load_cells("epidermis")) == 10


def test_what_is_given_wins(begin):
    args, _ = begin("--small", "--rounds", "3", "--sizes", "4", "5")
    assert (args.rounds, args.sizes) == (3, [4.0, 5.0])
    assert begin("--quick")[0].quick


def test_all_cores(begin):
    assert begin(pin=False)[1] == ["warm"]


def test_help_is_the_first_line(begin, capsys):
    with pytest.raises(SystemExit):
        begin("--help")
    text = capsys.readouterr().out
    assert "What it is." in text
    assert "More." not in text
    assert "--small" in text

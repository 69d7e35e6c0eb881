"""``--plot`` of all commands: what is drawn, and what is refused before the work."""

from __future__ import annotations

import sys

import pytest
from toy_files import LABELLED

import trellis.pictures

pytest.importorskip("matplotlib", reason="matplotlib is not installed")

TAGGED = "a X X\nb Y X\n\n"


@pytest.fixture
def drawn(monkeypatch):
    """Figures of a picture as it is drawn, by its name."""

    def watch(name):
        figures, draw = [], getattr(trellis.pictures, name)

        def keep(*data, **how):
            figures.append(draw(*data, **how))
            return figures[-1]

        monkeypatch.setattr(trellis.pictures, name, keep)
        return figures

    return watch


def test_inspect(run, models, tmp_path, drawn):
    figures, path = drawn("draw_transitions"), tmp_path / "t.png"
    result = run("inspect", models["conll"], "--plot", path)
    assert (result.code, result.err) == (0, [])
    assert result.out == run("inspect", models["conll"]).out
    assert path.read_bytes().startswith(b"\x89PNG")
    names = [t.get_text() for t in figures[0].axes[0].get_yticklabels()]
    assert names == ["O", "B-ADVP", "B-NP", "I-NP", "B-VP"]


def test_inspect_of_a_model_without_labels(fails, tmp_path):
    from trellis.experts import MajorityVote

    model = tmp_path / "vote.trellis"
    MajorityVote().fit([[["a"]], [["a"]]], [["a"]]).save(model)
    message = fails("inspect", model, "--plot", tmp_path / "t.png")
    assert message == "a MajorityVote has no transitions; leave out --plot"
    assert not (tmp_path / "t.png").exists()


def test_eval(run, tmp_path, drawn):
    figures, path = drawn("draw_confusion"), tmp_path / "c.svg"
    (tmp_path / "tagged.txt").write_text(TAGGED)
    result = run("eval", tmp_path / "tagged.txt", "--plot", path)
    assert (result.code, result.err) == (0, [])
    assert path.read_bytes().startswith(b"<?xml")
    assert figures[0].axes[0].get_title() == "50.0 % of 2 positions are right"


def test_train(run, toys, tmp_path, drawn):
    figures, path = drawn("draw_learning"), tmp_path / "l.pdf"
    file = toys / LABELLED["conll"]
    options = ("--dev", file, "--max-passes", "3", "--plot", path)
    result = run("train", file, *options, "-o", tmp_path / "m")
    assert result.code == 0
    assert len(result.err) == 1
    assert path.read_bytes().startswith(b"%PDF")
    score, objective = figures[0].axes
    assert score.lines[0].get_xdata().tolist() == [1, 2, 3]
    assert objective.get_ylabel() == "objective"


@pytest.mark.parametrize("command", ["inspect", "eval", "train", "track"])
def test_refused_before_the_work(fails, command, toys, models, tmp_path, monkeypatch):
    """Not even the file is read, which there is not."""
    options = {"train": ("-o", tmp_path / "m")}.get(command, ())
    missing = tmp_path / "missing"
    message = fails(command, missing, *options, "--plot", tmp_path / "x.jpg")
    assert message == f"--plot {tmp_path}/x.jpg: expected a name that ends in .png, .svg, .pdf"
    message = fails(command, missing, *options, "--plot", tmp_path / "no" / "x.png")
    assert "the folder" in message and "does not exist" in message
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    message = fails(command, missing, *options, "--plot", tmp_path / "x.png")
    assert message == "--plot needs matplotlib: install it, or trellis-structured[plot]"
    assert not list(tmp_path.iterdir())


def test_a_picture_is_not_written_over_what_is_read(fails, tmp_path):
    path = tmp_path / "tagged.png"
    path.write_text(TAGGED)
    message = fails("eval", path, "--plot", path)
    assert "would be written over" in message
    assert path.read_text() == TAGGED

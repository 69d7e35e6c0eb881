"""Commands and models of another kind than they need; ``trellis inspect`` of every kind."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from trellis.datasets import simulate_cells
from trellis.experts import MajorityVote
from trellis.regression import GCRF, knn_graph
from trellis.tracking import FlowTracker

GOLDEN = Path(__file__).parents[1] / "golden" / "tracking_v1.trellis"


@pytest.fixture(scope="module")
def others(tmp_path_factory):
    """Model files that hold no labelling model."""
    folder = tmp_path_factory.mktemp("others")
    X = np.random.default_rng(0).uniform(size=(30, 2))
    GCRF(LinearRegression()).fit(X, X[:, 0] ** 2, graph=knn_graph(X)).save(folder / "gcrf")
    said = [[["a", "b"]], [["a", "a"]]]
    MajorityVote().fit(said, [["a", "a"]]).save(folder / "vote")
    FlowTracker().fit(simulate_cells(10, 4, seed=0)).save(folder / "flow")
    return folder


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("gcrf", "a GCRF, a regression on graphs"),
        ("vote", "a MajorityVote, an ensemble of experts"),
        ("flow", "a FlowTracker, a tracker"),
    ],
)
def test_a_labelling_command_needs_a_labelling_model(fails, others, toys, tmp_path, name, what):
    file, text = others / name, toys / "train.conll"
    message = (
        f"{file} holds {what}; this command needs a model that labels sequences, trees or graphs, "
        "as 'trellis train' makes them"
    )
    assert fails("tag", file, text) == message
    assert fails("eval", text, "--model", file) == message
    target = tmp_path / "m"
    assert fails("train", text, "--warm-start", file, "-o", target) == message
    assert not target.exists()


def test_tracking_needs_a_tracking_model(fails, others, tmp_path):
    objects = tmp_path / "objects.csv"
    objects.write_text("frame,id,x,y\n0,1,0,0\n1,1,1,1\n")
    for name in ("gcrf", "flow"):
        message = fails("track", objects, "--model", others / name, "-o", tmp_path / "t")
        assert "needs a model that learned to track, as 'trellis track --learn' makes" in message


def test_inspect_shows_what_was_learned(run, fails, others):
    out = run("inspect", others / "gcrf").out
    assert out.startswith("GCRF(base=LinearRegression())\n")
    assert re.search(r"^alpha_ +[0-9.]+$", out, re.M)
    assert re.search(r"^bases_ +\[LinearRegression\(\)\]$", out, re.M)
    assert "classes_        ('a', 'b')" in run("inspect", others / "vote").out
    assert "gate_  " in run("inspect", others / "flow").out
    assert max(map(len, run("inspect", GOLDEN).out.splitlines())) < 120
    message = fails("inspect", others / "vote", "--label", "a")
    assert message == "a MajorityVote has no weights of labels; leave out --label"

"""What all pictures have in common: ``path``, ``ax``, ``title``, what comes back, errors."""

from __future__ import annotations

import inspect
import sys

import numpy as np
import pytest

import trellis.pictures
from trellis import ChainCRF
from trellis.errors import DataError
from trellis.pictures import (
    draw_agreement,
    draw_calibration,
    draw_confusion,
    draw_coverage,
    draw_learning,
    draw_lineage,
    draw_map,
    draw_precision_recall,
    draw_residuals,
    draw_transitions,
    draw_variogram,
)
from trellis.tracking import Track, TrackingResult

pytest.importorskip("matplotlib", reason="matplotlib is not installed")

X, Y = [["a", "b", "a"]] * 3, [["A", "B", "A"]] * 3


@pytest.fixture(scope="module")
def crf():
    return ChainCRF("word", max_passes=3, random_state=0).fit(X, Y)


@pytest.fixture(scope="module")
def calls(crf):
    """Each picture, of data of its own."""
    marginals = [np.array([[0.8, 0.2], [0.4, 0.6]])]
    said = {"a": Y, "b": [["A", "A", "A"]] * 3}
    tracks = TrackingResult([], [], [Track("", 1, 0, 3, -1), Track("", 2, 1, 2, -1)], [])
    return {
        "agreement": lambda **how: draw_agreement(said, **how),
        "calibration": lambda **how: draw_calibration(marginals, [["A", "B"]], ["A", "B"], **how),
        "confusion": lambda **how: draw_confusion(Y, Y, **how),
        "coverage": lambda **how: draw_coverage([0.0, 1.0], [0.1, 0.8], [0.5, 0.5], **how),
        "learning": lambda **how: draw_learning(crf, **how),
        "lineage": lambda **how: draw_lineage(tracks, **how),
        "map": lambda **how: draw_map([[0, 1], [1, 2]], [1.0, 2.0], **how),
        "precision_recall": lambda **how: draw_precision_recall(
            [["A", "B"]], marginals, classes=["A", "B"], **how
        ),
        "residuals": lambda **how: draw_residuals(
            [[0, 1], [1, 2], [2, 0]], [1.0, 2.0, 3.0], [1.5, 2.0, 2.0], **how
        ),
        "transitions": lambda **how: draw_transitions(crf, **how),
        "variogram": lambda **how: draw_variogram([[0, 1], [1, 2], [2, 0]], [1.0, 2.0, 4.0], **how),
    }


PICTURES = (
    "agreement", "calibration", "confusion", "coverage", "learning", "lineage", "map",
    "precision_recall", "residuals", "transitions", "variogram",
)  # fmt: skip


def test_all_pictures_are_here():
    assert [f"draw_{name}" for name in PICTURES] == [
        name for name in trellis.pictures.__all__ if name.startswith("draw_")
    ]


@pytest.mark.parametrize("name", PICTURES)
def test_arguments(name):
    given = inspect.signature(getattr(trellis.pictures, f"draw_{name}")).parameters
    for argument in ("path", "ax", "title"):
        assert given[argument].default is None


@pytest.mark.parametrize("name", PICTURES)
def test_a_new_figure(calls, name):
    from matplotlib.figure import Figure

    figure = calls[name](title="A title of mine")
    assert isinstance(figure, Figure)
    titles = [axes.get_title() for axes in figure.axes] + [figure.get_suptitle()]
    assert "A title of mine" in titles


@pytest.mark.parametrize("name", PICTURES)
def test_same_bytes(calls, name, tmp_path):
    paths = [tmp_path / f"{i}.svg" for i in range(2)]
    for path in paths:
        calls[name](path=path)
    one, two = (path.read_bytes() for path in paths)
    assert one == two
    assert one.startswith(b"<?xml")


@pytest.mark.parametrize("name", PICTURES)
def test_axes_of_the_user(calls, name, tmp_path):
    from matplotlib.figure import Figure

    figure = Figure()
    other, axes = figure.subplots(1, 2)
    assert calls[name](ax=axes, path=tmp_path / "x.png", title="Mine") is axes
    assert axes.get_title() == "Mine"
    assert axes.has_data()
    assert not other.has_data()
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("name", PICTURES)
def test_what_is_refused(calls, name, tmp_path, monkeypatch):
    with pytest.raises(DataError, match=r"cannot draw .*x.jpg: the name of a picture must end"):
        calls[name](path=tmp_path / "x.jpg")
    with pytest.raises(DataError, match=r"ax must be a matplotlib Axes or a list of them, got 3"):
        calls[name](ax=3)
    with pytest.raises(DataError, match=r"title must be a string or None, got 3"):
        calls[name](title=3)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(DataError, match=r"pictures need matplotlib: .*trellis-structured\[plot\]"):
        calls[name](path=tmp_path / "x.png")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", PICTURES)
@pytest.mark.parametrize("dpi", [100, 150])
def test_nothing_is_cut(calls, name, dpi):
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    figure = calls[name]()
    figure.set_dpi(dpi)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    drawn = figure.get_tightbbox(canvas.get_renderer())  # in inches
    width, height = figure.get_size_inches()
    assert min(drawn.x0, drawn.y0) >= -0.001
    assert drawn.x1 <= width + 0.001
    assert drawn.y1 <= height + 0.001


def test_as_many_axes_as_panels(calls):
    from matplotlib.figure import Figure

    axes = Figure().subplots(3, 1)
    with pytest.raises(DataError, match="ax has 3 axes, but this picture has 2 panels"):
        calls["calibration"](ax=axes)
    assert calls["calibration"](ax=list(axes[:2]))[1].get_ylabel() == "positions [%]"


def test_axes_in_a_part_of_a_figure(calls, tmp_path):
    from matplotlib.figure import Figure

    figure = Figure()
    left, _ = figure.subfigures(1, 2)
    calls["confusion"](ax=left.subplots(), path=tmp_path / "x.svg")
    assert (tmp_path / "x.svg").read_bytes().startswith(b"<?xml")

"""Learning curves, reliability diagrams, precision over recall: lines and names."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from trellis import ChainCRF, MaxMargin
from trellis.errors import DataError
from trellis.evaluation import calibration, precision_recall_curve
from trellis.pictures import draw_calibration, draw_learning, draw_precision_recall
from trellis.pictures.style import line_style
from trellis.regression import Swap
from trellis.solvers import PassRecord

pytest.importorskip("matplotlib", reason="matplotlib is not installed")

X, Y = [["a", "b", "a"]] * 4, [["A", "B", "A"]] * 4


def history(scores, objective=10.0):
    return [
        PassRecord(i + 1, objective / (i + 1), None, score, 0.5) for i, score in enumerate(scores)
    ]


def legend(axes):
    return axes.get_legend_handles_labels()[1]


def named(axes, name):
    return next(line for line in axes.lines if line.get_label() == name)


# ------------------------------------------------------------------------------- learning


def test_objective_and_score():
    score, objective = draw_learning(history([0.5, 0.9, 0.7])).axes
    assert score.lines[0].get_xdata().tolist() == [1, 2, 3]
    assert score.lines[0].get_ydata().tolist() == [50, 90, 70]
    best = score.lines[1]
    assert (best.get_xdata().tolist(), best.get_ydata().tolist()) == ([2], [90])
    assert best.get_fillstyle() == "none"
    assert objective.lines[0].get_ydata().tolist() == [10, 5, 10 / 3]
    assert (score.get_ylabel(), objective.get_ylabel()) == (
        "score on held-out data [%]",
        "objective",
    )
    assert score.get_xlabel() == objective.get_xlabel() == "pass"


def test_time_runs_to_the_right():
    score, _ = draw_learning(history([0.5, 0.9]), over="seconds").axes
    assert score.lines[0].get_xdata().tolist() == [0.5, 1.0]
    assert score.get_xlabel() == "training time [s]"


def test_without_held_out_data_there_is_one_panel():
    (axes,) = draw_learning(history([None, None])).axes
    assert axes.get_ylabel() == "objective"
    assert axes.get_legend() is None


def test_one_pass_is_seen():
    (axes,) = draw_learning(history([None])).axes
    assert axes.lines[0].get_marker() == "o"
    assert axes.lines[0].get_xdata().tolist() == [1]


def test_many_passes_have_few_marks():
    (axes,) = draw_learning(history([None] * 500)).axes
    assert axes.lines[0].get_markevery() == 20


def test_several_systems():
    systems = {"one": history([0.5, 0.6]), "_two": history([0.4]), "three": history([None])}
    score, objective = draw_learning(systems).axes
    assert legend(score) == ["one", " _two"]
    assert legend(objective) == ["one", " _two", "three"]
    for number, name in enumerate(legend(objective)):
        line, style = named(objective, name), line_style(number)
        assert line.get_color() == style["color"]
        assert line.get_marker() == style["marker"]
    assert named(score, " _two").get_color() == line_style(1)["color"]


def test_many_systems_are_named_beside_the_panels():
    figure = draw_learning({f"s{i}": history([None]) for i in range(9)})
    assert figure.axes[0].get_legend() is None
    assert [text.get_text() for text in figure.legends[0].texts] == [f"s{i}" for i in range(9)]


def test_models():
    crf = ChainCRF("word", max_passes=3, random_state=0).fit(X, Y)
    (axes,) = draw_learning(crf).axes
    assert axes.lines[0].get_ydata().tolist() == [r.objective for r in crf.history_]
    exact = ChainCRF("word", solver="lbfgs", random_state=0).fit(X, Y)
    assert draw_learning(exact).axes[0].get_xlabel() == "iteration"
    assert draw_learning({"a": crf, "b": exact}).axes[0].get_xlabel() == "pass or iteration"


def test_lower_bounds():
    margin = MaxMargin("word", random_state=0).fit(X, Y)
    assert any(r.lower_bound is not None for r in margin.history_)
    (axes,) = draw_learning(margin).axes
    bounds = [r.lower_bound for r in margin.history_ if r.lower_bound is not None]
    assert named(axes, "lower bound").get_ydata().tolist() == bounds
    assert legend(axes) == ["objective", "lower bound"]


def test_swaps():
    swaps = [Swap(0.5 / (i + 1), 0.4, 0.1 * i, None, None, 0, 0, 1.0) for i in range(3)]
    (axes,) = draw_learning(swaps).axes
    assert legend(axes) == ["R_obj", "R_emp", "dCorr"]
    assert axes.lines[0].get_xdata().tolist() == [0, 1, 2]
    assert axes.get_xlabel() == "swap"
    (two,) = draw_learning({"a": swaps, "b": swaps}).axes
    assert legend(two) == ["a", "b"]


def test_single_axes_show_the_score():
    from matplotlib.figure import Figure

    axes = Figure().subplots()
    draw_learning(history([0.5]), ax=axes)
    assert axes.get_ylabel() == "score on held-out data [%]"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "the history of training is empty"),
        ({"a": []}, "a: the history of training is empty"),
        (3, "a int has no history of training"),
        ("abc", "a str has no history of training"),
        ([1, 2], "1 is no record of training"),
        ({}, "the mapping of names to systems is empty"),
    ],
)
def test_histories_that_are_refused(given, message):
    with pytest.raises(DataError, match=message):
        draw_learning(given)


def test_over_is_checked():
    with pytest.raises(DataError, match="over must be 'passes' or 'seconds', got 'days'"):
        draw_learning(history([0.5]), over="days")


# ------------------------------------------------------------------------------- calibration

MARGINALS = [np.array([[0.9, 0.1], [0.6, 0.4], [0.65, 0.35]])]
GOLD = [["A", "B", "A"]]


def test_calibration():
    main, counts = draw_calibration(MARGINALS, GOLD, ["A", "B"]).axes
    (points,) = [line for line in main.lines if line.get_label().startswith("ECE")]
    assert points.get_xdata().tolist() == pytest.approx([0.625, 0.9])
    assert points.get_ydata().tolist() == [0.5, 1.0]
    assert points.get_label() == f"ECE {calibration(MARGINALS, GOLD, ['A', 'B']).ece:.3f}"
    steps = counts.patches[0].get_data()
    assert steps.values.tolist() == pytest.approx([0] * 6 + [200 / 3, 0, 0, 100 / 3])
    assert (main.get_xlim(), main.get_ylim()) == ((0, 1), (0, 1))


def test_intervals_are_wilsons():
    from scipy.stats import binomtest

    result = calibration(MARGINALS, GOLD, ["A", "B"])
    main = draw_calibration(result).axes[0]
    segments = main.collections[0].get_segments()
    for segment, n, share in zip(segments, (2, 1), (0.5, 1.0), strict=True):
        theirs = binomtest(round(n * share), n).proportion_ci(method="wilson")
        assert segment[:, 1].tolist() == pytest.approx([theirs.low, theirs.high])


def test_several_calibrations():
    result = calibration(MARGINALS, GOLD, ["A", "B"], n_bins=2)
    main = draw_calibration({"crf": MARGINALS, "other": result}, GOLD, ["A", "B"]).axes[0]
    assert [label.split(" (")[0] for label in legend(main)] == ["crf", "other"]
    lines = [line for line in main.lines if "ECE" in line.get_label()]
    assert [line.get_marker() for line in lines] == ["o", "s"]
    assert len(lines[1].get_xdata()) == 1


def test_calibration_in_one_axes():
    from matplotlib.figure import Figure

    figure = Figure()
    draw_calibration(MARGINALS, GOLD, ["A", "B"], ax=figure.subplots())
    assert len(figure.axes) == 1
    assert figure.axes[0].get_xlabel() == "probability of the predicted label"


def test_calibrations_that_are_refused():
    with pytest.raises(DataError, match="gold and classes are missing"):
        draw_calibration(MARGINALS)
    with pytest.raises(DataError, match="crf: gold and classes are missing"):
        draw_calibration({"crf": MARGINALS}, GOLD)
    with pytest.raises(DataError, match="is not made of probabilities"):
        draw_calibration([np.array([[0.9, 0.9]])], [["A"]], ["A", "B"])


# ------------------------------------------------------------------------------- precision, recall

SPANS = [[("PER", 0, 2, 0.9), ("PER", 2, 3, 0.4), ("LOC", 3, 4, 0.3)]]
NAMES = [["B-PER", "I-PER", "O", "B-LOC"]]


def test_precision_over_recall():
    axes = draw_precision_recall(NAMES, SPANS).axes[0]
    line = named(axes, "AP 0.833")
    assert line.get_xdata().tolist() == [0, 0.5, 0.5, 1]
    assert line.get_ydata().tolist() == [1, 1, 0.5, 2 / 3]
    assert line.get_drawstyle() == "steps-pre"
    assert line.get_markevery() == [3]  # all answers
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("recall", "precision")


def test_area_is_the_average_precision():
    rng = np.random.default_rng(0)
    gold = [["yes" if p > rng.random() else "no" for p in np.linspace(0, 1, 50)]]
    marginals = [np.column_stack([np.linspace(0, 1, 50), np.linspace(1, 0, 50)])]
    curve = precision_recall_curve(gold, marginals, classes=["yes", "no"], label="yes")
    line = draw_precision_recall(curve).axes[0].lines[-1]
    x, y = line.get_xdata(), line.get_ydata()
    assert np.sum(np.diff(x) * y[1:]) == pytest.approx(curve.average_precision)


def test_several_systems_and_types():
    axes = draw_precision_recall(NAMES, {"a": SPANS, "b": [[]]}).axes[0]
    assert legend(axes) == ["a (AP 0.833)", "b (AP 0.000)"]
    assert len(named(axes, "b (AP 0.000)").get_ydata()) == 0
    types = {t: precision_recall_curve(NAMES, SPANS, label=t) for t in ("PER", "LOC")}
    assert legend(draw_precision_recall(types).axes[0]) == ["PER (AP 1.000)", "LOC (AP 1.000)"]
    only = draw_precision_recall(NAMES, SPANS, label="PER").axes[0]
    assert legend(only) == ["AP 1.000"]


def test_lines_of_one_f1():
    axes = draw_precision_recall(NAMES, SPANS).axes[0]
    for line, f1 in zip(axes.lines[:4], (0.2, 0.4, 0.6, 0.8), strict=True):
        recall, precision = line.get_xdata(), line.get_ydata()
        np.testing.assert_allclose(2 * precision * recall / (precision + recall), f1)


def test_curves_that_are_refused():
    curve = precision_recall_curve(NAMES, SPANS)
    with pytest.raises(DataError, match="found is missing"):
        draw_precision_recall(NAMES)
    with pytest.raises(DataError, match="curves say it all: leave out classes, label and scheme"):
        draw_precision_recall(curve, label="PER")
    with pytest.raises(DataError, match="gold has no 'ORG' to be found"):
        draw_precision_recall(NAMES, SPANS, label="ORG")


def test_records_may_be_of_another_kind():
    @dataclasses.dataclass
    class Round:
        number: int
        objective: float
        n_planes: int
        seconds: float

    (axes,) = draw_learning([Round(1, 3.0, 2, 0.1), Round(2, 2.0, 2, 0.1)]).axes
    assert axes.get_xlabel() == "round"

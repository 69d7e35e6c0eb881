"""Heat maps of transitions, confusions and agreement: values, names, order, numbers."""

from __future__ import annotations

import enum
import itertools

import numpy as np
import pytest

from trellis import ChainCRF, ChainPerceptron, GraphCRF, TreeCRF
from trellis.errors import DataError
from trellis.evaluation import confusion
from trellis.experts import as_outputs
from trellis.pictures import draw_agreement, draw_confusion, draw_transitions
from trellis.pictures.names import arranged, as_systems, legend_name, shown

pytest.importorskip("matplotlib", reason="matplotlib is not installed")


def cells(axes):
    """The values of an image, NaN where it is blank."""
    return np.ma.filled(axes.images[0].get_array().astype(float), np.nan)


def sides(axes):
    return [
        [t.get_text() for t in side] for side in (axes.get_yticklabels(), axes.get_xticklabels())
    ]


def numbers(axes):
    """Texts in cells by row and column."""
    return {(round(t.get_position()[1]), round(t.get_position()[0])): t for t in axes.texts}


# ------------------------------------------------------------------------------- names


class Colour(enum.Enum):
    RED = 1


@pytest.mark.parametrize(
    ("label", "text"),
    [
        ("NN", "NN"),
        (3, "3"),
        (True, "True"),
        (("a", 1), "('a', 1)"),
        (Colour.RED, "RED"),
        ("", "(empty)"),
        ("two\nlines\tand  spaces", "two lines and spaces"),
        ("$x^2$", r"\$x^2\$"),
        ("x" * 29, "x" * 27 + "…"),
        ("\x07bell", "�bell"),
        ("lone \ud800", "lone ?"),
    ],
)
def test_names(label, text):
    assert shown(label) == text


def test_names_of_systems():
    assert legend_name("_hidden") == " _hidden"
    assert as_systems([1]) == {"": [1]}
    long = {"x" * 50 + "1": 1, "x" * 50 + "2": 2}
    assert [name[:4] for name in as_systems(long)] == ["1: x", "2: x"]
    with pytest.raises(DataError, match="the mapping of names to systems is empty"):
        as_systems({})


def test_order_of_labels():
    classes = ["B-X", "B-Y", "E-X", "I-X", "O", "S-Y"]
    assert [classes[i] for i in arranged(classes)] == ["O", "B-X", "I-X", "E-X", "B-Y", "S-Y"]
    assert arranged(["b", "a"]) == [0, 1]
    assert arranged([3, 1]) == [0, 1]


# ------------------------------------------------------------------------------- confusion


def test_confusion():
    gold = [["A", "A", "A", "B", "B", None, {"A", "B"}]]
    predicted = [["A", "A", "B", "B", "C", "A", "A"]]
    axes = draw_confusion(gold, predicted).axes[0]
    expected = [[200 / 3, 100 / 3, 0], [0, 50, 50], [np.nan] * 3]
    np.testing.assert_allclose(cells(axes), expected)
    assert sides(axes) == [["A", "B", "C"]] * 2
    assert {place: t.get_text() for place, t in numbers(axes).items() if t.get_text()} == {
        (0, 0): "2", (0, 1): "1", (0, 2): "0", (1, 0): "0", (1, 1): "1", (1, 2): "1",
    }  # fmt: skip
    assert axes.get_title() == "60.0 % of 5 positions are right"
    assert (axes.get_ylabel(), axes.get_xlabel()) == ("gold label", "predicted label")


def test_confusion_is_taken_as_it_is():
    table = confusion([["I-X", "O"]], [["I-X", "B-X"]], ["O", "I-X", "B-X"])
    assert sides(draw_confusion(table).axes[0])[0] == ["O", "I-X", "B-X"]
    listed = draw_confusion([["b", "a"]], [["b", "a"]], classes=["b"]).axes[0]
    assert sides(listed)[0] == ["b", "a"]
    with pytest.raises(DataError, match="a Confusion says it all"):
        draw_confusion(table, [["O"]])
    with pytest.raises(DataError, match="predicted is missing"):
        draw_confusion([["O"]])
    with pytest.raises(DataError, match="no position of gold has exactly one label"):
        draw_confusion([[None]], [["O"]])


def test_ink_is_seen_on_its_cell():
    """Dark cells have white numbers."""
    axes = draw_confusion([["A"] * 9 + ["B"]], [["A"] * 9 + ["A"]]).axes[0]
    ink = {place: t.get_color() for place, t in numbers(axes).items()}
    assert ink[0, 0] == "white"
    assert ink[0, 1] == "black"


def test_zeros_are_left_out_among_many():
    many = [list(range(12))]
    axes = draw_confusion(many, many).axes[0]
    assert {place for place, t in numbers(axes).items() if t.get_text()} == {
        (i, i) for i in range(12)
    }


@pytest.mark.parametrize(
    ("n", "texts", "names"), [(1, 1, 1), (2, 4, 2), (20, 400, 20), (100, 0, 100), (300, 0, 100)]
)
def test_many_labels(n, texts, names):
    labels = [[f"label {i:03}" for i in range(n)]]
    figure = draw_confusion(labels, labels)
    axes = figure.axes[0]
    assert len(axes.texts) == texts
    assert len(axes.get_yticklabels()) == names
    assert max(figure.get_size_inches()) < 14


def test_names_do_not_overlap():
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    for n in (2, 7, 30, 100):
        labels = [[f"a rather long label {i:03}" for i in range(n)]]
        figure = draw_confusion(labels, labels)
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        page = figure.bbox
        for side, low, high in (("x", "x0", "x1"), ("y", "y0", "y1")):
            axis = getattr(figure.axes[0], f"{side}axis")
            boxes = [t.get_window_extent(canvas.get_renderer()) for t in axis.get_ticklabels()]
            boxes.sort(key=lambda box: getattr(box, low))
            for a, b in itertools.pairwise(boxes):
                assert getattr(a, high) <= getattr(b, low) + 1
            assert all(page.x0 <= b.x0 and page.y0 <= b.y0 for b in boxes)


def test_no_name_is_cut():
    """One layout is not enough where cells stay square: that of one label was too far left."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    for n, length in ((1, 8), (1, 40), (2, 8), (3, 20), (20, 40)):
        labels = [["x" * length + str(i) for i in range(n)]]
        figure = draw_confusion(labels, labels)
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        drawn = figure.get_tightbbox(canvas.get_renderer())
        width, height = figure.get_size_inches()
        assert min(drawn.x0, drawn.y0) >= -0.001
        assert drawn.x1 <= width + 0.001
        assert drawn.y1 <= height + 0.001


def test_small_axes_have_no_numbers():
    from matplotlib.figure import Figure

    labels = [list(range(10))]
    axes = Figure(figsize=(1.5, 1.5)).subplots()
    draw_confusion(labels, labels, ax=axes)
    assert len(axes.texts) == 0


# ------------------------------------------------------------------------------- transitions


def test_transitions():
    crf = ChainCRF("word", random_state=0).fit([["a", "b", "c"]] * 3, [["X", "Y", "Z"]] * 3)
    axes = draw_transitions(crf).axes[0]
    np.testing.assert_allclose(cells(axes), crf.weights_.transitions.reshape(3, 3))
    assert sides(axes) == [["X", "Y", "Z"]] * 2
    image = axes.images[0]
    largest = np.abs(crf.weights_.transitions).max()
    assert image.norm.vmin == -image.norm.vmax == -largest
    weight = crf.weights_.transitions.reshape(3, 3)[0, 1]
    assert numbers(axes)[0, 1].get_text() == f"{weight:+.1f}"
    assert axes.get_title() == ""


def test_signs_have_their_own_hue():
    crf = ChainCRF("word", random_state=0).fit([["a", "b"]] * 3, [["X", "Y"]] * 3)
    image = draw_transitions(crf).axes[0].images[0]
    for weight in (0.01, 0.5, 1.0):
        red, _, blue, _ = image.cmap(image.norm(weight * image.norm.vmax))
        assert blue > red
        red, _, blue, _ = image.cmap(image.norm(-weight * image.norm.vmax))
        assert red > blue


def test_some_labels_in_an_order():
    crf = ChainCRF("word", random_state=0).fit([["a", "b", "c"]] * 3, [[1, 2, 3]] * 3)
    axes = draw_transitions(crf, labels=[3, 1]).axes[0]
    table = crf.weights_.transitions.reshape(3, 3)
    np.testing.assert_allclose(cells(axes), table[np.ix_([2, 0], [2, 0])])
    assert sides(axes)[0] == ["3", "1"]
    with pytest.raises(DataError, match="labels names 4, which the model does not have: it has 1"):
        draw_transitions(crf, labels=[4])
    with pytest.raises(DataError, match="labels is empty"):
        draw_transitions(crf, labels=[])


def test_states_that_cannot_follow_are_hatched():
    X, y = [["a", "b", "c", "d"]] * 3, [["B-X", "I-X", "O", "B-X"]] * 3
    crf = ChainCRF("word", encoding="iobes", random_state=0).fit(X, y)
    axes = draw_transitions(crf).axes[0]
    assert sides(axes)[0] == ["O", "B-X", "I-X", "E-X", "S-X"]
    blank = np.isnan(cells(axes))
    assert blank.tolist() == [
        [False] * 5,  # labellings may be invalid, so that I-X may follow O
        [True, True, False, False, True],
        [True, True, False, False, True],
        [False, False, True, True, False],
        [False, False, True, True, False],
    ]
    hatched = axes.collections[0]
    assert hatched.get_hatch()
    assert len(hatched.get_paths()) == blank.sum()


def test_types_of_edges_have_panels():
    from matplotlib.figure import Figure

    X, y = [["a", "b", "c"]] * 4, [["X", "Y", "X"]] * 4
    edges, types = [[(0, 1), (1, 2)]] * 4, [["left", "right"]] * 4
    model = TreeCRF("word", random_state=0).fit(X, y, edges=edges, edge_types=types)
    figure = draw_transitions(model, title="Both")
    assert [axes.get_title() for axes in figure.axes[:2]] == ["left", "right"]
    assert figure.get_suptitle() == "Both"
    np.testing.assert_allclose(cells(figure.axes[1]), model.weights_.transitions[1])
    one = draw_transitions(model, edge_type="right").axes[0]
    assert one.get_title() == "right"
    assert one.get_xlabel() == "label of the second node"
    np.testing.assert_allclose(cells(one), model.weights_.transitions[1])
    with pytest.raises(DataError, match="2 panels; give as many, or choose one by edge_type"):
        draw_transitions(model, ax=Figure().subplots())
    with pytest.raises(DataError, match="no type of edges is 'up'; the model has 'left', 'right'"):
        draw_transitions(model, edge_type="up")


@pytest.mark.parametrize("kind", [ChainPerceptron, GraphCRF])
def test_other_models(kind):
    edges = {"edges": [[(0, 1)]] * 3} if kind is GraphCRF else {}
    model = kind("word", random_state=0).fit([["a", "b"]] * 3, [["X", "Y"]] * 3, **edges)
    axes = draw_transitions(model).axes[0]
    np.testing.assert_allclose(cells(axes), model.weights_.transitions.reshape(2, 2))
    assert axes.get_ylabel() == ("label of a node" if kind is GraphCRF else "label")


def test_models_without_transitions():
    from trellis.regression import GCRF

    with pytest.raises(DataError, match="GCRF has no transitions to draw; expected a model of"):
        draw_transitions(GCRF())
    with pytest.raises(DataError, match="this ChainCRF is not fitted; call fit first"):
        draw_transitions(ChainCRF())


def test_one_label():
    crf = ChainCRF("word", random_state=0).fit([["a", "b"]] * 2, [["X", "X"]] * 2)
    assert cells(draw_transitions(crf).axes[0]).shape == (1, 1)


# ------------------------------------------------------------------------------- agreement

SAID = {
    "a": [["X", "X", "Y", "Y"]],
    "far": [["Z", "Z", "Z", "Y"]],
    "near a": [["X", "X", "Y", "Z"]],
    "near far": [["Z", "Z", "Z", "Z"]],
}


def test_agreement():
    axes = draw_agreement(SAID, arrange=False).axes[0]
    nan = np.nan
    expected = [[nan, 25, 75, 0], [25, nan, 0, 75], [75, 0, nan, 25], [0, 75, 25, nan]]
    np.testing.assert_allclose(cells(axes), expected)
    assert sides(axes) == [list(SAID)] * 2
    assert numbers(axes)[0, 2].get_text() == "75.0"
    assert numbers(axes)[0, 0].get_text() == ""


def test_those_who_agree_stand_together():
    names = sides(draw_agreement(SAID).axes[0])[0]
    assert names.index("a") < 2  # the first system is in the first half
    assert abs(names.index("a") - names.index("near a")) == 1
    assert abs(names.index("far") - names.index("near far")) == 1


def test_row_of_accuracy():
    axes = draw_agreement(SAID, gold=[["X", "X", None, "W"]], arrange=False).axes[0]
    np.testing.assert_allclose(cells(axes)[-1], [200 / 3, 0, 200 / 3, 0])
    assert sides(axes)[0] == [*SAID, "accuracy"]
    assert sides(axes)[1] == list(SAID)


def test_labels_of_any_kind_and_silence():
    said = {"a": [[1, (2, 3), None]], "b": [[1, 2, 3]], "c": [None]}
    axes = draw_agreement(said, arrange=False, gold=[[1, 9, 3]]).axes[0]
    table = cells(axes)
    assert table[0, 1] == 50
    assert np.isnan(table[2]).all()  # it says nothing
    assert table[3, 0] == 50
    assert table[3, 1] == pytest.approx(200 / 3)
    assert np.isnan(table[3, 2])


def test_outputs_of_experts():
    outputs = as_outputs(list(SAID.values()), names=["p", "q", "r", "s"])
    axes = draw_agreement(outputs, gold=[["X", "X", "Y", "V"]], arrange=False).axes[0]
    assert sides(axes)[1] == ["p", "q", "r", "s"]
    assert cells(axes)[-1].tolist() == [75, 0, 75, 0]
    listed = draw_agreement(list(SAID.values()), names=list("wxyz"), arrange=False).axes[0]
    assert sides(listed)[1] == list("wxyz")


@pytest.mark.parametrize("n", [1, 2])
def test_few_systems(n):
    some = dict(list(SAID.items())[:n])
    assert cells(draw_agreement(some).axes[0]).shape == (n, n)


def test_scale_of_systems_that_agree_everywhere():
    axes = draw_agreement({"a": [["X"]], "b": [["X"]], "c": [["X"]]}).axes[0]
    assert axes.images[0].norm.vmax == 100
    assert axes.images[0].norm.vmin == 99


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: draw_agreement({}), "no experts"),
        (lambda: draw_agreement(3), "outputs must hold, for each expert"),
        (
            lambda: draw_agreement({"a": [["X"]], "b": [["X", "Y"]]}),
            "b gives 2 labels for sample 0",
        ),
        (lambda: draw_agreement({"a": [[["X"]]]}), "labels must be hashable"),
        (lambda: draw_agreement({"a": ["XY"]}), "expected a sequence of labels, got 'XY'"),
        (lambda: draw_agreement(SAID, names=["a"]), "leave out names"),
        (lambda: draw_agreement(SAID, gold=[]), "gold has 0 samples, the systems answer 1"),
        (lambda: draw_agreement(SAID, gold=[["X"]]), "gold has 1 labels for sample 0"),
        (lambda: draw_agreement(SAID, arrange="no"), "arrange must be True or False"),
    ],
)
def test_answers_that_are_refused(call, message):
    with pytest.raises(DataError, match=message):
        call()

"""The picture of the page on combining has all that its caption says."""

from __future__ import annotations

import pytest

from benchmarks.combine_picture import NAMES, draw, measured
from benchmarks.expert_sets import ExpertSet
from trellis.experts import as_outputs

pytest.importorskip("matplotlib")

RIGHT = ["B-x", "I-x", "O", "B-y"]
SAID = [[RIGHT, ["B-x", "O", "O", "O"]] * 6, [RIGHT] * 12, [["O", "O", "B-y", "B-y"], RIGHT] * 6]
DATA = ExpertSet("tiny", as_outputs(SAID), [RIGHT] * 12, "BIO", "span-f1")


def test_what_is_drawn(tmp_path):
    points = measured(DATA, sizes=(0, None), repeats=2)
    assert {(point.method, point.size) for point in points} == {
        (name, size) for name in NAMES for size in (0, None)
    } - {("best-expert", 0)}
    figure = draw(DATA, points, tmp_path / "experts.png")
    assert (tmp_path / "experts.png").read_bytes()[1:4] == b"PNG"
    right = figure.axes[1]
    assert [text.get_text() for text in right.get_legend().get_texts()] == [*NAMES.values()]
    assert [text.get_text() for text in right.get_xticklabels()] == ["0", "6"]
    drawn = {bars.get_label(): bars.lines[0].get_ydata().tolist() for bars in right.containers}
    for name, label in NAMES.items():
        assert drawn[label] == [point.score for point in points if point.method == name]

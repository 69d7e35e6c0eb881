"""Charts: values where they belong, names that can be told apart, text that fits."""

from __future__ import annotations

import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trellis.demo.charts import Curve, Measured, _ticks, curves, intervals

NUMBERS = st.floats(-1e6, 1e6, allow_subnormal=False).map(lambda x: round(x, 3))


def texts(svg):
    return [node.text for node in ElementTree.fromstring(svg).iter("text")]


def lines(svg, kind):
    """Points of each line of a kind."""
    found = [n for n in ElementTree.fromstring(svg).iter("polyline") if kind in n.get("class")]
    return [[tuple(map(float, p.split(","))) for p in n.get("points").split()] for n in found]


@given(NUMBERS, st.floats(0, 1e6), st.integers(2, 8))
def test_ticks_are_round_and_around(low, span, n):
    ticks = _ticks(low, low + span, n)
    assert 2 <= len(ticks) <= n + 2
    assert ticks == sorted(set(ticks))
    steps = {round(b - a, 6) for a, b in pairwise(ticks)}
    assert max(steps) - min(steps) <= 1e-5 * max(1, max(map(abs, ticks)))


def test_higher_is_higher_and_later_is_to_the_right():
    svg = curves(
        [Curve("a", [1, 10, 100], [1.0, 3.0, 2.0]), Curve("b", [1, 10, 100], [0.0, 0.5, 4.0])],
        "labels", "F1", log_x=True,
    )  # fmt: skip
    first, second = lines(svg, "line")
    assert [x for x, _ in first] == [x for x, _ in second] == sorted(x for x, _ in first)
    assert first[1][0] - first[0][0] == pytest.approx(first[2][0] - first[1][0], abs=0.2)
    height = {value: y for pts, values in ((first, (1, 3, 2)), (second, (0, 0.5, 4)))
              for (_, y), value in zip(pts, values, strict=True)}  # fmt: skip
    assert [v for v, _ in sorted(height.items(), key=lambda item: -item[1])] == sorted(height)
    assert {"a", "b", "labels", "F1", "1", "10", "100"} <= set(texts(svg))


def test_series_differ_without_colour():
    """Each of six series has a marker of its own."""
    svg = curves([Curve(f"s{k}", [1, 2], [k, k + 1.0]) for k in range(6)], "x", "y")
    marks = [
        n for n in ElementTree.fromstring(svg).iter() if (n.get("class") or "").startswith("mark")
    ]
    shapes = {}
    for node in marks:
        kind = node.get("class").split()[1]
        corners = len((node.get("points") or "").split())
        shapes[kind] = (node.tag, corners, "fill:none" in (node.get("style") or ""))
    assert len(set(shapes.values())) == 6


def test_bands_hold_their_line():
    svg = curves([Curve("a", [1, 2], [2.0, 3.0], [1.0, 2.5], [2.5, 4.0])], "x", "y")
    band = ElementTree.fromstring(svg).find("polygon")
    points = [float(p.split(",")[1]) for p in band.get("points").split()]
    high, low = points[:2], points[2:][::-1]
    for (_, y), above, below in zip(lines(svg, "line")[0], high, low, strict=True):
        assert above < y < below


def test_intervals():
    rows = [Measured("vote <1>", 90.0, 88.0, 92.0), Measured("ours", 94.0, 93.0, 95.0)]
    svg = intervals(rows, "F1")
    assert {"vote <1>", "90.0 (88.0 to 92.0)", "ours", "94.0 (93.0 to 95.0)"} <= set(texts(svg))
    ends = [
        (float(n.get("x1")), float(n.get("x2")))
        for n in ElementTree.fromstring(svg).iter("line") if "line" in n.get("class").split()
    ]  # fmt: skip
    assert ends[0][0] < ends[0][1] < ends[1][0] < ends[1][1]


@given(st.lists(st.tuples(NUMBERS, st.floats(0, 10), st.floats(0, 10)), min_size=1, max_size=6))
def test_all_is_within_the_picture(values):
    rows = [Measured(f"row {k}", v, v - a, v + b) for k, (v, a, b) in enumerate(values)]
    svg = intervals(rows, "x")
    for number in re.findall(r'\bx[12]?="(-?[\d.]+)"', svg):
        assert -1 <= float(number) <= 461


def test_one_point_and_equal_values():
    svg = curves([Curve("a", [5], [1.0]), Curve("b", [5], [1.0])], "x", "y")
    assert len(lines(svg, "line")) == 2
    assert "nan" not in svg

"""The panel of times: medians and ranges of this run, and yardsticks with where they are from."""

from __future__ import annotations

import json
import re

import pytest

from trellis.demo.elements import summary_of
from trellis.demo.panels import timing

RECORD = {
    "title": "Chunking",
    "sentence": "Elsewhere 10 times as fast.",
    "headings": ["system", "seconds"],
    "rows": [["peer <1>", "80"], ["Trellis", "8"]],
    "source": "python -m benchmarks.chunking, commit abc",
}


@pytest.fixture
def made(monkeypatch):
    rounds = iter([(1000, 2.0, 0.001), (1000, 1.0, 0.002), (1000, 4.0, 0.004)])
    monkeypatch.setattr(timing, "example", lambda seed: next(rounds))
    monkeypatch.setattr(timing, "code_of", lambda example, seed: "code")

    def make(yardsticks):
        monkeypatch.setattr(timing, "asset", lambda *_: json.dumps(yardsticks))
        return timing.panel(0)

    return make


def test_medians_and_ranges(made):
    html = made([])
    assert summary_of(html) == (
        "Here, one core: a model from 1,000 letters in 2.0 s, 0.5 million letters tagged a second."
    )
    assert "2.00 (1.00 to 4.00)" in html
    assert "500,000" in html
    assert "Not measured here" not in html


def test_yardsticks_say_where_they_are_from(made):
    html = made([RECORD])
    assert summary_of(html).endswith("Elsewhere 10 times as fast.")
    assert "peer &lt;1&gt;" in html
    assert "Not measured here, but with python -m benchmarks.chunking, commit abc." in html


def test_it_measures_what_it_says():
    letters, learning, tagging = timing.example(0)
    assert letters > 50_000
    assert re.fullmatch(r"\d+\.\d\d \(.*\)", timing._seconds([learning, tagging]))
    assert learning > tagging > 0

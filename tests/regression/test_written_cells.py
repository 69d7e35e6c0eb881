"""Cells as people write them, read as what they mean, or left alone."""

from __future__ import annotations

import io

import numpy as np
import pytest

from trellis.files.table import read_table
from trellis.regression.written_cells import plain_cells


def plain(cells, decimal="."):
    text = "a;b\n" + "".join(f"{cell};x\n" for cell in cells)
    table = read_table(io.BytesIO(text.encode()), separator=";", decimal=decimal)
    found, off = plain_cells(table, ["a", "b"])
    assert found.texts("b") == ["x"] * len(cells)
    return found.texts("a"), off.get("a")


@pytest.mark.parametrize(
    ("cells", "decimal", "expected", "off"),
    [
        (["1,234", "12", "1,234,567.5"], ".", ["1234", "12", "1234567.5"], "without ,"),
        (["1'234", "12"], ".", ["1234", "12"], "without '"),
        (["1\u00a0234", "12"], ".", ["1234", "12"], "without spaces"),
        (["1.234", "950", "1.000,5"], ",", ["1234", "950", "1000,5"], "without ."),
        (["$1,200", "-$5", "$-7.50"], ".", ["1200", "-5", "-7.50"], "without $ and ,"),
        (["5 €", "7€", "?"], ".", ["5", "7", "?"], "without €"),
        (["EUR 5", "1 USD"], ".", ["EUR 5", "1 USD"], None),
        (["5 %", "7.5%", ""], ".", ["5", "7.5", ""], "without %"),
        (["5%", "0.05"], ".", ["5%", "0.05"], None),  # one of them a hundred times the other
        (["$5", "5 €"], ".", ["$5", "5 €"], None),
        (["$5 €", "$5"], ".", ["$5 €", "$5"], None),
        (["+-5 €", "5"], ".", ["+-5 €", "5"], None),
        (["1,234", "1'234"], ".", ["1,234", "1'234"], None),
        (["12,34", "1,2345", "1,23"], ".", ["12,34", "1,2345", "1,23"], None),
        (["0,123", "1,234"], ".", ["0,123", "1,234"], None),
        (["1.234", "1.5"], ",", ["1.234", "1.5"], None),  # points of decimals all the same
        (["1,234"] * 9 + ["much"], ".", ["1,234"] * 9 + ["much"], None),
        (["1,234"] * 30 + ["much"], ".", ["1234"] * 30 + ["much"], "without ,"),
        (["3", "-", "#N/A", "n.a."], ".", ["3", "", "", ""], None),
        (["3 m", "4 m"], ".", ["3 m", "4 m"], None),
    ],
)
def test_cells(cells, decimal, expected, off):
    assert plain(cells, decimal) == (expected, off)


def test_arrays_and_words():
    numbers = np.array([1.0, 2.0])
    table = read_table({"a": numbers, "b": ["1,000", "-"], "c": np.array(["$5", None], object)})
    found, off = plain_cells(table, ["a", "b", "c", "none"], words=["b"])
    assert found.columns["a"] is table.columns["a"]
    assert found.texts("b") == ["1,000", ""] and found.texts("c") == ["5", "None"]
    assert off == {"c": "without $"}
    assert plain_cells(table, ["a"])[0] is table

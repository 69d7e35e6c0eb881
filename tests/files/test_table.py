"""Tables: one reader, one list of missing values, and the place of every complaint."""

from __future__ import annotations

import io
import math
import re

import numpy as np
import pytest

from trellis.errors import DataError
from trellis.files.table import MISSING, read_table


def csv(text: str):
    file = io.BytesIO(text.encode())
    file.name = "t.csv"
    return read_table(file)


def test_cells_and_lines():
    table = csv('a, b ,c\n1,x,"two\nlines"\n\n2.5, y ,z\n')
    assert list(table.columns) == ["a", "b", "c"] and len(table) == 2
    assert table.lines == [2, 5] and table.place(1) == "t.csv, line 5"
    assert table.texts("b") == ["x", "y"] and table.texts("none") == ["", ""]
    assert table.checked_numbers("a").tolist() == [1, 2.5]


@pytest.mark.parametrize("word", [*MISSING, *(w.upper() for w in MISSING), " NaN "])
def test_every_way_to_write_a_missing_value(word):
    table = csv(f"a,b\n1,x\n{word},y\n")
    assert table.is_numeric("a")
    first, second = table.checked_numbers("a", missing=True)
    assert first == 1 and math.isnan(second)
    with pytest.raises(DataError, match="line 3, column 'a': the value is missing; correct"):
        table.checked_numbers("a")


def test_tables_in_memory():
    table = read_table({"a": np.array([1, 2]), "b": ["x", None], "c": [1.0, "?"]}, "objects")
    assert table.lines is None and len(table) == 2 and table.place(1) == "objects, row 1"
    assert table.integers("a").tolist() == [1, 2]
    assert not table.is_numeric("b") and table.is_numeric("c")


@pytest.mark.parametrize(
    ("cells", "numeric"), [("1,2", True), ("1,x", False), ("?,na", False), ("1,inf", False)]
)
def test_what_is_numeric(cells, numeric):
    first, second = cells.split(",")
    assert csv(f"a\n{first}\n{second}\n").is_numeric("a") == numeric


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "t.csv is empty; expected a header and rows of cells between commas"),
        ("a,b,a\n", "t.csv, line 1: the header names column 'a' twice"),
        ("a,,b\n", "t.csv, line 1: column 2 of the header has no name"),
        ("a,b\n1,2,3\n", "t.csv, line 2: 3 cells, but the header has 2; is the file cut off"),
        ('a\n"1\n', "t.csv, line 2: unexpected end of data; expected cells with commas between"),
    ],
)
def test_files_that_are_no_tables(text, message):
    with pytest.raises(DataError, match=re.escape(message)):
        csv(text)


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("x", "t.csv, line 2, column 'a': 'x' is not a number; try again"),
        ("1_0", "t.csv, line 2, column 'a': '1_0' is not a number; try again"),
        ("inf", "t.csv, line 2, column 'a': 'inf' is not finite; leave the cell empty"),
    ],
)
def test_cells_that_are_no_numbers(cell, message):
    with pytest.raises(DataError, match=re.escape(message)):
        csv(f"a\n{cell}\n").checked_numbers("a", missing=True, advice="; try again")


def test_columns_that_there_are_not():
    with pytest.raises(DataError, match="has no column 'z', only a, b; expected a header"):
        csv("a,b\n").require(["a", "z"])


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (3, "objects is a int; expected a path, a mapping of columns or a DataFrame"),
        ({}, "objects is empty: it has no columns"),
        ({"a": [[1]]}, "objects: column 'a' has shape (1, 1), expected one value a row"),
        ({"a": [[1], [2, 3]]}, "objects: column 'a' holds lists; expected one value a row"),
        ({"a": [1], "b": []}, "objects: columns must have one length, not a 1, b 0"),
    ],
)
def test_what_is_no_table(source, message):
    with pytest.raises(DataError, match=re.escape(message)):
        read_table(source, "objects")


def separated(text: str, **how):
    file = io.BytesIO(text.encode())
    file.name = "t.csv"
    return read_table(file, **{"separator": None, "decimal": None, **how})


@pytest.mark.parametrize(
    ("text", "separator", "decimal"),
    [
        ("a,b\n1.5,2\n", ",", "."),
        ("a;b\n1,5;2\n", ";", ","),
        ("a;b\n1.5;2\n", ";", "."),
        ("a;b\n1.5;2,500\n", ";", "."),  # a comma of thousands
        ("a;b\n1,5;2.500\n", ";", ","),  # a point of thousands
        ("a;b\n1,500;2.500\n", ";", "."),
        ("a;b\n1,500;2\n", ";", ","),
        ('a,b\n"1,5",2\n', ",", ","),
        ('a,b\n"1,500",2\n', ",", "."),
        ('a,b\n"1,5",2.5\n', ",", "."),
        ("sep=;\na;b\n1,5;2\n", ";", ","),
        ('"sep=|"\r\na|b\r\n1|2\r\n', "|", "."),
        ("a\tb\n1.5\t2\n", "\t", "."),
        ('"a,x"|b\n1|2\n', "|", "."),
        ("a,b;c\n1,2\n", ",", "."),
        ("a\n1\n", ",", "."),
    ],
)
def test_what_a_file_looks_like(text, separator, decimal):
    table = separated(text)
    assert (table.separator, table.decimal) == (separator, decimal)


def test_what_spreadsheets_leave_behind():
    table = separated("sep=;\n;a;b;;\n0;1;x;;\n;;;;\n\n1;2;y; ;\n ;;;;\n")
    assert list(table.columns) == ["unnamed", "a", "b"]
    assert table.texts("unnamed") == ["0", "1"] and table.texts("b") == ["x", "y"]
    assert table.lines == [3, 6]  # sep= and what is empty are lines, too
    assert csv("a\n1\n \n2\n").texts("a") == ["1", "", "2"]  # a gap in the only column
    with pytest.raises(DataError, match=re.escape("line 1: column 1 of the header has no name")):
        csv(",unnamed\n1,2\n")
    with pytest.raises(DataError, match=r"t\.csv, line 3: 2 cells"):
        separated("sep=;\na;b;c\n1;2\n")


def test_a_column_in_other_letters():
    with pytest.raises(DataError, match=re.escape("no column 'price', only Id, PRICE; is it 'PRI")):
        csv("Id,PRICE\n").require(["price"])


def test_decimal_commas():
    table = separated("a;b\n1,5;x\n?;y\n")
    first, second = table.checked_numbers("a", missing=True)
    assert first == 1.5 and math.isnan(second)
    with pytest.raises(DataError, match="'1,5' is not a number"):
        separated("a;b\n1,5;x\n", decimal=".").checked_numbers("a")


@pytest.mark.parametrize(
    ("text", "how", "message"),
    [
        ("a;b\n1\n", {}, "1 cells, but the header has 2; is the file cut off, or a semicolon m"),
        ("a:b\n1\n", {"separator": ":"}, "is the file cut off, or a ':' missing"),
        ("a;b\n1;2\n", {"separator": ";;"}, "cells cannot stand between ';;'; give one sign"),
        ("a;b\n1;2\n", {"decimal": "x"}, "the mark of decimals must be '.' or ',', got 'x'"),
    ],
)
def test_wrong_separators(text, how, message):
    with pytest.raises(DataError, match=re.escape(message)):
        separated(text, **how)


def test_some_rows():
    table = csv("a,b\n1,x\n2,y\n3,z\n").subset(np.array([2, 0]))
    assert table.texts("b") == ["z", "x"] and table.lines == [4, 2]
    memory = read_table({"a": np.arange(3.0)}).subset(np.array([1]))
    assert memory.columns["a"].tolist() == [1.0] and memory.lines is None
    assert read_table(memory) is memory

"""What a column is: numbers, dates, categories, and what says nothing."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pytest

from trellis.files.table import read_table
from trellis.regression.column_kinds import DATE_FORMS, date_form, days, kind_of, known_cells


def kind(cells, name="column"):
    return kind_of(read_table({"first": [0.5] * len(cells), name: cells}), name)


WORDS = ["a", "b", "a", "c", "b", "a", "b", "a", "a", "c"]


@pytest.mark.parametrize(
    ("cells", "name", "expected"),
    [
        (["1", "2.5", "?", "1e3"], "size", "number"),
        (["1"] * 30 + ["about 2"] + ["3"] * 30, "size", "number"),
        (["1"] * 5 + ["about 2"] + ["3"] * 5, "size", "category"),  # one in eleven is too many
        (np.arange(10), "id", "identifier"),
        (np.arange(10) + 0.5, "id", "number"),
        ([7, 7, 7, 8, 8, 8, 9, 9, 9, 9], "id", "number"),  # ids that repeat say something
        (np.arange(10) * 7, "house_id", "identifier"),
        (np.arange(10) * 7, "size", "number"),
        (np.arange(10) * 7, "humid", "number"),
        ([98101, 98102, 98101, 98103], "zipcode", "category"),
        ([98101, 98102, 98101, 98103], "size_zip", "category"),
        ([98101, 98102, 98101, 98103], "zipper", "number"),
        (np.arange(1001, 1011), "fips", "identifier"),
        ([f"street {i}" for i in range(10)], "street", "identifier"),
        (WORDS, "kind", "category"),
        ([True, False, True, True], "garden", "category"),
        (["yes", "no", "yes", "yes"], "garden", "category"),
        (["x"] * 10, "kind", "constant"),
        ([3] * 10, "size", "constant"),
        ([3, None, 3, 3], "size", "constant"),
        (["yes", "", "yes", ""], "garden", "category"),  # whether it is there says something
        (["", "NA", "?", None], "size", "empty"),
        (["2024-01-02", "2023-12-31", "NA"], "sold", "date"),
        (["10/13/2014", "2/9/2014"], "sold", "date"),
        (["20141013T000000", "20140213T000000"], "sold", "date"),
        (["10/13/14", "2/9/14"], "sold", "date"),
        (["2024-03-05T10:11:12.345+01:00", "2024-03-06T10:11:12.000+01:00"], "sold", "date"),
        (["2024-01", "2023-12"], "sold", "date"),
        ([20141013, 20140213, 20140214], "sale_date", "date"),
        (["20141013", "20140213.0"], "sale_date", "number"),
        ([20141013, 20140213, 20140214], "size", "number"),
        ([20141013, 20141413, 20140214], "sale_date", "number"),
        (["1", "inf", "2"], "size", "number"),
        (np.array(["2024-01-02", "NaT"], "datetime64[ns]"), "sold", "date"),
    ],
)
def test_kinds(cells, name, expected):
    assert kind(cells, name).kind == expected


def test_a_first_column_that_counts_is_no_feature():
    table = read_table({"": [1, 2, 3, 4], "t": [1, 2, 3, 4]})
    assert kind_of(table, "").kind == "identifier"
    assert kind_of(table, "t").kind == "number"
    assert kind_of(read_table({"t": [2, 3, 4, 5]}), "t").kind == "number"


def test_what_a_category_nearly_was():
    numbers = ["1.5", "2", "3"] * 4 + ["unknown", "none at all"]
    found = kind(numbers)
    assert (found.kind, found.hint) == (
        "category", "mostly numbers, but 2 cells such as 'unknown'",
    )  # fmt: skip
    dates = [f"{d}/3/2024" for d in range(13, 28)] * 2 + ["2024-05-01", "2024-05-02"]
    found = kind(dates)  # too many for gaps, by cells and not by values
    assert found.hint == "mostly day/month/year, but 2 cells such as '2024-05-01'"
    assert kind([f"{i}/3/2024" for i in range(13, 28)] + ["soon"]).why.startswith("mostly day/mon")
    assert kind(WORDS).hint == ""
    assert kind(["1", "2", "a", "b", "a", "b"]).hint == ""


def test_gaps_in_disguise():
    rest = [1.5, 20, 3, 4, 12]
    assert kind([*rest, -9999, -9999]).why == "2 cells are -9999: empty them if these are gaps"
    assert kind([*rest, 99, 99]).why == "2 cells are 99: empty them if these are gaps"
    assert kind([*rest, -9999]).why == kind([*rest, 25, 25]).why == ""
    assert kind([*range(90, 110), 99, 99]).why == ""
    assert kind([-9999, -9999, -9998.5, -9997]).why == ""


def test_why():
    assert kind(["a street far away from here"] * 3).why == "always a street far away f…"
    assert kind(["1"] * 40 + ["x"]).why == "1 cells that are no numbers are missing"


@pytest.mark.parametrize("form", DATE_FORMS)
def test_every_form_of_a_date_is_read_as_it_was_written(form):
    moments = np.array(["2014-12-25T06:00:00", "2013-11-28T18:00:00"], "datetime64[s]").tolist()
    moments = [moment.replace(tzinfo=UTC) for moment in moments]
    cells = [moment.strftime(form) for moment in moments]
    found = days(cells, date_form(cells))
    expected = [datetime.strptime(cell, form).replace(tzinfo=None) for cell in cells]
    assert found == pytest.approx(
        [np.datetime64(m).astype("datetime64[s]").astype(float) / 86400 for m in expected]
    )


def test_what_is_no_date():
    assert date_form(["2024-13-45", "yes", "no"]) == ""
    assert date_form(["a", "b"]) == ""
    assert date_form(["31/12/2014", "1/2/2014"]) == "%d/%m/%Y"
    many = [f"{d}.03.2020" for d in range(1, 31)] * 2 + ["soon"]
    assert date_form(many) == "%d.%m.%Y"
    assert np.isnan(days([None, "soon"], "%d.%m.%Y")).all()


def test_numbers_and_their_texts_are_one_category():
    assert known_cells(read_table({"a": np.array([3.0, np.nan])}), "a") == ["3", None]
    assert known_cells(read_table({"a": [" NA ", "3"]}), "a") == [None, "3"]

"""Rows of a table as numbers, the same for every table; no row sees its own target."""

from __future__ import annotations

import json

import numpy as np
import pytest

from trellis.errors import CorruptModelError, DataError
from trellis.files.table import read_table
from trellis.regression.table_rows import TableRows
from trellis.regression.target_means import crossed_means, level_means

N = 60
RNG = np.random.default_rng(0)
TABLE = {
    "size": np.where(np.arange(N) % 7, RNG.uniform(50, 90, N), np.nan),
    "kind": [("flat", "house", "")[i % 3] for i in range(N)],
    "district": [f"d{i % 15}" for i in range(N)],
    "sold": [f"2014-{1 + i % 12:02}-{1 + i % 28:02}" for i in range(N)],
    "id": np.arange(N),
    "country": ["here"] * N,
}
Y = RNG.normal(size=N)


def made(**how):
    table = read_table(TABLE)
    return TableRows.of(table, list(TABLE), **how), table


def test_numbers_of_a_table():
    rows, table = made()
    assert rows.names == [
        "size", "kind=missing", "kind=flat", "kind=house", "district (mean)", "sold (day)",
        "sold (weekday)",
    ]  # fmt: skip
    assert set(rows.left_out) == {"id", "country"}
    given = rows.encoded(table)
    assert given.coded == (4,)
    learned = rows.learned(given, Y)
    X = learned.filled(given)
    assert np.isnan(X[::7, 0]).all() and not np.isnan(X[:, 1:]).any()
    assert X[:3, 1:4].tolist() == [[0, 1, 0], [0, 0, 1], [1, 0, 0]]
    of_d3 = [Y[i] for i in range(N) if i % 15 == 3]
    middle = Y.mean()
    assert np.sign(X[3, 4] - middle) == np.sign(np.mean(of_d3) - middle)
    assert X[0, 5] == np.datetime64("2014-01-01").astype(int)
    assert X[0, 6] == 2  # a Wednesday


def test_new_tables_may_hold_what_was_never_seen():
    rows, table = made()
    learned = rows.learned(rows.encoded(table), Y)
    new = {"sold": ["NA"], "kind": ["boat"], "size": ["?"], "district": ["d99"], "more": [1]}
    X = learned.filled(learned.encoded(read_table(new)))[0]
    assert np.isnan(X[[0, 5, 6]]).all()
    assert X[1:4].tolist() == [0, 0, 0]
    assert X[4] == pytest.approx(Y.mean())
    with pytest.raises(DataError, match="has no column 'kind'"):
        learned.encoded(read_table({"size": [1]}))
    with pytest.raises(DataError, match=r"row 0, column 'size': 'large' is not a number"):
        learned.encoded(read_table({**new, "size": ["large"]}))
    with pytest.raises(DataError, match=r"row 0, column 'sold': 'soon' is no date, such as year-"):
        learned.encoded(read_table({**new, "sold": ["soon"]}))
    with pytest.raises(DataError, match=r"row 0, column 'size': 'inf' is not finite; leave"):
        learned.encoded(read_table({**new, "size": [np.inf]}))


def test_a_new_table_may_write_dates_in_another_form():
    rows, table = made()
    other = [f"{cell[8:]}.{cell[5:7]}.{cell[:4]}" for cell in TABLE["sold"]]
    again = rows.encoded(read_table({**TABLE, "sold": other})).X
    assert np.array_equal(again, rows.encoded(table).X, equal_nan=True)


def test_what_was_never_seen_is_named():
    rows, table = made()
    assert rows.unseen(table) == []
    new = {**TABLE, "kind": ["boat", "", *["flat"] * (N - 3), "boat"]}
    assert rows.unseen(read_table(new)) == [("kind", 2, "boat")]


def test_numbers_whose_squares_are_none():
    table = read_table({"a": ["1", "-3e300", "2"]})
    with pytest.raises(DataError, match=r"row 1, column 'a': '-3e300' is too large a number"):
        TableRows.of(table, ["a"]).encoded(table)


def test_dates_give_what_repeats_if_it_can():
    table = read_table({"t": ["2014-01-01 06:00", "2016-02-03 12:00", "2015-02-03 12:00"]})
    rows = TableRows.of(table, ["t"])
    assert rows.codes[0].parts == ("day", "month", "weekday", "hour")
    assert rows.encoded(table).X[1, 1:].tolist() == [2, 2, 12]


def test_months_have_no_weekdays():
    table = read_table({"t": ["2014-01", "2014-05", "2014-03"]})
    assert TableRows.of(table, ["t"]).names == ["t (day)"]


def test_what_the_user_says():
    rows, _ = made(wanted=["id", "country"], categories=["district"], max_levels=15)
    assert not rows.left_out
    assert {"id", "country=here", "district=d3"} <= set(rows.names)
    said = dict(made()[0].describe())
    assert said["district"] == "category, 15 values, mean target of each"
    assert said["sold"] == "date (year-month-day): day, weekday"
    assert said["country"] == "left out (constant: always here)"
    numbers = read_table({"a": [1, 2, 1]})
    assert TableRows.of(numbers, ["a"], categories=["a"]).names == ["a=1", "a=2"]
    with pytest.raises(DataError, match=r"no column is left to predict from \(a: no value\)"):
        TableRows.of(read_table({"a": ["", "?"]}), ["a"]).check()


def test_no_row_sees_its_own_target():
    """Another target of a row changes the numbers of others, never its own."""
    codes = RNG.integers(0, 8, 200)
    y = RNG.normal(size=200)
    before = crossed_means(codes, y, 8, 0)
    for row in range(0, 200, 17):
        changed = y.copy()
        changed[row] += 100
        after = crossed_means(codes, changed, 8, 0)
        assert after[row] == before[row]
        assert (after != before).any()


def test_means_of_noise_say_nothing():
    """Numbers made of the rows themselves would correlate with any target."""
    codes, y = np.arange(400) // 2, RNG.normal(size=400)
    own = level_means(codes, y, 200)[codes]
    assert np.corrcoef(own, y)[0, 1] > 0.5
    assert np.corrcoef(crossed_means(codes, y, 200, 0), y)[0, 1] < 0.15


def test_means_are_drawn_together_by_how_few_rows_they_have():
    y = np.r_[np.full(50, 1.0), np.full(50, -1.0), 5.0] + 0.5 * RNG.normal(size=101)
    codes = np.r_[np.zeros(50, int), np.ones(50, int), 2]
    means = level_means(codes, y, 4)
    assert abs(means[0] - y[:50].mean()) < 0.02
    assert means[2] < y[-1]
    assert means[3] == means[4] == pytest.approx(y.mean())
    assert level_means(np.array([-1, -1]), np.array([1.0, 2.0]), 1).tolist() == [1.5, 1.5]


def test_state():
    rows, table = made()
    learned = rows.learned(rows.encoded(table), Y)
    state = learned.state()
    again = TableRows.restored(state)
    given = learned.encoded(table)
    assert (again.filled(given)[:, 1:] == learned.filled(given)[:, 1:]).all()
    json.dumps([{k: v for k, v in entry.items() if k != "means"} for entry in state])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: s.append(3), "the columns of a table are not as they should be"),
        (lambda s: s.append(s[0]), "two columns of a table have one name"),
        (lambda s: s[0].update(how="magic"), "header entry 'how' is 'magic'"),
        (lambda s: s[1].update(levels=[]), "the values of a category are not"),
        (lambda s: s[1].update(levels=["a", "a"]), "the values of a category are not"),
        (lambda s: s[0].update(levels=["a"]), "the values of a category are not"),
        (lambda s: s[0].update(means=np.zeros(1)), "the means of a column are not as"),
        (lambda s: s[2].update(means=np.zeros(3)), "array 'means' has shape"),
        (lambda s: s[2].update(means=None), "the means of a column are not as"),
        (lambda s: s[3].update(form="%c"), "a date is not as it should be"),
        (lambda s: s[3].update(parts=["century"]), "a part of a date is none"),
    ],
)
def test_what_files_may_not_say(change, message):
    rows, table = made()
    state = rows.learned(rows.encoded(table), Y).state()
    change(state)
    with pytest.raises(CorruptModelError, match=message):
        TableRows.restored(state)

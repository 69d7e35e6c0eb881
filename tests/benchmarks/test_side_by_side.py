"""Turns, ratios and tables of benchmarks."""

from __future__ import annotations

import pytest

from benchmarks.side_by_side import Seconds, Table, alternate, once, peak, ratio, short


def test_turns():
    order: list[str] = []
    runs = {name: lambda name=name: order.append(name) or len(order) for name in "ab"}
    a, b = alternate(runs, 2, keep=lambda result: 10 * result)
    assert order == ["a", "b", "a", "b"]
    assert (a.name, a.kept, b.kept) == ("a", [10, 30], [20, 40])
    assert len(a.wall) == len(a.cpu) == 2
    assert min(a.wall) > 0


def test_nothing_is_kept_unless_asked():
    assert alternate({"a": list}, 2)[0].kept == [None, None]


def test_once():
    result, seconds = once(lambda: "done")
    assert result == "done"
    assert seconds > 0


def test_ratios_are_formed_by_round():
    slow, fast = Seconds([1.0, 6.0, 2.0]), Seconds([1.0, 2.0, 1.0])
    assert ratio(slow, fast) == "2.00× (1.00–3.00)"
    assert slow.median == 2.0
    assert str(slow) == "2.00 (1.00–6.00)"


@pytest.mark.parametrize(
    ("number", "text"),
    [(0.00123456, "0.00123"), (12.345, "12.3"), (13026.4, "13,026"), (7, "7"), (1.0, "1.00")],
)
def test_short(number, text):
    assert short(number) == text


def test_peak():
    assert 0.01 < peak() < 1000


def test_table(capsys):
    table = Table("Title", "what", "seconds")
    table.add("a", 0.25)
    table.show()
    shown = capsys.readouterr()
    assert shown.out == "\nTitle\n\n| what | seconds |\n|---|---|\n| a | 0.250 |\n"
    assert shown.err == "a  0.250\n"


def test_a_row_has_as_many_cells_as_headings():
    with pytest.raises(ValueError, match="1 cells under 2 headings"):
        Table("Title", "what", "seconds").add("a")

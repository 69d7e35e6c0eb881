"""Every model with every service: tried, and as the page says."""

from __future__ import annotations

import tempfile

import pytest

from trellis.errors import DataError
from what_works_page import PAGE, SERVICES, NothingToTry, Row, outcome, page, rows, shortened


@pytest.fixture(scope="module")
def row() -> Row:
    return rows()[0]


def raises(error: Exception):
    def service(row: Row) -> None:
        raise error

    return service


def test_the_page_is_what_was_tried():
    assert PAGE.read_text(encoding="utf-8") == page(), "run python tests/what_works_page.py"


def test_all_models_and_services_are_there():
    assert len(rows()) == 17
    assert len(SERVICES) == 21
    assert len({row.name for row in rows()}) == len(rows())


def test_what_a_cell_says(row):
    assert outcome(row, lambda row: None) == "✓"
    assert outcome(row, raises(NothingToTry())) == "–"
    assert outcome(row, raises(DataError("k must be 1, got 2"))) == "k must be 1"
    assert outcome(row, raises(AttributeError("ChainCRF has no x: y"))) == "y"


@pytest.mark.parametrize(
    "bug", [TypeError("no"), AttributeError("'A' object has no attribute 'b'"), DataError("")]
)
def test_a_bug_is_no_refusal(row, bug):
    with pytest.raises(type(bug)):
        outcome(row, raises(bug))


def test_reasons_are_short(row):
    assert shortened("model must be such, got ChainCRF(\n)", row) == "model must be such"
    file = f"{tempfile.gettempdir()}/tmpx1_y/run"
    assert shortened(f"{file} cannot be used", row) == "the file run cannot be used"

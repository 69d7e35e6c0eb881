"""Every kind of input: fitted, predicted, and back in its own form; the page says so."""

from __future__ import annotations

import numpy as np
import pytest

from inputs_page import PAGE, TAGS, fitted, flat, kinds, listed, on_command_line, page, plain
from trellis import load_model

pytestmark = pytest.mark.extras
for library in ("pandas", "polars", "pyarrow", "spacy", "networkx"):
    pytest.importorskip(library)
pytest.importorskip("datasets", minversion="3")  # tests/datasets has no version

KINDS = pytest.mark.parametrize("kind", kinds(), ids=lambda kind: kind.name)


@KINDS
def test_as_good_as_lists(kind, tmp_path):
    model = fitted(kind)
    same, labels, chances = plain(kind)
    X, _ = kind.make()
    assert flat(listed(model.predict(X, **kind.more()))) == flat(labels)
    found = flat(listed(model.predict_marginals(X, **kind.more())))
    np.testing.assert_array_equal(found, flat(listed(chances)))
    assert model.classes_ == same.classes_
    model.save(tmp_path / "m")
    again = load_model(tmp_path / "m")
    assert flat(listed(again.predict(X, **kind.more()))) == flat(labels)


@KINDS
def test_scores(kind):
    X, y = kind.make()
    same, labels, _ = plain(kind)
    right = np.mean(np.array(flat(labels)) == flat(TAGS[: len(kind.same)]))
    assert fitted(kind).score(X, y, **kind.more()) == pytest.approx(right)
    assert same.classes_ == ("D", "N", "V")


@KINDS
def test_on_the_command_line(kind):
    assert on_command_line(kind)


def test_the_page_is_what_was_tried():
    assert PAGE.read_text(encoding="utf-8") == page(), "run python tests/inputs_page.py"

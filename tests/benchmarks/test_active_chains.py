"""Ways to ask that do not depend on answers, and paired differences."""

import numpy as np
import pytest

from benchmarks.active_chains import RANDOM, gained, questions
from trellis.corpus import as_corpus

POOL = as_corpus([["w"] * n for n in (3, 1, 7, 2, 12)])


def asked(way):
    return [(i, list(nodes)) for i, nodes in questions(way, POOL, np.random.default_rng(0))]


def test_orders_of_sentences():
    assert [i for i, _ in asked("shortest first")] == [1, 3, 0, 2, 4]
    assert [i for i, _ in asked("longest first")] == [4, 2, 0, 3, 1]
    assert sorted(i for i, _ in asked("random short ones")) == [1, 3]
    assert sorted(asked(RANDOM)) == [(i, list(range(n))) for i, n in enumerate((3, 1, 7, 2, 12))]


def test_spans_are_all_of_the_pool():
    spans = asked("random spans")
    assert max(len(nodes) for _, nodes in spans) == 5
    assert sorted((i, t) for i, nodes in spans for t in nodes) == [
        (i, t) for i, n in enumerate((3, 1, 7, 2, 12)) for t in range(n)
    ]


def test_gains_have_intervals_of_students_t():
    assert gained(np.array([1.0, 2.0, 3.0])) == "+2.0 ± 2.5"
    assert gained(np.array([-1.0, -2.0, -3.0])) == "−2.0 ± 2.5"
    assert gained(np.array([1.0])).startswith("+1.0 ± nan")
    assert float(gained(np.array([0.0, 4.0]))[1:4]) == pytest.approx(2.0)

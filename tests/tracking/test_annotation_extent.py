"""How much of frame pairs is annotated."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from trellis.tracking import EVENTS, FramePair, Objects, PairAnnotation
from trellis.tracking.annotation_extent import (
    annotated_kinds,
    bare,
    is_complete,
    n_annotated_events,
    usual_knots,
    warn_of_no_division,
)


def pair(n, *links, whole=True):
    objects = Objects(np.arange(n), np.zeros((n, 2)))
    known = () if whole else ((), ())
    return FramePair("", 0, objects, objects, PairAnnotation(links, *known))


def test_what_is_annotated():
    some = pair(9, (0, 0, "move"), (1, 1, "division"), (1, 2, "division"), whole=False)
    assert is_complete(pair(9)) and not is_complete(some) and not is_complete(bare(some))
    assert bare(some).source is some.source and bare(some).annotation is None
    assert n_annotated_events([some, pair(9), bare(some)]) == 2 + 9


def test_splits_and_merges_are_kinds_if_they_are_annotated():
    assert annotated_kinds([bare(pair(3))]) == EVENTS[:4]
    split = pair(3, (0, 0, "split"), (0, 1, "split"))
    assert annotated_kinds([split, pair(2)]) == tuple(e for e in EVENTS if e != "merge")


@pytest.mark.parametrize(("n", "knots"), [(0, 3), (999, 3), (1000, 5), (2499, 5), (2500, 7)])
def test_knots(n, knots):
    assert usual_knots([pair(n)]) == knots


def test_a_few_pairs_without_a_division():
    move, parted = (0, 0, "move"), [(1, 1, "division"), (1, 2, "division")]
    with pytest.warns(RuntimeWarning, match="no division in 2 annotated frame pairs, and nothing"):
        warn_of_no_division([pair(5, move)] * 2, EVENTS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_no_division([pair(5, move)] * 6, EVENTS)  # a movie
        warn_of_no_division([pair(1000, move)], EVENTS)
        warn_of_no_division([pair(5, move, *parted)], EVENTS)
        warn_of_no_division([pair(5, move)], ("move", "appear", "disappear"))

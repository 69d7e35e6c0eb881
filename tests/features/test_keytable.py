"""The key table against a dict, in both its forms."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trellis.features.keytable import KeyTable

SPACES = {"direct": 50, "hashed": 1 << 40}


def spread(key, space):
    """Small keys over the whole space, some next to each other."""
    return key if key < 0 else key % 10 + (key // 10) * ((space - 10) // 4)


CALLS = st.lists(st.tuples(st.lists(st.integers(-1, 49), max_size=30), st.booleans()), max_size=5)


@pytest.mark.parametrize("form", SPACES)
@given(calls=CALLS)
def test_agrees_with_a_dict(form, calls):
    space = SPACES[form]
    table, known = KeyTable(space), {}
    for keys, grow in calls:
        expected = []
        for raw in keys:
            key = spread(raw, space)
            if grow and key >= 0:
                known.setdefault(key, len(known))
            expected.append(known.get(key, -1))
        found = table.code(np.array([spread(k, space) for k in keys], np.int64), grow=grow)
        assert found.dtype == np.int32
        assert found.tolist() == expected
        assert len(table) == len(known)
        assert table.keys.tolist() == list(known)
    again = KeyTable(space, table.keys)
    assert again.code(table.keys, grow=False).tolist() == list(range(len(known)))


@pytest.mark.parametrize("space", [1 << 20, (1 << 20) + 1, (1 << 62) - 1])
def test_many_keys_and_the_largest(space):
    rng = np.random.default_rng(0)
    table = KeyTable(space)
    known = {}
    for _ in range(3):
        keys = np.append(rng.integers(0, space, 20_000), space - 1)
        found = table.code(keys, grow=True)
        expected = [known.setdefault(k, len(known)) for k in keys.tolist()]
        assert found.tolist() == expected
    assert table.code(np.array(list(known)), grow=False).tolist() == list(range(len(known)))


def test_empty_space():
    assert KeyTable(0).code(np.array([-1, -1]), grow=True).tolist() == [-1, -1]

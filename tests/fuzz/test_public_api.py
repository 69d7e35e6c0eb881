"""Public calls with whatever arguments: no crash, no hang, no undocumented error."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

from fuzz.mutations import broken, written_otherwise
from fuzz.public_api import same
from fuzz.recipes import EXCEPTIONS, PACKAGES, RECIPES
from fuzz.watch import run_attack


def test_cases_are_refused_or_work():
    report = run_attack("public_api", n_cases=200)
    assert not report.failures, report.summary()
    assert report.n_cases == 200
    words = set(report.counts)
    assert words <= {"refused", "right", "same", "used", "used after a change", "read-only"}
    assert {"refused", "right", "same", "used"} <= words, report.summary()


def test_every_public_name_is_attacked_or_excepted():
    names = {
        f"{package}.{name}"
        for package in PACKAGES
        for name in importlib.import_module(f"trellis.{package}").__all__
    }
    called = {name for recipe in RECIPES for name in recipe.names}
    assert not called & EXCEPTIONS.keys()
    assert called | EXCEPTIONS.keys() == names


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.name)
def test_the_arguments_of_a_recipe_are_right(recipe):
    """And the same each time: results are compared."""
    first, second = (recipe.run(lambda _: None, **recipe.arguments()) for _ in range(2))
    assert same(first, second)


def test_another_writing_has_the_same_numbers():
    rng = np.random.default_rng(0)
    array = np.arange(6, dtype=np.int32).reshape(3, 2)
    for _ in range(100):
        assert np.asarray(written_otherwise(array, rng)).tolist() == array.tolist()
    assert written_otherwise("x", rng) is None


def test_what_is_broken_is_another():
    rng = np.random.default_rng(0)
    values = [broken([[1, 2], [3]], rng) for _ in range(100)]
    assert sum(repr(value) != "[[1, 2], [3]]" for value in values) > 90


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (np.zeros(2), np.zeros(3)),
        ([1, 2], (1, 2)),
        ({"a": 1.0}, {"a": 1.1}),
        (np.array([1]), np.array([2])),
        ("a", 1),
    ],
)
def test_results_that_differ(a, b):
    assert not same(a, b)
    assert same(a, a) and same(b, b)

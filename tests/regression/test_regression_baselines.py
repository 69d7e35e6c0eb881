"""The table of models, their errors, intervals and p-values."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import t, ttest_rel

from trellis import DataError
from trellis.datasets import synthetic_graph_regression
from trellis.regression import (
    Evaluation,
    RegressionData,
    baselines,
    evaluate,
    least_squares_boosting,
    mean_interval,
)
from trellis.regression.baselines import GlacerModel, Kriging, Lasso
from trellis.regression.bases import seeded


@pytest.fixture(scope="module")
def located():
    """Data with coordinates: a plane in X, and a wave in space."""
    rng = np.random.default_rng(0)
    train, test = synthetic_graph_regression(80, 50, random_state=0)

    def placed(data):
        coords = rng.uniform(0, 3, (len(data.y), 2))
        y = data.X[:, 0] + 2 * np.sin(2 * coords[:, 0]) + 0.1 * rng.standard_normal(len(data.y))
        return replace(data, coords=coords, y=y).with_graph()

    return placed(train), placed(test)


def test_every_model_learns_a_plane(located):
    """Targets that are nearly a plane, which all can learn from eighty examples."""
    train, test = (replace(d, y=d.X @ [3.0, 1.0, 0.0, 0.0, 0.0]) for d in located)
    spread = np.mean((test.y - train.y.mean()) ** 2)
    table = baselines(3, 0.5, coordinates=True, glacer=False)
    assert len(table) == 18
    for name, model in table.items():
        found = model(train, test, 0)
        assert found.shape == test.y.shape, name
        assert np.mean((found - test.y) ** 2) < spread, name


def test_space_helps(located):
    train, test = located
    table = baselines(3, 0.5, coordinates=True, glacer=False)
    error = {n: np.mean((table[n](train, test, 0) - test.y) ** 2) for n in ("MLR", "Kriging")}
    assert error["Kriging"] < 0.5 * error["MLR"]


def test_glacer_is_in_the_table(located):
    model = baselines(2, 0.5)["GLACER"]
    assert isinstance(model, GlacerModel)
    limited = replace(model, options={**model.options, "max_swaps": 1})
    assert np.isfinite(limited(*located, 0)).all()


def test_lambda_is_chosen_on_held_out_nodes(located):
    train, _ = located
    model = Lasso(None)
    chosen = model._chosen(train, 0)
    inner, held = train.split(60, 0)
    errors = {lam: np.mean((model._fitted(inner, held, lam) - held.y) ** 2)
              for lam in (0.1, 0.3, 1.0, 3.0, 5.0, 10.0, 30.0)}  # fmt: skip
    assert chosen == min(errors, key=errors.get)


def test_seeds_reach_every_part():
    from sklearn.ensemble import BaggingRegressor
    from sklearn.tree import DecisionTreeRegressor

    model = seeded(BaggingRegressor(DecisionTreeRegressor()), 7)
    assert model.random_state == model.estimator.random_state == 7


def test_boosting():
    assert least_squares_boosting(7, max_leaf_nodes=2).max_leaf_nodes == 2
    assert least_squares_boosting().max_leaf_nodes == 11


def test_kriging_needs_coordinates():
    train, test = synthetic_graph_regression(20, 20)
    with pytest.raises(DataError, match="has no coordinates, which kriging needs"):
        Kriging()(train, test, 0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0,), "n_components must be a positive integer, got 0"),
        ((2, 1.0), "subsample must be a number between 0 and 1, both excluded, got 1.0"),
    ],
)
def test_wrong_tables(arguments, message):
    with pytest.raises(DataError, match=re.escape(message)):
        baselines(*arguments)


# ------------------------------------------------------------------------------- errors


def test_interval_is_that_of_the_t_distribution():
    x = [1.0, 4.0, 2.0, 8.0, 5.0]
    mean, half = mean_interval(x)
    low, high = t.interval(0.9, 4, loc=np.mean(x), scale=np.std(x, ddof=1) / np.sqrt(5))
    assert (mean - half, mean + half) == pytest.approx((low, high))
    assert np.isnan(mean_interval([1.0])[1])
    with pytest.raises(DataError, match="confidence must be a number between 0 and 1, both"):
        mean_interval(x, 1)
    with pytest.raises(DataError, match="values must be a list of at least one number"):
        mean_interval([])


def constant(value):
    return lambda train, test, seed: np.full(len(test.y), value + seed)


def test_evaluation():
    def make(seed):
        return synthetic_graph_regression(20, 20, random_state=seed)

    result = evaluate({"a": constant(0.0), "b": constant(1.0)}, make, 3, random_state=5)
    tests = [make(seed)[1].y for seed in (5, 6, 7)]
    a = [np.mean((y - s) ** 2) for s, y in zip((5, 6, 7), tests, strict=True)]
    b = [np.mean((y - s - 1) ** 2) for s, y in zip((5, 6, 7), tests, strict=True)]
    assert result.mse == {"a": pytest.approx(a), "b": pytest.approx(b)}
    assert result.p_value("b", "a") == pytest.approx(ttest_rel(b, a).pvalue)
    assert result.improvement("a", "b") == pytest.approx(100 * (1 - np.mean(a) / np.mean(b)))
    assert result.best() == "a"
    lines = result.table("a").splitlines()
    assert lines[0] == "| model | MSE | ± (90 %) | p | seconds |"
    assert lines[2].startswith(f"| a | {np.mean(a):.4g} | ")
    assert "| – |" in lines[2]
    pairs = [make(seed) for seed in (5, 6, 7)]
    assert evaluate({"a": constant(0.0)}, pairs, random_state=5).mse["a"] == pytest.approx(a)


def test_p_values_that_are_not_defined():
    assert np.isnan(Evaluation({"a": [1.0], "b": [2.0]}, {}).p_value("a", "b"))
    assert np.isnan(Evaluation({"a": [1.0, 2.0], "b": [2.0, 3.0]}, {}).p_value("a", "b"))


def test_models_that_are_not_there():
    result = Evaluation({"a": [1.0, 2.0]}, {"a": [0.0, 0.0]})
    asks = (
        lambda: result.table(reference="b"),
        lambda: result.interval("b"),
        lambda: result.p_value("a", "b"),
        lambda: result.improvement("b", "a"),
    )
    for ask in asks:
        with pytest.raises(DataError, match="no model is called 'b'; there are a"):
            ask()


def test_nothing_to_evaluate():
    with pytest.raises(DataError, match="no models to evaluate"):
        evaluate({}, [])
    with pytest.raises(DataError, match="no data to evaluate on"):
        evaluate({"a": constant(0.0)}, [])
    with pytest.raises(DataError, match="repetitions must be a positive integer, got 0"):
        evaluate({"a": constant(0.0)}, synthetic_graph_regression, 0)


def test_a_gaussian_crf_over_a_model_helps_it():
    """On a map it knows the training targets; without places gamma is 0 where smoothing harms."""
    rng = np.random.default_rng(0)
    where, X = rng.uniform(size=(400, 2)), rng.normal(size=(400, 3))
    y = X[:, 0] + X[:, 1] ** 2 + 2 * np.sin(5 * where[:, 0]) + 0.3 * rng.normal(size=400)
    town = RegressionData("town", X, y, where, None, ("a", "b", "c")).with_graph()
    names = ("MLR", "SVM", "SUBBAG", "RF", "LSB")
    table = baselines(glacer=False, modern=False)
    train, test = town.split(300, 0)
    train, test = train.with_graph(), test.with_graph()
    bare = replace(train, coords=None), replace(test, coords=None)
    pure = rng.normal(size=400)
    noise = replace(town, y=pure, coords=None).split(300, 0)
    for name in names:
        plain = np.mean((table[name](train, test, 0) - test.y) ** 2)
        on_map = np.mean((table[f"S-{name}"](train, test, 0) - test.y) ** 2)
        alone = np.mean((table[f"S-{name}"](*bare, 0) - test.y) ** 2)
        assert on_map < 0.6 * plain
        assert alone < 1.02 * plain
        on_noise = [np.mean((table[n](*noise, 0) - noise[1].y) ** 2) for n in (name, f"S-{name}")]
        assert on_noise[1] < 1.05 * on_noise[0]

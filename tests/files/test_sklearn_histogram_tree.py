"""Boosted histogram trees in files: the same predictions, and no file that can do harm."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn._loss import HalfSquaredError
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression

from trellis.errors import CorruptModelError, DataError
from trellis.files.container import read_container, write_container
from trellis.files.sklearn_state import check_prediction
from trellis.files.values import ValueReader, ValueWriter

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 4))
X[:, 2:] = np.round(2 * X[:, 2:]) + 7  # categories that are not 0, 1, 2 ...
X[RNG.random(X.shape) < 0.1] = np.nan
SIDES = np.nan_to_num(X[:, 0]) + (X[:, 3] == 8) - (X[:, 2] == 6)
Y = SIDES + 0.1 * RNG.normal(size=150)
TWO, THREE = np.where(Y > 0.5, "yes", "no"), np.digitize(Y, [-0.5, 0.5])
# Missing, unknown, between categories, far away.
NEW = np.concatenate([X, X + 0.5, X + 1, np.full((1, 4), np.nan), [[1e9] * 4, [-1e9] * 4]])

Change = Callable[[dict[str, Any], dict[str, Any]], object]


def regressor(**options: Any) -> Any:
    options = {"max_iter": 4, "min_samples_leaf": 5, "random_state": 0} | options
    return HistGradientBoostingRegressor(**options)


def classifier(**options: Any) -> Any:
    return HistGradientBoostingClassifier(max_iter=3, min_samples_leaf=5, **options)


def through_a_file(value: Any, path: Any) -> Any:
    writer = ValueWriter()
    node = writer(value, "m")
    write_container(path, {"m": node}, writer.arrays)
    header, arrays = read_container(path)
    return ValueReader(arrays)(header["m"])


@pytest.mark.parametrize(
    ("model", "y"),
    [
        (regressor(), Y),
        (regressor(loss="quantile", quantile=0.2), Y),
        (regressor(loss="absolute_error", max_leaf_nodes=4), Y),
        (regressor(loss="poisson", max_depth=2), np.exp(Y)),
        (regressor(loss="gamma"), np.exp(Y)),
        (regressor(categorical_features=[3]), Y),
        (regressor(categorical_features=[3, 2], max_bins=40), Y),
        (regressor(categorical_features=[False, False, True, True]), Y),
        (regressor(early_stopping=True, max_iter=40), Y),
        (regressor(early_stopping=True, scoring="r2", categorical_features=[2]), Y),
        (regressor(early_stopping=True, scoring=None, validation_fraction=None), Y),
        (regressor(monotonic_cst=[1, 0, 0, 0], interaction_cst=[[0, 1], [2, 3]]), Y),
        (regressor(max_features=0.5, l2_regularization=1.0), Y),
        (regressor(), np.zeros(150)),  # trees of one leaf
        (classifier(), TWO),
        (classifier(), THREE),
        (classifier(categorical_features=[2, 3], class_weight="balanced"), THREE),
        (classifier(early_stopping=True, scoring="accuracy"), TWO),
    ],
)
def test_predictions_are_the_same(model: Any, y: Any, tmp_path: Any) -> None:
    model.fit(X, y)
    loaded = through_a_file(model, tmp_path / "m")
    assert type(loaded) is type(model) and repr(loaded) == repr(model)
    for rows in (X, NEW, np.asfortranarray(NEW), NEW[::3]):
        assert loaded.predict(rows).tobytes() == model.predict(rows).tobytes()
    if hasattr(model, "predict_proba"):
        assert loaded.predict_proba(NEW).tobytes() == model.predict_proba(NEW).tobytes()
    for one, other in zip(loaded.staged_predict(NEW), model.staged_predict(NEW), strict=True):
        assert one.tobytes() == other.tobytes()
    assert loaded.train_score_.tobytes() == model.train_score_.tobytes()
    assert loaded.n_iter_ == model.n_iter_ and type(loaded.n_iter_) is int
    assert np.array_equal(loaded.is_categorical_, model.is_categorical_)
    again = pickle.loads(pickle.dumps(through_a_file(loaded, tmp_path / "again")))
    assert (tmp_path / "again").read_bytes() == (tmp_path / "m").read_bytes()
    assert again.predict(NEW).tobytes() == model.predict(NEW).tobytes()


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"max_features": 0.5, "categorical_features": [2]},
        {"early_stopping": True, "loss": "quantile", "quantile": 0.7, "tol": 0.0},
        {"early_stopping": True, "scoring": "r2", "tol": 0.0},
        {"early_stopping": True, "scoring": "r2", "random_state": None},
    ],
)
def test_training_goes_on(options: dict[str, Any], tmp_path: Any) -> None:
    model = regressor(warm_start=True, **options).fit(X, Y)
    loaded = through_a_file(model, tmp_path / "m")
    for one in (model, loaded):
        one.set_params(max_iter=8).fit(X, Y)
    assert model.n_iter_ > 4
    assert loaded.predict(NEW).tobytes() == model.predict(NEW).tobytes()
    assert loaded.validation_score_.tobytes() == model.validation_score_.tobytes()


def test_categories_of_every_type_of_number(tmp_path: Any) -> None:
    numbers = np.nan_to_num(X).astype(np.int64)
    alone = np.full((150, 2), np.nan)
    alone[:, 1] = X[:, 2]
    for data in (numbers, numbers.astype(np.uint8), X.astype(np.float32), alone):
        model = regressor(categorical_features=[data.shape[1] - 1, 0]).fit(data, Y)
        loaded = through_a_file(model, tmp_path / "m")
        for rows in (data, data + 1):
            assert loaded.predict(rows).tobytes() == model.predict(rows).tobytes()


def test_a_model_that_is_not_fitted(tmp_path: Any) -> None:
    loaded = through_a_file(regressor(max_iter=7), tmp_path / "m")
    assert loaded.fit(X, Y).n_iter_ == 7


def test_names_of_columns_come_back(tmp_path: Any) -> None:
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(X, columns=list("abcd"))
    model = regressor().fit(table, Y)
    loaded = through_a_file(model, tmp_path / "m")
    check_prediction(loaded)
    assert loaded.predict(table).tobytes() == model.predict(table).tobytes()
    assert loaded.feature_names_in_.tolist() == ["a", "b", "c", "d"]


# ------------------------------------------------------------------------- what is refused


CATEGORIES_OF_A_TABLE = (
    "^m was fitted to a table with columns of categories, .* put an OrdinalEncoder before it"
)


def test_tables_with_categories_are_refused() -> None:
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(np.nan_to_num(X), columns=list("abcd"))
    of_type = table.assign(d=table["d"].astype("category"))
    for model, data in ((regressor(), of_type), (regressor(categorical_features=["d"]), table)):
        with pytest.raises(DataError, match=CATEGORIES_OF_A_TABLE):
            ValueWriter()(model.fit(data, Y), "m")


def test_categories_that_are_no_numbers_or_have_names_are_refused() -> None:
    words = np.array([["x", 1.0], ["y", 2.0]] * 75, object)
    with pytest.raises(DataError, match=CATEGORIES_OF_A_TABLE):
        ValueWriter()(regressor(categorical_features=[0]).fit(words, Y), "m")
    model = regressor(categorical_features=[2]).fit(X, Y)
    model._preprocessor.feature_names_in_ = np.array(list("abcd"), object)  # as of a table
    with pytest.raises(DataError, match=CATEGORIES_OF_A_TABLE):
        ValueWriter()(model, "m")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda m: setattr(m, "new_", 1),
            "m.new_ is not known here, so a model file cannot hold m",
        ),
        (lambda m: setattr(m, "_in_fit", True), "m._in_fit is not known here"),
        (lambda m: m.set_params(loss=HalfSquaredError()), "m.loss is a HalfSquaredError, which a"),
        (
            lambda m: setattr(
                m, "_feature_subsample_rng", np.random.Generator(np.random.MT19937())
            ),
            "m.trees has random numbers of MT19937, which a model file cannot hold",
        ),
    ],
)
def test_what_cannot_be_stored_is_named(change: Any, message: str) -> None:
    model = regressor().fit(X, Y)
    change(model)
    with pytest.raises(DataError, match=re.escape(message)):
        ValueWriter()(model, "m")


# ------------------------------------------------------------------------- hostile files


def stored(model: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    writer = ValueWriter()
    node = writer(model, "m")
    return node, {name: np.array(array) for name, array in writer.arrays.items()}


def refusal(node: Any, arrays: Any) -> str:
    with pytest.raises(CorruptModelError) as caught:
        ValueReader(arrays)(node)
    return str(caught.value)


def entry(name: str, value: Any, at: Any = 0) -> Change:
    """Change one number of an array; `at` may choose it among the nodes."""

    def change(node: Any, arrays: Any) -> None:
        trees = {n.removeprefix("m.trees."): array for n, array in arrays.items()}
        arrays[f"m.trees.{name}"][at(trees) if callable(at) else at] = value

    return change


def by_set(trees: Any) -> Any:
    """The first node that asks for a set of categories."""
    return np.flatnonzero((trees["is_leaf"] == 0) & (trees["is_categorical"] != 0))[0]


def by_threshold(trees: Any) -> Any:
    """The first node that asks for a threshold of a feature without categories."""
    numbers = (trees["is_categorical"] == 0) & (trees["feature_idx"] > 0)
    return np.flatnonzero((trees["is_leaf"] == 0) & numbers)[0]


def array(name: str, change: Callable[[Any], Any]) -> Change:
    return lambda node, arrays: arrays.update(
        {f"m.trees.{name}": change(arrays[f"m.trees.{name}"])}
    )


def learned(**values: Any) -> Change:
    return lambda node, arrays: node["sklearn"]["learned"].update(values)


def without(name: str) -> Change:
    return lambda node, arrays: node["sklearn"]["learned"].pop(name)


def parameter(**values: Any) -> Change:
    return lambda node, arrays: node["sklearn"]["parameters"].update(values)


def boosting(**values: Any) -> Change:
    return lambda node, arrays: node["sklearn"]["boosting"].update(values)


AFTER = "a tree has a child that does not come after its node"
SINGLE = "a tree has a node that is not the child of one node before it"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (entry("left", 0), AFTER),
        (entry("right", 2**32 - 1), AFTER),
        (entry("right", 11), AFTER),  # a node of the next tree
        (entry("right", 1), SINGLE),
        (entry("left", 2), SINGLE),
        (entry("is_leaf", 1), SINGLE),
        (entry("is_leaf", 0, -1), AFTER),
        (entry("is_leaf", 2), "is_leaf of a tree lie in 0 .. 2"),
        (entry("missing_go_to_left", 255), "missing_go_to_left of a tree lie in"),
        (entry("is_categorical", 7), "is_categorical of a tree lie in"),
        (entry("feature_idx", 4), "features of a tree lie in"),
        (entry("feature_idx", -1), "features of a tree lie in"),
        (entry("feature_idx", 2**62), "features of a tree lie in"),
        (entry("feature_idx", 2, by_set), "asks for a category of a feature that has none"),
        (
            entry("is_categorical", 1, by_threshold),
            "asks for a category of a feature that has none",
        ),
        (entry("bitset_idx", 40, by_set), "asks for a set of categories that it does not have"),
        (entry("num_threshold", np.nan), "a tree has a threshold that is no number"),
        (entry("value", np.inf), "holds a number that is not finite"),
        (entry("n_nodes", 0), "numbers of nodes lie in 0"),
        (entry("n_nodes", -5), "numbers of nodes lie in -5"),
        (entry("n_nodes", 13), "the trees do not have the nodes that there are"),
        (entry("n_bitsets", -1), "numbers of sets of categories lie in -1"),
        (
            array("n_bitsets", lambda a: a * 0),
            "the trees do not have the sets of categories that there are",
        ),
        (array("n_nodes", lambda a: a[:-1]), "has shape"),
        (array("n_nodes", lambda a: a.astype(np.int32)), "has dtype int32"),
        (array("left", lambda a: a[:-1]), "fields of different lengths"),
        (array("left", lambda a: a.astype(np.int64)), "has dtype int64"),
        (array("raw_left_cat_bitsets", lambda a: a[:, :4]), "has shape"),
        (array("raw_left_cat_bitsets", lambda a: a[:-1]), "do not have the sets of categories"),
        (array("baseline", lambda a: a[:, :0]), "has shape"),
        (array("baseline", lambda a: a * np.nan), "holds a number that is not finite"),
        (lambda n, a: a.pop("m.trees.left"), "array 'left' is missing"),
        (lambda n, a: a.pop("m.trees.categories"), "categories are not stored as numbers"),
        (array("categories", lambda a: a[:, None]), "categories are not stored as numbers"),
        (array("categories", lambda a: a > 0), "categories are not stored as numbers"),
        (array("categories", lambda a: a[:-1]), "columns of categories are not in order"),
        (array("categories", lambda a: a[::-1].copy()), "categories are not in order, or too many"),
        (array("categories", lambda a: a * np.nan), "categories are not in order, or too many"),
        (entry("n_categories", 2**62), "numbers of categories lie in"),
        (entry("n_categories", 0), "numbers of categories lie in 0"),
        (entry("categorical", 4), "columns of categories lie in"),
        (entry("categorical", 3), "columns of categories are not in order"),
        (learned(_in_fit=True), "HistGradientBoostingRegressor learns no '_in_fit'"),
        (learned(_predictors=[]), "HistGradientBoostingRegressor learns no '_predictors'"),
        (learned(n_features_in_=2.0), "learns no 'n_features_in_' of this kind"),
        (learned(n_features_in_=5), "a HistGradientBoostingRegressor has 5 columns"),
        (learned(n_features_in_=3, _n_features=3), "columns of categories lie in"),
        (learned(n_features_in_=10**9, _n_features=10**9), "has 1000000000 columns"),
        (learned(n_trees_per_iteration_=0), "has 0 outputs, which are not its classes"),
        (learned(n_trees_per_iteration_=2), "has 2 outputs, which are not its classes"),
        (learned(feature_names_in_={"array": "m.trees.left"}), "has no names of columns"),
        (without("n_features_in_"), "has no 'n_features_in_'"),
        (without("_n_features"), "has no '_n_features'"),
        (parameter(loss="what"), "has a loss that is not known"),
        (parameter(loss="quantile"), "has a loss that is not known"),
        (parameter(loss="quantile", quantile=[2]), "has a loss that is not known"),
        (parameter(loss=["quantile"]), "has a loss that has no name"),
        (parameter(scoring=[1]), "has scores that have no name"),
        (boosting(fields={"left": "u4"}), "another version of scikit-learn, whose trees are diff"),
        (boosting(random=[0, 0, 2, 0]), "random numbers are in a state that there is not"),
        (boosting(random=[0, 2**128, 0, 0]), "random numbers are in a state that there is not"),
        (boosting(random=[]), "random numbers are in a state that there is not"),
        (boosting(categories=False), "asks for a category of a feature that has none"),
        (lambda n, a: n["sklearn"].pop("boosting"), "a HistGradientBoostingRegressor has no trees"),
    ],
)
def test_trees_are_checked_node_by_node(change: Change, message: str) -> None:
    model = regressor(categorical_features=[2, 3], early_stopping=True, max_leaf_nodes=6)
    node, arrays = stored(model.fit(X, Y))
    change(node, arrays)
    assert message in refusal(node, arrays)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (learned(n_trees_per_iteration_=1), "has 1 outputs, which are not its classes"),
        (learned(n_trees_per_iteration_=10**9), "has 1000000000 outputs"),
        (without("classes_"), "has 3 outputs, which are not its classes"),
        (array("baseline", lambda a: a[:, :2]), "has shape"),
    ],
)
def test_there_is_a_tree_for_each_class(change: Change, message: str) -> None:
    node, arrays = stored(classifier().fit(X, THREE))
    change(node, arrays)
    assert message in refusal(node, arrays)


def test_trees_are_a_multiple_of_the_classes() -> None:
    node, arrays = stored(classifier().fit(X, THREE))
    last = int(arrays["m.trees.n_nodes"][-1])
    for name in node["sklearn"]["boosting"]["fields"]:
        arrays[f"m.trees.{name}"] = arrays[f"m.trees.{name}"][:-last]
    for name in ("n_nodes", "n_bitsets"):
        arrays[f"m.trees.{name}"] = arrays[f"m.trees.{name}"][:-1]
    assert "trees of a HistGradientBoostingClassifier are not as many" in refusal(node, arrays)


def test_other_estimators_have_no_boosting() -> None:
    """The entry is read for the two classes only."""
    node, arrays = stored(LinearRegression().fit(np.nan_to_num(X), Y))
    trees, more = stored(regressor().fit(X, Y))
    node["sklearn"]["boosting"] = trees["sklearn"]["boosting"]
    assert not hasattr(ValueReader(arrays | more)(node), "_predictors")


FITTED = regressor(categorical_features=[2, 3], max_leaf_nodes=6).fit(X, Y)
INTEGERS = (
    "left", "right", "feature_idx", "is_leaf", "is_categorical", "bitset_idx", "n_nodes",
    "n_bitsets", "missing_go_to_left", "depth", "bin_threshold", "count", "n_categories",
    "categorical",
)  # fmt: skip


@given(st.data())
def test_no_integers_of_trees_can_do_harm(data: st.DataObject) -> None:
    """Any change of integers is refused, or gives trees that can be walked."""
    node, arrays = stored(FITTED)
    for _ in range(data.draw(st.integers(1, 4))):
        name = data.draw(st.sampled_from(INTEGERS))
        column = arrays[f"m.trees.{name}"]
        info = np.iinfo(column.dtype)
        near = st.integers(max(info.min, -3), min(info.max, 60))
        value = data.draw(near | st.sampled_from([info.min, info.max]))
        column[data.draw(st.integers(0, len(column) - 1))] = value
    try:
        loaded = ValueReader(arrays)(node)
    except CorruptModelError:
        return
    assert np.isfinite(loaded.predict(NEW)).all()
    for (tree,) in loaded._predictors:
        assert 0 <= tree.get_max_depth() <= 2**32

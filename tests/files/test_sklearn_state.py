"""Estimators of scikit-learn in files: the same predictions, and no file that can do harm."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.cluster import KMeans
from sklearn.compose import TransformedTargetRegressor
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import (
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import (
    BayesianRidge,
    ElasticNet,
    ElasticNetCV,
    HuberRegressor,
    Lasso,
    LassoCV,
    LinearRegression,
    LogisticRegression,
    Ridge,
    RidgeCV,
    SGDRegressor,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsRegressor
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    LabelBinarizer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import SVR
from sklearn.tree import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreeClassifier,
    ExtraTreeRegressor,
)

from trellis.errors import CorruptModelError, DataError
from trellis.files.container import read_container, write_container
from trellis.files.sklearn_state import CLASSES, check_prediction
from trellis.files.values import ValueReader, ValueWriter
from trellis.regression import least_squares_boosting
from trellis.regression.bases import default_bases

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 4))
Y = np.sin(X[:, 0]) + X[:, 1] ** 2
TWO = np.where(Y > 0.5, "yes", "no")
THREE = np.digitize(Y, [0.2, 1.0])
# As many columns as fit a cache line, so that sums in another order would show.
WIDE = RNG.normal(size=(30, 40))


def scaled(model: Any) -> Any:
    inner = make_pipeline(StandardScaler(), model)
    return TransformedTargetRegressor(inner, transformer=StandardScaler())


REGRESSORS = [
    LinearRegression(),
    Ridge(0.1),
    RidgeCV(),
    Lasso(0.01),
    LassoCV(cv=3),
    ElasticNet(0.01),
    ElasticNetCV(cv=3),
    BayesianRidge(),
    HuberRegressor(),
    SGDRegressor(random_state=0),
    MLPRegressor(hidden_layer_sizes=(5, 3), max_iter=30, random_state=0),
    MLPRegressor(hidden_layer_sizes=(10,), solver="lbfgs", max_iter=50, random_state=0),
    MLPRegressor(hidden_layer_sizes=(5,), early_stopping=True, max_iter=30, random_state=0),
    DecisionTreeRegressor(random_state=0),
    DecisionTreeRegressor(max_leaf_nodes=6, random_state=0),
    ExtraTreeRegressor(random_state=0),
    RandomForestRegressor(4, max_features=1 / 3, min_samples_leaf=5, random_state=0),
    RandomForestRegressor(4, oob_score=True, random_state=0),
    ExtraTreesRegressor(3, random_state=0),
    GradientBoostingRegressor(n_estimators=4, random_state=0),
    GradientBoostingRegressor(n_estimators=4, loss="quantile", init="zero", random_state=0),
    GradientBoostingRegressor(n_estimators=4, init=Ridge(), subsample=0.5, random_state=0),
    least_squares_boosting(random_state=0),
    BaggingRegressor(DecisionTreeRegressor(min_samples_leaf=5), 3, max_samples=0.3, random_state=0),
    BaggingRegressor(n_estimators=2, max_features=0.5, random_state=3),
    HistGradientBoostingRegressor(max_iter=4),
    KNeighborsRegressor(3),
    scaled(Ridge()),
    make_pipeline(SimpleImputer(add_indicator=True), OrdinalEncoder(), LinearRegression()),
    make_pipeline(OneHotEncoder(handle_unknown="ignore"), Ridge()),
    make_pipeline(MinMaxScaler(), RobustScaler(), MaxAbsScaler(), LinearRegression()),
    DummyRegressor(),
]
CLASSIFIERS = [
    LogisticRegression(),
    GaussianNB(),
    DecisionTreeClassifier(max_depth=3, random_state=0),
    ExtraTreeClassifier(max_depth=3, random_state=0),
    RandomForestClassifier(4, random_state=0, class_weight="balanced"),
    ExtraTreesClassifier(3, random_state=0),
    GradientBoostingClassifier(n_estimators=3, random_state=0),
    HistGradientBoostingClassifier(max_iter=3),
    BaggingClassifier(n_estimators=2, random_state=0),
    MLPClassifier(hidden_layer_sizes=(5,), max_iter=20, random_state=0),
    make_pipeline(StandardScaler(), LogisticRegression()),
    DummyClassifier(),
]


def through_a_file(value: Any, path: Any) -> Any:
    writer = ValueWriter()
    node = writer(value, "m")
    write_container(path, {"m": node}, writer.arrays)
    header, arrays = read_container(path)
    return ValueReader(arrays)(header["m"])


def fitted(model: Any, *data: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(*data)


@pytest.mark.parametrize("model", REGRESSORS, ids=lambda m: type(m).__name__)
def test_regressors(model, tmp_path):
    for data in (X, WIDE):
        target = Y if data is X else WIDE[:, 0] * WIDE[:, 1]
        fitted(model, data, target)
        loaded = through_a_file(model, tmp_path / "m")
        check_prediction(loaded)
        assert type(loaded) is type(model) and repr(loaded) == repr(model)
        for rows in (data, np.asfortranarray(data), data[::3]):
            assert loaded.predict(rows).tobytes() == model.predict(rows).tobytes()
        again = through_a_file(loaded, tmp_path / "again")
        assert (tmp_path / "again").read_bytes() == (tmp_path / "m").read_bytes()
        assert again.predict(data).tobytes() == model.predict(data).tobytes()


@pytest.mark.parametrize("labels", [TWO, THREE, TWO == "yes", TWO.astype(object)])
@pytest.mark.parametrize("model", CLASSIFIERS, ids=lambda m: type(m).__name__)
def test_classifiers(model, labels, tmp_path):
    fitted(model, X, labels)
    loaded = through_a_file(model, tmp_path / "m")
    check_prediction(loaded, 4, classify=True) if len(set(labels)) == 2 else None
    assert (loaded.predict(X) == model.predict(X)).all()
    assert loaded.classes_.dtype == model.classes_.dtype
    assert loaded.predict_proba(X).tobytes() == model.predict_proba(X).tobytes()


def test_default_bases_with_missing_values(tmp_path):
    holes = np.where(RNG.random(X.shape) < 0.2, np.nan, X)
    for model in default_bases(len(X), random_state=0):
        fitted(model, holes, Y)
        loaded = through_a_file(model, tmp_path / "m")
        check_prediction(loaded)
        for rows in (holes, X):
            assert loaded.predict(rows).tobytes() == model.predict(rows).tobytes()


def test_random_numbers_go_on(tmp_path):
    state = np.random.RandomState(3)
    state.normal(size=3)
    loaded = through_a_file(state, tmp_path / "m")
    assert loaded.normal(size=700).tolist() == state.normal(size=700).tolist()


def test_training_goes_on(tmp_path):
    """Random numbers and weights are those that training would have gone on with."""
    data = X, Y
    options = {"hidden_layer_sizes": (4,), "max_iter": 3, "random_state": 0, "warm_start": True}
    model = fitted(MLPRegressor(solver="sgd", momentum=0, **options), *data)
    loaded = through_a_file(model, tmp_path / "m")
    for one in (model, loaded):
        fitted(one, *data)
    assert loaded.predict(X).tobytes() == model.predict(X).tobytes()
    boost = GradientBoostingRegressor(n_estimators=2, subsample=0.5, warm_start=True)
    boost = fitted(boost.set_params(random_state=0), X, Y)
    loaded = through_a_file(boost, tmp_path / "m")
    for one in (boost, loaded):
        fitted(one.set_params(n_estimators=4), X, Y)
    assert loaded.predict(X).tobytes() == boost.predict(X).tobytes()


def test_names_of_columns_come_back(tmp_path):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(X, columns=list("abcd"))
    model = LinearRegression().fit(table, Y)
    loaded = through_a_file(model, tmp_path / "m")
    check_prediction(loaded)
    assert loaded.predict(table).tobytes() == model.predict(table).tobytes()
    assert loaded.feature_names_in_.tolist() == ["a", "b", "c", "d"]


def test_every_class_is_tried():
    def inside(model: Any) -> set[str]:
        parts = model.get_params().values()
        found = {type(p).__name__ for p in (model, *parts) if hasattr(p, "get_params")}
        learned = [v for v in vars(model).values() if hasattr(v, "get_params")]
        return found.union(*(inside(part) for part in learned))

    tried = set().union(*(inside(model) for model in (*REGRESSORS, *CLASSIFIERS)))
    # Of the network below, and of an imputer that adds which values were missing.
    tried |= {"LabelBinarizer", "MissingIndicator"}
    tried -= {"_BinMapper", "LabelEncoder"}  # of histograms; made again, or left out
    assert tried == {name for names in CLASSES.values() for name in names}
    network = fitted(MLPClassifier(hidden_layer_sizes=(2,), max_iter=2), X, TWO)
    assert isinstance(network._label_binarizer, LabelBinarizer)


# ------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (KMeans(2), "m is a KMeans, which a model file cannot hold; those it can hold are"),
        (SVR(), "m is a SVR, which a model file cannot hold"),
        (
            make_pipeline(FunctionTransformer(np.log1p), LinearRegression()),
            "m.steps[0][1] is a FunctionTransformer",
        ),
        (TransformedTargetRegressor(LinearRegression(), func=np.log), "m.func is a ufunc"),
        (lambda x: x, "m is a function, which a model file cannot hold"),
        (object(), "m is a object, which a model file cannot hold"),
        ({1, 2}, "m is a set, which a model file cannot hold"),
        (np.array([1j]), "m is an array of complex128, which a model file cannot hold"),
        (np.random.RandomState(np.random.PCG64(1)), "m is random numbers of PCG64"),
        ("\ud800", "m holds a lone surrogate"),
        ([{"a": {"b": 1j}}], "m[0][0][0] is a complex"),
    ],
)
def test_what_cannot_be_stored_is_named(value, message):
    with pytest.raises(DataError, match=re.escape(message)):
        ValueWriter()(value, "m")


def test_an_attribute_that_cannot_be_stored_is_named():
    model = LinearRegression().fit(X, Y)
    model.extra_ = object()
    with pytest.raises(DataError, match=r"m\.extra_ is a object, which a model file cannot hold"):
        ValueWriter()(model, "m")


def test_a_class_of_your_own_is_refused():
    class Mine(LinearRegression):
        pass

    with pytest.raises(DataError, match="m is a Mine, which a model file cannot hold"):
        ValueWriter()(Mine().fit(X, Y), "m")


# ------------------------------------------------------------------------- hostile files


def stored(model: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    writer = ValueWriter()
    node = writer(model, "m")
    return node, {name: np.array(array) for name, array in writer.arrays.items()}


def refusal(node: Any, arrays: Any) -> str:
    with pytest.raises(CorruptModelError) as caught:
        ValueReader(arrays)(node)
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("sklearn.svm.SVR", "it holds a sklearn.svm.SVR, which is none of the known estimators"),
        ("sklearn.linear_model.KMeans", "none of the known estimators"),
        ("os.system", "none of the known estimators"),
        ("sklearn", "none of the known estimators"),
    ],
)
def test_only_known_classes_are_made(name, message):
    node, arrays = stored(LinearRegression().fit(X, Y))
    node["sklearn"]["class"] = name
    assert message in refusal(node, arrays)


@pytest.mark.parametrize("name", ["predict", "__class__", "_loss", "fit_intercept", "a b", "score"])
def test_attributes_cannot_take_the_place_of_others(name):
    node, arrays = stored(LinearRegression().fit(X, Y))
    node["sklearn"]["learned"][name] = 1
    assert refusal(node, arrays) == f"LinearRegression learns no {name!r}"


def test_parameters_are_those_of_the_class():
    node, arrays = stored(LinearRegression().fit(X, Y))
    node["sklearn"]["parameters"]["evil"] = 1
    assert refusal(node, arrays) == "parameters are not those of LinearRegression"
    node, arrays = stored(LinearRegression().fit(X, Y))
    node["sklearn"]["parameters"]["n_jobs"] = 10**6
    assert refusal(node, arrays) == "LinearRegression asks for 1000000 processes"


def tree_node(node: dict[str, Any]) -> dict[str, Any]:
    return node["sklearn"]["learned"]["tree_"]["tree"]


INTEGERS = "m.tree_.i8"  # rows: left child, right child, feature, samples


def set_entry(row: int, column: int, value: int):
    def change(node: Any, arrays: Any) -> None:
        arrays[INTEGERS][row, column] = value

    return change


def set_tree(**entries: Any):
    return lambda node, arrays: tree_node(node).update(entries)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (set_entry(0, 0, 0), "children in a tree lie in 0"),
        (set_entry(0, 0, -7), "children in a tree lie in -7"),
        (set_entry(1, 0, 10**6), "children in a tree lie in 1 .. 1000000"),
        (set_entry(0, 1, -1), "a node with one child"),
        (set_entry(1, 0, 1), "a node that is not the child of one node before it"),
        (set_entry(2, 0, 4), "features of a tree lie in"),
        (set_entry(2, 0, -1), "features of a tree lie in -1"),
        (set_tree(n_features=3), ""),
        (set_tree(n_features=5), "the tree of a DecisionTreeRegressor is one of other features"),
        (set_tree(n_features=0), "'n_features' is 0"),
        (set_tree(max_depth=1), "a tree has depth 2, but says otherwise"),
        (set_tree(n_classes=[]), "a tree has a wrong number of classes"),
        (set_tree(n_classes=[0]), "a tree has a wrong number of classes"),
        (set_tree(n_classes=[2**40]), "a tree has a wrong number of classes"),
        (set_tree(n_classes=[2]), "has shape"),
        (set_tree(fields={"i8": ["left_child"]}), "another version of scikit-learn"),
        (lambda n, a: a.pop("m.tree_.values"), "array 'm.tree_.values' is missing"),
        (lambda n, a: a.update({INTEGERS: a[INTEGERS][:, :-1]}), "has shape"),
        (lambda n, a: a.update({INTEGERS: a[INTEGERS].astype(np.int32)}), "has dtype int32"),
        (lambda n, a: a["m.tree_.values"].fill(np.nan), "holds a number that is not finite"),
        (
            lambda n, a: n["sklearn"]["learned"].update(n_features_in_=400),
            "the tree of a DecisionTreeRegressor is one of other features",
        ),
        (
            lambda n, a: n["sklearn"]["learned"].update(tree_=3),
            "the tree of a DecisionTreeRegressor is none",
        ),
    ],
)
def test_a_tree_is_checked_node_by_node(change, message):
    node, arrays = stored(DecisionTreeRegressor(max_depth=2, random_state=0).fit(X, Y))
    change(node, arrays)
    assert message in refusal(node, arrays)


@given(st.data())
def test_no_integers_of_a_tree_can_do_harm(data: st.DataObject) -> None:
    """Any change of children and features is refused, or gives a tree that can be walked."""
    node, arrays = stored(TREE)
    n = arrays[INTEGERS].shape[1]
    for _ in range(data.draw(st.integers(1, 4))):
        row, column = data.draw(st.integers(0, 2)), data.draw(st.integers(0, n - 1))
        arrays[INTEGERS][row, column] = data.draw(st.integers(-3, n + 2))
    try:
        loaded = ValueReader(arrays)(node)
    except CorruptModelError:
        return
    assert np.isfinite(loaded.predict(X)).all()
    assert loaded.decision_path(X).shape == (len(X), n)
    assert loaded.apply(X).max() < n


TREE = DecisionTreeRegressor(max_leaf_nodes=8, random_state=0).fit(X, Y)


@pytest.mark.parametrize(
    ("model", "change", "message"),
    [
        (
            RandomForestRegressor(2, random_state=0),
            lambda learned: learned.update(n_features_in_=400),
            "a RandomForestRegressor holds a tree of other features",
        ),
        (
            RandomForestRegressor(2, random_state=0),
            lambda learned: learned.update(estimators_=[]),
            "a RandomForestRegressor has no trees",
        ),
        (
            ExtraTreesRegressor(2, random_state=0),
            lambda learned: learned.update(estimators_=[1]),
            "a ExtraTreesRegressor holds something that is no tree",
        ),
        (
            GradientBoostingRegressor(n_estimators=2, random_state=0),
            lambda learned: learned.update(n_trees_per_iteration_=3),
            "the trees of a GradientBoostingRegressor are not as many as it says",
        ),
        (
            GradientBoostingRegressor(n_estimators=2, random_state=0),
            lambda learned: learned["estimators_"].update(shape=[2]),
            "the trees of a GradientBoostingRegressor are not as many as it says",
        ),
        (
            GradientBoostingRegressor(n_estimators=2, random_state=0),
            lambda learned: learned.update(n_features_in_=400),
            "a GradientBoostingRegressor holds a tree of other features",
        ),
        (
            GradientBoostingRegressor(n_estimators=2, random_state=0),
            lambda learned: learned["estimators_"].update(objects=[{"model": {}}], shape=[1, 1]),
            "'estimator' is missing",
        ),
    ],
)
def test_ensembles_of_trees_are_checked(model, change, message):
    node, arrays = stored(model.fit(X, Y))
    change(node["sklearn"]["learned"])
    assert refusal(node, arrays) == message or message in refusal(node, arrays)


def test_a_forest_has_the_classes_of_its_trees():
    """It would make room for as many probabilities as it says."""
    node, arrays = stored(RandomForestClassifier(2, random_state=0).fit(X, TWO))
    node["sklearn"]["learned"]["n_classes_"] = 10**12
    assert refusal(node, arrays) == "a RandomForestClassifier holds a tree of other classes"


def test_boosting_holds_regressions_only():
    node, arrays = stored(GradientBoostingRegressor(n_estimators=1, random_state=0).fit(X, Y))
    other, more = stored(DecisionTreeClassifier(max_depth=1, random_state=0).fit(X, TWO))
    node["sklearn"]["learned"]["estimators_"]["objects"] = [other]
    assert refusal(node, arrays | more) == (
        "a GradientBoostingRegressor holds a tree that is no regression"
    )


@pytest.mark.parametrize(
    ("model", "n_features", "message"),
    [
        (3, None, "a model inside is none of scikit-learn"),
        (StandardScaler().fit(X), None, "a model inside is none of scikit-learn"),
        (LinearRegression().fit(X, Y), 0, "a model inside has 0 columns"),
        (LinearRegression().fit(X, Y), 10**9, "a model inside has 1000000000 columns"),
        (LinearRegression().fit(X, np.stack([Y, Y], 1)), None, "does not predict one number"),
        (LogisticRegression().fit(X, TWO), None, "does not predict one number"),
        (Ridge().fit(X, Y).set_params(), "4", "a model inside has 4 columns"),
    ],
)
def test_a_model_that_cannot_predict_is_refused(model, n_features, message):
    with pytest.raises(CorruptModelError, match=message):
        check_prediction(model, n_features)


def test_a_model_that_predicts_nan_is_refused():
    model = LinearRegression().fit(X, Y)
    model.intercept_ = np.nan
    with pytest.raises(CorruptModelError, match="predicts a number that is not finite"):
        check_prediction(model)

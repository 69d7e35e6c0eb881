"""Estimators of scikit-learn in model files: class, parameters and learned attributes, no pickle.

Only classes listed here are written and read: those whose predictions are plain array arithmetic,
which at worst raises an error when attributes do not fit each other, one-hot encoders, which are
checked (:mod:`trellis.files.sklearn_encoder`), nearest neighbours, which are fitted again
(:mod:`trellis.files.sklearn_neighbours`), and trees, which are checked node by node
(:mod:`trellis.files.sklearn_tree`, :mod:`trellis.files.sklearn_histogram_tree`) together with the
ensembles that hold them. A class outside the list might hand what a file says to compiled code
unchecked.

A restored estimator predicts one row before it is used, so that attributes that do not fit each
other are noticed when a file is read.
"""

from __future__ import annotations

import importlib
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from trellis.errors import CorruptModelError, DataError
from trellis.files.sklearn_encoder import check_one_hot, possible_row
from trellis.files.sklearn_histogram_tree import (
    BOOSTED,
    plain_part,
    read_boosting,
    write_boosting,
)
from trellis.files.sklearn_neighbours import NEIGHBOURS, fit_again, rows_and_answers
from trellis.files.sklearn_tree import is_tree
from trellis.files.stored import header_value

if TYPE_CHECKING:
    from trellis.files.values import ValueReader, ValueWriter

__all__ = ["CLASSES", "check_prediction", "is_sklearn", "read_sklearn", "write_sklearn"]

CLASSES = {
    "sklearn.compose": ("TransformedTargetRegressor",),
    "sklearn.dummy": ("DummyClassifier", "DummyRegressor"),
    "sklearn.ensemble": (
        "BaggingClassifier", "BaggingRegressor", "ExtraTreesClassifier", "ExtraTreesRegressor",
        "GradientBoostingClassifier", "GradientBoostingRegressor", "HistGradientBoostingClassifier",
        "HistGradientBoostingRegressor", "RandomForestClassifier", "RandomForestRegressor",
    ),
    "sklearn.impute": ("MissingIndicator", "SimpleImputer"),
    "sklearn.linear_model": (
        "BayesianRidge", "ElasticNet", "ElasticNetCV", "HuberRegressor", "Lasso", "LassoCV",
        "LinearRegression", "LogisticRegression", "Ridge", "RidgeCV", "SGDRegressor",
    ),
    "sklearn.naive_bayes": ("GaussianNB",),
    "sklearn.neighbors": ("KNeighborsRegressor",),
    "sklearn.neural_network": ("MLPClassifier", "MLPRegressor"),
    "sklearn.pipeline": ("Pipeline",),
    "sklearn.preprocessing": (
        "LabelBinarizer", "MaxAbsScaler", "MinMaxScaler", "OneHotEncoder", "OrdinalEncoder",
        "RobustScaler", "StandardScaler",
    ),
    "sklearn.tree": (
        "DecisionTreeClassifier", "DecisionTreeRegressor", "ExtraTreeClassifier",
        "ExtraTreeRegressor",
    ),
}  # fmt: skip
"""The classes that can be in model files, by the module that offers them."""

# Attributes that only further training needs, or that are made again from the parameters.
_LEFT_OUT = ("_optimizer", "_loss")
_MAX_COLUMNS = 1_000_000
_MAX_JOBS = 1024


def is_sklearn(value: object) -> bool:
    """Whether this is an estimator or a tree of scikit-learn (without importing it)."""
    return type(value).__module__.partition(".")[0] == "sklearn"


def write_sklearn(estimator: Any, where: str, writer: ValueWriter) -> dict[str, Any]:
    """Node of the header for an estimator; its arrays go to the writer.

    Raises
    ------
    DataError
        If its class or an attribute cannot be in a file; the message names it.
    """
    import sklearn

    kind = type(estimator)
    home = ".".join(kind.__module__.split(".")[:2])
    if kind.__name__ not in CLASSES.get(home, ()):
        known = ", ".join(name for names in CLASSES.values() for name in names)
        raise DataError(
            f"{where} is a {kind.__name__}, which a model file cannot hold; those it can hold are "
            f"{known}"
        )
    parameters = estimator.get_params(deep=False)
    as_made = vars(kind(**parameters))
    learned = {n: v for n, v in vars(estimator).items() if n not in as_made and n not in _LEFT_OUT}
    histograms = kind.__name__ in BOOSTED and "_predictors" in learned
    boosting = {"boosting": write_boosting(estimator, where, writer)} if histograms else {}
    if kind.__name__ in BOOSTED:
        learned = plain_part(learned, where)
    if kind.__name__ in NEIGHBOURS:
        learned = rows_and_answers(estimator, learned, where)
    if kind.__name__ == "OneHotEncoder" and learned.get("_infrequent_enabled"):
        raise DataError(
            f"{where} is a OneHotEncoder that groups rare categories, which a model file cannot "
            "hold: leave out min_frequency and max_categories"
        )
    return {
        "class": f"{home}.{kind.__name__}",
        "version": sklearn.__version__,
        "parameters": {n: writer(v, f"{where}.{n}") for n, v in parameters.items()},
        "learned": {n: writer(v, f"{where}.{n}") for n, v in learned.items()},
        **boosting,
    }


def read_sklearn(node: dict[str, Any], reader: ValueReader) -> Any:
    """Undo :func:`write_sklearn`, checking everything."""
    home, _, name = header_value(node, "class", str).rpartition(".")
    if name not in CLASSES.get(home, ()):
        raise CorruptModelError(f"it holds a {home}.{name}, which is none of the known estimators")
    kind = getattr(importlib.import_module(home), name)
    parameters = reader.entries(header_value(node, "parameters", dict))
    if not set(parameters) <= set(kind._get_param_names()):
        raise CorruptModelError(f"parameters are not those of {name}")
    jobs = parameters.get("n_jobs")
    if jobs is not None and not (type(jobs) is int and abs(jobs) <= _MAX_JOBS):
        raise CorruptModelError(f"{name} asks for {jobs} processes")
    estimator = kind(**parameters)
    learned = reader.entries(header_value(node, "learned", dict))
    if name in NEIGHBOURS:
        fit_again(estimator, learned, name)
        return estimator
    for attribute, value in learned.items():
        taken = attribute in parameters or attribute.startswith("__") or hasattr(kind, attribute)
        if taken or attribute in _LEFT_OUT or not attribute.isidentifier():
            raise CorruptModelError(f"{name} learns no {attribute!r}")
        setattr(estimator, attribute, value)
    if name in BOOSTED and "boosting" in node:
        read_boosting(header_value(node, "boosting", dict), estimator, reader)
    elif name in BOOSTED and learned:
        raise CorruptModelError(f"a {name} has no trees")
    if name == "OneHotEncoder":
        check_one_hot(estimator)
    _check_trees(estimator, name)
    return estimator


def _check_trees(estimator: Any, name: str) -> None:
    """Check what compiled code takes for granted of trees and their ensembles."""
    learned = vars(estimator)
    if "tree_" in learned:
        if not is_tree(estimator.tree_):
            raise CorruptModelError(f"the tree of a {name} is none")
        if not _is_same(learned.get("n_features_in_"), int(estimator.tree_.n_features)):
            raise CorruptModelError(f"the tree of a {name} is one of other features")
    boosted = name.startswith("GradientBoosting")
    if boosted or name.startswith(("RandomForest", "ExtraTreesC", "ExtraTreesR")):
        trees = learned.get("estimators_")
        if trees is None:  # not fitted
            return
        if boosted:
            fits = isinstance(trees, np.ndarray) and trees.dtype == object and trees.ndim == 2
            if not fits or not _is_same(learned.get("n_trees_per_iteration_"), trees.shape[1]):
                raise CorruptModelError(f"the trees of a {name} are not as many as it says")
            trees = trees.reshape(-1).tolist()
            estimator._loss = estimator._get_loss(sample_weight=None)
        if not isinstance(trees, list) or not trees:
            raise CorruptModelError(f"a {name} has no trees")
        for tree in trees:
            part = vars(tree) if is_sklearn(tree) else {}
            if "tree_" not in part:
                raise CorruptModelError(f"a {name} holds something that is no tree")
            if not _is_same(part["n_features_in_"], learned.get("n_features_in_")):
                raise CorruptModelError(f"a {name} holds a tree of other features")
            # It makes room for as many probabilities as it says.
            n_classes = learned.get("n_classes_")
            if n_classes is not None and not boosted and n_classes != tree.tree_.max_n_classes:
                raise CorruptModelError(f"a {name} holds a tree of other classes")
            if boosted and (tree.tree_.n_outputs != 1 or tree.tree_.max_n_classes != 1):
                raise CorruptModelError(f"a {name} holds a tree that is no regression")


def _is_same(value: object, wanted: object) -> bool:
    return type(value) is int and value == wanted


def check_prediction(
    estimator: Any, n_features: int | None = None, *, classify: bool = False
) -> None:
    """Refuse an estimator of a file that cannot predict one row.

    Parameters
    ----------
    estimator : fitted estimator of scikit-learn
    n_features : int, optional
        Columns of its input; by default what it says itself.
    classify : bool
        Whether it must give the probabilities of two classes.
    """
    if not is_sklearn(estimator) or not hasattr(estimator, "predict"):
        raise CorruptModelError("a model inside is none of scikit-learn")
    if n_features is None:
        n_features = estimator.n_features_in_
    if type(n_features) is not int or not 1 <= n_features <= _MAX_COLUMNS:
        raise CorruptModelError(f"a model inside has {n_features} columns")
    row = possible_row(estimator, n_features)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a model that knows its columns by name
        answer = estimator.predict_proba(row) if classify else estimator.predict(row)
    prediction = np.asarray(answer)
    if prediction.shape != ((1, 2) if classify else (1,)) or prediction.dtype.kind not in "iufb":
        raise CorruptModelError("a model inside does not predict one number for a row")
    if not np.isfinite(prediction).all():
        raise CorruptModelError("a model inside predicts a number that is not finite")

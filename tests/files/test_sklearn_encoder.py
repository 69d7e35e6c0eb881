"""Encoders and imputers of scikit-learn in files: the same columns, and no index beyond them."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

from trellis.errors import CorruptModelError, DataError
from trellis.files.container import read_container, write_container
from trellis.files.sklearn_state import check_prediction
from trellis.files.values import ValueReader, ValueWriter

NUMBERS = np.array([[1.0, 5.0], [2.0, np.nan], [3.0, 5.0], [1.0, 7.0]])
WORDS = np.array([["a", 3], ["b", 1], ["c", 3], ["a", None]], object)
TEXT = np.array([["a", "x"], ["b", "y"], ["c", "x"]])


def through_a_file(value: Any, path: Any) -> Any:
    writer = ValueWriter()
    node = writer(value, "m")
    write_container(path, {"m": node}, writer.arrays)
    header, arrays = read_container(path)
    return ValueReader(arrays)(header["m"])


@pytest.mark.parametrize("data", [NUMBERS, NUMBERS[::2].astype(np.int32), WORDS, TEXT])
@pytest.mark.parametrize(
    "model",
    [
        OneHotEncoder(),
        OneHotEncoder(drop="first", sparse_output=False),
        OneHotEncoder(drop="if_binary", handle_unknown="ignore", dtype=np.float32),
        OneHotEncoder(dtype="int8"),
        OrdinalEncoder(),
        OrdinalEncoder(dtype=np.float32, handle_unknown="use_encoded_value", unknown_value=-1),
        OrdinalEncoder(encoded_missing_value=-5, min_frequency=2),
        SimpleImputer(strategy="most_frequent"),
        SimpleImputer(strategy="most_frequent", add_indicator=True, keep_empty_features=True),
    ],
    ids=repr,
)
def test_columns_are_the_same(model: Any, data: Any, tmp_path: Any) -> None:
    if data is TEXT and isinstance(model, SimpleImputer):
        data = data.astype(object)  # what it takes
    if data is WORDS and isinstance(model, SimpleImputer):
        model.set_params(missing_values=None)
    model.fit(data)
    loaded = through_a_file(model, tmp_path / "m")
    assert repr(loaded) == repr(model)
    one, other = loaded.transform(data), model.transform(data)
    assert type(one) is type(other) and one.dtype == other.dtype
    one, other = (t.toarray() if sparse.issparse(t) else t for t in (one, other))
    if one.dtype == object:
        assert one.tolist() == other.tolist()
    else:
        assert one.tobytes() == other.tobytes()
    names = [m.get_feature_names_out().tolist() for m in (loaded, model)]
    assert names[0] == names[1]
    through_a_file(loaded, tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "m").read_bytes()


@pytest.mark.parametrize("strategy", ["mean", "median", "constant"])
def test_imputers_of_numbers(strategy: str, tmp_path: Any) -> None:
    model = SimpleImputer(strategy=strategy, add_indicator=True).fit(NUMBERS)
    loaded = through_a_file(model, tmp_path / "m")
    assert loaded.transform(NUMBERS).tobytes() == model.transform(NUMBERS).tobytes()


@pytest.mark.parametrize("encoder", [OneHotEncoder(), OrdinalEncoder()])
def test_a_model_that_refuses_other_categories(encoder: Any, tmp_path: Any) -> None:
    """It is tried with categories that it knows."""
    y = np.arange(3.0)
    words = np.array([["a", 3], ["b", 1], ["b", None]], object)
    imputed = make_pipeline(SimpleImputer(add_indicator=True), clone(encoder), Ridge())
    target = TransformedTargetRegressor(
        make_pipeline(clone(encoder), Ridge()), transformer=StandardScaler()
    )
    for model, data in (
        (make_pipeline(clone(encoder), Ridge()), words[:2]),
        (make_pipeline(clone(encoder), Ridge()), NUMBERS[::2].astype(int)),
        (make_pipeline(OneHotEncoder(), Ridge()), TEXT),
        (imputed, NUMBERS[:3]),
        (target, NUMBERS[::2]),
    ):
        model.fit(data, y[: len(data)])
        loaded = through_a_file(model, tmp_path / "m")
        check_prediction(loaded)
        assert loaded.predict(data).tobytes() == model.predict(data).tobytes()


def test_rare_categories_are_refused() -> None:
    model = OneHotEncoder(min_frequency=2).fit(NUMBERS)
    message = "m is a OneHotEncoder that groups rare categories, which a model file cannot hold"
    with pytest.raises(DataError, match=re.escape(message)):
        ValueWriter()(model, "m")


def test_types_of_text_are_refused() -> None:
    with pytest.raises(DataError, match=re.escape("m.dtype is the type str, which a model file")):
        ValueWriter()(OrdinalEncoder(dtype=np.str_), "m")


def test_types_that_are_not_known() -> None:
    for name in ("datetime64", "U3", "V8", "os"):
        with pytest.raises(CorruptModelError, match="header entry 'dtype' is"):
            ValueReader({})({"dtype": name, "class": True})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda n, a: n.update(_n_features_outs=[2, 9]),
            "makes columns that its categories do not",
        ),
        (lambda n, a: n.update(_n_features_outs=[2.0, 2.0]), "makes columns that its categories"),
        (lambda n, a: n.pop("_n_features_outs"), "makes columns that its categories do not"),
        (lambda n, a: n.update(n_features_in_=1), "does not have categories for each column"),
        (lambda n, a: n.pop("n_features_in_"), "does not have categories for each column"),
        (lambda n, a: n.update(categories_=3), "does not have categories for each column"),
        (lambda n, a: n.update(categories_=[1, 2]), "has categories that do not ascend"),
        (lambda n, a: n.update(_infrequent_enabled=True), "groups rare categories"),
        (lambda n, a: n.pop("_infrequent_enabled"), "groups rare categories"),
        (
            lambda n, a: n["_drop_idx_after_grouping"].update(objects=[3, 0]),
            "drops a category that there is not",
        ),
        (
            lambda n, a: n["_drop_idx_after_grouping"].update(objects=[-1, 0]),
            "drops a category that there is not",
        ),
        (
            lambda n, a: n["_drop_idx_after_grouping"].update(objects=["0", 0]),
            "drops a category that there is not",
        ),
        (
            lambda n, a: n["_drop_idx_after_grouping"].update(objects=[0], shape=[1]),
            "does not drop a category of each column",
        ),
        (lambda n, a: n.update(_drop_idx_after_grouping=0), "does not drop a category of each"),
        (lambda n, a: a["m.categories_[0]"].sort(), None),
        (lambda n, a: a["m.categories_[0]"].put([0, 1], [3, 1]), "that do not ascend"),
        (lambda n, a: a["m.categories_[0]"].put(1, np.nan), "that do not ascend"),
        (lambda n, a: a.update({"m.categories_[0]": np.zeros(0)}), "that do not ascend"),
        (lambda n, a: a.update({"m.categories_[0]": np.eye(3)}), "that do not ascend"),
    ],
)
def test_a_one_hot_encoder_is_checked(change: Any, message: str | None) -> None:
    writer = ValueWriter()
    model = OneHotEncoder(drop="first", handle_unknown="ignore").fit(NUMBERS)
    node = writer(model, "m")
    arrays = {name: np.array(array) for name, array in writer.arrays.items()}
    change(node["sklearn"]["learned"], arrays)
    if message is None:
        ValueReader(arrays)(node).transform(NUMBERS)
        return
    with pytest.raises(CorruptModelError, match=message):
        ValueReader(arrays)(node)


@pytest.mark.parametrize("values", [[2, 1], [1, "a"], [1, None, 2], [None, 1]])
def test_objects_that_do_not_ascend(values: list[Any]) -> None:
    writer = ValueWriter()
    node = writer(OneHotEncoder().fit(np.array([[1], [2]], object)), "m")
    node["sklearn"]["learned"]["categories_"][0].update(objects=values, shape=[len(values)])
    node["sklearn"]["learned"]["_n_features_outs"] = [len(values)]
    with pytest.raises(CorruptModelError, match="that do not ascend"):
        ValueReader(writer.arrays)(node)


def test_text_is_in_order_unless_it_is_of_objects(tmp_path: Any) -> None:
    given = OneHotEncoder(categories=[["low", "high"], ["x", "y"]]).fit(WORDS_OF_TWO)
    loaded = through_a_file(given, tmp_path / "m")
    assert (loaded.transform(WORDS_OF_TWO) != given.transform(WORDS_OF_TWO)).nnz == 0
    found = OneHotEncoder().fit(WORDS_OF_TWO.astype(str))
    assert through_a_file(found, tmp_path / "m").categories_[0].tolist() == ["high", "low"]
    found.categories_[0] = found.categories_[0][::-1].copy()
    with pytest.raises(CorruptModelError, match="that do not ascend"):
        through_a_file(found, tmp_path / "m")


WORDS_OF_TWO = np.array([["low", "x"], ["high", "y"]], object)

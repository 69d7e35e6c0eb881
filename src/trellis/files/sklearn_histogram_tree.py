"""Boosted histogram trees of scikit-learn, as columns that are checked before they become trees.

The prediction of row x is what the loss makes of

    f_k(x) = b_k + sum_t v_tk(x),

with a baseline b_k and, for each tree t of output k, the value v_tk(x) of the leaf that x comes to.
Node i of a tree is a leaf, or sends x to one of two children: by a threshold of feature f_i, by a
set of categories of f_i (256 bits), or to a fixed side where the feature is missing. Compiled code
follows children and reads features and sets without looking at bounds, so trees are made only if

- each node but the first of its tree is the child of exactly one node before it in the same tree:
  then every way down ends in a leaf;
- f_i is a feature of the input;
- a set of categories is one of those of its tree, and its feature one that has categories.

The nodes of all trees are stored one after the other, one array for each field by its name. Which
fields there are is up to the version of scikit-learn; a file of other fields is refused.

The mapping of values to bins is left out: only training needs it, and training makes it anew. Of
features with categories, the categories are kept, and the encoder is made from them again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from trellis.errors import CorruptModelError, DataError
from trellis.files.stored import check_range, header_value, take

if TYPE_CHECKING:
    from trellis.files.values import ValueReader, ValueWriter

__all__ = ["BOOSTED", "plain_part", "read_boosting", "write_boosting"]

BOOSTED = ("HistGradientBoostingClassifier", "HistGradientBoostingRegressor")
"""The classes that hold such trees."""

# Learned attributes that are values of their own, by type; scores are those of early stopping.
_PLAIN: dict[str, Any] = {
    "_fitted_with_sw": bool,
    "_n_features": int,
    "_random_seed": np.uint64,
    "_use_validation_data": bool,
    "classes_": np.ndarray,
    "do_early_stopping_": bool,
    "feature_names_in_": np.ndarray,
    "n_features_in_": int,
    "n_trees_per_iteration_": int,
    "train_score_": np.ndarray,
    "validation_score_": np.ndarray,
}
_NEEDED = ("_n_features", "do_early_stopping_", "n_features_in_", "n_trees_per_iteration_")
# Those that are written in a form of their own, or made again, and what scoring leaves behind.
_MADE = (
    "_baseline_prediction", "_bin_mapper", "_feature_subsample_rng", "_is_categorical_remapped",
    "_label_encoder", "_loss", "_predictors", "_preprocessor", "_raw_predict", "_scorer",
    "is_categorical_",
)  # fmt: skip
_FLAGS = ("is_leaf", "missing_go_to_left", "is_categorical")
_BITSETS = ("binned_left_cat_bitsets", "raw_left_cat_bitsets")
_WORDS = 8  # of 32 bits: a set of at most 256 categories
_MAX_CATEGORIES = 255
_MAX_COLUMNS = 1_000_000


# ------------------------------------------------------------------------- writing


def plain_part(learned: dict[str, Any], where: str) -> dict[str, Any]:
    """The learned attributes that are written as all others are.

    Raises
    ------
    DataError
        If there is an attribute that is not known here: predictions might depend on it.
    """
    for name in sorted(learned.keys() - _PLAIN.keys() - set(_MADE)):
        raise DataError(
            f"{where}.{name} is not known here, so a model file cannot hold {where}: fit it to the "
            "end, with a version of scikit-learn that this Trellis knows"
        )
    plain = {name: learned[name] for name in _PLAIN if name in learned}
    return {n: bool(v) if isinstance(v, np.bool_) else v for n, v in plain.items()}


def write_boosting(estimator: Any, where: str, writer: ValueWriter) -> dict[str, Any]:
    """Node of the header for the trees of a fitted estimator; their arrays go to the writer."""
    where = f"{where}.trees"
    trees = [tree for iteration in estimator._predictors for tree in iteration]
    nodes = np.concatenate([tree.nodes for tree in trees])
    arrays = {name: np.ascontiguousarray(nodes[name]) for name in _fields(nodes.dtype)}
    arrays |= {n: np.concatenate([getattr(tree, n) for tree in trees]) for n in _BITSETS}
    arrays["n_nodes"] = np.array([len(tree.nodes) for tree in trees], np.int64)
    arrays["n_bitsets"] = np.array([len(tree.raw_left_cat_bitsets) for tree in trees], np.int64)
    arrays["baseline"] = estimator._baseline_prediction
    if estimator.is_categorical_ is not None:
        columns, categories = _categories(estimator, where.removesuffix(".trees"))
        arrays["categorical"] = columns
        arrays["n_categories"] = np.array([len(c) for c in categories], np.int64)
        arrays["categories"] = np.concatenate(categories)
    writer.arrays |= {f"{where}.{name}": array for name, array in arrays.items()}
    state = estimator._feature_subsample_rng.bit_generator.state
    if state["bit_generator"] != "PCG64":
        raise DataError(
            f"{where} has random numbers of {state['bit_generator']}, which a model file cannot "
            "hold; fit it with a version of scikit-learn that this Trellis knows"
        )
    numbers = [*(state["state"][n] for n in ("state", "inc")), state["has_uint32"]]
    return {
        "arrays": where,
        "fields": _fields(nodes.dtype),
        "categories": estimator.is_categorical_ is not None,
        "random": [int(n) for n in (*numbers, state["uinteger"])],
    }


def _fields(dtype: Any) -> dict[str, str]:
    """The type of each field of a node."""
    return {name: dtype[name].str.lstrip("<|=") for name in dtype.names}


def _categories(estimator: Any, where: str) -> tuple[NDArray[Any], list[NDArray[Any]]]:
    """Columns that have categories, and the numbers that stand for them in each column."""
    preprocessor = estimator._preprocessor
    categories = preprocessor.named_transformers_["encoder"].categories_
    kinds = {c.dtype for c in categories}
    if (
        hasattr(preprocessor, "feature_names_in_")
        or len(kinds) > 1
        or kinds.pop().kind not in "iuf"
    ):
        raise DataError(
            f"{where} was fitted to a table with columns of categories, which a model file cannot "
            "hold: fit it to an array of numbers and name these columns by number in "
            "categorical_features, or put an OrdinalEncoder before it"
        )
    return np.flatnonzero(estimator.is_categorical_).astype(np.int64), categories


# ------------------------------------------------------------------------- reading


def read_boosting(node: dict[str, Any], estimator: Any, reader: ValueReader) -> None:
    """Undo :func:`write_boosting` for an estimator that has its other attributes; check all."""
    from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE

    name = type(estimator).__name__
    n_features, n_outputs = _checked_plain(estimator, name)
    if header_value(node, "fields", dict) != _fields(PREDICTOR_RECORD_DTYPE):
        raise CorruptModelError(
            f"a {name} was written with another version of scikit-learn, whose trees are different"
        )
    where = header_value(node, "arrays", str)
    arrays = {n.removeprefix(f"{where}."): array for n, array in reader.arrays.items()}
    _restore_loss(estimator, name)
    _restore_random(estimator, node)
    n_encoded = 0
    if header_value(node, "categories", bool):
        n_encoded = _restore_encoder(estimator, arrays, n_features)
    has_categories = np.arange(n_features) < n_encoded  # the encoder puts them first
    _restore_mapper(estimator, arrays, has_categories)
    estimator._baseline_prediction = take(arrays, "baseline", np.float64, (1, n_outputs))
    trees = _trees(arrays, PREDICTOR_RECORD_DTYPE, has_categories)
    if len(trees) % n_outputs:
        raise CorruptModelError(f"the trees of a {name} are not as many as it says")
    starts = range(0, len(trees), n_outputs)
    estimator._predictors = [trees[start : start + n_outputs] for start in starts]


def _checked_plain(estimator: Any, name: str) -> tuple[int, int]:
    """How many features and outputs there are."""
    learned = {n: v for n, v in vars(estimator).items() if n in _PLAIN}
    # One that is not known could make it take its input for bins that were checked already.
    unknown = vars(estimator).keys() - estimator.get_params(deep=False).keys() - learned.keys()
    wrong = [n for n, v in learned.items() if type(v) is not _PLAIN[n]]
    for attribute in sorted(unknown) + wrong:
        raise CorruptModelError(f"{name} learns no {attribute!r} of this kind")
    for attribute in _NEEDED:
        if attribute not in learned:
            raise CorruptModelError(f"a {name} has no {attribute!r}")
    n_features, n_outputs = learned["n_features_in_"], learned["n_trees_per_iteration_"]
    if not 1 <= n_features <= _MAX_COLUMNS or learned["_n_features"] != n_features:
        raise CorruptModelError(f"a {name} has {n_features} columns")
    n_classes = None
    if name.endswith("Classifier"):
        classes = learned.get("classes_")
        n_classes = len(classes) if classes is not None and classes.ndim == 1 else 0
    fits = {None: n_outputs == 1, 0: False, 1: n_outputs == 1, 2: n_outputs == 1}
    if not fits.get(n_classes, n_outputs == n_classes):
        raise CorruptModelError(f"a {name} has {n_outputs} outputs, which are not its classes")
    return n_features, n_outputs


def _restore_loss(estimator: Any, name: str) -> None:
    """The loss, whose link function makes predictions, and the scorer of early stopping."""
    from sklearn.metrics import check_scoring

    if type(estimator.loss) is not str:
        raise CorruptModelError(f"a {name} has a loss that has no name")
    try:
        estimator._loss = estimator._get_loss(sample_weight=None)
    except (KeyError, TypeError, ValueError):
        raise CorruptModelError(f"a {name} has a loss that is not known") from None
    estimator._scorer = None
    scoring = estimator.scoring
    if estimator.do_early_stopping_ and scoring is not None and type(scoring) is not str:
        raise CorruptModelError(f"a {name} has scores that have no name")
    if estimator.do_early_stopping_ and scoring != "loss":
        estimator._scorer = check_scoring(estimator, scoring)


def _restore_random(estimator: Any, node: dict[str, Any]) -> None:
    """The random numbers that choose features where training goes on."""
    numbers = header_value(node, "random", list, items=int)
    limits = (2**128, 2**128, 2, 2**32)
    if len(numbers) != len(limits) or any(
        not 0 <= n < limit for n, limit in zip(numbers, limits, strict=True)
    ):
        raise CorruptModelError("random numbers are in a state that there is not")
    state, increment, has_uint32, uinteger = numbers
    bits = np.random.PCG64(0)
    bits.state = {
        "bit_generator": "PCG64",
        "state": {"state": state, "inc": increment},
        "has_uint32": has_uint32,
        "uinteger": uinteger,
    }
    estimator._feature_subsample_rng = np.random.Generator(bits)


def _restore_encoder(estimator: Any, arrays: dict[str, NDArray[Any]], n_features: int) -> int:
    """Make the encoder of categories again; give how many columns have some."""
    columns = take(arrays, "categorical", np.int64, (None,))
    check_range(columns, 0, n_features, "columns of categories")
    counts = take(arrays, "n_categories", np.int64, columns.shape)
    stored = arrays.get("categories")
    if stored is None or stored.ndim != 1 or stored.dtype.kind not in "iuf":
        raise CorruptModelError("categories are not stored as numbers")
    check_range(counts, 1, _MAX_CATEGORIES + 2, "numbers of categories")  # NaN may be one
    if not len(columns) or (np.diff(columns) <= 0).any() or counts.sum() != len(stored):
        raise CorruptModelError("columns of categories are not in order, or not with all of them")
    categories = np.split(stored, np.cumsum(counts)[:-1])
    for one in categories:
        numbers = one[: len(one) - int(np.isnan(one[-1]))]
        if len(numbers) > _MAX_CATEGORIES or not (numbers[1:] > numbers[:-1]).all():
            raise CorruptModelError("categories are not in order, or too many")
    if hasattr(estimator, "feature_names_in_"):
        raise CorruptModelError("an array with categories has no names of columns")
    # It looks at one row for the columns, and the encoder at the categories that it is given.
    row = np.zeros((1, n_features), stored.dtype)
    given, estimator.categorical_features = estimator.categorical_features, columns
    try:
        estimator._preprocess_X(row, reset=True)
    finally:
        estimator.categorical_features = given
    encoder = estimator._preprocessor.named_transformers_["encoder"]
    encoder.set_params(categories=categories).fit(row[:, columns])
    encoder.set_params(categories="auto")
    return len(columns)


def _restore_mapper(
    estimator: Any, arrays: dict[str, NDArray[Any]], has_categories: NDArray[np.bool_]
) -> None:
    """Which features have categories, and how many: all that predictions ask a mapper for."""
    from sklearn.ensemble._hist_gradient_boosting.binning import _BinMapper

    thresholds: list[NDArray[Any] | None] = [None] * len(has_categories)
    if has_categories.any():
        encoder = estimator._preprocessor.named_transformers_["encoder"]
        for k, categories in enumerate(encoder.categories_):
            known = len(categories) - int(np.isnan(categories[-1]))
            thresholds[k] = np.arange(known, dtype=np.float64)
    else:
        estimator._preprocessor = None
        estimator.is_categorical_ = None
        estimator._is_categorical_remapped = None
    mapper = estimator._bin_mapper = _BinMapper()
    mapper.is_categorical_ = has_categories.astype(np.uint8)
    mapper.bin_thresholds_ = thresholds


def _trees(
    arrays: dict[str, NDArray[Any]], dtype: Any, has_categories: NDArray[np.bool_]
) -> list[Any]:
    """The trees whose nodes are as they should be."""
    from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor

    n_nodes = take(arrays, "n_nodes", np.int64, (None,))
    n_bitsets = take(arrays, "n_bitsets", np.int64, n_nodes.shape)
    columns = {
        name: take(arrays, name, kind, (None,), finite=name == "value")
        for name, kind in _fields(dtype).items()
    }
    nodes = np.zeros(len(columns["value"]), dtype)
    for name, column in columns.items():
        if len(column) != len(nodes):
            raise CorruptModelError("the nodes of trees have fields of different lengths")
        nodes[name] = column
    sets = [take(arrays, n, np.uint32, (None, _WORDS)) for n in _BITSETS]
    check_range(n_nodes, 1, len(nodes) + 1, "numbers of nodes")
    check_range(n_bitsets, 0, len(sets[0]) + 1, "numbers of sets of categories")
    if not len(n_nodes) or n_nodes.sum() != len(nodes):
        raise CorruptModelError("the trees do not have the nodes that there are")
    if len(sets[1]) != len(sets[0]) or n_bitsets.sum() != len(sets[0]):
        raise CorruptModelError("the trees do not have the sets of categories that there are")
    _check_nodes(nodes, n_nodes, n_bitsets, has_categories)
    ends, ends_of_sets = np.cumsum(n_nodes)[:-1], np.cumsum(n_bitsets)[:-1]
    parts = zip(
        np.split(nodes, ends), *(np.split(some, ends_of_sets) for some in sets), strict=True
    )
    # Copies: compiled code wants to write, and what was read may be a part of the file.
    return [TreePredictor(*(np.array(part, order="C") for part in tree)) for tree in parts]


def _check_nodes(
    nodes: NDArray[Any],
    n_nodes: NDArray[np.int64],
    n_bitsets: NDArray[np.int64],
    has_categories: NDArray[np.bool_],
) -> None:
    """Check what compiled code takes for granted of the nodes of all trees."""
    for flag in _FLAGS:
        check_range(nodes[flag], 0, 2, f"{flag} of a tree")
    inner = np.flatnonzero(nodes["is_leaf"] == 0)
    first = np.repeat(np.cumsum(n_nodes) - n_nodes, n_nodes)[inner]  # of the same tree
    length = np.repeat(n_nodes, n_nodes)[inner]
    below = [nodes[side][inner].astype(np.int64) for side in ("left", "right")]
    if any(((first + child <= inner) | (child >= length)).any() for child in below):
        raise CorruptModelError("a tree has a child that does not come after its node")
    children = np.concatenate([first + child for child in below])
    one_each = len(children) == len(nodes) - len(n_nodes)
    if not one_each or len(np.unique(children)) < len(children):
        raise CorruptModelError("a tree has a node that is not the child of one node before it")
    features = nodes["feature_idx"][inner]
    check_range(features, 0, len(has_categories), "features of a tree")
    by_set = nodes["is_categorical"][inner] != 0
    if not has_categories[features[by_set]].all():
        raise CorruptModelError("a tree asks for a category of a feature that has none")
    available = np.repeat(n_bitsets, n_nodes)[inner]
    if (nodes["bitset_idx"][inner] >= available)[by_set].any():
        raise CorruptModelError("a tree asks for a set of categories that it does not have")
    if np.isnan(nodes["num_threshold"]).any():
        raise CorruptModelError("a tree has a threshold that is no number")

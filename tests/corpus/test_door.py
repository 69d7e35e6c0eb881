"""The door: every accepted form of samples, and a clear refusal of every other."""

from __future__ import annotations

import collections
import decimal
import math
import numbers
import re
import types
from collections.abc import Iterable, Mapping, Set
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from trellis.corpus import Corpus, as_corpus
from trellis.errors import DataError


def attributes(corpus):
    """For each position the list of (name, value)."""
    f = corpus.features
    values = np.ones(len(f.indices)) if f.values is None else f.values
    return [
        [(f.names[f.indices[p]], float(values[p])) for p in range(*f.indptr[t : t + 2])]
        for t in range(corpus.n_positions)
    ]


def test_dicts():
    corpus = as_corpus(
        [
            [{"w": "the", "cap": False, "ok": np.True_, "len": 3}, {}],
            ({"w": "", "len": np.float32(0.5), "half": Fraction(1, 2), "zero": 0},),
            [],
        ]
    )
    assert corpus.lengths.tolist() == [2, 1, 0]
    assert attributes(corpus) == [
        [("w=the", 1), ("ok", 1), ("len", 3)],
        [],
        [("w=", 1), ("len", 0.5), ("half", 0.5), ("zero", 0)],
    ]
    assert not corpus.columns
    assert corpus.labels is None


class Shouted(str):
    """A string that is shown in another way than it compares."""

    __slots__ = ()

    def __str__(self):
        return self.upper()


class Float(float):
    """A number of a class of its own."""


class Alike:
    """Equal to the string «a» without being one."""

    def __eq__(self, other):
        return other == "a"

    def __hash__(self):
        return hash("a")

    def __repr__(self):
        return "Alike()"


def straightforward(samples):
    """Names, rows of numbers of names, and rows of values, by the rules one after the other."""
    names, rows, values = [], [], []

    def row_of(position, place):
        if isinstance(position, Mapping):
            for key, value in position.items():
                if not isinstance(key, str):
                    raise DataError(f"{place}: feature key {key!r} is no string")
                if isinstance(value, str):
                    yield f"{key}={value}", 1.0
                elif isinstance(value, (bool, np.bool_)):
                    if value:
                        yield key, 1.0
                elif isinstance(value, numbers.Real):
                    number = math.inf if value is HUGE else float(value)
                    if not np.isfinite(np.float32(number)):
                        raise DataError(
                            f"{place}: feature {key!r} is {number}; must be a finite float32"
                        )
                    yield key, number
                else:
                    raise DataError(
                        f"{place}: feature {key!r} is {value!r}; "
                        "expected a string, a bool or a number"
                    )
        elif isinstance(position, Iterable) and not isinstance(position, (str, bytes)):
            for name in sorted(position, key=str) if isinstance(position, Set) else position:
                if not isinstance(name, str):
                    raise DataError(f"{place}: attribute {name!r} is not a string")
                yield name, 1.0
        else:
            raise DataError(
                f"{place} is {position!r}; expected a dict of features or a list of strings"
            )

    for i, sample in enumerate(samples):
        for t, position in enumerate(sample):
            row = list(row_of(position, f"sample {i}, position {t}"))
            for name, _ in row:
                if name not in names:
                    names.append(name)
            rows.append([names.index(name) for name, _ in row])
            values += [number for _, number in row]
    return names, rows, np.array(values, np.float32)


KEYS = ["a", "b", "a=b", "", "=", "b=", Shouted("a"), Shouted("a=b")]
STRINGS = ["a", "b", "b=c", "c", "", "=", Shouted("b"), np.str_("c")]
NUMBERS = [0, 1, 2, 0.0, -0.0, 1.0, 0.5, -3, 1 + 1e-12, True, False, np.True_, np.False_, 10**30]
NUMBERS += [np.float32(0.5), np.float64(-2), np.int64(3), np.uint8(1), Float(1), Float(7)]
NUMBERS += [Fraction(1, 2), Fraction(0)]
HUGE = 10**5000
REFUSED = [None, math.nan, -math.inf, 1e39, HUGE, np.float32(np.nan), np.float64(1e39), b"a"]
REFUSED += [decimal.Decimal("0.5"), 1j, ["a"], {"a": 1}, Alike(), Float(math.nan)]
NAMES = st.lists(st.sampled_from(["a", "b", "a=b", "a=b=c", "b=", "=a", *STRINGS]), max_size=4)


def positions(keys, values, names):
    dicts = st.dictionaries(st.sampled_from(keys), st.sampled_from(values), max_size=5)
    kinds = [dict, collections.OrderedDict, types.MappingProxyType, collections.UserDict]
    listed = names.flatmap(lambda n: st.sampled_from([n, tuple(n), set(n), dict.fromkeys(n, 1)]))
    return st.one_of(
        dicts, dicts, st.builds(lambda k, d: k(d), st.sampled_from(kinds), dicts), listed
    )


GOOD = positions(KEYS, STRINGS + NUMBERS, NAMES)
BAD = st.one_of(
    positions([*KEYS, 3, None, Alike()], STRINGS + NUMBERS + REFUSED, NAMES),
    st.lists(st.sampled_from(["a", "b", Alike(), 3, None, b"a"]), max_size=3),
    st.sampled_from(["a", b"a", 3, None, Alike()]),
)


def samples_of(position):
    # The first decides that these are attributes.
    return st.lists(st.lists(position, max_size=4), max_size=4).map(lambda s: [[{}], *s])


@given(samples_of(GOOD))
def test_attributes_by_the_rules(samples):
    names, rows, values = straightforward(samples)
    features = as_corpus(samples).features
    assert list(features.names) == names
    assert features.indptr.tolist() == np.cumsum([0, *map(len, rows)]).tolist()
    assert features.indices.tolist() == [number for row in rows for number in row]
    assert features.indptr.dtype == np.int64 and features.indices.dtype == np.int32
    assert (features.values is None) == (values == 1).all()
    if features.values is not None:
        assert features.values.dtype == np.float32
        assert features.values.tobytes() == values.tobytes()


@given(samples_of(st.one_of(GOOD, GOOD, BAD)))
def test_refusals_by_the_rules(samples):
    try:
        straightforward(samples)
    except DataError as error:
        with pytest.raises(DataError, match=f"^{re.escape(str(error))}$"):
            as_corpus(samples)
    else:
        as_corpus(samples)


def test_one_attribute_in_many_words():
    # As a whole, from the first «=» on and from the second, in any order.
    ways = [["a=b=c"], {"a": "b=c"}, {"a=b": "c"}, {"a=b=c": True}, {"a=b=c": 1}]
    for k in range(len(ways)):
        features = as_corpus([ways[k:] + ways[:k]]).features
        assert features.names == ["a=b=c"]
        assert features.indices.tolist() == [0] * len(ways)


def test_attributes_given_once():
    corpus = as_corpus([[{"a": "b"}, (name for name in ["a=b", "c"])]])
    assert attributes(corpus) == [[("a=b", 1)], [("a=b", 1), ("c", 1)]]


def test_indicators_need_no_values():
    assert as_corpus([[{"w": "the", "cap": True, "one": 1}]]).features.values is None
    assert as_corpus([[{"w": "the", "len": 2}]]).features.values.dtype == np.float32


def test_the_largest_numbers():
    largest = float(np.finfo(np.float32).max)
    rounded = np.nextafter(2.0**128 * (1 - 2.0**-25), 0)  # above the largest, but rounds to it
    for X in ([[{"a": rounded}]], [np.array([[rounded]])]):
        assert as_corpus(X).features.values.tolist() == [largest]
    for X in ([[{"a": np.nextafter(rounded, np.inf)}]], [np.array([[-(2.0**128)]])]):
        with pytest.raises(DataError, match="must be a finite float32"):
            as_corpus(X)


def test_lists_of_strings():
    corpus = as_corpus([[["a", "b"], ("b",)], [[], np.array(["c", "a"])]])
    assert attributes(corpus) == [
        [("a", 1), ("b", 1)],
        [("b", 1)],
        [],
        [("c", 1), ("a", 1)],
    ]
    assert corpus.features.values is None


def test_sets_of_strings_are_taken_in_order():
    names = [f"n{i}" for i in range(20)]
    corpus = as_corpus([[set(names), frozenset(names)]])
    assert [[n for n, _ in row] for row in attributes(corpus)] == [sorted(names)] * 2


def test_dicts_and_lists_may_be_mixed():
    assert attributes(as_corpus([[{"len": 2}, ["a"]]])) == [[("len", 2)], [("a", 1)]]


def test_strings_are_a_column():
    corpus = as_corpus([["the", "cat"], [], ("sat",)])
    assert [s.columns["word"] for s in corpus] == [["the", "cat"], [], ["sat"]]
    assert corpus.features is None


@given(st.lists(st.lists(st.lists(st.sampled_from([0, 1, 2.5, -3]), min_size=2, max_size=2))))
def test_arrays(rows):
    samples = [np.array(sample, float).reshape(-1, 2) for sample in rows]
    corpus = as_corpus(samples)
    if samples:
        assert list(corpus.features.names) == ["x0", "x1"]
        assert attributes(corpus) == [
            [(f"x{j}", value) for j, value in enumerate(row) if value]
            for sample in rows
            for row in sample
        ]
    assert corpus.lengths.tolist() == [len(sample) for sample in rows]


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int64, np.float16, np.float64])
def test_arrays_of_zeros_and_ones_are_indicators(dtype):
    corpus = as_corpus([np.array([[0, 1], [1, 1]], dtype)])
    assert corpus.features.values is None
    assert corpus.features.indices.tolist() == [1, 0, 1]


def test_a_stack_of_arrays():
    corpus = as_corpus(np.arange(8.0).reshape(2, 2, 2))
    assert corpus.lengths.tolist() == [2, 2]
    assert attributes(corpus)[0] == [("x1", 1)]


def test_generators():
    corpus = as_corpus(([word] for word in ("a", "b")), (y for y in [["X"], ["Y"]]))
    assert corpus.label_lists() == [["X"], ["Y"]]


def test_corpora_and_views():
    corpus = Corpus.from_columns({"word": [["a"], ["b", "c"], []]}, [["X"], ["Y", "Z"], []])
    assert as_corpus(corpus) is corpus
    assert as_corpus(corpus[1]).label_lists() == [["Y", "Z"]]
    assert as_corpus([corpus[1], corpus[0]]).label_lists() == [["Y", "Z"], ["X"]]
    assert as_corpus(iter(corpus)).label_lists() == corpus.label_lists()
    relabelled = as_corpus(corpus, [["A"], [None, {"A", "B"}], []])
    assert relabelled.label_lists() == [["A"], [None, {"A", "B"}], []]
    assert relabelled.columns is corpus.columns


def test_nothing():
    assert len(as_corpus([])) == 0
    assert len(as_corpus([], [])) == 0
    corpus = as_corpus([[], []], [[], []])
    assert corpus.lengths.tolist() == [0, 0]
    assert len(as_corpus(np.zeros((0, 3, 2)))) == 0
    assert as_corpus([np.zeros((0, 2))]).lengths.tolist() == [0]


OTHER = Corpus.from_columns({"word": [["a"]]})


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ("text", "expected a corpus or a list of samples, got str; read files with read_conll"),
        (b"text", "got bytes"),
        ({"w": "a"}, "samples of w are of type str; expected a list"),
        (3, "got int"),
        (None, "got NoneType"),
        (["the cat"], "sample 0 is str; expected a list of positions"),
        ([[], "the cat"], "sample 1 is str; expected a list of positions"),
        ([["a"], None], "sample 1 is NoneType; expected a list of positions"),
        ([{"w": "a"}], "sample 0 is a dict; expected a list of positions, or a dict of columns"),
        ([[{"w": "a"}], iter([])], "sample 1 is list_iterator; expected a list of positions"),
        ([OTHER[0], [{"w": "a"}]], "sample 0 is Sample; expected a list of positions"),
        ([OTHER[0], Corpus.from_columns({"word": [["a"]]})[0]], "samples of different corpora"),
        ([["a"], [{"w": "a"}]], "column 'word' holds {'w': 'a'}; expected strings"),
        ([[{"w": "a"}], ["a"]], "sample 1, position 0 is 'a'; expected a dict of features or"),
        ([[["a"], np.array("a")]], "sample 0, position 1 is array('a', dtype='<U1'); expected a"),
        (np.array("a"), "expected a corpus or a list of samples, got ndarray"),
        ({"a"}, "expected a corpus or a list of samples, got set"),
        ([[["a"], 3]], "sample 0, position 1 is 3; expected a dict of features or"),
        ([[["a"], b"a"]], "sample 0, position 1 is b'a'; expected a dict of features or"),
        ([[["a"], ["b", 3]]], "sample 0, position 1: attribute 3 is not a string"),
        ([[["a"], {"b", 3}]], "sample 0, position 1: attribute 3 is not a string"),
        ([[{"w": "a"}], [{3: "a"}]], "sample 1, position 0: feature key 3 is no string"),
        ([[{"w": None}]], "feature 'w' is None; expected a string, a bool or a number"),
        ([[{"w": ["a"]}]], "feature 'w' is ['a']; expected a string, a bool or a number"),
        ([[{}, {"w": np.nan}]], "sample 0, position 1: feature 'w' is nan; must be a finite"),
        ([[{"w": -np.inf}]], "feature 'w' is -inf; must be a finite float32"),
        ([[{"w": 1e39}]], "feature 'w' is 1e+39; must be a finite float32"),
        ([[{"w": 10**5000}]], "feature 'w' is inf; must be a finite float32"),
        ([np.zeros(3)], "sample 0 is (3,); expected an (n, d) array"),
        (np.zeros((2, 3)), "sample 0 is (3,); expected an (n, d) array"),
        ([np.zeros((1, 2)), [[1, 2]]], "sample 1 is list; expected an (n, d) array"),
        ([np.zeros((1, 2)), np.zeros((1, 3))], "sample 1 has 3 columns, sample 0 has 2"),
        ([np.array([["a", "b"]])], "sample 0 has dtype <U1; expected numbers"),
        ([np.zeros((1, 1), complex)], "sample 0 has dtype complex128; expected numbers"),
        (
            [np.zeros((1, 2)), np.array([[0, 1], [2, np.nan]])],
            "sample 1, position 1, column 1 is nan; must be a finite float32",
        ),
        ([np.array([[1e39]])], "sample 0, position 0, column 0 is 1e+39; must be a finite"),
    ],
)
def test_bad_samples(X, message):
    with pytest.raises(DataError, match=re.escape(message)):
        as_corpus(X)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([["X"]], "X and y differ in number: 2 and 1 samples"),
        ([["X"], ["Y"]], "sample 1: X has 2 positions, y has 1"),
        (3, "samples of y are of type int; expected a list"),
        ("XY", "y='XY' names a column, but the samples are no tables; pass a list of label lists"),
        ([["X"], 3], "y of sample 1: expected a list of positions, got 3"),
        (["X", "YZ"], "labels of sample 0 are of type str; expected a list"),
        ([["X"], ["Y", [3]]], "label at sample 1, position 1 is [3] of type list"),
    ],
)
def test_bad_labels(y, message):
    with pytest.raises(DataError, match=re.escape(message)):
        as_corpus([["a"], ["b", "c"]], y)


# ---------------------------------------------------------------------------- columns, sparse rows


PAIRS = [[("the", "DT"), ("cat", "NN")], [("sat", "VB")]]
COLUMNS = {"word": ["the", "cat", "sat"], "pos": ["DT", "NN", "VB"]}


@pytest.mark.parametrize(
    "X",
    [
        PAIRS,
        [[list(pair) for pair in sample] for sample in PAIRS],
        [[{"word": w, "pos": p, "more": 1} for w, p in sample] for sample in PAIRS],
        [{"word": [w for w, _ in s], "pos": [p for _, p in s], "more": 3} for s in PAIRS],
    ],
)
def test_symbols_of_columns(X):
    corpus = as_corpus(X, columns=["word", "pos"])
    assert {name: c.strings() for name, c in corpus.columns.items()} == COLUMNS
    assert corpus.offsets.tolist() == [0, 2, 3] and corpus.features is None


def test_words_are_the_first_column():
    assert list(as_corpus([["a"]]).columns) == ["word"]
    assert list(as_corpus([["a"]], columns=["char"]).columns) == ["char"]


def test_numbers_among_symbols():
    corpus = as_corpus([[("a", 1.5), ("b", 2)]], columns=["word", "len"])
    assert corpus.columns["len"].strings() == ["1.5", "2.0"]
    assert corpus.columns["len"].numbers and not corpus.columns["word"].numbers
    part = corpus.take([0]).columns["len"]
    assert part.numbers and part.only_used().numbers


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([[("a",)]], "sample 0, position 0 has 1 entries; expected a tuple of word, pos"),
        ([[("a", "b"), "cd"]], "sample 0, position 1 is 'cd'; expected a tuple of word, pos"),
        ([[("a", "b"), {"word": "c"}]], "position 1 is {'word': 'c'}; expected a tuple"),
        ([[{"word": "a", "pos": "b"}, {"word": "c"}]], "position 1 has no 'pos'; expected a dict"),
        ([[{"word": "a", "pos": "b"}, ("c", "d")]], "expected a dict of word, pos"),
        ([[{"w": "a"}]], "the columns are word, pos, but position 0 of sample 0 has w"),
        ([[("a", None)]], "sample 0, position 0: 'pos' is None; expected a string or a number"),
        ([[("a", math.inf)]], "sample 0, position 0: 'pos' is inf; must be a finite float32"),
        ([{"w": ["a"]}], "the columns word, pos are missing from sample 0"),
        ([{"word": ["a"]}, {"w": ["a"]}], "sample 1 has no column 'word'; sample 0 has"),
        ([{"word": "a"}], "of which 'word' is 'a' and no list"),
        ([[("a", "b")], {"word": ["a"]}], "sample 0 is no dict of columns, but others are"),
    ],
)
def test_bad_symbols(X, message):
    with pytest.raises(DataError, match=re.escape(message)):
        as_corpus(X, columns=["word", "pos"])


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ([], "columns must be different names"),
        (["a", "a"], "columns must be different names, at least one"),
        ("word", "columns are of type str; expected a list"),
        ([1], "columns must be a list of strings"),
    ],
)
def test_bad_columns(columns, message):
    with pytest.raises(DataError, match=message):
        as_corpus(PAIRS, columns=columns)


def test_templates_over_nameless_columns():
    from trellis import ChainCRF

    message = r"say which column each entry .* \('the', 'DT'\) being the first: columns=\['word'"
    with pytest.raises(DataError, match=message):
        ChainCRF("word").fit(PAIRS, [["A", "B"], ["A"]])


@given(st.lists(st.integers(0, 3), min_size=1, max_size=3), st.randoms())
def test_sparse_rows_are_as_dense_ones(lengths, random):
    cells = [random.choice([0.0, 0.0, 1.0, -2.5]) for _ in range(4 * sum(lengths))]
    dense = np.split(np.array(cells).reshape(-1, 4), np.cumsum(lengths)[:-1])
    kinds = [sparse.csr_array, sparse.coo_matrix, sparse.csc_array, np.array]
    mixed = [random.choice(kinds)(sample) for sample in dense]
    for X in (mixed, [sparse.csr_array(sample) for sample in dense]):
        ours, theirs = as_corpus(X).features, as_corpus(dense).features
        assert ours.names == theirs.names
        for name in ("indptr", "indices", "values"):
            a, b = getattr(ours, name), getattr(theirs, name)
            assert (a is None) == (b is None) and (a is None or a.tolist() == b.tolist())


def test_sparse_rows_are_checked():
    bad = sparse.csr_array([[0, 0], [0, np.nan]])
    with pytest.raises(DataError, match="sample 1, position 1, column 1 is nan; must be a finite"):
        as_corpus([sparse.csr_array((3, 2)), bad])
    with pytest.raises(DataError, match="sample 1 has 3 columns, sample 0 has 2"):
        as_corpus([bad[:1], sparse.csr_array((1, 3))])


def test_names_of_the_columns_of_arrays():
    corpus = as_corpus([np.array([[0.0, 2.0]])], columns=["height", "width"])
    assert corpus.features.names == ["height", "width"]
    with pytest.raises(DataError, match="sample 0 has 3 columns, there are names for 2"):
        as_corpus([np.zeros((1, 3))], columns=["height", "width"])


def test_samples_as_a_dict_of_columns():
    data = {"word": [["the", "cat"], ["sat"]], "pos": [["DT", "NN"], ["VB"]], "tag": [[0, 1], [2]]}
    corpus = as_corpus(data, "tag")
    assert corpus.label_lists() == data["tag"] and list(corpus.columns) == ["word", "pos"]
    assert list(as_corpus(data, columns=["pos"]).columns) == ["pos"]
    for y, columns, message in (
        ("tags", None, "there is no column 'tags'; there are word, pos, tag"),
        (None, ["x"], "there is no column 'x'"),
        ("word", ["word"], "there is no column 'word'"),
    ):
        with pytest.raises(DataError, match=message):
            as_corpus(data, y, columns=columns)


def test_arrays_of_words():
    X = [np.array(["the", "cat"]), np.array(["sat"], object)]
    assert as_corpus(X).columns["word"].strings() == ["the", "cat", "sat"]

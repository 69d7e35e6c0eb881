"""The flat container against a naive one: a list of samples, each a dict of plain lists."""

from __future__ import annotations

import importlib
import itertools
import pkgutil
import re
import sys
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trellis import ChainCRF, ChainPerceptron, TreePerceptron, kernels
from trellis.corpus import Column, Corpus, Features, Labels, Sample
from trellis.corpus.corpus import bounds, ranges, split
from trellis.errors import DataError

SYMBOLS = st.sampled_from(["a", "b", "", "é\n"])


@st.composite
def naive_samples(draw, min_size=0):
    """Samples as dicts: words, labels, attributes [(name, value)] and edges within the sample."""
    samples = []
    for _ in range(draw(st.integers(min_size, 5))):
        n = draw(st.integers(0, 4))
        items = st.tuples(st.sampled_from("xyz"), st.sampled_from([1.0, 0.5, -2.0]))
        positions = st.integers(0, n - 1) if n else st.nothing()
        samples.append(
            {
                "word": draw(st.lists(SYMBOLS, min_size=n, max_size=n)),
                "pos": draw(st.lists(SYMBOLS, min_size=n, max_size=n)),
                "labels": draw(
                    st.lists(
                        st.sampled_from(["L", "M", None, frozenset("LM")]), min_size=n, max_size=n
                    )
                ),
                "attributes": draw(st.lists(st.lists(items, max_size=3), min_size=n, max_size=n)),
                "edges": draw(st.lists(st.tuples(positions, positions), max_size=3 if n else 0)),
            }
        )
    return samples


def build(samples):
    offsets = bounds([len(s["word"]) for s in samples])
    rows = [row for s in samples for row in s["attributes"]]
    names = sorted({name for row in rows for name, _ in row})
    # One edge of each sample in turn, so that those of a sample do not stand together.
    turns = itertools.zip_longest(
        *([(offsets[i] + a, offsets[i] + b) for a, b in s["edges"]] for i, s in enumerate(samples))
    )
    edges = [edge for turn in turns for edge in turn if edge is not None]
    return Corpus(
        offsets,
        {
            name: Column.from_strings([x for s in samples for x in s[name]])
            for name in ("word", "pos")
        },
        Features(
            bounds([len(row) for row in rows]),
            np.array([names.index(name) for row in rows for name, _ in row], np.int32),
            np.array([value for row in rows for _, value in row], np.float32),
            names,
        ),
        Labels.from_lists([s["labels"] for s in samples]),
        np.array(edges, np.int64).reshape(-1, 2),
    )


def unbuild(corpus):
    samples = []
    f = corpus.features
    for i, sample in enumerate(corpus):
        a, b = corpus.offsets[i : i + 2]
        samples.append(
            {
                **sample.columns,
                "labels": sample.labels,
                "attributes": [
                    [
                        (f.names[f.indices[p]], float(f.values[p]))
                        for p in range(*f.indptr[t : t + 2])
                    ]
                    for t in range(a, b)
                ],
                "edges": [(int(u - a), int(v - a)) for u, v in corpus.edges if a <= u < b],
            }
        )
    return samples


@settings(max_examples=30)
@given(naive_samples())
def test_a_corpus_holds_its_samples(samples):
    corpus = build(samples)
    assert unbuild(corpus) == samples
    assert len(corpus) == len(samples)
    assert corpus.lengths.tolist() == [len(s["word"]) for s in samples]
    assert [len(sample) for sample in corpus] == corpus.lengths.tolist()
    assert corpus.n_positions == sum(len(s["word"]) for s in samples)
    assert corpus.label_lists() == [s["labels"] for s in samples]


@settings(max_examples=30)
@given(naive_samples(min_size=1), st.data())
def test_take_is_indexing(samples, data):
    chosen = data.draw(st.lists(st.integers(0, len(samples) - 1), max_size=6))
    part = build(samples).take(chosen)
    assert unbuild(part) == [samples[i] for i in chosen]
    again = part.take(np.arange(len(part))[::-1])
    assert unbuild(again) == [samples[i] for i in chosen[::-1]]


@settings(max_examples=30)
@given(naive_samples(), st.slices(5))
def test_slices(samples, where):
    part = build(samples)[where]
    assert isinstance(part, Corpus)
    assert unbuild(part) == samples[where]


@settings(max_examples=30)
@given(naive_samples(min_size=1), st.data())
def test_samples_are_views(samples, data):
    corpus = build(samples)
    i = data.draw(st.integers(-len(samples), len(samples) - 1))
    sample = corpus[np.int64(i)]
    assert isinstance(sample, Sample)
    assert sample.columns == {"word": samples[i]["word"], "pos": samples[i]["pos"]}
    assert sample.labels == samples[i]["labels"]
    assert sample == corpus[i % len(samples)]


def test_take_shares_tables_of_strings():
    corpus = Corpus.from_columns({"word": [["a", "b"], ["c"]]})
    part = corpus.take([1])
    assert part.columns["word"].values is corpus.columns["word"].values
    assert part[0].columns == {"word": ["c"]}
    assert part[0].labels is None


@given(naive_samples(min_size=1), st.data())
def test_only_what_is_used(samples, data):
    corpus = build(samples)
    chosen = st.sampled_from(range(len(samples)))
    part = corpus.take(data.draw(st.lists(chosen, max_size=2)))
    for column in part.columns.values():
        small = column.only_used()
        assert small.strings() == column.strings()
        assert len(small.values) <= len(column.codes)
        assert small.codes.dtype == np.int32
        assert [v for v in column.values if v in small.used()] == [
            v for v in small.values if v in small.used()
        ]  # in the same order
        assert small.only_used() is small
    features = part.features
    if features is not None:
        small = features.only_used()
        names = [features.names[i] for i in features.indices]
        assert [small.names[i] for i in small.indices] == names
        assert len(small.names) <= len(names)
        assert small.indptr.tolist() == features.indptr.tolist()
        assert np.array_equal(small.values, features.values)
        assert small.only_used() is small


def test_a_table_that_is_used_is_kept():
    column = Column(np.array([0, 1], np.int32), ["a", "b"])
    assert column.only_used() is column
    features = Features(np.array([0, 2]), np.array([0, 1], np.int32), None, ["a", "b"])
    assert features.only_used() is features


@pytest.mark.parametrize("index", [2, -3])
def test_no_such_sample(index):
    corpus = Corpus.from_columns({"word": [["a"], ["b"]]})
    with pytest.raises(IndexError, match=f"sample {index} of a corpus of 2"):
        corpus[index]
    with pytest.raises(DataError, match=f"samples hold {index} at index 1; expected 0 to 1"):
        corpus.take([0, index])


@pytest.mark.parametrize("chosen", [[True, False], [0.0, 1.0], ["0"]])
def test_samples_are_taken_by_integers(chosen):
    corpus = Corpus.from_columns({"word": [["a"], ["b"]]})
    with pytest.raises(DataError, match=r"samples have dtype .*; expected integers"):
        corpus.take(chosen)
    with pytest.raises(TypeError):
        corpus[0.0]


def test_from_columns():
    corpus = Corpus.from_columns(
        {"word": [["a", "b"], []], "pos": (("X", "Y"), ())}, [["L", None], []]
    )
    assert [s.columns for s in corpus] == [
        {"word": ["a", "b"], "pos": ["X", "Y"]},
        {"word": [], "pos": []},
    ]
    assert corpus.label_lists() == [["L", None], []]
    assert len(Corpus.from_columns({"word": []}, [])) == 0


ODD_STRINGS = st.text("ab", max_size=3) | st.text("\0aé中\ud800\udc00😀", max_size=12)


@given(st.lists(st.lists(ODD_STRINGS, max_size=6) | st.lists(ODD_STRINGS, max_size=6).map(tuple)))
def test_many_strings_are_coded_as_few_are(samples):
    few = Corpus.from_columns({"word": samples})
    with mock.patch("trellis.corpus.corpus._MANY", 0):
        many = Corpus.from_columns({"word": samples})
        flat = Column.from_strings([symbol for sample in samples for symbol in sample])
    assert many.offsets.tolist() == few.offsets.tolist()
    for column in (many.columns["word"], flat):
        assert column.codes.dtype == np.int32
        assert not column.codes.flags.writeable
        assert column.codes.tolist() == few.columns["word"].codes.tolist()
        assert column.values == few.columns["word"].values


def test_many_strings_of_other_kinds():
    """Strings of a class of one's own, arrays and what can only be gone through."""
    kept = type("Word", (str,), {})
    samples = [[kept("a"), "b"], np.array(["b", "c"]), dict.fromkeys("ab"), "ab", []]
    with mock.patch("trellis.corpus.corpus._MANY", 0):
        corpus = Corpus.from_columns({"w": samples, "v": [list(s) for s in samples]})
    assert corpus.columns["w"].strings() == list("abbcabab")
    assert corpus.columns["v"].codes.tolist() == corpus.columns["w"].codes.tolist()
    assert type(corpus.columns["v"].values[0]) is kept


def test_with_labels():
    corpus = Corpus.from_columns({"word": [["a"], ["b", "c"]]})
    assert corpus.labels is None
    assert corpus.with_labels([["X"], ["Y", {"X", "Y"}]]).label_lists() == [
        ["X"],
        ["Y", {"X", "Y"}],
    ]
    with pytest.raises(DataError, match="samples and labels differ in number: 2 and 1 samples"):
        corpus.with_labels([["X"]])
    with pytest.raises(DataError, match="sample 1: samples has 2 positions, labels has 1"):
        corpus.with_labels([["X"], ["Y"]])
    with pytest.raises(DataError, match="labels of sample 1: expected a list of positions, got 3"):
        corpus.with_labels([["X"], 3])
    with pytest.raises(DataError, match="this corpus has no labels"):
        corpus.label_lists()


@pytest.mark.parametrize(
    ("columns", "labels", "message"),
    [
        ({}, None, "a corpus needs at least one column"),
        ({"a": [["x"]], "b": [["x"], []]}, None, "a and b differ in number: 1 and 2 samples"),
        ({"a": [["x"]], "b": [["x", "y"]]}, None, "sample 0: a has 1 positions, b has 2"),
        ({"a": [["x"]]}, [["L", "L"]], "sample 0: a has 1 positions, labels has 2"),
        ({"a": [["x", 3]]}, None, "column 'a' holds 3; expected strings"),
        ({"a": 3}, None, "samples of a are of type int; expected a list"),
        ({"a": "xy"}, None, "samples of a are of type str; expected a list"),
        (3, None, "columns must be a mapping of names to columns, got 3"),
        ({3: [["x"]]}, None, "column name must be a string, got 3"),
        ({"a": [], "b": [["x"]]}, None, "a and b differ in number: 0 and 1 samples"),
        ({"a": [["x"]]}, 3, "samples of labels are of type int; expected a list"),
        ({"a": [np.array("x")]}, None, "a of sample 0: expected a list of positions, got array"),
        ({"a": [["x"], None]}, None, "a of sample 1: expected a list of positions, got None"),
        ({"a": [["x"]]}, ["L"], "labels of sample 0 are of type str"),
    ],
)
@pytest.mark.parametrize("many", [0, 512])
def test_bad_columns(columns, labels, message, many):
    with (
        mock.patch("trellis.corpus.corpus._MANY", many),
        pytest.raises(DataError, match=re.escape(message)),
    ):
        Corpus.from_columns(columns, labels)


def features(**changes):
    parts = {
        "indptr": np.array([0, 1, 1, 3], np.int64),
        "indices": np.array([0, 1, 0], np.int32),
        "values": np.array([1, 2, 3], np.float32),
        "names": ["x", "y"],
    }
    return Features(**{**parts, **changes})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"indptr": np.zeros(0, np.int64)}, "must run from 0 to the number of indices"),
        ({"indptr": np.array([1, 1, 3])}, "must run from 0 to the number of indices"),
        ({"indptr": np.array([0, 1, 2])}, "must run from 0 to the number of indices"),
        ({"indptr": np.array([0, 2, 1, 3])}, "must not decrease"),
        ({"names": ["x"]}, "feature indices must lie in 0..0"),
        ({"indices": np.array([0, -1, 0])}, "feature indices must lie in 0..1"),
        ({"values": np.ones(2, np.float32)}, "must be as many as feature indices"),
        (
            {"values": np.array([1, np.nan, 1], np.float32)},
            "attribute 'y' at position 2 of the corpus is nan; values must be finite",
        ),
        (
            {"values": np.array([-np.inf, 1, 1], np.float32)},
            "attribute 'x' at position 0 of the corpus is -inf",
        ),
    ],
)
def test_bad_features(changes, message):
    features()
    with pytest.raises(DataError, match=re.escape(message)):
        features(**changes)


def test_bad_column():
    for codes in ([0, 2], [-1]):
        with pytest.raises(DataError, match=r"column codes hold .* at index .*; expected 0 to 1"):
            Column(np.array(codes, np.int32), ["a", "b"])


def test_tables_of_strings_are_checked():
    for values in (3, None, "ab", {"a", "b"}, np.array("a")):
        for make in (lambda v: Column([0], v), lambda v: Features([0, 1], [0], None, v)):
            with pytest.raises(DataError, match=r"(values|names) are of type .*; expected a list"):
                make(values)
    with pytest.raises(DataError, match=r"column values must be a list of strings, got \['a', 1\]"):
        Column([0], ["a", 1])
    with pytest.raises(DataError, match=r"feature names must be a list of strings, got \[None\]"):
        Features([0, 1], [0], None, [None])


def corpus(**changes):
    parts = {
        "offsets": np.array([0, 2, 3], np.int64),
        "columns": {"word": Column.from_strings(["a", "b", "c"])},
        "features": features(),
        "labels": Labels.from_lists([["X", "Y", "Z"]]),
        "edges": np.array([[0, 1], [2, 2]], np.int64),
    }
    return Corpus(**{**parts, **changes})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"offsets": np.zeros(0, np.int64)}, "must be a one-dimensional array that starts with 0"),
        ({"offsets": np.zeros((2, 2), np.int64)}, "a one-dimensional array that starts with 0"),
        ({"offsets": np.array([1, 3])}, "must be a one-dimensional array that starts with 0"),
        ({"offsets": np.array([0, 4, 3])}, "corpus offsets fall at sample 1, from 4 to 3"),
        ({"columns": {"w": Column.from_strings(["a"])}}, "column 'w' has 1 symbols, expected 3"),
        ({"features": Features(np.zeros(3, np.int64), np.zeros(0, np.int32), None, [])},
         "features cover 2 positions, not 3"),
        ({"labels": Labels.from_lists([["X"]])}, "there are 1 labels for 3 positions"),
        ({"edges": np.zeros(2, np.int64)}, "edges have shape (2,); expected (any, 2)"),
        ({"edges": np.zeros((1, 3), np.int64)}, "edges have shape (1, 3); expected (any, 2)"),
        ({"edges": np.array([[0, 3]])}, "edges hold 3 at index (0, 1); expected 0 to 2"),
        ({"edges": np.array([[0, -1]])}, "edges hold -1 at index (0, 1); expected 0 to 2"),
        ({"columns": 3}, "columns must be a mapping of names to columns, got 3"),
        ({"columns": {3: Column.from_strings(["a"])}}, "column name must be a string, got 3"),
        ({"columns": {"w": ["a"]}}, "column 'w' must be a Column, got ['a']"),
        ({"features": 3}, "features must be None or a Features, got 3"),
        ({"labels": ["X"]}, "labels must be None or a Labels, got ['X']"),
        ({"edge_types": ["x"]}, "edge_types must be None or a Column, got ['x']"),
        ({"label_name": 3}, "label_name must be a string, got 3"),
        ({"edges": np.array([[0, 1], [1, 2]])}, "edge 1 joins samples 0 and 1"),
    ],
)  # fmt: skip
def test_bad_corpus(changes, message):
    corpus()
    with pytest.raises(DataError, match=re.escape(message)):
        corpus(**changes)


def test_bytes_and_identity():
    whole = corpus()
    arrays = [whole.offsets, whole.columns["word"].codes, whole.labels.ids]
    arrays += [whole.features.indptr, whole.features.indices, whole.features.values, whole.edges]
    assert whole.nbytes == sum(a.nbytes for a in arrays)
    assert Corpus(np.zeros(1, np.int64)).nbytes == 8
    assert whole == whole
    assert whole != corpus()
    assert len({whole, replace(whole)}) == 2


def test_a_corpus_of_indicators_keeps_no_values():
    whole = corpus(features=features(values=None))
    part = whole.take([1])
    assert part.features.values is None
    assert part.features.indices.tolist() == [1, 0]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 4))))
def test_ranges(pairs):
    starts = np.array([a for a, _ in pairs], np.int64)
    counts = np.array([n for _, n in pairs], np.int64)
    expected = [a + i for a, n in pairs for i in range(n)]
    assert ranges(starts, counts).tolist() == expected
    assert split(expected, bounds(counts)) == [[a + i for i in range(n)] for a, n in pairs]


# ------------------------------------------------------------------------------ arrays


@pytest.mark.parametrize(
    "kind", [list, np.uint8, ">i8", np.int16, np.int32, lambda a: np.repeat(a, 2)[::2]]
)
def test_whole_numbers_of_any_kind(kind):
    def of(numbers):
        array = np.array(numbers)
        return (
            kind(array) if kind is list or not isinstance(kind, type | str) else array.astype(kind)
        )

    corpus = Corpus(
        of([0, 2, 3]),
        {"word": Column(of([1, 0, 1]), ["a", "b"])},
        Features(of([0, 1, 1, 2]), of([0, 1]), of([1, 2]), ["x", "y"]),
        Labels(of([0, 1, 2]), (), ("A", "B")),
        np.array([of([0, 1])]),
        edge_types=Column(of([0]), ["t"]),
    )
    arrays = [corpus.offsets, corpus.columns["word"].codes, corpus.features.indptr]
    arrays += [corpus.features.indices, corpus.features.values, corpus.labels.ids]
    arrays += [corpus.edges, corpus.edge_types.codes]
    dtypes = ["i8", "i4", "i8", "i4", "f4", "i4", "i8", "i4"]
    assert [array.dtype for array in arrays] == [np.dtype(name) for name in dtypes]
    assert all(array.flags.c_contiguous and not array.flags.writeable for array in arrays)
    assert corpus[0].columns == {"word": ["b", "a"]} and corpus.label_lists() == [
        ["A", "B"],
        [None],
    ]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Column([0.5], ["a"]), "column codes have dtype float64; expected integers"),
        (
            lambda: Column([[0]], ["a"]),
            "column codes have shape (1, 1); expected (any,)",
        ),
        (lambda: Column(["a"], ["a"]), "column codes have dtype <U1; expected integers"),
        (lambda: Corpus(3), "corpus offsets must be a one-dimensional array"),
        (lambda: Corpus(None), "corpus offsets have dtype object; expected integers"),
        (lambda: Corpus([0, 1.5]), "corpus offsets have dtype float64; expected integers"),
        (lambda: Corpus([0, 2], edges=[[0, "1"]]), "edges have dtype <U21; expected integers"),
        (lambda: Features([0, 0.5], [], None, []), "feature indptr have dtype float64; expected"),
        (lambda: Features([[0]], [], None, []), "feature indptr must be one-dimensional"),
        (lambda: Features([0, 1], [2**31], None, []), "feature indices hold 2147483648 at index 0"),
        (lambda: Features([0, 1], [0], ["x"], ["a"]), "feature values must be numbers: got an"),
        (lambda: Features([0, 1], [0], [object()], ["a"]), "feature values must be numbers"),
        (lambda: Features([0, 1], [0], [1e39], ["a"]), "attribute 'a' at position 0 of the corpus"),
    ],
)
def test_what_are_no_whole_numbers(make, message):
    with pytest.raises(DataError, match=re.escape(message)):
        make()


def test_kernels_are_not_compiled_for_other_kinds_of_arrays():
    def signatures():
        for module in pkgutil.iter_modules(kernels.__path__):
            importlib.import_module(f"trellis.kernels.{module.name}")
        every = [m for name, m in sys.modules.items() if name.startswith("trellis.kernels.")]
        known = {id(f): f for m in every for f in vars(m).values() if hasattr(f, "signatures")}
        return sum(len(function.signatures) for function in known.values())

    def fit(dtype):
        corpus = Corpus(
            np.array([0, 2, 4], dtype),
            {"word": Column(np.array([0, 1, 1, 0], dtype), ["a", "b"])},
            labels=Labels(np.array([0, 1, 1, 0], dtype), (), ("A", "B")),
            edges=np.array([[0, 1], [2, 3]], dtype),
        )
        for model in (ChainPerceptron("word"), TreePerceptron("word"), ChainCRF("word")):
            assert model.fit(corpus).predict(corpus) == [["A", "B"], ["B", "A"]]

    fit(np.int64)
    before = signatures()
    for dtype in (np.int32, np.uint16, ">i4"):
        fit(dtype)
    assert signatures() == before > 0

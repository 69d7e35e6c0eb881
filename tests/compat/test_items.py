"""Items become the attributes that python-crfsuite makes of them, by the fast way and the slow."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trellis.compat import items as items_module
from trellis.compat.items import ItemError, ItemSequence, as_items, as_labels, corpus_of, labelled
from trellis.errors import DataError


def by_rule(item, prefix=""):
    """The rule once more, from the description: names and values, repetitions kept."""
    if not isinstance(item, dict):
        return [(prefix + (n if isinstance(n, str) else n.decode()), 1.0) for n in item]
    found = []
    for key, value in item.items():
        name = prefix + (key if isinstance(key, str) else key.decode())
        if isinstance(value, dict | list | set):
            found += by_rule(value, name + ":")
        elif isinstance(value, str | bytes):
            text = value if isinstance(value, str) else value.decode()
            found.append((f"{name}:{text}", 1.0))
        else:
            found.append((name, float(value)))
    return found


def read(corpus):
    """Attributes of each position of a corpus, sums by name, zeros left out."""
    f = corpus.features
    values = np.ones(len(f.indices)) if f.values is None else f.values
    result = []
    for a, b in zip(f.indptr[:-1], f.indptr[1:], strict=True):
        sums = {}
        for i in range(a, b):
            name = f.names[f.indices[i]]
            sums[name] = sums.get(name, 0.0) + float(values[i])
        result.append({name: value for name, value in sums.items() if value})
    return result


def expected(items):
    result = []
    for item in items:
        sums = {}
        for name, value in by_rule(item):
            sums[name] = sums.get(name, 0.0) + value
        result.append(
            {name: pytest.approx(value, rel=1e-6) for name, value in sums.items() if value}
        )
    return result


names = st.text("ab=:é ", max_size=3)
texts = names | names.map(str.encode)
numbers = st.integers(-3, 3) | st.booleans() | st.sampled_from([0.5, -0.25, np.float32(1.5)])
flat_dicts = st.dictionaries(names, names | numbers, max_size=4)
lists = st.lists(texts, max_size=4)
inner = st.recursive(
    lists | st.sets(names, max_size=3) | st.dictionaries(texts, texts | numbers, max_size=3),
    lambda deeper: st.dictionaries(texts, texts | numbers | deeper, max_size=3),
    max_leaves=6,
).filter(lambda value: not isinstance(value, tuple))
any_items = st.lists(inner | flat_dicts, min_size=1, max_size=5)


@given(any_items)
def test_any_items(items):
    assert read(corpus_of([items])) == expected(items)
    assert ItemSequence(items).items() == [dict(by_rule(item)) for item in items]
    assert read(corpus_of([ItemSequence(items)])) == expected(items)


@given(st.lists(st.lists(flat_dicts, max_size=4), min_size=1, max_size=3))
def test_flat_dicts(sequences):
    corpus = corpus_of(sequences)
    assert corpus.lengths.tolist() == [len(s) for s in sequences]
    if corpus.n_positions:
        assert read(corpus) == expected([item for s in sequences for item in s])


@given(st.lists(st.lists(names, max_size=4) | st.sets(names, max_size=3), min_size=1, max_size=4))
def test_lists_of_names(items):
    assert read(corpus_of([items])) == expected(items)


def test_the_fast_way_is_taken(monkeypatch):
    """Flat dicts, and lists of names with «=», are not taken apart one by one."""
    monkeypatch.setattr(items_module, "_sums", None)
    dicts = [{"w": "a=b", "n": 2, "f": True, "x": np.float64(0.5)}, {"w": "c", "f": False}]
    assert list(corpus_of([dicts]).features.names) == ["w:a=b", "n", "f", "x", "w:c"]
    assert list(corpus_of([[["w=a", "b"], ("c",)]]).features.names) == ["w=a", "b", "c"]
    assert list(corpus_of([[{"a": 1}.keys()]]).features.names) == ["a"]
    nested = [{"w": "a=b", "in": {"k": b"v", "x": ["y"], "n": 2}, "b": b"c"}]
    names = ["w:a=b", "in:k:v", "in:x:y", "in:n", "b:c"]
    assert list(corpus_of([nested]).features.names) == names


def test_one_name_from_two_ways():
    """{"a": "b"} and {"a:b": 1} are one attribute, {"a=b": 1} is another."""
    corpus = corpus_of([[{"a": "b"}, {"a:b": 1}, {"a=b": 1.0}]])
    assert read(corpus) == [{"a:b": 1}, {"a:b": 1}, {"a=b": 1}]
    assert read(corpus_of([[{"a": "b"}, {"a:b": 3}]])) == [{"a:b": 1}, {"a:b": 3}]
    assert read(corpus_of([[{"a": "b", "a:b": 3}]])) == [{"a:b": 4}]
    assert ItemSequence([{"a": "b", "a:b": 3}]).items() == [{"a:b": 3.0}]


def test_the_example_of_the_docstring():
    nested = {"foo": {"bar": "baz", "spam": 0.5, "egg": ["x", "y"], "ham": {"x": -0.5, "y": b"z"}}}
    assert ItemSequence([nested, {"foo": {"ham": {"y", "x"}}}, {}]).items() == [
        {"foo:bar:baz": 1, "foo:spam": 0.5, "foo:egg:x": 1, "foo:egg:y": 1, "foo:ham:x": -0.5,
         "foo:ham:y:z": 1},
        {"foo:ham:x": 1, "foo:ham:y": 1},
        {},
    ]  # fmt: skip


def test_sequences():
    sequence = ItemSequence([["a"], {"b": 1}])
    assert len(sequence) == 2
    assert repr(sequence) == "<ItemSequence of size 2>"
    assert ItemSequence(sequence).items() == sequence.items()
    assert len(ItemSequence([])) == 0
    assert ItemSequence(iter([["a"]])).items() == [{"a": 1.0}]


@pytest.mark.parametrize(
    ("sequence", "message"),
    [
        ("foo", "a sequence is 'foo'; expected a list of items"),
        ({"a": 1}, "a sequence is {'a': 1}; expected a list of items"),
        (5, "a sequence is 5; expected a list of items"),
        (["foo"], "an item is 'foo'; expected a dict or a list of strings"),
        ([["a"], 5], "an item is 5; expected a dict"),
        ([[{"foo": 1.0}]], "the name of an attribute is {'foo': 1.0}; expected a string"),
        ([[1]], "the name of an attribute is 1; expected a string"),
        ([{5: 1}], "the name of an attribute is 5; expected a string"),
        ([{"a": None}], "the value of 'a' is None; expected a string, a number, a bool"),
        ([{"a": ("x",)}], r"the value of 'a' is \('x',\); expected"),
        ([{"a": b"\xff"}], "xff' is no text in UTF-8"),
    ],
)
def test_wrong_items(sequence, message):
    for call in (ItemSequence, lambda s: corpus_of([s])):
        with pytest.raises(ItemError, match=message) as caught:
            call(sequence)
        assert isinstance(caught.value, TypeError) and isinstance(caught.value, ValueError)


@pytest.mark.parametrize("value", [np.inf, np.nan, 10**400])
def test_numbers_that_are_none(value):
    with pytest.raises(DataError, match=r"must be a finite float32|expected a string, a number"):
        corpus_of([[{"a": value}]])


def test_labels():
    assert as_labels(("A", b"B", np.str_("C"), None, {"D"})) == ["A", "B", "C", None, {"D"}]
    corpus = labelled(corpus_of([[["a"], ["b"]]]), [[b"X", "Y"]])
    assert corpus.label_lists() == [["X", "Y"]]
    with pytest.raises(ItemError, match="a label is 1; expected a string"):
        as_labels([1])
    with pytest.raises(ItemError, match="the labels of a sequence are 'AB'; expected a list"):
        as_labels("AB")
    with pytest.raises(ItemError, match="the labels of a sequence are 5; expected a list"):
        as_labels(5)
    with pytest.raises(DataError, match="sample 0: X has 1 positions, y has 2"):
        labelled(corpus_of([[["a"]]]), [["X", "Y"]])


def test_items_are_not_changed():
    items = [{"a": {"b": ["c"]}}, {"d": "e"}]
    assert as_items(items) == items and as_items(items) is not items
    corpus_of([items])
    assert items == [{"a": {"b": ["c"]}}, {"d": "e"}]

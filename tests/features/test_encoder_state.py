"""Encoders as headers and arrays: round trips, and states that a hostile file might hold."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_encoder import samples, template_sets

from trellis.corpus import Corpus, as_corpus
from trellis.corpus.schemes import words_to_tags
from trellis.errors import CorruptModelError
from trellis.features import AttributeEncoder, TemplateEncoder, Templates
from trellis.features.state import encoder_from_state
from trellis.files.container import read_container, write_container
from trellis.files.stored import pack_strings

SEGMENTED = [["ab", "c"]] * 3 + [["c", "ab", "d"]] * 3
KINDS = {
    "conjunction": "char; char[-1] & lower(char)",
    "marked": "edges = mark; char[-1] & char[1]",
    "equal": "char == char[1]",
    "flags": "bias; bos; eos",
    "ngrams": "ngrams(char, 1..2)",
    "number": "number(h); number(h)[-1]",
    "wordlist": "wordlist(char, 1..2)",
    "variety": "variety(char, 1..3)",
    "cluster": "clusters = 2; cluster(char)[-1..1]; cluster(char, 1); char & cluster(h)",
    "equal clusters": "cluster(char) == cluster(char)[1]; cluster(h, 1) == cluster(h, 1)[-1]",
    "dictionary": 'dictionary(char, "a")[-1..1]; dictionary(h, "b") & char; dictionary(char, "b")',
    "equal places": 'dictionary(char, "a") == dictionary(char, "a")[1]; bias',
    "rare places": 'min_count = 4; dictionary(char, "a"); cluster(char); variety(char, 1..2)',
    "lexicon": 'lexicon(char, "start")[1] & char; lexicon(char, "end"); lexicon(char, "inside")',
    "rare": "min_count = 4; char; char[-1]; bos; bias; ngrams(char, 1..2); wordlist(char, 1..2)",
    "never seen": "min_count = 99; bos; number(h); char; ngrams(char, 1..2); wordlist(char, 1..2)",
}


def corpus_of(sentences, extra=""):
    words = [[*s, extra] if extra else list(s) for s in sentences]
    characters = [list("".join(s)) for s in words]
    numbers = [[str(ord(c) - 97) for c in s] for s in characters]
    return Corpus.from_columns(
        {"char": characters, "h": numbers}, [words_to_tags(s) for s in words]
    )


TRAIN, MORE = corpus_of(SEGMENTED), corpus_of(SEGMENTED[:2], extra="xyx")


LISTS = {"a": ["ab", "c"], "b": ["0 1", "2"]}


def learned(text):
    encoder = TemplateEncoder(Templates.parse(text), [MORE], LISTS)
    encoder.learn(TRAIN)
    return encoder


def same(a, b):
    return all(
        np.array_equal(getattr(a, name), getattr(b, name))
        for name in ("offsets", "indptr", "indices", "values")
    )


def assert_equal_encoders(encoder, again, *corpora):
    assert again.n_features == encoder.n_features
    everything = range(encoder.n_features)
    assert again.names(everything) == encoder.names(everything)
    for corpus in corpora:
        assert same(again.encode(corpus), encoder.encode(corpus))
    for corpus in corpora:
        assert same(again.learn(corpus), encoder.learn(corpus))
    everything = range(encoder.n_features)
    assert again.names(everything) == encoder.names(everything)


@pytest.mark.parametrize("kind", KINDS)
def test_round_trip_of_every_kind(tmp_path, kind):
    encoder = learned(KINDS[kind])
    header, arrays = encoder.state()
    write_container(tmp_path / "f", header, arrays)
    again = encoder_from_state(*read_container(tmp_path / "f"))
    assert again.templates == encoder.templates
    assert_equal_encoders(encoder, again, TRAIN, MORE)


@settings(max_examples=30)
@given(template_sets(), samples(), samples(), st.integers(1, 2))
def test_round_trip_of_any_templates(templates, first, second, least):
    corpora = [
        Corpus.from_columns({c: [s[c] for s in data] for c in ("word", "pos")})
        for data in (first, second)
    ]
    encoder = TemplateEncoder(Templates.parse(f"min_count = {least}\n{templates[0]}"))
    for corpus in corpora:
        encoder.learn(corpus)
        again = encoder_from_state(*encoder.state())
        assert again.n_features == encoder.n_features
        assert again.names(range(again.n_features)) == encoder.names(range(encoder.n_features))
    assert_equal_encoders(encoder, encoder_from_state(*encoder.state()), *corpora)


@pytest.mark.parametrize("sample", [[{"a": 2.5, "b=c": True}], [["x", "y"], ["é"]], []])
def test_round_trip_of_attributes(tmp_path, sample):
    encoder = AttributeEncoder()
    encoder.learn(as_corpus([sample]))
    write_container(tmp_path / "f", *encoder.state())
    again = encoder_from_state(*read_container(tmp_path / "f"))
    assert_equal_encoders(encoder, again, as_corpus([sample]), as_corpus([[{"a": 1, "z": 2}]]))


# ------------------------------------------------------------------------------ hostile states

EVERYTHING = (
    "edges = mark; char; char[-1] & lower(char); char == char[1]; bos; number(h)[1]; "
    "ngrams(char, 1..2); wordlist(char, 1..2); variety(char, 1..2); cluster(char); "
    'dictionary(char, "a"); dictionary(h, "b"); lexicon(char, "start")'
)
HEADER, ARRAYS = learned(EVERYTHING).state()
ATTRIBUTES = AttributeEncoder()
ATTRIBUTES.learn(as_corpus([[{"a": 2.5, "b": True, "c": 3}]]))
ATTRIBUTE_HEADER, ATTRIBUTE_ARRAYS = ATTRIBUTES.state()
STATES = {"templates": (HEADER, ARRAYS), "attributes": (ATTRIBUTE_HEADER, ATTRIBUTE_ARRAYS)}
PLACES = [(kind, name) for kind, (_, arrays) in STATES.items() for name in arrays]


def load(kind, changes):
    header, arrays = STATES[kind]
    return encoder_from_state(header, {**arrays, **changes})


def test_the_states_are_good():
    assert load("templates", {}).n_features == HEADER["n_features"]
    assert load("attributes", {}).n_features == 3
    assert {name.split(".")[-1] for _, name in PLACES} == {
        "blob", "offsets", "ids", "keys", "radices", "scale", "pairs", "edges", "strength", "ptr"
    }  # fmt: skip


@pytest.mark.parametrize(("kind", "name"), PLACES)
def test_missing_and_misshapen_arrays(kind, name):
    header, arrays = STATES[kind]
    array = arrays[name]
    rest = {k: v for k, v in arrays.items() if k != name}
    with pytest.raises(CorruptModelError, match=f"array '.*{name.split('.')[-1]}' is missing"):
        encoder_from_state(header, rest)
    others = [array[None], array.astype(np.float16), array.astype(np.complex64), np.array(0)]
    if array.size:
        others += [array[:-1], np.append(array, array[-1:]), array[:0]]
    for bad in others:
        with pytest.raises(CorruptModelError):
            load(kind, {name: bad})


def use(encoder):
    """A state that loads must work: no index out of range, every feature has a name."""
    corpora = [TRAIN, MORE] if isinstance(encoder, TemplateEncoder) else [as_corpus([[["a", "z"]]])]
    for corpus in corpora:
        encoded = encoder.encode(corpus)
        assert len(encoded.indptr) == corpus.n_positions + 1
        if encoded.indices.size:
            assert 0 <= encoded.indices.min() <= encoded.indices.max() < encoder.n_features
        assert np.isfinite(encoded.values).all()
    assert len(encoder.names(range(encoder.n_features))) == encoder.n_features


@settings(max_examples=60)
@given(st.sampled_from(PLACES), st.data())
def test_changed_numbers(place, data):
    """Any change of an element is refused, or gives an encoder that works."""
    kind, name = place
    array = STATES[kind][1][name].copy()
    if not array.size:
        return
    changes = st.sampled_from([-1, 0, 1, 2, 3, 5, 40, 100, 127])
    if array.dtype.itemsize >= 4:
        changes |= st.sampled_from([-(2**31), 2**31 - 1])
    if array.dtype.itemsize == 8:
        changes |= st.sampled_from([-(2**63), 2**63 - 1, 2**40, 2**62])
    if array.dtype.kind == "f":
        changes = st.sampled_from([np.nan, -np.inf, 0.0, -1.0, 2.0])
        changes |= st.sampled_from([1e-300, 1e300] if array.dtype.itemsize == 8 else [1e-30])
    for _ in range(data.draw(st.integers(1, 2))):
        value = data.draw(changes)
        array[data.draw(st.integers(0, array.size - 1))] = (
            value % 256 if array.dtype == np.uint8 else value
        )
    try:
        encoder = load(kind, {name: array})
    except CorruptModelError:
        return
    use(encoder)


def ints(*values, dtype=np.int64):
    return np.array(values, dtype)


def with_strings(name, *strings):
    return pack_strings(strings, f"{name}.")


KEYS = ARRAYS["column1.keys"]
PAIRS = ARRAYS["column6.pairs"]
NO_BITS = with_strings("cluster0.words", "a") | with_strings("cluster0.paths", "2")
DOUBLED = with_strings("dictionary0.symbols", "a", "a") | {"dictionary0.ptr": ints(0, 1, 2)}


@pytest.mark.parametrize(
    ("kind", "changes", "message"),
    [
        ("templates", {"column0.ids": ARRAYS["column0.ids"] - 1}, "feature ids of template 0 lie"),
        ("templates", {"column0.ids": ARRAYS["column0.ids"] + 999}, "feature ids of template 0"),
        ("templates", {"column2.ids": ARRAYS["column3.ids"]}, "missing or stands twice"),
        ("templates", {"column3.ids": ints(dtype=np.int32)}, "missing or stands twice"),
        ("templates", {"column3.ids": ints(0, 1, dtype=np.int32)}, "2 feature ids for 1 values"),
        ("templates", {"column0.ids": ints(dtype=np.int32)}, "0 feature ids for 4 values"),
        ("templates", {"column1.keys": KEYS[::-1] * 0}, "a template key stands twice"),
        ("templates", {"column1.keys": KEYS - 2**40}, "template keys lie in"),
        ("templates", {"column1.keys": KEYS + 2**40}, "template keys lie in"),
        ("templates", {"column1.radices": ints(0, 6)}, "template radices lie in 0 .. 6"),
        ("templates", {"column1.radices": ints(2**40, 6)}, "template radices lie in"),
        ("templates", {"column1.radices": ints(2**31, 2**31)}, "template radices are too large"),
        ("templates", {"column1.radices": ints(5, 6)}, "radices are smaller than their vocab"),
        ("templates", {"column1.radices": ints(1000, 900)}, "template key digits lie in"),
        ("templates", with_strings("atom0", "a", "b", "a", "d"), "a value of 'char' stands twice"),
        ("templates", with_strings("column5.grams", *"abcdefgfhijk"), "an n-gram stands twice"),
        ("templates", with_strings("column6.words", "ab", "c", "d", "c"), "holds a word twice or"),
        ("templates", with_strings("column6.words", "ab", "c", ""), "or of a wrong length"),
        ("templates", with_strings("column6.words", "abc", "c", "d"), "or of a wrong length"),
        ("templates", {"column6.pairs": PAIRS * 0 + 1}, "a word pair stands twice"),
        ("templates", {"column6.pairs": PAIRS + 9}, "word pairs lie in"),
        ("templates", {"column6.pairs": PAIRS[:1]}, "template keys lie in"),
        ("templates", {"column6.keys": ARRAYS["column6.keys"] - 1}, "template keys lie in -1"),
        ("templates", {"column4.scale": np.array([0.0])}, "number scales must be positive"),
        ("templates", {"column4.scale": np.array([1e-300])}, "number scales must be positive"),
        ("templates", {"column4.scale": np.array([1e300])}, "number scales must be positive"),
        ("templates", {"column4.scale": np.array([np.nan])}, "a number that is not finite"),
        ("templates", {"column7.strength": ARRAYS["column7.strength"] - 1}, "strengths of n-grams"),
        ("templates", {"column7.strength": ARRAYS["column7.strength"] + 63}, "strengths of n-gr"),
        ("templates", {"column7.edges": ARRAYS["column7.edges"] - 1}, "edges of n-grams lie in"),
        ("templates", {"column7.edges": ARRAYS["column7.edges"] + 999}, "edges of n-grams lie in"),
        ("templates", {"column7.edges": ARRAYS["column7.edges"] * 0}, "an edge of n-grams stands"),
        ("templates", {"column7.edges": ARRAYS["column7.edges"][::-1]}, "are not a tree"),
        ("templates", {"column7.keys": ARRAYS["column7.keys"] + 999}, "template keys lie in"),
        ("templates", with_strings("cluster0.words", "a", "b", "c", "a"), "a word has two clust"),
        ("templates", with_strings("cluster0.words", "a", "b"), "a word has two clusters, or none"),
        ("templates", NO_BITS, "the names of clusters must be bits"),
        ("templates", with_strings("atom3", "begin", "end"), "places in entries or words are not"),
        ("templates", with_strings("atom5", "1", "2"), "places in entries or words are not"),
        ("templates", with_strings("lexicon0", "ab", "ab"), "the lexicon holds a word twice"),
        ("templates", with_strings("lexicon0", "ab", ""), "or an empty one"),
        ("templates", with_strings("dictionary0.symbols", "a"), "do not fit its symbols"),
        ("templates", {"dictionary0.ptr": ints(0, 0, 3)}, "do not fit its symbols"),
        ("templates", DOUBLED, "an entry of a dictionary stands twice"),
        ("attributes", with_strings("names", "a", "b", "a"), "an attribute is named twice"),
        ("attributes", {"scale": np.zeros(3, np.float32)}, "attribute scales must be positive"),
        ("attributes", {"scale": np.ones(2, np.float32)}, "array 'scale' has shape"),
    ],
)
def test_hostile_arrays(kind, changes, message):
    with pytest.raises(CorruptModelError, match=message):
        load(kind, changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "other"}, "'kind' is 'other', one of 'templates', 'attributes' expected"),
        ({"kind": 3}, "header entry 'kind' is a int, str expected"),
        ({"templates": ["char"]}, "header entry 'templates' is a list, str expected"),
        ({"templates": ""}, "templates cannot be read: no templates"),
        ({"templates": "char["}, "templates cannot be read: template line 1"),
        ({"templates": "char[0..99999999999]"}, "templates cannot be read: .* too large"),
        ({"templates": "char[" + "9" * 5000 + "]"}, "templates cannot be read: .* too large"),
        ({"templates": "char @ min_count=" + "9" * 5000}, "templates cannot be read: .* too large"),
        ({"templates": "wordlist(char, 1..1000)"}, "templates cannot be read: .* up to 20"),
        ({"templates": 'test(char, "(")'}, "templates cannot be read: .* regular expression"),
        ({"templates": "edges = mark; char[-1]"}, "missing or stands twice"),
        ({"templates": EVERYTHING + "; bias"}, "array 'ids' is missing"),
        ({"templates": EVERYTHING.replace("lower", "shape") + "; digits(char)"}, "is missing"),
        ({"templates": EVERYTHING.replace("edges = mark; ", "")}, "template key digits lie in"),
        ({"n_features": HEADER["n_features"] + 1}, "a feature id is missing"),
        ({"n_features": HEADER["n_features"] - 1}, "feature ids of template"),
        ({"n_features": -1}, "header entry 'n_features' is -1"),
        ({"n_features": 2**31}, "header entry 'n_features' is 2147483648"),
        ({"n_features": 3.0}, "header entry 'n_features' is a float, int expected"),
    ],
)
def test_hostile_headers(changes, message):
    with pytest.raises(CorruptModelError, match=message):
        encoder_from_state({**HEADER, **changes}, ARRAYS)


@pytest.mark.parametrize("key", ["kind", "templates", "n_features"])
def test_missing_entries(key):
    header = {k: v for k, v in HEADER.items() if k != key}
    with pytest.raises(CorruptModelError, match=f"header entry '{key}' is missing"):
        encoder_from_state(header, ARRAYS)

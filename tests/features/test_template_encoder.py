"""The template encoder against plain Python on strings (see ``reference_encoder``)."""

from __future__ import annotations

import contextlib
import math
import re
from collections import Counter
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_encoder import SYMBOLS, Ngrams, reference, samples, template_sets

from trellis.corpus import Column, Corpus
from trellis.errors import DataError, TemplateError
from trellis.features import TemplateEncoder, Templates
from trellis.features.state import encoder_from_state


def corpus_of(samples):
    return Corpus.from_columns({c: [s[c] for s in samples] for c in ("word", "pos")})


def encoder_for(text):
    return TemplateEncoder(Templates.parse(text))


def rows(encoder, encoded):
    """Names of each position's features, in their order."""
    names = encoder.names(encoded.indices)
    return [names[a:b] for a, b in zip(encoded.indptr[:-1], encoded.indptr[1:], strict=True)]


def sorted_rows(encoder, encoded):
    return [sorted(row) for row in rows(encoder, encoded)]


def words(*sentences):
    return Corpus.from_columns({"word": [list(s) for s in sentences]})


@given(template_sets(), samples())
def test_learns_exactly_the_documented_features(templates, data):
    text, expected, mark = templates
    encoder = encoder_for(text)
    encoded = encoder.learn(corpus_of(data))
    found = reference(expected, data, mark=mark)
    assert sorted_rows(encoder, encoded) == found
    assert encoder.n_features == len({name for row in found for name in row} | flags(expected))
    assert encoded.values.size == 0
    assert encoded.indices.dtype == np.int32
    assert encoded.offsets.tolist() == corpus_of(data).offsets.tolist()
    everything = encoder.names(range(encoder.n_features))
    assert len(set(everything)) == encoder.n_features


def flags(templates):
    """Templates of one value are known as soon as they are learned, seen or not."""
    return {str(t) for t in templates if not hasattr(t, "terms") and not isinstance(t, Ngrams)}


@settings(max_examples=30)
@given(template_sets(), samples().filter(len), st.data())
def test_symbols_of_a_larger_corpus_make_no_difference(templates, data, draws):
    part = corpus_of(data).take(draws.draw(st.lists(st.sampled_from(range(len(data))), max_size=2)))
    found = []
    for only_used in (Column.only_used, lambda column: column):
        with mock.patch.object(Column, "only_used", only_used):
            encoder, whole = encoder_for(templates[0]), encoder_for(templates[0])
            whole.learn(corpus_of(data))
            coded = encoder.learn(part).indices.tolist(), whole.encode(part).indices.tolist()
            found.append((*coded, encoder.names(range(encoder.n_features))))
    assert found[0] == found[1]


@settings(max_examples=30)
@given(
    st.sampled_from(["word", "lower(word)", "prefix(word, 2)", "word[-1] & pos"]),
    st.lists(samples([*SYMBOLS, "a\0b", "\ud800"]), min_size=1, max_size=3),
    samples([*SYMBOLS, "a\0", "b", "\ud800", "中"]),
)
def test_symbols_are_found_by_their_bytes_as_in_a_dict(text, train, test):
    """Also in a vocabulary that has grown, or lost what it had begun to learn."""
    found = []
    for times in (0, 1000):
        encoder = encoder_for(text)
        with mock.patch.multiple("trellis.features.atoms", _MANY=1, _TIMES=times):
            for batch in train:
                encoder.learn(corpus_of(batch))
                found.append(rows(encoder, encoder.encode(corpus_of(test))))
            with (
                mock.patch.object(TemplateEncoder, "_chunk", side_effect=KeyboardInterrupt),
                contextlib.suppress(KeyboardInterrupt),
            ):
                encoder.learn(corpus_of([{"word": ["one", "more"], "pos": ["1", "2"]}]))
            encoder.learn(corpus_of([{"word": ["other", "ones"], "pos": ["3", "4"]}]))
            found.append(rows(encoder, encoder.encode(corpus_of(test))))
    assert found[: len(train) + 1] == found[len(train) + 1 :]


@settings(max_examples=30)
@given(template_sets(), samples(SYMBOLS[:6]), samples())
def test_encodes_what_it_knows(templates, train, test):
    text, expected, mark = templates
    encoder = encoder_for(text)
    encoder.learn(corpus_of(train))
    known = {n for row in reference(expected, train, mark=mark) for n in row} | flags(expected)
    before = encoder.n_features
    encoded = encoder.encode(corpus_of(test))
    assert sorted_rows(encoder, encoded) == [
        [name for name in row if name in known] for row in reference(expected, test, mark=mark)
    ]
    assert encoder.n_features == before


@settings(max_examples=30)
@given(template_sets(), samples(SYMBOLS[:3]), samples(SYMBOLS[:6]), samples())
def test_learning_more_keeps_what_is_known(templates, first, second, third):
    text, expected, mark = templates
    encoder = encoder_for(text)
    learned = []
    for data in (first, second, third):
        before = encoder.names(range(encoder.n_features))
        encoded = encoder.learn(corpus_of(data))
        learned.append((data, encoded))
        assert encoder.names(range(len(before))) == before
        assert sorted_rows(encoder, encoded) == reference(expected, data, mark=mark)
    for data, encoded in learned:
        again = encoder.encode(corpus_of(data))
        assert np.array_equal(again.indices, encoded.indices)
        assert np.array_equal(again.indptr, encoded.indptr)


@settings(max_examples=30)
@given(template_sets(), samples(SYMBOLS[:6]), samples(), st.sampled_from([1, 2, 5]))
def test_chunks_make_no_difference(templates, train, test, size):
    text, _, _ = templates
    whole, chunked = encoder_for(text), encoder_for(text)
    a = whole.learn(corpus_of(train))
    with mock.patch("trellis.features.encoder._CHUNK", size):
        b = chunked.learn(corpus_of(train))
        assert rows(chunked, b) == rows(whole, a)
        encoded = whole.encode(corpus_of(test))
        c = chunked.encode(corpus_of(test))
    assert rows(chunked, c) == rows(whole, encoded)
    again = whole.encode(corpus_of(test))
    assert np.array_equal(again.indices, encoded.indices)
    assert np.array_equal(again.indptr, encoded.indptr)
    assert np.array_equal(again.values, encoded.values)


@settings(max_examples=30)
@given(template_sets(), samples(), samples(), st.integers(2, 4))
def test_rare_values_are_dropped(templates, first, second, least):
    text, expected, mark = templates
    encoder = encoder_for(f"min_count = {least}\n{text}")
    known = set()
    for data in (first, second):
        found = reference(expected, data, mark=mark)
        counts = Counter(name for row in found for name in row)
        known |= {name for name, n in counts.items() if n >= least}
        encoded = encoder.learn(corpus_of(data))
        assert sorted_rows(encoder, encoded) == [[n for n in row if n in known] for row in found]
        assert set(encoder.names(range(encoder.n_features))) == known
        again = encoder.encode(corpus_of(data))
        assert np.array_equal(again.indices, encoded.indices)


def test_thresholds_are_per_template():
    encoder = encoder_for("word @ min_count=2; word[-1]; bos @ min_count=2")
    encoded = encoder.learn(words("aab", "b"))
    assert rows(encoder, encoded) == [
        ["word=a", "bos"],
        ["word=a", "word[-1]=a"],
        ["word=b", "word[-1]=a"],
        ["word=b", "bos"],
    ]
    assert encoder.n_features == 4


def test_only_symbols_that_occur_are_learned():
    whole = words("ab", "xyz")
    for text in ("ngrams(word, 1..3)", "word"):
        encoder = encoder_for(text)
        encoder.learn(whole[:1])
        again = encoder_for(text)
        again.learn(words("ab"))
        assert encoder.names(range(encoder.n_features)) == again.names(range(again.n_features))


def test_equality_does_not_depend_on_what_is_known():
    encoder = encoder_for("word == word[1]")
    encoder.learn(words("ab"))
    assert rows(encoder, encoder.encode(words("xxy"))) == [["word == word[1]"], [], []]


def test_names_of_some_features():
    encoder = encoder_for("word; ngrams(word, 1); bos")
    encoder.learn(words("ab", "c"))
    everything = encoder.names(range(encoder.n_features))
    assert sorted(everything) == sorted(
        ["word=a", "word=b", "word=c", "bos"] + [f"ngrams(word, 1..1)={g}" for g in "^$abc"]
    )
    wanted = [3, 0, 3, len(everything) - 1]
    assert encoder.names(wanted) == [everything[i] for i in wanted]
    assert encoder.names(np.array(wanted)) == [everything[i] for i in wanted]
    assert encoder.names([]) == []


# ------------------------------------------------------------------------------ numbers

NUMBERS = ["0", "1", "-2.5", "1e3", " 4 ", "0.0"]


def numbers_of(*sentences):
    return Corpus.from_columns({"h": [list(s) for s in sentences]})


@given(
    st.lists(st.lists(st.sampled_from(NUMBERS), max_size=4), min_size=1, max_size=4),
    st.lists(st.lists(st.sampled_from([*NUMBERS, "7"]), max_size=4), min_size=1, max_size=4),
    st.sampled_from([1, 1 << 16]),
)
def test_numbers(train, test, chunk):
    offsets = [-1, 0, 2]
    encoder = encoder_for("h; number(h); number(h)[-1]; number(h)[2]; bos")
    values = [float(x) for sample in train for x in sample if float(x) != 0]
    scale = math.sqrt(sum(v * v for v in values) / len(values)) if values else 1.0
    known = {x for sample in train for x in sample}
    with mock.patch("trellis.features.encoder._CHUNK", chunk):
        encodings = [(train, encoder.learn(numbers_of(*train)))]
        encodings += [(data, encoder.encode(numbers_of(*data))) for data in (train, test)]
    for data, encoded in encodings:
        found = iter(rows(encoder, encoded))
        start = iter(encoded.indptr[:-1])
        for sample in data:
            for t, symbol in enumerate(sample):
                expected = {f"h={symbol}": 1.0} if symbol in known else {}
                expected |= {"bos": 1.0} if t == 0 else {}
                for k in offsets:
                    if 0 <= t + k < len(sample) and float(sample[t + k]) != 0:
                        name = f"number(h)[{k}]" if k else "number(h)"
                        expected[name] = float(sample[t + k]) / scale
                names, first = next(found), next(start)
                got = encoded.values[first : first + len(names)]
                assert dict(zip(names, got, strict=True)) == pytest.approx(expected, rel=1e-6)


def test_the_scale_is_learned_once():
    encoder = encoder_for("number(h)")
    assert encoder.learn(numbers_of(["3", "4", "0"])).values.tolist() == pytest.approx(
        [3 / math.sqrt(12.5), 4 / math.sqrt(12.5)]
    )
    encoded = encoder.learn(numbers_of(["1000"]))
    assert encoded.values.tolist() == pytest.approx([1000 / math.sqrt(12.5)])


@pytest.mark.parametrize("symbol", ["x", "", "nan", "-inf", "1e39"])
def test_what_is_no_number(symbol):
    encoder = encoder_for("number(h)")
    message = f"column 'h', sample 1, position 2: '{symbol}' is not a finite number"
    with pytest.raises(DataError, match=message):
        encoder.learn(numbers_of(["1"], ["2", "3", symbol]))
    encoder.learn(numbers_of(["1"]))
    with pytest.raises(DataError, match=message):
        encoder.encode(numbers_of(["1"], ["2", "3", symbol]))
    # A symbol of other samples does not matter.
    encoder.encode(numbers_of(["1"], [symbol])[:1])


# ------------------------------------------------------------------------------ limits, failures


def test_a_missing_column():
    encoder = encoder_for("word & pos")
    message = "the templates need the column 'pos'; the corpus has word"
    for use in (encoder.learn, encoder.encode):
        with pytest.raises(DataError, match=message):
            use(words("a"))
    with pytest.raises(DataError, match="need the column 'word'; the corpus has none"):
        encoder.learn(Corpus(np.array([0, 1])))


def test_nothing_to_encode():
    encoder = encoder_for("word; number(h)")
    encoder.learn(Corpus.from_columns({"word": [["a"]], "h": [["1"]]}))
    for offsets in ([0], [0, 0, 0]):
        encoded = encoder.encode(Corpus(np.array(offsets)))
        assert encoded.indptr.tolist() == [0]
        assert encoded.indices.size == encoded.values.size == 0
        assert encoded.nbytes == 8 * len(offsets) + 8


def letters(n, start=0):
    return words([f"w{i}" for i in range(start, start + n)])


def test_too_large_conjunctions():
    text = " & ".join(f"word[{k}]" for k in range(8))
    encoder = encoder_for(text)
    message = "joins too many large vocabularies (300 x 300 x 300"
    with pytest.raises(TemplateError, match=re.escape(message)):
        encoder.learn(letters(300))
    with pytest.raises(TemplateError, match="template 'word & word"):
        encoder.learn(letters(300))


def test_large_conjunctions_that_leave_no_room():
    """180^8 keys fit, twice as many of each symbol would not."""
    encoder = encoder_for(" & ".join(f"word[{k}]" for k in range(8)))
    encoder.learn(letters(100))
    encoded = encoder.learn(letters(80, start=100))
    assert len(encoded.indices) == 73
    assert rows(encoder, encoder.encode(letters(9)))[0] == [
        " & ".join(f"word[{k}]=w{k}" if k else "word=w0" for k in range(8))
    ]


ALL_KINDS = """\
number(h); word; word & word[1]; ngrams(word, 1..2); bos; char == char[1]; wordlist(char, 1..2)
"""


def rich(sentences, h="1"):
    return Corpus.from_columns(
        {
            "word": [list(s) for s in sentences],
            "char": [list(s) for s in sentences],
            "h": [[h] * len(s) for s in sentences],
        },
        [["S"] * len(s) for s in sentences],
    )


def knowledge(encoder):
    """All that an encoder knows, but for how it numbers the values of conjunctions."""
    header, arrays = encoder.state()
    parts = {k: v.tolist() for k, v in arrays.items() if not k.endswith(("radices", "keys"))}
    return header, parts, encoder.names(range(encoder.n_features))


@pytest.mark.parametrize("min_count", [1, 2])
@pytest.mark.parametrize("failure", ["number", "interrupt", "late interrupt"])
def test_a_failed_lesson_is_forgotten(failure, min_count):
    """Codes learned in part would not fit the tables: nothing of them may stay."""
    text = f"min_count = {min_count}\n{ALL_KINDS}"
    good, bad = (
        rich(["abab", "abba"]),
        rich(["xyzxyz", "yx"], h="oops" if failure == "number" else "2"),
    )
    encoder, fresh = encoder_for(text), encoder_for(text)

    def fail():
        if failure == "number":
            with pytest.raises(DataError):
                encoder.learn(bad)
            return
        method = {"interrupt": "_drop_rare", "late interrupt": "_chunk"}[failure]
        with (
            mock.patch.object(TemplateEncoder, method, side_effect=KeyboardInterrupt),
            pytest.raises(KeyboardInterrupt),
        ):
            encoder.learn(bad)

    fresh.learn(good)
    encoder.learn(good)
    fail()
    assert knowledge(encoder) == knowledge(fresh)
    for data in (good, rich(["xyab"])):
        a, b = encoder.encode(data), fresh.encode(data)
        assert np.array_equal(a.indices, b.indices)
        assert np.array_equal(a.values, b.values)
    a, b = encoder.learn(rich(["xyab"] * 2)), fresh.learn(rich(["xyab"] * 2))
    assert rows(encoder, a) == rows(fresh, b)


def test_a_failed_first_lesson_leaves_no_scale():
    encoder = encoder_for("number(h); word")
    corpus = Corpus.from_columns({"word": [["a"]], "h": [["100"]]})
    with (
        mock.patch.object(TemplateEncoder, "_drop_rare", side_effect=KeyboardInterrupt),
        pytest.raises(KeyboardInterrupt),
    ):
        encoder.learn(corpus)
    assert encoder.n_features == 0
    encoded = encoder.learn(Corpus.from_columns({"word": [["a"]], "h": [["5"]]}))
    assert encoded.values.tolist() == [1, 1]


def test_too_many_features():
    encoder = encoder_for("word")
    encoder._n_features = 2**31 - 3
    with pytest.raises(TemplateError, match=re.escape("more than 2^31 features; raise min_count")):
        encoder.learn(words("abc"))


# ------------------------------------------------------------------------- groups and edges


def test_groups_and_crossed_features():
    templates = Templates.parse(
        "word @ edge; pos; word[-1] & word @ edge; ngrams(word, 2..2) @ min_count=2;"
        "number(n) @ edge"
    )
    encoder = TemplateEncoder(templates)
    assert encoder.groups().tolist() == encoder.crossed().tolist() == []
    data = {"word": [["ab", "abc", "ab"]], "pos": [["x", "y", "x"]], "n": [["1", "2", "3"]]}
    encoder.learn(Corpus.from_columns(data))
    data = {"word": [["new", "ab"]], "pos": [["z", "x"]], "n": [["1", "2"]]}
    encoder.learn(Corpus.from_columns(data))  # ids of a template need not follow each other
    names = encoder.names(range(encoder.n_features))
    groups, crossed = encoder.groups(), encoder.crossed()
    assert groups.dtype == np.int32 and crossed.dtype == np.bool_
    for name, group, edge in zip(names, groups, crossed, strict=True):
        first = name.split("=")[0]
        expected = {"word": 0, "pos": 1, "word[-1]": 2, "number(n)": 4}.get(first, 3)
        assert group == expected, name
        assert edge == (expected in (0, 2, 4)), name
    assert set(groups.tolist()) == {0, 1, 2, 3, 4}
    assert np.diff(np.flatnonzero(groups == 0)).max() > 1


def test_edges_survive_the_state():
    encoder = TemplateEncoder(Templates.parse("word @ edge; word[-1]"))
    encoder.learn(Corpus.from_columns({"word": [["a", "b"]]}))
    again = encoder_from_state(*encoder.state())
    assert again.crossed().tolist() == encoder.crossed().tolist() == [True, True, False]
    assert again.groups().tolist() == encoder.groups().tolist()

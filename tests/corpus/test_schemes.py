"""Tag schemes: the grammar against brute force, round trips, repair of invalid sequences."""

from __future__ import annotations

import itertools
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trellis.corpus.schemes import (
    Scheme,
    detect_scheme,
    get_scheme,
    tags_to_words,
    words_to_tags,
)
from trellis.errors import DataError

NAMES = ["BIO", "BILOU", "IOBES", "BMES"]
ALPHABETS = {"BIO": "BI", "BILOU": "BILU", "IOBES": "BIES", "BMES": "BMES"}


def labels_of(name: str, types: tuple[str, ...] = ("X", "Y")) -> list[str]:
    suffixes = [f"-{t}" if t else "" for t in types]
    return ["O"] + [letter + s for letter in ALPHABETS[name] for s in suffixes]


@st.composite
def span_lists(draw: st.DrawFn) -> tuple[list[tuple[str, int, int]], int]:
    """Spans from left to right, touching or with gaps, and the length of the sequence."""
    pieces = draw(
        st.lists(
            st.tuples(st.integers(0, 2), st.integers(1, 4), st.sampled_from(["", "X", "Y-z"])),
            max_size=6,
        )
    )
    spans, position = [], 0
    for gap, length, type_ in pieces:
        spans.append((type_, position + gap, position + gap + length))
        position += gap + length
    return spans, position + draw(st.integers(0, 2))


def invalid_or_not(name: str) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(labels_of(name, ("", "X", "Y"))), max_size=12)


@pytest.mark.parametrize("name", NAMES)
@settings(deadline=None)
@given(case=span_lists())
def test_spans_inverts_labels_for(name: str, case: tuple[list[tuple[str, int, int]], int]) -> None:
    spans, n = case
    scheme = get_scheme(name)
    labels = scheme.labels_for(reversed(spans), n)
    assert len(labels) == n
    assert scheme.spans(labels) == spans
    assert scheme.spans(labels, strict=True) == spans


@pytest.mark.parametrize("name", NAMES)
def test_validity_accepts_exactly_the_writings_of_spans(name: str) -> None:
    scheme, classes = get_scheme(name), labels_of(name)
    start, trans, end = scheme.validity(classes)
    assert start.dtype == trans.dtype == end.dtype == np.bool_
    assert trans.shape == (len(classes), len(classes))
    for n in range(1, 5):
        for sequence in itertools.product(range(len(classes)), repeat=n):
            allowed = (
                start[sequence[0]]
                and end[sequence[-1]]
                and all(trans[a, b] for a, b in itertools.pairwise(sequence))
            )
            labels = [classes[i] for i in sequence]
            written = scheme.labels_for(scheme.spans(labels), n) == labels
            assert allowed == written, labels


def test_validity_of_no_classes_and_of_some() -> None:
    start, trans, end = get_scheme("BIO").validity([])
    assert (start.shape, trans.shape, end.shape) == ((0,), (0, 0), (0,))
    _, trans, end = get_scheme("BMES").validity(["B", "E"])
    assert trans.tolist() == [[False, True], [True, False]]
    assert end.tolist() == [False, True]


@pytest.mark.parametrize("name", NAMES)
@settings(deadline=None)
@given(data=st.data())
def test_lenient_spans_cover_all_but_o_and_strict_ones_are_those_well_written(
    name: str, data: st.DataObject
) -> None:
    scheme, labels = get_scheme(name), data.draw(invalid_or_not(name))
    spans = scheme.spans(labels)
    covered = [i for _, start, end in spans for i in range(start, end)]
    assert covered == [i for i, label in enumerate(labels) if label != "O"]
    for type_, start, end in spans:
        assert {label[2:] for label in labels[start:end]} == {type_}
    well_written = [
        (t, a, b) for t, a, b in spans if scheme.labels_for([(t, 0, b - a)], b - a) == labels[a:b]
    ]
    assert scheme.spans(labels, strict=True) == well_written


@pytest.mark.parametrize("name", NAMES)
@settings(deadline=None)
@given(data=st.data())
def test_lenient_spans_as_a_regular_expression(name: str, data: st.DataObject) -> None:
    """One type only: an optional begin, insides, an optional last; or a single."""
    scheme = get_scheme(name)
    labels = data.draw(st.lists(st.sampled_from(labels_of(name, ("",))), max_size=12))
    text = "".join(labels).translate(str.maketrans("MLU", "IES"))
    wanted = [("", *m.span()) for m in re.finditer("S|BI*E?|I+E?|E", text)]
    assert scheme.spans(labels) == wanted


@pytest.mark.parametrize(
    ("name", "labels", "lenient", "strict"),
    [
        ("BIO", "O I-X I-X O", [("X", 1, 3)], []),
        ("BIO", "B-X I-Y", [("X", 0, 1), ("Y", 1, 2)], [("X", 0, 1)]),
        ("BIO", "B-X I-X B-X", [("X", 0, 2), ("X", 2, 3)], [("X", 0, 2), ("X", 2, 3)]),
        ("BILOU", "B-X I-X O", [("X", 0, 2)], []),
        ("BILOU", "B-X L-X I-X L-X", [("X", 0, 2), ("X", 2, 4)], [("X", 0, 2)]),
        ("BILOU", "B-X U-X", [("X", 0, 1), ("X", 1, 2)], [("X", 1, 2)]),
        ("IOBES", "E-X S-X B-X", [("X", 0, 1), ("X", 1, 2), ("X", 2, 3)], [("X", 1, 2)]),
        ("BMES", "B E M E", [("", 0, 2), ("", 2, 4)], [("", 0, 2)]),
        ("BIO", "", [], []),
    ],
)
def test_spans_by_hand(name: str, labels: str, lenient: list, strict: list) -> None:
    scheme = get_scheme(name)
    assert scheme.spans(labels.split()) == lenient
    assert scheme.spans(labels.split(), strict=True) == strict


def test_bilou_and_iobes_read_both_alphabets() -> None:
    spans = [("X", 0, 3), ("Y", 3, 4)]
    bilou, iobes = get_scheme("BILOU"), get_scheme("BIOES")
    assert bilou.spans(iobes.labels_for(spans, 4), strict=True) == spans
    assert iobes.spans(bilou.labels_for(spans, 4), strict=True) == spans
    assert iobes.labels_for(spans, 4) == ["B-X", "I-X", "E-X", "S-Y"]


def test_get_scheme_knows_aliases_and_passes_schemes_through() -> None:
    assert get_scheme("IOB2") is get_scheme("bio")
    assert get_scheme("BILUO") is get_scheme("BILOU")
    assert get_scheme("BIOES") is get_scheme("IOBES")
    assert isinstance(get_scheme("BMES"), Scheme)
    assert get_scheme(get_scheme("BMES")) is get_scheme("BMES")
    with pytest.raises(AttributeError):
        get_scheme("BIO").name = "other"  # type: ignore[misc]


def test_unknown_scheme_is_named() -> None:
    with pytest.raises(DataError, match="unknown tag scheme 'IOB7': expected one of BIO"):
        get_scheme("IOB7")


@pytest.mark.parametrize("label", ["NOUN", "", "B-", "BX", "O-X", "M-X", "b-X", None, "E-X"])
def test_label_that_does_not_fit_is_named_with_scheme_and_position(label: str) -> None:
    message = re.escape(f"label {label!r} does not fit the tag scheme BIO")
    with pytest.raises(DataError, match=f"^position 1: {message}"):
        get_scheme("BIO").spans(["O", label])
    with pytest.raises(DataError, match=f"^{message}"):
        get_scheme("BIO").validity(["O", label])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ((3, "BIO", "BIIB"), "name must be a string, got 3"),
        (("mine", 3, "BIIB"), "reads must be a string, got 3"),
        (("mine", "BIO", ["B"]), "writes must be a string, got ['B']"),
        (("mine", "BIX", "BIIB"), "reads must be letters of BIMELSUO, got 'BIX'"),
        (("mine", "BIO", ""), "writes must be letters of `reads` for the begin, inside, last"),
        (("mine", "BIO", "BIES"), "writes must be letters of `reads` for the begin, inside, last"),
        (("mine", "BIO", "IIIB"), "writes must be letters of `reads` for the begin, inside, last"),
    ],
)
def test_schemes_that_could_not_be_read_back(parameters: tuple[str, ...], message: str) -> None:
    with pytest.raises(DataError, match=re.escape(message)):
        Scheme(*parameters)


@pytest.mark.parametrize("labels", [3, None, {"O"}, {"O": 1}, np.array("O"), b"O", list])
def test_labels_that_are_no_list(labels: Any) -> None:
    for read in (get_scheme("BIO").spans, get_scheme("BIO").validity):
        with pytest.raises(DataError, match=r"(labels|classes) are of type .*; expected a list"):
            read(labels)


@pytest.mark.parametrize("span", [3, "abc", ("X", 0), (0, 1, "X"), ("X", 0, 1.5), (["X"], 0, 1)])
def test_spans_that_are_none(span: Any) -> None:
    message = re.escape(f"span {span!r} is none: expected a type, a start and an end")
    with pytest.raises(DataError, match=message):
        get_scheme("BIO").labels_for([span], 4)


def test_no_list_of_spans_and_no_length() -> None:
    with pytest.raises(DataError, match="strict must be True or False, got 3"):
        get_scheme("BIO").spans(["O"], 3)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="spans are of type int; expected a list"):
        get_scheme("BIO").labels_for(3, 4)  # type: ignore[arg-type]
    with pytest.raises(DataError, match=r"n must be an integer of at least 0, got 2\.5"):
        get_scheme("BIO").labels_for([], 2.5)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="4611686018427387904 labels do not fit into memory"):
        get_scheme("BIO").labels_for([], 2**62)


@pytest.mark.parametrize("span", [("X", 1, 1), ("X", -1, 1), ("X", 2, 5), ("X", 3, 2)])
def test_span_outside_the_sequence(span: tuple[str, int, int]) -> None:
    with pytest.raises(DataError, match="is empty or reaches outside the 4 positions"):
        get_scheme("BIO").labels_for([span], 4)


def test_overlapping_spans() -> None:
    with pytest.raises(DataError, match=r"span \('Y', 1, 3\) overlaps"):
        get_scheme("BIO").labels_for([("X", 0, 2), ("Y", 1, 3)], 4)


@pytest.mark.parametrize(
    ("classes", "name"),
    [
        (["O", "B-X", "I-X"], "BIO"),
        (["B-X", "O"], "BIO"),
        (["B", "I"], "BIO"),
        (["O", "B-X", "I-X", "L-X", "U-X"], "BILOU"),
        (["O", "U-X"], "BILOU"),
        (["O", "B-X", "I-X", "E-X", "S-X"], "IOBES"),
        (["O", "B-X", "E-X"], "IOBES"),
        (["B", "M", "E", "S"], "BMES"),
        (["O", "B-X", "M-X", "E-X", "S-X"], "BMES"),
        (["B", "E", "S"], "BMES"),
        (["O"], None),
        ([], None),
        (["O", "I-X"], None),  # IO tagging: no label begins a span
        (["NOUN", "VERB"], None),
        (["BEAR", "IO"], None),  # right letters, wrong form
        (["O", "B-X", "I-X", "L-X", "S-X"], None),  # two alphabets at once
        (["B", "M", "I", "E"], None),
    ],
)
def test_detect_scheme(classes: list[str], name: str | None) -> None:
    assert detect_scheme(classes) == name


@pytest.mark.parametrize("name", NAMES)
def test_detect_scheme_finds_each_scheme_from_its_own_labels(name: str) -> None:
    assert detect_scheme(iter(labels_of(name))) == name


@settings(deadline=None)
@given(st.lists(st.text(min_size=1, max_size=5), max_size=8))
def test_words_and_tags_round_trip(words: list[str]) -> None:
    tags = words_to_tags(words)
    assert tags_to_words("".join(words), tags) == words
    assert tags_to_words(list("".join(words)), tags) == words


@settings(deadline=None)
@given(st.lists(st.sampled_from("BMES"), max_size=12))
def test_words_of_invalid_tags_join_to_the_sentence(tags: list[str]) -> None:
    chars = "abcdefghijkl"[: len(tags)]
    assert "".join(tags_to_words(chars, tags)) == chars


def test_errors_of_words_and_tags() -> None:
    with pytest.raises(DataError, match="word 1 is empty"):
        words_to_tags(["a", ""])
    with pytest.raises(DataError, match="2 characters but 1 tags"):
        tags_to_words("ab", ["S"])
    with pytest.raises(DataError, match="position 1: tag 'O' belongs to no word"):
        tags_to_words("ab", ["S", "O"])
    with pytest.raises(DataError, match="position 0: label 'X' does not fit the tag scheme BMES"):
        tags_to_words("ab", ["X", "S"])
    with pytest.raises(DataError, match="words must be a list of strings, got 3"):
        words_to_tags(3)  # type: ignore[arg-type]
    with pytest.raises(DataError, match=r"words must be a list of strings, got \['a', 1\]"):
        words_to_tags(["a", 1])  # type: ignore[list-item]
    with pytest.raises(DataError, match="characters are of type int; expected a list"):
        tags_to_words(3, ["S"])  # type: ignore[arg-type]
    with pytest.raises(DataError, match="tags are of type int; expected a list"):
        tags_to_words("a", 3)  # type: ignore[arg-type]
    with pytest.raises(DataError, match=r"chars must be a list of strings, got \[1\]"):
        tags_to_words([1], ["S"])  # type: ignore[list-item]
    with pytest.raises(DataError, match=r"tags must be a list of strings, got \[array"):
        tags_to_words("a", [np.zeros(2)])  # type: ignore[list-item]


def test_schemes_are_detected_in_lists_of_strings() -> None:
    assert detect_scheme({"B-X", "I-X"}) == "BIO"
    with pytest.raises(DataError, match="classes are of type int; expected a list"):
        detect_scheme(3)  # type: ignore[arg-type]
    assert detect_scheme(["B", 1]) is None


@pytest.mark.parametrize("name", NAMES)
def test_boundaries_are_those_of_spans(name: str) -> None:
    scheme, classes = get_scheme(name), labels_of(name, ("", "X", "Y"))
    starts, within = scheme.boundaries(classes)
    for (i, a), (j, b) in itertools.product(enumerate(classes), repeat=2):
        assert starts[i, j] == any(start == 1 for _, start, _ in scheme.spans([a, b]))
        assert within[j] == bool(scheme.spans([b]))
    with pytest.raises(DataError, match="does not fit the tag scheme"):
        scheme.boundaries(["O", "Q-X"])

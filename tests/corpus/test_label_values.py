"""Labels of any hashable type: what is one, their order, and how they are kept in files."""

import enum
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trellis.corpus import Labels
from trellis.corpus.label_values import (
    as_objects,
    in_order,
    is_missing,
    label_in_json,
    packed_labels,
    plain_label,
    unpacked_labels,
)
from trellis.errors import CorruptModelError, DataError


class Colour(enum.Enum):
    RED = 2
    BLUE = 1


class Size(enum.StrEnum):
    LARGE = "l"
    SMALL = "s"


PLAIN = st.one_of(
    st.text(max_size=3), st.integers(-5, 5), st.booleans(), st.floats(allow_nan=False)
)
LABEL = st.one_of(PLAIN, st.tuples(PLAIN), st.tuples(PLAIN, PLAIN), st.sampled_from(Colour))
GIVEN = st.one_of(LABEL, st.none(), st.just(math.nan), st.frozensets(LABEL, min_size=1))


def as_given(value):
    """What must come back for what was given."""
    if is_missing(value):
        return None
    if isinstance(value, frozenset):
        return next(iter(value)) if len(value) == 1 else value
    return value


@given(st.lists(st.lists(GIVEN, max_size=4), max_size=4))
def test_labels_come_back_as_they_went_in(y):
    labels = Labels.from_lists(y)
    assert labels.tolist() == [as_given(value) for sample in y for value in sample]
    assert list(labels.classes) == list(in_order(labels.classes))


@pytest.mark.parametrize(
    ("y", "kind"),
    [([3, 1, 2], int), ([True, False], bool), ([1.5], float), (list(Colour), Colour),
     (list(Size), Size), ([(1, "a")], tuple)],
)  # fmt: skip
def test_their_type_stays(y, kind):
    assert [type(label) for label in Labels.from_lists([y]).tolist()] == [kind] * len(y)


@pytest.mark.parametrize("y", [np.array([2, 0, 1]), np.array([True, False]), np.array(["b", "a"])])
def test_scalars_of_numpy_become_those_of_python(y):
    back = Labels.from_lists([y]).tolist()
    assert back == y.tolist() and all(
        type(a) is type(b) for a, b in zip(back, y.tolist(), strict=True)
    )


def test_what_is_equal_is_one_label():
    assert Labels.from_lists([[1, True, 1.0, np.int8(1)]]).classes == (1,)
    assert Labels.from_lists([[1, "1"]]).classes == (1, "1")


@pytest.mark.parametrize("value", [None, math.nan, np.float32("nan"), np.nan])
def test_what_is_missing_is_not_annotated(value):
    assert is_missing(value)
    labels = Labels.from_lists([["A", value]])
    assert labels.classes == ("A",) and labels.tolist() == ["A", None]


def test_order():
    assert in_order({10, 9}) == (9, 10)
    assert in_order([Colour.BLUE, Colour.RED]) == (Colour.RED, Colour.BLUE)
    assert in_order(["b", 2, "a", (1,)]) == (2, "a", "b", (1,))


@pytest.mark.parametrize("value", [[1], {}, bytearray()])
def test_what_has_no_hash_is_no_label(value):
    with pytest.raises(DataError, match=r"label at here is .* of type .*; expected a label"):
        plain_label(value, "here")


def test_tuples_stay_whole_in_arrays():
    array = as_objects([(1, 2), (3, 4)])
    assert array.shape == (2,) and array[[1, 0]].tolist() == [(3, 4), (1, 2)]


@given(st.lists(LABEL.filter(lambda x: not isinstance(x, Colour)), min_size=1))
def test_files_keep_labels(values):
    classes = in_order(dict.fromkeys(values))
    header, arrays = packed_labels(classes)
    back = unpacked_labels(header, arrays)
    assert back == classes
    assert [type(a) for a in back] == [type(b) for b in classes]


def test_files_keep_members_by_name():
    header, arrays = packed_labels((Colour.RED, Colour.BLUE))
    assert unpacked_labels(header, arrays) == ("RED", "BLUE")
    again = unpacked_labels(*packed_labels(("RED", "BLUE")))  # which are not in order
    assert again == ("RED", "BLUE")


def test_what_a_file_cannot_keep_is_refused():
    with pytest.raises(DataError, match="of type complex cannot be written to a file"):
        label_in_json(1j)


@pytest.mark.parametrize("text", ["", "{}", "[1]", "null", "NaN", '{"tuple": 1}', '{"float": "x"}'])
def test_texts_that_are_no_labels(text):
    from trellis.files.stored import pack_strings

    with pytest.raises(CorruptModelError, match="is no label"):
        unpacked_labels({"labels": "json"}, pack_strings([text], "classes."))


def test_classes_of_files_are_checked():
    from trellis.files.stored import pack_strings

    for texts, header, message in (
        (["b", "a"], {}, "distinct and sorted"),
        (["1", "1"], {"labels": "json"}, "classes must be distinct"),
        ([], {}, "no classes"),
    ):
        with pytest.raises(CorruptModelError, match=message):
            unpacked_labels(header, pack_strings(texts, "classes."))


def test_files_of_text_hold_names_of_labels(tmp_path):
    from trellis import write_conll, write_crfsuite, write_graphs
    from trellis.corpus import as_corpus, as_graph_corpus

    corpus = as_corpus([["a", "b"]], [[0, None]])
    write_conll(tmp_path / "f", corpus, labels=[[Colour.RED, (1,)]])
    assert (tmp_path / "f").read_text() == "a 0 RED\nb _ (1,)\n\n"
    write_crfsuite(tmp_path / "f", as_corpus([[["x"], ["y"]]], [[True, False]]))
    assert (tmp_path / "f").read_text() == "True\tx\nFalse\ty\n\n"
    write_graphs(tmp_path / "f", as_graph_corpus([["a", "b"]], [[1, 2]], edges=[[(0, 1)]]))
    assert (tmp_path / "f").read_text() == "a 1\nb 2\n@edge 1 2\n\n"


def test_json_lines_hold_numbers(tmp_path):
    from trellis import read_jsonl, write_jsonl
    from trellis.corpus import as_corpus

    y = [[0, True, 2.5, "a", None, {3, 4}]]
    write_jsonl(tmp_path / "f", as_corpus([list("abcdef")], y), predicted=[[Colour.RED] * 6])
    text = (tmp_path / "f").read_text()
    assert '"labels": [0, true, 2.5, "a", null, [3, 4]]' in text and '"RED"' in text
    again = read_jsonl(tmp_path / "f", "labels").label_lists()
    assert again == y and type(again[0][1]) is bool
    (tmp_path / "g").write_text('{"word": ["a"], "labels": [{"b": 1}]}\n')
    with pytest.raises(DataError, match="expected a string, a number, null or a list of these"):
        read_jsonl(tmp_path / "g")

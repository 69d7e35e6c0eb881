"""CSV files as samples: groups, kinds of columns, labels that are missing, and what is refused."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trellis import ChainCRF
from trellis.corpus.csv_table import format_csv, read_csv
from trellis.errors import DataError
from trellis.files.text import ReadText

TEXT = 's,word,len,tag\n1,The,3,D\n2,"a, b",4,N\n1,cat,3,N\n2,sat,3,\n'


def read(text, label="tag", **options):
    return read_csv(io.BytesIO(text.encode()), label, **{"group": "s"} | options)


def test_rows_are_put_into_samples():
    corpus = read(TEXT)
    assert [s.columns["word"] for s in corpus] == [["The", "cat"], ["a, b", "sat"]]
    assert corpus.label_lists() == [["D", "N"], ["N", None]]
    assert corpus.label_name == "tag" and corpus.columns["len"].numbers
    assert corpus.columns["len"].strings() == ["3.0", "3.0", "4.0", "3.0"]
    assert list(read(TEXT, columns=["word"]).columns) == ["word"]
    assert read(TEXT, None, columns=["word"]).labels is None


def test_numbers_alone_are_features():
    corpus = read("s,x,y,tag\n1,0.5,0,A\n1,2,1,B\n")
    assert corpus.features.names == ["x", "y"]
    assert corpus.features.values.tolist() == [0.5, 2.0, 1.0]
    assert ChainCRF(random_state=0).fit(corpus).predict(corpus) == [["A", "B"]]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.text('xy,"\n ', min_size=1)), min_size=1))
def test_further_columns_stand_beside_their_rows(rows):
    out = io.StringIO()
    import csv

    csv.writer(out, lineterminator="\n").writerows([("g", "word"), *rows])
    source = ReadText("f", out.getvalue().encode())
    corpus = read_csv(source, group="g", columns=["word"])
    words = [sample.columns["word"] for sample in corpus]
    text = format_csv(source, "g", {"word": words, "p": words})
    found = list(csv.reader(io.StringIO(text)))
    assert found == [["g", "word", "word_", "p"], *([g, w, w, w] for g, w in rows)]


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (TEXT, {"group": "x"}, "has no column 'x', only s, word, len, tag"),
        (TEXT, {"label": "x"}, "has no column 'x'"),
        (TEXT, {"columns": ["x"]}, "has no column 'x'"),
        ("s,word,tag\n1,,A\n", {}, "line 2, column 'word': the cell is empty"),
        ("s,word,tag\n,a,A\n", {}, "line 2, column 's': the cell is empty"),
        ("s,x,tag\n1,1,A\n1,,A\n", {}, "line 3, column 'x': the value is missing"),
        ("s,tag\n1,A\n", {}, "has no column to predict from"),
        ("s,word,tag\n1,a\n", {}, "line 2: 2 cells, but the header has 3"),
        ("", {}, "is empty"),
    ],
)
def test_bad_files(text, options, message):
    with pytest.raises(DataError, match=message):
        read(text, **options)


def test_the_header_alone():
    from trellis.corpus.csv_table import csv_columns

    assert csv_columns(ReadText("f", b'a, "b,c"\n1,"broken')) == ["a", '"b', 'c"']
    assert csv_columns(ReadText("f", TEXT.encode())) == ["s", "word", "len", "tag"]
    with pytest.raises(DataError, match="f is empty; expected a header"):
        csv_columns(ReadText("f", b""))

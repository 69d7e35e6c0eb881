"""Tables as samples: pandas, Polars and PyArrow; what comes back has their type and index."""

import enum

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trellis import ChainCRF, load_model
from trellis.corpus import as_corpus
from trellis.corpus.door import take_in
from trellis.corpus.tables import is_table
from trellis.errors import DataError

pytestmark = pytest.mark.extras
pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

WORDS = ["the", "cat", "a", "sat", "dog"]
TAGS = ["D", "N", "D", "V", "N"]
SENTENCES = [7, 7, 3, 7, 3]  # the rows of a sample need not be neighbours
ORDER = [0, 1, 3, 2, 4]


def frame(**columns):
    rows = {"sentence": SENTENCES, "word": WORDS, "tag": TAGS, **columns}
    return pd.DataFrame(rows, index=list("vwxyz"))


def in_library(table, library):
    if library == "polars":
        return pl.from_pandas(table)
    return pa.Table.from_pandas(table, preserve_index=False) if library == "pyarrow" else table


LIBRARIES = pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])


@LIBRARIES
def test_long_tables(library):
    table = in_library(frame(), library)
    assert is_table(table)
    corpus = as_corpus(table, "tag", columns=["word"], group="sentence")
    assert [s.columns["word"] for s in corpus] == [["the", "cat", "sat"], ["a", "dog"]]
    assert corpus.label_lists() == [["D", "N", "V"], ["D", "N"]]
    others = as_corpus(table, table["tag"], columns=["word"], group="sentence")
    assert others.label_lists() == corpus.label_lists()


@LIBRARIES
def test_what_comes_back_has_the_form_of_the_table(library):
    table = in_library(frame(), library)
    crf = ChainCRF(group="sentence", random_state=0).fit(table, "tag")
    assert crf.columns_ == ("word",)
    labels, chances = crf.predict(table), crf.predict_marginals(table)
    assert type(labels) is type(table["tag"]) and type(chances) is type(table)
    listed = labels.to_pylist() if library == "pyarrow" else labels.to_list()
    assert listed == TAGS
    lists = [["the", "cat", "sat"], ["a", "dog"]]
    expected = np.concatenate(crf.predict_marginals(lists))
    rows = chances.to_pandas() if library == "pyarrow" else chances
    assert list(rows.columns) == ["D", "N", "V"]
    np.testing.assert_array_equal(np.asarray(rows)[ORDER], expected)
    if library == "pandas":
        assert list(labels.index) == list(chances.index) == list("vwxyz")


@LIBRARIES
@pytest.mark.parametrize("labels", [[1, 0, 1, 2, 0], [True, False, True, True, False]])
def test_labels_keep_their_type(library, labels):
    table = in_library(frame(tag=labels), library)
    crf = ChainCRF(group="sentence", random_state=0).fit(table, "tag")
    back = crf.predict(table)
    listed = back.to_pylist() if library == "pyarrow" else back.to_list()
    assert listed == labels and all(type(a) is type(b) for a, b in zip(listed, labels, strict=True))
    assert crf.score(table, "tag") == 1.0


def test_labels_that_a_library_cannot_hold_come_back_in_a_list():
    class Colour(enum.Enum):
        RED = 1
        BLUE = 2

    y = [Colour.RED, Colour.BLUE, Colour.RED, Colour.BLUE, Colour.BLUE]
    for table in (frame(), in_library(frame(), "polars")):
        X = table.drop("tag", axis=1) if isinstance(table, pd.DataFrame) else table.drop("tag")
        back = ChainCRF(group="sentence", random_state=0).fit(X, y).predict(X)
        assert list(back) == y


@LIBRARIES
def test_tables_of_samples(library):
    parts = [in_library(part, library) for _, part in frame().groupby("sentence", sort=False)]
    crf = ChainCRF(columns=["word"], random_state=0).fit(parts, "tag")
    back = crf.predict(parts)
    assert [len(labels) for labels in back] == [3, 2]
    assert all(type(a) is type(part["tag"]) for a, part in zip(back, parts, strict=True))
    if library == "pandas":
        assert [list(labels.index) for labels in back] == [list("vwy"), list("xz")]
        assert list(crf.predict_marginals(parts)[1].index) == list("xz")
    again = ChainCRF(columns=["word"], random_state=0).fit(parts, [p["tag"] for p in parts])
    assert [list(y) for y in again.predict(parts)] == [list(y) for y in back]


def test_numbers_are_features():
    table = frame(height=[1.0, 0.0, 2.5, -1.0, 3.0], tall=[True, False, True, False, True])
    given = take_in(table, "tag", columns=["height", "tall"], group="sentence", symbols=False)
    features = given.corpus.features
    assert features.names == ["height", "tall"] and given.fields == ("height", "tall")
    assert features.indptr.tolist() == [0, 2, 2, 3, 5, 7]
    assert features.values.tolist() == [1.0, 1.0, -1.0, 2.5, 1.0, 3.0, 1.0]


def test_text_beside_numbers_gives_templates_for_both():
    table = frame(height=[1.0, 0.0, 2.5, -1.0, 3.0])
    crf = ChainCRF(group="sentence", random_state=0).fit(table, "tag")
    assert crf.columns_ == ("word", "height")
    text = crf.encoder_.templates.text()
    assert "number(height)" in text and "word[-2]" in text and "height[-2]" not in text
    assert crf.predict(table).to_list() == TAGS


def test_a_model_file_knows_its_columns(tmp_path):
    table = frame(height=[1.0, 0.0, 2.5, -1.0, 3.0])
    crf = ChainCRF(group="sentence", columns=["height"], random_state=0).fit(table, "tag")
    crf.save(tmp_path / "m")
    again = load_model(tmp_path / "m")
    assert (again.columns_, again.group) == (("height",), "sentence")
    pd.testing.assert_series_equal(again.predict(table), crf.predict(table))
    with pytest.raises(DataError, match="no column 'height'; it has sentence, word, tag"):
        again.predict(frame())


def test_missing_labels_are_not_annotated():
    for missing in (None, np.nan, pd.NA):
        table = frame(tag=["D", "N", missing, "V", "N"])
        corpus = as_corpus(table, "tag", columns=["word"], group="sentence")
        assert corpus.label_lists() == [["D", "N", "V"], [None, "N"]]
    table = frame(tag=pd.array([1, 0, None, 2, 0], dtype="Int64"))
    corpus = as_corpus(table, "tag", columns=["word"], group="sentence")
    assert corpus.label_lists() == [[1, 0, 2], [None, 0]]


def test_constraints_come_in_the_form_of_the_table():
    table = frame()
    crf = ChainCRF(group="sentence", random_state=0).fit(table, "tag")
    limits = pd.Series([None, "V", None, None, None], index=table.index, dtype=object)
    assert crf.predict(table, constraints=limits)["w"] == "V"
    assert crf.predict_marginals(table, constraints=limits).loc["w", "V"] == 1.0
    assert crf.predict(table, constraints=[["N", None, None], [None, None]])["v"] == "N"


def test_groups_are_kept_together_in_cross_validation():
    from sklearn.model_selection import GroupKFold, cross_val_predict, cross_val_score

    table = pd.concat(
        [frame().assign(sentence=lambda t, i=i: t.sentence + 10 * i) for i in range(4)]
    )
    table.index = range(len(table))
    crf, folds = ChainCRF(group="sentence", random_state=0), GroupKFold(2)
    X, y = table[["sentence", "word"]], table["tag"]
    scores = cross_val_score(crf, X, y, groups=table["sentence"], cv=folds)
    assert scores.tolist() == [1.0, 1.0]
    found = cross_val_predict(crf, X, y, groups=table["sentence"], cv=folds)
    assert found.tolist() == y.tolist()


def test_dev_data_are_tables_too():
    table = frame()
    crf = ChainCRF(group="sentence", random_state=0).fit(table, "tag", dev=(table, "tag"))
    assert crf.history_[-1].dev_score == 1.0


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from("abc")), min_size=1, max_size=12))
def test_rows_go_back_where_they_came_from(rows):
    table = pd.DataFrame(rows, columns=["g", "word"])
    given_ = take_in(table, table["word"], columns=["word"], group="g")
    lists = given_.corpus.label_lists()
    assert given_.form.labels(lists).to_list() == table["word"].to_list()
    chances = [np.array([[ord(x)] for x in sample], float) for sample in lists]
    back = given_.form.chances(chances, ("p",))
    assert back["p"].to_list() == [ord(x) for x in table["word"]]


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        ({}, {}, r"a table needs group=.*\(sentence, word, tag\); or pass a list of tables"),
        ({}, {"group": "s"}, "the table has no column 's'; it has sentence, word, tag"),
        ({"sentence": [1, 1, None, 1, 1]}, {"group": "sentence"}, "row 2: the column 'sentence'"),
        ({}, {"group": "sentence", "columns": ["x"]}, "no column 'x'"),
        ({"word": ["a", "b", None, "c", "d"]}, {"group": "sentence"},
         r"row 2, column 'word' is missing; .*keep_default_na=False"),
        ({"word": [1, 2, np.nan, 3, 4]}, {"group": "sentence"}, "row 2, column 'word' is missing"),
        ({"word": [1, 2, np.inf, 3, 4]}, {"group": "sentence"}, "row 2, column 'word' is inf"),
        ({"word": pd.date_range("2020", periods=5)}, {"group": "sentence"},
         "column 'word' holds Datetime.*; turn it into text or numbers, or leave it out"),
    ],
)  # fmt: skip
def test_bad_tables(change, options, message):
    with pytest.raises(DataError, match=message):
        ChainCRF(**options).fit(frame(**change), "tag")


def test_bad_labels_of_tables():
    crf = ChainCRF(group="sentence")
    with pytest.raises(DataError, match="no column 'tags'; it has sentence, word, tag"):
        crf.fit(frame(), "tags")
    with pytest.raises(DataError, match="y has 2 entries; the table has 5 rows in 2 samples"):
        crf.fit(frame(), ["D", "N"])
    with pytest.raises(DataError, match="no column to predict from beside"):
        crf.fit(frame()[["sentence", "tag"]], "tag")
    with pytest.raises(DataError, match="y='tag' names a column, but the samples are no tables"):
        crf.fit([["a"]], "tag")
    with pytest.raises(DataError, match="sample 1 is list; expected a table like others"):
        crf.fit([frame(), ["a"]], "tag")
    with pytest.raises(DataError, match="a column named 3; column names must be strings"):
        crf.fit(pd.DataFrame({3: [1]}), [1])
    with pytest.raises(DataError, match="LazyFrame cannot be read row by row; collect it first"):
        crf.fit(pl.from_pandas(frame()).lazy(), "tag")


def test_labels_may_be_a_table_of_one_column():
    X = frame()[["sentence", "word"]]
    crf = ChainCRF(group="sentence", random_state=0).fit(X, frame()[["tag"]])
    assert crf.predict(X).to_list() == TAGS
    with pytest.raises(DataError, match="labels are a table of 2 columns; expected one"):
        crf.fit(X, frame()[["tag", "word"]])


def test_two_columns_of_one_name():
    twice = pd.concat([frame(), frame()[["word"]]], axis=1)
    with pytest.raises(DataError, match=r"a table that cannot be read: .*'word' 2 times"):
        ChainCRF(group="sentence").fit(twice, "tag")


def test_nothing_comes_back_for_nothing():
    crf = ChainCRF(group="sentence", random_state=0).fit(frame(), "tag")
    assert len(crf.predict(frame().iloc[:0])) == 0
    assert crf.predict_marginals(frame().iloc[:0]).shape == (0, 3)


def test_unlabelled_text_may_be_a_table():
    crf = ChainCRF("word; cluster(word)", group="sentence", random_state=0)
    assert crf.fit(frame(), "tag", unlabelled=frame()).predict(frame()).to_list() == TAGS


def test_series_of_words_and_of_lists():
    words = [pd.Series(["the", "cat"]), pd.Series(["sat"])]
    assert as_corpus(words).columns["word"].strings() == ["the", "cat", "sat"]
    grouped = frame().groupby("sentence", sort=False)
    corpus = as_corpus(grouped["word"].agg(list), grouped["tag"].agg(list))
    assert corpus.label_lists() == [["D", "N", "V"], ["D", "N"]]


def test_a_pool_is_no_table():
    from trellis.cheap import ActiveLearner

    with pytest.raises(DataError, match=r"trellis.corpus.as_corpus\(table, group=...\) makes one"):
        ActiveLearner(ChainCRF(), labels=["D", "N"]).query(frame())

"""Datasets of Hugging Face as samples."""

import pytest

from trellis import ChainCRF
from trellis.corpus import as_corpus
from trellis.errors import DataError

pytestmark = pytest.mark.extras
datasets = pytest.importorskip("datasets", minversion="3")  # tests/datasets has no version
Sequence, Value, ClassLabel = datasets.Sequence, datasets.Value, datasets.ClassLabel

TOKENS = [["Ada", "Byron", "met"], ["me"]]


def dataset(pos=False):
    columns = {"id": ["0", "1"], "tokens": TOKENS, "ner_tags": [[1, 2, 0], [-1]]}
    kinds = {
        "id": Value("string"),
        "tokens": Sequence(Value("string")),
        "ner_tags": Sequence(ClassLabel(names=["O", "B-PER", "I-PER"])),
    }
    if pos:
        columns["pos_tags"] = [[0, 0, 1], [0]]
        kinds["pos_tags"] = Sequence(ClassLabel(names=["NOUN", "VERB"]))
    return datasets.Dataset.from_dict(columns, features=datasets.Features(kinds))


@pytest.mark.parametrize("y", [None, "ner_tags"])
def test_classes_are_read_by_name(y):
    corpus = as_corpus(dataset(), y)
    assert corpus.columns["tokens"].strings() == ["Ada", "Byron", "met", "me"]
    assert corpus.label_lists() == [["B-PER", "I-PER", "O"], [None]]
    assert list(corpus.columns) == ["tokens"]


def test_other_classes_are_columns():
    corpus = as_corpus(dataset(pos=True), "ner_tags")
    assert corpus[0].columns["pos_tags"] == ["NOUN", "NOUN", "VERB"]
    crf = ChainCRF("chunking", random_state=0).fit(dataset(pos=True), "ner_tags")
    assert set(crf.encoder_.templates.columns()) == {"tokens", "pos_tags"}
    assert as_corpus(dataset(pos=True), "ner_tags", columns=["tokens"]).columns.keys() == {"tokens"}


def test_fit_predict_and_score():
    data = dataset()
    crf = ChainCRF(random_state=0).fit(data)
    assert crf.predict(data)[0] == ["B-PER", "I-PER", "O"]
    assert crf.predict(data.remove_columns("ner_tags")) == crf.predict(TOKENS)
    assert crf.score(data) == crf.score(data, "ner_tags") == 1.0
    assert crf.predict(data, constraints=[["O", "O", "O"], [None]])[0] == ["O"] * 3
    assert crf.predict_marginals(data)[0].shape == (3, 3)


def test_lists_beside_a_dataset():
    data = dataset().remove_columns("ner_tags")
    assert ChainCRF(random_state=0).fit(data, [[1, 2, 0], [0]]).predict(data)[0] == [1, 2, 0]


@pytest.mark.parametrize(
    ("data", "y", "options", "message"),
    [
        (dataset(pos=True), None, {}, "fit needs labels: pass y"),
        (datasets.DatasetDict(train=dataset()), None, {}, r"several datasets \(train\); pass one"),
        (dataset(), "tags", {}, "the dataset has no column 'tags'; it has id, tokens, ner_tags"),
        (dataset(), None, {"columns": ["x"]}, "the dataset has no column 'x'"),
        (dataset(), None, {"columns": ["id"]}, "column 'id' of the dataset is no list of strings"),
        (dataset().remove_columns("tokens"), None, {}, "no column of lists of strings"),
        (dataset().to_iterable_dataset(), None, {}, "a dataset that streams"),
    ],
)
def test_what_cannot_be(data, y, options, message):
    with pytest.raises(DataError, match=message):
        ChainCRF(**options).fit(data, y)

"""Documents of spaCy as samples."""

import pytest

from trellis import ChainCRF
from trellis.corpus import as_corpus
from trellis.errors import DataError

pytestmark = pytest.mark.extras
spacy = pytest.importorskip("spacy")
from spacy.tokens import Doc, DocBin  # noqa: E402

VOCAB = spacy.blank("en").vocab
WORDS = ["Ada", "Byron", "met", "me"]
BIO = ["B-PER", "I-PER", "O", "O"]


def doc(**more):
    return Doc(VOCAB, words=WORDS, **more)


@pytest.mark.parametrize("y", [None, "ent"])
@pytest.mark.parametrize("packed", [False, True])
def test_entities_are_labels(y, packed):
    docs = [doc(ents=BIO), doc(ents=["B-PER", "O", "O", "O"])]
    corpus = as_corpus(DocBin(docs=docs, attrs=["ENT_IOB", "ENT_TYPE"]) if packed else docs, y)
    assert corpus[0].columns == {"word": WORDS}
    assert corpus.label_lists() == [BIO, ["B-PER", "O", "O", "O"]]


def test_attributes_are_columns_and_labels():
    docs = [doc(tags=["NNP", "NNP", "VBD", "PRP"], pos=["PROPN", "PROPN", "VERB", "PRON"])]
    corpus = as_corpus(docs, "tag", columns=["word", "pos", "shape"])
    assert corpus[0].columns["pos"][2] == "VERB" and corpus[0].columns["shape"][0] == "Xxx"
    assert corpus.label_lists() == [["NNP", "NNP", "VBD", "PRP"]]
    assert as_corpus([doc()], "ent").label_lists() == [[None] * 4]
    assert as_corpus([doc()]).labels is None


def test_fit_predict_and_back():
    docs = [doc(ents=BIO)] * 3
    crf = ChainCRF(random_state=0).fit(docs)
    assert crf.predict([doc()]) == [BIO] and crf.score(docs) == 1.0
    assert crf.predict([doc()], constraints=[["O"] * 4]) == [["O"] * 4]
    found = Doc(VOCAB, words=WORDS, ents=crf.predict([doc()])[0])
    assert [(e.text, e.label_) for e in found.ents] == [("Ada Byron", "PER")]


def test_what_cannot_be():
    for X, y, message in (
        (doc(), None, r"expected a list of documents, got one; pass \[doc\]"),
        ([doc(), WORDS], None, "sample 1 is list; expected a document like others"),
        ([doc()], "colour", "tokens of spaCy have no attribute 'colour'"),
        ([doc()], "tag", "no position is annotated"),
        ([doc()], None, "fit needs labels"),
    ):
        with pytest.raises(DataError, match=message):
            ChainCRF().fit(X, y)

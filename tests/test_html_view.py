"""What notebooks show: models, corpora, samples, explanations."""

import re
from html.parser import HTMLParser

from trellis import ChainCRF, Corpus
from trellis.html_view import labelled_text

X, Y = [["Ada", "met", "<b>"]] * 4, [["B-PER", "O", "O"]] * 4


class Texts(HTMLParser):
    """Collects texts, and checks that tags are closed."""

    def __init__(self):
        super().__init__()
        self.open, self.texts, self.styles = [], [], []

    def handle_starttag(self, tag, attrs):
        if tag != "br":
            self.open.append(tag)
        self.styles.append(dict(attrs).get("style", ""))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def read(text):
    parser = Texts()
    parser.feed(text)
    assert not parser.open
    return parser


def test_text_with_labels():
    page = read(labelled_text(["a&b", "c"], ["B-X", "O"], [0.5, 0.9]))
    assert [t for t in page.texts if t.strip()] == ["a&b", "B-X 50 %", "c"]
    coloured = [style for style in page.styles if "background" in style]
    assert len(coloured) == 1 and "0.20" in coloured[0]  # half as strong as a sure one


def test_a_type_has_one_colour():
    pages = [labelled_text(["a"], [label]) for label in ("B-X", "I-X", "B-Y")]
    colours = [re.search(r"hsla\((\d+)", page)[1] for page in pages]
    assert colours[0] == colours[1] != colours[2]


def test_sets_unknown_labels_and_long_texts():
    assert "A or B" in labelled_text(["a"], [frozenset({"B", "A"})])
    assert "1" in labelled_text(["a"], [1]) and read(labelled_text(["a"], [None]))
    assert "600 more" in labelled_text(["a"] * 1000)


def test_what_notebooks_show():
    crf = ChainCRF(random_state=0).fit(X, Y)
    corpus = Corpus.from_columns({"word": X}, Y)
    assert "&lt;b&gt;" in corpus[0]._repr_html_()
    for thing in (crf, corpus, corpus[0], crf.explain(X[:1])):
        assert "Ada" in " ".join(read(thing._repr_html_()).texts) or thing is crf
    explanation = crf.explain(X[:1])
    assert repr(explanation) == str(explanation)
    assert "title=" in explanation._repr_html_()
    assert repr(corpus[0]) == "<Sample 0: 3 positions; Ada met <b>>"
    assert repr(Corpus([0, 1])[0]) == "<Sample 0: 1 positions>"
    assert "l2" in crf._repr_html_() and "learned" in crf._repr_html_()

"""Sentences of Python's manual: what is quoted there is code, and nothing else is."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from trellis.demo import manual
from trellis.demo.manual import code_words
from trellis.errors import DataError, ParameterError

TEXT = """\
The "with" statement
********************

The "with" statement is used to wrap the execution of a block with
methods, e.g. "x.f(a, b)" (see *here*and there).  Two words.  What "a
b" is "c", "d"
is not known to the reader: it ends badly

   with_stmt ::= "with" expression for the rest of the line.

1. The dict "m["x"]" is quoted in quotes, so that is not clear.

* Only five words are here.
"""


@pytest.fixture
def topics(monkeypatch):
    """Another manual."""

    def replace(text):
        module = ModuleType("pydoc_data.topics")
        module.topics = {"a": text, "b": text}
        monkeypatch.setitem(sys.modules, "pydoc_data.topics", module)
        manual._sentences.cache_clear()

    yield replace
    manual._sentences.cache_clear()


def test_what_is_quoted_is_code(topics):
    topics(TEXT)
    words, labels = code_words(0)
    found = {" ".join(w): " ".join(y) for w, y in zip(words, labels, strict=True)}
    first = (
        "The with statement is used to wrap the execution of a block with methods e.g x.f(a, b) "
        "see here and there"
    )
    assert set(found) == {first, "Only five words are here"}
    assert found[first].split() == [
        "O", "B-code", *"OOOOOOOOOOOOO", "B-code", "I-code", *"OOOO",
    ]  # fmt: skip
    assert found["Only five words are here"].split() == list("OOOOO")


def test_the_manual_of_this_python():
    words, labels = code_words(0)
    assert len(words) > 1500
    assert len({tuple(sentence) for sentence in words}) > 0.99 * len(words)
    assert all(len(w) == len(y) for w, y in zip(words, labels, strict=True))
    assert not any('"' in word for sentence in words for word in sentence)
    said = [
        (w, y) for ws, ys in zip(words, labels, strict=True) for w, y in zip(ws, ys, strict=True)
    ]
    assert {("with", "O"), ("with", "B-code"), ("None", "B-code")} <= set(said)
    share = sum(y != "O" for _, y in said) / len(said)
    assert 0.03 < share < 0.1


def test_the_seed_is_the_order():
    all_words, all_labels = code_words(1)
    words, labels = code_words(1, n=50)
    assert (words, labels) == (all_words[:50], all_labels[:50])
    assert sorted(code_words(2)[0]) == sorted(all_words)
    assert code_words(2, n=50)[0] != words
    words[0][0] = "changed"
    assert code_words(1, n=1)[0][0][0] != "changed"


def test_bad_sizes_and_a_python_without_its_manual(monkeypatch):
    with pytest.raises(ParameterError, match="n must be"):
        code_words(0, n=0)
    with pytest.raises(ParameterError, match="seed must be"):
        code_words(-1)
    monkeypatch.setitem(sys.modules, "pydoc_data.topics", None)
    manual._sentences.cache_clear()
    with pytest.raises(DataError, match="without the text of its manual"):
        code_words(0)
    manual._sentences.cache_clear()

"""Documents of spaCy as samples: a token a position.

Columns are attributes of tokens by name, ``word`` being the text: ``columns=["word", "pos"]`` takes
``token.text`` and ``token.pos_``. By default there is ``word`` alone, which all text has. Labels
are the entities in BIO (``y="ent"``, and by default where documents have some) or another attribute
of tokens (``y="tag"``); what is not annotated is unknown.

``Doc(vocab, words, ents=labels)`` makes a document of what a model says.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trellis.corpus.corpus import Corpus
from trellis.corpus.form import LISTS, Form, Given
from trellis.corpus.labels import Labels
from trellis.errors import DataError

__all__ = ["docs", "is_docs"]


def is_docs(value: Any) -> bool:
    """Whether a value is documents: a DocBin, or a list of Docs; nothing is imported."""
    if type(value).__module__.startswith("spacy.tokens"):
        return True
    first = value[0] if isinstance(value, list | tuple) and value else None
    return _is_doc(first)


class Docs(Form):
    """Documents: labels may be an attribute of their tokens."""

    def __init__(self, listed: Sequence[Any]) -> None:
        self.listed = listed

    def label_lists(self, y: Any, what: str = "y") -> list[Any]:
        """Labels of each document, from an attribute of its tokens or from lists."""
        if isinstance(y, str):
            return [_labels(doc, y) for doc in self.listed]
        return LISTS.label_lists(y, what)


def docs(X: Any, y: Any, columns: Sequence[str] | None) -> Given:
    """Samples of documents, with their entities as labels if there are any."""
    if _is_doc(X):
        raise DataError("expected a list of documents, got one; pass [doc]")
    if hasattr(X, "get_docs"):
        from spacy.vocab import Vocab

        listed = list(X.get_docs(Vocab()))
    else:
        listed = list(X)
    for i, doc in enumerate(listed):
        if not _is_doc(doc):
            raise DataError(f"sample {i} is {type(doc).__name__}; expected a document like others")
    names = ["word"] if columns is None else list(columns)
    listed_columns = {name: [_column(doc, name) for doc in listed] for name in names}
    corpus = Corpus.from_columns(listed_columns)
    if y is None and any(doc.has_annotation("ENT_IOB") for doc in listed):
        y = "ent"
    if isinstance(y, str):
        labels = Labels.from_lists([_labels(doc, y) for doc in listed])
        corpus = Corpus(corpus.offsets, corpus.columns, labels=labels, label_name=y)
    return Given(corpus, Docs(listed), tuple(names))


def _is_doc(value: Any) -> bool:
    return type(value).__module__.startswith("spacy.tokens") and hasattr(value, "ents")


def _column(doc: Any, name: str) -> list[str]:
    """An attribute of all tokens, as text."""
    name = "text" if name in ("word", "form") else name
    if not len(doc):
        return []
    for attribute in (f"{name}_", name):
        if hasattr(doc[0], attribute):
            return [str(getattr(token, attribute)) for token in doc]
    raise DataError(f"tokens of spaCy have no attribute {name!r}; they have text, pos, tag, lemma")


def _labels(doc: Any, name: str) -> list[str | None]:
    """The labels of a document; None where it is not annotated."""
    if name not in ("ent", "ents", "ent_iob"):
        return [label or None for label in _column(doc, name)]
    return [
        None if not token.ent_iob_ else "O" if token.ent_iob_ == "O"
        else f"{token.ent_iob_}-{token.ent_type_}"
        for token in doc
    ]  # fmt: skip

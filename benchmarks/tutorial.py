"""The feature dicts of sklearn-crfsuite's tutorial on named entities, for any columns of words.

At each position the lower-cased word, its last two and three letters, whether it is upper case, a
title or digits, its tag and the tag's first two letters (if there are tags); of both neighbours the
same without the letters; BOS and EOS; a bias.
"""

from __future__ import annotations

from typing import Any

from trellis.corpus import Corpus, as_corpus

Item = dict[str, Any]


def dicts(corpus: Corpus) -> list[list[Item]]:
    """Feature dicts of all samples, from the first column and the column «pos», if there is one."""
    words, *_ = (column.strings() for column in corpus.columns.values())
    tags = corpus.columns["pos"].strings() if "pos" in corpus.columns else None
    bounds = zip(corpus.offsets[:-1].tolist(), corpus.offsets[1:].tolist(), strict=True)
    return [_sample(words[a:b], None if tags is None else tags[a:b]) for a, b in bounds]


def with_dicts(corpus: Corpus) -> Corpus:
    """The corpus with feature dicts in place of its columns."""
    return as_corpus(dicts(corpus), corpus.label_lists())


def _sample(words: list[str], tags: list[str] | None) -> list[Item]:
    own = [_word(word) for word in words]
    for t, tag in enumerate(tags or ()):
        own[t] |= {"postag": tag, "postag[:2]": tag[:2]}
    items = []
    for t, word in enumerate(words):
        item: Item = {"bias": 1.0, "word[-3:]": word[-3:], "word[-2:]": word[-2:]} | own[t]
        for k, mark in ((-1, "BOS"), (1, "EOS")):
            if 0 <= t + k < len(words):
                item |= {f"{k:+d}:{name}": value for name, value in own[t + k].items()}
            else:
                item[mark] = True
        items.append(item)
    return items


def _word(word: str) -> Item:
    return {
        "word.lower()": word.lower(),
        "word.isupper()": word.isupper(),
        "word.istitle()": word.istitle(),
        "word.isdigit()": word.isdigit(),
    }

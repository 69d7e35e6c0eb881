"""Encoders that know only some features: the same features as before, but for the others."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_encoder_state import KINDS, MORE, TRAIN, learned

from trellis.corpus import Corpus, as_corpus
from trellis.features import AttributeEncoder, Encoder, Templates
from trellis.features.state import encoder_from_state


def named(encoder: Encoder, corpus: Corpus) -> list[list[tuple[str, float]]]:
    """Names and values of the features of each position, in their order."""
    encoded = encoder.encode(corpus)
    names = np.array(encoder.names(np.arange(encoder.n_features)), object)[encoded.indices].tolist()
    values = encoded.values.tolist() or [1.0] * len(names)
    pairs, ends = list(zip(names, values, strict=True)), encoded.indptr.tolist()
    return [pairs[a:b] for a, b in itertools.pairwise(ends)]


def check(encoder: Encoder, keep: np.ndarray, corpora: list[Corpus]) -> Encoder:
    before = [named(encoder, corpus) for corpus in corpora]
    small, old = encoder.only(keep)
    assert sorted(old.tolist()) == np.flatnonzero(keep).tolist()
    assert small.n_features == keep.sum()
    names = encoder.names(old)
    assert small.names(np.arange(len(old))) == names
    if not isinstance(encoder, AttributeEncoder):  # whose groups have no numbers of their own
        assert small.groups().tolist() == encoder.groups()[old].tolist()
    assert small.crossed().tolist() == encoder.crossed()[old].tolist()
    for corpus, features in zip(corpora, before, strict=True):
        kept = [[pair for pair in position if pair[0] in set(names)] for position in features]
        assert named(small, corpus) == kept
        assert named(encoder, corpus) == features  # the old one is as it was
    return small


@pytest.mark.parametrize("kind", KINDS)
@given(seed=st.integers(0, 20), share=st.sampled_from([0, 0.3, 0.8, 1]))
def test_only_some_features(kind: str, seed: int, share: float) -> None:
    encoder = learned(KINDS[kind])
    keep = np.random.default_rng(seed).random(encoder.n_features) < share
    small = check(encoder, keep, [TRAIN, MORE])
    again = encoder_from_state(*small.state())  # and in a file
    assert named(again, MORE) == named(small, MORE)


def test_what_no_feature_needs_is_forgotten() -> None:
    encoder = learned("char; char[-1] & char")
    keep = np.array([name == "char[-1]=a & char=b" for name in encoder.names(np.arange(8))])
    small, _ = encoder.only(keep)
    assert [atom.values() for atom in small.atoms.values()] == [["a", "b"]]
    assert [column.radices for column in small.columns] == [[2], [2, 2]]


@pytest.mark.parametrize(
    "text", ["char; char[-1] & char; bos; ngrams(char, 2..3)", "edges = mark; char[1]"]
)
def test_what_was_forgotten_can_be_learned_again(text: str) -> None:
    encoder = learned(text)
    small, _ = encoder.only(np.arange(encoder.n_features) % 3 == 0)
    small.learn(TRAIN)
    assert small.n_features == encoder.n_features
    for mine, theirs in zip(named(small, TRAIN), named(encoder, TRAIN), strict=True):
        assert sorted(mine) == sorted(theirs)


def test_attributes() -> None:
    encoder = AttributeEncoder()
    corpus = as_corpus([[{"a": 2.0, "b": True}, {"c": "x"}, {"b": True, "c": "y", "a": 1}]])
    encoder.learn(corpus)
    for keep in ([1, 0, 1, 0], [0, 0, 0, 0], [1, 1, 1, 1]):
        check(encoder, np.array(keep, bool), [corpus])


def test_rich_templates() -> None:
    assert Templates.parse("char @ edge").templates[0].edge
    encoder = learned("char @ edge; char[-1]")
    check(encoder, np.arange(encoder.n_features) % 2 == 0, [TRAIN])

"""The panel of words: what it measures, against slower ways to say the same, and what it says."""

from __future__ import annotations

import functools
import itertools
import math
import re
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import trellis.datasets
from trellis.datasets import Sentences, stdlib_sentences
from trellis.demo.elements import summary_of
from trellis.demo.panels import words
from trellis.demo.panels.words import Counts, Dictionary, Scores, _words_right, starts_of

WORDS = st.lists(st.sampled_from(["a", "b", "ab", "ba", "aab", "c"]), min_size=1, max_size=5)


@pytest.fixture(scope="module")
def small():
    """The panel from few sentences."""
    with pytest.MonkeyPatch.context() as patch:
        few = functools.partial(stdlib_sentences, max_sentences=400)
        patch.setattr(trellis.datasets, "stdlib_sentences", few)
        patch.setattr(words, "_COMPARED", 60)
        patch.setattr(words, "_SEEDS", 2)
        patch.setattr(words, "_SIZES", (50,))
        yield words.panel(0), words.panel(0)


def cuts(text):
    """All ways to cut a text into words."""
    for bits in itertools.product([False, True], repeat=len(text) - 1):
        at = [0, *(i + 1 for i, cut in enumerate(bits) if cut), len(text)]
        yield [text[a:b] for a, b in itertools.pairwise(at)]


@given(st.lists(WORDS, min_size=1, max_size=4), st.text("abc", min_size=1, max_size=7))
def test_most_probable_words_are_the_best_of_all(sentences, text):
    count = Counter(itertools.chain.from_iterable(sentences))
    total = count.total()

    def log(word):
        chance = count[word] / total if word in count else 10 / (total * 10 ** len(word))
        return math.log(chance)

    found = Dictionary([" ".join(s) for s in sentences]).most_probable(text)
    at = [*np.flatnonzero(found).tolist(), len(text)]
    score = sum(log(text[a:b]) for a, b in itertools.pairwise(at))
    assert score == pytest.approx(max(sum(map(log, cut)) for cut in cuts(text)))


@given(WORDS, st.data())
def test_words_that_are_right(gold, data):
    text = "".join(gold)
    said = data.draw(st.sampled_from(list(cuts(text))))

    def spans(cut):
        ends = list(itertools.accumulate(map(len, cut), initial=0))
        return set(itertools.pairwise(ends))

    expected = len(spans(gold) & spans(said)), len(said), len(gold)
    assert _words_right(starts_of(gold), starts_of(said)) == expected


def test_scores_by_module():
    scores = Scores(Sentences(["a cat", "the dog", "a dog"], ["m", "n", "m"]))
    said = [starts_of(w) for w in (["a", "cat"], ["thedog"], ["ad", "og"])]
    counts = scores.counts(said)
    assert counts.right.tolist() == [2, 0]
    assert counts.said.tolist() == [4, 1]
    assert counts.there.tolist() == [4, 2]
    assert counts.share_whole == 1 / 3
    assert counts.f1() == pytest.approx(2 * 2 / 11)
    assert (counts + counts).f1() == counts.f1()
    assert (counts + counts).share_whole == counts.share_whole


def test_intervals_are_of_modules():
    each = np.full(30, 10.0)
    good, bad = (
        Counts(0.9 * each, each, each, each, each),
        Counts(0.7 * each, each, each, each, each),
    )
    assert good.interval() == pytest.approx((0.9, 0.9))  # all modules alike
    assert good.interval_of_difference(bad) == pytest.approx((0.2, 0.2))
    rng = np.random.default_rng(0)
    mixed = Counts(10.0 * rng.integers(0, 2, 30), each, each, each, each)
    low, high = mixed.interval()
    share = mixed.f1()
    wide = 1.96 * math.sqrt(share * (1 - share) / 30)  # the normal approximation
    assert (high - low) / 2 == pytest.approx(wide, rel=0.2)


@pytest.mark.parametrize(
    ("share", "words_said"),
    [(0.9, "more than"), (0.5, "less than"), (0.7, "not surely other than")],
)
def test_what_is_said_depends_on_the_interval(share, words_said):
    class Fitted:
        history_ = ()

    each = np.full(20, 10.0)
    rng = np.random.default_rng(1)
    noise = rng.normal(0, 0.5, 20)
    ours = Counts(share * each + noise - noise.mean(), each, each, each / 2, each)
    dumb = Counts(0.7 * each, each, each, each / 2, each)
    train = Sentences(["a line is here"], ["m"])
    text = words.sentence(train, Fitted(), ours, dumb)
    assert f"that is {words_said} the 70.0 %" in text
    assert f"F1 {100 * share:.1f} %" in text


def test_the_panel(small):
    made, again = small
    assert "a line" not in summary_of(made)
    assert re.search(r"F1 [\d.]+ % and gets [\d.]+ % of sentences", summary_of(made))
    for part in ("words-box", "words-answer", "words-why", "words-model", "train.corpus()"):
        assert part in made
    assert made.count('<svg class="chart"') == 2
    seconds = re.compile(r"took [\d.]+ s")
    assert seconds.sub("", made) == seconds.sub("", again)


def test_only_what_the_script_understands_is_shown():
    from trellis import ChainCRF
    from trellis.errors import DataError

    corpus = Sentences(["a line is here", "here is a line"], ["m", "n"]).corpus()
    crf = ChainCRF("wordseg", max_passes=1, random_state=0).fit(corpus)
    with pytest.raises(DataError, match="whose features all have rich edges"):
        words.model_in_page(crf)

"""Read text without spaces: a CRF over letters, learned from the docstrings of Python's library.

The page holds the model, so that the box answers without Python. What is measured, on sentences of
modules that were not learned from: F1 of words, each sentence's words compared as spans. Intervals
(95 %) are of bootstrap samples of those modules, since sentences of one module are alike. The dumb
alternative knows the same training sentences: the most probable words, each by its own frequency
(an unknown word of n letters has 10 / (N 10ⁿ)).
"""

from __future__ import annotations

import base64
import html
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from trellis.demo.charts import Curve, Measured, curves, intervals
from trellis.demo.elements import asset, code_of, data, figure, note, percent, script, summary
from trellis.demo.warm import warm_plain, warm_rich
from trellis.errors import DataError

if TYPE_CHECKING:
    from trellis.datasets import Sentences
    from trellis.models import ChainCRF

TITLE = "Read text without spaces"

Bools = NDArray[np.bool_]
_COMPARED = 1000  # sentences to learn from where settings are compared
_SEEDS = 3
_SIZES = (100, 300, 1000, 3000)
_DRAWS = 1000  # bootstrap samples
_LOG_10 = math.log(10)
_SETTINGS: dict[str, dict[str, Any]] = {
    "CRF, plain edges, whole": {},
    "CRF, plain edges, pieces": {"piece_size": 5.5},
    "CRF, rich edges, whole": {"rich_edges": True},
    "CRF, rich edges, pieces": {"rich_edges": True, "piece_size": 5.5},
}
_TRY = (
    "restorethespacesinthistext",
    "raiseanerrorifthenameisunknown",
    "atrainleavesthestation",
    "wemeettogether",
)


def example(seed: int) -> tuple[Sentences, Sentences, ChainCRF, list[Any]]:
    """Learn from all training sentences."""
    from trellis import ChainCRF
    from trellis.datasets import stdlib_sentences

    train, test = stdlib_sentences().split(0.15)
    crf = ChainCRF("wordseg", rich_edges=True, piece_size=5.5, random_state=seed)
    crf.fit(train.corpus())
    answer = crf.predict([list("restorethespacesinthistext")])
    return train, test, crf, answer


WARM = (warm_rich, warm_plain)


def panel(seed: int) -> str:
    """The panel."""
    train, test, crf, _ = example(seed)
    scores = Scores(test)
    learned = scores.counts(crf_starts(crf, test))
    compared = compare(train, scores, seed)
    sizes, ours, theirs = grow(train, scores, learned, seed)
    growth = [
        _curve("CRF, rich edges, pieces", sizes, ours),
        _curve("most probable words", sizes, theirs),
    ]
    return (
        summary(sentence(train, crf, learned, theirs[-1]))
        + _box()
        + '<div class="columns">'
        + figure(
            intervals([_measured(*named) for named in compared.items()], "F1 of words, %"),
            f"Learned from {_COMPARED:,} sentences: {_SEEDS} draws of sentences and seeds; 95 % "
            "intervals over modules that were not learned from. " + difference(compared),
        )
        + figure(
            curves(growth, "sentences to learn from", "F1 of words, %", log_x=True),
            "The same against a dictionary with the frequency of each word, from 100 sentences to "
            "all of them; bands are 95 % intervals.",
        )
        + "</div>"
        + code_of(example, seed=seed)
        + note(
            f"{len(train.sentences) + len(test.sentences):,} sentences of docstrings of Python's "
            "standard library, letters in lower case, no punctuation; "
            f"{len(test.sentences):,} of them, of {len(set(test.modules))} other modules, are to "
            "test. «Pieces»: trained on random mini-samples of 5.5 letters on average (structure "
            "regularisation); «rich edges»: features see pairs of labels. The box runs the model "
            "that the code made, in JavaScript in this page, with weights rounded to 16 bits. It "
            "has read nothing but docstrings: everyday words may be foreign to it."
        )
        + model_in_page(crf)
        + script(asset("trellis.demo.panels", "words.js"))
    )


def sentence(train: Sentences, crf: ChainCRF, learned: Counts, dumb: Counts) -> str:
    """What was found, in words."""
    ours, theirs = learned.f1(), dumb.f1()
    low, high = learned.interval_of_difference(dumb)
    better = "more than" if low > 0 else "less than" if high < 0 else "not surely other than"
    seconds = sum(record.seconds for record in crf.history_)
    return (
        f"{len(crf.history_)} passes over {train.n_letters:,} letters took {seconds:.1f} s. On "
        f"sentences of modules it never saw, the CRF finds words with F1 {100 * ours:.1f} % and "
        f"gets {percent(learned.share_whole)} of sentences right to the last letter; that is "
        f"{better} the {100 * theirs:.1f} % and {percent(dumb.share_whole)} of a dictionary of the "
        f"same sentences (difference in F1 {100 * low:+.1f} to {100 * high:+.1f})."
    )


# ---------------------------------------------------------------------------- what is measured


@dataclass(frozen=True)
class Counts:
    """Of each module: words that are right, said and there; sentences that are right and there."""

    right: NDArray[np.float64]
    said: NDArray[np.float64]
    there: NDArray[np.float64]
    whole: NDArray[np.float64]
    sentences: NDArray[np.float64]

    @property
    def share_whole(self) -> float:
        """Share of sentences that are right to the last letter."""
        return float(self.whole.sum() / self.sentences.sum())

    def f1(self, draws: NDArray[np.float64] | None = None) -> Any:
        """F1 of all modules, or of each draw of them (weights of modules in rows)."""
        weights = np.ones(len(self.right)) if draws is None else draws
        return 2 * (weights @ self.right) / (weights @ (self.said + self.there))

    def interval(self) -> tuple[float, float]:
        """95 % interval of F1."""
        low, high = np.percentile(self.f1(_draws(len(self.right))), [2.5, 97.5])
        return float(low), float(high)

    def interval_of_difference(self, other: Counts) -> tuple[float, float]:
        """95 % interval of the difference in F1, on the same draws of modules."""
        draws = _draws(len(self.right))
        low, high = np.percentile(self.f1(draws) - other.f1(draws), [2.5, 97.5])
        return float(low), float(high)

    def __add__(self, other: Counts) -> Counts:
        return Counts(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))


def _draws(n: int) -> NDArray[np.float64]:
    """How often bootstrap samples draw each module; the same for all that is compared."""
    drawn = np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), size=_DRAWS)
    return drawn.astype(np.float64)


class Scores:
    """Scores segmentations of test sentences; a segmentation says which letters begin a word."""

    def __init__(self, test: Sentences) -> None:
        self.texts = [sentence.replace(" ", "") for sentence in test.sentences]
        self.gold = [starts_of(sentence.split()) for sentence in test.sentences]
        self.module = np.unique(test.modules, return_inverse=True)[1]
        self.corpus = test.corpus()

    def counts(self, starts: Sequence[Bools]) -> Counts:
        """Compare with the truth."""
        pairs = zip(self.gold, starts, strict=True)
        rows = [(*_words_right(g, p), np.array_equal(g, p), 1) for g, p in pairs]
        columns = np.array(rows, np.float64).T
        return Counts(*(np.bincount(self.module, column).astype(np.float64) for column in columns))


def _words_right(gold: Bools, said: Bools) -> tuple[int, int, int]:
    """How many words are right, said and there.

    Examples
    --------
    >>> _words_right(starts_of(["a", "cat", "sat"]), starts_of(["a", "cat", "s", "at"]))
    (2, 4, 3)
    """
    both = np.flatnonzero(gold & said)
    # A word is right if its begin and the next begin of either side are begins of both.
    after = np.append(np.flatnonzero(gold | said), len(gold))
    ends = after[np.searchsorted(after, both, side="right")]
    right = int(np.isin(ends, np.append(both, len(gold))).sum())
    return right, int(said.sum()), int(gold.sum())


def starts_of(words: Sequence[str]) -> Bools:
    """Which letters begin a word.

    Examples
    --------
    >>> starts_of(["a", "cat"]).tolist()
    [True, True, False, False]
    """
    starts = np.zeros(sum(map(len, words)), np.bool_)
    starts[np.cumsum([0, *map(len, words[:-1])])] = True
    return starts


def crf_starts(crf: ChainCRF, test: Any) -> list[Bools]:
    """What a model says of sentences, or of a corpus of them."""
    corpus = test.corpus() if hasattr(test, "sentences") else test
    return [
        np.array([t == 0 or y in "BS" for t, y in enumerate(tags)]) for tags in crf.predict(corpus)
    ]


class Dictionary:
    """Words and their frequencies: what the dumb alternative knows.

    Examples
    --------
    >>> known = Dictionary(["a cat sat", "cats sat at a"])
    >>> known.most_probable("acatsat").tolist()
    [True, True, False, False, True, False, False]
    """

    def __init__(self, sentences: Sequence[str]) -> None:
        count = Counter(word for sentence in sentences for word in sentence.split())
        total = count.total()
        self._log = {word: math.log(n / total) for word, n in count.items()}
        self._unknown = math.log(10 / total)
        self._ends = {word[k:] for word in count for k in range(len(word))}

    def most_probable(self, text: str) -> Bools:
        """The words whose frequencies have the largest product."""
        best, begin = [0.0], [0]
        # An unknown word loses log 10 a letter: the best place for its begin is known beforehand.
        fresh, fresh_begin = 0.0, 0
        for j in range(1, len(text) + 1):
            top = fresh + self._unknown - _LOG_10 * j
            at, i = fresh_begin, j - 1
            while i >= 0 and text[i:j] in self._ends:
                log = self._log.get(text[i:j])
                if log is not None and best[i] + log > top:
                    top, at = best[i] + log, i
                i -= 1
            best.append(top)
            begin.append(at)
            if top + _LOG_10 * j > fresh:
                fresh, fresh_begin = top + _LOG_10 * j, j
        starts: Bools = np.zeros(len(text), np.bool_)
        j = len(text)
        while j:
            j = begin[j]
            starts[j] = True
        return starts


def compare(train: Sentences, scores: Scores, seed: int) -> dict[str, Counts]:
    """All settings and the dumb alternative, learned from the same draws of few sentences."""
    found: dict[str, Counts] = {}

    def add(name: str, starts: Sequence[Bools]) -> None:
        counts = scores.counts(starts)
        found[name] = found[name] + counts if name in found else counts

    for k in range(_SEEDS):
        few = _some(train, _COMPARED, seed * _SEEDS + k)
        known = Dictionary(few.sentences)
        add("most probable words", [*map(known.most_probable, scores.texts)])
        for name, options in _SETTINGS.items():
            add(name, crf_starts(_fit(few, seed * _SEEDS + k, options), scores.corpus))
    return found


def grow(
    train: Sentences, scores: Scores, learned: Counts, seed: int
) -> tuple[list[int], list[Counts], list[Counts]]:
    """Numbers of sentences, and what a CRF and a dictionary learn from them.

    ``learned`` is what the CRF has from all.
    """
    options = list(_SETTINGS.values())[-1]
    everything = len(train.sentences)
    sizes = [n for n in _SIZES if n < everything] + [everything]
    ours, theirs = [], []
    for n in sizes:
        some = _some(train, n, seed)
        known = Dictionary(some.sentences)
        theirs.append(scores.counts([*map(known.most_probable, scores.texts)]))
        fitted = None if n == everything else _fit(some, seed, options)
        ours.append(learned if fitted is None else scores.counts(crf_starts(fitted, scores.corpus)))
    return sizes, ours, theirs


def difference(compared: dict[str, Counts]) -> str:
    """What rich edges and pieces bring together, in words."""
    plain, *_, rich = (compared[name] for name in _SETTINGS)
    low, high = (100 * end for end in rich.interval_of_difference(plain))
    sure = "" if low > 0 or high < 0 else ", which is not sure"
    return f"Rich edges and pieces together change F1 by {low:+.1f} to {high:+.1f}{sure}."


def _some(train: Sentences, n: int, seed: int) -> Sentences:
    """A random draw of sentences."""
    chosen = np.sort(np.random.default_rng(seed).permutation(len(train.sentences))[:n])
    return replace(
        train,
        sentences=[train.sentences[i] for i in chosen],
        modules=[train.modules[i] for i in chosen],
    )


def _fit(train: Sentences, seed: int, options: dict[str, Any]) -> ChainCRF:
    from trellis.models import ChainCRF

    return ChainCRF("wordseg", random_state=seed, **options).fit(train.corpus())


def _measured(name: str, counts: Counts) -> Measured:
    low, high = counts.interval()
    return Measured(name, 100 * counts.f1(), 100 * low, 100 * high)


def _curve(name: str, sizes: Sequence[int], found: Sequence[Counts]) -> Curve:
    rows = [_measured(name, counts) for counts in found]
    return Curve(
        name, sizes, [r.value for r in rows], [r.low for r in rows], [r.high for r in rows]
    )


# ---------------------------------------------------------------------------- the box


def _box() -> str:
    tries = "".join(f'<button type="button" class="try">{html.escape(t)}</button> ' for t in _TRY)
    return (
        "<style>"
        "#words-answer{display:flex;flex-wrap:wrap;gap:6px 10px;margin:12px 0;min-height:56px}"
        "#words-answer .word{display:inline-flex;flex-wrap:wrap;flex-direction:row;"
        "border-bottom:3px solid color-mix(in srgb,var(--c2) calc(100%*var(--sure)),var(--c1));"
        "padding:0 2px}"
        "#words-answer small{flex-basis:100%;color:var(--faint);font-size:.72rem}"
        "#words-answer .letter{border:0;background:none;padding:0 1px;font-size:1.25rem;"
        "line-height:1.3;border-radius:3px}"
        "#words-answer .letter:hover,#words-answer .letter:focus-visible{background:var(--mark)}"
        "#words-why{min-height:212px}#words-why p{margin:4px 0}"
        "button.try{font-size:.82rem;padding:2px 8px;margin:6px 4px 0 0}"
        "</style>"
        '<label for="words-box">Type letters without spaces:</label>'
        f'<input type="text" id="words-box" value="{_TRY[0]}" autocomplete="off" '
        'autocapitalize="off" spellcheck="false" maxlength="200">'
        f'<div>{tries}</div><div id="words-answer" aria-live="polite"></div>'
        '<p class="note">Below each word: how probable it is. Choose a letter to see why it got '
        'its label.</p><div id="words-why"></div>'
    )


def model_in_page(crf: ChainCRF) -> str:
    """The model as data for the script: all that its features and scores need."""
    from trellis.features import TemplateEncoder

    encoder, weights = crf.encoder_, crf.weights_
    assert isinstance(encoder, TemplateEncoder)
    names = encoder.names(np.arange(encoder.n_features))
    edge = weights.edge
    if edge is None or edge.ptr.size or not np.array_equal(edge.row, np.arange(len(names))):
        raise DataError(
            "the page can show models whose features all have rich edges, with all pairs"
        )
    node, node_scale = _short(weights.node)
    pairs, edge_scale = _short(edge.values)
    words = encoder.lexicons["char"].words
    return data(
        "words-model",
        {
            "labels": crf.state_labels,
            "templates": [str(column.template) for column in encoder.columns],
            "names": "\n".join(names),
            "words": " ".join(words),
            "longest": max(map(len, words)),
            "node": node,
            "node_scale": node_scale,
            "edge": pairs,
            "edge_scale": edge_scale,
            "transitions": weights.transitions.astype(np.float64).ravel().round(5).tolist(),
        },
    )


def _short(weights: NDArray[Any]) -> tuple[str, float]:
    """Weights as 16-bit numbers in base64, and what to multiply them by."""
    scale = float(np.abs(weights).max(initial=0.0)) / 32767 or 1.0
    whole = np.round(weights / scale).astype("<i2")
    return base64.b64encode(whole.tobytes()).decode(), scale

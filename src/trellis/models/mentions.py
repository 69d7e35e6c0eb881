r"""Training on marked mentions: what is presumed of the words that nobody marked.

Marked mentions are certain; a word without a mark, whether its label is "O" or None, is outside or
in a mention that was missed. Taken for outside, it teaches the model to miss as its annotators did;
taken for unknown, nothing says that anything is outside, and the model sees mentions everywhere. So

1. the samples are divided into three folds, and the samples of each are judged by a *first model*
   of the other two, in which all that is not marked is outside;
2. from its judgement and the marks comes the chance :math:`p_v` that an unmarked position belongs
   to a missed mention (:mod:`trellis.problems.missed_mentions`);
3. a position with :math:`p_v \le 0.1` is *surely outside*; of the others nothing is known, but that
   they do not go on with a marked mention, which is complete.

What is so known is learned from as partial annotation always is. Instead of 3., no unmarked
position is taken for outside, and the share of positions in mentions that the model expects is held
near a given one (:mod:`trellis.problems.entity_ratio`), or near that which 2. expects.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from trellis.arrays import Bools, Float64s, Int64s
from trellis.corpus import Corpus, Labels
from trellis.corpus.label_values import in_order
from trellis.corpus.schemes import Scheme, detect_scheme, get_scheme
from trellis.errors import DataError
from trellis.problems.missed_mentions import missed_by_type, share_marked

__all__ = ["OUTSIDE", "Mentions", "judged_by_others", "lacks_outside", "sure", "with_labels"]

OUTSIDE = "O"
"""The label of what is in no mention."""

_FOLDS = 3
_SURE = 0.1  # more likely missed than this: nothing is known
_MUCH = 0.1  # share of the positions that is worth a warning


@dataclass(frozen=True)
class Mentions:
    """The marked mentions of a corpus.

    Parameters
    ----------
    labels : Labels
        What was said of each position, with "O" among the classes.
    offsets : int64, shape (S + 1,)
        Bounds of the samples.

    Examples
    --------
    >>> from trellis.corpus import as_corpus
    >>> mentions = Mentions.of(as_corpus([["in", "New", "York", "City"]], [[None, "B", "I", None]]))
    >>> mentions.marked.tolist(), mentions.if_outside().tolist()
    ([False, True, True, False], ['O', 'B', 'I', 'O'])
    >>> [sorted(known) for known in mentions.presumed(np.zeros(4, bool)).tolist()[::3]]
    [['B', 'O'], ['B', 'O']]
    """

    labels: Labels
    offsets: Int64s

    @classmethod
    def of(cls, corpus: Corpus) -> Mentions:
        """The mentions that the labels of a corpus mark."""
        labels = corpus.labels
        assert labels is not None
        if not all(isinstance(label, str) for label in labels.classes):
            odd = next(label for label in labels.classes if not isinstance(label, str))
            raise DataError(
                f"marked mentions have labels that are strings, with {OUTSIDE!r} for what is "
                f"outside of them; {odd!r} is none (or leave partial='unknown')"
            )
        mentions = cls(
            labels.recoded(in_order({*labels.classes, OUTSIDE})), np.asarray(corpus.offsets)
        )
        if not mentions.marked.any():
            raise DataError(
                "no mention is marked: all labels are 'O' or None, and there is nothing to learn "
                "from (is this the label column?)"
            )
        if mentions.marked.all():
            raise DataError(
                "every position is marked: the label of what is outside of mentions, or was "
                "missed, must be 'O' or None (or leave partial='unknown')"
            )
        return mentions

    @cached_property
    def marked(self) -> Bools:
        """Whether each position is marked: it may not be outside (N,)."""
        marked: Bools = ~self.labels.table[:, self._outside][self.labels.ids]
        return marked

    @property
    def _outside(self) -> int:
        return self.labels.classes.index(OUTSIDE)

    @cached_property
    def _scheme(self) -> Scheme | None:
        name = detect_scheme(self.labels.classes)
        return None if name is None else get_scheme(name)

    @cached_property
    def types(self) -> Int64s:
        """The type of each label; −1 of "O" (L,)."""
        parsed = [
            label if self._scheme is None else self._scheme.parse(label)[1]
            for label in self.labels.classes
        ]
        names = [kind for a, kind in enumerate(parsed) if a != self._outside]
        place = {kind: k for k, kind in enumerate(dict.fromkeys(names))}
        return np.array(
            [-1 if a == self._outside else place[kind] for a, kind in enumerate(parsed)], np.int64
        )

    @cached_property
    def goes_on(self) -> Bools:
        """Which labels go on with a mention that began before (L,)."""
        if self._scheme is None:
            return np.zeros(len(self.labels.classes), bool)
        return np.array([self._scheme.parse(label)[0] in "IE" for label in self.labels.classes])

    def if_outside(self) -> Labels:
        """The labels if all that is not marked were outside."""
        ids = np.where(self.marked, self.labels.ids, self._outside)
        return Labels(ids.astype(np.int32), self.labels.sets, self.labels.classes)

    def presumed(self, outside: Bools) -> Labels:
        """The labels if some unmarked positions are outside and of the others nothing is known.

        No mention goes on from a marked one, from what is outside or from nowhere.
        """
        n, ids = len(self.labels.classes), self.labels.ids.astype(np.int64)
        ids[outside & ~self.marked] = self._outside
        begins = frozenset(np.flatnonzero(~self.goes_on).tolist())
        unknown = (ids == n) | (~self.marked & ~outside & (ids == self._outside))
        ids[unknown] = n
        if len(begins) < n:
            settled = self.marked | outside
            before = np.ones(len(ids), bool)  # whether what is before is settled, or nothing
            before[1:] = settled[:-1]
            before[self.offsets[:-1][np.diff(self.offsets) > 0]] = True
            ids[unknown & before] = n + 1 + len(self.labels.sets)
        return Labels(ids.astype(np.int32), (*self.labels.sets, begins), self.labels.classes)

    def missed(self, chances: Float64s) -> Float64s:
        """Chance that each unmarked position is in a mention that was missed (N,).

        ``chances`` (N, L) are those of the labels, by models that have not seen the samples.
        """
        n_types = int(self.types.max()) + 1
        by_type = np.stack(
            [chances[:, self.types == k].sum(axis=1) for k in range(n_types)], axis=1
        )
        # A set of labels counts as the type of its first.
        first = self.labels.table[self.labels.ids].argmax(axis=1)
        return missed_by_type(np.where(self.marked, self.types[first], -1), by_type)

    def share_marked(self, chances: Float64s) -> float:
        """Share of the positions in mentions that are marked."""
        return share_marked(self.marked, 1.0 - chances[:, self._outside])


def judged_by_others(
    corpus: Corpus,
    fitted: Callable[[Int64s], Any],
    marked: Bools,
    rng: np.random.Generator,
    told: Callable[[str], None],
) -> Float64s:
    """Chances of labels (N, L) by models that have not seen the sample: cross-fitting.

    ``fitted`` gives the model of some samples, ``told`` is told what is being done.
    """
    n = len(corpus)
    folds = min(_FOLDS, n)
    if folds < 2:
        raise DataError(
            "partial='mentions' judges each sample by a model of others, so it needs two samples "
            "at least; divide the text into sentences"
        )
    # Samples with marks and those without are dealt out one after the other, so that each fold has
    # its share of both.
    has_mark = np.add.reduceat(np.append(marked, False), corpus.offsets[:-1]) > 0
    has_mark[np.diff(corpus.offsets) == 0] = False
    order = rng.permutation(n)
    order = order[np.argsort(~has_mark[order], kind="stable")]
    fold = np.empty(n, np.int64)
    fold[order] = np.arange(n) % folds
    parts: list[Any] = [None] * n
    for k in range(folds):
        told(f"first model {k + 1} of {folds}")
        held_out = np.flatnonzero(fold == k)
        model = fitted(np.flatnonzero(fold != k))
        for i, chances in zip(
            held_out, model.predict_marginals(corpus.take(held_out)), strict=True
        ):
            parts[i] = chances
    return np.concatenate(parts)


def sure(missed: Float64s) -> Bools:
    """Which positions are surely outside, if they are not marked."""
    result: Bools = missed <= _SURE
    return result


def lacks_outside(labels: Labels) -> bool:
    """Whether spans of types are marked, much is not annotated, and nothing is surely outside.

    Examples
    --------
    >>> lacks_outside(Labels.from_lists([["B-X", "I-X", None, None]]))
    True
    >>> lacks_outside(Labels.from_lists([["B-X", "I-X", "O", None]]))
    False
    """
    classes = labels.classes
    if not all(isinstance(label, str) for label in classes):
        return False
    # Of letters without types, or of those of segmentation, all positions may well be in spans.
    if all(label in (OUTSIDE, label[:1]) for label in classes):
        return False
    if detect_scheme({*classes, OUTSIDE}) is None or detect_scheme(classes) == "BMES":
        return False
    if OUTSIDE in classes and (labels.ids == classes.index(OUTSIDE)).any():
        return False
    several = labels.table.sum(axis=1) > 1
    may_be_outside = several & (
        labels.table[:, classes.index(OUTSIDE)] if OUTSIDE in classes else labels.table.all(axis=1)
    )
    return bool(may_be_outside[labels.ids].sum() >= _MUCH * len(labels))


def with_labels(corpus: Corpus, labels: Labels) -> Corpus:
    """The same corpus, of whose labels other things are known."""
    return replace(corpus, labels=labels)

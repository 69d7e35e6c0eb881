r"""A movie: all frames of a sequence, and what tracking each two of them by themselves made of it.

Objects are numbered through the movie, :math:`n_t + r` for row r of frame t. In frame pairs an
object is there twice, as a target that has a past and as a source that has a fate. A *solution* of
the pairs is stored as, for each object,

- ``onward`` and ``past``: the object that it moves to, or was before (-1: none);
- ``ends`` and ``begins``: whether it disappears, or appears, or there is no other frame;
- ``worth_out`` and ``worth_in``: by how much the event that explains its fate, or past, beats its
  objects being alone. It is lost at most if the object is needed elsewhere.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from trellis.arrays import Bools, Float64s, Int64s
from trellis.tracking.hypotheses import Hypotheses
from trellis.tracking.objects import FramePair, Link, Objects

__all__ = ["Movie", "PairwiseSolution", "movies_of"]


@dataclass(frozen=True, eq=False)
class Movie:
    """The frames of a sequence.

    Parameters
    ----------
    pairs : list of FramePair
        By frame, each once.
    frames : dict of int to Objects
        Objects of each frame, by frame.
    first : dict of int to int
        Number of the first object of each frame.
    """

    pairs: list[FramePair]
    frames: dict[int, Objects]
    first: dict[int, int]

    @property
    def sequence(self) -> str:
        """Name of the sequence."""
        return self.pairs[0].sequence

    @property
    def n_objects(self) -> int:
        """Number of objects."""
        return sum(map(len, self.frames.values()))

    @cached_property
    def names(self) -> list[tuple[int, int]]:
        """Frame and id of each object."""
        return [(t, i) for t, objects in self.frames.items() for i in objects.ids.tolist()]

    @cached_property
    def number_of(self) -> dict[tuple[int, int], int]:
        """Number of the object of a frame and id."""
        return {name: number for number, name in enumerate(self.names)}

    def numbers(self, frame: int) -> Int64s:
        """Numbers of the objects of a frame."""
        first = self.first[frame]
        return np.arange(first, first + len(self.frames[frame]))

    def links_over(self, sources: Int64s, targets: Int64s) -> list[Link]:
        """Moves between objects with these numbers."""
        ends = ((self.names[a], self.names[b]) for a, b in zip(sources, targets, strict=True))
        return [Link(self.sequence, t, i, k, "move", u) for (t, i), (u, k) in ends]

    def excerpt(self, most: int) -> Movie:
        """About so many objects of frames in a row: where most is annotated, or the first."""
        sizes = np.array([len(pair.source) for pair in self.pairs])
        length = max(1, int(np.searchsorted(np.cumsum(sizes), most, side="right")))
        if length >= len(self.pairs):
            return self
        known = np.cumsum([0, *(pair.annotation is not None for pair in self.pairs)])
        first = int(np.argmax(known[length:] - known[:-length]))
        return _movie(self.pairs[first : first + length])

    def apart(self, frame: int, other: int) -> FramePair | None:
        """Any two frames as a pair; None if one is not there."""
        if frame not in self.frames or other not in self.frames:
            return None
        source, target, extent = self.frames[frame], self.frames[other], self.pairs[0].extent
        return FramePair(self.sequence, frame, source, target, None, extent)


def movies_of(pairs: Iterable[FramePair], fill: int = 0) -> list[Movie] | None:
    """Frame pairs as movies, by sequence; None if some are patches, or frames that disagree.

    Up to ``fill`` frames that are missing in a row are there, without objects.

    Examples
    --------
    >>> from trellis.datasets import simulate_cells
    >>> movie, = movies_of(simulate_cells(5, 4, seed=0))
    >>> len(movie.pairs), list(movie.frames), movie.apart(1, 3).frame, movie.apart(2, 4)
    (3, [0, 1, 2, 3], 1, None)
    """
    sequences: dict[str, dict[int, FramePair]] = defaultdict(dict)
    for pair in pairs:
        if pair.frame in sequences[pair.sequence]:
            return None
        sequences[pair.sequence][pair.frame] = pair
    movies = []
    for some in sequences.values():
        ordered = [some[t] for t in sorted(some)]
        for a, b in pairwise(ordered):
            if b.frame == a.frame + 1 and not np.array_equal(a.target.ids, b.source.ids):
                return None
        movies.append(_movie(_filled(ordered, fill)))
    return movies


def _movie(pairs: list[FramePair]) -> Movie:
    frames: dict[int, Objects] = {}
    for pair in pairs:
        frames |= {pair.frame: pair.source, pair.frame + 1: pair.target}
    ends = np.cumsum([0, *map(len, frames.values())]).tolist()
    return Movie(pairs, frames, dict(zip(frames, ends, strict=False)))


def _filled(pairs: list[FramePair], fill: int) -> list[FramePair]:
    """Pairs of frames without objects where frames are missing."""
    whole = pairs[:1]
    for before, after in pairwise(pairs):
        missing = range(before.frame + 2, after.frame)
        if 0 < len(missing) <= fill:
            nobody = before.target.take(np.zeros(0, np.int64))
            frames = [before.target, *[nobody] * len(missing), after.source]
            whole += [
                replace(
                    before, frame=before.frame + 1 + i, source=a, target=b, annotation=None,
                    relations=_none_related(before, len(a) + len(b)),
                )
                for i, (a, b) in enumerate(pairwise(frames))
            ]  # fmt: skip
        whole.append(after)
    return whole


def _none_related(pair: FramePair, size: int) -> dict[str, Any]:
    """The relations of a pair, of so many objects that have none."""
    from scipy.sparse import csr_array

    return {name: csr_array((size, size)) for name in pair.relations}


class PairwiseSolution:
    """What was found of a movie, pair by pair: arrays over its objects.

    Examples
    --------
    >>> from trellis.datasets import simulate_cells
    >>> from trellis.tracking import FlowTracker
    >>> pairs = simulate_cells(9, 4, seed=0)
    >>> movie, = movies_of(pairs)
    >>> found = PairwiseSolution.of_links(movie, FlowTracker(12.0).predict(pairs).links)
    >>> int((found.onward >= 0).sum()), int(found.ends.sum())
    (27, 11)
    """

    def __init__(self, movie: Movie) -> None:
        n = movie.n_objects
        self.movie = movie
        self.onward, self.past = np.full(n, -1), np.full(n, -1)
        self.ends, self.begins = np.ones(n, bool), np.ones(n, bool)
        self.worth_out, self.worth_in = np.zeros(n), np.zeros(n)
        self.scored = False  # whether it is known what events are worth

    @classmethod
    def of_links(cls, movie: Movie, links: Iterable[Link]) -> PairwiseSolution:
        """A solution that is given as links to the next frame; what it is worth is not known."""
        found = cls(movie)
        row = {t: {i: r for r, i in enumerate(o.ids.tolist())} for t, o in movie.frames.items()}
        for link in links:
            if link.sequence != movie.sequence or link.gap:
                continue
            a = movie.first[link.frame] + row[link.frame][link.source_id]
            b = movie.first[link.frame + 1] + row[link.frame + 1][link.target_id]
            found.ends[a] = found.begins[b] = False
            if link.kind == "move":
                found.onward[a], found.past[b] = b, a
        return found

    def record(
        self, pair: FramePair, hypotheses: Hypotheses, chosen: Bools, scores: Float64s
    ) -> None:
        """Take over what was chosen of a pair."""
        self.scored = True
        source, target = self.movie.first[pair.frame], self.movie.first[pair.frame + 1]
        alone = _alone(hypotheses, scores, len(pair.source), len(pair.target))
        h = hypotheses.take(chosen)
        gain = scores[chosen].copy()
        for rows, side in ((h.source, alone[0]), (h.target, alone[1])):
            gain -= np.append(side, 0.0)[rows].sum(axis=1)
        linking = (h.source[:, 0] >= 0) & (h.target[:, 0] >= 0)
        for rows, first, loose, worth in (
            (h.source, source, self.ends, self.worth_out),
            (h.target, target, self.begins, self.worth_in),
        ):
            here, k = np.nonzero(rows >= 0)
            number = first + rows[here, k]
            loose[number] = ~linking[here]
            worth[number] = np.where(linking[here], gain[here], 0.0)
        moves = h.of("move")
        a, b = source + h.source[moves, 0], target + h.target[moves, 0]
        self.onward[a], self.past[b] = b, a

    def first_of_run(self) -> Int64s:
        """Number of the object that the run of moves of each object begins with."""
        first = np.arange(len(self.past))
        for t in self.movie.frames:
            here = self.movie.numbers(t)
            first[here] = np.where(self.past[here] >= 0, first[self.past[here]], here)
        return first

    def loose(self, source: Int64s, target: Int64s) -> Bools:
        """Whether each source ends and each target begins."""
        both: Bools = self.ends[source] & self.begins[target]
        return both

    def seen_before(self, most: int) -> Int64s:
        """In how many frames up to its own each object was seen, ``most`` at most.

        One that was born by a division was there before.
        """
        return self._seen(self.past, self.begins, most)

    def seen_after(self, most: int) -> Int64s:
        """In how many frames from its own on each object is seen, ``most`` at most."""
        return self._seen(self.onward, self.ends, most)

    def _seen(self, beside: Int64s, loose: Bools, most: int) -> Int64s:
        """Length of the run of moves; ``most`` if another event leads on from the object."""
        seen, here = np.ones(len(beside), np.int64), beside
        for _ in range(most - 1):
            on = here >= 0
            seen[on] += 1
            here = np.where(on, beside[here], -1)
        return np.where((seen == 1) & ~loose, most, seen)


def _alone(hypotheses: Hypotheses, scores: Float64s, n: int, m: int) -> tuple[Float64s, Float64s]:
    """Scores of sources that disappear (n,) and of targets that appear (m,)."""
    out, back = np.zeros(n), np.zeros(m)
    gone, new = hypotheses.of("disappear"), hypotheses.of("appear")
    out[hypotheses.source[gone, 0]] = scores[gone]
    back[hypotheses.target[new, 0]] = scores[new]
    return out, back

r"""How many links, divisions and tracks are right, in each tile of the field, and intervals.

A *whole* track is a true one of two objects or more whose very objects make a track of the result;
tracks end at divisions. A track is *unbroken* if no link between its objects is missing. Counts are
kept for each of 6 × 6 tiles of each test movie (of the source of a link, of the first object of a
track), all frames together, so that what lies in one tile may depend on each other. The interval of
a difference is of a bootstrap over tiles, and over draws of what was left out.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from benchmarks.side_by_side import Seconds
from trellis.arrays import Float64s
from trellis.tracking import FramePair, Link

MEASURES = ("links", "divisions", "whole", "unbroken")
_TILES = 6
_BOOTSTRAP = 2000

Object = tuple[str, int, int]  # sequence, frame, id
Tiles = dict[Object, int]


@dataclass
class Entry:
    """What a tracker did on all splits and draws."""

    tables: list[Float64s] = field(default_factory=list)
    learn: list[float] = field(default_factory=list)
    track: list[Seconds] = field(default_factory=list)
    """CPU seconds, of each split the rounds."""
    notes: list[str] = field(default_factory=list)

    @property
    def scores(self) -> Float64s:
        """Means over splits and draws."""
        mean: Float64s = scores(np.array(self.tables)).mean(axis=0)
        return mean

    @property
    def seconds(self) -> Seconds:
        """Of tracking, round by round, the sum over splits and draws."""
        return Seconds(sum(rounds) for rounds in zip(*self.track, strict=True))


def tiles_of(pairs: Sequence[FramePair]) -> Tiles:
    """Tile of the field in which each object lies; tiles hold about as many objects each way."""
    frames = [(pair.sequence, pair.frame, pair.source) for pair in pairs]
    frames += [(pair.sequence, pair.frame + 1, pair.target) for pair in pairs]
    places = np.concatenate([objects.position[:, :2] for *_, objects in frames])
    edges = np.quantile(places, np.linspace(0, 1, _TILES + 1)[1:-1], axis=0)
    tiles = {}
    for sequence, frame, objects in frames:
        x, y = (np.searchsorted(edges[:, k], objects.position[:, k]) for k in (0, 1))
        for number, tile in zip(objects.ids.tolist(), (_TILES * x + y).tolist(), strict=True):
            tiles[sequence, frame, number] = tile
    return tiles


def tracks_of(links: Iterable[Link]) -> set[tuple[Object, ...]]:
    """Runs of moves, of two objects or more."""
    goes_on = {
        (link.sequence, link.frame, link.source_id): (
            link.sequence, link.frame_target, link.target_id,
        )
        for link in links
        if link.kind == "move"
    }  # fmt: skip
    tracks = set()
    for first in goes_on.keys() - set(goes_on.values()):
        track = [first]
        while track[-1] in goes_on:
            track.append(goes_on[track[-1]])
        tracks.add(tuple(track))
    return tracks


def counts(tiles: Tiles, truth: list[Link], links: list[Link]) -> Float64s:
    """Right ones, found and true ones of each measure, in each tile (36, 4, 3)."""
    table = np.zeros((_TILES**2, len(MEASURES), 3))
    known, found = {link.ends for link in truth}, {link.ends for link in links}
    true, made = tracks_of(truth), tracks_of(links)
    divided, told = _divisions(truth), _divisions(links)
    unbroken = {
        track
        for track in true
        if all((*a, b[1], b[2]) in found for a, b in itertools.pairwise(track))
    }
    for measure, marks in enumerate(
        [
            (known & found, found, known),
            (divided & told, told, divided),
            (true & made, true, true),
            (unbroken, true, true),
        ]
    ):
        for column, some in enumerate(marks):
            for mark in some:
                first: Object = mark[0] if isinstance(mark[0], tuple) else mark[:3]
                table[tiles[first], measure, column] += 1
    return table


def _divisions(links: Iterable[Link]) -> set[tuple[object, ...]]:
    daughters: dict[Object, list[int]] = {}
    for link in links:
        if link.kind == "division":
            daughters.setdefault(link[:3], []).append(link.target_id)
    return {(*parent, *sorted(two)) for parent, two in daughters.items()}


def scores(table: Float64s) -> Float64s:
    """F1 of links and divisions, shares of tracks, in per cent (..., 4), of all tiles together."""
    return _scores(table.sum(axis=-3))


def _scores(sums: Float64s) -> Float64s:
    right, found, true = np.moveaxis(sums, -1, 0)
    score: Float64s = 200 * right / np.maximum(found + true, 1)
    return score


def gains(ours: Sequence[Float64s], theirs: Sequence[Float64s], draws: int) -> list[str]:
    """Difference of each score, with its 95 % interval.

    Tables stand split by split, ``draws`` of each; scores are means over both.
    """
    both = np.array([ours, theirs]).reshape(2, -1, draws, *ours[0].shape)
    _, splits, _, tiles, measures, _ = both.shape
    rng = np.random.default_rng(0)
    difference = np.mean(_scores(both.sum(axis=3)), axis=(1, 2))
    drawn = np.zeros((_BOOTSTRAP, measures))
    for split in range(splits):
        often = rng.multinomial(tiles, np.full(tiles, 1 / tiles), _BOOTSTRAP)
        weight = rng.multinomial(draws, np.full(draws, 1 / draws), _BOOTSTRAP) / draws
        score = _scores(np.einsum("bt,xdtmc->xbdmc", often, both[:, split]))
        drawn += np.einsum("bd,bdm->bm", weight, score[0] - score[1]) / splits
    low, high = np.quantile(drawn, [0.025, 0.975], axis=0)
    told = [
        f"{d:+.2f} ({a:+.2f} to {b:+.2f})"
        for d, a, b in zip(difference[0] - difference[1], low, high, strict=True)
    ]
    return [text.replace("-", "−") for text in told]


def f1(truth: list[Link], links: list[Link]) -> float:
    """Mean F1 of links and of divisions: what trackers are tuned by where nothing is missed."""
    return _score(truth, links, [0, 1])


def whole(truth: list[Link], links: list[Link]) -> float:
    """Whole tracks: what trackers are tuned by where objects are missed; then links."""
    return _score(truth, links, [2]) + 0.01 * _score(truth, links, [0])


def _score(truth: list[Link], links: list[Link], measures: list[int]) -> float:
    every = {(link.sequence, link.frame, link.source_id): 0 for link in (*truth, *links)}
    return float(scores(counts(every, truth, links))[measures].mean())

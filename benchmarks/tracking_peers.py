"""Trackers of other libraries, and how their settings are chosen on the training part.

They are given positions, and are tuned by all combinations of a grid whose distances are quantiles
of the annotated ones; the best is kept, by the mean F1 of links and divisions, or by the share of
tracks that are found whole. Where gaps are to be closed, LapTrack's other settings are chosen
first, and those of gaps with them. trackpy finds no divisions.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable

import numpy as np

from benchmarks.peers import PeerError, PeerProcess
from trellis.arrays import Float64s
from trellis.tracking import FramePair, Link, annotated_events

Pairs = list[FramePair]
Movie = list[list[list[float]]]  # positions of the objects of each frame
Rows = list[tuple[int, int, int, int]]  # frame and row of the source, of the target
Settings = tuple[float, ...]


# ---------------------------------------------------------------- what runs where the peers are
# These functions are sent as text to another Python, which need not know Trellis.


def laptrack(
    movie: Movie, link: float, division: float, ends: float, gap: float = 0.0, frames: int = 0
) -> Rows:
    """LapTrack: cutoffs as distances (0: none), and the percentile of costs that ends cost."""
    from itertools import pairwise

    import pandas
    from laptrack import LapTrack

    rows = [(t, t, i, *place) for t, frame in enumerate(movie) for i, place in enumerate(frame)]
    objects = pandas.DataFrame(rows, columns=["frame", "time", "row", "x", "y"])
    if link:
        tracker = LapTrack(
            cutoff=link**2,
            splitting_cutoff=division**2 if division else False,
            gap_closing_cutoff=gap**2 if gap else False,
            gap_closing_max_frame_count=int(frames),
            alternative_cost_percentile=ends,
        )
    else:
        tracker = LapTrack()
    tracks, splits, _ = tracker.predict_dataframe(objects, ["x", "y"], only_coordinate_cols=False)
    paths: dict[int, list[tuple[int, int]]] = {}
    for t, row, track in zip(tracks["time"], tracks["row"], tracks["track_id"], strict=True):
        paths.setdefault(int(track), []).append((int(t), int(row)))
    found = []
    for path in paths.values():
        path.sort()
        found += [(*a, *b) for a, b in pairwise(path)]
    if len(splits):
        both = zip(splits["parent_track_id"], splits["child_track_id"], strict=True)
        found += [(*paths[int(a)][-1], *paths[int(b)][0]) for a, b in both]
    return found


def motile(movie: Movie, link: float, division: float, reach: float) -> Rows:
    """motile: least sum of distances, less ``link`` for each link, plus ``division`` for each."""
    from itertools import pairwise

    import motile
    import networkx
    import numpy as np
    from motile.constraints import MaxChildren, MaxParents
    from motile.costs import EdgeSelectedCost, NodeSplitCost

    found = []
    for t, (a, b) in enumerate(pairwise(movie)):
        if not a or not b:
            continue
        graph = networkx.DiGraph()
        graph.add_nodes_from(range(len(a)), t=0)
        graph.add_nodes_from(range(len(a), len(a) + len(b)), t=1)
        distance = np.linalg.norm(np.array(a)[:, None] - np.array(b)[None], axis=2)
        for i, j in np.argwhere(distance <= reach).tolist():
            graph.add_edge(i, len(a) + j, distance=distance[i, j])
        solver = motile.Solver(motile.TrackGraph(graph))
        solver.add_constraint(MaxParents(1))
        solver.add_constraint(MaxChildren(2))
        solver.add_cost(EdgeSelectedCost(attribute="distance", constant=-link))
        solver.add_cost(NodeSplitCost(constant=division))
        solver.solve()
        found += [(t, i, t + 1, j - len(a)) for i, j in solver.get_selected_subgraph().edges]
    return found


def trackpy(movie: Movie, reach: float, memory: int) -> Rows:
    """trackpy: links up to ``reach``, over gaps of up to ``memory`` frames."""
    from itertools import pairwise

    import pandas
    import trackpy

    trackpy.quiet()
    rows = [(t, i, *place) for t, frame in enumerate(movie) for i, place in enumerate(frame)]
    objects = pandas.DataFrame(rows, columns=["frame", "row", "x", "y"])
    tracks = trackpy.link(  # a smaller reach where objects are too dense, or it would give up
        objects, search_range=reach, memory=int(memory), adaptive_stop=reach / 10,
        adaptive_step=0.9,
    )  # fmt: skip
    paths: dict[int, list[tuple[int, int]]] = {}
    for t, row, track in zip(tracks["frame"], tracks["row"], tracks["particle"], strict=True):
        paths.setdefault(int(track), []).append((int(t), int(row)))
    return [(*a, *b) for path in paths.values() for a, b in pairwise(sorted(path))]


FUNCTIONS = (laptrack, motile, trackpy)
DEFAULTS: dict[str, Settings] = {"laptrack": (0.0, 0.0, 90.0)}
"""Settings of a peer that are its own; others have none for links."""


# ---------------------------------------------------------------- movies and links


def movie_of(pairs: Pairs) -> Movie:
    """Positions of the frames of one sequence."""
    frames = [pair.source for pair in pairs] + [pairs[-1].target]
    return [objects.position.tolist() for objects in frames]


def links_of(pairs: Pairs, rows: Rows) -> list[Link]:
    """Links by ids; two from one source are a division."""
    frames = [pair.source for pair in pairs] + [pairs[-1].target]
    ids = [objects.ids.tolist() for objects in frames]
    first, several = pairs[0].frame, Counter(row[:2] for row in map(tuple, rows))
    return [
        Link(
            pairs[0].sequence, first + t, ids[t][i], ids[u][j],
            "division" if several[t, i] > 1 else "move", first + u,
        )
        for t, i, u, j in rows
    ]  # fmt: skip


def lengths(pairs: Pairs, kind: str) -> Float64s:
    """Lengths of the annotated links of a kind, from frame to frame."""
    found = []
    for pair in pairs:
        source, target = (
            dict(zip(objects.ids.tolist(), objects.position, strict=True))
            for objects in (pair.source, pair.target)
        )
        links = () if pair.annotation is None else pair.annotation.links
        found += [np.linalg.norm(target[b] - source[a]) for a, b, k in links if k == kind]
    return np.array(found)


# ---------------------------------------------------------------- tuning


def grid(peer: str, pairs: Pairs, gaps: bool) -> list[Settings]:
    """Settings of a peer to try first; without gaps if there are none."""
    move, division = lengths(pairs, "move"), lengths(pairs, "division")
    near, far = np.quantile(move, (0.99, 0.999)).tolist()
    apart = np.quantile(division if len(division) else move, (0.75, 0.95, 0.99)).tolist()
    if peer == "laptrack" and gaps:
        return list(
            itertools.product((near, 1.5 * far), (apart[0], apart[2]), (90.0, 99.0), (far,), (2.0,))
        )
    if peer == "laptrack":
        links = (near, far, 1.5 * far, 2.5 * far)
        return list(itertools.product(links, (*apart, 1.3 * apart[2]), (90.0, 99.0)))
    if peer == "trackpy":
        reach = (*np.quantile(move, (0.9, 0.95)).tolist(), near, far, 1.5 * far)
        return list(itertools.product(reach, (0, 1, 2) if gaps else (0,)))
    return [
        (link, share * link, 1.3 * apart[2])
        for link in (far, apart[2], 1.5 * apart[2])
        for share in (-0.5, -0.25, 0.0, 0.25, 0.5)
    ]


def closing(peer: str, pairs: Pairs, best: Settings, gaps: bool) -> list[Settings]:
    """Settings to try then, with the best of the first: LapTrack's of gaps."""
    if peer != "laptrack" or not gaps:
        return []
    far = float(np.quantile(lengths(pairs, "move"), 0.999))
    return [
        (*best[:3], times * far, frames)
        for times, frames in itertools.product((0.7, 1.0, 1.5, 2.5), (1.0, 2.0))
    ]


def tune(
    peers: PeerProcess,
    peer: str,
    pairs: Pairs,
    value: Callable[[list[Link], list[Link]], float],
    gaps: bool,
    every: int = 1,
) -> tuple[Settings, float]:
    """Best settings on the training part by a value of truth and links, and CPU seconds.

    Settings with which the peer gives up count as the worst.
    """
    truth, _ = annotated_events(pairs)
    movie, seconds, tried = movie_of(pairs), 0.0, []
    choices = grid(peer, pairs, gaps)[::every]
    while choices:
        for settings in choices:
            try:
                rows, took = peers.ask(peer, movie, *settings)
            except PeerError:
                continue
            seconds += took
            tried.append((value(truth, links_of(pairs, rows)), settings))
        if not tried:
            raise PeerError(f"{peer} gives up with all settings")
        more = [] if len(choices) < len(tried) else closing(peer, pairs, max(tried)[1], gaps)
        choices = more[::every]
    return max(tried)[1], seconds

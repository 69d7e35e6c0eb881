"""Tracking of dividing cells: F1 and time of Trellis beside LapTrack, motile, nearest neighbours.

    python -m benchmarks.tracking                                 # peers installed here
    python -m benchmarks.tracking --peer-python peers/bin/python  # peers of another environment

Cell migration: learn from frames 0-59, test on 60-85. Epidermis: learn from area 1, test on area 2.
All are tuned on the training part alone: nearest neighbours their gate; LapTrack its cutoffs of
links and of divisions and its price of loose ends, motile its prices (all combinations of a grid,
the best by the mean of link and division F1, on the last 30 frame pairs: enough for three numbers);
Trellis its weights, with default settings. LapTrack and motile see positions, as in their
documentation; Trellis also sees the columns that the objects have. LapTrack does not close gaps,
since links are scored from frame to frame. motile takes each pair of frames by itself, as Trellis
does.

Seconds are CPU seconds, without reading data or starting a process: «learn» is training, or the
whole grid; «track» is one prediction for the test part, the median of runs by turns.

There is one split of each data set, and no interval. Scores on these test frames were seen while
Trellis's features were developed, which flatters it.
"""

from __future__ import annotations

import itertools
import sys
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.options import begin
from benchmarks.peers import PeerProcess
from benchmarks.side_by_side import Seconds, Table, alternate, ratio
from studies.datasets import load_cells
from trellis.tracking import FramePair, Link, NearestNeighbour, TrackingModel, annotated_events
from trellis.tracking.scores import score_links

PEERS = ["laptrack", "motile"]
TUNING_PAIRS = 30

Movie = list[list[list[float]]]  # positions x, y of the objects of each frame
Rows = list[tuple[int, int, int]]  # frame, row of the source, row of the target


# ---------------------------------------------------------------- what runs where the peers are
# These functions are sent as text to another Python, which need not know Trellis.


def laptrack(movie: Movie, link: float, division: float, ends: float) -> Rows:
    """LapTrack: cutoffs as distances, and the percentile of costs that loose ends cost."""
    from itertools import pairwise

    import pandas
    from laptrack import LapTrack

    rows = [(t, t, i, *place) for t, frame in enumerate(movie) for i, place in enumerate(frame)]
    objects = pandas.DataFrame(rows, columns=["frame", "time", "row", "x", "y"])
    tracker = LapTrack(
        cutoff=link**2,
        splitting_cutoff=division**2,
        gap_closing_cutoff=False,
        alternative_cost_percentile=ends,
    )
    tracks, splits, _ = tracker.predict_dataframe(objects, ["x", "y"], only_coordinate_cols=False)
    paths: dict[int, list[tuple[int, int]]] = {}
    for t, row, track in zip(tracks["time"], tracks["row"], tracks["track_id"], strict=True):
        paths.setdefault(int(track), []).append((int(t), int(row)))
    found = []
    for path in paths.values():
        path.sort()
        found += [(t, i, j) for (t, i), (_, j) in pairwise(path)]
    if len(splits):
        both = zip(splits["parent_track_id"], splits["child_track_id"], strict=True)
        found += [(*paths[int(a)][-1], paths[int(b)][0][1]) for a, b in both]
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
        found += [(t, i, j - len(a)) for i, j in solver.get_selected_subgraph().edges]
    return found


# ---------------------------------------------------------------- contestants


def movie_of(pairs: list[FramePair]) -> Movie:
    """Positions of the frames of one sequence."""
    frames = [pair.source for pair in pairs] + [pairs[-1].target]
    return [objects.position.tolist() for objects in frames]


def links_of(pairs: list[FramePair], rows: Rows) -> list[Link]:
    """Links by ids; two from one source are a division."""
    several = Counter((t, i) for t, i, _ in rows)
    links = []
    for t, i, j in rows:
        pair, kind = pairs[t], "division" if several[t, i] > 1 else "move"
        ids = int(pair.source.ids[i]), int(pair.target.ids[j])
        links.append(Link(pair.sequence, pair.frame, *ids, kind))
    return links


def lengths(pairs: list[FramePair], kind: str) -> np.ndarray:
    """Lengths of the annotated links of a kind."""
    found = []
    for pair in pairs:
        source, target = (
            dict(zip(objects.ids.tolist(), objects.position, strict=True))
            for objects in (pair.source, pair.target)
        )
        links = () if pair.annotation is None else pair.annotation.links
        found += [np.linalg.norm(target[b] - source[a]) for a, b, k in links if k == kind]
    return np.array(found)


def grid(peer: str, pairs: list[FramePair]) -> list[tuple[float, ...]]:
    """Settings of a peer to try: distances are quantiles of the annotated ones, and multiples."""
    move, division = lengths(pairs, "move"), lengths(pairs, "division")
    far, farther = float(np.quantile(move, 0.999)), float(np.quantile(division, 0.99))
    if peer == "laptrack":
        links = (float(np.quantile(move, 0.99)), far, 1.5 * far, 2.5 * far)
        splits = (*np.quantile(division, (0.75, 0.95)).tolist(), farther, 1.3 * farther)
        return list(itertools.product(links, splits, (90.0, 99.0)))
    return [
        (link, share * link, 1.3 * farther)
        for link in (far, farther, 1.5 * farther)
        for share in (-0.5, -0.25, 0.0, 0.25, 0.5)
    ]


def at_the_edge(chosen: tuple[float, ...], tried: list[tuple[float, ...]]) -> str:
    """Say which of the chosen values are the least or greatest tried: more might be better."""
    edges = []
    for i, value in enumerate(chosen):
        values = {options[i] for options in tried}
        if len(values) > 2 and value in (min(values), max(values)):
            edges.append(str(i + 1))
    return f"; at the edge of the grid: {', '.join(edges)}" if edges else ""


def tune(
    peers: PeerProcess, peer: str, pairs: list[FramePair], quick: bool
) -> tuple[tuple[float, ...], float]:
    """Best settings on the training part, and the CPU seconds that it took to find them."""
    choices = grid(peer, pairs)[:: 5 if quick else 1]
    pairs = pairs[-TUNING_PAIRS:]
    truth, _ = annotated_events(pairs)
    movie, seconds, tried = movie_of(pairs), 0.0, []
    for options in choices:
        rows, took = peers.ask(peer, movie, *options)
        seconds += took
        scores = score_links(truth, links_of(pairs, rows))
        tried.append((scores.links.f1 + scores.divisions.f1, options))
    return max(tried)[1], seconds


def predict(model: Any, pairs: list[FramePair]) -> tuple[list[Link], float]:
    """Links and CPU seconds."""
    (run,) = alternate({"": lambda: model.predict(pairs).links}, 1, keep=lambda links: links)
    return run.kept[0], run.cpu[0]


def compare(
    name: str,
    train: list[FramePair],
    test: list[FramePair],
    peers: PeerProcess,
    args: Any,
    table: Table,
) -> None:
    """One row for each contestant."""
    learn: dict[str, float] = {}
    runs: dict[str, Callable[[], tuple[list[Link], float]]] = {}
    note: dict[str, str] = {}
    for title, model in (("Trellis", TrackingModel()), ("nearest neighbours", NearestNeighbour())):
        (fit,) = alternate({"": lambda model=model: model.fit(train)}, 1)
        learn[title] = fit.cpu[0]
        runs[title] = partial(predict, model, test)
    movie = movie_of(test)
    for peer in args.peers:
        known = peers.version(peer)
        if known is None:
            print(f"{peer} is left out: not installed")
            continue
        title = f"{peer} {known}"
        options, learn[title] = tune(peers, peer, train, args.quick)
        note[title] = "settings " + ", ".join(f"{value:.4g}" for value in options)
        note[title] += at_the_edge(options, grid(peer, train))

        def ask(peer: str = peer, options: Any = options) -> tuple[list[Link], float]:
            rows, seconds = peers.ask(peer, movie, *options)
            return links_of(test, rows), seconds

        runs[title] = ask
    truth, _ = annotated_events(test)
    measured = alternate(runs, args.rounds, keep=lambda answer: answer)
    seconds = {run.name: Seconds(took for _, took in run.kept) for run in measured}
    for run in measured:
        title, scores = run.name, score_links(truth, run.kept[-1][0])
        table.add(
            name, title, f"{scores.links.f1:.4f}",
            f"{scores.links.precision:.4f} / {scores.links.recall:.4f}",
            f"{scores.divisions.f1:.4f}", learn[title], seconds[title].median,
            "" if title == "Trellis" else ratio(seconds[title], seconds["Trellis"]),
            note.get(title, ""),
        )  # fmt: skip


def main() -> None:
    args = begin(
        __doc__,
        peer_python=(sys.executable, sys.executable, "where the peers are"),
        peers=(PEERS, PEERS),
        rounds=(5, 1, "predictions that are timed"),
        quick=(False, True, "a fifth of the peers' grids"),
    )
    migration = [load_cells("cellmigration", frames=span) for span in ((0, 60), (60, 86))]
    epidermis = [load_cells("epidermis", sequences=[f"epidermis_area{i}"]) for i in (1, 2)]
    TrackingModel(max_iter=2).fit(epidermis[0][:2]).predict(epidermis[0][:2])  # loads the kernels
    peers = PeerProcess(args.peer_python, laptrack, motile)
    table = Table(
        "Tracking of dividing cells", "data", "tracker", "link F1", "precision / recall",
        "division F1", "learn, CPU s", "track, CPU s", "track, times Trellis (range)", "note",
    )  # fmt: skip
    for name, (train, test) in (("cell migration", migration), ("epidermis", epidermis)):
        compare(name, train, test, peers, args, table)
    peers.close()
    table.show()


if __name__ == "__main__":
    main()

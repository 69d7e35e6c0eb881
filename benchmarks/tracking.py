"""Tracking of dividing cells: F1 and time of Trellis beside LapTrack, motile and trackpy.

    python -m benchmarks.tracking                                 # peers installed here
    python -m benchmarks.tracking --peer-python peers/bin/python  # peers of another environment

Two real movies, whole and with every second or fourth frame, with two splits each. Cell migration:
learn from frames 0-59, test on 60-85; learn from frames 26-85, test on 0-25. Epidermis: learn from
one area, test on the other. Figures are means over the two splits, seconds sums.

«Trellis, trained» learns from the annotated part, with default settings; «untrained» has no
annotation, and learns from the very movie that it tracks. Peers are tuned on all frames of the
annotated part: LapTrack its cutoffs of links and of divisions and its price of loose ends, motile
its prices, trackpy its reach (all combinations of a grid, the best by the mean of link and division
F1). «laptrack, defaults» is without any of that. LapTrack, motile and trackpy see positions, as in
their documentation; Trellis also sees the columns that the objects have. In these movies no object
is missed: tuned LapTrack and trackpy close no gaps, while Trellis and LapTrack with its defaults
may, and links are scored as they are made. motile takes each pair of frames by itself.

Differences are to the peer that is best in that measure: of the tuned ones for all rows but
«untrained» and the flow tracker, which are compared with LapTrack's defaults. Their 95 % intervals
are of a bootstrap over 6 × 6 tiles of each test movie, all frames together.

Seconds are CPU seconds, without reading data or starting a process, on a machine that others use
too: «learn» is training, or the whole grid; «track» is the tracking of both test parts, the median
of runs by turns. Test frames 60-85 and area 2 were seen while features were developed, which may
flatter Trellis there; the other split is of frames that it was developed on.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks.few_links import bare
from benchmarks.options import begin
from benchmarks.peers import PeerProcess
from benchmarks.side_by_side import Seconds, Table, alternate, ratio
from benchmarks.tracking_peers import (
    DEFAULTS,
    FUNCTIONS,
    Pairs,
    Settings,
    links_of,
    movie_of,
    tune,
)
from benchmarks.tracking_scores import MEASURES, Entry, counts, f1, gains, tiles_of
from studies.datasets import load_cells
from trellis.tracking import (
    FlowTracker,
    Link,
    NearestNeighbour,
    TrackingModel,
    annotated_events,
)

PEERS = ["laptrack", "motile", "trackpy"]
TRAINED, UNTRAINED = "Trellis, trained", "Trellis, untrained"
SPLITS: dict[str, tuple[str, list[tuple[dict[str, Any], dict[str, Any]]]]] = {
    "cell migration": (
        "cellmigration",
        [({"frames": (0, 60)}, {"frames": (60, 86)}), ({"frames": (26, 86)}, {"frames": (0, 26)})],
    ),
    "epidermis": (
        "epidermis",
        [
            ({"sequences": [f"epidermis_area{a}"]}, {"sequences": [f"epidermis_area{b}"]})
            for a, b in ((1, 2), (2, 1))
        ],
    ),
}
"""File, and of each split the part to learn from and the part to track."""

Answer = tuple[list[Link], float]  # links and CPU seconds


def track(model: Any, pairs: Pairs) -> Answer:
    """What a model finds, and its CPU seconds."""
    (run,) = alternate({"": lambda: model.predict(pairs).links}, 1, keep=lambda links: links)
    return run.kept[0], run.cpu[0]


def ask(peers: PeerProcess, peer: str, settings: Settings, pairs: Pairs) -> Answer:
    """What a peer finds, likewise."""
    rows, seconds = peers.ask(peer, movie_of(pairs), *settings)
    return links_of(pairs, rows), seconds


def compare(
    train: Pairs, test: Pairs, peers: PeerProcess, args: Any, entries: dict[str, Entry]
) -> None:
    """Add what all trackers do on a split."""
    runs: dict[str, Callable[[], Answer]] = {}
    for title, model, learned in (
        (TRAINED, TrackingModel(), train),
        (UNTRAINED, TrackingModel(), bare(test)),
        ("flow tracker", FlowTracker(), bare(test)),
        ("nearest neighbours", NearestNeighbour(), train),
    ):
        (fit,) = alternate({"": partial(model.fit, learned)}, 1)
        entries.setdefault(title, Entry()).learn.append(fit.cpu[0])
        runs[title] = partial(track, model, test)
    for peer in args.peers:
        known = peers.version(peer)
        if known is None:
            print(f"{peer} is left out: not installed")
            continue
        settings, seconds = tune(peers, peer, train, f1, False, 5 if args.quick else 1)
        for title, chosen, took in (
            (f"{peer} {known}", settings, seconds),
            (f"{peer} {known}, defaults", DEFAULTS.get(peer), 0.0),
        ):
            if chosen is not None:
                entry = entries.setdefault(title, Entry())
                entry.learn.append(took)
                entry.notes.append(", ".join(f"{value:.4g}" for value in chosen) if took else "")
                runs[title] = partial(ask, peers, peer, chosen, test)
    truth, tiles = annotated_events(test)[0], tiles_of(test)
    for run in alternate(runs, args.rounds, keep=lambda answer: answer):
        entry = entries[run.name]
        entry.track.append(Seconds(took for _, took in run.kept))
        entry.tables.append(counts(tiles, truth, run.kept[-1][0]))


def beside(title: str, entries: dict[str, Entry], draws: int) -> list[str]:
    """Difference to the better peer in each measure, and its name; "none" if there is none."""
    unlearned = (UNTRAINED, "flow tracker")
    peers = [
        name
        for name in entries
        if name.startswith(tuple(PEERS)) and name.endswith("defaults") == (title in unlearned)
    ]
    if not peers or title.startswith(tuple(PEERS)):
        return [""] * len(MEASURES)
    told = []
    for k in range(len(MEASURES)):
        best = max(peers, key=lambda name, k=k: entries[name].scores[k])  # type: ignore[misc]
        told.append(f"{gains(entries[title].tables, entries[best].tables, draws)[k]} {best}")
    return told


def main() -> None:
    args = begin(
        __doc__,
        peer_python=(sys.executable, sys.executable, "where the peers are"),
        peers=(PEERS, PEERS),
        thin=([1, 2, 4], [1], "steps between frames"),
        rounds=(3, 1, "runs of tracking that are timed"),
        quick=(False, True, "a fifth of the peers' grids"),
    )
    _, ((first, _), _) = SPLITS["epidermis"]
    pairs = load_cells("epidermis", **first)
    TrackingModel(max_iter=2).fit(bare(pairs[:3])).predict(pairs[:3])  # loads the kernels
    peers = PeerProcess(args.peer_python, *FUNCTIONS)
    table = Table(
        "Tracking of dividing cells", "movie", "tracker", "link F1", "division F1",
        "links − better peer (95 %)", "divisions − better peer (95 %)", "learn, CPU s",
        "track, CPU s", "track, times Trellis (range)", "settings",
    )  # fmt: skip
    for thin in args.thin:
        for name, (source, splits) in SPLITS.items():
            entries: dict[str, Entry] = {}
            for parts in splits:
                train, test = (load_cells(source, **part, thin=thin) for part in parts)
                compare(train, test, peers, args, entries)
            for title, entry in entries.items():
                links, divisions, *_ = beside(title, entries, 1)
                table.add(
                    f"{name}, step {thin}", title, *(f"{score:.2f}" for score in entry.scores[:2]),
                    links, divisions, sum(entry.learn) or "", entry.seconds.median,
                    "" if title == TRAINED else ratio(entry.seconds, entries[TRAINED].seconds),
                    "; ".join(dict.fromkeys(note for note in entry.notes if note)),
                )  # fmt: skip
    peers.close()
    table.show()


if __name__ == "__main__":
    main()

"""Tracking cells that are missed now and then: whole tracks, beside LapTrack and trackpy.

    python -m benchmarks.missed_cells --peer-python peers/bin/python
    python -m benchmarks.missed_cells --thin 2

Of the movies and splits of :mod:`benchmarks.tracking` 0, 5 and 10 % of all detections are left out
at random, of the part to learn from and of the part to track alike. What is to be found is the
links between what is left, over gaps, too. Figures are means over splits and draws, seconds means.

A whole track is a true one of two objects or more whose very objects make a track of the result
(tracks end at divisions); an unbroken one has all its links. «Missing links» are breaks, all of
them, those of divisions included.

«Trellis, trained» learns from links over gaps as well; «links without gaps» from those between
neighbouring frames only; «untrained» has no annotation, and learns from the movie that it tracks;
max_gap=0 closes no gaps; other settings are the defaults. LapTrack closes gaps, too; it and trackpy
(with memory) are tuned on all training frames of the first draw, by whole tracks; «laptrack,
defaults» as it comes, which closes gaps and finds no divisions.

Differences are to the peer that is best in that measure: of the tuned ones, or to LapTrack's
defaults for «untrained». Their 95 % intervals are of a bootstrap over draws and over 6 × 6 tiles of
each test movie, all frames together. Seconds are CPU seconds, on a machine that others use too;
«learn» of a peer is its tuning.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

from benchmarks.few_links import bare
from benchmarks.options import begin
from benchmarks.peers import PeerProcess
from benchmarks.side_by_side import Seconds, Table, alternate
from benchmarks.tracking import SPLITS, TRAINED, UNTRAINED, Answer, ask, beside, track
from benchmarks.tracking_peers import DEFAULTS, FUNCTIONS, Pairs, Settings, tune
from benchmarks.tracking_scores import Entry, counts, tiles_of, whole
from studies.datasets import drop_detections, load_cells
from trellis.tracking import TrackingModel, annotated_events

PEERS = ["laptrack", "trackpy"]


def without_gaps(pairs: Pairs) -> Pairs:
    """The pairs with links from frame to frame only; nothing is said of objects without."""
    kept = []
    for pair in pairs:
        assert pair.annotation is not None
        kept.append(replace(pair, annotation=replace(pair.annotation, gaps=())))
    return kept


def learn(model: TrackingModel, pairs: Pairs) -> tuple[TrackingModel, float]:
    """The model, fitted, and CPU seconds."""
    (run,) = alternate({"": lambda: model.fit(pairs)}, 1)
    return model, run.cpu[0]


def compare(
    train: Pairs,
    test: Pairs,
    peers: PeerProcess,
    tuned: dict[str, tuple[Settings, float]],
    entries: dict[str, Entry],
) -> None:
    """Add what all trackers do on a draw."""
    answers: dict[str, Answer] = {}
    for title, model, learned in (
        (TRAINED, TrackingModel(), train),
        ("Trellis, links without gaps", TrackingModel(), without_gaps(train)),
        (UNTRAINED, TrackingModel(), bare(test)),
        ("Trellis, max_gap=0", TrackingModel(max_gap=0), train),
    ):
        fitted, took = learn(model, learned)
        entries.setdefault(title, Entry()).learn.append(took)
        answers[title] = track(fitted, test)
    for title, (settings, took) in tuned.items():
        entry = entries.setdefault(title, Entry())
        entry.learn.append(took)
        answers[title] = ask(peers, title.split()[0], settings, test)
        if took:
            entry.notes.append(", ".join(f"{value:.4g}" for value in settings))
    truth, tiles = annotated_events(test)[0], tiles_of(test)
    for title, (links, seconds) in answers.items():
        entries[title].track.append(Seconds([seconds]))
        entries[title].tables.append(counts(tiles, truth, links))


def tune_all(
    peers: PeerProcess, train: Pairs, known: dict[str, str], args: Any
) -> dict[str, tuple[Settings, float]]:
    """Settings of all peers, tuned and their own, and the CPU seconds of tuning."""
    tuned = {}
    for peer, version in known.items():
        every = 5 if args.quick else 1
        tuned[f"{peer} {version}"] = tune(peers, peer, train, whole, True, every)
        if peer in DEFAULTS:
            tuned[f"{peer} {version}, defaults"] = DEFAULTS[peer], 0.0
    return tuned


def main() -> None:
    args = begin(
        __doc__,
        peer_python=(sys.executable, sys.executable, "where the peers are"),
        peers=(PEERS, PEERS),
        thin=([1], [1], "steps between frames"),
        missed=([0.0, 0.05, 0.1], [0.05], "shares of detections that are left out"),
        draws=(3, 1, "draws of what is left out"),
        quick=(False, True, "a fifth of the peers' grids"),
    )
    _, ((first, _), _) = SPLITS["epidermis"]
    pairs = bare(load_cells("epidermis", **first)[:3])
    TrackingModel(max_iter=2).fit(pairs).predict(pairs)  # loads the kernels
    peers = PeerProcess(args.peer_python, *FUNCTIONS)
    known = {}
    for peer in args.peers:
        if version := peers.version(peer):
            known[peer] = version
        else:
            print(f"{peer} is left out: not installed")
    table = Table(
        "Cells that are missed: scores in per cent", "movie", "tracker", "missed",
        "whole tracks", "unbroken", "missing links", "link F1", "division F1",
        "whole − best peer (95 %)", "links − best peer (95 %)", "divisions − best peer (95 %)",
        "learn, CPU s", "track, CPU s", "settings",
    )  # fmt: skip
    for thin in args.thin:
        for name, (source, splits) in SPLITS.items():
            for share in args.missed:
                entries: dict[str, Entry] = {}
                draws = args.draws if share else 1
                for parts in splits:
                    whole_parts = [load_cells(source, **part, thin=thin) for part in parts]
                    tuned: dict[str, tuple[Settings, float]] = {}
                    for draw in range(draws):
                        train, test = (
                            drop_detections(pairs, share, seed=2 * draw + i)
                            for i, pairs in enumerate(whole_parts)
                        )
                        tuned = tuned or tune_all(peers, train, known, args)
                        compare(train, test, peers, tuned, entries)
                for title, entry in entries.items():
                    links, divisions, *tracks = (f"{score:.2f}" for score in entry.scores)
                    right, _, true = sum(entry.tables)[:, 0].sum(axis=0)  # type: ignore[index]
                    told = beside(title, entries, draws)
                    n = len(entry.tables)
                    table.add(
                        f"{name}, step {thin}", title, f"{100 * share:g} %", *tracks,
                        f"{(true - right) / n:.1f}", links, divisions, told[2], told[0], told[1],
                        sum(entry.learn) / n or "", sum(entry.seconds) / n,
                        "; ".join(dict.fromkeys(entry.notes)),
                    )  # fmt: skip
    peers.close()
    table.show()


if __name__ == "__main__":
    main()

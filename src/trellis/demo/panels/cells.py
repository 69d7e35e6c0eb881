r"""Cells: a movie of a simulated colony, its tracks and lineage, and how few links are enough.

**The movie.** One movie is annotated, another is tracked: by the nearest neighbour, and by the
model that has learned from the links of the first. The second movie is shown with the mistakes of
both. The simulation knows the truth, so a link is *wrong* if it is not true, and *missed* if it is
true and was not made.

**The chart.** In each of several runs one movie is for learning and another, larger one for
testing, all simulated apart. Some of the links of the first, drawn at random (of a division always
both), are what the model learns from; the rest is unknown to it. F1 of links and of divisions
(:func:`~trellis.tracking.score_links`) is measured on the second. With :math:`d_1 \dots d_n` the
figures of n runs, or the differences of two trackers in the same run, the interval is

.. math:: \bar d \pm t_{0.975,\,n-1}\, s_d / \sqrt n .

The trackers that do not learn are told how far cells go by *all* links of the movie for learning,
more than the model has, so the comparison leans to their side. A difference is called one only if
its interval leaves out zero.
"""

from __future__ import annotations

import html
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from trellis.datasets import LABS, simulate_cells
from trellis.demo.charts import Curve, curves
from trellis.demo.elements import asset, code_of, data, figure, note, script, summary, table
from trellis.tracking import (
    FlowTracker,
    FramePair,
    GraphMatching,
    Link,
    NearestNeighbour,
    PairAnnotation,
    TrackingModel,
    TrackingResult,
    annotated_events,
    assemble_tracks,
    event_set,
    score_links,
)
from trellis.tracking.lineage_layout import lineage_layout

__all__ = ["TITLE", "WARM", "example", "panel", "warm_assignments"]

TITLE = "Cells: tracks and lineages, learned from few links"

_RUNS = 6  # pairs of movies
_LINKS = (10, 30, 100)  # links to learn from, beside all
_TRAIN, _TEST = (12, 16), (30, 12)  # cells and frames of the movies of a run
_COLONY = replace(LABS["b"], name="colony", over_segmentation=0.0, under_segmentation=0.0)
_KINDS = ("links", "divisions")
_LEARNED, _NEAREST, _FLOW, _MATCHING = (
    "learned", "nearest neighbour", "flow, untrained", "graph matching, untrained",
)  # fmt: skip
_COLOURS = 5  # of families
_TAIL = 5  # frames

_Floats = NDArray[np.float64]
_Place = tuple[int, int]  # frame, id


def example(
    seed: int,
) -> tuple[list[FramePair], list[FramePair], TrackingResult, TrackingResult]:
    """Two movies: the links of one are known, the other is tracked in two ways."""
    from dataclasses import replace

    from trellis.datasets import LABS, simulate_cells
    from trellis.tracking import NearestNeighbour, TrackingModel

    lab = replace(LABS["b"], name="colony", over_segmentation=0.0, under_segmentation=0.0)
    annotated = simulate_cells(12, 16, lab=lab, seed=seed)
    new = simulate_cells(24, 20, lab=lab, seed=seed + 1)
    learned = TrackingModel().fit(annotated).predict(new)
    nearest = NearestNeighbour().fit(annotated).predict(new)
    return annotated, new, learned, nearest


def panel(seed: int) -> str:
    """The panel as HTML."""
    annotated, new, learned, nearest = example(seed)
    scores = _measured(seed, _RUNS, _LINKS, _TRAIN, _TEST)
    families = _families(new)
    n_links = len(annotated_events(annotated)[0])
    movie = _movie(new, {_LEARNED: learned, _NEAREST: nearest}, families)
    return "".join(
        [
            f"<style>{_STYLE}</style>",
            summary(_said(scores)),
            '<div class="columns">',
            figure(
                _player(len(new) + 1, _counts(new, learned), _counts(new, nearest)),
                "A simulated colony that neither tracker has seen. Colours are true families "
                "(grey: no division in the movie), tails where the tracker says that a cell was in "
                f"the last {_TAIL} frames, a dot where it sees a division. A cross marks a wrong "
                "link, a dotted line one that was missed.",
            ),
            figure(
                _tree(new, learned, families),
                f"Lineage by the tracker that learned from the {n_links} links of another movie: "
                "time to the right, divisions as forks, colours as in the movie. A cross is a "
                "wrong link, a ring a division that was missed. Below: tracks that neither divide "
                "nor come from a division. Click to go to a frame.",
            ),
            "</div>",
            data("cells-data", movie),
            script(asset("trellis.demo.panels", "cells.js")),
            '<div class="columns">',
            *(_chart(scores, kind) for kind in range(len(_KINDS))),
            "</div>",
            _figures(scores),
            note(
                "Simulated movies (trellis.datasets.simulate_cells): crowded, fast cells, never "
                "seen in parts or two as one; on real movies see studies/REPORT.md. Each of the "
                f"{len(scores.learned)} runs has a movie of about {scores.sizes[-1]} links to "
                "learn from and another to test on. Bands are 95 % intervals over the runs, each "
                "by itself; differences are taken within a run, so bands may overlap where a "
                "difference is clear. The trackers that do not learn are told by all links how far "
                "cells go. The model is the default one, whatever the number of links. With "
                'sparse, slow cells (LABS["a"]) all trackers are better, and so few movies show no '
                "clear gain over flow."
            ),
            code_of(example, seed=seed),
        ]
    )


def warm_assignments() -> None:
    """All steps of the panel on short movies."""
    example(0)
    _measured(0, 2, (8,), (8, 8), (8, 6))


WARM = (warm_assignments,)


# ------------------------------------------------------------------------------- measuring


@dataclass(frozen=True)
class _Scores:
    """F1 in per cent on movies that were held out."""

    sizes: tuple[int, ...]  # links to learn from; the last: all, on average
    learned: _Floats  # (run, size, kind)
    others: dict[str, _Floats]  # (run, kind) of each tracker that does not learn

    def gain(self, size: int, kind: int, over: str) -> tuple[float, float, float]:
        """Mean and interval of the difference to a tracker that does not learn."""
        return _interval(self.learned[:, size, kind] - self.others[over][:, kind])


def _measured(
    seed: int,
    runs: int,
    sizes: Sequence[int],
    train: tuple[int, int],
    test: tuple[int, int],
) -> _Scores:
    learned = np.empty((runs, len(sizes) + 1, len(_KINDS)))
    others = {name: np.empty((runs, len(_KINDS))) for name in (_NEAREST, _FLOW, _MATCHING)}
    every = []
    for run in range(runs):
        first = 1_000 * (seed + 1) + 2 * run  # no movie of `example`, nor of another run
        known = simulate_cells(*train, lab=_COLONY, seed=first)
        unseen = simulate_cells(*test, lab=_COLONY, seed=first + 1)
        truth, _ = annotated_events(unseen)
        every.append(len(annotated_events(known)[0]))
        order = np.random.default_rng([seed, run])
        for i, part in enumerate([*_some_links(known, sizes, order), known]):
            learned[run, i] = _f1(truth, TrackingModel().fit(part).predict(unseen))
        others[_NEAREST][run] = _f1(truth, NearestNeighbour().fit(known).predict(unseen))
        others[_FLOW][run] = _f1(truth, FlowTracker().fit(known).predict(unseen))
        others[_MATCHING][run] = _f1(truth, GraphMatching().fit(known).predict(unseen))
    return _Scores((*sizes, round(float(np.mean(every)))), learned, others)


def _some_links(
    pairs: Sequence[FramePair], sizes: Sequence[int], rng: np.random.Generator
) -> list[list[FramePair]]:
    """The pairs with so many of their links, each set within the next larger one."""
    cells = sorted({(t, link[0]) for t, pair in enumerate(pairs) for link in _links(pair)})
    drawn = [cells[k] for k in rng.permutation(len(cells))]
    parts = []
    for size in sizes:
        kept: dict[int, list[tuple[int, int, str]]] = defaultdict(list)
        n = 0
        for t, source in drawn:
            if n >= size:
                break
            fate = [link for link in _links(pairs[t]) if link[0] == source]
            kept[t] += fate  # half a division would say nothing
            n += len(fate)
        parts.append(
            [
                replace(pair, annotation=PairAnnotation(tuple(sorted(kept[t])), (), ()))
                if t in kept
                else replace(pair, annotation=None)
                for t, pair in enumerate(pairs)
            ]
        )
    return parts


def _links(pair: FramePair) -> tuple[tuple[int, int, str], ...]:
    return () if pair.annotation is None else pair.annotation.links


def _f1(truth: list[Link], result: TrackingResult) -> tuple[float, float]:
    scores = score_links(truth, result.links)
    return 100 * scores.links.f1, 100 * scores.divisions.f1


def _interval(values: _Floats) -> tuple[float, float, float]:
    """Mean of the runs and its 95 % interval by Student's t."""
    from scipy.special import stdtrit

    n, mean = len(values), float(values.mean())
    wide = float(stdtrit(n - 1, 0.975) * values.std(ddof=1) / np.sqrt(n))
    return mean, mean - wide, mean + wide


def _f1_interval(values: _Floats) -> tuple[float, float, float]:
    """The same of an F1, which Student's t does not know to be between 0 and 100."""
    mean, low, high = _interval(values)
    return mean, max(low, 0.0), min(high, 100.0)


# ------------------------------------------------------------------------------- in words


def _said(scores: _Scores) -> str:
    """What the figures of this run say, and no more."""

    def both(values: _Floats) -> str:
        return " and ".join(f"{value:.1f}" for value in values.mean(axis=0))

    better, worse = (_where(scores, sign) for sign in (1, -1))
    return (
        f"Learned from the {scores.sizes[-1]} links of one short movie, tested on others: F1 of "
        f"{both(scores.learned[:, -1])} for links and divisions; nearest neighbour has "
        f"{both(scores.others[_NEAREST])}, flow with prices made by hand "
        f"{both(scores.others[_FLOW])}. Learning is surely better than flow {better}, surely worse "
        f"{worse}."
    )


def _where(scores: _Scores, sign: int) -> str:
    """Where the interval of the difference to flow is above (1) or below (-1) zero."""
    found: dict[str, list[str]] = {}  # kinds with these numbers of links
    for kind, name in enumerate(_KINDS):
        sizes = [
            str(size)
            for i, size in enumerate(scores.sizes)
            if min(sign * bound for bound in scores.gain(i, kind, _FLOW)[1:]) > 0
        ]
        if sizes:
            found.setdefault(_listed(sizes), []).append(name)
    parts = [f"in {' and '.join(names)} ({sizes} annotated)" for sizes, names in found.items()]
    return " and ".join(parts) or "nowhere"


def _listed(names: Sequence[str]) -> str:
    return " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _counts(pairs: list[FramePair], result: TrackingResult) -> tuple[str, str]:
    """Mistakes of a tracker in the movie, of links and of divisions."""
    scores = score_links(annotated_events(pairs)[0], result.links)
    links, divisions = scores.links, scores.divisions
    return (
        f"{links.predicted - links.correct} wrong links, {links.support - links.correct} missed "
        f"of {links.support}",
        f"{divisions.correct} of {divisions.support} divisions found, "
        f"{divisions.predicted - divisions.correct} false",
    )


def _chart(scores: _Scores, kind: int) -> str:
    sizes = [float(size) for size in scores.sizes]

    def curve(name: str, columns: Sequence[_Floats]) -> Curve:
        mean, low, high = zip(*map(_f1_interval, columns), strict=True)
        if name not in (_LEARNED, _FLOW):  # more bands would hide each other; the table has all
            return Curve(name, sizes, mean)
        return Curve(name, sizes, mean, low, high)

    series = [curve(_LEARNED, list(scores.learned[:, :, kind].T))]
    series += [
        curve(name, [values[:, kind]] * len(sizes)) for name, values in scores.others.items()
    ]
    picture = curves(series, "annotated links", f"F1 of {_KINDS[kind]}", log_x=True)
    return figure(picture, f"F1 of {_KINDS[kind]} on unseen movies; the last number is all links.")


def _figures(scores: _Scores) -> str:
    def shown(value: float, low: float, high: float, sign: str = "") -> str:
        # Adding 0 makes 0.0 of -0.0.
        value, low, high = (round(figure, 1) + 0.0 for figure in (value, low, high))
        return f"{value:{sign}.1f} ({low:{sign}.1f} to {high:{sign}.1f})".replace("-", "−")

    rows: list[list[str]] = []
    for i, size in enumerate(scores.sizes):
        rows.append([f"learned from {size} links"])
        for kind in range(len(_KINDS)):
            rows[-1].append(shown(*_f1_interval(scores.learned[:, i, kind])))
            rows[-1].append(shown(*scores.gain(i, kind, _FLOW), "+"))
    for name, values in scores.others.items():
        rows.append([name])
        for kind in range(len(_KINDS)):
            over = values[:, kind] - scores.others[_FLOW][:, kind]
            rows[-1].append(shown(*_f1_interval(values[:, kind])))
            rows[-1].append("" if name == _FLOW else shown(*_interval(over), "+"))
    header = ["tracker", "F1 of links", "− flow", "F1 of divisions", "− flow"]
    return f"<details><summary>All figures, with intervals</summary>{table(header, rows)}</details>"


# ------------------------------------------------------------------------------- the movie


def _frames(pairs: Sequence[FramePair]) -> list[FramePair]:
    """A pair for each frame, which it is the source of."""
    last = pairs[-1]
    return [*pairs, replace(last, frame=last.frame + 1, source=last.target)]


def _families(pairs: list[FramePair]) -> dict[_Place, int]:
    """Colour of the true family of each object, -1 where there is no division.

    There are more families than colours: each gets the one whose cells are farthest from it.
    """
    truth = assemble_tracks(pairs, annotated_events(pairs)[0])
    parent = {track.track: track.parent for track in truth.tracks}
    divided = set(parent.values()) - {-1}
    root: dict[int, int] = {}
    for track in sorted(parent):
        root[track] = track if parent[track] == -1 else root[parent[track]]
    cells: dict[int, list[tuple[float, float, float]]] = defaultdict(list)
    for o in truth.objects:
        if root[o.track] in divided:
            cells[root[o.track]].append((o.frame, o.x, o.y))
    colour: dict[int, int] = {}
    for family, places in cells.items():
        room = [np.inf] * _COLOURS
        for other, taken in colour.items():
            room[taken] = min(room[taken], _apart(places, cells[other]))
        colour[family] = int(np.argmax(room))
    return {(o.frame, o.id): colour.get(root[o.track], -1) for o in truth.objects}


def _apart(
    a: Sequence[tuple[float, float, float]], b: Sequence[tuple[float, float, float]]
) -> float:
    """Least distance of two families in the same frame, or a frame apart."""
    p, q = np.array(a), np.array(b)
    near = np.abs(p[:, None, 0] - q[None, :, 0]) <= 1
    distance = np.hypot(p[:, None, 1] - q[None, :, 1], p[:, None, 2] - q[None, :, 2])
    return float(np.where(near, distance, np.inf).min())


def _movie(
    pairs: list[FramePair], trackers: dict[str, TrackingResult], families: dict[_Place, int]
) -> dict[str, object]:
    """What the script draws; cells are named by their place in the list of their frame."""
    shown, place = [], {}
    for pair in _frames(pairs):
        cells = pair.source
        ratio = np.sqrt(1 - np.clip(cells["eccentricity"], 0, 0.95) ** 2)
        major = np.sqrt(cells["area"] / (np.pi * ratio))
        # Angles are from the y axis to the long axis; the script wants them from the x axis.
        turn = 90 - np.degrees(cells["orientation"])
        columns = np.column_stack([cells.position, major, major * ratio, turn]).round(1).tolist()
        ids = cells.ids.tolist()
        shown.append([[*row, families[pair.frame, i]] for row, i in zip(columns, ids, strict=True)])
        place.update({(pair.frame, i): k for k, i in enumerate(ids)})
    truth = {link.ends for link in annotated_events(pairs)[0]}
    tracked = {}
    errors = {}
    for name, result in trackers.items():
        # The movie draws links from frame to frame.
        made = {link.ends for link in result.links if not link.gap}
        steps: list[dict[str, list[object]]] = [
            {"right": [], "wrong": [], "missed": [], "divides": []} for _ in shown
        ]
        parts = {"right": made & truth, "wrong": made - truth, "missed": truth - made}
        for what, links in parts.items():
            for _, frame, a, after, b in sorted(links):
                steps[after][what].append([place[frame, a], place[after, b]])
        for event in sorted(event_set(result.links)):
            if event.kind == "division":
                steps[event.frame + 1]["divides"].append(place[event.frame, event.sources[0]])
        tracked[name] = steps
        errors[name] = [len(step["wrong"]) + len(step["missed"]) for step in steps]
    side = max(pairs[0].extent[2:])
    spared = np.subtract(errors[_NEAREST], errors[_LEARNED])[_TAIL:]
    return {
        "side": round(side, 1),
        "tail": _TAIL,
        "frames": shown,
        "trackers": tracked,
        "telling": _TAIL + int(np.argmax(spared)) if len(spared) else 0,
        "tree": {"left": _LEFT, "step": _step(len(shown))},
    }


def _player(n_frames: int, learned: Sequence[str], nearest: Sequence[str]) -> str:
    """The movie's place, and what it is driven with."""
    choices = "".join(
        f'<label><input type="radio" name="cells-tracker" value="{name}"{checked}> '
        f"<b>{name}</b>{''.join(f'<span>{html.escape(count)}</span>' for count in counts)}</label>"
        for name, counts, checked in ((_NEAREST, nearest, ""), (_LEARNED, learned, " checked"))
    )
    return (
        f'<div class="cells" id="cells-movie"><div class="choices" role="radiogroup" '
        f'aria-label="Tracker">{choices}</div>'
        '<svg role="img" aria-label="Movie of the colony"></svg>'
        '<div class="drive"><button type="button">play</button>'
        f'<input type="range" min="0" max="{n_frames - 1}" value="0" step="1" aria-label="Frame">'
        '<output aria-live="off"></output></div></div>'
    )


# ------------------------------------------------------------------------------- the lineage

_WIDTH, _LEFT, _RIGHT, _TOP, _ROW = 460, 14, 14, 22, 11


def _step(n_frames: int) -> float:
    """Pixels from a frame to the next."""
    return round((_WIDTH - _LEFT - _RIGHT) / (n_frames - 1), 3)


def _tree(pairs: list[FramePair], result: TrackingResult, families: dict[_Place, int]) -> str:
    """Tracks as lines of the colours of the cells that they go through."""
    row, _, n_rows = lineage_layout(result.tracks)
    n_frames = len(pairs) + 1
    step, first = _step(n_frames), pairs[0].frame
    height = _TOP + _ROW * n_rows + 8

    def x(frame: float) -> float:
        return _LEFT + step * (frame - first)

    def y(track: int) -> float:
        return _TOP + _ROW * (row[track] + 0.5)

    of = {(o.frame, o.id): o.track for o in result.objects}
    path: dict[int, list[str]] = defaultdict(list)  # of each colour
    for o in result.objects:
        colour = families[o.frame, o.id]
        path[colour].append(f"M{x(o.frame) - step / 2:.1f},{y(o.track):.1f}h{step:.1f}")
    dots = []
    ends = {track.track: track.end for track in result.tracks}
    begin = {(track.track, track.begin): track for track in result.tracks}
    for o in result.objects:
        born = begin.get((o.track, o.frame))
        if born is None or born.parent == -1:
            continue
        at = x(ends[born.parent]) + step / 2
        path[families[o.frame, o.id]].append(f"M{at:.1f},{y(born.parent):.1f}V{y(o.track):.1f}")
        dots.append(f'<circle cx="{at:.1f}" cy="{y(born.parent):.1f}" r="2.4"/>')
    lines = "".join(f'<path class="f{c}" d="{"".join(d)}"/>' for c, d in sorted(path.items()))
    truth = annotated_events(pairs)[0]
    marks = [
        f'<path class="wrong" d="M{x((t + u) / 2) - 3.5:.1f},{y(of[u, b]) - 3.5:.1f}'
        'l7,7m0,-7l-7,7"/>'
        for _, t, _, u, b in sorted({k.ends for k in result.links} - {k.ends for k in truth})
    ]
    marks += [
        f'<circle class="missed" cx="{x(event.frame + 0.5):.1f}" '
        f'cy="{y(of[event.frame, event.sources[0]]):.1f}" r="4"/>'
        for event in sorted(event_set(truth) - event_set(result.links))
        if event.kind == "division"
    ]
    ticks = "".join(
        f'<text x="{x(frame):.1f}" y="12" text-anchor="middle">{frame}</text>'
        for frame in range(first, first + n_frames, 4)
    )
    return (
        f'<svg class="cells lineage" id="cells-tree" viewBox="0 0 {_WIDTH} {height:.0f}" '
        f'role="img" aria-label="Lineage: {len(result.tracks)} tracks">{ticks}'
        f'<line id="cells-now" x1="{_LEFT}" x2="{_LEFT}" y1="16" y2="{height:.0f}"/>'
        f'<g class="lines">{lines}</g><g class="dots">{"".join(sorted(set(dots)))}</g>'
        f"{''.join(marks)}</svg>"
    )


_STYLE = """
.cells .f-1 { --f: var(--faint); } .cells .f0 { --f: var(--c0); } .cells .f1 { --f: var(--c1); }
.cells .f2 { --f: var(--c2); } .cells .f3 { --f: var(--c3); } .cells .f4 { --f: var(--c5); }
#cells-movie { max-width: 540px; }
#cells-movie svg {
  display: block; width: 100%; aspect-ratio: 1;
  background: var(--paper); border: 1px solid var(--rule); border-radius: 8px;
}
#cells-movie .choices {
  display: grid; grid-template-columns: 1fr 1fr; gap: 8px; margin-bottom: 8px;
}
#cells-movie label {
  border: 1px solid var(--rule); border-radius: 6px; padding: 4px 8px;
  background: var(--paper); cursor: pointer; font-size: .9rem; line-height: 1.3;
}
#cells-movie label:has(:checked) {
  border-color: var(--link); box-shadow: inset 0 0 0 1px var(--link);
}
#cells-movie label span { display: block; color: var(--faint); font-size: .8rem; }
#cells-movie .drive { display: flex; gap: 10px; align-items: center; margin-top: 8px; }
#cells-movie .drive button { min-width: 4.5em; padding: 2px 8px; }
#cells-movie .drive input { flex: 1; min-width: 0; accent-color: var(--link); }
#cells-movie .drive output {
  min-width: 7em; font-size: .85rem; font-variant-numeric: tabular-nums;
}
#cells-movie ellipse { fill: var(--f); fill-opacity: .3; stroke: var(--f); stroke-width: .9; }
#cells-movie ellipse.f-1 { fill-opacity: .13; }
#cells-movie .tail { stroke: var(--f); stroke-width: 1.7; stroke-linecap: round; fill: none; }
#cells-movie .dot { fill: var(--ink); }
#cells-movie .halo { fill: var(--mark); }
#cells-movie .wrong, #cells-movie .missed {
  stroke: var(--ink); stroke-width: 1.7; stroke-linecap: round; fill: none;
}
#cells-movie .missed { stroke-dasharray: .1 3; }
.lineage { display: block; width: 100%; max-width: 580px; height: auto; cursor: pointer; }
.lineage text { fill: var(--faint); font-size: 12px; }
.lineage .lines path { stroke: var(--f); stroke-width: 2.2; fill: none; }
.lineage .lines path.f-1 { stroke-opacity: .6; }
.lineage .dots { fill: var(--ink); }
.lineage .wrong { stroke: var(--ink); stroke-width: 1.8; fill: none; }
.lineage .missed { stroke: var(--ink); stroke-width: 1.6; fill: var(--mark); }
#cells-now { stroke: var(--ink); stroke-opacity: .55; stroke-width: 1.2; stroke-dasharray: 3 2; }
"""

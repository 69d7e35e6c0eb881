r"""A movie as one HTML page: tracks, lineages, the links to look at first, and what was counted.

Nothing but a browser is needed, and nobody is asked for anything: style, script and data are in the
file. Data are columns of numbers in base64, little-endian, in the order of the objects, which are
sorted by frame and id. Of an object they are

==================== ==========================================================================
x, y, z              places, as 65,535ths of the field of view
long, wide, turn     half axes, as 255ths of the longest; angle of the long one from the x axis
track                row of its track
past                 row of the object that it comes from, -1 for none; earlier than the frame
                     before: a gap
chance, event        probability of that link, and of its event, as 65,535ths
other, other_chance  the next best past (-1: none), and its probability
else, else_chance    the next best fate of the object it comes from, and its probability
==================== ==========================================================================

A link is listed by its probability p. Of links with probabilities :math:`p_1, \dots, p_n` about
:math:`\sum_i (1 - p_i)` are wrong, if the probabilities are honest: the page says so of the list
and of the movie.

All texts from files (names of sequences, settings) are escaped, and shown as text by the script.
"""

from __future__ import annotations

import base64
import csv
import html
import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.domains import whole
from trellis.errors import DataError
from trellis.files import atomic_write
from trellis.pictures.names import shown
from trellis.pictures.page_parts import asset, data, script
from trellis.tracking import FramePair, Link, Objects, Track, TrackingResult, score_links
from trellis.tracking.lineage_layout import lineage_layout
from trellis.tracking.objects import checked_pairs

__all__ = ["movie_page"]

MOST = 300_000
"""Objects that a page shows; of larger movies it shows the first frames."""
LISTED = 500
"""Links that the page lists."""
_DOUBTFUL = 0.99  # links below it are in the table beside the page
_BINS = 24
_FULL = 65_535

_Key = tuple[int, int]  # frame and id


def movie_page(
    result: TrackingResult,
    path: str | os.PathLike[Any],
    *,
    pairs: Iterable[FramePair] = (),
    truth: Iterable[Link] | None = None,
    title: str = "Tracks",
    calibrated: str = "",
    settings: Mapping[str, Any] | None = None,
    most: int = MOST,
) -> list[Path]:
    """Write a tracked movie as one HTML page.

    Parameters
    ----------
    result : TrackingResult
        What to show. With ``chances``, as ``TrackingModel.predict(pairs, probabilities=True)``
        gives them, the page lists the links to look at first.
    path : path
        A file that ends in .html, or a folder, in which ``index.html`` is written. Beside it
        stands a CSV file of all links with a probability below 0.99.
    pairs : sequence of FramePair, optional
        The objects with their columns, for their sizes and shapes: area, eccentricity and
        orientation, or the lengths of both axes; and for a third coordinate.
    truth : sequence of Link, optional
        True links, all of them: scores are shown, and wrong and missed links marked.
    title : str
        What the page is called.
    calibrated : str
        A sentence that says what the probabilities were calibrated with.
    settings : mapping, optional
        Further facts of the run, by their names.
    most : int
        Objects to show. Of more than these only the first frames are on the page, which says so.

    Returns
    -------
    list of Path
        The files that were written, the page first.

    Raises
    ------
    DataError
        If there is nothing to show, or the pairs lack an object of the result.

    Examples
    --------
    >>> from trellis.datasets import simulate_cells
    >>> from trellis.tracking import TrackingModel
    >>> movie = simulate_cells(20, 6, seed=0)
    >>> result = TrackingModel().fit(movie).predict(movie, probabilities=True)
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page, table = movie_page(result, f"{folder}/movie.html", pairs=movie)
    >>> page.name, table.name
    ('movie.html', 'movie_doubtful_links.csv')
    """
    if not isinstance(result, TrackingResult):
        raise DataError(f"result must be a TrackingResult, got {type(result).__name__}")
    whole(1).check("most", most)
    if not result.objects:
        raise DataError("there are no objects to show")
    listed = checked_pairs(pairs)
    true = None if truth is None else list(truth)
    target = Path(path)
    beside = None
    if target.suffix.lower() in (".html", ".htm"):
        beside = target.with_name(f"{target.stem}_doubtful_links.csv")
    else:
        target.mkdir(parents=True, exist_ok=True)
        target, beside = target / "index.html", target / "doubtful_links.csv"
    movie = _movie(result, listed, true, most)
    text = _page(result, movie, title, calibrated, true, settings or {}, most)
    with atomic_write(target, binary=False) as file:
        file.write(text)
    if not result.chances:
        return [target]
    _write_doubtful(result, beside, true)
    return [target, beside]


# ------------------------------------------------------------------------------- what is shown


def _movie(
    result: TrackingResult,
    pairs: Sequence[FramePair],
    truth: Sequence[Link] | None,
    most: int,
) -> dict[str, Any]:
    """All sequences, as the script wants them."""
    names = sorted({o.sequence for o in result.objects})
    share = max(1, most // len(names))
    objects, links = defaultdict(list), defaultdict(list)
    tracks: dict[str, list[Track]] = defaultdict(list)
    for o in result.objects:
        objects[o.sequence].append(o)
    for i, link in enumerate(result.links):
        links[link.sequence].append(i)
    for track in result.tracks:
        tracks[track.sequence].append(track)
    true = None
    if truth is not None:
        true = defaultdict(set)
        for link in truth:
            true[link.sequence].add(link.ends[1:])
    measured: dict[str, list[tuple[int, Objects]]] = defaultdict(list)
    for pair in pairs:
        measured[pair.sequence] += [(pair.frame, pair.source), (pair.frame + 1, pair.target)]
    sequences = [
        _Sequence(
            name, objects[name], [result.links[i] for i in links[name]],
            [result.chances[i] for i in links[name]] if result.chances else [],
            tracks[name], measured[name], None if true is None else true[name], share,
        ).packed()
        for name in names
    ]  # fmt: skip
    return {"sequences": sequences, "likely": bool(result.chances), "truth": truth is not None}


class _Sequence:
    """One sequence, its columns and its counts."""

    def __init__(
        self, name: str, objects: list[Any], links: list[Link], chances: list[Any],
        tracks: list[Track], measured: list[tuple[int, Objects]],
        truth: set[tuple[int, int, int, int]] | None, most: int,
    ) -> None:  # fmt: skip
        self.name = name
        frames = np.array([o.frame for o in objects], np.int64)
        self.first, self.last = int(frames.min()), int(frames.max())
        self.until = self.last
        if len(objects) > most:  # the first frames, one at least
            self.until = max(self.first, int(frames[most]) - 1)
        self.all_objects, self.all_frames = len(objects), self.last - self.first + 1
        kept = int((frames <= self.until).sum())
        self.objects, self.frames = objects[:kept], frames[:kept]
        self.row: dict[_Key, int] = {(o.frame, o.id): k for k, o in enumerate(self.objects)}
        self.links, self.chances, self.tracks = links, chances, tracks
        self.truth = truth
        self.place = np.array([[o.x, o.y] for o in self.objects], np.float64)
        self.depth: NDArray[np.float64] | None = None
        self.shape: NDArray[np.float64] | None = None
        self._measure(measured)

    def _measure(self, measured: list[tuple[int, Objects]]) -> None:
        """Places in space, and ellipses, from the objects as they were read."""
        shape = np.full((len(self.objects), 3), np.nan)
        depth = np.full(len(self.objects), np.nan)
        for frame, some in measured:
            if frame > self.until:
                continue
            rows = [self.row.get((frame, i), -1) for i in some.ids.tolist()]
            if min(rows, default=0) < 0:
                lost = int(some.ids[rows.index(-1)])
                raise DataError(
                    f"object {lost} of frame {frame} is among the pairs, but not in the result; "
                    "give the pairs that were tracked"
                )
            shape[rows] = _ellipses(some)
            if some.position.shape[1] > 2:
                depth[rows] = some.position[:, 2]
        if np.isfinite(shape[:, 0]).any():
            self.shape = shape
        if np.isfinite(depth).any():
            self.depth = depth

    def packed(self) -> dict[str, Any]:
        """What the script gets."""
        n = len(self.objects)
        counts = np.bincount(self.frames - self.first, minlength=self.until - self.first + 1)
        numbers = {track.track: k for k, track in enumerate(self.tracks)}
        track = np.array([numbers[o.track] for o in self.objects], np.int32)
        low, size = self.place.min(0), np.ptp(self.place, axis=0)
        side = float(size.max()) or 1.0
        scaled = (self.place - low) / side
        columns: dict[str, Any] = {
            "x": _fixed(scaled[:, 0]),
            "y": _fixed(scaled[:, 1]),
            "id": _packed([o.id for o in self.objects]),
            "track": _packed(track),
            **self._pasts(),
            **self._tracks(numbers),
        }
        if self.shape is not None:
            longest = float(np.nanmax(self.shape[:, 0])) or 1.0
            filled = np.where(np.isfinite(self.shape), self.shape, [longest / 2, longest / 2, 0.0])
            columns["long"] = _packed(np.ceil(255 * filled[:, 0] / longest).clip(1), np.uint8)
            columns["wide"] = _packed(np.ceil(255 * filled[:, 1] / longest).clip(1), np.uint8)
            columns["turn"] = _packed(np.round(filled[:, 2] % 180 * 255 / 180), np.uint8)
        if self.depth is not None:
            z = np.nan_to_num(self.depth, nan=float(np.nanmin(self.depth)))
            columns["z"] = _fixed((z - z.min()) / (float(np.ptp(z)) or 1.0))
        return {
            "name": shown_name(self.name),
            "first": self.first,
            "counts": counts.tolist(),
            "left_out": [self.all_objects - n, self.all_frames - len(counts)],
            "low": low.tolist(),
            "side": side,
            "size": size.tolist(),
            "longest": None if self.shape is None else float(np.nanmax(self.shape[:, 0])),
            "deep": None if self.depth is None else _range(self.depth),
            "columns": columns,
            "merged": self.merged,
            "missed": self.missed,
            **self._measures(),
        }

    def _pasts(self) -> dict[str, Any]:
        """Where each object comes from, how surely, and what else may have been."""
        n = len(self.objects)
        past = np.full(n, -1, np.int64)
        likely = {name: np.zeros(n) for name in ("chance", "event", "other_chance", "else_chance")}
        others = {name: np.full(n, -1, np.int64) for name in ("other", "else")}
        wrong = np.zeros(n, np.uint8)
        self.merged: list[list[int]] = []
        made = set()
        lengths: list[float] = []
        for k, link in enumerate(self.links):
            b = self.row.get((link.frame_target, link.target_id), -1)
            a = self.row.get((link.frame, link.source_id), -1)
            if a < 0 or b < 0:
                continue
            made.add(link.ends[1:])
            lengths.append(float(np.hypot(*(self.place[b] - self.place[a]))) / (link.gap + 1))
            if past[b] >= 0:  # two become one
                self.merged.append([a, b])
                continue
            past[b] = a
            wrong[b] = self.truth is not None and link.ends[1:] not in self.truth
            if self.chances:
                chance = self.chances[k]
                likely["chance"][b], likely["event"][b] = chance.probability, chance.event
                likely["other_chance"][b] = chance.past_probability
                likely["else_chance"][b] = chance.fate_probability
                others["other"][b] = -1 if chance.past is None else self.row.get(chance.past, -1)
                others["else"][b] = -1 if chance.fate is None else self.row.get(chance.fate, -1)
        self.speeds = np.array(lengths)
        self.past = past
        self.missed = [
            [self.row[key[:2]], self.row[key[2:]]]
            for key in sorted((self.truth or set()) - made)
            if key[:2] in self.row and key[2:] in self.row
        ]
        columns = {"past": _packed(past)}
        if self.truth is not None:
            columns["wrong"] = _packed(wrong, np.uint8)
        if self.chances:
            columns |= {name: _fixed(p) for name, p in likely.items()}
            columns |= {name: _packed(rows) for name, rows in others.items()}
        return columns

    def _tracks(self, numbers: dict[int, int]) -> dict[str, Any]:
        """Tracks, and where they stand in the lineage."""
        row, family, n_rows = lineage_layout(self.tracks)
        parent = [numbers.get(t.parent, -1) for t in self.tracks]
        self.n_rows = float(n_rows)
        return {
            "t_name": _packed([t.track for t in self.tracks]),
            "t_begin": _packed([t.begin - self.first for t in self.tracks]),
            "t_end": _packed([t.end - self.first for t in self.tracks]),
            "t_parent": _packed(parent),
            "t_row": _packed([round(4 * row[t.track]) for t in self.tracks]),
            "t_family": _packed([family[t.track] for t in self.tracks]),
        }

    def _measures(self) -> dict[str, Any]:
        """Counts over time, and how long and how fast tracks are."""
        n = self.until - self.first + 1
        has_fate = np.zeros(len(self.objects), bool)
        has_fate[self.past[self.past >= 0]] = True
        for a, _ in self.merged:
            has_fate[a] = True
        at = self.frames - self.first
        came = np.bincount(at[(self.past < 0) & (at > 0)], minlength=n)
        went = np.bincount(at[~has_fate & (self.frames < self.last)], minlength=n)
        parents = {t.parent for t in self.tracks} - {-1}
        ends = [t.end - self.first for t in self.tracks if t.track in parents]
        divided = np.bincount(np.array([e for e in ends if e < n], np.int64), minlength=n)
        lengths = np.array([t.end - t.begin + 1 for t in self.tracks], float)
        return {
            "rows": self.n_rows,
            "came": came.tolist(),
            "went": went.tolist(),
            "divided": divided.tolist(),
            "lengths": _histogram(lengths, steps=True),
            "speeds": _histogram(self.speeds),
        }


def _ellipses(objects: Objects) -> NDArray[np.float64]:
    """Half axes, and the angle in degrees of the long one from the x axis; NaN: not known."""
    n = len(objects)
    found = np.full((n, 3), np.nan)
    axes = [
        (a, b)
        for a, b in (
            ("axis_major_length", "axis_minor_length"),
            ("major_axis_length", "minor_axis_length"),
        )
        if a in objects and b in objects
    ]
    if axes:
        found[:, 0], found[:, 1] = (objects[name] / 2 for name in axes[0])
    elif "area" in objects:
        ratio: Any = np.ones(n)
        if "eccentricity" in objects:
            ratio = np.sqrt(1 - np.clip(objects["eccentricity"], 0, 0.98) ** 2)
        found[:, 0] = np.sqrt(np.maximum(objects["area"], 0) / (np.pi * ratio))
        found[:, 1] = found[:, 0] * ratio
    # Angles are from the y axis to the long axis, in radians.
    found[:, 2] = 90 - np.degrees(objects["orientation"]) if "orientation" in objects else 0.0
    found[~np.isfinite(found[:, :2]).all(1)] = np.nan
    found[:, 2] = np.nan_to_num(found[:, 2])
    return found


def _range(values: NDArray[np.float64]) -> list[float]:
    return [float(np.nanmin(values)), float(np.nanmax(values))]


def _histogram(values: NDArray[np.float64], *, steps: bool = False) -> dict[str, Any]:
    """Counts of values, the highest hundredth in the last bin; ``steps``: of whole numbers."""
    if not len(values):
        return {"edges": [0.0, 1.0], "counts": [0], "median": 0.0}
    top = float(np.quantile(values, 0.99)) or 1.0
    if steps:
        width = max(1, int(np.ceil(top / _BINS)))
        edges = np.arange(1, top + width + 1, width) - 0.5
    else:
        edges = np.linspace(0, top, _BINS + 1)
    counts, _ = np.histogram(np.minimum(values, (edges[-2] + edges[-1]) / 2), edges)
    return {
        "edges": [float(f"{e:.6g}") for e in edges],
        "counts": counts.tolist(),
        "median": float(f"{np.median(values):.4g}"),
    }


def _packed(values: Any, kind: Any = None) -> dict[str, str]:
    """A column of whole numbers, of the least size that holds them."""
    array = np.asarray(values)
    if kind is None:
        array = array.astype(np.int64)
        low, high = int(array.min(initial=0)), int(array.max(initial=0))
        sizes = (np.int8, np.int16, np.int32)
        fits = [k for k in sizes if np.iinfo(k).min <= low and high <= np.iinfo(k).max]
        kind = fits[0] if fits else np.float64  # ids beyond 2**31
    array = array.astype(np.dtype(kind).newbyteorder("<"))
    return {"kind": np.dtype(kind).name, "text": base64.b64encode(array.tobytes()).decode()}


def _fixed(shares: NDArray[np.float64]) -> dict[str, str]:
    """Numbers from 0 to 1 as 65,535ths."""
    return _packed(np.round(_FULL * np.clip(shares, 0, 1)), np.uint16)


def _line(text: str) -> str:
    """A text of other people's in one line."""
    return shown(text, 400).replace(r"\$", "$")


def shown_name(name: str) -> str:
    """A name of other people's, in one line that turns nothing around.

    Examples
    --------
    >>> shown_name("film"), shown_name("a$b"), shown_name("")
    ('film', 'a$b', '')
    """
    return shown(name, 80).replace(r"\$", "$") if name else ""


# ------------------------------------------------------------------------------- the page


def _page(
    result: TrackingResult,
    movie: dict[str, Any],
    title: str,
    calibrated: str,
    truth: Sequence[Link] | None,
    settings: Mapping[str, Any],
    most: int,
) -> str:
    probabilities = np.array(result.probabilities)
    movie = {**movie, "listed": LISTED}
    heading = html.escape(shown_name(title) or "Tracks")
    sequences = movie["sequences"]
    choices = "".join(
        f'<option value="{i}">{html.escape(s["name"] or "(no name)")}</option>'
        for i, s in enumerate(sequences)
    )
    selector = (
        f'<label class="sequence">Sequence <select id="sequence">{choices}</select></label>'
        if len(sequences) > 1
        else ""
    )
    parts = {
        "TITLE": heading,
        "STYLE": asset("trellis.pictures", "page.css")
        + asset("trellis.pictures", "movie_page.css"),
        "SELECTOR": selector,
        "SUMMARY": html.escape(_summary(result)),
        "LEFT_OUT": _left_out(sequences, most),
        "DOUBTS": _doubts(probabilities, calibrated, truth),
        "SCORES": _scores(truth, result),
        "SETTINGS": "",
        "DATA": data("movie", movie),
        "SCRIPT": script(asset("trellis.pictures", "movie_page.js")),
    }
    text = asset("trellis.pictures", "movie_page.html")
    size = sum(map(len, parts.values())) + len(text)
    facts = {**settings, **_facts(result, probabilities), "size of this page": _size(size)}
    parts["SETTINGS"] = _table(facts)
    pieces = text.split("@@")  # names of parts are every other piece
    return "".join(parts[piece] if i % 2 else piece for i, piece in enumerate(pieces))


def _size(n: int) -> str:
    return f"{n / 1e6:.1f} MB" if n > 950_000 else f"{n / 1e3:.0f} KB"


def _summary(result: TrackingResult) -> str:
    frames = len({(o.sequence, o.frame) for o in result.objects})
    divisions = len({(t.sequence, t.parent) for t in result.tracks if t.parent != -1})
    gaps = sum(link.gap > 0 for link in result.links)
    text = (
        f"{_many(len(result.objects), 'object')} in {_many(frames, 'frame')}, "
        f"{_many(len(result.tracks), 'track')}, {_many(divisions, 'division')}"
    )
    return text + (f", {_many(gaps, 'link')} over missed frames." if gaps else ".")


def _many(n: int, noun: str) -> str:
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def _left_out(sequences: Sequence[Mapping[str, Any]], most: int) -> str:
    lost = [sum(s["left_out"][k] for s in sequences) for k in range(2)]
    if not lost[0]:
        return ""
    return (
        f'<p class="note">A page shows {most:,} objects: the last {_many(lost[1], "frame")} with '
        f"{_many(lost[0], 'object')} are not on it. Tables have them all.</p>"
    )


def _doubts(probabilities: NDArray[np.float64], calibrated: str, truth: Any) -> str:
    """What stands above the list: what a probability means, and how many mistakes there may be."""
    if not len(probabilities):
        return (
            '<p class="note">There are no links, or they have no probabilities: trackers that '
            "learn nothing give none.</p>"
        )
    low = np.sort(probabilities)[:LISTED]
    expected, there = float((1 - low).sum()), float((1 - probabilities).sum())
    said = f" {_line(calibrated)}" if calibrated else ""
    text = (
        f"A probability of 90 % means that of ten such links nine are right.{said} By these "
        f"probabilities about {_rounded(there)} of {_many(len(probabilities), 'link')} are wrong, "
        f"and about {_rounded(expected)} of the {len(low):,} that are listed here, the least sure "
        "first."
    )
    return f'<p class="note" id="meaning">{html.escape(text)}</p>'


def _rounded(number: float) -> str:
    return f"{number:.2g}" if number < 1 else f"{float(f'{number:.3g}'):,.0f}"


def _scores(truth: Sequence[Link] | None, result: TrackingResult) -> str:
    if truth is None:
        return ""
    scores = score_links(truth, result.links)
    rows = "".join(
        f'<tr><td>{name}</td><td class="number">{s.precision:.2%}</td>'
        f'<td class="number">{s.recall:.2%}</td><td class="number">{100 * s.f1:.2f}</td>'
        f'<td class="number">{s.predicted - s.correct:,}</td>'
        f'<td class="number">{s.support - s.correct:,}</td></tr>'
        for name, s in (("links", scores.links), ("divisions", scores.divisions))
    )
    return (
        '<section class="card" aria-labelledby="h-truth"><h2 id="h-truth">Against the truth</h2>'
        '<div class="scroll"><table><thead><tr><th></th><th>precision</th><th>recall</th>'
        f"<th>F1</th><th>wrong</th><th>missed</th></tr></thead><tbody>{rows}</tbody></table></div>"
        '<p class="note">In the movie a wrong link is a red cross, one that was missed a dotted '
        "line.</p></section>"
    )


def _facts(result: TrackingResult, probabilities: NDArray[np.float64]) -> dict[str, str]:
    facts = {"links": f"{len(result.links):,}"}
    if len(probabilities):
        for bound in (0.5, 0.9, 0.99):
            facts[f"links below {bound:.0%}"] = f"{int((probabilities < bound).sum()):,}"
    return facts


def _table(facts: Mapping[str, Any]) -> str:
    rows = "".join(
        f"<tr><th>{html.escape(shown_name(str(name)))}</th>"
        f"<td>{html.escape(_line(str(value)))}</td></tr>"
        for name, value in facts.items()
    )
    return f'<div class="scroll"><table class="facts"><tbody>{rows}</tbody></table></div>'


# ------------------------------------------------------------------------------- the table


def _write_doubtful(result: TrackingResult, path: Path, truth: Sequence[Link] | None) -> None:
    """All links that are not sure, the least sure first, and what else may have been."""
    true = None if truth is None else {link.ends for link in truth}
    order = sorted(range(len(result.links)), key=lambda i: result.chances[i].probability)
    header = [
        "sequence", "frame", "source_id", "frame_target", "target_id", "kind", "probability",
        "event_probability", "other_past_frame", "other_past_id", "other_past_probability",
        "other_fate_frame", "other_fate_id", "other_fate_probability",
    ]  # fmt: skip
    with atomic_write(path, binary=False) as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow([*header, *(["right"] if true is not None else [])])
        for i in order:
            link, chance = result.links[i], result.chances[i]
            if chance.probability >= _DOUBTFUL:
                break
            rows.writerow(
                [
                    link.sequence, link.frame, link.source_id, link.frame_target, link.target_id,
                    link.kind, f"{chance.probability:.4g}", f"{chance.event:.4g}",
                    *(chance.past or ("", "")), f"{chance.past_probability:.4g}",
                    *(chance.fate or ("", "")), f"{chance.fate_probability:.4g}",
                    *([int(link.ends in true)] if true is not None else []),
                ]
            )  # fmt: skip

r"""The measures of the Cell Tracking Challenge: DET, LNK, TRA, SEG, BC(i) and CT.

Truth and result are graphs. A vertex is an object of a frame, an edge leads from an object to what
it is next: *along* a track, from frame t to t + 1, or from a *parent*, from the last object of one
track to the first of another. A result vertex and a true vertex match if the former covers more
than half of the pixels of the latter, so that a true vertex has at most one match.

To turn the graph of a result into the true one takes so many steps of each kind, at these prices:

========  =====================================================================  =====
NS        a result vertex that matches k > 1 true ones is split, k - 1 times     5
FN        a true vertex without match is added                                   10
FP        a result vertex without match is deleted                               1
ED        an edge between vertices with one match each that is not true: deleted 1
EA        a true edge that is not in the result: added                           1.5
EC        an edge that is along a track in one and from a parent in the other    1
========  =====================================================================  =====

Edges of the result at a vertex that has no match or several count for nothing. With AOGM the total
price, AOGM-D that of vertices, AOGM-A that of edges, and the index 0 for the price of making the
true graph from nothing,

.. math:: \mathrm{TRA} = 1 - \frac{\min(\mathrm{AOGM}, \mathrm{AOGM}_0)}{\mathrm{AOGM}_0},

and likewise DET of AOGM-D and LNK of AOGM-A. SEG is the mean, over all true objects, of the
intersection over the union with its match, 0 without one.

BC(i) is the F1 of divisions: a true track with several children and one of the result match if both
have as many, end within i frames of each other, match in the frame in which the first of them
ends, and their children begin within i frames and match likewise, where only matches of one to one
count. CT is 2 T / (true tracks + tracks of the result), where T of the true ones are matched by the
same track all along, one to one, that begins and ends with them.

References
----------
P. Matula et al., *Cell tracking accuracy measurement based on comparison of acyclic oriented
graphs*, 2015; V. Ulman et al., *An objective comparison of cell-tracking algorithms*, 2017.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import Int64s
from trellis.domains import whole
from trellis.errors import DataError
from trellis.evaluation.spans import PrecisionRecall
from trellis.tracking.ctc_folder import read_challenge, read_label_image, read_segmentation
from trellis.tracking.gap_parts import without_gaps
from trellis.tracking.result import Track, TrackedObject, TrackingResult

__all__ = ["CTCScores", "score_ctc"]

_Vertex = tuple[str, int, int]  # sequence, frame, label


@dataclass(frozen=True)
class CTCScores:
    """Scores of :func:`score_ctc`; ``str()`` gives a table.

    Attributes
    ----------
    ns, fn, fp, ed, ea, ec : int
        Steps from the result to the truth.
    n_vertices, n_edges : int
        Of the truth.
    seg : float or None
        None: there are no masks.
    links : PrecisionRecall
        Of edges; those at a vertex without a match of one to one are wrong.
    divisions : PrecisionRecall
        Its ``f1`` is BC(i).
    ct : float
        Complete tracks.
    """

    ns: int
    fn: int
    fp: int
    ed: int
    ea: int
    ec: int
    n_vertices: int
    n_edges: int
    seg: float | None
    links: PrecisionRecall
    divisions: PrecisionRecall
    ct: float

    @property
    def det(self) -> float:
        """DET, NaN if there are no true objects."""
        return _share(self._vertices, 10 * self.n_vertices)

    @property
    def lnk(self) -> float:
        """LNK, NaN if there are no true edges."""
        return _share(self._edges, 1.5 * self.n_edges)

    @property
    def tra(self) -> float:
        """TRA, NaN if there are no true objects."""
        return _share(self._vertices + self._edges, 10 * self.n_vertices + 1.5 * self.n_edges)

    @property
    def _vertices(self) -> float:
        return 5 * self.ns + 10 * self.fn + self.fp

    @property
    def _edges(self) -> float:
        return self.ed + 1.5 * self.ea + self.ec

    def __str__(self) -> str:
        values = {"TRA": self.tra, "DET": self.det, "LNK": self.lnk}
        values |= {} if self.seg is None else {"SEG": self.seg}
        values |= {"CT": self.ct}
        head = "".join(f"{name:>8}" for name in values)
        steps = ("ns", "fn", "fp", "ed", "ea", "ec")
        counts = ", ".join(f"{getattr(self, name)} {name.upper()}" for name in steps)
        return (
            f"{head}\n{''.join(f'{value:8.4f}' for value in values.values())}\n"
            f"{self.n_vertices} objects and {self.n_edges} links; steps to the truth: {counts}"
        )


def score_ctc(truth: Any, result: Any, *, masks: Any = None, offset: int = 0) -> CTCScores:
    """Compare tracks by the measures of the Cell Tracking Challenge.

    Parameters
    ----------
    truth, result : path, (masks, tracks), or TrackingResult
        - A folder of the challenge: ``01_GT`` or ``01_GT/TRA`` with man_track.txt and
          man_trackTTT.tif, ``01_RES`` with res_track.txt and maskTTT.tif. If a folder ``SEG``
          stands beside ``TRA``, SEG is measured on its images, else on those of ``TRA``.
        - Label images, an integer array of shape (frames, height, width) or (frames, depth, height,
          width) or a list of such images, in which pixels hold the number of a track, 0 where there
          is none; and the list of the tracks. Frames are counted from 0.
        - Tracks of the same detections: objects match if sequence, frame and id agree; then both
          have to be results. Tracks that leave out frames are taken as the challenge has them,
          each part the parent of the next. A result alone may be compared with true images, too:
          an object then matches the true one at the pixel of its centre (x, y in pixels), the
          nearest if there are several, which is not the challenge's rule but what points allow.
    masks : integer array, shape (frames, height, width), optional
        Label images of the objects of a ``TrackingResult``, in which pixels hold id + 1, as for
        ``write_ctc``.
    offset : int
        Frames by which a division may be too early or late, the i of BC(i).

    Raises
    ------
    DataError
        If a folder cannot be read, images and tracks contradict each other, or truth and result do
        not have the same frames.

    Examples
    --------
    >>> images = np.array([[[1, 1, 0, 0]], [[2, 2, 0, 3]]])
    >>> tracks = [Track("", 1, 0, 0, -1), Track("", 2, 1, 1, 1), Track("", 3, 1, 1, 1)]
    >>> lost = np.where(images == 3, 0, images), tracks[:2]
    >>> scores = score_ctc((images, tracks), lost)
    >>> print(scores)
         TRA     DET     LNK     SEG      CT
      0.6515  0.6667  0.5000  0.6667  0.8000
    3 objects and 2 links; steps to the truth: 0 NS, 1 FN, 0 FP, 0 ED, 1 EA, 0 EC
    >>> scores.divisions.recall
    0.0
    """
    whole(0).check("offset", offset)
    if isinstance(truth, TrackingResult):
        if not isinstance(result, TrackingResult):
            raise DataError(
                "truth has no images, result has: give truth as a folder or as (masks, tracks), "
                "too, or both as tracks of the same detections"
            )
        true, found = _movie_of(truth), _movie_of(result)
        pairs = {v: [v] for v in found.vertices & true.vertices}
        return _scores(true, found, pairs, None, offset)
    name, images, tracks = _images_of(truth, "truth")
    true = _movie_of_images(name, images, tracks)
    if isinstance(result, TrackingResult):
        names = {o.sequence for o in result.objects}
        if len(names) > 1:
            raise DataError(
                f"result has {len(names)} sequences, truth is one movie; score each alone: "
                "result.of(sequence)"
            )
        if masks is not None:
            result = _images_of_objects(result, masks)
    if isinstance(result, TrackingResult):
        found = _movie_of(result, "")
        return _scores(true, found, _at_centres(name, images, result), None, offset)
    other, made, own = _images_of(result, "result")
    found = _movie_of_images(other, made, own)
    if set(images) != set(made):
        odd = min(set(images) ^ set(made))
        has, lacks = (name, other) if odd in images else (other, name)
        raise DataError(f"{has} has an image of frame {odd}, {lacks} has none")
    pairs, overlap = _by_overlap(name, images, other, made)
    judged = read_segmentation(truth) if isinstance(truth, str | os.PathLike) else None
    n = len(true.vertices)
    if judged:
        n, overlap = _judged(judged, other, made)
    seg = float(np.sum(overlap)) / n if n else float("nan")
    return _scores(true, found, pairs, seg, offset)


# ----------------------------------------------------------------------------------------- graphs


@dataclass
class _Movie:
    """Vertices, edges (along a track: False, from a parent: True) and tracks."""

    vertices: set[_Vertex]
    edges: dict[tuple[_Vertex, _Vertex], bool]
    tracks: dict[tuple[str, int], Track]
    members: dict[tuple[str, int], dict[int, _Vertex]] = field(default_factory=dict)

    def children(self) -> dict[tuple[str, int], list[tuple[str, int]]]:
        """Tracks by their parent."""
        result: dict[tuple[str, int], list[tuple[str, int]]] = defaultdict(list)
        for key, track in self.tracks.items():
            if track.parent > 0:
                result[key[0], track.parent].append(key)
        return result


def _movie_of(result: TrackingResult, sequence: str | None = None) -> _Movie:
    """The graph of tracks of objects; vertices are named by their ids."""
    tracks, objects = without_gaps(result.tracks, result.objects)

    def named(own: str) -> str:
        return own if sequence is None else sequence

    members: dict[tuple[str, int], dict[int, _Vertex]] = defaultdict(dict)
    for o in objects:
        members[named(o.sequence), o.track][o.frame] = (named(o.sequence), o.frame, o.id)
    return _graph("result", {(named(t.sequence), t.track): t for t in tracks}, members)


def _movie_of_images(
    name: str, images: Mapping[int, NDArray[Any]], tracks: Iterable[Track]
) -> _Movie:
    """The graph of label images; vertices are named by their labels."""
    known = {("", track.track): track for track in tracks}
    members: dict[tuple[str, int], dict[int, _Vertex]] = defaultdict(dict)
    for frame, image in images.items():
        for label in _labels(image).tolist():
            track = known.get(("", label))
            if track is None or not track.begin <= frame <= track.end:
                raise DataError(
                    f"{name}: the image of frame {frame} has pixels of track {label}, which the "
                    "list of tracks does not have there"
                )
            members["", label][frame] = ("", frame, label)
    for key, track in known.items():
        for frame in (track.begin, track.end):
            if frame not in members[key]:
                raise DataError(
                    f"{name}: track {track.track} has no pixel in frame {frame}, where the list of "
                    "tracks says that it begins or ends"
                )
    return _graph(name, known, members)


def _graph(
    name: str,
    tracks: dict[tuple[str, int], Track],
    members: dict[tuple[str, int], dict[int, _Vertex]],
) -> _Movie:
    edges: dict[tuple[_Vertex, _Vertex], bool] = {}
    for key, track in tracks.items():
        own = members[key]
        edges |= {(v, own[t + 1]): False for t, v in own.items() if t + 1 in own}
        if track.parent > 0:
            above = tracks.get((key[0], track.parent))
            if above is None or above.end >= track.begin:
                raise DataError(
                    f"{name}: track {track.track} has the parent {track.parent}, which does not "
                    "end before it begins"
                )
            edges[members[key[0], track.parent][above.end], own[track.begin]] = True
    vertices = {v for own in members.values() for v in own.values()}
    return _Movie(vertices, edges, tracks, members)


# --------------------------------------------------------------------------------------- matching


def _images_of(source: Any, what: str) -> tuple[str, Mapping[int, NDArray[Any]], list[Track]]:
    if isinstance(source, str | os.PathLike):
        return read_challenge(source)
    if not isinstance(source, tuple | list) or len(source) != 2:
        raise DataError(
            f"{what} must be a folder, a pair (masks, tracks) or a TrackingResult, got "
            f"{source!r:.80}"
        )
    masks, tracks = source
    images = {}
    for frame, image in enumerate(masks):
        array = np.asarray(image)
        if array.ndim not in (2, 3) or array.dtype.kind not in "iu":
            raise DataError(
                f"{what}: the image of frame {frame} must hold integers and have two or three "
                f"dimensions, got {array.dtype} {array.shape}"
            )
        images[frame] = array
    tracks = list(tracks)
    if not all(isinstance(track, Track) for track in tracks):
        raise DataError(f"{what}: the tracks must be a list of Track")
    return what, images, [track._replace(sequence="") for track in tracks]


def _images_of_objects(
    result: TrackingResult, masks: Any
) -> tuple[list[NDArray[Any]], list[Track]]:
    tracks, objects = without_gaps(result.tracks, result.objects)
    track_of = {(o.frame, o.id + 1): o.track for o in objects}
    images = []
    for frame, image in enumerate(masks):
        labels, which = np.unique(np.asarray(image), return_inverse=True)
        numbers = [track_of.get((frame, label), 0) for label in labels.tolist()]
        images.append(np.array(numbers, np.int64)[which.reshape(np.shape(image))])
    return images, tracks


def _labels(image: NDArray[Any]) -> Int64s:
    labels: Int64s = np.unique(image[image != 0]).astype(np.int64)
    return labels


def _overlaps(true: NDArray[Any], made: NDArray[Any]) -> list[tuple[int, int, float]]:
    """Labels of the truth and of the result that match, and intersection over union."""
    labels, a = np.unique(true, return_inverse=True)
    others, b = np.unique(made, return_inverse=True)
    shared = np.bincount(
        a.ravel().astype(np.int64) * len(others) + b.ravel(), minlength=len(labels) * len(others)
    ).reshape(len(labels), len(others))
    size, size_made = shared.sum(axis=1), shared.sum(axis=0)
    rows, columns = np.nonzero(2 * shared > size[:, None])
    return [
        (
            int(labels[i]),
            int(others[j]),
            float(shared[i, j] / (size[i] + size_made[j] - shared[i, j])),
        )
        for i, j in zip(rows.tolist(), columns.tolist(), strict=True)
        if labels[i] != 0 and others[j] != 0
    ]


def _by_overlap(
    name: str,
    images: Mapping[int, NDArray[Any]],
    other: str,
    made: Mapping[int, NDArray[Any]],
) -> tuple[dict[_Vertex, list[_Vertex]], list[float]]:
    """True vertices that each vertex of the result matches, and all overlaps."""
    pairs: dict[_Vertex, list[_Vertex]] = defaultdict(list)
    overlap = []
    for frame, image in images.items():
        seen = made[frame]
        _check_shapes(frame, name, image, other, seen)
        for label, found, iou in _overlaps(image, seen):
            pairs["", frame, found].append(("", frame, label))
            overlap.append(iou)
    return pairs, overlap


def _check_shapes(
    frame: int, name: str, image: NDArray[Any], other: str, seen: NDArray[Any]
) -> None:
    if image.shape != seen.shape:
        raise DataError(
            f"frame {frame}: the image of {name} has shape {image.shape}, that of {other} "
            f"{seen.shape}"
        )


def _judged(
    judged: Iterable[tuple[int, Path, int | None]], name: str, made: Mapping[int, NDArray[Any]]
) -> tuple[int, list[float]]:
    """Number of objects of the images for SEG, of whole frames or of planes, and all overlaps."""
    overlap: list[float] = []
    n = 0
    for frame, path, plane in judged:
        if frame not in made:
            raise DataError(f"SEG has an image of frame {frame}, {name} has none")
        image, seen = read_label_image(path), made[frame]
        if plane is not None:
            if seen.ndim != 3 or plane >= len(seen):
                raise DataError(f"SEG has an image of plane {plane} of frame {frame}, {name} none")
            seen = seen[plane]
        _check_shapes(frame, "SEG", image, name, seen)
        overlap += [iou for _, _, iou in _overlaps(image, seen)]
        n += len(_labels(image))
    return n, overlap


def _at_centres(
    name: str, images: Mapping[int, NDArray[Any]], result: TrackingResult
) -> dict[_Vertex, list[_Vertex]]:
    """Match objects with the true ones at the pixels of their centres, the nearest with each."""
    nearest: dict[_Vertex, tuple[float, _Vertex]] = {}
    frames: dict[int, list[TrackedObject]] = defaultdict(list)
    for o in result.objects:
        frames[o.frame].append(o)
    for frame, objects in frames.items():
        if frame not in images:
            raise DataError(f"the result has objects in frame {frame}, {name} has no image of it")
        image = images[frame]
        centres: dict[int, Any] = {}
        for o in objects:
            place = np.array([o.y, o.x] if image.ndim == 2 else [o.z or 0.0, o.y, o.x])
            pixel = tuple(np.rint(place).tolist())
            if not all(0 <= at < size for at, size in zip(pixel, image.shape, strict=True)):
                continue
            label = int(image[tuple(map(int, pixel))])
            if label == 0:
                continue
            if label not in centres:
                centres[label] = np.argwhere(image == label).mean(axis=0)
            distance = float(np.linalg.norm(place - centres[label]))
            vertex = "", frame, label
            if vertex not in nearest or distance < nearest[vertex][0]:
                nearest[vertex] = distance, ("", frame, o.id)
    return {found: [vertex] for vertex, (_, found) in nearest.items()}


# ----------------------------------------------------------------------------------------- scores


def _scores(
    true: _Movie, found: _Movie, pairs: Mapping[_Vertex, list[_Vertex]], seg: float | None,
    offset: int,
) -> CTCScores:  # fmt: skip
    single = {v: matched[0] for v, matched in pairs.items() if len(matched) == 1}
    n_matched = sum(map(len, pairs.values()))
    mapped = {
        (single[a], single[b]): parent
        for (a, b), parent in found.edges.items()
        if a in single and b in single
    }
    right = [edge for edge in mapped if edge in true.edges]
    return CTCScores(
        ns=n_matched - len(pairs),
        fn=len(true.vertices) - n_matched,
        fp=len(found.vertices) - len(pairs),
        ed=len(mapped) - len(right),
        ea=len(true.edges) - len(right),
        ec=sum(mapped[edge] != true.edges[edge] for edge in right),
        n_vertices=len(true.vertices),
        n_edges=len(true.edges),
        seg=seg,
        links=PrecisionRecall(len(right), len(found.edges), len(true.edges)),
        divisions=_divisions(true, found, single, offset),
        ct=_complete(true, found, single),
    )


def _divisions(
    true: _Movie, found: _Movie, single: Mapping[_Vertex, _Vertex], offset: int
) -> PrecisionRecall:
    """Divisions that are found, at most so many frames off."""
    own, others = (
        {key: kids for key, kids in movie.children().items() if len(kids) > 1}
        for movie in (true, found)
    )

    def match(a: tuple[str, int], b: tuple[str, int], end: str) -> bool:
        """Whether two tracks end (begin) at about the same time as the same object."""
        s, t = getattr(true.tracks[a], end), getattr(found.tracks[b], end)
        frame = min(s, t) if end == "end" else max(s, t)
        one, other = true.members[a].get(frame), found.members[b].get(frame)
        return abs(s - t) <= offset and other is not None and single.get(other) == one is not None

    n = 0
    for a, kids in own.items():
        for b, young in others.items():
            if len(kids) != len(young) or not match(a, b, "end"):
                continue
            paired = {k for kid in kids for k in young if match(kid, k, "begin")}
            n += len(paired) == len(kids)
    return PrecisionRecall(n, len(others), len(own))


def _complete(true: _Movie, found: _Movie, single: Mapping[_Vertex, _Vertex]) -> float:
    home = {v: key for key, own in found.members.items() for v in own.values()}
    matched = {vertex: home[v] for v, vertex in single.items()}
    n = 0
    for key, track in true.tracks.items():
        by = Counter(matched.get(v) for v in true.members[key].values())
        if len(by) == 1 and None not in by:
            (name,) = by
            other = found.tracks[name]  # type: ignore[index]
            n += (other.begin, other.end) == (track.begin, track.end)
    total = len(true.tracks) + len(found.tracks)
    return 2 * n / total if total else float("nan")


def _share(price: float, at_most: float) -> float:
    return 1 - min(price, at_most) / at_most if at_most else float("nan")

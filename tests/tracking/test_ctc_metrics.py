"""Measures of the Cell Tracking Challenge: by hand, and against two other implementations."""

from __future__ import annotations

import contextlib
import io
import math

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from trellis.errors import DataError
from trellis.tracking import assemble_tracks, score_ctc, write_ctc
from trellis.tracking.objects import FramePair, Link, Objects
from trellis.tracking.result import Track, TrackingResult

ROWS = 3  # of an image; the last is background


def image(*labels):
    """Each label three pixels wide."""
    return np.repeat(np.array([labels]), 3, axis=1)


def tracks(*rows):
    return [Track("", *row) for row in rows]


def test_what_each_step_counts():
    truth = np.stack([image(1, 2, 0), image(1, 2, 0), image(1, 2, 0)])
    known = tracks((1, 0, 2, -1), (2, 0, 2, -1))
    same = score_ctc((truth, known), (truth, known))
    assert (same.tra, same.det, same.lnk, same.seg, same.ct) == (1, 1, 1, 1, 1)
    assert (same.n_vertices, same.n_edges) == (6, 4)

    joined = np.where(truth == 2, 1, truth)  # one object over both
    found = score_ctc((truth, known), (joined, known[:1]))
    assert (found.ns, found.fn, found.fp, found.ea, found.ed) == (3, 0, 0, 4, 0)
    assert found.det == 1 - 15 / 60
    assert found.lnk == 0
    assert found.tra == 1 - (15 + 6) / (60 + 6)
    assert found.seg == 0.5

    more = truth.copy()
    more[:, :, 6:] = 3  # an object too many
    found = score_ctc((truth, known), (more, [*known, *tracks((3, 0, 2, -1))]))
    assert (found.fp, found.ed, found.links.predicted) == (3, 0, 6)
    assert found.tra == 1 - 3 / 66

    parts = np.where(truth == 1, np.array([1, 4, 4]).reshape(3, 1, 1), truth)
    found = score_ctc((truth, known), (parts, tracks((1, 0, 0, -1), (2, 0, 2, -1), (4, 1, 2, 1))))
    assert (found.ec, found.ea, found.ed) == (1, 0, 0)  # a parent where there is none
    swapped = truth.copy()
    swapped[1:] = truth[1:, :, [3, 4, 5, 0, 1, 2, 6, 7, 8]]
    found = score_ctc((truth, known), (swapped, known))
    assert (found.ed, found.ea, found.ec, found.ct) == (2, 2, 0, 0)


def test_nothing_true_and_nothing_found():
    empty, known = np.zeros((2, 1, 3), int), tracks((1, 0, 1, -1))
    full = np.ones((2, 1, 3), int)
    assert score_ctc((full, known), (empty, [])).tra == 0
    found = score_ctc((empty, []), (full, known))
    assert all(math.isnan(value) for value in (found.tra, found.det, found.lnk, found.seg))
    assert (found.fp, found.ed) == (2, 0)
    assert math.isnan(score_ctc((empty, []), (empty, [])).ct)


def test_a_division_too_late_is_one_with_an_offset():
    truth = np.stack([image(1, 1), image(2, 3), image(2, 3)])
    known = tracks((1, 0, 0, -1), (2, 1, 2, 1), (3, 1, 2, 1))
    late = np.stack([image(1, 1), image(1, 0), image(2, 3)])
    found = tracks((1, 0, 1, -1), (2, 2, 2, 1), (3, 2, 2, 1))
    assert score_ctc((truth, known), (late, found)).divisions.f1 == 0
    assert score_ctc((truth, known), (late, found), offset=1).divisions.f1 == 1


@pytest.mark.parametrize(
    ("truth", "result", "message"),
    [
        (3, None, "truth must be a folder, a pair"),
        ((np.zeros((1, 2, 2)), []), None, "image of frame 0 must hold integers .* got float64"),
        ((np.zeros((1, 2), int), []), None, "must hold integers and have two or three dimensions"),
        ((np.ones((1, 2, 2), int), []), None, "truth: the image of frame 0 has pixels of track 1"),
        ((np.ones((1, 2, 2), int), [(1, 0, 0, -1)]), None, "truth: the tracks must be a list of"),
        (
            (np.zeros((1, 2, 2), int), tracks((1, 0, 0, -1))),
            None,
            "truth: track 1 has no pixel in frame 0",
        ),
        (
            (np.stack([image(1), image(2)]), tracks((1, 0, 0, 2), (2, 1, 1, -1))),
            None,
            "truth: track 1 has the parent 2, which does not end before it begins",
        ),
        (
            (np.zeros((2, 2, 2), int), []),
            (np.zeros((1, 2, 2), int), []),
            "truth has an image of frame 1, result has none",
        ),
        (
            (np.zeros((1, 2, 2), int), []),
            (np.zeros((1, 2, 3), int), []),
            r"frame 0: the image of truth has shape \(2, 2\), that of result \(2, 3\)",
        ),
        (TrackingResult([], [], [], []), (np.zeros((1, 2, 2), int), []), "truth has no images"),
    ],
)
def test_what_cannot_be_compared(truth, result, message):
    with pytest.raises(DataError, match=message):
        score_ctc(truth, truth if result is None else result)
    with pytest.raises(DataError, match="offset must be"):
        score_ctc(truth, result, offset=-1)


def test_objects_without_masks_match_at_their_centres():
    truth = np.stack([image(1, 2, 0), image(1, 2, 0)])
    known = tracks((1, 0, 1, -1), (2, 0, 1, -1))

    def found(*rows):
        frames = [Objects(np.arange(len(row)), np.array([[x, 0.0] for x in row])) for row in rows]
        pair = FramePair("film", 0, *frames)
        links = [Link("film", 0, i, i, "move") for i in range(min(map(len, frames)))]
        return assemble_tracks([pair], links)

    same = score_ctc((truth, known), found((1, 4), (1.2, 4)))
    assert (same.tra, same.seg) == (1, None)
    assert "SEG" not in str(same)
    odd = score_ctc((truth, known), found((1, 0, 8, 99), (4, 1)))  # 0 is farther from the middle
    assert (odd.fn, odd.fp, odd.ns) == (1, 3, 0)
    with pytest.raises(DataError, match="objects in frame 1, truth has no image of it"):
        score_ctc((truth[:1], tracks((1, 0, 0, -1), (2, 0, 0, -1))), found((1,), (1,)))
    both = found((1,), (1,))
    other = both.objects[0]._replace(sequence="other")
    with pytest.raises(DataError, match=r"result has 2 sequences.*result.of\(sequence\)"):
        score_ctc((truth, known), TrackingResult([], [], [], [*both.objects, other]))


def test_objects_with_masks_match_by_them():
    truth = np.stack([image(1, 2, 0), image(1, 2, 0), image(1, 2, 0)])
    known = tracks((1, 0, 2, -1), (2, 0, 2, -1))
    masks = np.stack([image(8, 5, 9), image(8, 0, 9), image(8, 5, 0)])
    frames = [Objects(np.array(ids), np.zeros((len(ids), 2))) for ids in ([4, 7], [7], [4, 7])]
    pairs = [FramePair("", t, frames[t], frames[t + 1]) for t in (0, 1)]
    links = [Link("", 0, 7, 7, "move"), Link("", 1, 7, 7, "move"), Link("", 0, 4, 4, "move", 2)]
    found = score_ctc((truth, known), assemble_tracks(pairs, links), masks=masks)
    # 8 in the image of id 9 belongs to nobody; id 4 is missed once, which is a part's parent
    assert (found.ns, found.fn, found.fp, found.ea, found.ed, found.ec) == (0, 1, 0, 2, 1, 0)
    assert found.seg == 5 / 6


# ------------------------------------------------------------------- against other implementations


def runs(images, draw):
    """Labels of random images as tracks: each run of frames of a label is one, with any parent."""
    done, made = [], [np.zeros_like(one) for one in images]
    open_runs = {}
    for t, one in enumerate(images):
        here = set(np.unique(one).tolist()) - {0}
        for label in sorted(set(open_runs) - here):
            done.append(open_runs.pop(label))
        for label in sorted(here):
            if label not in open_runs:
                ended = [run[0] for run in done]
                parent = draw(st.sampled_from([-1, -1, *ended]))
                number = len(done) + len(open_runs) + 1
                open_runs[label] = [number, t, t, parent]
            open_runs[label][2] = t
            made[t][one == label] = open_runs[label][0]
    done += open_runs.values()
    return np.stack(made), sorted(Track("", *run) for run in done)


@st.composite
def movies(draw):
    """Random truth, and a result that is like it but for pixels and labels."""
    n, width = draw(st.integers(2, 4)), 6
    pixels = st.lists(st.integers(0, 3), min_size=2 * width, max_size=2 * width)
    background = np.zeros((ROWS - 2, width), int)

    def full(values):
        return np.vstack([np.array(values).reshape(2, width), background])

    first = draw(pixels)
    truth = []
    for _ in range(n):  # neighbouring frames are alike
        first = [draw(st.integers(0, 3)) if draw(st.integers(0, 5)) == 0 else v for v in first]
        truth.append(full([0] * len(first) if draw(st.integers(0, 9)) == 0 else first))
    result = []
    for one in truth:
        names = draw(
            st.sampled_from([(0, 1, 2, 3), (0, 1, 1, 1), (0, 1, 1, 3), (0, 2, 1, 3), (0, 1, 2, 0)])
        )
        seen = np.array([int(name) for name in names])[one]
        for _ in range(draw(st.integers(0, 3))):
            seen[draw(st.integers(0, 1)), draw(st.integers(0, width - 1))] = draw(st.integers(0, 4))
        result.append(seen)
    return runs(truth, draw), runs(result, draw)


def written(folder, movie, name, text):
    tifffile = pytest.importorskip("tifffile")
    images, listed = movie
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.iterdir():
        path.unlink()
    for t, one in enumerate(images):
        tifffile.imwrite(folder / f"{name}{t:03}.tif", one.astype(np.uint16))
    (folder / text).write_text(
        "".join(f"{t.track} {t.begin} {t.end} {max(t.parent, 0)}\n" for t in listed)
    )


FEW = settings(
    max_examples=60, deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # a movie cannot be shrunk in minutes
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)  # fmt: skip


@pytest.mark.extras
@FEW
@given(movies())
def test_equal_to_py_ctcmetrics(tmp_path_factory, pair):
    evaluate = pytest.importorskip("ctc_metrics.scripts.evaluate")
    truth, result = pair
    assume(truth[1] and result[1])
    folder = tmp_path_factory.mktemp("movie")
    written(folder / "GT" / "TRA", truth, "man_track", "man_track.txt")
    written(folder / "GT" / "SEG", truth, "man_seg", "none.txt")
    written(folder / "RES", result, "mask", "res_track.txt")
    ours = score_ctc(folder / "GT", folder / "RES", offset=1)
    arrays = score_ctc(truth, result, offset=1)
    assert (ours.tra, ours.det, ours.seg, ours.ct) == (
        arrays.tra, arrays.det, arrays.seg, arrays.ct
    )  # fmt: skip
    with contextlib.redirect_stdout(io.StringIO()):
        names = ["DET", "SEG", "TRA", "CT", "BC"] + ["LNK"] * bool(ours.n_edges)
        theirs = evaluate.evaluate_sequence(
            str(folder / "RES"), str(folder / "GT"), metrics=names, threads=1
        )
    for name in ("NS", "FN", "FP", "ED", "EA", "EC"):
        assert getattr(ours, name.lower()) == theirs[f"AOGM_{name}"], name
    for name in set(names) - {"BC"}:
        assert getattr(ours, name.lower()) == pytest.approx(theirs[name]), name
    for i in (0, 1, 2):
        found = score_ctc(truth, result, offset=i).divisions
        counts = found.correct, found.predicted - found.correct, found.support - found.correct
        assert counts == tuple(theirs[f"{kind}_div({i})"] for kind in ("tp", "fp", "fn"))


@pytest.mark.extras
@FEW
@given(movies())
def test_equal_to_traccuracy(tmp_path_factory, pair):
    """Where both agree on what to count: it takes an only child for the same track.

    If the first true frame is empty, it compares images of different frames.
    """
    traccuracy = pytest.importorskip("traccuracy")
    loaders = pytest.importorskip("traccuracy.loaders")
    matchers, metrics = (pytest.importorskip(f"traccuracy.{n}") for n in ("matchers", "metrics"))
    truth, result = pair
    assume(truth[1] and result[1])
    for _, listed in pair:
        parents = [t.parent for t in listed if t.parent > 0]
        assume(all(parents.count(p) != 1 for p in parents))
    assume(truth[0][0].any())
    ours = score_ctc(truth, result)
    assume(ours.n_edges)
    per_object = [
        np.unique(a[b == label]).size
        for a, b in zip(truth[0], result[0], strict=True)
        for label in np.unique(b[b > 0])
    ]
    assume(max(per_object) < 4)  # it counts objects that are to be split, not splits
    folder = tmp_path_factory.mktemp("movie")
    written(folder / "GT", truth, "man_track", "man_track.txt")
    written(folder / "RES", result, "mask", "res_track.txt")
    graphs = [
        loaders.load_ctc_data(str(folder / name), str(folder / name / text))
        for name, text in (("GT", "man_track.txt"), ("RES", "res_track.txt"))
    ]
    (found,), _ = traccuracy.run_metrics(*graphs, matchers.CTCMatcher(), [metrics.CTCMetrics()])
    theirs = found["results"]
    if ours.ns == theirs["ns_nodes"]:
        assert ours.det == pytest.approx(theirs["DET"])
        assert ours.tra == pytest.approx(theirs["TRA"])
    assert ours.lnk == pytest.approx(theirs["LNK"])
    assert (ours.fn, ours.fp) == (theirs["fn_nodes"], theirs["fp_nodes"])
    assert (ours.ed, ours.ea, ours.ec) == (
        theirs["fp_edges"], theirs["fn_edges"], theirs["ws_edges"]
    )  # fmt: skip


@st.composite
def linkings(draw):
    """Two ways to link the same random objects, with divisions and gaps."""
    n = draw(st.integers(2, 5))
    sizes = [draw(st.integers(0, 3)) for _ in range(n)]
    frames = [Objects(np.arange(k), np.zeros((k, 2))) for k in sizes]
    pairs = [FramePair("", t, frames[t], frames[t + 1]) for t in range(n - 1)]

    def links():
        made, free = [], {(t, i) for t, k in enumerate(sizes) for i in range(k)}
        for t in range(n - 1):
            for i in range(sizes[t]):
                after = sorted((u, j) for u, j in free if t < u <= t + 2)
                k = min(draw(st.integers(0, 2)), len(after))
                targets = draw(st.permutations(after))[:k]
                free -= set(targets)
                kind = "division" if k == 2 else "move"
                made += [Link("", t, i, j, kind, u) for u, j in targets]
        return assemble_tracks(pairs, made)

    return sizes, links(), links()


@pytest.mark.extras
@FEW
@given(linkings())
def test_tables_score_as_their_images_do(tmp_path_factory, movie):
    """Tracks of the same detections, with gaps: as what write_ctc makes of them scores."""
    pytest.importorskip("tifffile")
    sizes, truth, result = movie
    assume(truth.objects)
    masks = np.zeros((len(sizes), 2, 8), int)
    for t, k in enumerate(sizes):
        for i in range(k):
            masks[t, :, 2 * i : 2 * i + 2] = i + 1
    folder = tmp_path_factory.mktemp("movie")
    for name, one in (("truth", truth), ("result", result)):
        write_ctc(one, folder / name, masks={"": masks})
    by_images = score_ctc(folder / "truth", folder / "result")
    by_tables = score_ctc(truth, result)
    names = (
        "ns",
        "fn",
        "fp",
        "ed",
        "ea",
        "ec",
        "n_vertices",
        "n_edges",
        "links",
        "divisions",
        "ct",
    )
    for name in (*names, "ct"):
        assert getattr(by_images, name) == getattr(by_tables, name), name
    same = score_ctc(truth, truth)
    assert same.det == 1
    assert same.ct == 1

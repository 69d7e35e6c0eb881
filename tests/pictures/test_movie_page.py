"""The page of a tracked movie, read from its file: data, texts, tables, and what is refused.

What a browser makes of it: ``test_movie_page_in_a_browser.py``.
"""

from __future__ import annotations

import base64
import csv
import json
import re
from dataclasses import replace

import numpy as np
import pytest

from trellis.datasets import LABS, simulate_cells
from trellis.errors import DataError
from trellis.pictures.movie_page import movie_page
from trellis.tracking import (
    FlowTracker,
    FramePair,
    Link,
    Objects,
    TrackingModel,
    annotated_events,
    assemble_tracks,
)
from trellis.tracking.link_chances import LinkChance

LAB = replace(LABS["b"], name="cells", over_segmentation=0.0, under_segmentation=0.0)
MOVIE = simulate_cells(25, 8, lab=LAB, seed=1)
HOSTILE = "</script><img src=x onerror=alert(1)>&\"'\u202e"


@pytest.fixture(scope="module")
def result():
    return TrackingModel(random_state=0).fit(MOVIE).predict(MOVIE, probabilities=True)


def data_of(path):
    """What the script of the page gets, with its columns unpacked."""
    text = path.read_text(encoding="utf-8")
    found = re.search(r'<script type="application/json" id="movie">(.*?)</script>', text, re.S)
    movie = json.loads(found[1])
    for s in movie["sequences"]:
        s["columns"] = {
            name: np.frombuffer(base64.b64decode(c["text"]), np.dtype(c["kind"]).newbyteorder("<"))
            for name, c in s["columns"].items()
        }
    return movie


def test_columns_are_the_result(result, tmp_path):
    page, table = movie_page(result, tmp_path / "out", pairs=MOVIE)
    assert [p.name for p in (page, table)] == ["index.html", "doubtful_links.csv"]
    (s,) = data_of(page)["sequences"]
    c = s["columns"]
    assert c["id"].tolist() == [o.id for o in result.objects]
    frames = np.repeat(np.arange(len(s["counts"])) + s["first"], s["counts"])
    assert frames.tolist() == [o.frame for o in result.objects]
    for k, name in enumerate("xy"):
        place = s["low"][k] + s["side"] * c[name] / 65_535
        true = [getattr(o, name) for o in result.objects]
        np.testing.assert_allclose(place, true, atol=s["side"] / 65_535)
    key = {(o.frame, o.id): k for k, o in enumerate(result.objects)}
    past = np.full(len(key), -1)
    chance = np.zeros(len(key))
    for link, one in zip(result.links, result.chances, strict=True):
        past[key[link.frame_target, link.target_id]] = key[link.frame, link.source_id]
        chance[key[link.frame_target, link.target_id]] = one.probability
    assert c["past"].tolist() == past.tolist()
    np.testing.assert_allclose(c["chance"] / 65_535, chance, atol=1e-5)
    assert c["t_name"].tolist() == [t.track for t in result.tracks]
    assert [c["t_name"][i] for i in c["track"]] == [o.track for o in result.objects]
    parents = [t.parent for t in result.tracks]
    assert [-1 if p < 0 else c["t_name"][p] for p in c["t_parent"]] == parents
    # Counts: every object comes from somewhere or appears, and likewise goes.
    assert sum(s["came"]) == sum((past < 0) & (frames > frames.min()))
    assert sum(s["divided"]) == len(set(parents) - {-1})
    gone = {(link.frame, link.source_id) for link in result.links}
    ends = [k for k in key if k not in gone and k[0] < frames.max()]
    assert sum(s["went"]) == len(ends)


def test_ellipses_are_those_of_the_columns(result, tmp_path):
    page, _ = movie_page(result, tmp_path / "a.html", pairs=MOVIE)
    (s,) = data_of(page)["sequences"]
    cells = MOVIE[0].source
    n = len(cells)
    area = np.pi * s["columns"]["long"][:n] * s["columns"]["wide"][:n] * (s["longest"] / 255) ** 2
    np.testing.assert_allclose(area, cells["area"], rtol=0.1)
    bare_page, _ = movie_page(result, tmp_path / "b.html")
    assert data_of(bare_page)["sequences"][0]["longest"] is None
    axes = replace_columns(MOVIE, {"axis_major_length": 8.0, "axis_minor_length": 2.0})
    page, _ = movie_page(result, tmp_path / "c.html", pairs=axes)
    (s,) = data_of(page)["sequences"]
    assert s["longest"] == 4.0
    assert set(s["columns"]["wide"].tolist()) == {64}


def replace_columns(pairs, values):
    def measured(objects):
        return Objects(
            objects.ids, objects.position, {k: np.full(len(objects), v) for k, v in values.items()}
        )

    return [replace(p, source=measured(p.source), target=measured(p.target)) for p in pairs]


def test_nothing_is_asked_of_anybody_and_names_are_no_code(tmp_path):
    cells = Objects(np.array([0, 1]), np.array([[0.0, 0.0], [5.0, 5.0]]))
    pairs = [FramePair(name, 0, cells, cells) for name in (HOSTILE, "b")]
    links = [Link(name, 0, 0, 0, "move") for name in (HOSTILE, "b")]
    chances = [LinkChance(p, p, None, 0.1, None, 0.1) for p in (0.3, 0.9)]
    result = assemble_tracks(pairs, links, chances=chances)
    page, _ = movie_page(
        result, tmp_path / "x.html", pairs=pairs, title=HOSTILE, calibrated=HOSTILE,
        settings={HOSTILE: HOSTILE}, truth=links,
    )  # fmt: skip
    text = page.read_text(encoding="utf-8")
    assert "<img" not in text
    assert text.count("<script") == 2 and text.count("</script") == 2
    assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in text
    assert "\u202e" not in text
    assert text.count("<option value=") >= 2  # a selector of sequences


def test_the_table_has_the_least_sure_first_and_what_else_may_have_been(tmp_path):
    cells = Objects(np.arange(4), 10.0 * np.arange(8).reshape(4, 2))
    pairs = [FramePair("film", 3, cells, cells)]
    links = [Link("film", 3, i, i, "move") for i in range(4)]
    chances = [
        LinkChance(p, p, past, 0.2, fate, 0.1)
        for p, past, fate in (
            (0.8, (3, 1), None), (0.995, None, None), (0.4, None, (4, 1)), (0.6, None, None)
        )
    ]  # fmt: skip
    result = assemble_tracks(pairs, links, chances=chances)
    _, table = movie_page(result, tmp_path / "film.html", truth=links[:3])
    with table.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["probability"] for row in rows] == ["0.4", "0.6", "0.8"]
    assert [row["right"] for row in rows] == ["1", "0", "1"]
    assert (rows[2]["other_past_frame"], rows[2]["other_past_id"]) == ("3", "1")
    assert (rows[2]["other_fate_frame"], rows[2]["other_fate_id"]) == ("", "")
    assert (rows[0]["other_fate_frame"], rows[0]["other_fate_id"]) == ("4", "1")
    text = (tmp_path / "film.html").read_text()
    assert "about 1 of 4 links are wrong" in text
    assert "75.00%" in text  # precision


def test_gaps_merges_and_the_truth(tmp_path):
    frames = [Objects(np.array([5, 6]), np.array([[0.0, 0.0], [9.0, 0.0]])) for _ in range(3)]
    pairs = [FramePair("", t, frames[t], frames[t + 1]) for t in range(2)]
    links = [
        Link("", 0, 5, 5, "move", 2), Link("", 0, 6, 5, "merge", 1),
    ]  # fmt: skip
    result = assemble_tracks(pairs, links)
    truth = [links[0], Link("", 1, 6, 6, "move")]
    (page,) = movie_page(result, tmp_path / "x.html", truth=truth)
    assert "they have no probabilities" in page.read_text()
    assert "1 link over missed frames" in page.read_text()
    (s,) = data_of(page)["sequences"]
    assert s["columns"]["past"].tolist() == [-1, -1, 1, -1, 0, -1]
    assert s["columns"]["wrong"].tolist() == [0, 0, 1, 0, 0, 0]
    assert s["missed"] == [[3, 5]]
    both = [Link("", 0, 5, 5, "merge"), Link("", 0, 6, 5, "merge")]
    (page,) = movie_page(assemble_tracks(pairs, both), tmp_path / "y.html")
    (s,) = data_of(page)["sequences"]
    assert s["merged"] == [[1, 2]] and sum(s["went"]) == 2  # of frame 1: both objects


def test_a_movie_that_is_too_large_is_shown_in_part_and_the_page_says_so(result, tmp_path):
    n = len(MOVIE[0].source) + len(MOVIE[1].source)
    page, table = movie_page(result, tmp_path / "x.html", pairs=MOVIE, most=n + 3)
    (s,) = data_of(page)["sequences"]
    assert s["counts"] == [len(MOVIE[0].source), len(MOVIE[1].source)]
    assert s["left_out"] == [len(result.objects) - n, len(MOVIE) - 1]
    assert f"A page shows {n + 3:,} objects: the last {len(MOVIE) - 1} frames" in page.read_text()
    assert table.read_text().count("\n") > 1
    movie_page(result, tmp_path / "y.html", most=1)  # a frame is shown at least
    assert len(data_of(tmp_path / "y.html")["sequences"][0]["counts"]) == 1


def test_three_dimensions_and_odd_movies(tmp_path):
    one = Objects(np.array([2**40]), np.array([[1e100, -1e100]]))
    result = assemble_tracks([FramePair("", -3, one, one)], [])
    (page,) = movie_page(result, tmp_path / "odd.html")  # one place, an id beyond 32 bits
    (s,) = data_of(page)["sequences"]
    assert s["columns"]["id"].tolist() == [2**40, 2**40] and s["first"] == -3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"result": "tracks.csv"}, "result must be a TrackingResult, got str"),
        ({"result": assemble_tracks([], [])}, "there are no objects to show"),
        ({"most": 0}, "most must be"),
        ({"pairs": ["a"]}, "must be a list of frame pairs"),
        (
            {"pairs": [replace(MOVIE[0], frame=0, sequence="cells_1", source=MOVIE[3].source)]},
            "of frame 0 is among the pairs, but not in the result",
        ),
    ],
)
def test_what_is_refused(tmp_path, change, message):
    result = assemble_tracks(MOVIE, annotated_events(MOVIE)[0])
    with pytest.raises(DataError, match=message):
        movie_page(**{"result": result, "path": tmp_path / "x.html", **change})
    assert not list(tmp_path.iterdir())


def test_trackers_without_probabilities_have_a_page(tmp_path):
    result = FlowTracker().fit(MOVIE).predict(MOVIE)
    assert [p.name for p in movie_page(result, tmp_path)] == ["index.html"]

"""``trellis track`` on small simulated movies."""

from __future__ import annotations

import csv
import re
import sys
import time

import numpy as np
import pytest

from screens import Terminal, screen
from trellis import progress
from trellis.cli import main
from trellis.datasets import simulate_cells
from trellis.tracking import (
    EventFeature,
    FlowTracker,
    TrackingModel,
    TrackingResult,
    annotated_events,
    close_gaps,
    read_ctc,
    read_detections,
)
from trellis.tracking.link_probabilities import Witness

PAIRS = simulate_cells(20, 4, lab="b", seed=3)
COLUMNS = ("area", "mean_intensity", "eccentricity", "orientation")


def write(path, head, rows):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([head, *rows])
    return path


def object_rows(pairs):
    frames = [(pair.frame, pair.source) for pair in pairs]
    frames.append((pairs[-1].frame + 1, pairs[-1].target))
    for frame, objects in frames:
        for i in range(len(objects)):
            x, y = objects.position[i]
            yield [frame, objects.ids[i], x, y, *(objects[c][i] for c in COLUMNS)]


def link_rows(pairs):
    return [[pair.frame, *link] for pair in pairs for link in pair.annotation.links]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A folder with a movie (objects.csv, links.csv), and a model learned from it."""
    folder = tmp_path_factory.mktemp("movie")
    write(folder / "objects.csv", ("frame", "id", "x", "y", *COLUMNS), object_rows(PAIRS))
    write(folder / "links.csv", ("frame", "source_id", "target_id", "kind"), link_rows(PAIRS))
    pairs = read_detections(folder / "objects.csv", folder / "links.csv")
    TrackingModel(random_state=0).fit(pairs).save(folder / "cells.trellis")
    return folder


def table(path):
    with path.open() as file:
        return list(csv.DictReader(file))


def written(tmp_path, result: TrackingResult) -> bytes:
    result.write(tmp_path / "expected.csv")
    return (tmp_path / "expected.csv").read_bytes()


# ------------------------------------------------------------------ with a model


def test_learn_then_track(run, files, tmp_path):
    """The commands do what the library does, to the byte."""
    model, tracks = tmp_path / "m.trellis", tmp_path / "tracks.csv"
    learned = run("track", files / "objects.csv", "--learn", files / "links.csv", "--save", model)
    assert (learned.code, learned.out) == (0, "")
    assert re.fullmatch(
        rf"{model}: \d+ weights of move, division, appear, disappear; links up to "
        r"[\d.]+; \d+ iterations? \(within [\d.e-]+ % of the optimum\), [\d.]+ s",
        learned.err[0],
    )
    assert model.read_bytes() == (files / "cells.trellis").read_bytes()

    arguments = ("--model", model, "-o", tracks, "--truth", files / "links.csv")
    result = run("track", files / "objects.csv", *arguments)
    expected = TrackingModel.load(model).predict(PAIRS)
    found = table(tracks)
    n_objects = len({(row["frame"], row["id"]) for row in found})
    assert n_objects == len(found) == sum(1 for _ in object_rows(PAIRS))
    divided = {t.parent for t in expected.tracks if t.parent != -1}
    assert result.err[0].startswith(
        f"{tracks}: {n_objects} objects of 4 frames, {len(expected.tracks)} tracks, "
        f"{len(divided)} division"
    )
    lines = result.out.splitlines()
    assert [line.split()[0] for line in lines] == ["precision", "links", "divisions"]
    f1 = TrackingModel.load(model).score(PAIRS)
    assert float(lines[1].split()[3]) == pytest.approx(100 * f1, abs=0.006)

    piped = run(
        "track", "-", *arguments, "--quiet", stdin=(files / "objects.csv").read_bytes()
    )  # fmt: skip
    assert (piped.code, piped.out, piped.err) == (0, result.out, [])
    assert table(tracks) == found


def test_partial_links_and_options_of_learning(run, files, tmp_path, monkeypatch):
    rows = [row for row in link_rows(PAIRS) if row[0] < 2 and row[1] % 2]
    some = write(tmp_path / "some.csv", ("frame", "source_id", "target_id", "kind"), rows)
    seen = []
    fit = TrackingModel.fit
    monkeypatch.setattr(
        TrackingModel, "fit", lambda self, pairs: (seen.append((self, pairs)), fit(self, pairs))[1]
    )
    events = "move,division,appear,disappear,split,merge"
    result = run(
        "track", files / "objects.csv", "--learn", some, "--partial", "-o", tmp_path / "t.csv",
        "--l2", 2, "--loss", "ramp", "--events", events, "--neighbours", 4, "--max-distance", 60,
    )  # fmt: skip
    assert result.code == 0, result.err
    assert result.err[0].startswith("learned: ")
    assert re.search(r"; links up to 60; \d+ rounds? \((not )?converged\), ", result.err[0])
    ((model, pairs),) = seen
    assert (model.l2, model.loss, model.n_neighbors, model.max_distance) == (2, "ramp", 4, 60)
    assert list(model.events) == events.split(",")
    assert [p.annotation is None for p in pairs] == [False, False, True]
    assert not pairs[0].annotation.complete


@pytest.mark.parametrize("saved", [True, False])
def test_ctrl_c_while_learning(run, files, tmp_path, monkeypatch, saved):
    fit = TrackingModel.fit

    def interrupted(self, pairs):
        fit(self.set_params(max_iter=3), pairs)
        raise KeyboardInterrupt  # as the library does, with what it has learned so far

    monkeypatch.setattr(TrackingModel, "fit", interrupted)
    model, tracks = tmp_path / "m.trellis", tmp_path / "tracks.csv"
    save = ("--save", model) if saved else ()
    arguments = ("--learn", files / "links.csv", *save, "-o", tracks)
    result = run("track", files / "objects.csv", *arguments)
    kept = f"what was learned by then is in {model}"
    lost = "with --save what was learned by then is kept"
    message = f"trellis: interrupted in iteration 4; {kept if saved else lost}"
    assert (result.code, result.err) == (130, [message])
    assert model.exists() == saved
    assert not tracks.exists()
    if saved:
        assert run("track", files / "objects.csv", "--model", model, "-o", tracks).code == 0


def test_ctrl_c_before_anything_is_learned(run, files, tmp_path, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(TrackingModel, "fit", interrupted)
    arguments = ("--learn", files / "links.csv", "--save", tmp_path / "m.trellis")
    result = run("track", files / "objects.csv", *arguments)
    assert (result.code, result.err) == (130, ["trellis: interrupted"])
    assert not list(tmp_path.iterdir())


# ------------------------------------------------------------------ without a model


def test_without_a_model(run, files, tmp_path):
    out = tmp_path / "tracks.csv"
    result = run("track", files / "objects.csv", "-o", out)
    assert (result.code, result.out, len(result.err)) == (0, "", 2)
    told = re.fullmatch(
        r"no links to learn from \(--learn\): the model learned from what flow \(--method\) finds "
        r"in this movie; links up to ([\d.]+) \(--max-distance\)",
        result.err[0],
    )
    steps = [
        np.linalg.norm(pair.target.position[j] - pair.source.position[i])
        for pair in PAIRS
        for i, j, kind in pair.annotation.links
        if kind == "move"
    ]  # ids are rows in simulated movies
    assert np.percentile(steps, 99) < float(told[1]) < 4 * np.percentile(steps, 99)

    pairs = read_detections(files / "objects.csv")
    expected = TrackingModel(random_state=0, max_distance=20.0).fit(pairs).predict(pairs)
    run("track", files / "objects.csv", "-o", out, "--max-distance", 20, "--quiet")
    assert out.read_bytes() == written(tmp_path, expected)
    expected = close_gaps(FlowTracker(20.0).predict(pairs), pairs)
    flow = ("--method", "flow", "--max-distance", 20, "--quiet")
    run("track", files / "objects.csv", "-o", out, *flow)
    assert out.read_bytes() == written(tmp_path, expected)


def test_how_long_objects_may_be_missed(files, run, tmp_path):
    """A frame without a few of its cells, by a tracker, from the movie alone, by a model."""
    rows = table(files / "objects.csv")
    middle = sorted({int(row["frame"]) for row in rows})[2]
    kept = [row for row in rows if int(row["frame"]) != middle or int(row["id"]) % 4]
    objects = write(tmp_path / "o.csv", rows[0], [row.values() for row in kept])
    for how in (("--method", "flow"), (), ("--model", files / "cells.trellis")):
        said = [
            run("track", objects, "-o", tmp_path / "t.csv", "--max-gap", gap, *how).err[-1]
            for gap in (0, 1)
        ]
        assert ["closed (--max-gap)" in line for line in said] == [
            False,
            True,
        ]


@pytest.mark.parametrize(("method", "divides"), [("nearest", False), ("matching", True)])
def test_methods(run, files, method, divides):
    truth = ("--truth", files / "links.csv")
    result = run("track", files / "objects.csv", "--method", method, *truth)
    assert f" by {method} (--method)" in result.err[0]
    assert result.err[1].startswith("tracked: ")
    assert float(result.out.splitlines()[1].split()[3]) > 75
    assert (int(result.out.split()[-1]) > 0) == divides


def test_objects_that_do_not_move(run, tmp_path):
    rows = [[t, i, 10 * i, 0] for t in range(3) for i in range(3)]
    path = write(tmp_path / "still.csv", ("frame", "id", "x", "y"), rows)
    result = run("track", path, "-o", tmp_path / "tracks.csv")
    assert ", 3 tracks, 0 divisions, " in result.err[1]
    result = run("track", path, "-o", tmp_path / "tracks.csv", "--method", "flow")
    assert "by flow (--method), objects up to 5 apart" in result.err[0]
    assert ", 3 tracks, 0 divisions, " in result.err[1]


def test_picture_and_challenge(run, files, tmp_path):
    head = ("sequence", "frame", "id", "x", "y", *COLUMNS)
    rows = [[name, *row] for name in ("one", "two") for row in object_rows(PAIRS)]
    path = write(tmp_path / "both.csv", head, rows)
    picture, folder = tmp_path / "lineage.svg", tmp_path / "ctc"
    result = run("track", path, "--plot", picture, "--ctc", folder, "--method", "nearest")
    assert result.err[1].startswith(f"{picture}, {folder}: {len(rows)} objects of 8 frames, ")
    assert "<svg" in picture.read_text()
    assert len(read_ctc(folder / "one")) == len(read_ctc(folder / "two")) > 20


# ------------------------------------------------------------------ what is wrong


def test_events_that_there_are_not(run):
    result = run("track", "o.csv", "-o", "t.csv", "--learn", "l.csv", "--events", "move,flies")
    assert result.code == 2
    assert "argument --events: must be auto or a list of move, division" in result.err[-1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "no result is asked for: name a file for the tracks with -o"),
        (("-o", "T", "--model", "m", "--learn", "l"), "give one of --model and --learn: each says"),
        (("-o", "T", "--model", "m", "--method", "flow"), "give one of --model and --method"),
        (("-o", "T", "--partial"), "--partial is for --learn, which names the links"),
        (("--save", "T"), "--save is for --learn"),
        (("-o", "T", "--events", "move"), "--events is for --learn"),
        (("-o", "T", "--model", "m", "--max-distance", 9), "--max-distance cannot go with --model"),
        (("-o", "T", "--max-distance", 0), "--max-distance must be auto or a positive number"),
        (("-o", "T", "--learn", "l", "--l2", "nan"), "--l2 must be a number of at least 0, got"),
        (("-o", "T", "--learn", "l", "--neighbours", 0), "--neighbours must be a positive integer"),
        (("-o", "T", "--learn", "l", "--events", "move"), "--events must be a list with move, app"),
        (("-o", "T", "--learn", "-", "--truth", "-"), "standard input can be one file only"),
        (("-o", "no/T"), "cannot write no/T: the folder no does not exist"),
        (("--learn", "l", "--save", "no/T"), "cannot write no/T: the folder no does not exist"),
        (("-o", "."), ". is a folder; name a file to write"),
        (("-o", "objects.csv"), "objects.csv would be written over objects.csv, which is"),
        (("-o", "T.png", "--plot", "T.png"), "T.png would be written twice; each result needs a"),
        (("--ctc", "objects.csv"), "objects.csv is a file; name a folder to write to"),
        (("--plot", "T.jpg"), "--plot T.jpg: expected a name that ends in .png, .svg, .pdf"),
        (("-o", "T", "--truth", "none.csv"), "cannot read none.csv: No such file or directory"),
        (("-o", "T", "--model", "none"), "none: No such file or directory"),
        (("-o", "T", "--model", "objects.csv"), "objects.csv: not a Trellis model file"),
        (("-o", "T", "--truth", "objects.csv"), "objects.csv has no column 'source_id'"),
    ],
)
def test_wrong_options(fails, files, monkeypatch, options, message):
    monkeypatch.chdir(files)
    before = sorted(files.iterdir())
    assert message in fails("track", "objects.csv", *options)
    assert sorted(files.iterdir()) == before


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "bad.csv is empty"),
        (b"\x89PNG\r\n\x00\x00", "bad.csv, line 2: a NUL byte; this is not a text file"),
        (b"frame,id,x\n0,0,1\n", "bad.csv has no column 'y', only frame, id, x"),
        (b"frame,id,x,y\n0,0,1,1\n2,0,1,1\n", "bad.csv: no sequence has two frames t and t + 1"),
    ],
)
def test_wrong_objects(fails, tmp_path, content, message):
    path = tmp_path / "bad.csv"
    path.write_bytes(content)
    assert message in fails("track", path, "-o", tmp_path / "tracks.csv")
    assert [p.name for p in tmp_path.iterdir()] == ["bad.csv"]


def test_links_to_missing_ids(fails, files, tmp_path):
    rows = [[0, 0, 0], [1, 999, 0]]
    path = write(tmp_path / "bad.csv", ("frame", "source_id", "target_id"), rows)
    for option in ("--learn", "--truth"):
        message = fails("track", files / "objects.csv", option, path, "-o", tmp_path / "t.csv",
                        "--quiet")  # fmt: skip
        assert "bad.csv, line 3: source_id 999 is not in frame 1 of " in message
    assert not (tmp_path / "t.csv").exists()


def test_model_of_another_kind(fails, files, models, tmp_path):
    message = fails(
        "track", files / "objects.csv", "--model", models["conll"], "-o", tmp_path / "t"
    )
    assert message == (
        f"{models['conll']} holds a ChainCRF, a model that labels sequences, trees or graphs; this "
        "command needs a model that learned to track, as 'trellis track --learn' makes them"
    )


def test_model_with_features_of_its_own(fails, files, tmp_path):
    own = EventFeature("move", "right", lambda a, b: b.position[:, 0] - a.position[:, 0])
    model = tmp_path / "own.trellis"
    TrackingModel(features=[own], max_iter=1).fit(PAIRS[:1]).save(model)
    message = fails("track", files / "objects.csv", "--model", model, "-o", tmp_path / "t")
    assert message.startswith(f"{model}: the model was trained with features of its user")
    assert "move right" in message and "TrackingModel.load(path, features=...)" in message


def test_objects_without_a_column_of_the_model(fails, files, tmp_path):
    rows = [row[:4] for row in object_rows(PAIRS)]
    path = write(tmp_path / "bare.csv", ("frame", "id", "x", "y"), rows)
    message = fails("track", path, "--model", files / "cells.trellis", "-o", tmp_path / "t")
    assert "the objects have no column 'area', which the model was trained with" in message


def test_missing_matplotlib(fails, files, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    message = fails("track", files / "objects.csv", "--plot", tmp_path / "a.png")
    assert message == "--plot needs matplotlib: install it, or trellis-structured[plot]"


def test_an_empty_file_of_links_is_nothing_to_learn_from(run, files, tmp_path):
    path = tmp_path / "none.csv"
    path.write_text("frame,source_id,target_id\n")
    result = run("track", files / "objects.csv", "--learn", path, "--save", tmp_path / "m.trellis")
    assert result.code == 1
    assert "none.csv has no links to learn from" in result.err[-1]


TRACKMATE = """LABEL,ID,TRACK_ID,POSITION_X,POSITION_Y,FRAME,AREA
Label,Spot ID,Track ID,X,Y,Frame,Area
,,,(micron),(micron),,(micron^2)
""" + "".join(f"ID{9 * t + i},{9 * t + i},{i},{10 * i + t},{5 * i},{t},{30 + i}\n"
              for t in range(4) for i in range(5))  # fmt: skip


def test_tables_of_other_programs(run, fails, tmp_path):
    path, tracks = tmp_path / "spots.csv", tmp_path / "tracks.csv"
    path.write_text(TRACKMATE)
    said = run("track", path, "-o", tracks, "--truth", path, "--method", "flow")
    assert "100.00%  100.00%   100.00       15         15" in str(said)
    again = run("track", tracks, "--truth", tracks, "--method", "flow")
    assert "100.00%  100.00%   100.00       15         15" in str(again)
    other = tmp_path / "other.csv"
    other.write_bytes("Zeit;Länge;Höhe\n0;1,5;2\n1;1,5;2\n".encode("cp1252"))
    names = "frame=Zeit,x=Länge,y=Höhe"
    message = fails("track", other, "-o", tracks, "--columns", names)
    assert (
        "line 1: not UTF-8 text; convert the file to UTF-8, or name its encoding: --enc" in message
    )
    run(
        "track", other, "-o", tracks, "--columns", names, "--encoding", "cp1252", "--method", "flow"
    )
    assert tracks.read_text().splitlines()[1].startswith(",0,0,1.5,2.0,1")
    message = fails("track", other, "-o", tracks, "--encoding", "cp1252")
    assert "has no column 'frame', only Zeit, Länge, Höhe" in message
    assert "or --columns frame=NAME" in message


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("frame", "'frame' is not NAME=COLUMN, such as frame=FRAME"),
        ("x=a,x=b", "'x' is said twice"),
        ("x=nothing", "has no column 'nothing', only frame"),
    ],
)
def test_wrong_columns(run, files, tmp_path, columns, message):
    said = run("track", files / "objects.csv", "-o", tmp_path / "t", "--columns", columns)
    assert said.code in (1, 2)
    assert message in said.err[-1]
    assert not (tmp_path / "t").exists()


def test_columns_to_ignore(run, files, tmp_path):
    run("track", files / "objects.csv", "--learn", files / "links.csv", "--save", tmp_path / "m",
         "--ignore", "area,eccentricity")  # fmt: skip
    from trellis import load_model

    features = str(load_model(tmp_path / "m").coefficients())
    assert "area" not in features
    assert "mean_intensity" in features


def link_kinds(path):
    """Frames and kinds of the links of a file of tracks."""
    links, _ = annotated_events(read_detections(path, path))
    return sorted((link.frame, link.frame_target, link.kind) for link in links)


def test_tracks_as_a_file_of_trackmate(run, fails, files, tmp_path):
    path, table = tmp_path / "tracks.xml", tmp_path / "tracks.csv"
    for output in (path, table):
        assert run("track", files / "objects.csv", "-o", output, "--method", "flow").code == 0
    assert link_kinds(path) == link_kinds(table)
    assert run("track", path, "--truth", path, "-o", table, "--method", "flow").code == 0
    path.write_text(path.read_text()[:900])
    assert "not well-formed XML" in fails("track", path, "-o", table)


@pytest.mark.extras
def test_tracks_as_a_geff(run, files, tmp_path):
    pytest.importorskip("geff")
    path, table = tmp_path / "tracks.geff", tmp_path / "tracks.csv"
    for output in (path, path, table):  # the second time there is one
        assert run("track", files / "objects.csv", "-o", output, "--method", "flow").code == 0
    assert link_kinds(path) == link_kinds(table)
    assert run("track", path, "--truth", path, "--method", "flow").code == 0


@pytest.mark.extras
def test_truth_of_the_challenge(run, fails, tmp_path):
    tifffile = pytest.importorskip("tifffile")
    truth = tmp_path / "01_GT" / "TRA"
    truth.mkdir(parents=True)
    for t in range(3):
        labels = np.zeros((9, 30), np.uint16)
        labels[2:5, 2 + t : 6 + t], labels[2:5, 20:24] = 1, 2
        tifffile.imwrite(truth / f"man_track{t:03}.tif", labels)
    (truth / "man_track.txt").write_text("1 0 2 0\n2 0 2 0\n")
    rows = [(t, i, x, 3) for t in range(3) for i, x in enumerate((3.5 + t, 21.5))]
    objects = write(tmp_path / "objects.csv", ("frame", "id", "x", "y"), rows)
    said = run("track", objects, "--truth", tmp_path / "01_GT", "--method", "flow")
    lines = said.out.splitlines()
    assert lines[1].split() == ["links", "100.00%", "100.00%", "100.00", "4", "4"]
    assert lines[3].split() == ["TRA", "DET", "LNK", "CT"]
    assert lines[4].split() == ["1.0000"] * 4
    message = fails("track", objects, "--truth", tmp_path, "--method", "flow")
    assert "has no label images; expected man_trackTTT.tif" in message
    rows = [(s, *row) for s in "ab" for row in rows]
    two = write(tmp_path / "two.csv", ("sequence", "frame", "id", "x", "y"), rows)
    message = fails("track", two, "--truth", tmp_path / "01_GT", "--method", "flow")
    assert "is the truth of one movie, but the objects are of 2; track each alone" in message


# ------------------------------------------------------------------------------- the page


def test_report_is_a_page_and_a_table(files, run, tmp_path):
    result = run(
        "track", files / "objects.csv", "--model", files / "cells.trellis", "--report",
        tmp_path / "out", "-o", tmp_path / "tracks.csv", "--truth", files / "links.csv",
    )  # fmt: skip
    assert result.code == 0, result.err
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == [
        "doubtful_links.csv",
        "index.html",
    ]
    text = (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    assert "<h1>Tracks of objects.csv</h1>" in text
    assert "the model cells.trellis" in text and "Against the truth" in text
    assert "what a tracker with prices made by hand finds" in text  # of 60 events in the film
    doubtful = table(tmp_path / "out" / "doubtful_links.csv")
    chances = [float(row["probability"]) for row in doubtful]
    assert chances == sorted(chances) and {row["right"] for row in doubtful} <= {"0", "1"}
    rows = table(tmp_path / "tracks.csv")
    assert any(row["probability"] for row in rows) and rows[0]["probability"] == ""
    again = run(
        "track", files / "objects.csv", "--model", files / "cells.trellis",
        "--report", tmp_path / "out",
    )  # fmt: skip
    assert again.code == 0  # a page takes the place of an old one


def test_report_as_a_file_and_without_probabilities(files, run, tmp_path):
    page = tmp_path / "flow.html"
    result = run("track", files / "objects.csv", "--method", "flow", "--report", page)
    assert result.code == 0, result.err
    assert [p.name for p in tmp_path.iterdir()] == ["flow.html"]
    text = page.read_text(encoding="utf-8")
    assert "they have no probabilities" in text and "flow (--method)" in text
    assert result.err[-1].startswith(str(page))


def test_report_of_a_movie_alone(files, run, tmp_path):
    result = run("track", files / "objects.csv", "--report", tmp_path / "a.html")
    assert result.code == 0, result.err
    assert "a model learned from this movie alone" in (tmp_path / "a.html").read_text()
    assert (tmp_path / "a_doubtful_links.csv").exists()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("file", "is a file; name a folder to write to"),
        ("no/such.html", "the folder .* does not exist"),
        ("objects.csv", "would be written over"),
    ],
)
def test_report_that_cannot_be_written(files, run, tmp_path, name, message):
    (tmp_path / "file").write_text("")
    target = files / name if name == "objects.csv" else tmp_path / name
    result = run("track", files / "objects.csv", "--method", "flow", "--report", target)
    assert result.code == 1
    assert re.search(message, result.err[-1])


def test_report_beside_the_objects_is_not_written_over_them(files, run, tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    objects = folder / "doubtful_links.csv"
    objects.write_bytes((files / "objects.csv").read_bytes())
    result = run("track", objects, "--method", "flow", "--report", folder)
    assert result.code == 1 and "would be written over" in result.err[-1]


def test_learning_and_tracking_are_one_bar_each_and_no_lines(files, tmp_path, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(progress, "_TICK", 0.005)
    ranked = TrackingModel._ranked

    def slowly(self, *how):
        for one in ranked(self, *how):
            time.sleep(0.05)
            yield one

    monkeypatch.setattr(TrackingModel, "_ranked", slowly)
    command = ["track", str(files / "objects.csv"), "--learn", str(files / "links.csv"), "-o"]
    assert main([*command, str(tmp_path / "t.csv")]) == 0
    said = terminal.getvalue()
    assert "objective" not in said
    assert "tracking: pair of frames" in said
    shown, column = screen(said)
    assert len(shown) == 3 and shown[-1] == "" and column == 0  # learned, written, and no bar


def test_ctrl_c_while_the_temperature_is_chosen_keeps_the_model(files, run, monkeypatch, tmp_path):
    def interrupted(self):
        raise KeyboardInterrupt

    monkeypatch.setattr(Witness, "temperature", interrupted)
    learn = ("--learn", files / "links.csv", "--save", tmp_path / "m")
    result = run("track", files / "objects.csv", *learn)
    assert result.code == 130 and "what was learned by then is in" in result.err[-1]
    monkeypatch.undo()
    model = TrackingModel.load(tmp_path / "m")
    assert model.temperature_ is None and model.temperature_for(PAIRS) > 0


def test_nothing_but_results_in_a_pipe(files, run, tmp_path):
    learn = ("--learn", files / "links.csv")
    result = run("track", files / "objects.csv", *learn, "-o", tmp_path / "t")
    assert len(result.err) == 2

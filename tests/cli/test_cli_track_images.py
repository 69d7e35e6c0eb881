"""``trellis track`` on label images."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from trellis.datasets import render_cells, simulate_cells, simulate_volume
from trellis.tracking import read_ctc, read_label_images
from trellis.tracking.image_frames import open_movies

FIRST, SECOND = (render_cells(simulate_cells(20, 5, lab="b", seed=seed)) for seed in (3, 4))


def table(path):
    with path.open() as file:
        return list(csv.DictReader(file))


def write_links(path, links):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([links, *zip(*links.values(), strict=True)])
    return path


def ground_truth(folder, drawn):
    """A folder as that of the Cell Tracking Challenge, made by writing the true tracks."""
    from trellis.tracking import annotated_events, assemble_tracks, write_ctc

    pairs = read_label_images(drawn.masks, links=drawn.links)
    write_ctc(assemble_tracks(pairs, *annotated_events(pairs)), folder, masks=drawn.masks)
    for path in folder.glob("mask*.tif"):
        path.rename(folder / path.name.replace("mask", "man_track"))
    (folder / "res_track.txt").rename(folder / "man_track.txt")
    return folder


def test_arrays_to_tracks_and_masks(run, tmp_path):
    np.save(tmp_path / "masks.npy", SECOND.masks)
    np.save(tmp_path / "images.npy", SECOND.images)
    links = write_links(tmp_path / "links.csv", SECOND.links)
    out, ctc = tmp_path / "tracks.csv", tmp_path / "res"
    result = run(
        "track", tmp_path / "masks.npy", "--images", tmp_path / "images.npy", "-o", out, "--ctc",
        ctc, "--truth", links,
    )  # fmt: skip
    assert result.code == 0
    assert "links" in result.out
    rows = table(out)
    assert len(rows) == sum(len(np.unique(mask)) - 1 for mask in SECOND.masks)
    tracks = read_ctc(ctc)
    assert {int(row["track"]) for row in rows} == {track.track for track in tracks}
    assert sorted(path.name for path in ctc.glob("*.tif"))[0] == "mask000.tif"


def test_learning_from_links_of_the_same_images(run, tmp_path):
    np.savez(tmp_path / "masks.npz", left=FIRST.masks, right=SECOND.masks)
    links = {
        "sequence": ["left"] * len(FIRST.links["frame"]) + ["right"] * len(SECOND.links["frame"]),
        **{name: [*FIRST.links[name], *SECOND.links[name]] for name in FIRST.links},
    }
    path = write_links(tmp_path / "links.csv", links)
    model = tmp_path / "m.trellis"
    result = run("track", tmp_path / "masks.npz", "--learn", path, "--save", model)
    assert (result.code, result.out) == (0, "")
    np.save(tmp_path / "one.npy", FIRST.masks)
    result = run("track", tmp_path / "one.npy", "--model", model, "-o", tmp_path / "t.csv")
    assert result.code == 0
    result = run("track", tmp_path / "masks.npz", "--method", "flow", "--ctc", tmp_path / "both")
    assert result.code == 0
    assert len(list((tmp_path / "both").glob("*/mask00?.tif"))) == 10


def test_volumes(run, tmp_path):
    movie = simulate_volume(6, 4, seed=0)
    np.save(tmp_path / "masks.npy", movie.masks)
    result = run(
        "track", tmp_path / "masks.npy", "--spacing", "2,1,1", "--method", "flow", "-o",
        tmp_path / "t.csv",
    )  # fmt: skip
    assert result.code == 0
    assert "z" in table(tmp_path / "t.csv")[0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["masks.npy", "--spacing", "1;2"], "--spacing 1;2: expected numbers with commas between"),
        (["masks.npy", "--spacing", "1,2,3"], "spacing has 3 numbers, masks.npy has images of 2"),
        (["masks.npy", "--learn-images", "masks.npy"], "--learn-images goes with a folder of gro"),
        (["objects.csv", "--images", "masks.npy"], "--images goes with label images .a folder, .t"),
        (["objects.csv", "--spacing", "1,1"], "--spacing goes with label images"),
        (["objects.csv", "--truth", "masks.npy"], "masks.npy is read as a CSV file of links; imag"),
        (["masks.npy", "--truth", "masks.npy"], "masks.npy is read as a CSV file of links; images"),
        (["masks.npy", "--learn", "masks.npy"], "--learn masks.npy: expected a CSV file of links"),
        (["float.npy"], "float.npy, frame 0: label images hold whole numbers, this one float64"),
        (["empty.npy"], "empty.npy: there are no labels, only background"),
        (["empty"], "empty has no TIFF files; expected one for each frame, such as mask000.tif"),
        (["gone.tif"], "cannot read gone.tif: there is no such file or folder"),
    ],
)
def test_bad_input(run, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    np.save("masks.npy", FIRST.masks)
    np.save("float.npy", FIRST.images.astype(float))
    np.save("empty.npy", np.zeros((2, 4, 4), int))
    (tmp_path / "empty").mkdir()
    (tmp_path / "objects.csv").write_text("frame,id,x,y\n0,0,1,1\n1,0,1,1\n")
    result = run("track", *arguments, "-o", "tracks.csv")
    assert result.code == 1
    assert len(result.err) == 1
    import re

    assert re.search(message, result.err[0])


@pytest.mark.extras
def test_folders_of_the_challenge(run, tmp_path):
    tifffile = pytest.importorskip("tifffile", reason="tifffile is not installed")
    truth = ground_truth(tmp_path / "01_GT" / "TRA", FIRST)
    for name, movie in (("02_SEG", SECOND.masks), ("02", SECOND.images), ("01", FIRST.images)):
        (tmp_path / name).mkdir()
        for t, frame in enumerate(movie):
            kind = "mask" if name.endswith("SEG") else "t"
            tifffile.imwrite(tmp_path / name / f"{kind}{t:03}.tif", frame, compression="zlib")
    for learn in (truth, truth.parent):
        result = run(
            "track", tmp_path / "02_SEG", "--images", tmp_path / "02", "--learn", learn,
            "--learn-images", tmp_path / "01", "--ctc", tmp_path / "02_RES", "--quiet",
        )  # fmt: skip
        assert (result.code, result.out) == (0, "")
    tracks = {track.track: track for track in read_ctc(tmp_path / "02_RES")}
    (movie,) = open_movies(tmp_path / "02_RES", "masks")
    for frame, mask in zip(movie.numbers, movie, strict=True):
        here = {t.track for t in tracks.values() if t.begin <= frame <= t.end}
        assert set(np.unique(mask).tolist()) - {0} == here
        assert ((mask > 0) == (SECOND.masks[frame] > 0)).all()
    result = run("track", truth, "--truth", truth, "--method", "flow")
    assert result.code == 0
    assert "divisions" in result.out
    result = run("track", tmp_path / "02_SEG", "--method", "flow", "--ctc", tmp_path / "02_SEG")
    assert result.code == 1
    assert "masks would be written among those that are read; name another" in result.err[0]
    (tmp_path / "02_SEG" / "mask001.tif").write_bytes(b"II*\0nothing")
    result = run("track", tmp_path / "02_SEG", "--method", "flow", "--ctc", tmp_path / "03")
    assert result.code == 1
    assert "mask001.tif" in result.err[0]

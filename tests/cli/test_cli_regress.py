"""``trellis regress`` on a small table."""

from __future__ import annotations

import csv
import sys

import numpy as np
import pytest

FAST = ("--compare", "MLR,S-MLR", "--folds", 2, "--components", 2, "--subsample", 0.5, "--jobs", 1)
WHAT = ("--target", "price", "--coords", "lat,lon")


def rows(n=40, seed=0):
    rng = np.random.default_rng(seed)
    lat, lon = 38 + rng.random(n), -121 + rng.random(n)
    size = rng.uniform(50, 150, n)
    price = 2 * size + 100 * np.sin(6 * lat) + rng.standard_normal(n)
    return [
        [f"house {i}", f"{size[i]:.2f}", f"{price[i]:.3f}", f"{lat[i]:.5f}", f"{lon[i]:.5f}"]
        for i in range(n)
    ]


def write(path, table, head=("name", "size", "price", "lat", "lon")):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([head, *table])
    return path


@pytest.fixture
def houses(tmp_path):
    table = rows()
    table[3][1] = "NA"
    table[5][2] = ""
    return write(tmp_path / "houses.csv", table)


def test_report(run, houses, tmp_path):
    out = tmp_path / "new" / "out"
    result = run("regress", houses, *WHAT, *FAST, "--report", out)
    assert result.code == 0, result.err
    names = [line.split("|")[1].strip() for line in result.out.splitlines()[2:]]
    assert names == ["MLR", "S-MLR", "GLACER"]
    assert result.err[0] == (
        "39 rows to train on, features size, lat, lon; left out, since they are not numbers: name; "
        "1 rows with missing features, replaced by means; 1 rows without target, predicted only"
    )
    report = (out / "report.md").read_text("utf-8")
    assert result.out.strip() in report
    assert "(haversine distance)" in report
    assert "R_obj fell from" in report
    for name in ("map.png", "objective.png"):
        assert f"]({name})" in report
        assert (out / name).read_bytes().startswith(b"\x89PNG")
    with (out / "predictions.csv").open() as file:
        found = list(csv.DictReader(file))
    assert [r["line"] for r in found] == [str(i) for i in range(2, 42)]
    assert found[5]["price"] == found[5]["fold"] == ""
    assert {r["fold"] for r in found} == {"1", "2", ""}
    known = [r for r in found if r["fold"]]
    inside = [float(r["low"]) <= float(r["price"]) <= float(r["high"]) for r in known]
    assert 0.9 <= np.mean(inside) < 1
    errors = {fold: np.mean([(float(r["price"]) - float(r["predicted"])) ** 2
                             for r in known if r["fold"] == fold]) for fold in "12"}  # fmt: skip
    mean = np.mean(list(errors.values()))
    assert float(result.out.splitlines()[-1].split("|")[2]) == pytest.approx(mean, rel=1e-3)


def test_one_gaussian_crf_and_no_figures(run, houses, tmp_path):
    out = tmp_path / "out"
    options = ("--model", "gcrf", "--features", "size", "--metric", "manhattan", "--no-figures")
    first = run("regress", houses, *WHAT, *FAST, *options, "--quiet", "--report", out)
    assert (first.code, first.err) == (0, [])
    assert sorted(p.name for p in out.iterdir()) == ["predictions.csv", "report.md"]
    text = (out / "report.md").read_text("utf-8")
    assert "features size;" in text
    assert "manhattan distance" in text
    assert "Swaps" not in text
    kept = (out / "predictions.csv").read_bytes()
    run("regress", houses, *WHAT, *FAST, *options, "--quiet", "--report", out)
    assert (out / "predictions.csv").read_bytes() == kept


def test_standard_input_and_no_baselines(run, tmp_path):
    text = "size,price,x\n" + "".join(f"{r[1]},{r[2]},{r[3]}\n" for r in rows())
    result = run(
        "regress", "-", "--target", "price", "--coords", "x", "--compare", "", "--folds", 2,
        "--components", 2, "--jobs", 1, "--report", tmp_path, stdin=text,
    )  # fmt: skip
    assert result.code == 0, result.err
    assert not (tmp_path / "map.png").exists()  # one coordinate makes no map
    assert len(result.out.splitlines()) == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--knn", 0), "--knn must be a positive integer, got 0"),
        (("--folds", 1), "--folds must be at least 2, got 1"),
        (("--components", 1), "--components must be an integer of at least 2, got 1"),
        (("--seed", -1), "--seed must be an integer of at least 0, got -1"),
        (("--jobs", 0), "--jobs must be a positive integer or -1, got 0"),
        (("--subsample", 1), "--subsample must be a number between 0 and 1, both excluded, got 1"),
        (("--coords", ","), "--coords names no column"),
        (
            ("--coords", "lat,long"),
            "houses.csv has no column 'long', only name, size, price, lat",
        ),
        (("--target", "cost"), "houses.csv has no column 'cost'"),
        (("--features", "price"), "the target 'price' is also a feature or a coordinate"),
        (("--features", "name"), "houses.csv, line 2, column 'name': 'house 0' is not a number"),
        (("--compare", "SVM,XGB"), "--compare: unknown baseline 'XGB'; known: MLR; S-MLR; NN"),
        (("--folds", 30), "has 39 rows with a target; at least 60 are needed for 30 folds"),
        (
            ("--metric", "haversine", "--coords", "lat"),
            "haversine distances need --coords LATITUDE",
        ),
    ],
)
def test_wrong_options(fails, houses, tmp_path, options, message):
    out = tmp_path / "out"
    assert message in fails("regress", houses, *WHAT, *FAST, "--report", out, *options)
    assert not out.exists()


def broken(table):
    table[7][3] = ""


def infinite(table):
    table[0][1] = "inf"


def same_price(table):
    for row in table:
        row[2] = "1"


def ragged(table):
    table[4].append("more")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (broken, "bad.csv, line 9, column 'lat': the value is missing"),
        (infinite, "bad.csv, line 2, column 'size': 'inf' is not finite"),
        (same_price, "column 'price' is the same in every row"),
        (ragged, "bad.csv, line 6: 6 cells, but the header has 5"),
    ],
)
def test_wrong_tables(fails, tmp_path, change, message):
    table = rows()
    change(table)
    path = write(tmp_path / "bad.csv", table)
    features = ("--features", "size") if change is infinite else ()
    assert message in fails("regress", path, *WHAT, *FAST, *features, "--report", tmp_path / "out")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "bad.csv is empty; expected a header and rows of cells between commas"),
        (b"a,b\n", "bad.csv has a header, but no rows"),
        (b"a,,b\n1,2,3\n", "bad.csv, line 1: column 2 of the header has no name"),
        (b"a,b,a\n1,2,3\n", "bad.csv, line 1: the header names column 'a' twice"),
        (b"a,b\n1,\xff\n", "bad.csv, line 2: not UTF-8 text; convert the file to UTF-8"),
        (b'a,b\n1,"x"y\n', "bad.csv, line 2: ',' expected after '\"'"),
    ],
)
def test_wrong_files(fails, tmp_path, text, message):
    path = tmp_path / "bad.csv"
    path.write_bytes(text)
    assert message in fails("regress", path, *WHAT, *FAST)


def test_report_must_be_a_folder(fails, houses):
    message = fails("regress", houses, *WHAT, *FAST, "--report", houses)
    assert message.endswith("houses.csv is a file; name a folder to write to")


def test_missing_matplotlib(run, houses, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    out = tmp_path / "out"
    result = run("regress", houses, *WHAT, *FAST, "--report", out)
    assert result.code == 0, result.err
    said = "trellis: no figures, which need matplotlib: install it, or trellis-structured[plot]"
    assert result.err.count(said) == 1
    assert result.err[-1] == f"report.md, predictions.csv are in {out}"
    assert sorted(path.name for path in out.iterdir()) == ["predictions.csv", "report.md"]
    assert ".png" not in (out / "report.md").read_text("utf-8")
    quiet = run("regress", houses, *WHAT, *FAST, "--report", out, "--no-figures", "--quiet")
    assert (quiet.code, quiet.err) == (0, [])

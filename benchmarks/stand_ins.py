"""Small generated data in the files of the real data sets, for small mode.

Tags follow from words, chunks from tags, a letter's pixels from the letter, what sensors measure
from the movement, metals from features and places, and words of characters come from a list of ten,
so that there is something to learn.
"""

from __future__ import annotations

import atexit
import lzma
import tempfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from trellis.datasets import render_cells, simulate_cells, spatial_field
from trellis.tracking import FramePair

_SENTENCES = {"train": 60, "dev": 20, "test": 20}
_KINDS = ("O", "NP", "NP", "VP", "PP")
_LINES = {  # of a token, its head any token before, and how the files end
    "conll2000": ("{word} {tag} {chunk}", "txt"),
    "jnlpba": ("{word}\t{chunk}", "iob2"),
    "ud_ewt": ("{word}\t{tag}\tX{tag}\t{head}\t{chunk}", "tsv"),
}


def stand_ins() -> str:
    """Write all of them into a folder that is there until the process ends."""
    folder = tempfile.TemporaryDirectory(prefix="trellis-small-")
    atexit.register(folder.cleanup)
    for name in (*_LINES, "sxu", "ocr", "har", "celltracking", "spatial"):
        Path(folder.name, name).mkdir()
    files = {**_texts(), **_letters(), **_cells(), **_map()}
    for path, lines in files.items():
        with lzma.open(Path(folder.name, f"{path}.xz"), "wt", encoding="utf-8", preset=0) as file:
            file.writelines(f"{line}\n" for line in lines)
    np.savez(Path(folder.name, "har", "windows.npz"), **_windows())
    np.savez(Path(folder.name, "celltracking", "epidermis_masks.npz"), **_masks())
    return folder.name


def _sentence(line: str, rng: np.random.Generator) -> Iterable[str]:
    before = "O"
    for i, word in enumerate(rng.zipf(1.4, rng.integers(5, 15)) % 97):
        kind = _KINDS[word % 5]
        chunk = kind if kind == "O" else f"{'I' if kind == before else 'B'}-{kind}"
        head = rng.integers(1, i + 1) if i else 0
        yield line.format(word=f"w{word}", tag=f"T{word % 5}", chunk=chunk, head=head)
        before = kind
    yield ""


def _texts() -> dict[str, list[str]]:
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("abcdefgh"), rng.integers(1, 4))) for _ in range(10)]
    files = {}
    for part, n in _SENTENCES.items():
        for name, (line, end) in _LINES.items():
            tokens = [token for _ in range(n) for token in _sentence(line, rng)]
            files[f"{name}/{part}.{end}"] = tokens
        text = [" ".join(rng.choice(words, rng.integers(3, 10))) for _ in range(n)]
        files[f"sxu/{part}.txt"] = text
    return files


def _letters() -> dict[str, list[str]]:
    rng = np.random.default_rng(0)
    pixels = {letter: rng.random(128) < 0.3 for letter in "abcde"}
    lines = []
    for word in range(60):
        for place, letter in enumerate(rng.choice(list(pixels), rng.integers(2, 6)), 1):
            image = np.packbits(pixels[letter] ^ (rng.random(128) < 0.1)).tobytes().hex()
            lines.append(f"{letter}\t{word + 1}\t{place}\t{word % 10}\t{image}")
    return {"ocr/letters.tsv": lines}


def _windows() -> dict[str, np.ndarray]:
    """Windows of three movements, of which some are to test on."""
    rng = np.random.default_rng(0)
    y = rng.integers(1, 4, 600)
    X = rng.normal(0, 1, (4, 109))[y] + rng.normal(0, 1, (600, 109))
    names = np.array(["UNLABELLED", "WALKING", "SITTING", "LAYING"])
    is_test = np.arange(600) >= 500
    return {"X": X.astype(np.float32), "y": y, "is_test": is_test, "label_names": names}


def _cells() -> dict[str, list[str]]:
    """Movies as long as the benchmarks need them; links are moves and divisions only."""
    files = {}
    for name, movies in (
        ("cellmigration", {"cellmigration": simulate_cells(8, 86, seed=0)}),
        ("epidermis", _areas()),
    ):
        objects, links = ["sequence,frame,id,x,y,area"], ["sequence,frame,source_id,target_id,kind"]
        for movie, pairs in movies.items():
            for t, frame in enumerate([pair.source for pair in pairs] + [pairs[-1].target]):
                rows = zip(frame.ids, frame.position, frame.columns["area"], strict=True)
                objects += [f"{movie},{t},{i},{x},{y},{area}" for i, (x, y), area in rows]
            for t, pair in enumerate(pairs):
                known = pair.annotation.links if pair.annotation else ()
                kept = [link for link in known if link[2] in ("move", "division")]
                links += [f"{movie},{t},{a},{b},{kind}" for a, b, kind in kept]
        files |= {f"celltracking/{name}_objects.csv": objects}
        files |= {f"celltracking/{name}_links.csv": links}
    return files


def _areas() -> dict[str, list[FramePair]]:
    return {f"epidermis_area{i}": simulate_cells(20, 6, seed=i) for i in (1, 2)}


def _masks() -> dict[str, np.ndarray]:
    """Label images of the same objects: id + 1."""
    return {name: render_cells(pairs).masks for name, pairs in _areas().items()}


def _map() -> dict[str, list[str]]:
    """Places with what was measured in the soil; four metals are alike."""
    places, X, y, _ = spatial_field(80, n_features=7, random_state=0)
    names = "cadmium,copper,lead,zinc,elev,dist,om,ffreq,soil,lime,dist_to_meuse"
    rows = zip(places.tolist(), X.tolist(), np.exp(y).tolist(), strict=True)
    lines = [",".join(map(str, [*place, *[metal] * 4, *x])) for place, x, metal in rows]
    return {"spatial/meuse.csv": [f"x,y,{names}", *lines]}

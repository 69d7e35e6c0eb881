"""Small generated data in the files of the real data sets, for small mode.

Tags follow from words, chunks and names from tags, a letter's pixels from the letter, words of
characters from a list of ten, so that there is something to learn; scores on them mean nothing.
"""

from __future__ import annotations

import atexit
import itertools
import lzma
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from trellis.datasets import simulate_cells
from trellis.tracking import FramePair

_SENTENCES = {"train": 60, "dev": 20, "test": 20}
_KINDS = ("O", "NP", "NP", "VP", "PP")


def stand_ins() -> str:
    """Write all of them into a folder that is there until the process ends."""
    folder = tempfile.TemporaryDirectory(prefix="trellis-small-")
    atexit.register(folder.cleanup)
    for number, (name, write) in enumerate(_WRITERS.items()):
        path = Path(folder.name, name)
        path.mkdir()
        write(path, np.random.default_rng(number))
    return folder.name


def _write(path: Path, blocks: Iterable[Iterable[str]], between: str = "\n") -> None:
    with lzma.open(path, "wt", encoding="utf-8", preset=0) as file:
        for block in blocks:
            file.write("".join(f"{line}\n" for line in block) + between)


def _sentence(rng: np.random.Generator) -> list[tuple[str, str, str]]:
    """Words, tags and chunks."""
    words = rng.zipf(1.4, rng.integers(5, 15)) % 97
    kinds = [_KINDS[word % 5] for word in words]
    begins = [kind != before for kind, before in zip(kinds, ["O", *kinds], strict=False)]
    chunks = ["O" if k == "O" else f"{'IB'[b]}-{k}" for k, b in zip(kinds, begins, strict=True)]
    return [(f"w{w}", f"T{w % 5}", chunk) for w, chunk in zip(words, chunks, strict=True)]


def _conll2000(folder: Path, rng: np.random.Generator) -> None:
    for part, n in _SENTENCES.items():
        lines = ([" ".join(row) for row in _sentence(rng)] for _ in range(n))
        _write(folder / f"{part}.txt.xz", lines)


def _jnlpba(folder: Path, rng: np.random.Generator) -> None:
    for part, n in _SENTENCES.items():
        lines = ([f"{word}\t{tag}" for word, _, tag in _sentence(rng)] for _ in range(n))
        _write(folder / f"{part}.iob2.xz", lines)


def _ud_ewt(folder: Path, rng: np.random.Generator) -> None:
    """Heads are any word before, relations the chunks."""
    for part, n in _SENTENCES.items():
        lines = (
            [
                f"{word}\t{tag}\tX{tag}\t{rng.integers(1, i + 1) if i else 0}\t{chunk}"
                for i, (word, tag, chunk) in enumerate(_sentence(rng))
            ]
            for _ in range(n)
        )
        _write(folder / f"{part}.tsv.xz", lines)


def _sxu(folder: Path, rng: np.random.Generator) -> None:
    words = ["".join(rng.choice(list("abcdefgh"), rng.integers(1, 4))) for _ in range(10)]
    for part, n in _SENTENCES.items():
        lines = ([" ".join(rng.choice(words, rng.integers(3, 10)))] for _ in range(n))
        _write(folder / f"{part}.txt.xz", lines, between="")


def _ocr(folder: Path, rng: np.random.Generator) -> None:
    pixels = {letter: rng.random(128) < 0.3 for letter in "abcde"}
    lines = []
    for word in range(60):
        for place, letter in enumerate(rng.choice(list(pixels), rng.integers(2, 6)), 1):
            image = np.packbits(pixels[letter] ^ (rng.random(128) < 0.1)).tobytes().hex()
            lines.append(f"{letter}\t{word + 1}\t{place}\t{word % 10}\t{image}")
    _write(folder / "letters.tsv.xz", [lines], between="")


def _cells(folder: Path, rng: np.random.Generator) -> None:
    """One movie of 86 frames, and two short ones; only moves and divisions are kept as links."""
    seeds = itertools.count(int(rng.integers(1000)))
    for source, movies in (
        ("cellmigration", {"cellmigration": simulate_cells(8, 86, seed=next(seeds))}),
        ("epidermis", {f"epidermis_area{i}": simulate_cells(20, 6, seed=i) for i in (1, 2)}),
    ):
        objects, links = ["sequence,frame,id,x,y,area"], ["sequence,frame,source_id,target_id,kind"]
        for name, pairs in movies.items():
            for pair in pairs:
                objects += _objects(name, pair.frame, pair)
                links += [
                    f"{name},{pair.frame},{a},{b},{kind}"
                    for a, b, kind in pair.annotation.links
                    if kind in ("move", "division")
                ]
            last = pairs[-1]
            objects += _objects(name, last.frame + 1, last)
        _write(folder / f"{source}_objects.csv.xz", [objects], between="")
        _write(folder / f"{source}_links.csv.xz", [links], between="")


def _objects(name: str, frame: int, pair: FramePair) -> list[str]:
    """Lines of one frame, which is the first or the second of a pair."""
    objects = pair.source if frame == pair.frame else pair.target
    rows = zip(objects.ids, objects.position, objects.columns["area"], strict=True)
    return [f"{name},{frame},{i},{x},{y},{area}" for i, (x, y), area in rows]


_WRITERS: dict[str, Callable[[Path, np.random.Generator], None]] = {
    "conll2000": _conll2000,
    "jnlpba": _jnlpba,
    "ud_ewt": _ud_ewt,
    "sxu": _sxu,
    "ocr": _ocr,
    "celltracking": _cells,
}

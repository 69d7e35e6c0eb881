"""Handwritten words, letter by letter (Kassel; Taskar, Guestrin & Koller 2003), in ten folds.

Each letter is an image of 16 × 8 black and white pixels; the first, capital, letter of each word
was removed. The small setting of the literature trains on one fold and tests on the other nine.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from studies.datasets.folder import data_folder
from trellis.corpus import Corpus, as_corpus
from trellis.errors import DataError
from trellis.files import open_text_bytes

__all__ = ["load_ocr", "read_words", "word_images"]

Word = tuple[NDArray[np.uint8], list[str], int]
"""Images of the letters (n, 128), the letters, and the fold."""


def load_ocr() -> tuple[Corpus, NDArray[np.int64]]:
    """Read all words, in the order of their numbers.

    Returns
    -------
    corpus : Corpus
        One sample for each word; 128 numbers, 0 or 1, at each letter.
    folds : int64, shape (S,)
        Fold of each word, 0 to 9.

    Raises
    ------
    DataError
        If the file is missing or damaged.

    Examples
    --------
    >>> corpus, folds = load_ocr()  # doctest: +SKIP
    >>> len(corpus), corpus.n_positions, (folds == 0).sum()  # doctest: +SKIP
    (6877, 52152, 626)
    """
    return read_words(data_folder("ocr"))


def read_words(folder: Path) -> tuple[Corpus, NDArray[np.int64]]:
    """Do what :func:`load_ocr` does, for a folder."""
    words = word_images(folder)
    corpus = as_corpus([images for images, _, _ in words], [letters for _, letters, _ in words])
    return corpus, np.array([fold for *_, fold in words], np.int64)


def word_images(folder: Path) -> list[Word]:
    """All words, in the order of their numbers."""
    path = folder / "letters.tsv.xz"
    words: dict[int, tuple[list[Any], list[str], int]] = {}
    try:
        for line in open_text_bytes(path).decode("ascii").splitlines():
            letter, word, _, fold, pixels = line.split("\t")
            images, letters, _ = words.setdefault(int(word), ([], [], int(fold)))
            images.append(np.unpackbits(np.frombuffer(bytes.fromhex(pixels), np.uint8)))
            letters.append(letter)
        chosen = [words[number] for number in sorted(words)]
        return [(np.array(images), letters, fold) for images, letters, fold in chosen]
    except ValueError as error:
        raise DataError(f"cannot read {path}: {error}") from None

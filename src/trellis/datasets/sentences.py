"""English sentences that every machine has: those of the docstrings of Python's standard library.

The task is to read text without spaces. A sample is the letters of a sentence, x = (x_1, …, x_n),
in lower case; its labelling tells words by BMES tags (begin, middle, end, single), so that
«readtheline» is to come out as «read the line».

A sentence is kept if it has four words or more and all of them are words: letters, apostrophes and
hyphens (which are dropped, so that «don't» is «dont»). Paragraphs with examples, tables or lists of
parameters hold no sentences. Each sentence occurs once.
"""

from __future__ import annotations

import ast
import io
import itertools
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trellis.datasets.source_files import (
    UNPARSABLE,
    Paths,
    by_hash,
    held_out_modules,
    source_files,
)
from trellis.domains import nothing, whole
from trellis.errors import DataError

if TYPE_CHECKING:
    from trellis.corpus import Corpus

__all__ = ["Sentences", "stdlib_sentences"]

_WORD = re.compile(r"[A-Za-z]+(?:['-][A-Za-z]+)*")
_NOT_PROSE = (">>>", "...", "|", "+", "$", "-", "*")
_FEWEST = 4  # words of a sentence
_BLOCKS = ("body", "handlers", "orelse", "finalbody")
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Sentences:
    """Sentences in lower case, letters and spaces only.

    Attributes
    ----------
    sentences : list of str
        A sentence each.
    modules : list of str
        The module each comes from.

    Examples
    --------
    >>> data = Sentences(["read a line", "close the file"], ["a", "b"])
    >>> data.n_letters
    21
    >>> data.corpus()[0].columns["char"][:4], data.corpus()[0].labels[:4]
    (['r', 'e', 'a', 'd'], ['B', 'M', 'M', 'E'])
    """

    sentences: list[str]
    modules: list[str]

    @property
    def n_letters(self) -> int:
        """Number of letters in all sentences together."""
        return sum(map(_letters, self.sentences))

    def corpus(self) -> Corpus:
        """The letters as a corpus with BMES labels, as :func:`~trellis.read_segmented` reads it."""
        from trellis.corpus import read_segmented

        return read_segmented(io.StringIO("\n".join(self.sentences)))

    def split(self, test_fraction: float = 0.2) -> tuple[Sentences, Sentences]:
        """Divide into a training and a test part that share no module.

        Parameters
        ----------
        test_fraction : float, default=0.2
            Wanted share of letters in the test part, between 0 and 1. The same data gives the same
            parts.

        Returns
        -------
        train, test : Sentences
            The two parts; sentences keep their order.
        """
        sizes = list(map(_letters, self.sentences))
        held_out = held_out_modules(self.modules, sizes, test_fraction)
        return (
            self._where([module not in held_out for module in self.modules]),
            self._where([module in held_out for module in self.modules]),
        )

    def _where(self, keep: list[bool]) -> Sentences:
        return Sentences(
            list(itertools.compress(self.sentences, keep)),
            list(itertools.compress(self.modules, keep)),
        )


def stdlib_sentences(*, max_sentences: int | None = None, root: Paths | None = None) -> Sentences:
    """Collect the sentences of the docstrings of Python's standard library.

    Parameters
    ----------
    max_sentences : int, optional
        Stop with this number. Modules are then taken in the order of a hash of their names, so that
        a small sample is still diverse.
    root : path or sequence of paths, optional
        Folders of Python source to read instead of the standard library.

    Returns
    -------
    Sentences
        Sorted by module, in order of appearance within a module; the content depends on the
        version of Python.

    Raises
    ------
    DataError
        If there are none, e.g. because the library was installed without its source.

    Examples
    --------
    >>> data = stdlib_sentences(max_sentences=200)
    >>> len(data.sentences), set("".join(data.sentences)) <= set("abcdefghijklmnopqrstuvwxyz ")
    (200, True)
    """
    (nothing | whole(1)).check("max_sentences", max_sentences)
    files, where = source_files(root)
    if max_sentences is not None:
        files.sort(key=lambda file: by_hash(file[0], b"order"))
    found: dict[str, str] = {}
    for module, path in files:
        try:
            with tokenize.open(path) as stream:
                tree = ast.parse(stream.read())
        except (OSError, *UNPARSABLE):
            continue
        for sentence in itertools.chain.from_iterable(map(_sentences, _docstrings(tree))):
            found.setdefault(sentence, module)
        if max_sentences is not None and len(found) >= max_sentences:
            break
    if not found:
        raise DataError(
            f"no Python source with docstrings found under {where}; the standard library may be "
            "zipped or stripped of its .py files: pass root= a folder that holds Python source"
        )
    kept = sorted(itertools.islice(found.items(), max_sentences), key=lambda item: item[1])
    return Sentences([sentence for sentence, _ in kept], [module for _, module in kept])


def _letters(sentence: str) -> int:
    return len(sentence) - sentence.count(" ")


def _docstrings(tree: ast.Module) -> Iterator[str]:
    """Docstrings of a module, and of what it defines at any depth of classes and functions."""
    inside: list[ast.AST] = [tree]
    while inside:
        node = inside.pop()
        if isinstance(node, _DOCUMENTED) and (text := ast.get_docstring(node)):
            yield text
        # Statements only: expressions, of which there are many more, define nothing.
        inside += reversed([s for name in _BLOCKS for s in getattr(node, name, ())])


def _sentences(text: str) -> Iterator[str]:
    r"""Sentences of a docstring.

    Examples
    --------
    >>> list(_sentences("Read a line, if any. See x1.\n\n>>> read the line now"))
    ['read a line if any']
    """
    for paragraph in re.split(r"\n\s*\n", text):
        lines = [line.strip() for line in paragraph.splitlines()]
        if any(line.startswith(_NOT_PROSE) for line in lines):
            continue
        for part in re.split(r"(?<=[.!?:;])\s+", " ".join(lines)):
            words = re.sub(r'[,()"]', "", part).rstrip(".!?:;").split()
            if len(words) >= _FEWEST and all(map(_WORD.fullmatch, words)):
                yield " ".join(re.sub("['-]", "", word).lower() for word in words)

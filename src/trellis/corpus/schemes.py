"""Tag schemes: spans of a sequence written as one label per position, and back.

A span is ``(type, start, end)`` with ``0 <= start < end <= n``; spans of a sequence do not overlap.
A label is a letter alone (``B``) or a letter and a type (``B-NP``); the letter says which part of
a span the position is, and a label without a type has the type ``""``:

======  =====  ======  ====  ======  =======  ======================================
scheme  begin  inside  last  single  outside  other names
======  =====  ======  ====  ======  =======  ======================================
BIO     B      I       I     B       O        IOB2
BILOU   B      I       L     U       O        BILUO
IOBES   B      I       E     S       O        BIOES
BMES    B      M       E     S       O        (word segmentation: every position is in a word)
======  =====  ======  ====  ======  =======  ======================================

BILOU and IOBES are one grammar in two alphabets; each reads both and writes its own.

Which label may follow which depends on one thing, whether a span is open. With ``begin`` and
``inside`` open:

* a label that continues (``inside``, ``last``) needs an open span of its own type before it;
* where ends are marked (all but BIO), an open span must be continued, so it can neither be
  followed by another label nor end the sequence.

References
----------
L. A. Ramshaw and M. P. Marcus, *Text chunking using transformation-based learning*, 1995 (BIO);
E. F. Tjong Kim Sang and S. Buchholz, *Introduction to the CoNLL-2000 shared task*, 2000 (the
``conlleval`` program, whose reading of invalid sequences is followed here);
L. Ratinov and D. Roth, *Design challenges and misconceptions in named entity recognition*, 2009
(BILOU); N. Xue, *Chinese word segmentation as character tagging*, 2003 (BMES).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import as_list, memory_for
from trellis.domains import (
    Alternative,
    Domain,
    flag,
    instance,
    is_whole,
    nothing,
    strings,
    takes,
    text,
    whole,
)
from trellis.errors import DataError, ParameterError

__all__ = [
    "SCHEME",
    "Scheme",
    "Span",
    "detect_scheme",
    "get_scheme",
    "tags_to_words",
    "words_to_tags",
]

Span = tuple[str, int, int]
"""Type, first position, one past the last position."""

# What a letter means, whatever the scheme: Begin, Inside, End, Single or Outside.
_ROLES = {"B": "B", "I": "I", "M": "I", "E": "E", "L": "E", "S": "S", "U": "S", "O": "O"}


@dataclass(frozen=True)
class Scheme:
    """A tag scheme; get one from :func:`get_scheme`.

    Attributes
    ----------
    name : str
        ``"BIO"``, ``"BILOU"``, ``"IOBES"`` or ``"BMES"``.
    reads : str
        The letters accepted in labels.
    writes : str
        The letters of the begin, inside, last and single position of a span.

    Examples
    --------
    >>> bio = get_scheme("BIO")
    >>> bio.spans(["B-NP", "I-NP", "O", "B-VP"])
    [('NP', 0, 2), ('VP', 3, 4)]
    >>> get_scheme("BILOU").labels_for([("NP", 0, 2), ("VP", 3, 4)], 4)
    ['B-NP', 'L-NP', 'O', 'U-VP']
    """

    name: str
    reads: str
    writes: str

    def __post_init__(self) -> None:
        for parameter in ("name", "reads", "writes"):
            text.check(parameter, getattr(self, parameter))
        if not set(self.reads) <= _ROLES.keys():
            raise ParameterError("reads", self.reads, f"letters of {''.join(_ROLES)}")
        roles = "".join(_ROLES[letter] for letter in self.writes if letter in self.reads)
        if len(roles) != len(self.writes) or roles not in ("BIIB", "BIES"):
            raise ParameterError(
                "writes",
                self.writes,
                "letters of `reads` for the begin, inside, last and single position, as BIIB or "
                "BIES have them",
            )

    @property
    def marks_end(self) -> bool:
        """Whether the last position of a span has a letter of its own."""
        return self.writes[1] != self.writes[2]

    def parse(self, label: str) -> tuple[str, str]:
        """Role (``B``, ``I``, ``E``, ``S`` or ``O``, whatever the alphabet) and type of a label.

        Raises
        ------
        DataError
            If the label does not fit the scheme.

        Examples
        --------
        >>> get_scheme("BMES").parse("M-NOUN")
        ('I', 'NOUN')
        """
        if isinstance(label, str) and label and label[0] in self.reads:
            if len(label) == 1:
                return _ROLES[label], ""
            if label[1] == "-" and len(label) > 2 and label[0] != "O":
                return _ROLES[label[0]], label[2:]
        letters = ", ".join(self.reads)
        raise DataError(
            f"label {label!r} does not fit the tag scheme {self.name}: expected one of the "
            f"letters {letters}, alone or (except O) followed by '-' and a type"
        )

    def validity(
        self, classes: Sequence[str]
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]:
        """Which labels may start a sequence, follow one another, and end a sequence.

        A sequence is valid if it is the writing of some spans, that is, if its first label may
        start, each neighbouring pair may follow, and its last label may end.

        Parameters
        ----------
        classes : sequence of str
            The L labels.

        Returns
        -------
        start : (L,) bool array
        trans : (L, L) bool array
            ``trans[i, j]``: label j may follow label i.
        end : (L,) bool array

        Examples
        --------
        >>> start, trans, end = get_scheme("BIO").validity(["B-X", "I-X", "O"])
        >>> start
        array([ True, False,  True])
        >>> trans[2]
        array([ True, False,  True])
        """
        parsed = [self.parse(label) for label in as_list(classes, "classes")]
        continues = np.array([role in "IE" for role, _ in parsed], dtype=np.bool_)
        stays_open = np.array([role in "BI" for role, _ in parsed], dtype=np.bool_)
        codes: dict[str, int] = {}
        types = np.array([codes.setdefault(t, len(codes)) for _, t in parsed], dtype=np.int64)

        same_type = types[:, None] == types[None, :]
        trans = stays_open[:, None] & continues[None, :] & same_type
        if self.marks_end:
            trans |= ~stays_open[:, None] & ~continues[None, :]
            end = ~stays_open
        else:
            trans |= ~continues[None, :]
            end = np.ones_like(continues)
        return ~continues, trans, end

    def boundaries(self, classes: Sequence[str]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Where spans start, by labels and the labels before them, as :meth:`spans` reads them.

        Parameters
        ----------
        classes : sequence of str
            The L labels.

        Returns
        -------
        starts : (L, L) bool array
            ``starts[i, j]``: a span starts at label j right after label i. At the beginning of a
            sequence one starts at any label that is within a span.
        within : (L,) bool array
            Whether a label is within a span. One ends before a label that starts another or is not
            within a span, and at the end of a sequence.

        Examples
        --------
        >>> starts, within = get_scheme("BIO").boundaries(["B-X", "I-X", "I-Y", "O"])
        >>> starts[0]
        array([ True, False,  True, False])
        >>> within
        array([ True,  True,  True, False])
        """
        parsed = [self.parse(label) for label in as_list(classes, "classes")]
        roles = np.array([role for role, _ in parsed], dtype="<U1")
        codes: dict[str, int] = {}
        types = np.array([codes.setdefault(t, len(codes)) for _, t in parsed], dtype=np.int64)
        within = roles != "O"
        closed = ~np.isin(roles, ["B", "I"])
        starts = np.isin(roles, ["B", "S"])[None, :] | closed[:, None]
        starts |= types[:, None] != types[None, :]
        return starts & within, within

    def spans(self, labels: Sequence[str], strict: bool = False) -> list[Span]:
        """Spans written by a sequence of labels, from left to right.

        Predictions need not be valid. They are read as ``conlleval`` reads them: a span starts at
        a ``begin`` or ``single`` label, and at any other label that continues nothing or changes
        the type; it ends before the next start, before ``O``, and after ``last`` or ``single``.

        Parameters
        ----------
        labels : sequence of str
        strict : bool, default=False
            Keep only the spans whose labels are exactly what :meth:`labels_for` writes for them.

        Returns
        -------
        list of (type, start, end)

        Raises
        ------
        DataError
            If a label does not fit the scheme.

        Examples
        --------
        >>> bio = get_scheme("BIO")
        >>> bio.spans(["O", "I-X", "I-X", "I-Y", "B-Y"])
        [('X', 1, 3), ('Y', 3, 4), ('Y', 4, 5)]
        >>> bio.spans(["O", "I-X", "I-X", "I-Y", "B-Y"], strict=True)
        [('Y', 4, 5)]
        """
        flag.check("strict", strict)
        labels = _listed(labels, "labels")
        spans: list[Span] = []
        begin, opened_by, open_type = -1, "O", ""  # the open span; begin is -1 if there is none
        previous = "O"
        ends = "ES" if self.marks_end else "BI"

        def close(end: int) -> None:
            if not strict or (opened_by in "BS" and previous in ends):
                spans.append((open_type, begin, end))

        position = 0
        try:
            for position, label in enumerate(labels):
                role, type_ = self.parse(label)
                starts = role != "O" and (role in "BS" or previous in "OES" or type_ != open_type)
                if begin >= 0 and (starts or role == "O"):
                    close(position)
                    begin = -1
                if starts:
                    begin, opened_by, open_type = position, role, type_
                previous = role
        except DataError as error:
            raise DataError(f"position {position}: {error}") from None
        if begin >= 0:
            close(len(labels))
        return spans

    @takes(n=whole(0))
    def labels_for(self, spans: Iterable[Span], n: int) -> list[str]:
        """Labels of a sequence of length `n` with these spans (the inverse of :meth:`spans`).

        Parameters
        ----------
        spans : iterable of (type, start, end)
            In any order, not overlapping; the type ``""`` gives labels without a type.
        n : int
            Length of the sequence.

        Returns
        -------
        list of str
            Positions outside all spans are ``O``, under BMES too.

        Raises
        ------
        DataError
            If a span is none, is empty, reaches outside the sequence or overlaps another.

        Examples
        --------
        >>> get_scheme("BMES").labels_for([("", 0, 3), ("", 3, 4)], 4)
        ['B', 'M', 'E', 'S']
        """
        begin, inside, last, single = tuple(self.writes)
        with memory_for(n, "labels"):
            labels = ["O"] * n
        for span in as_list(spans, "spans"):
            type_, start, end = _as_span(span)
            if not 0 <= start < end <= n:
                raise DataError(
                    f"span {(type_, start, end)} is empty or reaches outside the {n} positions: "
                    "expected 0 <= start < end <= n"
                )
            if any(label != "O" for label in labels[start:end]):
                raise DataError(f"span {(type_, start, end)} overlaps another span")
            letters = [single] if end - start == 1 else [begin, *inside * (end - start - 2), last]
            suffix = f"-{type_}" if type_ else ""
            labels[start:end] = [letter + suffix for letter in letters]
        return labels


def _as_span(span: Any) -> Span:
    if isinstance(span, Sequence) and len(span) == 3:
        type_, start, end = span
        if isinstance(type_, str) and is_whole(start) and is_whole(end):
            return type_, int(start), int(end)
    raise DataError(f"span {span!r:.80} is none: expected a type, a start and an end")


def _listed(values: Any, what: str) -> list[Any]:
    """A list of strings, or one that stands for a list of its characters."""
    return list(values) if isinstance(values, str) else as_list(values, what)


_SCHEMES = {
    scheme.name: scheme
    for scheme in (
        Scheme("BIO", reads="BIO", writes="BIIB"),
        Scheme("BILOU", reads="BILOUES", writes="BILU"),
        Scheme("IOBES", reads="BIOESLU", writes="BIES"),
        Scheme("BMES", reads="BMESO", writes="BMES"),
    )
}
_ALIASES = {"IOB2": "BIO", "BILUO": "BILOU", "BIOES": "IOBES"}


def get_scheme(name: str | Scheme) -> Scheme:
    """Tag scheme of a name.

    Parameters
    ----------
    name : str or Scheme
        ``"BIO"`` (or ``"IOB2"``), ``"BILOU"`` (``"BILUO"``), ``"IOBES"`` (``"BIOES"``) or
        ``"BMES"``, in any case. A scheme is returned as it is.

    Returns
    -------
    Scheme

    Raises
    ------
    DataError
        If there is no such scheme.

    Examples
    --------
    >>> get_scheme("iob2").name
    'BIO'
    """
    if isinstance(name, Scheme):
        return name
    key = str(name).upper()
    scheme = _SCHEMES.get(_ALIASES.get(key, key))
    if scheme is None:
        known = ", ".join([*_SCHEMES, *_ALIASES])
        raise DataError(f"unknown tag scheme {name!r}: expected one of {known}")
    return scheme


def _alternative(name: str) -> Alternative:
    """A scheme by its names, in any case."""
    names = {name, *(other for other, main in _ALIASES.items() if main == name)}

    def accepts(value: object) -> bool:
        return isinstance(value, str) and value.upper() in names

    def parse(said: str) -> str:
        if not accepts(said):
            raise ValueError(said)
        return name

    return Alternative(repr(name), accepts, parse, name, exact=True)


SCHEME = nothing | Domain(tuple(map(_alternative, _SCHEMES))) | instance(Scheme)
"""What the parameter ``scheme`` of a model may be."""


def detect_scheme(classes: Iterable[Any]) -> str | None:
    """Name of the tag scheme a set of labels is written in, judged by the letters.

    Letters cannot tell everything. IOB1 (where ``B-`` only separates neighbours) has the labels of
    BIO and is taken for it; labels with neither ``I`` nor ``M`` but ``E`` or ``S`` are taken for
    IOBES if there is an ``O`` and for BMES if there is none.

    Parameters
    ----------
    classes : iterable

    Returns
    -------
    str or None
        ``"BIO"``, ``"BILOU"``, ``"IOBES"`` or ``"BMES"``; None if the labels fit none of them, are
        nothing but ``O``, continue spans that no label begins, or are not all strings.

    Examples
    --------
    >>> detect_scheme(["O", "B-PER", "I-PER"])
    'BIO'
    >>> detect_scheme(["B", "M", "E", "S"])
    'BMES'
    >>> detect_scheme(["NOUN", "VERB"]) is None
    True
    """
    classes = list(classes) if isinstance(classes, Set) else as_list(classes, "classes")
    if not all(isinstance(label, str) for label in classes):
        return None
    letters = {label[:1] for label in classes}
    if letters <= {"O"} or (letters & set("IMEL") and "B" not in letters):
        return None
    if "M" in letters or (letters & set("ES") and not letters & set("IO")):
        name, alphabet = "BMES", "BMESO"
    elif letters & set("ES"):
        name, alphabet = "IOBES", "BIOES"
    elif letters & set("LU"):
        name, alphabet = "BILOU", "BILOU"
    else:
        name, alphabet = "BIO", "BIO"
    if not letters <= set(alphabet):
        return None
    try:
        for label in classes:
            _SCHEMES[name].parse(label)
    except DataError:
        return None
    return name


@takes(words=strings)
def words_to_tags(words: Sequence[str]) -> list[str]:
    """BMES tag of every character of a segmented sentence.

    Parameters
    ----------
    words : sequence of str
        None of them empty.

    Returns
    -------
    list of str
        One of ``B``, ``M``, ``E``, ``S`` per character of ``"".join(words)``.

    Raises
    ------
    DataError
        If a word is empty.

    Examples
    --------
    >>> words_to_tags(["structured", "is", "a"])[-5:]
    ['M', 'E', 'B', 'E', 'S']
    """
    tags: list[str] = []
    for i, word in enumerate(words):
        if not word:
            raise DataError(f"word {i} is empty: remove empty words")
        tags += "S" if len(word) == 1 else f"B{'M' * (len(word) - 2)}E"
    return tags


def tags_to_words(chars: Sequence[str], tags: Sequence[str]) -> list[str]:
    """Words of a sentence from the BMES tags of its characters (inverse of `words_to_tags`).

    Tags that are not valid are read as :meth:`Scheme.spans` reads them, so the words always join
    to the sentence.

    Parameters
    ----------
    chars : str or sequence of str
    tags : sequence of str
        As many as characters.

    Returns
    -------
    list of str

    Raises
    ------
    DataError
        If the lengths differ or a tag is not B, M, E or S.

    Examples
    --------
    >>> tags_to_words("isa", ["B", "E", "S"])
    ['is', 'a']
    """
    chars, tags = _listed(chars, "characters"), _listed(tags, "tags")
    strings.check("chars", chars)
    strings.check("tags", tags)
    if len(chars) != len(tags):
        raise DataError(f"{len(chars)} characters but {len(tags)} tags: expected one tag each")
    if "O" in tags:
        position = tags.index("O")
        raise DataError(f"position {position}: tag 'O' belongs to no word; expected B, M, E or S")
    return ["".join(chars[start:end]) for _, start, end in _SCHEMES["BMES"].spans(tags)]

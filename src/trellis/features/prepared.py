"""Prepared corpora: a corpus encoded once, in a file that training maps instead of loading.

The file is a container (:mod:`trellis.files.container`, magic ``b"TRELLISP"``) with all that
training takes from a corpus of S samples, N positions and E feature entries:

    offsets (S+1,) int64         sample s is the positions offsets[s] .. offsets[s+1]
    indptr (N+1,) int64          features in CSR form, see :class:`trellis.features.Encoded`;
    indices (E,) int32           with E about 20 N, most of the file
    values (E,) float32          or empty, when all features are indicators
    labels.ids (N,) int32        label sets, see :class:`trellis.corpus.Labels`
    labels.table (R, L) bool
    classes.*, encoder.*         names of the labels; the vocabulary of features
    edges (m, 2) int64           pairs of positions, if the samples are trees or graphs
    edge_types.codes (m,) int32  the type of each edge, if they have types: number of a name
    edge_types.blob, .offsets    in this table
    edge_features.indptr (m+1,), .indices, .values    features of edges, if they have any: CSR
    edge_features.blob, .offsets                      and their names

A file without edges is, byte for byte, what releases before them wrote.

Neither writing nor training needs memory for the entries: parts of the corpus are encoded one after
the other and go to scratch files without a name in the target's folder, from where the container
is written in one go; training reads the pages it visits, and the system may drop them again.
"""

from __future__ import annotations

import copy
import operator
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from trellis.corpus import Column, Corpus, Features, Label, Labels
from trellis.corpus.corpus import FLOAT32_LIMIT
from trellis.corpus.graphs import take_in_any
from trellis.corpus.label_values import packed_labels, unpacked_labels
from trellis.corpus.labels import check_label_count
from trellis.domains import instance, nothing, one_of, sequence_of, text
from trellis.errors import ColumnError, CorruptModelError, DataError
from trellis.features.encoded import Encoded, Encoder, subset
from trellis.features.encoder import TemplateEncoder, encoder_for, unlabelled_text
from trellis.features.state import columns_used, encoder_from_state
from trellis.features.templates import as_templates, is_default
from trellis.files import atomic_write
from trellis.files.container import PREPARED, loading, map_container, stream_container
from trellis.files.stored import (
    check_range,
    header_value,
    input_layout,
    pack_strings,
    take,
    unpack_strings,
)

__all__ = ["Prepared", "is_prepared", "prepare"]

_BLOCK = 1 << 20  # numbers checked at once


@dataclass(frozen=True, eq=False, repr=False)
class Prepared:
    """A prepared corpus; ``fit`` takes it in place of the corpus it was made of.

    Parameters
    ----------
    encoder : Encoder
        The vocabulary of features.
    encoded : Encoded
        Features of all positions, mapped from the file.
    corpus : Corpus
        All else that is learned from, mapped from the file: bounds of the samples, label sets,
        edges and their types. It has no columns.
    features : str or list of str
        What was given to :func:`prepare`.
    input_format : dict or None
        How the command line read the corpus.
    columns : tuple of str
        The columns that the samples had.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from trellis import ChainCRF, Corpus
    >>> from trellis.features import Prepared, prepare
    >>> corpus = Corpus.from_columns({"word": [["a", "b"], ["b"]]}, [["X", "Y"], ["Y"]])
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "train.prepared"
    >>> prepare(corpus, file, "word[-1..1]")
    <Prepared: 2 samples; 3 positions; 4 features; 2 labels>
    >>> ChainCRF(random_state=0).fit(Prepared.open(file)).predict([["b"]])
    [['Y']]
    """

    encoder: Encoder
    encoded: Encoded
    corpus: Corpus
    features: str | list[str] = "auto"
    input_format: dict[str, Any] | None = None
    columns: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        instance(Encoder).check("encoder", self.encoder)
        instance(Encoded).check("encoded", self.encoded)
        instance(Corpus).check("corpus", self.corpus)
        (text | sequence_of(text, "a list of strings")).check("features", self.features)
        (nothing | instance(dict)).check("input_format", self.input_format)
        if self.corpus.labels is None:
            raise DataError("the corpus has no labels: only labelled data can be trained on")
        if self.encoded.n_features > self.encoder.n_features:
            raise DataError(
                f"feature indices go up to {self.encoded.n_features - 1}, but the encoder knows "
                f"{self.encoder.n_features} features"
            )
        if not np.array_equal(self.encoded.offsets, self.corpus.offsets):
            raise DataError("the features and the corpus have other samples")

    @classmethod
    def open(cls, path: str | os.PathLike[Any], *, verify: bool = True) -> Self:
        """Map a file written by :func:`prepare`.

        Parameters
        ----------
        path
            The file. Do not change it in place while it is in use.
        verify
            True reads the whole file once, in constant memory, to compare its checksum and to
            check every number. False skips that for the feature entries, which are most of a
            file, and checks the rest: truncation is still found, but damaged entries are not, and
            training on them can crash. Use it only for files that you have just verified or
            written.

        Raises
        ------
        DataError
            If the file is damaged, truncated, no prepared corpus, or from a newer Trellis.
        OSError
            If it cannot be opened; ``FileNotFoundError`` if it is missing.
        """
        header, arrays = map_container(path, PREPARED, verify=verify)
        with loading(path, PREPARED):
            return cls(*_build(header, arrays, verify=verify))

    def __len__(self) -> int:
        return len(self.corpus)

    @property
    def n_positions(self) -> int:
        """Number of positions (tokens) of all samples."""
        return self.corpus.n_positions

    @property
    def labels(self) -> Labels:
        """Label sets of all positions."""
        assert self.corpus.labels is not None
        return self.corpus.labels

    def __repr__(self) -> str:
        edges = "" if self.corpus.edges is None else f"; {len(self.corpus.edges)} edges"
        return (
            f"<Prepared: {len(self)} samples; {self.n_positions} positions; "
            f"{self.encoder.n_features} features; {len(self.labels.classes)} labels{edges}>"
        )

    def encoder_for(self, features: Any) -> Encoder:
        """Return a copy of the encoder, for a model with ``features=``; they must be the same."""
        if isinstance(features, str | None) and features in (None, "auto", self.features):
            return copy.deepcopy(self.encoder)
        if not isinstance(self.encoder, TemplateEncoder):
            raise DataError(
                "features= names templates over columns, but the prepared corpus holds ready-made "
                "features; leave features='auto'"
            )
        own = self.encoder.templates
        try:
            same = as_templates(features, own.columns()) == own
        except ColumnError:
            same = False
        if not same:
            raise DataError(
                "features= differs from the templates the corpus was prepared with "
                f"({own.text().replace(chr(10), '; ')}); leave features='auto', or prepare it anew"
            )
        return copy.deepcopy(self.encoder)

    def check_made_by(self, encoder: Encoder) -> None:
        """Raise a DataError unless feature ids mean the same to this encoder."""
        (header, arrays), (own_header, own) = encoder.state(), self.encoder.state()
        same = header == own_header and arrays.keys() == own.keys()
        if not (same and all(np.array_equal(arrays[name], own[name]) for name in own)):
            raise DataError(
                "warm_start: the model has other features than the prepared corpus; go on with "
                "the prepared corpus it was trained on, or with a corpus that is not prepared"
            )


def prepare(
    corpus: Any,
    path: str | os.PathLike[Any],
    features: Any = "auto",
    *,
    y: Sequence[Sequence[Label]] | None = None,
    edges: Sequence[Any] | None = None,
    edge_types: Sequence[Sequence[str]] | None = None,
    edge_features: Sequence[Any] | None = None,
    unlabelled: Any = None,
    dictionaries: Mapping[str, Any] | None = None,
    input_format: dict[str, Any] | None = None,
    max_labels: int | None = None,
    structure: str = "chain",
) -> Prepared:
    """Encode a labelled corpus into a file, for training that need not fit into memory.

    Memory is needed for the corpus and the vocabulary, not for the features; on the disk, twice
    the size of the file while it is written. Edges are kept as they are: whether a model can learn
    from them is for its ``fit`` to say, and chains do not look at them.

    Parameters
    ----------
    corpus : Corpus, list of samples, or list of pairs (sample, edges)
        Labelled samples, none of them empty.
    path
        The file; an old one is replaced only when the new one is complete.
    features
        Templates, or ``"auto"``, as a model takes them.
    y, edges, edge_types, edge_features
        Labels, edges, their types and features, as ``fit`` takes them, unless the corpus has them.
    unlabelled, dictionaries
        Raw text and lists that features are learned from, too, as ``fit`` takes them.
    input_format
        How the command line read the corpus, for models trained on it.
    max_labels : int, optional
        Most distinct labels, as a model takes it.
    structure : {"chain", "tree", "graph"}
        What models are to learn: with "tree", the default templates are those of trees.

    Returns
    -------
    Prepared
        The file, opened.

    Raises
    ------
    DataError
        If the corpus cannot be used for training, or does not have what the templates need.
    OSError
        If the file cannot be written.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from trellis import Corpus
    >>> from trellis.features import prepare
    >>> corpus = Corpus.from_columns({"word": [["a", "b", "a"]]}, [["X", "Y", "X"]])
    >>> prepared = prepare(corpus, pathlib.Path(tempfile.mkdtemp()) / "file", "word; word[-1]")
    >>> prepared.encoded.indices
    array([0, 1, 2, 0, 3], dtype=int32)

    Trees, with the head of each word:

    >>> from trellis import TreeCRF
    >>> X, y = [["cats", "sleep"], ["bark", "dogs"]], [["N", "V"], ["V", "N"]]
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "trees"
    >>> prepared = prepare(X, file, "word", y=y, edges=[[(0, 1)], [(1, 0)]])
    >>> prepared
    <Prepared: 2 samples; 4 positions; 4 features; 2 labels; 2 edges>
    >>> TreeCRF(random_state=0).fit(prepared).predict([["dogs", "sleep"]], edges=[[(0, 1)]])
    [['N', 'V']]
    """
    (nothing | instance(dict)).check("input_format", input_format)
    one_of("chain", "tree", "graph").check("structure", structure)
    symbols = None if is_default(features) else True
    given = take_in_any(corpus, y, edges, edge_types, edge_features, symbols=symbols)
    corpus = given.corpus
    labels = _checked_labels(corpus)
    check_label_count(len(labels.classes), max_labels)
    raw = None if unlabelled is None else unlabelled_text(unlabelled)
    encoder = encoder_for(features, corpus, raw, dictionaries, structure=structure)
    plain: str | list[str] = "auto"
    if isinstance(features, str):
        plain = features
    elif isinstance(encoder, TemplateEncoder) and features is not None:
        plain = encoder.templates.text().split("\n")  # lines, since a lone «pos» would name a set
    folder = Path(os.path.realpath(os.fsdecode(path))).parent
    with atomic_write(path) as file, _DiskParts(folder) as parts:
        encoder.learn_into(corpus, parts)
        encoder_header, encoder_arrays = encoder.state()
        header = {
            "encoder": encoder_header,
            "features": plain,
            "input_format": input_format or {},
        }
        arrays = {"offsets": corpus.offsets, **parts.arrays()}
        arrays |= {"labels.ids": labels.ids, "labels.table": labels.table}
        if given.fields != columns_used(encoder):
            header["columns"] = list(given.fields)
        described, packed = packed_labels(labels.classes)
        header |= described
        arrays |= packed
        arrays |= {f"encoder.{key}": array for key, array in encoder_arrays.items()}
        if corpus.edges is not None:
            arrays["edges"] = corpus.edges.astype(np.int64)
        if (types := corpus.edge_types) is not None:
            arrays["edge_types.codes"] = types.codes.astype(np.int32)
            arrays |= pack_strings(types.values, "edge_types.")
        if (own := corpus.edge_features) is not None:
            none = np.zeros(0, np.float32)
            arrays |= {
                "edge_features.indptr": own.indptr.astype(np.int64),
                "edge_features.indices": own.indices.astype(np.int32),
                "edge_features.values": none if own.values is None else own.values,
                **pack_strings(own.names, "edge_features."),
            }
        stream_container(file, header, arrays, PREPARED)
    return Prepared.open(path, verify=False)


def is_prepared(path: str | os.PathLike[Any]) -> bool:
    """Tell a prepared corpus from other files, by its first bytes."""
    file = Path(os.fsdecode(path))
    if not file.is_file():  # what is read from a pipe would be lost
        return False
    try:
        with file.open("rb") as opened:
            return opened.read(len(PREPARED.magic)) == PREPARED.magic
    except OSError:
        return False  # whoever reads it next says what is wrong


def _checked_labels(corpus: Corpus) -> Labels:
    if corpus.labels is None:
        raise DataError("the corpus has no labels: only labelled data can be prepared for training")
    corpus.check_samples("prepare")
    if not corpus.labels.classes:
        raise DataError("no position is annotated: there is nothing to learn from")
    return corpus.labels


# ---------------------------------------------------------------------------- writing


class _DiskParts:
    """Parts on disk: their arrays one after the other, in scratch files that have no name."""

    def __init__(self, folder: Path) -> None:
        with ExitStack() as stack:
            # In the target's folder, because the usual one may be a disk in memory.
            self._indptr, self._indices, self._values = (
                stack.enter_context(tempfile.TemporaryFile(dir=folder)) for _ in range(3)
            )
            self._indptr.write(bytes(8))
            self._stack = stack.pop_all()
        self._sizes: list[tuple[int, int]] = []  # positions and entries of each part
        self._n_positions = self._n_entries = 0
        self._valued = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def append(self, part: Encoded) -> None:
        """Write a part behind the others."""
        _write_at(self._indptr, self._n_positions + 1, part.indptr[1:] + self._n_entries)
        _write_at(self._indices, self._n_entries, part.indices)
        if part.values.size:
            self._valued = True
            _write_at(self._values, self._n_entries, part.values)
        self._sizes.append((len(part.indptr) - 1, len(part.indices)))
        self._n_positions += len(part.indptr) - 1
        self._n_entries += len(part.indices)

    def __iter__(self) -> Iterator[Encoded]:
        return self._read(self._sizes)

    def _read(self, sizes: list[tuple[int, int]]) -> Iterator[Encoded]:
        nowhere = np.zeros(1, np.int64)  # where samples end matters to none who reads parts
        position = entry = 0
        for n, m in sizes:
            ends = _read_at(self._indptr, np.int64, position + 1, n) - entry
            indices = _read_at(self._indices, np.int32, entry, m)
            values = _read_at(self._values, np.float32, entry, m if self._valued else 0)
            yield Encoded.made(nowhere, np.append(0, ends), indices, values)
            position, entry = position + n, entry + m

    def rewrite(self, change: Callable[[Encoded], Encoded]) -> None:
        """Change every part in place: as none grows, writing never overtakes reading."""
        old, self._sizes = self._sizes, []
        self._n_positions = self._n_entries = 0
        for part in self._read(old):
            self.append(change(part))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All parts joined, as arrays mapped from the scratch files."""
        n_values = self._n_entries if self._valued else 0
        return {
            "indptr": _mapped(self._indptr, np.int64, self._n_positions + 1),
            "indices": _mapped(self._indices, np.int32, self._n_entries),
            "values": _mapped(self._values, np.float32, n_values),
        }


def _write_at(file: IO[bytes], index: int, array: NDArray[Any]) -> None:
    file.seek(index * array.itemsize)
    file.write(array.tobytes())


def _read_at(file: IO[bytes], dtype: DTypeLike, index: int, n: int) -> NDArray[Any]:
    size = np.dtype(dtype).itemsize
    file.seek(index * size)
    return np.frombuffer(file.read(n * size), dtype)


def _mapped(file: IO[bytes], dtype: DTypeLike, n: int) -> NDArray[Any]:
    file.flush()
    return np.memmap(file, dtype, "r", shape=(n,)) if n else np.zeros(0, dtype)


# ---------------------------------------------------------------------------- reading


def _build(
    header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], *, verify: bool
) -> tuple[Encoder, Encoded, Corpus, str | list[str], dict[str, Any] | None, tuple[str, ...]]:
    """Check everything and put it together; without ``verify``, entries are taken on trust."""
    offsets = take(arrays, "offsets", np.int64, (None,))
    if len(offsets) < 2:
        raise CorruptModelError("there are no samples")
    _check_bounds(offsets, operator.le, "sample offsets")
    n = int(offsets[-1])
    indptr = take(arrays, "indptr", np.int64, (n + 1,))
    _check_bounds(indptr, operator.lt, "feature pointers")
    indices = take(arrays, "indices", np.int32, (int(indptr[-1]),))
    values = take(arrays, "values", np.float32, (None,), finite=False)
    if values.size not in (0, indices.size):
        raise CorruptModelError(f"{values.size} values for {indices.size} features")
    own = {name: np.array(array) for name, array in subset(arrays, "encoder.").items()}
    encoder = encoder_from_state(header_value(header, "encoder", dict), own)
    if verify:
        check_range(indices, 0, encoder.n_features, "feature ids")
        check_range(values, -FLOAT32_LIMIT, FLOAT32_LIMIT, "feature values")
    classes = unpacked_labels(header, arrays)
    labels = Labels.from_table(
        take(arrays, "labels.ids", np.int32, (n,)),
        np.array(take(arrays, "labels.table", np.bool_, (None, len(classes)))),
        classes,
    )
    features = header.get("features")
    if not isinstance(features, str):
        features = header_value(header, "features", list, items=str)
    encoded = Encoded.made(offsets, indptr, indices, values)
    vars(encoded)["n_features"] = encoder.n_features  # known now, or taken on trust
    edges = take(arrays, "edges", np.int64, (None, 2)) if "edges" in arrays else None
    types = None
    if "edge_types.codes" in arrays:
        codes = take(arrays, "edge_types.codes", np.int32, (None,))
        types = Column(codes, unpack_strings(arrays, "edge_types."))
    attributes = None
    if "edge_features.indptr" in arrays:
        stored = take(arrays, "edge_features.values", np.float32, (None,), finite=False)
        attributes = Features(
            take(arrays, "edge_features.indptr", np.int64, (None,)),
            take(arrays, "edge_features.indices", np.int32, (None,)),
            stored if stored.size else None,
            unpack_strings(arrays, "edge_features."),
        )
    corpus = Corpus(  # checks the rest
        offsets, labels=labels, edges=edges, edge_types=types, edge_features=attributes
    )
    return encoder, encoded, corpus, features, input_layout(header), columns_used(encoder, header)


def _check_bounds(array: NDArray[np.int64], wrong: Callable[[Any, Any], Any], what: str) -> None:
    """Check that pointers begin with 0 and that none is followed by a ``wrong`` one."""
    fine = len(array) > 0 and array[0] == 0
    for a in range(0, len(array), _BLOCK):  # a comparison of all would need memory of its own
        part = array[a : a + _BLOCK + 1]
        fine = fine and not wrong(part[1:], part[:-1]).any()
    if not fine:
        raise CorruptModelError(f"{what} are not in order")

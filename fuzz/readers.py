"""Mutated inputs of every reader: refused with a documented error, or good for all use.

A *family* has seeds, small valid texts, and one function from bytes to an outcome: it reads them
and, if they are accepted, uses what was read: writes it and reads it again, which must give the
same; encodes it, learns from it and predicts. The same function is run under coverage guidance by
:mod:`fuzz.guided`.
"""

from __future__ import annotations

import io
import logging
import random
import shutil
import tempfile
import warnings
import weakref
import zlib
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from fuzz import BrokenPromiseError
from fuzz.limits import limited_memory
from fuzz.text_damage import damaged_text
from trellis import (
    ChainPerceptron,
    Corpus,
    GraphPerceptron,
    Templates,
    read_conll,
    read_conllu,
    read_crfsuite,
    read_graphs,
    read_jsonl,
    read_segmented,
    write_conll,
    write_conllu,
    write_crfsuite,
)
from trellis.cheap import AnnotationLog
from trellis.cheap.annotation_log import from_json, to_json
from trellis.compat import read_crfpp_model, read_wapiti_model
from trellis.corpus import Features, get_scheme, write_graphs, write_jsonl
from trellis.corpus.csv_table import format_csv, read_csv
from trellis.corpus.schemes import tags_to_words
from trellis.errors import DataError, TrellisError
from trellis.estimator import parameters_of
from trellis.experts import MajorityVote, as_outputs, read_answers
from trellis.features import TemplateEncoder, read_crfpp
from trellis.files.registry import ESTIMATORS, class_named
from trellis.files.table import read_table
from trellis.files.tuning_log import TuningLog
from trellis.regression import areas_graph, edges_graph
from trellis.regression.areas import read_areas
from trellis.structures import best, labelling_score, read_uai, write_uai
from trellis.tracking import NearestNeighbour, read_ctc, read_detections

__all__ = ["FAMILIES", "Family", "Scratch", "cases", "corpora", "outcome_of"]


class Scratch:
    """A file that a family may write; new for every process, in memory where that is possible."""

    def __init__(self) -> None:
        memory = Path("/dev/shm")
        self.folder = Path(tempfile.mkdtemp(dir=memory if memory.is_dir() else None))
        self.path = self.folder / "file"
        weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)

    def of(self, data: bytes) -> Path:
        """The file with this content."""
        self.path.write_bytes(data)
        return self.path


@dataclass(frozen=True)
class Family:
    """Readers of one format.

    Parameters
    ----------
    seeds : tuple of str or bytes
        Small valid inputs.
    use : callable
        Reads bytes and does with what they say all that can be done.
    covers : tuple of str
        Names of the public readers that it goes through.
    """

    seeds: tuple[str | bytes, ...]
    use: Callable[[bytes, Scratch], None]
    covers: tuple[str, ...]

    def starts(self) -> list[bytes]:
        """The seeds as bytes."""
        return [seed.encode() if isinstance(seed, str) else seed for seed in self.seeds]


def outcome_of(family: Family, data: bytes, scratch: Scratch) -> str:
    """«refused» or «used», or whatever the readers raise."""
    with limited_memory():
        try:
            family.use(data, scratch)
        except TrellisError:
            return "refused"
    return "used"


def _seldom(data: bytes, times: int) -> bool:
    """Whether this input is one of those that heavy use is made of: one in so many."""
    return zlib.crc32(data) % times == 0


def _check(good: bool, what: str) -> None:
    if not good:
        raise BrokenPromiseError(what)


# ------------------------------------------------------------------------- corpora


def _alike(a: Corpus, b: Corpus) -> bool:
    """Whether two corpora say the same."""
    return (
        np.array_equal(np.unique(a.offsets), np.unique(b.offsets))  # empty samples leave no trace
        and {n: c.strings() for n, c in a.columns.items()}
        == {n: c.strings() for n, c in b.columns.items()}
        and (None if a.labels is None else a.labels.tolist())
        == (None if b.labels is None else b.labels.tolist())
        and np.array_equal(_edges(a), _edges(b))
        and _types(a) == _types(b)
        and _attributes(a.features) == _attributes(b.features)
        and _edge_attributes(a) == _edge_attributes(b)
    )


def _edges(corpus: Corpus) -> Any:
    """Edges sample by sample, as files have them."""
    if corpus.edges is None:
        return np.zeros((0, 2), np.int64)
    owner = np.searchsorted(corpus.offsets, corpus.edges[:, 0], side="right")
    return corpus.edges[np.argsort(owner, kind="stable")]


def _types(corpus: Corpus) -> list[str]:
    if corpus.edges is None or corpus.edge_types is None:
        return []
    owner = np.searchsorted(corpus.offsets, corpus.edges[:, 0], side="right")
    names = corpus.edge_types.strings()
    return [names[e] for e in np.argsort(owner, kind="stable")]


def _edge_attributes(corpus: Corpus) -> list[dict[str, float]]:
    """Attributes of each edge, sample by sample; nothing if no edge has any."""
    if corpus.edges is None or corpus.edge_features is None:
        return []
    owner = np.searchsorted(corpus.offsets, corpus.edges[:, 0], side="right")
    rows = _attributes(corpus.edge_features)
    return [rows[e] for e in np.argsort(owner, kind="stable")] if any(rows) else []


def _attributes(features: Features | None) -> list[dict[str, float]]:
    """Attributes of each position; one that stands there twice counts as the sum."""
    if features is None:
        return []
    values = np.ones(len(features.indices)) if features.values is None else features.values
    rows = []
    for a, b in pairwise(features.indptr.tolist()):
        row: dict[str, float] = {}
        for i, value in zip(features.indices[a:b], values[a:b], strict=True):
            row[features.names[i]] = row.get(features.names[i], 0.0) + float(value)
        rows.append(row)
    return rows


def _learn(corpus: Corpus, data: bytes, features: str) -> None:
    """Learn from a corpus and label it; now and then, since that takes longer than to read it."""
    if corpus.features is None and _seldom(data, 4):
        TemplateEncoder(Templates.parse(features)).learn(corpus)
    if not _seldom(data, 16) or corpus.labels is None:
        return
    text = "auto" if corpus.features is not None else features
    kind = ChainPerceptron if corpus.edges is None else GraphPerceptron
    model = kind(text, max_passes=1, random_state=0).fit(corpus)
    answers = model.predict(corpus)
    _check([len(y) for y in answers] == corpus.lengths.tolist(), "a label for each position")
    allowed = set(model.classes_)
    _check(all(set(y) <= allowed for y in answers), "a label that was never there")


def corpora(
    read: Callable[[Any], Corpus], write: Callable[[Path, Corpus], None], features: str
) -> Callable[[bytes, Scratch], None]:
    """What is done with a corpus: written, read again, encoded and learned from."""

    def use(data: bytes, scratch: Scratch) -> None:
        corpus = read(io.BytesIO(data))
        repr(corpus)
        try:
            write(scratch.path, corpus)
        except DataError:  # what one format reads another cannot hold
            pass
        else:
            _check(_alike(read(scratch.path), corpus), "written and read again, it is another")
        _learn(corpus, data, features)

    return use


_COLUMNS = ("word", "pos", "label")

_CONLL = "The DT B-NP\ncat NN I-NP\nsat VB B-VP\n\nIt PR B-NP\nran VB _\n\n"
_CONLLU = (
    "# sent_id = 1\n"
    "1\tCats\tcat\tNOUN\tNNS\tNumber=Plur\t2\tnsubj\t_\t_\n"
    "2\tsleep\tsleep\tVERB\tVBP\t_\t0\troot\t_\tSpaceAfter=No\n\n"
    "1-2\tdella\t_\t_\t_\t_\t_\t_\t_\t_\n"
    "1\tdi\tdi\tADP\tE\t_\t2\tcase\t_\t_\n"
    "2\tla\til\tDET\tRD\t_\t0\troot\t_\t_\n"
    "2.1\tx\tx\t_\t_\t_\t_\t_\t_\t_\n\n"
)
_CRFSUITE = "N\tw=cat\tlen:3\tw\\:x\\\\\nV\tw=sat\tlen:-0.5\n\nN\tw=dog\n"
_JSONL = (
    '{"word": ["the", "cat"], "pos": ["D", "N"], "labels": ["A", ["A", "B"]]}\n'
    '{"word": ["it"], "pos": ["P"], "labels": [null]}\n'
)
_FEATURES = (
    '{"features": [{"w": "The", "n": 1.5}, {"cap": true}], "labels": ["D", "N"]}\n'
    '{"features": [["a", "b"]], "labels": ["D"]}\n'
)
_SEGMENTED = "我 喜欢 吃 苹果\nab c def\n\n我们 吃 了\n"
_GRAPHS = (
    "a p X\nb q Y\nc p X\n@edge 1 2 left | far:2.5 near\n@edge 3 2\n\nd p X\ne q Y\n"
    "@edge 2 1 right | a\\:b\n"
)


_CSV = 's,word,len,tag\n1,The,3,D\n2,"a, b",4,N\n1,cat,3,N\n2,sat,3,\n'


def _use_csv(data: bytes, scratch: Scratch) -> None:
    corpus = read_csv(scratch.of(data), "tag", group="s")
    assert corpus.labels is not None
    labels = [[str(label) for label in sample] for sample in corpus.label_lists()]
    text = format_csv(scratch.of(data), "s", {"predicted": labels})
    again = read_csv(scratch.of(text.encode()), "predicted", group="s", columns=["s"])
    _check(len(again) == len(corpus), "other samples than were read")
    _learn(corpus, data, "auto")


def _use_segmented(data: bytes, scratch: Scratch) -> None:
    corpus = read_segmented(io.BytesIO(data))
    assert corpus.labels is not None
    samples = zip(corpus, corpus.label_lists(), strict=True)
    words = [tags_to_words(s.columns["char"], [str(y) for y in tags]) for s, tags in samples]
    text = "\n".join(" ".join(sentence) for sentence in words)
    again = read_segmented(scratch.of(text.encode()))
    _check(_alike(corpus, again) or text.startswith("\ufeff"), "other words than were read")
    plain = read_segmented(io.BytesIO(data), segmented=False)
    _check(plain.columns["char"].strings() == corpus.columns["char"].strings(), "characters")
    _learn(corpus, data, "char[-1..1]; wordlist(char, 1..3)")


# ------------------------------------------------------------------------- templates

_CORPUS = read_conll(io.BytesIO(_CONLL.encode()), _COLUMNS, "label")


def _use_templates(templates: Templates) -> None:
    again = Templates.parse(templates.text())
    _check(again == templates, "their text parses to other templates")
    encoder = TemplateEncoder(templates)
    encoded = encoder.learn(_CORPUS)
    _check(np.array_equal(encoder.encode(_CORPUS).indices, encoded.indices), "encoded otherwise")
    encoder.names(np.arange(encoder.n_features))


def _use_language(data: bytes, _: Scratch) -> None:
    _use_templates(Templates.parse(data.decode("utf-8", "replace")))


def _use_crfpp(data: bytes, scratch: Scratch) -> None:
    _use_templates(read_crfpp(scratch.of(data), ["word", "pos"]))


def _use_crfpp_model(data: bytes, scratch: Scratch) -> None:
    _use_model(read_crfpp_model(scratch.of(data), ["word", "pos"]))


def _use_wapiti_model(data: bytes, scratch: Scratch) -> None:
    _use_model(read_wapiti_model(scratch.of(data), ["word", "pos"]))


def _use_model(model: Any) -> None:
    corpus = Corpus.from_columns({"word": [["the", "cat"]], "pos": [["D", "N"]]})
    _check(len(model.predict(corpus)[0]) == 2, "a label for each position")


_CRFPP_MODEL = (
    "version: 100\ncost-factor: 1\nmaxid: 8\nxsize: 2\n\nN\nV\n\nU00:%x[0,0]\nB\n\n"
    "4 B\n0 U00:the\n2 U00:cat\n\n" + "".join(f"{k / 4:.4f}\n" for k in range(8))
)
_WAPITI_MODEL = (
    "#mdl#2#2\n#rdr#2/2/0\n11:u00:%x[0,0],\n1:b,\n#qrk#2\n1:N,\n1:V,\n#qrk#2\n7:u00:the,\n1:b,\n"
    "0=0x1p+0\n3=-0x1.8p+1\n"
)
_LANGUAGE = (
    "# chunking\nedges = mark\nmin_count = 1\nword[-2..2]\nlower(word) & pos[-1..1] @ min_count=2\n"
    'prefix(word, 1..3); suffix(word, 2)\nshort_shape(word)[-1..1]; test(word, "^[A-Z]") @ edge\n'
    "word[0] == word[1]; bos; eos; bias\n"
)
_TEMPLATE = (
    "# Unigram\nU00:%x[-2,0]\nU01:%x[-1,0]/%x[0,1]\nU02:%X[0,0]\n"
    'U03:%t[0,0,"^\\u"]\nU04:%m[0,0,"..?$"]\nB\nB01:%x[0,1]\n*05:%x[1,0]\n'
)


# ------------------------------------------------------------------------- tables and tracking

_TABLE = "x,y,name,target\n" + "".join(f"{i},{i % 3}.5,n{i},{i * i}\n" for i in range(12))
_MARK = b"=====\n"
_OBJECTS = (
    "sequence,frame,id,x,y,area\na,0,1,5,5,10\na,0,2,30,8,\na,1,1,6,5,11\na,1,2,29,9,9\n"
    "a,1,3,33,9,8\na,2,1,7,6,12\nb,0,1,1,1,5\nb,1,4,2,2,6\n"
)
_AREAS = (
    '{"type": "FeatureCollection", "features": [\n'
    '{"type": "Feature", "id": "A", "properties": {"id": 1, "name": "x"}, "geometry": {"type":'
    ' "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]]]}},\n'
    '{"type": "Feature", "properties": {"id": 2, "name": "y"}, "geometry": {"type":'
    ' "MultiPolygon", "coordinates": [[[[1, 0], [2, 0], [2, 1], [1, 1], [1, 0]]]]}}]}\n'
)
_SPOTS = (
    "ID;FRAME;POSITION_X;POSITION_Y;TRACK_ID;parent\nID;Frame;X;Y;Track;\n;;(px);(px);;\n"
    "5;0;1,5;2;1;\n6;1;1,5;2;2;1\n7;1;9;2;3;1\n8;3;9;2;3;1\n"
)
_TRACKMATE = (
    '<TrackMate><Model><AllSpots><SpotsInFrame frame="0">\n'
    '<Spot ID="1" FRAME="0" POSITION_X="1.5" POSITION_Y="2" VISIBILITY="1"/>\n'
    '<Spot ID="2" FRAME="1" POSITION_X="1.5" POSITION_Y="2">1 2</Spot>\n'
    '<Spot ID="3" FRAME="1" POSITION_X="9" POSITION_Y="2"/>\n</SpotsInFrame></AllSpots>\n'
    '<AllTracks><Track TRACK_ID="0"><Edge SPOT_SOURCE_ID="1" SPOT_TARGET_ID="2"/>'
    '<Edge SPOT_SOURCE_ID="3" SPOT_TARGET_ID="1"/></Track></AllTracks>\n'
    '<FilteredTracks><TrackID TRACK_ID="0"/></FilteredTracks></Model></TrackMate>\n'
)
_LINKS = (
    "sequence,frame,source_id,target_id,kind\na,0,1,1,move\na,0,2,2,division\na,0,2,3,division\n"
)
_TRACKS = "1 0 4 0\n2 5 8 1\n3 5 9 1\n4 0 9 0\n"


def _use_table(data: bytes, _: Scratch) -> None:
    table = read_table(io.BytesIO(data))
    _check(len({len(column) for column in table.columns.values()}) == 1, "columns of one length")
    for name in table.columns:
        table.texts(name)
        if table.is_numeric(name):
            values = table.checked_numbers(name, missing=True)
            _check(not np.isinf(values).any(), "a number that is not finite")


def _use_graph(S: Any) -> None:
    _check(bool(np.isfinite(S.data).all() and (S.data > 0).all()), "similarities above 0")
    _check(abs(S - S.T).sum() == 0 and not S.diagonal().any(), "a symmetric graph")


def _use_areas(data: bytes, _: Scratch) -> None:
    areas = read_areas(io.BytesIO(data))
    if sum(map(len, areas.rings)) > 10_000:
        return
    for rule in ("queen", "rook"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of islands
            S = areas_graph(areas, rule=rule)
        _use_graph(S)
    back = areas.subset(areas.ids[::-1])
    same = np.array_equal(back.centres()[::-1], areas.centres())
    _check(same, "areas in another order are other areas")


def _use_edges(data: bytes, _: Scratch) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _use_graph(edges_graph(io.BytesIO(data), ["a", "b", "3", "1", "2"]))


def _use_regress(data: bytes, scratch: Scratch) -> None:
    """As the command does it, from the file to the answers."""
    from trellis.cli.main import main

    _use_table(data, scratch)
    if _seldom(data, 256):
        words = ["regress", str(scratch.of(data)), "--target", "target", "--coords", "x,y"]
        words += ["--folds", "2", "--model", "gcrf", "--compare", "lr", "--quiet"]
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            code = main(words)
        _check(code in (0, 1, 2), f"ended with {code}")


def _use_detections(data: bytes, _: Scratch) -> None:
    objects, _found, links = data.partition(_MARK)
    pairs = read_detections(io.BytesIO(objects), io.BytesIO(links) if links else None)
    read_detections(io.BytesIO(objects), io.BytesIO(links) if links else None, complete=False)
    for pair in pairs:
        repr(pair)
    if _seldom(data, 4):
        tracker = NearestNeighbour(max_distance=10.0)
        tracker.fit(pairs)
        repr(tracker.predict(pairs).links)


def _use_ctc(data: bytes, scratch: Scratch) -> None:
    tracks = read_ctc(scratch.of(data), "a")
    numbers = {track.track for track in tracks}
    _check(len(numbers) == len(tracks), "two tracks of one number")
    _check(all(t.parent in numbers | {-1} and t.begin <= t.end for t in tracks), "a track")


# ------------------------------------------------------------------------- experts


def _use_answers(data: bytes, scratch: Scratch) -> None:
    """What is read from a file twice, written, and read again, of whatever format it seems."""
    answers = read_answers([io.BytesIO(data), io.BytesIO(data)])
    _check(len(answers) == len(answers.answers[0]) == len(answers.answers[1]), "one a sample")
    _check(answers.answers[0] == answers.answers[1], "the same file says the same")
    answers.write(scratch.path, answers.answers[0])
    again = read_answers(
        [scratch.path] * 2, kind=answers.kind, fields=answers.fields, format=answers.format
    )
    _check(again.answers == answers.answers, "it is another")
    if _seldom(data, 4) and answers.kind in ("labels", "single", "fields"):
        rows = answers.answered
        outputs = as_outputs(answers.sequences(rows))
        "".join(outputs.labels).encode()  # they can be written
        gold = [[label or "a" for label in answers.answers[0][i] or []] for i in rows]
        MajorityVote().fit(outputs, gold).predict(outputs)


def _use_answer_table(data: bytes, scratch: Scratch) -> None:
    """A table of several systems, with a column of their combined answers."""
    answers = read_answers(io.BytesIO(data), format="csv", systems=["a", "b"], gold="gold")
    answers.write(scratch.path, answers.answers[0], None)
    again = read_answers(
        scratch.path, format="csv", systems=["combined"], kind=answers.kind, fields=answers.fields
    )
    _check(again.answers[0] == answers.answers[0], "it is another")


# ------------------------------------------------------------------------- logs, words


def _use_tuning_log(data: bytes, scratch: Scratch) -> None:
    log = TuningLog(scratch.of(data), "abc")
    log.add("new", {"l2": 1.0}, 0, 0.5, 0.1)
    again = TuningLog(scratch.path, "abc")
    _check(again.done == log.done, "a fit was lost")


def _tuning_log() -> str:
    scratch = Scratch()
    log = TuningLog(scratch.path, "abc")
    log.add("k1", {"l2": 1.0}, 0, 0.5, 0.1)
    log.add("k2", {"l2": 0.5}, None, 0.25, 3)
    return scratch.path.read_text()


def _use_annotation(data: bytes, _: Scratch) -> None:
    try:
        value = from_json(data.decode("utf-8", "replace"))
    except (AttributeError, RecursionError, TypeError, ValueError) as error:  # of a damaged log
        raise DataError(str(error)) from None
    try:
        text = to_json(value)
    except DataError:
        return
    _check(to_json(from_json(text)) == text, "written and read again, it is another")


def _use_annotation_log(data: bytes, scratch: Scratch) -> None:
    for leftover in scratch.folder.glob("file-*"):
        leftover.unlink()
    with AnnotationLog(scratch.of(data)) as log:
        _ = log.metadata
        before = log.entries()
        number = log.add(3, ["N", None])
    with AnnotationLog(scratch.path) as log:
        after = log.entries()
    _check(after[-1].number == number and len(after) == len(before) + 1, "an answer was lost")


def _annotation_log() -> bytes:
    scratch = Scratch()
    with AnnotationLog(scratch.path) as log:
        log.begin(pool="1f3c", strategy="random", seed=0)
        log.add(7, ["D", {"N", "V"}, None], key="k", nodes=(0, 2))
        log.add(8, {"a": 1.5}, replaces=True)
    return scratch.path.read_bytes()


def _use_parameter(data: bytes, _: Scratch) -> None:
    _check_parameter(data.decode("utf-8", "replace"))


def _check_parameter(line: str) -> None:
    """A word of the command line for a parameter, «Estimator.parameter=word»."""
    name, _, word = line.partition("=")
    parameter = _PARAMETERS.get(name.strip())
    if parameter is None:
        raise DataError(name)
    try:
        value = parameter.domain.parse(word)
    except ValueError as error:  # how the command line asks
        raise DataError(str(error)) from None
    parameter.domain.check(parameter.name, value)


_PARAMETERS = {
    f"{name}.{parameter.name}": parameter
    for name in ESTIMATORS
    for parameter in parameters_of(class_named(name, ESTIMATORS)).values()
    if parameter.domain.signs
}


def _words() -> Iterator[str]:
    """A word for each parameter that has one, as «Estimator.parameter=word»."""
    for name, parameter in _PARAMETERS.items():
        for word in (*parameter.domain.signs, "1", "0.5", "2,3", "a,b"):
            with suppress(DataError):
                line = f"{name}={word}"
                _check_parameter(line)
                yield line


def _use_scheme(data: bytes, _: Scratch) -> None:
    scheme = get_scheme(data.decode("utf-8", "replace"))
    _check(get_scheme(scheme.name).name == scheme.name, "its name is another's")


def _use_uai(data: bytes, scratch: Scratch) -> None:
    p = read_uai(scratch.of(data), budget=1_000_000)
    if len(p.node) > 1000:
        return
    found = best(p, budget=10_000)
    _check(bool(np.isclose(labelling_score(p, found.labels), found.scores).all()), "another score")
    write_uai(scratch.path, p)
    again = labelling_score(read_uai(scratch.path), found.labels)
    _check(bool(np.allclose(again, found.scores)), "the score changed")


def _use_uai_evidence(data: bytes, scratch: Scratch) -> None:
    graph = io.StringIO("MARKOV 2 2 3 1 2 0 1 6 1 2 3 4 5 6")
    best(read_uai(graph, evidence=scratch.of(data)))


FAMILIES: dict[str, Family] = {
    "conll": Family(
        (_CONLL, "a b c\n", _CONLL.replace(" ", "\t").replace("\n", "\r\n")),
        corpora(
            lambda f: read_conll(f, _COLUMNS, "label"), write_conll, "word[-1..0]; suffix(pos, 1)"
        ),
        ("read_conll",),
    ),
    "conll-tabs": Family(
        ("# a comment\n" + _CONLL.replace(" ", "\t").replace("cat", "a cat"),),
        corpora(
            lambda f: read_conll(f, _COLUMNS, "label", separator="\t", skip="#"),
            lambda path, corpus: write_conll(path, corpus, separator="\t"),
            "word; pos",
        ),
        ("read_conll",),
    ),
    "conllu": Family(
        (_CONLLU,), corpora(read_conllu, write_conllu, "form; xpos"), ("read_conllu",)
    ),
    "crfsuite": Family(
        (_CRFSUITE,), corpora(read_crfsuite, write_crfsuite, "auto"), ("read_crfsuite",)
    ),
    "jsonl": Family(
        (_JSONL, _FEATURES), corpora(read_jsonl, write_jsonl, "word"), ("read_jsonl",)
    ),
    "csv": Family((_CSV,), _use_csv, ("read_csv",)),
    "segmented": Family((_SEGMENTED,), _use_segmented, ("read_segmented",)),
    "graphs": Family(
        (_GRAPHS,),
        corpora(lambda f: read_graphs(f, _COLUMNS, "label"), write_graphs, "word"),
        ("read_graphs",),
    ),
    "uai": Family(
        ("MARKOV\n3\n2 2 3\n4\n1 0\n2 0 1\n3 0 1 2\n0\n\n2 1 0.5\n4 2 1 1 2\n"
         "12 1 2 3 4 5 6 0 0 0 1 1 1\n1 2.5\n",
         "MARKOV 2 2 3 2 1 0 2 0 1 2 1 3 6 1 0 1 1 1 1", "BAYES 1 2 1 1 0 2 0.3 0.7"),
        _use_uai, ("read_uai",),
    ),
    "uai-evidence": Family(
        ("1 0 1\n", "2 0 1 1 0", "1\n2 0 1 1 2"), _use_uai_evidence, ("read_uai",)
    ),
    "templates": Family((_LANGUAGE,), _use_language, ("Templates.parse",)),
    "crfpp": Family((_TEMPLATE,), _use_crfpp, ("read_crfpp", "parse_crfpp")),
    "crfpp-model": Family((_CRFPP_MODEL,), _use_crfpp_model, ("read_crfpp_model",)),
    "wapiti-model": Family((_WAPITI_MODEL,), _use_wapiti_model, ("read_wapiti_model",)),
    "table": Family((_TABLE, 'a,b\n"x,1",2\n"l\nm",nan\n'), _use_regress, ("read_table",)),
    "areas": Family((_AREAS,), _use_areas, ("read_areas",)),
    "edges": Family(
        ("from,to,weight\na,b,1\nb,3,0.5\n3,a,2\n", "i;j\n1;2\n2;3.0\n"), _use_edges,
        ("edges_graph",),
    ),
    "detections": Family(
        (_OBJECTS, _OBJECTS + _MARK.decode() + _LINKS, _SPOTS + _MARK.decode() + _SPOTS,
         _TRACKMATE + _MARK.decode() + _TRACKMATE), _use_detections,
        ("read_detections", "read_trackmate"),
    ),
    "ctc": Family((_TRACKS,), _use_ctc, ("read_ctc",)),
    "answers": Family(
        (_CONLL, "K AE T\n_\nD AO\n", "a b (u1)\nc (u2)\n", "(u1) a b\n(u2) c\n",
         ";; words\nu1 1 0.5 0.1 b 0.9\nu1 1 0.1 0.1 a\nu2 A 0 1 c\n",
         '{"id": 1, "labels": ["a", null]}\n{"id": "2", "labels": null}\nno\n',
         '{"answer": 3}\n{"answer": 3.0}\n{"answer": "I am sorry"}\n{}\n',
         '{"answer": {"age": 3, "name": null}}\n{"answer": {"name": ["x", {}]}}\n',
         '{"text": "Ann in Rome", "spans": [[0, 3, "PER"], '
         '{"start": 7, "end": 11, "tag": "LOC"}]}\n',
         '[{"id": 7, "answer": true}, {"id": 8, "answer": "```json\\n[1]\\n```"}]',
         "yes\n\nno\n"),
        _use_answers,
        ("read_answers", "read_answer_file", "read_sources", "read_csv", "read_ctm", "read_json",
         "read_jsonl", "read_lines", "read_trn"),
    ),
    "answers-table": Family(
        ("id,a,b,gold\n1,yes,no,yes\n2,,\"a, b\"\n", "a;b;gold\n3;3.0;3\n4;\"4\n\";\n",
         'a,b,gold\n"[""X"", ""Y""]","[\'X\', None]","[""X"", ""X""]"\n',
         'a,b,gold\n"{""x"": 1}","{""x"": ""2""}","{""x"": null}"\n',
         'text,a,b,gold\nabc,"[[0, 2, ""X""]]",[],'
         '"[{""start"": 0, ""end"": 1, ""type"": ""Y""}]"\n'),
        _use_answer_table, ("read_answers",),
    ),
    "tuning-log": Family((_tuning_log(),), _use_tuning_log, ("TuningLog",)),
    "annotation": Family(
        ('["D", {"set": ["N", "V"]}, null, 1.5, true]', '{"dict": [["a", 1], [2, "b"]]}',
         '{"pair": {"links": [[0, 1, "move"]], "known_sources": [2], "known_targets": []}}'),
        _use_annotation, ("from_json",),
    ),
    "annotation-log": Family((_annotation_log(),), _use_annotation_log, ("AnnotationLog",)),
    "parameter": Family(
        tuple(_words()), _use_parameter, ("Domain.parse",),
    ),
    "scheme": Family(("BIO", "BMES", "IOBES"), _use_scheme, ("get_scheme",)),
}  # fmt: skip
"""All readers, by format."""


def cases() -> Callable[[np.random.Generator], str]:
    """A function that changes a seed of some family, reads and uses it."""
    logging.getLogger("trellis").setLevel(logging.CRITICAL)
    scratch = Scratch()
    names = sorted(FAMILIES)
    seeds = {name: FAMILIES[name].starts() for name in names}
    others = [seed for name in names if name != "annotation-log" for seed in seeds[name]]

    def case(generator: np.random.Generator) -> str:
        rng = random.Random(generator.bytes(16))
        name = rng.choice(names)
        alike = seeds[name] if rng.random() < 0.9 else others
        data = damaged_text(rng.choice(seeds[name]), alike, rng)
        return f"{name} {outcome_of(FAMILIES[name], data, scratch)}"

    return case

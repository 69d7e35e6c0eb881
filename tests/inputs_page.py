"""The table of docs/inputs.md, by trying every kind of input: ``python tests/inputs_page.py``.

Each kind is fitted, predicted and asked for probabilities; what comes back is checked against the
same data as plain lists, and its type is what the table says. Kinds that a file can hold are
trained and tagged on the command line, too.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from trellis import ChainCRF, Corpus, GraphCRF, read_conll
from trellis.cli import main

PAGE = Path(__file__).parent.parent / "docs" / "inputs.md"
BEGIN, END = "<!-- made by tests/inputs_page.py -->\n", "<!-- end -->\n"

WORDS = [["the", "cat", "sat"], ["a", "dog"]] * 4
TAGS = [["D", "N", "V"], ["D", "N"]] * 4
POS = [["x", "y", "z"], ["x", "y"]] * 4
EDGES = [[(0, 1), (1, 2)], [(0, 1)]] * 4
ARRAYS = [np.array([[len(w), w.count("a") - 0.5] for w in sample], float) for sample in WORDS]


@dataclass(frozen=True)
class Kind:
    """A kind of input: how data of it are made, and what a model is told."""

    name: str
    make: Callable[[], tuple[Any, ...]]
    """X and y."""
    same: Any
    """X as lists that say the same."""
    options: dict[str, Any] = field(default_factory=dict)
    more: Callable[[], dict[str, Any]] = dict
    """Further arguments of fit and predict."""
    edges: Any = None
    """Edges that go with ``same``."""
    file: tuple[str, str, list[str]] | None = None
    """Name and text of a file, and options of ``trellis train``."""

    @property
    def model(self) -> Any:
        """A model for it."""
        kind = ChainCRF if self.edges is None else GraphCRF
        return kind(random_state=0, max_passes=10, **self.options)


def tuples() -> list[Any]:
    pairs = zip(WORDS, POS, strict=True)
    return [list(zip(words, pos, strict=True)) for words, pos in pairs]


def dicts(*names: str) -> list[Any]:
    return [[dict(zip(names, both, strict=True)) for both in sample] for sample in tuples()]


def rows() -> dict[str, list[Any]]:
    sentence = [s for s, words in enumerate(WORDS) for _ in words]
    flat = {"word": WORDS, "tag": TAGS}
    return {"sentence": sentence} | {k: [v for s in x for v in s] for k, x in flat.items()}


def long_table(library: str) -> tuple[Any, Any]:
    import importlib

    if library == "pyarrow":
        return importlib.import_module("pyarrow").table(rows()), "tag"
    frame = importlib.import_module(library).DataFrame(rows())
    return frame, "tag"


def table_each(library: str) -> tuple[Any, Any]:
    import importlib

    make = importlib.import_module(library).DataFrame
    pairs = zip(WORDS, TAGS, strict=True)
    return [make({"word": words, "tag": tags}) for words, tags in pairs], "tag"


def dataset() -> tuple[Any, Any]:
    from datasets import ClassLabel, Dataset, Features, Sequence, Value

    kinds = Features(
        tokens=Sequence(Value("string")), pos_tags=Sequence(ClassLabel(names=["D", "N", "V"]))
    )
    codes = [["DNV".index(tag) for tag in tags] for tags in TAGS]
    return Dataset.from_dict({"tokens": WORDS, "pos_tags": codes}, features=kinds), None


def documents(packed: bool) -> tuple[Any, Any]:
    import spacy
    from spacy.tokens import Doc, DocBin

    vocab = spacy.blank("en").vocab
    docs = [Doc(vocab, words=w, tags=t) for w, t in zip(WORDS, TAGS, strict=True)]
    return (DocBin(docs=docs, attrs=["TAG"]) if packed else docs), "tag"


def networks() -> tuple[list[Any], str]:
    import networkx

    graphs = []
    for words, tags, edges in zip(WORDS, TAGS, EDGES, strict=True):
        graph = networkx.Graph()
        for word, tag in zip(words, tags, strict=True):
            graph.add_node(word, form=word, tag=tag)
        graph.add_edges_from([(words[a], words[b]) for a, b in edges])
        graphs.append(graph)
    return graphs, "tag"


def adjacency(s: int) -> Any:
    from scipy.sparse import coo_array

    n, ends = len(WORDS[s]), np.array(EDGES[s])
    return coo_array((np.ones(len(ends)), ends.T), shape=(n, n))


def named_nodes() -> tuple[Any, Any]:
    import pandas

    return pandas.DataFrame(ARRAYS[0], columns=["length", "a"], index=WORDS[0]), TAGS[0]


def sparse() -> list[Any]:
    from scipy.sparse import csr_array

    return [csr_array(sample) for sample in ARRAYS]


def conll(columns: list[list[list[str]]]) -> str:
    samples = [zip(*parts, strict=True) for parts in zip(*columns, strict=True)]
    return "".join("".join(" ".join(row) + "\n" for row in sample) + "\n" for sample in samples)


def jsonl(samples: list[Any]) -> str:
    import json

    pairs = zip(samples, TAGS, strict=True)
    return "".join(json.dumps({**sample, "labels": tags}) + "\n" for sample, tags in pairs)


def csv_text() -> str:
    columns = rows()
    lines = [
        ",".join(columns),
        *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True)),
    ]
    return "\n".join(lines) + "\n"


def crfsuite() -> str:
    pairs = zip(TAGS, LISTED, strict=True)
    samples = [zip(tags, sample, strict=True) for tags, sample in pairs]
    return "".join("".join(f"{t}\t{a[0]}\n" for t, a in sample) + "\n" for sample in samples)


def read(columns: list[str]) -> tuple[Any, None]:
    text = conll([WORDS, POS, TAGS]) if len(columns) == 3 else conll([WORDS, TAGS])
    return read_conll(io.BytesIO(text.encode()), columns, columns[-1]), None


def column_dicts() -> list[Any]:
    return [{"word": w, "pos": p} for w, p in zip(WORDS, POS, strict=True)]


FORM = [[{"form": w} for w in sample] for sample in WORDS]
LISTED = [[[f"w={w}"] for w in sample] for sample in WORDS]
TEMPLATES = {"features": "word[-1..1]; pos[-1..1]"}
BOTH = {"columns": ["word", "pos"]}
PAIRED = conll([WORDS, POS, TAGS])


def kinds() -> list[Kind]:
    """All kinds of input."""
    both = Corpus.from_columns({"word": WORDS, "pos": POS})
    of_files = ["--columns", "word,pos,tag", "--label", "tag"]
    graphs = [g + "".join(f"@edge {a + 1} {b + 1}\n" for a, b in e) for g, e in zip(
        conll([WORDS, TAGS]).split("\n\n"), EDGES, strict=False)]  # fmt: skip
    graph_text = "\n\n".join(g.replace("@edge", "\n@edge", 1) for g in graphs) + "\n\n"
    return [
        Kind("`[[\"the\", \"cat\"], …]` words", lambda: (WORDS, TAGS), WORDS,
             file=("a.txt", conll([WORDS, TAGS]), ["--columns", "word,tag"])),
        Kind("`[[(\"the\", \"DT\"), …], …]` tuples, `columns=`", lambda: (tuples(), TAGS), both,
             TEMPLATES | BOTH, file=("a.txt", PAIRED, of_files)),
        Kind("`[[{\"word\": \"the\", \"pos\": \"DT\"}, …], …]` dicts, `features=` templates",
             lambda: (dicts("word", "pos"), TAGS), both, TEMPLATES,
             file=("a.txt", PAIRED, of_files)),
        Kind("`[{\"word\": [\"the\", …], \"pos\": […]}, …]` columns",
             lambda: (column_dicts(), TAGS), both, TEMPLATES,
             file=("a.jsonl", jsonl(column_dicts()), ["--format", "jsonl"])),
        Kind("`[[{\"w\": \"the\", \"len\": 3}, …], …]` feature dicts",
             lambda: (FORM, TAGS), [[[f"form={w}"] for w in s] for s in WORDS],
             file=("a.jsonl", jsonl([{"features": s} for s in FORM]), ["--format", "jsonl"])),
        Kind("`[[[\"w=the\", \"first\"], …], …]` attributes", lambda: (LISTED, TAGS), LISTED,
             file=("a.crfsuite", crfsuite(), ["--format", "crfsuite"])),
        Kind("`Corpus` of `read_conll`, …", lambda: read(["word", "pos", "tag"]), both, TEMPLATES,
             file=("a.txt", PAIRED, of_files)),
        Kind("(n, d) arrays of NumPy", lambda: (ARRAYS, TAGS), ARRAYS),
        Kind("(n, d) matrices of SciPy", lambda: (sparse(), TAGS), ARRAYS),
        Kind("long table of pandas, `group=`", lambda: long_table("pandas"), WORDS,
             {"group": "sentence"}, file=("a.csv", csv_text(), ["--format", "csv",
                                                                "--group", "sentence"])),
        Kind("long table of Polars, `group=`", lambda: long_table("polars"), WORDS,
             {"group": "sentence"}),
        Kind("long table of PyArrow, `group=`", lambda: long_table("pyarrow"), WORDS,
             {"group": "sentence"}),
        Kind("list of tables of pandas", lambda: table_each("pandas"), WORDS),
        Kind("list of tables of Polars", lambda: table_each("polars"), WORDS),
        Kind("dataset of Hugging Face", dataset, WORDS),
        Kind("`Doc`s of spaCy", lambda: documents(packed=False), WORDS),
        Kind("`DocBin` of spaCy", lambda: documents(packed=True), WORDS),
        Kind("lists with `edges=[[(0, 1), …], …]`", lambda: (LISTED, TAGS), LISTED,
             more=lambda: {"edges": EDGES}, edges=EDGES,
             file=("a.txt", graph_text, ["--format", "graphs", "--structure", "graph",
                   "--columns", "word,tag", "--features", "word"])),
        Kind("graphs of NetworkX", networks, [[[f"form={w}"] for w in s] for s in WORDS],
             edges=EDGES),
        Kind("one graph of NetworkX", lambda: (networks()[0][0], "tag"),
             [[[f"form={w}"] for w in WORDS[0]]], edges=EDGES[:1]),
        Kind("arrays, `edges=` adjacency matrices of SciPy", lambda: (ARRAYS, TAGS), ARRAYS,
             more=lambda: {"edges": [adjacency(s) for s in range(8)]}, edges=EDGES),
        Kind("one array, `edges=` one adjacency matrix", lambda: (ARRAYS[0], TAGS[0]), ARRAYS[:1],
             more=lambda: {"edges": adjacency(0)}, edges=EDGES[:1]),
        Kind("one table of pandas, `edges=` pairs of its index", named_nodes, ARRAYS[:1],
             more=lambda: {"edges": [("the", "cat"), ("cat", "sat")]}, edges=EDGES[:1]),
    ]  # fmt: skip


def fitted(kind: Kind) -> Any:
    """A model that learned from data of a kind."""
    return kind.model.fit(*kind.make(), **kind.more())


def plain(kind: Kind) -> tuple[Any, list[list[str]], list[Any]]:
    """What a model says that learned the same from lists: itself, labels and probabilities."""
    options = {} if kind.edges is None else {"edges": kind.edges}
    model = kind.model.set_params(group=None, columns=None)
    model.fit(kind.same, TAGS[: len(kind.same)], **options)
    return model, model.predict(kind.same, **options), model.predict_marginals(
        kind.same, **options
    )  # fmt: skip


def listed(value: Any) -> Any:
    """Labels or probabilities of any form as lists."""
    if isinstance(value, dict):
        return [listed(v) for v in value.values()]
    if type(value).__name__ == "Table":
        value = value.to_pandas()
    for method in ("to_pylist", "to_list", "tolist"):
        if hasattr(value, method):
            return getattr(value, method)()
    if hasattr(value, "to_pandas") or hasattr(value, "to_numpy"):
        frame = value.to_pandas() if hasattr(value, "to_pandas") else value
        return np.asarray(frame).tolist()
    return [listed(v) for v in value] if isinstance(value, list) else value


def flat(value: Any) -> list[Any]:
    """All leaves, in order."""
    return [leaf for v in value for leaf in flat(v)] if isinstance(value, list) else [value]


def type_name(value: Any) -> str:
    """What comes back, in a word or two."""
    if isinstance(value, list):
        return "list of lists" if isinstance(value[0], list) and value else (
            f"list of {_one(value[0])}" if not isinstance(value[0], str | int) else "list"
        )  # fmt: skip
    return _one(value)


def _one(value: Any) -> str:
    if isinstance(value, dict):
        return "dict of dicts" if isinstance(next(iter(value.values())), dict) else "dict"
    module = type(value).__module__.split(".")[0]
    if module == "numpy":
        return "array"
    return f"{module} {type(value).__name__}" if module != "builtins" else type(value).__name__


def on_command_line(kind: Kind) -> str:
    """Train and tag a file of a kind; the options that it takes."""
    if kind.file is None:
        return "–"
    name, text, options = kind.file
    with tempfile.TemporaryDirectory() as folder:
        file, model = Path(folder) / name, str(Path(folder) / "m")
        file.write_text(text, encoding="utf-8")
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            assert main(["train", str(file), *options, "--seed", "0", "-o", model]) == 0
            assert main(["tag", model, str(file)]) == 0
    form = [b for a, b in itertools.pairwise(options) if a == "--format"]
    return f"`--format {form[0]}`" if form else "`--columns`"


def table() -> str:
    """The table."""
    head = ["X", "y of `fit`", "`predict` gives", "`predict_marginals` gives", "command line"]
    lines = [f"| {' | '.join(head)} |", "|---|---|---|---|---|"]
    for kind in kinds():
        model, (X, y) = fitted(kind), kind.make()
        labels = model.predict(X, **kind.more())
        chances = model.predict_marginals(X, **kind.more())
        of_fit = "in X" if y is None else f'`"{y}"`' if isinstance(y, str) else type_name(y)
        cells = [kind.name, of_fit, type_name(labels), type_name(chances), on_command_line(kind)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def page() -> str:
    """The page with the table of today."""
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    return f"{before}{BEGIN}\n{table()}\n{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")

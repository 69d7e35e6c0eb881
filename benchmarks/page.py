"""The page of benchmarks and the README's numbers, from the records: ``python -m benchmarks.page``.

Nothing on them is typed by hand: figures come from ``benchmarks/records``, with command, commit,
machine and date, and what a benchmark compares with what is said by the docstring of its module.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks.records import PEERS, Record, Shown, records
from studies.markdown import markdown

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "benchmarks.md"
README = HERE.parent / "README.md"
YARDSTICKS = HERE.parent / "src" / "trellis" / "demo" / "yardsticks.json"
BEGIN, END = "<!-- numbers: made by python -m benchmarks.page -->", "<!-- end of numbers -->"
LONG = 24
"""Tables of more rows are folded."""

HEAD = """\
# Benchmarks

What was measured, with command, commit, machine and date below it. `python -m benchmarks.page`
makes this page of what the benchmarks recorded (`python -m benchmarks.NAME --record`); nothing on
it is typed by hand. Everything ran on one core unless the text says otherwise. Where a ratio is
given, the two ran by turns: it is formed in each round, and its median stands with the range over
rounds. Real data are found as [the studies](../studies/README.md) find them, in the folder
`TRELLIS_DATA`.

What the studies measured (structure regularisation as in its paper, trees and grids, ensembles,
regression on graphs, cheap data and cells) is in [their report](../studies/REPORT.md), which they
make of their own logs.
"""

SECTIONS = {
    "Tagging: speed and scores": {
        "chunking": "Chunking, from file to model and from text to labels",
        "same_features": "Scores on the same features",
        "migration": "sklearn-crfsuite's tutorial with the import line changed",
        "same_dicts": "From the same feature dicts to a model",
        "passes": "Passes over pieces and over whole sequences",
        "rich_edges": "Rich edges at single settings",
        "footprint": "Memory, small models, start of commands",
        "large": "A hundred million features",
        "many_labels": "Hundreds of labels",
        "threads": "One thread and two",
        "solvers": "Every solver beside its peer",
        "scaling": "Time and memory by the size of the corpus",
        "growth": "How every operation grows",
        "compiling": "Compiling the kernels",
        "demo": "From a clone to the demo's page",
    },
    "Asking an annotator": {"active_chains": "Which sentences to ask for"},
    "Defaults": {"defaults": "Nothing set, beside the best of many settings"},
    "Features": {
        "unlabelled": "What raw text brings",
        "mixed_columns": "Numbers beside text",
        "door": "From dicts and lists to numbers",
    },
    "Trees and graphs": {
        "graphs": "One graph with few labels, images, snakes",
        "along_edges": "Templates along the edges of trees",
        "edge_features": "Features of edges",
        "tree_marginals": "Exact inference on trees",
        "graph_inference": "Best labellings by every method",
        "hard_graphs": "Graphs that are hard on purpose",
    },
    "Max-margin learning and partial labels": {
        "ocr": "Handwritten words",
        "partial": "Part of the labels",
        "mentions": "Part of the names",
        "transfer": "Annotations of another laboratory, or kind of text",
    },
    "Experts": {
        "combine": "Combining experts with more and less gold",
        "doubts": "How sure combined answers are",
        "experts": "Learning an ensemble",
        "translations": "Translations by a crowd and transcripts, without gold",
    },
    "Cells": {
        "tracking": "Tracking of dividing cells",
        "missed_cells": "Tracking cells that are missed now and then",
        "movie_scale": "Movies of a hundred thousand objects",
        "from_images": "From label images to scored tracks in one command",
        "few_links": "Tracking from few links",
        "link_probabilities": "How sure links are",
        "assignments": "Events of a pair of frames",
        "active_step": "A round of active learning",
        "cccp": "The concave-convex procedure",
    },
    "Regression on graphs": {
        "maps": "Numbers on maps, beside kriging, spatial lags and forests",
        "map_scale": "A million places, a tenth of them known",
        "gcrf_scale": "A Gaussian CRF of a million nodes",
        "glacer_swap": "GLACER: seconds of a swap",
    },
}
"""Where each benchmark stands, and under which heading."""


class Told(NamedTuple):
    """A contestant of a line: its name, the cells its row begins with, {headings} of figures."""

    name: str
    row: tuple[str, ...]
    figures: str


class Line(NamedTuple):
    """A line of the README's table: what, from which benchmark and table, ours and the others."""

    what: str
    benchmark: str
    table: str
    ours: Told
    others: tuple[Told, ...]


_FIT = "{seconds (median)} s, F1 {F1}"
_TUTORIAL = "{fit, CPU s (median)} s, F1 {span F1}"
_CELLS = "{link F1} / {division F1}"
_MIGRATION = "cell migration, step 1"


def _graph(what: str, row: str) -> Line:
    title = "One graph with few labels: accuracy of the others, %"
    ours, *others = (
        Told(name, (row,), f"{{{heading}}}")
        for name, heading in (
            ("GraphCRF", "GraphCRF"), ("logistic regression", "logistic"),
            ("label propagation", "propagation"),
            ("logistic regression, smoothed along edges", "both"),
        )
    )  # fmt: skip
    return Line(what, "graphs", title, ours, tuple(others))


LINES = (
    Line(
        "CoNLL-2000 chunker, from file to model", "chunking", "file to trained model, one core",
        Told("ChainCRF", ("Trellis CRF",), _FIT),
        (Told("python-crfsuite, L-BFGS", ("python-crfsuite L-BFGS",), _FIT),),
    ),
    Line(
        "sklearn-crfsuite's tutorial on CoNLL-2000, the import line changed", "migration",
        "sklearn-crfsuite's tutorial, one core",
        Told("trellis.compat", ("conll2000", "trellis.compat"), _TUTORIAL),
        (Told("sklearn-crfsuite", ("conll2000", "sklearn-crfsuite"), _TUTORIAL),),
    ),
    Line(
        "Cells that migrate and divide: F1 of links / of divisions, in per cent (two splits, whose "
        "test frames were seen while features were developed)",
        "tracking", "Tracking of dividing cells",
        Told("TrackingModel", (_MIGRATION, "Trellis, trained"), _CELLS),
        (
            Told("Trellis with nothing annotated", (_MIGRATION, "Trellis, untrained"), _CELLS),
            Told("nearest neighbours", (_MIGRATION, "nearest neighbours"), _CELLS),
            Told("LapTrack", (_MIGRATION, "laptrack"), _CELLS),
            Told("motile", (_MIGRATION, "motile"), _CELLS),
        ),
    ),
    _graph("A graph of houses by price, 5 % labelled: % right", "houses, 5 %"),
)  # fmt: skip
"""The README's numbers. A line without record, and a contestant who was absent, are left out."""


# ------------------------------------------------------------------------- what benchmarks say


def benchmarks() -> list[str]:
    """Names of all benchmarks: the modules that begin as one."""
    begins = re.compile(r"^from benchmarks\.options import begin$", re.MULTILINE)
    return sorted(path.stem for path in HERE.glob("*.py") if begins.search(path.read_text("utf-8")))


def paragraphs(name: str) -> list[str]:
    """Docstring of a benchmark in Markdown, without the commands in it."""
    doc = ast.get_docstring(ast.parse((HERE / f"{name}.py").read_text("utf-8"))) or ""
    plain = re.sub(r":\w+:`([^`]*)`", r"`\1`", doc.replace("``", "`"))
    return [part for part in re.split(r"\n\s*\n", plain) if not part.startswith("    ")]


# ------------------------------------------------------------------------- the page


def page(known: list[Record]) -> str:
    """The page, from records alone."""
    there = benchmarks()
    places = {name for section in SECTIONS.values() for name in section}
    for name in there:
        if name not in places:
            raise ValueError(
                f"benchmarks.{name} has no place on the page: give it one, and a heading in plain "
                "words, in SECTIONS of benchmarks/page.py"
            )
    for record in known:
        if record.name not in there:
            raise ValueError(
                f"benchmarks/records/{record.file} is of a benchmark that is not there: remove it"
            )
    parts = [HEAD]
    for title, section in SECTIONS.items():
        found = [list(_benchmark(name, heading, known)) for name, heading in section.items()]
        if any(found):
            parts += [f"## {title}\n", *(part for one in found for part in one)]
    recorded = {record.name for record in known}
    missing = [name for name in _ordered() if name in there and name not in recorded]
    if missing:
        rows = [
            [f"`python -m benchmarks.{name}`", paragraphs(name)[0].replace("\n", " ")]
            for name in missing
        ]
        parts += ["## Not recorded yet\n", markdown(["command", "what it measures"], rows) + "\n"]
    return "\n".join(parts)


def _ordered() -> Iterator[str]:
    for section in SECTIONS.values():
        yield from section


def _benchmark(name: str, heading: str, known: list[Record]) -> Iterator[str]:
    """Heading, text, tables and where they come from, if there are any."""
    own = [record for record in known if record.name == name]
    if own:
        yield f"### {heading}\n"
        yield from (f"{part}\n" for part in paragraphs(name))
    for record in own:
        yield from (f"{_table(table)}\n" for table in record.tables if table.rows)
        yield f"<sub>{' · '.join(source(record))}</sub>\n"


def _table(table: Shown) -> str:
    title = table.title[:1].upper() + table.title[1:]
    rows = markdown(table.headings, [[_cell(cell) for cell in row] for row in table.rows])
    if len(table.rows) <= LONG:
        return f"**{title}**\n\n{rows}"
    summary = f"<summary><b>{title}</b> ({len(table.rows)} rows)</summary>"
    return f"<details>{summary}\n\n{rows}\n\n</details>"


def _cell(text: str) -> str:
    """A cell whose stars and bars stay what they are."""
    return re.sub(r"([|*<])", r"\\\1", text)


def source(record: Record) -> Iterator[str]:
    """Where figures come from: command, commit, machine, versions, date, how long it took."""
    yield f"`{record.command}`"
    yield f"commit {record.commit or 'unknown'}{', changed' if record.changed else ''}"
    of = record.machine
    cores = f"{of['cores']} core{'s' if of['cores'] != 1 else ''}"
    yield f"{of['processor']}, {cores}, {of['memory_gb']} GB, {of['system']}"
    cells = " ".join(cell for t in record.tables for row in [t.headings, *t.rows] for cell in row)
    # A peer's name is written in many ways; those that took no part are not named.
    absent = {
        peer for peer in PEERS if re.sub("^py(thon-)?", "", peer.lower()) not in cells.lower()
    }
    yield ", ".join(f"{name} {v}" for name, v in record.versions.items() if name not in absent)
    yield record.date
    yield f"{record.seconds / 60:.0f} min" if record.seconds >= 100 else f"{record.seconds:.0f} s"


# ------------------------------------------------------------------------- the README's numbers


def numbers(known: list[Record]) -> str:
    """The README's table, from records alone; "" if there is none for any line."""
    rows = [row for line in LINES for row in _line(line, known)]
    if not rows:
        return ""
    table = markdown(["", "Trellis", "others", "measured by"], rows)
    return f"{table}\n"


def _line(line: Line, known: list[Record]) -> Iterator[list[str]]:
    """The row of a line, from the first record of the benchmark that has it."""
    for record in known:
        if record.name == line.benchmark and (ours := _told(line.ours, line, record)):
            others = [text for told in line.others if (text := _told(told, line, record))]
            by = f"`{record.command}`, {record.date}"
            yield [line.what, ours, "; ".join(others), by]
            return


def _told(told: Told, line: Line, record: Record) -> str:
    """Name and figures of a contestant; "" if it has no row."""
    for headings, row in _rows(line.table, record):
        *first, last = told.row
        found = re.fullmatch(rf"{re.escape(last)}( \d\S*)?", row[len(first)])  # maybe a version
        if found and row[: len(first)] == first:
            name, _, more = told.name.partition(",")
            version = found[1] or " " + record.versions.get(name, "")
            cells = dict(zip(headings, row, strict=True))
            parts = re.split(r"{(.*?)}", told.figures)
            parts[1::2] = [cells[heading] for heading in parts[1::2]]
            return f"{name}{version.rstrip()}{',' * bool(more)}{more}: {''.join(parts)}"
    return ""


def _rows(title: str, record: Record) -> Iterator[tuple[list[str], list[str]]]:
    for table in record.tables:
        if table.title == title:
            yield from ((table.headings, row) for row in table.rows)


def with_numbers(readme: str, known: list[Record]) -> str:
    """The README with its numbers in place."""
    before, begin, rest = readme.partition(f"{BEGIN}\n")
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"README.md needs a line «{BEGIN}» and below it one «{END}»")
    return before + begin + numbers(known) + end + after


# ------------------------------------------------------------------------- the demo's yardsticks


def yardsticks(known: list[Record]) -> str:
    """What the demo shows beside its own times: the peers' of the chunking benchmark."""
    line = LINES[0]
    found = []
    for record in known:
        ours, *others = (_told(told, line, record) for told in (line.ours, *line.others))
        if record.name == line.benchmark and ours and all(others):
            tables = [t for t in record.tables if t.title == line.table]
            sentence = (
                f"Recorded elsewhere, side by side: {line.what}. {'; '.join([ours, *others])}."
            )
            found += [
                {
                    "title": line.what,
                    "sentence": sentence,
                    "headings": table.headings,
                    "rows": table.rows,
                    "source": ", ".join(source(record)).replace("`", ""),
                }
                for table in tables
            ]
    return json.dumps(found, ensure_ascii=False, indent=1) + "\n"


def main() -> None:
    """Write the page, the numbers into the README, and the demo's yardsticks."""
    known = records()
    made = {
        PAGE: page(known),
        README: with_numbers(README.read_text("utf-8"), known),
        YARDSTICKS: yardsticks(known),
    }
    for path, text in made.items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

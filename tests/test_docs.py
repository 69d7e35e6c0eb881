"""The documentation is run, so that it stays true.

Every page is one session in an empty folder, its blocks in order and in one namespace:

    ```python              executed; a block with ``>>>`` is a doctest
    ```text NAME           written to the file NAME
    ```text output         must be what the Python block before it printed, but for the numbers
    ```console             each ``$ trellis …`` is run in this process, must exit with 0 and print
                           what follows it; ``$ cat FILE`` and ``> FILE`` work too
    ```console varies      the same, but numbers are not compared
    ```console fails       the same, but the exit code must not be 0

Floats of two decimals or more may differ a little (one in the last digit, or a thousandth), since
processors differ; seconds are not compared.
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import doctest
import importlib
import inspect
import io
import pkgutil
import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import trellis
from parameters_page import estimators
from trellis.cli import main
from trellis.estimator import Estimator, parameters_of

DOCS = Path(__file__).parents[1] / "docs"
STUDIES = DOCS.parent / "studies"
PAGES = [DOCS.parent / "README.md", *sorted(DOCS.glob("*.md")), *sorted(STUDIES.glob("*.md"))]
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
# Modules of the package whose names are nobody's business outside it.
PRIVATE = {
    "cli",
    "demo",
    "html_view",
    "interrupts",
    "kernels",
    "metadata_routing",
    "predictor",
    "progress",
    "warmup",
}

FENCE = re.compile(r"^```(\w*)[ \t]*([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?(?![\w])")
SECONDS = re.compile(r"\d+\.\d+ s\b")
# What a first run on a machine may say besides.
FIRST_RUN = re.compile(r"^.*(compiling kernels for|building the font cache).*\n", re.MULTILINE)


# ---------------------------------------------------------------------------- reading pages


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, the rest of the fence line, its text and where it starts."""

    language: str
    note: str
    text: str
    line: int


def blocks(source: str) -> list[Block]:
    return [
        Block(hit[1], hit[2].strip(), hit[3], source[: hit.start(3)].count("\n"))
        for hit in FENCE.finditer(source)
    ]


def prose(source: str) -> str:
    return FENCE.sub("", source)


def anchors(source: str) -> set[str]:
    """Anchors of the headings, as GitHub makes them."""
    headings = re.findall(r"^#+ +(.*)$", prose(source), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


# ---------------------------------------------------------------------------- running pages


class Checker(doctest.OutputChecker):
    """Doctest's comparison, which lets floats differ a little."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        if super().check_output(want, got, optionflags):
            return True
        wanted, found = NUMBER.findall(want), NUMBER.findall(got)
        return (
            "..." not in want
            and len(wanted) == len(found)
            and super().check_output(NUMBER.sub("#", want), NUMBER.sub("#", got), optionflags)
            and all(map(close, wanted, found))
        )


def close(want: str, got: str) -> bool:
    decimals = len(want.partition(".")[2])
    if decimals < 2 or decimals != len(got.partition(".")[2]) or "e" in want + got:
        return want == got
    return abs(float(want) - float(got)) < max(1.5 * 10**-decimals, 1e-3 * abs(float(want)))


class Session:
    """The run of one page; a failure names the page and the line."""

    def __init__(self, page: Path) -> None:
        self.page = page
        self.namespace: dict[str, Any] = {"__name__": "__main__"}
        self.printed = ""

    def run(self) -> None:
        for block in blocks(self.page.read_text(encoding="utf-8")):
            if block.language == "python" and ">>>" in block.text:
                self.doctest(block)
            elif block.language == "python":
                self.execute(block)
            elif block.language == "console":
                self.console(block)
            elif block.language == "text" and block.note == "output":
                self.same(block.line, mask(block.text), mask(self.printed))
            elif block.language == "text" and block.note:
                Path(block.note).write_text(block.text, encoding="utf-8")

    def same(self, line: int, want: str, got: str) -> None:
        if not Checker().check_output(want, got, FLAGS):
            pytest.fail(f"{self.page.name}, line {line + 1}: expected\n{want}\ngot\n{got}", False)

    def execute(self, block: Block) -> None:
        code = compile("\n" * block.line + block.text, str(self.page), "exec")
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(code, self.namespace)
        self.printed = out.getvalue()

    def doctest(self, block: Block) -> None:
        test = doctest.DocTestParser().get_doctest(
            block.text, self.namespace, self.page.name, str(self.page), block.line
        )
        report = io.StringIO()
        runner = doctest.DocTestRunner(Checker(), verbose=False, optionflags=FLAGS)
        failed = runner.run(test, out=report.write, clear_globs=False).failed
        self.namespace = test.globs
        if failed:
            pytest.fail(report.getvalue(), False)

    def console(self, block: Block) -> None:
        parts = re.split(r"^\$ ((?:.*\\\n)*.*)\n", block.text, flags=re.MULTILINE)
        line = block.line + parts[0].count("\n")
        for command, want in zip(parts[1::2], parts[2::2], strict=True):
            code, got = shell(command.replace("\\\n", " "))
            got = SECONDS.sub("# s", FIRST_RUN.sub("", got))
            want_shown = SECONDS.sub("# s", want)
            if block.note == "varies":
                want_shown, got = mask(want_shown), mask(got)
            if (code != 0) != (block.note == "fails"):
                pytest.fail(f"{self.page.name}, line {line + 1}: exit code {code}\n{got}", False)
            self.same(line, want_shown, got)
            line += command.count("\n") + 1 + want.count("\n")


def mask(text: str) -> str:
    return NUMBER.sub("#", text)


def shell(command: str) -> tuple[int, str]:
    """Exit code and output (both streams) of a line with ``trellis`` or ``cat``."""
    words = shlex.split(command, comments=True)
    target = None
    if ">" in words:
        at = words.index(">")
        words, target = words[:at], words[at + 1]
    shown = io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True)
    out = shown if target is None else io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(shown):
        if words[0] == "trellis":
            try:
                code = main(words[1:])
            except SystemExit as exit_:  # a wrong command line
                code = int(exit_.code or 0)
        elif words[0] == "cat":
            code = 0
            print(*(Path(name).read_text(encoding="utf-8") for name in words[1:]), sep="", end="")
        else:
            raise ValueError(f"the test of the documentation cannot run {words[0]!r}")
    if target is not None:
        Path(target).write_bytes(out.buffer.getvalue())  # type: ignore[attr-defined]
    return code, shown.buffer.getvalue().decode("utf-8")  # type: ignore[attr-defined]


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRELLIS_DATA", str(tmp_path))  # so that what a page sets is undone
    return tmp_path


# Pages about libraries that need not be there.
FOREIGN = {"inputs": pytest.mark.extras}


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=FOREIGN.get(page.stem, ())) for page in PAGES],
    ids=lambda page: page.stem,
)
def test_page_runs(page: Path, workplace: Path) -> None:
    Session(page).run()


@pytest.mark.parametrize(
    "text",
    [
        "```python\n1 / 0\n```\n",
        "```python\n>>> 1 + 1\n3\n```\n",
        "```python\n>>> 0.25\n0.27\n```\n",
        "```python\nprint('a 1')\n```\n\n```text output\nb 2\n```\n",
        "```console\n$ trellis inspect missing.trellis\n```\n",
        "```console fails\n$ trellis --version\ntrellis 0\n```\n",
        "```text a.txt\nhello\n```\n\n```console\n$ cat a.txt\ngoodbye\n```\n",
    ],
)
def test_a_wrong_page_is_noticed(text: str, workplace: Path) -> None:
    page = workplace / "page.md"
    page.write_text(text, encoding="utf-8")
    with pytest.raises((pytest.fail.Exception, ZeroDivisionError)):
        Session(page).run()


def test_small_differences_of_floats_are_allowed() -> None:
    same = Checker().check_output
    assert same("p = 0.25\n", "p = 0.26\n", FLAGS)
    assert not same("p = 0.25\n", "p = 0.27\n", FLAGS)
    assert not same("p = 0.25\n", "p = 0.2501\n", FLAGS)
    assert not same("p = 1.0\n", "p = 0.9\n", FLAGS)
    assert not same("n = 25\n", "n = 26\n", FLAGS)
    assert not same("p = 0.25\n", "q = 0.25\n", FLAGS)


# ---------------------------------------------------------------------------- links


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_resolve(page: Path) -> None:
    text = prose(page.read_text(encoding="utf-8"))
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if target.startswith(("http://", "https://")):
            continue
        name, _, anchor = target.partition("#")
        file = page.parent / name if name else page
        assert file.is_file(), f"{page.name} links to {target}, which is no file"
        if anchor:
            known = anchors(file.read_text(encoding="utf-8"))
            assert anchor in known, f"{page.name} links to {target}; {file.name} has {known}"


def test_index_names_every_page() -> None:
    linked = set(re.findall(r"\]\((\w[\w-]*\.md)\)", (DOCS / "index.md").read_text("utf-8")))
    assert linked == {page.name for page in DOCS.glob("*.md")} - {"index.md"}


# ---------------------------------------------------------------------------- the reference


def reference() -> dict[str, dict[str, str]]:
    """Sections of ``api.md`` by what their headings name: ``trellis.corpus``, ``ChainCRF``, …

    A heading may name several classes, which share what is below. A section maps names to
    signatures, or to "" where no signature is given.
    """
    found: dict[str, dict[str, str]] = {}
    sections: list[dict[str, str]] = []
    for line in (DOCS / "api.md").read_text(encoding="utf-8").splitlines():
        if re.match(r"#+ `", line):
            sections = [found.setdefault(name, {}) for name in re.findall(r"`([\w.]+)`", line)]
        elif row := re.match(r"\| `(\w+)(\(.*?\))?` \|", line):
            for section in sections:
                assert row[1] not in section, f"api.md names {row[1]} twice in one section"
                section[row[1]] = row[2] or ""
    return found


REFERENCE = reference()
SECTIONS = {name: section for name, section in REFERENCE.items() if name.startswith("trellis")}
MEMBERS = {name: section for name, section in REFERENCE.items() if name not in SECTIONS}


def public_modules() -> list[str]:
    parts = (module.name for module in pkgutil.iter_modules(trellis.__path__))
    return ["trellis", *(f"trellis.{n}" for n in parts if n not in PRIVATE and n[0] != "_")]


@pytest.mark.parametrize("name", sorted({*public_modules(), *SECTIONS}))
def test_reference_has_every_public_name(name: str) -> None:
    assert name in SECTIONS, f"api.md lacks a section on {name}"
    public = set(importlib.import_module(name).__all__)
    assert set(SECTIONS[name]) == public


def owner(class_name: str) -> Any:
    """The class that a section of members is about."""
    for module, names in SECTIONS.items():
        if class_name in names:
            return getattr(importlib.import_module(module), class_name)
    raise AssertionError(f"api.md has members of {class_name}, which is no public class")


def exported_classes() -> list[str]:
    found = (name for name in trellis.__all__ if isinstance(getattr(trellis, name), type))
    return [name for name in found if not issubclass(getattr(trellis, name), Exception)]


@pytest.mark.parametrize("name", sorted({*exported_classes(), *MEMBERS}))
def test_reference_has_every_member(name: str) -> None:
    assert name in MEMBERS, f"api.md lacks a section on the members of {name}"
    kind = owner(name)
    documented = set(MEMBERS[name])
    fields = {f.name for f in dataclasses.fields(kind)} if dataclasses.is_dataclass(kind) else set()
    there = {n for n in (*dir(kind), *fields) if not n.startswith("_")} - parameter_names(kind)
    learned = {n for n in documented if n.endswith("_")}
    assert documented - learned == {n for n in there if not n.endswith("_")}
    if learned:
        model = kind(random_state=0)
        if name == "GraphCRF":  # for few graphs it takes L-BFGS, which has no rate
            model.set_params(solver="sgd")
        edges = None if model.structure == "chain" else [[(0, 1)]]
        model.fit([["a", "b"]], [["X", "Y"]], edges=edges)
        assert learned == {n for n in dir(model) if n.endswith("_") and not n.startswith("_")}


def parameter_names(kind: type) -> set[str]:
    """Parameters of an estimator, also those that a class fixes: they have a page of their own."""
    bases = (base for base in kind.__mro__ if issubclass(base, Estimator))
    return {name for base in bases for name in parameters_of(base)}


@pytest.mark.parametrize("name", sorted({name.partition(".")[2] for name in estimators()}))
def test_parameters_are_written_once(name: str) -> None:
    """Rows of estimators give no signature: their parameters are on the page of parameters."""
    rows = [section[name] for section in SECTIONS.values() if name in section]
    assert rows
    assert not any(rows)


def signatures() -> list[tuple[str, str, str]]:
    """(place, name, signature) of every row that gives one."""
    return [
        (place, name, signature)
        for place, section in REFERENCE.items()
        for name, signature in section.items()
        if signature
    ]


@pytest.mark.parametrize(("place", "name", "signature"), signatures())
def test_reference_has_the_right_signature(place: str, name: str, signature: str) -> None:
    home = importlib.import_module(place) if place in SECTIONS else owner(place)
    wanted = inspect.signature(getattr(home, name))
    parameters = [p for p in wanted.parameters.values() if p.name != "self"]
    given = ast.parse(f"def f{signature}: ...").body[0]
    assert isinstance(given, ast.FunctionDef)
    a = given.args
    defaults = [None] * (len(a.args) - len(a.defaults)) + list(a.defaults)
    found = [(x.arg, "positional", None) for x in a.posonlyargs]
    found += [(x.arg, "positional", d) for x, d in zip(a.args, defaults, strict=True)]
    if a.vararg:
        found.append((a.vararg.arg, "*", None))
    found += [(x.arg, "keyword", d) for x, d in zip(a.kwonlyargs, a.kw_defaults, strict=True)]
    if a.kwarg:
        found.append((a.kwarg.arg, "**", None))
    kinds = {
        inspect.Parameter.POSITIONAL_ONLY: "positional",
        inspect.Parameter.POSITIONAL_OR_KEYWORD: "positional",
        inspect.Parameter.KEYWORD_ONLY: "keyword",
        inspect.Parameter.VAR_POSITIONAL: "*",
        inspect.Parameter.VAR_KEYWORD: "**",
    }
    assert [(n, k) for n, k, _ in found] == [(p.name, kinds[p.kind]) for p in parameters]
    for (argument, _, default), parameter in zip(found, parameters, strict=True):
        if parameter.default is inspect.Parameter.empty:
            assert default is None, argument
        elif str(parameter.default) in ("inf", "-inf"):  # these have no literal, but a name
            assert default is not None, argument
            assert ast.unparse(default) == str(parameter.default), argument
        elif isinstance(parameter.default, str | int | float | bool | tuple | None):
            assert default is not None, argument
            assert ast.literal_eval(default) == parameter.default, argument
        else:  # an object without a literal: «...»
            assert default is not None, argument

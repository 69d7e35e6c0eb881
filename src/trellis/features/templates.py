r"""The template language: which features a position has, in terms of the corpus's columns.

One template a line; ``#`` starts a comment. A *term* is a column, or a function of a column, at an
offset from the current position; a template is a conjunction of terms:

    word[-2..2]                      the words two before to two after: five templates
    word[-1..0] & word[0..1]         word pairs; ranges in a conjunction move together
    suffix(word, 1..3)               the last one, two, three letters: three templates
    lower(word)[-1] & pos            functions can be shifted; no offset means [0]
    char[0] == char[1]               an indicator: both symbols are equal
    ngrams(word, 2..4)               all character n-grams of the word (a bag)
    number(height)                   the column's number is the feature's value
    wordlist(char, 2..6)             words of the training data that start or end here
    variety(char, 2..4)              in how many contexts the n-grams around occur in the text
    cluster(word, 4..8)              the word's cluster in the text, by its first bits
    lexicon(char, "start")           length of the longest training word that starts here
    dictionary(word, "cities")       where in an entry of the user's list the position is
    bias / bos / eos                 always / only at the first / last position
    word & pos @ min_count=3         keep only values seen at least three times in training
    word @ edge                      cross with pairs of neighbouring labels, too (rich edges)

Where samples are trees or graphs, terms may look along edges instead of the order of positions. An
edge (a, b) leads from a node a to its parent b, as from a word to its head:

    word[parent]                     the word of the parent; parent.parent is its parent's
    upos[parent] & word              conjunctions and == with other terms
    any(children, upos)              each value that a child has, once: a bag
    any(neighbours, lower(word))     the same along edges of either direction; any(parents, …)
    any(children, upos & pos) & word a child that has both; one bag in a template
    type[parent]                     the type of the edge to the parent
    any(children, upos & type)       a child and the type of its edge
    mean(neighbours, number(height)) the mean of the neighbours' numbers is the feature's value

Functions: lower, shape, short_shape, char_type, digits, prefix, suffix, has_digit, has_hyphen,
has_upper, initial_upper, all_upper, test(column, "regex"), match(column, "regex"), cluster,
dictionary, lexicon.

A column whose name is not a plain word, or is a word of the language, stands in quotes:
``"pos-tag"[-1]``. In quotes, ``\"``, ``\\``, ``\n`` and ``\r`` stand for the character.

A term that reaches beyond the sample, or above a root, gives no feature, unless the line
``edges = mark`` asks for boundary symbols (as CRF++ has them); ``min_count = n`` on its own line
holds for all templates, ``clusters = n`` says how many clusters there are.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import resources
from typing import Any

from trellis.domains import flag, instance, one_of, samples, sequence_of, strings, whole
from trellis.errors import ColumnError, TemplateError
from trellis.features.functions import Argument, check_call

__all__ = ["Call", "Template", "Templates", "Term"]

_TOKEN = re.compile(
    r"\s*(?:(?P<range>-?\d+\.\.-?\d+)|(?P<number>-?\d+)|(?P<name>[^\W\d]\w*)"
    r'|(?P<string>"(?:[^"\\]|\\.)*")|(?P<symbol>==|[\[\](),&@=.]))'
)
_NAME = re.compile(r"[^\W\d]\w*")
_FLAGS = ("bias", "bos", "eos")
_SPECIAL = ("ngrams", "number", "variety", "wordlist")
_WITH_LENGTHS = ("ngrams", "variety", "wordlist")
# Bounds that no sensible template meets, so that a slip (or a hostile model file) cannot ask for
# millions of templates: of offsets and lengths, of word lists, which need 2·n² columns, and of
# clusters, which take time in proportion to n².
_MAX_NUMBER, _MAX_WORD, _MAX_CLUSTERS = 1000, 20, 4096
_N_CLUSTERS = 256
_ALIASES: dict[str, tuple[str, ...]] = {
    "word": ("word", "form", "token", "text", "tokens", "words"),
    "pos": ("pos", "xpos", "upos", "pos_tags", "postag"),
    "char": ("char", "character", "word", "form", "chars", "tokens"),
}
# What is added where there is unlabelled text: benchmarks/unlabelled.py shows what it brings.
_OF_WORDS = ("cluster({0})[-1..1]", "cluster({0}, 4)[-1..1]", "cluster({0}, 8)[-1..1]")
_OF_CHARACTERS = ("variety({0}, 2..4)",)
# What the parser yields for a..b before expansion.
_Range = tuple[int, ...]
_BAGS = ("parents", "children", "neighbours")
_PATH = re.compile(r"parent(\.parent){0,9}")


@dataclass(frozen=True)
class Call:
    """A function and its arguments after the column."""

    name: str
    arguments: tuple[Argument, ...] = ()


TYPE = Call("type")
"""In place of a function: the type of the edge that a term looks along; it has no column."""


@dataclass(frozen=True)
class Term:
    """A function of a column (None: the symbol itself) at an offset, or along edges.

    ``along`` is "" for the order of positions, a path to one node (parent, parent.parent, …), or
    one of parents, children, neighbours: each of these nodes.
    """

    column: str
    call: Call | None = None
    offset: int = 0
    along: str = ""

    @property
    def is_bag(self) -> bool:
        """Whether it looks at several nodes."""
        return self.along in _BAGS

    @property
    def steps(self) -> int:
        """How many edges up it looks."""
        return 0 if self.is_bag or not self.along else self.along.count(".") + 1

    @property
    def place(self) -> tuple[int, str]:
        """Where it looks."""
        return self.offset, self.along

    def symbol(self) -> str:
        """Return the term without its place, as it stands in a template."""
        if self.call == TYPE:
            return TYPE.name
        # Along edges, a plain «type» is not the column of that name.
        same = self.along and self.column == TYPE.name
        text = _quoted(self.column) if same else _column(self.column)
        if self.call is None:
            return text
        arguments = "".join(
            f", {a if isinstance(a, int) else _quoted(a)}" for a in self.call.arguments
        )
        return f"{self.call.name}({text}{arguments})"

    def __str__(self) -> str:
        if self.is_bag:
            return f"any({self.along}, {self.symbol()})"
        place = self.along or self.offset
        return f"{self.symbol()}[{place}]" if place else self.symbol()


# Kinds of templates, and the least and the greatest number of their terms.
_TERMS: dict[str, tuple[int, float]] = {
    "conjunction": (1, math.inf), "equal": (2, 2), "mean": (1, 1), "ngrams": (1, 1),
    "number": (1, 1), "variety": (1, 1), "wordlist": (1, 1), "bias": (0, 0), "bos": (0, 0),
    "eos": (0, 0),
}  # fmt: skip
# Made once: there may be a template for each line of a long file.
_KIND, _NUMBER = one_of(*_TERMS), whole(0)
_SOME_TERMS = sequence_of(instance(Term), "a tuple of terms")


@dataclass(frozen=True)
class Template:
    """One template: a kind and its terms.

    Kinds: ``conjunction`` (one or more terms), ``equal`` (two terms of one column), ``mean``,
    ``ngrams``, ``number``, ``variety``, ``wordlist`` (one term each), ``bias``, ``bos``, ``eos``
    (no term).
    """

    kind: str
    terms: tuple[Term, ...] = ()
    low: int = 0
    high: int = 0
    min_count: int = 1
    edge: bool = False

    def __post_init__(self) -> None:
        _KIND.check("kind", self.kind)
        _SOME_TERMS.check("terms", self.terms)
        least, most = _TERMS[self.kind]
        if not least <= len(self.terms) <= most:
            wanted = least if least == most else f"at least {least}"
            raise TemplateError(f"{self.kind} has {len(self.terms)} term(s); expected {wanted}")
        if self.kind == "equal" and any(t.call and t.call.name == "lexicon" for t in self.terms):
            raise TemplateError("lengths of the lexicon cannot be compared; combine them by &")
        for name in ("low", "high", "min_count"):
            _NUMBER.check(name, getattr(self, name))
        flag.check("edge", self.edge)
        object.__setattr__(self, "terms", tuple(self.terms))
        if any(term.along or term.call == TYPE for term in self.terms) or self.kind == "mean":
            self._check_along()

    def _check_along(self) -> None:
        for term in self.terms:
            if term.along and not (term.is_bag or _PATH.fullmatch(str(term.along))):
                raise TemplateError(
                    f"a term cannot look along {term.along!r}; expected parent, parent.parent, … "
                    f"(ten at most), {', '.join(_BAGS[:-1])} or {_BAGS[-1]}"
                )
            if term.along and term.offset:
                raise TemplateError("a term is at an offset or along edges, not both")
            if term.call == TYPE and not (term.along and self.kind == "conjunction"):
                raise TemplateError("a type is that of an edge: type[parent], any(children, type)")
        bags = [i for i, term in enumerate(self.terms) if term.is_bag]
        if self.kind == "mean" and not bags:
            raise TemplateError(f"a mean is one of {', '.join(_BAGS[:-1])} or {_BAGS[-1]}")
        if self.kind in _WITH_LENGTHS or (bags and self.kind not in ("conjunction", "mean")):
            raise TemplateError(f"{self.kind} cannot look along {self.terms[0].along}")
        if bags and (
            len({self.terms[i].along for i in bags}) > 1 or bags[-1] - bags[0] >= len(bags)
        ):
            raise TemplateError("a template has one any(…); give the others lines of their own")

    @property
    def is_bag(self) -> bool:
        """Whether it may have several values at a node."""
        return any(term.is_bag for term in self.terms)

    @property
    def is_along(self) -> bool:
        """Whether it looks along edges."""
        return any(term.along for term in self.terms)

    def __str__(self) -> str:
        """Return the template as a line of the language (without its count threshold)."""
        if self.kind == "equal":
            return f"{self.terms[0]} == {self.terms[1]}"
        if self.kind in _WITH_LENGTHS:
            return f"{self.kind}({self.terms[0]}, {self.low}..{self.high})"
        if self.kind == "number":
            term = self.terms[0]
            return str(replace(term, call=Call("number")))
        if self.kind == "mean":
            term = self.terms[0]
            return f"mean({term.along}, {replace(term, call=Call('number')).symbol()})"
        if self.kind == "conjunction":
            return self.written([""] * len(self.terms))
        return self.kind

    def written(self, values: Sequence[str]) -> str:
        """Return the conjunction with a text behind each term, as ``=`` and its value."""
        both = list(zip(self.terms, values, strict=True))
        inside = [f"{term.symbol()}{value}" for term, value in both if term.is_bag]
        parts = []
        for term, value in both:
            if not term.is_bag or len(inside) == 1:
                parts.append(f"{term}{value}")
            elif inside:
                parts.append(f"any({term.along}, {' & '.join(inside)})")
                inside = []  # the others of the bag are written
        return " & ".join(parts)

    def line(self) -> str:
        """Return the template as a line that parses back to it."""
        count = f" @ min_count={self.min_count}" if self.min_count > 1 else ""
        count += " @ edge" if self.edge else ""
        return f"{self}{count}"


# The fields of a template.
_Draft = tuple[str, tuple[Term, ...], int, int, int, bool]


@dataclass(frozen=True)
class Templates:
    """A set of feature templates; one that is given twice is kept once.

    Parameters
    ----------
    templates : tuple of Template
    mark_edges : bool
        Whether a term beyond the sample gives a boundary symbol (True) or no feature (False).
    n_clusters : int
        How many clusters ``cluster`` learns.

    See Also
    --------
    Templates.parse : from the template language (see :mod:`trellis.features.templates`).
    Templates.named : the sets that come with Trellis.
    trellis.features.read_crfpp : from a CRF++ or Wapiti template file.

    Examples
    --------
    >>> from trellis import Templates
    >>> for template in Templates.parse("word[-1..0]; suffix(word, 2..3) & pos[1]"):
    ...     print(template)
    word[-1]
    word
    suffix(word, 2) & pos[1]
    suffix(word, 3) & pos[1]
    """

    templates: tuple[Template, ...]
    mark_edges: bool = False
    n_clusters: int = _N_CLUSTERS

    def __post_init__(self) -> None:
        sequence_of(instance(Template), "a tuple of templates").check("templates", self.templates)
        flag.check("mark_edges", self.mark_edges)
        whole(1).check("n_clusters", self.n_clusters)
        object.__setattr__(self, "templates", tuple(dict.fromkeys(self.templates)))

    def __len__(self) -> int:
        return len(self.templates)

    def __iter__(self) -> Iterator[Template]:
        return iter(self.templates)

    @classmethod
    def parse(cls, text: str | Iterable[str]) -> Templates:
        """Read templates from text (lines or ``;``) or from a list of lines."""
        lists = isinstance(text, str | Iterator) or samples.accepts(text)
        if not lists:
            raise TemplateError(f"templates are text or a list of lines, not {text!r:.60}")
        lines = _split_lines(text) if isinstance(text, str) else enumerate(text, 1)
        drafts: list[_Draft] = []
        mark_edges, min_count, n_clusters = False, 1, _N_CLUSTERS
        for number, raw in lines:
            if not isinstance(raw, str):
                raise TemplateError(f"template line {number} is {raw!r}; expected a string")
            line = _without_comment(raw)
            if not line:
                continue
            try:
                setting = re.fullmatch(r"(edges|min_count|clusters)\s*=\s*(\w+)", line)
                if setting is None:
                    drafts += _Parser(line).drafts()
                elif setting[1] == "edges" and setting[2] in ("mark", "skip"):
                    mark_edges = setting[2] == "mark"
                elif setting[1] == "min_count" and setting[2].isdecimal():
                    min_count = _count(setting[2])
                elif setting[1] == "clusters" and setting[2].isdecimal():
                    n_clusters = _integer(setting[2])
                    if not 1 <= n_clusters <= _MAX_CLUSTERS:
                        raise TemplateError(f"there may be 1 to {_MAX_CLUSTERS} clusters")
                else:
                    raise TemplateError(
                        "expected «edges = mark», «edges = skip», «min_count = n» or «clusters = n»"
                    )
            except TemplateError as error:
                raise TemplateError(f"template line {number}, {line!r}: {error}") from None
        if not drafts:
            raise TemplateError("no templates: expected lines such as word[-2..2]")
        templates = [
            Template(kind, terms, low, high, count or min_count, edge)
            for kind, terms, low, high, count, edge in drafts
        ]
        return cls(tuple(templates), mark_edges, n_clusters)

    @classmethod
    def named(cls, name: str) -> Templates:
        """Return a set that comes with Trellis: chunking, pos, ner or wordseg."""
        if name not in named_sets():
            raise TemplateError(f"no template set {name!r}; there are {', '.join(named_sets())}")
        folder = resources.files("trellis.features") / "sets"
        return cls.parse((folder / f"{name}.txt").read_text(encoding="utf-8"))

    @classmethod
    def default_for(
        cls, columns: Sequence[str], numbers: Sequence[str] = (), *, trees: bool = False
    ) -> Templates:
        """Return templates that suit any columns: windows, neighbour pairs, affixes and shape.

        Columns of ``numbers`` are taken at their value. For ``trees``, whose edges have no types,
        there are those of parents and children, too.
        """
        strings.check("columns", columns)
        strings.check("numbers", numbers)
        flag.check("trees", trees)
        if numbers:
            lines = [f"number({_column(name)})" for name in numbers]
            texts = [name for name in columns if name not in numbers]
            known = cls.default_for(texts, trees=trees).text().split("\n") if texts else []
            return cls.parse([*known, *lines])
        if not columns:
            raise TemplateError("the corpus has neither columns nor features to learn from")
        if "form" in columns:  # CoNLL-U: the other columns are annotation that new text lacks
            columns = ["form"]
        lines = []
        for column in map(_column, columns):
            lines += [f"{column}[-2..2]", f"{column}[-1..0] & {column}[0..1]"]
        first = _column(columns[0])
        lines += [f"lower({first})", f"short_shape({first})[-1..1]"]
        lines += [f"prefix({first}, 1..3)", f"suffix({first}, 1..3)", "bos", "eos"]
        # A node of a tree may have several parents, where edges do not mean that.
        for around in ("parents", "children") if trees else ():
            lines += [f"any({around}, lower({first}))", f"any({around}, short_shape({first}))"]
            lines += [f"any({around}, {column})" for column in map(_column, columns[1:])]
        return cls.parse(lines)

    def text(self) -> str:
        """Return the templates in the template language; parses back to an equal set."""
        head = ["edges = mark"] if self.mark_edges else []
        head += [f"clusters = {self.n_clusters}"] if self.n_clusters != _N_CLUSTERS else []
        return "\n".join([*head, *(t.line() for t in self.templates)])

    def resolved(self, columns: Sequence[str]) -> Templates:
        """Templates whose columns are all among ``columns``, following the usual synonyms."""
        strings.check("columns", columns)
        return replace(self, templates=tuple(_resolve(t, columns) for t in self.templates))

    def columns(self) -> list[str]:
        """Names of the columns used."""
        return list(self._columns)

    @cached_property
    def _columns(self) -> list[str]:
        used = (term.column for t in self.templates for term in t.terms if term.call != TYPE)
        return list(dict.fromkeys(used))

    def along_edges(self) -> list[Template]:
        """Templates that look along edges."""
        return list(self._along_edges)

    @cached_property
    def _along_edges(self) -> list[Template]:
        return [template for template in self.templates if template.is_along]

    def clustered(self) -> list[str]:
        """Names of the columns whose symbols have clusters."""
        return [column for column, call in self._calls() if call.name == "cluster"]

    def dictionaries(self) -> list[tuple[str, str]]:
        """Columns and names of the dictionaries used."""
        return [
            (c, str(call.arguments[0])) for c, call in self._calls() if call.name == "dictionary"
        ]

    def lexicons(self) -> list[str]:
        """Names of the columns whose training words are used."""
        return list(dict.fromkeys(c for c, call in self._calls() if call.name == "lexicon"))

    def from_text(self) -> list[str]:
        """Names of the columns from whose text something is learned."""
        variety = [t.terms[0].column for t in self.templates if t.kind == "variety"]
        return list(dict.fromkeys(self.clustered() + variety))

    def _calls(self) -> list[tuple[str, Call]]:
        """Columns and functions, each pair once; clusters are one function for all bits."""
        calls = [
            (term.column, Call("cluster") if term.call.name == "cluster" else term.call)
            for t in self.templates for term in t.terms if term.call is not None
        ]  # fmt: skip
        return list(dict.fromkeys(calls))

    def with_text(self, *, of_characters: bool) -> Templates:
        """The same and templates that learn from raw text, of the first column used."""
        column = _column(self.columns()[0])
        lines = _OF_CHARACTERS if of_characters else _OF_WORDS
        return self._and([line.format(column) for line in lines])

    def with_dictionaries(self, names: Sequence[str]) -> Templates:
        """The same and places in entries of dictionaries, of the first column used."""
        column = _column(self.columns()[0]) if names else ""
        return self._and([f"dictionary({column}, {_quoted(name)})[-1..1]" for name in names])

    def _and(self, lines: Sequence[str]) -> Templates:
        if not lines:
            return self
        return replace(self, templates=(*self.templates, *Templates.parse(lines)))


def named_sets() -> list[str]:
    """Names of the template sets that come with Trellis."""
    folder = resources.files("trellis.features") / "sets"
    return sorted(f.name.removesuffix(".txt") for f in folder.iterdir() if f.name.endswith(".txt"))


def as_templates(
    features: Any, columns: Sequence[str], numbers: Sequence[str] = (), *, trees: bool = False
) -> Templates:
    """What a user passed as ``features=``, as templates over the given columns.

    ``numbers`` are those of the columns that hold numbers; ``trees`` is for the default.
    """
    strings.check("columns", columns)
    if is_default(features):
        return Templates.default_for(columns, numbers, trees=trees)
    if isinstance(features, Templates):
        templates = features
    elif isinstance(features, str):
        named = is_set(features, columns)
        templates = Templates.named(features) if named else Templates.parse(features)
    elif isinstance(features, Iterable) and not isinstance(features, Mapping):
        templates = Templates.parse(features)
    else:
        raise TemplateError(
            f"features must be a set's name, template text, a list of lines or Templates, "
            f"got {type(features).__name__}"
        )
    return templates.resolved(columns)


def is_default(features: Any) -> bool:
    """Whether ``features=`` leaves the choice of features to the data."""
    return features is None or (isinstance(features, str) and features == "auto")


def is_set(features: Any, columns: Sequence[str]) -> bool:
    """Whether ``features=`` asks for the default or a named set, not for templates of one's own."""
    if is_default(features):
        return True
    # One word is a set's name, unless it can only be a template.
    if not isinstance(features, str) or not re.fullmatch(r"[\w-]+", features):
        return False
    return features in named_sets() or features not in (*_FLAGS, *columns, *_ALIASES)


def _resolve(template: Template, columns: Sequence[str]) -> Template:
    def locate(term: Term) -> Term:
        if term.call == TYPE:
            return term
        for name in (term.column, *_ALIASES.get(term.column, ())):
            if name in columns:
                return replace(term, column=name)
        raise ColumnError(
            f"template {str(template)!r} needs the column {term.column!r}; "
            f"the corpus has {', '.join(columns) or 'none'}"
        )

    return replace(template, terms=tuple(locate(term) for term in template.terms))


def _split_lines(text: str) -> Iterator[tuple[int, str]]:
    """Numbered lines of the text, also divided at semicolons outside quotes and comments."""
    for number, line in enumerate(re.split(r"\r\n|[\r\n]", text), 1):
        for part in re.findall(r'(?:"(?:[^"\\]|\\.)*"?|#.*|[^;"])+', line):
            yield number, part


def _without_comment(line: str) -> str:
    kept = re.match(r'(?:"(?:[^"\\]|\\.)*"?|[^#"])*', line)
    return kept.group().strip() if kept else ""


def _column(name: str) -> str:
    """A column's name as it stands in a template."""
    plain = _NAME.fullmatch(name) and name not in (*_FLAGS, *_SPECIAL)
    return name if plain else _quoted(name)


_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r"}


def _quoted(text: str) -> str:
    return '"' + re.sub(r'[\\"\n\r]', lambda hit: _ESCAPES[hit[0]], text) + '"'


def _unquoted(text: str) -> str:
    """Undo :func:`_quoted`; any other backslash is kept, as regular expressions need it."""
    plain = {escape: character for character, escape in _ESCAPES.items()}
    return re.sub(r'\\[\\"nr]', lambda hit: plain[hit[0]], text[1:-1])


def _integer(digits: str) -> int:
    if len(digits) > 9:
        raise TemplateError(f"the number {digits[:9]}… is too large")
    return int(digits)


def _count(digits: str) -> int:
    count = _integer(digits)
    if count < 1:
        raise TemplateError("min_count must be at least 1")
    return count


class _Parser:
    """Recursive descent over one line; terms are read first, ranges expanded afterwards."""

    def __init__(self, line: str) -> None:
        self.tokens: list[tuple[str, str]] = []
        end = 0
        while hit := _TOKEN.match(line, end):  # a search would look for the end of every quote
            end = hit.end()
            kind = hit.lastgroup or ""
            self.tokens.append((kind, hit[kind]))
        if line[end:].strip():
            raise TemplateError(f"cannot read {line[end:].strip()!r}")
        self.at = 0

    def peek(self) -> tuple[str, str]:
        return self.tokens[self.at] if self.at < len(self.tokens) else ("end", "the end")

    def next(self, kind: str, value: str | None = None) -> str:
        token = self.peek()
        if token[0] != kind or (value is not None and token[1] != value):
            raise TemplateError(f"expected {value or kind}, found {token[1]}")
        self.at += 1
        return token[1]

    def accept(self, symbol: str) -> bool:
        if self.peek() == ("symbol", symbol):
            self.at += 1
            return True
        return False

    def is_column(self) -> bool:
        """Whether the line begins with a column named as a template that came later."""
        return self.peek()[1] in ("mean", "variety") and self.tokens[1] != ("symbol", "(")

    def drafts(self) -> list[_Draft]:
        """All templates of the line; a count of 0: what holds for all templates."""
        kind, value = self.peek()
        alone = len(self.tokens) == 1 or self.tokens[1] == ("symbol", "@")
        together: list[tuple[Term, ...]] = [()]
        low = high = min_count = 0
        if kind == "name" and value in _FLAGS and alone:
            kind = self.next("name")
        elif kind == "name" and value in (*_SPECIAL, "mean") and not (alone or self.is_column()):
            kind = self.next("name")
            together, low, high = self.special(kind)
        else:
            parts = [self.term()]
            if self.accept("=="):
                kind = "equal"
                parts.append(self.term())
                together = _together(parts)
                for terms in together:
                    if any(term.is_bag or term.call == TYPE for term in terms):
                        raise TemplateError("any(…) and types of edges cannot be compared by ==")
                    a, b = terms
                    if (a.column, a.call) != (b.column, b.call):
                        raise TemplateError("both sides of == must use the same column")
                    if a.place == b.place:
                        raise TemplateError("both sides of == are the same term")
            else:
                kind = "conjunction"
                while self.accept("&"):
                    parts.append(self.term())
                if sum(part[0][0].is_bag for part in parts) > 1:
                    raise TemplateError(
                        "a template has one any(…); give the others lines of their own"
                    )
                together = _together(parts)
        edge = False
        while self.accept("@"):
            if self.peek() == ("name", "edge"):
                self.next("name")
                edge = True
                continue
            if self.peek() != ("name", "min_count"):
                raise TemplateError(f"expected min_count or edge, found {self.peek()[1]}")
            self.next("name")
            self.next("symbol", "=")
            min_count = _count(self.next("number"))
        if self.peek()[0] != "end":
            raise TemplateError(f"did not expect {self.peek()[1]}")
        return [(kind, terms, low, high, min_count, edge) for terms in together]

    def special(self, name: str) -> tuple[list[tuple[Term, ...]], int, int]:
        self.next("symbol", "(")
        if name == "mean":
            return [self.mean()], 0, 0
        column = self.column()
        low = high = 0
        if name != "number":
            self.next("symbol", ",")
            lengths = self.integers()
            low, high = lengths[0], lengths[-1]
            if low < 1:
                raise TemplateError(f"{name} takes lengths from 1, e.g. {name}({column}, 2..4)")
            if name in ("variety", "wordlist") and high > _MAX_WORD:
                raise TemplateError(f"{name} takes lengths up to {_MAX_WORD}")
        self.next("symbol", ")")
        places = self.places() if name == "number" else [(0, "")]
        return [(Term(column, None, *place),) for place in places], low, high

    def mean(self) -> tuple[Term, ...]:
        """What stands in the brackets of a mean."""
        along = self.relation()
        if self.peek() != ("name", "number"):
            raise TemplateError(f"a mean is one of numbers, as mean({along}, number(height))")
        self.next("name")
        self.next("symbol", "(")
        column = self.column()
        self.next("symbol", ")")
        self.next("symbol", ")")
        return (Term(column, along=along),)

    def relation(self) -> str:
        """Which nodes a bag is of, and the comma."""
        along = self.peek()[1]
        if along not in _BAGS:
            raise TemplateError(f"expected parents, children or neighbours, found {along}")
        self.next("name")
        self.next("symbol", ",")
        return along

    def term(self) -> list[tuple[Term, ...]]:
        """All expansions of one term, in order; those of a bag may be conjunctions."""
        if self.tokens[self.at : self.at + 2] == [("name", "any"), ("symbol", "(")]:
            self.at += 2
            along = self.relation()
            parts = [self.plain_term(along)]
            while self.accept("&"):
                parts.append(self.plain_term(along))
            self.next("symbol", ")")
            return _together(parts)
        return self.plain_term()

    def plain_term(self, bag: str = "") -> list[tuple[Term, ...]]:
        """All expansions of a term that is no bag, or one of a bag."""
        may_call = self.peek()[0] == "name"
        is_type = self.peek() == ("name", TYPE.name)
        name = column = self.column()
        calls: list[Call | None] = [None]
        if may_call and self.accept("("):
            is_type = self.peek() == ("name", TYPE.name)
            column = self.column()
            arguments: list[Sequence[Argument]] = []
            while self.accept(","):
                if self.peek()[0] == "string":
                    arguments.append([_unquoted(self.next("string"))])
                else:
                    arguments.append(self.integers())
            self.next("symbol", ")")
            if len(arguments) > 1:
                raise TemplateError(f"{name} takes one argument after the column")
            calls = [Call(name, (a,)) for a in arguments[0]] if arguments else [Call(name)]
            for call in calls:
                assert call is not None
                check_call(call.name, call.arguments)
        if bag and self.peek() == ("symbol", "["):
            raise TemplateError("a term in any(…) has no place of its own; leave out […]")
        places = [(0, bag)] if bag else self.places()
        if is_type and places[0][1]:
            if calls != [None]:
                raise TemplateError(
                    f"types of edges take no function; a column {TYPE.name} stands in quotes"
                )
            column, calls = "", [TYPE]
        return [(Term(column, call, *place),) for call in calls for place in places]

    def column(self) -> str:
        """A column's name: a word, or anything in quotes."""
        if self.peek()[0] == "string":
            return _unquoted(self.next("string"))
        return self.next("name")

    def places(self) -> list[tuple[int, str]]:
        """Offsets, or a path along edges, in brackets; the position itself without any."""
        if not self.accept("["):
            return [(0, "")]
        word = self.peek()[1]
        if word in _BAGS:
            raise TemplateError(f"there may be several {word}; say any({word}, …)")
        if word == "parent":
            steps = [self.next("name")]
            while self.accept("."):
                steps.append(self.next("name", "parent"))
            if not _PATH.fullmatch(".".join(steps)):
                raise TemplateError("a path has ten parents at most")
            places = [(0, ".".join(steps))]
        else:
            places = [(offset, "") for offset in self.integers()]
        self.next("symbol", "]")
        return places

    def integers(self) -> _Range:
        is_range = self.peek()[0] == "range"
        value = self.next("range" if is_range else "number")
        low, *rest = (_integer(v) for v in value.split(".."))
        high = rest[0] if rest else low
        if low > high:
            raise TemplateError(f"range {value} runs backwards")
        if max(-low, high) > _MAX_NUMBER:
            raise TemplateError(f"{value} is too large: at most {_MAX_NUMBER}")
        return tuple(range(low, high + 1))


def _together(parts: list[list[tuple[Term, ...]]]) -> list[tuple[Term, ...]]:
    """Expand ranges: all parts with more than one alternative move together."""
    sizes = {len(part) for part in parts if len(part) > 1}
    if len(sizes) > 1:
        raise TemplateError(f"ranges of different lengths in one template: {sorted(sizes)}")
    n = sizes.pop() if sizes else 1
    return [
        tuple(term for part in parts for term in (part[i] if len(part) > 1 else part[0]))
        for i in range(n)
    ]

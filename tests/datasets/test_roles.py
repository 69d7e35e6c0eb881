"""The roles of identifiers: handwritten cases, then Python's tokeniser and compiler as oracles."""

import ast
import dis
import io
import itertools
import keyword
import sys
import sysconfig
import token
import tokenize
import types
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trellis.datasets.roles import ROLES, Roles, source_roles, stdlib_roles
from trellis.datasets.syntax import _Walk, label_source
from trellis.errors import DataError

STDLIB = Path(sysconfig.get_path("stdlib"))


def pairs(source):
    """All (identifier, role) of a source as "identifier:role" strings."""
    tokens, labels = source_roles(source)
    words, roles = itertools.chain(*tokens), itertools.chain(*labels)
    return [f"{word}:{role}" for word, role in zip(words, roles, strict=True)]


CASES = {
    "imports": (
        "import os\nimport a.b.c, d.e as f\nfrom g.h import i, j as k\nfrom . import m\n"
        "from .. n import (o,  # p\n q)\nfrom r import *\nf, k, a",
        "os:import_module a:import_module b:import_module c:import_module d:import_module "
        "e:import_module f:import_name g:import_module h:import_module i:import_name j:import_name "
        "k:import_name m:import_name n:import_module o:import_name q:import_name r:import_module "
        "f:global_read k:global_read a:global_read",
    ),
    "import in a function": (
        "def f():\n    import a.b\n    from c import d as e\n    return a, b, d, e",
        "f:function_name a:import_module b:import_module c:import_module d:import_name "
        "e:import_name a:local_read b:global_read d:global_read e:local_read",
    ),
    "parameters": (
        "def f(a, /, b: int, c=x, *d, e, g=y, **h) -> z:\n    return a, b, c, d, e, g, h, f",
        "f:function_name a:parameter b:parameter int:builtin_read c:parameter x:global_read "
        "d:parameter e:parameter g:parameter y:global_read h:parameter z:global_read "
        "a:parameter_read b:parameter_read c:parameter_read d:parameter_read e:parameter_read "
        "g:parameter_read h:parameter_read f:global_read",
    ),
    "a parameter that is assigned to stays a parameter": (
        "def f(a):\n    a = 1\n    return a",
        "f:function_name a:parameter a:local_store a:parameter_read",
    ),
    "async": (
        "async \\\n def f():\n    async for i in g(): await i\n    async with h() as j: pass",
        "f:function_name i:loop_target g:call i:local_read h:call j:local_store",
    ),
    "nested functions": (
        "def f(a):\n    b = 1\n    def g(c):\n        nonlocal b\n        b = a\n"
        "        return b, c, d\n    return g",
        "f:function_name a:parameter b:local_store g:function_name c:parameter b:local_store "
        "b:local_store a:parameter_read b:local_read c:parameter_read d:global_read g:local_read",
    ),
    "lambda": (
        "f = lambda x, *y, z=w: (x, y, z, v)",
        "f:global_store x:parameter y:parameter z:parameter w:global_read x:parameter_read "
        "y:parameter_read z:parameter_read v:global_read",
    ),
    "class": (
        "@d\n@e.f(g)\nclass A(B, c.D, E[F], h(i), *J, metaclass=K, **L):\n"
        "    x = 1\n    y: int = x\n"
        "    def m(self):\n        return x, A\n    async def n(self): pass",
        "d:decorator e:global_read f:decorator g:global_read A:class_name B:base_class "
        "c:global_read D:base_class E:base_class F:global_read h:call i:global_read J:base_class "
        "metaclass:keyword_argument K:global_read L:global_read x:class_store y:class_store "
        "int:builtin_read x:local_read m:method_name self:parameter x:global_read A:global_read "
        "n:method_name self:parameter",
    ),
    "class in a function, function in a method": (
        "def f():\n    class A:\n        def m(self):\n            def g(): return self\n"
        "    return A",
        "f:function_name A:class_name m:method_name self:parameter g:function_name "
        "self:parameter_read A:local_read",
    ),
    "comprehensions in a class do not see its names": (
        "class A:\n    x = 1\n    y = [x for i in x if i]",
        "A:class_name x:class_store y:class_store x:global_read i:loop_target x:local_read "
        "i:local_read",
    ),
    "decorated function": (
        "@a.b\n@property\ndef f(): pass",
        "a:global_read b:decorator property:decorator f:function_name",
    ),
    "attributes and calls": (
        "a.b.c(d.e)(f)\na.b.c = a.d\ndel a.b\na.b += 1\n(a  # x\n .b) . c\n"
        "'{}'.format(a)\n1 .real\na[b].c()[d] = e",
        "a:global_read b:attribute_read c:method_call d:global_read e:attribute_read f:global_read "
        "a:global_read b:attribute_read c:attribute_store a:global_read d:attribute_read "
        "a:global_read b:attribute_store a:global_read b:attribute_store a:global_read "
        "b:attribute_read c:attribute_read format:method_call a:global_read real:attribute_read "
        "a:global_read b:global_read c:method_call d:global_read e:global_read",
    ),
    "call with keywords": (
        "print(a, *b, sep=c, **d)",
        "print:call a:global_read b:global_read sep:keyword_argument c:global_read d:global_read",
    ),
    "a called tuple is not a call of its elements": (
        "(a, b)()",
        "a:global_read b:global_read",
    ),
    "built-ins and what hides them": (
        "import len\nlist = 1\nx = len, list, str, NotImplemented, __debug__, exit, __name__\n"
        "def f(id): return id, max\ndef g():\n    global max\n    max = 1",
        "len:import_module list:global_store x:global_store len:global_read list:global_read "
        "str:builtin_read NotImplemented:builtin_read __debug__:builtin_read exit:global_read "
        "__name__:global_read f:function_name id:parameter id:parameter_read max:global_read "
        "g:function_name max:global_store max:global_store",
    ),
    "stores": (
        "def f():\n    a = b, (c, *d) = [e, a] = 1\n    g += g\n    del a, (c)\n    h: int\n"
        "    if (i := 1): return i",
        "f:function_name a:local_store b:local_store c:local_store d:local_store e:local_store "
        "a:local_store g:local_store g:local_read a:local_store c:local_store h:local_store "
        "int:builtin_read i:local_store i:local_read",
    ),
    "global": (
        "x = 1\ndef f():\n    global x, \\\n y\n    x = y\n    def g(): return x\n"
        "class A:\n    global z\n    z = x",
        "x:global_store f:function_name x:global_store y:global_store x:global_store y:global_read "
        "g:function_name x:global_read A:class_name z:global_store z:global_store x:global_read",
    ),
    "a global of a class is not one of its methods": (
        "def f(x):\n    class A:\n        global x\n        x\n        def m(self): return x",
        "f:function_name x:parameter A:class_name x:global_store x:global_read m:method_name "
        "self:parameter x:parameter_read",
    ),
    "loops": (
        "for a, (b, *c) in d: e = a\nelse: f\nfor g.h in i: pass\nfor j[k] in l: pass",
        "a:loop_target b:loop_target c:loop_target d:global_read e:global_store a:global_read "
        "f:global_read g:global_read h:attribute_store i:global_read j:global_read k:global_read "
        "l:global_read",
    ),
    "comprehensions": (
        "x = [a for a in a if a]\n{b: c for b, c in d for e in b}\n"
        "def f(): return {(g := h) for h in i}, g\n(j for j in k)",
        "x:global_store a:local_read a:loop_target a:global_read a:local_read b:local_read "
        "c:local_read b:loop_target c:loop_target d:global_read e:loop_target b:local_read "
        "f:function_name g:local_store h:local_read h:loop_target i:global_read g:local_read "
        "j:local_read j:loop_target k:global_read",
    ),
    "with": (
        "with (a, b() as c, d as (e, f.g)): c",
        "a:global_read b:call c:global_store d:global_read e:global_store f:global_read "
        "g:attribute_store c:global_read",
    ),
    "exceptions": (
        "def f():\n    try: pass\n    except (A, b.C) as d: raise d from e\n"
        "    except (OSError  # as g\n    ) as h: raise E(h)\n    except: pass",
        "f:function_name A:global_read b:global_read C:attribute_read d:local_store d:local_read "
        "e:global_read OSError:builtin_read h:local_store E:call h:local_read",
    ),
    "exception groups": (
        "try: pass\nexcept* A as b: b",
        "A:global_read b:global_store b:global_read",
    ),
    "match": (
        "match match:\n    case (case): pass\n    case [A.b, *c, _]: pass\n"
        "    case {'k': (d), e.f: 1, **g}: pass\n    case {**h}: pass\n"
        "    case P(i, (j), k=(l), m=n.o(p=_) as q) | (R() as s) if _: s\n    case [*_]: pass\n"
        "    case case: pass\n    case _: pass\nmatch = case = type = _",
        "match:global_read case:global_store A:global_read b:attribute_read c:global_store "
        "d:global_store e:global_read f:attribute_read g:global_store h:global_store P:call "
        "i:global_store j:global_store k:keyword_argument l:global_store m:keyword_argument "
        "n:global_read o:method_call p:keyword_argument q:global_store R:call s:global_store "
        "_:global_read s:global_read case:global_store match:global_store case:global_store "
        "type:global_store _:global_read",
    ),
    "f-strings are left out, their bindings are not": (
        "def f(a):\n    b = f'{a.c!r:>{d}} {(e := 1)}' f\"{a}\" 'g'\n    return e, f'{a}'.h",
        "f:function_name a:parameter b:local_store e:local_read h:attribute_read",
    ),
    "columns on lines with other than ASCII characters": (
        "é = 'ü€𝄞'; ñ.ö(é, größe=x)  # ä\ndef ф(ж): '€'.join(ж); return ж",
        "é:global_store ñ:global_read ö:method_call é:global_read größe:keyword_argument "
        "x:global_read ф:function_name ж:parameter join:method_call ж:parameter_read "
        "ж:parameter_read",
    ),
    "compatibility characters keep their spelling, but mean the same name": (
        "def f(ﬁx): return fix.ﬁ.x",
        "f:function_name ﬁx:parameter fix:parameter_read ﬁ:attribute_read x:attribute_read",
    ),
}
CASES_312 = {
    "type parameters": (
        "def f[T: int, *U, **V](x: T) -> U: return T\nclass A[T](B[T]):\n    def m(self): return T",
        "f:function_name T:parameter int:builtin_read U:parameter V:parameter x:parameter "
        "T:parameter_read U:parameter_read T:parameter_read A:class_name T:parameter B:base_class "
        "T:parameter_read m:method_name self:parameter T:parameter_read",
    ),
    "type aliases": (
        "type type[T] = list[T]\ndef f():\n    type A = int",
        "type:global_store T:parameter list:builtin_read T:parameter_read f:function_name "
        "A:local_store int:builtin_read",
    ),
    "nested quotes in f-strings": ("a = f'{b['c']}'.d", "a:global_store d:attribute_read"),
}
CASES_314 = {
    "t-strings": ("a = t'{b}'", "a:global_store"),
    "except without parentheses": (
        "try: pass\nexcept A, B: pass",
        "A:global_read B:global_read",
    ),
}
if sys.version_info >= (3, 12):
    CASES |= CASES_312
if sys.version_info >= (3, 14):
    CASES |= CASES_314


@pytest.mark.parametrize(("source", "expected"), CASES.values(), ids=CASES)
def test_role_of_each_identifier(source, expected):
    assert pairs(source) == expected.split()


def test_cases_cover_all_roles():
    assert {e.partition(":")[2] for _, all_ in CASES.values() for e in all_.split()} == set(ROLES)


@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_line_ends_and_byte_order_mark_do_not_matter(end):
    source = CASES["class"][0]
    for unit in ("function", "statement"):
        other = "\ufeff" + source.replace("\n", end)
        assert source_roles(other, unit=unit) == source_roles(source, unit=unit)


def test_deep_nesting_needs_no_recursion():
    limit = sys.getrecursionlimit()
    source = "x = " + " + ".join(["a"] * limit)
    tree = ast.parse(source)  # goes deeper than a recursive walk in Python could
    with pytest.raises(RecursionError):
        ast.NodeVisitor().visit(tree)
    assert source_roles(source)[0] == [["x"] + ["a"] * limit]


UNITS_SOURCE = """\
import a, \\
    b
import c
# comment
d = 1; e = (2,

    3)

@f
@g(
    h)
def i(j):
    k = '''

    '''
    def l(): return m

    return k
class N(O):
    '''Text.'''

    p = 1
    def q(self): pass
    r = 2
    async def s(self): pass

if (t and
        u): v = 1
elif w: x
else: y = 1
"""


def test_unit_function():
    assert [" ".join(s) for s in source_roles(UNITS_SOURCE, unit="function")[0]] == [
        "a b c",
        "d e",
        "f g h i j k l m k",
        "N O",
        "p",
        "q self",
        "r",
        "s self",
        "t u v w x y",
    ]


def test_unit_statement():
    assert [" ".join(s) for s in source_roles(UNITS_SOURCE, unit="statement")[0]] == [
        *["a b", "c", "d e", "f", "g h", "i j", "k", "l m", "k", "N O", "p", "q self", "r"],
        *["s self", "t u v", "w x", "y"],
    ]


def test_empty_source_has_no_sequences():
    assert source_roles("'''Text.'''\n") == ([], [])


# The standard library, with Python's own tokeniser and compiler as oracles


@pytest.fixture(scope="module")
def sample():
    return stdlib_roles(max_tokens=40_000, unit="statement")


@pytest.fixture(scope="module")
def sample_sources(sample):
    """Map each module of the sample to its whole source."""
    sources = {}
    for module in dict.fromkeys(sample.modules):
        path = STDLIB.joinpath(*module.split("."))
        path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        with tokenize.open(path) as stream:
            sources[module] = stream.read()
    return sources


def logical_lines(source):
    """Identifiers of each logical line, soft keywords included, by the tokeniser."""
    starts = {getattr(token, name, None) for name in ("FSTRING_START", "TSTRING_START")}
    ends = {getattr(token, name, None) for name in ("FSTRING_END", "TSTRING_END")}
    lines, depth = [[]], 0
    for found in tokenize.generate_tokens(io.StringIO(source).readline):
        depth += (found.type in starts) - (found.type in ends)
        if found.type == token.NEWLINE:
            lines.append([])
        elif found.type == token.NAME and not depth and not keyword.iskeyword(found.string):
            lines[-1].append(found.string)
    return [line for line in lines if line]


def soft_keywords(source):
    count = Counter()
    for node in ast.walk(ast.parse(source)):
        kind = type(node).__name__
        word = {"Match": "match", "match_case": "case", "TypeAlias": "type"}.get(kind)
        if kind in ("MatchAs", "MatchStar") and node.name is None:
            word = "_"
        if word:
            count[word] += 1
    return count


def test_no_identifier_is_missed_or_counted_twice(sample_sources):
    sources = [*sample_sources.values(), *(source for source, _ in CASES.values())]
    for source in sources:
        lines = logical_lines(source)
        tokens, labels = source_roles(source, unit="statement")
        expected = Counter(word for line in lines for word in line)
        expected.subtract(soft_keywords(source))
        assert Counter(word for line in tokens for word in line) == +expected
        assert [len(line) for line in labels] == [len(line) for line in tokens]
        if not soft_keywords(source):
            assert tokens == lines


def test_both_units_cut_the_same_tokens(sample_sources):
    for source in sample_sources.values():
        joined = [
            ([t for s in tokens for t in s], [y for s in labels for y in s])
            for tokens, labels in (source_roles(source, unit=u) for u in ("function", "statement"))
        ]
        assert joined[0] == joined[1]


def all_code(code):
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from all_code(constant)


def test_scopes_agree_with_the_compiler(sample_sources):
    checked = Counter()
    for source in sample_sources.values():
        walk = _Walk(source)
        walk.run(ast.parse(source))
        role_at = {(start, end): role for start, end, role in walk.roles}
        for code in all_code(compile(source, "sample", "exec", dont_inherit=True)):
            for instruction in dis.get_instructions(code):
                row, end_row, column, end_column = instruction.positions or (None,) * 4
                if None in (row, end_row, column, end_column):
                    continue
                place = (walk.line_starts[row] + column, walk.line_starts[end_row] + end_column)
                role = role_at.get(place)
                # Code made by the compiler itself carries the place of what it was made for.
                if role is None or walk.text[slice(*place)].decode() != instruction.argval:
                    continue
                op = instruction.opname
                is_local = "_FAST" in op or "DEREF" in op
                is_global = "_GLOBAL" in op
                if role in ("local_read", "parameter_read", "local_store"):
                    assert not is_global, (place, role, op)
                elif role in ("global_read", "builtin_read", "global_store"):
                    assert not is_local or instruction.argval == "__class__", (place, role, op)
                checked[role, is_local, is_global] += 1
    assert checked["local_read", True, False] > 1000
    assert checked["parameter_read", True, False] > 1000
    assert checked["global_read", False, True] > 1000


def test_roles_of_the_standard_library(sample):
    assert sample.n_tokens >= 40_000
    assert len(set(sample.modules)) >= 20
    assert len(sample.tokens) == len(sample.labels) == len(sample.modules)
    count = Counter(role for labels in sample.labels for role in labels)
    assert set(count) == set(ROLES)
    assert min(count.values()) >= 0.001 * sample.n_tokens
    assert sample.modules == sorted(sample.modules)
    assert not any({"test", "tests", "encodings"} & set(m.split(".")) for m in sample.modules)


# Folders, order, limits


@pytest.fixture
def tree(tmp_path):
    """Twenty modules of three one-token lines each."""
    for letter in "abcdefghijklmnopqrst":
        (tmp_path / f"{letter}.py").write_text(f"{letter}1\n\n{letter}2\n\n{letter}3\n")
    return tmp_path


def test_all_modules_in_order(tree):
    data = stdlib_roles(root=tree)
    assert data.modules == [letter for letter in "abcdefghijklmnopqrst" for _ in range(3)]
    assert data.tokens[:4] == [["a1"], ["a2"], ["a3"], ["b1"]]
    assert stdlib_roles(root=str(tree)) == data


def test_sample_is_spread_over_modules_and_the_same_everywhere(tree):
    data = stdlib_roles(root=tree, max_tokens=10)
    assert data.n_tokens == 10
    assert data.modules == list("bbbjoooppp")
    assert stdlib_roles(root=tree, max_tokens=1000) == stdlib_roles(root=tree)


def test_sample_stops_after_the_sequence_that_reaches_the_limit(tmp_path):
    (tmp_path / "m.py").write_text("a, b\n\nc, d\n\ne, f\n")
    assert stdlib_roles(root=tmp_path, max_tokens=3).tokens == [["a", "b"], ["c", "d"]]
    assert stdlib_roles(root=tmp_path, max_tokens=2).tokens == [["a", "b"]]


def test_what_is_left_out(tmp_path):
    for name in [
        *[
            "test/a.py",
            "pkg/tests/b.py",
            "site-packages/c.py",
            "encodings/cp1.py",
            "turtledemo/d.py",
        ],
        *["pkg/test_e.py", "pkg/conftest.py", "_sysconfigdata_x.py", "two-words.py", "pkg/f.txt"],
        *["pkg/__init__.py", "pkg/sub/g.py", "testing.py", "__init__.py"],
    ]:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x\n")
    (tmp_path / "wrong.py").write_text("def x(:\n")
    (tmp_path / "python2.py").write_text("print 'x', y\n")
    (tmp_path / "binary.py").write_bytes(b"x = '\xff\0'\n")
    (tmp_path / "dangling.py").symlink_to(tmp_path / "nowhere.py")
    (tmp_path / "latin.py").write_bytes("# coding: latin-1\nß.ä\n".encode("latin-1"))
    data = stdlib_roles(root=tmp_path)
    assert data.modules == ["__init__", "latin", "pkg", "pkg.sub.g", "testing"]
    assert data.tokens[1] == ["ß", "ä"]


def test_several_roots(tmp_path):
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "m.py").write_text(f"{folder}\n")
    (tmp_path / "two" / "a.py").write_text("a\n")
    data = stdlib_roles(root=[tmp_path / "one", str(tmp_path / "two")])
    assert (data.modules, data.tokens) == (["a", "m", "m"], [["a"], ["one"], ["two"]])


def test_stdlib_without_source(tmp_path, monkeypatch):
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path / "python.zip"))
    with pytest.raises(DataError, match=r"no Python source .*python\.zip.*pass root="):
        stdlib_roles()


def test_bad_arguments(tmp_path):
    with pytest.raises(DataError, match="no Python source with identifiers found"):
        stdlib_roles(root=tmp_path)
    with pytest.raises(DataError, match="is not a folder"):
        stdlib_roles(root=tmp_path / "nowhere")
    with pytest.raises(DataError, match="root is an empty list"):
        stdlib_roles(root=[])
    with pytest.raises(DataError, match="unit must be 'function' or 'statement', got 'word'"):
        stdlib_roles(unit="word")
    with pytest.raises(DataError, match="unit must be"):
        source_roles("x", unit="line")
    with pytest.raises(DataError, match="max_tokens must be None or a positive integer, got 0"):
        stdlib_roles(max_tokens=0)


@pytest.mark.parametrize("source", ["def f(:", "x = '\0'", "x = '\ud800'", "(" * 100_000])
def test_source_that_is_no_python(source):
    with pytest.raises(DataError, match="cannot be parsed as Python"):
        source_roles(source)


def test_lines_that_do_not_end_as_the_text_says():
    """``ast`` ends a line at a lone carriage return; :func:`source_roles` replaces it before."""
    with pytest.raises(ValueError, match="no identifier after byte 11"):
        label_source("x = 1\ry.z", "statement")


# Splitting


def make(sizes):
    return Roles(
        [["x"] * size for size in sizes.values()],
        [["call"] * size for size in sizes.values()],
        list(sizes),
    )


def test_split_is_the_same_everywhere(tree):
    train, test = stdlib_roles(root=tree).split()
    assert list(dict.fromkeys(test.modules)) == list("afkp")
    assert train.modules == sorted(train.modules)


@given(
    st.dictionaries(st.text(max_size=5), st.integers(1, 50), min_size=2, max_size=12),
    st.floats(0.01, 0.99),
)
def test_split_divides_by_module_near_the_wanted_share(sizes, fraction):
    data = make(sizes)
    train, test = data.split(fraction)
    assert not set(train.modules) & set(test.modules)
    assert train.modules and test.modules
    assert Counter(train.modules + test.modules) == Counter(data.modules)
    for part in (train, test):
        assert [len(s) for s in part.tokens] == [sizes[m] for m in part.modules]
        assert [len(s) for s in part.labels] == [sizes[m] for m in part.modules]
    assert abs(test.n_tokens - fraction * data.n_tokens) <= max(sizes.values())


def test_split_keeps_all_sequences_of_a_module_together(sample):
    train, test = sample.split(0.3)
    assert not set(train.modules) & set(test.modules)
    assert train.n_tokens + test.n_tokens == sample.n_tokens
    assert 0.15 < test.n_tokens / sample.n_tokens < 0.45


@pytest.mark.parametrize("fraction", [0, 1, -0.1, float("nan")])
def test_split_fraction_outside_0_1(fraction):
    with pytest.raises(DataError, match="test_fraction must be a number between 0 and 1"):
        make({"a": 1, "b": 1}).split(fraction)


def test_split_of_one_module():
    with pytest.raises(DataError, match="comes from 1 module"):
        make({"a": 3}).split()

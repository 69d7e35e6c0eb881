"""Sentences of docstrings: what is kept, in which form, and where it comes from."""

from __future__ import annotations

import ast

import pytest

from trellis.datasets import Sentences, stdlib_sentences
from trellis.datasets.sentences import _docstrings
from trellis.errors import DataError, ParameterError


def sentences_of(tmp_path, docstring):
    (tmp_path / "m.py").write_text(f'"""{docstring}"""\n', encoding="utf-8")
    return stdlib_sentences(root=tmp_path).sentences


@pytest.mark.parametrize(
    ("docstring", "expected"),
    [
        ("Read a whole line.", ["read a whole line"]),
        ("Read it now.", []),  # three words
        ("Don't read the well-known line!", ["dont read the wellknown line"]),
        ("One, two (and) four: then five or six", ["one two and four", "then five or six"]),
        ("A sentence that\n    goes on here.", ["a sentence that goes on here"]),
        ("Call f(x) to read the line.", ["call fx to read the line"]),
        ("Use x_1 to read the line.", []),
        ("Read the line 3 times now.", []),
        ("Ünicode is not a letter here.", []),
        (">>> read the line now\nand this as well please", []),
        ("- read the line now", []),
        ("Read the line now.\n\n    Go to the next.", ["read the line now", "go to the next"]),
        ("Read the line now. Read the line now.", ["read the line now"]),
    ],
)  # fmt: skip
def test_what_is_a_sentence(tmp_path, docstring, expected):
    if expected:
        assert sentences_of(tmp_path, docstring) == expected
    else:
        with pytest.raises(DataError, match="no Python source with docstrings"):
            sentences_of(tmp_path, docstring)


def test_docstrings_at_any_depth_in_order():
    source = '''
"""module"""
class A:
    """class"""
    def f(self):
        """method"""
        def g():
            """inner"""
try:
    def a(): "try"
except ValueError:
    async def b(): "except"
else:
    def c(): "else"
finally:
    if x:
        def d(): "if"
x = lambda: "no docstring"
'''
    found = list(_docstrings(ast.parse(source)))
    assert found == ["module", "class", "method", "inner", "try", "except", "else", "if"]
    walked = [
        ast.get_docstring(node)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    assert sorted(found) == sorted(walked)


def test_a_sentence_belongs_to_the_first_module_that_has_it(tmp_path):
    for name in ("b", "a"):
        (tmp_path / f"{name}.py").write_text('"""Read the next line. Only in ' + name + ' here."""')
    data = stdlib_sentences(root=tmp_path)
    assert data.sentences == ["read the next line", "only in a here", "only in b here"]
    assert data.modules == ["a", "a", "b"]


def test_files_that_are_no_python_are_left_out(tmp_path):
    (tmp_path / "a.py").write_text('"""Read the next line."""')
    (tmp_path / "b.py").write_text('"""Read the other line."""\ndef')
    (tmp_path / "c.py").write_bytes(b'"""Read \xff the line."""')
    assert stdlib_sentences(root=tmp_path).modules == ["a"]


def test_the_standard_library():
    data = stdlib_sentences()
    assert len(data.sentences) == len(set(data.sentences)) > 5000
    assert data.n_letters > 300_000
    assert data.modules == sorted(data.modules)
    corpus = data.corpus()
    assert (len(corpus), corpus.n_positions) == (len(data.sentences), data.n_letters)
    train, test = data.split(0.2)
    assert not set(train.modules) & set(test.modules)
    assert len(train.sentences) + len(test.sentences) == len(data.sentences)
    assert 0.15 < test.n_letters / data.n_letters < 0.25


def test_a_part_is_diverse_and_as_large_as_asked():
    data = stdlib_sentences(max_sentences=300)
    assert len(data.sentences) == 300
    assert len(set(data.modules)) > 5


def test_errors():
    with pytest.raises(ParameterError, match="max_sentences must be"):
        stdlib_sentences(max_sentences=0)
    with pytest.raises(DataError, match=r"comes from 1 module\(s\)"):
        Sentences(["read the next line"], ["a"]).split()
    with pytest.raises(DataError, match="is not a folder"):
        stdlib_sentences(root="nowhere")

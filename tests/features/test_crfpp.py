"""Template files of CRF++ and Wapiti: their examples, their patterns, and every complaint."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trellis.corpus import Corpus
from trellis.errors import DataError, TemplateError
from trellis.features import TemplateEncoder, Templates, read_crfpp
from trellis.features.crfpp import _wapiti_pattern, parse_crfpp

COLUMNS = ["word", "pos-tag"]

CRFPP = """\
# Unigram
U00:%x[-2,0]
U01:%x[-1,0]
U02:%x[0,0]
U03:%x[+1,0]
U05:%x[-1,0]/%x[0,0]
U10:%x[-2, 1]
U20:%x[-2,1]/%x[-1,1]/%x[0,1]

# Bigram
B
"""


def test_crfpp_example():
    found = parse_crfpp(CRFPP, COLUMNS)
    assert found.text().split("\n") == [
        "edges = mark",
        "word[-2]",
        "word[-1]",
        "word",
        "word[1]",
        "word[-1] & word",
        '"pos-tag"[-2]',
        '"pos-tag"[-2] & "pos-tag"[-1] & "pos-tag"',
    ]
    assert Templates.parse(found.text()) == found


def test_wapiti_example():
    text = r"""
    *
    U:wrd-1 LL=%X[-1,0]
    u:wrd-1  X=%x[ 0,0]
    U:Pre-4 X=%m[ 0,0,"^.?.?.?.?"]
    U:caps? X=%t[ 0,0,"\u"]/%T[1,0,"^\U*$"]
    U:same%x[0,0]
    """
    found = parse_crfpp(text, COLUMNS)
    assert [str(t) for t in found] == [
        "bias",
        "lower(word)[-1]",
        "word",
        'match(word, "^.?.?.?.?")',
        'test(word, "[A-Z]") & test(word, "^[^A-Z]*?$")[1]',
    ]
    assert Templates.parse(found.text()) == found


def test_a_line_without_macros_is_a_bias():
    assert parse_crfpp("U00\nB\n", COLUMNS).text() == "edges = mark\nbias"


def test_b_and_star_lines_with_columns_are_edge_templates():
    found = parse_crfpp("U0:%x[0,0]\nB1:%x[-1,0]/%x[0,1]\n*2:%X[0,0]\nb3:%x[1,0]\nB", COLUMNS)
    assert found.text().split("\n") == [
        "edges = mark",
        "word",
        'word[-1] & "pos-tag" @ edge',
        "lower(word) @ edge",
        "word[1] @ edge",
    ]
    assert [t.edge for t in found] == [False, True, True, True]
    assert Templates.parse(found.text()) == found


@pytest.mark.parametrize("text", ["U0:%x[0,0]\nB0:%x[0,0]", "B0:%x[0,0]\nU0:%x[0,0]", "*:%x[0,0]"])
def test_u_and_b_of_the_same_columns_are_one_template(text):
    assert parse_crfpp(text + "\nU1:%x[1,0]", COLUMNS).text() == (
        "edges = mark\nword @ edge\nword[1]"
    )


def test_a_b_line_alone_is_enough():
    assert parse_crfpp("B0:%x[0,0]", COLUMNS).text() == "edges = mark\nword @ edge"


def test_many_lines():
    """Each is looked up, not compared with all before it."""
    n, numbers = 12_000, range(-200, 200)
    lines = [f"U{i}:%x[{numbers[i % 400]},0]/%x[{numbers[i // 400]},1]" for i in range(n)]
    found = parse_crfpp("\n".join([*lines, *(f"B{line}" for line in lines[::2])]), COLUMNS)
    assert len(found) == n
    assert [template.edge for template in found] == [True, False] * (n // 2)


def test_boundary_symbols():
    encoder = TemplateEncoder(parse_crfpp("U00:%x[-2,0]/%x[1,0]", ["word"]))
    encoded = encoder.learn(Corpus.from_columns({"word": [["a", "b", "c"]]}))
    assert encoder.names(encoded.indices) == [
        "word[-2]=<before 2> & word[1]=b",
        "word[-2]=<before 1> & word[1]=c",
        "word[-2]=a & word[1]=<after 1>",
    ]


def test_files(tmp_path):
    path = tmp_path / "template"
    path.write_bytes("\ufeffU00:%x[0,0]\r\n# caf\u00e9\r\n".encode() + b"# latin \xe9\n")
    assert read_crfpp(path, COLUMNS).text() == "edges = mark\nword"
    path.write_text("U00:%x[0,0]\n\nX\n")
    with pytest.raises(TemplateError, match=re.escape(f"{path}, line 3: 'X' does not start with")):
        read_crfpp(path, COLUMNS)
    with pytest.raises(DataError, match="cannot read"):
        read_crfpp(tmp_path / "missing", COLUMNS)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "templates: no templates that start with U"),
        ("# c\nB", "templates: no templates that start with U"),
        ("U0:%x[0,0]\nX", "templates, line 2: 'X' does not start with U, B or *"),
        ("U0:%x[0]", "a %-macro is not of the form %x[row,column]"),
        ("U0:%y[0,0]", "a %-macro is not of the form %x[row,column]"),
        ("U0:100%/%x[0,0]", "a %-macro is not of the form %x[row,column]"),
        ("U0:%x[1000,0]", "a %-macro is not of the form %x[row,column]"),
        ("U0:%x[0,2]", "%x[0,2] names column 2; there are 2: word, pos-tag"),
        ("U0:%x[@1,0]", "%x[@1,0]: absolute rows (@) are not supported"),
        ('U0:%x[0,0,"a"]', '%x[0,0,"a"]: %x takes no pattern'),
        ("U0:%t[0,0]", r'%t[0,0]: %t takes a pattern, e.g. %t[0,0,"\d"]'),
        ("U0:%m[0,0]", "%m[0,0]: %m takes a pattern"),
        ('U0:%M[0,0,"a"]', "%M (lower-cased match) is not supported; use %m"),
        ('U0:%t[0,0,"*a"]', "pattern '*a': * follows nothing it can repeat"),
        ('U0:%t[0,0,"^?"]', "pattern '^?': ? follows nothing it can repeat"),
        ('U0:%t[0,0,"a*?"]', "pattern 'a*?': ? follows nothing it can repeat"),
        ("B0:%x[0]", "'B0:%x[0]': a %-macro is not of the form %x[row,column]"),
        ("*:%x[0,2]", "%x[0,2] names column 2; there are 2"),
        ("B:%x[0,0]\nB:%x[1,0]", "'B:%x[1,0]' and 'B:%x[0,0]' share one identifier"),
        (
            "U:%x[0,0]\nU:%x[1,0]",
            "templates, line 2: 'U:%x[1,0]' and 'U:%x[0,0]' share one identifier (a bag of words)",
        ),
    ],
)
def test_bad_files(text, message):
    with pytest.raises(TemplateError, match=re.escape(message)):
        parse_crfpp(text, COLUMNS)


def test_a_pattern_may_hold_a_percent_sign():
    assert parse_crfpp('U:%t[0,0,"%"]', COLUMNS).text() == 'edges = mark\ntest(word, "%")'


# ------------------------------------------------------------------------------ patterns

PUNCTUATION = set("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
CLASSES = {
    "a": lambda c: c.isascii() and c.isalpha(),
    "d": lambda c: c in "0123456789",
    "l": lambda c: c.isascii() and c.islower(),
    "p": lambda c: c in PUNCTUATION,
    "s": str.isspace,
    "u": lambda c: c.isascii() and c.isupper(),
    "w": lambda c: c.isascii() and c.isalnum(),
}


def wapiti_match(items, text):
    """Length of the match at the start of a text, or None: the shortest repetitions first."""
    if not items:
        return 0
    if items == ["$"]:
        return 0 if not text else None
    item, rest = items[0], items[1:]

    def fits(c):
        if item == ".":
            return True
        if item.startswith("\\") and item[1].lower() in CLASSES:
            return CLASSES[item[1].lower()](c) != item[1].isupper()
        return c == item[-1]

    def further(n, following):
        found = wapiti_match(following, text[n:])
        return None if found is None else n + found

    if rest[:1] == ["*"]:
        for n in range(len(text) + 1):
            if n and not fits(text[n - 1]):
                return None
            if (found := further(n, rest[1:])) is not None:
                return found
        return None
    one = bool(text) and fits(text[0])
    if rest[:1] == ["?"]:
        found = further(1, rest[1:]) if one else None
        return further(0, rest[1:]) if found is None else found
    return further(1, rest) if one else None


ITEMS = st.sampled_from(
    [".", "a", "[", "+", "é", "$x", r"\*", r"\\", *(rf"\{c}" for c in "adlpsuwADLPSUW")]
)
PATTERNS = st.tuples(
    st.sampled_from(["", "^"]),
    st.lists(st.tuples(ITEMS, st.sampled_from(["", "", "*", "?"])).map("".join), max_size=4),
    st.sampled_from(["", "$"]),
).map(lambda parts: parts[0] + "".join(parts[1]) + parts[2])


@given(PATTERNS, st.text("aB1.[+*\\ é_$x", max_size=6))
def test_patterns_match_as_in_wapiti(pattern, text):
    items = re.findall(r"\\.|.", pattern.removeprefix("^"))
    starts = [0] if pattern.startswith("^") else range(len(text) + 1)
    matches = ((i, wapiti_match(items, text[i:])) for i in starts)
    expected = next(((i, i + n) for i, n in matches if n is not None), None)
    found = re.search(_wapiti_pattern(pattern), text)
    assert (found and found.span()) == expected

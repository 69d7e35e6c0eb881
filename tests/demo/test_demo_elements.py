"""Pieces of the demo's page: what is escaped, and which code is shown."""

from __future__ import annotations

import html
import json
import re

from trellis.demo import elements


def test_text_is_escaped():
    bad = "<script>alert('x')</script> & more"
    for made in (
        elements.summary(bad),
        elements.note(bad),
        elements.figure("", bad),
        elements.table([bad], [[bad]]),
    ):
        assert "<script" not in made
        assert html.escape(bad) in made


def test_the_summary_is_found_again():
    text = "a < b & 95 % of «x»"
    assert elements.summary_of(f"<div>{elements.summary(text)}<p>more</p></div>") == text
    assert elements.summary_of("<p>none</p>") == ""


def test_numbers_stand_to_the_right():
    made = elements.table(["a", "b"], [["vote", "93.4 %"], ["3 systems", "−0.2"]])
    assert re.findall(r'<td( class="number")?>([^<]*)', made) == [
        ("", "vote"), (' class="number"', "93.4 %"),
        (' class="number"', "3 systems"), (' class="number"', "−0.2"),
    ]  # fmt: skip


def some_dict(**named: object) -> dict[str, object]:
    return named


def some(seed: int, way: str) -> list[object]:
    """Not shown.

    Neither is this.
    """
    import math

    seeded = math.sqrt(seed)
    found = some_dict(seed=seed, way=way)
    return [seeded, found]


def test_code_is_the_body_with_values_for_arguments():
    assert elements.source_of(some).splitlines() == [
        "import math", "", "seeded = math.sqrt(seed)", "found = some_dict(seed=seed, way=way)",
    ]  # fmt: skip
    shown = elements.source_of(some, seed=4, way="a\\b")
    assert shown.splitlines()[2:] == [
        "seeded = math.sqrt(4)",
        "found = some_dict(seed=4, way='a\\\\b')",
    ]
    names: dict[str, object] = {"some_dict": some_dict}
    exec(shown, names)
    assert names["found"] == some(4, "a\\b")[1]
    assert html.escape(shown) in elements.code_of(some, seed=4, way="a\\b")


def test_data_for_scripts_cannot_end_a_script():
    value = {"a": ["</script><b>", "é\u2028"], "n": [1.5, None]}
    made = elements.data("name", value)
    assert made.count("<") == 2
    text = re.fullmatch(r'<script type="application/json" id="name">(.*)</script>', made)[1]
    assert json.loads(text) == value

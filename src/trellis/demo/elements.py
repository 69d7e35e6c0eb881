"""Pieces of the demo's page: a sentence that sums up, tables, figures, and the code that ran.

All text is escaped here; only what comes from :mod:`trellis.demo.charts` or from these functions is
taken as HTML.
"""

from __future__ import annotations

import html
import inspect
import re
import textwrap
from collections.abc import Callable, Sequence
from typing import Any

from trellis.pictures.page_parts import asset, data, script

__all__ = [
    "asset",
    "code_of",
    "data",
    "figure",
    "note",
    "percent",
    "script",
    "source_of",
    "summary",
    "summary_of",
    "table",
]

_SUMMARY = re.compile(r'<p class="summary">(.*?)</p>', re.DOTALL)
_TAG = re.compile(r"<[^>]+>")


def summary(text: str) -> str:
    """What a panel shows, in a sentence or two; the terminal shows it as well.

    Examples
    --------
    >>> summary("F1 < 100")
    '<p class="summary">F1 &lt; 100</p>'
    """
    return f'<p class="summary">{html.escape(text)}</p>'


def summary_of(panel: str) -> str:
    """The sentence that sums up a panel, as plain text.

    Examples
    --------
    >>> summary_of("<h2>Cells</h2>" + summary("all linked"))
    'all linked'
    """
    found = _SUMMARY.search(panel)
    return "" if found is None else html.unescape(_TAG.sub("", found[1]))


def note(text: str) -> str:
    """What a careful reader wants to know: where the data come from, what is not said."""
    return f'<p class="note">{html.escape(text)}</p>'


def figure(picture: str, caption: str) -> str:
    """A picture, as HTML or SVG, and the words below it."""
    return f"<figure>{picture}<figcaption>{html.escape(caption)}</figcaption></figure>"


def table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A table; what begins like a number stands to the right.

    Examples
    --------
    >>> table(["system", "F1"], [["vote", "93.4"]]).count("<td")
    2
    """
    head = "".join(f"<th>{html.escape(name)}</th>" for name in header)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return (
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _cell(value: Any) -> str:
    text = str(value)
    kind = ' class="number"' if re.match(r"[-−+]?\d", text) else ""
    return f"<td{kind}>{html.escape(text)}</td>"


def percent(share: float, digits: int = 1) -> str:
    """A share in per cent.

    Examples
    --------
    >>> percent(0.9876)
    '98.8 %'
    """
    return f"{100 * share:.{digits}f} %"


def source_of(example: Callable[..., Any], **arguments: Any) -> str:
    """The body of a function, as a reader would type it: no docstring, no indent, no return.

    What the page shows as «made by» is thus the code that was run; names of arguments are shown as
    their values.

    Examples
    --------
    >>> from trellis.demo.panels import words
    >>> print(source_of(words.example).splitlines()[0])
    from trellis import ChainCRF
    """
    source = textwrap.dedent(inspect.getsource(example))
    lines = source.splitlines()
    head = next(i for i, line in enumerate(lines) if line.rstrip().endswith(":"))
    body = textwrap.dedent("\n".join(lines[head + 1 :])).strip("\n")
    if body.startswith('"""'):
        body = body[body.index('"""', 3) + 3 :].lstrip("\n")
    kept = [line for line in body.splitlines() if not line.startswith("return ")]
    shown = "\n".join(kept).strip("\n")
    for name, value in arguments.items():
        shown = re.sub(rf"\b{name}\b(?!=)", repr(value).replace("\\", r"\\"), shown)
    return shown


def code_of(example: Callable[..., Any], **arguments: Any) -> str:
    """The code that made a panel, with a button that copies it."""
    text = html.escape(source_of(example, **arguments))
    return (
        '<details class="code" open><summary>The code that made this</summary>'
        f'<button type="button" class="copy">copy</button><pre><code>{text}</code></pre></details>'
    )

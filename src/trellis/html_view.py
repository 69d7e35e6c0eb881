"""Labelled text as HTML, for notebooks: each label has its colour, spans are one block.

The colour of a label is a hue that depends on its name alone, so that it is the same wherever the
label is shown; a faint one says that the model is unsure. «O» has none.
"""

from __future__ import annotations

import html
import zlib
from collections.abc import Sequence
from typing import Any

__all__ = ["labelled_text"]

_MOST = 400  # positions that are shown


def labelled_text(
    symbols: Sequence[str],
    labels: Sequence[Any] | None = None,
    chances: Sequence[float | None] | None = None,
    notes: Sequence[str] | None = None,
) -> str:
    """Return the positions of a sample in order, each with its label below it.

    Parameters
    ----------
    symbols : list of str
        What stands at each position.
    labels : list, optional
        A label, None or a set for each.
    chances : list of float, optional
        How probable each label is.
    notes : list of str, optional
        What is shown while the pointer is on a position.

    Examples
    --------
    >>> "&lt;b&gt;" in labelled_text(["<b>"])
    True
    """
    boxes = []
    for t, symbol in enumerate(symbols[:_MOST]):
        label = None if labels is None else labels[t]
        chance = None if chances is None else chances[t]
        name = "" if label == "O" else _words(label)
        sure = "" if chance is None or not name else f" {100 * chance:.0f} %"
        title = "" if notes is None else f' title="{html.escape(notes[t])}"'
        boxes.append(
            f'<span{title} style="display:inline-block;text-align:center;margin:1px;'
            f'padding:1px 4px;border-radius:4px;line-height:1.3;{_colour(label, chance)}">'
            f"{html.escape(symbol)}<br>{_small(name + sure)}</span>"
        )
    more = f" … {len(symbols) - _MOST} more" if len(symbols) > _MOST else ""
    return f'<div style="line-height:1">{"".join(boxes)}{more}</div>'


def _small(text: str) -> str:
    return f'<small style="opacity:.7">{html.escape(text) or "&nbsp;"}</small>'


def _words(label: Any) -> str:
    if label is None:
        return ""
    return " or ".join(sorted(map(str, label))) if isinstance(label, frozenset) else str(label)


def _colour(label: Any, chance: float | None) -> str:
    """Background of a label; the prefix of a tag scheme does not matter."""
    name = _words(label)
    if name in ("", "O"):
        return ""
    kind = name[2:] if name[1:2] == "-" else name
    hue = zlib.crc32(kind.encode("utf-8", "surrogatepass")) % 360
    return f"background:hsla({hue},70%,60%,{0.4 * (1.0 if chance is None else chance):.2f})"

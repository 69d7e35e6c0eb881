"""Parts of pages that need nothing but a browser: style, scripts and data, all in the one file."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

__all__ = ["asset", "data", "script"]


def asset(module: str, name: str) -> str:
    """A text file beside a module of this package: a style sheet, a script."""
    return resources.files(module).joinpath(name).read_text(encoding="utf-8")


def script(source: str) -> str:
    """A script in the page."""
    return f"<script>{source}</script>"


def data(name: str, value: Any) -> str:
    r"""Numbers and texts for a script, which finds them by this name.

    Examples
    --------
    >>> data("cells", {"label": "</script>"})
    '<script type="application/json" id="cells">{"label":"\\u003c/script>"}</script>'
    """
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":")).replace("<", "\\u003c")
    return f'<script type="application/json" id="{name}">{text}</script>'

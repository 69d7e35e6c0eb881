"""Paths as messages show them."""

from __future__ import annotations

import os
from typing import Any

__all__ = ["display_name"]


def display_name(path: str | os.PathLike[Any]) -> str:
    r"""Return a path as it should appear in a one-line message.

    Examples
    --------
    >>> display_name("model.trellis")
    'model.trellis'
    >>> print(display_name("two\nlines"))
    'two\nlines'
    """
    name = os.fsdecode(path)
    return name if name and name.isprintable() else repr(name)

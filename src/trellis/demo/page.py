"""The demo's page: panels made side by side in processes of their own, then one HTML file.

The file needs nothing but a browser: style, scripts, data and pictures are in it, and it asks no
server for anything.
"""

from __future__ import annotations

import html
import importlib
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from types import ModuleType

from trellis import __version__
from trellis.demo.elements import asset, script, summary_of
from trellis.domains import whole
from trellis.errors import DataError, TrellisError

__all__ = ["PANELS", "Made", "make_page", "run_panel"]

PANELS = ("words", "cells", "systems", "map", "labelling", "timing")
"""Names of the panels, in the order of the page."""


@dataclass(frozen=True)
class Made:
    """A panel as it was made: its HTML and the seconds that took, or what went wrong."""

    name: str
    title: str
    html: str
    seconds: float
    error: str = ""

    @property
    def summary(self) -> str:
        """What it shows, in a sentence."""
        return f"failed: {self.error}" if self.error else summary_of(self.html)


def load(name: str) -> ModuleType:
    """The module of a panel."""
    if name not in PANELS:
        raise DataError(f"there is no panel {name!r}; there are {', '.join(PANELS)}")
    return importlib.import_module(f"trellis.demo.panels.{name}")


def run_panel(name: str, seed: int) -> Made:
    """Make one panel in this process."""
    module = load(name)
    started = time.perf_counter()
    try:
        made, error = module.panel(seed), ""
    except TrellisError as reason:
        made, error = "", str(reason)
    return Made(name, module.TITLE, made, time.perf_counter() - started, error)

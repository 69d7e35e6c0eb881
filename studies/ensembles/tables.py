"""Cells and sentences that several sections share."""

from __future__ import annotations

from typing import Any

__all__ = ["Published", "command", "gain_text", "published"]

Published = tuple[float, float | None] | None


def published(value: Published, digits: int = 4) -> str:
    """A figure of the paper.

    Examples
    --------
    >>> published((0.4, None)), published((0.1788, 0.00004))
    ('0.4000', '0.1788 ± 0.0000')
    """
    if value is None:
        return ""
    mean = f"{value[0]:.{digits}f}"
    return mean if value[1] is None else f"{mean} ± {value[1]:.{digits}f}"


def gain_text(gain: dict[str, Any]) -> str:
    """A gain in points with its interval.

    Examples
    --------
    >>> gain_text({"gain": 0.0031, "low": -0.001, "high": 0.0072})
    '+0.31 (-0.10 to +0.72)'
    """
    low, high = 100 * gain["low"], 100 * gain["high"]
    return f"{100 * gain['gain']:+.2f} ({low:+.2f} to {high:+.2f})"


def command(task: str, protocol: str) -> str:
    """The command that makes a section again."""
    size = "" if protocol == "default" else f" --{protocol}"
    return f"Command: `python -m studies ensembles --tasks {task}{size} --out DIR`"

"""How numbers are written in reports."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

__all__ = ["bullets", "mean_sd", "p_text", "percent", "percent_sd", "size_text"]


def mean_sd(values: ArrayLike, digits: int = 4) -> str:
    """Mean ± standard deviation over runs, if there are several.

    Examples
    --------
    >>> mean_sd([0.25, 0.35]), mean_sd([0.25])
    ('0.3000 ± 0.0707', '0.2500')
    """
    array = np.asarray(values, np.float64)
    mean = f"{array.mean():.{digits}f}"
    return mean if len(array) < 2 else f"{mean} ± {array.std(ddof=1):.{digits}f}"


def percent_sd(values: ArrayLike, digits: int = 2) -> str:
    """The same in per cent.

    Examples
    --------
    >>> percent_sd([0.25, 0.35], 1)
    '30.0 ± 7.1'
    """
    return mean_sd(100 * np.asarray(values, np.float64), digits)


def percent(score: float) -> str:
    """A score in per cent."""
    return f"{100 * score:.2f}"


def size_text(size: float | None) -> str:
    """A mean size n′ of pieces, or «whole»."""
    return "whole" if size is None else f"{size:g}"


def p_text(p_value: float) -> str:
    """A p-value with two digits; small ones as a bound."""
    return "< 0.0001" if p_value < 0.0001 else f"{p_value:.2g}"


def bullets(sentences: Iterable[str]) -> str:
    """Sentences as a list."""
    return "\n".join(f"- {sentence}" for sentence in sentences)

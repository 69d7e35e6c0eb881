"""Label sequences as short text, for the log: codes of all positions, compressed, in base 64."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

__all__ = ["pack", "unpack"]


def pack(sequences: Sequence[Sequence[Any]]) -> dict[str, Any]:
    """Pack label sequences; their lengths are not kept.

    Examples
    --------
    >>> packed = pack([["N", "V"], ["N"]])
    >>> packed["labels"]
    ['N', 'V']
    >>> unpack(packed, [2, 1])
    [['N', 'V'], ['N']]
    """
    flat = [label for sequence in sequences for label in sequence]
    labels = sorted(set(flat))
    number = {label: i for i, label in enumerate(labels)}
    codes = np.array([number[label] for label in flat], "<u2")
    return {"labels": labels, "codes": base64.b64encode(zlib.compress(codes.tobytes())).decode()}


def unpack(packed: dict[str, Any], lengths: Sequence[int]) -> list[list[str]]:
    """Label sequences of the given lengths from what :func:`pack` made."""
    codes = np.frombuffer(zlib.decompress(base64.b64decode(packed["codes"])), "<u2")
    labels = np.array(packed["labels"], object)[codes].tolist()
    return [labels[a:b] for a, b in pairwise(accumulate(lengths, initial=0))]

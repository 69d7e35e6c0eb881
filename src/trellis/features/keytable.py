"""An exact, growing map from integer keys to dense codes 0, 1, 2, … in order of first appearance.

Key spaces up to ``_DIRECT`` use a direct table, larger ones an open-addressing hash table at most
half full. Written by hand because a Python dict would need an object for each of millions of keys,
and ``numpy.unique`` a sort for each call.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["KeyTable"]

_DIRECT = 1 << 20


class KeyTable:
    """Map keys in 0 .. space − 1 to codes.

    Examples
    --------
    >>> import numpy as np
    >>> table = KeyTable(100)
    >>> table.code(np.array([7, 3, -1, 7]), grow=True)
    array([ 0,  1, -1,  0], dtype=int32)
    >>> table.code(np.array([3, 50]), grow=False), table.keys
    (array([ 1, -1], dtype=int32), array([7, 3]))
    """

    def __init__(self, space: int, keys: NDArray[np.int64] | None = None) -> None:
        self.space = space
        # A copy, so that it is writable: kernels are compiled for writable arrays only.
        self.keys = np.zeros(0, np.int64) if keys is None else np.array(keys, np.int64)
        self._index()

    def __len__(self) -> int:
        return len(self.keys)

    def __getstate__(self) -> tuple[int, NDArray[np.int64]]:
        return self.space, self.keys

    def __setstate__(self, state: tuple[int, NDArray[np.int64]]) -> None:
        self.__init__(*state)  # type: ignore[misc]  # what was mapped by joblib is copied

    def _index(self, room: int = 0) -> None:
        """Rebuild the table for the present keys and ``room`` more."""
        from trellis.kernels.coding import rebuild_hash

        n = len(self.keys)
        if self.space <= _DIRECT:
            self._direct = np.full(self.space, -1, np.int32)
            self._direct[self.keys] = np.arange(n, dtype=np.int32)
            return
        capacity = 1 << max(4, int(2 * (n + room)).bit_length())
        self._slot_keys = np.zeros(capacity, np.int64)
        self._slot_codes = np.full(capacity, -1, np.int32)
        rebuild_hash(self.keys, self._slot_keys, self._slot_codes)

    def code(
        self, keys: NDArray[np.int64], *, grow: bool, out: NDArray[np.int32] | None = None
    ) -> NDArray[np.int32]:
        """Codes of keys (−1 stays −1); unknown keys get new codes if ``grow``, else −1."""
        from trellis.kernels.coding import code_direct, code_hashed

        out = np.empty(len(keys), np.int32) if out is None else out
        new = np.empty(len(keys) if grow else 0, np.int64)
        n = len(self.keys)
        if self.space <= _DIRECT:
            total = code_direct(keys, self._direct, n, new, out)
        else:
            if grow and 2 * (n + len(keys)) > len(self._slot_keys):
                self._index(room=len(keys))
            total = code_hashed(keys, self._slot_keys, self._slot_codes, n, new, out)
        if total > n:
            self.keys = np.concatenate([self.keys, new[: total - n]])
        return out

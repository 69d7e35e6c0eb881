"""Functions that are called in another process."""

import sys

import numpy as np
import pytest

from benchmarks.peers import PeerError, PeerProcess


def doubled(numbers, wish=""):
    """A function of a peer."""
    import os

    if wish == "fail":
        raise ValueError("cannot")
    if wish == "end":
        os._exit(0)
    print("a peer may print")
    return [2 * number for number in numbers], os.environ["OMP_NUM_THREADS"]


def test_a_function_is_called_there():
    process = PeerProcess(sys.executable, doubled)
    for _ in range(2):
        found, seconds = process.ask("doubled", [1, 2.5])
        assert found == [[2, 5.0], "1"]
        assert seconds >= 0
    with pytest.raises(PeerError, match="ValueError: cannot"):
        process.ask("doubled", [], "fail")
    assert process.ask("doubled", [3])[0][0] == [6]  # it goes on
    with pytest.raises(PeerError, match="doubled ended the process of the peers"):
        process.ask("doubled", [], "end")
    process.close()


def test_versions():
    process = PeerProcess()
    assert process.version("numpy") == np.__version__
    assert process.version("no-such-package", "no_such_module") is None
    process.close()


def test_no_python():
    with pytest.raises(PeerError, match="ended the process"):
        PeerProcess("/bin/true").version("numpy")

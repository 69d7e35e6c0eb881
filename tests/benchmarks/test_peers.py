"""Functions that are called in another process."""

import os
import subprocess
import sys
import time
from pathlib import Path

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


def asleep():
    """A function of a peer that takes its time."""
    import os
    import pathlib
    import time

    pathlib.Path(os.environ["PEER"]).write_text(f"{os.getpid()}\n")
    time.sleep(600)


def test_it_ends_with_the_process_that_asks(tmp_path):
    place = tmp_path / "pid"
    script = (
        "import sys; sys.path[:0] = sys.argv[1:]; from test_peers import *\n"
        "PeerProcess(sys.executable, asleep).ask('asleep')"
    )
    here = Path(__file__).parent
    asking = subprocess.Popen(
        [sys.executable, "-c", script, str(here), str(here.parents[1])],
        env=os.environ | {"PEER": str(place)},
    )

    def until(condition):
        ends = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < ends
            time.sleep(0.1)

    until(lambda: place.exists() and place.read_text().strip())
    asking.kill()
    asking.wait()
    pid = int(place.read_text())

    def ended():
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        # Where nobody collects it, it is still in the table of processes.
        return "\nState:\tZ" in Path(f"/proc/{pid}/status").read_text()

    until(ended)


def test_versions():
    process = PeerProcess()
    assert process.version("numpy") == np.__version__
    assert process.version("no-such-package", "no_such_module") is None
    process.close()


def test_no_python():
    with pytest.raises(PeerError, match="ended the process"):
        PeerProcess("/bin/true").version("numpy")

"""Shared by all tests: hypothesis without deadlines, and where real data are found."""

from __future__ import annotations

import gc
import os
import signal
import threading
from pathlib import Path

import pytest
from hypothesis import settings

# Tests run side by side; on small matrices further threads of BLAS only wait, and busily.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

settings.register_profile("trellis", deadline=None, derandomize=True, max_examples=30)
settings.register_profile("quick", settings.get_profile("trellis"), max_examples=5)
settings.register_profile("thorough", settings.get_profile("trellis"), max_examples=500)
settings.load_profile("trellis")

# A shell that runs the tests in the background has them ignore Ctrl-C, and so would every process
# that a test starts in order to interrupt it.
if threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)

# They hold fixtures, no doctests, and two files of one name cannot both be collected as modules.
collect_ignore_glob = ["conftest.py", "*/conftest.py"]

DATA = Path(os.environ.get("TRELLIS_DATA", Path(__file__).parents[2] / "shared" / "data"))


def pytest_collection_finish() -> None:
    """What is there by now stays: to look for garbage in it again and again takes time."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def real_data():
    """Folder of a real data set, ``real_data("conll2000")``; skips the test if it is absent."""

    def find(name: str) -> Path:
        folder = DATA / name
        if not folder.is_dir():
            pytest.skip(f"{name} is not in {DATA} (set TRELLIS_DATA to the folder of data sets)")
        return folder

    return find

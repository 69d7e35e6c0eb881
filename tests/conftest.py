"""Shared by all tests: hypothesis without deadlines, and where real data are found."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("trellis", deadline=None, derandomize=True)
settings.load_profile("trellis")

# They hold fixtures, no doctests, and two files of one name cannot both be collected as modules.
collect_ignore_glob = ["conftest.py", "*/conftest.py"]

DATA = Path(os.environ.get("TRELLIS_DATA", Path(__file__).parents[2] / "shared" / "data"))


@pytest.fixture
def real_data():
    """Folder of a real data set, ``real_data("conll2000")``; skips the test if it is absent."""

    def find(name: str) -> Path:
        folder = DATA / name
        if not folder.is_dir():
            pytest.skip(f"{name} is not in {DATA} (set TRELLIS_DATA to the folder of data sets)")
        return folder

    return find

"""Other libraries, asked in a process of their own.

A peer may need other versions of what Trellis needs, so it may live in another environment
(``--peer-python``). Functions that use it are sent there as text, arguments and results as JSON, so
that the other Python need not know Trellis. It has one thread of BLAS. Seconds are CPU seconds of
the function, without starting a process or passing data.
"""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def serve() -> None:
    """Answer requests: the name of a function and its arguments, one line of JSON each.

    It ends with the process that asks, also in the middle of an answer.
    """
    import contextlib
    import json
    import os
    import signal
    import sys
    import threading
    import time
    import warnings

    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=watch, daemon=True).start()
    warnings.simplefilter("ignore")
    for line in sys.stdin:
        name, arguments = json.loads(line)
        started = time.process_time()
        try:
            with contextlib.redirect_stdout(sys.stderr):
                answer = [globals()[name](*arguments), time.process_time() - started, ""]
        except Exception as error:  # a peer's failure is an answer
            answer = [None, 0.0, f"{type(error).__name__}: {error}"]
        print(json.dumps(answer), flush=True)


def installed(package: str, module: str) -> str | None:
    """Version of a package; None if its module cannot be imported."""
    import importlib
    from importlib.metadata import version

    try:
        importlib.import_module(module)
    except ImportError:
        return None
    return version(package)


class PeerError(RuntimeError):
    """A function of a peer failed, or its process ended."""


class PeerProcess:
    """A Python in which functions are called; each imports what it needs in its body."""

    def __init__(self, python: str = sys.executable, *functions: Callable[..., Any]) -> None:
        source = "from __future__ import annotations\n"
        source += "".join(inspect.getsource(part) for part in (*functions, installed, serve))
        hidden = {"PYTHONPATH"}  # what is there belongs to this interpreter
        kept = {key: value for key, value in os.environ.items() if key not in hidden}
        self._process = subprocess.Popen(
            [python, "-c", source + "serve()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True, env=kept | dict.fromkeys(THREADS, "1"),
        )  # fmt: skip

    def ask(self, function: str, *arguments: Any) -> tuple[Any, float]:
        """What a function returns, and its CPU seconds."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(BrokenPipeError):  # it has ended: what it says is empty
            print(json.dumps([function, arguments]), file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline()
        if not answer:
            raise PeerError(f"{function} ended the process of the peers")
        found, seconds, error = json.loads(answer)
        if error:
            raise PeerError(error)
        return found, seconds

    def version(self, package: str, module: str | None = None) -> str | None:
        """Version of a package there; None if it is not installed."""
        found: str | None = self.ask("installed", package, module or package)[0]
        return found

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.wait()

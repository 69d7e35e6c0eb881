"""Progress: a bar at the bottom, lines above it, and no long silence.

What goes on is a stack of *tasks*: a stage of unknown length («encoding 8,936 samples»), or steps
towards a total («pass 5 of 12»). One bar shows them all: that of the outermost steps, with the time
that they still need, and the words of the innermost task. Where it is shown depends on the stream:

    terminal      the bar (tqdm's), redrawn every half second; it is gone when the work is done
    notebook      the same, as a widget if there is ipywidgets
    pipe, file    lines only, and a sign of life after 2, 4, 8, … seconds
    worker        nothing: processes that work for another one are silent

A thread draws, for the work itself is inside compiled code most of the time. It lives as long as
there are tasks. Who reports finds it among the threads of the process, so that a fit within a
search adds its words to the bar that is there, and nothing has to be remembered elsewhere.

The library never prints; every line is also logged under ``trellis``.
"""

from __future__ import annotations

import builtins
import importlib.util
import logging
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Any, TextIO

__all__ = ["Reporter", "Task", "nothing_drawn", "write_line"]

_log = logging.getLogger("trellis")
_TICK = 0.5  # seconds; what is done sooner is not shown at all
_PATIENCE = 2.0  # seconds, doubled with each sign of life where there are lines only


class Task:
    """Work under way.

    Parameters
    ----------
    text : str
        What is done; of steps, what a step is called.
    total : int, optional
        Number of steps.
    done : float
        Steps that are done; a part of one counts, too.
    limit : bool
        The total is not expected to be reached.
    """

    def __init__(
        self, text: str, total: int | None = None, done: float = 0, *, limit: bool = False
    ) -> None:
        self.text, self.total, self.limit = text, total, limit
        self.first = self.done = done
        self.note = ""
        self.started = time.time()

    def now(self, text: str) -> None:
        """Go on to another stage."""
        _log.debug(text)
        self.text, self.started = text, time.time()

    def at(self, done: float, note: str = "") -> None:
        """Say how many steps are done, and what is done now."""
        self.done, self.note = done, note

    @property
    def words(self) -> str:
        """What is done now.

        Examples
        --------
        >>> task = Task("pass", 12)
        >>> task.at(4.3, "scoring")
        >>> task.words
        'pass 5 of 12, scoring'
        """
        if self.total is None:
            return self.text
        note = f", {self.note}" if self.note else ""
        return f"{self.text} {min(int(self.done) + 1, self.total)} of {self.most}{note}"

    @property
    def most(self) -> str:
        """The total, in words."""
        return f"at most {self.total}" if self.limit else f"{self.total}"


class Reporter:
    """Says what goes on, on standard error.

    Parameters
    ----------
    enabled : bool
        False: only log.
    stream : text stream
        Standard error by default.

    Examples
    --------
    >>> reporter = Reporter(enabled=False)
    >>> with reporter.steps("fold", 5) as folds:
    ...     for k in range(5):
    ...         folds.at(k)
    ...         reporter.line(f"fold {k}: done")
    """

    def __init__(self, enabled: bool = True, *, stream: TextIO | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream  # None under pythonw
        self.shown = enabled and self._stream is not None and not _in_worker()

    @property
    def draws(self) -> bool:
        """Whether there is a bar, and not lines only."""
        return self.shown and _bar_kind(self._stream) is not None

    def line(self, text: str, *, shown: bool = True) -> None:
        """Write a line that stays, or only log it."""
        _log.info(text, extra={"reported": True})  # a handler that shows things may leave it out
        if self.shown and shown:
            write_line(text, self._stream)

    def stage(self, text: str) -> AbstractContextManager[Task]:
        """A task of unknown length, as a context."""
        return self.under_way(Task(text))

    def steps(self, step: str, total: int) -> AbstractContextManager[Task]:
        """A task of so many steps, as a context."""
        return self.under_way(Task(step, total))

    @contextmanager
    def under_way(self, task: Task) -> Iterator[Task]:
        """Show a task, as a context; its time is that since it was made."""
        _log.debug(task.words)
        if not self.shown:
            yield task
            return
        process = os.getpid()
        display = _display_of(self._stream, task)
        try:
            yield task
        finally:
            if os.getpid() == process:  # not in a child that was forked meanwhile
                display.remove(task)


def write_line(text: str, stream: TextIO) -> None:
    """Write a line above whatever bars there are, ours and others'."""
    display = _live(stream)
    with nullcontext() if display is None else display.lock:
        if "tqdm" in sys.modules:
            from tqdm import tqdm

            tqdm.write(text + "\n", file=stream, end="")
        else:
            stream.write(text + "\n")
        stream.flush()
        if display is not None:
            display.heard = time.monotonic()


@contextmanager
def nothing_drawn() -> Iterator[None]:
    """Take bars away while results are written, or typed."""
    display = _live(None)
    if display is None:
        yield
        return
    with display.lock:
        display.close_bar()
        yield
        display.heard = time.monotonic()


# ------------------------------------------------------------------------------- who draws


class _Display(threading.Thread):
    """Draws the tasks until there are none."""

    def __init__(self, stream: TextIO, task: Task) -> None:
        super().__init__(name="trellis progress", daemon=True)
        self.stream, self.tasks = stream, [task]
        self.lock = threading.RLock()  # held by whoever writes, or changes the tasks
        self.ended = threading.Event()
        self.heard, self._patience = time.monotonic(), _PATIENCE
        self._bar: Any = None
        self._kind = _bar_kind(stream)

    def run(self) -> None:
        # A stream that was closed is nobody's to complain about.
        with suppress(OSError, ValueError):
            while not self.ended.wait(_TICK):
                with self.lock:
                    if not self.ended.is_set():
                        self._draw()

    def add(self, task: Task) -> bool:
        """Show a task, too; False if all had ended before."""
        with self.lock:
            if not self.ended.is_set():
                self.tasks.append(task)
            return not self.ended.is_set()

    def remove(self, task: Task) -> None:
        """Forget a task; after the last one nothing is left of the bar, and of the thread."""
        with self.lock:
            self.tasks.remove(task)
            if self.tasks:
                return
            self.ended.set()
            with suppress(OSError, ValueError):
                self.close_bar()
        if self is not threading.current_thread():
            self.join()

    def _draw(self) -> None:
        shown = next((task for task in self.tasks if task.total is not None), self.tasks[-1])
        words = shown.words
        if self.tasks[-1] is not shown:
            words += f", {self.tasks[-1].words}"
        if self._kind is None:
            silence = time.monotonic() - self.heard
            if silence >= self._patience:
                self._patience *= 2
                write_line(f"{words}: {time.time() - shown.started:.0f} s", self.stream)
            return
        if self._bar is None or self._bar.task is not shown:
            self.close_bar()
            self._bar = self._new_bar(shown)
        bar = self._bar
        bar.n, bar.start_t = shown.done, shown.started
        if self._kind == "terminal":
            bar.ncols = _width(self.stream)
        bar.set_description_str(words, refresh=False)
        bar.refresh()

    def _new_bar(self, task: Task) -> Any:
        if self._kind == "widget":
            import tqdm.notebook as module
        else:
            import tqdm.std as module

        class Bar(module.tqdm):  # type: ignore[misc]  # tqdm is untyped
            monitor_interval = 0  # no thread of tqdm's own

        known = task.total is not None and not task.limit
        bar = Bar(
            total=task.total if known else None,
            initial=task.first,
            file=self.stream,
            leave=False,
            nrows=20,  # tqdm shows nothing on terminals that do not know their size
            delay=1e-9,  # not drawn before its description is known
            bar_format="{desc}  |{bar:30}|  {elapsed}, {remaining} to go"
            if known
            else "{desc}  {elapsed}",
        )
        bar.task = task
        return bar

    def close_bar(self) -> None:
        """Leave a clean line, with the cursor at its start."""
        bar, self._bar = self._bar, None
        if bar is None:
            return
        bar.start_t = 0.0  # else tqdm may take it for one that was never drawn
        bar.close()
        if self.stream.isatty() and os.name == "posix":
            self.stream.write("\x1b[K")  # what the terminal wrote itself: ^C
        self.stream.flush()


def _display_of(stream: TextIO, task: Task) -> _Display:
    """Who draws on a stream, with a task more."""
    display = _live(stream)
    if display is None or not display.add(task):
        display = _Display(stream, task)
        display.start()
    return display


def _live(stream: TextIO | None) -> _Display | None:
    """Who draws on a stream, or on any, if anybody does."""
    for thread in threading.enumerate():
        if not isinstance(thread, _Display) or thread.ended.is_set():
            continue
        if stream in (None, thread.stream):
            return thread
    return None


def _bar_kind(stream: TextIO) -> str | None:
    """Which bar can be drawn on a stream, if any."""
    if stream.isatty():
        return "terminal"
    if stream is not sys.stderr or not _in_notebook():
        return None
    return "terminal" if importlib.util.find_spec("ipywidgets") is None else "widget"


def _width(stream: TextIO) -> int | None:
    """Columns of a terminal that a bar may fill, if they are known."""
    try:
        columns = os.get_terminal_size(stream.fileno()).columns
    except (AttributeError, OSError, ValueError):  # not a real one
        return None
    return columns - 1 if columns > 1 else None


def _in_notebook() -> bool:
    shell = getattr(builtins, "get_ipython", lambda: None)()
    return any(kind.__name__ == "ZMQInteractiveShell" for kind in type(shell).mro())


def _in_worker() -> bool:
    """Whether this process works for another one of Python's."""
    from multiprocessing import current_process

    return current_process().name != "MainProcess"

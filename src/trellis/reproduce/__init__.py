"""The experiments of the papers behind Trellis, run again: structure regularisation (Sun 2014).

What is computed is in :mod:`trellis.reproduce.protocol` (the grids and sizes) and
:mod:`trellis.reproduce.study` (what is chosen, and from what); everything that was computed goes to
a log, and tables, figures and the report are made from the log alone.
"""

from trellis.reproduce.protocol import PROTOCOLS, Protocol
from trellis.reproduce.run import Outcome, render, reproduce
from trellis.reproduce.tasks import TASKS, Task

__all__ = ["PROTOCOLS", "TASKS", "Outcome", "Protocol", "Task", "render", "reproduce"]

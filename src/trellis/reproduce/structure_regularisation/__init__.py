"""The experiments of Sun (2014) on structure regularisation.

What is computed is in :mod:`~trellis.reproduce.structure_regularisation.protocol` (the grids and
sizes) and :mod:`~trellis.reproduce.structure_regularisation.study` (what is chosen, and from what);
everything that was computed goes to a log, and tables, figures and the report are made from the log
alone.
"""

from trellis.reproduce.structure_regularisation.protocol import PROTOCOLS, Protocol
from trellis.reproduce.structure_regularisation.run import Outcome, render, reproduce
from trellis.reproduce.structure_regularisation.tasks import TASKS, Task

__all__ = ["PROTOCOLS", "TASKS", "Outcome", "Protocol", "Task", "render", "reproduce"]

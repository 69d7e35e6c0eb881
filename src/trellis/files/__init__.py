"""Everything that goes to and comes from files: the ground floor, which knows no model.

Atomic writes, whole inputs, tables, logs, fingerprints, the container of model files with its
checked parts, checkpoints, and the registry by which a model file finds its estimator.
"""

from trellis.files.atomic import atomic_write
from trellis.files.fingerprint import fingerprint
from trellis.files.paths import display_name
from trellis.files.reading import open_text_bytes
from trellis.files.registry import load_model

__all__ = ["atomic_write", "display_name", "fingerprint", "load_model", "open_text_bytes"]

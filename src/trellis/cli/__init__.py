"""The command line: ``trellis train | tag | eval | inspect | demo | warmup``."""

from trellis.cli.main import main

__all__ = ["main"]

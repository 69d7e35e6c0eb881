"""Measurements of speed and size beside other libraries: ``python -m benchmarks.NAME [--small]``."""

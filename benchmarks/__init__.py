"""Measurements of speed and size beside peers: ``python -m benchmarks.NAME [--small]``."""

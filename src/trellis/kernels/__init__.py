"""Numba kernels: arrays in, arrays out. Private; nothing here knows an object of the library."""

"""How long tuples wait and how many processors they need: formulas of queueing theory as plain functions.

Everything here is pure: numbers in, numbers out. What needs NumPy, SciPy or Numba imports them where it is used, so
that the values in :mod:`headgate.queueing.network` can be made and checked without them.
"""

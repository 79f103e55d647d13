"""Queueing theory as plain functions: waiting times, and how many processors a network needs.

Everything here is pure: numbers in, numbers out. What needs NumPy, SciPy or Numba imports them where it is used, so
that the values in :mod:`headgate.queueing.network` can be made and checked without them.
"""

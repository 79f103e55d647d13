"""Keyed tasks on Spark: the host that runs them, and how rows and state reach it."""

"""Machines: acquired and released through a provider. The local one starts real Spark workers on this machine."""

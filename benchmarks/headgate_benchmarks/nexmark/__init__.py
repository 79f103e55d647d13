"""Nexmark's events, its queries 0 to 8 as dataflows, and the benchmark over them."""

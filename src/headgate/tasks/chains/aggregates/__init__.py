"""Aggregates that stream: what is kept of some rows of a group, how two such are merged, and what comes out."""

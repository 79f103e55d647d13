"""Derived streams between fragments: durable and replayable."""

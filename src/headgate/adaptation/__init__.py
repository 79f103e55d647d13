"""Deciding what to change while dataflows run: pure functions from what was observed to what is to be done."""

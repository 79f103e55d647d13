"""Decides what to change while dataflows run: pure functions from observations to actions."""

"""Simulation of dataflows on simulated machines. Time and randomness are arguments."""

"""The experiment of SHARE, simulated."""

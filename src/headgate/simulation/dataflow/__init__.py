"""Dataflows on machines that vary, interval by interval: the fluid model of DYN for many replications at once."""

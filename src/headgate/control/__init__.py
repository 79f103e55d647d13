"""The control socket: how commands on the same machine reach a running engine."""

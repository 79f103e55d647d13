"""The HTTP API of a running engine, and its client."""

"""The engine: what runs, how it changes, and how it is doing."""

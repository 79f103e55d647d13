"""Running fragments: one micro-batch at a time, each committed once."""

"""State of windows and joins: chains of immutable Arrow files, one for each hash range, named by the journal."""

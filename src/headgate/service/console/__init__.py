"""What the console shows: the overview, the graph of all that runs, previews of changes, bills that open, levels."""

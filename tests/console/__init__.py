"""The console in a real browser, with a live engine behind."""

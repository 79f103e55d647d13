"""What outlives the process that made it."""

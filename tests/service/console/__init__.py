"""What the console shows, without Spark."""

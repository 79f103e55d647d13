"""The DRS policy on a live Spark."""

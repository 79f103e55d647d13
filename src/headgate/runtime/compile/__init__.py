"""From a plan snapshot to what Spark runs."""

"""The Spark engine: fragments that run the current plan snapshot, the exchange between them, sinks that commit once."""

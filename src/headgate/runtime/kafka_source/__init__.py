"""The Kafka source: topics as a stream, planned by offsets, read by workers that know no JVM."""

"""Kafka: the task types that read and write topics, how to connect, and the forms of records."""

"""Kafka to Kafka: Headgate beside queries written by hand over Spark's connector."""

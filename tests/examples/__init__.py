"""Tests of what lies in examples/ that need no Spark."""

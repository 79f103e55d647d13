"""Tests of RIoTBench's task types."""

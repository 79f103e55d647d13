"""The formats of files: bytes of a file become Arrow rows, in Spark's workers and without Spark."""

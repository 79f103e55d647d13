"""The applications of the examples, checked without Spark where that is possible."""

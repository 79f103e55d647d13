"""Tables of the lakehouse, by their own libraries: no jar that has to fit a version of Spark."""

"""The kernels of stateful tasks: folds over Arrow tables, for all keys of a partition at once, without Spark."""

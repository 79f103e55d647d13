"""The one seam to the parts of Spark that are not its public API."""

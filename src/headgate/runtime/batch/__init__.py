"""Batch jobs on Spark: experiments and the analysis of traces."""

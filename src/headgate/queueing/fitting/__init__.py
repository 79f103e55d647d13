"""Fits a network to measurements: rates, service times and routes, each with a confidence interval."""

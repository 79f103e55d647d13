"""Durable files: observations, and small files written atomically."""

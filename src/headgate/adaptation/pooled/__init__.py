"""Policies where fragments share cores: which machines a pool has, and which alternates run on them."""

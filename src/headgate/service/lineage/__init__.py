"""Lineage: from which columns a column is made, and who would be hurt if one went."""

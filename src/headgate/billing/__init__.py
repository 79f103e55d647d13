"""Bills for machines that many dataflows share: usage, attribution, bills and their export. Pure."""

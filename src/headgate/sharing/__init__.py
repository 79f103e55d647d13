"""What dataflows have in common: signatures, duplicates, overlap and the merged graph."""
